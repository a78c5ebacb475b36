#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "lang/corpus.h"
#include "run/choose_formats.h"
#include "run/compile.h"
#include "sql/program/run.h"

namespace einrel::test {

/// What a program with state begins with in a database.
enum class FirstStates { computed, given };

/// All steps of a program with state, as one run of a database does them; in chunks of at most `extent` along each
/// dimension, of 0: in the formats that are chosen.
inline Outputs steps_in_database(sql::Database& database, const Runnable& runnable, std::int64_t extent,
                                 FirstStates first_states) {
  Compiled compiled = compile("document", runnable.graph, {}, runnable.initial);
  EinGraph& graph = compiled.graph;
  graph.steps.feedback = 0;  // the next values of states are compared, too
  Formats formats;
  if (extent != 0) formats.most_extent = extent;
  sql::DatabaseRun run{.graph = graph,
                       .scalars = runnable.scalars,
                       .inputs = {},
                       .outputs = {},
                       .chunked = chunked_graph(graph, choose_formats(graph, formats)),
                       .steps = static_cast<std::int64_t>(runnable.steps)};
  for (const auto& [name, tensor] : runnable.inputs) run.inputs.emplace(name, tensor);
  if (first_states == FirstStates::computed) {
    for (const State& state : graph.steps.states) run.inputs.erase(graph[state.now].name);
    const EinGraph& initial = compiled.initial->graph;
    run.first.emplace(sql::FirstValues{initial, chunked_graph(initial, choose_formats(initial, formats))});
  }
  sql::DatabaseResults results = sql::run(database, run);
  EXPECT_TRUE(graph.steps.until || results.steps == run.steps) << results.steps;
  return std::move(results.tensors);
}

}  // namespace einrel::test
