#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernels.h"
#include "kernel/registry.h"
#include "machine/processor.h"

namespace einrel {
namespace {

/// Positions of a label at which the body is one of its subexpressions.
struct LabelRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t root = 0;  ///< the step that leaves the value
};

/// `label < end`.
struct Border {
  std::size_t label = 0;
  std::int64_t end = 0;
  bool is_first = true;  ///< whether the first value of `where` stands before the border
};

/// Finds where a body that chooses by one label changes from one choice to the next.
class RangeFinder {
 public:
  explicit RangeFinder(const ScalarExpr& body) : steps_(body.steps), arguments_(arguments_of_steps(body)) {}

  std::optional<Border> border_at(std::size_t root) const {
    if (!std::holds_alternative<ApplyWhere>(steps_[root].op)) return std::nullopt;
    const std::size_t condition = arguments_[root][0];
    const auto* const compares = std::get_if<ApplyBinary>(&steps_[condition].op);
    if (compares == nullptr || !is_comparison(compares->function)) return std::nullopt;
    const auto label = label_read(steps_[arguments_[condition][0]]);
    const auto* const constant = std::get_if<Constant>(&steps_[arguments_[condition][1]].op);
    const auto* const number = constant == nullptr ? nullptr : std::get_if<std::int64_t>(&constant->value);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;
    if (!label || number == nullptr || *number > most) return std::nullopt;
    switch (compares->function) {
      case BinaryFunction::less: return Border{*label, *number, true};
      case BinaryFunction::less_equal: return Border{*label, *number + 1, true};
      case BinaryFunction::greater: return Border{*label, *number + 1, false};
      case BinaryFunction::greater_equal: return Border{*label, *number, false};
      default: return std::nullopt;
    }
  }

  /// The ranges of a label of this extent, first positions first.
  std::vector<LabelRange> ranges_of(std::size_t label, std::int64_t extent) const {
    std::vector<LabelRange> found;
    std::vector<LabelRange> open{{0, extent, steps_.size() - 1}};
    while (!open.empty()) {
      const LabelRange range = open.back();
      open.pop_back();
      if (range.begin >= range.end) continue;
      const auto border = border_at(range.root);
      if (!border || border->label != label) {
        found.push_back(range);
        continue;
      }
      const std::size_t before = arguments_[range.root][border->is_first ? 1 : 2];
      const std::size_t behind = arguments_[range.root][border->is_first ? 2 : 1];
      const std::int64_t middle = std::clamp(border->end, range.begin, range.end);
      open.push_back({middle, range.end, behind});
      open.push_back({range.begin, middle, before});
    }
    return found;
  }

 private:
  const std::vector<ScalarStep>& steps_;
  std::vector<std::vector<std::size_t>> arguments_;
};

/// The EinSum at a range of one of its output labels, which counts from 0 there.
EinSum einsum_within(const EinSum& einsum, std::size_t label, const LabelRange& range, std::size_t first_step) {
  EinSum part = einsum;
  part.labels[label].extent = Extent(range.end - range.begin);
  for (Access& access : part.operands) {
    for (Index& index : access.indices) {
      for (const IndexTerm& term : index.terms) {
        if (term.label == label) index.offset += term.coefficient * range.begin;
      }
    }
  }
  const auto begin = einsum.body.steps.begin();
  const ScalarExpr body{
      {begin + static_cast<std::ptrdiff_t>(first_step), begin + static_cast<std::ptrdiff_t>(range.root) + 1}};
  part.body = substitute(body, [&](const ScalarStep& step) -> std::vector<ScalarStep> {
    if (label_read(step) != label || range.begin == 0) return {};
    return {step, whole_step(range.begin, step.type), binary_step(step.type, BinaryFunction::add)};
  });
  return part;
}

struct Piece {
  KernelSpec spec;
  std::int64_t offset = 0;  ///< bytes into the result
};

Piece piece_of(const KernelSpec& spec, std::size_t label, const LabelRange& range, std::size_t first_step) {
  Piece piece{spec, 0};
  piece.spec.einsum = einsum_within(spec.einsum, label, range, first_step);
  const std::vector<std::size_t>& output = spec.einsum.output;
  const auto d = static_cast<std::size_t>(std::find(output.begin(), output.end(), label) - output.begin());
  piece.spec.result.shape[d] = Extent(range.end - range.begin);
  piece.offset = range.begin * spec.result.strides[d] * static_cast<std::int64_t>(size_of(spec.result.dtype));
  // Streams begin at whole cache lines.
  piece.spec.large_result = spec.large_result && piece.offset % nominal_processor.line_bytes == 0;
  return piece;
}

/// A body without a reduction that is one expression before some position of a label and another one from there on.
std::vector<Piece> pieces_of(const KernelSpec& spec) {
  const ScalarExpr& body = spec.einsum.body;
  const RangeFinder finder(body);
  const auto border = finder.border_at(body.steps.size() - 1);
  if (!border) return {};
  const std::vector<LabelRange> ranges =
      finder.ranges_of(border->label, spec.einsum.labels[border->label].extent.value());
  const std::vector<std::size_t> starts = subexpression_starts(body);
  std::vector<Piece> pieces;
  std::transform(ranges.begin(), ranges.end(), std::back_inserter(pieces),
                 [&](const LabelRange& range) { return piece_of(spec, border->label, range, starts[range.root]); });
  return pieces;
}

/// A stage of a piece, with the number of its first part among those of all pieces.
struct PieceStage {
  PartFunction run;
  std::int64_t offset = 0;
  std::int64_t first_part = 0;
};

/// The parts of all of them as those of one stage: they write to different places.
Stage stage_of(std::vector<PieceStage> pieces, std::int64_t parts) {
  return {
      parts, [pieces = std::move(pieces)](const Arrays& arrays, Workspace workspace, std::int64_t part) {
        const auto behind =
            std::upper_bound(pieces.begin(), pieces.end(), part,
                             [](std::int64_t wanted, const PieceStage& piece) { return wanted < piece.first_part; });
        const PieceStage& piece = *(behind - 1);
        piece.run({arrays.operands, arrays.result + piece.offset, arrays.results}, workspace, part - piece.first_part);
      }};
}

using OfferAt = std::pair<Offer, std::int64_t>;  ///< and the offset of its piece

PreparedKernel together(const std::vector<OfferAt>& offers) {
  PreparedKernel all;
  std::vector<PreparedKernel> kernels;
  std::size_t stages = 0;
  for (const auto& [offer, offset] : offers) {
    kernels.push_back(offer.prepare());
    all.own_bytes = std::max(all.own_bytes, kernels.back().own_bytes);
    stages = std::max(stages, kernels.back().stages.size());
  }
  for (std::size_t s = 0; s < stages; ++s) {
    std::vector<PieceStage> pieces;
    std::int64_t parts = 0;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (s >= kernels[k].stages.size()) continue;
      pieces.push_back({std::move(kernels[k].stages[s].run), offers[k].second, parts});
      parts += kernels[k].stages[s].parts;
    }
    all.stages.push_back(stage_of(std::move(pieces), parts));
  }
  return all;
}

std::variant<Offer, Refusal> offer_pieces(const KernelSpec& spec, const LoopNest&) {
  if (spec.einsum.reducer) return Refusal{"it reduces"};
  if (may_throw(spec.einsum.body)) return Refusal{"it checks indices, also those that are not chosen"};
  const std::vector<Piece> pieces = pieces_of(spec);
  if (pieces.empty()) return Refusal{"it does not choose by where in a dimension an element stands"};
  constexpr std::size_t most_pieces = 32;
  if (pieces.size() > most_pieces) return Refusal{fmt::format("it has {} pieces", pieces.size())};
  Offer offer;
  std::vector<OfferAt> offers;
  std::vector<std::string> kernels;
  for (const Piece& piece : pieces) {
    Choice choice = choose_kernel(piece.spec);
    if (choice.offer.shared_bytes != 0) return Refusal{"pieces share no memory"};
    offer.seconds += choice.offer.seconds;
    offer.own_bytes = std::max(offer.own_bytes, choice.offer.own_bytes);
    if (std::find(kernels.begin(), kernels.end(), choice.kernel) == kernels.end()) kernels.emplace_back(choice.kernel);
    offers.emplace_back(std::move(choice.offer), piece.offset);
  }
  offer.path = fmt::format("{} by {}", pieces.size(), fmt::join(kernels, ", "));
  offer.prepare = [offers = std::make_shared<const std::vector<OfferAt>>(std::move(offers))] {
    return together(*offers);
  };
  return offer;
}

}  // namespace

KernelInfo pieces_kernel() {
  return {"pieces", "one expression before a position of a dimension, another from there on: tensors put together",
          "own loops", offer_pieces};
}

}  // namespace einrel
