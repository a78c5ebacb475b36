#pragma once

#include <optional>

#include "kernel/kernel.h"
#include "kernel/products/product.h"

namespace einrel::contraction {

/// A product cut along a reduced loop, for results so few that there is nothing else to cut, or not as well: partial
/// results of equal pieces, and of shorter last ones, are computed into a workspace that all parts share and then
/// reduced in order, many of them in double.
struct Split {
  Product whole;
  Product equal;                ///< of all pieces but the last ones, as more loops of its batch
  std::optional<Product> last;  ///< unless they are as long as the others
  std::int64_t pieces = 0;
  std::int64_t results = 0;  ///< elements of one partial result
};

/// Where a reduction may be cut.
struct CutLimits {
  std::int64_t pieces = 2;     ///< at most
  std::int64_t shortest = 64;  ///< positions; 1: several loops may be cut, down to their positions
  std::int64_t most_bytes = most_workspace_bytes / 2;  ///< of all partial results
};

/// nullopt when no loop is that long or the partial results would take more memory.
std::optional<Split> split(const Product& product, const CutLimits& cut);

std::int64_t shared_bytes(const Split& split);

/// `equal` and `last` are made from the products of the split, whose results are the shared workspace.
PreparedKernel prepare_split(Split split, PreparedKernel equal, std::optional<PreparedKernel> last);

}  // namespace einrel::contraction
