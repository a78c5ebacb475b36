#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/fusion.h"
#include "kernel/fusion/products.h"
#include "kernel/fusion/share.h"
#include "kernel/fusion/slab.h"

namespace einrel {
namespace {

/// Longer ones gain nothing more, and the search stays linear.
constexpr std::size_t most_members = 32;
constexpr std::size_t longest_span = 128;
/// That are tried for one fusion.
constexpr std::size_t most_products = 4;

/// Of what lies between the members; beyond it nothing stays in a cache anyway.
constexpr std::int64_t most_slab_bytes = least_large_bytes;

/// Members of a growing fusion, and every way of cutting it: per member a dimension.
struct Group {
  std::vector<std::size_t> members;
  std::vector<std::vector<std::size_t>> cuts;
};

bool is_plain(const Index& index, std::size_t label) {
  return index.offset == 0 && index.terms.size() == 1 && index.terms[0] == IndexTerm{1, label};
}

/// Whether the index of a padded access may leave an operand of this extent for some value of the label.
bool is_guarded(const Index& index, const EinSum& einsum, std::size_t label, Extent extent) {
  return mentions(index, label) && !(is_plain(index, label) && einsum.labels[label].extent <= extent);
}

/// Whether an EinSum can be computed for a range of one of its labels by shifting where arrays begin: no value and no
/// bound that is checked depends on the label.
bool can_be_cut(const EinGraph& graph, const Vertex& vertex, const EinSum& einsum, std::size_t label) {
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    const Access& access = einsum.operands[o];
    const Shape& bound = graph[vertex.inputs[o]].bound;
    for (std::size_t d = 0; access.pad && d < bound.size(); ++d) {
      if (is_guarded(access.indices[d], einsum, label, bound[d])) return false;
    }
  }
  return !reads_label(einsum.body, label);
}

class Finder {
 public:
  explicit Finder(const EinGraph& graph) : graph_(graph), group_of_(graph.vertices.size()) {
    for (const ScalarDeclaration& scalar : graph.scalars) scalars_.emplace(scalar.name, &scalar);
    readers_.resize(graph.vertices.size());
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      for (const VertexId input : graph.vertices[v].inputs) readers_[input.index].push_back(v);
    }
  }

  std::vector<Fusion> run() {
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      if (is_light(graph_, graph_.vertices[v])) add(v, std::get<EinSum>(graph_.vertices[v].op));
    }
    std::vector<Fusion> fusions;
    for (auto& [id, group] : groups_) {
      sort_cuts(group);
      std::optional<Fusion> fusion = with_products(group);
      if (!fusion && group.members.size() > 1) fusion = fusion_of(group);
      if (fusion) fusions.push_back(*std::move(fusion));
    }
    return fusions;
  }

 private:
  void add(std::size_t v, const EinSum& einsum) {
    std::vector<std::size_t> producers;  // groups
    for (const VertexId input : graph_.vertices[v].inputs) {
      const auto group = group_of_[input.index];
      if (group && std::find(producers.begin(), producers.end(), *group) == producers.end())
        producers.push_back(*group);
    }
    std::optional<Group> joined = join(v, einsum, producers);
    for (auto one = producers.rbegin(); one != producers.rend() && !joined; ++one) {
      joined = join(v, einsum, {*one});
      if (joined) producers = {*one};
    }
    if (!joined) {
      producers.clear();
      joined = join(v, einsum, {});
    }
    if (!joined) return;
    for (const std::size_t producer : producers) groups_.erase(producer);
    for (const std::size_t member : joined->members) group_of_[member] = v;
    groups_[v] = std::move(*joined);
  }

  /// These groups and v as one; nullopt when there is no common cut or something else must run in between.
  std::optional<Group> join(std::size_t v, const EinSum& einsum, const std::vector<std::size_t>& producers) const {
    Group all;
    for (const std::size_t producer : producers) {
      const Group& group = groups_.at(producer);
      all.members.insert(all.members.end(), group.members.begin(), group.members.end());
    }
    all.members.push_back(v);
    if (all.members.size() > most_members || !runs_undisturbed(all.members)) return std::nullopt;
    for (std::size_t d = 0; d < einsum.output.size(); ++d) {
      const std::size_t label = einsum.output[d];
      if (!can_be_cut(graph_, graph_.vertices[v], einsum, label) || einsum.labels[label].extent.value() < 2) continue;
      std::vector<std::size_t> cut;
      const bool fits = std::all_of(producers.begin(), producers.end(), [&](std::size_t producer) {
        const auto of_group = cut_for(groups_.at(producer), v, label);
        if (of_group) cut.insert(cut.end(), of_group->begin(), of_group->end());
        return of_group.has_value();
      });
      if (!fits) continue;
      cut.push_back(d);
      all.cuts.push_back(std::move(cut));
    }
    if (all.cuts.empty()) return std::nullopt;
    return all;
  }

  /// The cut of the group that gives a reader, for a range of its label, exactly what it reads.
  std::optional<std::vector<std::size_t>> cut_for(const Group& group, std::size_t reading, std::size_t label) const {
    const Vertex& reader = graph_.vertices[reading];
    const auto& einsum = std::get<EinSum>(reader.op);
    const auto gives_all = [&](const std::vector<std::size_t>& cut) {
      for (std::size_t o = 0; o < reader.inputs.size(); ++o) {
        const auto member = std::find(group.members.begin(), group.members.end(), reader.inputs[o].index);
        if (member == group.members.end()) continue;
        const std::size_t slabbed = cut[static_cast<std::size_t>(member - group.members.begin())];
        // A padded access may have fewer positions than there are.
        if (graph_[reader.inputs[o]].bound[slabbed] != einsum.labels[label].extent) return false;
        const std::vector<Index>& indices = einsum.operands[o].indices;
        for (std::size_t d = 0; d < indices.size(); ++d) {
          if (d == slabbed ? !is_plain(indices[d], label) : mentions(indices[d], label)) return false;
        }
      }
      return true;
    };
    const auto found = std::find_if(group.cuts.begin(), group.cuts.end(), gives_all);
    return found == group.cuts.end() ? std::nullopt : std::optional(*found);
  }

  /// Whether all can run where the last one stands: nothing before it depends on them.
  bool runs_undisturbed(const std::vector<std::size_t>& members) const {
    const auto [first, last] = std::minmax_element(members.begin(), members.end());
    if (*last - *first > longest_span) return false;
    const std::set<std::size_t> all(members.begin(), members.end());
    for (const std::size_t member : members) {
      for (const std::size_t reader : readers_[member]) {
        if (reader < *last && all.count(reader) == 0) return false;
      }
    }
    return true;
  }

  /// The group, and the products that nobody else reads: computed slab by slab as well, they never reach the memory.
  /// Nothing where there is none for which that pays.
  std::optional<Fusion> with_products(Group group) const {
    std::optional<Fusion> best;
    std::set<std::size_t> tried;
    for (std::size_t m = 0; m < group.members.size() && tried.size() < most_products; ++m) {
      for (const VertexId input : graph_.vertices[group.members[m]].inputs) {
        if (!is_short_product(graph_, graph_[input]) || !tried.insert(input.index).second) continue;
        std::optional<Group> larger = with_product(group, input.index);
        std::optional<Fusion> fusion = larger ? fusion_that_pays(*larger) : std::nullopt;
        if (!fusion) continue;
        group = *std::move(larger);
        best = std::move(fusion);
      }
    }
    return best;
  }

  /// Cut in the best way for which it pays, or nothing.
  std::optional<Fusion> fusion_that_pays(Group& group) const {
    for (sort_cuts(group); !group.cuts.empty(); group.cuts.erase(group.cuts.begin())) {
      std::optional<Fusion> fusion = fusion_of(group);
      if (fusion && pays(*fusion)) return fusion;
    }
    return std::nullopt;
  }

  std::optional<Group> with_product(const Group& group, std::size_t product) const {
    const Vertex& vertex = graph_.vertices[product];
    const auto is_member = [&](std::size_t v) {
      return std::find(group.members.begin(), group.members.end(), v) != group.members.end();
    };
    const std::vector<std::size_t>& readers = readers_[product];
    if (is_output(product) || keeps_much(product)) return std::nullopt;
    if (!std::all_of(readers.begin(), readers.end(), is_member)) return std::nullopt;
    const auto& einsum = std::get<EinSum>(vertex.op);
    Group all{group.members, {}};
    all.members.push_back(product);
    if (all.members.size() > most_members || !runs_undisturbed(all.members)) return std::nullopt;
    for (const std::vector<std::size_t>& cut : group.cuts) {
      for (std::size_t d = 0; d < einsum.output.size(); ++d) {
        if (!can_be_cut(graph_, vertex, einsum, einsum.output[d]) || !is_cut_with(group, cut, product, d)) continue;
        all.cuts.push_back(cut);
        all.cuts.back().push_back(d);
        break;
      }
    }
    if (all.cuts.empty()) return std::nullopt;
    return all;
  }

  /// Whether what would be gone after a product is more than its result, which would be there instead: a fusion runs
  /// later than the product by itself would.
  bool keeps_much(std::size_t product) const {
    double bytes = 0;
    for (const VertexId input : graph_.vertices[product].inputs) {
      const bool is_last = readers_[input.index].back() == product && !is_output(input.index);
      if (is_last && !is_input(graph_[input])) bytes += result_bytes(graph_[input]);
    }
    return bytes > result_bytes(graph_.vertices[product]);
  }

  /// Whether all members of a group that is cut like that read, slab by slab, what a cut of this dimension gives.
  bool is_cut_with(const Group& group, const std::vector<std::size_t>& cut, std::size_t producer,
                   std::size_t dimension) const {
    const Group alone{{producer}, {{dimension}}};
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      const std::size_t member = group.members[m];
      const auto& einsum = std::get<EinSum>(graph_.vertices[member].op);
      if (!cut_for(alone, member, einsum.output[cut[m]])) return false;
    }
    return true;
  }

  /// Cut along the first of its cuts, and inside of that along the next ones, until slabs fit into the cache. Nothing
  /// where they stay too large for any gain.
  std::optional<Fusion> fusion_of(const Group& group) const {
    const std::vector<std::vector<std::size_t>>& cuts = group.cuts;
    for (std::size_t count = 1;; ++count) {
      Fusion fusion = fusion_of(group, {cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(count)});
      const std::int64_t bytes = slab_bytes(fusion);
      if (bytes > cached_bytes(fusion) && count < cuts.size()) continue;
      if (bytes > most_slab_bytes) return std::nullopt;
      return fusion;
    }
  }

  Fusion fusion_of(const Group& group, const std::vector<std::vector<std::size_t>>& cuts) const {
    const std::vector<std::size_t>& members = group.members;
    std::map<std::size_t, std::size_t> order;  // of the members, ascending: where they stand in the group
    for (std::size_t i = 0; i < members.size(); ++i) order[members[i]] = i;
    Fusion fusion;
    fusion.cuts.resize(cuts.size());
    std::map<std::size_t, std::size_t> place;  // in the program, of vertices of the graph
    for (const auto& [member, at] : order) {
      fusion.members.push_back(member);
      for (const VertexId input : graph_.vertices[member].inputs) {
        if (order.count(input.index) != 0 || !place.emplace(input.index, fusion.operands.size()).second) continue;
        fusion.operands.push_back(input.index);
        const Vertex& operand = graph_.vertices[input.index];
        fusion.program.vertices.push_back({operand.name, operand.dtype, operand.bound, {}, Input{}, operand.where});
        for (auto& cut : fusion.cuts) cut.push_back(0);
      }
    }
    for (const auto& [member, at] : order) {
      Vertex vertex = graph_.vertices[member];
      for (VertexId& input : vertex.inputs) input = VertexId{place.at(input.index)};
      place[member] = fusion.program.vertices.size();
      fusion.program.vertices.push_back(std::move(vertex));
      for (std::size_t c = 0; c < cuts.size(); ++c) fusion.cuts[c].push_back(cuts[c][at]);
      if (!is_kept(member, order)) continue;
      fusion.results.push_back(member);
      fusion.program.outputs.push_back(VertexId{place[member]});
    }
    fusion.program.scalars = scalars_of(fusion.program);
    share_subexpressions(fusion);
    return fusion;
  }

  /// Those that its vertices read.
  std::vector<ScalarDeclaration> scalars_of(const EinGraph& program) const {
    std::vector<ScalarDeclaration> scalars;
    for (const std::string& name : scalars_read(program.vertices)) scalars.push_back(*scalars_.at(name));
    return scalars;
  }

  /// The dimension with the most elements behind it first, which leaves the longest contiguous pieces.
  void sort_cuts(Group& group) const {
    std::stable_sort(group.cuts.begin(), group.cuts.end(),
                     [&](const auto& a, const auto& b) { return inner_elements(group, a) > inner_elements(group, b); });
  }

  bool is_kept(std::size_t member, const std::map<std::size_t, std::size_t>& members) const {
    return std::any_of(readers_[member].begin(), readers_[member].end(),
                       [&](std::size_t reader) { return members.count(reader) == 0; }) ||
           is_output(member);
  }

  bool is_output(std::size_t v) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), VertexId{v}) != graph_.outputs.end();
  }

  /// The most that any member has behind the dimension that is cut.
  double inner_elements(const Group& group, const std::vector<std::size_t>& cut) const {
    double elements = 0;
    for (std::size_t i = 0; i < cut.size(); ++i) {
      double behind = 1;
      const Shape& bound = graph_.vertices[group.members[i]].bound;
      for (std::size_t d = cut[i] + 1; d < bound.size(); ++d) behind *= static_cast<double>(bound[d].value());
      elements = std::max(elements, behind);
    }
    return elements;
  }

  const EinGraph& graph_;
  std::map<std::string, const ScalarDeclaration*> scalars_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::optional<std::size_t>> group_of_;
  std::map<std::size_t, Group> groups_;  // by the last member
};

}  // namespace

std::set<std::string> scalars_read(const std::vector<Vertex>& vertices) {
  std::set<std::string> names;
  for (const Vertex& vertex : vertices) {
    const EinSum* const einsum = einsum_of(vertex);
    for (std::size_t s = 0; einsum != nullptr && s < einsum->body.steps.size(); ++s) {
      if (const auto* const value = std::get_if<ScalarValue>(&einsum->body.steps[s].op)) names.insert(value->name);
    }
  }
  return names;
}

std::vector<Fusion> find_fusions(const EinGraph& graph) { return Finder(graph).run(); }

}  // namespace einrel
