#pragma once

#include <einrel/program.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/versions.h"
#include "base/source.h"
#include "einsum/check/check.h"
#include "einsum/front/build/program.h"
#include "run/compile.h"

namespace einrel::api {

/// A program as it was given, and its text.
struct GivenProgram {
  build::Program program;
  SourceText source;
  Dims dims;
  LabelNames labels = LabelNames::as_written;
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
  using Data = Program::Data;
  static const GivenProgram& given(const Program& program) { return program.data_->given; }
};

using BoundInputs = std::map<std::string, BoundInput>;

/// What the checks need to know of a tensor that is given for an input.
BoundInput bound_input(const std::string& name, const std::pair<DType, Shape>& type);

/// The program as it is for these inputs. Throws as `check` does.
CheckedProgram checked(const GivenProgram& given, const BoundInputs& inputs, std::vector<Diagnostic> errors = {});
/// The same, compiled; `wanted` are outputs besides its own. Throws UserError where extents are open, or one is
/// unknown.
Compiled compiled_for(const GivenProgram& given, const BoundInputs& inputs,
                      const std::vector<std::string>& wanted = {});

/// Throws UserError unless all extents are known; `what` is what cannot be had without.
const Compiled& require_extents(const std::shared_ptr<Version>& declared, const SourceText& source,
                                const std::vector<TensorInfo>& inputs, const std::string& what);

/// A run of one version, its inputs checked.
struct Run {
  Version& version;
  const SourceText& source;
  const Inputs& inputs;  ///< those that it needs, and maybe more
  ScalarBindings scalars;
};

RunResult run_version(const Run& run, const RunOptions& options);

/// The version of a program for these inputs, which it has all. Throws as `check` does, and UserError for one that is
/// missing.
std::shared_ptr<Version> version_for(const ProgramAccess::Data& program, const Inputs& inputs, bool has_state);

}  // namespace einrel::api
