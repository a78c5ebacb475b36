#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/report/summary.h"
#include "exec/executor.h"
#include "exec/starpu/job.h"
#include "tensor/tensor_file.h"

namespace einrel {

/// Outputs that no process holds as a whole: chunks go into files that all ranks write to side by side, or only into a
/// summary. Such a file is a .npy; an output in another format is written from it in the end. The ranks of a job have
/// to make and finish it together.
class ChunkedOutputs {
 public:
  /// `files`: of each of `outputs` that is to be written. Rank 0 makes them, under temporary names and with room for
  /// all elements. Throws UserError and RunError as AtomicFile does.
  ChunkedOutputs(const std::vector<TaskOutput>& outputs, const std::map<std::string, FileRef>& files, bool summarise,
                 const Job& job);
  ~ChunkedOutputs();
  ChunkedOutputs(const ChunkedOutputs&) = delete;
  ChunkedOutputs& operator=(const ChunkedOutputs&) = delete;

  /// This must outlive them. A chunk that comes again takes the place of the first one. They throw RunError when the
  /// disk refuses.
  std::vector<OutputWriter> writers();
  /// When all chunks are written: their summaries on rank 0, if they were wanted.
  std::map<std::string, Summary> summaries() const;
  /// Then, the files on rank 0, which wait for their names; rank 0 also writes what `add` adds to the tensors that are
  /// no .npy. Throws as complete_files does; then no file has changed.
  std::vector<AtomicFile> complete(const AddTensors& add = {});

 private:
  struct Output;
  std::vector<AtomicFile> complete_here(const AddTensors& add);

  const Job& job_;
  std::vector<std::unique_ptr<Output>> outputs_;
};

}  // namespace einrel
