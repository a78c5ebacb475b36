#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "kernel/kernel.h"
#include "kernel/registry.h"

namespace einrel {

/// Vertices that run as one kernel, slab by slab: a label that all of them keep is cut into short ranges, and for each
/// range all members are computed before the next range begins, so that what lies between them stays in the cache. The
/// three vertices of softmax[j](X[i,j]), maximum, sum of exponentials and quotient, run a few rows i at a time and read
/// and write memory once. Where one position of a label is too much for the cache, another label is cut inside of it:
/// those of softmax[t](X[b,h,s,t]) run a few s of one b and h at a time.
struct Fusion {
  std::vector<std::size_t> members;   ///< positions in the graph, ascending; it runs where the last one stands
  std::vector<std::size_t> operands;  ///< positions in the graph of what members read from outside
  std::vector<std::size_t> results;   ///< the members that others read or that are outputs; the rest have no tensor
  /// What is computed: an input for each operand, then the members, and values that several of them share. Its outputs
  /// are the results.
  EinGraph program;
  /// Per label that is cut, and per vertex of the program that is no input, the dimension of its bound that the label
  /// is (0 for inputs). The last label is cut into ranges, the others into single positions.
  std::vector<std::vector<std::size_t>> cuts;
};

/// The vertices worth running together: element-wise ones, reductions and broadcasts that work in proportion to their
/// data, and short products that only they read (products.h). O(vertices), since fusions are short.
std::vector<Fusion> find_fusions(const EinGraph& graph);

/// The names of the scalars that EinSums read.
std::set<std::string> scalars_read(const std::vector<Vertex>& vertices);

/// A fusion made ready, for operands of these layouts. The call's operands and results are the fusion's, in order.
PreparedKernel prepare_fusion(const Fusion& fusion, const std::vector<ArrayLayout>& operands,
                              const ScalarBindings& scalars);

/// The kernel that computes a slab of one member.
struct SlabKernel {
  std::size_t vertex = 0;  ///< position in fusion.program
  Choice choice;
};

/// How members are computed, for such operands: a slab of each by a kernel, and softmaxes row by row.
struct FusionKernels {
  std::vector<SlabKernel> kernels;
  double slabs = 1;                     ///< how many there are; the last one of a label may be shorter
  std::vector<std::size_t> row_by_row;  ///< the quotients of these, as positions in fusion.program
};
FusionKernels kernels_of(const Fusion& fusion, const std::vector<ArrayLayout>& operands, const ScalarBindings& scalars);

}  // namespace einrel
