#include <fmt/format.h>

#include <algorithm>

#include "kernel/kernels.h"
#include "kernel/products/direct.h"
#include "kernel/products/dot.h"
#include "kernel/products/packed_plan.h"
#include "kernel/products/split.h"
#include "kernel/products/windows.h"

namespace einrel {
namespace {

using namespace contraction;

template <class Plan>
using PlanFunction = std::variant<Plan, std::string> (*)(const Product&);

template <class Plan>
Offer offer_whole(Plan plan) {
  const std::int64_t count = parts(plan);
  return {plan.seconds, describe(plan) + (count == 1 ? "" : fmt::format(", {} parts", count)), own_bytes(plan),
          shared_bytes(plan), [plan = std::move(plan)] { return prepare(plan); }};
}

/// The plans of a product that is cut along reduced loops.
template <class Plan>
struct CutPlan {
  Split cut;
  Plan equal;
  std::optional<Plan> last;
};

/// Nothing when that cannot be done in this way.
template <class Plan>
std::optional<CutPlan<Plan>> plan_cut(PlanFunction<Plan> make_plan, std::optional<Split> cut) {
  if (!cut) return std::nullopt;
  std::variant<Plan, std::string> equal = make_plan(cut->equal);
  std::optional<std::variant<Plan, std::string>> last;
  if (cut->last) last = make_plan(*cut->last);
  if (!std::holds_alternative<Plan>(equal) || (last && !std::holds_alternative<Plan>(*last))) return std::nullopt;
  std::optional<Plan> last_plan;
  if (last) last_plan = std::get<Plan>(std::move(*last));
  return CutPlan<Plan>{std::move(*cut), std::get<Plan>(std::move(equal)), std::move(last_plan)};
}

template <class Plan>
Offer offer_cut(CutPlan<Plan> plan) {
  const Split& cut = plan.cut;
  Offer offer;
  offer.seconds =
      plan.equal.seconds + (plan.last ? plan.last->seconds : 0) + 2e-9 * static_cast<double>(cut.pieces * cut.results);
  offer.path = fmt::format("{}, {} pieces of the reduction", describe(plan.equal), cut.pieces);
  offer.own_bytes = std::max(own_bytes(plan.equal), plan.last ? own_bytes(*plan.last) : 0);
  offer.shared_bytes = shared_bytes(cut);
  offer.prepare = [plan = std::move(plan)] {
    std::optional<PreparedKernel> last;
    if (plan.last) last = prepare(*plan.last);
    return prepare_split(plan.cut, prepare(plan.equal), std::move(last));
  };
  return offer;
}

template <class Plan>
std::optional<Offer> offer_split(PlanFunction<Plan> make_plan, const Product& product, const CutLimits& cut) {
  std::optional<CutPlan<Plan>> plan = plan_cut(make_plan, split(product, cut));
  if (!plan) return std::nullopt;
  return offer_cut(std::move(*plan));
}

/// A sum of so many additions, where these are more than f32 bears, in pieces that have fewer: as many pieces as there
/// have to be, or as there is room for. Nothing where there are fewer or it cannot be cut.
template <class Plan>
std::optional<Offer> offer_long_sum(PlanFunction<Plan> make_plan, const Product& product, std::int64_t count,
                                    std::int64_t least_pieces) {
  if (!sums_in_f32(product.match)) return std::nullopt;
  const double results = positions(product.batch) * positions(product.rows) * positions(product.columns);
  const auto room = static_cast<std::int64_t>(static_cast<double>(most_workspace_bytes) / sizeof(float) / results);
  std::optional<CutPlan<Plan>> best;
  std::int64_t pieces = std::min(room, std::max(least_pieces, ceil_div(count, most_additions)));
  for (std::int64_t before = 1; count > most_additions && pieces > before;) {
    std::optional<CutPlan<Plan>> cut = plan_cut(make_plan, split(product, {pieces, 1, most_workspace_bytes}));
    if (!cut) break;
    count = additions(cut->equal);
    best = std::move(cut);
    before = pieces;
    pieces = std::min(room, 2 * pieces);
  }
  if (!best) return std::nullopt;
  return offer_cut(std::move(*best));
}

/// Whether threads would wait for one another many times: after each of the blocks of columns that they share.
bool waits_often(const PackedPlan& plan) {
  constexpr std::int64_t often = 32;
  return plan.shared_columns > 0 && plan.inner >= often * plan.inner_block;
}
template <class Plan>
bool waits_often(const Plan& /*plan*/) {
  return false;
}

template <class Plan>
std::variant<Offer, Refusal> offer_with(PlanFunction<Plan> make_plan, const KernelSpec& spec, const LoopNest& nest) {
  const std::variant<Product, std::string> found = as_product(spec, nest);
  if (const auto* const reason = std::get_if<std::string>(&found)) return Refusal{*reason};
  const Product& product = std::get<Product>(found);
  std::variant<Plan, std::string> planned = make_plan(product);
  if (auto* const reason = std::get_if<std::string>(&planned)) return Refusal{std::move(*reason)};
  Plan& plan = std::get<Plan>(planned);
  // None shorter than a part that packs; and no more than 16, however many cores there are.
  const auto pieces = static_cast<std::int64_t>(std::min(plan.seconds / packed_part_seconds, 16.0));
  const std::int64_t even_pieces = (pieces + 1) / 2 * 2;
  if (std::optional<Offer> offer =
          offer_long_sum(make_plan, product, additions(plan), std::max<std::int64_t>(2, even_pieces)))
    return std::move(*offer);
  if (parts(plan) == 1 && pieces >= 2) {
    // Several threads share the pieces, two have as much to do each; one must not take much longer for them.
    std::optional<Offer> offer = offer_split(make_plan, product, {.pieces = even_pieces});
    if (offer && offer->seconds < 1.25 * plan.seconds) return std::move(*offer);
  }
  if (waits_often(plan)) {
    // Each piece packs its own columns. Four keep as many threads at work as the parts of rows would.
    constexpr std::int64_t few = 4;
    std::optional<Offer> offer = offer_split(make_plan, product, {.pieces = few, .most_bytes = most_workspace_bytes});
    if (offer && offer->seconds < 1.05 * plan.seconds) return std::move(*offer);
  }
  return offer_whole(std::move(plan));
}

std::variant<PackedPlan, std::string> plan_reduction(const Product& product) {
  if (!product.match.reduces) return "it reduces nothing";
  return plan_packed(product);
}

std::variant<WindowPlan, std::string> plan_windows_always(const Product& product) { return plan_windows(product, {}); }

}  // namespace

KernelInfo packed_kernel() {
  return {"packed", "reductions of x*y, x+y, (x-y)^2, |x-y|, max(x,y) or min(x,y), through packed panels", "Highway",
          [](const KernelSpec& spec, const LoopNest& nest) { return offer_with(plan_reduction, spec, nest); }};
}

KernelInfo direct_kernel() {
  return {"direct", "sums of x*y, and outer products, of f32 or f64, read where they lie", "Highway",
          [](const KernelSpec& spec, const LoopNest& nest) -> std::variant<Offer, Refusal> {
            if (!spec.einsum.reducer && spec.large_result) {
              return Refusal{"it reduces nothing, and its result is too large for the caches"};
            }
            return offer_with(plan_direct, spec, nest);
          }};
}

KernelInfo windows_kernel() {
  return {"windows", "sums of x*y of floats where one of them is read in overlapping windows", "Highway",
          [](const KernelSpec& spec, const LoopNest& nest) { return offer_with(plan_windows_always, spec, nest); }};
}

KernelInfo dot_kernel() {
  return {"dot", "reductions as of packed, of few columns or rows, with vectors along a reduced loop", "Highway",
          [](const KernelSpec& spec, const LoopNest& nest) { return offer_with(plan_dot, spec, nest); }};
}

}  // namespace einrel
