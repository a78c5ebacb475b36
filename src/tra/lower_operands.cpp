#include <algorithm>

#include "einsum/graph/vertex_facts.h"
#include "tensor/convert.h"
#include "tra/lowering.h"
#include "tra/repartition.h"

namespace einrel::lowering {
namespace {

bool has_no_elements(const Shape& bound) { return std::find(bound.begin(), bound.end(), Extent(0)) != bound.end(); }

/// A number, as a step of that type leaves it: rounded, saturated or made 0 or 1.
ScalarStep number_step(double value, DType type) {
  return with_stored_type(type, [&]<class Stored>() -> ScalarStep {
    return {type, Constant{widen(narrow<Stored>(value))}};
  });
}

/// Reads of operand `operand` become `step` in its place.
void replace_reads(ScalarExpr& body, std::size_t operand, double pad) {
  for (ScalarStep& step : body.steps) {
    if (operand_read(step) == operand) step = number_step(pad, step.type);
  }
}

/// The body with what it reads made simple:
/// - nobody evaluates the body of an empty vertex, so a number does, which needs no operands;
/// - a padded read of a tensor without elements always gives the padding.
ScalarExpr simplified_body(const EinSum& einsum, const std::vector<Stored>& inputs) {
  const bool is_empty = std::any_of(einsum.labels.begin(), einsum.labels.end(),
                                    [](const Label& label) { return label.extent == Extent(0); });
  if (is_empty) return {{number_step(0, einsum.body.type())}};
  ScalarExpr body = einsum.body;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<double> pad = einsum.operands[i].pad;
    if (pad && has_no_elements(inputs[i].bound)) replace_reads(body, i, *pad);
  }
  return body;
}

/// A plain read X[o] of fewer positions than X has (beside X[o+1], say) must not give `o` the extent of the array when
/// the kernel runs. A padded read does not; and no position is outside, so that its padding is never used.
Access without_partial_reads(Access access, const Shape& bound, const LabelCuts& cuts) {
  for (std::size_t d = 0; d < bound.size() && !access.pad; ++d) {
    const auto label = plain_label(access.indices[d]);
    if (label && !cuts.is_cut(*label) && cuts.labels[*label].extent != bound[d]) access.pad = 0;
  }
  return access;
}

/// X[i,i] of a tensor cut along both: the chunks on the diagonal, under keys without the second i.
Source diagonal(ProgramBuilder& builder, Source source, const LabelCuts& cuts) {
  std::optional<KeyExpr> on_diagonal;
  KeyPositions kept;
  std::vector<std::optional<std::size_t>> keys;
  for (std::size_t p = 0; p < source.keys.size(); ++p) {
    const auto first = std::find(source.keys.begin(), source.keys.end(), source.keys[p]);
    const auto before = static_cast<std::size_t>(first - source.keys.begin());
    const bool repeats = source.keys[p] && before < p;
    if (repeats && cuts.is_cut(*source.keys[p])) {
      const KeyExpr equal = key_call(KeyFunction::equal, key_position(before), key_position(p));
      on_diagonal = on_diagonal ? key_call(KeyFunction::logical_and, *on_diagonal, equal) : equal;
    } else {
      kept.push_back(p);
      keys.push_back(repeats ? std::nullopt : source.keys[p]);
    }
  }
  source.keys = std::move(keys);
  if (on_diagonal) {
    source.id = builder.find_or_add(Filter{*on_diagonal}, {source.id});
    source.id = builder.find_or_add(ReKey{projection_map(kept)}, {source.id});
  }
  return source;
}

Source source_for(ProgramBuilder& builder, const Stored& tensor, const Access& access,
                  const std::vector<DimensionCut>& wanted, const LabelCuts& cuts, const EinSum& einsum) {
  Source source{tensor.id, tensor.dtype, {}};
  for (const Index& index : access.indices) source.keys.push_back(label_along(einsum, index));
  source.id = builder.recut(tensor, wanted);
  return diagonal(builder, std::move(source), cuts);
}

/// What reads a chunk, of what reads the tensor. Where a plain index is left in a window of several places, as X[o] of
/// a chunk that X[o+1] reads, too, the array does not say how many positions `o` has.
Operand within_chunks(std::size_t source, Access access, const std::vector<DimensionCut>& cuts) {
  Operand operand{source, std::move(access)};
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    Index& index = operand.access.indices[d];
    if (cuts[d].window) index.offset -= window_begin(cuts[d]);
    const bool is_plain = plain_label(index).has_value();
    const bool is_one_place = !cuts[d].window || cuts[d].window->low == cuts[d].window->high;
    if (cuts[d].parts == 1 || (is_plain && is_one_place)) continue;
    operand.windows.push_back(d);
    if (is_plain && !operand.access.pad) operand.access.pad = 0;
  }
  return operand;
}

/// The position of the source in `sources`. Two sources are one when they are the same relation and pair its keys with
/// other relations' keys alike; positions that are always 0 do not matter for that.
std::size_t find_or_add(std::vector<Source>& sources, Source source, const LabelCuts& cuts) {
  const auto matters = [&](std::optional<std::size_t> label) { return label && cuts.is_cut(*label); };
  for (std::size_t s = 0; s < sources.size(); ++s) {
    bool equal = sources[s].id == source.id;
    for (std::size_t p = 0; equal && p < source.keys.size(); ++p) {
      const bool either = matters(source.keys[p]) || matters(sources[s].keys[p]);
      equal = !either || source.keys[p] == sources[s].keys[p];
    }
    if (equal) return s;
  }
  sources.push_back(std::move(source));
  return sources.size() - 1;
}

}  // namespace

ScalarStep operand_step(std::size_t operand, DType type) { return {type, OperandValue{operand}}; }

Access plain_access(const std::vector<std::size_t>& labels) {
  Access access;
  for (const std::size_t label : labels) access.indices.push_back({0, {{1, label}}});
  return access;
}

TraId ProgramBuilder::find_or_add(const TraOp& op, const std::vector<TraId>& inputs) {
  std::vector<TraId>& known = shared_[{op.index(), inputs}];
  const auto found = std::find_if(known.begin(), known.end(), [&](TraId id) { return program_[id].op == op; });
  if (found != known.end()) return *found;
  known.push_back(add(op, inputs));
  return known.back();
}

void ProgramBuilder::explain(TraId id, std::vector<KeyLabels> inputs, KeyLabels labels) {
  made_.roles.resize(program_.nodes.size());
  made_.roles[id.index] = NodeRole{vertex_, std::move(inputs), std::move(labels)};
}

TraId ProgramBuilder::recut(const Stored& tensor, const std::vector<DimensionCut>& cuts) {
  bool same = true;
  for (std::size_t d = 0; d < cuts.size(); ++d) same = same && same_chunks(tensor.bound[d], tensor.cuts[d], cuts[d]);
  return same ? tensor.id : find_or_add(Repartition{tensor.cuts, cuts}, {tensor.id});
}

TraId ProgramBuilder::reorder_key(TraId id, const std::vector<std::optional<std::size_t>>& positions,
                                  std::size_t arity) {
  KeyMap map;
  for (const std::optional<std::size_t> position : positions)
    map.outputs.push_back(position ? key_position(*position) : key_constant(0));
  return is_identity(map, arity) ? id : add(ReKey{std::move(map)}, {id});
}

ChunkedEinSum read_operands(ProgramBuilder& builder, const Vertex& vertex, const std::vector<Stored>& inputs,
                            const LabelCuts& cuts) {
  const EinSum& einsum = std::get<EinSum>(vertex.op);
  ChunkedEinSum result{{},          {}, einsum.output, einsum.reduced, einsum.reducer, simplified_body(einsum, inputs),
                       vertex.dtype};
  std::vector<std::size_t> moved(inputs.size(), 0);
  for (const std::size_t operand : operands_read(result.body)) {
    const Stored& tensor = inputs[operand];
    const std::vector<DimensionCut> wanted = operand_cuts(vertex, operand, tensor.bound, cuts.parts);
    const Access& access = einsum.operands[operand];
    const std::size_t source =
        find_or_add(result.sources, source_for(builder, tensor, access, wanted, cuts, einsum), cuts);
    const Operand read = within_chunks(source, without_partial_reads(access, tensor.bound, cuts), wanted);
    const auto same = [&](const Operand& known) { return known.source == source && known.access == read.access; };
    const auto known = std::find_if(result.operands.begin(), result.operands.end(), same);
    moved[operand] = static_cast<std::size_t>(known - result.operands.begin());
    if (known == result.operands.end()) result.operands.push_back(read);
  }
  map_operands(result.body, [&](std::size_t operand) { return moved[operand]; });
  return result;
}

}  // namespace einrel::lowering
