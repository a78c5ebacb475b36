#include "tra/named_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"

namespace einrel {
namespace {

/// A row of the registry as a definition. "@" stands for as many labels as the arrays have dimensions beyond those
/// named, the same for all of them.
struct Row {
  std::string_view name;
  std::array<std::string_view, 2> parameters;  ///< the indices of A and B; "-" for none
  std::string_view result;
  std::string_view body;
  std::string_view label = "";  ///< with this label's extent fixed,
  std::int64_t extent = 0;      ///< to this
};

constexpr std::string_view none = "-";
constexpr const char* natural_log_of_2 = "0.6931471805599453";

/// log(e^a + e^b) without overflow; equal infinities must not be subtracted.
const std::string log_add_exp =
    fmt::format("where(A[@] == B[@], A[@] + {}, max(A[@], B[@]) + log1p(exp(-abs(A[@] - B[@]))))", natural_log_of_2);

/// The distance of the first least value, as argmin counts (NaN is the least), and its position, as f64.
constexpr std::string_view min_pair =
    "where(p == 0, f64(min[i] A[i]), f64(min[i] where((A[i] == (min[k] A[k])) + (A[i] != A[i]), B[i], "
    "9223372036854775807)))";
/// The lesser pair; NaN is the least value, and among equals the lesser position counts.
constexpr std::string_view min_index =
    "where((A[@,0] < B[@,0]) + (A[@,0] != A[@,0]) * (B[@,0] == B[@,0]) + "
    "((A[@,0] == B[@,0]) + (A[@,0] != A[@,0]) * (B[@,0] != B[@,0])) * (A[@,1] <= B[@,1]), A[@,p], B[@,p])";

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"matAdd", {"@", "@"}, "@", "A[@] + B[@]"},
      {"add", {"@", "@"}, "@", "A[@] + B[@]"},
      {"matSub", {"@", "@"}, "@", "A[@] - B[@]"},
      {"sub", {"@", "@"}, "@", "A[@] - B[@]"},
      {"elemMul", {"@", "@"}, "@", "A[@] * B[@]"},
      {"mul", {"@", "@"}, "@", "A[@] * B[@]"},
      {"max", {"@", "@"}, "@", "max(A[@], B[@])"},
      {"min", {"@", "@"}, "@", "min(A[@], B[@])"},
      {"logAddExp", {"@", "@"}, "@", log_add_exp},
      {"matMul", {"i,j", "j,k"}, "i,k", "sum[j] A[i,j] * B[j,k]"},
      {"matTranMulL", {"j,i", "j,k"}, "i,k", "sum[j] A[j,i] * B[j,k]"},
      {"matTranMulR", {"i,j", "k,j"}, "i,k", "sum[j] A[i,j] * B[k,j]"},
      {"matVecSub", {"q,j", "i,j"}, "i,j", "sum[q] (A[q,j] - B[i,j])", "q", 1},
      {"minPair", {"i", "i"}, "p", min_pair, "p", 2},
      {"minIndex", {"@,p", "@,p"}, "@,p", min_index, "p", 2},
      {"rowSum", {"@,j", none}, "@", "sum[j] A[@,j]"},
      {"diag", {"i,i", none}, "i", "A[i,i]"},
      {"transpose", {"i,j", none}, "j,i", "A[i,j]"},
      {"relu", {"@", none}, "@", "relu(A[@])"},
      {"step", {"@", none}, "@", "step(A[@])"},
      {"sigmoid", {"@", none}, "@", "sigmoid(A[@])"},
      {"exp", {"@", none}, "@", "exp(A[@])"},
      {"negate", {"@", none}, "@", "-A[@]"},
      {"id", {"@", none}, "@", "A[@]"},
  };
  return all;
}

std::size_t argument_count(const Row& row) { return row.parameters[1] == none ? 1 : 2; }

/// The labels i, j, k, ... that `row` does not name itself.
std::vector<std::string> fresh_labels(const Row& row, std::size_t count) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; labels.size() < count; ++i) {
    constexpr std::size_t letters = 16;  // i to x
    const std::size_t round = i / letters;
    std::string label(1, static_cast<char>('i' + i % letters));
    if (round > 0) label += std::to_string(round);
    const bool taken = std::any_of(row.parameters.begin(), row.parameters.end(), [&](std::string_view indices) {
      return indices.find(label) != std::string_view::npos;
    });
    if (!taken) labels.push_back(std::move(label));
  }
  return labels;
}

/// `pattern` with `labels` in the place of "@".
std::string fill(std::string_view pattern, const std::vector<std::string>& labels) {
  std::string list;
  for (const std::string& label : labels) list += (list.empty() ? "" : ",") + label;
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '@') {
      text += pattern[i];
      continue;
    }
    text += list;
    const bool comma_follows = i + 1 < pattern.size() && pattern[i + 1] == ',';
    if (list.empty() && comma_follows) ++i;
  }
  return text;
}

/// How many labels "@" stands for; throws when the ranks do not fit.
std::size_t rest_of_rank(const Row& row, const std::vector<std::size_t>& ranks) {
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string_view pattern = row.parameters[i];
    const bool any_rank = pattern.find('@') != std::string_view::npos;
    const std::size_t own = index_count(pattern) - (any_rank ? 1U : 0U);
    if (any_rank ? ranks[i] < own : ranks[i] != own) {
      throw UserError(fmt::format("kernel {} takes arrays with {}{} dimension{} as argument {}, not with {}", row.name,
                                  any_rank ? "at least " : "", own, own == 1 ? "" : "s", i + 1, ranks[i]));
    }
    if (any_rank && rest && *rest != ranks[i] - own) {
      throw UserError(fmt::format("kernel {} takes arrays of equal rank, not with {} and {} dimensions", row.name,
                                  ranks[0], ranks[1]));
    }
    if (any_rank) rest = ranks[i] - own;
  }
  return rest.value_or(0);
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

KernelDefinition definition_of(const Row& row, const std::vector<std::string>& labels) {
  KernelDefinition definition;
  definition.name = row.name;
  for (std::size_t i = 0; i < argument_count(row); ++i)
    definition.parameters.push_back({i == 0 ? "A" : "B", {fill(row.parameters[i], labels)}});
  definition.result = {fill(row.result, labels)};
  definition.body = {fill(row.body, labels)};
  if (!row.label.empty()) definition.dims[std::string(row.label)] = row.extent;
  return definition;
}

}  // namespace

const std::vector<NamedKernel>& all_named_kernels() {
  static const std::vector<std::string> usages = [] {
    std::vector<std::string> texts;
    for (const Row& row : rows()) {
      const std::vector<std::string> labels{"..."};
      texts.push_back(fmt::format("Z[{}] = {}", fill(row.result, labels), fill(row.body, labels)));
    }
    return texts;
  }();
  static const std::vector<NamedKernel> all = [] {
    std::vector<NamedKernel> kernels;
    for (std::size_t i = 0; i < rows().size(); ++i)
      kernels.push_back({rows()[i].name, usages[i], argument_count(rows()[i])});
    return kernels;
  }();
  return all;
}

bool is_named_kernel(std::string_view name) { return find_row(name) != nullptr; }

Kernel named_kernel(std::string_view name, const std::vector<DType>& dtypes, const std::vector<std::size_t>& ranks) {
  const Row& row = row_of(name);
  if (dtypes.size() != argument_count(row) || ranks.size() != dtypes.size()) {
    throw UserError(fmt::format("kernel {} takes {} array{}, not {}", name, argument_count(row),
                                argument_count(row) == 1 ? "" : "s", dtypes.size()));
  }
  const std::size_t rest = rest_of_rank(row, ranks);
  if (name == "id") return identity_kernel(dtypes.front());
  std::vector<Diagnostic> errors;
  std::optional<Kernel> kernel = kernel_from(definition_of(row, fresh_labels(row, rest)), dtypes, errors);
  if (kernel) return std::move(*kernel);
  std::string types;
  for (const DType dtype : dtypes) types += (types.empty() ? "" : " and ") + std::string(name_of(dtype));
  throw UserError(fmt::format("kernel {} cannot be used with {}: {}", name, types, errors.front().message));
}

}  // namespace einrel
