#include "train/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/same_file.h"
#include "base/text.h"
#include "tensor/bytes.h"
#include "tensor/csv.h"

namespace einrel {
namespace {

constexpr std::string_view log_extension = ".csv";
constexpr const char* first_columns = "epoch,steps,seconds";  // by which a log is known
constexpr const char* title = "<title>einrel train</title>";  // and a picture
constexpr std::size_t fixed_columns = 5;
constexpr std::size_t whole_columns = 2;  // epoch and steps, the first ones
constexpr std::size_t bytes_column = 4;   // may be more than a double can say

std::string curve_path(const std::string& log) { return log.substr(0, log.size() - log_extension.size()) + ".svg"; }

/// Where a picture of the curves of one name lies, and what its axes span.
struct Frame {
  double top = 0;
  double first = 1;
  double last = 2;
  double low = 0;
  double high = 1;

  static constexpr double left = 70;
  static constexpr double width = 500;
  static constexpr double height = 180;
  double x(double epoch) const { return left + width * (epoch - first) / (last - first); }
  double y(double value) const { return top + height * (high - value) / (high - low); }
};

std::string polyline(const Frame& frame, const std::vector<std::vector<double>>& rows, std::size_t column,
                     const char* colour) {
  std::string points;
  for (const std::vector<double>& row : rows) {
    if (std::isfinite(row[column])) points += fmt::format("{:.1f},{:.1f} ", frame.x(row[0]), frame.y(row[column]));
  }
  return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" points=\"{}\"/>\n", colour, points);
}

std::string axes(const Frame& frame) {
  std::string text = fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n",
                                 Frame::left, frame.top, Frame::width, Frame::height);
  constexpr int parts = 4;
  for (int i = 0; i <= parts; ++i) {
    const double value = frame.low + (frame.high - frame.low) * i / parts;
    text += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        Frame::left, Frame::left + Frame::width, frame.y(value), Frame::left - 6, frame.y(value) + 4, value);
  }
  text += fmt::format(
      "<text x=\"{}\" y=\"{}\">{:.0f}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">epoch {:.0f}</text>\n",
      Frame::left, frame.top + Frame::height + 16, frame.first, Frame::left + Frame::width,
      frame.top + Frame::height + 16, frame.last);
  return text;
}

}  // namespace

std::string curve_svg(const std::vector<std::string>& columns, const std::vector<std::vector<double>>& rows) {
  constexpr double step = 250;
  std::string body;
  double top = 40;
  for (std::size_t c = fixed_columns; c < columns.size(); ++c) {
    if (columns[c].starts_with("test_")) continue;
    const auto test = std::find(columns.begin(), columns.end(), "test_" + columns[c]);
    std::vector<std::pair<std::size_t, const char*>> curves{{c, "#1f77b4"}};
    if (test != columns.end()) curves.emplace_back(static_cast<std::size_t>(test - columns.begin()), "#d62728");
    Frame frame{top, rows.front()[0], std::max(rows.back()[0], rows.front()[0] + 1), HUGE_VAL, -HUGE_VAL};
    for (const std::vector<double>& row : rows) {
      for (const auto& [column, colour] : curves) {
        if (!std::isfinite(row[column])) continue;
        frame.low = std::min(frame.low, row[column]);
        frame.high = std::max(frame.high, row[column]);
      }
    }
    if (!(frame.low < frame.high)) {
      const double middle = std::isfinite(frame.low) ? frame.low : 0;
      frame.low = middle - 0.5;
      frame.high = middle + 0.5;
    }
    body += fmt::format(
        "<text x=\"{}\" y=\"{}\"><tspan font-weight=\"bold\">{}</tspan>  <tspan "
        "fill=\"#1f77b4\">training</tspan>{}</text>\n",
        Frame::left, top - 8, columns[c], test != columns.end() ? "  <tspan fill=\"#d62728\">test</tspan>" : "");
    body += axes(frame);
    for (const auto& [column, colour] : curves) body += polyline(frame, rows, column, colour);
    top += step;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"600\" height=\"{0}\" viewBox=\"0 0 600 {0}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n{2}\n<rect width=\"600\" height=\"{0}\" "
      "fill=\"white\"/>\n{1}</svg>\n",
      top - 20, body, title);
}

namespace {

/// Throws UserError for a file that is there, but was not written for a log: its first bytes do not hold `mark`.
void check_ours(const std::string& path, std::size_t first_bytes, const std::string& mark, const std::string& what) {
  std::error_code unseen;
  if (!std::filesystem::exists(path, unseen)) return;
  const FileBytes file = map_file(path);
  const std::string_view text = as_text(file.bytes);
  if (text.empty() || text.substr(0, first_bytes).find(mark) != std::string_view::npos) return;
  throw UserError(fmt::format(
      "--log would replace {}, which is no {} that `einrel train` has written; name another file, or remove "
      "this one",
      printable(path), what));
}

}  // namespace

TrainLog::TrainLog(std::string path, std::vector<std::string> names, bool has_test, std::int64_t done,
                   const std::vector<std::string>& read)
    : path_(std::move(path)), columns_{"epoch", "steps", "seconds", "samples_per_second", "bytes"} {
  if (!path_.ends_with(log_extension) || path_.size() == log_extension.size())
    throw UserError(fmt::format("--log {}: it is a table: name it FILE.csv", printable(path_)));
  columns_.insert(columns_.end(), names.begin(), names.end());
  for (const std::string& name : names) {
    if (has_test) columns_.push_back("test_" + name);
  }
  refuse_same_file({path_, curve_path(path_)}, read, "name another table with --log");
  check_replaceable(path_);
  check_replaceable(curve_path(path_));
  constexpr std::size_t head = 400;
  check_ours(path_, std::string_view(first_columns).size(), first_columns, "log");
  check_ours(curve_path(path_), head, title, "picture");
  std::error_code unseen;
  if (done == 0 || !std::filesystem::exists(path_, unseen)) return;
  const auto file = map_file(path_);
  const Tensor table = parse_csv(file, "", DType::f64);
  if (table.shape()[1].value() != static_cast<std::int64_t>(columns_.size())) {
    throw UserError(fmt::format("--log {}: it has {} columns, but this training has {}; name another file",
                                printable(path_), table.shape()[1].value(), columns_.size()));
  }
  const std::vector<double> values = values_of(table);
  const Tensor bytes = parse_csv(file, std::to_string(bytes_column + 1), DType::i64);
  for (std::int64_t r = 0; r < bytes.count(); ++r) {
    const auto row = values.begin() + r * static_cast<std::ptrdiff_t>(columns_.size());
    if (*row > static_cast<double>(done)) continue;
    std::int64_t exact = 0;
    std::memcpy(&exact, bytes.data() + r * static_cast<std::int64_t>(sizeof(exact)), sizeof(exact));
    append({row, row + static_cast<std::ptrdiff_t>(columns_.size())}, exact);
  }
}

void TrainLog::append(std::vector<double> row, std::int64_t bytes) {
  std::string line;
  for (std::size_t c = 0; c < row.size(); ++c) {
    line += c == 0 ? "" : ",";
    if (c == bytes_column)
      line += fmt::format("{}", bytes);
    else
      line += c < whole_columns ? fmt::format("{:.0f}", row[c]) : fmt::format("{:.9g}", row[c]);
  }
  lines_.push_back(std::move(line));
  rows_.push_back(std::move(row));
}

void TrainLog::add(const EpochReport& epoch) {
  std::vector<double> row{static_cast<double>(epoch.epoch), static_cast<double>(epoch.steps), epoch.seconds,
                          epoch.samples_per_second, static_cast<double>(epoch.bytes)};
  row.insert(row.end(), epoch.training.begin(), epoch.training.end());
  row.insert(row.end(), epoch.test.begin(), epoch.test.end());
  append(std::move(row), epoch.bytes);
  write_text(path_, fmt::format("{}\n{}\n", fmt::join(columns_, ","), fmt::join(lines_, "\n")));
  write_text(curve_path(path_), curve_svg(columns_, rows_));
}

}  // namespace einrel
