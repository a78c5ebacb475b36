#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/file_layout.h"
#include "tensor/stored_tensor.h"
#include "tensor/stream.h"

namespace einrel {

/// One tensor as the header of a .safetensors file describes it.
struct SafetensorsEntry {
  std::string dtype;  ///< as written there, "F32"; perhaps none of ours
  Shape shape;
  std::uint64_t begin = 0;  ///< its bytes, counted from the end of the header
  std::uint64_t end = 0;
};

/// A .safetensors file (Hugging Face, "safetensors: Format").
struct SafetensorsFile {
  FileBytes file;
  std::vector<std::string> names;
  std::vector<SafetensorsEntry> entries;  ///< of the same tensors
  std::size_t data_begin = 0;
};

/// Reads the header only, in memory proportional to it. Throws UserError, naming the file, when the header
/// breaks the format's rules: a JSON object of at most 100 MB from names to dtype, shape and data_offsets (and
/// a `__metadata__` of strings); no name twice; the tensors' bytes fill the rest of the file without gaps.
SafetensorsFile parse_safetensors(const FileBytes& file);

/// Tensor number `index`, mapped, called file:NAME in messages. Throws UserError when its element type is not
/// supported (it is named) or its shape takes another number of bytes.
StoredTensor open_tensor(const SafetensorsFile& file, std::size_t index);

/// Throws UserError unless `name` can be a tensor's name: UTF-8 and not "__metadata__".
void check_safetensors_name(const std::string& name);

/// What a file says of a tensor in it.
struct SafetensorsHead {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  bool is_complex = false;  ///< the last dimension is that of the parts, which are f32
};

/// Of a file of these; the widest elements come first, so that all are aligned. Names must pass the check above.
FileLayout safetensors_layout(const std::vector<SafetensorsHead>& heads);

/// A whole file, laid out so.
void write_safetensors(const std::vector<NamedTensor>& tensors, const ByteSink& sink);

}  // namespace einrel
