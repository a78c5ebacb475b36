#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "einsum/check/check.h"
#include "einsum/graph/ein_graph.h"
#include "exec/job/job.h"
#include "exec/tasks/task_graph.h"
#include "run/choose_plan.h"
#include "tensor/inflate.h"
#include "tensor/stored_tensor.h"

namespace einrel::cli {

/// Whether a path names a program in the tensor relational algebra instead of the language: it ends with .tra.
bool is_tra(const std::string& path);

/// An input that a program needs.
struct ProgramInput {
  std::string name;
  DType dtype = DType::f32;
  Shape bound;
  std::string declaration;  ///< "input A[i,j] : f32"
};
std::vector<ProgramInput> inputs_of(const AnyProgram& program);  // those of initial values, too, but no states
/// What is put out, in the order in which it is told.
std::vector<TaskOutput> outputs_of(const AnyProgram& program);

/// The names of its complex tensors.
std::set<std::string> complex_tensors(const AnyProgram& program);

/// The text of a program; "-" is standard input. Throws UserError when it cannot be read.
SourceText read_program(const std::string& path);

/// The same in a job: rank 0 reads it, since the others may have no standard input, nor the file. Where they have it,
/// throws UserError unless it is the same.
SourceText program_of_job(const std::string& path, const Job& job);

/// The files that inputs are bound to, opened but not read.
using OpenInputs = std::map<std::string, StoredTensor>;

/// --in NAME=FILE ..., and --in FILE of an archive, which binds all inputs that `program` declares and that have the
/// name of one of its tensors and no file of their own; on standard error it says which tensors have no input. Throws
/// UserError as open_tensor does, and for an archive without any tensor for an input, or two with one for the same.
OpenInputs open_inputs(const std::vector<std::string>& given, const SourceText& program,
                       const InflateFolder& folder = {});

/// Throws UserError for --in that is none of both, without opening files.
void check_inputs(const std::vector<std::string>& given);

/// The files in --in.
std::vector<std::string> paths_of(const std::vector<std::string>& given);

/// What is said of an input without a file: "missing input X[i] : f32; bind it with --in X=FILE".
std::string missing_file(const std::string& declaration, const std::string& name);

/// The graph of a checked program; throws UserError that lists the extents that are still open: what inputs without a
/// file need, random ones if there is a seed. `say_missing` says what they are to be given as.
EinGraph require_graph(CheckedProgram& checked, const SourceText& program, const std::optional<std::uint64_t>& seed,
                       std::string (*say_missing)(const std::string& declaration,
                                                  const std::string& name) = missing_file);

/// Throws UserError that lists the inputs that have neither a file nor, as there is no seed, random values.
void check_inputs_given(const AnyProgram& program, const OpenInputs& files, const std::optional<std::uint64_t>& seed);

/// Whether an input is used where it lies in its file, and takes no memory.
bool is_in_place(const OpenInputs& files, const std::string& name, DType dtype);

/// Files are mapped. What cannot be used as it lies there is converted where it is needed, chunk by chunk, as random
/// inputs are made: all of it at once may be more than there is memory for. `files` must outlive them. Throws as
/// check_inputs_given.
InputSources input_sources(const AnyProgram& program, const OpenInputs& files,
                           const std::optional<std::uint64_t>& seed);
/// Of those that are tensors.
LayoutBindings layouts_of(const InputSources& sources);

}  // namespace einrel::cli
