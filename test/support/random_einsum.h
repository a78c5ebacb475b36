#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "tensor/convert.h"
#include "tensor/tensor.h"

namespace einrel::test {

/// A random EinSum vertex with data for it. Labels of extents 0 to 4 and sometimes one of hundreds; operands of every
/// dtype in permuted, reversed, broadcast, spread and misaligned layouts; windows, padding and label values.
struct RandomEinsum {
  std::uint64_t seed = 0;
  Vertex vertex;
  std::vector<Tensor> operands;
  ScalarBindings scalars;
  /// Only operations that IEEE arithmetic rounds exactly and integers, so that any right way of computing the body
  /// gives the same bits. Otherwise only smooth functions of moderate values, and no specials.
  bool exact = true;
  const EinSum& einsum() const { return std::get<EinSum>(vertex.op); }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// Both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return real() < probability; }
  double real() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  template <class Item, std::size_t count>
  Item one_of(const std::array<Item, count>& items) {
    return items[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(count) - 1))];
  }
  template <class Item>
  void shuffle(std::vector<Item>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

/// One element of a dtype: small numbers, now and then (with `specials`) NaN, infinities, -0 and the ends of the type.
inline double random_number(Random& random, DType dtype, bool specials) {
  if (dtype == DType::boolean) return static_cast<double>(random.between(0, 1));
  const bool special = specials && random.chance(0.1);
  if (is_float(dtype)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (special) return random.one_of(std::array{std::nan(""), infinity, -infinity, -0.0, 0.0, 1e30});
    return random.chance(0.3) ? static_cast<double>(random.between(-3, 3)) : random.real() * 4 - 2;
  }
  return special ? random.one_of(std::array{-0x1p63, 0x1p62, 2147483647.0, -2147483648.0})
                 : static_cast<double>(random.between(-5, 5));
}

/// Random elements under a random layout of their memory.
inline Tensor random_tensor(Random& random, DType dtype, const Shape& shape, bool specials) {
  std::vector<std::size_t> order(shape.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (random.chance(0.5)) random.shuffle(order);
  Strides strides(shape.size(), 0);
  std::int64_t distance = random.chance(0.2) ? 2 : 1;
  std::int64_t first = 0;
  for (const std::size_t d : order) {
    if (random.chance(0.1)) continue;  // every position along d reads the same element
    const bool reversed = random.chance(0.15);
    strides[d] = reversed ? -distance : distance;
    if (reversed && shape[d] > Extent(1)) first += distance * (shape[d].value() - 1);
    distance *= std::max<std::int64_t>(shape[d].value(), 1);
  }
  const auto size = size_of(dtype);
  const auto misalignment = random.chance(0.2) ? std::size_t{1} : std::size_t{0};
  const auto memory =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(distance) * size + misalignment);
  with_stored_type(dtype, [&]<class Stored>() {
    for (std::size_t i = 0; i < static_cast<std::size_t>(distance); ++i) {
      auto value = narrow<Stored>(random_number(random, dtype, specials));
      if constexpr (std::is_same_v<Stored, Bool8>)
        value.bits = static_cast<std::uint8_t>(value.bits * random.between(1, 2));
      std::memcpy(memory->data() + misalignment + i * size, &value, size);
    }
  });
  return Tensor(dtype, shape, strides, memory->data() + misalignment + static_cast<std::size_t>(first) * size, memory);
}

class EinsumGenerator {
 public:
  explicit EinsumGenerator(std::uint64_t seed) : random_(seed) { result_.seed = seed; }

  RandomEinsum generate() && {
    result_.exact = random_.chance(0.7);
    specials_ = result_.exact && random_.chance(0.4);
    make_labels();
    make_output();
    const std::int64_t operand_count = random_.between(result_.exact ? 0 : 1, 3);
    for (std::int64_t i = 0; i < operand_count; ++i) make_operand();
    result_.scalars["s"] = static_cast<double>(random_.between(-3, 3));
    const auto depth = static_cast<int>(random_.between(0, 4));
    if (result_.exact) {
      exact_body(random_.one_of(computed_types), depth);
    } else {
      smooth_body(random_.chance(0.5) ? DType::f32 : DType::f64, std::max(depth, 1));
    }
    finish();
    return std::move(result_);
  }

 private:
  static constexpr std::array computed_types{DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean};

  void make_labels() {
    const std::int64_t count = random_.between(0, 5);
    const std::int64_t large = random_.chance(0.35) ? random_.between(0, 4) : -1;
    std::int64_t positions = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t extent = random_.chance(0.03) ? 0 : random_.between(1, 4);
      if (i == large) extent = random_.one_of(std::array<std::int64_t, 5>{17, 63, 130, 517, 1031});
      if (positions * extent > 12000) extent = 1;
      positions *= std::max<std::int64_t>(extent, 1);
      einsum_.labels.push_back({std::string(1, static_cast<char>('a' + i)), Extent(extent)});
    }
  }

  void make_output() {
    bool empty = false;
    for (std::size_t label = 0; label < einsum_.labels.size(); ++label) {
      if (random_.chance(0.5)) {
        einsum_.output.push_back(label);
      } else {
        einsum_.reduced.push_back(label);
        empty = empty || einsum_.labels[label].extent == Extent(0);
      }
    }
    random_.shuffle(einsum_.output);
    random_.shuffle(einsum_.reduced);
    if (einsum_.reduced.empty() && random_.chance(0.8)) return;
    auto reducer = static_cast<Reducer>(random_.between(0, static_cast<std::int64_t>(Reducer::logsumexp)));
    const bool is_arg = reducer == Reducer::argmax || reducer == Reducer::argmin;
    const bool is_extreme = is_arg || reducer == Reducer::max || reducer == Reducer::min;
    const bool may_jump = is_arg || reducer == Reducer::any || reducer == Reducer::all;
    if ((empty && is_extreme) || (!result_.exact && may_jump)) reducer = Reducer::sum;
    einsum_.reducer = reducer;
  }

  void make_operand() {
    const bool pad = random_.chance(0.3);
    Access access;
    Shape shape;
    const std::int64_t rank = random_.between(0, 4);
    for (std::int64_t d = 0; d < rank; ++d) {
      Index index;
      const double kind = random_.real();
      if (einsum_.labels.empty() || kind < 0.1) {
        index.offset = random_.between(0, 2);
      } else {
        const std::int64_t terms = kind < 0.75 ? 1 : 2;
        for (std::int64_t t = 0; t < terms; ++t) index.terms.push_back(random_term(kind < 0.65));
      }
      const auto [low, high] = range_of(index);
      std::int64_t extent = random_.between(0, 6);
      if (pad && random_.chance(0.5)) {
        index.offset += random_.between(-3, 3);
      } else {
        const std::int64_t shift = random_.chance(0.2) ? 1 : 0;
        index.offset += shift - low;
        extent = high - low + 1 + shift + (random_.chance(0.2) ? random_.between(1, 2) : 0);
      }
      access.indices.push_back(std::move(index));
      shape.emplace_back(extent);
    }
    const DType dtype = random_.one_of(all_dtypes);
    if (pad) access.pad = static_cast<double>(random_.between(-2, 2));
    while (memory_of(shape) > 50000) drop_largest(access, shape);
    result_.operands.push_back(random_tensor(random_, dtype, shape, specials_));
    einsum_.operands.push_back(std::move(access));
  }

  IndexTerm random_term(bool plain) {
    const auto label =
        static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(einsum_.labels.size()) - 1));
    return {plain ? 1 : random_.one_of(std::array<std::int64_t, 5>{-2, -1, 1, 2, 3}), label};
  }

  std::pair<std::int64_t, std::int64_t> range_of(const Index& index) const {
    std::int64_t low = index.offset;
    std::int64_t high = index.offset;
    for (const IndexTerm& term : index.terms) {
      const std::int64_t last = std::max<std::int64_t>(einsum_.labels[term.label].extent.value() - 1, 0);
      (term.coefficient < 0 ? low : high) += term.coefficient * last;
    }
    return {low, high};
  }

  /// The elements that random_tensor allocates at least, also for a tensor without any.
  static std::int64_t memory_of(const Shape& shape) {
    std::int64_t count = 1;
    for (const Extent extent : shape) count *= std::max<std::int64_t>(extent.value(), 1);
    return count;
  }

  static void drop_largest(Access& access, Shape& shape) {
    const auto largest = std::max_element(shape.begin(), shape.end());
    access.indices[static_cast<std::size_t>(largest - shape.begin())] = {};
    *largest = Extent(1);
  }

  void push(DType type, decltype(ScalarStep::op) op) { einsum_.body.steps.push_back({type, std::move(op)}); }

  void leaf(DType type) {
    const double kind = random_.real();
    if (!einsum_.operands.empty() && kind < 0.7) {
      const auto operand =
          static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(einsum_.operands.size()) - 1));
      const DType stored = result_.operands[operand].dtype();
      const DType arrives = stored == DType::bf16 || stored == DType::f16 ? DType::f32 : stored;
      push(arrives, OperandValue{operand});
      if (arrives != type) push(type, Convert{});
    } else if (!einsum_.labels.empty() && kind < 0.8) {
      push(type, LabelValue{static_cast<std::size_t>(
                     random_.between(0, static_cast<std::int64_t>(einsum_.labels.size()) - 1))});
    } else if (kind < 0.9) {
      push(type, ScalarValue{"s"});
    } else if (is_float(type)) {
      push(type, Constant{random_number(random_, type, specials_)});
    } else {
      push(type, Constant{type == DType::boolean ? random_.between(0, 1) : random_.between(-4, 4)});
    }
  }

  void exact_body(DType type, int depth) {
    const double kind = random_.real();
    if (depth == 0) {
      leaf(type);
    } else if (kind < 0.12) {
      exact_body(DType::boolean, depth - 1);
      exact_body(type, depth - 1);
      exact_body(type, depth - 1);
      push(type, ApplyWhere{});
    } else if (kind < 0.25) {
      exact_body(random_.one_of(computed_types), depth - 1);
      push(type, Convert{});
    } else if (type == DType::boolean) {
      const DType compared = random_.one_of(computed_types);
      exact_body(compared, depth - 1);
      exact_body(compared, depth - 1);
      push(type, ApplyBinary{random_.one_of(std::array{BinaryFunction::less, BinaryFunction::less_equal,
                                                       BinaryFunction::greater, BinaryFunction::greater_equal,
                                                       BinaryFunction::equal, BinaryFunction::not_equal})});
    } else if (kind < 0.5) {
      exact_body(type, depth - 1);
      using U = UnaryFunction;
      push(type,
           ApplyUnary{is_float(type)
                          ? random_.one_of(std::array{U::negate, U::abs, U::sqrt, U::sq, U::relu, U::step, U::floor})
                          : random_.one_of(std::array{U::negate, U::abs, U::sq, U::relu, U::step, U::floor})});
    } else {
      exact_body(type, depth - 1);
      exact_body(type, depth - 1);
      using B = BinaryFunction;
      push(type,
           ApplyBinary{random_.one_of(std::array{B::add, B::subtract, B::multiply,
                                                 is_float(type) ? B::divide : B::power, B::maximum, B::minimum})});
    }
  }

  void smooth_body(DType type, int depth) {
    using U = UnaryFunction;
    using B = BinaryFunction;
    if (depth == 0) {
      leaf(type);
      push(type, ApplyUnary{U::sin});  // label values and integers are not small
    } else if (random_.chance(0.6)) {
      smooth_body(type, depth - 1);
      const auto function = random_.one_of(std::array{U::tanh, U::sigmoid, U::sin, U::cos, U::erf, U::gelu, U::silu,
                                                      U::negate, U::exp, U::expm1, U::log1p, U::log, U::rsqrt});
      if (function == U::log1p || function == U::log || function == U::rsqrt) {  // keep the argument at 1 and above
        push(type, ApplyUnary{U::sq});
        push(type, Constant{1.0});
        push(type, ApplyBinary{B::add});
      } else if (function == U::exp || function == U::expm1) {
        push(type, ApplyUnary{U::tanh});
      }
      push(type, ApplyUnary{function});
    } else {
      smooth_body(type, depth - 1);
      smooth_body(type, depth - 1);
      push(type, ApplyBinary{random_.one_of(std::array{B::add, B::subtract, B::multiply})});
    }
  }

  void finish() {
    const DType type = einsum_.body.type();
    result_.vertex.name = "Z";
    result_.vertex.dtype = einsum_.reducer ? reduced_type(*einsum_.reducer, type) : type;
    if (result_.vertex.dtype == DType::f32 && random_.chance(0.2)) {
      result_.vertex.dtype = random_.chance(0.5) ? DType::bf16 : DType::f16;
    }
    for (const std::size_t label : einsum_.output) result_.vertex.bound.push_back(einsum_.labels[label].extent);
    result_.vertex.op = einsum_;
  }

  Random random_;
  RandomEinsum result_;
  EinSum einsum_;
  bool specials_ = false;
};

inline RandomEinsum random_einsum(std::uint64_t seed) { return EinsumGenerator(seed).generate(); }

/// The vertex as the output of a graph whose inputs are its operands.
inline EinGraph graph_of(const RandomEinsum& random) {
  EinGraph graph;
  Vertex vertex = random.vertex;
  for (std::size_t i = 0; i < random.operands.size(); ++i) {
    const Tensor& operand = random.operands[i];
    graph.vertices.push_back({"X" + std::to_string(i), operand.dtype(), operand.shape(), {}, Input{}, {}});
    vertex.inputs.push_back({i});
  }
  graph.vertices.push_back(std::move(vertex));
  graph.outputs.push_back({random.operands.size()});
  graph.scalars.push_back({"s", std::nullopt, std::nullopt});
  return graph;
}

namespace describing {

inline std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ",") + part;
  return all;
}

inline std::string index_text(const EinSum& einsum, const Index& index) {
  std::ostringstream text;
  for (const IndexTerm& term : index.terms) {
    text << (term.coefficient < 0 ? "-" : text.tellp() > 0 ? "+" : "");
    if (std::abs(term.coefficient) != 1) text << std::abs(term.coefficient) << "*";
    text << einsum.labels[term.label].name;
  }
  if (index.offset != 0 || index.terms.empty()) text << (index.offset < 0 ? "" : "+") << index.offset;
  return text.str();
}

inline std::string access_text(const EinSum& einsum, std::size_t operand) {
  std::vector<std::string> indices;
  for (const Index& index : einsum.operands[operand].indices) indices.push_back(index_text(einsum, index));
  const std::string read = "X" + std::to_string(operand) + "[" + join(indices) + "]";
  const std::optional<double> pad = einsum.operands[operand].pad;
  return pad ? "pad(" + read + ", " + std::to_string(*pad) + ")" : read;
}

inline std::string body_text(const EinSum& einsum) {
  std::vector<std::string> stack;
  const auto pop = [&stack] {
    std::string top = std::move(stack.back());
    stack.pop_back();
    return top;
  };
  for (const ScalarStep& step : einsum.body.steps) {
    std::string text;
    if (const auto* operand = std::get_if<OperandValue>(&step.op)) text = access_text(einsum, operand->operand);
    if (const auto* label = std::get_if<LabelValue>(&step.op)) text = einsum.labels[label->label].name;
    if (const auto* scalar = std::get_if<ScalarValue>(&step.op)) text = scalar->name;
    if (const auto* constant = std::get_if<Constant>(&step.op)) {
      text = std::visit([](auto value) { return std::to_string(value); }, constant->value);
    }
    if (const auto* unary = std::get_if<ApplyUnary>(&step.op)) {
      text = std::string(name_of(unary->function)) + "(" + pop() + ")";
    }
    if (std::holds_alternative<Convert>(step.op)) text = "(" + pop() + ")";
    if (const auto* binary = std::get_if<ApplyBinary>(&step.op)) {
      const std::string b = pop();
      text = "(" + pop() + " " + std::string(name_of(binary->function)) + " " + b + ")";
    }
    if (std::holds_alternative<ApplyWhere>(step.op)) {
      const std::string b = pop();
      const std::string a = pop();
      text = "where(" + pop() + ", " + a + ", " + b + ")";
    }
    stack.push_back(text + ":" + std::string(name_of(step.type)));
  }
  return stack.back();
}

}  // namespace describing

/// The vertex as a statement, with the extents and layouts of everything: enough to write it down as a test.
inline std::string describe(const RandomEinsum& random) {
  const EinSum& einsum = random.einsum();
  const auto names = [&](const std::vector<std::size_t>& labels) {
    std::vector<std::string> parts;
    for (const std::size_t label : labels) parts.push_back(einsum.labels[label].name);
    return describing::join(parts);
  };
  std::ostringstream text;
  text << "seed " << random.seed << ": Z[" << names(einsum.output) << "] : " << name_of(random.vertex.dtype) << " = ";
  if (einsum.reducer) text << name_of(*einsum.reducer) << "[" << names(einsum.reduced) << "] ";
  text << describing::body_text(einsum) << "\n";
  for (const Label& label : einsum.labels) text << "  " << label.name << "=" << label.extent.value();
  for (std::size_t i = 0; i < random.operands.size(); ++i) {
    const Tensor& operand = random.operands[i];
    text << "\n  X" << i << " : " << name_of(operand.dtype()) << " shape " << to_string(operand.shape()) << " strides";
    for (const std::int64_t stride : operand.strides()) text << " " << stride;
    text << (reinterpret_cast<std::uintptr_t>(operand.data()) % size_of(operand.dtype()) == 0 ? "" : " misaligned");
  }
  text << "\n  s=" << random.scalars.at("s") << "\n";
  return text.str();
}

}  // namespace einrel::test
