#pragma once

#include <map>
#include <string>
#include <variant>

#include "tra/key.h"

namespace einrel {

/// All(R) (TRA paper, section 4): every site has every tuple.
struct Everywhere {
  bool operator==(const Everywhere&) const = default;
};
/// How the tuples of an input are stored on sites: everywhere, or spread by these key positions.
using InputLayout = std::variant<Everywhere, KeyPositions>;
/// By the name of the input.
using InputLayouts = std::map<std::string, InputLayout>;

}  // namespace einrel
