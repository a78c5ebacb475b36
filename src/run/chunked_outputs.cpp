#include "run/chunked_outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <limits>
#include <mutex>
#include <optional>
#include <span>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_error.h"
#include "base/mapped_file.h"
#include "run/choose_plan.h"
#include "tensor/npy.h"
#include "tensor/rows.h"

namespace einrel {
namespace {

/// A file that another process may have made, to write to.
class SharedFile {
 public:
  SharedFile(const std::string& path, std::string name)
      : name_(std::move(name)), descriptor_(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)) {
    if (descriptor_ < 0) throw_file_error("write", name_, errno);
  }
  ~SharedFile() { ::close(descriptor_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    write_at(descriptor_, name_, offset, bytes);
  }

 private:
  std::string name_;
  int descriptor_;
};

/// One chunk's summary with its place, as numbers that a rank sends: rank of the tensor and begin first.
std::vector<double> numbers_of(const std::vector<std::int64_t>& begin, const Tensor& chunk) {
  const Summary summary = summarize(chunk);
  std::vector<double> numbers(begin.begin(), begin.end());
  numbers.insert(numbers.end(), {static_cast<double>(chunk.count()), summary.min, summary.max, summary.sum,
                                 std::bit_cast<double>(summary.integer)});
  return numbers;
}

/// The chunks' summaries together, in the order of the chunks.
Summary combined(std::vector<std::vector<double>> chunks, std::size_t rank) {
  std::sort(chunks.begin(), chunks.end(), [&](const auto& a, const auto& b) {
    const auto end = static_cast<std::ptrdiff_t>(rank);
    return std::lexicographical_compare(a.begin(), a.begin() + end, b.begin(), b.begin() + end);
  });
  const auto is_copy = [&](const auto& a, const auto& b) {  // on another rank
    return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(rank), b.begin());
  };
  chunks.erase(std::unique(chunks.begin(), chunks.end(), is_copy), chunks.end());
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Summary all{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0, 0, 0};
  double count = 0;
  bool has_nan = false;
  for (const std::vector<double>& chunk : chunks) {
    if (chunk[rank] == 0) continue;
    count += chunk[rank];
    has_nan = has_nan || chunk[rank + 1] != chunk[rank + 1];
    all.min = std::min(all.min, chunk[rank + 1]);
    all.max = std::max(all.max, chunk[rank + 2]);
    all.sum += chunk[rank + 3];
    all.integer = std::bit_cast<std::int64_t>(chunk[rank + 4]);  // a scalar is one chunk
  }
  if (count == 0 || has_nan) all.min = all.max = nan;
  all.mean = all.sum / count;
  return all;
}

}  // namespace

struct ChunkedOutputs::File {
  std::vector<Output*> outputs;
  std::optional<AtomicFile> made;    ///< on rank 0
  std::optional<SharedFile> shared;  ///< until all is written
  bool is_final = false;             ///< what will be there; else a .npy that it is written from
  std::vector<std::uint64_t> added;  ///< where the elements begin that are added
};

struct ChunkedOutputs::Output {
  TaskOutput tensor;
  FileRef target;                    ///< if it is written
  File* file = nullptr;              ///< where chunks go then
  std::uint64_t elements_begin = 0;  ///< there
  bool is_summarised = true;
  bool is_kept = false;        ///< until the run is over
  std::optional<Tensor> kept;  ///< once it has come
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, std::vector<double>> chunks;  ///< by where they begin, numbers_of each

  PlannedTensor planned() const { return {target, tensor.dtype, tensor.bound}; }

  void write(const std::vector<std::int64_t>& begin, const Tensor& chunk) {
    if (is_kept) {
      if (!kept) kept.emplace(tensor.dtype, Shape{});
      return writer_to(*kept, true)(begin, chunk);
    }
    if (file != nullptr) {
      const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
      const Strides strides = row_major_strides(tensor.bound);
      const Tensor elements = chunk.row_major();  // a part of an input may lie otherwise
      const std::byte* from = elements.data();
      const std::uint64_t first = elements_begin + static_cast<std::uint64_t>(offset_of(begin, strides) * size);
      // Rows of the chunk that lie side by side in the file.
      std::size_t outer = chunk.rank();
      std::int64_t row = 1;
      while (outer > 0 && (chunk.shape()[outer - 1] == Extent(1) || strides[outer - 1] == row))
        row *= chunk.shape()[--outer].value();
      const Shape rows(chunk.shape().begin(), chunk.shape().begin() + static_cast<std::ptrdiff_t>(outer));
      for_each_offset(rows, strides, [&](std::int64_t offset) {
        file->shared->write(first + static_cast<std::uint64_t>(offset * size),
                            {from, static_cast<std::size_t>(row * size)});
        from += row * size;
      });
    }
    if (!is_summarised) return;
    std::vector<double> numbers = numbers_of(begin, chunk);
    const std::lock_guard lock(mutex);
    chunks[begin] = std::move(numbers);
  }
};

ChunkedOutputs::ChunkedOutputs(const std::vector<TaskOutput>& outputs, const std::map<std::string, FileRef>& files,
                               bool summarise, const Job& job, const std::vector<PlannedTensor>& added)
    : job_(job) {
  add_outputs(outputs, files, summarise);
  open_files(added);
}

ChunkedOutputs::ChunkedOutputs(const Chosen& chosen, const std::map<std::string, FileRef>& files, bool summarise,
                               const Job& job)
    : job_(job) {
  add_outputs(program_outputs(chosen.tasks), files, summarise);
  const std::vector<bool> whole = come_whole(chosen.tasks.graph);
  const bool come_so = std::find(whole.begin(), whole.end(), false) == whole.end();
  if (!come_so || job.ranks > 1 || is_limited(chosen.memory)) {
    open_files({});
    return;
  }
  std::vector<PlannedTensor> planned;
  for (const std::unique_ptr<Output>& output : outputs_) {
    output->is_kept = true;
    if (!output->target.path.empty()) planned.push_back(output->planned());
  }
  room_ = take_room(planned);
}

void ChunkedOutputs::add_outputs(const std::vector<TaskOutput>& outputs, const std::map<std::string, FileRef>& files,
                                 bool summarise) {
  for (const TaskOutput& tensor : outputs) {
    outputs_.push_back(std::make_unique<Output>());
    Output& output = *outputs_.back();
    output.tensor = tensor;
    output.is_summarised = summarise;
    if (const auto target = files.find(tensor.name); target != files.end()) output.target = target->second;
  }
}

void ChunkedOutputs::open_files(const std::vector<PlannedTensor>& added) {
  std::vector<std::vector<Output*>> by_file;  // in the same order on all ranks
  agree(job_, [&] {
    std::map<std::string, std::size_t> numbers;
    for (const std::unique_ptr<Output>& output : outputs_) {
      if (output->target.path.empty()) continue;
      const auto [known, is_new] = numbers.emplace(identity_of(output->target.path), by_file.size());
      if (is_new) by_file.emplace_back();
      by_file[known->second].push_back(output.get());
    }
  });
  invariant(added.empty() || by_file.size() == 1, "what is added has one file that it goes to");
  for (const std::vector<Output*>& outputs : by_file) {
    std::vector<PlannedTensor> planned;
    for (const Output* const output : outputs) planned.push_back(output->planned());
    planned.insert(planned.end(), added.begin(), added.end());
    if (const std::optional<FileLayout> layout = layout_of(planned)) {
      File& file = *files_.emplace_back(std::make_unique<File>());
      file.outputs = outputs;
      file.is_final = true;
      open(file, outputs.front()->target.path, *layout);
      continue;
    }
    for (Output* const output : outputs) {
      File& file = *files_.emplace_back(std::make_unique<File>());
      file.outputs = {output};
      open(file, output->target.path, npy_layout(output->tensor.dtype, output->tensor.bound));
    }
  }
}

/// Of this path or, under a temporary name, beside it.
void ChunkedOutputs::open(File& file, const std::string& path, const FileLayout& layout) {
  agree(job_, [&] {
    if (job_.rank != 0) return;
    file.made.emplace(path);
    file.made->extend(layout.bytes);
    file.made->rewrite(0, std::as_bytes(std::span(layout.front)));
  });
  const std::string temporary = from_rank_0(job_, job_.rank == 0 ? file.made->temporary() : "");
  agree(job_, [&] { file.shared.emplace(temporary, path); });
  for (std::size_t i = 0; i < file.outputs.size(); ++i) {
    file.outputs[i]->file = &file;
    file.outputs[i]->elements_begin = layout.begins[i];
  }
  file.added.assign(layout.begins.begin() + std::ssize(file.outputs), layout.begins.end());
}

ChunkedOutputs::~ChunkedOutputs() = default;

std::vector<OutputWriter> ChunkedOutputs::writers() {
  std::vector<OutputWriter> writers;
  for (const std::unique_ptr<Output>& output : outputs_) {
    writers.emplace_back(
        [to = output.get()](const std::vector<std::int64_t>& begin, const Tensor& chunk) { to->write(begin, chunk); });
  }
  return writers;
}

std::map<std::string, Summary> ChunkedOutputs::summaries() const {
  std::map<std::string, Summary> summaries;
  for (const std::unique_ptr<Output>& output : outputs_) {
    std::vector<double> own;
    for (const auto& [begin, numbers] : output->chunks) own.insert(own.end(), numbers.begin(), numbers.end());
    const std::size_t rank = output->tensor.bound.size();
    if (output->kept && output->is_summarised) own = numbers_of(std::vector<std::int64_t>(rank, 0), *output->kept);
    std::vector<std::vector<double>> chunks;
    for (const std::vector<double>& numbers : gather(job_, own)) {
      for (std::size_t at = 0; at < numbers.size(); at += rank + 5) {
        const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(at);
        chunks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(rank + 5));
      }
    }
    if (job_.rank == 0 && output->is_summarised) summaries[output->tensor.name] = combined(std::move(chunks), rank);
  }
  return summaries;
}

std::vector<AtomicFile> ChunkedOutputs::complete(const AddTensors& add) {
  std::vector<AtomicFile> complete;
  agree(job_, [&] {
    for (const std::unique_ptr<File>& file : files_) file->shared.reset();  // before they are read, or appear
  });
  agree(job_, [&] {
    if (job_.rank == 0) complete = complete_here(add);
  });
  return complete;
}

std::vector<AtomicFile> ChunkedOutputs::complete_here(const AddTensors& add) {
  FileTensors others;
  bool is_added = !add;
  for (const std::unique_ptr<File>& file : files_) {
    if (file->is_final) {
      if (!file->added.empty()) add_to(*file, add);
      is_added = is_added || !file->added.empty();
      file->made->close();
    } else {
      file->made->close();
      others.emplace_back(file->outputs.front()->target, read(open_tensor({file->made->temporary(), ""})));
    }
  }
  for (const std::unique_ptr<Output>& output : outputs_) {
    if (output->kept && !output->target.path.empty()) others.emplace_back(output->target, *output->kept);
  }
  if (!is_added) add(others);
  room_.clear();  // for what is written now
  std::vector<AtomicFile> complete = complete_files(others);
  for (const std::unique_ptr<File>& file : files_) {
    if (file->is_final) complete.push_back(*std::move(file->made));
    file->made.reset();
  }
  return complete;
}

/// To a file that all else is in.
void ChunkedOutputs::add_to(File& file, const AddTensors& add) {
  const FileBytes bytes = map_file(file.made->temporary());
  FileTensors tensors;
  for (const Output* const output : file.outputs) {
    const auto& [name, dtype, bound] = output->tensor;
    tensors.emplace_back(output->target, Tensor(dtype, bound, row_major_strides(bound),
                                                bytes.bytes.data() + output->elements_begin, bytes.owner));
  }
  add(tensors);
  invariant(tensors.size() == file.outputs.size() + file.added.size(), "as much is added as there is room for");
  for (std::size_t i = 0; i < file.added.size(); ++i) {
    const Tensor elements = tensors[file.outputs.size() + i].second.row_major();
    file.made->rewrite(file.added[i], {elements.data(), static_cast<std::size_t>(elements.byte_count())});
  }
}

}  // namespace einrel
