#pragma once

#include <einrel/tensor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/compile.h"
#include "engine/run.h"
#include "kernel/workers.h"

namespace einrel::api {

/// A program compiled for inputs of certain shapes, and what runs it. Several threads may run it at a time: each has a
/// runner and workers of its own, which are kept for the next run.
class Version {
 public:
  explicit Version(Compiled compiled) : compiled_(std::move(compiled)) {}

  const Compiled& compiled() const { return compiled_; }
  /// As Runner::run. 1 to most_threads threads.
  std::vector<einrel::Tensor> run(std::span<const einrel::Tensor> inputs, const ScalarBindings& scalars,
                                  std::size_t threads);

 private:
  struct Session {
    Session(const Compiled& compiled, std::size_t threads) : runner(compiled), workers(threads) {}
    Runner runner;
    Workers workers;
  };

  std::unique_ptr<Session> session_of(std::size_t threads);

  Compiled compiled_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

/// The type and shape of every input that was given, by name.
using InputTypes = std::map<std::string, std::pair<DType, Shape>>;

/// The versions of one program, each made when inputs of its types first come. Safe to use from several threads.
class Versions {
 public:
  /// The version for these inputs, made by `compile` if there is none yet; what that throws is thrown here.
  std::shared_ptr<Version> get(const InputTypes& types, const std::function<Compiled()>& compile);

 private:
  std::mutex mutex_;
  std::vector<std::pair<InputTypes, std::shared_ptr<Version>>> made_;  // few; the one that was made last comes last
};

}  // namespace einrel::api
