#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "plan/placed_inputs.h"
#include "plan/plan.h"
#include "plan/refine/numbering.h"
#include "support/random_einsum.h"

namespace einrel::test {

/// Shares out the result along a random label that is long enough, if any.
inline void scatter(Random& random, const Vertex& vertex, const PartitionVector& most, VertexPlan& plan) {
  std::vector<VertexPlan> ways;
  for (std::size_t l = 0; l < most.size(); ++l) {
    VertexPlan way = plan;
    way.scatter = l;
    way.parts[l] = random.between(std::min(plan.grid[l] * partial_sites(vertex, plan), most[l]), most[l]);
    if (scatter_fault(vertex, way).empty()) ways.push_back(std::move(way));
  }
  if (!ways.empty()) plan = ways[static_cast<std::size_t>(random.between(0, std::ssize(ways) - 1))];
}

/// Any plan: random grids over random sites, sometimes several parts a site, and results that are shared out or
/// all-reduced.
inline Plan random_plan(Random& random, const EinGraph& graph, std::int64_t most_sites = 12) {
  Plan plan{"random", random.between(1, most_sites), {}};
  for (const Vertex& vertex : graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op)) {
      plan.vertices.push_back(one_part_per_site(PartitionVector(vertex.bound.size(), 1)));
      continue;
    }
    const PartitionVector most = most_parts(vertex, graph);
    const std::vector<PartitionVector> grids = site_grids(most, random.between(1, plan.sites));
    const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(grids.size()) - 1));
    VertexPlan chosen = one_part_per_site(grids[at]);
    for (std::size_t l = 0; l < most.size(); ++l) {
      if (random.chance(0.2)) chosen.parts[l] = random.between(chosen.parts[l], std::min(most[l], chosen.parts[l] + 3));
    }
    if (random.chance(0.7)) scatter(random, vertex, most, chosen);
    VertexPlan on_all = chosen;
    on_all.all_reduced = true;
    if (all_reduce_fault(vertex, on_all).empty() && random.chance(0.5)) chosen = on_all;
    const std::int64_t copies = random.between(1, plan.sites / sites_used(chosen));
    if (copies > 1 && partial_sites(vertex, chosen) == 1) chosen.copies = {{copies, 1}};
    plan.vertices.push_back(std::move(chosen));
  }
  number_sites(graph, plan);
  return plan;
}

/// Where some inputs lie already, on some of so many sites: digits in any order, copies among them.
inline GivenPlacements random_placements(Random& random, const EinGraph& graph, std::int64_t sites) {
  GivenPlacements placements;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!std::holds_alternative<Input>(vertex.op) || is_state(graph, v) || random.chance(0.4)) continue;
    GivenPlacement& placement = placements[vertex.name];
    for (std::size_t d = 0; d < vertex.bound.size(); ++d)
      placement.emplace_back(std::to_string(d), std::max<std::int64_t>(vertex.bound[d].value(), 1));
    placement.emplace_back("copies", sites);
    random.shuffle(placement);
    std::int64_t left = sites;
    for (auto& [along, count] : placement) {
      count = random.chance(0.3) ? 1 : random.between(1, std::min(count, left));
      left /= count;
    }
  }
  return placements;
}

/// Programs that have every kind of vertex between them, small enough for the reference.
inline const std::vector<std::string>& plannable_programs() {
  static const std::vector<std::string> programs{
      "dims i=7 j=9 k=5\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n",
      "dims i=7 j=9 k=5\ninput X[i,j], Y[j,k] : f64\nZ[i,k] = max[j] abs(X[i,j] - Y[j,k])\nW[k] = mean[i] Z[i,k]\n",
      "dims i=6 j=8\ninput X[i,j]\nP[i,j] = softmax[j](X[i,j])\nQ[j,i] = P[i,j] + X[i,j]\n",
      "dims i=6 j=8 k=4\ninput X[i,j], Y[j,k], B[k]\nZ[i,k] = relu((sum[j] X[i,j] * Y[j,k]) + B[k])\n"
      "V[j,k] = sum[i] X[i,j] * Z[i,k]\nU[j,k] = Y[j,k] - V[j,k]\n",
      "dims b=4 h=6 d=2 e=12\ninput X[b,e]\nY[b,h,d] = view X[b,(h d)]\nZ[b,h] = sum[d] Y[b,h,d] * Y[b,h,d]\n"
      "V[b,(h d)] = view Y[b,h,d]\n",
      "dims i=10 j=12\ninput X[i,j] : bf16\nZ[i] = sum[j] X[i,j]\nM[i] = argmax[j] X[i,j]\n",
      "dims a=4 b=6 c=5 d=3\ninput X[a,b,c], Y[b,c,d]\nZ[a,d] = sum[b,c] X[a,b,c] * Y[b,c,d]\n",
      "dims t=6 i=7 j=5 k=4\ninput X[t,i,j], Y[j,t,k]\nA[t,i,k] = sum[j] X[t,i,j] * Y[j,t,k]\n"
      "B[i,k] = A[2,i,k] + sum[j] X[5,i,j] * Y[j,3,k]\nC[i] = sum[k] (B[i,k] * A[1,i,k] - A[4,i,k])\n"
      "D[j,i] = X[1,i,j] * X[3,i,j] + pad(X[9,i,j], 2) * pad(X[4,i+1,j], 0)\nE[] = sum[i,j] X[2,i,j] * D[1,3] * "
      "D[j,i]\n",
      "dims i=10 j=12\ninput X[i,j]\nZ[i,j] = where(i > j, X[i,j], 0)\nA[i,j] = Z[i,j] * i + j\n",
  };
  return programs;
}

/// Labels read at affine places: stencils, convolutions, strides, dilation, flips, ranges, padding, pooling, gradients.
inline const std::vector<std::string>& window_programs() {
  static const std::vector<std::string> programs{
      "dims x=23\ninput X[x]\nZ[o] = X[o] - 2 * X[o+1] + X[o+2]\n",
      "dims i=19\ninput X[i]\nA[i] = pad(X[i-1], 0) + X[i] + pad(X[i+1], 0)\nB[i] = pad(A[i-1], 0) - pad(A[i+2], 0)\n",
      "dims i=8 j=9\ninput X[i,j]\nZ[i,j] = pad(X[i-1,j], 1) + pad(X[i+1,j], 1) + pad(X[i,j-1], 1) + pad(X[i,j+1], "
      "1)\n",
      "dims c=2 k=3 y=9 x=11 dy=3 dx=3\ninput X[c,y,x], W[k,c,dy,dx]\n"
      "Z[k,y,x] = sum[c,dy,dx] pad(X[c,y+dy-1,x+dx-1], 0) * W[k,c,dy,dx]\n",
      "dims n=2 x=25 k=3\ninput X[n,x], W[k] : f64\nZ[n,y] = sum[k] X[n,2*y+k] * W[k]\nM[n] = max[y] Z[n,y]\n",
      "dims n=2 x=25 y=13 k=4\ninput X[n,x], W[k]\nZ[n,y] = sum[k] pad(X[n,2*y+k-1], 0) * W[k]\n",
      "dims x=24 k=2\ninput X[x]\nZ[o] = max[k] X[2*o+k]\nY[o] = max[k] Z[2*o+k]\n",
      "dims x=21 y=11 k=3\ninput X[x] : bf16\nZ[y] = max[k] pad(X[2*y+k-1], -inf)\n",
      "dims x=20 y=10 k=3\ninput X[x] : i32\nZ[y] = argmax[k] pad(X[2*y+k-1], -7)\n",
      "dims y=13\ninput X[y]\nZ[y] = X[12-y]\n",
      "dims x=20 y=9\ninput X[x], Y[y]\nZ[y] = Y[y] * X[18-2*y]\n",
      "dims x=20 y=9\ninput X[x]\nZ[y] = where(y < 4, X[y+5], X[y+7]) + y\n",
      "dims x=23 y=12\ninput X[x]\nZ[y] = X[2*y] * X[2*y]\n",
      "dims x=23 y=7\ninput X[x]\nZ[y] = X[3*y+1]\n",
      "dims x=24 y=14 d=3\ninput X[x], W[d]\nZ[y] = sum[d] X[y+4*d+1] * W[d]\n",
      "dims x=16 y=12 d=5\ninput X[x], G[y]\nV[d] = sum[y] X[y+d] * G[y]\n",
      "dims x=18 y=16 d=3\ninput X[x,d]\nZ[y] = mean[d] X[y+d,d] + logsumexp[d] X[y+2-d,d]\nM[] = argmin[y] Z[y]\n",
      "dims n=3 x=9 long=14\ninput X[n,x]\nZ[n,long] = pad(X[n,long-2], 2)\n",
      "dims i=9 j=7 k=2\ninput X[i,j]\nZ[i,j] = sum[k] pad(X[i+k,j-k], 0) * pad(X[i-k,j+k], 0.5)\n",
  };
  return programs;
}

/// All of both.
inline const std::string& program_of(std::uint64_t seed) {
  const std::size_t plain = plannable_programs().size();
  const std::size_t at = seed % (plain + window_programs().size());
  return at < plain ? plannable_programs()[at] : window_programs()[at - plain];
}

}  // namespace einrel::test
