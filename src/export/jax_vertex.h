#pragma once

#include <string>
#include <vector>

#include "export/collectives.h"
#include "export/jax_expr.h"
#include "plan/plan.h"

namespace einrel {

/// A vertex as one site computes its part, and what it reads, as variables of Python.
struct JaxVertex {
  const EinGraph& graph;
  const Vertex& vertex;
  const VertexPlan& plan;
  const std::vector<MeshAxis>& mesh;
  std::vector<std::string> operands;  ///< this site's part of each, as the vertex needs it
  std::function<std::string(const std::string& scalar)> scalar;
};

/// `"m0"`, `("m0", "m1")`: axes of the mesh in a call.
std::string jax_axes(const std::vector<std::size_t>& axes);

/// The lines that give `name` this site's part of the result, with what adds it up over sites. Throws UserError naming
/// what JAX has nothing for.
std::vector<std::string> jax_lines(const JaxVertex& of, const std::string& name, JaxHelpers& helpers);

/// The lines that bring `from`, of which a site has a part of this shape, to where it is needed, as `name`.
std::vector<std::string> jax_lines(const std::vector<Collective>& steps, const std::string& from,
                                   const std::string& name, std::vector<std::int64_t> shape,
                                   const std::vector<MeshAxis>& mesh);

}  // namespace einrel
