#include "sql/program/lower_tra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "einsum/expr/scalar_value.h"
#include "einsum/graph/vertex_facts.h"
#include "sql/functions/array_bytes.h"
#include "sql/program/key_sql.h"
#include "tra/formats.h"
#include "tra/infer.h"
#include "tra/repartition.h"

namespace einrel::sql {
namespace {

/// How many chunks a dimension of that extent may be tiled into, at most.
std::int64_t most_tiles(const RelationType& type, const Tile& op) {
  std::int64_t most = 1;
  for (const Chunk& chunk : type.chunks) most = std::max(most, tile_count(chunk.bound[op.dim], op));
  return most;
}

std::vector<JoinedRelation> joined_by(const TraNode& node, const Join& join, const std::vector<RelationType>& types) {
  std::vector<std::size_t> arities;
  for (const TraId input : node.inputs) arities.push_back(types[input.index].key_arity);
  return joined_relations(join.keys_left, join.keys_right, arities);
}

/// The query of one node. Columns of inputs are called x.k0, x.chunk (of the second y.k0, of the third y2.k0).
class QueryOf {
 public:
  QueryOf(const TraNode& node, const std::vector<RelationType>& types, std::vector<std::string> from,
          const ScalarBindings& scalars, KernelTable& kernels, Dialect dialect)
      : node_(node), types_(types), from_(std::move(from)), scalars_(scalars), kernels_(kernels), dialect_(dialect) {}

  std::string operator()(const StoredRelation&) const { throw Bug("a stored relation is no query"); }

  std::string operator()(const LabelPositions& op) const {
    const std::vector<std::string> part{"p.i"};
    const std::string begin = to_sql(chunk_begin(op.extent, op.cut, key_position(0)), part, dialect_);
    const KeyExpr next = key_call(KeyFunction::add, key_position(0), key_constant(1));
    const std::string end =
        to_sql(substitute(chunk_begin(op.extent, op.cut, key_position(0)), {{next}}), part, dialect_);
    return fmt::format("SELECT p.i AS k0, {3}({0}, {1} - {0}) AS chunk FROM ({2}) AS p", begin, end,
                       numbers_below(dialect_, op.cut.parts), own("einrel_positions"));
  }

  std::string operator()(const Aggregate& op) const {
    const RelationType& in = type(0);
    std::vector<std::string> rest;
    for (const std::size_t position : complement(op.group_by, in.key_arity))
      rest.push_back(fmt::format("x.k{}", position));
    const std::string text = kernel_text(op.kernel, {in.rank, in.rank});
    return fmt::format("SELECT {}{}({}, x.chunk{}{}) AS chunk FROM {} AS x {}", keys_from(op.group_by),
                       own("einrel_fold"), text, rest.empty() ? "" : ", ", fmt::join(rest, ", "), from_[0],
                       group_by(op.group_by));
  }

  std::string operator()(const Join& op) const {
    std::vector<std::string> columns = column_names(type(0).key_arity, "x.");
    std::vector<std::size_t> ranks{type(0).rank};
    std::string from = from_[0] + " AS x";
    const std::vector<JoinedRelation> joined = joined_by(node_, op, types_);
    for (std::size_t r = 1; r < joined.size(); ++r) {
      const std::string name = name_of_input(r);
      std::vector<std::string> equal;
      for (std::size_t i = 0; i < joined[r].left.size(); ++i)
        equal.push_back(fmt::format("{} = {}.k{}", columns[joined[r].left[i]], name, joined[r].right[i]));
      from += fmt::format("{}{} AS {}{}{}", equal.empty() ? " CROSS JOIN " : " JOIN ", from_[r], name,
                          equal.empty() ? "" : " ON ", fmt::join(equal, " AND "));
      for (const std::size_t position : complement(joined[r].right, type(r).key_arity))
        columns.push_back(fmt::format("{}.k{}", name, position));
      ranks.push_back(type(r).rank);
    }
    return fmt::format("SELECT {}{} AS chunk FROM {}", named(columns), call_of(op.kernel, ranks, op.numbers, columns),
                       from);
  }

  std::string operator()(const ReKey& op) const {
    const std::vector<std::string> columns = column_names(type(0).key_arity, "x.");
    std::vector<std::string> keys;
    for (const KeyExpr& expr : op.map.outputs) keys.push_back(to_sql(expr, columns, dialect_));
    return fmt::format("SELECT {}x.chunk AS chunk FROM {} AS x", named(keys), from_[0]);
  }

  std::string operator()(const Filter& op) const {
    const std::vector<std::string> columns = column_names(type(0).key_arity, "x.");
    return fmt::format("SELECT {}x.chunk AS chunk FROM {} AS x WHERE {}", named(columns), from_[0],
                       condition_sql(op.predicate, columns, dialect_));
  }

  std::string operator()(const Transform& op) const {
    const std::vector<std::string> columns = column_names(type(0).key_arity, "x.");
    return fmt::format("SELECT {}{} AS chunk FROM {} AS x", named(columns),
                       call_of(op.kernel, {type(0).rank}, op.numbers, columns), from_[0]);
  }

  std::string operator()(const Tile& op) const {
    std::vector<std::string> columns = column_names(type(0).key_arity, "x.");
    columns.emplace_back("t.i");
    return fmt::format(
        "SELECT {0}{6}(x.chunk, {1}, {2}, t.i) AS chunk FROM {3} AS x{5}({4}) AS t "
        "ON t.i = 0 OR t.i * {2} < {7}(x.chunk, {1})",
        named(columns), op.dim, op.size, from_[0], numbers_below(dialect_, most_tiles(type(0), op)),
        join_from_left(dialect_), own("einrel_tile"), own("einrel_extent"));
  }

  std::string operator()(const Concat& op) const {
    const KeyPositions kept = complement({op.key_position}, type(0).key_arity);
    return fmt::format("SELECT {}{}({}, x.k{}, x.chunk) AS chunk FROM {} AS x {}", keys_from(kept),
                       own("einrel_concat"), op.array_dim, op.key_position, from_[0], group_by(kept));
  }

  /// Per dimension that changes, which pieces of the old chunks make up the new ones: (old chunk, new chunk, where the
  /// piece begins in each, its extent). Where each new chunk is one piece, nothing is put together; where each old
  /// chunk is one, nothing is cut. Else pieces are kept before they are sorted, which would be done with all of the old
  /// chunk beside each.
  std::string operator()(const Repartition& op) const {
    if (has_windows(op.to)) throw UserError("databases have no chunks that overlap; repartition without windows");
    const Shape bound = tensor_bound(type(0));
    std::vector<std::string> keys;
    std::string boxes;
    std::vector<std::string> places;
    std::string joins;
    const auto [is_cut, is_put_together] = change_of_cuts(bound, op.from, op.to);
    for (std::size_t d = 0; d < bound.size(); ++d) {
      const bool changes = op.from[d] != op.to[d] && bound[d] != Extent(0);
      keys.push_back(changes ? fmt::format("p{}.new", d) : fmt::format("x.k{}", d));
      places.push_back(changes ? fmt::format("p{}.place", d) : "0");
      // An extent is computed from the key: einrel_extent would be handed the whole chunk once more.
      boxes += changes ? fmt::format(", p{0}.begin, p{0}.extent", d)
                       : fmt::format(", 0, {}", extent_of_chunk(bound[d], op.from[d], fmt::format("x.k{}", d)));
      if (!changes) continue;
      joins += fmt::format("{0}({1}) AS p{2} ON x.k{2} = p{2}.old", join_from_left(dialect_),
                           pieces(bound[d], op.from[d], op.to[d]), d);
    }
    const std::string piece = is_cut ? fmt::format("{}(x.chunk{})", own("einrel_box"), boxes) : "x.chunk";
    if (!is_put_together)
      return fmt::format("SELECT {}{} AS chunk FROM {} AS x{}", named(keys), piece, from_[0], joins);
    if (!is_cut)
      return fmt::format("SELECT {}{}({}, {}) AS chunk FROM {} AS x{} GROUP BY {}", named(keys), own("einrel_place"),
                         piece, fmt::join(places, ", "), from_[0], joins, fmt::join(keys, ", "));
    std::string kept_places;
    for (std::size_t d = 0; d < places.size(); ++d) kept_places += fmt::format("{} AS q{}, ", places[d], d);
    const std::vector<std::string> kept = column_names(keys.size(), "p.");
    std::vector<std::string> at;
    for (std::size_t d = 0; d < keys.size(); ++d) at.push_back(fmt::format("p.q{}", d));
    return fmt::format(
        "SELECT * FROM (WITH boxes AS MATERIALIZED (SELECT {}{}{} AS piece FROM {} AS x{})\n"
        "  SELECT {}{}(p.piece, {}) AS chunk FROM boxes AS p GROUP BY {}) AS placed",
        named(keys), kept_places, piece, from_[0], joins, named(kept), own("einrel_place"), fmt::join(at, ", "),
        fmt::join(kept, ", "));
  }

 private:
  std::string own(const char* function) const { return own_function(dialect_, function); }
  const RelationType& type(std::size_t input) const { return types_[node_.inputs[input].index]; }

  std::string kernel_text(const Kernel& kernel, const std::vector<std::size_t>& ranks) const {
    return literal(kernels_.add(with_scalars(kernel, scalars_), ranks));
  }

  std::string call_of(const Kernel& kernel, std::vector<std::size_t> ranks, const KeyMap& numbers,
                      const std::vector<std::string>& columns) const {
    std::string arguments;
    for (std::size_t r = 0; r < ranks.size(); ++r) arguments += fmt::format(", {}.chunk", name_of_input(r));
    for (const KeyExpr& expr : numbers.outputs) arguments += ", " + to_sql(expr, columns, dialect_);
    ranks.resize(ranks.size() + numbers.outputs.size(), 0);
    return fmt::format("{}({}{})", own("einrel_kernel"), kernel_text(kernel, ranks), arguments);
  }

  /// What an input is called: x, y, y2, y3, ...
  static std::string name_of_input(std::size_t input) {
    return input == 0 ? "x" : input == 1 ? "y" : fmt::format("y{}", input);
  }
  /// "x.k0 AS k0, y.k1 AS k1, "
  static std::string named(const std::vector<std::string>& columns) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) text += fmt::format("{} AS k{}, ", columns[i], i);
    return text;
  }
  static std::string keys_from(const KeyPositions& positions) {
    std::vector<std::string> columns;
    for (const std::size_t position : positions) columns.push_back(fmt::format("x.k{}", position));
    return named(columns);
  }
  /// GROUP BY of no columns makes a group of no tuples, too.
  static std::string group_by(const KeyPositions& positions) {
    std::vector<std::string> columns;
    for (const std::size_t position : positions) columns.push_back(fmt::format("x.k{}", position));
    return grouped(columns);
  }
  static std::string grouped(const std::vector<std::string>& columns) {
    return columns.empty() ? "HAVING count(*) > 0" : fmt::format("GROUP BY {}", fmt::join(columns, ", "));
  }
  std::string pieces(Extent extent, const DimensionCut& from, const DimensionCut& to) const {
    std::vector<std::string> rows;
    const std::vector<std::vector<Piece>> by_part = pieces_of(extent, from, to);
    for (std::size_t part = 0; part < by_part.size(); ++part) {
      const std::int64_t new_begin = chunk_begin(extent, to, static_cast<std::int64_t>(part));
      for (const Piece& piece : by_part[part]) {
        const std::string key = rows.empty() ? typed_key(dialect_, 0) : fmt::format("{}", part);
        rows.push_back(fmt::format("({}, {}, {}, {}, {})", piece.part, key,
                                   piece.begin - chunk_begin(extent, from, piece.part), piece.begin - new_begin,
                                   piece.extent));
      }
    }
    return fmt::format("WITH pieces(old, new, begin, place, extent) AS (VALUES {}) SELECT * FROM pieces",
                       fmt::join(rows, ", "));
  }

  const TraNode& node_;
  const std::vector<RelationType>& types_;
  std::vector<std::string> from_;
  const ScalarBindings& scalars_;
  KernelTable& kernels_;
  Dialect dialect_;
};

/// Puts the nodes of a program into statements.
class ScriptBuilder {
 public:
  ScriptBuilder(const TraExpr& program, const std::map<std::string, std::string>& inputs, const ScalarBindings& scalars,
                const Remarks& remarks, TableNames& names, KernelTable& kernels, Dialect dialect,
                const std::optional<Sharing>& sharing)
      : program_(program),
        types_(infer(program)),
        inputs_(inputs),
        scalars_(scalars),
        remarks_(remarks),
        names_(names),
        kernels_(kernels),
        dialect_(dialect),
        sharing_(sharing) {}

  ChunkScript run() {
    count_readers();
    places_.resize(program_.nodes.size());
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      check_size(n);
      if (const auto* const stored = std::get_if<StoredRelation>(&program_.nodes[n].op)) {
        places_[n] = inputs_.at(stored->name);
      } else if (is_table(n)) {
        add_table(n);
      } else {
        places_[n] = fmt::format("step{}", n);
      }
    }
    for (const TraOutput& output : program_.outputs) {
      made_.tables[output.name] = places_[output.id.index];
      made_.types[output.name] = types_[output.id.index];
    }
    return std::move(made_);
  }

 private:
  void count_readers() {
    readers_.resize(program_.nodes.size());
    for (const TraNode& node : program_.nodes) {
      for (const TraId input : node.inputs) ++readers_[input.index];
    }
    for (const TraOutput& output : program_.outputs) readers_[output.id.index] += 2;
  }

  /// Whether a node is a table of its own. One in another format is, so that a join finds its chunks by an index.
  bool is_table(std::size_t n) const {
    const TraNode& node = program_.nodes[n];
    return !node.name.empty() || readers_[n] != 1 || std::holds_alternative<Repartition>(node.op);
  }

  void check_size(std::size_t n) const {
    std::int64_t most = 0;
    for (const Chunk& chunk : types_[n].chunks)
      most = std::max(
          most, checked_multiply(element_count(chunk.bound), static_cast<std::int64_t>(size_of(types_[n].dtype))));
    if (most <= most_chunk_bytes) return;
    throw UserError(
        fmt::format("a chunk of {} has {}, but a value in the database has at most 1 GB; give it a format "
                    "of smaller chunks with --formats",
                    describe(program_, TraId{n}), bytes_text(most)));
  }

  /// The nodes without a table that a table is computed from, inputs first, then its own.
  std::vector<std::size_t> steps_of(std::size_t table) const {
    std::vector<std::size_t> found;
    std::vector<std::size_t> waiting{table};
    while (!waiting.empty()) {
      const std::size_t n = waiting.back();
      waiting.pop_back();
      found.push_back(n);
      for (const TraId input : program_.nodes[n].inputs) {
        const bool is_stored = std::holds_alternative<StoredRelation>(program_[input].op);
        if (!is_stored && !is_table(input.index)) waiting.push_back(input.index);
      }
    }
    std::sort(found.begin(), found.end());  // inputs stand before their users, and each has one reader
    return found;
  }

  /// Whether a step's reader asks for its chunks more often than once, and would compute them as often.
  bool is_read_often(std::size_t step, const std::vector<std::size_t>& steps) const {
    return std::any_of(steps.begin(), steps.end(), [&](std::size_t n) {
      const TraNode& node = program_.nodes[n];
      const bool reads = std::find(node.inputs.begin(), node.inputs.end(), TraId{step}) != node.inputs.end();
      return reads && (std::holds_alternative<Join>(node.op) || std::holds_alternative<Tile>(node.op) ||
                       std::holds_alternative<Repartition>(node.op));
    });
  }

  std::string query(std::size_t n) {
    const TraNode& node = program_.nodes[n];
    std::vector<std::string> from;
    for (const TraId input : node.inputs) from.push_back(places_[input.index]);
    return std::visit(QueryOf(node, types_, std::move(from), scalars_, kernels_, dialect_), node.op);
  }

  /// What a table is for. One without a name is a part of the vertex whose result comes next.
  Work work_of(std::size_t table) const {
    const TraNode& node = program_.nodes[table];
    if (const auto* const change = std::get_if<Repartition>(&node.op)) {
      const TraNode& from = program_[node.inputs[0]];
      const auto* const stored = std::get_if<StoredRelation>(&from.op);
      return {WorkKind::transform, stored == nullptr ? from.name : stored->name, change->to};
    }
    const auto named = std::find_if(program_.nodes.begin() + static_cast<std::ptrdiff_t>(table), program_.nodes.end(),
                                    [](const TraNode& each) { return !each.name.empty(); });
    return named == program_.nodes.end() ? Work{} : Work{WorkKind::compute, named->name, {}};
  }

  /// What finds the chunks of tables that a join asks for.
  void add_indexes(const TraNode& node, const Work& work) {
    const auto* const join = std::get_if<Join>(&node.op);
    if (join == nullptr) return;
    const std::vector<JoinedRelation> joined = joined_by(node, *join, types_);
    const auto is_there = [&](TraId input) {
      return std::holds_alternative<StoredRelation>(program_[input].op) || is_table(input.index);
    };
    for (std::size_t r = 1; r < joined.size(); ++r) {
      const bool is_right = is_there(node.inputs[r]);
      if (joined[r].right.empty() || (!is_right && (r > 1 || !is_there(node.inputs[0])))) continue;
      std::vector<std::string> columns;
      for (const std::size_t position : is_right ? joined[r].right : joined[r].left)
        columns.push_back(fmt::format("k{}", position));
      const std::string& table = places_[node.inputs[is_right ? r : 0].index];
      for (const Statement& statement : index_for_join(dialect_, table, columns))
        made_.statements.push_back({statement.about, statement.text, work});
    }
  }

  void add_table(std::size_t n) {
    const std::string& name = program_.nodes[n].name;
    const std::vector<std::size_t> steps = steps_of(n);
    const Work work = work_of(n);
    for (const std::size_t step : steps) add_indexes(program_.nodes[step], work);
    std::string text;
    bool is_kept = false;  // a step: no process sees what another one keeps
    for (const std::size_t step : steps) {
      if (step == n) continue;
      const bool keeps = is_read_often(step, steps);
      is_kept = is_kept || keeps;
      text += fmt::format("{}step{} AS{} (\n  {})", text.empty() ? "WITH " : ",\n", step, keeps ? " MATERIALIZED" : "",
                          query(step));
    }
    text += (text.empty() ? "" : "\n") + query(n);
    const auto remark = remarks_.find(name);
    const bool is_vertex = !name.empty() && remark != remarks_.end();
    const bool is_shared = sharing_ && is_vertex && remark->second.is_large && !is_kept;
    if (is_shared) text = in_parts(text, types_[n].key_arity, sharing_->parts);
    const std::string table =
        chunk_table(dialect_, sharing_, names_.fresh(name.empty() ? fmt::format("step{}", n) : name));
    places_[n] = table;
    const std::string about =
        is_vertex ? fmt::format("{}; {} ({})", remark->second.formula, to_string(types_[n]), remark->second.why)
                  : fmt::format("{}; {}", describe(program_, TraId{n}), to_string(types_[n]));
    Statement statement{about, fmt::format("{} AS\n{}", create_chunks(dialect_, table), text), work};
    // PostgreSQL's processes share a query that makes a table, and none whose rows go into one that is there.
    statement.fills = {table, types_[n].key_arity, is_shared ? "" : std::move(text)};
    made_.statements.push_back(std::move(statement));
  }

  const TraExpr& program_;
  std::vector<RelationType> types_;
  const std::map<std::string, std::string>& inputs_;
  const ScalarBindings& scalars_;
  const Remarks& remarks_;
  TableNames& names_;
  KernelTable& kernels_;
  Dialect dialect_;
  const std::optional<Sharing>& sharing_;
  std::vector<std::size_t> readers_;
  std::vector<std::string> places_;  // by node: the table, or the part of a statement, to read it from
  ChunkScript made_;
};

}  // namespace

Kernel with_scalars(Kernel kernel, const ScalarBindings& scalars) {
  for (KernelStep& step : kernel.steps) {
    auto* const einsum = einsum_of(step);
    if (einsum == nullptr) continue;
    for (ScalarStep& each : einsum->body.steps) {
      const auto* const scalar = std::get_if<ScalarValue>(&each.op);
      if (scalar == nullptr) continue;
      const Number value = as_type(each.type, scalars.at(scalar->name));
      Constant constant;
      std::visit([&](auto number) { constant.value = number; }, value);
      each.op = constant;
    }
  }
  return kernel;
}

ChunkScript chunk_script(const TraExpr& program, const std::map<std::string, std::string>& inputs,
                         const ScalarBindings& scalars, const Remarks& remarks, TableNames& names, KernelTable& kernels,
                         Dialect dialect, const std::optional<Sharing>& sharing) {
  return ScriptBuilder(program, inputs, scalars, remarks, names, kernels, dialect, sharing).run();
}

}  // namespace einrel::sql
