#pragma once

namespace einrel::cli {

/// Inputs are mapped into memory. When somebody shortens the file of one while it is in use, touching what is gone ends
/// the process: from now on with a message that names the file, and the exit code of a failed run.
void name_inputs_that_are_cut_short();

}  // namespace einrel::cli
