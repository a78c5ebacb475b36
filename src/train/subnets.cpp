#include "train/subnets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "train/step_program.h"

namespace einrel {
namespace {

[[noreturn]] void refuse(const std::string& label, const std::string& reason) {
  throw UserError(
      fmt::format("--subnets {0}: the label '{0}' cannot be divided among sites: {1}", printable(label), reason));
}

/// Which steps only say where a random number stands: that is its place in the whole (placed_in_whole).
std::vector<bool> within_random_numbers(const ScalarExpr& body) {
  std::vector<std::size_t> starts;  // of the subexpressions on the stack
  std::vector<bool> within(body.steps.size(), false);
  for (std::size_t s = 0; s < body.steps.size(); ++s) {
    std::size_t start = s;
    for (std::size_t i = 0; i < arity(body.steps[s]); ++i) {
      start = starts.back();
      starts.pop_back();
    }
    starts.push_back(start);
    if (!std::holds_alternative<ApplyRandom>(body.steps[s].op)) continue;
    for (std::size_t i = start; i < s; ++i) within[i] = true;
  }
  return within;
}

/// Which dimensions of tensors, and which labels of vertices, whatever they are called, run over the values of a label.
class Divided {
 public:
  Divided(const EinGraph& graph, const std::string& label) : graph_(graph) {
    for (const Vertex& vertex : graph.vertices) dimensions_.emplace_back(vertex.bound.size(), false);
    for (const Vertex& vertex : graph.vertices) take_inputs(vertex, label);
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const Vertex& vertex = graph.vertices[v];
      labels_.push_back(named(vertex, label));
      for (std::size_t i = 0; i < vertex.inputs.size(); ++i) take_operand(vertex, i);
      const LabelGroups groups = is_input(vertex) ? LabelGroups{} : result_groups(vertex);
      for (std::size_t d = 0; d < groups.size(); ++d)
        dimensions_[v][d] = groups[d].size() == 1 && labels_[v][groups[d].front()];
    }
  }

  bool label(std::size_t vertex, std::size_t label) const { return labels_[vertex][label]; }
  bool dimension(VertexId tensor, std::size_t d) const { return dimensions_[tensor.index][d]; }

 private:
  static std::vector<bool> named(const Vertex& vertex, const std::string& label) {
    std::vector<bool> found;
    if (is_input(vertex)) return found;
    for (const Label& each : labels_of(vertex)) found.push_back(each.name == label);
    return found;
  }

  /// States have no labels of their own: those that read them say.
  void take_inputs(const Vertex& vertex, const std::string& label) {
    const std::vector<bool> is_it = named(vertex, label);
    for (std::size_t i = 0; i < vertex.inputs.size(); ++i) {
      if (!is_input(graph_[vertex.inputs[i]])) continue;
      const LabelGroups groups = operand_groups(vertex, i);
      for (std::size_t d = 0; d < groups.size(); ++d) {
        if (groups[d].size() == 1 && is_it[groups[d].front()]) dimensions_[vertex.inputs[i].index][d] = true;
      }
    }
  }

  void take_operand(const Vertex& vertex, std::size_t i) {
    const LabelGroups groups = operand_groups(vertex, i);
    for (std::size_t d = 0; d < groups.size(); ++d) {
      if (dimension(vertex.inputs[i], d) && groups[d].size() == 1) labels_.back()[groups[d].front()] = true;
    }
  }

  const EinGraph& graph_;
  std::vector<std::vector<bool>> dimensions_;  ///< per vertex
  std::vector<std::vector<bool>> labels_;      ///< per vertex
};

/// What a vertex does with a divided label that cannot be done with a part of its values.
struct UseOfNumber {
  const Divided& divided;
  const EinGraph& graph;
  std::size_t v;

  std::optional<std::string> operator()(const Input& /*input*/) const { return std::nullopt; }
  std::optional<std::string> operator()(const View& /*view*/) const { return std::nullopt; }
  std::optional<std::string> operator()(const Opaque& opaque) const {
    bool is_matrix = false;
    for (std::size_t l = batch_labels(opaque); l < opaque.labels.size(); ++l)
      is_matrix = is_matrix || divided.label(v, l);
    return is_matrix ? std::optional("is a row or a column of a matrix in") : std::nullopt;
  }
  std::optional<std::string> operator()(const EinSum& einsum) const {
    const bool is_position = finds_position(einsum.reducer);
    if (is_position && std::any_of(einsum.reduced.begin(), einsum.reduced.end(),
                                   [&](std::size_t label) { return divided.label(v, label); }))
      return "says a position in";
    if (auto use = in_accesses(einsum)) return use;
    const std::vector<bool> random = within_random_numbers(einsum.body);
    for (std::size_t s = 0; s < random.size(); ++s) {
      const auto* const value = std::get_if<LabelValue>(&einsum.body.steps[s].op);
      if (value != nullptr && divided.label(v, value->label) && !random[s]) return "is computed with, as a number, in";
    }
    return std::nullopt;
  }
  std::optional<std::string> in_accesses(const EinSum& einsum) const {
    for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
      const VertexId tensor = graph.vertices[v].inputs[i];
      const Access& access = einsum.operands[i];
      for (std::size_t d = 0; d < access.indices.size(); ++d) {
        const Index& index = access.indices[d];
        if (index.terms.empty() && divided.dimension(tensor, d)) return "is read at one place in";
        for (const IndexTerm& term : index.terms) {
          if (!divided.label(v, term.label) && !divided.dimension(tensor, d)) continue;
          if (index.terms.size() > 1 || term.coefficient != 1) return "stands in a window of";
          const bool is_outside = access.pad && graph[tensor].bound[d] != einsum.labels[term.label].extent;
          if (index.offset != 0 || is_outside) return "stands with an offset in";
        }
      }
    }
    return std::nullopt;
  }
};

std::int64_t extent_of(const std::string& label, const EinGraph& graph) {
  std::set<std::string> known;
  for (const Vertex& vertex : graph.vertices) {
    for (const Label& each : labels_of(vertex)) {
      if (each.name == label) return each.extent.value();
      known.insert(each.name);
    }
  }
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string near = did_you_mean(label, names);
  throw UserError(fmt::format("--subnets {0}: the program has no label '{0}'; {1}", printable(label),
                              near.empty() ? fmt::format("its labels are {}", fmt::join(names, ", ")) : near));
}

void check_label(const TrainRequest& request, const CheckedProgram& checked, const std::string& label) {
  for (const DeclaredInput& input : checked.inputs) {
    if (std::find(input.labels.begin(), input.labels.end(), label) == input.labels.end()) continue;
    refuse(label,
           fmt::format("it stands in the input {}[{}], of which all sites need all; divide labels of hidden units",
                       input.name, fmt::join(input.labels, ",")));
  }
  const EinGraph step = needed_for_outputs(*checked.graph);  // without first values, which the whole network gets
  const Divided divided(step, label);
  for (std::size_t v = 0; v < step.vertices.size(); ++v) {
    const Vertex& vertex = step.vertices[v];
    if (const auto use = std::visit(UseOfNumber{divided, step, v}, vertex.op))
      refuse(label, fmt::format("it {} {}, where parts do not stand side by side", *use, written(request, vertex)));
  }
}

/// The states of a program whose label has fewer values.
std::vector<Shape> bounds_with(const TrainRequest& request, const Feeds& feeds, const std::string& label,
                               std::int64_t extent) {
  std::vector<Shape> bounds;
  try {
    const CheckedProgram less = check_for(request, feeds, request.batch, {{label, extent}});
    for (const State& state : less.graph->steps.states) bounds.push_back((*less.graph)[state.now].bound);
  } catch (const UserError& error) {
    refuse(label, fmt::format("with {} of its values the program is wrong:\n{}", extent, error.what()));
  }
  return bounds;
}

/// Visits runs of bytes that lie one behind the other in a part and in the whole: visit(in the whole, in the part, how
/// many).
template <class Visit>
void for_each_run(const Subnets::SlicedState& sliced, const Parts& parts, Visit&& visit) {
  std::size_t outer = sliced.bound.size();
  std::int64_t run = static_cast<std::int64_t>(size_of(sliced.dtype));
  while (outer > 0 && !sliced.labels[outer - 1]) run *= sliced.bound[--outer].value();
  const Shape part = bound_of(sliced, parts);
  const Shape rows(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(outer));
  const std::int64_t count = element_count(rows);
  std::vector<std::int64_t> at(outer, 0);
  for (std::int64_t row = 0; row < count; ++row) {
    std::int64_t whole = 0;
    for (std::size_t d = 0; d < outer; ++d) {
      const std::int64_t place = sliced.labels[d] ? parts[*sliced.labels[d]][static_cast<std::size_t>(at[d])] : at[d];
      whole = whole * sliced.bound[d].value() + place;
    }
    visit(whole * run, row * run, static_cast<std::size_t>(run));
    for (std::size_t d = outer; d-- > 0;) {
      if (++at[d] < rows[d].value()) break;
      at[d] = 0;
    }
  }
}

/// The inputs that say where random numbers stand: a site, or the units of a label. No program can call one so.
constexpr const char* site_input = "site of the training";
std::string units_input(const std::string& label) { return "units of " + label; }

/// Rewrites the random numbers of the vertices of a site's program.
class Placing {
 public:
  Placing(const EinGraph& graph, const Subnets& subnets, std::int64_t sites)
      : graph_(needed_for_outputs(graph)), subnets_(subnets), sites_(sites) {
    for (const std::string& label : subnets.labels) divided_.emplace_back(graph_, label);
  }

  EinGraph run() {
    EinGraph placed;
    for (std::size_t s = 0; s < subnets_.labels.size(); ++s)
      placed.vertices.push_back(input(units_input(subnets_.labels[s]), {Extent(extent_here(s))}));
    placed.vertices.push_back(input(site_input, {}));
    std::vector<VertexId> moved;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      Vertex vertex = graph_.vertices[v];
      for (VertexId& operand : vertex.inputs) operand = moved[operand.index];
      if (einsum_of(vertex) != nullptr) place(vertex, v);
      moved.push_back(VertexId{placed.vertices.size()});
      placed.vertices.push_back(std::move(vertex));
    }
    copy_interface(graph_, moved, placed);
    return placed;
  }

 private:
  static Vertex input(std::string name, Shape bound) {
    return {std::move(name), DType::i64, std::move(bound), {}, Input{}, {}};
  }

  /// The part of a label that this program has: that of a state.
  std::int64_t extent_here(std::size_t label) const {
    for (std::size_t s = 0; s < subnets_.states.size(); ++s) {
      const Subnets::SlicedState& state = subnets_.states[s];
      for (std::size_t d = 0; d < state.labels.size(); ++d) {
        if (state.labels[d] == label) return graph_[graph_.steps.states[s].now].bound[d].value();
      }
    }
    throw Bug("no state has a divided label");
  }

  /// Which divided label a label of a vertex is.
  std::optional<std::size_t> divided(std::size_t v, std::size_t label) const {
    for (std::size_t s = 0; s < divided_.size(); ++s) {
      if (divided_[s].label(v, label)) return s;
    }
    return std::nullopt;
  }

  void place(Vertex& vertex, std::size_t v) const {
    EinSum& einsum = std::get<EinSum>(vertex.op);
    const std::vector<bool> within = within_random_numbers(einsum.body);
    if (std::find(within.begin(), within.end(), true) == within.end()) return;
    const std::vector<std::size_t> starts = subexpression_starts(einsum.body);
    const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(einsum.body);
    std::vector<bool> shifted(within.size(), false);
    for (std::size_t s = 0; s < within.size(); ++s) {
      if (!std::holds_alternative<ApplyRandom>(einsum.body.steps[s].op)) continue;
      const std::size_t position = arguments[s][1];
      shifted[position] = !widen(einsum.body, position, {v, starts, arguments});
    }
    const auto operand = [&](std::size_t input, Access access) {
      einsum.operands.push_back(std::move(access));
      vertex.inputs.push_back(VertexId{input});
      return ScalarStep{DType::i64, OperandValue{einsum.operands.size() - 1}};
    };
    ScalarExpr body;
    for (std::size_t s = 0; s < within.size(); ++s) {
      const ScalarStep& step = einsum.body.steps[s];
      const auto* const value = std::get_if<LabelValue>(&step.op);
      const auto unit = value != nullptr && within[s] ? divided(v, value->label) : std::nullopt;
      body.steps.push_back(unit ? operand(*unit, {{{0, {{1, value->label}}}}, std::nullopt}) : step);
      if (unit && step.type != DType::i64) body.steps.push_back({step.type, Convert{}});
      if (!shifted[s]) continue;
      append(body, {{whole_step(sites_), binary_step(DType::i64, BinaryFunction::multiply),
                     operand(subnets_.labels.size(), {}), binary_step(DType::i64, BinaryFunction::add)}});
    }
    einsum.body = std::move(body);
  }

  struct Steps {
    std::size_t vertex;
    const std::vector<std::size_t>& starts;
    const std::vector<std::vector<std::size_t>>& arguments;
  };

  /// Gives divided labels in a position, ((0 * extent + label) * extent + label) ..., their whole extents. False where
  /// there is none.
  bool widen(ScalarExpr& body, std::size_t position, const Steps& of) const {
    const auto label_in = [&](std::size_t root) {
      std::optional<std::size_t> found;
      for (std::size_t s = of.starts[root]; s <= root && !found; ++s) {
        if (const auto* const value = std::get_if<LabelValue>(&body.steps[s].op))
          found = divided(of.vertex, value->label);
      }
      return found;
    };
    const bool is_divided = label_in(position).has_value();
    const auto is_binary = [&](std::size_t s, BinaryFunction function) {
      const auto* const binary = std::get_if<ApplyBinary>(&body.steps[s].op);
      return binary != nullptr && binary->function == function;
    };
    while (is_binary(position, BinaryFunction::add)) {
      const std::size_t product = of.arguments[position][0];
      if (!is_binary(product, BinaryFunction::multiply)) break;
      auto* const extent = std::get_if<Constant>(&body.steps[of.arguments[product][1]].op);
      const std::optional<std::size_t> unit = label_in(of.arguments[position][1]);
      if (extent != nullptr && unit) extent->value = subnets_.extents[*unit];
      position = of.arguments[product][0];
    }
    return is_divided;
  }

  EinGraph graph_;
  const Subnets& subnets_;
  std::int64_t sites_;
  std::vector<Divided> divided_;  ///< per label
};

}  // namespace

bool Subnets::SlicedState::is_sliced() const {
  return std::any_of(labels.begin(), labels.end(), [](const auto& label) { return label.has_value(); });
}

Subnets find_subnets(const TrainRequest& request, const Feeds& feeds, const CheckedProgram& checked) {
  const EinGraph& graph = *checked.graph;
  Subnets subnets;
  for (const State& state : graph.steps.states) {
    const Vertex& vertex = graph[state.now];
    subnets.states.push_back(
        {vertex.name, vertex.dtype, vertex.bound, std::vector<std::optional<std::size_t>>(vertex.bound.size())});
  }
  for (const std::string& label : request.local->subnets) {
    if (std::find(subnets.labels.begin(), subnets.labels.end(), label) != subnets.labels.end())
      refuse(label, "it is named twice; name each label once");
    const std::int64_t extent = extent_of(label, graph);
    check_label(request, checked, label);
    if (extent < request.local->sites)
      refuse(label, fmt::format("it has {}, but there are {} sites", counted(static_cast<std::size_t>(extent), "value"),
                                request.local->sites));
    const std::size_t number = subnets.labels.size();
    subnets.labels.push_back(label);
    subnets.extents.push_back(extent);
    const std::int64_t less = std::max<std::int64_t>(extent - 1, 1);
    if (less == extent) refuse(label, "it has one value");
    const std::vector<Shape> bounds = bounds_with(request, feeds, label, less);
    bool is_in_state = false;
    for (std::size_t s = 0; s < subnets.states.size(); ++s) {
      for (std::size_t d = 0; d < bounds[s].size(); ++d) {
        const std::int64_t now = subnets.states[s].bound[d].value();
        if (bounds[s][d].value() == now) continue;
        if (now != extent || bounds[s][d].value() != less)
          refuse(label, fmt::format("it is a part of a dimension of the state '{}'; give it a dimension of its own",
                                    subnets.states[s].name));
        subnets.states[s].labels[d] = number;
        is_in_state = true;
      }
    }
    if (!is_in_state) refuse(label, "no state has it, so there is nothing to divide");
  }
  return subnets;
}

std::int64_t part_of(std::int64_t extent, std::int64_t site, std::int64_t sites) {
  return extent / sites + (site < extent % sites ? 1 : 0);
}

std::vector<Parts> divide(const Subnets& subnets, std::int64_t sites, std::uint64_t seed, std::int64_t step) {
  std::vector<Parts> parts(static_cast<std::size_t>(sites));
  for (std::size_t l = 0; l < subnets.labels.size(); ++l) {
    const std::vector<std::int64_t> order = shuffled(subnets.extents[l], seed, step, "subnet " + subnets.labels[l]);
    auto from = order.begin();
    for (std::int64_t s = 0; s < sites; ++s) {
      const auto end = from + static_cast<std::ptrdiff_t>(part_of(subnets.extents[l], s, sites));
      std::vector<std::int64_t>& part = parts[static_cast<std::size_t>(s)].emplace_back(from, end);
      std::sort(part.begin(), part.end());
      from = end;
    }
  }
  return parts;
}

EinGraph placed_in_whole(const EinGraph& graph, const Subnets& subnets, std::int64_t sites) {
  return sites == 1 ? graph : Placing(graph, subnets, sites).run();
}

InputSources places_of(const Subnets& subnets, std::int64_t site, const Parts& parts) {
  InputSources places;
  for (std::size_t l = 0; l < subnets.labels.size(); ++l) {
    const std::vector<double> units(parts[l].begin(), parts[l].end());
    places[units_input(subnets.labels[l])] =
        tensor_of(DType::i64, {Extent(static_cast<std::int64_t>(units.size()))}, units);
  }
  places[site_input] = tensor_of(DType::i64, {}, {static_cast<double>(site)});
  return places;
}

Shape bound_of(const Subnets::SlicedState& sliced, const Parts& parts) {
  Shape bound = sliced.bound;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    if (sliced.labels[d]) bound[d] = Extent(static_cast<std::int64_t>(parts[*sliced.labels[d]].size()));
  }
  return bound;
}

Tensor slice_of(const Tensor& state, const Subnets::SlicedState& sliced, const Parts& parts) {
  if (!sliced.is_sliced()) return state;
  Tensor part(sliced.dtype, bound_of(sliced, parts));
  std::byte* const to = part.mutable_data();
  for_each_run(sliced, parts, [&](std::int64_t whole, std::int64_t place, std::size_t bytes) {
    std::memcpy(to + place, state.data() + whole, bytes);
  });
  return part;
}

void put_back(const Tensor& part, const Subnets::SlicedState& sliced, const Parts& parts, Tensor& state) {
  const Tensor elements = part.row_major();
  std::byte* const to = state.mutable_data();
  for_each_run(sliced, parts, [&](std::int64_t whole, std::int64_t place, std::size_t bytes) {
    std::memcpy(to + whole, elements.data() + place, bytes);
  });
}

}  // namespace einrel
