#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sql/functions/array_bytes.h"
#include "sql/functions/functions.h"
#include "tra/named_kernels.h"

namespace {

using namespace einrel;
using sql::Value;
using Row = std::vector<Value>;

/// Kernels besides those of the registry.
constexpr std::array statements{
    "kernel Z(A[i,j]) -> [j,i] = A[i,j]",
    "kernel Z(A[i,j], B[j,k]) -> [i,k] = sum[j] A[i,j] * B[j,k]",
    "kernel Z(A[i,j], B[k,l]) -> [i,j,k,l] = A[i,j] - B[k,l]",
    "kernel Z(A[i], B[i]) -> [i] = min(A[i], B[i])",
    "kernel Z(A[i], N[]) -> [i] = A[i] + N[]",
    "kernel Z(A[i]) -> [i,j] with j=3 = A[i]",
    "kernel Z(A[i,j]) -> [i] with i=2 = argmax[j] A[i,j]",
    "kernel Z(X[x], W[d]) -> [y] with y=2, d=2 = sum[d] X[y+d] * W[d]",
    "kernel Z(A[(h d)]) -> [h,d] with d=2 = view",
    "kernel Z(A[i]) -> [i] = A[i] - M[] given M[] = max[j] A[j]",
    "diag . matAdd",
};

/// Choices from the front of some bytes; zeros where they have ended.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : left_(bytes) {}

  std::size_t below(std::size_t n) {
    if (left_.empty()) return 0;
    const auto value = static_cast<std::size_t>(left_.front());
    left_ = left_.subspan(1);
    return value % n;
  }
  bool seldom() { return below(24) == 23; }
  std::span<const std::byte> bytes(std::size_t most) {
    const std::span<const std::byte> taken = left_.first(std::min(below(most + 1), left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::string text(std::size_t most) {
    const std::span<const std::byte> taken = bytes(most);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const std::byte> left_;
};

/// Whether computing with a kernel that somebody writes so takes seconds.
bool may_take_long(const std::string& kernel) {
  int extents = 0;
  for (std::size_t at = 0; at < kernel.size(); ++at) {
    const auto is_digit = [&](std::size_t i) { return i < kernel.size() && kernel[i] >= '0' && kernel[i] <= '9'; };
    if (is_digit(at) && is_digit(at + 1)) return true;
    extents += kernel[at] == '=' ? 1 : 0;
  }
  return extents > 6;
}

/// Makes the values of calls; they live as long as it does. Most are of the kind that is wanted: k a kernel, a an
/// array, n a number, d a dtype, c a column's name, s what absent elements are.
class Maker {
 public:
  explicit Maker(Choices& choices) : choices_(choices) {}

  Value value(char wanted) {
    switch (choices_.seldom() ? "kandcs0rxb"[choices_.below(10)] : wanted) {
      case 'k': return sql::Text{kernel()};
      case 'a': return sql::Bytes{array()};
      case 'n': return number();
      case 'd': return sql::Text{name_of(all_dtypes[choices_.below(all_dtypes.size())])};
      case 'c': return sql::Text{kept(choices_.text(8))};
      case 's': return sql::Text{sql::name_of(choices_.seldom() ? sql::Absent::refused : absent())};
      case 'r': return static_cast<double>(choices_.below(256)) / 8 - 4;
      case 'x': return sql::Strange{kept(choices_.text(8))};
      case 'b': return sql::Bytes{choices_.bytes(64)};
      default: return sql::Null{};
    }
  }
  /// As many `fixed` values, then `repeated` ones some times.
  Row row(std::string_view fixed, std::string_view repeated) {
    Row made;
    for (const char each : fixed) made.push_back(value(each));
    for (std::size_t times = repeated.empty() ? 0 : choices_.below(4); times > 0; --times) {
      for (const char each : repeated) made.push_back(value(each));
    }
    return made;
  }

 private:
  sql::Absent absent() { return choices_.below(2) == 0 ? sql::Absent::zeros : sql::Absent::may_be_zeros; }
  const std::string& kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  const std::string& kernel() {
    const std::vector<NamedKernel>& named = all_named_kernels();
    std::size_t which = choices_.below(named.size() + statements.size() + 1);
    if (which < named.size()) return kept(std::string(named[which].name));
    which -= named.size();
    std::string text = which < statements.size() ? statements[which] : choices_.text(250);
    if (choices_.seldom() && !text.empty()) text[choices_.below(text.size())] = static_cast<char>(choices_.below(256));
    return kept(may_take_long(text) ? "id" : std::move(text));
  }

  std::int64_t number() {
    constexpr std::array<std::int64_t, 8> odd{std::numeric_limits<std::int64_t>::min(),
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::int64_t{1} << 62U,
                                              std::int64_t{1} << 40U,
                                              std::int64_t{1} << 31U,
                                              100'000'000'000,
                                              1000,
                                              -2};
    return choices_.seldom() ? odd[choices_.below(odd.size())] : static_cast<std::int64_t>(choices_.below(8)) - 1;
  }

  /// Mostly as it should be.
  const std::vector<std::byte>& array() {
    const DType dtype = all_dtypes[choices_.below(all_dtypes.size())];
    Shape shape;
    for (std::size_t rank = choices_.below(4); rank > 0; --rank)
      shape.emplace_back(static_cast<std::int64_t>(choices_.below(5)));
    Tensor tensor(dtype, shape);
    const auto size = static_cast<std::size_t>(tensor.byte_count());
    if (size != 0) std::memset(tensor.mutable_data(), 0, size);
    const std::span<const std::byte> elements = choices_.bytes(size);
    std::copy(elements.begin(), elements.end(), tensor.mutable_data());
    std::vector<std::byte>& bytes = arrays_.emplace_back(sql::array_bytes(tensor));
    if (choices_.seldom()) bytes[choices_.below(bytes.size())] = static_cast<std::byte>(choices_.below(256));
    if (choices_.seldom()) bytes.resize(choices_.below(bytes.size()));
    return bytes;
  }

  Choices& choices_;
  std::deque<std::string> texts_;
  std::deque<std::vector<std::byte>> arrays_;
};

/// What a function gives is an array of a database; nothing where the values were refused.
template <class Call>
std::optional<Tensor> result_of(const Call& call) {
  std::optional<Tensor> result;
  try {
    result = call();
    constexpr std::int64_t most_bytes = 1 << 24;
    if (!result || result->byte_count() > most_bytes) return result;
    const std::vector<std::byte> bytes = sql::array_bytes(*result);
    const Tensor again = sql::array_in(bytes);
    invariant(again.dtype() == result->dtype() && again.shape() == result->shape(), "a result is an array");
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const RunError&) {  // no inverse, say
    return std::nullopt;
  }
  return result;
}

/// All rows in one state.
template <class Kept>
std::optional<Tensor> all_together(std::span<const Row> rows, sql::FunctionState& state) {
  return result_of([&] {
    Kept kept;
    for (const Row& row : rows) kept.add(row, state);
    return kept.finish(state);
  });
}

/// What several processes of a server have seen of a group.
template <class Kept>
std::vector<std::byte> state_of(std::span<const Row> rows, sql::FunctionState& state) {
  Kept kept;
  for (const Row& row : rows) kept.add(row, state);
  return kept.state_bytes();
}

/// The same rows in two states, and any bytes in place of such a state.
template <class Kept>
void in_parts(std::span<const Row> rows, Choices& choices, sql::FunctionState& state) {
  const std::optional<Tensor> whole = all_together<Kept>(rows, state);
  const std::size_t first = choices.below(rows.size() + 1);
  const auto merged = [&](std::span<const std::byte> one, std::span<const std::byte> other) {
    Kept kept;
    kept.merge(one, state);
    kept.merge(other, state);
    return kept.finish(state);
  };
  const std::optional<Tensor> parts = result_of(
      [&] { return merged(state_of<Kept>(rows.first(first), state), state_of<Kept>(rows.subspan(first), state)); });
  if constexpr (!std::is_same_v<Kept, sql::Fold>) {  // of others what comes first does not decide which types fit
    invariant(whole.has_value() == parts.has_value(), "in parts as in one");
    if (whole) invariant(sql::array_bytes(*whole) == sql::array_bytes(*parts), "the same in parts as in one");
  } else if (whole && parts) {
    invariant(whole->shape() == parts->shape(), "the same shape in parts as in one");
  }
  result_of([&] {
    std::vector<std::byte> bytes = state_of<Kept>(rows, state);
    for (std::size_t changes = 1 + choices.below(3); changes > 0; --changes)
      bytes[choices.below(bytes.size())] = static_cast<std::byte>(choices.below(256));
    return merged(bytes, choices.bytes(200));
  });
}

/// Rows of a group; the values in front are mostly those of the first.
std::vector<Row> rows_of(Maker& maker, Choices& choices, const Row& constant, std::string_view fixed,
                         std::string_view repeated) {
  std::vector<Row> rows;
  for (std::size_t count = 1 + choices.below(4); count > 0; --count) {
    Row row = constant;
    const Row own = maker.row(fixed, repeated);
    row.insert(row.end(), own.begin(), own.end());
    if (choices.seldom() && !row.empty()) row[choices.below(row.size())] = maker.value('n');
    if (choices.seldom()) row.pop_back();
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Rows for einrel_gather, and for einrel_whole, which says first whether there is a chunk.
std::vector<Row> rows_of_table(Maker& maker, Choices& choices, bool is_whole) {
  const auto rank = choices.below(3);
  Row constant = maker.row("dc", "");
  constant.emplace_back(static_cast<std::int64_t>(rank));
  std::string own = is_whole ? "n" : "";
  std::string columns;
  for (std::size_t d = 0; d < rank; ++d) {
    const Row cut = maker.row("nn", "");
    constant.insert(constant.end(), cut.begin(), cut.end());
    own += 'n';
    columns += 'c';
  }
  own += is_whole ? columns : (choices.below(2) == 0 ? "n" : "r") + columns + "c";
  if (choices.below(2) == 0) own += 's';
  return rows_of(maker, choices, constant, own, "");
}

}  // namespace

/// Any call of any function that SQL calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(std::as_bytes(std::span(data, size)));
  Maker maker(choices);
  sql::FunctionState state;
  const auto call = [&](auto function, std::string_view fixed, std::string_view repeated) {
    result_of([&] { return std::optional(function(maker.row(fixed, repeated), state)); });
  };
  const auto rows = [&](std::string_view constant, std::string_view fixed, std::string_view repeated) {
    return rows_of(maker, choices, maker.row(constant, ""), fixed, repeated);
  };
  switch (choices.below(12)) {
    case 0: call(sql::kernel_function, "ka", "a"); break;
    case 1: call(sql::kernel_function, "ka", "n"); break;
    case 2: call(sql::positions_function, "nn", ""); break;
    case 3: call(sql::zeros_function, "d", "n"); break;
    case 4: call(sql::tile_function, "annn", ""); break;
    case 5: call(sql::box_function, "a", "nn"); break;
    case 6:
      result_of([&] {
        const std::int64_t extent = sql::extent_function(maker.row("an", ""));
        invariant(extent >= 0, "an extent");
        return std::optional<Tensor>();
      });
      break;
    case 7: all_together<sql::Gather>(rows_of_table(maker, choices, false), state); break;
    case 8: all_together<sql::Whole>(rows_of_table(maker, choices, true), state); break;
    case 9: in_parts<sql::Fold>(rows("k", "a", "n"), choices, state); break;
    case 10: in_parts<sql::Concatenation>(rows("n", "na", ""), choices, state); break;
    default: in_parts<sql::Placement>(rows("", "a", "n"), choices, state); break;
  }
  return 0;
}
