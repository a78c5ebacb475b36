#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "machine/machine.h"
#include "plan/layout.h"
#include "plan/plan.h"

namespace einrel {

/// elements_received, each question answered once: in models of many layers most of them are asked again.
class Transfers {
 public:
  /// Between sites of a machine: what counts of that are its links.
  explicit Transfers(std::int64_t sites, Machine machine = {}) : sites_(sites), machine_(std::move(machine)) {}
  std::int64_t sites() const { return sites_; }
  const Machine& machine() const { return machine_; }

  /// Per site.
  const std::vector<std::int64_t>& received(const Layout& have, const Layout& need, const Shape& bound);
  /// Per group of sites behind a link of the machine, received from other groups, each element once.
  const std::vector<std::int64_t>& crossing(const Link& link, const Layout& have, const Layout& need,
                                            const Shape& bound);

 private:
  std::int64_t sites_;
  Machine machine_;
  std::map<std::tuple<std::int64_t, Layout, Layout, Shape>, std::vector<std::int64_t>> known_crossing_;
  std::map<std::tuple<Layout, Layout, Shape>, std::vector<std::int64_t>> known_;
};

/// Numbers the sites of every vertex, one after the other, so that as much as possible of what its operands' producers
/// have computed is where it is needed, and little of the rest crosses slow links; then lays out the inputs. On a
/// machine with links this is done without looking at them, too, and the faster one is taken. Parts, grids and the
/// number of copies stay as they are; what an Input's plan says is replaced.
void number_sites(const EinGraph& graph, Plan& plan, const Machine& machine = {});
/// The same, with what is known of transfers between so many sites.
void number_sites(const EinGraph& graph, Plan& plan, Transfers& transfers);

/// Lays out every input as one of its consumers needs it, each element once, so that the others receive least. An input
/// in whose place a program leaves a result, as a training step leaves new weights (an output, computed from it element
/// by element), lies on all sites on which that is kept. A state lies where steps move least, its next value counted.
void lay_out_inputs(const EinGraph& graph, Plan& plan);

}  // namespace einrel
