#include "postgres/server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

extern char** environ;

namespace einrel::test {

PostgresServer::PostgresServer(const std::vector<std::string>& command) {
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  if (::pipe2(input.data(), O_CLOEXEC) != 0 || ::pipe2(output.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe to a server");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output[1], STDOUT_FILENO);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failure = ::posix_spawn(&pid_, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  ::close(input[0]);
  ::close(output[1]);
  keeps_alive_ = input[1];
  char letter = 0;
  while (failure == 0 && ::read(output[0], &letter, 1) == 1 && letter != '\n') url_ += letter;
  ::close(output[0]);
  if (letter != '\n') throw std::runtime_error("the server of PostgreSQL did not start");
}

PostgresServer::~PostgresServer() {
  ::close(keeps_alive_);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace einrel::test
