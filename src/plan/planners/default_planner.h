#pragma once

namespace einrel {

/// The one that plans where none is named.
inline constexpr const char* default_planner = "eindecomp";

}  // namespace einrel
