#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "einsum/expr/scalar_expr.h"
#include "einsum/graph/selection.h"
#include "einsum/graph/vertex_facts.h"
#include "tra/lowering.h"
#include "tra/named_kernels.h"
#include "tra/partial_reduction.h"
#include "tra/repartition.h"

namespace einrel::lowering {
namespace {

std::vector<std::size_t> joined(std::vector<std::size_t> first, const std::vector<std::size_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

bool is_in_window(const Operand& operand, std::size_t dim) {
  return std::find(operand.windows.begin(), operand.windows.end(), dim) != operand.windows.end();
}

/// Whether the operand's chunks are as long along some dimension as those of the label.
bool reads_plainly(const Operand& operand, std::size_t label) {
  for (std::size_t d = 0; d < operand.access.indices.size(); ++d) {
    if (plain_label(operand.access.indices[d]) == label && !is_in_window(operand, d)) return true;
  }
  return false;
}

/// Lowers one vertex. The labels of every ChunkedEinSum are positions in `cuts_`.
class EinSumLowering {
 public:
  EinSumLowering(ProgramBuilder& builder, std::string name, LabelCuts cuts)
      : builder_(builder), name_(std::move(name)), cuts_(std::move(cuts)) {}

  /// The result's keys are the output labels.
  Source run(ChunkedEinSum e) {
    const bool is_position = finds_position(e.reducer);
    return is_position && reduces_cut_labels(e) ? position_of_extreme(std::move(e)) : reduce(std::move(e), name_);
  }

 private:
  bool reduces_cut_labels(const ChunkedEinSum& e) const {
    return std::any_of(e.reduced.begin(), e.reduced.end(), [&](std::size_t label) { return cuts_.is_cut(label); });
  }

  std::string part_name() { return fmt::format("{}_part{}", name_, ++parts_); }

  /// argmax and argmin over chunks: the extreme value M; then the least position at which the value is M. NaN is the
  /// extreme where there is one.
  Source position_of_extreme(ChunkedEinSum e) {
    const std::vector<std::size_t> labels = joined(e.output, e.reduced);
    const DType type = e.body.type();
    if (e.body.steps.size() > 1) {  // compute the values once
      ChunkedEinSum values = e;
      values.output = labels;
      values.reduced = {};
      values.reducer = std::nullopt;
      values.dtype = type;
      e.sources = {reduce(std::move(values), part_name())};
      e.operands = {{0, plain_access(labels)}};
      e.body = {{operand_step(0, type)}};
    }
    ChunkedEinSum extreme = e;
    extreme.reducer = e.reducer == Reducer::argmax ? Reducer::max : Reducer::min;
    extreme.dtype = type;
    e.sources.push_back(reduce(std::move(extreme), part_name()));
    e.operands.push_back({e.sources.size() - 1, plain_access(e.output)});
    e.body = position_where_equal(e.body, operand_step(e.operands.size() - 1, type), e.reduced, cuts_.labels);
    e.reducer = Reducer::min;
    return reduce(std::move(e), name_);
  }

  /// Every reducer but argmax and argmin over labels that are cut.
  Source reduce(ChunkedEinSum e, const std::string& name) {
    const std::vector<std::size_t> output = e.output;
    const std::optional<Scatter> scatter = scatter_of(e);
    if (scatter) count_within_chunks(e, *scatter);
    const std::vector<std::size_t> extents = take_extents(e);
    if (!reduces_cut_labels(e)) {
      const Source source = apply(e, joined(operands_read(e.body), extents), name);
      return arranged(scatter ? cut_to_chunks(source, output, e.dtype, *scatter) : source, output);
    }
    const DType dtype = e.dtype;
    const Reducer reducer = *e.reducer;
    PartialReduction partial = partial_reduction(reducer, std::move(e.body), e.output.size());
    e.body = std::move(partial.body);
    e.dtype = partial.dtype;
    e.reducer = partial.each;
    Source source = apply(e, joined(operands_read(e.body), extents), name);
    source = aggregated(std::move(source), output, std::move(partial.fold));
    if (auto finish = finished_reduction(reducer, e.dtype, dtype, e.reduced, cuts_.labels)) {
      e.sources = {std::move(source)};
      e.body = std::move(*finish);
      source = finished(std::move(e), reducer, dtype);
    }
    if (scatter) source = cut_to_chunks(std::move(source), output, dtype, *scatter);
    return arranged(std::move(source), output);
  }

  /// sum[s] where(v == T[s], X[s,d], 0), where v is cut: the chunks of v are a third relation beside T and X.
  struct Scatter {
    std::size_t label = 0;     ///< v
    std::size_t position = 0;  ///< the operand T
  };

  /// Nothing where v is also something else than the label of the result that is compared once.
  std::optional<Scatter> scatter_of(const ChunkedEinSum& e) const {
    EinSum whole{cuts_.labels, e.output, e.reduced, e.reducer, {}, e.body};
    for (const Operand& operand : e.operands) whole.operands.push_back(operand.access);
    const std::optional<Selected> found = selected(whole);
    if (!found || found->selections.size() != 1) return std::nullopt;
    const auto& [label, form] = found->selections.front();
    const bool is_element = form.elements.size() == 1 && form.elements.front().coefficient == 1 &&
                            !form.elements.front().computed && form.labels.terms.empty() && form.labels.offset == 0;
    const bool is_output = std::find(e.output.begin(), e.output.end(), label) != e.output.end();
    if (!is_output || !is_element || !cuts_.is_cut(label) || is_walked_along(e, label)) return std::nullopt;
    const Scatter scatter{label, form.elements.front().operand};
    if (!e.operands[scatter.position].windows.empty()) return std::nullopt;
    const auto count = [&](auto is_it) { return std::count_if(e.body.steps.begin(), e.body.steps.end(), is_it); };
    const auto compared = count([&](const ScalarStep& step) { return label_read(step) == scatter.label; });
    const auto read = count([&](const ScalarStep& step) { return operand_read(step) == scatter.position; });
    return compared == 1 && read == 1 ? std::optional(scatter) : std::nullopt;
  }

  /// Whether an operand that is read has the label in an index.
  static bool is_walked_along(const ChunkedEinSum& e, std::size_t label) {
    return labels_in(e, operands_read(e.body)).count(label) != 0;
  }

  /// In the place of T, T - begin for each chunk of v; in the place of v, a label of all chunks, which are as large as
  /// the first one then.
  void count_within_chunks(ChunkedEinSum& e, const Scatter& scatter) {
    const std::int64_t largest = chunk_begin(cuts_.labels[scatter.label].extent, {cuts_.parts[scatter.label], 1}, 1);
    const std::size_t within = cuts_.labels.size();
    cuts_.labels.push_back({cuts_.labels[scatter.label].name, Extent(largest)});
    cuts_.parts.push_back(1);
    std::replace(e.output.begin(), e.output.end(), scatter.label, within);
    for (ScalarStep& step : e.body.steps) {
      if (label_read(step) == scatter.label) std::get<LabelValue>(step.op).label = within;
      if (operand_read(step) != scatter.position) continue;
      e.operands.push_back(relative_to_chunks(e, scatter, step.type));
      step = operand_step(e.operands.size() - 1, DType::i64);
    }
    // What is compared keeps its type.
    for (std::size_t s = 0; s + 1 < e.body.steps.size(); ++s) {
      if (label_read(e.body.steps[s]) == within) e.body.steps[s].type = DType::i64;
    }
  }

  /// T - begin as an operand: i64, over the labels of T, with chunks along v.
  Operand relative_to_chunks(ChunkedEinSum& e, const Scatter& scatter, DType type) {
    const LabelPositions positions{cuts_.labels[scatter.label].extent, {cuts_.parts[scatter.label], 1}};
    const Operand& position = e.operands[scatter.position];
    ChunkedEinSum relative{
        {e.sources[position.source], {builder_.find_or_add(positions, {}), DType::i64, {scatter.label}}},
        {{0, position.access}, {1, {{Index{}}, std::nullopt}}},
        {},
        {},
        std::nullopt,
        {{{type, OperandValue{0}}}},
        DType::i64};
    if (type != DType::i64) relative.body.steps.push_back({DType::i64, Convert{}});
    relative.body.steps.push_back(operand_step(1, DType::i64));
    relative.body.steps.push_back({DType::i64, ApplyBinary{BinaryFunction::subtract}});
    relative.output = labels_of(e, {{operand_step(scatter.position, type)}}, {scatter.position});
    e.sources.push_back(apply(relative, {0, 1}, part_name()));
    return {e.sources.size() - 1, plain_access(relative.output)};
  }

  /// Chunks along v as large as they are, out of chunks as large as the first one.
  Source cut_to_chunks(Source source, const std::vector<std::size_t>& output, DType dtype, const Scatter& scatter) {
    const std::int64_t extent = cuts_.labels[scatter.label].extent.value();
    if (extent % cuts_.parts[scatter.label] == 0) return source;
    ChunkedEinSum whole{{std::move(source)},
                        {{0, plain_access(output)}},
                        output,
                        {},
                        std::nullopt,
                        {{operand_step(0, compute_type(dtype))}},
                        dtype};
    whole.operands.front().access.pad = 0;  // it does not say how large the chunks of v are
    const std::size_t positions = positions_operand(whole, scatter.label);
    return apply(whole, {0, positions}, part_name());
  }

  /// Folds all chunks that agree on the output labels.
  Source aggregated(Source source, const std::vector<std::size_t>& output, Kernel kernel) {
    Aggregate op{{}, std::move(kernel)};
    std::vector<std::optional<std::size_t>> keys;
    for (const std::size_t label : output) {
      const auto at = std::find(source.keys.begin(), source.keys.end(), std::optional(label));
      if (at == source.keys.end()) continue;
      op.group_by.push_back(static_cast<std::size_t>(at - source.keys.begin()));
      keys.emplace_back(label);
    }
    source.id = builder_.add(std::move(op), {source.id});
    builder_.explain(source.id, {source.keys}, keys);
    source.keys = std::move(keys);
    return source;
  }

  /// The folded values in the vertex's dtype, as the body finishes them.
  Source finished(ChunkedEinSum e, Reducer reducer, DType dtype) {
    e.operands = {{0, plain_access(e.output)}};
    e.reduced = {};
    e.reducer = std::nullopt;
    e.dtype = dtype;
    return apply(e, {0}, fmt::format("{}_{}", name_, reducer == Reducer::mean ? "mean" : "rounded"));
  }

  /// Keys by these labels, in this order; a label that is not cut may be missing.
  Source arranged(Source source, const std::vector<std::size_t>& labels) {
    std::vector<std::optional<std::size_t>> positions;
    std::vector<std::optional<std::size_t>> keys;
    for (const std::size_t label : labels) {
      const auto at = std::find(source.keys.begin(), source.keys.end(), std::optional(label));
      keys.emplace_back(label);
      positions.emplace_back();
      if (at != source.keys.end()) positions.back() = static_cast<std::size_t>(at - source.keys.begin());
    }
    const TraId before = source.id;
    source.id = builder_.reorder_key(source.id, positions, source.keys.size());
    if (source.id != before) builder_.explain(source.id, {source.keys}, keys);
    source.keys = std::move(keys);
    return source;
  }

  /// An operand over all positions of a label that is cut.
  std::size_t positions_operand(ChunkedEinSum& e, std::size_t label) {
    const LabelPositions op{cuts_.labels[label].extent, {cuts_.parts[label], 1}};
    const TraId id = builder_.find_or_add(op, {});
    for (std::size_t i = 0; i < e.operands.size(); ++i) {
      const Source& source = e.sources[e.operands[i].source];
      if (source.id == id && source.keys.front() == label) return i;
    }
    e.sources.push_back({id, DType::i64, {label}});
    e.operands.push_back({e.sources.size() - 1, plain_access({label})});
    return e.operands.size() - 1;
  }

  /// i64 as another type.
  static std::vector<ScalarStep> converted(std::vector<ScalarStep> steps, DType type) {
    if (type != DType::i64) steps.push_back({type, Convert{}});
    return steps;
  }

  static bool is_read_plainly(const ChunkedEinSum& e, const std::vector<std::size_t>& operands, std::size_t label) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](std::size_t operand) { return reads_plainly(e.operands[operand], label); });
  }

  /// Operands for labels that are cut and that the body does not read: they give the extent of a chunk.
  std::vector<std::size_t> take_extents(ChunkedEinSum& e) {
    const std::vector<std::size_t> read = operands_read(e.body);
    std::vector<std::size_t> extents;
    for (const std::size_t label : joined(e.output, e.reduced)) {
      if (cuts_.is_cut(label) && !is_read_plainly(e, read, label)) extents.push_back(positions_operand(e, label));
    }
    return extents;
  }

  /// The sources of these operands, ascending.
  static std::vector<std::size_t> sources_of(const ChunkedEinSum& e, const std::vector<std::size_t>& operands) {
    std::set<std::size_t> sources;
    for (const std::size_t operand : operands) sources.insert(e.operands[operand].source);
    return {sources.begin(), sources.end()};
  }

  /// The labels in the indices of these operands.
  static std::set<std::size_t> labels_in(const ChunkedEinSum& e, const std::vector<std::size_t>& operands) {
    std::set<std::size_t> labels;
    for (const std::size_t operand : operands) {
      for (const Index& index : e.operands[operand].access.indices) {
        for (const IndexTerm& term : index.terms) labels.insert(term.label);
      }
    }
    return labels;
  }

  /// The labels of a body with these operands, in the order of the vertex.
  static std::vector<std::size_t> labels_of(const ChunkedEinSum& e, const ScalarExpr& body,
                                            const std::vector<std::size_t>& operands) {
    std::set<std::size_t> used = labels_in(e, operands);
    for (const ScalarStep& step : body.steps) {
      if (const auto label = label_read(step)) used.insert(*label);
    }
    std::vector<std::size_t> labels;
    for (const std::size_t label : joined(e.output, e.reduced)) {
      if (used.count(label) != 0) labels.push_back(label);
    }
    return labels;
  }

  struct KernelWithValues {
    Kernel kernel;
    std::vector<std::size_t>
        values;  ///< the labels of which it takes the first value in a chunk, as its last arguments
  };

  /// The first value of each label in the chunks with these keys.
  KeyMap begins_of(const std::vector<std::size_t>& labels, const KeyLabels& keys) const {
    KeyMap begins;
    for (const std::size_t label : labels) {
      const auto at = std::find(keys.begin(), keys.end(), std::optional(label));
      invariant(at != keys.end(), "whoever reads values of a label has its chunks");
      const KeyExpr part = key_position(static_cast<std::size_t>(at - keys.begin()));
      begins.outputs.push_back(chunk_begin(cuts_.labels[label].extent, {cuts_.parts[label], 1}, part));
    }
    return begins;
  }

  /// One kernel over these operands.
  Source apply(const ChunkedEinSum& e, const std::vector<std::size_t>& operands, const std::string& name) {
    const std::vector<std::size_t> sources = sources_of(e, operands);
    if (sources.empty()) {  // every program needs something to start from
      ChunkedEinSum from_one = e;
      from_one.sources = {{builder_.find_or_add(LabelPositions{Extent(1), {1, 1}}, {}), DType::i64, {std::nullopt}}};
      from_one.operands = {{0, {{Index{}}, std::nullopt}}};
      const Source& source = from_one.sources.front();
      return transformed(kernel_for(from_one, {0}, {0}, name), source, e.dtype);
    }
    auto [kernel, values] = kernel_for(e, operands, sources, name);
    if (sources.size() == 1)
      return transformed({std::move(kernel), std::move(values)}, e.sources[sources.front()], e.dtype);
    Join join{{}, {}, std::move(kernel)};  // its numbers when its key is known
    Source result{{}, e.dtype, {}};
    std::vector<TraId> inputs;
    std::vector<KeyLabels> keys;
    std::size_t begin = 0;  // of the positions of a source among those of all but the first
    for (const std::size_t s : sources) {
      const Source& source = e.sources[s];
      join_onto(result.keys, source.keys, begin, join);
      begin += inputs.empty() ? 0 : source.keys.size();
      inputs.push_back(source.id);
      keys.push_back(source.keys);
    }
    join.numbers = begins_of(values, result.keys);
    result.id = builder_.add(std::move(join), std::move(inputs));
    builder_.explain(result.id, std::move(keys), result.keys);
    return result;
  }

  /// Joins a relation with these keys to what there is so far: `begin` is where their positions begin.
  static void join_onto(KeyLabels& so_far, const KeyLabels& keys, std::size_t begin, Join& join) {
    KeyPositions joined;
    for (std::size_t p = 0; p < so_far.size(); ++p) {
      const auto at = std::find(keys.begin(), keys.end(), so_far[p]);
      if (!so_far[p] || at == keys.end()) continue;
      join.keys_left.push_back(p);
      joined.push_back(static_cast<std::size_t>(at - keys.begin()));
      join.keys_right.push_back(begin + joined.back());
    }
    for (const std::size_t p : complement(joined, keys.size())) so_far.push_back(keys[p]);
  }

  Source transformed(KernelWithValues run, const Source& source, DType dtype) {
    const KeyMap begins = begins_of(run.values, source.keys);
    const TraId id = builder_.add(Transform{std::move(run.kernel), begins}, {source.id});
    builder_.explain(id, {source.keys}, source.keys);
    return {id, dtype, source.keys};
  }

  /// A kernel counts from 0 in each chunk: it adds where the chunk begins to values of labels that are cut.
  ScalarExpr with_begins(const ScalarExpr& body, std::size_t first, std::vector<std::size_t>& values) const {
    return substitute(body, [&](const ScalarStep& step) -> std::vector<ScalarStep> {
      const std::optional<std::size_t> label = label_read(step);
      if (!label || !cuts_.is_cut(*label)) return {};
      const auto known = std::find(values.begin(), values.end(), *label);
      const auto number = static_cast<std::size_t>(known - values.begin());
      if (known == values.end()) values.push_back(*label);
      return converted({{DType::i64, step.op},
                        operand_step(first + number, DType::i64),
                        {DType::i64, ApplyBinary{BinaryFunction::add}}},
                       step.type);
    });
  }

  KernelWithValues kernel_for(const ChunkedEinSum& e, const std::vector<std::size_t>& operands,
                              const std::vector<std::size_t>& sources, const std::string& name) const {
    const std::vector<std::size_t> labels = joined(e.output, e.reduced);
    std::vector<std::size_t> own(cuts_.labels.size(), labels.size());  // position in the kernel by label
    EinSum einsum;
    for (const std::size_t label : labels) {
      own[label] = einsum.labels.size();
      (einsum.labels.size() < e.output.size() ? einsum.output : einsum.reduced).push_back(einsum.labels.size());
      einsum.labels.push_back(cuts_.labels[label]);
    }
    einsum.reducer = e.reducer;
    std::vector<std::size_t> values;
    einsum.body = with_begins(e.body, e.operands.size(), values);
    std::vector<std::size_t> moved(e.operands.size() + values.size(), 0);
    std::vector<std::size_t> reads;
    const auto own_label = [&](std::size_t label) { return own[label]; };
    const auto add = [&](const Operand& operand) {
      const auto argument = std::find(sources.begin(), sources.end(), operand.source) - sources.begin();
      reads.push_back(static_cast<std::size_t>(argument));
      einsum.operands.push_back(operand.access);
      map_labels(einsum.operands.back(), own_label);
    };
    for (const std::size_t operand : operands) {
      moved[operand] = reads.size();
      add(e.operands[operand]);
    }
    for (const Operand& operand : extents_behind_padding(e, operands)) add(operand);
    for (std::size_t v = 0; v < values.size(); ++v) {
      moved[e.operands.size() + v] = reads.size();
      einsum.operands.emplace_back();
      reads.push_back(sources.size() + v);
    }
    map_operands(einsum.body, [&](std::size_t operand) { return moved[operand]; });
    map_labels(einsum.body, own_label);
    std::vector<DType> arguments;
    for (const std::size_t source : sources) arguments.push_back(e.sources[source].dtype);
    arguments.resize(arguments.size() + values.size(), DType::i64);
    Vertex vertex{name, e.dtype, {}, {}, std::move(einsum), {}};
    return {in_reading_order(kernel_of(name, vertex, arguments, reads)), std::move(values)};
  }

  /// pad(X[n,y+dy]) does not tell the kernel the extent of a chunk of n; the unused operand X[n,0] does.
  std::vector<Operand> extents_behind_padding(const ChunkedEinSum& e, const std::vector<std::size_t>& operands) const {
    std::set<std::size_t> given;
    for (const std::size_t operand : operands) {
      const Access& access = e.operands[operand].access;
      for (std::size_t d = 0; d < access.indices.size() && !access.pad; ++d) {
        const auto label = plain_label(access.indices[d]);
        if (label && !is_in_window(e.operands[operand], d)) given.insert(*label);
      }
    }
    std::vector<Operand> added;
    for (const std::size_t operand : operands) {
      Operand plain{e.operands[operand].source, {}};
      bool gives = false;
      for (std::size_t d = 0; d < e.operands[operand].access.indices.size(); ++d) {
        const Index& index = e.operands[operand].access.indices[d];
        const std::optional<std::size_t> label = plain_label(index);
        const bool gives_extent = label && cuts_.is_cut(*label) && !is_in_window(e.operands[operand], d);
        const bool is_new = gives_extent && given.insert(*label).second;
        plain.access.indices.push_back(is_new ? index : Index{});
        gives = is_new || gives;
      }
      if (gives) added.push_back(std::move(plain));
    }
    return added;
  }

  ProgramBuilder& builder_;
  std::string name_;
  LabelCuts cuts_;
  std::size_t parts_ = 0;
};

}  // namespace

Stored lower_einsum(ProgramBuilder& builder, const Vertex& vertex, const std::vector<Stored>& inputs,
                    const std::vector<std::int64_t>& parts) {
  const EinSum& einsum = std::get<EinSum>(vertex.op);
  const LabelCuts cuts{einsum.labels, parts};
  EinSumLowering lowering(builder, kernel_name(vertex), cuts);
  const Source source = lowering.run(read_operands(builder, vertex, inputs, cuts));
  return {source.id, vertex.dtype, vertex.bound, result_cuts(vertex, parts)};
}

}  // namespace einrel::lowering
