#pragma once

#include <einrel/program.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace einrel::python {

/// A program that also runs after a fork: its threads are not in the child, which makes it anew.
class LastingProgram {
 public:
  /// `again` makes the same program.
  LastingProgram(api::Program program, std::function<api::Program()> again);
  const api::Program& get();

 private:
  std::function<api::Program()> again_;
  std::shared_ptr<const api::Program> program_;
  std::int64_t forks_;
};

/// To be called in the child after a fork.
void forked();

}  // namespace einrel::python
