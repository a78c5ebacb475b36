#pragma once

#include <einrel/program.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/versions.h"
#include "base/source.h"

namespace einrel::api {

/// What a program of the interface is.
struct Program::Data {
  SourceText source;
  Dims dims;
  std::vector<TensorInfo> inputs;
  std::shared_ptr<Versions> versions = std::make_shared<Versions>();
  std::shared_ptr<Version> declared = nullptr;  ///< for the extents that it says itself, if those are all
};

/// Throws UserError unless all extents are known; `what` is what cannot be had without.
const Compiled& require_extents(const std::shared_ptr<Version>& declared, const SourceText& source,
                                const std::vector<TensorInfo>& inputs, const std::string& what);

/// A run of one version, its inputs checked.
struct Run {
  Version& version;
  const SourceText& source;
  std::map<std::string, Tensor> inputs;  ///< those that it needs
  ScalarBindings scalars;
};

RunResult run_version(const Run& run, const RunOptions& options);

}  // namespace einrel::api
