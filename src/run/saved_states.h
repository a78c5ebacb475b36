#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/chunked_outputs.h"
#include "run/kept_states.h"
#include "tensor/inflate.h"
#include "tensor/stored_tensor.h"
#include "tensor/tensor_file.h"

namespace einrel {

/// States in a file that holds a tensor of each name, and as `iteration` how many steps were done.
struct LoadedStates {
  std::map<std::string, std::pair<StoredTensor, DType>> files;  ///< by state, read as this type
  std::int64_t steps_done = 0;

  /// As long as this lives.
  GivenStates given() const;
};

/// Opens FILE.safetensors or FILE.npz; a file without `iteration` was saved before any step. Throws UserError where
/// it lacks a state of the graph, or has one of another shape or type.
LoadedStates load_states(const EinGraph& graph, const std::string& path, const InflateFolder& folder = {});

/// What `save_states` will write, for check_writable. Throws UserError for a file that cannot hold several tensors.
std::vector<std::pair<FileRef, DType>> files_of_states(const EinGraph& graph, const std::string& path);

/// The file that states will be in, as load_states reads them, with room on the disk taken for it. The ranks of a job
/// have to make and complete it together.
class StateFile {
 public:
  /// Of a step's tasks, and of what is `added`. Throws UserError and RunError as AtomicFile does.
  StateFile(std::string path, const PlannedTasks& tasks, const Job& job, AddedTensors added = {});

  /// The file on rank 0, which waits for its name, with what is added there in it. Throws as complete_files does.
  std::vector<AtomicFile> complete(const KeptStates& states);

 private:
  std::string path_;
  std::vector<TaskOutput> types_;
  const Job& job_;
  AddedTensors added_;
  std::unique_ptr<ChunkedOutputs> chunks_;  ///< of ranks, which have parts
  std::vector<AtomicFile> room_;
};

/// Makes such a file and lets it appear.
void save_states(const KeptStates& states, const PlannedTasks& tasks, const std::string& path, const Job& job,
                 const AddedTensors& added = {});

}  // namespace einrel
