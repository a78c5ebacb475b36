#include "tra/text/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/suggest.h"
#include "einsum/front/text/parse_expr.h"
#include "einsum/graph/vertex_facts.h"
#include "tra/infer.h"
#include "tra/text/reading.h"

namespace einrel {
namespace {

using namespace calls;
using parsing::SyntaxError;

/// One operation of the language.
struct Operation {
  std::string_view name;
  std::size_t parameters;
  std::size_t inputs;
  std::string_view usage;
};
constexpr std::array<Operation, 9> operations{{{"aggregate", 2, 1, "aggregate(<0,2>, matAdd)(A)"},
                                               {"join", 3, 2, "join(<1>, <0>, matMul)(A, B)"},
                                               {"rekey", 1, 1, "rekey(<k0,k1> -> <2*k0 + k1>)(A)"},
                                               {"filter", 1, 1, "filter(k0 == k1)(A)"},
                                               {"transform", 1, 1, "transform(diag)(A)"},
                                               {"tile", 2, 1, "tile(1, 2)(A)"},
                                               {"concat", 2, 1, "concat(1, 1)(A)"},
                                               {"repartition", 1, 1, "repartition(<2,2> -> <4,1>)(A)"},
                                               {"positions", 2, 0, "positions(10, <2>)"}}};

std::string counted_words(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// Builds the program statement by statement.
class ProgramBuilder {
 public:
  ProgramBuilder(const SourceText& source, const Program& syntax, std::vector<Diagnostic>& errors)
      : source_(source),
        syntax_(syntax),
        errors_(errors),
        kernels_(syntax, errors),
        suspects_(syntax.suspects.begin(), syntax.suspects.end()) {}

  ParsedTra run() {
    for (const Statement& statement : syntax_.statements) {
      if (const auto* scalar = std::get_if<ScalarStatement>(&statement.what)) declare(*scalar);
      if (const auto* input = std::get_if<InputStatement>(&statement.what)) later_.insert(input->name.text);
      if (const auto* assignment = std::get_if<Assignment>(&statement.what)) later_.insert(assignment->name.text);
    }
    for (const Statement& statement : syntax_.statements) {
      if (const auto* kernel = std::get_if<KernelStatement>(&statement.what)) kernels_.define(*kernel);
    }
    for (const Statement& statement : syntax_.statements) {
      try {
        if (const auto* input = std::get_if<InputStatement>(&statement.what)) declare(*input);
        if (const auto* assignment = std::get_if<Assignment>(&statement.what)) assign(*assignment);
      } catch (SyntaxError& error) {
        errors_.push_back(std::move(error.diagnostic));
      }
    }
    for (const Statement& statement : syntax_.statements) {
      if (const auto* outputs = std::get_if<OutputStatement>(&statement.what)) add_outputs(*outputs);
    }
    default_outputs();
    kernels_.check_unused();
    check_integer_scalars();
    refuse_errors();
    infer_program();
    return std::move(parsed_);
  }

 private:
  /// A name that statements may read; without a node when its own statement is wrong.
  struct Known {
    std::optional<TraId> id;
    Span where;
    bool is_input = false;
    bool is_read = false;
  };

  TraExpr& program() { return parsed_.program; }

  void error(std::string message, std::vector<Span> marks, std::string help = "") {
    errors_.push_back({std::move(message), std::move(marks), std::move(help)});
  }

  void refuse_errors() {
    if (errors_.empty()) return;
    sort_and_unite(errors_);
    throw ProgramError(std::move(errors_), source_);
  }

  void claim(const Name& name, std::optional<TraId> id, bool is_input) {
    const auto [known, is_new] = names_.insert({name.text, {id, name.span, is_input, false}});
    if (is_new) return;
    error(fmt::format("'{}' is defined twice", name.text), {name.span, known->second.where},
          "give the new relation another name");
  }

  // --- declarations -------------------------------------------------------------------------------

  void declare(const ScalarStatement& scalar) {
    if (!scalars_.insert({scalar.name.text, scalar.name.span}).second) {
      error(fmt::format("scalar '{}' is declared twice", scalar.name.text), {scalar.name.span}, "remove one");
      return;
    }
    kernels_.add_scalar(scalar.name.text);
    program().scalars.push_back({scalar.name.text, scalar.value, std::nullopt});
  }

  void declare(const InputStatement& input) { claim(input.name, try_to_store(input), true); }

  std::optional<TraId> try_to_store(const InputStatement& input) {
    try {
      StoredRelation stored{input.name.text, input.dtype, make_shape(input.extents), cut_of(input)};
      check_size(stored.bound, input.dtype, input.name.span);
      place(input, stored.cut.dims.size());
      const TraId id = add(std::move(stored), {}, input.name.span);
      program().nodes[id.index].name = input.name.text;
      return id;
    } catch (SyntaxError& wrong) {
      errors_.push_back(std::move(wrong.diagnostic));
    }
    return std::nullopt;
  }

  /// Bytes of a tensor are counted in 63 bits everywhere.
  static void check_size(const Shape& bound, DType dtype, Span where) {
    try {
      checked_multiply(element_count(bound), static_cast<std::int64_t>(size_of(dtype)));
    } catch (const UserError& wrong) {
      throw SyntaxError{{fmt::format("this is too large: {}", wrong.what()), {where}, "use smaller extents"}};
    }
  }

  static TensorCut cut_of(const InputStatement& input) {
    const std::size_t rank = input.extents.size();
    if (!input.cut) return cut_of_all(std::vector<DimensionCut>(rank));
    TensorCut cut = read_tensor_cut(*input.cut, rank);
    for (std::size_t i = 0; i < cut.dims.size(); ++i) {
      const std::size_t dim = cut.dims[i];
      const Span where = input.cut->entries[i].value.span;
      if (dim >= rank) {
        throw SyntaxError{{fmt::format("dimension {} is cut, but '{}' has {}", dim, input.name.text,
                                       counted_words(rank, "dimension")),
                           {where},
                           "dimensions count from 0"}};
      }
      try {
        check_cut(Extent(input.extents[dim]), cut.cuts[i]);
      } catch (const UserError& wrong) {
        throw SyntaxError{{fmt::format("dimension {} of '{}': {}", dim, input.name.text, wrong.what()), {where}, ""}};
      }
    }
    return cut;
  }

  void place(const InputStatement& input, std::size_t arity) {
    if (input.on_all) parsed_.layouts[input.name.text] = Everywhere{};
    if (!input.on) return;
    if (!input.grid.empty()) {
      throw SyntaxError{{"key positions alone say how an input is spread",
                         {input.grid.front().span},
                         "site grids are for programs in the implementation algebra"}};
    }
    KeyPositions positions = read_positions(*input.on);
    try {
      check_positions(positions, arity, "the list");
    } catch (const UserError& wrong) {
      throw SyntaxError{{wrong.what(), {input.on->span}, "an input is spread over sites by positions of its keys"}};
    }
    parsed_.layouts[input.name.text] = std::move(positions);
  }

  // --- operations ---------------------------------------------------------------------------------

  TraId add(TraOp op, std::vector<TraId> inputs, Span where) {
    std::vector<Signature> signatures;
    for (const TraId input : inputs) signatures.push_back(signatures_[input.index]);
    signatures_.push_back(signature_of(op, signatures));
    return program().add(std::move(op), std::move(inputs), "", where);
  }

  void assign(const Assignment& assignment) {
    std::vector<std::optional<TraId>> values;
    for (const auto& node : assignment.value.nodes) {
      const auto* call = std::get_if<Call>(&node);
      values.push_back(call == nullptr ? std::nullopt : try_to_build(*call, assignment.value, values));
    }
    if (const auto* name = std::get_if<Name>(&assignment.value.nodes.back())) {
      read(*name);
      error(fmt::format("'{}' would only be another name for '{}'", assignment.name.text, name->text), {name->span},
            fmt::format("read '{}' itself, or write output {} = {}", name->text, assignment.name.text, name->text));
    }
    if (values.back()) program().nodes[values.back()->index].name = assignment.name.text;
    claim(assignment.name, values.back(), false);
  }

  /// The node of a relation that is read by its name; nullopt with an error (now or earlier) when there is none.
  std::optional<TraId> read(const Name& name) {
    const auto known = names_.find(name.text);
    if (known != names_.end()) {
      known->second.is_read = true;
      return known->second.id;
    }
    if (suspects_.count(name.text) != 0) return std::nullopt;
    std::string help = "move its statement up";
    if (later_.count(name.text) == 0) {
      const bool is_kernel = is_named_kernel(name.text) || kernels_.contains(name.text);
      help = is_kernel ? "it is a kernel; relations stand in the second parentheses: name(parameters)(relations)"
                       : did_you_mean(name.text, {later_.begin(), later_.end()});
      if (help.empty()) help = fmt::format("declare it: input {}[4,4] cut <2,2>", name.text);
      error(fmt::format("unknown relation '{}'", name.text), {name.span}, help);
    } else {
      error(fmt::format("'{}' is read before its statement", name.text), {name.span}, help);
    }
    return std::nullopt;
  }

  /// The node of a call; nullopt with an error (now or earlier) when there is none.
  std::optional<TraId> try_to_build(const Call& call, const CallTree& tree,
                                    const std::vector<std::optional<TraId>>& values) {
    try {
      return build(call, tree, values);
    } catch (SyntaxError& wrong) {
      errors_.push_back(std::move(wrong.diagnostic));
    }
    return std::nullopt;
  }

  std::optional<TraId> build(const Call& call, const CallTree& tree, const std::vector<std::optional<TraId>>& values) {
    const Operation& operation = operation_of(call);
    const auto complain = [&](std::size_t wanted, std::string_view what, std::size_t found) {
      throw SyntaxError{{fmt::format("{} takes {}, not {}", operation.name, counted_words(wanted, what), found),
                         {call.span},
                         fmt::format("as in {}", operation.usage)}};
    };
    // What is called with one pair of parentheses may have had the other one in mind.
    const bool takes_numbers = operation.name == "join" || operation.name == "transform";
    const bool has_numbers = takes_numbers && call.parameters.size() == operation.parameters + 1;
    if (call.parameters.size() != operation.parameters && !has_numbers)
      complain(operation.parameters, "parameter", call.parameters.size());
    std::vector<TraId> inputs;
    for (const std::size_t node : call.inputs) {
      const auto* name = std::get_if<Name>(&tree.nodes[node]);
      const std::optional<TraId> input = name != nullptr ? read(*name) : values[node];
      if (input) inputs.push_back(*input);
    }
    const bool takes_more = operation.name == "join" && call.inputs.size() > operation.inputs;
    if (call.inputs.size() != operation.inputs && !takes_more)
      complain(operation.inputs, "relation", call.inputs.size());
    if (inputs.size() != call.inputs.size()) return std::nullopt;
    std::optional<TraOp> op = op_of(call, inputs);
    if (!op) return std::nullopt;
    return add(std::move(*op), std::move(inputs), call.span);
  }

  static const Operation& operation_of(const Call& call) {
    const auto* found = std::find_if(operations.begin(), operations.end(),
                                     [&](const Operation& each) { return each.name == call.name.text; });
    if (found != operations.end()) return *found;
    std::vector<std::string> known;
    std::string all;
    for (const Operation& each : operations) {
      known.emplace_back(each.name);
      all += (all.empty() ? "" : ", ") + known.back();
    }
    const std::string near = did_you_mean(call.name.text, known);
    throw SyntaxError{{fmt::format("unknown operation '{}'", call.name.text),
                       {call.name.span},
                       near.empty() ? fmt::format("the operations are {}", all) : near}};
  }

  /// The operation of a call; nullopt with an error when its kernel is wrong. Throws SyntaxError.
  std::optional<TraOp> op_of(const Call& call, const std::vector<TraId>& inputs) {
    const std::string& name = call.name.text;
    const std::vector<Parameter>& given = call.parameters;
    if (name == "positions") return positions(given);
    const Signature& in = signatures_[inputs.front().index];
    if (name == "rekey") return ReKey{read_key_map(given[0], in.key_arity)};
    if (name == "filter") return Filter{read_predicate(given[0], in.key_arity)};
    if (name == "tile") return Tile{read_index(given[0], "the dimension"), read_integer(given[1], "the tile size")};
    if (name == "concat")
      return Concat{read_index(given[0], "the key position"), read_index(given[1], "the dimension")};
    if (name == "repartition") return repartition(given[0]);
    if (name == "transform") {
      KeyMap numbers = given.size() > 1 ? read_key_map(given[1], in.key_arity) : KeyMap{};
      std::optional<Kernel> kernel = kernels_.find(read_kernel_names(given[0]), with_numbers({in}, numbers));
      if (!kernel) return std::nullopt;
      return Transform{std::move(*kernel), std::move(numbers)};
    }
    if (name == "aggregate") {
      KeyPositions group_by = read_positions(given[0]);
      std::optional<Kernel> kernel = kernels_.find(read_kernel_names(given[1]), {in, in});
      return kernel ? std::optional<TraOp>(Aggregate{std::move(group_by), std::move(*kernel)}) : std::nullopt;
    }
    invariant(name == "join", "every operation of the table is built");
    Join join{read_positions(given[0]), read_positions(given[1]), {}};
    std::vector<Signature> arrays;
    std::size_t arity = 0;
    for (const TraId input : inputs) {
      arrays.push_back(signatures_[input.index]);
      arity += arrays.back().key_arity;
    }
    if (given.size() > 3) join.numbers = read_key_map(given[3], arity - std::min(arity, join.keys_right.size()));
    std::optional<Kernel> kernel =
        kernels_.find(read_kernel_names(given[2]), with_numbers(std::move(arrays), join.numbers));
    if (!kernel) return std::nullopt;
    join.kernel = std::move(*kernel);
    return join;
  }

  static TraOp positions(const std::vector<Parameter>& given) {
    const auto extent = static_cast<std::int64_t>(read_index(given[0], "the number of positions"));
    check_size({Extent(extent)}, DType::i64, given[0].span);
    const auto* vector = std::get_if<Vector>(&given[1].what);
    const std::vector<DimensionCut> cuts = vector == nullptr ? std::vector<DimensionCut>() : read_cuts(*vector);
    if (cuts.size() != 1) throw SyntaxError{{"one cut is expected here", {given[1].span}, "as in positions(10, <2>)"}};
    try {
      check_cut(Extent(extent), cuts.front());
    } catch (const UserError& wrong) {
      throw SyntaxError{{wrong.what(), {given[1].span}, ""}};
    }
    return LabelPositions{Extent(extent), cuts.front()};
  }

  static TraOp repartition(const Parameter& parameter) {
    const auto* arrow = std::get_if<Arrow>(&parameter.what);
    if (arrow == nullptr)
      throw SyntaxError{{"two cuts are expected here", {parameter.span}, "as in repartition(<2,2> -> <4,1>)(A)"}};
    return Repartition{read_cuts(arrow->from), read_new_cuts(arrow->to)};
  }

  // --- the whole ----------------------------------------------------------------------------------

  void add_outputs(const OutputStatement& statement) {
    for (const OutputStatement::Output& output : statement.outputs) {
      const std::optional<TraId> id = read(output.node);
      if (!outputs_.insert(output.name.text).second)
        error(fmt::format("'{}' is an output twice", output.name.text), {output.name.span}, "remove one");
      if (id) program().output(output.name.text, *id);
    }
  }

  /// Without an output statement: every name that nothing else reads.
  void default_outputs() {
    const bool has_statement =
        std::any_of(syntax_.statements.begin(), syntax_.statements.end(),
                    [](const Statement& statement) { return std::holds_alternative<OutputStatement>(statement.what); });
    if (has_statement || !errors_.empty()) return;
    for (std::size_t i = 0; i < program().nodes.size(); ++i) {
      const std::string& name = program().nodes[i].name;
      if (name.empty() || names_.at(name).is_read || names_.at(name).is_input) continue;
      program().output(name, {i});
    }
    if (program().outputs.empty())
      error("the program computes nothing", {}, "compute a relation: C = join(<1>, <0>, matMul)(A, B)");
  }

  /// Scalars that meet integers in some kernel must be whole.
  void check_integer_scalars() {
    std::map<std::string, DType> types;
    for (const TraNode& node : program().nodes) {
      const Kernel* kernel = kernel_of(node.op);
      for (std::size_t i = 0; kernel != nullptr && i < kernel->steps.size(); ++i) {
        const EinSum* einsum = einsum_of(kernel->steps[i]);
        if (einsum != nullptr) note_integer_scalars(einsum->body, types);
      }
    }
    for (ScalarDeclaration& scalar : program().scalars) {
      const auto type = types.find(scalar.name);
      if (type == types.end()) continue;
      scalar.integer_type = type->second;
      if (!scalar.value || is_exact(*scalar.value, type->second)) continue;
      error(fmt::format("scalar '{}' meets integers in a kernel: {} is no {}", scalar.name, *scalar.value,
                        name_of(type->second)),
            {scalars_.at(scalar.name)}, "cast first, for example f32(...)");
    }
  }

  static void note_integer_scalars(const ScalarExpr& body, std::map<std::string, DType>& types) {
    for (const ScalarStep& step : body.steps) {
      const auto* scalar = std::get_if<ScalarValue>(&step.op);
      if (scalar == nullptr || is_float(step.type)) continue;
      DType& known = types.insert({scalar->name, step.type}).first->second;
      if (step.type == DType::i32) known = step.type;
    }
  }

  static const Kernel* kernel_of(const TraOp& op) {
    if (const auto* aggregate = std::get_if<Aggregate>(&op)) return &aggregate->kernel;
    if (const auto* join = std::get_if<Join>(&op)) return &join->kernel;
    const auto* transform = std::get_if<Transform>(&op);
    return transform == nullptr ? nullptr : &transform->kernel;
  }

  /// Infers the program; after an error, what does not depend on its node, so that several errors are found at once.
  void infer_program() {
    constexpr int most_errors = 20;
    std::vector<bool> is_broken(program().nodes.size(), false);
    for (int found = 0; found < most_errors; ++found) {
      const auto [part, origins] = without(is_broken);
      try {
        infer(part);
        break;
      } catch (const TraError& wrong) {
        const std::size_t node = origins[wrong.node().index];
        error(wrong.message(), {program().nodes[node].where}, wrong.help());
        is_broken[node] = true;
      }
    }
    refuse_errors();
  }

  /// The program without broken nodes and all that depends on them, and what its nodes are in the whole program.
  std::pair<TraExpr, std::vector<std::size_t>> without(const std::vector<bool>& is_broken) {
    TraExpr part;
    std::vector<std::size_t> origins;
    std::vector<std::optional<TraId>> kept;
    for (std::size_t i = 0; i < program().nodes.size(); ++i) {
      const TraNode& node = program().nodes[i];
      std::vector<TraId> inputs;
      for (const TraId input : node.inputs) {
        if (kept[input.index]) inputs.push_back(*kept[input.index]);
      }
      kept.emplace_back();
      if (is_broken[i] || inputs.size() != node.inputs.size()) continue;
      kept.back() = part.add(node.op, std::move(inputs), node.name, node.where);
      origins.push_back(i);
    }
    for (const TraOutput& output : program().outputs) {
      if (kept[output.id.index]) part.output(output.name, *kept[output.id.index]);
    }
    return {std::move(part), std::move(origins)};
  }

  const SourceText& source_;
  const Program& syntax_;
  std::vector<Diagnostic>& errors_;
  ParsedTra parsed_;
  KernelScope kernels_;
  std::set<std::string> suspects_;
  std::set<std::string> later_;  // every name that some statement defines
  std::map<std::string, Span> scalars_;
  std::map<std::string, Known> names_;
  std::vector<Signature> signatures_;  // per node
  std::set<std::string> outputs_;
};

}  // namespace

ParsedTra parse_tra(const SourceText& source) {
  std::vector<Diagnostic> errors;
  const Program syntax = calls::parse(source, errors);
  return ProgramBuilder(source, syntax, errors).run();
}

}  // namespace einrel
