#include "einsum/passes/factor_split.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "einsum/expr/scalar_value.h"
#include "einsum/graph/vertex_splitter.h"

namespace einrel {
namespace {

/// Each value of a split-off tensor must take part in at least so many joins: it is written and read once more.
constexpr double least_uses = 4;
/// Fewer joins than this take less time than another vertex does.
constexpr double least_joins = 1 << 14;
/// Split-off tensors may be larger than all that the vertex reads and writes by so much, as (T[b]==v) for few labels v
/// is, up to a gigabyte; beyond that only as large. A product of ten times the memory that the program needs as it is
/// written could fail where the slow way would not.
constexpr double most_growth = 16;
constexpr double most_grown_bytes = 1 << 30;

/// A subexpression of a body: the steps [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A body as a join of two values.
struct JoinBody {
  ScalarExpr a;
  ScalarExpr b;
  std::vector<ScalarStep> join;  ///< what follows a and b; with a doubled pair, (a-b)*(a-b), their difference squared
};

const BinaryFunction* binary_at(const ScalarExpr& body, std::size_t root) {
  const auto* const binary = std::get_if<ApplyBinary>(&body.steps[root].op);
  return binary == nullptr ? nullptr : &binary->function;
}

bool is_binary(const ScalarExpr& body, std::size_t root, BinaryFunction function) {
  const BinaryFunction* const found = binary_at(body, root);
  return found != nullptr && *found == function;
}

bool is_unary(const ScalarExpr& body, std::size_t root, UnaryFunction function) {
  const auto* const unary = std::get_if<ApplyUnary>(&body.steps[root].op);
  return unary != nullptr && unary->function == function;
}

ScalarExpr part_of(const ScalarExpr& body, Range range) {
  return {{body.steps.begin() + static_cast<std::ptrdiff_t>(range.begin),
           body.steps.begin() + static_cast<std::ptrdiff_t>(range.end)}};
}

bool is_number(const ScalarExpr& expr, double value) {
  const auto* const constant = std::get_if<Constant>(&expr.steps.back().op);
  return constant != nullptr && std::visit([&](auto x) { return static_cast<double>(x) == value; }, constant->value);
}

/// Takes bodies apart.
class BodyReader {
 public:
  explicit BodyReader(const ScalarExpr& body) : body_(body), starts_(subexpression_starts(body)) {}

  /// The two arguments of a binary step.
  std::pair<Range, Range> arguments(std::size_t root) const {
    const std::size_t middle = starts_[root - 1];
    return {{starts_[middle - 1], middle}, {middle, root}};
  }

  std::optional<JoinBody> join_at(std::size_t root) const {
    const DType type = body_.steps[root].type;
    if (std::optional<JoinBody> difference = squared_difference(root)) return difference;
    const BinaryFunction* const function = binary_at(body_, root);
    if (function == nullptr) return std::nullopt;
    if (*function == BinaryFunction::subtract) {  // x - y = x + -y, to the bit
      JoinBody join = of_arguments(root, {{type, ApplyBinary{BinaryFunction::add}}});
      join.b.steps.push_back({type, ApplyUnary{UnaryFunction::negate}});
      return join;
    }
    if (*function == BinaryFunction::multiply || *function == BinaryFunction::add ||
        *function == BinaryFunction::maximum || *function == BinaryFunction::minimum) {
      return of_arguments(root, {body_.steps[root]});
    }
    return std::nullopt;
  }

 private:
  JoinBody of_arguments(std::size_t root, std::vector<ScalarStep> join) const {
    const auto [a, b] = arguments(root);
    return {part_of(body_, a), part_of(body_, b), std::move(join)};
  }

  /// sq(x-y), abs(x-y), (x-y)**2 or (x-y)*(x-y).
  std::optional<JoinBody> squared_difference(std::size_t root) const {
    const auto of_difference = [&](std::size_t difference, const ScalarStep& last) -> std::optional<JoinBody> {
      if (!is_binary(body_, difference, BinaryFunction::subtract)) return std::nullopt;
      return of_arguments(difference, {body_.steps[difference], last});
    };
    if (is_unary(body_, root, UnaryFunction::sq) || is_unary(body_, root, UnaryFunction::abs)) {
      return of_difference(root - 1, body_.steps[root]);
    }
    const BinaryFunction* const function = binary_at(body_, root);
    if (function == nullptr) return std::nullopt;
    const ScalarStep square{body_.steps[root].type, ApplyUnary{UnaryFunction::sq}};
    const auto [a, b] = arguments(root);
    const bool is_square = (*function == BinaryFunction::power && is_number(part_of(body_, b), 2)) ||
                           (*function == BinaryFunction::multiply && part_of(body_, a) == part_of(body_, b));
    return is_square ? of_difference(a.end - 1, square) : std::nullopt;
  }

  const ScalarExpr& body_;
  std::vector<std::size_t> starts_;
};

/// A plain read, perhaps converted on the way: what kernels take as an operand.
bool is_read(const ScalarExpr& expr) {
  const bool is_converted = expr.steps.size() == 2 && std::holds_alternative<Convert>(expr.steps[1].op);
  return (expr.steps.size() == 1 || is_converted) && std::holds_alternative<OperandValue>(expr.steps[0].op);
}

/// The one operand that an expression is a function of, without labels' values; nothing if it is of several.
std::optional<std::size_t> only_operand(const ScalarExpr& expr) {
  std::optional<std::size_t> only;
  for (const ScalarStep& step : expr.steps) {
    if (std::holds_alternative<LabelValue>(step.op)) return std::nullopt;
    const auto* const use = std::get_if<OperandValue>(&step.op);
    if (use == nullptr) continue;
    if (only && *only != use->operand) return std::nullopt;
    only = use->operand;
  }
  return only;
}

/// The value of an expression's only operand where that is padded.
struct PadOnly {
  double pad;
  Number operator()(const OperandValue&) const { return pad; }
  Number operator()(const LabelValue&) const { throw Bug("a label in a factor of one operand"); }
  Number operator()(const ScalarValue&) const { throw Bug("a scalar whose value is not known yet"); }
};

/// f(pad) for a float function f of an operand of floats that is padded; nothing when it depends on the program's
/// scalars.
std::optional<double> mapped_pad(const ScalarExpr& expr, double pad) {
  for (const ScalarStep& step : expr.steps) {
    if (!is_float(step.type) || std::holds_alternative<ScalarValue>(step.op)) return std::nullopt;
  }
  return std::get<double>(evaluate(expr, PadOnly{pad}));
}

/// Splits the values of one vertex.
class FactorSplit {
 public:
  FactorSplit(VertexSplitter splitter, const EinGraph& graph)
      : splitter_(std::move(splitter)), einsum_(splitter_.einsum()), graph_(graph) {}

  /// True when it appended the vertices that replace the original one.
  bool run() {
    if (!einsum_.reducer || einsum_.reduced.empty() || splitter_.has_no_bindings() || joins() < least_joins)
      return false;
    const DType type = einsum_.body.type();
    reducer_ = *einsum_.reducer;
    if (!is_extreme() && reducer_ != Reducer::sum && reducer_ != Reducer::mean) return false;
    if (!is_integer(type) && !is_float(type)) return false;
    const BodyReader reader(einsum_.body);
    const std::size_t last = einsum_.body.steps.size() - 1;
    std::optional<JoinBody> join = reader.join_at(below_common_steps(reader, last));
    if (!join) {
      after_.clear();
      reducer_ = *einsum_.reducer;
      join = reader.join_at(last);
    }
    if (!join) return false;
    if (kernels_apply_after()) {
      join->join.insert(join->join.end(), after_.begin(), after_.end());
      after_.clear();
    }
    const bool splits = !is_read(join->a) || !is_read(join->b);
    if ((!splits && after_.empty()) || !pays(*join)) return false;
    append(*join);
    return splitter_.keep_what_fits();
  }

 private:
  bool is_extreme() const { return reducer_ == Reducer::max || reducer_ == Reducer::min; }
  double joins() const { return splitter_.elements(splitter_.all_labels()); }

  /// Leaves in `after_` what the result may go through as well as all values: the root below those steps.
  std::size_t below_common_steps(const BodyReader& reader, std::size_t root) {
    const DType type = einsum_.body.type();
    const bool keeps_type = type == reduced_type(reducer_, type);
    for (;;) {
      std::optional<std::size_t> below;
      if (is_unary(einsum_.body, root, UnaryFunction::negate) && keeps_type && (is_float(type) || !is_extreme())) {
        if (is_extreme()) turn_round();
        apply_after({}, einsum_.body.steps[root]);
        below = root - 1;
      } else if (binary_at(einsum_.body, root) != nullptr && keeps_type) {
        below = is_extreme() ? below_monotone_step(reader, root) : below_scale(reader, root);
      }
      if (!below) return root;
      root = *below;
    }
  }

  /// Below a factor or divisor without reduced labels, of a sum or mean.
  std::optional<std::size_t> below_scale(const BodyReader& reader, std::size_t root) {
    const BinaryFunction function = *binary_at(einsum_.body, root);
    const bool divides = function == BinaryFunction::divide && is_float(einsum_.body.type());
    if (function != BinaryFunction::multiply && !divides) return std::nullopt;
    const auto [a, b] = reader.arguments(root);
    const bool is_first = function == BinaryFunction::multiply && is_alike(a);
    if (!is_first && !is_alike(b)) return std::nullopt;
    apply_after(part_of(einsum_.body, is_first ? a : b).steps, einsum_.body.steps[root]);
    return (is_first ? b : a).end - 1;
  }

  /// Whether a value is the same for all that makes up one element of the result.
  bool is_alike(Range range) const {
    const LabelSet labels = splitter_.labels_of(part_of(einsum_.body, range));
    return std::none_of(einsum_.reduced.begin(), einsum_.reduced.end(), [&](std::size_t l) { return labels[l]; });
  }

  /// Below a number that is added, subtracted, multiplied or divided by, of a maximum or minimum of floats.
  std::optional<std::size_t> below_monotone_step(const BodyReader& reader, std::size_t root) {
    const ScalarExpr& body = einsum_.body;
    const ScalarStep& step = body.steps[root];
    const BinaryFunction function = *binary_at(body, root);
    const auto [a, b] = reader.arguments(root);
    const auto number = [&](Range range) {
      const auto* const constant = std::get_if<Constant>(&body.steps[range.begin].op);
      return range.end - range.begin == 1 && constant != nullptr ? std::get_if<double>(&constant->value) : nullptr;
    };
    const bool is_second = number(b) != nullptr;
    const double* const given = is_second ? number(b) : number(a);
    if (!is_float(step.type) || given == nullptr) return std::nullopt;
    const double value = step.type == DType::f64 ? *given : static_cast<double>(static_cast<float>(*given));
    if (!std::isfinite(value)) return std::nullopt;
    const ScalarStep constant = body.steps[is_second ? b.begin : a.begin];
    const std::size_t below = (is_second ? a : b).end - 1;
    if (function == BinaryFunction::subtract && !is_second) {  // c - x = -x + c, to the bit
      turn_round();
      apply_after({constant}, {step.type, ApplyBinary{BinaryFunction::add}});
      apply_after({}, {step.type, ApplyUnary{UnaryFunction::negate}});
      return below;
    }
    const bool scales = function == BinaryFunction::multiply || (function == BinaryFunction::divide && is_second);
    const bool shifts = function == BinaryFunction::add || function == BinaryFunction::subtract;
    if (!shifts && (!scales || value == 0)) return std::nullopt;
    if (scales && value < 0) turn_round();
    apply_after({constant}, step);
    return below;
  }

  /// The largest of what is negated is the smallest, negated.
  void turn_round() { reducer_ = reducer_ == Reducer::max ? Reducer::min : Reducer::max; }

  /// `values` and a step that takes them and the result, before what is applied to it already. The result comes first
  /// wherever it stood: sums and products of two numbers do not depend on their order.
  void apply_after(std::vector<ScalarStep> values, const ScalarStep& step) {
    values.push_back(step);
    after_.insert(after_.begin(), values.begin(), values.end());
  }

  /// Kernels multiply sums of floats by one number and a sign, at no cost.
  bool kernels_apply_after() const {
    if (is_extreme() || !is_float(einsum_.body.type())) return false;
    std::size_t numbers = 0;
    for (const ScalarStep& step : after_) {
      const auto* const unary = std::get_if<ApplyUnary>(&step.op);
      const auto* const binary = std::get_if<ApplyBinary>(&step.op);
      if (std::holds_alternative<Constant>(step.op) || std::holds_alternative<ScalarValue>(step.op))
        ++numbers;
      else if ((unary == nullptr || unary->function != UnaryFunction::negate) &&
               (binary == nullptr || binary->function != BinaryFunction::multiply))
        return false;
    }
    return numbers <= 1;
  }

  /// Whether what is split off is worth its bytes.
  bool pays(const JoinBody& join) const {
    double split_bytes = 0;
    for (const ScalarExpr* value : {&join.a, &join.b}) {
      const LabelSet labels = splitter_.labels_of(*value);
      if (std::find(labels.begin(), labels.end(), true) == labels.end()) return false;  // no join, but a map of one
      if (is_read(*value)) continue;
      const ScalarExpr narrow = narrowed(*value);
      const double elements = source_of(narrow) ? source_elements(*source_of(narrow)) : splitter_.elements(labels);
      if (elements * least_uses > joins()) return false;
      split_bytes += elements * static_cast<double>(size_of(narrow.type()));
    }
    if (!after_.empty() && splitter_.elements(splitter_.output_labels()) * least_uses > joins()) return false;
    const double bytes = bytes_of_all();
    return split_bytes <= std::max(bytes, std::min(most_growth * bytes, most_grown_bytes));
  }

  /// What the vertex reads and writes.
  double bytes_of_all() const {
    double bytes = 0;
    const auto add = [&](const Vertex& vertex) {
      double own = static_cast<double>(size_of(vertex.dtype));
      for (const Extent extent : vertex.bound) own *= static_cast<double>(extent.value());
      bytes += own;
    };
    for (const VertexId input : splitter_.vertex().inputs) add(graph_[input]);
    add(splitter_.vertex());
    return bytes;
  }

  double source_elements(std::size_t operand) const {
    double elements = 1;
    for (const Extent extent : graph_[splitter_.operand(operand).first].bound) {
      elements *= static_cast<double>(extent.value());
    }
    return elements;
  }

  /// The operand whose elements are mapped, one by one, rather than what the labels of the value read of it: windows
  /// read an element many times.
  std::optional<std::size_t> source_of(const ScalarExpr& value) const {
    const std::optional<std::size_t> operand = only_operand(value);
    if (!operand || source_elements(*operand) > splitter_.elements(splitter_.labels_of(value))) return std::nullopt;
    const std::optional<double> pad = splitter_.operand(*operand).second.pad;
    return pad && !mapped_pad(value, *pad) ? std::nullopt : operand;
  }

  /// Without the conversion at its end if that makes it wider: kernels convert what they read.
  static ScalarExpr narrowed(const ScalarExpr& value) {
    const std::size_t last = value.steps.size() - 1;
    const bool widens = std::holds_alternative<Convert>(value.steps[last].op) &&
                        size_of(value.steps[last - 1].type) < size_of(value.steps[last].type);
    if (!widens) return value;
    return {{value.steps.begin(), value.steps.end() - 1}};
  }

  ScalarExpr split(const ScalarExpr& value) {
    if (is_read(value)) return value;
    const ScalarExpr narrow = narrowed(value);
    const LabelSet labels = splitter_.labels_of(narrow);
    ScalarExpr read;
    if (const std::optional<std::size_t> source = source_of(narrow)) {
      const std::optional<double> pad = splitter_.operand(*source).second.pad;
      read = splitter_.mapped_operand(narrow, *source, pad ? mapped_pad(narrow, *pad) : std::nullopt).expr;
    } else {
      read = splitter_.intermediate(narrow, labels, labels).expr;
    }
    if (narrow.steps.size() < value.steps.size()) read.steps.push_back(value.steps.back());
    return read;
  }

  void append(const JoinBody& join) {
    ScalarExpr body = split(join.a);
    const ScalarExpr b = split(join.b);
    body.steps.insert(body.steps.end(), b.steps.begin(), b.steps.end());
    body.steps.insert(body.steps.end(), join.join.begin(), join.join.end());
    if (after_.empty()) return splitter_.finish(body, splitter_.all_labels(), reducer_);
    const LabelSet kept = splitter_.output_labels();
    ScalarExpr result = splitter_.intermediate(body, splitter_.all_labels(), kept, reducer_).expr;
    result.steps.insert(result.steps.end(), after_.begin(), after_.end());
    splitter_.finish(result, kept, std::nullopt);
  }

  VertexSplitter splitter_;
  const EinSum& einsum_;
  const EinGraph& graph_;
  Reducer reducer_ = Reducer::sum;  ///< of the joins
  std::vector<ScalarStep> after_;   ///< what the result goes through
};

}  // namespace

EinGraph split_factors(const EinGraph& graph) {
  return replace_vertices(graph, [](const Vertex&, VertexSplitter splitter, const EinGraph& result) {
    return FactorSplit(std::move(splitter), result).run();
  });
}

}  // namespace einrel
