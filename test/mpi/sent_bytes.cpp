#include "mpi/sent_bytes.h"

#include <mpi.h>

#include <mutex>

namespace einrel::test {
namespace {

// The tags that StarPU-MPI gives its messages (starpu_mpi_private.h).
constexpr int envelope_tag = 42;
constexpr int data_tag = 43;

std::mutex mutex;
SentBytes counted;

void count(int items, MPI_Datatype type, int tag) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const std::lock_guard lock(mutex);
  if (tag == data_tag) {
    counted.payload += std::int64_t{items} * size;
    ++counted.messages;
  } else if (tag == envelope_tag) {
    ++counted.envelopes;
  } else {
    ++counted.others;
  }
}

}  // namespace

SentBytes sent_bytes() {
  const std::lock_guard lock(mutex);
  return counted;
}
void reset_sent_bytes() {
  const std::lock_guard lock(mutex);
  counted = {};
}

}  // namespace einrel::test

// Every call that sends from one process to another.
using einrel::test::count;
extern "C" {
int MPI_Send(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(items, type, tag);
  return PMPI_Send(data, items, type, to, tag, comm);
}
int MPI_Ssend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(items, type, tag);
  return PMPI_Ssend(data, items, type, to, tag, comm);
}
int MPI_Isend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  count(items, type, tag);
  return PMPI_Isend(data, items, type, to, tag, comm, request);
}
int MPI_Issend(const void* data, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  count(items, type, tag);
  return PMPI_Issend(data, items, type, to, tag, comm, request);
}
}
