#include "einsum/scalar_value.h"

#include "tensor/convert.h"

namespace einrel {

Number as_type(DType type, Number value) {
  return with_stored_type(type, [&]<class Stored>() -> Number {
    return widen(std::visit([](auto computed) { return narrow<Stored>(computed); }, value));
  });
}

bool is_true(Number value) {
  return std::visit([](auto computed) { return computed != 0; }, value);
}

}  // namespace einrel
