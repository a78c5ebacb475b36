#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/folder_lock.h"
#include "exec/job/job.h"
#include "tensor/tensor_file.h"

namespace einrel {

/// Where training is, between two steps.
struct Position {
  std::int64_t epoch = 0;         ///< of those from 0 on, the one under way
  std::int64_t step = 0;          ///< how many of it are done
  double samples = 0;             ///< of them
  std::vector<double> sums = {};  ///< of what is reported, over those samples
  double seconds = 0;             ///< of training so far
  std::int64_t bytes = 0;         ///< that sites received so far
  bool is_held = false;           ///< `until` holds: there is nothing left to do
};

/// What has to be the same where training goes on.
struct TrainIdentity {
  std::int64_t program = 0;  ///< a hash of what is computed
  std::int64_t seed = 0;
  std::int64_t samples = 0;  ///< of training
  std::int64_t batch = 0;
  std::int64_t sites = 0;  ///< that train on their own; 0 where all train together
};

/// FNV-1a with 64 bits.
std::int64_t hash_of(const std::string& text);

/// Complete checkpoints in a folder, the newest last: `step-000000123.safetensors`.
std::vector<std::string> checkpoints_in(const std::string& folder);

/// A folder that the last two checkpoints are in.
class Checkpoints {
 public:
  /// Writes a file of `iteration` and states, with what is added on rank 0, whole or not at all; on all ranks
  /// together, which all throw if one does.
  using Write = std::function<void(const std::string& path, const AddedTensors& added)>;

  /// Rank 0 makes the folder if it is not there, and removes what a process left that was killed while it wrote a
  /// checkpoint. Throws UserError when it cannot be made or written to, another process writes checkpoints there, or it
  /// holds those of a training that does not go on here.
  Checkpoints(const std::string& folder, bool goes_on, const TrainIdentity& identity, const Job& job);

  /// On all ranks. The third newest is removed; where the disk has no room beside two, all but the newest are removed
  /// before it is tried again. Throws what `write` does: then those that are there are complete.
  void save(std::int64_t steps_done, const Position& position, const Write& write);
  std::optional<std::string> last() const;

 private:
  bool make_room(bool is_full) const;

  std::string folder_;
  TrainIdentity identity_;
  Job job_;
  std::optional<FolderLock> lock_;  ///< of rank 0
};

/// What the numbers in a checkpoint have to fit.
struct CheckpointForm {
  std::size_t reported = 0;  ///< scalars
  std::int64_t steps_of_epoch = 0;
};

/// The newest checkpoint of a folder. Throws UserError where there is none, or it is damaged (it then names the one
/// before it): a part is missing, rank 0 finds another check sum, parts do not fit each other; or where it is of
/// another training. O(bytes) on rank 0.
struct Resumed {
  std::string path;
  Position position;
};
Resumed resume_from(const std::string& folder, const TrainIdentity& identity, const CheckpointForm& form,
                    const Job& job);

/// On all ranks, each of which has read it: throws UserError unless they go on from the same.
void check_alike(const std::optional<Resumed>& resumed, const Job& job);

}  // namespace einrel
