#pragma once

#include <string>
#include <vector>

namespace einrel::test {

/// A server of PostgreSQL (server.py), which ends with this object or with this process, however that ends.
class PostgresServer {
 public:
  /// `command`: the interpreter, server.py, its arguments.
  explicit PostgresServer(const std::vector<std::string>& command);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// Of an empty database with Einrel's functions.
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  int pid_ = 0;
  int keeps_alive_ = -1;
};

}  // namespace einrel::test
