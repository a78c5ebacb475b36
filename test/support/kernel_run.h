#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "support/random_einsum.h"
#include "support/sanitizers.h"

namespace einrel::test {

/// Aligned memory of exactly the bytes asked for, filled with noise. What is written behind it is seen by
/// AddressSanitizer, or else by `overrun`.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t bytes) : size_(static_cast<std::size_t>(bytes)) {
    memory_.reset(static_cast<std::byte*>(::operator new(size_ + guard_, alignment)));
    std::memset(memory_.get(), 0xFF, size_ + guard_);  // NaN, -1, true
  }

  std::byte* data() const { return memory_.get(); }
  bool overrun() const {
    return std::any_of(data() + size_, data() + size_ + guard_, [](std::byte byte) { return byte != std::byte{0xFF}; });
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::size_t size_;
  std::size_t guard_ = is_sanitized() ? 0 : 4096;  // which look at what lies right behind
  std::unique_ptr<std::byte, Free> memory_;
};

/// Memory of a result in row-major order or in a random layout: permuted, reversed, spread, misaligned. It is full of
/// noise, and so is the memory around and between its elements, which must stay as it was.
class ResultMemory {
 public:
  ResultMemory(Random& random, DType dtype, const Shape& shape, bool row_major)
      : layout_(row_major_layout(dtype, shape)) {
    std::size_t misalignment = 0;
    std::int64_t first = 0;
    std::int64_t end = element_count(shape);
    if (!row_major) {
      misalignment = random.chance(0.2) ? 1 : 0;
      end = random.chance(0.3) ? random.between(2, 3) : 1;
      std::vector<std::size_t> order(shape.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      random.shuffle(order);
      for (const std::size_t d : order) {
        const std::int64_t extent = shape[d].value();
        const bool reversed = random.chance(0.2);
        layout_.strides[d] = extent == 1 ? random.between(-5, 5) : reversed ? -end : end;
        if (reversed && extent > 1) first += end * (extent - 1);
        end = end * std::max<std::int64_t>(extent, 1) + (random.chance(0.2) ? random.between(1, 3) : 0);
      }
    }
    const std::size_t size = size_of(dtype);
    layout_.aligned = misalignment % size == 0;
    memory_ =
        std::make_shared<std::vector<std::byte>>(margin + misalignment + static_cast<std::size_t>(end) * size + margin);
    for (std::size_t i = 0; i < memory_->size(); i += sizeof(std::uint32_t)) {
      const auto noise = static_cast<std::uint32_t>(random.between(0, std::numeric_limits<std::uint32_t>::max()));
      std::memcpy(memory_->data() + i, &noise, std::min(sizeof noise, memory_->size() - i));
    }
    first_ = margin + misalignment + static_cast<std::size_t>(first) * size;
  }

  const ArrayLayout& layout() const { return layout_; }
  std::byte* data() { return memory_->data() + first_; }
  Tensor tensor() const {
    return Tensor(layout_.dtype, layout_.shape, layout_.strides, memory_->data() + first_, memory_);
  }

  /// Every element small random numbers, with `specials` other ones, too.
  void fill(Random& random, bool specials) {
    with_stored_type(layout_.dtype, [&]<class Stored>() {
      for_each_offset(layout_.shape, layout_.strides, [&](std::int64_t offset) {
        const auto value = narrow<Stored>(random_number(random, layout_.dtype, specials));
        std::memcpy(data() + offset * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
      });
    });
  }

  /// All bytes as they are now, and then the number of bytes outside of elements that have changed since.
  std::vector<std::byte> snapshot() const { return *memory_; }
  std::int64_t changes_outside(const std::vector<std::byte>& before) {
    std::vector<std::byte> after = *memory_;
    const std::size_t size = size_of(layout_.dtype);
    for_each_offset(layout_.shape, layout_.strides, [&](std::int64_t offset) {
      const std::size_t at = first_ + static_cast<std::size_t>(offset) * size;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), size,
                  after.begin() + static_cast<std::ptrdiff_t>(at));
    });
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < after.size(); ++i) changes += after[i] == before[i] ? 0 : 1;
    return changes;
  }

 private:
  static constexpr std::size_t margin = 128;
  ArrayLayout layout_;
  std::shared_ptr<std::vector<std::byte>> memory_;
  std::size_t first_ = 0;
};

/// Runs a kernel on exactly the workspaces that it asks for, the parts of each stage in random order, one at a time.
inline testing::AssertionResult run_guarded(const PreparedKernel& kernel, const Arrays& arrays, Random& random) {
  const GuardedMemory own(kernel.own_bytes);
  const GuardedMemory shared(kernel.shared_bytes);
  for (const Stage& stage : kernel.stages) {
    std::vector<std::int64_t> parts(static_cast<std::size_t>(stage.parts));
    std::iota(parts.begin(), parts.end(), std::int64_t{0});
    random.shuffle(parts);
    for (const std::int64_t part : parts) stage.run(arrays, {own.data(), shared.data()}, part);
  }
  if (own.overrun()) return testing::AssertionFailure() << "wrote behind its own workspace";
  if (shared.overrun()) return testing::AssertionFailure() << "wrote behind the shared workspace";
  return testing::AssertionSuccess();
}

/// The spec of a random EinSum on its operands, into a result of this layout.
inline KernelSpec kernel_spec(const RandomEinsum& random, const ArrayLayout& result, bool accumulate) {
  KernelSpec spec{random.einsum(), {}, result, random.scalars, accumulate, false};
  for (const Tensor& operand : random.operands) spec.operands.push_back(layout_of(operand));
  return spec;
}

inline std::vector<const std::byte*> data_of(const std::vector<Tensor>& operands) {
  std::vector<const std::byte*> data;
  for (const Tensor& operand : operands) data.push_back(operand.data());
  return data;
}

/// What is wrong with an offer and what it prepares, whatever the spec; "" if nothing.
inline std::string defect_of(const Offer& offer, const PreparedKernel& prepared) {
  if (!(offer.seconds > 0 && offer.seconds < 1e300)) return "its modelled time is no time";
  if (offer.path.empty()) return "it does not say its path";
  if (offer.own_bytes < 0 || offer.own_bytes > most_workspace_bytes) return "its own workspace is out of bounds";
  if (offer.shared_bytes < 0 || offer.shared_bytes > most_workspace_bytes) return "the shared one is out of bounds";
  if (prepared.own_bytes != offer.own_bytes) return "its own workspace is not the one offered";
  if (prepared.shared_bytes != offer.shared_bytes) return "the shared workspace is not the one offered";
  if (prepared.stages.empty()) return "it does nothing";
  const bool has_parts =
      std::all_of(prepared.stages.begin(), prepared.stages.end(), [](const Stage& stage) { return stage.parts >= 1; });
  return has_parts ? "" : "a stage has no parts";
}

}  // namespace einrel::test
