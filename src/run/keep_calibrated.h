#pragma once

#include <cstddef>
#include <string>

#include "exec/job/job.h"

namespace einrel {

/// Measures this machine (calibrate.h) and keeps the figures for this number of ranks in calibrated_path, beside those
/// for others. On all ranks of a job. Returns what is to be said of it, on rank 0. Throws, before anything is measured,
/// UserError when there is no folder for settings or the file there is damaged; RunError when it cannot be written.
std::string keep_calibrated(std::size_t own_threads, const Job& job);

}  // namespace einrel
