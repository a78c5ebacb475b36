#include "output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/error.h"
#include "exec/job/job.h"

namespace einrel::cli {
namespace {

[[noreturn]] void lost_output() {
  throw RunError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) lost_output();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) lost_output();
}

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

/// The rendered errors of a program say "error:" themselves.
void report_error(const std::string& message) {
  const bool rendered = message.starts_with("error:");
  print_error(fmt::format("{}{}{}", rendered ? "" : "error: ", message, message.ends_with('\n') ? "" : "\n"));
}

int report_failure(const std::exception_ptr& failure, const std::string& prefix) {
  try {
    std::rethrow_exception(failure);
  } catch (const FailedElsewhere&) {
    return 0;
  } catch (const UserError& error) {
    report_error(prefix + error.what());
    return exit_user_error;
  } catch (const RunError& error) {
    report_error(prefix + error.what());
    return exit_run_error;
  } catch (const std::bad_alloc&) {
    report_error(prefix + "out of memory");
    return exit_run_error;
  } catch (const std::exception& error) {
    report_error(
        fmt::format("{}this is a bug in Einrel, not in your program: {}\n"
                    "  help: please report it with the command line and the program",
                    prefix, error.what()));
    return exit_bug;
  }
}

}  // namespace einrel::cli
