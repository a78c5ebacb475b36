#include "run/stored_input.h"

namespace einrel {

BoundInput describe(const StoredTensor& file) {
  BoundInput bound{file.shape, std::string(type_name(file)), {natural_dtype(file.type)}, file.name};
  bound.is_complex = file.is_complex;
  for (const DType dtype : all_dtypes) {
    if (dtype != bound.readable_as.front() && fits(file.type, dtype)) bound.readable_as.push_back(dtype);
  }
  return bound;
}

InputSource source_of(const StoredTensor& file, DType dtype) {
  if (is_read_in_place(file, dtype)) return read(file, dtype);
  return [&file, dtype](const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
    read_box(file, dtype, begin, bound, to);
  };
}

}  // namespace einrel
