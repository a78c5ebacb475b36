#include "tensor/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "tensor/bytes.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (rest != end || text.empty()) return std::nullopt;
  if (error == std::errc{}) return value;
  // Too small is 0; too large is infinity, which put_field tells from one that was written.
  if constexpr (std::is_floating_point_v<Number>) {
    if (error == std::errc::result_out_of_range) return std::strtod(std::string(text).c_str(), nullptr);
  }
  return std::nullopt;
}

constexpr std::string_view all_separators = ",;\t";

/// Where the first field of a line ends: at one of the separators, which are text between quotes that open the field.
std::size_t end_of_field(std::string_view line, std::string_view separators) {
  const bool is_tab = separators.find('\t') != std::string_view::npos;
  std::size_t from = line.find_first_not_of(is_tab ? " " : " \t");
  if (from == std::string_view::npos || line[from] != '"') return line.find_first_of(separators);
  do {  // two quotes stand for one
    from = line.find('"', from + 1);
    if (from == std::string_view::npos) return line.find_first_of(separators);  // nothing closes it: it is text
    ++from;
  } while (from < line.size() && line[from] == '"');
  return line.find_first_of(separators, from);
}

/// The one that stands between the fields of a line: the first of all that does.
std::string_view separator_in(std::string_view line) {
  std::string found;
  for (std::size_t end = 0; (end = end_of_field(line, all_separators)) != std::string_view::npos;) {
    found += line[end];
    line.remove_prefix(end + 1);
  }
  const std::size_t which = std::min(all_separators.find_first_of(found), all_separators.size() - 1);
  return all_separators.substr(found.empty() ? 0 : which, 1);
}

/// What a quoted field says.
std::string unquoted(std::string_view field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    text += field[i];
    if (field[i] == '"' && i + 1 < field.size() && field[i + 1] == '"') ++i;
  }
  return text;
}

// Far more than a line of numbers: what is none is not to fill the memory before that is seen.
constexpr std::size_t most_line_bytes = std::size_t{1} << 26U;
constexpr std::size_t most_columns = std::size_t{1} << 20U;

/// The lines of a file and their fields.
class Table {
 public:
  explicit Table(const FileBytes& file) : name_(file.name), rest_(as_text(file.bytes)) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    separator_ = name_.ends_with(".tsv") ? "\t" : separator_in(first_line());
  }

  /// The fields of the next line that is not blank; false after the last. Throws UserError for one that is too long,
  /// has too many fields, or is no text.
  bool next(std::vector<std::string_view>& fields) {
    while (!rest_.empty()) {
      ++number_;
      std::string_view line = rest_.substr(0, most_line_bytes + 1);
      line = line.substr(0, line.find('\n'));
      if (line.size() > most_line_bytes) fail("it is longer than 64 MiB; a sample is a line");
      if (line.find('\0') != std::string_view::npos) fail("it has a byte 0, as no text has");
      rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
      if (trimmed(line).empty()) continue;
      fields.clear();
      for (std::size_t comma = 0; comma != std::string_view::npos;) {
        comma = end_of_field(line, separator_);
        if (fields.size() == most_columns) fail(fmt::format("it has more than {} columns", most_columns));
        fields.push_back(trimmed(line.substr(0, comma)));
        if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
      }
      return true;
    }
    return false;
  }
  std::size_t line() const { return number_; }
  /// No fewer than there are rows left of that many bytes, and one for the end of the line.
  std::size_t rows_left(std::size_t bytes) const {
    const std::size_t lines = static_cast<std::size_t>(std::count(rest_.begin(), rest_.end(), '\n')) + 1;
    return std::min(lines, (rest_.size() + 1) / (bytes + 1));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{}, line {}: {}", name_, number_, what));
  }

 private:
  /// Of one that is too long, its beginning.
  std::string_view first_line() const {
    const std::string_view line = rest_.substr(0, most_line_bytes);
    return line.substr(0, line.find('\n'));
  }

  std::string name_;
  std::string_view rest_;
  std::string_view separator_;
  std::size_t number_ = 0;
};

/// Which columns: the first, and how many; one alone gives no dimension.
struct Columns {
  std::size_t first = 0;
  std::size_t count = 0;
  bool is_one = false;
};

std::size_t column_of(const std::string& file, std::string_view name, const std::vector<std::string>& names,
                      std::size_t count) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) {
    const auto again = std::find(found + 1, names.end(), name);
    if (again == names.end()) return static_cast<std::size_t>(found - names.begin());
    throw UserError(fmt::format("{}: the columns {} and {} are both called '{}'; give the number instead of the name",
                                file, found - names.begin() + 1, again - names.begin() + 1, printable(name)));
  }
  const auto number = number_in<std::size_t>(name);
  if (number && *number >= 1 && *number <= count) return *number - 1;
  const std::string near = did_you_mean(name, names);
  throw UserError(
      fmt::format("{} has no column '{}'; {}", file, printable(name),
                  near.empty() ? fmt::format("it has {}, numbered from 1", counted(count, "column")) : near));
}

Columns columns_of(const FileBytes& file, const std::string& asked, const std::vector<std::string>& names,
                   std::size_t count) {
  if (asked.empty()) return {0, count, false};
  const std::size_t dots = asked.find("..");
  if (dots == std::string::npos) return {column_of(file.name, asked, names, count), 1, true};
  const std::size_t first = column_of(file.name, asked.substr(0, dots), names, count);
  const std::size_t last = column_of(file.name, asked.substr(dots + 2), names, count);
  if (last < first)
    throw UserError(fmt::format("{}: no column stands from {}; name the one that stands first before the other",
                                file.name, printable(asked)));
  return {first, last + 1 - first, false};
}

/// Writes fields as elements of a type, one after the other.
template <class Stored>
void put_field(std::string_view field, DType dtype, std::byte* to, const Table& table, std::size_t column) {
  using Number = std::conditional_t<std::is_integral_v<Stored>, std::int64_t, double>;
  const std::optional<Number> value = number_in<Number>(field);
  bool fits = value.has_value();
  if constexpr (std::is_same_v<Stored, std::int32_t>)
    fits = fits && *value >= std::numeric_limits<std::int32_t>::min() &&
           *value <= std::numeric_limits<std::int32_t>::max();
  if (!fits) {
    const char* const wanted = !std::is_integral_v<Stored> ? "number"
                               : sizeof(Stored) == 4       ? "whole number of 32 bits"
                                                           : "whole number of 64 bits";
    table.fail(fmt::format("column {}: '{}' is no {}", column + 1, printable(field, 40), wanted));
  }
  const Stored element = narrow<Stored>(*value);
  if constexpr (!std::is_integral_v<Stored>) {
    const bool is_written = field.find_first_of("iI") != std::string_view::npos;  // inf
    if (std::isinf(static_cast<double>(widen(element))) && !is_written)
      table.fail(fmt::format("column {}: {} is too large for {}", column + 1, printable(field, 40), name_of(dtype)));
  }
  std::memcpy(to, &element, sizeof(Stored));
}

bool are_names(const std::vector<std::string_view>& first, Table after) {
  const auto is_number = [](std::string_view field) { return number_in<double>(field).has_value(); };
  std::vector<std::string_view> second;
  if (std::none_of(first.begin(), first.end(), is_number) || !after.next(second) || second.size() != first.size())
    return !std::all_of(first.begin(), first.end(), is_number);
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (!is_number(first[c]) && is_number(second[c])) return true;
  }
  return false;
}

}  // namespace

bool names_columns(const FileBytes& file) {
  Table table(file);
  std::vector<std::string_view> fields;
  return table.next(fields) && are_names(fields, table);
}

Tensor parse_csv(const FileBytes& file, const std::string& columns, DType dtype, std::optional<bool> given_names) {
  Table table(file);
  std::vector<std::string_view> fields;
  if (!table.next(fields)) throw UserError(fmt::format("{} holds no numbers", file.name));
  const bool has_names = given_names ? *given_names : are_names(fields, table);
  std::vector<std::string> names;
  for (std::size_t c = 0; has_names && c < fields.size(); ++c) names.push_back(unquoted(fields[c]));
  const std::size_t width = fields.size();
  const Columns taken = columns_of(file, columns, names, width);
  // A row has a byte between two fields, and one at least in each that is taken: so room for all of them, which is made
  // before they are looked at, is no more than 8 times the file, however many fields the first line has.
  const std::size_t most = table.rows_left(width - 1 + taken.count) + (has_names ? 0 : 1);
  const std::size_t size = size_of(dtype);
  Tensor whole(dtype, {Extent(static_cast<std::int64_t>(most)), Extent(static_cast<std::int64_t>(taken.count))});
  std::byte* to = whole.mutable_data();
  std::int64_t rows = 0;
  for (bool is_row = !has_names || table.next(fields); is_row; is_row = table.next(fields), ++rows) {
    if (fields.size() != width)
      table.fail(fmt::format("{}, but the first line has {}", counted(fields.size(), "field"), width));
    for (std::size_t c = taken.first; c < taken.first + taken.count; ++c, to += size)
      with_stored_type(dtype, [&]<class Stored>() { put_field<Stored>(fields[c], dtype, to, table, c); });
  }
  Shape shape{Extent(rows)};
  if (!taken.is_one) shape.emplace_back(static_cast<std::int64_t>(taken.count));
  return whole.restrided(shape, row_major_strides(shape));
}

}  // namespace einrel
