#pragma once

#include <libpq-fe.h>

namespace einrel::sql {

/// While it lives, a signal that ends the process first asks the server to stop what it does for this connection.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(PGconn* connection);
  ~CancelOnSignal();
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;
};

}  // namespace einrel::sql
