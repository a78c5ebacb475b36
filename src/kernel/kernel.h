#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/nest.h"
#include "kernel/spec.h"

namespace einrel {

/// Where the arrays of one call lie. They do not overlap the result.
struct Arrays {
  const std::byte* const* operands = nullptr;
  std::byte* result = nullptr;
  std::byte* const* results = nullptr;  ///< of what has several, in place of `result`
};

/// Memory that a kernel has asked for, aligned to cache lines of 64 bytes, contents unspecified: its own for each part,
/// and one that all parts of all stages share.
struct Workspace {
  std::byte* own = nullptr;
  std::byte* shared = nullptr;
};

using PartFunction = std::function<void(const Arrays&, Workspace, std::int64_t part)>;

/// Parts that may be computed in any order and at the same time: they write to different places. How many there are
/// depends on the spec alone, so that the result does not depend on the number of threads.
struct Stage {
  std::int64_t parts = 1;
  PartFunction run;
};

/// A kernel made ready for one spec: it may run many times, on several threads at once. Stages run one after another.
struct PreparedKernel {
  std::int64_t own_bytes = 0;  ///< workspace of each part under way
  std::int64_t shared_bytes = 0;
  std::vector<Stage> stages;
};

/// Computes all parts on the calling thread, one after another.
void run_alone(const PreparedKernel& kernel, const Arrays& arrays, Workspace workspace);

/// No kernel asks for more of either workspace: a limit for those who plan memory, whatever the processor.
inline constexpr std::int64_t most_workspace_bytes = std::int64_t{8} << 20;

/// How a kernel would compute a spec.
struct Offer {
  double seconds = 0;  ///< modelled, on one thread
  std::string path;    ///< what it would do, for people: "packed 14x32 (AVX-512), 4 parts"
  std::int64_t own_bytes = 0;
  std::int64_t shared_bytes = 0;
  std::function<PreparedKernel()> prepare;
};

/// Why a kernel does not compute a spec: "it is no sum of a product of two operands".
struct Refusal {
  std::string reason;
};

/// A row of the registry.
struct KernelInfo {
  std::string_view name;
  std::string_view computes;
  std::string_view library;
  /// `nest` is make_nest(spec). No label has extent 0.
  std::variant<Offer, Refusal> (*offer)(const KernelSpec& spec, const LoopNest& nest);
};

}  // namespace einrel
