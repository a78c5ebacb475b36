#include "tra/named_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "base/suggest.h"
#include "einsum/front/build/formula.h"

namespace einrel {
namespace {

using build::apply;
using build::Formula;
using build::number;
using build::whole_number;
using Labels = std::vector<std::string>;

/// An argument as bodies read it: at the labels that all arrays have in front, then at those of its own.
class Argument {
 public:
  Argument(std::string name, Labels front) : name_(std::move(name)), front_(std::move(front)) {}

  Formula operator()(const std::vector<build::Index>& own) const {
    std::vector<build::Index> indices;
    for (const std::string& label : front_) indices.push_back(build::index(label));
    indices.insert(indices.end(), own.begin(), own.end());
    return build::element(name_, std::move(indices));
  }
  Formula operator()(const Labels& own) const {
    std::vector<build::Index> indices;
    for (const std::string& label : own) indices.push_back(build::index(label));
    return (*this)(indices);
  }
  Formula operator()() const { return (*this)(Labels{}); }

 private:
  std::string name_;
  Labels front_;
};

/// A row of the registry.
struct Row {
  std::string_view name;
  std::vector<Labels> parameters;  ///< the labels that each argument has of its own
  Labels result;
  std::function<Formula(const std::vector<Argument>&)> body;
  bool any_rank = false;  ///< arguments and result have further labels in front, as many as the arrays have dimensions
  std::vector<build::Dim> dims{};
};

Row unary(std::string_view name, UnaryFunction function) {
  return {name, {{}}, {}, [=](const auto& of) { return apply(function, of[0]()); }, true};
}
Row binary(std::string_view name, BinaryFunction function) {
  return {name, {{}, {}}, {}, [=](const auto& of) { return apply(function, of[0](), of[1]()); }, true};
}
/// Z[i,k] = sum[j] A[left] * B[right]
Row product(std::string_view name, const Labels& left, const Labels& right) {
  return {name, {left, right}, {"i", "k"}, [=](const auto& of) {
            return build::reduce(Reducer::sum, {"j"}, apply(BinaryFunction::multiply, of[0](left), of[1](right)));
          }};
}

Formula sum_of(const Formula& a, const Formula& b) { return apply(BinaryFunction::add, a, b); }
/// Of conditions: both.
Formula both(const Formula& a, const Formula& b) { return apply(BinaryFunction::multiply, a, b); }
Formula equal(const Formula& a, const Formula& b) { return apply(BinaryFunction::equal, a, b); }
Formula is_nan(const Formula& x) { return apply(BinaryFunction::not_equal, x, x); }

/// log(e^a + e^b) without overflow; equal infinities must not be subtracted.
Formula log_add_exp(const std::vector<Argument>& of) {
  const Formula a = of[0]();
  const Formula b = of[1]();
  const Formula distance = apply(UnaryFunction::abs, apply(BinaryFunction::subtract, a, b));
  const Formula rest = apply(UnaryFunction::log1p, apply(UnaryFunction::exp, apply(UnaryFunction::negate, distance)));
  return build::where(equal(a, b), sum_of(a, number(std::numbers::ln2)),
                      sum_of(apply(BinaryFunction::maximum, a, b), rest));
}

/// The distance of the first least value, as argmin counts (NaN is the least), and its position, as f64.
Formula min_pair(const std::vector<Argument>& of) {
  const auto least = [](const std::string& label, const Formula& x) { return build::reduce(Reducer::min, {label}, x); };
  const Formula a = of[0](Labels{"i"});
  const Formula is_least = sum_of(equal(a, least("k", of[0](Labels{"k"}))), is_nan(a));
  const Formula no_position = whole_number(std::numeric_limits<std::int64_t>::max());
  return build::where(equal(build::name("p"), whole_number(0)), build::cast(DType::f64, least("i", a)),
                      build::cast(DType::f64, least("i", build::where(is_least, of[1](Labels{"i"}), no_position))));
}

/// The lesser pair; NaN is the least value, and among equals the lesser position counts.
Formula min_index(const std::vector<Argument>& of) {
  const auto at = [&](std::size_t argument, std::int64_t position) {
    return of[argument](std::vector<build::Index>{{{}, position, {}}});
  };
  const Formula a = at(0, 0);
  const Formula b = at(1, 0);
  const Formula is_less = sum_of(apply(BinaryFunction::less, a, b), both(is_nan(a), equal(b, b)));
  const Formula are_equal = sum_of(equal(a, b), both(is_nan(a), is_nan(b)));
  const Formula comes_first = apply(BinaryFunction::less_equal, at(0, 1), at(1, 1));
  return build::where(sum_of(is_less, both(are_equal, comes_first)), of[0](Labels{"p"}), of[1](Labels{"p"}));
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      binary("matAdd", BinaryFunction::add),
      binary("add", BinaryFunction::add),
      binary("matSub", BinaryFunction::subtract),
      binary("sub", BinaryFunction::subtract),
      binary("elemMul", BinaryFunction::multiply),
      binary("mul", BinaryFunction::multiply),
      binary("max", BinaryFunction::maximum),
      binary("min", BinaryFunction::minimum),
      {"logAddExp", {{}, {}}, {}, log_add_exp, true},
      product("matMul", {"i", "j"}, {"j", "k"}),
      product("matTranMulL", {"j", "i"}, {"j", "k"}),
      product("matTranMulR", {"i", "j"}, {"k", "j"}),
      {"matVecSub",
       {{"q", "j"}, {"i", "j"}},
       {"i", "j"},
       [](const auto& of) {
         return build::reduce(Reducer::sum, {"q"},
                              apply(BinaryFunction::subtract, of[0](Labels{"q", "j"}), of[1](Labels{"i", "j"})));
       },
       false,
       {{{"q", {}}, 1}}},
      {"minPair", {{"i"}, {"i"}}, {"p"}, min_pair, false, {{{"p", {}}, 2}}},
      {"minIndex", {{"p"}, {"p"}}, {"p"}, min_index, true, {{{"p", {}}, 2}}},
      {"rowSum",
       {{"j"}},
       {},
       [](const auto& of) { return build::reduce(Reducer::sum, {"j"}, of[0](Labels{"j"})); },
       true},
      {"diag",
       {{"i", "i"}},
       {"i"},
       [](const auto& of) {
         return of[0](Labels{"i", "i"});
       }},
      {"transpose",
       {{"i", "j"}},
       {"j", "i"},
       [](const auto& of) {
         return of[0](Labels{"i", "j"});
       }},
      unary("relu", UnaryFunction::relu),
      unary("step", UnaryFunction::step),
      unary("sigmoid", UnaryFunction::sigmoid),
      unary("exp", UnaryFunction::exp),
      unary("negate", UnaryFunction::negate),
      {"id", {{}}, {}, [](const auto& of) { return of[0](); }, true},
  };
  return all;
}

/// The first of the labels i, j, k, ... that `row` does not name itself.
Labels front_labels(const Row& row, std::size_t count) {
  Labels labels;
  for (std::size_t i = 0; labels.size() < count; ++i) {
    constexpr std::size_t letters = 16;  // i to x
    const std::size_t round = i / letters;
    std::string label(1, static_cast<char>('i' + i % letters));
    if (round > 0) label += std::to_string(round);
    const bool taken = std::any_of(row.parameters.begin(), row.parameters.end(), [&](const Labels& own) {
      return std::find(own.begin(), own.end(), label) != own.end();
    });
    if (!taken) labels.push_back(std::move(label));
  }
  return labels;
}

/// How many dimensions the arrays have in front of those that `row` names; throws when the ranks do not fit.
std::size_t front_rank(const Row& row, const std::vector<std::size_t>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t own = row.parameters[i].size();
    if (row.any_rank ? ranks[i] < own : ranks[i] != own) {
      throw UserError(fmt::format("kernel {} takes arrays with {}{} dimension{} as argument {}, not with {}", row.name,
                                  row.any_rank ? "at least " : "", own, own == 1 ? "" : "s", i + 1, ranks[i]));
    }
    if (row.any_rank && ranks[i] - own != ranks[0] - row.parameters[0].size()) {
      throw UserError(fmt::format("kernel {} takes arrays of equal rank, not with {} and {} dimensions", row.name,
                                  ranks[0], ranks[1]));
    }
  }
  return row.any_rank ? ranks[0] - row.parameters[0].size() : 0;
}

const Row* find_row(std::string_view name) {
  const auto found = std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.name == name; });
  return found == rows().end() ? nullptr : &*found;
}

const Row& row_of(std::string_view name) {
  if (const Row* row = find_row(name)) return *row;
  std::vector<std::string> known;
  for (const Row& row : rows()) known.emplace_back(row.name);
  const std::string near = did_you_mean(name, known);
  throw UserError(fmt::format("unknown kernel '{}'{}", name, near.empty() ? "" : "; " + near));
}

KernelDefinition definition_of(const Row& row, const Labels& front) {
  KernelDefinition definition{std::string(row.name), {}, {}, row.dims};
  const auto behind = [&](const Labels& own) {
    Labels labels = front;
    labels.insert(labels.end(), own.begin(), own.end());
    return labels;
  };
  std::vector<Argument> arguments;
  for (const Labels& own : row.parameters) {
    const std::string name = arguments.empty() ? "A" : "B";
    arguments.emplace_back(name, front);
    definition.parameters.push_back({{name, {}}, {}});
    for (const std::string& label : behind(own)) definition.parameters.back().indices.emplace_back(build::index(label));
  }
  definition.values.emplace_back(
      build::Definition{{"Z", {}}, build::names(behind(row.result)), build::expr_of(row.body(arguments))});
  return definition;
}

}  // namespace

const std::vector<NamedKernel>& all_named_kernels() {
  static const std::vector<NamedKernel> all = [] {
    std::vector<NamedKernel> kernels;
    for (const Row& row : rows()) kernels.push_back({row.name, row.parameters.size()});
    return kernels;
  }();
  return all;
}

bool is_named_kernel(std::string_view name) { return find_row(name) != nullptr; }

Kernel named_kernel(std::string_view name, const std::vector<DType>& dtypes, const std::vector<std::size_t>& ranks) {
  const Row& row = row_of(name);
  if (dtypes.size() != row.parameters.size() || ranks.size() != dtypes.size()) {
    throw UserError(fmt::format("kernel {} takes {} array{}, not {}", name, row.parameters.size(),
                                row.parameters.size() == 1 ? "" : "s", dtypes.size()));
  }
  const std::size_t front = front_rank(row, ranks);
  if (name == "id") return identity_kernel(dtypes.front());
  std::vector<Diagnostic> errors;
  std::optional<Kernel> kernel = kernel_from(definition_of(row, front_labels(row, front)), dtypes, errors);
  if (kernel) return std::move(*kernel);
  std::string types;
  for (const DType dtype : dtypes) types += (types.empty() ? "" : " and ") + std::string(name_of(dtype));
  throw UserError(fmt::format("kernel {} cannot be used with {}: {}", name, types, errors.front().message));
}

}  // namespace einrel
