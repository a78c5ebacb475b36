#include "train/step_program.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_error.h"
#include "kernel/cancel.h"

namespace einrel {
namespace {

template <class Error>
std::string said_of(const Error& thrown) {
  try {
    make_ready({"the tests, in batches of 3", "leave out --test"}, [&] { throw thrown; });
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MakeReady, SaysOfWhatAnErrorIsAndKeepsItsKind) {
  const std::string said = "it is so\n  help: this is of the tests, in batches of 3; leave out --test";
  EXPECT_EQ(said_of(UserError("it is so\n")), said);
  EXPECT_EQ(said_of(RunError("it is so")), said);
  EXPECT_EQ(said_of(NoRoom("it is so")), said);
  EXPECT_EQ(said_of(Stopped("it was stopped")), "it was stopped");
}

}  // namespace
}  // namespace einrel
