#pragma once

#include "base/source.h"
#include "exec/job/job.h"
#include "execution.h"

namespace einrel::cli {

/// Chooses how the program runs, runs it, writes outputs and prints, on rank 0. Throws as the parts do, FailedElsewhere
/// where the error is that of another rank.
void run_program(const ExecutionArguments& arguments, Prepared prepared, const SourceText& source, const Job& job);

}  // namespace einrel::cli
