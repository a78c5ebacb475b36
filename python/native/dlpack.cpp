#include "dlpack.h"

#include <cstdint>

namespace einrel::python {
namespace {

// The structures of DLPack (https://dmlc.github.io/dlpack/latest/c_api.html), as far as they are needed here.

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
constexpr std::uint8_t unsigned_integer = 1;
constexpr std::uint8_t bfloat = 4;

struct Tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t rank;
  DataType type;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct VersionedTensor {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(VersionedTensor*);
  std::uint64_t flags;
  Tensor tensor;
};

Tensor& tensor_in(PyObject* capsule) {
  constexpr const char* versioned = "dltensor_versioned";
  if (PyCapsule_IsValid(capsule, versioned) != 0)
    return static_cast<VersionedTensor*>(PyCapsule_GetPointer(capsule, versioned))->tensor;
  void* const plain = PyCapsule_GetPointer(capsule, "dltensor");  // which begins with the tensor
  if (plain == nullptr) throw nanobind::python_error();
  return *static_cast<Tensor*>(plain);
}

}  // namespace

bool exchange_bf16(nanobind::handle capsule, bool to_bits) {
  DataType& type = tensor_in(capsule.ptr()).type;
  const std::uint8_t from = to_bits ? bfloat : unsigned_integer;
  if (type.code != from || type.bits != 16) return false;
  type.code = to_bits ? unsigned_integer : bfloat;
  return true;
}

}  // namespace einrel::python
