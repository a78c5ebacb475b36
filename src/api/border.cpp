#include "api/border.h"

#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "einsum/check/check.h"

namespace einrel::api {
namespace {

/// What stands behind an option: --feed X=FILE, --epochs 3, --keep-last.
enum class Takes : std::uint8_t { named_value, value, nothing };

/// An option of the command that has one here, too.
struct KnownOption {
  std::string_view of_command;
  std::string_view here;
  Takes takes = Takes::value;
};
constexpr std::array known_options{
    KnownOption{"memory", "memory"},
    KnownOption{"sites", "sites"},
    KnownOption{"spill", "spill"},
    KnownOption{"machine", "machine"},
    KnownOption{"planner", "planner"},
    KnownOption{"plan", "plan"},
    KnownOption{"cost", "cost"},
    KnownOption{"spmd", "spmd", Takes::nothing},
    KnownOption{"threads", "threads"},
    KnownOption{"in", "inputs", Takes::named_value},
    KnownOption{"dim", "dims", Takes::named_value},
    KnownOption{"scalar", "scalars", Takes::named_value},
    KnownOption{"feed", "feeds", Takes::named_value},
    KnownOption{"test", "test", Takes::named_value},
    KnownOption{"batch", "batch", Takes::named_value},
    KnownOption{"placement", "placements", Takes::named_value},
    KnownOption{"epochs", "epochs"},
    KnownOption{"header", "header"},
    KnownOption{"hold-out", "hold_out"},
    KnownOption{"keep-last", "keep_last", Takes::nothing},
    KnownOption{"seed", "seed"},
    KnownOption{"report", "report"},
    KnownOption{"calibrate-with", "calibrate_with"},
    KnownOption{"save", "save"},
    KnownOption{"save-every", "save_every"},
    KnownOption{"resume", "resume"},
    KnownOption{"log", "log"},
    KnownOption{"local-steps", "local_steps"},
    KnownOption{"subnets", "subnets"},
    KnownOption{"database", "database"},
    KnownOption{"steps", "steps"},
    KnownOption{"formats", "formats"},
    KnownOption{"analyze", "analyze", Takes::nothing},
};

/// Takes so many characters from the front.
std::string_view take(std::string_view& text, std::size_t count) {
  count = std::min(count, text.size());
  const std::string_view front = text.substr(0, count);
  text.remove_prefix(count);
  return front;
}

/// What stands for an option, whose value is taken from the front of `rest` where it is only a word for one.
std::string said_here(const KnownOption& option, std::string_view& rest) {
  if (!rest.starts_with(' ') || option.takes == Takes::nothing) return std::string(option.here);
  const std::size_t sign = rest.find_first_of("= ,;:\n)", 1);
  if (option.takes == Takes::value) return take(rest, 1), fmt::format("{}=", option.here);
  if (sign == std::string_view::npos || rest[sign] != '=') return std::string(option.here);
  const std::string_view name = take(rest, sign).substr(1);
  for (const std::string_view word : {"=FILE", "=...", "=N"}) {
    if (!rest.starts_with(word)) continue;
    take(rest, word.size());
    break;
  }
  return fmt::format("{}['{}']", option.here, name);
}

std::string with_options_of_here(std::string_view text) {
  std::string said;
  while (!text.empty()) {
    const std::size_t dashes = text.find("--");
    said += take(text, dashes);
    if (text.empty()) break;
    constexpr const char* letters = "abcdefghijklmnopqrstuvwxyz-";
    const std::string_view word = text.substr(2, std::min(text.find_first_not_of(letters), text.size()) - 2);
    const auto* const option = std::find_if(known_options.begin(), known_options.end(),
                                            [&](const KnownOption& known) { return known.of_command == word; });
    take(text, 2 + word.size());
    said += option == known_options.end() ? fmt::format("--{}", word) : said_here(*option, text);
  }
  return said;
}

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
  replace("'query:SELECT ...' or a file", "'query:SELECT ...' or a tensor");
  return with_options_of_here(text);
}

void rethrow_as_public() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const einrel::NoGradient& error) {
    throw NoGradient(trimmed(error.what()));
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
