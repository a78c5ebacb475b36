#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "bench/moved_bytes.h"
#include "einsum/reference.h"
#include "exec/executors/starpu/run.h"
#include "exec/job/alike.h"
#include "exec/memory/alive.h"
#include "exec/tasks/from_ia.h"
#include "ia/search.h"
#include "lang/corpus.h"
#include "lang/expectations.h"
#include "plan/lower.h"
#include "plan/placed_inputs.h"
#include "plan/planners/planner.h"
#include "plan/staying_inputs.h"
#include "run/algebra.h"
#include "run/chunked_outputs.h"
#include "run/compile.h"
#include "run/session.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"
#include "support/random_tra.h"
#include "support/rounds.h"
#include "support/run_tasks.h"
#include "support/scarce_memory.h"
#include "tensor/tensor_file.h"
#include "tra/text/print.h"

/// Every test runs on all ranks at once, and has to take the same way through its collective calls on each.
namespace einrel::test {
namespace {

namespace fs = std::filesystem;

/// Of the process, set by main.
struct Process {
  const Job* job = nullptr;
  StarpuExecutor* executor = nullptr;  ///< at work all the time
  bool is_limited = false;
  std::int64_t spilled = 0;  ///< bytes, of all runs
};
Process& process() {
  static Process the_process;
  return the_process;
}
const Job& job() { return *process().job; }

/// Outputs of which each rank has some chunks, put together on rank 0; elsewhere as they are. Counts each element once;
/// of those that are kept where they lie, each copy, and all are the same.
Outputs gathered(const Outputs& own, const std::map<std::string, std::vector<double>>& written, const IaPlan& plan) {
  Outputs all;
  for (const auto& [name, tensor] : own) {
    std::vector<double> bytes;
    for (std::int64_t i = 0; i < tensor.byte_count(); ++i) bytes.push_back(std::to_integer<int>(tensor.data()[i]));
    const auto by_rank = gather(job(), bytes);
    const auto written_by_rank = gather(job(), written.at(name));
    Tensor whole(tensor.dtype(), tensor.shape());
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
    const bool is_kept = std::any_of(plan.begin(), plan.end(), [&, &called = name](const IaOutput& output) {
      return output.name == called && output.is_kept;
    });
    for (std::int64_t e = 0; e < tensor.count() && job().rank == 0; ++e) {
      int writers = 0;
      for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        if (written_by_rank[rank][static_cast<std::size_t>(e)] == 0) continue;
        ++writers;
        for (std::int64_t b = e * size; b < (e + 1) * size; ++b) {
          const auto byte = static_cast<std::byte>(by_rank[rank][static_cast<std::size_t>(b)]);
          EXPECT_TRUE(writers == 1 || whole.data()[b] == byte) << name << ": copies differ in element " << e;
          whole.mutable_data()[b] = byte;
        }
      }
      EXPECT_TRUE(writers == 1 || (is_kept && writers > 1)) << name << " element " << e;
    }
    all.emplace(name, whole);
  }
  return all;
}

/// Runs a plan on all ranks; the bytes that go from rank to rank must be those that the plan counts. Returns the
/// outputs on rank 0.
Outputs run_on_ranks(const IaStore& store, const IaPlan& plan, const TensorBindings& inputs,
                     const ScalarBindings& scalars) {
  const TaskGraph graph = tasks_of(store, plan, SiteMemory::apart);
  Outputs outputs = output_tensors(graph);
  std::map<std::string, std::vector<double>> written;
  std::vector<OutputWriter> writers = writers_to(outputs, graph);
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const TaskOutput& output = graph.outputs[o];
    std::vector<double>& flags = written[output.name];
    flags.assign(static_cast<std::size_t>(element_count(output.bound)), 0);
    writers[o] = [to = writers[o], &flags, &output](const std::vector<std::int64_t>& begin, const Tensor& chunk) {
      to(begin, chunk);
      const Strides strides = row_major_strides(output.bound);
      for_each_offset(chunk.shape(), strides, [&](std::int64_t offset) {
        flags[static_cast<std::size_t>(offset_of(begin, strides) + offset)] += 1;
      });
    };
  }
  TaskBindings bindings = task_bindings(graph, sources_of(inputs), std::move(writers), scalars);
  bindings.most_bytes = most_live_bytes(graph);
  bench::reset_moved_bytes();
  std::optional<ScarceMemory> scarce;
  if (process().is_limited) scarce.emplace(graph, 4);
  const PreparedTasks ready(graph, bindings, job().site());
  const TaskReport report = process().executor->run(ready, bindings);
  process().spilled += report.spilled;
  for (const TaskSpan& span : report.spans) EXPECT_LE(span.live_bytes, bindings.most_bytes);
  const bench::MovedBytes sent = bench::moved_bytes();
  const Traffic traffic = bytes_of(store, plan);
  const auto rank = static_cast<std::size_t>(job().rank);
  const bool takes_part = rank < traffic.sent.size();
  EXPECT_EQ(sent.of_starpu, takes_part ? traffic.sent[rank] : 0);
  EXPECT_EQ(sent.of_starpu, report.bytes_sent);
  std::int64_t received = 0;
  for (const auto& [node, bytes] : report.received) received += bytes;
  EXPECT_EQ(received, takes_part ? traffic.received[rank] : 0);
  EXPECT_EQ(sent.envelopes, sent.messages);
  EXPECT_EQ(sent.others, 0);
  return gathered(outputs, written, plan);
}

TEST(Ranks, RunAnyPlanAndSendTheBytesThatItCounts) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(70)); ++seed) {
    Random random(seed);
    const std::string& text = program_of(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const EinGraph graph = einrel::graph_of(text);
    const LoweredPlan lowered = lower(graph, random_plan(random, graph, job().ranks));
    const TensorBindings inputs = counted_inputs(graph);
    const Outputs outputs = run_on_ranks(lowered.ia.store, lowered.ia.plan, inputs, {});
    if (job().rank != 0) continue;
    const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::vector<double> allowed(static_cast<std::size_t>(want[i].count()), 1e-5);
      EXPECT_TRUE(agree(outputs.at(graph[graph.outputs[i]].name), want[i], allowed));
    }
  }
}

/// Numbers of which every order of adding gives another sum. Where rows are long, in the other order of elements.
TensorBindings uneven_inputs(Random& random, const EinGraph& graph) {
  TensorBindings inputs;
  for (const Vertex& vertex : graph.vertices) {
    if (!std::holds_alternative<Input>(vertex.op)) continue;
    std::vector<double> values(static_cast<std::size_t>(element_count(vertex.bound)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<double>(i) * 1.7) * std::exp(static_cast<double>(i % 7));
    const bool is_transposed = vertex.bound.size() == 2 && random.chance(0.5);
    if (!is_transposed) {
      inputs[vertex.name] = tensor_of(vertex.dtype, vertex.bound, values);
    } else {
      const Tensor turned = tensor_of(vertex.dtype, {vertex.bound[1], vertex.bound[0]}, values);
      inputs[vertex.name] = turned.permuted({1, 0});
    }
  }
  return inputs;
}

TEST(Ranks, GiveTheBitsOfSitesThatShareMemory) {
  const std::vector<std::string> programs = [] {
    std::vector<std::string> all = plannable_programs();
    all.insert(all.end(), window_programs().begin(), window_programs().end());
    all.insert(all.end(),
               {"dims i=11 j=30 k=14 l=9\ninput X[i,j,l], Y[j,l,k]\nZ[i,k] = sum[j,l] X[i,j,l] * Y[j,l,k]\nW[i,k] = "
                "Z[i,k] * 3\n",
                "dims i=40 j=50 k=30\ninput X[i,j], Y[i,k]\nZ[j,k] = sum[i] X[i,j] * Y[i,k]\n",
                "dims i=13 j=10 k=12\ninput X[i,j,k]\nZ[i] = sum[j,k] exp(X[i,j,k] / 1000)\n",
                "dims i=13 j=10 k=12\ninput X[i,j,k], Y[j]\nZ[i] = sum[j,k] sq(X[i,j,k] - Y[j])\nV[i] = mean[j,k] "
                "X[i,j,k] * Z[i]\n",
                "dims i=16 j=64 k=16\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\nS[k] = sum[i] Z[i,k]\n"});
    return all;
  }();
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(240)); ++seed) {
    Random random(seed);
    const std::string& text = programs[seed % programs.size()];
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const EinGraph free = einrel::graph_of(text);
    const GivenPlacements placements =
        seed / programs.size() % 2 == 0 ? GivenPlacements{} : random_placements(random, free, job().ranks);
    const EinGraph graph = with_placed_inputs(free, placements, job().ranks);
    Plan plan = random_plan(random, graph, job().ranks);
    plan.sites = job().ranks;
    const LoweredPlan lowered = lower(graph, plan);
    const TensorBindings inputs = uneven_inputs(random, graph);
    const Outputs outputs = run_on_ranks(lowered.ia.store, lowered.ia.plan, inputs, {});
    if (job().rank != 0) continue;
    const TaskGraph shared = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
    Outputs here = output_tensors(shared);
    run_once(shared, task_bindings(shared, sources_of(inputs), writers_to(here, shared), {}), SerialExecutor(1));
    for (const auto& [name, tensor] : here) {
      EXPECT_TRUE(tensor.count() == 0 || std::memcmp(tensor.data(), outputs.at(name).data(),
                                                     static_cast<std::size_t>(tensor.byte_count())) == 0)
          << name;
    }
  }
}

/// While this lives, the executor of the process is not at work, so that a session can have its own.
class ExecutorAtRest {
 public:
  ExecutorAtRest() { process().executor->end(); }
  ~ExecutorAtRest() { process().executor->begin({}); }
  ExecutorAtRest(const ExecutorAtRest&) = delete;
  ExecutorAtRest& operator=(const ExecutorAtRest&) = delete;
};

/// Outputs of steps on all ranks, on rank 0; elsewhere the elements that were written there, others 0.
struct StepsOnRanks {
  Outputs outputs;
  std::map<std::string, std::vector<double>> written;
  PlanRunReport report;
};

StepsOnRanks steps_on_ranks(const PlannedTasks& tasks, const InputSources& sources, const StepsAsked& asked) {
  StepsOnRanks run;
  run.outputs = output_tensors(tasks.graph);
  for (auto& [name, tensor] : run.outputs)
    std::memset(tensor.mutable_data(), 0, static_cast<std::size_t>(tensor.byte_count()));
  Session session(tasks, {1, {}}, job());
  run.report = session.step(sources, writers_to(run.outputs, tasks.graph), {}, asked);
  for (const auto& [name, tensor] : run.outputs) {
    std::vector<double>& sums = run.written[name];
    for (const std::vector<double>& values : gather(job(), values_of(tensor))) {
      sums.resize(values.size(), 0);
      for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
    }
  }
  return run;
}

/// What ranks receive in several steps is what the plan counts, and StarPU's messages are no more; each element is
/// written by one rank.
TEST(Ranks, BringInputsThatStayOnce) {
  if (process().is_limited) return;  // sessions of their own have no limit, and start slowly after one that has
  const ExecutorAtRest at_rest;
  std::int64_t saved = 0;
  // Few, since each session starts StarPU anew.
  for (std::uint64_t seed = 0; seed < plannable_programs().size(); ++seed) {
    Random random(seed);
    const std::string& text = plannable_programs()[seed];
    const Compiled alone = compile("steps", einrel::graph_of(text));
    const Plan plan = random_plan(random, alone.graph, job().ranks);
    InputSources first = sources_of(uneven_inputs(random, alone.graph));
    const InputSources last = sources_of(uneven_inputs(random, alone.graph));
    std::set<std::string> fed;
    for (const auto& [name, source] : first) {
      if (random.chance(0.4)) fed.insert(name);
    }
    InputSources news;
    for (const std::string& name : fed) news[name] = last.at(name);
    InputSources met = first;
    for (const auto& [name, source] : news) met[name] = source;
    const StepsOnRanks want = steps_on_ranks(tasks_of(alone, plan, job()), met, {});
    for (const std::size_t steps : {2U, 5U}) {
      SCOPED_TRACE(fmt::format("seed {}, {} steps\n{}", seed, steps, text));
      Compiled many = alone;
      many.graph = with_staying_inputs(alone.graph, static_cast<std::int64_t>(steps), fed);
      const PlannedTasks tasks = tasks_of(many, plan, job());
      const PlanCosts costs = costs_of(many.graph, plan, {});
      bench::reset_moved_bytes();
      const StepsOnRanks run = steps_on_ranks(tasks, first, {.count = steps, .feed = [&] { return news; }});
      std::int64_t counted = 0;
      for (const std::vector<double>& rank : gather(job(), {static_cast<double>(bench::moved_bytes().of_starpu)}))
        counted += static_cast<std::int64_t>(rank.front());
      if (job().rank != 0) continue;
      EXPECT_EQ(counted, costs.bytes + (static_cast<std::int64_t>(steps) - 1) * costs.bytes_of_later_steps());
      EXPECT_EQ(run.report.moved_by_all(), counted);
      EXPECT_EQ(run.report.moved_once(), costs.once.bytes);
      for (std::size_t site = 0; site < costs.received.size(); ++site)
        EXPECT_EQ(run.report.received[site], costs.received[site]);
      EXPECT_EQ(run.written, want.written);
      saved += costs.once.bytes;
    }
  }
  EXPECT_TRUE(job().rank != 0 || saved > 1000) << saved;
}

/// Ranks receive what the plan counts of inputs that it had to take from where they lie.
TEST(Ranks, TakeInputsFromWhereTheyLie) {
  if (process().is_limited) return;  // as above
  const ExecutorAtRest at_rest;
  std::int64_t moved = 0;
  for (std::uint64_t seed = 0; seed < plannable_programs().size(); ++seed) {
    Random random(seed);
    const std::string& text = plannable_programs()[seed];
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    Compiled compiled = compile("placed", einrel::graph_of(text));
    compiled.graph =
        with_placed_inputs(compiled.graph, random_placements(random, compiled.graph, job().ranks), job().ranks);
    const Plan plan = std::get<Plan>(
        planner_named("eindecomp").plan(compiled.graph, {.sites = job().ranks, .machine = {}, .batch = {}}));
    const TensorBindings inputs = uneven_inputs(random, compiled.graph);
    const PlanCosts costs = costs_of(compiled.graph, plan, {});
    bench::reset_moved_bytes();
    const StepsOnRanks run = steps_on_ranks(tasks_of(compiled, plan, job()), sources_of(inputs), {});
    std::int64_t counted = 0;
    for (const std::vector<double>& rank : gather(job(), {static_cast<double>(bench::moved_bytes().of_starpu)}))
      counted += static_cast<std::int64_t>(rank.front());
    if (job().rank != 0) continue;
    EXPECT_EQ(counted, costs.bytes);
    for (std::size_t site = 0; site < costs.received.size(); ++site)
      EXPECT_EQ(run.report.received[site], costs.received[site]);
    moved += counted;
  }
  EXPECT_TRUE(job().rank != 0 || moved > 100) << moved;
}

TEST(Ranks, ComputeWhatTheDocumentsOfTheLanguageSay) {
  std::size_t ran = 0;
  for (const fs::path& path : ein_files(EINREL_LANG_DOCUMENTS)) {
    SCOPED_TRACE(path.string());
    const Document document = read_document(read_source(path));
    if (!document.errors.empty() || !document.failure.empty()) continue;
    const Runnable program = prepare(document, document.dims);
    const EinGraph& graph = program.graph;
    const auto expect_reference = [&](const IaStore& store, const IaPlan& plan) {
      const Outputs outputs = run_on_ranks(store, plan, program.inputs, program.scalars);
      if (job().rank != 0) return;
      Outputs want;
      const std::vector<Tensor> values = evaluate_reference(graph, program.inputs, program.scalars);
      for (std::size_t i = 0; i < values.size(); ++i) want.emplace(graph[graph.outputs[i]].name, values[i]);
      for (const std::string& problem : differences(document, outputs, want)) ADD_FAILURE() << problem;
    };
    const std::vector<Planner>& planners = all_planners();
    for (std::size_t p = 0; p < planners.size(); ++p) {
      const Planner& planner = planners[p];
      if (is_sanitized() && (p + ran) % 6 != 0) continue;  // a sixth of them for each document, as of all rounds
      const Planned planned = planner.plan(graph, {job().ranks, {}, CostKind::seconds, {}, {}});
      const auto* const plan = std::get_if<Plan>(&planned);
      if (plan == nullptr) continue;  // as data, where there is no batch
      const LoweredPlan lowered = lower(graph, *plan);
      expect_reference(lowered.ia.store, lowered.ia.plan);
    }
    IaProgram relations = plan_algebra(compile("document", graph), job().ranks, false).ia;
    relations.plan = cheapest_plan(relations.store, relations.plan, {60, 100'000}).plan();
    expect_reference(relations.store, relations.plan);
    ++ran;
  }
  EXPECT_GT(ran, 40U);
}

TEST(Ranks, RunPlansOfRelations) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(90)); ++seed) {
    const RandomTra random = random_tra(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(random.program));
    const AlgebraPlan plan = plan_algebra(random.program, job().ranks, random.layouts, seed % 3 == 0);
    const Outputs outputs = run_on_ranks(plan.ia.store, plan.ia.plan, random.inputs, {});
    if (job().rank != 0) continue;
    for (const auto& [name, want] : interpreted(random.program, random.inputs)) {
      const std::vector<double> allowed(static_cast<std::size_t>(want.count()), 0);
      EXPECT_TRUE(agree(outputs.at(name), want, allowed)) << name;
    }
  }
}

TEST(Ranks, SpillWhereMemoryIsScarce) {
  std::int64_t spilled = 0;
  for (const std::vector<double>& rank : gather(job(), {static_cast<double>(process().spilled)}))
    spilled += static_cast<std::int64_t>(rank.front());
  if (job().rank != 0) return;
  EXPECT_EQ(spilled > 0, process().is_limited);
}

TEST(Ranks, ThrowOnTheRankThatFailedAndTellTheOthers) {
  try {
    agree(job(), [] {
      if (job().rank == 1) throw UserError("only here");
    });
    ADD_FAILURE() << "nobody threw";
  } catch (const UserError& error) {
    EXPECT_EQ(job().rank, 1);
  } catch (const FailedElsewhere& elsewhere) {
    EXPECT_EQ(elsewhere.rank, 1);
    EXPECT_NE(job().rank, 1);
  }
  EXPECT_EQ(from_rank_0(job(), job().rank == 0 ? "words" : ""), "words");
}

TEST(Ranks, WriteTheirChunksToThePlacesInOneArchive) {
  const auto folder_here = [] {
    fs::path folder = fs::temp_directory_path() / fmt::format("einrel-archive-{}", ::getpid());
    fs::create_directory(folder);
    return folder.string();
  };
  const fs::path folder = from_rank_0(job(), job().rank == 0 ? folder_here() : "");
  const auto names = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  const std::string path = folder / "a.safetensors";
  const std::vector<TaskOutput> outputs{{"C", DType::boolean, {Extent(5)}},
                                        {"A", DType::f32, {Extent(8), Extent(3)}},
                                        {"B", DType::f64, {Extent(4), Extent(2)}}};
  std::map<std::string, FileRef> files;
  FileTensors whole;
  for (const TaskOutput& output : outputs) {
    files[output.name] = {path, output.name};
    std::vector<double> values(static_cast<std::size_t>(element_count(output.bound)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = output.dtype == DType::boolean ? static_cast<double>(i % 2) : 0.5 + static_cast<double>(i);
    whole.emplace_back(FileRef{folder / "b.safetensors", output.name}, tensor_of(output.dtype, output.bound, values));
  }
  ChunkedOutputs chunked(outputs, files, false, job(), {{{path, "sum"}, DType::f64, {}}});
  const auto size_there = [&] { return fs::file_size(fs::directory_iterator(folder)->path()); };
  const std::uintmax_t size = job().rank == 0 ? size_there() : 0;  // all that it takes on the disk
  EXPECT_EQ(names(), 1);
  const std::vector<OutputWriter> writers = chunked.writers();
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Tensor& tensor = whole[o].second;
    for (std::int64_t row = job().rank; row < tensor.shape()[0].value(); row += job().ranks) {
      std::vector<std::int64_t> begin(tensor.rank(), 0);
      Shape bound = tensor.shape();
      begin[0] = row;
      bound[0] = Extent(1);
      writers[o](begin, tensor.box(begin, bound));
    }
  }
  const auto sum_of = [](const FileTensors& tensors) {
    double sum = 0;
    for (const auto& [file, tensor] : tensors) {
      for (const double value : values_of(tensor)) sum += value;
    }
    return tensor_of(DType::f64, {}, {sum});
  };
  std::vector<AtomicFile> complete = chunked.complete([&](FileTensors& tensors) {
    tensors.emplace_back(FileRef{path, "sum"}, sum_of(tensors));
  });
  agree(job(), [&] {
    if (job().rank != 0) return;
    EXPECT_EQ(names(), 1);
    ASSERT_EQ(complete.size(), 1U);
    complete.front().commit();
    whole.emplace_back(FileRef{folder / "b.safetensors", "sum"}, sum_of(whole));
    write_tensors(whole);
    const FileBytes found = map_file(path);
    const FileBytes expected = map_file(folder / "b.safetensors");
    EXPECT_EQ(found.bytes.size(), size);
    EXPECT_TRUE(std::equal(found.bytes.begin(), found.bytes.end(), expected.bytes.begin(), expected.bytes.end()));
    fs::remove_all(folder);
  });
}

/// What all ranks say of these facts, and that all of them say the same.
std::string agreed_difference(const std::vector<Fact>& facts) {
  const std::string found = difference(job(), facts);
  EXPECT_EQ(from_rank_0(job(), found), found);
  EXPECT_EQ(from_rank(job(), job().ranks - 1, found), found);
  return found;
}

TEST(Ranks, SayOfWhatTheyHaveNotAlikeTheFirst) {
  const bool is_last = job().rank + 1 == job().ranks;
  const std::string last = std::to_string(job().ranks - 1);
  const std::string as_rank_0 = "; every rank has to compute the same, in the same order";
  const std::string other = "rank " + last + " computes something else than rank 0: ";
  EXPECT_EQ(agreed_difference({}), "");
  EXPECT_EQ(agreed_difference({{"a", "1"}, {"other b", "", 7}}), "");
  EXPECT_EQ(agreed_difference({{"a", "1"}, {"b", is_last ? "3" : "2"}, {"c", is_last ? "5" : "4"}}),
            other + "b is 3 there, and 2 on rank 0" + as_rank_0);
  EXPECT_EQ(agreed_difference({{"b", is_last ? "" : "2"}}),
            other + "b is not given there, and 2 on rank 0" + as_rank_0);
  EXPECT_EQ(agreed_difference({{"other b", "", is_last ? 7U : 6U, "look at b"}, {"c", ""}}),
            other + "it has other b" + as_rank_0 + "\n  help: look at b");
  std::vector<Fact> more{{"a", "1"}};
  if (is_last) more.push_back({"b", "2"});
  EXPECT_EQ(agreed_difference(more), other + "it has b where rank 0 has nothing" + as_rank_0);
  if (job().ranks == 3) {
    EXPECT_EQ(
        agreed_difference({{"a", std::to_string(job().rank)}}),
        "rank 1 computes something else than rank 0, and so does rank 2: a is 1 there, and 0 on rank 0" + as_rank_0);
  }
}

}  // namespace
}  // namespace einrel::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const einrel::MpiJob mpi([](std::exception_ptr, const einrel::Job& job) { einrel::end_job(job, 1); }, 60);
  einrel::test::process().job = &mpi.job();
  if (mpi.job().rank != 0) {  // failures of other ranks show in their exit codes, and in what they print
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  }
  einrel::SessionOptions options{1, {}, {std::filesystem::temp_directory_path().string(), {}}};
  if (argc > 1 && std::string_view(argv[1]) == "--spill") options.memory = einrel::test::ScarceMemory::limit;
  einrel::StarpuExecutor executor(options, mpi.job());
  const einrel::ExecutorAtWork at_work(executor, {});
  einrel::test::process().executor = &executor;
  einrel::test::process().is_limited = options.memory.has_value();
  return RUN_ALL_TESTS();
}
