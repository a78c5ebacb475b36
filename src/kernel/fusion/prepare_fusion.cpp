#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "kernel/evaluate.h"
#include "kernel/fusion/fusion.h"
#include "kernel/fusion/slab.h"
#include "kernel/registry.h"

namespace einrel {
namespace {

/// An array of one slab: where it begins for the first slab, and how far it moves per position of each label that is
/// cut.
struct SlabArray {
  enum class Where : std::uint8_t { operand, result, workspace };
  Where where = Where::operand;
  std::size_t index = 0;    ///< of the call's operands or results
  std::int64_t offset = 0;  ///< in the workspace, bytes
  std::vector<std::int64_t> bytes_steps;
};

/// A member for one length of slab.
struct SlabStep {
  PreparedKernel kernel;
  std::vector<SlabArray> operands;
  SlabArray result;
};

/// All members for one length of slab.
struct SlabProgram {
  std::vector<SlabStep> steps;
  std::int64_t temporary_bytes = 0;
  std::int64_t own_bytes = 0;  ///< of the kernels inside
  std::int64_t shared_bytes = 0;
  double seconds = 0;  ///< modelled, on one thread
};

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

class SlabCompiler {
 public:
  SlabCompiler(const Fusion& fusion, const std::vector<ArrayLayout>& operands, const ScalarBindings& scalars)
      : fusion_(fusion), vertices_(fusion.program.vertices), operands_(operands), scalars_(scalars) {}

  SlabProgram compile(std::int64_t length) {
    SlabProgram program;
    length_ = length;
    arrays_.clear();
    for (std::size_t v = 0; v < vertices_.size(); ++v) {
      if (v < operands_.size()) {
        arrays_.push_back({operands_[v], {SlabArray::Where::operand, v, 0, {}}});
        continue;
      }
      arrays_.push_back(member(v, program));
      add_step(v, program);
    }
    return program;
  }

 private:
  struct Known {
    ArrayLayout layout;
    SlabArray array;
  };

  /// Of a label in a slab.
  Extent extent_of(const std::vector<std::size_t>& cut) const {
    return Extent(&cut == &fusion_.cuts.back() ? length_ : 1);
  }

  /// Where the slab of a member goes: into its tensor, or into the workspace.
  Known member(std::size_t v, SlabProgram& program) const {
    const Vertex& vertex = vertices_[v];
    const auto size = static_cast<std::int64_t>(size_of(vertex.dtype));
    Shape shape = vertex.bound;
    for (const std::vector<std::size_t>& cut : fusion_.cuts) shape[cut[v]] = extent_of(cut);
    const std::vector<VertexId>& results = fusion_.program.outputs;
    const auto result = std::find(results.begin(), results.end(), VertexId{v});
    if (result != results.end()) {
      const Strides strides = row_major_strides(vertex.bound);
      std::vector<std::int64_t> steps;
      for (const std::vector<std::size_t>& cut : fusion_.cuts) steps.push_back(strides[cut[v]] * size);
      const auto index = static_cast<std::size_t>(result - results.begin());
      return {{vertex.dtype, shape, strides, true}, {SlabArray::Where::result, index, 0, std::move(steps)}};
    }
    Known known{row_major_layout(vertex.dtype, shape), {SlabArray::Where::workspace, 0, program.temporary_bytes, {}}};
    program.temporary_bytes += aligned(element_count(shape) * size);
    return known;
  }

  void add_step(std::size_t v, SlabProgram& program) {
    const Vertex& vertex = vertices_[v];
    KernelSpec spec{std::get<EinSum>(vertex.op), {}, arrays_[v].layout, scalars_, false, false};
    spec.large_result = arrays_[v].array.where == SlabArray::Where::result &&
                        stays_in_no_cache(row_major_layout(vertex.dtype, vertex.bound), operands_);
    for (const std::vector<std::size_t>& cut : fusion_.cuts) {
      spec.einsum.labels[spec.einsum.output[cut[v]]].extent = extent_of(cut);
    }
    SlabStep step;
    step.result = arrays_[v].array;
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      Known known = arrays_[vertex.inputs[o].index];
      if (known.array.where == SlabArray::Where::operand) {
        for (const std::vector<std::size_t>& cut : fusion_.cuts) {
          const std::size_t label = spec.einsum.output[cut[v]];
          known.array.bytes_steps.push_back(bytes_step(spec.einsum.operands[o], label, known.layout));
        }
      }
      spec.operands.push_back(std::move(known.layout));
      step.operands.push_back(known.array);
    }
    const Offer offer = choose_kernel(spec).offer;
    step.kernel = offer.prepare();
    program.seconds += offer.seconds;
    program.own_bytes = std::max(program.own_bytes, aligned(step.kernel.own_bytes));
    program.shared_bytes = std::max(program.shared_bytes, aligned(step.kernel.shared_bytes));
    program.steps.push_back(std::move(step));
  }

  static std::int64_t bytes_step(const Access& access, std::size_t label, const ArrayLayout& layout) {
    std::int64_t step = 0;
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      for (const IndexTerm& term : access.indices[d].terms) {
        if (term.label == label) step += term.coefficient * layout.strides[d];
      }
    }
    return step * static_cast<std::int64_t>(size_of(layout.dtype));
  }

  const Fusion& fusion_;
  const std::vector<Vertex>& vertices_;
  const std::vector<ArrayLayout>& operands_;
  const ScalarBindings& scalars_;
  std::int64_t length_ = 1;
  std::vector<Known> arrays_;  // per vertex of the program
};

/// Runs slabs in whatever order it is asked to.
struct SlabRun {
  SlabProgram full;
  SlabProgram last;                   ///< what remains for the last slab, shorter than the others
  std::vector<std::int64_t> extents;  ///< of the labels that are cut
  std::int64_t length = 1;            ///< of the last of them at a time
  std::int64_t parts = 1;             ///< that the slabs are shared out among

  std::int64_t ranges() const { return (extents.back() + length - 1) / length; }
  std::int64_t slabs() const {
    return std::accumulate(extents.begin(), extents.end() - 1, ranges(), std::multiplies<>());
  }
  /// Where a slab begins, per label that is cut.
  std::vector<std::int64_t> begin_of(std::int64_t slab) const {
    std::vector<std::int64_t> begin(extents.size());
    begin.back() = slab % ranges() * length;
    slab /= ranges();
    for (std::size_t c = extents.size() - 1; c-- > 0; slab /= extents[c]) begin[c] = slab % extents[c];
    return begin;
  }

  void run_part(const Arrays& arrays, Workspace workspace, std::int64_t part) const {
    const std::int64_t end = slabs() * (part + 1) / parts;
    for (std::int64_t slab = slabs() * part / parts; slab < end; ++slab) run_slab(arrays, workspace, slab);
  }

  void run_slab(const Arrays& arrays, Workspace workspace, std::int64_t slab) const {
    const std::vector<std::int64_t> begin = begin_of(slab);
    const SlabProgram& program = begin.back() + length <= extents.back() ? full : last;
    const auto moved = [&](const SlabArray& array) {
      return std::inner_product(begin.begin(), begin.end(), array.bytes_steps.begin(), std::int64_t{0});
    };
    const auto place = [&](const SlabArray& array) -> std::byte* {
      if (array.where == SlabArray::Where::workspace) return workspace.own + array.offset;
      std::byte* const result = arrays.results == nullptr ? arrays.result : arrays.results[array.index];
      return result + moved(array);
    };
    std::byte* const inner = workspace.own + std::max(full.temporary_bytes, last.temporary_bytes);
    std::vector<const std::byte*> operands;
    for (const SlabStep& step : program.steps) {
      operands.clear();
      for (const SlabArray& array : step.operands) {
        operands.push_back(array.where == SlabArray::Where::operand ? arrays.operands[array.index] + moved(array)
                                                                    : place(array));
      }
      run_alone(step.kernel, {operands.data(), place(step.result)},
                {inner, inner + std::max(full.own_bytes, last.own_bytes)});
    }
  }
};

}  // namespace

PreparedKernel prepare_fusion(const Fusion& fusion, const std::vector<ArrayLayout>& operands,
                              const ScalarBindings& scalars) {
  const auto run = std::make_shared<SlabRun>();
  for (const std::vector<std::size_t>& cut : fusion.cuts) run->extents.push_back(cut_extent(fusion, cut));
  run->length = slab_length(fusion);
  SlabCompiler compiler(fusion, operands, scalars);
  run->full = compiler.compile(run->length);
  const std::int64_t rest = run->extents.back() % run->length;
  if (rest != 0) run->last = compiler.compile(rest);
  PreparedKernel kernel;
  kernel.own_bytes = std::max(run->full.temporary_bytes, run->last.temporary_bytes) +
                     std::max(run->full.own_bytes, run->last.own_bytes) +
                     std::max(run->full.shared_bytes, run->last.shared_bytes);
  // Several slabs a part where they are short: a part costs more than a microsecond, and waking a thread several.
  constexpr double least_seconds = 2e-5;
  const std::int64_t slabs = run->slabs();
  const double seconds = run->full.seconds * static_cast<double>(slabs);
  run->parts = static_cast<std::int64_t>(std::clamp(seconds / least_seconds, 1.0, static_cast<double>(slabs)));
  kernel.stages.push_back({run->parts, [run](const Arrays& arrays, Workspace workspace, std::int64_t part) {
                             run->run_part(arrays, workspace, part);
                           }});
  return kernel;
}

}  // namespace einrel
