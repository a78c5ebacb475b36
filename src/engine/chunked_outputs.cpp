#include "engine/chunked_outputs.h"

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

struct ChunkedOutputs::Output {
  TaskOutput tensor;
  FileRef target;                  ///< if it is written
  std::optional<AtomicFile> made;  ///< a .npy, on rank 0
  std::optional<SharedFile> file;
  std::uint64_t header = 0;
  bool is_summarised = true;
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, std::vector<double>> chunks;  ///< by where they begin, numbers_of each

  void write(const std::vector<std::int64_t>& begin, const Tensor& chunk) {
    if (file) {
      const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
      const Strides strides = row_major_strides(tensor.bound);
      const Tensor elements = chunk.row_major();  // a part of an input may lie otherwise
      const std::byte* from = elements.data();
      const std::uint64_t first = header + static_cast<std::uint64_t>(offset_of(begin, strides) * size);
      // Rows of the chunk that lie side by side in the file.
      std::size_t outer = chunk.rank();
      std::int64_t row = 1;
      while (outer > 0 && (chunk.shape()[outer - 1] == Extent(1) || strides[outer - 1] == row))
        row *= chunk.shape()[--outer].value();
      const Shape rows(chunk.shape().begin(), chunk.shape().begin() + static_cast<std::ptrdiff_t>(outer));
      for_each_offset(rows, strides, [&](std::int64_t offset) {
        file->write(first + static_cast<std::uint64_t>(offset * size), {from, static_cast<std::size_t>(row * size)});
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
                               bool summarise, const Job& job)
    : job_(job) {
  for (const TaskOutput& tensor : outputs) {
    outputs_.push_back(std::make_unique<Output>());
    Output& output = *outputs_.back();
    output.tensor = tensor;
    output.is_summarised = summarise;
    const auto target = files.find(tensor.name);
    if (target == files.end()) continue;
    output.target = target->second;
    const std::string& path = output.target.path;
    const std::string header = npy_header(tensor.dtype, tensor.bound);
    output.header = header.size();
    agree(job, [&] {
      if (job.rank != 0) return;
      output.made.emplace(path);
      output.made->extend(output.header + stored_bytes(path, stored_type(tensor.dtype), tensor.bound));
      output.made->rewrite(0, std::as_bytes(std::span(header)));
    });
    const std::string temporary = from_rank_0(job, job.rank == 0 ? output.made->temporary() : "");
    agree(job, [&] { output.file.emplace(temporary, path); });
  }
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
  std::vector<AtomicFile> files;
  agree(job_, [&] {
    if (job_.rank == 0) files = complete_here(add);
  });
  return files;
}

std::vector<AtomicFile> ChunkedOutputs::complete_here(const AddTensors& add) {
  FileTensors others;
  const auto is_npy = [](const Output& output) { return output.target.path.ends_with(".npy"); };
  for (const std::unique_ptr<Output>& output : outputs_) {
    if (!output->made || is_npy(*output)) continue;
    output->made->close();
    others.emplace_back(output->target, read(open_tensor({output->made->temporary(), ""})));
  }
  if (add) add(others);
  std::vector<AtomicFile> files = complete_files(others);
  for (const std::unique_ptr<Output>& output : outputs_) {
    if (!output->made) continue;
    if (is_npy(*output)) {
      output->made->close();
      files.push_back(*std::move(output->made));
    }
    output->made.reset();
  }
  return files;
}

}  // namespace einrel
