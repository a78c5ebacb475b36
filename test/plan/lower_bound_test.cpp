#include "plan/cost/lower_bound.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/refine/numbering.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// Bytes of f32 that a matrix multiply moves at least, in closed form: one, two or three faces of a box are smaller
/// than their matrices (the three regimes of the memory-independent bound).
double closed_form(std::array<double, 3> extents, double sites) {
  std::sort(extents.begin(), extents.end());
  const auto [k, n, m] = extents;
  const double all = m * n + n * k + m * k;
  double faces = 3 * std::cbrt(m * n * k / sites * m * n * k / sites);
  if (sites <= m / n) {
    faces = n * k + (m * n + m * k) / sites;
  } else if (sites <= m * n / (k * k)) {
    faces = 2 * std::sqrt(m * n * k * k / sites) + m * n / sites;
  }
  return 4 * (faces * sites - all);
}

EinGraph product(std::int64_t i, std::int64_t j, std::int64_t k) {
  return einrel::graph_of("dims i=" + std::to_string(i) + " j=" + std::to_string(j) + " k=" + std::to_string(k) +
                          "\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n");
}

TEST(LeastBytes, OfMatrixMultipliesAreTheClosedForm) {
  Random random(7);
  std::array<int, 3> regimes{};
  for (int round = 0; round < 2000; ++round) {
    std::array<std::int64_t, 3> e{};
    for (std::int64_t& extent : e) extent = std::int64_t{1} << random.between(0, 14);
    for (std::int64_t& extent : e) extent = random.between((extent + 1) / 2, extent);
    const double volume = static_cast<double>(e[0]) * static_cast<double>(e[1]) * static_cast<double>(e[2]);
    const auto sites = std::min(volume, static_cast<double>(random.between(1, 1024)));
    const std::array<double, 3> extents{static_cast<double>(e[0]), static_cast<double>(e[1]),
                                        static_cast<double>(e[2])};
    const double expected = closed_form(extents, sites);
    const EinGraph graph = product(e[0], e[1], e[2]);
    const auto least = least_bytes(graph.vertices.back(), graph, static_cast<std::int64_t>(sites));
    ASSERT_TRUE(least);
    EXPECT_LE(*least, expected * (1 + 1e-9) + 1e-6) << e[0] << "x" << e[1] << "x" << e[2] << " on " << sites;
    EXPECT_GE(*least, expected * (1 - 1e-6) - 1) << e[0] << "x" << e[1] << "x" << e[2] << " on " << sites;
    std::array<double, 3> sorted = extents;
    std::sort(sorted.begin(), sorted.end());
    ++regimes.at(sites <= sorted[2] / sorted[1] ? 0 : sites <= sorted[2] * sorted[1] / sorted[0] / sorted[0] ? 1 : 2);
  }
  for (const int times : regimes) EXPECT_GE(times, 100);
}

/// The smallest faces of boxes whose sides but one are powers of `base`, with the volume or a little more.
double least_of_grid(const BoxFaces& faces, double volume, double base) {
  const std::size_t labels = faces.extents.size();
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> sides(labels, 1);
  std::vector<int> at(labels, 0);
  for (;;) {
    double product = 1;
    for (std::size_t l = 1; l < labels; ++l) product *= sides[l] = std::min(std::pow(base, at[l]), faces.extents[l]);
    const double left = volume / product;
    sides[0] = std::max(1.0, left);
    if (left >= std::pow(base, -4) && left <= faces.extents[0] * (1 + 1e-9)) {
      double sum = 0;
      for (const BoxFaces::Tensor& tensor : faces.tensors) {
        double area = tensor.weight;
        for (const std::size_t label : tensor.labels) area *= sides[label];
        sum += area;
      }
      least = std::min(least, sum);
    }
    std::size_t l = 1;
    while (l < labels && sides[l] >= faces.extents[l]) at[l++] = 0;
    if (l >= labels) return least;
    ++at[l];
  }
}

TEST(LeastFaces, AreThoseOfAllBoxesOfAFineGrid) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    BoxFaces faces;
    double all = 1;
    for (std::int64_t l = random.between(1, 4); l > 0; --l) {
      faces.extents.push_back(static_cast<double>(random.between(1, 40)));
      all *= faces.extents.back();
    }
    for (std::int64_t t = random.between(1, 4); t > 0; --t) {
      BoxFaces::Tensor tensor{static_cast<double>(random.between(1, 8)), {}};
      for (std::size_t l = 0; l < faces.extents.size(); ++l) {
        if (random.chance(0.6)) tensor.labels.push_back(l);
      }
      faces.tensors.push_back(tensor);
    }
    const double volume = std::max(1.0, all / static_cast<double>(random.between(1, 30)));
    constexpr double base = 1.06;
    const double found = least_of_grid(faces, volume, base);
    const double least = least_faces(faces, volume);
    EXPECT_LE(least, found * (1 + 1e-12)) << round;
    EXPECT_GE(least, found / std::pow(base, 4)) << round;
  }
}

TEST(LeastBytes, AreBelowEveryPlan) {
  const EinGraph graph = einrel::graph_of(
      "dims b=3 h=5 i=7 j=9 d=4\ninput Q[b,i,h,d], K[b,j,h,d] : f64\nS[b,h,i,j] = sum[d] Q[b,i,h,d] * K[b,j,h,d]\n");
  const std::size_t s = 2;
  for (const std::int64_t sites : {1, 2, 3, 4, 6, 8, 12, 16, 24}) {
    double best = std::numeric_limits<double>::infinity();
    for (const PartitionVector& grid : site_grids(most_parts(graph.vertices[s], graph), sites)) {
      Plan plan{"", sites, std::vector<VertexPlan>(3, one_part_per_site({1, 1, 1, 1}))};
      plan.vertices[s] = one_part_per_site(grid);
      number_sites(graph, plan);
      best = std::min(best, static_cast<double>(costs_of(graph, plan, {}).bytes));
    }
    const double least = *least_bytes(graph.vertices[s], graph, sites);
    EXPECT_LE(least, best) << sites;
    EXPECT_EQ(least > 0, sites > 3 * 5) << sites;  // b and h are labels of all three tensors
  }
}

TEST(LeastBytes, AreKnownOfPlainSumsOfProductsOnly) {
  const EinGraph graph = einrel::graph_of(R"(
    dims i=8 j=8 k=8
    input X[i,j], Y[j,k], V[i]
    A[i,k] = sum[j] X[i,j] * Y[j,k] * 0.5
    B[i,k] = max[j] X[i,j] * Y[j,k]
    C[i,k] = sum[j] (X[i,j] + Y[j,k])
    D[i] = sum[j] X[i,j] * X[i,j]
    G[i,k] = sum[j] X[i,j] * X[k,j]
    F[i,j] = X[i,j] * V[i]
  )",
                                          {});
  for (const Vertex& vertex : graph.vertices) {
    EXPECT_EQ(least_bytes(vertex, graph, 8).has_value(), vertex.name == "A") << vertex.name;
  }
  const EinGraph small = product(2, 2, 2);
  EXPECT_FALSE(least_bytes(small.vertices.back(), small, 9));
  const EinGraph empty = product(0, 2, 2);
  EXPECT_FALSE(least_bytes(empty.vertices.back(), empty, 2));
  const Plan plan{"", 4, std::vector<VertexPlan>(3, one_part_per_site({2, 2}))};
  Plan of_small = plan;
  of_small.vertices[2] = one_part_per_site({2, 1, 2});
  const auto all = least_bytes(small, of_small);
  EXPECT_EQ(all[2], least_bytes(small.vertices[2], small, 4));
  EXPECT_FALSE(all[0]);
}

}  // namespace
}  // namespace einrel::test
