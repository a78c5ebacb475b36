#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "einsum/check/check.h"
#include "einsum/graph/print.h"
#include "einsum/passes/contraction_order.h"

/// Any bytes are either a program with a sound graph or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const einrel::SourceText source("fuzz.ein", std::string(reinterpret_cast<const char*>(data), size));
  try {
    const einrel::CheckedProgram checked = einrel::parse_and_check(source, {});
    if (!checked.graph) return 0;
    const einrel::EinGraph needed = einrel::needed_for_outputs(*checked.graph);
    einrel::verify(needed);
    for (const einrel::Vertex& vertex : needed.vertices) einrel::formula(vertex, needed);
    std::vector<einrel::OrderedContraction> report;
    einrel::verify(einrel::order_contractions(needed, report));
  } catch (const einrel::UserError&) {
  }
  return 0;
}
