#include "lang/expectations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <regex>
#include <sstream>

#include "support/compare.h"
#include "tensor/convert.h"

namespace einrel::test {
namespace {

using nlohmann::json;

constexpr std::string_view marker = "#!";

/// One directive with the line that it starts on.
struct Directive {
  std::size_t line = 0;
  std::string word;
  std::string rest;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::ptrdiff_t open_brackets(const std::string& text) {
  return std::count(text.begin(), text.end(), '[') - std::count(text.begin(), text.end(), ']');
}

/// A literal goes on over the next `#!` lines while a bracket is open.
std::vector<Directive> directives_of(const std::string& text) {
  std::vector<Directive> directives;
  std::istringstream lines(text);
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    line = trimmed(line);
    if (line.rfind(marker, 0) != 0) continue;
    const std::string content = trimmed(line.substr(marker.size()));
    const bool has_literal =
        !directives.empty() && (directives.back().word == "in" || directives.back().word == "expect");
    if (has_literal && open_brackets(directives.back().rest) > 0) {
      directives.back().rest += content;
      continue;
    }
    const auto blank = std::min(content.find(' '), content.size());
    directives.push_back({number, content.substr(0, blank), trimmed(content.substr(blank))});
  }
  return directives;
}

/// JSON with NaN, inf and -inf as numbers; they become strings, which number_of knows.
json parse_literal(const std::string& text) {
  static const std::regex special("-?inf|NaN");
  return json::parse(std::regex_replace(text, special, "\"$&\""));
}

double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw DocumentError(fmt::format("{} is no number", value.dump()));
}

std::int64_t integer_of(const json& value, DType dtype) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number_integer()) throw DocumentError(fmt::format("{} is no {}", value.dump(), name_of(dtype)));
  const auto number = value.get<std::int64_t>();
  const bool fits = dtype == DType::boolean ? number == 0 || number == 1
                    : dtype == DType::i32   ? number == static_cast<std::int32_t>(number)
                                            : !value.is_number_unsigned() || number >= 0;
  if (!fits) throw DocumentError(fmt::format("{} is no {}", value.dump(), name_of(dtype)));
  return number;
}

/// "b=7 f=3" as pairs.
template <class Number>
std::map<std::string, Number> assignments(const std::string& text) {
  static const std::regex pattern(R"(([^\s=]+)\s*=\s*([^\s=]+)\s*)");
  std::map<std::string, Number> found;
  auto at = text.cbegin();
  std::smatch match;
  while (at != text.cend()) {
    if (!std::regex_search(at, text.cend(), match, pattern, std::regex_constants::match_continuous)) {
      throw DocumentError(fmt::format("'{}' is no list of NAME=NUMBER", text));
    }
    if constexpr (std::is_integral_v<Number>)
      found[match[1]] = std::stoll(match[2]);
    else
      found[match[1]] = std::stod(match[2]);
    at = match[0].second;
  }
  if (found.empty()) throw DocumentError("NAME=NUMBER is missing");
  return found;
}

/// Patterns are made once: to compile one takes a thousand times as long as to match a directive.
std::smatch matched(const std::string& text, const std::regex& pattern, const std::string& usage) {
  std::smatch match;
  if (!std::regex_match(text, match, pattern)) {
    throw DocumentError(fmt::format("'{}' is not of the form {}", text, usage));
  }
  return match;
}

std::optional<double> optional_number(const std::ssub_match& text) {
  return text.matched ? std::optional(std::stod(text)) : std::nullopt;
}

void read_expect(Document& document, const std::string& text) {
  static const std::regex type(R"((\S+)\s*:\s*(\w+)\s*(\[[\d,\s]*\]))");
  std::smatch match;
  if (std::regex_match(text, match, type)) {
    const auto dtype = dtype_named(match[2].str());
    if (!dtype) throw DocumentError(fmt::format("unknown dtype '{}'", match[2].str()));
    const auto shape = make_shape(json::parse(match[3].str()).get<std::vector<std::int64_t>>());
    document.types.push_back({match[1], *dtype, shape});
    return;
  }
  static const std::regex value(R"((\S+)\s*=\s*([^~]+?)\s*(?:~\s*(\S+))?)");
  match = matched(text, value, "expect Z = LITERAL ~ TOLERANCE");
  document.values.push_back({match[1], parse_literal(match[2]), optional_number(match[3])});
}

void read_error(Document& document, const std::string& text) {
  static const std::regex form(R"((?:(\d+):(\d+)|-)\s+(.+))");
  const std::smatch match = matched(text, form, "error LINE:COLUMN WORDS or error - WORDS");
  ExpectedError error{std::nullopt, match[3], ""};
  if (match[1].matched) error.where = LineColumn{std::stoul(match[1]), std::stoul(match[2])};
  document.errors.push_back(std::move(error));
}

void read_directive(Document& document, const std::string& word, const std::string& rest) {
  if (word == "in") {
    static const std::regex form(R"((\S+)\s*=\s*(.+))");
    const std::smatch match = matched(rest, form, "in X = LITERAL");
    document.inputs[match[1]] = parse_literal(match[2]);
  } else if (word == "random") {
    document.seed = std::stoull(rest);
  } else if (word == "steps") {
    document.steps = std::stoull(rest);
  } else if (word == "scalar") {
    document.scalars.merge(assignments<double>(rest));
  } else if (word == "dim") {
    document.dims.merge(assignments<std::int64_t>(rest));
  } else if (word == "also") {
    static const std::regex form(R"(dim\s+(.+))");
    const std::smatch match = matched(rest, form, "also dim b=1");
    document.other_dims.push_back(assignments<std::int64_t>(match[1]));
  } else if (word == "expect") {
    read_expect(document, rest);
  } else if (word == "same") {
    static const std::regex form(R"((\S+)\s+(\S+)\s*(?:~\s*(\S+))?)");
    const std::smatch match = matched(rest, form, "same Z Z2 ~ TOLERANCE");
    document.sames.push_back({match[1], match[2], optional_number(match[3])});
  } else if (word == "outputs") {
    std::istringstream names(rest);
    document.outputs.emplace(std::istream_iterator<std::string>(names), std::istream_iterator<std::string>());
  } else if (word == "error") {
    read_error(document, rest);
  } else if (word == "fails") {
    document.failure.push_back(rest);
  } else if (word == "help") {
    if (document.errors.empty()) throw DocumentError("help stands after the error that it belongs to");
    document.errors.back().help = rest;
  } else {
    throw DocumentError(fmt::format("unknown directive '{}'", word));
  }
}

const Tensor& find_output(const Outputs& outputs, const std::string& name) {
  const auto found = outputs.find(name);
  if (found == outputs.end()) throw DocumentError(fmt::format("the program has no tensor '{}'", name));
  return found->second;
}

/// Rounding in a few steps; narrow types are rounded once, when stored.
double default_tolerance(DType dtype) {
  const bool narrow = dtype == DType::bf16 || dtype == DType::f16;
  return (narrow ? 2 : 16) * epsilon(dtype);
}

std::vector<double> allowed_errors(const Tensor& wanted, double tolerance) {
  std::vector<double> allowed = values_of(wanted);
  for (double& value : allowed) value = tolerance * std::max(1.0, std::abs(value));
  return allowed;
}

void compare(std::vector<std::string>& problems, const std::string& what, const Tensor& found, const Tensor& wanted,
             std::optional<double> tolerance) {
  const auto allowed = allowed_errors(wanted, tolerance.value_or(default_tolerance(wanted.dtype())));
  if (const auto result = agree(found, wanted, allowed); !result)
    problems.push_back(fmt::format("{}: {}", what, result.message()));
}

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

SourceText read_source(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DocumentError(fmt::format("cannot open {}", path.string()));
  return {path.filename().string(), {std::istreambuf_iterator<char>(file), {}}};
}

Document read_document(SourceText source) {
  Document document{std::move(source), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  for (const Directive& directive : directives_of(document.source.text())) {
    try {
      read_directive(document, directive.word, directive.rest);
    } catch (const std::exception& error) {
      throw DocumentError(fmt::format("{}:{}: {}", document.source.name(), directive.line, error.what()));
    }
  }
  const bool expects_values = !document.values.empty() || !document.types.empty() || !document.sames.empty();
  const int kinds = (expects_values ? 1 : 0) + (document.errors.empty() ? 0 : 1) + (document.failure.empty() ? 0 : 1);
  if (kinds != 1) {
    throw DocumentError(fmt::format("{} must have values (#! expect, #! same) or errors (#! error) or fail (#! fails)",
                                    document.source.name()));
  }
  return document;
}

Shape literal_shape(const json& literal) {
  if (!literal.is_array()) return {};
  Shape shape{Extent(static_cast<std::int64_t>(literal.size()))};
  if (literal.empty()) return shape;
  const Shape row = literal_shape(literal.front());
  for (const json& other : literal) {
    if (literal_shape(other) != row) throw DocumentError(fmt::format("rows differ in {}", literal.dump()));
  }
  shape.insert(shape.end(), row.begin(), row.end());
  return shape;
}

Tensor tensor_from_literal(const json& literal, DType dtype) {
  Tensor tensor(dtype, literal_shape(literal));
  std::vector<const json*> numbers{&literal};
  while (std::any_of(numbers.begin(), numbers.end(), [](const json* value) { return value->is_array(); })) {
    std::vector<const json*> inner;
    for (const json* row : numbers) {
      for (const json& value : *row) inner.push_back(&value);
    }
    numbers = std::move(inner);
  }
  with_stored_type(dtype, [&]<class Stored>() {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto stored =
          is_float(dtype) ? narrow<Stored>(number_of(*numbers[i])) : narrow<Stored>(integer_of(*numbers[i], dtype));
      std::memcpy(tensor.mutable_data() + i * sizeof(Stored), &stored, sizeof(Stored));
    }
  });
  return tensor;
}

Tensor small_random_tensor(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape) {
  std::seed_seq sequence(name.begin(), name.end());
  std::vector<std::uint32_t> key(1);
  sequence.generate(key.begin(), key.end());
  std::mt19937_64 random(seed * 0x100000000U + key[0]);
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  for (double& value : values) {
    const auto number = static_cast<double>(random() % 17) - 8;
    value = is_float(dtype) ? number / 8 : dtype == DType::boolean ? static_cast<double>(number > 0) : number;
  }
  return tensor_of(dtype, shape, values);
}

std::vector<std::string> broken_values(const Document& document, const Outputs& outputs) {
  std::vector<std::string> problems;
  for (const ExpectedValue& expected : document.values) {
    const Tensor& found = find_output(outputs, expected.tensor);
    compare(problems, expected.tensor, found, tensor_from_literal(expected.value, found.dtype()), expected.tolerance);
  }
  return problems;
}

std::vector<std::string> broken_types(const Document& document, const Outputs& outputs) {
  std::vector<std::string> problems;
  for (const ExpectedType& expected : document.types) {
    const Tensor& found = find_output(outputs, expected.tensor);
    if (found.dtype() == expected.dtype && found.shape() == expected.shape) continue;
    problems.push_back(fmt::format("{} is {} {}, not {} {}", expected.tensor, name_of(found.dtype()),
                                   to_string(found.shape()), name_of(expected.dtype), to_string(expected.shape)));
  }
  return problems;
}

std::vector<std::string> broken_sames(const Document& document, const Outputs& outputs) {
  std::vector<std::string> problems;
  for (const ExpectedSame& expected : document.sames) {
    compare(problems, fmt::format("{} and {}", expected.first, expected.second), find_output(outputs, expected.first),
            find_output(outputs, expected.second), expected.tolerance);
  }
  return problems;
}

std::vector<std::string> broken_errors(const Document& document, const std::vector<Diagnostic>& found) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < std::max(found.size(), document.errors.size()); ++i) {
    if (i >= found.size()) {
      problems.push_back(fmt::format("no error says '{}'", document.errors[i].words));
      continue;
    }
    const std::string rendered = render(found[i], document.source);
    if (i >= document.errors.size()) {
      problems.push_back(fmt::format("not expected: {}", rendered));
      continue;
    }
    const ExpectedError& expected = document.errors[i];
    const bool has_place = !found[i].marks.empty();
    const LineColumn at = has_place ? document.source.locate(found[i].marks.front().begin) : LineColumn{};
    const bool right_place = expected.where
                                 ? has_place && at.line == expected.where->line && at.column == expected.where->column
                                 : !has_place;
    if (right_place && contains(found[i].message, expected.words) && contains(found[i].help, expected.help)) continue;
    problems.push_back(
        fmt::format("expected at {}: {} (help: {})\nfound {}",
                    expected.where ? fmt::format("{}:{}", expected.where->line, expected.where->column) : "no place",
                    expected.words, expected.help, rendered));
  }
  return problems;
}

std::vector<std::string> differences(const Document& document, const Outputs& found, const Outputs& wanted) {
  std::vector<std::string> problems;
  if (found.size() != wanted.size()) problems.push_back("the outputs are not the same ones");
  std::map<std::string, std::optional<double>> tolerances;
  for (const ExpectedSame& same : document.sames) tolerances[same.first] = tolerances[same.second] = same.tolerance;
  for (const auto& [name, tensor] : wanted) compare(problems, name, find_output(found, name), tensor, tolerances[name]);
  return problems;
}

}  // namespace einrel::test
