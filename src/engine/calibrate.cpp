#include "engine/calibrate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/text.h"
#include "einsum/check.h"
#include "engine/memory_plan.h"
#include "engine/random_input.h"
#include "engine/run.h"
#include "engine/run_plan.h"
#include "exec/starpu/run.h"

namespace einrel {
namespace {

constexpr int rounds = 5;

Compiled compiled(const std::string& text) {
  return compile("calibrate", *parse_and_check(SourceText("calibrate", text), {}).graph);
}

/// The least time of several, in seconds; it is what neighbours on the machine disturb least.
template <class Action>
double least_seconds(Action&& action) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    action();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    least = std::min(least, spent.count());
  }
  return least;
}

double seconds_of(const std::string& text, std::size_t threads) {
  Runner runner(compiled(text));
  std::vector<Tensor> inputs;
  for (const Vertex& vertex : runner.compiled().graph.vertices) {
    if (is_input(vertex)) inputs.push_back(random_tensor(1, vertex.name, vertex.dtype, vertex.bound));
  }
  Workers workers(threads);
  return least_seconds([&] { runner.run(inputs, {}, workers); });
}

double measured_flops() {
  constexpr double n = 1024;
  return 2 * n * n * n /
         seconds_of("dims i=1024 j=1024 k=1024\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n", 1);
}

double measured_memory_bandwidth(std::size_t threads) {
  constexpr double elements = 1 << 25;
  constexpr double bytes_per_element = 8;  // one read, one written
  return elements * bytes_per_element / seconds_of("dims i=33554432\ninput A[i]\nB[i] = A[i] * 2\n", threads);
}

/// Least seconds of a program whose tensors have one label, of which each vertex has so many parts, one per site; the
/// longest of all ranks.
double seconds_on_sites(const std::string& text, const std::vector<std::int64_t>& parts, StarpuSession& session,
                        const Job& job) {
  const Compiled program = compiled(text);
  Plan plan{"calibrate", job.ranks, {}};
  for (const std::int64_t of_vertex : parts) plan.vertices.push_back(one_part_per_site({of_vertex}));
  const PlannedTasks tasks = tasks_of(program, plan, job);
  std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
  InputSources sources;
  for (const Vertex& vertex : program.graph.vertices) {
    if (is_input(vertex)) sources[vertex.name] = random_tensor(1, vertex.name, vertex.dtype, vertex.bound);
  }
  const TaskBindings bindings = task_bindings(tasks.graph, sources, writers_to(outputs, tasks.graph), {});
  const double own = least_seconds([&] { run_starpu(tasks.graph, bindings, session, job); });
  double longest = 0;
  for (const std::vector<double>& rank : gather(job, {own})) longest = std::max(longest, rank.front());
  return std::stod(from_rank_0(job, fmt::format("{:.17g}", longest)));
}

/// Of a chain of many vertices that are next to nothing, what each costs.
double measured_task_seconds(StarpuSession& session, const Job& job) {
  constexpr int vertices = 400;
  std::string text = "dims i=8\ninput A0[i]\n";
  for (int v = 1; v <= vertices; ++v) text += fmt::format("A{}[i] = A{}[i] + 1\n", v, v - 1);
  const std::vector<std::int64_t> whole(vertices + 1, 1);
  return seconds_on_sites(text, whole, session, job) / vertices;
}

struct Network {
  double bandwidth = 0;
  double latency = 0;
};

/// Half of Y is on site 1 and has to come to site 0, where Z is computed. Without that, both are computed there:
/// three quarters of that time are what computing takes in the first case.
Network measured_network(StarpuSession& session, const Job& job) {
  double count = 0;
  double bytes_sum = 0;
  double seconds_sum = 0;
  double products = 0;
  double squares = 0;
  for (const std::int64_t elements : {1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 23}) {
    const std::string text = fmt::format("dims i={}\ninput A[i]\nY[i] = A[i] * 2\nZ[i] = Y[i] + 1\n", elements);
    const double moving = seconds_on_sites(text, {2, 2, 1}, session, job);
    const double still = seconds_on_sites(text, {1, 1, 1}, session, job);
    const double bytes = 4.0 * static_cast<double>(elements) / 2;
    const double seconds = std::max(0.0, moving - 0.75 * still);
    count += 1;
    bytes_sum += bytes;
    seconds_sum += seconds;
    products += bytes * seconds;
    squares += bytes * bytes;
  }
  const double slope = (count * products - bytes_sum * seconds_sum) / (count * squares - bytes_sum * bytes_sum);
  const double start = (seconds_sum - slope * bytes_sum) / count;
  constexpr double fastest = 1e12;  // no network is faster; noise may make the line fall
  return {slope > 1 / fastest ? 1 / slope : fastest, std::max(start, 1e-7)};
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "this machine";
  name.resize(name.find('\0'));
  return name;
}

}  // namespace

Machine calibrate(std::size_t threads, const Job& job) {
  Machine machine;
  machine.name = "calibrated";
  machine.about = fmt::format("Measured on {} with {} by einrel calibrate{}.", host_name(), counted(threads, "thread"),
                              job.ranks > 1 ? fmt::format(" on {} ranks", job.ranks) : "; the network is assumed");
  machine.cores = static_cast<double>(threads);
  machine.flops_per_core = measured_flops();
  machine.memory_bandwidth = measured_memory_bandwidth(threads);
  const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES));
  machine.memory = pages * ::sysconf(_SC_PAGESIZE) / static_cast<std::int64_t>(job.ranks_here);
  StarpuSession session({threads, {}, {}}, job);
  machine.task_seconds = measured_task_seconds(session, job);
  if (job.ranks > 1) {
    const Network network = measured_network(session, job);
    machine.network_bandwidth = network.bandwidth;
    machine.network_latency = network.latency;
  }
  return machine;
}

}  // namespace einrel
