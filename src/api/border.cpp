#include "api/border.h"

#include <einrel/error.h>
#include <fmt/format.h>

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace einrel::api {
namespace {

/// Messages are said with or without a last newline below; here without.
std::string trimmed(std::string message) {
  while (message.ends_with('\n')) message.pop_back();
  return as_options(std::move(message));
}

}  // namespace

std::string as_options(std::string text) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to);
  };
  replace("; more with --verbose", "");
  replace("einrel explain --json writes", "the method 'plan' gives");
  replace("einrel explain --sites N --json writes", "the method 'plan' gives");
  for (const char* const option : {"memory", "sites", "spill", "machine", "planner", "plan", "cost", "threads"})
    replace(fmt::format("--{} ", option), fmt::format("{}=", option));
  return text;
}

void rethrow_as_public() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const einrel::UserError& error) {
    throw UserError(trimmed(error.what()));
  } catch (const einrel::RunError& error) {
    throw RunError(trimmed(error.what()));
  } catch (const std::bad_alloc&) {
    throw RunError("out of memory");
  } catch (const std::exception& error) {
    throw Bug(fmt::format("this is a bug in Einrel, not in your program: {}", error.what()));
  }
}

}  // namespace einrel::api
