#pragma once

#include <sys/types.h>

#include <string>

namespace einrel {

/// Files that must not outlive this process, however it ends: by an error, Ctrl-C, kill -9. A small process
/// that starts with the first of them waits for the end of this one and removes what is left. Best effort: where
/// no process can be started, they stay after a violent end.
void remove_at_death(const std::string& path);
/// Starts the small process, if there is none yet: best while this one has no other threads, one of which might hold a
/// lock just then that the copy would wait for.
void prepare_to_remove();
/// The file has got its name, or is removed already.
void forget_at_death(const std::string& path);
/// A process that must not stand still: the same small process sends it SIGCONT, once a second and when this one ends.
void keep_awake(pid_t process);

}  // namespace einrel
