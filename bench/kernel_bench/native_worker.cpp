// The side of oneDNN and OpenBLAS in bench/kernels, and the measurement of what the machine could do.

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "contraction.h"
#include "onednn.h"
#include "roof.h"
#include "tensor/tensor_file.h"
#include "worker.h"

namespace einrel::bench {
namespace {

Compute compute_of(const Json& spec, const std::vector<Tensor>& inputs) {
  const std::string op = spec.at("op");
  if (op == "blas") return blas_product(product_of(spec), inputs.at(0), inputs.at(1));
  if (op == "matmul") return onednn_product(product_of(spec), inputs.at(0), inputs.at(1));
  if (op == "loops") return direct_loop(loop_nest_of(spec), inputs.at(0), inputs.at(1));
  return onednn_compute(spec, inputs);
}

class NativeWorker {
 public:
  /// Reads the tensors named in request["inputs"] from request["folder"] and prepares request["peers"] on them, each a
  /// name and what to compute. Answers for each peer how long its first call took and how far its result is from
  /// request["output"] (not for those whose spec says "checked": false), or why it cannot compute this.
  Json load(const Json& request) {
    timed_.clear();
    const std::string folder = request.at("folder");
    const auto tensor = [&](const std::string& name) { return read(open_tensor({folder + "/" + name + ".npy", ""})); };
    std::vector<Tensor> inputs;
    for (const std::string name : request.at("inputs")) inputs.push_back(tensor(name));
    const Tensor expected = tensor(request.at("output"));
    Json reply{{"first", Json::object()}, {"differences", Json::object()}, {"refused", Json::object()}};
    for (const auto& [name, spec] : request.at("peers").items()) {
      try {
        const auto check = [&, name = name, spec = spec](const Tensor& result) {
          if (spec.value("checked", true)) reply["differences"][name] = difference(result, expected);
        };
        const auto timed = timed_.try_emplace(name, compute_of(spec, inputs), check).first;
        reply["first"][name] = timed->second.first_seconds();
      } catch (const std::exception& failure) {
        reply["refused"][name] = failure.what();
      }
    }
    return reply;
  }

  Json sample(const Json& request) const { return {{"seconds", timed_.at(request.at("peer")).sample()}}; }

 private:
  std::map<std::string, Timed> timed_;
};

/// Operations and bytes per second for numbers of request["width"] bytes and a computation on request["bytes"].
Json roof(const Json& request) {
  const std::size_t threads = request.at("threads");
  return {{"flops", peak_flops(request.at("width"), threads)},
          {"bandwidth", copy_bandwidth(request.at("bytes"), threads)}};
}

Json fresh_copy(const Json& request) {
  return {{"bandwidth", fresh_copy_bandwidth(request.at("bytes"), request.at("threads"))}};
}

}  // namespace
}  // namespace einrel::bench

int main() {
  einrel::bench::NativeWorker worker;
  einrel::bench::serve({{"load", [&](const auto& request) { return worker.load(request); }},
                        {"sample", [&](const auto& request) { return worker.sample(request); }},
                        {"roof", einrel::bench::roof},
                        {"fresh copy", einrel::bench::fresh_copy}});
}
