#pragma once

#include <string>

namespace einrel {

/// Splits the process: returns in a new one, which goes on, while the old one waits for it, passes signals on, and ends
/// with its exit code. When the new process is killed, or stands still by a signal for `timeout` seconds, the old one
/// says so, beginning with `name`, and ends with exit code 2, so that whoever started it ends all others of the job.
/// When the old one is killed, the new one dies with it; when it is stopped, it is woken. Call it before there are
/// threads.
void run_guarded(const std::string& name, double timeout);

}  // namespace einrel
