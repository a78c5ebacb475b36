#include "tra/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// Whether another read of the same value has the label in a window of that dimension: X[o] beside X[o+1] is one of the
/// window's positions.
bool is_part_of_window(const EinSum& einsum, const std::vector<std::size_t>& reads, std::size_t value, std::size_t dim,
                       std::size_t label) {
  for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
    const std::vector<Index>& indices = einsum.operands[i].indices;
    if (reads[i] != value || dim >= indices.size() || plain_label(indices[dim])) continue;
    const auto is_label = [&](const IndexTerm& term) { return term.label == label; };
    if (std::any_of(indices[dim].terms.begin(), indices[dim].terms.end(), is_label)) return true;
  }
  return false;
}

/// What a label's extent was taken from, for messages.
struct Source {
  std::size_t value = 0;
  std::size_t dim = 0;
};

std::string value_name(std::size_t value, const Kernel& kernel) {
  return value < kernel.arguments.size() ? fmt::format("argument {}", value + 1)
                                         : fmt::format("step {}", value - kernel.arguments.size() + 1);
}

[[noreturn]] void refuse_rank(const Kernel& kernel, std::size_t value, std::size_t wanted, const Shape& found) {
  throw UserError(fmt::format("kernel {} wants {} dimensions of {}, which has {}", kernel.name, wanted,
                              value_name(value, kernel), to_string(found)));
}

/// Fills in the extents that arrays give; throws when two arrays disagree.
EinSum with_extents(EinSum einsum, const KernelStep& step, const Kernel& kernel, const std::vector<Shape>& values) {
  std::vector<std::optional<Source>> sources(einsum.labels.size());
  for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
    const Access& access = einsum.operands[i];
    const Shape& bound = values[step.reads[i]];
    if (access.indices.size() != bound.size()) refuse_rank(kernel, step.reads[i], access.indices.size(), bound);
    for (std::size_t d = 0; d < bound.size(); ++d) {
      const std::optional<std::size_t> measured = measured_label(einsum, step.reads, i, d);
      if (!measured) continue;
      Label& label = einsum.labels[*measured];
      std::optional<Source>& source = sources[*measured];
      if (label.extent.is_open()) label.extent = bound[d];
      if (label.extent != bound[d]) {
        throw UserError(fmt::format(
            "kernel {}: label '{}' has extent {}{}, but {} in dimension {} of {}", kernel.name, label.name,
            label.extent.value(),
            source ? fmt::format(" in dimension {} of {}", source->dim, value_name(source->value, kernel)) : "",
            bound[d].value(), d, value_name(step.reads[i], kernel)));
      }
      source = Source{step.reads[i], d};
    }
  }
  return einsum;
}

/// Throws unless every access without padding stays inside its array.
void check_accesses(const EinSum& einsum, const KernelStep& step, const Kernel& kernel,
                    const std::vector<Shape>& values) {
  for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
    if (einsum.operands[i].pad) continue;
    for (std::size_t d = 0; d < einsum.operands[i].indices.size(); ++d) {
      const Index& index = einsum.operands[i].indices[d];
      std::int64_t low = index.offset;
      std::int64_t high = index.offset;
      bool empty = false;
      for (const IndexTerm& term : index.terms) {
        const std::int64_t extent = einsum.labels[term.label].extent.value();
        empty = empty || extent == 0;
        std::int64_t& end = term.coefficient < 0 ? low : high;
        end = checked_add(end, checked_multiply(term.coefficient, extent - 1));
      }
      const std::int64_t bound = values[step.reads[i]][d].value();
      if (!empty && (low < 0 || high >= bound)) {
        throw UserError(fmt::format("kernel {} reads positions {} to {} in dimension {} of {}, which has extent {}",
                                    kernel.name, low, high, d, value_name(step.reads[i], kernel), bound));
      }
    }
  }
}

void check_reduction(const EinSum& einsum, const Kernel& kernel) {
  const bool needs_one = einsum.reducer && has(*einsum.reducer, ReducerTrait::needs_one);
  for (const std::size_t label : einsum.reduced) {
    if (needs_one && einsum.labels[label].extent == Extent(0)) {
      throw UserError(fmt::format("kernel {} takes the {} over label '{}' of extent 0", kernel.name,
                                  name_of(*einsum.reducer), einsum.labels[label].name));
    }
  }
}

/// The vertex that a step is for these arguments and results of earlier steps.
Vertex vertex_of(EinSum einsum, const KernelStep& step, const Kernel& kernel, const std::vector<Shape>& values) {
  einsum = with_extents(std::move(einsum), step, kernel, values);
  check_accesses(einsum, step, kernel, values);
  check_reduction(einsum, kernel);
  Vertex vertex{kernel.name, step.dtype, {}, {}, Input{}, {}};
  for (const std::size_t label : einsum.output) vertex.bound.push_back(einsum.labels[label].extent);
  vertex.op = std::move(einsum);
  return vertex;
}

/// The product of the extents of a group's labels but its first.
std::int64_t elements_behind_first(const std::vector<std::size_t>& group, const std::vector<Label>& labels) {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < group.size(); ++i) product = checked_multiply(product, labels[group[i]].extent.value());
  return product;
}

Vertex vertex_of(View view, const KernelStep& step, const Kernel& kernel, const std::vector<Shape>& values) {
  const Shape& bound = values[step.reads[0]];
  if (view.from.size() != bound.size()) refuse_rank(kernel, step.reads[0], view.from.size(), bound);
  for (std::size_t d = 0; d < bound.size(); ++d) {
    const std::vector<std::size_t>& group = view.from[d];
    const std::int64_t rest = elements_behind_first(group, view.labels);
    const bool fits =
        group.empty() ? bound[d] == Extent(1) : (rest == 0 ? bound[d].value() == 0 : bound[d].value() % rest == 0);
    if (!fits) {
      throw UserError(fmt::format("kernel {}: dimension {} of {} has extent {}, which is not made of groups of {}",
                                  kernel.name, d, value_name(step.reads[0], kernel), bound[d].value(), rest));
    }
    if (group.empty()) continue;
    Label& first = view.labels[group.front()];
    if (rest != 0) first.extent = Extent(bound[d].value() / rest);
    if (first.extent.is_open()) {
      throw UserError(
          fmt::format("kernel {}: the extent of '{}' cannot be found: another label of its group has extent 0",
                      kernel.name, first.name));
    }
  }
  Vertex vertex{kernel.name, step.dtype, {}, {}, Input{}, {}};
  for (const std::vector<std::size_t>& group : view.to) {
    std::int64_t extent = 1;
    for (const std::size_t label : group) extent = checked_multiply(extent, view.labels[label].extent.value());
    vertex.bound.emplace_back(extent);
  }
  vertex.op = std::move(view);
  return vertex;
}

Vertex vertex_of(Opaque opaque, const KernelStep& step, const Kernel& kernel, const std::vector<Shape>& values) {
  const Shape& bound = values[step.reads[0]];
  if (opaque.operand.size() != bound.size()) refuse_rank(kernel, step.reads[0], opaque.operand.size(), bound);
  for (std::size_t d = 0; d < bound.size(); ++d) opaque.labels[opaque.operand[d]].extent = bound[d];
  const std::size_t matrix = batch_labels(opaque);
  const Label& rows = opaque.labels[matrix];
  const Label& columns = opaque.labels[matrix + 1];
  if (opaque.function == OpaqueFunction::qr) {
    opaque.labels[matrix + 2].extent = Extent(std::min(rows.extent.value(), columns.extent.value()));
  } else if (rows.extent != columns.extent) {
    throw UserError(fmt::format("kernel {} takes square matrices, but '{}' has extent {} and '{}' has {}", kernel.name,
                                rows.name, rows.extent.value(), columns.name, columns.extent.value()));
  }
  Vertex vertex{kernel.name, step.dtype, {}, {}, Input{}, {}};
  for (const std::size_t label : dimensions_of(opaque)) vertex.bound.push_back(opaque.labels[label].extent);
  vertex.op = std::move(opaque);
  return vertex;
}

bool is_one_plain_tensor(const Access& access) {
  return !access.pad && std::all_of(access.indices.begin(), access.indices.end(),
                                    [](const Index& index) { return plain_label(index).has_value(); });
}

/// Whether the access reads output dimension d at index d, for all of them.
bool follows_output(const Access& access, const EinSum& einsum) {
  if (!is_one_plain_tensor(access) || access.indices.size() != einsum.output.size()) return false;
  for (std::size_t d = 0; d < einsum.output.size(); ++d) {
    if (plain_label(access.indices[d]) != einsum.output[d]) return false;
  }
  return true;
}

bool reads_label_values(const EinSum& einsum) {
  return std::any_of(einsum.body.steps.begin(), einsum.body.steps.end(),
                     [](const ScalarStep& step) { return std::holds_alternative<LabelValue>(step.op); });
}

/// The EinSum of a kernel Z[...] = f(A[...], B[...]) with the same plain labels everywhere; nullptr for others.
const EinSum* element_wise(const Kernel& kernel) {
  if (kernel.arguments.size() != 2 || kernel.steps.size() != 1) return nullptr;
  const EinSum* const einsum = einsum_of(kernel.steps.front());
  if (einsum == nullptr || einsum->reducer || reads_label_values(*einsum)) return nullptr;
  const bool follows = std::all_of(einsum->operands.begin(), einsum->operands.end(),
                                   [&](const Access& access) { return follows_output(access, *einsum); });
  return follows && !einsum->operands.empty() ? einsum : nullptr;
}

/// f of a kernel Z[...] = A[...] f B[...], each argument read once, all of one type.
std::optional<BinaryFunction> element_wise_function(const Kernel& kernel) {
  const EinSum* einsum = element_wise(kernel);
  if (einsum == nullptr || einsum->operands.size() != 2 || einsum->body.steps.size() != 3) return std::nullopt;
  const KernelStep& step = kernel.steps.front();
  const auto* first = std::get_if<OperandValue>(&einsum->body.steps[0].op);
  const auto* second = std::get_if<OperandValue>(&einsum->body.steps[1].op);
  const auto* apply = std::get_if<ApplyBinary>(&einsum->body.steps[2].op);
  if (first == nullptr || second == nullptr || apply == nullptr) return std::nullopt;
  const bool in_order = step.reads[first->operand] == 0 && step.reads[second->operand] == 1;
  const bool one_type = kernel.arguments[0] == kernel.arguments[1] && kernel.arguments[0] == step.dtype;
  return in_order && one_type ? std::optional(apply->function) : std::nullopt;
}

bool is_operand(const ScalarExpr& body) {
  return body.steps.size() == 1 && std::holds_alternative<OperandValue>(body.steps.front().op);
}

/// c * x, x * c, -x: body of one operand.
bool is_linear(const ScalarExpr& body) {
  if (is_operand(body)) return true;
  const auto is_number = [](const ScalarStep& step) {
    return std::holds_alternative<Constant>(step.op) || std::holds_alternative<ScalarValue>(step.op);
  };
  const auto is_value = [](const ScalarStep& step) { return std::holds_alternative<OperandValue>(step.op); };
  if (body.steps.size() == 2) {
    const auto* unary = std::get_if<ApplyUnary>(&body.steps[1].op);
    return is_value(body.steps[0]) && unary != nullptr && unary->function == UnaryFunction::negate;
  }
  if (body.steps.size() != 3) return false;
  const auto* binary = std::get_if<ApplyBinary>(&body.steps[2].op);
  if (binary == nullptr) return false;
  const bool value_then_number = is_value(body.steps[0]) && is_number(body.steps[1]);
  const bool number_then_value = is_number(body.steps[0]) && is_value(body.steps[1]);
  return binary->function == BinaryFunction::multiply && (value_then_number || number_then_value);
}

bool never_decreases(const ScalarExpr& body) {
  if (body.steps.size() != 2 || !std::holds_alternative<OperandValue>(body.steps[0].op)) return false;
  const auto* unary = std::get_if<ApplyUnary>(&body.steps[1].op);
  return unary != nullptr && has(unary->function, Trait::rises);
}

bool step_distributes(const EinSum& step, std::optional<BinaryFunction> inner) {
  if (step.operands.size() != 1 || step.operands.front().pad) return false;
  if (!step.reducer && is_operand(step.body)) return true;
  switch (inner.value_or(BinaryFunction::power)) {
    case BinaryFunction::add:
    case BinaryFunction::subtract: return is_linear(step.body) && (!step.reducer || step.reducer == Reducer::sum);
    case BinaryFunction::maximum:
      return step.reducer ? step.reducer == Reducer::max && is_operand(step.body) : never_decreases(step.body);
    case BinaryFunction::minimum:
      return step.reducer ? step.reducer == Reducer::min && is_operand(step.body) : never_decreases(step.body);
    default: return false;
  }
}

/// What a step of a kernel is before it meets arrays: the extents that these will give are open.
struct OpenStep {
  const std::vector<std::size_t>& reads;

  KernelStep operator()(const Input&) const { throw Bug("a kernel computes something"); }
  KernelStep operator()(EinSum open) const {
    for (std::size_t i = 0; i < open.operands.size(); ++i) {
      for (std::size_t d = 0; d < open.operands[i].indices.size(); ++d) {
        const std::optional<std::size_t> label = measured_label(open, reads, i, d);
        if (label) open.labels[*label].extent = Extent::open();
      }
    }
    return {std::move(open), DType::f32, reads};
  }
  KernelStep operator()(View open) const {
    for (const std::vector<std::size_t>& group : open.from) {
      const bool is_given = !group.empty() && elements_behind_first(group, open.labels) != 0;
      if (is_given) open.labels[group.front()].extent = Extent::open();
    }
    return {std::move(open), DType::f32, reads};
  }
  KernelStep operator()(Opaque open) const {
    for (Label& label : open.labels) label.extent = Extent::open();
    return {std::move(open), DType::f32, reads};
  }
};

}  // namespace

std::vector<Vertex> vertices_of(const Kernel& kernel, std::vector<Shape> values) {
  if (values.size() != kernel.arguments.size()) {
    throw UserError(
        fmt::format("kernel {} takes {} arguments, not {}", kernel.name, kernel.arguments.size(), values.size()));
  }
  std::vector<Vertex> vertices;
  for (const KernelStep& step : kernel.steps) {
    for (const std::size_t read : step.reads)
      invariant(read < values.size(), "a step of a kernel reads arguments and earlier steps");
    vertices.push_back(std::visit([&](const auto& op) { return vertex_of(op, step, kernel, values); }, step.op));
    element_count(vertices.back().bound);
    values.push_back(vertices.back().bound);
  }
  return vertices;
}

std::optional<std::size_t> measured_label(const EinSum& einsum, const std::vector<std::size_t>& reads,
                                          std::size_t operand, std::size_t dim) {
  const std::optional<std::size_t> label = plain_label(einsum.operands[operand].indices[dim]);
  if (!label || einsum.operands[operand].pad) return std::nullopt;
  if (is_part_of_window(einsum, reads, reads[operand], dim, *label)) return std::nullopt;
  return label;
}

Kernel identity_kernel(DType dtype) { return {"id", {dtype}, {}}; }
bool is_identity(const Kernel& kernel) { return kernel.steps.empty(); }

std::size_t result_rank(const Kernel& kernel, const std::vector<std::size_t>& ranks) {
  struct Rank {
    std::size_t operator()(const EinSum& einsum) const { return einsum.output.size(); }
    std::size_t operator()(const View& view) const { return view.to.size(); }
    std::size_t operator()(const Opaque& opaque) const { return dimensions_of(opaque).size(); }
  };
  return kernel.steps.empty() ? ranks.front() : std::visit(Rank{}, kernel.steps.back().op);
}

DType result_dtype(const Kernel& kernel) {
  return kernel.steps.empty() ? kernel.arguments.front() : kernel.steps.back().dtype;
}

Kernel kernel_of(std::string name, const Vertex& vertex, const std::vector<DType>& arguments,
                 const std::vector<std::size_t>& reads) {
  KernelStep step = std::visit(OpenStep{reads}, vertex.op);
  step.dtype = vertex.dtype;
  return {std::move(name), arguments, {std::move(step)}};
}

Shape result_shape(const Kernel& kernel, const std::vector<Shape>& arguments) {
  const std::vector<Vertex> vertices = vertices_of(kernel, arguments);
  return vertices.empty() ? arguments.front() : vertices.back().bound;
}

const KernelCalls::Call& KernelCalls::operator()(const std::vector<Shape>& arguments) {
  const auto known = calls_.find(arguments);
  if (known != calls_.end()) return known->second;
  const std::vector<Vertex> vertices = vertices_of(kernel_, arguments);
  Call call{vertices.empty() ? arguments.front() : vertices.back().bound, {}, 0};
  for (const Vertex& vertex : vertices) {
    call.steps.push_back(vertex.bound);
    call.flops += flops(vertex);
  }
  return calls_.emplace(arguments, std::move(call)).first->second;
}

Kernel compose(const Kernel& outer, const Kernel& inner) {
  invariant(outer.arguments.size() == 1, "a kernel that follows another one takes its result only");
  if (is_identity(outer)) return inner;
  if (is_identity(inner)) return outer;
  Kernel result{outer.name + " . " + inner.name, inner.arguments, inner.steps};
  const std::size_t shift = inner.arguments.size() + inner.steps.size() - 1;
  for (KernelStep step : outer.steps) {
    for (std::size_t& read : step.reads) read += shift;
    result.steps.push_back(std::move(step));
  }
  return result;
}

bool is_associative_commutative(const Kernel& kernel) {
  if (kernel.name == "logAddExp" || kernel.name == "minIndex") return true;
  switch (element_wise_function(kernel).value_or(BinaryFunction::power)) {
    case BinaryFunction::add:
    case BinaryFunction::multiply:
    case BinaryFunction::maximum:
    case BinaryFunction::minimum: return true;
    default: return false;
  }
}

bool reduces_onto(const Kernel& kernel, const Kernel& fold) {
  if (kernel.steps.empty() || result_dtype(kernel) != result_dtype(fold)) return false;
  const EinSum* const einsum = einsum_of(kernel.steps.back());
  if (einsum == nullptr || !continuation(einsum->reducer)) return false;
  return continuation(einsum->reducer) == element_wise_function(fold) &&
         reduced_type(*einsum->reducer, einsum->body.type()) == result_dtype(kernel);
}

bool distributes_over(const Kernel& outer, const Kernel& inner) {
  if (outer.arguments.size() != 1 || element_wise(inner) == nullptr) return false;
  if (inner.arguments != std::vector<DType>(2, outer.arguments.front())) return false;
  if (result_dtype(outer) != outer.arguments.front() && !is_identity(inner)) return false;
  const std::optional<BinaryFunction> function = element_wise_function(inner);
  return std::all_of(outer.steps.begin(), outer.steps.end(), [&](const KernelStep& step) {
    const EinSum* const einsum = einsum_of(step);
    const bool keeps_type = step.dtype == outer.arguments.front();
    return keeps_type && (view_of(step) != nullptr || (einsum != nullptr && step_distributes(*einsum, function)));
  });
}

Kernel after(const Kernel& inner, const Kernel& outer) {
  const EinSum* einsum = element_wise(inner);
  invariant(einsum != nullptr, "only element-wise kernels follow another one");
  const std::size_t rank = result_rank(outer, {einsum->output.size()});
  EinSum changed{{}, {}, {}, std::nullopt, {}, einsum->body};
  Access access;
  for (std::size_t d = 0; d < rank; ++d) {
    changed.labels.push_back({fmt::format("d{}", d), Extent::open()});
    changed.output.push_back(d);
    access.indices.push_back({0, {{1, d}}});
  }
  changed.operands.assign(einsum->operands.size(), access);
  Kernel result = inner;
  if (rank != einsum->output.size()) result.steps.front().op = std::move(changed);
  return result;
}

std::string formula(const Kernel& kernel) {
  EinGraph graph;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    graph.vertices.push_back({std::string(1, static_cast<char>('A' + i)), kernel.arguments[i], {}, {}, Input{}, {}});
  }
  if (kernel.steps.empty()) return "Z = A";
  std::string text;
  for (std::size_t i = 0; i < kernel.steps.size(); ++i) {
    const KernelStep& step = kernel.steps[i];
    const bool last = i + 1 == kernel.steps.size();
    Vertex vertex{last ? "Z" : fmt::format("T{}", i + 1), step.dtype, {}, {}, Input{}, {}};
    for (const std::size_t read : step.reads) vertex.inputs.push_back({read});
    std::visit([&](const auto& op) { vertex.op = op; }, step.op);
    graph.vertices.push_back(std::move(vertex));
    text += (text.empty() ? "" : "; ") + formula(graph.vertices.back(), graph);
  }
  return text;
}

}  // namespace einrel
