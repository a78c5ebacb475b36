// Counts what goes from process to process: linked to pdgemm and to test/mpi, which ask for it; or a library for
// LD_PRELOAD, which leaves two numbers of this process in the file $MOVED_BYTES.RANK when MPI ends.
#include "moved_bytes.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace einrel::bench {
namespace {

// The tags that StarPU-MPI gives its messages (starpu_mpi_private.h).
constexpr int envelope_tag = 42;
constexpr int data_tag = 43;
constexpr int no_tag = -1;

struct Counter {
  std::mutex mutex;
  MovedBytes counted;
};
Counter& counter() {
  static Counter of_process;
  return of_process;
}

void count(std::int64_t items, MPI_Datatype type, int tag) {
  int size = 0;
  PMPI_Type_size(type, &size);
  auto& [mutex, counted] = counter();
  const std::lock_guard lock(mutex);
  counted.all += items * size;
  if (tag == data_tag) {
    counted.of_starpu += items * size;
    ++counted.messages;
  } else {
    ++(tag == envelope_tag ? counted.envelopes : counted.others);
  }
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}
int others_in(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size - 1;
}

}  // namespace

MovedBytes moved_bytes() {
  auto& [mutex, counted] = counter();
  const std::lock_guard lock(mutex);
  return counted;
}
void reset_moved_bytes() {
  auto& [mutex, counted] = counter();
  const std::lock_guard lock(mutex);
  counted = {};
}

}  // namespace einrel::bench

// Every call that ScaLAPACK, StarPU and Einrel send by.
using namespace einrel::bench;
extern "C" {
int MPI_Send(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(items, type, tag);
  return PMPI_Send(data, items, type, to, tag, comm);
}
int MPI_Ssend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(items, type, tag);
  return PMPI_Ssend(data, items, type, to, tag, comm);
}
int MPI_Rsend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(items, type, tag);
  return PMPI_Rsend(data, items, type, to, tag, comm);
}
int MPI_Isend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  count(items, type, tag);
  return PMPI_Isend(data, items, type, to, tag, comm, request);
}
int MPI_Issend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  count(items, type, tag);
  return PMPI_Issend(data, items, type, to, tag, comm, request);
}
int MPI_Sendrecv(const void* data, int items, MPI_Datatype type, int to, int tag, void* into, int most,
                 MPI_Datatype received, int from, int its_tag, MPI_Comm comm, MPI_Status* status) {
  count(items, type, tag);
  return PMPI_Sendrecv(data, items, type, to, tag, into, most, received, from, its_tag, comm, status);
}
int MPI_Bcast(void* data, int items, MPI_Datatype type, int root, MPI_Comm comm) {
  if (rank_in(comm) == root) count(std::int64_t{items} * others_in(comm), type, no_tag);
  return PMPI_Bcast(data, items, type, root, comm);
}
int MPI_Reduce(const void* data, void* into, int items, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  if (rank_in(comm) != root) count(items, type, no_tag);
  return PMPI_Reduce(data, into, items, type, op, root, comm);
}
int MPI_Allreduce(const void* data, void* into, int items, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  // As to rank 0, which tells all.
  count(rank_in(comm) != 0 ? std::int64_t{items} : std::int64_t{items} * others_in(comm), type, no_tag);
  return PMPI_Allreduce(data, into, items, type, op, comm);
}
int MPI_Allgather(const void* data, int items, MPI_Datatype type, void* into, int each, MPI_Datatype received,
                  MPI_Comm comm) {
  count(std::int64_t{each} * others_in(comm), received, no_tag);  // data may stand for what lies in place
  return PMPI_Allgather(data, items, type, into, each, received, comm);
}
int MPI_Gatherv(const void* data, int items, MPI_Datatype type, void* into, const int* each, const int* where,
                MPI_Datatype received, int root, MPI_Comm comm) {
  if (rank_in(comm) != root) count(items, type, no_tag);
  return PMPI_Gatherv(data, items, type, into, each, where, received, root, comm);
}
int MPI_Finalize() {
  if (const char* const path = std::getenv("MOVED_BYTES")) {
    const std::string name = std::string(path) + "." + std::to_string(rank_in(MPI_COMM_WORLD));
    const MovedBytes moved = moved_bytes();
    if (std::FILE* const file = std::fopen(name.c_str(), "w")) {
      std::fprintf(file, "%lld %lld\n", static_cast<long long>(moved.all), static_cast<long long>(moved.of_starpu));
      std::fclose(file);
    }
  }
  return PMPI_Finalize();
}
}
