#include "einsum/graph/vertex_parameters.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

struct ParameterOf {
  bool is_seed;
  std::optional<VertexParameter> operator()(const ScalarValue& scalar) const { return scalar; }
  std::optional<VertexParameter> operator()(const Constant& number) const {
    return is_seed ? std::optional<VertexParameter>(number) : std::nullopt;
  }
  std::optional<VertexParameter> operator()(const ApplyRandom& random) const { return RandomStream{random.stream}; }
  template <class Other>
  std::optional<VertexParameter> operator()(const Other& /*op*/) const {
    return std::nullopt;
  }
};

/// Per step the parameter that stands there, if any.
std::vector<std::optional<VertexParameter>> parameters_of_steps(const ScalarExpr& body) {
  std::vector<bool> is_seed(body.steps.size(), false);
  const std::vector<std::vector<std::size_t>> arguments = arguments_of_steps(body);
  for (std::size_t s = 0; s < body.steps.size(); ++s) {
    if (std::holds_alternative<ApplyRandom>(body.steps[s].op)) is_seed[arguments[s].front()] = true;
  }
  std::vector<std::optional<VertexParameter>> found;
  for (std::size_t s = 0; s < body.steps.size(); ++s)
    found.push_back(std::visit(ParameterOf{is_seed[s]}, body.steps[s].op));
  return found;
}

struct PutParameter {
  ScalarStep& step;
  void operator()(const RandomStream& stream) const { std::get<ApplyRandom>(step.op).stream = stream.number; }
  template <class Value>
  void operator()(const Value& value) const {
    step.op = value;
  }
};

struct EmptyOf {
  template <class Parameter>
  VertexParameter operator()(const Parameter& /*parameter*/) const {
    return Parameter{};
  }
};

}  // namespace

std::vector<VertexParameter> parameters_of(const Vertex& vertex) {
  std::vector<VertexParameter> parameters;
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return parameters;
  for (std::optional<VertexParameter>& parameter : parameters_of_steps(einsum->body)) {
    if (parameter) parameters.push_back(*std::move(parameter));
  }
  return parameters;
}

Vertex with_parameters(Vertex vertex, const std::vector<VertexParameter>& parameters) {
  EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return vertex;
  const std::vector<std::optional<VertexParameter>> places = parameters_of_steps(einsum->body);
  const auto count = std::count_if(places.begin(), places.end(), [](const auto& place) { return place.has_value(); });
  invariant(count == std::ssize(parameters), "as many parameters as places");
  auto next = parameters.begin();
  for (std::size_t s = 0; s < places.size(); ++s) {
    if (places[s]) std::visit(PutParameter{einsum->body.steps[s]}, *next++);
  }
  return vertex;
}

Vertex without_parameters(Vertex vertex) {
  std::vector<VertexParameter> parameters = parameters_of(vertex);
  for (VertexParameter& parameter : parameters) parameter = std::visit(EmptyOf{}, parameter);
  vertex = with_parameters(std::move(vertex), parameters);
  if (EinSum* const einsum = einsum_of(vertex)) {
    for (ScalarStep& step : einsum->body.steps) {
      if (auto* const check = std::get_if<CheckRange>(&step.op)) check->tensor = check->indexed = "";
    }
  }
  return vertex;
}

}  // namespace einrel
