#include "export/layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"

namespace einrel {
namespace {

using StepList = std::vector<DeviceStep>;

/// By value that steps give, the place of the step.
using Givers = std::unordered_map<std::size_t, std::size_t>;

Givers givers_of(const StepList& steps) {
  Givers givers;
  for (std::size_t s = 0; s < steps.size(); ++s) givers[steps[s].gives] = s;
  return givers;
}

/// Nothing of values from elsewhere.
std::optional<std::size_t> giver(const Givers& givers, std::size_t value) {
  const auto found = givers.find(value);
  return found == givers.end() ? std::nullopt : std::optional(found->second);
}

class LayerFinder {
 public:
  LayerFinder(const EinGraph& graph, const Plan& plan, const DeviceSteps& program, const std::set<std::size_t>& kept)
      : graph_(graph), plan_(plan), program_(program), kept_(kept), readers_(program.tensors.size()) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      if (!program.steps[s].move) computing_[program.steps[s].vertex] = s;
      for (const std::size_t value : program.steps[s].reads) readers_[value].push_back(s);
    }
  }

  std::vector<std::variant<DeviceStep, Layer>> find(const Folding& folding) {
    std::size_t at = 0;
    for (const FoldedGroup& group : folding.groups) {
      std::size_t first = computing_.at(group.vertices.front());
      while (first > 0 && program_.steps[first - 1].move) --first;
      add(steps_between(at, first));
      at = first;
      std::vector<StepList> times;
      for (std::size_t time = 0; time < group.times; ++time) {
        const std::size_t begin = at;
        for (std::size_t computed = 0; computed < group.vertices.size(); ++at)
          computed += program_.steps[at].move ? 0U : 1U;
        times.push_back(steps_between(begin, at));
      }
      add_group(std::move(times));
    }
    add(steps_between(at, program_.steps.size()));
    return std::move(found_);
  }

 private:
  StepList steps_between(std::size_t begin, std::size_t end) const {
    return {program_.steps.begin() + static_cast<std::ptrdiff_t>(begin),
            program_.steps.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  void add(const StepList& steps) { found_.insert(found_.end(), steps.begin(), steps.end()); }

  void add_group(std::vector<StepList> times) {
    move_shared_before(times);
    for (std::size_t first = 0; first < times.size();) {
      std::size_t next = first + 1;
      if (next < times.size()) move_others_before(times[first], times[next]);
      while (next < times.size() && are_alike(times[first], times[next])) ++next;
      if (next == first + 1) {
        add(times[first]);
      } else {
        found_.emplace_back(layer(
            {times.begin() + static_cast<std::ptrdiff_t>(first), times.begin() + static_cast<std::ptrdiff_t>(next)}));
      }
      first = next;
    }
  }

  /// What comes from before all times, and is moved in one and read in another, too.
  void move_shared_before(std::vector<StepList>& times) {
    std::unordered_map<std::size_t, std::size_t> given;  // value: the time
    for (std::size_t time = 0; time < times.size(); ++time) {
      for (const DeviceStep& step : times[time]) given[step.gives] = time;
    }
    for (StepList& steps : times) {
      std::set<std::size_t> shared;
      for (std::size_t s = steps.size(); s-- > 0;) {
        if (steps[s].move && (is_read_in_another(steps[s].gives, given) || shared.count(steps[s].gives) != 0))
          shared.insert({steps[s].gives, steps[s].reads.front()});
      }
      StepList stay;
      for (DeviceStep& step : steps) {
        if (step.move && shared.count(step.gives) != 0 && given.count(step.reads.front()) == 0) {
          given.erase(step.gives);
          found_.emplace_back(std::move(step));
        } else {
          stay.push_back(std::move(step));
        }
      }
      steps = std::move(stay);
    }
  }

  /// Whether another time reads what one gives.
  bool is_read_in_another(std::size_t value, const std::unordered_map<std::size_t, std::size_t>& given) const {
    return std::any_of(readers_[value].begin(), readers_[value].end(), [&](std::size_t reader) {
      const auto time = given.find(program_.steps[reader].gives);
      return time != given.end() && time->second != given.at(value);
    });
  }

  /// What comes from before, is moved in `steps`, and not in `next`, where these are the same then.
  void move_others_before(StepList& steps, const StepList& next) {
    if (are_alike(steps, next)) return;
    const Givers own = givers_of(steps);
    StepList before;
    StepList stay;
    for (const DeviceStep& step : steps) {
      const bool is_there = stay.size() < next.size() && next[stay.size()].move == step.move;
      const bool comes_in = step.move && own.count(step.reads.front()) == 0;
      (comes_in && !is_there ? before : stay).push_back(step);
    }
    if (!are_alike(stay, next)) return;
    add(before);
    steps = std::move(stay);
  }

  bool are_alike(const StepList& one, const StepList& other) const {
    if (one.size() != other.size()) return false;
    const Givers own = givers_of(one);
    const Givers others = givers_of(other);
    for (std::size_t s = 0; s < one.size(); ++s) {
      if (!is_same(one[s], other[s])) return false;
      for (std::size_t r = 0; r < one[s].reads.size(); ++r) {
        if (giver(own, one[s].reads[r]) != giver(others, other[s].reads[r])) return false;
      }
    }
    return true;
  }

  /// Whether they do the same with what they read.
  bool is_same(const DeviceStep& one, const DeviceStep& other) const {
    if (one.move != other.move) return false;
    const Vertex& a = graph_.vertices[one.vertex];
    const Vertex& b = graph_.vertices[other.vertex];
    if (one.move) return a.dtype == b.dtype && a.bound == b.bound;
    return plan_.vertices[one.vertex] == plan_.vertices[other.vertex] && key_of(a) == key_of(b);
  }

  std::string key_of(const Vertex& vertex) const {
    ByteKey key;
    put_computation_of_inputs(key, without_parameters(vertex), graph_);
    return key.take();
  }

  Layer layer(const std::vector<StepList>& times) const {
    const StepList& steps = times.front();
    std::vector<Givers> givers;
    for (const StepList& each : times) givers.push_back(givers_of(each));
    const Givers& first = givers.front();
    Layer layer{{}, 0, {}, std::vector<std::vector<std::size_t>>(times.size()), {}, {}};
    std::map<std::vector<std::size_t>, std::size_t> arguments;  // values of all times
    const auto values_read = [&](std::size_t s, std::size_t r) {
      std::vector<std::size_t> values;
      for (const StepList& each : times) values.push_back(each[s].reads[r]);
      return values;
    };
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t r = 0; r < steps[s].reads.size(); ++r) {
        if (giver(first, steps[s].reads[r])) continue;
        const std::vector<std::size_t> values = values_read(s, r);
        if (!arguments.emplace(values, arguments.size()).second) continue;
        for (std::size_t time = 0; time < times.size(); ++time) layer.values[time].push_back(values[time]);
      }
    }
    layer.arguments = arguments.size();
    for (std::size_t s = 0; s < steps.size(); ++s) {
      DeviceStep step = steps[s];
      step.gives = layer.arguments + s;
      for (std::size_t r = 0; r < step.reads.size(); ++r) {
        const std::optional<std::size_t> own = giver(first, step.reads[r]);
        step.reads[r] = own ? layer.arguments + *own : arguments.at(values_read(s, r));
      }
      layer.steps.push_back(std::move(step));
      for (std::size_t time = 0; time < times.size(); ++time) layer.values[time].push_back(times[time][s].gives);
      bool is_result = false;
      for (std::size_t time = 0; time < times.size(); ++time)
        is_result = is_result || is_read_outside(givers[time], times[time][s].gives);
      if (is_result) layer.results.push_back(layer.arguments + s);
    }
    for (std::size_t s = 0; s < steps.size(); ++s) layer.takes.push_back(taken(times, s, layer.parameters));
    return layer;
  }

  /// Of each place of a step's formula the parameter, which is added where it is a new one.
  std::vector<std::size_t> taken(const std::vector<StepList>& times, std::size_t s,
                                 std::vector<std::vector<VertexParameter>>& parameters) const {
    if (times.front()[s].move) return {};
    std::vector<std::vector<VertexParameter>> places;  // by the time
    for (const StepList& each : times) {
      const std::vector<VertexParameter> of_time = parameters_of(graph_.vertices[each[s].vertex]);
      places.resize(of_time.size());
      for (std::size_t p = 0; p < of_time.size(); ++p) places[p].push_back(of_time[p]);
    }
    std::vector<std::size_t> taken;
    for (std::vector<VertexParameter>& place : places) {
      const auto known = std::find(parameters.begin(), parameters.end(), place);
      taken.push_back(static_cast<std::size_t>(known - parameters.begin()));
      if (known == parameters.end()) parameters.push_back(std::move(place));
    }
    return taken;
  }

  bool is_read_outside(const Givers& own, std::size_t value) const {
    return kept_.count(value) != 0 ||
           std::any_of(readers_[value].begin(), readers_[value].end(),
                       [&](std::size_t reader) { return own.count(program_.steps[reader].gives) == 0; });
  }

  const EinGraph& graph_;
  const Plan& plan_;
  const DeviceSteps& program_;
  const std::set<std::size_t>& kept_;
  std::vector<std::vector<std::size_t>> readers_;  // per value: steps
  std::map<std::size_t, std::size_t> computing_;   // vertex: the step
  std::vector<std::variant<DeviceStep, Layer>> found_;
};

}  // namespace

std::vector<std::variant<DeviceStep, Layer>> with_layers(const EinGraph& graph, const Plan& plan,
                                                         const DeviceSteps& program, const Folding& folding,
                                                         const std::set<std::size_t>& kept) {
  return LayerFinder(graph, plan, program, kept).find(folding);
}

}  // namespace einrel
