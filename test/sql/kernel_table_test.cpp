#include "sql/functions/kernel_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lang/corpus.h"
#include "lang/expectations.h"
#include "run/compile.h"
#include "sql/program/program_script.h"
#include "tra/from_einsum.h"
#include "tra/infer.h"

namespace einrel::test {
namespace {

namespace fs = std::filesystem;

/// A kernel of a program, and the ranks that it is called with.
struct Called {
  Kernel kernel;
  std::vector<std::size_t> ranks;
};

std::vector<Called> kernels_of(const TraExpr& program) {
  const std::vector<RelationType> types = infer(program);
  std::vector<Called> found;
  for (const TraNode& node : program.nodes) {
    std::vector<std::size_t> ranks;
    for (const TraId input : node.inputs) ranks.push_back(types[input.index].rank);
    if (const auto* const join = std::get_if<Join>(&node.op)) {
      ranks.resize(ranks.size() + join->numbers.outputs.size(), 0);
      found.push_back({join->kernel, ranks});
    } else if (const auto* const transform = std::get_if<Transform>(&node.op)) {
      ranks.resize(ranks.size() + transform->numbers.outputs.size(), 0);
      found.push_back({transform->kernel, ranks});
    } else if (const auto* const aggregate = std::get_if<Aggregate>(&node.op)) {
      found.push_back({aggregate->kernel, {ranks.front(), ranks.front()}});
    }
  }
  return found;
}

class KernelTexts : public testing::TestWithParam<fs::path> {};

/// PostgreSQL knows nothing else of them.
TEST_P(KernelTexts, SayTheWholeKernel) {
  const Document document = read_document(read_source(GetParam()));
  if (!document.errors.empty() || !document.failure.empty()) return;
  const Runnable runnable = prepare(document, document.dims);
  const EinGraph graph = compile("document", runnable.graph).graph;
  for (const std::int64_t sites : {1, 4}) {
    for (const Called& called : kernels_of(from_einsum(graph, default_cuts(graph, sites)))) {
      const Kernel kernel = sql::with_scalars(called.kernel, runnable.scalars);
      const std::string text = sql::KernelTable().add(kernel, called.ranks);
      std::vector<Tensor> arguments;
      for (std::size_t i = 0; i < called.ranks.size(); ++i)
        arguments.emplace_back(kernel.arguments.at(i), Shape(called.ranks[i], Extent(1)));
      sql::KernelTable other;
      try {
        EXPECT_EQ(name_of(result_dtype(other.find(text, arguments))), name_of(result_dtype(kernel))) << text;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what() << "\n" << text;
      }
    }
  }
}

std::string document_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

INSTANTIATE_TEST_SUITE_P(All, KernelTexts, testing::ValuesIn(ein_files(EINREL_LANG_DOCUMENTS)), document_name);

}  // namespace
}  // namespace einrel::test
