#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "export/array_library.h"
#include "plan/collectives.h"
#include "plan/plan.h"

namespace einrel {

/// A vertex as one site computes its part, and what it reads, as variables of Python.
struct DeviceVertex {
  const EinGraph& graph;
  const Vertex& vertex;
  const VertexPlan& plan;
  const std::vector<MeshAxis>& mesh;
  std::vector<std::string> operands;  ///< this site's part of each, as the vertex needs it
  std::function<std::string(const std::string& scalar)> scalar;
  std::function<std::string(std::uint32_t stream)> stream;
};

/// The lines that give `name` this site's part of the result, with what adds it up over sites.
std::vector<std::string> vertex_lines(const DeviceVertex& of, const std::string& name, const ArrayLibrary& library,
                                      ModuleNeeds& needs);

}  // namespace einrel
