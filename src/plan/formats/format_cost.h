#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "plan/formats/implementations.h"
#include "tra/repartition.h"

namespace einrel {

/// What a query over chunks is charged for ("Automatic Matrix Format Exploration", chapter 10): where workers share it,
/// what the one does that has most to do. One alone puts all results into the table.
struct FormatCost {
  double compute = 0;       ///< scalar operations: of kernels, and of adding up partial results
  double network = 0;       ///< bytes of results that workers send to the one that stores them
  double tuples = 0;        ///< for which it calls a kernel
  double read = 0;          ///< bytes of arrays that functions take from tables
  double intermediate = 0;  ///< bytes of arrays that functions give, and that are sorted or handed on to others
  double statements = 0;    ///< that make a table, with its index or check; a shared one counts as shared_statements
  double pieces = 0;        ///< that a transformation takes of chunks, and chunks that it puts together of several
  double stored = 0;        ///< bytes of arrays that become a table
  FormatCost& operator+=(const FormatCost& other);
  bool operator==(const FormatCost&) const = default;
};

/// Starting workers takes as long as four statements more.
constexpr double shared_statements = 5;

/// Seconds of each of these, for one database. The defaults were measured with SQLite.
struct FormatWeights {
  double workers = 1;                         ///< that share a query where that is worth it (is_worth_sharing)
  double most_alone = most_operations_alone;  ///< operations that one does alone (is_worth_sharing)
  double operation = 3e-11;                   ///< seconds of a scalar operation
  double network_byte = 0;                    ///< of a byte that a worker sends
  double tuple = 1.3e-5;                      ///< of a tuple that a kernel is called for, whatever its array
  double read_byte = 8e-11;                   ///< of a byte that functions take from a table
  double intermediate_byte = 8.3e-10;         ///< of a byte that functions give, or that is handed on
  double statement = 7e-4;                    ///< of a statement
  double piece = 1.3e-6;                      ///< of a piece of a transformation
  double stored_byte = 1e-10;                 ///< of a byte that a table gets
  bool operator==(const FormatWeights&) const = default;
};

/// Measured with PostgreSQL.
inline constexpr FormatWeights postgres_weights{.workers = 2,
                                                .operation = 4.4e-11,
                                                .network_byte = 4e-9,
                                                .tuple = 1.4e-5,
                                                .read_byte = 5.5e-10,
                                                .intermediate_byte = 1.6e-10,
                                                .statement = 3e-3,
                                                .piece = 5e-6,
                                                .stored_byte = 3.9e-9};

/// What is counted, and what weighs it, as JSON calls them.
struct FormatComponent {
  const char* name;
  double FormatCost::*count;
  const char* weight_name;
  double FormatWeights::*weight;
};
inline constexpr std::array format_components{
    FormatComponent{"compute", &FormatCost::compute, "operation", &FormatWeights::operation},
    FormatComponent{"network", &FormatCost::network, "network_byte", &FormatWeights::network_byte},
    FormatComponent{"tuples", &FormatCost::tuples, "tuple", &FormatWeights::tuple},
    FormatComponent{"read", &FormatCost::read, "read_byte", &FormatWeights::read_byte},
    FormatComponent{"intermediate", &FormatCost::intermediate, "intermediate_byte", &FormatWeights::intermediate_byte},
    FormatComponent{"statements", &FormatCost::statements, "statement", &FormatWeights::statement},
    FormatComponent{"pieces", &FormatCost::pieces, "piece", &FormatWeights::piece},
    FormatComponent{"stored", &FormatCost::stored, "stored_byte", &FormatWeights::stored_byte}};

double seconds_of(const FormatCost& cost, const FormatWeights& weights);

/// What computing a vertex costs, its operands in the formats that the implementation wants. Where partial results are
/// folded, the join's tuples are sorted by the result's key, if it has one, and handed on to another function. `graph`
/// has the operands. Exact (test/cli/sql_costs_test.py) but for what is said in ADR 24.
FormatCost cost_of(const EinGraph& graph, const Vertex& vertex, const Implementation& way,
                   const FormatWeights& weights);

/// What gathering an input into chunks costs, besides that its elements are read, which they are for any format.
FormatCost gathering_cost(const Vertex& input, const TensorFormat& format);

/// Costs of bringing tensors from one format to another (tra: Repartition): every piece of an old chunk that a new one
/// takes is cut out of it, for which it is read; where pieces are put together, they are sorted and handed on, and old
/// chunks that are whole pieces are sorted. Remembers what it has counted.
class TransformationCosts {
 public:
  /// Nothing where both have the same chunks.
  FormatCost of(const Vertex& tensor, const TensorFormat& from, const TensorFormat& to);

 private:
  std::map<std::tuple<std::int64_t, DimensionCut, DimensionCut>, PieceCount> pieces_;
};

}  // namespace einrel
