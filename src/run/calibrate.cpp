#include "run/calibrate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "einsum/check/check.h"
#include "einsum/graph/vertex_facts.h"
#include "exec/executors/starpu/run.h"
#include "exec/executors/threads/task_threads.h"
#include "machine/seconds.h"
#include "run/choose_plan.h"
#include "run/kernels.h"
#include "run/random_input.h"
#include "run/session.h"

namespace einrel {
namespace {

Compiled compiled(const SourceText& source) { return compile(source.name(), *parse_and_check(source, {}).graph); }

/// What `choose` leaves of two numbers, again and again, of what all ranks have.
template <class Choose>
double of_all(double own, const Job& job, Choose choose) {
  double chosen = own;
  for (const std::vector<double>& rank : gather(job, {own})) chosen = choose(chosen, rank.front());
  return std::stod(from_rank_0(job, fmt::format("{:.17g}", chosen)));
}
double largest_of_all(double own, const Job& job) {
  return of_all(own, job, [](double a, double b) { return std::max(a, b); });
}
double least_of_all(double own, const Job& job) {
  return of_all(own, job, [](double a, double b) { return std::min(a, b); });
}

/// The time of one of several rounds, fewer where they are slow, in seconds, of the rank that takes longest where all
/// begin at once: others wait for that in a program. The least is what neighbours on the machine disturb least; but
/// ranks disturb each other when it counts, too, and then the median says more.
template <class Action>
double seconds_of_round(bool takes_median, const Job& job, Action&& action) {
  constexpr std::size_t most_rounds = 9;
  constexpr std::size_t least_rounds = 3;
  constexpr double enough_seconds = 2;
  std::vector<double> seconds;
  double all = 0;
  while (seconds.size() < least_rounds || (seconds.size() < most_rounds && all < enough_seconds)) {
    largest_of_all(0, job);  // they are here
    const auto start = std::chrono::steady_clock::now();
    action();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    seconds.push_back(largest_of_all(spent.count(), job));
    all += seconds.back();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[takes_median ? seconds.size() / 2 : 0];
}

/// Who computes: every rank at once, or rank 0 while the others wait.
enum class Computing : std::uint8_t { all, first };

PlannedTasks tasks_of_text(const Compiled& program) {
  return choose(program, {}, SourceText(program.name, ""), {}).tasks;
}

double seconds_of(const std::string& text, std::size_t threads, Computing computing, const Job& job) {
  if (computing == Computing::first && job.rank != 0) return largest_of_all(0, job);
  const PlannedTasks tasks = tasks_of_text(compiled({"calibrate", text}));
  std::vector<InputSource> inputs;
  for (const StoredRelation& input : tasks.graph.inputs)
    inputs.emplace_back(random_tensor(1, input.name, input.dtype, input.bound));
  Session session(tasks, {threads, {}});
  const auto run = [&] { session.run(pointers_to(inputs), {}); };
  constexpr std::chrono::duration<double> before{0.3};  // until ranks that began on one core are apart
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> spent{};
  int runs = 0;
  for (; spent < before; ++runs) {
    run();
    spent = std::chrono::steady_clock::now() - start;
  }
  if (computing == Computing::first) return largest_of_all(seconds_of_round(true, {}, run), job);
  if (job.ranks == 1) return seconds_of_round(false, job, run);
  // Ranks that share a core take turns of some milliseconds: one that computes for less does not meet the others.
  constexpr double many_turns = 0.1;
  const double repeats = std::ceil(largest_of_all(many_turns * runs / spent.count(), job));
  const auto run_again_and_again = [&] {
    for (int r = 0; r < repeats; ++r) run();
  };
  return seconds_of_round(true, job, run_again_and_again) / repeats;
}

/// Of a square product, one with short sums and one with few rows: these are as frequent in programs, and slower.
double measured_flops(Computing computing, const Job& job) {
  constexpr double flops = 2.0 * (1 << 30);
  const std::array<const char*, 3> extents{"i=1024 j=1024 k=1024", "i=8192 j=128 k=1024", "i=128 j=8192 k=1024"};
  double seconds = 0;
  for (const std::string dims : extents) {
    seconds +=
        seconds_of("dims " + dims + "\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n", 1, computing, job);
  }
  return flops * static_cast<double>(extents.size()) / seconds;
}

/// What some kernel computes in each, in chunks as programs have them; in the caches.
constexpr std::array kernel_programs{
    "dims i=512 j=512 k=512\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n",
    "dims b=64 i=64 j=64 k=64\ninput A[b,i,j], B[b,j,k]\nC[b,i,k] = sum[j] A[b,i,j] * B[b,j,k]\n",
    "dims i=32 j=512 k=512\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n",
    "dims b=8 c=32 k=32 y=8 x=8 u=3 v=3\ninput A[b,c,y,x], B[k,c,u,v]\n"
    "C[b,k,y,x] = sum[c,u,v] pad(A[b,c,y+u-1,x+v-1], 0) * B[k,c,u,v]\n",
    "dims i=2048 j=1024\ninput A[i,j], B[j]\nC[i] = sum[j] A[i,j] * B[j]\n",
    "dims i=512 j=1024\ninput A[i,j], B[j]\nC[i,j] = max(A[i,j] * B[j] + 1, 0)\n",
    "dims i=512 j=512\ninput A[i,j]\nC[i,j] = exp(A[i,j])\n",
    "dims i=512 j=512\ninput A[i,j]\nC[i] = max[j] A[i,j]\n",
    "dims i=1024 j=1024\ninput A[i,j]\nC[j,i] = A[i,j]\n",
};

/// Times as long as modelled takes each kernel, on all threads at once: the geometric mean of its programs.
std::map<std::string, double> measured_kernels(std::size_t threads, const Job& job) {
  std::map<std::string, std::vector<double>> logarithms;
  for (const char* const text : kernel_programs) {
    const Compiled program = compiled({"calibrate", text});
    std::map<std::string, double> modelled;
    kernel_calls(program.graph, tasks_of_text(program), {}, [&](std::size_t, const KernelCall& call) {
      modelled[call.kernel] += seconds_on_threads(call.seconds, threads);
    });
    const double seconds = seconds_of(text, threads, Computing::all, job);
    for (const auto& [kernel, own] : modelled) logarithms[kernel].push_back(std::log(seconds / own));
  }
  std::map<std::string, double> times;
  for (const auto& [kernel, all] : logarithms)
    times[kernel] = std::exp(std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()));
  return times;
}

/// Of two streams read and one written, as in a step down a gradient: more than most caches hold, as what a program
/// comes back to after everything else.
double measured_memory_bandwidth(std::size_t threads, Computing computing, const Job& job) {
  constexpr double elements = 1 << 25;
  constexpr double bytes_per_element = 12;
  const std::string step = "dims i=33554432\ninput A[i], B[i]\nC[i] = A[i] - B[i] * 0.5\n";
  return elements * bytes_per_element / seconds_of(step, threads, computing, job);
}

/// What ranks on one node share: how many there are on the node that has most, and how much faster rank 0 is alone.
void measure_sharing(Machine& machine, std::size_t threads, const Job& job) {
  machine.sites_per_node = static_cast<std::int64_t>(largest_of_all(static_cast<double>(job.ranks_here), job));
  if (machine.sites_per_node == 1) return;
  const auto times = [](double alone, double together) { return std::max(1.0, alone / together); };
  machine.flops_alone = times(measured_flops(Computing::first, job), machine.processor.flops_per_core);
  machine.memory_alone = times(measured_memory_bandwidth(threads, Computing::first, job), machine.memory_bandwidth);
}

/// Seconds of a program whose vertices are planned so.
double seconds_on_sites(const std::string& text, const std::vector<VertexPlan>& vertices, Executor& executor,
                        const Job& job) {
  const Compiled program = compiled({"calibrate", text});
  const Plan plan{"calibrate", job.ranks, vertices};
  const PlannedTasks tasks = tasks_of(program, plan, job);
  InputSources sources;
  for (const Vertex& vertex : program.graph.vertices) {
    // Each rank makes its own parts: all of a tensor may be more than a node has.
    if (is_input(vertex)) {
      sources[vertex.name] = [dtype = vertex.dtype](const auto&, const Shape& bound, std::byte* to) {
        std::memset(to, 0, static_cast<std::size_t>(element_count(bound)) * size_of(dtype));
      };
    }
  }
  const std::vector<OutputWriter> writers(tasks.graph.outputs.size(), [](const auto&, const Tensor&) {});
  const TaskBindings bindings = task_bindings(tasks.graph, sources, writers, {});
  const PreparedTasks ready(tasks.graph, bindings, job.site());
  return seconds_of_round(job.ranks > 1, job, [&] { executor.run(ready, bindings); });
}

/// What each vertex of a chain of many costs that have so many elements, vertex v planned so: products with a small
/// matrix, since element-wise ones would run together.
template <class PlanOf>
double seconds_of_vertex(int elements, PlanOf&& plan_of, Executor& executor, const Job& job) {
  constexpr int vertices = 200;
  constexpr int columns = 4;
  std::string text = fmt::format("dims i={0} j={1} k={1}\ninput A0[i,j], B[j,k]\n", elements / columns, columns);
  std::vector<VertexPlan> of_vertex{one_part_per_site({1, 1}), one_part_per_site({1, 1})};
  for (int v = 1; v <= vertices; ++v) {
    text += fmt::format("A{}[i,k] = sum[j] A{}[i,j] * B[j,k]\n", v, v - 1);
    VertexPlan plan = plan_of(v);
    plan.parts.resize(3, 1);
    plan.grid.resize(3, 1);
    plan.strides.resize(3, 0);
    of_vertex.push_back(plan);
  }
  return seconds_on_sites(text, of_vertex, executor, job) / vertices;
}

/// Bytes a second, from seconds and bytes of several sizes of what moves. Noise may leave no time at all: no network is
/// faster than a limit that no hardware comes near.
double bandwidth_of(const std::vector<std::pair<double, double>>& moves) {
  double seconds_per_byte = 0;
  for (const auto& [seconds, bytes] : moves) seconds_per_byte += seconds / bytes / static_cast<double>(moves.size());
  constexpr double fastest = 1e12;
  return 1 / std::max(seconds_per_byte, 1 / fastest);
}

/// The bandwidth from rows of a matrix Y, one on each of some sites that are as far apart as can be, in as many parts,
/// of which all but one have to go to another site each, where a column of parts of Z is computed: all receive at once,
/// as in most programs. Where rows of Z are computed nothing has to move.
double measured_bandwidth(const Machine& machine, Executor& executor, const Job& job) {
  constexpr std::int64_t most_sites = 16;  // each waits for a message from each other one
  const std::int64_t sites = std::min<std::int64_t>(job.ranks, most_sites);
  const std::int64_t stride = job.ranks / sites;
  const VertexPlan rows{{sites, sites}, {sites, 1}, {stride, 0}};
  const VertexPlan columns{{sites, sites}, {1, sites}, {0, stride}};
  const double messages_seconds = static_cast<double>(sites - 1) * machine.network_latency;
  std::vector<std::pair<double, double>> moves;
  for (const std::int64_t elements : {1 << 20, 1 << 21, 1 << 22}) {  // of a site
    const std::string text =
        fmt::format("dims i={} j={}\ninput A[i,j]\nY[i,j] = A[i,j] * 2\nZ[i,j] = Y[i,j] + 1\n", sites, elements);
    const double moving = seconds_on_sites(text, {rows, rows, columns}, executor, job);
    const double still = seconds_on_sites(text, {rows, rows, rows}, executor, job);
    // Messages are counted beside their bytes, but noise in their latency may not make up most of the time.
    const double seconds = std::max(moving - still - messages_seconds, (moving - still) / 2);
    const std::int64_t received = elements / sites * (sites - 1) * 4;
    moves.emplace_back(seconds, static_cast<double>(received));
  }
  // Those of a node that do not take part would share with those that do.
  const double here = std::ceil(static_cast<double>(machine.sites_per_node) / static_cast<double>(stride));
  return bandwidth_of(moves) * here / static_cast<double>(machine.sites_per_node);
}

/// A vertex in two parts on one site, and on two that are as far apart as can be.
VertexPlan on_one_site() { return {{2}, {1}, {0}}; }
VertexPlan on_two_sites(const Job& job) { return {{2}, {2}, {job.ranks - 1}}; }

/// The bandwidth of one site that receives half of a vector while the others wait: it is computed on one site, and what
/// is computed of it on two, or the other way round. These two ways compute together as much, on as many sites, as one
/// on one site and one on two, in which nothing moves.
double bandwidth_alone(Executor& executor, const Job& job) {
  const VertexPlan one = on_one_site();
  const VertexPlan two = on_two_sites(job);
  std::vector<std::pair<double, double>> moves;
  for (const std::int64_t elements : {1 << 21, 1 << 22, 1 << 23}) {
    const std::string text = fmt::format("dims i={}\ninput A[i]\nY[i] = A[i] * 2\nZ[i] = Y[i] + 1\n", elements);
    double seconds = 0;
    for (const auto& [y, z, sign] :
         {std::tuple(one, two, 1), std::tuple(two, one, 1), std::tuple(one, one, -1), std::tuple(two, two, -1)}) {
      seconds += sign * seconds_on_sites(text, {y, y, z}, executor, job);
    }
    moves.emplace_back(seconds, 2 * 4.0 * static_cast<double>(elements) / 2);
  }
  return bandwidth_of(moves);
}

/// What a message costs beside its bytes, from a chain that is computed on one site and on two in turns: half of each
/// result has to go to the other site or come back before anyone can go on. There is something to compute meanwhile,
/// as in a program: ranks that do nothing but wait for the next message are quicker.
double measured_latency(double bandwidth, Executor& executor, const Job& job) {
  constexpr int elements = 1 << 15;
  constexpr double bytes = 4.0 * elements / 2;
  const VertexPlan one = one_part_per_site({1});
  const VertexPlan two = on_two_sites(job);
  const double hop = seconds_of_vertex(
      elements, [&](int v) { return v % 2 == 0 ? one : two; }, executor, job);
  const double still = seconds_of_vertex(
      elements, [](int) { return one_part_per_site({1}); }, executor, job);
  constexpr double least = 1e-6;  // noise may leave none, but a message is never free
  return std::max(hop - 0.75 * still - bytes / bandwidth, least);
}

void measure_tasks(Machine& machine, Executor& executor, const Job& job) {
  machine.task_seconds = seconds_of_vertex(
      64, [](int) { return one_part_per_site({1}); }, executor, job);
}

void measure_network(Machine& machine, Executor& executor, const Job& job) {
  const double alone = bandwidth_alone(executor, job);
  machine.network_latency = measured_latency(alone, executor, job);
  machine.network_bandwidth = measured_bandwidth(machine, executor, job);
  const auto all_of_node = static_cast<double>(machine.sites_per_node);
  machine.network_alone = std::clamp(alone / machine.network_bandwidth, 1.0, all_of_node);
}

/// Of the rank that has least; what is assumed where the system does not say.
std::int64_t second_cache(const Job& job) {
  const std::int64_t said = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::int64_t own = said > 0 ? said : nominal_processor.second_cache;
  return static_cast<std::int64_t>(least_of_all(static_cast<double>(own), job));
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "this machine";
  name.resize(name.find('\0'));
  return name;
}

}  // namespace

Machine calibrate(std::size_t own_threads, const Job& job) {
  // Nodes may differ in cores and ranks; sites do not.
  const auto threads = static_cast<std::size_t>(least_of_all(static_cast<double>(own_threads), job));
  Machine machine;
  machine.name = "calibrated";
  machine.about = fmt::format("Measured on {} with {} by einrel calibrate{}.", host_name(), counted(threads, "thread"),
                              job.ranks > 1 ? fmt::format(" on {} ranks", job.ranks) : "; the network is assumed");
  machine.ranks = job.ranks;
  machine.cores = static_cast<double>(threads);
  machine.processor.flops_per_core = measured_flops(Computing::all, job);
  machine.memory_bandwidth = measured_memory_bandwidth(threads, Computing::all, job);
  machine.kernel_times = measured_kernels(threads, job);
  measure_sharing(machine, threads, job);
  const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES));
  const std::int64_t memory = pages * ::sysconf(_SC_PAGESIZE) / static_cast<std::int64_t>(job.ranks_here);
  machine.memory = static_cast<std::int64_t>(least_of_all(static_cast<double>(memory), job));
  machine.processor.second_cache = second_cache(job);
  std::unique_ptr<Executor> executor = std::make_unique<TaskThreads>(threads);
  if (job.ranks > 1) executor = std::make_unique<StarpuExecutor>(SessionOptions{threads, {}, {}}, job);
  const ExecutorAtWork at_work(*executor, {});
  measure_tasks(machine, *executor, job);
  if (job.ranks > 1) measure_network(machine, *executor, job);
  return machine;
}

}  // namespace einrel
