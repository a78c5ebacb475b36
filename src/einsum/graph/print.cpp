#include "einsum/graph/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "einsum/expr/precedence.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

struct Text {
  std::string text;
  Precedence precedence = Precedence::primary;
};

std::string wrapped(Text value, Precedence least) {
  return value.precedence < least ? "(" + std::move(value.text) + ")" : std::move(value.text);
}

/// The shortest text that reads back as the same number of that type.
std::string text_of(double value, DType type) {
  return type == DType::f32 && std::isfinite(value) ? fmt::format("{}", static_cast<float>(value)) : number_text(value);
}

/// A vertex's body has no reductions.
Precedence tighter(Precedence precedence) {
  const int step = precedence == Precedence::sum ? 2 : 1;
  return static_cast<Precedence>(static_cast<int>(precedence) + step);
}

/// Turns steps into text with a stack of texts.
class BodyPrinter {
 public:
  BodyPrinter(const Vertex& vertex, const EinSum& einsum, const EinGraph& graph)
      : vertex_(vertex), einsum_(einsum), graph_(graph) {}

  Text run() {
    for (const ScalarStep& step : einsum_.body.steps) {
      std::visit([&](const auto& op) { print(op, step); }, step.op);
    }
    return pop();
  }

 private:
  Text pop() {
    Text text = std::move(stack_.back());
    stack_.pop_back();
    return text;
  }
  void push(std::string text, Precedence precedence = Precedence::primary) {
    stack_.push_back({std::move(text), precedence});
  }

  void print(const OperandValue& value, const ScalarStep&) {
    push(access_text(einsum_.operands[value.operand], graph_[vertex_.inputs[value.operand]].name, einsum_.labels));
  }
  void print(const Constant& constant, const ScalarStep& step) {
    std::string text;
    if (const auto* integer = std::get_if<std::int64_t>(&constant.value)) {
      text = std::to_string(*integer);
    } else {
      text = text_of(std::get<double>(constant.value), step.type);
    }
    push(text, text.front() == '-' ? Precedence::sign : Precedence::primary);
  }
  void print(const LabelValue& value, const ScalarStep&) { push(einsum_.labels[value.label].name); }
  void print(const ScalarValue& value, const ScalarStep&) { push(value.name); }
  void print(const ApplyUnary& unary, const ScalarStep&) {
    Text x = pop();
    if (unary.function == UnaryFunction::negate)
      push("-" + wrapped(std::move(x), Precedence::sign), Precedence::sign);
    else
      push(fmt::format("{}({})", name_of(unary.function), x.text));
  }
  void print(const ApplyBinary& binary, const ScalarStep&) {
    Text b = pop();
    Text a = pop();
    const Precedence precedence = precedence_of(binary.function);
    if (precedence == Precedence::primary) {
      push(fmt::format("{}({}, {})", name_of(binary.function), a.text, b.text));
      return;
    }
    const bool right_associative = binary.function == BinaryFunction::power;
    std::string text = wrapped(
        std::move(a), right_associative || precedence == Precedence::comparison ? tighter(precedence) : precedence);
    const std::string sign(name_of(binary.function));
    text += right_associative ? sign : " " + sign + " ";
    text += wrapped(std::move(b), right_associative ? Precedence::sign : tighter(precedence));
    push(std::move(text), precedence);
  }
  void print(const ApplyWhere&, const ScalarStep&) {
    const Text b = pop();
    const Text a = pop();
    const Text c = pop();
    push(fmt::format("where({}, {}, {})", c.text, a.text, b.text));
  }
  void print(const Convert&, const ScalarStep& step) { push(fmt::format("{}({})", name_of(step.type), pop().text)); }
  void print(const ApplyRandom& random, const ScalarStep&) {
    const Text iteration = pop();
    const Text position = pop();
    const Text seed = pop();
    push(fmt::format("{}_at({}, {}, {}, {})", name_of(random.function), seed.text, position.text, iteration.text,
                     random.stream));
  }
  void print(const CheckRange& check, const ScalarStep&) {
    const Text position = pop();
    const Text value = pop();
    std::vector<std::int64_t> shape;
    for (const Extent extent : check.shape) shape.push_back(extent.value());
    push(fmt::format("in_range_at({}, {}, {}[{}], {}[{}])", value.text, position.text, check.tensor,
                     fmt::join(shape, ","), check.indexed, check.extent));
  }
  void print(const Round& round, const ScalarStep&) { push(fmt::format("{}({})", name_of(round.to), pop().text)); }

  const Vertex& vertex_;
  const EinSum& einsum_;
  const EinGraph& graph_;
  std::vector<Text> stack_;
};

std::string label_names(const std::vector<std::size_t>& positions, const std::vector<Label>& labels) {
  std::vector<std::string> names;
  for (const std::size_t position : positions) names.push_back(labels[position].name);
  return fmt::format("{}", fmt::join(names, ","));
}

std::string groups_text(const std::vector<std::vector<std::size_t>>& groups, const std::vector<Label>& labels) {
  std::vector<std::string> texts;
  for (const std::vector<std::size_t>& group : groups) {
    std::vector<std::string> names;
    for (const std::size_t label : group) names.push_back(labels[label].name);
    const std::string joined = fmt::format("{}", fmt::join(names, " "));
    texts.push_back(names.empty() ? "1" : names.size() == 1 ? joined : "(" + joined + ")");
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

/// The statement that a vertex is.
struct VertexFormula {
  const Vertex& vertex;
  const EinGraph& graph;

  std::string operator()(const Input&) const {
    std::vector<std::int64_t> extents;
    for (const Extent extent : vertex.bound) extents.push_back(extent.value());
    const auto is_it = [&](const State& state) { return graph[state.now].name == vertex.name; };
    const bool is_state = std::any_of(graph.steps.states.begin(), graph.steps.states.end(), is_it);
    return fmt::format("{} {}[{}] : {}", is_state ? "state" : "input", vertex.name, fmt::join(extents, ","),
                       name_of(vertex.dtype));
  }
  std::string operator()(const EinSum& einsum) const {
    Text body = BodyPrinter(vertex, einsum, graph).run();
    std::string left = fmt::format("{}[{}] = ", vertex.name, label_names(einsum.output, einsum.labels));
    if (!einsum.reducer) return left + body.text;
    return fmt::format("{}{}[{}] {}", left, name_of(*einsum.reducer), label_names(einsum.reduced, einsum.labels),
                       wrapped(std::move(body), Precedence::product));
  }
  std::string operator()(const View& view) const {
    return fmt::format("{}[{}] = view {}[{}]", vertex.name, groups_text(view.to, view.labels),
                       graph[vertex.inputs[0]].name, groups_text(view.from, view.labels));
  }
  std::string operator()(const Opaque& opaque) const {
    std::vector<std::size_t> matrix;
    for (std::size_t l = batch_labels(opaque); l < opaque.labels.size(); ++l) matrix.push_back(l);
    return fmt::format("{}[{}] = {}[{}]({}[{}])", vertex.name, label_names(dimensions_of(opaque), opaque.labels),
                       name_of(result_of(opaque)), label_names(matrix, opaque.labels), graph[vertex.inputs[0]].name,
                       label_names(opaque.operand, opaque.labels));
  }
};

}  // namespace

std::string index_text(const Index& index, const std::vector<Label>& labels) {
  std::string text;
  for (const IndexTerm& term : index.terms) {
    const std::int64_t size = std::abs(term.coefficient);
    text += term.coefficient < 0 ? "-" : text.empty() ? "" : "+";
    text += (size == 1 ? "" : fmt::format("{}*", size)) + labels[term.label].name;
  }
  if (text.empty()) return std::to_string(index.offset);
  return index.offset == 0 ? text : fmt::format("{}{:+}", text, index.offset);
}

std::string access_text(const Access& access, const std::string& tensor, const std::vector<Label>& labels) {
  std::vector<std::string> indices;
  for (const Index& index : access.indices) indices.push_back(index_text(index, labels));
  const std::string read = fmt::format("{}[{}]", tensor, fmt::join(indices, ","));
  return access.pad ? fmt::format("pad({}, {})", read, number_text(*access.pad)) : read;
}

std::string formula(const Vertex& vertex, const EinGraph& graph) {
  return std::visit(VertexFormula{vertex, graph}, vertex.op);
}

}  // namespace einrel
