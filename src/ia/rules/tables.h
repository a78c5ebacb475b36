#pragma once

#include <vector>

#include "ia/rules/rule.h"

/// The tables of rules; all_rules() is all of them.
namespace einrel::rules {

std::vector<Rule> kernel_rules();
std::vector<Rule> movement_rules();
std::vector<Rule> contraction_rules();

}  // namespace einrel::rules
