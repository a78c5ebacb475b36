#include "kernel/cpu/contraction/contraction.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/cpu/contraction/direct.h"
#include "kernel/cpu/contraction/dot.h"
#include "kernel/cpu/contraction/packed.h"
#include "kernel/cpu/contraction/split.h"
#include "kernel/cpu/contraction/windows.h"

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

/// Cut along a reduced loop; nothing when that cannot be done in this way.
template <class Plan>
std::optional<Offer> offer_split(PlanFunction<Plan> make_plan, std::optional<Split> cut) {
  if (!cut) return std::nullopt;
  std::variant<Plan, std::string> equal = make_plan(cut->equal);
  std::optional<std::variant<Plan, std::string>> last;
  if (cut->last) last = make_plan(*cut->last);
  if (!std::holds_alternative<Plan>(equal) || (last && !std::holds_alternative<Plan>(*last))) return std::nullopt;
  std::optional<Plan> last_plan;
  if (last) last_plan = std::get<Plan>(std::move(*last));
  Plan equal_plan = std::get<Plan>(std::move(equal));
  Offer offer;
  offer.seconds = equal_plan.seconds + (last_plan ? last_plan->seconds : 0) +
                  2e-9 * static_cast<double>(cut->pieces * cut->results);
  offer.path = fmt::format("{}, {} pieces of the reduction", describe(equal_plan), cut->pieces);
  offer.own_bytes = std::max(own_bytes(equal_plan), last_plan ? own_bytes(*last_plan) : 0);
  offer.shared_bytes = shared_bytes(*cut);
  offer.prepare = [cut = std::move(*cut), equal_plan = std::move(equal_plan), last_plan = std::move(last_plan)] {
    std::optional<PreparedKernel> prepared_last;
    if (last_plan) prepared_last = prepare(*last_plan);
    return prepare_split(cut, prepare(equal_plan), std::move(prepared_last));
  };
  return offer;
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
  constexpr double least_seconds = 2e-4;  // of a piece
  const auto pieces = static_cast<std::int64_t>(std::min(plan.seconds / least_seconds, 16.0));
  if (parts(plan) == 1 && pieces >= 2) {
    // Several threads share the pieces, two have as much to do each; one must not take much longer for them.
    std::optional<Offer> offer = offer_split(make_plan, split(product, (pieces + 1) / 2 * 2));
    if (offer && offer->seconds < 1.25 * plan.seconds) return std::move(*offer);
  }
  if (waits_often(plan)) {
    // Each piece packs its own columns. Four keep as many threads at work as the parts of rows would.
    constexpr std::int64_t few = 4;
    std::optional<Offer> offer = offer_split(make_plan, split(product, few, most_workspace_bytes));
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
