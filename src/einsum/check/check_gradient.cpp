#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "einsum/check/check_state.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/gradient/gradient.h"

namespace einrel::checking {
namespace {

/// Checks one gradient statement and adds the vertices that compute it.
class GradientChecker {
 public:
  GradientChecker(CheckState& state, const build::Gradient& gradient, Span where)
      : state_(state), gradient_(gradient), where_(where) {}

  void run() {
    check_count();
    of_ = differentiable(gradient_.loss, "what is differentiated");
    for (const build::Name& variable : gradient_.variables) variables_.push_back(checked_variable(variable));
    check_twice();
    if (of_) check_seed();
    const bool is_right = state_.errors.size() == state_.gradients_of_nothing;
    if (is_right && is_known() && are_extents_known()) return differentiate();
    for (std::size_t r = 0; r < gradient_.results.size(); ++r) define_unknown(r);
  }

 private:
  void check_count() {
    const std::size_t results = gradient_.results.size();
    const std::size_t variables = gradient_.variables.size();
    if (results == variables) return;
    state_.error(fmt::format("{} for {}", counted(results, "gradient"), counted(variables, "tensor")), {where_},
                 "name one gradient for each tensor behind 'wrt'");
  }

  void check_twice() {
    for (auto name = gradient_.variables.begin(); name != gradient_.variables.end(); ++name) {
      const auto same = [&](const build::Name& other) { return other.text == name->text; };
      const auto first = std::find_if(gradient_.variables.begin(), name, same);
      if (first != name)
        state_.error(fmt::format("'{}' stands twice behind 'wrt'", name->text), {name->span, first->span},
                     "remove one");
    }
  }

  /// A tensor of floats; nullptr with an error where it is none. Who wants only its gradient has not read it.
  TensorInfo* differentiable(const build::Name& name, std::string_view what) {
    const auto known = state_.tensors.find(name.text);
    const bool was_read = known != state_.tensors.end() && known->second.read;
    TensorInfo* const tensor = find_tensor(state_, name);
    if (tensor == nullptr) return nullptr;
    tensor->read = was_read;
    if (tensor->broken) return nullptr;
    if (is_float(tensor->dtype)) return tensor;
    state_.error(fmt::format("'{}' is {}, but {} has to be of a float type", name.text, name_of(tensor->dtype), what),
                 {name.span, tensor->where}, "nothing grows by small steps there; convert first, for example f32(...)");
    return nullptr;
  }

  bool is_scalar(const build::Name& name) {
    if (state_.tensor_names.count(name.text) != 0 || state_.scalars.count(name.text) == 0) return false;
    state_.error(
        fmt::format("'{}' is a scalar, and gradients are taken of tensors, with respect to tensors", name.text),
        {name.span}, fmt::format("declare it as a tensor without labels: input {0}[], read as {0}[]", name.text));
    return true;
  }

  TensorInfo* checked_variable(const build::Name& name) {
    return is_scalar(name) ? nullptr : differentiable(name, "what it is differentiated by");
  }

  void check_seed() {
    if (!gradient_.seed) {
      if (of_->extents.empty()) return;
      if (of_->is_complex) {
        state_.error(fmt::format("'{}' is complex, but a gradient is that of one real number", gradient_.loss.text),
                     {gradient_.loss.span}, "take real(x), imag(x) or abs(x) of it");
        return;
      }
      state_.error(fmt::format("'{}' has {}, but a gradient is that of one number", gradient_.loss.text,
                               counted(of_->extents.size(), "dimension")),
                   {gradient_.loss.span, of_->where},
                   fmt::format("reduce it first, for example by sum; or say what flows back into it: gradient ... = {} "
                               "wrt ... given S, where S has its shape",
                               gradient_.loss.text));
      return;
    }
    seed_ = is_scalar(*gradient_.seed) ? nullptr : differentiable(*gradient_.seed, "what flows back");
    if (seed_ == nullptr) return;
    seed_->read = true;
    bool fits = seed_->extents.size() == of_->extents.size();
    for (std::size_t d = 0; fits && d < seed_->extents.size(); ++d)
      fits = !seed_->extents[d] || !of_->extents[d] || seed_->extents[d] == of_->extents[d];
    if (fits) return;
    state_.error(fmt::format("'{}' has not the shape of '{}'", gradient_.seed->text, gradient_.loss.text),
                 {gradient_.seed->span, seed_->where}, "what flows back into a tensor has its shape");
  }

  /// Whether everything that is named has been defined.
  bool is_known() const {
    const bool has_seed = !gradient_.seed || seed_ != nullptr;
    return of_ != nullptr && has_seed && std::find(variables_.begin(), variables_.end(), nullptr) == variables_.end();
  }

  /// The extents of everything that the gradient is computed from; an unknown one has been said to be so.
  bool are_extents_known() const {
    const EinGraph& graph = state_.builder.graph();
    return std::all_of(graph.vertices.begin(), graph.vertices.end(), [](const Vertex& vertex) {
      const std::vector<Extent> extents = label_extents(vertex);
      const auto is_open = [](Extent extent) { return extent == Extent::open(); };
      return std::none_of(extents.begin(), extents.end(), is_open) &&
             std::none_of(vertex.bound.begin(), vertex.bound.end(), is_open);
    });
  }

  /// A gradient whose formula cannot be found, or not yet. Those who read it are not blamed for that.
  void define_unknown(std::size_t r) {
    TensorInfo info;
    info.where = gradient_.results[r].span;
    info.broken = r >= variables_.size() || variables_[r] == nullptr;
    if (!info.broken) {
      info.extents = variables_[r]->extents;
      info.dtype = variables_[r]->dtype;
      Shape bound;
      for (const MaybeExtent& extent : info.extents) bound.push_back(extent_or_open(extent));
      info.vertex = state_.builder.add({gradient_.results[r].text, info.dtype, bound, {}, Input{}, where_});
    }
    state_.tensors.insert({gradient_.results[r].text, std::move(info)});
  }

  void differentiate() {
    gradient::Request request;
    request.of = of_->vertex;
    if (seed_ != nullptr) request.seed = seed_->vertex;
    for (const TensorInfo* const variable : variables_) {
      request.variables.push_back(variable->vertex);
      request.labels.push_back(variable->labels);
      request.labels.back().resize(variable->extents.size());
    }
    try {
      define_results(request, adjoints(request, growing_graph()));
    } catch (const UserError& too_large) {
      state_.error(
          too_large.what(), {where_},
          "gradients of gradients grow by a factor with each level: take fewer levels, or of shorter statements");
      for (std::size_t r = 0; r < gradient_.results.size(); ++r) define_unknown(r);
    }
  }

  void define_results(const gradient::Request& request, const gradient::Adjoints& found) {
    for (std::size_t r = 0; r < gradient_.results.size(); ++r) {
      if (found.of_variables[r]) {
        define(r, *found.of_variables[r]);
      } else {
        report_nothing(r, request, found);
        define_unknown(r);
      }
    }
  }

  gradient::GrowingGraph growing_graph() {
    gradient::GrowingGraph growing{state_.builder.graph(), {}, {}, {}, {}};
    growing.find = [&](const std::string& name) { return *state_.builder.find(name); };
    growing.define = [&](const gradient::Definition& made) { return define(made, false); };
    growing.add = [&](Vertex vertex) {
      vertex.where = where_;
      const std::string base = vertex.name;
      return state_.builder.find_or_add(std::move(vertex), base, state_.tensor_names);
    };
    for (const auto& [name, scalar] : state_.scalars) growing.reserved.insert(name);
    return growing;
  }

  VertexId define(const gradient::Definition& made, bool is_named) {
    constexpr double most_operations = 200'000;  // as a statement with its macros
    constexpr double most_per_written = 50;      // of a long program
    state_.made_operations += build::operations_of(made.value);
    if (state_.made_operations > std::max(most_operations, most_per_written * state_.written_operations)) {
      throw UserError(fmt::format("the gradients of this program expand to more than {:.0f} operations",
                                  std::max(most_operations, most_per_written * state_.written_operations)));
    }
    const build::Definition definition{{made.name, made.where}, build::names(made.labels), build::expr_of(made.value)};
    return check_made(state_, definition, where_, {made.extents, is_named});
  }

  void define(std::size_t r, const gradient::Adjoint& adjoint) {
    const build::Name& name = gradient_.results[r];
    TensorInfo info = *variables_[r];
    const bool rounds = is_narrow(info.dtype) && state_.unnamed.count(name.text) == 0;
    const build::Formula value = rounds ? build::cast(info.dtype, adjoint.value) : adjoint.value;
    info.vertex = define({name.span, name.text, adjoint.labels, value, adjoint.extents}, true);
    info.where = name.span;
    info.read = false;
    state_.tensors.insert({name.text, std::move(info)});
  }

  /// Why a gradient is 0 everywhere: the loss is not computed from the variable, or nothing flows back through what is.
  void report_nothing(std::size_t variable, const gradient::Request& request, const gradient::Adjoints& found) {
    ++state_.gradients_of_nothing;
    const EinGraph& graph = state_.builder.graph();
    const build::Name& name = gradient_.variables[variable];
    const std::vector<bool> depends = gradient::depend_on(graph, {request.variables[variable]});
    if (!depends[request.of.index]) {
      state_.error(fmt::format("'{}' does not depend on '{}'", gradient_.loss.text, name.text), {name.span},
                   "a gradient needs a way from one to the other");
      return;
    }
    const auto blocked = std::find_if(found.blocked.begin(), found.blocked.end(),
                                      [&](const auto& way) { return depends[way.second.index]; });
    std::string through;
    if (blocked != found.blocked.end()) through = fmt::format(" through '{}'", graph[blocked->first].name);
    state_.error(
        fmt::format("the gradient of '{}' is 0 everywhere: nothing flows back to '{}'{}", gradient_.loss.text,
                    name.text, through),
        {name.span},
        "comparisons, argmax, step, floor and integers change by jumps alone, and what stop_gradient or a factor "
        "of 0 holds back does not change; compute the way from one to the other without them");
  }

  CheckState& state_;
  const build::Gradient& gradient_;
  Span where_;
  TensorInfo* of_ = nullptr;
  TensorInfo* seed_ = nullptr;
  std::vector<TensorInfo*> variables_;
};

}  // namespace

void check_gradient(CheckState& state, const build::Gradient& gradient, Span where) {
  state.current = gradient.results.front().text;
  std::vector<std::string> variables;
  for (const build::Name& variable : gradient.variables) variables.push_back(variable.text);
  run_pass(state, "gradient", fmt::format("{} by {}", gradient.loss.text, fmt::join(variables, ", ")),
           [&] { GradientChecker(state, gradient, where).run(); });
}

}  // namespace einrel::checking
