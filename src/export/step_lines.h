#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/array_library.h"
#include "plan/collectives.h"

namespace einrel {

/// The lines that bring `from`, of which a site has a part of this shape, to where it is needed, as `name`.
std::vector<std::string> step_lines(const std::vector<Collective>& steps, const std::string& from,
                                    const std::string& name, std::vector<std::int64_t> shape,
                                    const std::vector<MeshAxis>& mesh, const ArrayLibrary& library, ModuleNeeds& needs);

}  // namespace einrel
