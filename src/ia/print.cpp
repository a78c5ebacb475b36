#include "ia/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "ia/from_tra.h"
#include "tra/text/print.h"

namespace einrel {
namespace {

std::string numbers(const std::vector<std::int64_t>& values) { return fmt::format("<{}>", fmt::join(values, ",")); }

/// Sites, parts and copies as parameters: "<5,2>, <10,4>"; "<2 by 1,2 by 4>, <4,4>, <2 by 2>" where they are not
/// row-major, and with copies.
std::string grid_text(const SiteGrid& grid) {
  const bool row_major = is_row_major(grid);
  std::vector<std::string> sites;
  for (std::size_t i = 0; i < grid.grid.size(); ++i) {
    const bool is_plain = row_major || grid.grid[i] == 1;
    sites.push_back(is_plain ? fmt::format("{}", grid.grid[i])
                             : fmt::format("{} by {}", grid.grid[i], grid.strides[i]));
  }
  std::vector<std::string> copies;
  for (const SiteCopies& each : grid.copies) copies.push_back(fmt::format("{} by {}", each.count, each.stride));
  const std::string text = fmt::format("<{}>, {}", fmt::join(sites, ","), numbers(grid.parts));
  return copies.empty() ? text : fmt::format("{}, <{}>", text, fmt::join(copies, ","));
}

/// Name and parameters of an operation; the arity is that of its inputs' keys together.
struct HeadText {
  std::size_t arity;
  std::int64_t sites;

  std::string operator()(const PlacedRelation& op) const {
    const std::string stored = op.stored.name + to_text(TraOp(op.stored), {}, 0);
    const auto* part = std::get_if<Partitioned>(&op.placement);
    if (part == nullptr) return fmt::format("input {} on all", stored);
    const bool is_default = *part == std::get<Partitioned>(placed(op.stored, part->positions, sites).placement);
    return fmt::format("input {} on {}{}", stored, to_string(part->positions),
                       is_default ? "" : ", " + grid_text(part->grid));
  }
  std::string operator()(const LabelPositions& op) const { return to_text(TraOp(op), {}, 0); }
  std::string operator()(const Bcast&) const { return "bcast"; }
  std::string operator()(const Shuf& op) const {
    return fmt::format("shuf({}, {})", to_string(op.positions), grid_text(op.grid));
  }
  std::string operator()(const Repart& op) const {
    return fmt::format("repart({} -> {}, {})", to_text(op.from), to_text(op.to), grid_text(op.grid));
  }
  std::string operator()(const LocalJoin& op) const {
    const std::string head =
        fmt::format("local_join({}, {}, {}", to_string(op.keys_left), to_string(op.keys_right), op.kernel.name);
    const std::size_t joined = arity - op.keys_left.size();
    const bool is_plain = is_identity(op.key_map, joined) && op.numbers.outputs.empty();
    return head + (is_plain ? "" : ", " + to_string(op.key_map, joined)) + numbers_text(op.numbers, joined) + ")";
  }
  std::string operator()(const LocalAggregate& op) const {
    std::string head;
    if (const auto* concat = std::get_if<ConcatArrays>(&op.fold)) {
      head = fmt::format("local_concat({}, {}", concat->key_position, concat->array_dim);
    } else {
      head = fmt::format("local_aggregate({}, {}", to_string(op.group_by), std::get<Kernel>(op.fold).name);
    }
    return head + (op.finaliser ? ", " + op.finaliser->name + ")" : ")");
  }
  std::string operator()(const LocalFilter& op) const {
    return fmt::format("local_filter({})", to_string(op.predicate));
  }
  std::string operator()(const LocalMap& op) const {
    if (const auto* kernel = std::get_if<Kernel>(&op.arrays))
      return fmt::format("local_map({}, {}{})", to_string(op.key_map, arity), kernel->name,
                         numbers_text(op.numbers, arity));
    const std::string map = to_string(op.key_map, arity + 1);
    if (const auto* tile = std::get_if<Tile>(&op.arrays))
      return fmt::format("local_tile({}, {}, {})", map, tile->dim, tile->size);
    return fmt::format("local_duplicate({}, {})", map, std::get<Duplicate>(op.arrays).count);
  }
};

}  // namespace

std::map<IaId, std::string> names_of(const IaStore& store, const std::vector<IaPlan>& plans) {
  std::map<IaId, std::string> names;
  std::set<std::string> taken;
  std::set<IaId> nodes;
  for (const IaPlan& plan : plans) {
    for (const IaId id : nodes_of(store, plan)) nodes.insert(id);
  }
  const auto claim = [&](IaId id, const std::string& name) {
    if (names.count(id) == 0 && taken.insert(name).second) names[id] = name;
  };
  for (const IaId id : nodes) {
    if (const auto* input = std::get_if<PlacedRelation>(&store[id].op)) claim(id, input->stored.name);
  }
  for (const IaOutput& output : plans.back()) claim(output.id, output.name);
  std::size_t next = 1;
  for (const IaId id : nodes) {
    while (names.count(id) == 0) claim(id, fmt::format("t{}", next++));
  }
  return names;
}

std::string to_text(const IaStore& store, IaId id, const std::map<IaId, std::string>& names) {
  const IaNode& node = store[id];
  std::vector<std::string> inputs;
  std::size_t arity = 0;
  for (const IaId input : node.inputs) {
    inputs.push_back(names.at(input));
    arity += store[input].type.relation.key_arity;
  }
  const std::string text = std::visit(HeadText{arity, store.sites()}, node.op);
  return inputs.empty() ? text : fmt::format("{}({})", text, fmt::join(inputs, ", "));
}

std::string nested_text(const IaStore& store, IaId id, const std::vector<IaId>& leaves,
                        const std::map<IaId, std::string>& names) {
  const std::vector<IaId> all = nodes_of(store, {{"", id}});
  std::set<IaId> below;
  for (const IaId leaf : leaves) {
    for (const IaId node : nodes_of(store, {{"", leaf}})) below.insert(node);
  }
  std::map<IaId, std::string> texts = names;
  for (const IaId node : all) {
    if (below.count(node) == 0 && !store[node].inputs.empty()) texts[node] = to_text(store, node, texts);
  }
  return texts.at(id);
}

std::string outputs_text(const IaPlan& plan, const std::map<IaId, std::string>& names) {
  std::vector<std::string> outputs;
  for (const IaOutput& output : plan) {
    const std::string& name = names.at(output.id);
    outputs.push_back(name == output.name ? name : output.name + " = " + name);
  }
  return fmt::format("output {}", fmt::join(outputs, ", "));
}

std::string to_text(const IaStore& store, const IaPlan& plan) {
  const std::map<IaId, std::string> names = names_of(store, {plan});
  std::string text;
  for (const IaId id : nodes_of(store, plan)) {
    const bool is_input = std::holds_alternative<PlacedRelation>(store[id].op);
    text += (is_input ? "" : names.at(id) + " = ") + to_text(store, id, names) + "\n";
  }
  return text + outputs_text(plan, names) + "\n";
}

}  // namespace einrel
