#include "tra/relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

/// Visits every key below `front` by ascending key, until `visit` returns false.
template <class Visit>
void for_each_key(const Key& front, Visit&& visit) {
  if (std::any_of(front.begin(), front.end(), [](std::int64_t n) { return n <= 0; })) return;
  Key key(front.size(), 0);
  while (visit(static_cast<const Key&>(key))) {
    std::size_t d = key.size();
    while (d > 0 && ++key[d - 1] == front[d - 1]) key[--d] = 0;
    if (d == 0) return;
  }
}

std::string extent_range(const RelationType& type, std::size_t dim) {
  Extent least = type.chunks.front().bound[dim];
  Extent most = least;
  for (const Chunk& chunk : type.chunks) {
    least = std::min(least, chunk.bound[dim]);
    most = std::max(most, chunk.bound[dim]);
  }
  return least == most ? fmt::format("{}", most.value()) : fmt::format("{}..{}", least.value(), most.value());
}

}  // namespace

namespace {

void check_window(const DimensionCut& cut) {
  const Window& window = *cut.window;
  if (cut.unit != 1 || window.coefficient == 0 || window.low > window.high)
    throw UserError("a window has a coefficient, a first place that is not behind its last, and no units");
  if (cut.parts < 1 || cut.parts > std::max<std::int64_t>(1, window.extent.value())) {
    throw UserError(fmt::format("a label of extent {} cannot be cut into {} parts", window.extent.value(), cut.parts));
  }
  for (const std::int64_t number : {window.extent.value(), window.coefficient, window.low, window.high}) {
    if (number > most_key_value || number < -most_key_value)
      throw UserError(fmt::format("a window with numbers up to {} at most", most_key_value));
  }
  checked_multiply(2 * std::abs(window.coefficient), window.extent.value() + 1);  // and places stay below the double
}

}  // namespace

void check_cut(Extent extent, const DimensionCut& cut) {
  if (cut.window) return check_window(cut);
  if (cut.parts < 1 || cut.unit < 1) {
    throw UserError(cut.unit == 1
                        ? fmt::format("a dimension is cut into at least 1 part, not {}", cut.parts)
                        : fmt::format("a dimension is cut into at least 1 part in units of at least 1, not {} "
                                      "in units of {}",
                                      cut.parts, cut.unit));
  }
  if (extent.value() % cut.unit != 0)
    throw UserError(fmt::format("an extent of {} is not made of units of {}", extent.value(), cut.unit));
  if (cut.parts > std::max<std::int64_t>(1, extent.value() / cut.unit)) {
    throw UserError(fmt::format("an extent of {}{} cannot be cut into {} parts", extent.value(),
                                cut.unit == 1 ? "" : fmt::format(" in units of {}", cut.unit), cut.parts));
  }
}

std::int64_t chunk_begin(Extent extent, const DimensionCut& cut, std::int64_t part) {
  const std::int64_t units = extent.value() / cut.unit;
  return cut.unit * (part * (units / cut.parts) + std::min(part, units % cut.parts));
}

Extent chunk_extent(Extent extent, const DimensionCut& cut, std::int64_t part) {
  return Extent(chunk_range(extent, cut, part).extent());
}

std::int64_t window_begin(const DimensionCut& cut) {
  const Window& window = *cut.window;
  if (window.coefficient > 0) return window.low;
  return window.coefficient * (chunk_begin(window.extent, {cut.parts, 1}, 1) - 1) + window.low;
}

ElementRange chunk_range(Extent extent, const DimensionCut& cut, std::int64_t part) {
  if (!cut.window) return {chunk_begin(extent, cut, part), chunk_begin(extent, cut, part + 1)};
  const Window& window = *cut.window;
  const std::int64_t first = chunk_begin(window.extent, {cut.parts, 1}, part);
  const std::int64_t last = chunk_begin(window.extent, {cut.parts, 1}, part + 1) - 1;
  const std::int64_t end = window.coefficient * (window.coefficient > 0 ? last : first) + window.high + 1;
  const std::int64_t between = std::abs(window.coefficient) - (window.high - window.low + 1);
  const std::int64_t next = end + std::max<std::int64_t>(between, 0);
  return {window.coefficient * first + window_begin(cut), std::max(end, std::min(next, extent.value()))};
}

ElementRange elements_in_chunk(Extent extent, const DimensionCut& cut, std::int64_t part) {
  const ElementRange range = chunk_range(extent, cut, part);
  const std::int64_t begin = std::clamp<std::int64_t>(range.begin, 0, extent.value());
  return {begin, std::clamp(range.end, begin, extent.value())};
}

bool has_windows(const std::vector<DimensionCut>& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [](const DimensionCut& cut) { return cut.window.has_value(); });
}

std::int64_t elements_in_chunks(const Shape& bound, const std::vector<DimensionCut>& cuts) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    std::int64_t here = cuts[d].window ? 0 : bound[d].value();
    for (std::int64_t part = 0; cuts[d].window && part < cuts[d].parts; ++part)
      here = checked_add(here, elements_in_chunk(bound[d], cuts[d], part).extent());
    elements = checked_multiply(elements, here);
  }
  return elements;
}

TensorCut cut_of_all(const std::vector<DimensionCut>& cuts) {
  TensorCut result{{}, cuts};
  for (std::size_t d = 0; d < cuts.size(); ++d) result.dims.push_back(d);
  return result;
}

Key frontier(const RelationType& type) {
  Key front(type.key_arity, 0);
  for (const Chunk& chunk : type.chunks) {
    for (std::size_t i = 0; i < front.size(); ++i) front[i] = std::max(front[i], chunk.key[i] + 1);
  }
  return front;
}

std::int64_t float_count(const RelationType& type) {
  std::int64_t count = 0;
  for (const Chunk& chunk : type.chunks) count = checked_add(count, element_count(chunk.bound));
  return count;
}

std::vector<Key> holes(const RelationType& type, std::size_t most) {
  std::vector<Key> missing;
  auto present = type.chunks.begin();
  for_each_key(frontier(type), [&](const Key& key) {
    while (present != type.chunks.end() && present->key < key) ++present;
    if (present == type.chunks.end() || present->key != key) missing.push_back(key);
    return missing.size() < most;
  });
  return missing;
}

const Chunk* find_chunk(const RelationType& type, const Key& key) {
  const auto found = std::lower_bound(type.chunks.begin(), type.chunks.end(), key,
                                      [](const Chunk& chunk, const Key& wanted) { return chunk.key < wanted; });
  return found != type.chunks.end() && found->key == key ? &*found : nullptr;
}

std::string to_string(const RelationType& type) {
  if (type.chunks.empty()) return fmt::format("{}, no tuples", name_of(type.dtype));
  std::string bound;
  for (std::size_t d = 0; d < type.rank; ++d) bound += (d == 0 ? "" : ", ") + extent_range(type, d);
  const std::size_t count = type.chunks.size();
  return fmt::format("{}, {} below {}, {} ({})", name_of(type.dtype),
                     count == 1 ? "1 key" : fmt::format("{} keys", count), to_string(frontier(type)),
                     count == 1 ? "array" : "arrays", bound);
}

RelationType relation_type(DType dtype, const Shape& bound, const TensorCut& cut) {
  if (cut.dims.size() != cut.cuts.size()) throw Bug("a cut has one entry per key position");
  Key front;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < cut.dims.size(); ++i) {
    const std::size_t dim = cut.dims[i];
    if (dim >= bound.size())
      throw UserError(fmt::format("dimension {} is cut, but the tensor has {} dimensions", dim, bound.size()));
    if (std::count(cut.dims.begin(), cut.dims.end(), dim) > 1)
      throw UserError(fmt::format("dimension {} is cut by two key positions", dim));
    check_cut(bound[dim], cut.cuts[i]);
    front.push_back(cut.cuts[i].parts);
    count = checked_multiply(count, cut.cuts[i].parts);
    if (count > static_cast<std::int64_t>(most_chunks)) {
      throw UserError(fmt::format("the cut makes more than {} chunks; cut into fewer parts", most_chunks));
    }
  }
  RelationType type{cut.dims.size(), bound.size(), dtype, {}};
  for_each_key(front, [&](const Key& key) {
    Chunk chunk{key, bound};
    for (std::size_t i = 0; i < key.size(); ++i) {
      const std::size_t dim = cut.dims[i];
      chunk.bound[dim] = chunk_extent(bound[dim], cut.cuts[i], key[i]);
    }
    type.chunks.push_back(std::move(chunk));
    return true;
  });
  return type;
}

namespace {

/// Keys that count something else than dimensions.
NoTensor wrong_arity(const RelationType& type, const std::string& name) {
  const std::string reason = fmt::format("its keys have {}, but its arrays {}", counted(type.key_arity, "position"),
                                         counted(type.rank, "dimension"));
  if (type.key_arity < type.rank) {
    return {reason, fmt::format("give each dimension a position that counts chunks along it, as in "
                                "rekey(<a> -> <a,0>)({0}), or put arrays together, as in concat(0, 0)({0})",
                                name)};
  }
  const std::string kept = to_string(all_positions(type.rank));
  const std::string folded = fmt::format("aggregate({}, matAdd)({})", kept, name);
  if (type.rank == 0) return {reason, fmt::format("fold the tuples, as in {}", folded)};
  return {reason, fmt::format("leave a position for each dimension: fold tuples, as in {}, or put arrays together, as "
                              "in concat({}, 0)({})",
                              folded, type.key_arity - 1, name)};
}

}  // namespace

std::optional<NoTensor> why_no_tensor(const RelationType& type, const std::string& name) {
  if (type.chunks.empty()) return NoTensor{"it has no tuples", "keep one at least"};
  if (type.chunks.size() == 1) return std::nullopt;
  if (type.key_arity != type.rank) return wrong_arity(type, name);
  if (const std::vector<Key> missing = holes(type, 1); !missing.empty()) {
    return NoTensor{fmt::format("no tuple has the key {}", to_string(missing.front())),
                    "rekey it so that each position counts chunks from 0"};
  }
  std::vector<std::map<std::int64_t, const Chunk*>> first(type.rank);
  for (const Chunk& chunk : type.chunks) {
    for (std::size_t d = 0; d < type.rank; ++d) {
      const Chunk& beside = *first[d].emplace(chunk.key[d], &chunk).first->second;
      if (beside.bound[d] == chunk.bound[d]) continue;
      return NoTensor{
          fmt::format("along dimension {} the array under {} has extent {}, that under {} beside it {}", d,
                      to_string(beside.key), beside.bound[d].value(), to_string(chunk.key), chunk.bound[d].value()),
          fmt::format("let position {0} of the key count the chunks along dimension {0}; rekey it where "
                      "another one does",
                      d)};
    }
  }
  return std::nullopt;
}

Shape tensor_bound(const RelationType& type) {
  if (type.chunks.size() == 1) return type.chunks.front().bound;
  std::vector<std::int64_t> extents(type.rank, 0);
  for (const Chunk& chunk : type.chunks) {
    for (std::size_t d = 0; d < type.rank; ++d) {
      const bool on_edge = std::all_of(chunk.key.begin(), chunk.key.end(), [&](const std::int64_t& value) {
        return value == 0 || &value == &chunk.key[d];
      });
      if (on_edge) extents[d] = checked_add(extents[d], chunk.bound[d].value());
    }
  }
  return make_shape(extents);
}

namespace {

/// Copies `chunk` into `whole` with its first element at `begin`.
void place(Tensor& whole, const Tensor& chunk, const std::vector<std::int64_t>& begin) {
  const std::int64_t first = offset_of(begin, whole.strides()) * static_cast<std::int64_t>(size_of(whole.dtype()));
  copy_elements(whole.dtype(), chunk.shape(), {chunk.data(), chunk.strides()}, whole.mutable_data() + first,
                whole.strides());
}

}  // namespace

Relation cut_tensor(const Tensor& tensor, const TensorCut& cut) {
  Relation relation;
  for (Chunk& chunk : relation_type(tensor.dtype(), tensor.shape(), cut).chunks) {
    std::vector<std::int64_t> begin(tensor.rank(), 0);  // in the tensor
    std::vector<std::int64_t> to(tensor.rank(), 0);     // in the chunk
    Shape inside = chunk.bound;
    double pad = 0;
    for (std::size_t i = 0; i < chunk.key.size(); ++i) {
      const std::size_t d = cut.dims[i];
      const ElementRange elements = elements_in_chunk(tensor.shape()[d], cut.cuts[i], chunk.key[i]);
      begin[d] = elements.begin;
      to[d] = elements.begin - chunk_range(tensor.shape()[d], cut.cuts[i], chunk.key[i]).begin;
      inside[d] = Extent(elements.extent());
      if (cut.cuts[i].window) pad = cut.cuts[i].window->pad.value_or(pad);
    }
    Tensor part = tensor.box(begin, inside);
    if (inside != chunk.bound) {
      Tensor padded(tensor.dtype(), chunk.bound);
      fill_elements(tensor.dtype(), element_count(chunk.bound), pad, padded.mutable_data());
      if (part.count() > 0) place(padded, part, to);
      part = std::move(padded);
    }
    relation.emplace(std::move(chunk.key), std::move(part));
  }
  return relation;
}

Tensor assemble(const Relation& relation, DType dtype, std::size_t rank) {
  // begins[d][k]: the first element of the chunks whose key has k at position d.
  std::vector<std::map<std::int64_t, std::int64_t>> extents(rank);
  for (const auto& [key, chunk] : relation) {
    invariant(key.size() == rank && chunk.rank() == rank, "a tensor has one key position per dimension");
    for (std::size_t d = 0; d < rank; ++d) {
      const auto [at, is_new] = extents[d].emplace(key[d], chunk.shape()[d].value());
      invariant(is_new || at->second == chunk.shape()[d].value(), "chunks side by side have equal extents");
    }
  }
  std::vector<std::map<std::int64_t, std::int64_t>> begins(rank);
  Shape shape;
  std::size_t count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t begin = 0;
    for (const auto& [part, extent] : extents[d]) {
      begins[d][part] = begin;
      begin += extent;
    }
    shape.emplace_back(begin);
    count *= extents[d].size();
  }
  invariant(count == relation.size(), "no chunk is missing");
  Tensor whole(dtype, shape);
  for (const auto& [key, chunk] : relation) {
    invariant(chunk.dtype() == dtype, "chunks have the type of their tensor");
    std::vector<std::int64_t> begin;
    for (std::size_t d = 0; d < rank; ++d) begin.push_back(begins[d].at(key[d]));
    place(whole, chunk, begin);
  }
  return whole;
}

}  // namespace einrel
