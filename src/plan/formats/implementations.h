#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "tra/formats.h"

namespace einrel {

/// A tensor in the format that a vertex reads it in.
struct NeededFormat {
  std::size_t tensor = 0;  ///< the vertex that computes it
  TensorFormat format;
  bool operator==(const NeededFormat&) const = default;
};

/// A way to compute a vertex (an atomic computation implementation of "Automatic Matrix Format Exploration", chapter
/// 4): how its labels are cut, and with them what it reads and what it gives. Its query joins the chunks that agree on
/// the labels that several operands have, and folds those that agree on the result's labels, where a reduced one is
/// cut.
struct Implementation {
  std::vector<std::int64_t> parts;  ///< per label; per dimension of an input
  std::vector<NeededFormat> reads;  ///< each once; none of an input
  TensorFormat result;
};

/// With labels cut in this way.
Implementation implementation_of(const EinGraph& graph, std::size_t vertex, const std::vector<std::int64_t>& parts);

/// All ways to compute a vertex.
struct Implementations {
  std::vector<Implementation> ways;
  bool are_all = true;  ///< not where there are too many: then those with the smallest chunks are left out
};

/// Those whose operands and result are in one of the 19 formats, or in one that is given; of tensors that are no
/// matrices, chunks of format_sizes along each dimension. A tensor in a given format has no other as a result; where
/// that is none of the 19 (tile-1-2), operands are read in such, too. None where no format can hold what is read or
/// computed.
Implementations implementations_of(const EinGraph& graph, std::size_t vertex,
                                   const std::map<std::string, Format>& given);

}  // namespace einrel
