#include "viz/plan_html.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "viz/pages.h"

namespace einrel {
namespace {

/// In JSON a < stands only inside strings. Escaped, no name can end the element that the data is in, nor open a
/// comment.
std::string escaped(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string page_of(const std::vector<std::string_view>& before, const std::string& json,
                    const std::vector<std::string_view>& after) {
  std::string page;
  for (const std::string_view piece : before) page += piece;
  page += escaped(json);
  for (const std::string_view piece : after) page += piece;
  return page;
}

}  // namespace

std::string plans_html(const std::string& json) {
  auto data = nlohmann::ordered_json::parse(json);
  data.erase("initial");
  for (auto& vertex : data["vertices"]) {  // most of the text, and not shown
    vertex.erase("operation");
    if (vertex["kernel"].is_object()) vertex["kernel"].erase("considered");
    for (auto& other : vertex["other_kernels"]) other.erase("considered");
  }
  return page_of(plan_page_before_data(), data.dump(), plan_page_after_data());
}

std::string sweep_html(const std::string& json) {
  return page_of(sweep_page_before_data(), json, sweep_page_after_data());
}

}  // namespace einrel
