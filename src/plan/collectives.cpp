#include "plan/collectives.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/error.h"

namespace einrel {
namespace {

/// A dimension is cut by several axes as a number is written in digits; this is one of them, the major first.
struct CutDigit {
  std::size_t dimension = 0;
  std::size_t place = 0;
  auto operator<=>(const CutDigit&) const = default;
};

using DigitsOfAxes = std::vector<std::optional<CutDigit>>;

DigitsOfAxes digits_of(const Sharding& sharding, std::size_t axes) {
  DigitsOfAxes digits(axes);
  for (std::size_t d = 0; d < sharding.size(); ++d) {
    for (std::size_t place = 0; place < sharding[d].size(); ++place) digits[sharding[d][place]] = CutDigit{d, place};
  }
  return digits;
}

/// Axes whose digits move from one to the next: each is to have that which the next one has. What the first has nobody
/// wants, and what the last one wants nobody has; or it is a circle.
struct AxisChain {
  std::vector<std::size_t> axes;
  bool is_circle = false;
};

class Moving {
 public:
  Moving(const Sharding& have, const Sharding& need, const std::vector<MeshAxis>& mesh)
      : mesh_(mesh),
        have_(digits_of(have, mesh.size())),
        need_(digits_of(need, mesh.size())),
        joined_(have.size()),
        parts_(have.size()) {}

  std::variant<std::vector<Collective>, std::string> run() {
    if (!has_equal_digits()) return "a dimension is cut by the axes of the mesh in an order in which parts do not nest";
    for (const AxisChain& chain : chains()) add(chain);
    if (!permutes_.empty() && !exchanges_.empty())
      return "axes of the mesh change their dimensions while others change places";
    if (!are_exchanges_alike()) return "axes of the mesh change to, or from, different dimensions";
    if (is_tangled_) return "an axis of the mesh takes the place of one that changes its dimension";
    return steps();
  }

 private:
  /// Whether both cut each dimension into digits of the same counts, as far as both cut it.
  bool has_equal_digits() const {
    for (std::size_t x = 0; x < have_.size(); ++x) {
      const std::optional<std::size_t> y = have_[x] ? axis_of(need_, *have_[x]) : std::nullopt;
      if (y && mesh_[*y].size != mesh_[x].size) return false;
    }
    return true;
  }

  /// One after the other they would send some elements twice.
  bool are_exchanges_alike() const {
    return std::all_of(exchanges_.begin(), exchanges_.end(), [&](const Exchange& each) {
      return each.gained.dimension == exchanges_.front().gained.dimension &&
             each.lost.dimension == exchanges_.front().lost.dimension;
    });
  }

  static std::optional<std::size_t> axis_of(const DigitsOfAxes& digits, const CutDigit& digit) {
    const auto at = std::find(digits.begin(), digits.end(), std::optional(digit));
    return at == digits.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - digits.begin()));
  }

  std::vector<AxisChain> chains() const {
    std::vector<AxisChain> chains;
    std::vector<bool> is_done(mesh_.size(), false);
    const auto follow = [&](std::size_t first) {
      AxisChain chain;
      for (std::optional<std::size_t> x = first; x;) {
        is_done[*x] = true;
        chain.axes.push_back(*x);
        x = need_[*x] ? axis_of(have_, *need_[*x]) : std::nullopt;
        if (x == first) {
          chain.is_circle = true;
          break;
        }
      }
      chains.push_back(std::move(chain));
    };
    for (std::size_t x = 0; x < mesh_.size(); ++x) {
      const bool is_wanted = have_[x] && axis_of(need_, *have_[x]);
      if (!is_wanted && (have_[x] || need_[x])) follow(x);
    }
    for (std::size_t x = 0; x < mesh_.size(); ++x) {
      if (!is_done[x] && have_[x] && have_[x] != need_[x]) follow(x);
    }
    return chains;
  }

  void add(const AxisChain& chain) {
    const std::size_t first = chain.axes.front();
    const std::size_t last = chain.axes.back();
    if (chain.axes.size() > 1) permutes_.push_back(rotation(chain.axes));
    if (chain.is_circle) return;
    const std::optional<CutDigit>& lost = have_[first];
    const std::optional<CutDigit>& gained = need_[last];
    if (lost && gained) {
      is_tangled_ = is_tangled_ || first != last;
      exchanges_.push_back({*gained, *lost, first});
    } else if (lost) {
      joined_[lost->dimension].emplace(lost->place, last);
    } else if (gained) {
      parts_[gained->dimension].emplace(gained->place, first);
    }
  }

  /// The block that a site has comes from the one whose coordinate on the next axis is its own on each.
  PermuteSites rotation(const std::vector<std::size_t>& axes) const {
    PermuteSites permute{axes, {}};
    std::vector<std::int64_t> sizes;
    for (const std::size_t axis : axes) sizes.push_back(mesh_[axis].size);
    const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t site = 0; site < all; ++site) {
      std::vector<std::int64_t> at(sizes.size());
      std::int64_t left = site;
      for (std::size_t i = sizes.size(); i-- > 0; left /= sizes[i]) at[i] = left % sizes[i];
      std::rotate(at.begin(), at.end() - 1, at.end());
      std::int64_t source = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i) source = source * sizes[i] + at[i];
      permute.pairs.emplace_back(source, site);
    }
    return permute;
  }

  struct Exchange {
    CutDigit gained;
    CutDigit lost;
    std::size_t axis = 0;
    bool operator<(const Exchange& other) const { return gained < other.gained; }
  };

  std::vector<Collective> steps() {
    std::sort(exchanges_.begin(), exchanges_.end());
    std::vector<Collective> steps;
    for (std::size_t d = 0; d < parts_.size(); ++d) take_parts(d, steps);
    std::vector<std::vector<std::size_t>> order(parts_.size());  // of the digits that are joined, the major first
    std::vector<std::map<std::size_t, std::int64_t>> sizes(parts_.size());
    const auto join = [&](std::size_t d, std::size_t place, std::size_t axis) {
      order[d].insert(order[d].begin(), place);
      sizes[d][place] = mesh_[axis].size;
    };
    if (!exchanges_.empty()) {
      AllToAll exchange{{}, exchanges_.front().gained.dimension, exchanges_.front().lost.dimension};
      for (const Exchange& each : exchanges_) exchange.axes.push_back(each.axis);
      steps.emplace_back(std::move(exchange));
    }
    for (auto each = exchanges_.rbegin(); each != exchanges_.rend(); ++each)
      join(each->lost.dimension, each->lost.place, each->axis);
    for (PermuteSites& permute : permutes_) steps.emplace_back(std::move(permute));
    for (std::size_t d = 0; d < joined_.size(); ++d) {
      if (joined_[d].empty()) continue;
      AllGather gather{d, {}};
      for (const auto& [place, axis] : joined_[d]) gather.axes.push_back(axis);
      for (auto each = joined_[d].rbegin(); each != joined_[d].rend(); ++each) join(d, each->first, each->second);
      steps.emplace_back(std::move(gather));
    }
    for (std::size_t d = 0; d < order.size(); ++d) put_in_order(d, order[d], sizes[d], steps);
    return steps;
  }

  /// Before anything is sent: the digits that are taken here come first.
  void take_parts(std::size_t d, std::vector<Collective>& steps) const {
    std::vector<std::pair<std::size_t, std::size_t>> wanted;  // places and axes
    for (const auto& [place, axis] : parts_[d]) wanted.emplace_back(place, axis);
    const std::size_t taken = wanted.size();
    for (const Exchange& each : exchanges_) {
      if (each.gained.dimension == d) wanted.emplace_back(each.gained.place, each.axis);
    }
    std::vector<std::pair<std::size_t, std::size_t>> ascending = wanted;
    std::sort(ascending.begin(), ascending.end());
    if (ascending != wanted) {
      ReorderHere reorder{d, {}, {}};
      for (const auto& [place, axis] : ascending) reorder.sizes.push_back(mesh_[axis].size);
      for (const auto& each : wanted)
        reorder.to.push_back(
            static_cast<std::size_t>(std::find(ascending.begin(), ascending.end(), each) - ascending.begin()));
      steps.emplace_back(std::move(reorder));
    }
    if (taken == 0) return;
    TakePart take{d, {}};
    for (std::size_t i = 0; i < taken; ++i) take.axes.push_back(wanted[i].second);
    steps.emplace_back(std::move(take));
  }

  static void put_in_order(std::size_t d, const std::vector<std::size_t>& order,
                           const std::map<std::size_t, std::int64_t>& sizes, std::vector<Collective>& steps) {
    if (std::is_sorted(order.begin(), order.end())) return;
    ReorderHere reorder{d, {}, {}};
    for (const std::size_t place : order) reorder.sizes.push_back(sizes.at(place));
    for (const auto& [place, size] : sizes)
      reorder.to.push_back(static_cast<std::size_t>(std::find(order.begin(), order.end(), place) - order.begin()));
    steps.emplace_back(std::move(reorder));
  }

  const std::vector<MeshAxis>& mesh_;
  DigitsOfAxes have_;
  DigitsOfAxes need_;
  bool is_tangled_ = false;
  std::vector<Exchange> exchanges_;
  std::vector<PermuteSites> permutes_;
  std::vector<std::map<std::size_t, std::size_t>> joined_;  ///< per dimension, axes by the places that are gathered
  std::vector<std::map<std::size_t, std::size_t>> parts_;   ///< by the places that are taken here
};

}  // namespace

Sharding sharding_of(const Layout& layout, const std::vector<MeshAxis>& mesh) {
  Sharding sharding;
  for (const LayoutAxis& axis : layout.axes) {
    const std::optional<std::vector<std::size_t>> axes = axes_of(mesh, axis.grid, axis.stride);
    if (!axes) throw Bug("a layout that is over no axes of the mesh");
    sharding.push_back(*axes);
  }
  return sharding;
}

std::variant<std::vector<Collective>, std::string> collectives_between(const Sharding& have, const Sharding& need,
                                                                       const std::vector<MeshAxis>& mesh) {
  return Moving(have, need, mesh).run();
}

std::string collectives_fault(const Sharding& have, const Sharding& need, const std::vector<MeshAxis>& mesh) {
  if (have == need) return "";
  const auto steps = collectives_between(have, need, mesh);
  const auto* const reason = std::get_if<std::string>(&steps);
  return reason == nullptr ? "" : *reason;
}

}  // namespace einrel
