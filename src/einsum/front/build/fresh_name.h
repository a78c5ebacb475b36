#pragma once

#include <string>

#include "einsum/front/text/lexer.h"

namespace einrel::build {

/// The first of NAME, NAME2, NAME3, ... that is free and no word of the language.
template <class IsFree>
std::string fresh_name(const std::string& wish, IsFree&& is_free) {
  std::string name = wish;
  for (int n = 2; is_reserved(name) || !is_free(name); ++n) name = wish + std::to_string(n);
  return name;
}

}  // namespace einrel::build
