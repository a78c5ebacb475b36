#include "exec/memory/digests.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/digest.h"

namespace einrel {
namespace {

/// Boxes of about so many bytes that a tensor consists of, in row-major order.
class Boxes {
 public:
  Boxes(const Shape& bound, std::int64_t element_bytes, std::int64_t box_bytes) : bound_(bound) {
    if (element_count(bound) == 0) return;
    count_ = 1;
    std::int64_t inner = element_bytes;
    along_ = bound.size();
    while (along_ > 0 && bound[along_ - 1].value() <= box_bytes / inner) inner *= bound[--along_].value();
    if (along_ == 0) return;
    --along_;  // the dimension that a box has some of, but of those before only one
    rows_ = std::max<std::int64_t>(box_bytes / inner, 1);
    in_row_ = (bound[along_].value() + rows_ - 1) / rows_;
    count_ = in_row_;
    for (std::size_t d = 0; d < along_; ++d) count_ *= bound[d].value();
    is_cut_ = true;
  }

  std::int64_t count() const { return count_; }

  /// Where a box begins, and its bound.
  std::pair<std::vector<std::int64_t>, Shape> operator[](std::int64_t box) const {
    std::vector<std::int64_t> begin(bound_.size(), 0);
    Shape bound = bound_;
    if (!is_cut_) return {begin, bound};
    begin[along_] = box % in_row_ * rows_;
    bound[along_] = Extent(std::min(rows_, bound_[along_].value() - begin[along_]));
    std::int64_t outer = box / in_row_;
    for (std::size_t d = along_; d-- > 0;) {
      begin[d] = outer % bound_[d].value();
      bound[d] = Extent(1);
      outer /= bound_[d].value();
    }
    return {begin, bound};
  }

 private:
  const Shape& bound_;
  bool is_cut_ = false;
  std::size_t along_ = 0;
  std::int64_t rows_ = 1;
  std::int64_t in_row_ = 1;
  std::int64_t count_ = 0;
};

struct TaskDigest {
  Digest& digest;
  void add(const std::vector<std::int64_t>& numbers) const { digest.add(std::as_bytes(std::span(numbers))); }
  void add(const Shape& bound) const {
    for (const Extent extent : bound) digest.add(extent.value());
  }
  void operator()(const ReadInput& read) const {
    digest.add(static_cast<std::int64_t>(2 * read.input + (read.is_shared ? 1 : 0)));
    add(read.begin);
  }
  void operator()(const CallKernel& call) const {
    digest.add(static_cast<std::int64_t>(2 * call.kernel + (call.onto ? 1 : 0)));
    add(call.numbers);
  }
  void operator()(const CopyBoxes& copy) const {
    for (const CopyBoxes::Box& box : copy.boxes) {
      add(box.from);
      add(box.to);
      add(box.bound);
    }
    if (copy.padding) digest.add(std::as_bytes(std::span(&*copy.padding, 1)));
  }
  void operator()(const Send& /*send*/) const {}
  void operator()(const WriteOutput& write) const {
    digest.add(static_cast<std::int64_t>(write.output));
    add(write.begin);
  }
};

void add(const std::vector<ArrayId>& arrays, Digest& digest) {
  for (const ArrayId array : arrays) digest.add(static_cast<std::int64_t>(array.index));
}

}  // namespace

std::uint64_t digest_of(const InputSource& source, DType dtype, const Shape& bound) {
  constexpr std::int64_t mebibyte = std::int64_t{1} << 20U;
  const auto* const tensor = std::get_if<Tensor>(&source);
  const std::int64_t most = tensor != nullptr ? 256 * mebibyte : mebibyte / 16;
  const std::int64_t box_bytes = tensor != nullptr ? mebibyte : most / 8;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const Boxes boxes(bound, element, box_bytes);
  // Without those between where they are too many; of these the first and the last.
  const bool is_small = element_count(bound) <= most / element;
  const std::int64_t taken = is_small ? boxes.count() : std::min(boxes.count(), most / box_bytes);
  const std::int64_t steps = std::max<std::int64_t>(taken - 1, 1);
  Digest digest;
  Tensor made(dtype, tensor != nullptr || boxes.count() == 0 ? Shape{} : boxes[0].second);
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t last = boxes.count() - 1;
    const auto [begin, shape] = boxes[last / steps * i + last % steps * i / steps];
    if (tensor != nullptr) {
      const Tensor part = tensor->box(begin, shape).row_major();
      digest.add({part.data(), static_cast<std::size_t>(part.byte_count())});
    } else {
      std::get<InputMaker>(source)(begin, shape, made.mutable_data());
      digest.add({made.data(), static_cast<std::size_t>(element_count(shape) * element)});
    }
  }
  return digest.value();
}

std::uint64_t digest_of(const TaskGraph& graph) {
  Digest digest;
  const TaskDigest operation{digest};
  digest.add(graph.sites);
  for (const TaskArray& array : graph.arrays) {
    digest.add(array.site);
    digest.add(static_cast<std::int64_t>(array.dtype));
    operation.add(array.bound);
  }
  for (const Task& task : graph.tasks) {
    digest.add(static_cast<std::int64_t>(task.op.index()));
    std::visit(operation, task.op);
    add(task.reads, digest);
    add(task.makes, digest);
  }
  return digest.value();
}

}  // namespace einrel
