#include "tra/text/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/suggest.h"
#include "einsum/front/text/parse_expr.h"

namespace einrel::calls {
namespace {

using parsing::SyntaxError;

/// Longer expressions and compositions are refused: building them copies what they are made of.
constexpr std::size_t most_terms = 4096;
constexpr std::size_t most_kernels = 64;

using Names = std::function<std::optional<KeyExpr>(const std::string&)>;

[[noreturn]] void refuse(std::string message, Span where, std::string help = "") {
  throw SyntaxError{{std::move(message), {where}, std::move(help)}};
}

KeyExpr read_expr(const Arithmetic& arithmetic, const Names& names, std::string_view help) {
  if (arithmetic.terms.size() > most_terms) refuse("this expression is too long", arithmetic.span, "split it");
  std::vector<KeyExpr> stack;
  for (const Arithmetic::Term& term : arithmetic.terms) {
    if (const auto* integer = std::get_if<std::int64_t>(&term.what)) {
      stack.push_back(key_constant(*integer));
    } else if (const auto* name = std::get_if<std::string>(&term.what)) {
      const std::optional<KeyExpr> value = names(*name);
      if (!value) refuse(fmt::format("unknown name '{}'", *name), term.span, std::string(help));
      stack.push_back(*value);
    } else {
      const KeyExpr b = std::move(stack.back());
      stack.pop_back();
      try {
        stack.back() = key_call(std::get<KeyFunction>(term.what), stack.back(), b);
      } catch (const UserError& error) {
        refuse(error.what(), term.span);
      }
    }
  }
  return stack.back();
}

std::int64_t read_integer(const Arithmetic& arithmetic, std::string_view what) {
  const auto no_names = [](const std::string&) { return std::nullopt; };
  const KeyExpr expr = read_expr(arithmetic, no_names, fmt::format("{} is a whole number", what));
  const auto* constant = expr.steps.size() == 1 ? std::get_if<KeyConstant>(&expr.steps.front()) : nullptr;
  if (constant == nullptr) refuse(fmt::format("{} is a whole number", what), arithmetic.span);
  return constant->value;
}

std::size_t read_index(const Arithmetic& arithmetic, std::string_view what) {
  const std::int64_t value = read_integer(arithmetic, what);
  if (value < 0) refuse(fmt::format("{} cannot be negative", what), arithmetic.span, "they count from 0");
  return static_cast<std::size_t>(value);
}

const Arithmetic& plain(const Entry& entry, std::string_view what) {
  if (entry.dim) refuse(fmt::format("{} has no ':' in it", what), entry.dim->span);
  if (entry.unit) refuse(fmt::format("{} has no units", what), entry.unit->span);
  if (entry.window) refuse(fmt::format("{} has no windows", what), entry.window->span);
  return entry.value;
}

const Vector& as_vector(const Parameter& parameter, std::string_view form) {
  if (const auto* vector = std::get_if<Vector>(&parameter.what)) return *vector;
  refuse(fmt::format("key positions are expected here, as in {}", form), parameter.span);
}

DimensionCut read_cut(const Entry& entry) {
  DimensionCut cut;
  cut.parts = read_integer(entry.value, "the number of parts");
  if (entry.unit) cut.unit = read_integer(*entry.unit, "a unit");
  return cut;
}

Window read_window(const WindowClause& clause) {
  const std::int64_t extent = read_integer(clause.extent, "an extent");
  if (extent < 0) refuse("an extent cannot be negative", clause.extent.span);
  Window window{Extent(extent)};
  if (clause.coefficient) window.coefficient = read_integer(*clause.coefficient, "a coefficient");
  window.low = read_integer(clause.low, "the first place of a window");
  window.high = read_integer(clause.high, "the last place of a window");
  window.pad = clause.pad;
  return window;
}

void refuse_window(const Entry& entry) {
  if (entry.window)
    refuse("no chunks of a window are expected here", entry.window->span, "only a repartition makes them of others");
}

}  // namespace

std::int64_t read_integer(const Parameter& parameter, std::string_view what) {
  const auto* arithmetic = std::get_if<Arithmetic>(&parameter.what);
  if (arithmetic == nullptr) refuse(fmt::format("{} is a whole number", what), parameter.span);
  return read_integer(*arithmetic, what);
}

std::size_t read_index(const Parameter& parameter, std::string_view what) {
  const std::int64_t value = read_integer(parameter, what);
  if (value < 0) refuse(fmt::format("{} cannot be negative", what), parameter.span, "they count from 0");
  return static_cast<std::size_t>(value);
}

KeyPositions read_positions(const Vector& vector) {
  KeyPositions positions;
  for (const Entry& entry : vector.entries)
    positions.push_back(read_index(plain(entry, "a list of positions"), "a key position"));
  return positions;
}

KeyPositions read_positions(const Parameter& parameter) { return read_positions(as_vector(parameter, "<0,2>")); }

std::vector<DimensionCut> read_cuts(const Vector& vector) {
  std::vector<DimensionCut> cuts;
  for (const Entry& entry : vector.entries) {
    if (entry.dim) refuse("one cut per dimension is expected here", entry.dim->span, "as in <2,2>");
    refuse_window(entry);
    cuts.push_back(read_cut(entry));
  }
  return cuts;
}

std::vector<DimensionCut> read_new_cuts(const Vector& vector) {
  Vector without = vector;
  for (Entry& entry : without.entries) entry.window.reset();
  std::vector<DimensionCut> cuts = read_cuts(without);
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    if (vector.entries[d].window) cuts[d].window = read_window(*vector.entries[d].window);
  }
  return cuts;
}

TensorCut read_tensor_cut(const Vector& vector, std::size_t rank) {
  const bool names_dims = std::any_of(vector.entries.begin(), vector.entries.end(),
                                      [](const Entry& entry) { return entry.dim.has_value(); });
  constexpr const char* help =
      "write the parts of every dimension, <4,2>, or name those that are cut, <1: 2>; <> cuts none";
  TensorCut cut;
  for (std::size_t i = 0; i < vector.entries.size(); ++i) {
    const Entry& entry = vector.entries[i];
    if (names_dims && !entry.dim) refuse("some of these say which dimension they cut, some do not", vector.span, help);
    refuse_window(entry);
    cut.dims.push_back(entry.dim ? read_index(*entry.dim, "a dimension") : i);
    cut.cuts.push_back(read_cut(entry));
  }
  if (!names_dims && !vector.entries.empty() && vector.entries.size() != rank) {
    refuse(fmt::format("the cut has {} entr{}, but the tensor has {} dimension{}", vector.entries.size(),
                       vector.entries.size() == 1 ? "y" : "ies", rank, rank == 1 ? "" : "s"),
           vector.span, help);
  }
  return cut;
}

KeyMap read_key_map(const Parameter& parameter, std::size_t arity) {
  const auto* arrow = std::get_if<Arrow>(&parameter.what);
  if (arrow == nullptr) refuse("a map of keys is expected here", parameter.span, "as in <k0,k1> -> <2*k0 + k1>");
  std::map<std::string, std::size_t> names;
  std::string all;
  for (const Entry& entry : arrow->from.entries) {
    const Arithmetic& item = plain(entry, "the left side");
    const auto* name = item.terms.size() == 1 ? std::get_if<std::string>(&item.terms.front().what) : nullptr;
    if (name == nullptr) refuse("the left side names the positions of the key", item.span, "as in <k0,k1> -> <k1>");
    if (!names.insert({*name, names.size()}).second) refuse(fmt::format("'{}' stands twice", *name), item.span);
    all += (all.empty() ? "" : ", ") + *name;
  }
  if (names.size() != arity) {
    refuse(fmt::format("the left side names {} position{}, but the keys have {}", names.size(),
                       names.size() == 1 ? "" : "s", arity),
           arrow->from.span, "name every position of the key");
  }
  const auto lookup = [&](const std::string& name) {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(key_position(found->second));
  };
  KeyMap map;
  for (const Entry& entry : arrow->to.entries)
    map.outputs.push_back(read_expr(plain(entry, "a key"), lookup, "the names on the left are " + all));
  return map;
}

KeyExpr read_predicate(const Parameter& parameter, std::size_t arity) {
  const auto* arithmetic = std::get_if<Arithmetic>(&parameter.what);
  if (arithmetic == nullptr) refuse("a condition on keys is expected here", parameter.span, "as in k0 == k1");
  const auto lookup = [&](const std::string& name) -> std::optional<KeyExpr> {
    std::size_t position = 0;
    const char* end = name.data() + name.size();
    const auto [rest, problem] = std::from_chars(name.data() + 1, end, position);
    const bool is_key = name.front() == 'k' && problem == std::errc() && rest == end && position < arity;
    return is_key ? std::optional(key_position(position)) : std::nullopt;
  };
  const std::string help = arity == 0 ? "the keys have no positions"
                                      : fmt::format("the keys have {} position{}: k0{}", arity, arity == 1 ? "" : "s",
                                                    arity == 1 ? "" : fmt::format(" to k{}", arity - 1));
  return read_expr(*arithmetic, lookup, help);
}

std::vector<Name> read_kernel_names(const Parameter& parameter) {
  if (const auto* composition = std::get_if<Composition>(&parameter.what)) return composition->kernels;
  if (const auto* arithmetic = std::get_if<Arithmetic>(&parameter.what); arithmetic != nullptr) {
    const auto* name = arithmetic->terms.size() == 1 ? std::get_if<std::string>(&arithmetic->terms[0].what) : nullptr;
    if (name != nullptr) return {{*name, parameter.span}};
  }
  refuse("the name of a kernel is expected here", parameter.span, "as in matAdd, or diag . matAdd");
}

void KernelScope::define(const KernelStatement& statement) {
  if (is_named_kernel(statement.name.text)) {
    errors_.push_back({fmt::format("there is a kernel '{}' already", statement.name.text),
                       {statement.name.span},
                       "it belongs to the language; choose another name"});
    return;
  }
  KernelDefinition definition = statement.definition;
  definition.scalars = scalars_;
  const auto [known, is_new] = definitions_.insert({statement.name.text, definition});
  if (is_new) return;
  errors_.push_back({fmt::format("kernel '{}' is defined twice", statement.name.text),
                     {statement.name.span, known->second.where},
                     "give one of them another name"});
}

std::optional<Kernel> KernelScope::find(const std::vector<Name>& names, const std::vector<Signature>& arrays) {
  std::vector<Signature> inputs = arrays;
  std::optional<Kernel> kernel;
  if (names.size() > most_kernels) {
    errors_.push_back(
        {fmt::format("this composes more than {} kernels", most_kernels), {names.front().span}, "split it"});
    return std::nullopt;
  }
  for (std::size_t i = names.size(); i-- > 0;) {
    const std::optional<Kernel> next = find_one(names[i], inputs);
    if (!next) return std::nullopt;
    std::vector<std::size_t> ranks;
    for (const Signature& input : inputs) ranks.push_back(input.rank);
    inputs = {{0, result_rank(*next, ranks), result_dtype(*next)}};
    kernel = kernel ? compose(*next, *kernel) : *next;
  }
  return kernel;
}

std::optional<Kernel> KernelScope::find_one(const Name& name, const std::vector<Signature>& arrays) {
  std::vector<DType> dtypes;
  std::vector<std::size_t> ranks;
  for (const Signature& array : arrays) {
    dtypes.push_back(array.dtype);
    ranks.push_back(array.rank);
  }
  const auto own = definitions_.find(name.text);
  if (own == definitions_.end() && !is_named_kernel(name.text)) {
    if (suspects_.count(name.text) != 0) return std::nullopt;
    std::vector<std::string> known;
    for (const NamedKernel& kernel : all_named_kernels()) known.emplace_back(kernel.name);
    for (const auto& [other, definition] : definitions_) known.push_back(other);
    const std::string near = did_you_mean(name.text, known);
    errors_.push_back({fmt::format("unknown kernel '{}'", name.text),
                       {name.span},
                       near.empty() ? fmt::format("define it: kernel {}(A[i,j]) -> [i,j] = ...", name.text) : near});
    return std::nullopt;
  }
  if (own == definitions_.end()) {
    try {
      return named_kernel(name.text, dtypes, ranks);
    } catch (const UserError& error) {
      errors_.push_back({error.what(), {name.span}, ""});
      return std::nullopt;
    }
  }
  const KernelDefinition& definition = own->second;
  if (definition.parameters.size() != arrays.size()) {
    errors_.push_back({fmt::format("kernel {} takes {} array{}, not {}", name.text, definition.parameters.size(),
                                   definition.parameters.size() == 1 ? "" : "s", arrays.size()),
                       {name.span},
                       ""});
    return std::nullopt;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t wanted = definition.parameters[i].indices.size();
    if (wanted == ranks[i]) continue;
    errors_.push_back({fmt::format("kernel {} takes arrays with {} dimension{} as {}, not with {}", name.text, wanted,
                                   wanted == 1 ? "" : "s", definition.parameters[i].name.text, ranks[i]),
                       {name.span},
                       ""});
    return std::nullopt;
  }
  return make(definition, dtypes);
}

std::optional<Kernel> KernelScope::make(const KernelDefinition& definition, const std::vector<DType>& dtypes) {
  const auto key = std::pair(definition.name, dtypes);
  const auto known = made_.find(key);
  if (known != made_.end()) return known->second;
  return made_[key] = kernel_from(definition, dtypes, errors_);
}

void KernelScope::check_unused() {
  std::set<std::string> used;
  for (const auto& [key, kernel] : made_) used.insert(key.first);
  for (const auto& [name, definition] : definitions_) {
    if (used.count(name) == 0) make(definition, std::vector<DType>(definition.parameters.size(), DType::f32));
  }
}

void sort_and_unite(std::vector<Diagnostic>& errors) {
  const auto place = [](const Diagnostic& error) {
    return error.marks.empty() ? std::string::npos : error.marks.front().begin;
  };
  std::stable_sort(errors.begin(), errors.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.message == b.message && a.marks == b.marks;
  };
  errors.erase(std::unique(errors.begin(), errors.end(), same), errors.end());
}

}  // namespace einrel::calls
