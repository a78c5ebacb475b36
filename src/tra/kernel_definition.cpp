#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "einsum/check.h"
#include "einsum/text/parse.h"
#include "einsum/vertex_facts.h"
#include "tra/named_kernels.h"

namespace einrel {
namespace {

/// The label that an index reads as it is, or nullptr.
const build::Name* plain(const build::Index& index) {
  const bool is_plain = index.offset == 0 && index.terms.size() == 1 && index.terms.front().coefficient == 1;
  return is_plain ? &index.terms.front().label : nullptr;
}

/// "i,j" or "b,(h d)" at its commas.
std::vector<std::string> split_indices(std::string_view indices) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : indices) {
    if (c == ',') {
      parts.push_back(std::exchange(part, ""));
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  if (!part.empty() || !parts.empty()) parts.push_back(part);
  for (std::string& each : parts) each.erase(each.find_last_not_of(" \n\t\r") + 1);
  return parts;
}

/// The definition as a program in the language, and where its pieces come from.
struct KernelText {
  struct Segment {
    Span here;
    Span there;
  };
  std::string text;
  std::vector<Segment> segments;
  Span result;  ///< the statement of the result

  void append(std::string_view plain_text) { text += plain_text; }
  void append(const KernelDefinition::Piece& piece) {
    segments.push_back({{text.size(), text.size() + piece.text.size()}, piece.where});
    text += piece.text;
  }
  /// Where a mark in `text` stands in the program; `whole` where it is in no piece.
  Span origin(Span mark, Span whole) const {
    for (const Segment& segment : segments) {
      const bool same_length = segment.there.end - segment.there.begin == segment.here.end - segment.here.begin;
      if (mark.begin < segment.here.begin || mark.begin > segment.here.end || !same_length) continue;
      const std::size_t end = std::min(mark.end, segment.here.end);
      const std::size_t shift = segment.there.begin - segment.here.begin;  // modulo 2^64, as unsigned numbers are
      return {mark.begin + shift, std::max(end, mark.begin) + shift};
    }
    return whole;
  }
};

std::string dimension_label(const std::string& parameter, std::size_t dim) {
  return fmt::format("{}_dimension{}", parameter, dim);
}

std::string result_name(const KernelDefinition& definition) {
  std::string name = "Z";
  const auto taken = [&](const auto& item) { return item.name == name; };
  while (std::any_of(definition.parameters.begin(), definition.parameters.end(), taken) ||
         std::any_of(definition.given.begin(), definition.given.end(), taken)) {
    name += "_";
  }
  return name;
}

KernelText text_of(const KernelDefinition& definition, const std::vector<DType>& dtypes) {
  KernelText out;
  for (const std::string& scalar : definition.scalars) out.append(fmt::format("scalar {}\n", scalar));
  for (const auto& [label, extent] : definition.dims) out.append(fmt::format("dims {}={}\n", label, extent));
  for (std::size_t i = 0; i < definition.parameters.size(); ++i) {
    const KernelDefinition::Parameter& parameter = definition.parameters[i];
    std::vector<std::string> labels;
    for (std::size_t d = 0; d < index_count(parameter.indices.text); ++d)
      labels.push_back(dimension_label(parameter.name, d));
    out.append(fmt::format("input {}[{}] : {}\n", parameter.name, fmt::join(labels, ","), name_of(dtypes[i])));
  }
  for (const KernelDefinition::Given& given : definition.given) {
    out.append(given.name + "[");
    out.append(given.indices);
    out.append("] = ");
    out.append(given.body);
    out.append("\n");
  }
  const std::string name = result_name(definition);
  out.result.begin = out.text.size();
  out.append(name + "[");
  out.append(definition.result);
  out.append("] = ");
  out.append(definition.body);
  if (definition.body.text == "view" && !definition.parameters.empty()) {
    out.append(fmt::format(" {}[", definition.parameters.front().name));
    out.append(definition.parameters.front().indices);
    out.append("]");
  }
  out.result.end = out.text.size();
  out.append(fmt::format("\noutput {}\n", name));
  return out;
}

constexpr std::int64_t most_reach = std::int64_t{1} << 40U;

/// Extents under which a definition can be checked before any array is there: 1 where arrays give them later, more
/// where a window, a constant index or a group needs it.
class Placeholders {
 public:
  Placeholders(const KernelDefinition& definition, const build::Program& program) : dims_(definition.dims) {
    for (const KernelDefinition::Parameter& parameter : definition.parameters)
      bounds_[parameter.name].resize(index_count(parameter.indices.text), 1);
    for (const build::Statement& statement : program.statements) note(statement);
    constexpr int rounds = 8;  // each passes extents on from reads to labels to other reads
    for (int round = 0; round < rounds; ++round) {
      for (const auto& [tensor, dim, index] : reads_) grow(tensor, dim, *index);
      for (const build::ViewDefinition* view : views_) grow(*view);
      for (const Left& left : lefts_) share(bounds_.at(left.tensor)[left.dim], left.label);
    }
  }

  /// Whether it stands on a left side or is reduced.
  bool is_label(const std::string& name) const { return names_.count(name) != 0; }
  bool is_read(const std::string& tensor) const { return read_.count(tensor) != 0; }
  bool is_given_by_a_read(const std::string& label) const { return given_.count(label) != 0; }
  std::int64_t extent(const std::string& tensor, std::size_t dim) const { return bounds_.at(tensor)[dim]; }

 private:
  struct Read {
    std::string tensor;
    std::size_t dim;
    const build::Index* index;
  };
  /// A dimension of a given value has the extent of its label on the left.
  struct Left {
    std::string tensor;
    std::size_t dim;
    std::string label;
  };

  void note(const build::Statement& statement) {
    if (const auto* view = std::get_if<build::ViewDefinition>(&statement.what)) {
      read_.insert(view->source.text);
      views_.push_back(view);
    }
    const auto* definition = std::get_if<build::Definition>(&statement.what);
    if (definition == nullptr) return;
    for (const build::Node& node : definition->value.nodes) {
      if (const auto* reduce = std::get_if<build::Reduce>(&node.op)) {
        for (const build::Name& name : reduce->labels) names_.insert(name.text);
      }
      const auto* access = std::get_if<build::Access>(&node.op);
      if (access == nullptr) continue;
      read_.insert(access->tensor.text);
      for (std::size_t d = 0; !access->pad && d < access->indices.size(); ++d) {
        reads_.push_back({access->tensor.text, d, &access->indices[d]});
        if (plain(access->indices[d]) != nullptr) given_.insert(plain(access->indices[d])->text);
      }
    }
    bounds_[definition->name.text].resize(definition->labels.size(), 1);
    for (std::size_t d = 0; d < definition->labels.size(); ++d) {
      names_.insert(definition->labels[d].text);
      lefts_.push_back({definition->name.text, d, definition->labels[d].text});
    }
  }

  std::int64_t label(const std::string& name) const {
    if (const auto fixed = dims_.find(name); fixed != dims_.end()) return fixed->second;
    const auto found = labels_.find(name);
    return found == labels_.end() ? 1 : found->second;
  }

  /// A dimension and the label that indexes it have one extent.
  void share(std::int64_t& extent, const std::string& name) {
    extent = std::max(extent, label(name));
    labels_[name] = extent;
  }

  void grow(const std::string& tensor, std::size_t dim, const build::Index& index) {
    const auto bound = bounds_.find(tensor);
    if (bound == bounds_.end() || dim >= bound->second.size()) return;
    std::int64_t& extent = bound->second[dim];
    if (const build::Name* name = plain(index)) {
      share(extent, name->text);
      return;
    }
    std::int64_t reach = std::clamp<std::int64_t>(index.offset, 0, most_reach) + 1;
    for (const build::IndexTerm& term : index.terms) {
      std::int64_t further = 0;
      if (__builtin_mul_overflow(std::max<std::int64_t>(term.coefficient, 0), label(term.label.text) - 1, &further))
        further = most_reach;
      reach = std::min(reach + std::clamp<std::int64_t>(further, 0, most_reach), most_reach);
    }
    extent = std::max(extent, reach);
  }

  void grow(const build::ViewDefinition& view) {
    const auto bound = bounds_.find(view.source.text);
    if (bound == bounds_.end()) return;
    for (std::size_t d = 0; d < std::min(view.from.size(), bound->second.size()); ++d) {
      std::int64_t product = 1;
      for (const build::Name& name : view.from[d]) {
        if (__builtin_mul_overflow(product, label(name.text), &product)) return;
      }
      bound->second[d] = product;
      if (view.from[d].size() == 1) labels_[view.from[d].front().text] = product;
    }
  }

  const std::map<std::string, std::int64_t>& dims_;
  std::map<std::string, std::int64_t> labels_;
  std::map<std::string, std::vector<std::int64_t>> bounds_;
  std::vector<Read> reads_;
  std::vector<const build::ViewDefinition*> views_;
  std::set<std::string> read_;
  std::set<std::string> given_;
  std::set<std::string> names_;
  std::vector<Left> lefts_;
};

/// Checks a definition and turns its vertices into steps.
class KernelBuilder {
 public:
  KernelBuilder(const KernelDefinition& definition, const std::vector<DType>& dtypes)
      : definition_(definition),
        dtypes_(dtypes),
        text_(text_of(definition, dtypes)),
        source_(fmt::format("kernel {}", definition.name), text_.text) {}

  /// nullopt with errors() when there are some.
  std::optional<Kernel> run() {
    const build::Program program = parse(source_, errors_);
    const Placeholders extents(definition_, program);
    if (!has_expected_statements(program) && errors_.empty()) error("the definition of a kernel is one expression", "");
    if (!errors_.empty()) return std::nullopt;
    try {
      const CheckedProgram checked = check(program, source_, environment(extents));
      invariant(checked.graph.has_value(), "all extents of a kernel definition are placed");
      Kernel kernel = kernel_of_graph(*checked.graph, extents);
      check_dims(kernel);
      return errors_.empty() ? std::optional(std::move(kernel)) : std::nullopt;
    } catch (const ProgramError& wrong) {
      errors_ = wrong.diagnostics();
    }
    return std::nullopt;
  }

  const std::vector<Diagnostic>& errors() const { return errors_; }
  const SourceText& source() const { return source_; }
  Span origin(Span mark) const { return text_.origin(mark, definition_.where); }

 private:
  void error(std::string message, std::string help) {
    errors_.push_back({std::move(message), {text_.result}, std::move(help)});
  }

  bool has_expected_statements(const build::Program& program) const {
    const std::size_t declarations =
        definition_.scalars.size() + definition_.dims.size() + definition_.parameters.size();
    const std::size_t values = definition_.given.size() + 1;
    if (program.statements.size() != declarations + values + 1) return false;
    return std::all_of(program.statements.begin() + static_cast<std::ptrdiff_t>(declarations),
                       program.statements.end() - 1, [](const build::Statement& statement) {
                         return std::holds_alternative<build::Definition>(statement.what) ||
                                std::holds_alternative<build::ViewDefinition>(statement.what);
                       });
  }

  Environment environment(const Placeholders& extents) const {
    Environment environment;
    for (const KernelDefinition::Parameter& parameter : definition_.parameters) {
      const std::vector<std::string> indices = split_indices(parameter.indices.text);
      for (std::size_t d = 0; d < indices.size(); ++d) {
        environment.dims[dimension_label(parameter.name, d)] = extents.extent(parameter.name, d);
        const bool only_here = !extents.is_given_by_a_read(indices[d]);
        if (only_here && extents.is_label(indices[d]) && definition_.dims.count(indices[d]) == 0)
          environment.dims[indices[d]] = 1;
      }
    }
    return environment;
  }

  Kernel kernel_of_graph(const EinGraph& graph, const Placeholders& extents) {
    std::vector<Vertex> vertices;
    std::vector<std::vector<std::size_t>> reads;
    for (const Vertex& vertex : graph.vertices) {
      if (is_input(vertex)) continue;  // the parameters, in their order
      vertices.push_back(vertex);
      std::vector<std::size_t>& own = reads.emplace_back();
      for (const VertexId input : vertex.inputs) own.push_back(input.index);
    }
    for (std::size_t p = 0; p < definition_.parameters.size(); ++p)
      add_operand(p, extents.is_read(definition_.parameters[p].name), vertices, reads);
    Kernel kernel{definition_.name, dtypes_, {}};
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const std::vector<bool> fixed = std::visit(CheckStep{*this, reads[i]}, vertices[i].op);
      kernel.steps.push_back(einrel::kernel_of(definition_.name, vertices[i], dtypes_, reads[i], fixed).steps.front());
    }
    return kernel;
  }

  /// Returns the labels of a step that `with` fixes.
  struct CheckStep {
    KernelBuilder& self;
    const std::vector<std::size_t>& reads;
    std::vector<bool> operator()(const Input&) const { throw Bug("a kernel computes something"); }
    std::vector<bool> operator()(const EinSum& einsum) const { return self.check_labels(einsum, reads); }
    std::vector<bool> operator()(const View& view) const {
      self.check_view(view);
      return {};
    }
    /// Whose labels are all given by its array.
    std::vector<bool> operator()(const Opaque&) const { return {}; }
  };

  /// Makes sure that something gives the extent of every label: `with` or an array. Returns the labels that `with`
  /// fixes.
  std::vector<bool> check_labels(const EinSum& einsum, const std::vector<std::size_t>& reads) {
    std::vector<bool> fixed;
    for (std::size_t l = 0; l < einsum.labels.size(); ++l) {
      const std::string& name = einsum.labels[l].name;
      used_.insert(name);
      const auto given = definition_.dims.find(name);
      fixed.push_back(given != definition_.dims.end() && Extent(given->second) == einsum.labels[l].extent);
      if (fixed.back() || is_given_by_array(einsum, reads, l)) continue;
      error(fmt::format("no array gives the extent of label '{}' when kernel {} runs", name, definition_.name),
            fmt::format("write it into the definition: ... with {}=4 = ...", name));
    }
    return fixed;
  }

  /// A parameter also is an operand as its own indices say: where they give a label an extent that nothing else gives,
  /// such as that of n in pad(X[n,y+dy], 0), and where no body reads it, if that has all its labels.
  void add_operand(std::size_t parameter, bool is_read, std::vector<Vertex>& vertices,
                   std::vector<std::vector<std::size_t>>& reads) {
    std::optional<std::size_t> step;
    std::optional<Access> access;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const EinSum* einsum = einsum_of(vertices[i]);
      if (einsum == nullptr) continue;
      const Access own = access_of(parameter, *einsum);
      const bool is_needed = gives_missing_extent(own, *einsum, reads[i]);
      if (!is_needed && (is_read || !has_all_labels(parameter, *einsum))) continue;
      step = i;
      access = own;
      if (is_needed) break;
    }
    if (!step) return;
    einsum_of(vertices[*step])->operands.push_back(*access);
    reads[*step].push_back(parameter);
  }

  bool gives_missing_extent(const Access& access, const EinSum& einsum, const std::vector<std::size_t>& reads) const {
    return std::any_of(access.indices.begin(), access.indices.end(), [&](const Index& index) {
      const bool is_plain = index.offset == 0 && index.terms.size() == 1 && index.terms[0].coefficient == 1;
      if (!is_plain) return false;
      const std::size_t label = index.terms[0].label;
      return definition_.dims.count(einsum.labels[label].name) == 0 && !is_given_by_array(einsum, reads, label);
    });
  }

  /// The indices of a parameter as they are written; none for the groups of a view.
  std::vector<build::Index> indices_of(std::size_t parameter) const {
    const SourceText source("indices", fmt::format("X[{}]", definition_.parameters[parameter].indices.text));
    try {
      const build::Expr expr = parse_expression(source);
      const auto* access = expr.nodes.size() == 1 ? std::get_if<build::Access>(&expr.nodes[0].op) : nullptr;
      if (access != nullptr) return access->indices;
    } catch (const ProgramError&) {
    }
    return {};
  }

  static std::optional<std::size_t> find_label(const EinSum& einsum, const std::string& name) {
    const auto same = [&](const Label& label) { return label.name == name; };
    const auto found = std::find_if(einsum.labels.begin(), einsum.labels.end(), same);
    if (found == einsum.labels.end()) return std::nullopt;
    return static_cast<std::size_t>(found - einsum.labels.begin());
  }

  bool has_all_labels(std::size_t parameter, const EinSum& einsum) const {
    const std::vector<build::Index> indices = indices_of(parameter);
    if (indices.empty()) return false;
    return std::all_of(indices.begin(), indices.end(), [&](const build::Index& index) {
      return std::all_of(index.terms.begin(), index.terms.end(),
                         [&](const build::IndexTerm& term) { return find_label(einsum, term.label.text).has_value(); });
    });
  }

  /// The indices of a parameter in `einsum`; position 0 where it has not their labels.
  Access access_of(std::size_t parameter, const EinSum& einsum) const {
    Access access;
    for (const build::Index& written : indices_of(parameter)) {
      Index index{written.offset, {}};
      for (const build::IndexTerm& term : written.terms) {
        const std::optional<std::size_t> label = find_label(einsum, term.label.text);
        if (label) index.terms.push_back({term.coefficient, *label});
      }
      access.indices.push_back(index.terms.size() == written.terms.size() ? std::move(index) : Index{});
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

  void check_view(const View& view) {
    for (const Label& label : view.labels) used_.insert(label.name);
    for (const std::vector<std::size_t>& group : view.from) {
      const bool is_empty = std::any_of(group.begin(), group.end(), [&](std::size_t label) {
        return label != group.front() && view.labels[label].extent == Extent(0);
      });
      for (std::size_t i = 0; i < group.size(); ++i) {
        const std::string& name = view.labels[group[i]].name;
        const bool fixed = definition_.dims.count(name) != 0;
        if (i == 0 && fixed && !is_empty) {
          error(fmt::format("label '{}' is the first of its group, so it takes its extent from the array", name),
                "remove it from `with`");
        } else if (i > 0 && !fixed) {
          error(fmt::format("only the first label of a group takes its extent from the array, but '{}' is open", name),
                fmt::format("write it into the definition: ... with {}=4 = view", name));
        }
      }
    }
  }

  void check_dims(const Kernel& kernel) {
    for (const auto& [name, extent] : definition_.dims) {
      if (used_.count(name) != 0) continue;
      error(fmt::format("`with` gives an extent to '{}', which is no label of kernel {}", name, kernel.name),
            "remove it");
    }
  }

  const KernelDefinition& definition_;
  const std::vector<DType>& dtypes_;
  KernelText text_;
  SourceText source_;
  std::vector<Diagnostic> errors_;
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
  for (Access& access : einsum.operands) {
    for (Index& index : access.indices) {
      for (IndexTerm& term : index.terms) term.label = position[term.label];
    }
  }
  for (ScalarStep& step : einsum.body.steps) {
    if (auto* value = std::get_if<LabelValue>(&step.op)) value->label = position[value->label];
  }
}

void reorder_operands(EinSum& einsum, std::vector<std::size_t>& reads) {
  std::vector<std::size_t> order;
  const auto add = [&](std::size_t operand) {
    if (std::find(order.begin(), order.end(), operand) == order.end()) order.push_back(operand);
  };
  for (const ScalarStep& step : einsum.body.steps) {
    if (const auto* value = std::get_if<OperandValue>(&step.op)) add(value->operand);
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
  for (ScalarStep& step : einsum.body.steps) {
    if (auto* value = std::get_if<OperandValue>(&step.op)) value->operand = position[value->operand];
  }
}

}  // namespace

std::size_t index_count(std::string_view indices) { return split_indices(indices).size(); }

std::optional<Kernel> kernel_from(const KernelDefinition& definition, const std::vector<DType>& dtypes,
                                  std::vector<Diagnostic>& errors) {
  invariant(dtypes.size() == definition.parameters.size(), "a kernel definition is used with one dtype per parameter");
  KernelBuilder builder(definition, dtypes);
  std::optional<Kernel> kernel = builder.run();
  for (Diagnostic error : builder.errors()) {
    for (Span& mark : error.marks) mark = builder.origin(mark);
    if (error.marks.empty()) error.marks.push_back(definition.where);
    errors.push_back(std::move(error));
  }
  return kernel;
}

Kernel kernel_from(const KernelDefinition& definition, const std::vector<DType>& dtypes) {
  KernelBuilder builder(definition, dtypes);
  std::optional<Kernel> kernel = builder.run();
  if (!kernel) throw ProgramError(builder.errors(), builder.source());
  return std::move(*kernel);
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
