#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"
#include "tra/key.h"

namespace einrel {

/// Where a dimension is read for one position y of a label: from coefficient * y + low to coefficient * y + high, as in
/// X[2*y + d - 1]: coefficient 2, low -1, high 1 for d below 3. Positions beyond the tensor read `pad`; without, none
/// are.
struct Window {
  Extent extent;  ///< of the label
  std::int64_t coefficient = 1;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::optional<double> pad = std::nullopt;
  auto operator<=>(const Window&) const = default;
};

/// How one dimension is cut: into `parts` chunks of whole units, whose extents differ by at most one unit, the larger
/// first. A unit of more than one element keeps groups of elements together (the d of a merged dimension (h d)).
/// The partition vector d of the papers has one of these per dimension.
/// With a window, the label is cut into `parts` so, and chunks have what its parts read: they overlap in halos, and
/// may reach beyond the tensor.
struct DimensionCut {
  std::int64_t parts = 1;
  std::int64_t unit = 1;  ///< 1 with a window
  std::optional<Window> window = std::nullopt;
  auto operator<=>(const DimensionCut&) const = default;
};

/// Throws UserError unless parts and unit are positive, the unit divides the extent, and parts is at most extent / unit
/// (1 for an extent of 0). With a window, unless parts is at most the label's extent, and all that is read is near.
void check_cut(Extent extent, const DimensionCut& cut);
/// The first element of chunk `part` (0..parts; parts gives the extent) of a cut without a window.
std::int64_t chunk_begin(Extent extent, const DimensionCut& cut, std::int64_t part);
Extent chunk_extent(Extent extent, const DimensionCut& cut, std::int64_t part);

/// Elements begin .. end - 1 of a dimension.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t extent() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};
/// What chunk `part` has. With a window also what lies beyond the tensor, in chunks of smaller parts what one of the
/// largest part would read besides, and what lies between the windows of neighbouring parts, if anything: chunks begin
/// in steps, and what several of them have is one range, too.
ElementRange chunk_range(Extent extent, const DimensionCut& cut, std::int64_t part);
/// That of it which is in the tensor.
ElementRange elements_in_chunk(Extent extent, const DimensionCut& cut, std::int64_t part);
/// The element that chunk 0 of a cut with a window begins with: chunk k begins coefficient * (the first position of
/// part k) behind.
std::int64_t window_begin(const DimensionCut& cut);
/// Whether chunks of a tensor cut so may overlap.
bool has_windows(const std::vector<DimensionCut>& cuts);
/// Elements of the tensor in all chunks, those that several have counted in each.
std::int64_t elements_in_chunks(const Shape& bound, const std::vector<DimensionCut>& cuts);

/// Which key position cuts which dimension: position i of the key counts the chunks of dimension `dims[i]`.
struct TensorCut {
  std::vector<std::size_t> dims;
  std::vector<DimensionCut> cuts;
  bool operator==(const TensorCut&) const = default;
};
/// One key position per dimension, in order.
TensorCut cut_of_all(const std::vector<DimensionCut>& cuts);

/// One tuple of a relation, without its elements.
struct Chunk {
  Key key;
  Shape bound;
  bool operator==(const Chunk&) const = default;
};

/// The type of a tensor relation (paper: R^(k,r,b), TRA section 3): its key set and the bound of the array under each
/// key, since last chunks may be smaller. Relations have few tuples, so the set is kept as it is.
struct RelationType {
  std::size_t key_arity = 0;
  std::size_t rank = 0;
  DType dtype = DType::f32;
  std::vector<Chunk> chunks;  ///< by ascending key; keys are unique
  bool operator==(const RelationType&) const = default;
};

/// More tuples than this in one relation are refused.
constexpr std::size_t most_chunks = std::size_t{1} << 20U;

/// No value of a key is above this, so that arithmetic on keys and sites stays far from 63 bits.
constexpr std::int64_t most_key_value = (std::int64_t{1} << 40U) - 1;

/// Front(R): the smallest vector above all keys; zeros when there are none.
Key frontier(const RelationType& type);
/// Elements of all arrays (paper: f, section 5.3, the product of frontier and bound when all chunks are equal).
std::int64_t float_count(const RelationType& type);
/// Some keys below the frontier that are missing (at most `most`), ascending. Continuity is that there are none.
std::vector<Key> holes(const RelationType& type, std::size_t most = 4);
/// The chunk with that key, or nullptr. O(log chunks).
const Chunk* find_chunk(const RelationType& type, const Key& key);
/// "f32, keys below <2,2>, arrays (2, 2)"; bounds that vary are shown as a range.
std::string to_string(const RelationType& type);

/// The type of a tensor cut into chunks. Throws UserError for a cut that check_cut refuses or too many chunks.
RelationType relation_type(DType dtype, const Shape& bound, const TensorCut& cut);

/// The bound of the tensor that a relation is cut from: of one tuple, whatever its key, that of its array; else, with
/// one key position per dimension, along each dimension the extents of the chunks on that edge together.
Shape tensor_bound(const RelationType& type);

/// Why the arrays of a relation are no chunks of one tensor, and how to make them such.
struct NoTensor {
  std::string reason;
  std::string help;
};
/// nullopt for a relation of one tuple, whose array is the tensor, and where there is one key position per dimension,
/// in order, that counts chunks along it from 0: no key is missing, arrays side by side have equal extents. `name` is
/// what the help calls the relation. O(tuples).
std::optional<NoTensor> why_no_tensor(const RelationType& type, const std::string& name);

/// A tensor relation with its data.
using Relation = std::map<Key, Tensor>;
/// The chunks of a tensor, as views of it; copies where they reach beyond it.
Relation cut_tensor(const Tensor& tensor, const TensorCut& cut);
/// The inverse for a relation with one key position per dimension, in order; throws Bug when the chunks do not fit.
Tensor assemble(const Relation& relation, DType dtype, std::size_t rank);

}  // namespace einrel
