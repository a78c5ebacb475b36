#pragma once

#include <string_view>
#include <vector>

namespace einrel {

/// Pages without their data, in pieces: their .html with style and scripts, written by embed.cmake.
const std::vector<std::string_view>& plan_page_before_data();
const std::vector<std::string_view>& plan_page_after_data();
const std::vector<std::string_view>& sweep_page_before_data();
const std::vector<std::string_view>& sweep_page_after_data();

}  // namespace einrel
