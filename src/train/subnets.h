#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "run/planned_tasks.h"
#include "tensor/tensor.h"
#include "train/train.h"

namespace einrel {

/// Labels whose extents are divided among sites, and which dimensions of states they are.
struct Subnets {
  struct SlicedState {
    std::string name;
    DType dtype = DType::f32;
    Shape bound;
    std::vector<std::optional<std::size_t>> labels;  ///< by dimension, which of them
    bool is_sliced() const;
  };
  std::vector<std::string> labels;
  std::vector<std::int64_t> extents;
  std::vector<SlicedState> states;  ///< all states of the program, in its order
};

/// Throws UserError, with the reason, for a label that the program has not, or that cannot be divided: it stands in an
/// input, in no state, in a window or an offset, in a group of a view that a state is made of, its number is computed
/// with, or it has fewer values than there are sites.
Subnets find_subnets(const TrainRequest& request, const Feeds& feeds, const CheckedProgram& checked);

/// How many values of an extent a site gets: the first ones one more, where it cannot be divided evenly.
std::int64_t part_of(std::int64_t extent, std::int64_t site, std::int64_t sites);

/// The numbers that a site gets of each label, ascending: a random division that seed and step decide.
using Parts = std::vector<std::vector<std::int64_t>>;  // by label
std::vector<Parts> divide(const Subnets& subnets, std::int64_t sites, std::uint64_t seed, std::int64_t step);

/// A site's program in which random numbers stand where they do in the whole, so that no two sites draw the same: where
/// one has the number of a divided label, this is the number that the unit has in the whole network, and its extent is
/// the whole one; elsewhere the site counts, too. What this takes more are inputs (places_of). One site's stays as it
/// is.
EinGraph placed_in_whole(const EinGraph& graph, const Subnets& subnets, std::int64_t sites);

/// The values of the inputs that placed_in_whole adds.
InputSources places_of(const Subnets& subnets, std::int64_t site, const Parts& parts);

/// A site's part of a state, row-major; the state is row-major, too. O(elements of the part).
Tensor slice_of(const Tensor& state, const Subnets::SlicedState& sliced, const Parts& parts);
/// The shape that it has.
Shape bound_of(const Subnets::SlicedState& sliced, const Parts& parts);
/// Writes a part back to its place.
void put_back(const Tensor& part, const Subnets::SlicedState& sliced, const Parts& parts, Tensor& state);

}  // namespace einrel
