// Einrel's side of bench/kernels: makes the inputs of a program, runs it, and times it. Nothing else is linked to this
// process, so that Einrel loads its libraries as it does for a user.

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "einsum/check/check.h"
#include "run/compile.h"
#include "run/kernels.h"
#include "run/random_input.h"
#include "run/session.h"
#include "tensor/tensor_file.h"
#include "worker.h"

namespace einrel::bench {
namespace {

constexpr std::uint64_t seed = 1;

Json describe(const Vertex& vertex) {
  std::vector<std::int64_t> shape;
  for (const Extent extent : vertex.bound) shape.push_back(extent.value());
  return {{"name", vertex.name}, {"dtype", name_of(vertex.dtype)}, {"shape", shape}};
}

/// What computes each vertex, and in how many seconds by its model.
Json kernels(const Compiled& compiled, const PlannedTasks& tasks) {
  Json chosen = Json::array();
  for (const std::vector<KernelCall>& vertex : kernel_calls(compiled.graph, tasks)) {
    for (const KernelCall& call : vertex)
      chosen.push_back({{"name", call.kernel}, {"path", call.path}, {"modelled", call.all_seconds()}});
  }
  return chosen;
}

class EinrelWorker {
 public:
  explicit EinrelWorker(std::size_t threads) : threads_(threads) {}

  /// Compiles request["program"], writes its inputs and its one output as NAME.npy into request["folder"], and says
  /// what they are.
  Json load(const Json& request) {
    timed_.reset();
    const SourceText source(request.at("case"), request.at("program"));
    CheckedProgram checked = parse_and_check(source, {});
    if (!checked.graph) throw UserError(fmt::format("{}: an extent is missing", source.name()));
    const Compiled compiled = compile(source.name(), std::move(*checked.graph));
    const EinGraph& graph = compiled.graph;
    if (graph.outputs.size() != 1) throw UserError(fmt::format("{}: not one output", source.name()));

    const std::string folder = request.at("folder");
    std::vector<InputSource> inputs;
    Json described = Json::array();
    double operations = 0;
    tasks_ = whole_tasks(compiled);
    for (const Vertex& vertex : graph.vertices) {
      operations += flops(vertex);
      if (std::holds_alternative<Input>(vertex.op)) described.push_back(describe(vertex));
    }
    for (const StoredRelation& input : tasks_.graph.inputs) {
      const Tensor tensor = random_tensor(seed, input.name, input.dtype, input.bound);
      write_tensors({{{folder + "/" + input.name + ".npy", ""}, tensor}});
      inputs.emplace_back(tensor);
    }
    const Vertex& output = graph[graph.outputs.front()];
    const auto compute = [session = std::make_shared<Session>(tasks_, RunResources{threads_, {}}), inputs] {
      return session->run(pointers_to(inputs), {}).outputs.front();
    };
    timed_.emplace(compute, [&](const Tensor& result) {
      write_tensors({{{folder + "/" + output.name + ".npy", ""}, result}});
    });
    return {{"inputs", described},
            {"output", describe(output)},
            {"kernels", kernels(compiled, tasks_)},
            {"flops", operations},
            {"first", {{"Einrel", timed_->first_seconds()}}}};
  }

  Json sample() const { return {{"seconds", timed_.value().sample()}}; }

 private:
  std::size_t threads_;
  PlannedTasks tasks_;
  std::optional<Timed> timed_;
};

}  // namespace
}  // namespace einrel::bench

int main(int count, char** arguments) {
  std::size_t threads = 0;
  if (count == 2) {
    const std::string_view given = arguments[1];
    std::from_chars(given.data(), given.data() + given.size(), threads);
  }
  if (threads == 0) {
    std::cerr << "einrel_worker THREADS: started by bench/kernels\n";
    return 1;
  }
  einrel::bench::EinrelWorker worker(threads);
  einrel::bench::serve({{"load", [&](const auto& request) { return worker.load(request); }},
                        {"sample", [&](const auto&) { return worker.sample(); }}});
}
