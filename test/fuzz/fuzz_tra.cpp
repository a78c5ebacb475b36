#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "tra/text/parse.h"
#include "tra/text/print.h"

/// Any bytes are a program in the tensor relational algebra that is the same after writing and reading it, or a
/// UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  std::string written;
  try {
    const einrel::SourceText source("fuzz.tra", std::string(reinterpret_cast<const char*>(data), size));
    written = einrel::to_text(einrel::parse_tra(source).program);
  } catch (const einrel::UserError&) {
    return 0;
  }
  const einrel::SourceText again("again.tra", written);
  einrel::invariant(einrel::to_text(einrel::parse_tra(again).program) == written, "written as it was read");
  return 0;
}
