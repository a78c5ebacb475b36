#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "einsum/graph/vertex_facts.h"
#include "tensor/tensor.h"

namespace einrel {

/// One EinSum (or view, or linear algebra) on arrays. A label that some operand reads as a plain index without padding
/// takes its extent from that array, and its own extent here is open; the others (windows, labels of constant extent)
/// keep the extent given here. Those of an Opaque follow from the array. A view takes the extent of the first
/// label of each `from` group from the array, the others from here; beside an extent of 0 in its group the first is
/// given here too.
struct KernelStep {
  std::variant<EinSum, View, Opaque> op;
  DType dtype = DType::f32;        ///< of the result
  std::vector<std::size_t> reads;  ///< per operand of `op`: an argument, or arguments + i for the result of step i
  bool operator==(const KernelStep&) const = default;
};

/// What runs on the arrays of tuples (paper: aggOp, projOp, transformFunc): a straight line of EinSums on sub-arrays.
/// Data, so that guards can inspect it. The result is that of the last step; without steps, the first argument.
struct Kernel {
  std::string name;              ///< as plans show it: "matMul", "diag . matAdd"
  std::vector<DType> arguments;  ///< the type of each argument
  std::vector<KernelStep> steps;
  bool operator==(const Kernel&) const = default;
};

/// The kernel that returns its argument; named "id".
Kernel identity_kernel(DType dtype);
bool is_identity(const Kernel& kernel);
DType result_dtype(const Kernel& kernel);
/// The rank of what a kernel returns for arguments of these ranks.
std::size_t result_rank(const Kernel& kernel, const std::vector<std::size_t>& ranks);

/// The label that takes its extent from dimension `dim` of what `operand` reads: a plain index, without padding, that
/// is not one position of a window, as X[o] is beside X[o+1].
std::optional<std::size_t> measured_label(const EinSum& einsum, const std::vector<std::size_t>& reads,
                                          std::size_t operand, std::size_t dim);

/// A kernel of one step from a vertex: extents that arrays give are open. `reads` as in KernelStep.
Kernel kernel_of(std::string name, const Vertex& vertex, const std::vector<DType>& arguments,
                 const std::vector<std::size_t>& reads);

/// The vertices that the steps are for arguments of these bounds, without inputs: those are `reads` of the steps.
/// Throws as result_shape does.
std::vector<Vertex> vertices_of(const Kernel& kernel, std::vector<Shape> values);

/// The bound of the result for arguments of these bounds. Throws UserError naming the label and both extents when the
/// arrays do not fit the kernel. O(steps).
Shape result_shape(const Kernel& kernel, const std::vector<Shape>& arguments);
/// What calls of one kernel give, worked out once per combination of bounds: relations have many tuples and few bounds.
class KernelCalls {
 public:
  struct Call {
    Shape bound;
    std::vector<Shape> steps;  ///< the bound of each one's result
    double flops = 0;          ///< scalar operations, see flops(Vertex)
  };
  /// The kernel must outlive this.
  explicit KernelCalls(const Kernel& kernel) : kernel_(kernel) {}
  /// Throws as result_shape does.
  const Call& operator()(const std::vector<Shape>& arguments);

 private:
  const Kernel& kernel_;
  std::map<std::vector<Shape>, Call> calls_;
};

/// outer(inner(...)); `outer` takes one argument.
Kernel compose(const Kernel& outer, const Kernel& inner);

/// Whether folding with the kernel gives the same result in every order: element-wise add, multiply, max and min, and
/// the named kernels logAddExp and minIndex.
bool is_associative_commutative(const Kernel& kernel);
/// Whether `kernel` ends in a reduction that can go on from a value as `fold` does: then fold(z, kernel(...)) needs no
/// array for the second argument. True of sum, prod, max, min, any and all, computed in the type of the result.
bool reduces_onto(const Kernel& kernel, const Kernel& fold);
/// Whether outer(inner(x, y)) = inner(outer(x), outer(y)) for all arrays x and y of equal bounds, up to rounding, as
/// far as the EinSums show it:
///   inner element-wise, outer only moving elements (diag, transpose, the identity);
///   inner add or subtract, outer linear (sums of elements, negation, product with a number);
///   inner max or min, outer that same reduction, or a function that never decreases (relu, exp, tanh, ...).
bool distributes_over(const Kernel& outer, const Kernel& inner);
/// `inner` for what `outer` makes of its arguments; they distribute. The rank may change: diag(X + Y) = diag X + diag
/// Y.
Kernel after(const Kernel& inner, const Kernel& outer);

/// The steps as formulas over A, B, ...: "Z[i,k] = sum[j] A[i,j] * B[j,k]"; one line per step.
std::string formula(const Kernel& kernel);

}  // namespace einrel
