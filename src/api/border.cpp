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
  constexpr std::string_view of_command = "; more with --verbose";
  for (std::size_t at = text.find(of_command); at != std::string::npos; at = text.find(of_command, at))
    text.erase(at, of_command.size());
  for (const std::string_view option : {"memory", "sites", "spill", "machine", "planner", "plan", "cost", "threads"}) {
    const std::string written = fmt::format("--{} ", option);
    for (std::size_t at = text.find(written); at != std::string::npos; at = text.find(written, at))
      text.replace(at, written.size(), fmt::format("{}=", option));
  }
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
