#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/kept_states.h"
#include "tensor/inflate.h"
#include "tensor/stored_tensor.h"
#include "tensor/tensor_file.h"

namespace einrel {

/// States in a file that holds a tensor of each name, and as `iteration` how many steps were done.
struct LoadedStates {
  std::map<std::string, std::pair<StoredTensor, DType>> files;  ///< by state, read as this type
  std::int64_t steps_done = 0;

  /// As long as this lives.
  InputSources sources() const;
};

/// Opens FILE.safetensors or FILE.npz; a file without `iteration` was saved before any step. Throws UserError where
/// it lacks a state of the graph, or has one of another shape or type.
LoadedStates load_states(const EinGraph& graph, const std::string& path, const InflateFolder& folder = {});

/// What `save_states` will write, for check_writable. Throws UserError for a file that cannot hold several tensors.
std::vector<std::pair<FileRef, DType>> files_of_states(const EinGraph& graph, const std::string& path);

/// Writes states as load_states reads them, and `more` tensors, which rank 0 has, into the same file; on all ranks of a
/// job together. Throws as write_tensors does.
void save_states(const KeptStates& states, const PlannedTasks& tasks, const std::string& path, const Job& job,
                 const std::vector<std::pair<std::string, Tensor>>& more = {});

}  // namespace einrel
