#include <fmt/format.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "einsum/check_state.h"
#include "einsum/vertex_facts.h"

namespace einrel::checking {
namespace {

/// Collects numbers as bytes.
class Key {
 public:
  template <class Number>
  void put(Number number) {
    static_assert(std::is_trivially_copyable_v<Number>);
    std::array<char, sizeof(Number)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof(Number));
    text_.append(bytes.data(), bytes.size());
  }
  void put(const std::string& text) {
    put(text.size());
    text_ += text;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void put_step(Key& key, const ScalarStep& step) {
  struct Visitor {
    Key& key;
    void operator()(const OperandValue& v) const { key.put(v.operand); }
    void operator()(const Constant& v) const {
      std::visit([this](auto number) { key.put(number); }, v.value);
    }
    void operator()(const LabelValue& v) const { key.put(v.label); }
    void operator()(const ScalarValue& v) const { key.put(v.name); }
    void operator()(const ApplyUnary& v) const { key.put(v.function); }
    void operator()(const ApplyBinary& v) const { key.put(v.function); }
    void operator()(const ApplyWhere&) const {}
    void operator()(const Convert&) const {}
    void operator()(const Round& v) const { key.put(v.to); }
  };
  key.put(step.type);
  key.put(static_cast<std::uint8_t>(step.op.index()));
  std::visit(Visitor{key}, step.op);
}

/// Everything that determines the values of a vertex, without names; "" where none is made twice.
struct KeyOf {
  const Vertex& vertex;

  std::string operator()(const Input&) const { return ""; }
  std::string operator()(const View&) const { return ""; }

  std::string operator()(const Opaque& opaque) const {
    Key key;
    key.put(vertex.op.index());
    key.put(opaque.function);
    key.put(vertex.inputs.front().index);
    for (const std::size_t label : opaque.operand) key.put(label);
    return key.take();
  }

  std::string operator()(const EinSum& einsum) const {
    Key key;
    key.put(vertex.op.index());
    key.put(vertex.dtype);
    key.put(einsum.output.size());
    key.put(einsum.labels.size());
    key.put(einsum.operands.size());
    for (const Label& label : einsum.labels) key.put(label.extent.value());
    key.put(static_cast<std::int8_t>(einsum.reducer ? static_cast<int>(*einsum.reducer) : -1));
    for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
      const Access& access = einsum.operands[i];
      key.put(vertex.inputs[i].index);
      key.put(access.pad.has_value());
      key.put(access.pad.value_or(0));
      for (const Index& index : access.indices) {
        key.put(index.offset);
        key.put(index.terms.size());
        for (const IndexTerm& term : index.terms) {
          key.put(term.coefficient);
          key.put(term.label);
        }
      }
    }
    for (const ScalarStep& step : einsum.body.steps) put_step(key, step);
    return key.take();
  }
};

std::string key_of(const Vertex& vertex) { return std::visit(KeyOf{vertex}, vertex.op); }

}  // namespace

VertexId GraphBuilder::add(Vertex vertex) {
  const VertexId id{graph_.vertices.size()};
  const std::string key = key_of(vertex);
  if (!key.empty()) by_key_.insert({key, id});
  graph_.vertices.push_back(std::move(vertex));
  return id;
}

VertexId GraphBuilder::find_or_add(Vertex vertex, const std::string& base, const std::set<std::string>& taken) {
  const VertexId next{graph_.vertices.size()};
  const auto [found, is_new] = by_key_.insert({key_of(vertex), next});
  if (!is_new) return found->second;
  do {
    vertex.name = fmt::format("{}_{}", base, ++last_number_[base]);
  } while (taken.count(vertex.name) != 0 || !given_.insert(vertex.name).second);
  graph_.vertices.push_back(std::move(vertex));
  return next;
}

}  // namespace einrel::checking
