#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "einsum/ein_graph.h"
#include "einsum/scalar_expr.h"
#include "kernel/block_ops.h"
#include "kernel/nest.h"

namespace einrel {

/// The values of a block, as they are computed: integers and bools as int64.
using BlockValues = std::variant<const float*, const double*, const std::int64_t*>;

/// The body of an EinSum, compiled to instructions over blocks. Constants and scalars are spread over blocks once.
class BlockProgram {
 public:
  BlockProgram(const ScalarExpr& body, const LoopNest& nest, const ScalarBindings& scalars);

  /// The body at the lanes of a block, where the other loops have brought the quantities to `outer`. The values stay
  /// until the next call. They are written to `target` where the last instruction can do so (`target` aligned for
  /// them).
  BlockValues run(const Lanes& lanes, const std::int64_t* outer, std::byte* target = nullptr);

 private:
  enum class Kind : std::uint8_t { float32, float64, integer };
  struct Load {
    std::size_t operand = 0;
  };
  struct Ramp {
    std::size_t label = 0;
  };
  /// To `type`; also i32 to i32 after arithmetic that may leave 32 bits.
  struct ConvertTo {
    DType type = DType::f32;
  };
  struct Instruction {
    std::variant<Load, Ramp, ApplyUnary, ApplyBinary, ApplyWhere, ConvertTo> op;
    std::size_t result = 0;
    std::array<std::size_t, 3> arguments{};
    std::size_t argument_count = 0;
  };
  /// Something computed: where it lies at the moment.
  struct Value {
    Kind kind = Kind::float32;
    std::size_t last_use = 0;  // instruction
    std::size_t slot = 0;
    const std::byte* data = nullptr;
  };
  struct alignas(64) Slot {
    std::array<std::byte, lanes_per_block * sizeof(double)> bytes;
  };
  class Compiler;
  struct Executor;

  template <class Function>
  static decltype(auto) with_type(Kind kind, Function&& function);
  const LoopNest& nest_;
  std::vector<Instruction> instructions_;
  std::vector<Value> values_;
  std::size_t result_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace einrel
