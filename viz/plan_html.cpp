#include "viz/plan_html.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "viz/plan_page.h"

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

}  // namespace

std::string plans_html(const std::string& json) {
  auto data = nlohmann::ordered_json::parse(json);
  for (auto& vertex : data["vertices"]) {
    if (vertex["kernel"].is_object()) vertex["kernel"].erase("considered");  // most of the text, and not shown
    for (auto& other : vertex["other_kernels"]) other.erase("considered");
  }
  std::string page;
  for (const std::string_view piece : plan_page_before_data()) page += piece;
  page += escaped(data.dump());
  for (const std::string_view piece : plan_page_after_data()) page += piece;
  return page;
}

}  // namespace einrel
