#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "einsum/reference.h"
#include "lang/corpus.h"
#include "lang/expectations.h"

/// The documents of test/lang and the examples in plain SQL, whatever database runs it.
namespace einrel::test {

/// By the document's name: what it is of it that plain SQL does not compute, or not as the language defines it, output
/// by output.
using PlainExceptions = std::map<std::string, std::vector<std::string>>;

inline std::vector<std::filesystem::path> documents_and_examples() {
  std::vector<std::filesystem::path> paths = ein_files(EINREL_LANG_DOCUMENTS);
  for (const std::filesystem::path& example : examples()) paths.push_back(example);
  return paths;
}

/// `run` (graph, inputs, scalars) gives the outputs. They are those of the reference, or there is an exception.
template <class Run>
void expect_in_plain_sql(const std::filesystem::path& path, const PlainExceptions& exceptions, const Run& run) {
  const bool is_example = path.parent_path() == std::filesystem::path(EINREL_EXAMPLES);
  const Document document = is_example ? Document{read_source(path), {}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {}}
                                       : read_document(read_source(path));
  if (!document.errors.empty() || !document.failure.empty()) return;
  const Runnable runnable = prepare(document, is_example ? small_extents(path) : document.dims);
  const std::vector<Tensor> wanted = evaluate_reference(runnable.graph, runnable.inputs, runnable.scalars);
  Outputs reference;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    reference.emplace(runnable.graph[runnable.graph.outputs[i]].name, wanted[i]);
  std::vector<std::string> problems;
  try {
    problems = differences(document, run(runnable.graph, runnable.inputs, runnable.scalars), reference);
  } catch (const UserError& error) {
    problems = {error.what()};
  }
  const auto found = exceptions.find(path.stem().string());
  const std::vector<std::string> expected = found == exceptions.end() ? std::vector<std::string>{} : found->second;
  EXPECT_EQ(problems.size(), expected.size()) << fmt::format("{}", fmt::join(problems, "\n"));
  for (const std::string& words : expected) {
    const bool is_there = std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
      return problem.find(words) != std::string::npos;
    });
    EXPECT_TRUE(is_there) << words << " is none of\n" << fmt::format("{}", fmt::join(problems, "\n"));
  }
}

}  // namespace einrel::test
