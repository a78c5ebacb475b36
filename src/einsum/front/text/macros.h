#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/source.h"
#include "einsum/front/build/program.h"

namespace einrel {

/// A macro whose body holds no further macro calls.
struct Macro {
  build::MacroDef definition;
  /// A built-in macro takes any number of labels for its one label parameter.
  bool built_in = false;
};

/// The macros known so far, by name, and how much may still be expanded.
class MacroTable {
 public:
  /// Starts with the built-in macros.
  MacroTable();

  /// Adds a user's macro, which may call the macros before it and use the program's scalars.
  /// Errors: the name is taken, a parameter stands twice, a label is neither parameter nor reduced, a name is
  /// unknown, a call in the body is wrong.
  void define(build::MacroDef macro, const std::set<std::string>& scalars, std::vector<Diagnostic>& errors);

  /// Replaces every macro call. Labels that a macro reduces itself are renamed to `label'N`, so that they never
  /// meet the caller's; nodes out of a macro carry the span of the call. False, with an error added, when a call is
  /// wrong or the result grows past a fixed budget.
  bool expand(build::Expr& expr, std::vector<Diagnostic>& errors);

  bool contains(const std::string& name) const { return macros_.count(name) != 0; }
  std::vector<std::string> names() const;

 private:
  const Macro* find(const build::MacroCall& call, Span span, std::vector<Diagnostic>& errors) const;
  bool instantiate(const Macro& macro, const build::MacroCall& call, Span span,
                   const std::vector<build::Expr>& arguments, build::Expr& out, std::vector<Diagnostic>& errors);

  std::map<std::string, Macro> macros_;
  std::size_t fresh_ = 0;
  std::size_t budget_;
};

/// A label as the user wrote it, without what expand added.
std::string display_label(const std::string& label);

/// The built-in macros as text in the language, for people and for `list functions`.
const std::string& built_in_macro_text();

}  // namespace einrel
