#include "programs.h"

#include <einrel/database.h>
#include <einrel/error.h>
#include <einrel/mapped_files.h>
#include <einrel/planning.h>
#include <einrel/train.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>
#include <variant>

#include "casters.h"
#include "compute.h"
#include "gradient_graph.h"
#include "history.h"
#include "made_input.h"

namespace einrel::python {
namespace {

namespace nb = nanobind;
using Nodes = std::map<std::string, NodePtr>;

api::Cost cost_named(const std::string& name) {
  if (name == "bound") return api::Cost::bound;
  if (name == "floats") return api::Cost::floats;
  if (name == "bytes") return api::Cost::bytes;
  if (name == "seconds") return api::Cost::seconds;
  throw api::UserError("there is no cost '" + name + "': bound, floats, bytes and seconds are");
}

std::optional<api::Cost> cost_named(const std::optional<std::string>& name) {
  return name ? std::optional(cost_named(*name)) : std::nullopt;
}

/// Throws RunError where it is mapped from a file that was cut short.
const Value& value_of(const NodePtr& node) {
  if (!node->value()) throw no_elements();
  const api::WholeFiles files({{"", node->value()->tensor}});
  return *node->value();
}

api::Inputs inputs_of(const Nodes& nodes) {
  api::Inputs inputs;
  for (const auto& [name, node] : nodes) inputs.emplace(name, node->input());
  return inputs;
}

std::map<std::string, api::Tensor> tensors_of(const Nodes& nodes) {
  std::map<std::string, api::Tensor> tensors;
  for (const auto& [name, node] : nodes) tensors.emplace(name, value_of(node).tensor);
  return tensors;
}

NodePtr node_of(const api::Tensor& tensor, bool is_writable = true) {
  return std::make_shared<Node>(type_of(tensor.dtype(), tensor.shape()), Value{tensor, is_writable});
}

/// Outputs, which may be views of inputs.
Nodes outputs_of(const api::RunResult& result, const Nodes& inputs) {
  std::vector<NodePtr> given;
  for (const auto& [name, node] : inputs) given.push_back(node);
  for (const auto& [name, tensor] : result.state.tensors) given.push_back(node_of(tensor, false));  // nor what goes on
  Nodes outputs;
  for (const auto& [name, tensor] : result.outputs)
    outputs.emplace(name, node_of(tensor, output_value(tensor, given).is_writable));
  return outputs;
}

/// Samples of an input: a computed array, or the name of a file.
using GivenSamples = std::variant<NodePtr, std::string>;

std::map<std::string, api::Samples> samples_of(const std::map<std::string, GivenSamples>& given) {
  std::map<std::string, api::Samples> samples;
  for (const auto& [name, source] : given) {
    if (const auto* const node = std::get_if<NodePtr>(&source))
      samples.emplace(name, tensors_of({{name, *node}}).at(name));
    else
      samples.emplace(name, std::get<std::string>(source));
  }
  return samples;
}

/// A function of Python that training calls, with Python's lock; what it raises ends the training.
template <class Argument>
std::function<void(const Argument&)> callback(const nb::object& function) {
  if (function.is_none()) return {};
  const auto kept = std::shared_ptr<nb::object>(new nb::object(function), [](nb::object* object) {
    const nb::gil_scoped_acquire lock;
    delete object;  // NOLINT(cppcoreguidelines-owning-memory): under the lock
  });
  return [kept](const Argument& argument) {
    const nb::gil_scoped_acquire lock;
    try {
      (*kept)(argument);
    } catch (const nb::python_error& raised) {
      throw RaisedInCallback(raised);
    }
  };
}

/// A program in the language.
class TextProgram {
 public:
  TextProgram(std::string text, api::Dims dims, std::string name)
      : program_(api::Program::parse(text, dims, name), [=] { return api::Program::parse(text, dims, name); }) {}

  const api::Program& get() { return program_.get(); }
  LastingProgram& lasting() { return program_; }

  std::pair<api::RunResult, Nodes> run(const Nodes& inputs, const api::RunOptions& options) {
    api::RunResult result = program_.run(inputs_of(inputs), options);
    Nodes outputs = outputs_of(result, inputs);
    return {std::move(result), std::move(outputs)};
  }

  api::TrainResult train(const std::map<std::string, GivenSamples>& feeds, const api::TrainOptions& options) {
    return program_.train(samples_of(feeds), options);
  }

  nb::tuple run_in_database(const std::string& database, const std::map<std::string, GivenSamples>& inputs,
                            const api::DatabaseOptions& options) {
    const api::DatabaseResult result = program_.run_in_database(database, samples_of(inputs), options);
    Nodes outputs;
    for (const auto& [name, tensor] : result.outputs) outputs.emplace(name, node_of(tensor));
    const auto& analysis = result.analysis;
    return nb::make_tuple(std::move(outputs), result.steps,
                          analysis ? std::optional(std::pair(analysis->text, analysis->json)) : std::nullopt);
  }

 private:
  LastingProgram program_;
};

/// Steps of a program in the language.
class TextStepper {
 public:
  TextStepper(TextProgram& program, const Nodes& inputs, const std::vector<std::string>& fed,
              const api::RunOptions& options)
      : inputs_(inputs), stepper_(program.lasting().stepper(inputs_of(inputs), fed, options)) {}

  nb::tuple step(const Nodes& fed) {
    const api::RunResult result = stepper_->step(inputs_of(fed));
    for (const auto& [name, node] : fed) inputs_[name] = node;
    return nb::make_tuple(outputs_of(result, inputs_), result.report);
  }
  api::Placements placements() { return stepper_->placements(); }
  api::State state() { return stepper_->state(); }

 private:
  Nodes inputs_;
  std::unique_ptr<LastingStepper> stepper_;
};

/// A function that was traced: it computes results of arguments.
class Traced {
 public:
  Traced(const std::vector<NodePtr>& results, const std::vector<NodePtr>& arguments)
      : graph_(std::make_shared<TracedGraph>(TracedGraph{results, arguments})), walk_(results), compiled_(walk_) {
    std::vector<TypePtr> types;
    for (const NodePtr& argument : arguments) types.push_back(argument->type());
    for (std::size_t i = 0; i < results.size(); ++i)
      calls_.push_back(std::make_shared<const Definition>(types, Call{graph_, i, results[i]->type()}));
    for (Node* const leaf : walk_.leaves()) {
      std::size_t argument = 0;
      while (argument < arguments.size() && arguments[argument].get() != leaf) ++argument;
      if (argument == arguments.size() && !leaf->value() && !leaf->source())
        throw api::UserError("a traced function returned an argument of another one that is still being traced");
      sources_.push_back({argument, argument == arguments.size() ? leaf->shared_from_this() : nullptr});
    }
  }

  /// Where gradients may be asked for by the arguments, results know what they were made of.
  std::vector<NodePtr> operator()(const std::vector<NodePtr>& arguments, const api::RunOptions& options,
                                  const std::string& where) {
    remember({});
    std::vector<NodePtr> leaves;
    for (const Source& source : sources_)
      leaves.push_back(source.constant ? source.constant : arguments.at(source.argument));
    std::vector<NodePtr> results;
    for (const Value& value : compiled_.run(leaves, options)) {
      results.push_back(node_of(value.tensor, value.is_writable));
      results.back()->was_made_by(calls_[results.size() - 1], arguments);
      remember_later(results.back(), where);
    }
    return results;
  }
  LastingProgram& lasting() { return compiled_.lasting(); }

 private:
  struct Source {
    std::size_t argument;
    NodePtr constant;  ///< instead of it
  };
  std::shared_ptr<const TracedGraph> graph_;
  std::vector<std::shared_ptr<const Definition>> calls_;  // of each result
  Walk walk_;
  Compiled compiled_;
  std::vector<Source> sources_;
};

std::string explained(LastingProgram& program, const api::ExplainOptions& how) {
  return program.tell([how](const api::Program& of) { return of.explain(how); });
}

std::string planned(LastingProgram& program, const api::ExplainOptions& how) {
  return program.tell([how](const api::Program& of) { return of.plan(how); });
}

std::string drawn(LastingProgram& program, const api::ExplainOptions& how) {
  return program.tell([how](const api::Program& of) { return of.html(how); });
}

/// What computes nodes, which are called so.
std::shared_ptr<Compiled> named(const std::vector<NodePtr>& nodes, const GivenNames& names) {
  const Walk walk(nodes);
  return names.empty() ? compiled(walk) : std::make_shared<Compiled>(walk, names);
}

void bind_options(nb::module_& module) {
  using Scalars = std::map<std::string, double>;
  using Text = std::optional<std::string>;
  using Number = std::optional<std::int64_t>;
  nb::class_<api::State>(
      module, "State", nb::is_final(),
      "What a program with state goes on from: State(tensors, steps_done=0).\n\n"
      "`tensors` are arrays by the names of the program's states, `steps_done` is how many steps are "
      "done. The results of runs have it as `state`.")
      .def_ro("steps_done", &api::State::steps_done)
      .def_prop_ro("tensors",
                   [](const api::State& state) {
                     Nodes nodes;
                     for (const auto& [name, tensor] : state.tensors) nodes.emplace(name, node_of(tensor));
                     return nodes;
                   })
      .def(
          "__init__",
          [](api::State* self, const std::map<std::string, nb::object>& tensors, std::int64_t steps_done) {
            if (steps_done < 0) throw api::UserError("State(steps_done=...): a number of steps is not negative");
            const nb::object computed = nb::module_::import_("einrel._array").attr("computed_node_of");
            Nodes nodes;
            for (const auto& [name, array] : tensors) nodes.emplace(name, nb::cast<NodePtr>(computed(array)));
            new (self) api::State{tensors_of(nodes), steps_done};  // owned by Python
          },
          nb::arg("tensors"), nb::arg("steps_done") = 0);
  nb::class_<api::RunOptions>(module, "RunOptions", nb::is_final())
      .def(
          "__init__",
          [](api::RunOptions* self, Scalars scalars, std::optional<std::size_t> threads, Number sites, Text planner,
             const Text& cost, Text batch, Text plan, Text machine, Number memory, Text spill,
             std::optional<std::size_t> steps, std::optional<api::State> state, api::Placements placements) {
            new (self) api::RunOptions{.scalars = std::move(scalars),  // owned by Python
                                       .threads = threads,
                                       .sites = sites,
                                       .planner = std::move(planner),
                                       .cost = cost_named(cost),
                                       .batch = std::move(batch),
                                       .plan = std::move(plan),
                                       .machine = std::move(machine),
                                       .memory = memory,
                                       .spill = std::move(spill),
                                       .steps = steps,
                                       .state = std::move(state),
                                       .placements = std::move(placements)};
          },
          nb::kw_only(), nb::arg("scalars") = Scalars{}, nb::arg("threads").none() = nb::none(),
          nb::arg("sites").none() = nb::none(), nb::arg("planner").none() = nb::none(),
          nb::arg("cost").none() = nb::none(), nb::arg("batch").none() = nb::none(),
          nb::arg("plan").none() = nb::none(), nb::arg("machine").none() = nb::none(),
          nb::arg("memory").none() = nb::none(), nb::arg("spill").none() = nb::none(),
          nb::arg("steps").none() = nb::none(), nb::arg("state").none() = nb::none(),
          nb::arg("placements") = api::Placements{});
  nb::class_<api::ExplainOptions>(module, "ExplainOptions", nb::is_final())
      .def(
          "__init__",
          [](api::ExplainOptions* self, Number sites, std::vector<std::string> planners, const Text& cost, Text machine,
             Number memory, Text batch, bool spmd, std::optional<std::size_t> steps, std::vector<std::string> fed,
             api::Placements placements) {
            new (self) api::ExplainOptions{.sites = sites,  // owned by Python
                                           .planners = std::move(planners),
                                           .cost = cost_named(cost),
                                           .machine = std::move(machine),
                                           .memory = memory,
                                           .batch = std::move(batch),
                                           .spmd = spmd,
                                           .steps = steps,
                                           .fed = std::move(fed),
                                           .placements = std::move(placements)};
          },
          nb::kw_only(), nb::arg("sites").none() = nb::none(), nb::arg("planners") = std::vector<std::string>{},
          nb::arg("cost").none() = nb::none(), nb::arg("machine").none() = nb::none(),
          nb::arg("memory").none() = nb::none(), nb::arg("batch").none() = nb::none(), nb::arg("spmd") = false,
          nb::arg("steps").none() = nb::none(), nb::arg("fed") = std::vector<std::string>{},
          nb::arg("placements") = api::Placements{});
}

/// A path as text, which Python's may be.
auto path_setter(std::optional<std::filesystem::path> api::TrainOptions::*path) {
  return [path](api::TrainOptions& options, const std::string& text) { options.*path = text; };
}

/// Set one by one, by their names: those that are not set are as in C++.
void bind_train_options(nb::module_& module) {
  using Options = api::TrainOptions;
  const auto no = [](const Options&) { return nb::none(); };  // nobody reads them
  nb::class_<Options>(module, "TrainOptions", nb::is_final())
      .def(nb::init<>())
      .def_rw("batch_label", &Options::batch_label)
      .def_rw("batch", &Options::batch)
      .def_rw("epochs", &Options::epochs)
      .def_rw("header", &Options::header)
      .def_rw("hold_out", &Options::hold_out)
      .def_rw("scalars", &Options::scalars)
      .def_rw("keep_last", &Options::keep_last)
      .def_rw("seed", &Options::seed)
      .def_rw("report", &Options::report)
      .def_rw("calibrate_with", &Options::calibrate_with)
      .def_rw("save_every", &Options::save_every)
      .def_rw("local_steps", &Options::local_steps)
      .def_rw("subnets", &Options::subnets)
      .def_rw("threads", &Options::threads)
      .def_rw("sites", &Options::sites)
      .def_rw("planner", &Options::planner)
      .def_rw("machine", &Options::machine)
      .def_rw("plan", &Options::plan)
      .def_rw("memory", &Options::memory)
      .def_prop_rw("spill", no, path_setter(&Options::spill))
      .def_prop_rw("save", no, path_setter(&Options::save))
      .def_prop_rw("resume", no, path_setter(&Options::resume))
      .def_prop_rw("log", no, path_setter(&Options::log))
      .def_prop_rw("cost", no, [](Options& options, const std::string& cost) { options.cost = cost_named(cost); })
      .def_prop_rw(
          "test", no,
          [](Options& options, const std::map<std::string, GivenSamples>& test) { options.test = samples_of(test); })
      .def_prop_rw("inputs", no,
                   [](Options& options, const Nodes& inputs) {
                     for (const auto& [name, node] : inputs)
                       options.inputs.insert({name, tensors_of({{name, node}}).at(name)});
                   })
      .def_prop_rw(
          "on_epoch", no,
          [](Options& options, const nb::object& function) { options.on_epoch = callback<api::Epoch>(function); })
      .def_prop_rw("on_note", no, [](Options& options, const nb::object& function) {
        options.on_note = callback<std::string>(function);
      });
}

void bind_reports(nb::module_& module) {
  nb::class_<api::RunReport>(module, "RunReport", nb::is_final(),
                             "What a run took: seconds, bytes that moved between sites, bytes of memory.")
      .def_ro("seconds", &api::RunReport::seconds)
      .def_ro("planner", &api::RunReport::planner)
      .def_ro("sites", &api::RunReport::sites)
      .def_ro("plan_seconds", &api::RunReport::plan_seconds)
      .def_ro("bytes_moved", &api::RunReport::bytes_moved)
      .def_ro("bytes_moved_to", &api::RunReport::bytes_moved_to)
      .def_ro("predicted_peak", &api::RunReport::predicted_peak)
      .def_ro("spilled", &api::RunReport::spilled)
      .def_ro("read_back", &api::RunReport::read_back)
      .def_ro("is_last", &api::RunReport::is_last);
  nb::class_<api::Epoch>(
      module, "Epoch", nb::is_final(),
      "What an epoch of training came to: means over samples, seconds so far, bytes that sites received so far.")
      .def_ro("epoch", &api::Epoch::epoch)
      .def_ro("steps", &api::Epoch::steps)
      .def_ro("seconds", &api::Epoch::seconds)
      .def_ro("bytes_moved", &api::Epoch::bytes_moved)
      .def_ro("training", &api::Epoch::training)
      .def_ro("test", &api::Epoch::test)
      .def("__repr__", [](const api::Epoch& epoch) {
        return nb::str("Epoch(epoch={}, steps={}, seconds={:.3f}, training={}, test={})")
            .format(epoch.epoch, epoch.steps, epoch.seconds, epoch.training, epoch.test);
      });
  nb::class_<api::TrainResult>(
      module, "TrainResult", nb::is_final(),
      "What training gives: the epochs, whether `until` ended it, the last checkpoint, what was learnt.")
      .def_ro("epochs", &api::TrainResult::epochs)
      .def_ro("is_held", &api::TrainResult::is_held)
      .def_prop_ro("checkpoint",
                   [](const api::TrainResult& result) {
                     return result.checkpoint ? std::optional(result.checkpoint->string()) : std::nullopt;
                   })
      .def_ro("state", &api::TrainResult::state);
  nb::class_<api::TensorInfo>(module, "TensorInfo", nb::is_final(),
                              "A tensor that a program takes or gives; an extent that the data decide is None.")
      .def_ro("name", &api::TensorInfo::name)
      .def_prop_ro("dtype", [](const api::TensorInfo& info) { return std::string(api::name_of(info.dtype)); })
      .def_ro("labels", &api::TensorInfo::labels)
      .def_ro("extents", &api::TensorInfo::extents);
}

}  // namespace

void bind_errors(nb::module_& module) {
  const auto program_error = nb::exception<api::UserError>(module, "ProgramError", PyExc_ValueError);
  nb::exception<api::NoGradient>(module, "NoGradient", program_error.ptr());
  nb::exception<api::RunError>(module, "RunError", PyExc_RuntimeError);
  nb::exception<api::Bug>(module, "Bug", PyExc_RuntimeError);
}

namespace {

void bind_text_program(nb::module_& module) {
  nb::class_<TextProgram>(module, "Program", nb::is_final())
      .def(nb::init<std::string, api::Dims, std::string>(), nb::arg("text"), nb::arg("dims"), nb::arg("name"))
      .def_prop_ro("text", [](TextProgram& program) { return program.get().text(); })
      .def_prop_ro("inputs", [](TextProgram& program) { return program.get().inputs(); })
      .def("labels", [](TextProgram& program) { return program.get().labels(); })
      .def_prop_ro("outputs", [](TextProgram& program) { return program.get().outputs(); })
      .def("explain",
           [](TextProgram& program, const api::ExplainOptions& how) { return explained(program.lasting(), how); })
      .def("plan", [](TextProgram& program, const api::ExplainOptions& how) { return planned(program.lasting(), how); })
      .def("html", [](TextProgram& program, const api::ExplainOptions& how) { return drawn(program.lasting(), how); })
      .def("placements",
           [](TextProgram& program, const api::ExplainOptions& how) { return program.lasting().placements(how); })
      .def("jax",
           [](TextProgram& program, const api::ExplainOptions& how) {
             return program.lasting().tell([how](const api::Program& of) { return of.jax(how); });
           })
      .def("torch",
           [](TextProgram& program, const api::ExplainOptions& how) {
             return program.lasting().tell([how](const api::Program& of) { return of.torch(how); });
           })
      .def("train", &TextProgram::train)
      .def(
          "sql",
          [](TextProgram& program, const std::string& dialect, const std::optional<std::string>& schema,
             const std::optional<std::string>& formats, const std::map<std::string, double>& scalars) {
            return program.lasting().tell([&](const api::Program& told) {
              return api::to_sql(told, {.dialect = dialect, .formats = formats, .scalars = scalars, .schema = schema});
            });
          },
          nb::arg("dialect"), nb::arg("schema"), nb::arg("formats"), nb::arg("scalars"))
      .def(
          "explain_sql",
          [](TextProgram& program, const std::string& dialect, const std::optional<std::string>& formats, bool json) {
            return program.lasting().tell([&](const api::Program& told) {
              const api::DatabaseAnalysis explained = api::explain_sql(told, {.dialect = dialect, .formats = formats});
              return json ? explained.json : explained.text;
            });
          },
          nb::arg("dialect"), nb::arg("formats"), nb::arg("json"))
      .def(
          "run_in_database",
          [](TextProgram& program, const std::string& database, const std::map<std::string, GivenSamples>& inputs,
             std::map<std::string, std::string> tables, std::map<std::string, std::string> chunks,
             std::map<std::string, double> scalars, std::optional<std::string> formats,
             std::optional<std::int64_t> steps, bool analyze) {
            return program.run_in_database(database, inputs,
                                           {.tables = std::move(tables),
                                            .chunks = std::move(chunks),
                                            .scalars = std::move(scalars),
                                            .formats = std::move(formats),
                                            .steps = steps,
                                            .analyze = analyze});
          },
          nb::arg("database"), nb::arg("inputs"), nb::arg("tables"), nb::arg("chunks"), nb::arg("scalars"),
          nb::arg("formats"), nb::arg("steps"), nb::arg("analyze"))
      .def("run", [](TextProgram& program, const Nodes& inputs, const api::RunOptions& options) {
        auto [result, outputs] = program.run(inputs, options);
        return nb::make_tuple(std::move(outputs), std::move(result.report), std::move(result.state));
      });
  nb::class_<TextStepper>(module, "Stepper", nb::is_final())
      .def(nb::init<TextProgram&, const Nodes&, const std::vector<std::string>&, const api::RunOptions&>(),
           nb::arg("program"), nb::arg("inputs"), nb::arg("fed"), nb::arg("options"))
      .def("step", &TextStepper::step, nb::arg("fed"))
      .def("placements", &TextStepper::placements)
      .def("state", &TextStepper::state);
}

}  // namespace

void bind_programs(nb::module_& module) {
  bind_options(module);
  bind_train_options(module);
  bind_reports(module);
  bind_text_program(module);
  nb::class_<Traced>(module, "Traced", nb::is_final())
      .def(nb::init<const std::vector<NodePtr>&, const std::vector<NodePtr>&>(), nb::arg("results"),
           nb::arg("arguments"))
      .def("__call__", &Traced::operator(), nb::arg("arguments"), nb::arg("options"), nb::arg("where"))
      .def("labels", [](Traced& traced) { return traced.lasting().get().labels(); })
      .def("explain", [](Traced& traced, const api::ExplainOptions& how) { return explained(traced.lasting(), how); });
  module.def("compute", &compute, nb::arg("nodes"), nb::arg("options") = api::RunOptions{});
  module.def("leaves", &leaves_of);
  module.def("names_in_program", &names_in_program);
  module.def("explain", [](const std::vector<NodePtr>& nodes, const api::ExplainOptions& how, const GivenNames& names) {
    return explained(named(nodes, names)->lasting(), how);
  });
  module.def("plan", [](const std::vector<NodePtr>& nodes, const api::ExplainOptions& how, const GivenNames& names) {
    return planned(named(nodes, names)->lasting(), how);
  });
  module.def("html", [](const std::vector<NodePtr>& nodes, const api::ExplainOptions& how, const GivenNames& names) {
    return drawn(named(nodes, names)->lasting(), how);
  });
  module.def(
      "program_text",
      [](const GivenNames& outputs, const GivenNames& inputs, const GivenNames& names) {
        TextOfNodes made = program_text(outputs, inputs, names);
        return std::pair(std::move(made.text), std::move(made.names));
      },
      nb::arg("outputs"), nb::arg("inputs"), nb::arg("names") = GivenNames());
  module.def("check", [](const std::vector<NodePtr>& nodes) { compiled(Walk(nodes)); });
  module.def("gradient_graph", [](const std::vector<NodePtr>& of, const std::vector<NodePtr>& by) {
    GradientGraph graph = gradient_graph(of, by);
    return std::make_tuple(graph.of, graph.by, graph.are_reached, graph.left);
  });
  module.def("substituted", &substituted);
  module.def("keep_histories", &keep_histories);
  module.def("planners", [] {
    std::vector<std::pair<std::string, std::string>> planners;
    for (const api::PlannerInfo& planner : api::planners()) planners.emplace_back(planner.name, planner.summary);
    return planners;
  });
  module.def(
      "calibrate",
      [](std::optional<std::size_t> threads) {
        const std::optional<api::Ranks> all = ranks();
        const nb::gil_scoped_release release;
        return api::calibrate(threads, all);
      },
      nb::arg("threads").none() = nb::none());
  module.def("calibrate_database", &calibrate_database, nb::arg("database"));
  module.def("rank", [] { return ranks() ? ranks()->rank() : 0; });
  module.def("ranks", [] { return ranks() ? ranks()->count() : 1; });
  module.def("end_ranks", [](int exit_code) {
    if (ranks_if_started()) ranks_if_started()->end_all(exit_code);
  });
  module.def("forked", &forked);
  module.def("end_runs", &end_runs);
}

}  // namespace einrel::python
