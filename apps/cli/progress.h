#pragma once

#include <string>

#include "engine/session.h"

namespace einrel::cli {

/// The listener for --progress auto|always|never: one line on standard error, rewritten in place on a terminal,
/// one line per vertex elsewhere. `auto` shows it on a terminal only, once a run has taken half a second.
/// Throws UserError for another word.
ProgressListener progress_listener(const std::string& when);

}  // namespace einrel::cli
