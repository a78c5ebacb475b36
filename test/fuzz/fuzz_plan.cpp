#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/source.h"
#include "einsum/check/check.h"
#include "exec/tasks/from_ia.h"
#include "plan/lower.h"
#include "run/compile.h"
#include "run/plan_file.h"

namespace {

const einrel::Compiled& program() {
  static const einrel::Compiled compiled = [] {
    const einrel::SourceText source("fuzz.ein", R"(dims i=7 j=5 k=6
input A[i,j], B[j,k]
C[i,k] = sum[j] A[i,j] * B[j,k]
s[i] = max[k] C[i,k]
)");
    einrel::CheckedProgram checked = einrel::parse_and_check(source, {});
    return einrel::compile("fuzz.ein", std::move(*checked.graph), {});
  }();
  return compiled;
}

}  // namespace

/// Any bytes as a plan of a program: one that can be lowered to tasks, or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  try {
    const Plan plan = parse_plan({reinterpret_cast<const char*>(data), size}, "fuzz.json", program());
    const LoweredPlan lowered = lower(program().graph, plan);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart})
      tasks_of(lowered.ia.store, lowered.ia.plan, memory);
  } catch (const UserError&) {
  }
  return 0;
}
