#include "tra/body_split.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace einrel::lowering {
namespace {

/// Operand number n reads relation n; each array that is made is a further one.
class Arrays {
 public:
  explicit Arrays(std::size_t relations) : relations_(relations) {}

  PartUse use() {
    return {[](std::size_t operand) { return operand; }, [](std::vector<ScalarExpr>&) { return false; },
            [this](const std::vector<ScalarExpr>& parts) {
              std::set<std::size_t> read;
              std::vector<std::vector<ScalarStep>> reads;
              for (const ScalarExpr& part : parts) {
                for (const std::size_t operand : operands_of(part)) read.insert(operand);
                steps_ += part.steps.size();
                reads.push_back({operand_step(relations_, DType::f32)});
              }
              EXPECT_EQ(read.size(), 2U);
              ++relations_;
              ++made_;
              return reads;
            }};
  }
  static std::set<std::size_t> operands_of(const ScalarExpr& body) {
    std::set<std::size_t> read;
    for (const ScalarStep& step : body.steps) {
      if (const auto* value = std::get_if<OperandValue>(&step.op)) read.insert(value->operand);
    }
    return read;
  }
  std::size_t made() const { return made_; }
  std::size_t steps() const { return steps_; }  ///< of all that was made

 private:
  std::size_t relations_;
  std::size_t made_ = 0;
  std::size_t steps_ = 0;
};

ScalarStep sum_step() { return {DType::f32, ApplyBinary{BinaryFunction::add}}; }

TEST(BodySplit, TakesEachStepIntoOneArrayWhateverTheNesting) {
  constexpr std::size_t count = 1000;
  ScalarExpr from_left;   // ((a + b) + c) + d
  ScalarExpr from_right;  // a + (b + (c + d))
  for (std::size_t i = 0; i < count; ++i) {
    from_left.steps.push_back(operand_step(i, DType::f32));
    from_right.steps.push_back(operand_step(i, DType::f32));
    if (i > 0) from_left.steps.push_back(sum_step());
  }
  for (std::size_t i = 1; i < count; ++i) from_right.steps.push_back(sum_step());
  for (const ScalarExpr& body : {from_left, from_right}) {
    Arrays arrays(count);
    const ScalarExpr split = over_two_relations(body, arrays.use());
    EXPECT_EQ(Arrays::operands_of(split).size(), 2U);
    EXPECT_EQ(split.steps.size(), 3U);
    EXPECT_EQ(arrays.made(), count - 2);
    EXPECT_EQ(arrays.steps(), 3 * (count - 2));
  }
}

TEST(BodySplit, LeavesABodyOfTwoRelationsAsItIs) {
  const ScalarExpr body{
      {operand_step(0, DType::f32), operand_step(1, DType::f32), sum_step(), operand_step(0, DType::f32), sum_step()}};
  Arrays arrays(2);
  EXPECT_EQ(over_two_relations(body, arrays.use()), body);
  EXPECT_EQ(arrays.made(), 0U);
}

TEST(BodySplit, ReadsWhatIsToBeReadBesidesBeforeItMakesAPart) {
  // a + label + b + c, where a part cannot have the label's value without a relation of its positions, number 3.
  const ScalarStep label{DType::f32, LabelValue{0}};
  const ScalarExpr body{{operand_step(0, DType::f32), label, sum_step(), operand_step(1, DType::f32), sum_step(),
                         operand_step(2, DType::f32), sum_step()}};
  Arrays arrays(4);
  PartUse use = arrays.use();
  use.complete = [](std::vector<ScalarExpr>& parts) {
    bool found = false;
    for (ScalarStep& step : parts.front().steps) {
      if (!std::holds_alternative<LabelValue>(step.op)) continue;
      step = operand_step(3, DType::f32);
      found = true;
    }
    return found;
  };
  const ScalarExpr split = over_two_relations(body, use);
  EXPECT_EQ(Arrays::operands_of(split), (std::set<std::size_t>{2, 5}));  // ((0 + 3) + 1) + 2
  EXPECT_EQ(arrays.made(), 2U);
}

}  // namespace
}  // namespace einrel::lowering
