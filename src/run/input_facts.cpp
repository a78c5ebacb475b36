#include "run/input_facts.h"

#include <fmt/format.h>

#include "base/error.h"
#include "exec/memory/digests.h"

namespace einrel {
namespace {

/// As bytes: any type of ours that takes as many.
DType type_of_bytes(std::size_t bytes) {
  for (const DType dtype : {DType::boolean, DType::f16, DType::f32, DType::f64}) {
    if (size_of(dtype) == bytes) return dtype;
  }
  throw Bug("an element size that no type has");
}

void add(const std::string& what, std::string type, const Shape& bound, std::uint64_t digest,
         std::vector<Fact>& facts) {
  facts.push_back({what, fmt::format("{} {}", std::move(type), to_string(bound))});
  facts.push_back({"other elements of " + what, "", digest});
}

}  // namespace

void add_facts(const std::string& what, DType dtype, const Shape& bound, const InputSource& source,
               std::vector<Fact>& facts) {
  add(what, std::string(name_of(dtype)), bound, digest_of(source, dtype, bound), facts);
}

void add_facts(const std::string& what, const StoredTensor& file, std::vector<Fact>& facts) {
  const DType bytes = type_of_bytes(size_of(file.type));
  const Tensor view(bytes, file.shape, file.strides, file.data, file.owner);
  std::string type(name_of(file.type));
  if (file.order != std::endian::native && size_of(file.type) > 1) type += " in the other order of bytes";
  add(what, std::move(type), file.shape, digest_of(view, bytes, file.shape), facts);
}

void add_facts(const ScalarBindings& scalars, std::vector<Fact>& facts) {
  for (const auto& [name, value] : scalars) facts.push_back({"scalar " + name, fmt::format("{}", value)});
}

}  // namespace einrel
