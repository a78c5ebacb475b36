#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "einsum/check/einsum_notation.h"

/// The first bytes give the operands' ranks and extents, the rest is "subscripts[;join]".
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  einrel::EinsumRequest request;
  std::size_t at = 1;
  for (std::size_t operands = data[0] % 4U; operands > 0 && at < size; --operands) {
    einrel::BoundInput bound{{}, "f32", {einrel::DType::f32}, "file"};
    for (std::size_t rank = data[at++] % 5U; rank > 0 && at < size; --rank) bound.shape.emplace_back(data[at++] % 4);
    request.operands.push_back(bound);
  }
  const std::string text(reinterpret_cast<const char*>(data) + at, size - at);
  const std::size_t split = text.find(';');
  request.subscripts = text.substr(0, split);
  if (split != std::string::npos) request.join = text.substr(split + 1);
  try {
    einrel::verify(einrel::einsum_graph(request));
  } catch (const einrel::UserError&) {
  }
  return 0;
}
