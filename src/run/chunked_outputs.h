#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/job/job.h"
#include "run/summary.h"
#include "tensor/tensor_file.h"

namespace einrel {

struct Chosen;

/// Outputs that no process holds as a whole: chunks go into files that all ranks write to side by side, or only into a
/// summary. Chunks of a .npy or .safetensors go to their places in it; those of another format into a .npy of each
/// tensor, from which it is written in the end. The ranks of a job have to make and finish it together.
class ChunkedOutputs {
 public:
  /// `files`: of each of `outputs` that is to be written. Rank 0 makes them, under temporary names and with room for
  /// all elements, and for those that `complete` adds, `added`, which are all in one of these files. Throws UserError
  /// and RunError as AtomicFile does.
  ChunkedOutputs(const std::vector<TaskOutput>& outputs, const std::map<std::string, FileRef>& files, bool summarise,
                 const Job& job, const std::vector<PlannedTensor>& added = {});
  /// Those of a run that was chosen. Where all come in one chunk, to a process on its own without a limit of memory,
  /// they are written and summarised when the run is over, and take none of its time.
  ChunkedOutputs(const Chosen& chosen, const std::map<std::string, FileRef>& files, bool summarise, const Job& job);
  ~ChunkedOutputs();
  ChunkedOutputs(const ChunkedOutputs&) = delete;
  ChunkedOutputs& operator=(const ChunkedOutputs&) = delete;

  /// This must outlive them. A chunk that comes again takes the place of the first one. They throw RunError when the
  /// disk refuses.
  std::vector<OutputWriter> writers();
  /// When all chunks are written: their summaries on rank 0, if they were wanted.
  std::map<std::string, Summary> summaries() const;
  /// Then, the files on rank 0, which wait for their names; there `add` adds what was `added` to the tensors that are
  /// in the file already. Throws as complete_files does; then no file has changed.
  std::vector<AtomicFile> complete(const AddTensors& add = {});

 private:
  struct File;
  struct Output;
  void add_outputs(const std::vector<TaskOutput>& outputs, const std::map<std::string, FileRef>& files, bool summarise);
  void open(File& file, const std::string& path, const FileLayout& layout);
  void open_files(const std::vector<PlannedTensor>& added);
  std::vector<AtomicFile> complete_here(const AddTensors& add);
  static void add_to(File& file, const AddTensors& add);

  const Job& job_;
  std::vector<std::unique_ptr<Output>> outputs_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<AtomicFile> room_;  // for what is kept until the run is over
};

}  // namespace einrel
