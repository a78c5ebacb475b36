#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "lang/expectations.h"

/// The documents of this folder and the examples, ready to be run.
namespace einrel::test {

/// A program with everything that a run needs.
struct Runnable {
  EinGraph graph;
  TensorBindings inputs;  ///< with the states before the first step, as the reference has them
  ScalarBindings scalars;
  std::optional<EinGraph> initial = {};  ///< see CheckedProgram
  std::size_t steps = 1;
};

/// Throws ProgramError.
CheckedProgram check_document(const Document& document, const Dims& dims);

/// Throws ProgramError and UserError of the program, DocumentError.
Runnable prepare(const Document& document, const Dims& dims);

/// The .ein files of a folder, sorted.
std::vector<std::filesystem::path> ein_files(const std::string& folder);

/// Every example but llama_7b: it is llama_layer 32 times, too much for the searches here. examples_test.py runs it.
std::vector<std::filesystem::path> examples();

/// The examples, and the documents that are no mistakes.
std::vector<std::filesystem::path> programs_that_run();

/// One of these. Throws as those above.
Runnable prepare(const std::filesystem::path& program);

/// Extents that keep the reference quick. Throws DocumentError for an example that has none here.
Dims small_extents(const std::filesystem::path& example);

}  // namespace einrel::test
