#pragma once

#include <libpq-fe.h>

#include <vector>

namespace einrel::sql {

/// While it lives, a signal that ends the process first asks the server to stop what it does for this connection. Where
/// the process does something else at a signal, as Python at Ctrl-C, that stays. One connection at a time has this.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(PGconn* connection);
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;

 private:
  bool is_alone_ = false;     ///< no other connection had it
  std::vector<int> handled_;  ///< signals
};

}  // namespace einrel::sql
