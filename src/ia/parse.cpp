#include "ia/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "einsum/front/text/parse_expr.h"
#include "ia/from_tra.h"
#include "tra/infer.h"
#include "tra/text/reading.h"

namespace einrel {
namespace {

using parsing::SyntaxError;

/// Builds the program; every function throws SyntaxError.
class Builder {
 public:
  Builder(const calls::Program& syntax, std::int64_t sites)
      : syntax_(syntax), kernels_(syntax, errors_), program_{IaStore(sites), {}, {}} {}

  IaProgram run() {
    for (const calls::Statement& statement : syntax_.statements) {
      if (const auto* kernel = std::get_if<calls::KernelStatement>(&statement.what)) kernels_.define(*kernel);
    }
    bool has_outputs = false;
    for (const calls::Statement& statement : syntax_.statements) {
      if (const auto* input = std::get_if<calls::InputStatement>(&statement.what)) declare(*input);
      if (const auto* assignment = std::get_if<calls::Assignment>(&statement.what)) assign(*assignment);
      if (const auto* outputs = std::get_if<calls::OutputStatement>(&statement.what)) {
        has_outputs = true;
        for (const auto& output : outputs->outputs) program_.plan.push_back({output.name.text, read(output.node)});
      }
    }
    if (!has_outputs && last_) program_.plan.push_back(*last_);
    if (program_.plan.empty())
      throw SyntaxError{{"the program computes nothing", {}, "compute a relation: Z = bcast(X)"}};
    if (const std::string fault = fault_of(program_.store, program_.plan); !fault.empty())
      throw SyntaxError{{fault, {}, ""}};
    return std::move(program_);
  }

 private:
  void declare(const calls::InputStatement& input) {
    StoredRelation stored{input.name.text, input.dtype, make_shape(input.extents), {}};
    stored.cut = input.cut ? calls::read_tensor_cut(*input.cut, input.extents.size())
                           : cut_of_all(std::vector<DimensionCut>(input.extents.size()));
    std::optional<InputLayout> layout;
    if (input.on_all) layout = Everywhere{};
    if (input.on) layout = calls::read_positions(*input.on);
    try {
      check_cuts(stored);
      PlacedRelation relation = placed(stored, layout, program_.store.sites());
      if (!input.grid.empty()) {
        std::vector<const calls::Vector*> grid;
        for (const calls::Vector& list : input.grid) grid.push_back(&list);
        std::get<Partitioned>(relation.placement).grid = read_grid(grid, input.name.span);
      }
      names_[input.name.text] = add(std::move(relation), {}, input.name.span);
    } catch (const UserError& error) {
      throw SyntaxError{{error.what(), {input.name.span}, ""}};
    }
  }

  static void check_cuts(const StoredRelation& stored) {
    for (std::size_t i = 0; i < stored.cut.dims.size(); ++i)
      check_cut(stored.bound.at(stored.cut.dims[i]), stored.cut.cuts[i]);
  }

  void assign(const calls::Assignment& assignment) {
    std::vector<IaId> values;
    for (const auto& node : assignment.value.nodes) {
      if (const auto* name = std::get_if<calls::Name>(&node)) {
        values.push_back(read(*name));
      } else {
        values.push_back(build(std::get<calls::Call>(node), values));
      }
    }
    names_[assignment.name.text] = values.back();
    last_ = IaOutput{assignment.name.text, values.back()};
  }

  IaId read(const calls::Name& name) const {
    const auto known = names_.find(name.text);
    if (known == names_.end())
      throw SyntaxError{{fmt::format("unknown relation '{}'", name.text), {name.span}, "define it above"}};
    return known->second;
  }

  IaId add(IaOp op, std::vector<IaId> inputs, Span where) {
    const IaId id = program_.store.add(std::move(op), std::move(inputs));
    if (!program_.store[id].fault.empty()) throw SyntaxError{{program_.store[id].fault, {where}, ""}};
    return id;
  }

  IaId build(const calls::Call& call, const std::vector<IaId>& values) {
    std::vector<IaId> inputs;
    for (const std::size_t node : call.inputs) inputs.push_back(values[node]);
    const bool is_join = call.name.text == "local_join";
    const std::size_t wanted = is_join                         ? std::max<std::size_t>(2, inputs.size())
                               : call.name.text == "positions" ? 0
                                                               : 1;
    if (inputs.size() != wanted) {
      throw SyntaxError{
          {fmt::format("{} takes {} relations, not {}", call.name.text, wanted, inputs.size()), {call.span}, ""}};
    }
    IaOp op = op_of(call, inputs);
    return add(std::move(op), std::move(inputs), call.span);
  }

  IaOp op_of(const calls::Call& call, const std::vector<IaId>& inputs) {
    const std::string& name = call.name.text;
    if (name == "positions")
      return LabelPositions{Extent(calls::read_integer(parameter(call, 0), "the extent")), cut(call)};
    const std::size_t arity = type(inputs[0]).key_arity;
    if (name == "bcast") return Bcast{};
    if (name == "shuf") return shuffle(call, type(inputs[0]));
    if (name == "repart") return repartition(call);
    if (name == "local_filter") return LocalFilter{calls::read_predicate(parameter(call, 0), arity)};
    if (name == "local_map") return map(call, inputs[0]);
    if (name == "local_duplicate") {
      return LocalMap{calls::read_key_map(parameter(call, 0), arity + 1),
                      Duplicate{calls::read_integer(parameter(call, 1), "the number of copies")}};
    }
    if (name == "local_tile") {
      return LocalMap{calls::read_key_map(parameter(call, 0), arity + 1),
                      Tile{calls::read_index(parameter(call, 1), "the dimension"),
                           calls::read_integer(parameter(call, 2), "the tile size")}};
    }
    if (name == "local_aggregate" || name == "local_concat") return aggregate(call, inputs[0]);
    if (name == "local_join") return join(call, inputs);
    throw SyntaxError{
        {fmt::format("unknown operation '{}'", name),
         {call.name.span},
         "the operations are bcast, shuf, repart, local_join, local_aggregate, local_concat, local_filter, "
         "local_map, local_duplicate, local_tile, positions"}};
  }

  IaOp aggregate(const calls::Call& call, IaId in) {
    LocalAggregate result;
    std::size_t rank = type(in).rank;
    if (call.name.text == "local_concat") {
      const std::size_t position = calls::read_index(parameter(call, 0), "the key position");
      result.fold = ConcatArrays{position, calls::read_index(parameter(call, 1), "the dimension")};
      result.group_by = complement({position}, type(in).key_arity);
    } else {
      result.group_by = calls::read_positions(parameter(call, 0));
      result.fold = kernel(call, 1, {in, in});
    }
    if (call.parameters.size() > 2) result.finaliser = kernel_for(call, 2, {{0, rank, type(in).dtype}});
    return result;
  }

  /// The numbers of a key with so many positions that stand at parameter i, if any.
  static KeyMap numbers(const calls::Call& call, std::size_t i, std::size_t arity) {
    return call.parameters.size() > i ? calls::read_key_map(call.parameters[i], arity) : KeyMap{};
  }

  IaOp map(const calls::Call& call, IaId in) {
    const std::size_t arity = type(in).key_arity;
    KeyMap taken = numbers(call, 2, arity);
    Kernel run = kernel(call, 1, {in}, taken);
    return LocalMap{calls::read_key_map(parameter(call, 0), arity), std::move(run), std::move(taken)};
  }

  IaOp join(const calls::Call& call, const std::vector<IaId>& inputs) {
    LocalJoin result{calls::read_positions(parameter(call, 0)), calls::read_positions(parameter(call, 1)), {}, {}};
    std::vector<const RelationType*> relations;
    for (const IaId input : inputs) relations.push_back(&type(input));
    std::size_t arity = 0;
    try {
      arity = join_inputs(result.keys_left, result.keys_right, relations).arity;
    } catch (const UserError& error) {
      throw SyntaxError{{error.what(), {call.span}, ""}};
    }
    result.key_map = call.parameters.size() > 3 ? calls::read_key_map(parameter(call, 3), arity) : identity_map(arity);
    result.numbers = numbers(call, 4, arity);
    result.kernel = kernel(call, 2, inputs, result.numbers);
    return result;
  }

  IaOp shuffle(const calls::Call& call, const RelationType& in) const {
    const KeyPositions positions = calls::read_positions(parameter(call, 0));
    try {
      check_positions(positions, in.key_arity, "the list");
    } catch (const UserError& error) {
      throw SyntaxError{{error.what(), {call.span}, ""}};
    }
    if (call.parameters.size() < 3)
      return Shuf{positions, spread(project(frontier(in), positions), program_.store.sites())};
    return Shuf{positions, read_grid(lists_from(call, 1), call.span)};
  }

  /// Without a site grid the new chunks are spread over the sites evenly.
  IaOp repartition(const calls::Call& call) const {
    const auto* arrow = std::get_if<calls::Arrow>(&parameter(call, 0).what);
    if (arrow == nullptr)
      throw SyntaxError{{"two cuts are expected here", {call.span}, "as in repart(<2,2> -> <4,1>)(A)"}};
    Repart result{calls::read_cuts(arrow->from), calls::read_new_cuts(arrow->to), {}};
    std::vector<std::int64_t> parts;
    for (const DimensionCut& cut : result.to) parts.push_back(cut.parts);
    const bool has_grid = call.parameters.size() > 2;
    result.grid = has_grid ? read_grid(lists_from(call, 1), call.span) : spread(parts, program_.store.sites());
    return result;
  }

  static std::vector<const calls::Vector*> lists_from(const calls::Call& call, std::size_t first) {
    std::vector<const calls::Vector*> lists;
    for (std::size_t i = first; i < call.parameters.size(); ++i) {
      lists.push_back(std::get_if<calls::Vector>(&call.parameters[i].what));
      if (lists.back() == nullptr) throw SyntaxError{{grid_expected, {call.parameters[i].span}, grid_form}};
    }
    return lists;
  }

  /// <5,2>, <10,4> or <2 by 1,2 by 4>, <4,4>, <2 by 2>: sites, parts and copies.
  static SiteGrid read_grid(const std::vector<const calls::Vector*>& lists, Span where) {
    if (lists.size() < 2 || lists.size() > 3) throw SyntaxError{{grid_expected, {where}, grid_form}};
    std::vector<std::int64_t> grid;
    std::vector<Site> strides;
    bool has_strides = false;
    for (const calls::Entry& entry : lists[0]->entries) has_strides = has_strides || entry.unit.has_value();
    for (const DimensionCut& sites : calls::read_cuts(*lists[0])) {
      const bool lacks_stride = has_strides && sites.parts != 1 && !lists[0]->entries[grid.size()].unit;
      if (lacks_stride) throw SyntaxError{{"all of these have strides, or none", {lists[0]->span}, grid_form}};
      grid.push_back(sites.parts);
      strides.push_back(sites.unit);
    }
    std::vector<SiteCopies> copies;
    if (lists.size() == 3) {
      for (const DimensionCut& each : calls::read_cuts(*lists[2])) copies.push_back({each.parts, each.unit});
    }
    try {
      if (!has_strides) strides = row_major_grid({}, grid).strides;
      return site_grid(numbers(*lists[1]), std::move(grid), std::move(strides), std::move(copies));
    } catch (const UserError& error) {
      throw SyntaxError{{error.what(), {where}, ""}};
    }
  }
  static constexpr const char* grid_expected = "a site grid is expected here: sites, parts, and copies if there are";
  static constexpr const char* grid_form = "as in <5,2>, <10,4> or <2 by 1,2 by 4>, <4,4>, <2 by 2>";

  /// <5,2> as numbers.
  static std::vector<std::int64_t> numbers(const calls::Vector& given) {
    std::vector<std::int64_t> result;
    for (const std::size_t value : calls::read_positions(given)) result.push_back(static_cast<std::int64_t>(value));
    return result;
  }

  DimensionCut cut(const calls::Call& call) const {
    const auto* vector = std::get_if<calls::Vector>(&parameter(call, 1).what);
    const std::vector<DimensionCut> cuts = vector == nullptr ? std::vector<DimensionCut>() : calls::read_cuts(*vector);
    if (cuts.size() != 1) throw SyntaxError{{"one cut is expected here", {call.span}, "as in positions(10, <2>)"}};
    return cuts.front();
  }

  static const calls::Parameter& parameter(const calls::Call& call, std::size_t i) {
    if (i >= call.parameters.size())
      throw SyntaxError{{fmt::format("{} takes more parameters", call.name.text), {call.span}, ""}};
    return call.parameters[i];
  }

  Kernel kernel(const calls::Call& call, std::size_t i, const std::vector<IaId>& inputs, const KeyMap& numbers = {}) {
    std::vector<Signature> arrays;
    for (const IaId input : inputs) arrays.push_back({type(input).key_arity, type(input).rank, type(input).dtype});
    return kernel_for(call, i, with_numbers(std::move(arrays), numbers));
  }

  Kernel kernel_for(const calls::Call& call, std::size_t i, const std::vector<Signature>& arrays) {
    std::optional<Kernel> found = kernels_.find(calls::read_kernel_names(parameter(call, i)), arrays);
    if (!found) throw SyntaxError{errors_.front()};
    return std::move(*found);
  }

  const RelationType& type(IaId id) const { return program_.store[id].type.relation; }

  const calls::Program& syntax_;
  std::vector<Diagnostic> errors_;
  calls::KernelScope kernels_;
  IaProgram program_;
  std::map<std::string, IaId> names_;
  std::optional<IaOutput> last_;
};

}  // namespace

IaProgram parse_ia(const SourceText& source, std::int64_t sites) {
  check_sites(sites);
  std::vector<Diagnostic> errors;
  const calls::Program syntax = calls::parse(source, errors);
  if (!errors.empty()) throw ProgramError(std::move(errors), source);
  try {
    return Builder(syntax, sites).run();
  } catch (SyntaxError& error) {
    throw ProgramError({std::move(error.diagnostic)}, source);
  }
}

}  // namespace einrel
