#include "kernel/registry.h"

#include "base/error.h"
#include "kernel/kernels.h"

namespace einrel {

const std::vector<KernelInfo>& all_kernels() {
  static const std::vector<KernelInfo> kernels{copy_kernel(), pieces_kernel(),  select_kernel(), direct_kernel(),
                                               dot_kernel(),  windows_kernel(), packed_kernel(), blocks_kernel()};
  return kernels;
}

Choice choose_kernel(const KernelSpec& spec) {
  const LoopNest nest = make_nest(spec);
  Choice choice;
  for (const KernelInfo& kernel : all_kernels()) {
    std::variant<Offer, Refusal> answer = kernel.offer(spec, nest);
    if (auto* const refusal = std::get_if<Refusal>(&answer)) {
      choice.considered.push_back({kernel.name, std::move(refusal->reason)});
      continue;
    }
    Offer& offer = std::get<Offer>(answer);
    choice.considered.push_back({kernel.name, offer.seconds});
    if (!choice.kernel.empty() && choice.offer.seconds <= offer.seconds) continue;
    choice.kernel = kernel.name;
    choice.offer = std::move(offer);
  }
  invariant(!choice.kernel.empty(), "no kernel computes this EinSum");
  return choice;
}

}  // namespace einrel
