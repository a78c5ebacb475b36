/// @file
/// Programs: checked, explained and run.
#pragma once

#include <einrel/expression.h>
#include <einrel/input.h>
#include <einrel/ranks.h>
#include <einrel/tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace einrel::api {

/// Extents of labels by name, as --dim gives them to the command: they override what the program says, and complete it.
using Dims = std::map<std::string, std::int64_t>;

/// A tensor that a program takes or gives.
struct TensorInfo {
  std::string name;                                  ///< in the program
  DType dtype = DType::f32;                          ///< of its elements
  std::vector<std::string> labels;                   ///< one per dimension; one that several make up is "(h d)"
  std::vector<std::optional<std::int64_t>> extents;  ///< one per dimension; none where the data decide
};

/// Where inputs lie already, by name: numbers of sites by label, by dimension ("0", "-1" for the last), or of copies
/// ("copies"). These are the digits of a site's number, the highest first: `{{"X", {{"b", 4}, {"f", 2}}}}` has part 3
/// of b and part 1 of f on site 7. None: whole, on site 0. Plans take these inputs from there.
using Placements = std::map<std::string, std::vector<std::pair<std::string, std::int64_t>>>;

/// What the planner `eindecomp` makes least.
enum class Cost : std::uint8_t {
  bound,   ///< floats moved in the worst case (EinDecomp, section 7)
  floats,  ///< floats delivered (the TRA paper, section 5.3)
  bytes,   ///< bytes that sites receive
  seconds  ///< time, by the model of a machine
};

/// What goes on from step to step of a program with state, between two steps.
struct State {
  std::map<std::string, Tensor> tensors = {};  ///< by name
  std::int64_t steps_done = 0;                 ///< `iteration` in the next step
};

/// How to run. With any of `sites`, `planner`, `cost`, `plan`, `machine`, `memory` and several `ranks`, a run follows a
/// plan that cuts every tensor into chunks; without, each tensor is computed whole, on all threads. The results are
/// those of the program either way; a plan may add up floats in another order.
struct RunOptions {
  std::map<std::string, double> scalars = {};  ///< the program's scalars; those with a default may be left out
  std::optional<std::size_t> threads = {};     ///< that compute, 1 to 1024; else one per core of this process
  std::optional<std::int64_t> sites = {};      ///< to plan for; they share the memory of this process
  std::optional<std::string> planner = {};     ///< see `einrel list planners`; else eindecomp
  std::optional<Cost> cost = {};               ///< else seconds
  std::optional<std::string> batch = {};       ///< the label of samples; else the first one of the first input
  std::optional<std::string> plan = {};        ///< of Program::plan, instead of sites, planner, cost, batch, machine
  std::optional<std::string> machine = {};     ///< to plan for: see `einrel list machines`, or FILE.json
  std::optional<std::int64_t> memory = {};     ///< bytes besides inputs and outputs, 8 MiB or more; the rest is on disk
  std::optional<std::filesystem::path> spill = {};  ///< the folder they go to; else the system's temporary one
  std::optional<std::size_t> steps = {};            ///< of a program with state, at most; else one
  std::optional<State> state = {};                  ///< to go on from; else the initial values are computed
  Placements placements = {};                       ///< inputs that lie on the sites already
  /// Once it is asked for, the run ends with RunError, soon: where a thread begins its next part of a tensor. On ranks
  /// it ends all of them.
  std::stop_token stop = {};
  /// The sites are these processes, if there are several: every one of them has to make the same run, and gets the
  /// whole result. `sites` is their number, if it is given; `threads` is of each, without it its share of the cores.
  std::optional<Ranks> ranks = {};
};

/// What a run took.
struct RunReport {
  double seconds = 0;                        ///< of computing, without planning; of the last step, if there are several
  std::optional<std::string> planner;        ///< whose plan it was, if it followed one
  std::int64_t sites = 1;                    ///< that the plan has
  double plan_seconds = 0;                   ///< that planning took; 0 where a plan was kept from an earlier run
  std::int64_t bytes_moved = 0;              ///< between sites, as the plan counts them; in the first step
  std::vector<std::int64_t> bytes_moved_to;  ///< the same, per site that was asked for and receives them
  std::int64_t predicted_peak = 0;           ///< bytes of inputs, outputs and what lies between; of a site
  std::int64_t spilled = 0;                  ///< bytes of chunks written to disk for want of memory
  std::int64_t read_back = 0;                ///< bytes of those that were needed again
  bool is_last = false;                      ///< of a step of a Stepper: `until` holds after it
};

/// What a run gives.
struct RunResult {
  std::map<std::string, Tensor> outputs;  ///< by name
  RunReport report;                       ///< what it took
  State state;                            ///< after the last step, of a program with state

  /// The output of that name. Throws UserError, naming the nearest, when there is none.
  const Tensor& operator[](std::string_view name) const&;
  /// Of a result that is about to go: a copy, which shares the elements.
  Tensor operator[](std::string_view name) &&;
};

/// How to plan, and what to show of it. With any of these set, the plan is shown: of the first planner vertex by
/// vertex, of several their costs side by side. Without, what is computed, and by which kernels.
struct ExplainOptions {
  std::optional<std::int64_t> sites = {};   ///< to plan for; else those of the machine
  std::vector<std::string> planners = {};   ///< see `einrel list planners`; else eindecomp
  std::optional<Cost> cost = {};            ///< else seconds
  std::optional<std::string> machine = {};  ///< to plan for: see `einrel list machines`, or FILE.json
  std::optional<std::int64_t> memory = {};  ///< bytes that a site may hold; else those of `machine`
  std::optional<std::string> batch = {};    ///< the label of samples; else the first one of the first input
  bool spmd = false;                        ///< only plans that one program over a mesh of all sites says
  /// How often the program is to run: inputs stay where the first step brings them, and the plan makes the sum of all
  /// steps least. Else once.
  std::optional<std::size_t> steps = {};
  std::vector<std::string> fed = {};  ///< inputs that are new in each of the steps
  Placements placements = {};         ///< inputs that lie on the sites already: what another place needs is moved
};

/// What labels are called in plans and in what is said of them. Statements of a program that is built name them each by
/// themselves; `common` gives a label that several walk along one name, so that planners which follow a label do.
enum class LabelNames : std::uint8_t { as_written, common };

/// Steps of a program with state, done whenever somebody asks for the next one; Program::stepper makes it. Inputs that
/// are not fed stay where the first step brings them, and states where each step leaves them, of several `ranks` on
/// each its own part. One thread may use it at a time.
///
///     Stepper steps = step.stepper({{"X", x}, {"W", w}}, {"X"}, {.ranks = ranks});
///     steps.step();            // of x
///     steps.step({{"X", y}});  // W is not brought again
class Stepper {
 public:
  /// The same steps; from then on only this one does them.
  Stepper(Stepper&& other) noexcept;
  /// The same steps instead of those that this one did.
  Stepper& operator=(Stepper&& other) noexcept;
  /// Forgets inputs and states.
  ~Stepper();

  /// One more step, with the inputs that are new in it, by name; those that are left out are as in the step before, in
  /// the first as they were given. What it gives has no state, and its report is of this step alone. `stop` as in
  /// RunOptions. Throws what Program::run throws, and UserError for an input that is not fed, or has another type or
  /// shape than before. After a step that failed there is none.
  RunResult step(const Inputs& fed = {}, const std::stop_token& stop = {});
  /// Where the plan has the inputs that stay, once its first step has brought them: for RunOptions::placements of
  /// another program that reads the same, so that they are brought once for both. Nothing where no plan is followed, or
  /// within a limit of memory. Throws what the first step throws. Of several `ranks` each has to ask for it.
  Placements placements();
  /// What goes on from the last step: a copy, which of several ranks each has to ask for, and gets whole.
  State state() const;

 private:
  friend class Program;
  struct Data;
  explicit Stepper(std::unique_ptr<Data> data);

  std::unique_ptr<Data> data_;
};

/// A checked program. It does not change, and copies are cheap. Several threads may run one at a time; runs on ranks or
/// within a limit of memory (RunOptions) wait for one another.
///
///     const Program program = Program::parse("input A[i,j], B[j,k]\n"
///                                            "C[i,k] = sum[j] A[i,j] * B[j,k]\n");
///     const RunResult result = program.run({{"A", a}, {"B", b}});
///     result["C"].values<float>();
class Program {
 public:
  /// The same program; one that is moved from stays as it is.
  Program(const Program&) = default;
  /// The same program.
  Program& operator=(const Program&) = default;

  /// A program in the language of docs/language.md. `name` is what messages call it. Throws UserError with every
  /// mistake of the program, each with its line.
  static Program parse(std::string_view text, const Dims& dims = {}, std::string_view name = "<string>");
  /// The program in a file. Throws as parse does, UserError when the file cannot be read.
  static Program load(const std::filesystem::path& file, const Dims& dims = {});
  /// The program that computes these variables, with all that they depend on (expression.h), in steps if it has state.
  /// Throws as parse does, also when two variables have one name.
  static Program build(const std::vector<Variable>& outputs, const Dims& dims = {}, const Steps& steps = {},
                       LabelNames labels = LabelNames::as_written);

  /// The program as text, in the language.
  const std::string& text() const;
  /// The declared inputs, in order.
  const std::vector<TensorInfo>& inputs() const;
  /// The outputs, in order. Throws UserError while an extent is open (see extents_are_known).
  std::vector<TensorInfo> outputs() const;
  /// Whether the program and its `dims` say all extents; else inputs do when it runs, and neither `outputs` nor
  /// `explain` know enough.
  bool extents_are_known() const;
  /// What labels are called in plans, of which `batch` names one; sorted. Throws UserError while an extent is open.
  std::vector<std::string> labels() const;

  /// What is computed and how: every tensor with formula, extents, operations, memory and kernel; with options, the
  /// plan (docs/planning.md). For people to read: its wording changes. Throws UserError while an extent is open, when a
  /// planner has no plan, or when a plan holds more than `memory` allows.
  std::string explain(const ExplainOptions& options = {}) const;

  /// The plan as JSON, as `einrel explain --json` writes it (docs/explain-json.md): `RunOptions::plan` takes it, also
  /// in another process. Throws as explain does.
  std::string plan(const ExplainOptions& options = {}) const;

  /// Where the plan of the first planner has inputs once they are brought, but for those of `fed`: what
  /// Stepper::placements gives. Throws as explain does.
  Placements placements(const ExplainOptions& options) const;

  /// The plan as a page for a browser, which needs no other file. Throws as explain does.
  std::string html(const ExplainOptions& options = {}) const;

  /// The plan as a module of Python, for JAX: the program that each device runs (docs/export.md). Options are those of
  /// the plan; `spmd` is always meant. Throws as explain does, and UserError that names what JAX has nothing for.
  std::string jax(const ExplainOptions& options = {}) const;
  /// The same for PyTorch: one process of each device.
  std::string torch(const ExplainOptions& options = {}) const;

  /// Computes the outputs from inputs by name; of a program with state those of RunOptions::steps steps. Each must have
  /// the declared type, and extents that agree; inputs that no output needs may be left out. The first run with inputs
  /// of certain shapes takes milliseconds more than later ones.
  ///
  /// Throws UserError when an input or a scalar is missing, unknown or does not fit, when no plan fits into `memory`,
  /// or when options make no sense; RunError when memory or the disk do not suffice. Only if the disk fills up while
  /// chunks are being moved there (`memory`) can the run not be left: then the reason is written to standard error and
  /// the process ends with exit code 2.
  RunResult run(const Inputs& inputs, const RunOptions& options = {}) const;

  /// Steps of a program with state, one at a time. `inputs` are those of the first step, of which those that `fed`
  /// names are new in each. Plans are made for RunOptions::steps of them, without it for a thousand: the more, the less
  /// it weighs what the first step brings. `stop` is that of each step. Throws as run does.
  Stepper stepper(const Inputs& inputs, const std::vector<std::string>& fed = {}, const RunOptions& options = {}) const;

 private:
  friend struct ProgramAccess;
  struct Data;
  explicit Program(std::shared_ptr<const Data> data);

  std::shared_ptr<const Data> data_;
};

/// Bytes that this process has held at most since it began, if the system says so. Takes some ten microseconds.
std::optional<std::int64_t> peak_memory();

/// What an einsum does instead of adding up products.
struct EinsumOptions {
  std::optional<std::string> join =
      {};  ///< a formula of the operands, named x, y, z, or x1, x2, ... if more: "sq(x-y)"
  std::optional<std::string> reduce = {};   ///< a reduction of the language: "max"
  std::optional<std::size_t> threads = {};  ///< as in RunOptions
};

/// One einsum in the notation of numpy.einsum: implicit outputs, repeated labels and "..." included. Operands of
/// different types are promoted as in NumPy.
///
///     einsum("ij,jk->ik", {a, b});
///     einsum("ik,jk->ij", {x, y}, {.join = "sq(x-y)", .reduce = "min"});
///
/// Throws UserError that points into the subscripts or the join, RunError when there is no memory. A Program that runs
/// often costs less.
Tensor einsum(std::string_view subscripts, const std::vector<Tensor>& operands, const EinsumOptions& options = {});

}  // namespace einrel::api
