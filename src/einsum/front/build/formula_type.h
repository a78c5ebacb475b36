#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "einsum/front/build/formula.h"

namespace einrel::build {

/// The types that the language gives formulas without macros, each part looked at once.
class FormulaTypes {
 public:
  /// `tensor` gives those of tensors.
  explicit FormulaTypes(std::function<DType(const std::string&)> tensor) : tensor_(std::move(tensor)) {}

  /// Nothing for a formula of bare numbers, labels and scalars, which take the type of what they meet. O(parts that are
  /// new).
  std::optional<DType> operator()(const Formula& formula);

 private:
  struct Type {
    std::optional<DType> type;
    bool is_whole = false;  ///< of what has none: it is made of whole numbers and labels
  };
  struct OfPart;
  static Type together(const Type& a, const Type& b, bool counts);

  std::function<DType(const std::string&)> tensor_;
  std::map<Formula, Type> types_;
};

}  // namespace einrel::build
