#pragma once

#include <einrel/program.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/versions.h"
#include "base/source.h"
#include "einsum/build/program.h"

namespace einrel::api {

/// A program as it was given, and its text.
struct GivenProgram {
  build::Program program;
  SourceText source;
  Dims dims;
};

/// What a program of the interface is.
struct Program::Data {
  GivenProgram given;
  std::vector<TensorInfo> inputs = {};
  std::shared_ptr<Versions> versions = std::make_shared<Versions>();
  std::shared_ptr<Version> declared = nullptr;  ///< for the extents that it says itself, if those are all

  /// Throws ProgramError with these errors and those of the program, as far as they can be said without inputs.
  explicit Data(GivenProgram program, std::vector<Diagnostic> errors = {});
};

/// To what others in here need of it.
struct ProgramAccess {
  static const GivenProgram& given(const Program& program) { return program.data_->given; }
};

/// Throws UserError unless all extents are known; `what` is what cannot be had without.
const Compiled& require_extents(const std::shared_ptr<Version>& declared, const SourceText& source,
                                const std::vector<TensorInfo>& inputs, const std::string& what);

/// A run of one version, its inputs checked.
struct Run {
  Version& version;
  const SourceText& source;
  Inputs inputs;  ///< those that it needs
  ScalarBindings scalars;
};

RunResult run_version(const Run& run, const RunOptions& options);

}  // namespace einrel::api
