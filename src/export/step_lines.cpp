#include "export/step_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <numeric>
#include <utility>

namespace einrel {
namespace {

/// Writes steps, and follows the shape of what a site has.
class StepWriter {
 public:
  StepWriter(std::string array, std::vector<std::int64_t> shape, const std::vector<MeshAxis>& mesh,
             const ArrayLibrary& library, ModuleNeeds& needs)
      : array_(std::move(array)), shape_(std::move(shape)), mesh_(mesh), library_(library), needs_(needs) {}

  std::string write(const TakePart& step) {
    std::int64_t& extent = shape_[step.dimension];
    extent /= sites_along(step.axes);
    return along(library_.take_part, array_, step.axes, fmt::arg("extent", extent),
                 fmt::arg("dimension", step.dimension));
  }
  std::string write(const AllToAll& step) {
    needs_.lines.insert(step.axes);
    shape_[step.split] /= sites_along(step.axes);
    shape_[step.joined] *= sites_along(step.axes);
    return along(library_.all_to_all, array_, step.axes, fmt::arg("split", step.split),
                 fmt::arg("joined", step.joined));
  }
  std::string write(const PermuteSites& step) const {
    needs_.lines.insert(step.axes);
    std::vector<std::string> pairs;
    for (const auto& [from, to] : step.pairs) pairs.push_back(fmt::format("({}, {})", from, to));
    return along(library_.permute, array_, step.axes, fmt::arg("pairs", fmt::format("{}", fmt::join(pairs, ", "))));
  }
  std::string write(const AllGather& step) {
    needs_.lines.insert(step.axes);
    shape_[step.dimension] *= sites_along(step.axes);
    return along(library_.all_gather, array_, step.axes, fmt::arg("dimension", step.dimension));
  }
  std::string write(const ReorderHere& step) const {
    const auto at = static_cast<std::ptrdiff_t>(step.dimension);
    std::int64_t left = shape_[step.dimension];
    for (const std::int64_t size : step.sizes) left /= size;
    std::vector<std::int64_t> split(shape_.begin(), shape_.begin() + at);
    split.insert(split.end(), step.sizes.begin(), step.sizes.end());
    split.push_back(left);
    split.insert(split.end(), shape_.begin() + at + 1, shape_.end());
    std::vector<std::size_t> order(split.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < step.to.size(); ++i) order[step.dimension + i] = step.dimension + step.to[i];
    return reshaped(transposed(reshaped(array_, split), order, library_), shape_);
  }

  void goes_on_with(const std::string& array) { array_ = array; }

 private:
  std::int64_t sites_along(const std::vector<std::size_t>& axes) const {
    std::int64_t sites = 1;
    for (const std::size_t axis : axes) sites *= mesh_[axis].size;
    return sites;
  }

  std::string array_;
  std::vector<std::int64_t> shape_;
  const std::vector<MeshAxis>& mesh_;
  const ArrayLibrary& library_;
  ModuleNeeds& needs_;
};

}  // namespace

std::vector<std::string> step_lines(const std::vector<Collective>& steps, const std::string& from,
                                    const std::string& name, std::vector<std::int64_t> shape,
                                    const std::vector<MeshAxis>& mesh, const ArrayLibrary& library,
                                    ModuleNeeds& needs) {
  StepWriter writer(from, std::move(shape), mesh, library, needs);
  std::vector<std::string> lines;
  for (const Collective& step : steps) {
    const std::string text = std::visit([&](const auto& each) { return writer.write(each); }, step);
    lines.push_back(fmt::format("{} = {}", name, text));
    writer.goes_on_with(name);
  }
  if (lines.empty()) lines.push_back(fmt::format("{} = {}", name, from));
  return lines;
}

}  // namespace einrel
