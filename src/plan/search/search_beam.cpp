#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_set>

#include "einsum/graph/vertex_facts.h"
#include "plan/search/search_tables.h"

namespace einrel::search {
namespace {

/// Where what is still to be read lies: a result for each vertex that is open.
using Open = std::vector<std::uint32_t>;

struct HashOfOpen {
  std::size_t operator()(const Open& open) const {
    std::size_t hash = open.size();
    for (const std::uint32_t result : open) hash = (hash ^ result) * 0x9E3779B97F4A7C15U;
    return hash;
  }
};

/// The cheapest plan found of the vertices so far that leaves them so.
struct State {
  double cost = 0;
  Open open;
};

/// How a state came about, for going back.
struct Step {
  double cost = 0;              ///< of all with it
  std::uint32_t before = 0;     ///< of the states before
  std::uint32_t candidate = 0;  ///< of the vertex
};

class Beam {
 public:
  Beam(const Tables& tables, std::size_t most_steps)
      : t_(tables), most_steps_(most_steps), last_reader_(t_.graph.vertices.size(), 0) {
    for (const Edge& edge : t_.edges)
      last_reader_[edge.producer] = std::max(last_reader_[edge.producer], edge.consumer);
  }

  Choice run() {
    std::vector<State> states{{}};
    for (std::size_t v = 0; v < t_.graph.vertices.size(); ++v) {
      if (t_.is_input(v)) continue;
      open_inputs(v, states);
      states = after(v, states);
    }
    return way();
  }

 private:
  static constexpr std::uint32_t unknown = std::numeric_limits<std::uint32_t>::max();

  /// Shared inputs that nobody has read yet lie nowhere until their first reader says where.
  void open_inputs(std::size_t v, std::vector<State>& states) {
    for (const std::size_t e : t_.edges_to[v]) {
      const std::size_t producer = t_.edges[e].producer;
      if (!t_.is_shared_input(producer) || place_of(producer) != open_.size()) continue;
      open_.push_back(producer);
      for (State& state : states) state.open.push_back(unknown);
    }
  }

  std::size_t place_of(std::size_t v) const {
    return static_cast<std::size_t>(std::find(open_.begin(), open_.end(), v) - open_.begin());
  }

  /// One producer of the vertex at hand.
  struct Reading {
    const Edge* edge = nullptr;
    std::size_t place = 0;         ///< among the open; behind them for an input that lies anywhere
    std::vector<double> anywhere;  ///< per need, from the best place
    std::vector<std::uint32_t> best;
  };

  /// What becomes of the open vertices when v is planned.
  struct Opening {
    std::vector<std::size_t> kept;  ///< of what was open
    std::vector<std::size_t> open;
    bool keeps_result = false;
  };

  Opening opening_after(std::size_t v) const {
    Opening opening;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (last_reader_[open_[i]] <= v) continue;
      opening.kept.push_back(i);
      opening.open.push_back(open_[i]);
    }
    opening.keeps_result = last_reader_[v] > v;
    if (opening.keeps_result) opening.open.push_back(v);
    return opening;
  }

  /// The states when v is planned, too: of those that leave what is open alike the cheapest, and of these as many as
  /// there may be. What comes after it is never looked at.
  std::vector<State> after(std::size_t v, const std::vector<State>& states) {
    readings_.clear();
    for (const std::size_t e : t_.edges_to[v]) readings_.push_back(reading_of(t_.edges[e]));
    std::vector<Step> steps;
    for (std::uint32_t s = 0; s < states.size(); ++s) add_worthwhile(v, states[s], s, steps);
    std::make_heap(steps.begin(), steps.end(), comes_after);
    // The next vertex decides how many there may be; about the same for all is good enough.
    const std::size_t most = std::clamp<std::size_t>(most_steps_ / t_.of_class(v).candidates.size(), 16, 2048);
    const Opening opening = opening_after(v);
    std::unordered_set<Open, HashOfOpen> known;
    std::vector<State> next;
    planned_.push_back(v);
    steps_.emplace_back();
    while (!steps.empty() && next.size() < most) {
      std::pop_heap(steps.begin(), steps.end(), comes_after);
      const Step step = steps.back();
      steps.pop_back();
      const auto [left, is_new] = known.insert(left_open(v, opening, states[step.before], step.candidate));
      if (!is_new) continue;
      next.push_back({step.cost, *left});
      steps_.back().push_back(step);
    }
    open_ = opening.open;
    return next;
  }

  static bool comes_after(const Step& a, const Step& b) {
    return std::tie(a.cost, a.before, a.candidate) > std::tie(b.cost, b.before, b.candidate);
  }

  Reading reading_of(const Edge& edge) const {
    Reading reading{&edge, place_of(edge.producer), {}, {}};
    if (!t_.is_shared_input(edge.producer)) return reading;
    const std::size_t results = t_.of_class(edge.producer).results.size();
    reading.anywhere.assign(edge.table->needs, infinity);
    reading.best.assign(edge.table->needs, 0);
    for (std::uint32_t r = 0; r < results; ++r) {
      for (std::size_t need = 0; need < edge.table->needs; ++need) {
        if ((*edge.table)(r, need) >= reading.anywhere[need]) continue;
        reading.anywhere[need] = (*edge.table)(r, need);
        reading.best[need] = r;
      }
    }
    return reading;
  }

  /// Adds the candidates of v that may lead to the best plan from a state, and what all costs with them: one for each
  /// result, or all where an input's place depends on them.
  void add_worthwhile(std::size_t v, const State& state, std::uint32_t number, std::vector<Step>& steps) const {
    const VertexClass& own = t_.of_class(v);
    std::vector<const double*> rows;
    bool places_input = false;
    for (const Reading& reading : readings_) {
      const std::uint32_t result = reading.place < open_.size() ? state.open[reading.place] : 0;
      places_input = places_input || result == unknown;
      rows.push_back(result == unknown ? reading.anywhere.data()
                                       : reading.edge->table->costs.data() + result * reading.edge->table->needs);
    }
    const std::size_t first = steps.size();
    if (!places_input) steps.resize(first + own.results.size(), {infinity, number, 0});
    for (std::uint32_t c = 0; c < own.candidates.size(); ++c) {
      double cost = state.cost + own.costs[c];
      for (std::size_t i = 0; i < rows.size(); ++i) cost += rows[i][own.sources[i].need_of[c]];
      if (places_input) {
        steps.push_back({cost, number, c});
      } else if (Step& best = steps[first + own.result_of[c]]; cost < best.cost) {
        best = {cost, number, c};
      }
    }
  }

  Open left_open(std::size_t v, const Opening& opening, const State& state, std::uint32_t candidate) const {
    const VertexClass& own = t_.of_class(v);
    Open left;
    left.reserve(opening.open.size());
    for (const std::size_t place : opening.kept) {
      std::uint32_t result = state.open[place];
      for (std::size_t i = 0; i < readings_.size() && result == unknown; ++i) {
        if (readings_[i].place == place) result = readings_[i].best[own.sources[i].need_of[candidate]];
      }
      left.push_back(result);
    }
    if (opening.keeps_result) left.push_back(static_cast<std::uint32_t>(own.result_of[candidate]));
    return left;
  }

  /// That the cheapest plan of all was found on.
  Choice way() const {
    Choice choice(t_.graph.vertices.size(), 0);
    std::size_t at = 0;
    for (std::size_t i = planned_.size(); i-- > 0;) {
      choice[planned_[i]] = steps_[i][at].candidate;
      at = steps_[i][at].before;
    }
    lay_out_inputs(choice);
    return choice;
  }

  void lay_out_inputs(Choice& choice) const {
    for (std::size_t v = 0; v < choice.size(); ++v) {
      if (!t_.is_shared_input(v)) continue;
      std::vector<double> costs(t_.of_class(v).results.size(), 0);
      for (const std::size_t e : t_.edges_from[v]) {
        const std::size_t need = t_.need_at(t_.edges[e], choice);
        for (std::size_t r = 0; r < costs.size(); ++r) costs[r] += (*t_.edges[e].table)(r, need);
      }
      choice[v] = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
  }

  const Tables& t_;
  std::size_t most_steps_;
  std::vector<std::size_t> last_reader_;
  std::vector<std::size_t> open_;
  std::vector<Reading> readings_;  ///< of the vertex at hand
  std::vector<std::size_t> planned_;
  std::vector<std::vector<Step>> steps_;  ///< per planned vertex and state
};

}  // namespace

Choice plan_with_beam(const Tables& tables, std::size_t most_steps) { return Beam(tables, most_steps).run(); }

}  // namespace einrel::search
