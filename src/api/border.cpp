#include "api/border.h"

#include <einrel/error.h>
#include <fmt/format.h>

#include <new>
#include <string>

#include "base/error.h"

namespace einrel::api {
namespace {

/// Messages are said with or without a last newline below; here without.
std::string trimmed(std::string message) {
  while (message.ends_with('\n')) message.pop_back();
  return message;
}

}  // namespace

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
