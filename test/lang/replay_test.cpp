// clang-format off: before anything of Highway.
#include "support/only_target.h"
// clang-format on

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>

#include "lang/corpus.h"
#include "plan/planners/planner.h"
#include "run/algebra_facts.h"
#include "run/compile.h"
#include "run/session.h"
#include "support/run_tasks.h"
#include "support/run_whole.h"
#include "support/sanitizers.h"

/// What becomes of every document and example must stay the same, to the last bit, while the code is rebuilt: plans,
/// both algebras, results. replay.txt has a digest of each; README.md says how to see what changed, and how to record
/// anew.
namespace einrel::test {
namespace {

namespace fs = std::filesystem;

/// What is compared, as text; what they are made of is appended, for every number of sites.
using Stations = std::map<std::string, std::string>;

/// Bits are those of one instruction set, one library of functions, and optimised code. Elsewhere they are compared
/// between executions only.
std::string results_here() {
  const std::string_view sanitized = is_sanitized() ? ", sanitized" : "";
  const bool avx2 = (hwy::SupportedTargets() & HWY_AVX2) != 0;
  const bool openblas = ::dlsym(RTLD_DEFAULT, "openblas_get_config") != nullptr;  // in place of Debian's LAPACK
  return fmt::format("results with {}, glibc {}{}{}", avx2 ? "AVX2" : "other instructions", gnu_get_libc_version(),
                     openblas ? ", OpenBLAS" : "", sanitized);
}

std::string plan_line(const Vertex& vertex, const VertexPlan& plan) {
  std::string copies;
  for (const SiteCopies& copy : plan.copies) copies += fmt::format(" copies {} at {}", copy.count, copy.stride);
  const std::string scatter = plan.scatter ? fmt::format(" scatter {}", *plan.scatter) : "";
  return fmt::format("{}: parts {} grid {} strides {}{}{}\n", vertex.name, plan.parts, plan.grid, plan.strides, scatter,
                     copies);
}

std::string bits_of(const Tensor& tensor) {
  const Tensor dense = tensor.row_major();
  const std::byte* const data = dense.data();
  std::string text;
  const auto bytes = static_cast<std::size_t>(dense.byte_count());
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", std::to_integer<unsigned>(data[i]));
  return text;
}

std::string results_text(const Outputs& outputs) {
  std::string text;
  for (const auto& [name, tensor] : outputs) {
    text += fmt::format("{} : {} {} {}\n", name, name_of(tensor.dtype()), to_string(tensor.shape()), bits_of(tensor));
  }
  return text;
}

std::string results_of(const Compiled& compiled, const Plan& plan, const Runnable& runnable, std::size_t threads) {
  const PlannedTasks tasks = tasks_of(compiled, plan, {});
  Outputs outputs = output_tensors(tasks.graph);
  run_once(tasks.graph,
           task_bindings(tasks.graph, sources_of(runnable.inputs), writers_to(outputs, tasks.graph), runnable.scalars),
           SerialExecutor(threads));
  return results_text(outputs);
}

/// Everything that the program becomes on the way, by what eindecomp plans for 1 to 6 sites.
Stations stations_of(const Runnable& runnable) {
  const OnlyTarget only(hwy::SupportedTargets() & HWY_AVX2);  // none in common: no limit
  const Compiled compiled = compile("document", runnable.graph);
  Stations found;
  std::string& results = found[results_here()];
  results = "whole\n" + results_text(run_whole(compiled, runnable.inputs, runnable.scalars));
  for (const CostKind cost : {CostKind::seconds, CostKind::bytes}) {
    for (std::int64_t sites = 1; sites <= 6; ++sites) {
      const std::string title = fmt::format("--sites {} --cost {}\n", sites, name_of(cost));
      const Plan plan = std::get<Plan>(planner_named("eindecomp").plan(compiled.graph, {sites, {}, cost, {}, {}}));
      found["plan"] += title;
      for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
        found["plan"] += plan_line(compiled.graph.vertices[v], plan.vertices[v]);
      }
      const AlgebraFacts algebra = facts_of(algebra_of(compiled.graph, plan));
      found["TRA"] += title;
      for (const OperationLine& line : algebra.tra) found["TRA"] += line.text + " " + line.note + "\n";
      found["IA"] += title;
      for (const OperationLine& line : algebra.start.operations) found["IA"] += line.text + " " + line.note + "\n";
      const std::string bits = results_of(compiled, plan, runnable, 1);
      EXPECT_EQ(bits, results_of(compiled, plan, runnable, 2)) << title << "one thread against two";
      results += title + bits;
    }
  }
  return found;
}

std::string digest(const std::string& text) {
  return fmt::format("{:08x}", ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

/// Digests by station, of the lines "PROGRAM: STATION: DIGEST".
Stations recorded(const std::string& program) {
  Stations found;
  std::ifstream file(EINREL_LANG_DOCUMENTS "/replay.txt");
  for (std::string line; std::getline(file, line);) {
    const std::size_t station = program.size() + 2;
    const std::size_t value = line.rfind(": ");
    if (line.starts_with(program + ": ")) found[line.substr(station, value - station)] = line.substr(value + 2);
  }
  return found;
}

/// Where EINREL_REPLAY says, if it does: the texts, and the lines of replay.txt.
void write_down(const std::string& program, const Stations& stations) {
  const char* const folder = std::getenv("EINREL_REPLAY");
  if (folder == nullptr) return;
  fs::create_directories(folder);
  Stations digests = recorded(program);
  for (const auto& [station, text] : stations) {
    std::ofstream(fs::path(folder) / fmt::format("{} {}.txt", program, station)) << text;
    digests[station] = digest(text);
  }
  std::ofstream lines(fs::path(folder) / (program + ".digests"));
  for (const auto& [station, value] : digests) lines << fmt::format("{}: {}: {}\n", program, station, value);
}

void expect_as_recorded(const std::string& program, const Runnable& runnable) {
  const Stations stations = stations_of(runnable);
  write_down(program, stations);
  const Stations before = recorded(program);
  for (const auto& [station, text] : stations) {
    if (station == results_here() && !before.empty() && !before.contains(station)) continue;
    const auto digest_before = before.find(station);
    EXPECT_EQ(digest_before == before.end() ? "nothing" : digest_before->second, digest(text))
        << station << "; test/lang/README.md says how to see it";
  }
}

class Replay : public testing::TestWithParam<fs::path> {};

TEST_P(Replay, IsAsRecorded) {
  const bool is_document = GetParam().parent_path() == fs::path(EINREL_LANG_DOCUMENTS);
  expect_as_recorded((is_document ? "" : "example ") + GetParam().stem().string(), prepare(GetParam()));
}

std::string replayed_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(programs_that_run()), replayed_name);

}  // namespace
}  // namespace einrel::test
