#pragma once

#include <einrel/program.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lasting_program.h"
#include "node.h"

namespace einrel::python {

/// An output, which may be a view of an input.
Value output_value(const api::Tensor& tensor, const std::vector<NodePtr>& leaves);

/// What Python calls nodes.
using GivenNames = std::vector<std::pair<std::string, NodePtr>>;

struct TextOfNodes {
  std::string text;
  GivenNames names;  ///< of all that it says
};

/// What computes a graph of certain definitions for leaves of certain types.
class Compiled {
 public:
  /// Names that the language cannot say, and those that are given twice, are left out.
  explicit Compiled(const Walk& walk, const GivenNames& given = {});

  /// The values of what the walk wanted, of those of its leaves; waits without Python's lock. Throws as
  /// api::Program::run.
  std::vector<Value> run(const std::vector<NodePtr>& leaves, const api::RunOptions& options);
  LastingProgram& lasting() { return *program_; }

 private:
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  std::optional<LastingProgram> program_;
};

/// The program that makes these outputs of these inputs, in the language; numbers are part of it. Throws UserError
/// where an output has been computed, an input is none, and where arrays are needed that are not among them.
/// `names` are what else is called so, and what is like it: copies that show how outputs are made of inputs.
TextOfNodes program_text(const GivenNames& outputs, const GivenNames& inputs, const GivenNames& names);

/// Computes all of these at once; they keep their values, and so does what Python holds of what is computed on the way
/// (held.h). Throws UserError, RunError.
void compute(const std::vector<NodePtr>& nodes, const api::RunOptions& options);

/// What the program that computes these calls nodes.
GivenNames names_in_program(const std::vector<NodePtr>& nodes);
/// The inputs of the program that computes these.
std::vector<NodePtr> leaves_of(const std::vector<NodePtr>& nodes);

/// What computes these, kept from before or made now. Throws UserError.
std::shared_ptr<Compiled> compiled(const Walk& walk);

}  // namespace einrel::python
