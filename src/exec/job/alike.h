#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/job/job.h"

namespace einrel {

/// Something that all ranks have to have alike, or they would compute different things and mix them.
struct Fact {
  std::string what;          ///< "--steps"; of what is too long to show "other elements of input A", as a rank has them
  std::string value;         ///< shown in messages; empty where `digest` stands for it
  std::uint64_t digest = 0;  ///< base/digest.h
  std::string help = {};     ///< a line that says what to do
};

/// On all ranks of a job: what the first of the facts is that they do not share, and on which ranks, the same text on
/// each; empty where there is none. Some 8 bytes from every rank to every other where all is alike.
std::string difference(const Job& job, const std::vector<Fact>& facts);

/// Throws UserError that says so, on the lowest rank, FailedElsewhere on the others, as `agree` does.
void check_alike(const Job& job, const std::vector<Fact>& facts);

}  // namespace einrel
