#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "einsum/check/check.h"
#include "einsum/graph/vertex_facts.h"
#include "tra/named_kernels.h"

namespace einrel {
namespace {

/// The definition as a program over inputs of unknown extents.
build::Program program_of(const KernelDefinition& definition, const std::vector<DType>& dtypes) {
  build::Scalars scalars;
  for (const std::string& scalar : definition.scalars) scalars.scalars.push_back({{scalar, {}}, std::nullopt});
  build::Inputs inputs;
  for (std::size_t p = 0; p < definition.parameters.size(); ++p) {
    const KernelDefinition::Parameter& parameter = definition.parameters[p];
    build::InputDecl input{parameter.name, {}, dtypes[p]};
    for (std::size_t d = 0; d < parameter.indices.size(); ++d)  // no text has a label of such a name
      input.labels.push_back({fmt::format("dimension {} of {}", d, parameter.name.text), parameter.name.span});
    inputs.inputs.push_back(std::move(input));
  }
  build::Program program;
  const auto add = [&](auto what) { program.statements.push_back({definition.where, std::move(what)}); };
  add(std::move(scalars));
  add(build::Dims{definition.dims});
  add(std::move(inputs));
  for (const KernelDefinition::Value& value : definition.values) std::visit(add, value);
  std::visit([&](const auto& result) { add(build::Outputs{{result.name}}); }, definition.values.back());
  return program;
}

/// Checks a definition and turns its vertices into steps.
class KernelBuilder {
 public:
  KernelBuilder(const KernelDefinition& definition, const std::vector<DType>& dtypes, std::vector<Diagnostic>& errors)
      : definition_(definition), dtypes_(dtypes), errors_(errors) {}

  /// nullopt with errors added when there are some.
  std::optional<Kernel> run() {
    const std::size_t before = errors_.size();
    std::optional<EinGraph> graph = check_kernel(program_of(definition_, dtypes_), errors_);
    if (graph) {
      take_vertices(std::move(*graph));
      for (std::size_t p = 0; p < definition_.parameters.size(); ++p) add_operand(p);
      for (std::size_t i = 0; i < vertices_.size(); ++i) std::visit(CheckStep{*this, reads_[i]}, vertices_[i].op);
      check_dims();
    }
    for (std::size_t e = before; e < errors_.size(); ++e) {
      if (errors_[e].marks.empty()) errors_[e].marks.push_back(definition_.where);
    }
    return errors_.size() == before ? std::optional(kernel()) : std::nullopt;
  }

 private:
  void error(std::string message, Span where, std::string help) {
    errors_.push_back({std::move(message), {where}, std::move(help)});
  }

  void take_vertices(EinGraph graph) {
    for (Vertex& vertex : graph.vertices) {
      if (is_input(vertex)) continue;  // the parameters, in their order
      std::vector<std::size_t>& own = reads_.emplace_back();
      for (const VertexId input : vertex.inputs) own.push_back(input.index);
      vertices_.push_back(std::move(vertex));
    }
  }

  Kernel kernel() const {
    Kernel kernel{definition_.name, dtypes_, {}};
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      const EinSum* const einsum = einsum_of(vertices_[i]);
      // The labels of an EinSum that are not open keep the extents that `with` gives them.
      kernel.steps.push_back(einsum != nullptr
                                 ? KernelStep{*einsum, vertices_[i].dtype, reads_[i]}
                                 : kernel_of(definition_.name, vertices_[i], dtypes_, reads_[i]).steps.front());
    }
    return kernel;
  }

  struct CheckStep {
    KernelBuilder& self;
    const std::vector<std::size_t>& reads;
    void operator()(const Input&) const { throw Bug("a kernel computes something"); }
    void operator()(const EinSum& einsum) const { self.check_labels(einsum, reads); }
    void operator()(const View& view) const { self.check_view(view); }
    /// Whose labels are all given by its array.
    void operator()(const Opaque&) const {}
  };

  /// Makes sure that something gives the extent of every label: `with` or an array.
  void check_labels(const EinSum& einsum, const std::vector<std::size_t>& reads) {
    for (std::size_t l = 0; l < einsum.labels.size(); ++l) {
      const std::string& name = einsum.labels[l].name;
      used_.insert(name);
      if (!einsum.labels[l].extent.is_open() || is_given_by_array(einsum, reads, l)) continue;
      error(fmt::format("no array gives the extent of label '{}' when kernel {} runs", name, definition_.name),
            place_of(name), fmt::format("write it into the definition: ... with {}=4 = ...", name));
    }
  }

  /// Where a label stands on a left side.
  Span place_of(const std::string& label) const {
    for (const KernelDefinition::Value& value : definition_.values) {
      const auto* const definition = std::get_if<build::Definition>(&value);
      if (definition == nullptr) continue;
      for (const build::Name& name : definition->labels) {
        if (name.text == label) return name.span;
      }
    }
    return definition_.where;
  }

  bool is_read(std::size_t parameter) const {
    return std::any_of(reads_.begin(), reads_.end(), [&](const std::vector<std::size_t>& reads) {
      return std::find(reads.begin(), reads.end(), parameter) != reads.end();
    });
  }

  /// A parameter also is an operand as its own indices say: where they give a label an extent that nothing else gives,
  /// such as that of n in pad(X[n,y+dy], 0), and where no body reads it, if that has all its labels.
  void add_operand(std::size_t parameter) {
    const bool has_reader = is_read(parameter);
    std::optional<std::size_t> step;
    std::optional<Access> access;
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      const EinSum* einsum = einsum_of(vertices_[i]);
      if (einsum == nullptr) continue;
      const Access own = access_of(parameter, *einsum);
      const bool is_needed = gives_missing_extent(own, *einsum, reads_[i]);
      if (!is_needed && (has_reader || !has_all_labels(parameter, *einsum))) continue;
      step = i;
      access = own;
      if (is_needed) break;
    }
    if (!step) return;
    einsum_of(vertices_[*step])->operands.push_back(*access);
    reads_[*step].push_back(parameter);
  }

  static bool gives_missing_extent(const Access& access, const EinSum& einsum, const std::vector<std::size_t>& reads) {
    return std::any_of(access.indices.begin(), access.indices.end(), [&](const Index& index) {
      const std::optional<std::size_t> label = plain_label(index);
      return label && einsum.labels[*label].extent.is_open() && !is_given_by_array(einsum, reads, *label);
    });
  }

  static std::optional<std::size_t> find_label(const EinSum& einsum, const std::string& name) {
    const auto same = [&](const Label& label) { return label.name == name; };
    const auto found = std::find_if(einsum.labels.begin(), einsum.labels.end(), same);
    if (found == einsum.labels.end()) return std::nullopt;
    return static_cast<std::size_t>(found - einsum.labels.begin());
  }

  bool has_all_labels(std::size_t parameter, const EinSum& einsum) const {
    const std::vector<std::optional<build::Index>>& indices = definition_.parameters[parameter].indices;
    if (indices.empty()) return false;
    return std::all_of(indices.begin(), indices.end(), [&](const std::optional<build::Index>& index) {
      return index && std::all_of(index->terms.begin(), index->terms.end(), [&](const build::IndexTerm& term) {
               return find_label(einsum, term.label.text).has_value();
             });
    });
  }

  /// The indices of a parameter in `einsum`; position 0 where it has not their labels.
  Access access_of(std::size_t parameter, const EinSum& einsum) const {
    Access access;
    for (const std::optional<build::Index>& written : definition_.parameters[parameter].indices) {
      Index& index = access.indices.emplace_back();
      if (!written) continue;
      Index found{written->offset, {}};
      for (const build::IndexTerm& term : written->terms) {
        const std::optional<std::size_t> label = find_label(einsum, term.label.text);
        if (label) found.terms.push_back({term.coefficient, *label});
      }
      if (found.terms.size() == written->terms.size()) index = std::move(found);
    }
    return access;
  }

  static bool is_given_by_array(const EinSum& einsum, const std::vector<std::size_t>& reads, std::size_t label) {
    for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
      for (std::size_t d = 0; d < einsum.operands[i].indices.size(); ++d) {
        if (measured_label(einsum, reads, i, d) == label) return true;
      }
    }
    return false;
  }

  /// The entry of `with` for a label.
  const build::Dim* given(const std::string& label) const {
    const auto found = std::find_if(definition_.dims.begin(), definition_.dims.end(),
                                    [&](const build::Dim& dim) { return dim.label.text == label; });
    return found == definition_.dims.end() ? nullptr : &*found;
  }

  void check_view(const View& view) {
    for (const Label& label : view.labels) used_.insert(label.name);
    for (const std::vector<std::size_t>& group : view.from) {
      bool is_empty = false;  // then the array says nothing about the first label
      for (std::size_t i = 1; i < group.size(); ++i) {
        const Label& label = view.labels[group[i]];
        is_empty = is_empty || label.extent == Extent(0);
        if (!label.extent.is_open()) continue;
        error(fmt::format("only the first label of a group takes its extent from the array, but '{}' is open",
                          label.name),
              definition_.where, fmt::format("write it into the definition: ... with {}=4 = view", label.name));
      }
      const build::Dim* const first = group.empty() ? nullptr : given(view.labels[group.front()].name);
      if (first == nullptr || is_empty) continue;
      error(
          fmt::format("label '{}' is the first of its group, so it takes its extent from the array", first->label.text),
          first->label.span, "remove it from `with`");
    }
  }

  void check_dims() {
    for (const build::Dim& dim : definition_.dims) {
      if (used_.count(dim.label.text) != 0) continue;
      error(fmt::format("`with` gives an extent to '{}', which is no label of kernel {}", dim.label.text,
                        definition_.name),
            dim.label.span, "remove it");
    }
  }

  const KernelDefinition& definition_;
  const std::vector<DType>& dtypes_;
  std::vector<Diagnostic>& errors_;
  std::vector<Vertex> vertices_;
  std::vector<std::vector<std::size_t>> reads_;  // per vertex
  std::set<std::string> used_;
};

/// The inverse of a permutation.
std::vector<std::size_t> positions_of(const std::vector<std::size_t>& order) {
  std::vector<std::size_t> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  return position;
}

void reorder_labels(EinSum& einsum) {
  std::vector<std::size_t> order = einsum.output;
  order.insert(order.end(), einsum.reduced.begin(), einsum.reduced.end());
  if (order.size() != einsum.labels.size()) return;
  const std::vector<std::size_t> position = positions_of(order);
  std::vector<Label> labels;
  for (const std::size_t old : order) labels.push_back(einsum.labels[old]);
  einsum.labels = std::move(labels);
  for (std::size_t& label : einsum.output) label = position[label];
  for (std::size_t& label : einsum.reduced) label = position[label];
  const auto to_position = [&](std::size_t label) { return position[label]; };
  for (Access& access : einsum.operands) map_labels(access, to_position);
  map_labels(einsum.body, to_position);
}

void reorder_operands(EinSum& einsum, std::vector<std::size_t>& reads) {
  std::vector<std::size_t> order;
  const auto add = [&](std::size_t operand) {
    if (std::find(order.begin(), order.end(), operand) == order.end()) order.push_back(operand);
  };
  for (const ScalarStep& step : einsum.body.steps) {
    if (const auto operand = operand_read(step)) add(*operand);
  }
  std::vector<std::size_t> unused(einsum.operands.size());
  std::iota(unused.begin(), unused.end(), std::size_t{0});
  std::stable_sort(unused.begin(), unused.end(), [&](std::size_t a, std::size_t b) { return reads[a] < reads[b]; });
  for (const std::size_t operand : unused) add(operand);
  const std::vector<std::size_t> position = positions_of(order);
  std::vector<Access> operands;
  std::vector<std::size_t> new_reads;
  for (const std::size_t old : order) {
    operands.push_back(einsum.operands[old]);
    new_reads.push_back(reads[old]);
  }
  einsum.operands = std::move(operands);
  reads = std::move(new_reads);
  map_operands(einsum.body, [&](std::size_t operand) { return position[operand]; });
}

}  // namespace

std::optional<Kernel> kernel_from(const KernelDefinition& definition, const std::vector<DType>& dtypes,
                                  std::vector<Diagnostic>& errors) {
  invariant(dtypes.size() == definition.parameters.size(), "a kernel definition is used with one dtype per parameter");
  return KernelBuilder(definition, dtypes, errors).run();
}

Kernel in_reading_order(Kernel kernel) {
  for (KernelStep& step : kernel.steps) {
    EinSum* einsum = einsum_of(step);
    if (einsum == nullptr) continue;
    reorder_operands(*einsum, step.reads);
    reorder_labels(*einsum);
  }
  return kernel;
}

}  // namespace einrel
