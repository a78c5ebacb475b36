#include "plan/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace einrel::test {
namespace {

constexpr std::int64_t eight_sites = 8;
constexpr std::int64_t rows_and_columns = 8;

/// A block of a matrix as one site has it: the numbers of its elements, row-major.
struct Block {
  std::array<std::int64_t, 2> shape{};
  std::vector<std::int64_t> elements;
  bool operator==(const Block&) const = default;

  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return elements[static_cast<std::size_t>(row * shape[1] + column)];
  }
};

template <class At>
Block block_of(std::array<std::int64_t, 2> shape, At at) {
  Block block{shape, {}};
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    for (std::int64_t column = 0; column < shape[1]; ++column) block.elements.push_back(at(row, column));
  }
  return block;
}

std::int64_t coordinate(const std::vector<MeshAxis>& mesh, const std::vector<std::size_t>& axes, std::int64_t site) {
  std::int64_t at = 0;
  for (const std::size_t axis : axes) at = at * mesh[axis].size + site / mesh[axis].stride % mesh[axis].size;
  return at;
}

std::int64_t sites_along(const std::vector<MeshAxis>& mesh, const std::vector<std::size_t>& axes) {
  std::int64_t size = 1;
  for (const std::size_t axis : axes) size *= mesh[axis].size;
  return size;
}

/// The eight_sites that differ from one in the coordinates on these axes, by these.
std::vector<std::int64_t> group_of(const std::vector<MeshAxis>& mesh, const std::vector<std::size_t>& axes,
                                   std::int64_t site) {
  std::map<std::int64_t, std::int64_t> group;
  for (std::int64_t other = 0; other < eight_sites; ++other) {
    bool is_in = true;
    for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
      const bool varies = std::find(axes.begin(), axes.end(), axis) != axes.end();
      is_in = is_in && (varies || coordinate(mesh, {axis}, other) == coordinate(mesh, {axis}, site));
    }
    if (is_in) group[coordinate(mesh, axes, other)] = other;
  }
  std::vector<std::int64_t> ordered;
  for (const auto& [at, other] : group) ordered.push_back(other);
  return ordered;
}

Block part_of(const Block& block, std::size_t dimension, std::int64_t parts, std::int64_t part) {
  std::array<std::int64_t, 2> shape = block.shape;
  shape[dimension] /= parts;
  return block_of(shape, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t first = part * shape[dimension];
    return dimension == 0 ? block.at(row + first, column) : block.at(row, column + first);
  });
}

Block joined(const std::vector<Block>& blocks, std::size_t dimension) {
  std::array<std::int64_t, 2> shape = blocks.front().shape;
  const std::int64_t each = shape[dimension];
  shape[dimension] *= static_cast<std::int64_t>(blocks.size());
  return block_of(shape, [&](std::int64_t row, std::int64_t column) {
    const auto& block = blocks[static_cast<std::size_t>((dimension == 0 ? row : column) / each)];
    return dimension == 0 ? block.at(row % each, column) : block.at(row, column % each);
  });
}

/// What all eight_sites have after a step, and how many elements they received.
class Simulation {
 public:
  Simulation(const std::vector<MeshAxis>& mesh, std::vector<Block> blocks) : mesh_(mesh), blocks_(std::move(blocks)) {}

  void run(const TakePart& step) {
    for (std::int64_t site = 0; site < eight_sites; ++site) {
      Block& own = blocks_[static_cast<std::size_t>(site)];
      own = part_of(own, step.dimension, sites_along(mesh_, step.axes), coordinate(mesh_, step.axes, site));
    }
  }
  void run(const AllToAll& step) {
    change([&](std::int64_t site) {
      std::vector<Block> parts;
      for (const std::int64_t other : group_of(mesh_, step.axes, site)) {
        parts.push_back(
            part_of(of(other), step.split, sites_along(mesh_, step.axes), coordinate(mesh_, step.axes, site)));
        if (other != site) received_ += static_cast<std::int64_t>(parts.back().elements.size());
      }
      return joined(parts, step.joined);
    });
  }
  void run(const PermuteSites& step) {
    change([&](std::int64_t site) {
      const std::vector<std::int64_t> group = group_of(mesh_, step.axes, site);
      for (const auto& [from, to] : step.pairs) {
        if (to != coordinate(mesh_, step.axes, site)) continue;
        if (from != to) received_ += static_cast<std::int64_t>(of(site).elements.size());
        return of(group[static_cast<std::size_t>(from)]);
      }
      return Block();
    });
  }
  void run(const AllGather& step) {
    change([&](std::int64_t site) {
      std::vector<Block> parts;
      for (const std::int64_t other : group_of(mesh_, step.axes, site)) parts.push_back(of(other));
      received_ += static_cast<std::int64_t>((parts.size() - 1) * parts.front().elements.size());
      return joined(parts, step.dimension);
    });
  }
  void run(const ReorderHere& step) {
    for (Block& block : blocks_) {
      std::vector<std::int64_t> sizes = step.sizes;
      const std::int64_t digits = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
      const std::int64_t left = block.shape[step.dimension] / digits;
      const auto source = [&](std::int64_t position) {
        std::int64_t rest = position / left;
        std::vector<std::int64_t> digit(sizes.size());
        for (std::size_t i = sizes.size(); i-- > 0;) {
          digit[step.to[i]] = rest % sizes[step.to[i]];
          rest /= sizes[step.to[i]];
        }
        std::int64_t at = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) at = at * sizes[i] + digit[i];
        return at * left + position % left;
      };
      const Block before = block;
      block = block_of(block.shape, [&](std::int64_t row, std::int64_t column) {
        return step.dimension == 0 ? before.at(source(row), column) : before.at(row, source(column));
      });
    }
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  std::int64_t received() const { return received_; }

 private:
  const Block& of(std::int64_t site) const { return blocks_[static_cast<std::size_t>(site)]; }

  template <class BlockOf>
  void change(BlockOf block_of_site) {
    std::vector<Block> after;
    for (std::int64_t site = 0; site < eight_sites; ++site) after.push_back(block_of_site(site));
    blocks_ = std::move(after);
  }

  const std::vector<MeshAxis>& mesh_;
  std::vector<Block> blocks_;
  std::int64_t received_ = 0;
};

std::vector<Block> blocks_of(const Sharding& sharding, const std::vector<MeshAxis>& mesh) {
  std::vector<Block> blocks;
  for (std::int64_t site = 0; site < eight_sites; ++site) {
    Block block = block_of({rows_and_columns, rows_and_columns},
                           [](std::int64_t row, std::int64_t column) { return row * rows_and_columns + column; });
    for (std::size_t d = 0; d < 2; ++d)
      block = part_of(block, d, sites_along(mesh, sharding[d]), coordinate(mesh, sharding[d], site));
    blocks.push_back(block);
  }
  return blocks;
}

/// Every way to give neighbouring axes of the mesh, in any order of rows and columns, to the dimensions of a matrix.
std::vector<Sharding> all_shardings(const std::vector<MeshAxis>& mesh) {
  std::vector<Sharding> shardings;
  const auto runs = [&] {
    std::vector<std::vector<std::size_t>> all{{}};
    for (std::size_t begin = 0; begin < mesh.size(); ++begin) {
      std::vector<std::size_t> run;
      for (std::size_t end = begin; end < mesh.size(); ++end) {
        run.push_back(end);
        all.push_back(run);
      }
    }
    return all;
  }();
  for (const auto& rows : runs) {
    for (const auto& columns : runs) {
      const bool is_shared = std::any_of(rows.begin(), rows.end(), [&](std::size_t axis) {
        return std::find(columns.begin(), columns.end(), axis) != columns.end();
      });
      if (!is_shared) shardings.push_back({rows, columns});
    }
  }
  return shardings;
}

std::string sharding_text(const Sharding& sharding) {
  std::string text;
  for (const std::vector<std::size_t>& axes : sharding) {
    text += text.empty() ? "" : ", ";
    for (const std::size_t axis : axes) text += std::to_string(axis);
  }
  return "(" + text + ")";
}

TEST(Collectives, BringEachSiteWhatItNeedsAndLacksOnce) {
  const std::vector<MeshAxis> mesh = mesh_of(eight_sites);
  int refused = 0;
  int done = 0;
  for (const Sharding& have : all_shardings(mesh)) {
    for (const Sharding& need : all_shardings(mesh)) {
      const auto steps = collectives_between(have, need, mesh);
      if (std::holds_alternative<std::string>(steps)) {
        ++refused;
        continue;
      }
      ++done;
      const std::vector<Block> before = blocks_of(have, mesh);
      const std::vector<Block> wanted = blocks_of(need, mesh);
      Simulation simulation(mesh, before);
      for (const Collective& step : std::get<std::vector<Collective>>(steps))
        std::visit([&](const auto& each) { simulation.run(each); }, step);
      SCOPED_TRACE(sharding_text(have) + " to " + sharding_text(need));
      EXPECT_EQ(simulation.blocks(), wanted);
      std::int64_t lacking = 0;
      for (std::size_t site = 0; site < before.size(); ++site) {
        const std::set<std::int64_t> held(before[site].elements.begin(), before[site].elements.end());
        for (const std::int64_t element : wanted[site].elements) lacking += held.count(element) == 0 ? 1 : 0;
      }
      EXPECT_EQ(simulation.received(), lacking);
    }
  }
  EXPECT_GT(done, 400);
  EXPECT_LT(refused, done / 5);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace einrel::test
