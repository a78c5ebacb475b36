#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tra/from_einsum.h"

namespace einrel {

/// How each dimension of a tensor is cut.
using TensorFormat = std::vector<DimensionCut>;

/// A physical format of a matrix: the most rows and columns of a chunk; nothing: all of them. A vector's rows are its
/// one dimension; a tensor of more dimensions takes the format's rows and columns for its last two.
struct Format {
  std::string name;
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> columns;
  std::optional<TensorFormat> as_it_lies = {};  ///< of one tensor, in chunks already: these, whatever stands above
  std::string why = "as --formats says";        ///< a tensor has it, for people
};

/// The 19 of "Automatic Matrix Format Exploration for Large Scale Linear Algebra", section 9.1: single, row, column,
/// row-strip-10, ..., tile-1000-1000, element.
const std::vector<Format>& all_formats();

/// "a chunk is ..." of a format.
std::string chunk_text(const Format& format);

/// One of these, or with other numbers: "row-strip-250". Throws UserError for any other, with the names.
Format format_named(const std::string& name);

/// The extents that chunks of chosen formats have, along each dimension: these, and all of it.
constexpr std::int64_t format_sizes[] = {1, 10, 100, 1000};

/// Into how many chunks of at most `most` elements a dimension is cut; 1 of an extent of 0.
std::int64_t parts_of(Extent extent, std::int64_t most);

/// A tensor in that format. Chunks have equal extents, up to one.
TensorFormat cuts_in(const Format& format, const Shape& bound);

/// The extents of its largest chunk.
Shape chunk_bound(const TensorFormat& format, const Shape& bound);

/// How many tuples it has. As a double, since it may exceed 63 bits.
double tuples_of(const TensorFormat& format);

/// Whether a tensor can be stored so (p.f(m) in the paper, chapter 4): a chunk is a value, which databases take up to
/// 1 GB of, and a relation has at most most_chunks tuples (the paper: 4 billion).
bool can_hold(const TensorFormat& format, const Shape& bound, DType dtype);
constexpr std::int64_t most_chunk_bytes = 999'990'000;  ///< some of a value's 10^9 bytes are the head of the array

/// Its name, or "chunks of 1 x 10 x all" for one without.
std::string format_text(const TensorFormat& format, const Shape& bound);

/// The format of a tensor that lies in chunks already.
Format lying_format(TensorFormat format, const Shape& bound);

/// Those of all_formats that others become by one step: chunks are only cut, or only put together. Of a matrix whose
/// extents all sizes divide.
struct DirectTransformations {
  std::vector<std::string> cut;           ///< names of formats whose chunks are parts of those of this one
  std::vector<std::string> put_together;  ///< whose chunks are made of whole ones of this one
};
DirectTransformations direct_transformations(const Format& from);

/// Which format each tensor is to be stored in, as a user says.
struct Formats {
  std::map<std::string, Format> tensors;
  std::optional<std::int64_t> most_extent;  ///< of chunks of all others, along each dimension; without, it is chosen
  bool is_element = false;                  ///< every tensor element by element instead, in plain SQL
};

/// "A=row-strip-100,B=single,tile-500" as given: what has no name holds for all other tensors, and is `tile-N`,
/// `all-tile` (tile-1000) or `element`. Throws UserError.
Formats parse_formats(const std::string& given);

/// So many scalar operations, where a call of a kernel counts as 300,000, take longer than starting processes.
constexpr double most_operations_alone = 3e8;
/// Whether processes of a database's server should share the computation of a vertex whose labels are cut so: it takes
/// longer than starting them and sending chunks between them, its result has several chunks, and it takes one join at
/// most. (Where there are more, or positions that are compared, a statement keeps what only one process sees.)
bool is_worth_sharing(const Vertex& vertex, const std::vector<std::int64_t>& parts,
                      double most_alone = most_operations_alone);
/// How many parts of a computation n of them take. (PostgreSQL gives a query of 2^(n - 1) parts n processes.)
constexpr std::int64_t sharing_parts(std::int64_t workers) { return std::int64_t{1} << (workers - 1); }

/// Throws UserError for a tensor that there is none of.
void check_tensors(const EinGraph& graph, const std::map<std::string, Format>& tensors);

/// How every vertex is cut, so that tensors have these formats, all others chunks of at most `most_extent` along each
/// dimension. Reduced labels are cut as the operands' formats say. A label that cannot be cut is not. Throws as
/// check_tensors does.
GraphCuts cuts_for(const EinGraph& graph, const std::map<std::string, Format>& tensors, std::int64_t most_extent);

}  // namespace einrel
