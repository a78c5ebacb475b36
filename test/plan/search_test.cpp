#include "plan/search/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "plan/planners/eindecomp.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// A model that counts what it is asked.
class CountingModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    ++formulas;
    return model_->of_vertex(graph, vertex, plan);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    formulas += have.size() * need.size();
    return model_->of_moves(tensor, have, need);
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    ++formulas;
    return model_->of_input(tensor, need);
  }
  bool sends_once() const override {
    ++looks;
    return model_->sends_once();
  }

  mutable std::size_t formulas = 0;
  mutable std::size_t looks = 0;  ///< at tensors that others read, too: searches ask then

 private:
  std::unique_ptr<CostModel> model_ = cost_model(CostKind::seconds, {});
};

struct Work {
  double formulas = 0;
  double looks = 0;
};

/// Of all searches together, for 4 sites.
Work work_of(const EinGraph& graph) {
  const CountingModel model;
  const SearchSpace space(graph, model, site_candidates(graph, 4, {}, CostKind::seconds));
  EXPECT_EQ(space.by_beam(1000).size(), graph.vertices.size());
  SearchSpace::Choice choice = space.by_paths(true);
  space.improve(choice);
  return {static_cast<double>(model.formulas), static_cast<double>(model.looks)};
}

/// `line` with {0} for 1, 2, ..., {1} for the number before, {2} for one from 65 on.
std::string numbered(const char* line, std::size_t count) {
  std::string text;
  for (std::size_t n = 1; n <= count; ++n) text += fmt::format(fmt::runtime(line), n, n - 1, n + 64);
  return text;
}

/// Statements, each of its kind.
struct Kind {
  const char* name;
  std::string (*program)(std::size_t);
};

const std::array<Kind, 4> kinds{{
    {"a chain",
     [](std::size_t count) { return "dims i=64\ninput X0[i]\n" + numbered("X{0}[i] = X{1}[i] + 1\n", count); }},
    {"that have nothing in common",
     [](std::size_t count) {
       return "dims" + numbered(" u{0}={2}", count) + "\ninput A0[]" + numbered(", A{0}[u{0}]", count) + "\n" +
              numbered("X{0}[u{0}] = A{0}[u{0}] + 1\n", count);
     }},
    {"products in a chain",
     [](std::size_t count) {
       return "dims i=64 j=64 k=64\ninput X0[i,j], W[j,k]\n" +
              numbered("X{0}[i,k] = sum[j] X{1}[i,j] * W[j,k]\n", count);
     }},
    {"products that read one tensor",
     [](std::size_t count) {
       return "dims i=64 j=64" + numbered(" k{0}={2}", count) + "\ninput X[i,j]" + numbered(", W{0}[j,k{0}]", count) +
              "\n" + numbered("Z{0}[i,k{0}] = sum[j] X[i,j] * W{0}[j,k{0}]\n", count);
     }},
}};

TEST(Searches, TakeWorkInProportionToStatements) {
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const Work of_500 = work_of(einrel::graph_of(kind.program(500)));
    for (const std::size_t times : {std::size_t{2}, std::size_t{4}}) {
      const Work more = work_of(einrel::graph_of(kind.program(500 * times)));
      const double most = static_cast<double>(times) * 1.25;  // a sweep more, say
      EXPECT_LE(more.formulas, most * of_500.formulas);
      EXPECT_LE(more.looks, most * of_500.looks);
    }
  }
}

}  // namespace
}  // namespace einrel::test
