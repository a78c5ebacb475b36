#include "einsum/front/text/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace einrel::test {
namespace {

using std::chrono::milliseconds;

constexpr const char* program = "input X[i]\nY[i] = 2 * X[i]\n";

std::string user_error(const std::string& path, milliseconds patience) {
  try {
    read_program_file(path, patience);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

/// A pipe in a folder of its own.
class Pipe {
 public:
  Pipe() {
    std::signal(SIGPIPE, SIG_IGN);  // who writes when nobody reads any more
    mkfifo(path_.c_str(), 0600);
  }

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_ = folder_ / "pipe.ein";
};

TEST(PipeOfAProgram, IsReadToItsEndHoweverItComes) {
  const Pipe pipe;
  const std::jthread writer([&] {
    std::ofstream writing(pipe.path());
    for (const char c : std::string(program)) writing << c << std::flush;
  });
  EXPECT_EQ(read_program_file(pipe.path(), std::chrono::minutes(1)), program);
}

TEST(PipeOfAProgram, ThatDripsForEverIsGivenUp) {
  const Pipe pipe;
  const std::jthread writer([&](const std::stop_token& has_ended) {
    std::ofstream writing(pipe.path());
    while (!has_ended.stop_requested() && writing << '#' << std::flush) std::this_thread::sleep_for(milliseconds(10));
  });
  EXPECT_THAT(user_error(pipe.path(), milliseconds(300)), testing::HasSubstr("no whole program has come in 0.3 s"));
}

TEST(PipeOfAProgram, IntoWhichNobodyWritesIsGivenUp) {
  const Pipe pipe;
  EXPECT_THAT(user_error(pipe.path(), milliseconds(50)), testing::HasSubstr("no whole program has come in 0.05 s"));
}

TEST(FileOfAProgram, IsReadWhole) {
  const TemporaryFolder folder;
  put_file(folder / "p.ein", program);
  EXPECT_EQ(read_program_file(folder / "p.ein"), program);
  EXPECT_THAT(user_error(folder / "none.ein", milliseconds(1)), testing::HasSubstr("No such file"));
}

TEST(FileOfAProgram, HasAtMost4MiB) {
  const TemporaryFolder folder;
  put_file(folder / "most.ein", std::string(most_program_bytes, '#'));
  put_file(folder / "more.ein", std::string(most_program_bytes + 1, '#'));
  EXPECT_EQ(read_program_file(folder / "most.ein").size(), most_program_bytes);
  EXPECT_THAT(user_error(folder / "more.ein", milliseconds(1)), testing::HasSubstr("more than 4 MiB"));
}

}  // namespace
}  // namespace einrel::test
