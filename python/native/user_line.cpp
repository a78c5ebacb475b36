#include "user_line.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace einrel::python {
namespace {

namespace nb = nanobind;

struct File {
  std::string name;
  bool is_of_user;
};

/// Of codes that ran, which are held, so that no other one has their address.
class Files {
 public:
  const File& of(const nb::object& code) {
    const auto known = by_code_.find(code.ptr());
    if (known != by_code_.end()) return *known->second.second;
    if (by_code_.size() == most_codes) by_code_.clear();
    const auto name = nb::cast<std::string>(nb::str(code.attr("co_filename")));
    const auto [file, is_new] = by_name_.try_emplace(name);
    if (is_new) {
      const nb::object is_of_user = nb::module_::import_("einrel._lines").attr("is_of_user");
      file->second = {name, nb::cast<bool>(is_of_user(name))};
    }
    return *by_code_.emplace(code.ptr(), std::pair(code, &file->second)).first->second.second;
  }

 private:
  static constexpr std::size_t most_codes = 10'000;
  std::map<std::string, File> by_name_;
  std::unordered_map<PyObject*, std::pair<nb::object, const File*>> by_code_;
};

std::vector<UserLine>& pushed() {
  thread_local std::vector<UserLine> lines;
  return lines;
}

}  // namespace

void push_line(const UserLine& line) { pushed().push_back(line); }

void pop_line() {
  if (!pushed().empty()) pushed().pop_back();
}

UserLine line_of_user() {
  if (!pushed().empty()) return pushed().back();
  static Files& files = *new Files;  // owned by nobody: the interpreter may end before
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid()) {
    auto* const own = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const File& file = files.of(nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(own))));
    if (file.is_of_user) return {&file.name, PyFrame_GetLineNumber(own)};
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(own)));
  }
  return {};
}

}  // namespace einrel::python
