#include "sql/functions/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "kernel/evaluate.h"
#include "sql/functions/array_bytes.h"
#include "tra/interpret.h"
#include "tra/text/call_tree.h"
#include "tra/text/print_kernel.h"
#include "tra/text/reading.h"

namespace einrel::sql {
namespace {

/// What a kernel is called in its statement: letters, digits and _ of its own name.
std::string name_in_text(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool keeps = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += keeps ? c : '_';
  }
  const bool is_name = !out.empty() && (out[0] < '0' || out[0] > '9') && !is_named_kernel(out);
  return is_name ? out : "k_" + out;
}

/// "diag . matAdd" at its dots.
std::vector<calls::Name> names_in(const std::string& text) {
  std::vector<calls::Name> names;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t dot = std::min(text.find(" . ", begin), text.size());
    names.push_back({text.substr(begin, dot - begin), {}});
    begin = dot + 3;
  }
  return names;
}

/// So many are kept: a query may make a text of every row.
constexpr std::size_t most_read = 1000;

[[noreturn]] void refuse(const std::string& text, const std::vector<Diagnostic>& errors) {
  const std::string why = errors.empty() ? "" : ": " + errors.front().message;
  throw UserError(fmt::format("'{}' is no kernel for these arrays{}", printable(text), why));
}

Kernel read_kernel(const std::string& text, const std::vector<Signature>& arguments) {
  std::vector<Diagnostic> errors;
  std::vector<calls::Name> names = names_in(text);
  calls::Program program;
  if (text.starts_with("kernel ")) {
    program = calls::parse(SourceText("kernel", text), errors);
    const bool is_one = program.statements.size() == 1 &&
                        std::holds_alternative<calls::KernelStatement>(program.statements.front().what);
    if (!errors.empty() || !is_one) refuse(text, errors);
    names = {std::get<calls::KernelStatement>(program.statements.front().what).name};
  }
  calls::KernelScope scope(program, errors);
  for (const calls::Statement& statement : program.statements)
    scope.define(std::get<calls::KernelStatement>(statement.what));
  std::optional<Kernel> kernel = errors.empty() ? scope.find(names, arguments) : std::nullopt;
  if (!kernel) refuse(text, errors);
  return *std::move(kernel);
}

}  // namespace

std::string KernelTable::add(const Kernel& kernel, const std::vector<std::size_t>& ranks) {
  const std::string plain = is_identity(kernel) ? "id"
                            : is_in_registry(kernel, ranks)
                                ? kernel.name
                                : readable_statement(kernel, name_in_text(kernel.name), ranks);
  std::string text = plain;
  // A text that does not say all of its kernel (to_text says which) may be that of another one, too.
  for (int n = 2;; ++n) {
    const auto [known, is_new] = kernels_.insert({Key{text, kernel.arguments, ranks}, kernel});
    if (is_new || (known->second.steps == kernel.steps)) return text;
    text = fmt::format("{}  # {}", plain, n);
  }
}

const Kernel& KernelTable::find(const std::string& text, const std::vector<Tensor>& arguments) {
  Key key{text, {}, {}};
  for (const Tensor& argument : arguments) {
    std::get<1>(key).push_back(argument.dtype());
    std::get<2>(key).push_back(argument.rank());
  }
  const auto known = kernels_.find(key);
  if (known != kernels_.end()) return known->second;
  std::vector<Signature> signatures;
  for (const Tensor& argument : arguments) signatures.push_back({0, argument.rank(), argument.dtype()});
  const auto read = read_.find(key);
  if (read != read_.end()) return read->second;
  Kernel kernel = read_kernel(text, signatures);
  if (read_.size() >= most_read) read_.clear();
  return read_.insert({std::move(key), std::move(kernel)}).first->second;
}

Tensor call(const Kernel& kernel, const std::vector<Tensor>& arguments, Workers& workers) {
  const auto chunk_kernel = [&](const Vertex& vertex, const std::vector<Tensor>& operands) {
    check_chunk_bytes(vertex.dtype, vertex.bound);
    return evaluate(vertex, operands, {}, workers);
  };
  return evaluate_by(chunk_kernel, kernel, arguments);
}

}  // namespace einrel::sql
