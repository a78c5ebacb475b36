#include "tra/body_split.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tensor/convert.h"

namespace einrel::lowering {
namespace {

/// Goes over a body step by step, and keeps what it has gone over as it is to be.
class BodyWalk {
 public:
  BodyWalk(const ScalarExpr& body, const PartUse& use) : use_(use), coming_(body.steps.rbegin(), body.steps.rend()) {}

  ScalarExpr over_two_relations() {
    while (!coming_.empty()) {
      const std::size_t arguments = arity(coming_.back());
      const std::size_t first = open_.size() - arguments;
      if (std::vector<std::size_t> sources = sources_from(first); sources.size() <= 2) {
        take_step(first, std::move(sources));
      } else if (const auto one = with_two_sources(first)) {
        replace(*one, 1);
      } else {
        replace(first, 2);  // of three arguments with one relation each
      }
    }
    return std::move(done_);
  }

 private:
  /// A subexpression that is an argument of a step to come.
  struct Open {
    std::size_t begin = 0;             ///< among the steps that are done; it ends where the next one begins
    std::vector<std::size_t> sources;  ///< ascending, two at most
  };

  std::vector<std::size_t> sources_from(std::size_t first) const {
    std::vector<std::size_t> sources;
    if (const auto* value = std::get_if<OperandValue>(&coming_.back().op))
      sources.push_back(use_.source_of(value->operand));
    for (std::size_t o = first; o < open_.size(); ++o)
      sources.insert(sources.end(), open_[o].sources.begin(), open_[o].sources.end());
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    return sources;
  }

  void take_step(std::size_t first, std::vector<std::size_t> sources) {
    const std::size_t begin = first < open_.size() ? open_[first].begin : done_.steps.size();
    open_.resize(first);
    open_.push_back({begin, std::move(sources)});
    done_.steps.push_back(coming_.back());
    coming_.pop_back();
  }

  std::optional<std::size_t> with_two_sources(std::size_t first) const {
    for (std::size_t o = first; o < open_.size(); ++o) {
      if (open_[o].sources.size() == 2) return o;
    }
    return std::nullopt;
  }

  std::size_t end_of(std::size_t o) const { return o + 1 < open_.size() ? open_[o + 1].begin : done_.steps.size(); }

  /// So many subexpressions become one array, which is read in their places.
  void replace(std::size_t first, std::size_t count) {
    const auto at = [&](std::size_t step) { return done_.steps.begin() + static_cast<std::ptrdiff_t>(step); };
    std::vector<ScalarExpr> parts;
    for (std::size_t o = first; o < first + count; ++o) parts.push_back({{at(open_[o].begin), at(end_of(o))}});
    const std::vector<ScalarStep> behind(at(end_of(first + count - 1)), done_.steps.end());
    done_.steps.resize(open_[first].begin);
    if (use_.complete(parts)) {  // of more relations now: what is in them may be too much already
      open_.resize(first);
      coming_.insert(coming_.end(), behind.rbegin(), behind.rend());
      for (std::size_t p = count; p-- > 0;)
        coming_.insert(coming_.end(), parts[p].steps.rbegin(), parts[p].steps.rend());
      return;
    }
    const std::vector<std::vector<ScalarStep>> reads = use_.make(parts);
    const std::size_t before = open_.size() > first + count ? open_[first + count].begin : 0;
    for (std::size_t p = 0; p < count; ++p) {
      const auto& value = std::get<OperandValue>(reads[p].front().op);
      open_[first + p] = {done_.steps.size(), {use_.source_of(value.operand)}};
      done_.steps.insert(done_.steps.end(), reads[p].begin(), reads[p].end());
    }
    for (std::size_t o = first + count; o < open_.size(); ++o)
      open_[o].begin = open_[o].begin - before + done_.steps.size();
    done_.steps.insert(done_.steps.end(), behind.begin(), behind.end());
  }

  const PartUse& use_;
  std::vector<ScalarStep> coming_;  // the next one last
  ScalarExpr done_;
  std::vector<Open> open_;
};

}  // namespace

ScalarExpr over_two_relations(const ScalarExpr& body, const PartUse& use) {
  return BodyWalk(body, use).over_two_relations();
}

ScalarStep operand_step(std::size_t operand, DType type) { return {type, OperandValue{operand}}; }

ScalarStep number_step(double value, DType type) {
  return with_stored_type(type, [&]<class Stored>() -> ScalarStep {
    return {type, Constant{widen(narrow<Stored>(value))}};
  });
}

}  // namespace einrel::lowering
