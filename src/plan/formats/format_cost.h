#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "plan/formats/implementations.h"

namespace einrel {

/// What a query over chunks is charged for ("Automatic Matrix Format Exploration", chapter 10), on the worker that has
/// most to do.
struct FormatCost {
  double compute = 0;       ///< scalar operations: of kernels, and of adding up partial results
  double network = 0;       ///< bytes that it gets from other workers
  double tuples = 0;        ///< for which it calls a kernel
  double intermediate = 0;  ///< bytes of arrays that are handed to functions, and that these give
  double pieces = 0;        ///< of chunks that a transformation cuts out or puts together
  double stored = 0;        ///< bytes of arrays that become a table
  FormatCost& operator+=(const FormatCost& other);
  bool operator==(const FormatCost&) const = default;
};

/// Seconds of each of these, for one database. The defaults were measured with SQLite.
struct FormatWeights {
  double workers = 1;                ///< that share out the tuples of a query
  double operation = 7e-11;          ///< seconds of a scalar operation
  double network_byte = 0;           ///< of a byte that comes from another worker
  double tuple = 2.1e-5;             ///< of a tuple that a kernel is called for, whatever its array
  double intermediate_byte = 8e-10;  ///< of a byte that functions take or give
  double piece = 5.6e-6;             ///< of a piece of a transformation
  double stored_byte = 3.2e-9;       ///< of a byte that a table gets
  bool operator==(const FormatWeights&) const = default;
};

/// Measured with PostgreSQL.
inline constexpr FormatWeights postgres_weights{
    .operation = 5e-11, .tuple = 2.7e-5, .intermediate_byte = 5.6e-10, .piece = 4.2e-6, .stored_byte = 1.06e-8};

double seconds_of(const FormatCost& cost, const FormatWeights& weights);

/// What computing a vertex costs, its operands in the formats that the implementation wants. Where partial results are
/// folded, the join's tuples are sorted by the result's key and handed on to another function. `graph` has the
/// operands.
FormatCost cost_of(const EinGraph& graph, const Vertex& vertex, const Implementation& way,
                   const FormatWeights& weights);

/// What gathering an input into chunks costs, besides that its elements are read, which they are for any format.
FormatCost gathering_cost(const Vertex& input, const TensorFormat& format, const FormatWeights& weights);

/// Costs of bringing tensors from one format to another (tra: Repartition): every piece of an old chunk that a new one
/// takes is cut out of it, for which it is read; where pieces are put together, they are sorted and handed on.
/// Remembers what it has counted.
class TransformationCosts {
 public:
  explicit TransformationCosts(const FormatWeights& weights) : weights_(weights) {}
  /// Nothing where both have the same chunks.
  FormatCost of(const Vertex& tensor, const TensorFormat& from, const TensorFormat& to);

 private:
  FormatWeights weights_;
  std::map<std::tuple<std::int64_t, DimensionCut, DimensionCut>, double> pieces_;
};

}  // namespace einrel
