#include "run/database_room.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/plan.h"
#include "run/memory.h"

namespace einrel {
namespace {

constexpr double much = 1e10;
constexpr const char* other_folder = ", and SQLITE_TMPDIR names another folder for temporary files";

/// Room that several tensors take, and the one that takes most.
struct Room {
  double bytes = 0;
  double most = 0;
  const Vertex* largest = nullptr;

  void add(const Vertex& vertex, double more) {
    bytes += more;
    if (more <= most) return;
    most = more;
    largest = &vertex;
  }
};

/// At least, of a table with a row for each element; with the index of its keys, if it has one.
double bytes_of_elements(const Vertex& vertex, sql::Dialect dialect, bool has_index) {
  const auto rank = static_cast<double>(vertex.bound.size());
  const bool is_indexed = has_index && rank > 0;
  const double row = dialect == sql::Dialect::postgres ? 36 + 8 * rank + (is_indexed ? 16 + 8 * rank : 0)
                                                       : 12 + rank + (is_indexed ? 6 + rank : 0);
  return static_cast<double>(element_count(vertex.bound)) * row;
}

const sql::OutputTable* table_of(const RoomAsked& asked, const std::string& tensor) {
  const auto found = std::find_if(asked.tables.begin(), asked.tables.end(),
                                  [&](const sql::OutputTable& table) { return table.tensor == tensor; });
  return found == asked.tables.end() ? nullptr : &*found;
}

/// Of temporary tables. Of what is computed of sparse tables element by element nobody knows beforehand how many rows
/// it has.
Room temporary_room(const EinGraph& graph, const RoomAsked& asked, sql::Dialect dialect) {
  Room room;
  std::vector<bool> is_few(graph.vertices.size(), false);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!asked.is_element) {
      room.add(vertex, bytes_of(vertex));
      continue;
    }
    is_few[v] = asked.sparse.contains(vertex.name) ||
                std::any_of(vertex.inputs.begin(), vertex.inputs.end(), [&](VertexId id) { return is_few[id.index]; });
    if (!is_few[v] && table_of(asked, vertex.name) == nullptr)
      room.add(vertex, bytes_of_elements(vertex, dialect, false));
  }
  return room;
}

Room room_of_tables(const EinGraph& graph, const RoomAsked& asked, sql::Dialect dialect) {
  Room room;
  for (const VertexId id : graph.outputs) {
    if (const sql::OutputTable* const table = table_of(asked, graph[id].name))
      room.add(graph[id],
               table->in_chunks ? bytes_of(graph[id]) : bytes_of_elements(graph[id], dialect, !asked.is_element));
  }
  return room;
}

Room room_in_memory(const EinGraph& graph, const RoomAsked& asked) {
  Room room;
  for (const VertexId id : program_outputs(graph)) {
    if (table_of(asked, graph[id].name) == nullptr) room.add(graph[id], bytes_of(graph[id]));
  }
  return room;
}

/// Of whoever runs this, if the system says so.
std::optional<double> free_bytes(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return std::nullopt;
  return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

bool are_on_one_disk(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev;
}

/// "80 GB of temporary tables, 79 GB of them for A f64 (100000, 100000)"
std::string room_text(const Room& room, const char* what) {
  return fmt::format("{} of {}, {} of them for {} {} {}", bytes_text(room.bytes), what, bytes_text(room.most),
                     room.largest->name, name_of(room.largest->dtype), to_string(room.largest->bound));
}

/// `beside` stands on the same disk; `taker` is "the run takes".
void check_disk(const Room& room, const std::string& taker, const char* what, double beside,
                const std::optional<std::string>& folder, const std::string& remedy) {
  if (!folder || room.largest == nullptr) return;
  const std::optional<double> free = free_bytes(*folder);
  if (!free || room.bytes + beside <= *free) return;
  throw RunError(
      fmt::format("{} {}, but the disk of '{}' has {} left{}; {}", taker, room_text(room, what), printable(*folder),
                  bytes_text(*free),
                  beside > 0 ? fmt::format(" for these and {} of tables of results", bytes_text(beside)) : "", remedy));
}

}  // namespace

std::string check_database_room(sql::Database& database, const EinGraph& graph, const RoomAsked& asked,
                                const std::string& taker) {
  const sql::Dialect dialect = database.dialect();
  const Room temporary = temporary_room(graph, asked, dialect);
  const Room tables = room_of_tables(graph, asked, dialect);
  const Room memory = room_in_memory(graph, asked);
  if (const auto available = available_memory(); available && memory.bytes > static_cast<double>(*available))
    throw RunError(fmt::format("{} {}, but {} are free; --out {}=chunks:NAME leaves it in the database", taker,
                               room_text(memory, "memory for results"), bytes_text(static_cast<double>(*available)),
                               memory.largest->name));
  const sql::DatabaseFolders folders = database.folders();
  const bool is_one = folders.temporary && folders.tables && are_on_one_disk(*folders.temporary, *folders.tables);
  std::string remedy =
      asked.is_element ? "use smaller extents" : "chunks have all zeros: --formats element keeps none of sparse tables";
  if (dialect == sql::Dialect::sqlite) remedy += other_folder;
  check_disk(temporary, taker, "temporary tables", is_one ? tables.bytes : 0, folders.temporary, remedy);
  check_disk(tables, taker, "tables of results", 0, folders.tables, "free some, or compute less of them");
  if (temporary.largest == nullptr || temporary.bytes + asked.kept_bytes < much) return "";
  const std::string kept = asked.kept_bytes > 0
                               ? fmt::format(", beside {} for rows of queries and views", bytes_text(asked.kept_bytes))
                               : "";
  return fmt::format("{} {}{}", taker, room_text(temporary, "temporary tables"), kept);
}

std::string check_room_of_rows(sql::Database& database, const std::string& title, const sql::KeptRows& first,
                               const sql::CountRows& count) {
  const std::optional<std::string> folder = database.folders().temporary;
  std::optional<double> free = folder ? free_bytes(*folder) : std::nullopt;
  if (!free) return "";
  // The pages of the first rows, which are dropped, are in SQLite's file still, and filled again.
  if (database.dialect() == sql::Dialect::sqlite) *free += first.bytes;
  constexpr double empty = 65536;  // of the pages that the first rows are in, at most
  constexpr double least = 20;
  const double row = std::max(least, (first.bytes - empty) / static_cast<double>(first.rows));
  const auto most = static_cast<std::int64_t>(*free / row);
  const std::int64_t rows = count(most + 1);
  if (rows > most)
    throw RunError(
        fmt::format("the rows of {} take more than the {} of temporary tables that the disk of '{}' has "
                    "room for, {} each; ask for fewer{}",
                    title, bytes_text(*free), printable(*folder), bytes_text(row),
                    database.dialect() == sql::Dialect::sqlite ? other_folder : ""));
  const double bytes = row * static_cast<double>(rows);
  return bytes < much ? "" : fmt::format("the rows of {} take {} of temporary tables", title, bytes_text(bytes));
}

}  // namespace einrel
