#include "lasting_program.h"

#include <utility>
#include <vector>

namespace einrel::python {
namespace {

std::int64_t forks = 0;  // between the first process and this one; under Python's lock

}  // namespace

LastingProgram::LastingProgram(api::Program program, std::function<api::Program()> again)
    : again_(std::move(again)), program_(std::make_shared<const api::Program>(std::move(program))), forks_(forks) {}

const api::Program& LastingProgram::get() {
  if (forks_ != forks) {
    // What belongs to threads that are gone can neither run nor be destroyed.
    static std::vector<std::shared_ptr<const api::Program>>& left_behind =
        *new std::vector<std::shared_ptr<const api::Program>>;  // owned by nobody: it must not be destroyed at the end
    left_behind.push_back(std::move(program_));
    program_ = std::make_shared<const api::Program>(again_());
    forks_ = forks;
  }
  return *program_;
}

void forked() { ++forks; }

}  // namespace einrel::python
