#pragma once

#include <string>

#include "run/session.h"
#include "train/train.h"

namespace einrel::cli {

/// The listener for --progress auto|always|never: one line on standard error, rewritten in place on a terminal,
/// one line per vertex elsewhere. `auto` shows it on a terminal only, once a run has taken half a second.
/// Throws UserError for another word.
ProgressListener progress_listener(const std::string& when);

/// What `train` says on standard error: notes at once, how far an epoch is as `when` says, as above but for a line at
/// most every second where it is no terminal. On standard output a line for each epoch, under a heading, unless quiet.
TrainListener train_listener(const std::string& when, bool has_test, bool is_quiet);

}  // namespace einrel::cli
