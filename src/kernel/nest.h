#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/spec.h"

namespace einrel {

// An EinSum as loops. Whatever changes with the labels is a "quantity", affine in the positions of the loops: the
// offset of the output element, the offset into each operand, a coordinate that must be checked against its extent,
// the value of a label. So operands of any strides, windows and label values are all handled in one way.

/// One loop of a nest: a label, or several that can be walked as one.
struct Loop {
  std::int64_t extent = 1;
  bool reduced = false;
  std::vector<std::int64_t> steps;  ///< by how much each quantity grows from one position to the next
};

/// A coordinate of a padded operand that may lie outside [0, extent).
struct Guard {
  std::size_t quantity = 0;
  std::int64_t extent = 0;
};

/// How an operand is read: the element at the offset that `quantity` says, or `pad` where a guard fails.
struct Reading {
  DType dtype = DType::f32;
  bool aligned = true;  ///< every element lies at a multiple of its size
  std::size_t quantity = 0;
  std::vector<Guard> guards;
  double pad = 0;
};

struct LoopNest {
  std::vector<Loop> loops;                ///< of extents 2 and more: output loops, then reduced loops
  std::vector<std::int64_t> bases;        ///< every quantity where all loops are at 0
  std::vector<Reading> readings;          ///< per operand
  std::vector<std::size_t> label_values;  ///< per label, the quantity that is its value, where the body uses it
};

/// The quantity that is the offset of the output element.
inline constexpr std::size_t output_quantity = 0;

/// Whether the body uses the operand.
inline bool is_read(const Reading& reading) { return reading.quantity != output_quantity; }
/// Whether no loop repeats what is read, and none of it is padding.
bool is_read_once(const Reading& reading, const std::vector<Loop>& loops);

/// Makes one loop of every two of which one leads on to the other. With `keep_order`, positions stay in row-major
/// order.
void merge_loops(std::vector<Loop>& loops, bool keep_order);

/// The loops of an EinSum without empty labels, merged where strides allow. O(labels^2 * quantities) per merge.
/// Throws UserError when an index or the number of positions leaves 63 bits.
LoopNest make_nest(const KernelSpec& spec);

/// The number of positions of all loops together.
std::int64_t position_count(const std::vector<Loop>& loops);

/// Adds modulo 2^64: the offset of an operand may overflow where a guard keeps it from being used.
inline std::int64_t add_wrapping(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
inline std::int64_t multiply_wrapping(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// Walks loops in row-major order and keeps all quantities up to date. Copies share the loops.
class Odometer {
 public:
  /// At position 0; `bases` are the quantities there.
  Odometer(std::vector<Loop> loops, std::vector<std::int64_t> bases);

  std::int64_t count() const { return count_; }
  const std::vector<std::int64_t>& quantities() const { return quantities_; }
  /// To the next position; after the last comes the first.
  void advance();
  /// To any position.
  void seek(std::int64_t position);

 private:
  struct Path {
    std::vector<Loop> loops;
    std::vector<std::int64_t> bases;
  };
  std::shared_ptr<const Path> path_;
  std::int64_t count_;
  std::vector<std::int64_t> positions_;
  std::vector<std::int64_t> quantities_;
};

}  // namespace einrel
