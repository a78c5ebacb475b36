#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "kernel/cancel.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/fusion.h"
#include "kernel/fusion/products.h"
#include "kernel/fusion/slab.h"
#include "kernel/fusion/softmax.h"
#include "kernel/registry.h"
#include "machine/processor.h"

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
  std::vector<std::size_t> softmaxes;  ///< their quotients
  std::vector<SlabKernel> kernels;     ///< of the other steps
  std::int64_t temporary_bytes = 0;
  std::int64_t own_bytes = 0;  ///< of the kernels inside
  std::int64_t shared_bytes = 0;
  double seconds = 0;  ///< modelled, on one thread
};

std::int64_t aligned(std::int64_t bytes) {
  constexpr std::int64_t line = nominal_processor.line_bytes;
  return (bytes + line - 1) / line * line;
}

class SlabCompiler {
 public:
  SlabCompiler(const Fusion& fusion, const std::vector<ArrayLayout>& operands, const ScalarBindings& scalars)
      : fusion_(fusion),
        vertices_(fusion.program.vertices),
        operands_(operands),
        scalars_(scalars),
        softmaxes_(find_softmaxes(fusion.program)) {}

  SlabProgram compile(std::int64_t length) {
    SlabProgram program;
    length_ = length;
    arrays_.assign(vertices_.size(), {});
    for (std::size_t v = 0; v < operands_.size(); ++v) {
      arrays_[v] = {operands_[v], {SlabArray::Where::operand, v, 0, {}}};
    }
    std::vector<bool> is_computed(vertices_.size());
    for (std::size_t v = operands_.size(); v < vertices_.size(); ++v) {
      const auto softmax = std::find_if(softmaxes_.begin(), softmaxes_.end(),
                                        [v](const Softmax& candidate) { return candidate.largest == v; });
      if (softmax != softmaxes_.end() && add_softmax(*softmax, program)) {
        const Softmax& all = *softmax;
        for (const std::size_t member : {all.largest, all.exponentials, all.sum, all.quotient}) {
          is_computed[member] = true;
        }
      }
      if (is_computed[v]) continue;
      arrays_[v] = member(v, program);
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

  std::optional<std::size_t> result_of(std::size_t v) const {
    const std::vector<VertexId>& results = fusion_.program.outputs;
    const auto result = std::find(results.begin(), results.end(), VertexId{v});
    return result == results.end() ? std::nullopt : std::optional(static_cast<std::size_t>(result - results.begin()));
  }

  /// The slab of a member, in its tensor or in the workspace.
  ArrayLayout slab_of(std::size_t v) const {
    const Vertex& vertex = vertices_[v];
    ArrayLayout layout = row_major_layout(vertex.dtype, vertex.bound);
    for (const std::vector<std::size_t>& cut : fusion_.cuts) layout.shape[cut[v]] = extent_of(cut);
    return result_of(v) ? layout : row_major_layout(vertex.dtype, layout.shape);
  }

  /// Where the slab goes.
  Known member(std::size_t v, SlabProgram& program) const {
    Known known{slab_of(v), {}};
    const auto size = static_cast<std::int64_t>(size_of(known.layout.dtype));
    if (const std::optional<std::size_t> result = result_of(v)) {
      known.array = {SlabArray::Where::result, *result, 0, {}};
      for (const std::vector<std::size_t>& cut : fusion_.cuts) {
        known.array.bytes_steps.push_back(known.layout.strides[cut[v]] * size);
      }
      return known;
    }
    known.array = {SlabArray::Where::workspace, 0, program.temporary_bytes, {}};
    program.temporary_bytes += aligned(element_count(known.layout.shape) * size);
    return known;
  }

  /// Whether a member belongs to a tensor that stays in no cache.
  bool is_large(std::size_t v) const {
    return result_of(v) && stays_in_no_cache(row_major_layout(vertices_[v].dtype, vertices_[v].bound), operands_);
  }

  void add_step(std::size_t v, SlabProgram& program) {
    const Vertex& vertex = vertices_[v];
    KernelSpec spec{std::get<EinSum>(vertex.op), {}, arrays_[v].layout, scalars_, false, is_large(v)};
    for (const std::vector<std::size_t>& cut : fusion_.cuts) {
      spec.einsum.labels[spec.einsum.output[cut[v]]].extent = extent_of(cut);
    }
    SlabStep step;
    step.result = arrays_[v].array;
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      spec.operands.push_back(arrays_[vertex.inputs[o].index].layout);
      step.operands.push_back(operand_of(v, o));
    }
    spec.large_operands = !is_light(fusion_.program, vertex) && reads_large_operands(spec);
    Choice choice = choose_kernel(spec);
    step.kernel = choice.offer.prepare();
    add(std::move(step), choice.offer.seconds, program);
    program.kernels.push_back({v, std::move(choice)});
  }

  /// The four members as one; false where no kernel does that.
  bool add_softmax(const Softmax& softmax, SlabProgram& program) {
    std::optional<SoftmaxOffer> offer =
        offer_softmax(softmax, arrays_[softmax.from].layout, slab_of(softmax.quotient), is_large(softmax.quotient));
    if (!offer) return false;
    program.softmaxes.push_back(softmax.quotient);
    const Known& to = arrays_[softmax.quotient] = member(softmax.quotient, program);
    add({std::move(offer->kernel), {operand_of(softmax.exponentials, 0)}, to.array}, offer->seconds, program);
    return true;
  }

  /// Where a member reads an operand from.
  SlabArray operand_of(std::size_t v, std::size_t o) const {
    const Vertex& vertex = vertices_[v];
    const auto& einsum = std::get<EinSum>(vertex.op);
    const Known& known = arrays_[vertex.inputs[o].index];
    SlabArray array = known.array;
    if (array.where != SlabArray::Where::operand) return array;
    for (const std::vector<std::size_t>& cut : fusion_.cuts) {
      array.bytes_steps.push_back(bytes_step(einsum.operands[o], einsum.output[cut[v]], known.layout));
    }
    return array;
  }

  static void add(SlabStep step, double seconds, SlabProgram& program) {
    program.seconds += seconds;
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
  std::vector<Softmax> softmaxes_;
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
    for (std::int64_t slab = slabs() * part / parts; slab < end; ++slab) {
      throw_if_cancelled();
      run_slab(arrays, workspace, slab);
    }
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
  for (SlabProgram* const program : {&run->full, &run->last}) program->kernels.clear();  // for kernels_of alone
  PreparedKernel kernel;
  kernel.own_bytes = std::max(run->full.temporary_bytes, run->last.temporary_bytes) +
                     std::max(run->full.own_bytes, run->last.own_bytes) +
                     std::max(run->full.shared_bytes, run->last.shared_bytes);
  // Several slabs a part where they are short: a part costs more than a microsecond, and waking a thread several.
  const std::int64_t slabs = run->slabs();
  const double seconds = run->full.seconds * static_cast<double>(slabs);
  run->parts =
      static_cast<std::int64_t>(std::clamp(seconds / nominal_processor.wake_seconds, 1.0, static_cast<double>(slabs)));
  kernel.stages.push_back({run->parts, [run](const Arrays& arrays, Workspace workspace, std::int64_t part) {
                             run->run_part(arrays, workspace, part);
                           }});
  return kernel;
}

FusionKernels kernels_of(const Fusion& fusion, const std::vector<ArrayLayout>& operands,
                         const ScalarBindings& scalars) {
  const std::int64_t length = slab_length(fusion);
  SlabProgram program = SlabCompiler(fusion, operands, scalars).compile(length);
  double slabs = 1 / static_cast<double>(length);
  for (const std::vector<std::size_t>& cut : fusion.cuts) slabs *= static_cast<double>(cut_extent(fusion, cut));
  return {std::move(program.kernels), slabs, std::move(program.softmaxes)};
}

}  // namespace einrel
