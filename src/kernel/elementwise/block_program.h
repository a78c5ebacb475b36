#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "einsum/expr/scalar_expr.h"
#include "einsum/graph/ein_graph.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/elementwise/lanes.h"

namespace einrel {

/// The values of a block, as they are computed.
using BlockValues = std::variant<const float*, const double*, const std::int64_t*, const Truth*>;

/// The body of an EinSum, compiled to instructions over blocks. Stays as it is; BlockRun executes it.
class BlockProgram {
 public:
  /// The values of the body in type `result`: its own, or i64 for truths. `nest` must stay where it is.
  BlockProgram(const ScalarExpr& body, DType result, const LoopNest& nest, const ScalarBindings& scalars);

  /// How many lanes its blocks may have: lanes_per_block, half as many where some values take 8 bytes, four times as
  /// many where all are truths, or fewer where so many values of a long body are under way at once that
  /// workspace_bytes would grow beyond half of most_workspace_bytes.
  std::int64_t most_lanes() const;
  static constexpr std::int64_t bytes_per_lane = sizeof(double);  ///< of the widest values
  /// Memory that a run needs, aligned to 64 bytes.
  std::int64_t workspace_bytes() const;

 private:
  friend class BlockRun;
  enum class Kind : std::uint8_t { float32, float64, integer, truth };
  using Number = std::variant<double, std::int64_t>;
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
    std::variant<Load, Ramp, ApplyUnary, ApplyBinary, ApplyWhere, ConvertTo, Round, ApplyRandom, CheckRange> op;
    std::size_t result = 0;
    std::array<std::size_t, 3> arguments{};
    std::size_t argument_count = 0;
    bool uses(std::size_t value) const {
      const auto* const end = arguments.data() + argument_count;
      return std::find(arguments.data(), end, value) != end;
    }
  };
  /// Something computed, and the slot of the workspace that holds it.
  struct Value {
    Kind kind = Kind::float32;
    std::size_t last_use = 0;  // instruction
    std::size_t slot = 0;
    bool is_loaded = false;
  };
  class Compiler;
  /// Whether an approximation is what a value is used for first.
  bool is_approximated_of(std::size_t value) const;

  template <class Function>
  static decltype(auto) with_type(Kind kind, Function&& function);

  const LoopNest& nest_;
  std::vector<Instruction> instructions_;
  std::vector<Value> values_;
  std::vector<std::pair<std::size_t, Number>> constants_;  // by value
  std::size_t result_ = 0;
  std::size_t slot_count_ = 0;
};

template <class Function>
decltype(auto) BlockProgram::with_type(Kind kind, Function&& function) {
  switch (kind) {
    case Kind::float32: return function.template operator()<float>();
    case Kind::float64: return function.template operator()<double>();
    case Kind::integer: return function.template operator()<std::int64_t>();
    case Kind::truth: return function.template operator()<Truth>();
  }
  throw Bug("a kind of value outside its enumeration");
}

/// A program under way on arrays of one call. Constants and scalars are spread over blocks once.
class BlockRun {
 public:
  /// `lanes` says at which positions, now and when they are moved. `workspace` has workspace_bytes().
  BlockRun(const BlockProgram& program, const Lanes& lanes, const std::byte* const* operands, std::byte* workspace);

  /// The body at the lanes of the block, where the other loops have brought the quantities to `outer`. The values stay
  /// until the next call, or longer (is_in_place). They are written to `target` where the last instruction can do so
  /// (`target` aligned for them). By reference: a variant that is copied when it has just been written makes the
  /// processor wait until the whole block is stored.
  const BlockValues& run(const std::int64_t* outer, std::byte* target = nullptr);

  /// Brings operands from memory without the pauses in which the processor forgets what it was reading: touches what
  /// `run` is about to read, all operands side by side. Where it reads several, asks for what lies behind it, too, and
  /// need not touch the next block if that is there (16M f32 on one core: V * 0.5 3.9 ms touched, 4.9 asked for;
  /// A[i,j] + b[j] 7.8 touched, 4.2 asked for).
  void fetch(const std::int64_t* outer);

  /// Whether the values of the last run are an operand's where it lies: they stay beyond the next call.
  bool is_in_place() const;

 private:
  struct Executor;
  /// What of a value is stored: every lane; or, where all are equal, a few of them; or every lane although all are
  /// equal; or every lane as bf16, in an operand.
  enum class Stored : std::uint8_t { all, few, all_equal, narrow };
  std::byte* slot_of(std::size_t value) const;
  bool is_equal_in_lanes(const BlockProgram::Instruction& instruction) const;
  void complete(std::size_t value, std::size_t lanes);

  /// What comes from memory: operands whose part of a block lies side by side there, and whose loops all lead on.
  struct Coming {
    struct Operand {
      const std::byte* data = nullptr;
      std::size_t quantity = 0;
      std::size_t size = 0;                  ///< of an element
      const std::byte* from = nullptr;       ///< of the block at hand
      const std::byte* asked_for = nullptr;  ///< what lies behind it
      bool was_asked_for = false;            ///< the block at hand, with the one before
    };
    std::vector<Operand> operands;
    bool is_alone = false;  ///< nothing else is read that differs from lane to lane
  };
  Coming find_coming() const;

  /// An instruction's result: where it goes, and whether it is equal in all lanes of a block.
  struct Step {
    std::byte* slot = nullptr;
    bool is_equal = false;
  };

  const BlockProgram& program_;
  const Lanes& lanes_;
  const std::byte* const* operands_;
  std::byte* workspace_;
  std::int64_t slot_bytes_;
  std::vector<Step> steps_;
  std::vector<const std::byte*> at_;  // where each value lies at the moment
  std::vector<Stored> stored_;
  BlockValues values_;
  std::optional<Coming> coming_;  ///< found by the first fetch
};

}  // namespace einrel
