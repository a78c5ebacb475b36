#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/suggest.h"
#include "einsum/check/check_complex.h"
#include "einsum/check/check_opaque.h"
#include "einsum/check/check_pick.h"
#include "einsum/check/check_state.h"
#include "einsum/check/check_vertex.h"
#include "einsum/check/label_scope.h"
#include "einsum/check/typing.h"
#include "einsum/expr/random_number.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel::checking {
namespace {

/// Checks one definition and turns it into vertices.
class DefinitionChecker {
 public:
  DefinitionChecker(CheckState& state, const build::Definition& definition, Span where)
      : state_(state),
        definition_(definition),
        where_(where),
        scope_(state),
        typed_(state.errors),
        maker_(state, definition.name.text, where, scope_) {}

  TensorInfo run() {
    const std::size_t errors_before = state_.errors.size();
    expr_ = definition_.value;
    TensorInfo info;
    info.where = definition_.name.span;
    check_distinct(state_, definition_.labels);
    if (state_.macros.expand(expr_, state_.errors)) {
      if (state_.made == nullptr) state_.written_operations += static_cast<double>(expr_.nodes.size());
      open_scopes();
      resolve_extents();
      info = build();
    }
    info.where = definition_.name.span;
    info.broken = !is_computed_ || state_.errors.size() > errors_before;
    info.extents.clear();
    for (const std::size_t label : left_) info.extents.push_back(scope_.extent(label));
    info.extents.resize(definition_.labels.size());
    return info;
  }

 private:
  // --- names and labels ---------------------------------------------------------------------------

  void open_scopes() {
    for (const build::Name& label : definition_.labels) left_.push_back(scope_.add(label));
    enclosing_ = build::enclosing_reductions(expr_);
    bound_.resize(expr_.nodes.size());
    for (std::size_t i = 0; i < expr_.nodes.size(); ++i) {
      const auto* reduce = std::get_if<build::Reduce>(&expr_.nodes[i].op);
      if (reduce != nullptr) check_distinct(state_, reduce->labels);
      for (const build::Name& label : build::bound_labels(expr_.nodes[i])) bound_[i].push_back(scope_.add(label));
    }
  }

  /// The label that `name` means inside node `node`: that of the innermost reduction, else of the left side.
  std::optional<std::size_t> find_label(const std::string& name, std::size_t node) const {
    for (std::size_t r = enclosing_[node]; r != build::no_reduction; r = enclosing_[r]) {
      for (const std::size_t label : bound_[r]) {
        if (scope_.name(label) == name) return label;
      }
    }
    for (const std::size_t label : left_) {
      if (scope_.name(label) == name) return label;
    }
    return std::nullopt;
  }

  /// A label that is neither on the left nor reduced: reported once, then known, so that checking goes on.
  std::size_t resolve_label(const build::Name& label, std::size_t node, const build::Access& reader) {
    if (const auto found = find_label(label.text, node)) {
      scope_.note_use(*found);
      return *found;
    }
    if (const auto known = maker_.find_loose(label.text)) return *known;
    const std::string shown = display_label(label.text);
    state_.error(
        fmt::format("label '{}' is not reduced: it stands in {} but not on the left", shown, access_text(reader)),
        {label.span}, reduce_it(shown));
    const std::size_t added = scope_.add(label);
    maker_.add_loose(label.text, added);
    return added;
  }

  /// The remedy for a label that nothing binds.
  std::string reduce_it(const std::string& label) const {
    if (state_.tensors.contains(label)) return fmt::format("'{0}' is a tensor: index by its elements, {0}[...]", label);
    if (state_.scalars.contains(label)) return fmt::format("to read at the value of the scalar, write i64({})", label);
    for (const build::Node& node : definition_.value.nodes) {  // as written: those of macros nobody sees
      const auto* reduce = std::get_if<build::Reduce>(&node.op);
      if (reduce == nullptr) continue;
      for (const build::Name& bound : reduce->labels) {
        if (bound.text != label) continue;
        std::vector<std::string> labels;
        for (const build::Name& each : reduce->labels) labels.push_back(display_label(each.text));
        return fmt::format(
            "{0}[{1}] of this statement does not cover it; put what it covers in parentheses, {0}[{1}] (...)",
            name_of(reduce->reducer), fmt::join(labels, ","));
      }
    }
    std::vector<std::string> left;
    for (const std::size_t l : left_) {
      if (!is_parts_label(scope_.name(l))) left.push_back(scope_.name(l));
    }
    const std::string near = nearest_name(label, left);
    left.push_back(label);
    return fmt::format("reduce it by name, sum[{}] ..., or add it to the left: {}[{}]{}", label, definition_.name.text,
                       fmt::join(left, ","), near.empty() ? "" : fmt::format("; or did you mean '{}'?", near));
  }

  std::optional<PooledAccess> resolve_access(const build::Access& access, std::size_t node) {
    const TensorInfo* tensor = find_tensor(state_, access.tensor);
    PooledAccess pooled;
    pooled.access.pad = access.pad;
    for (const build::Index& index : access.indices) {
      Index resolved{index.offset, {}};
      for (const build::IndexTerm& term : index.terms) {
        add_term(resolved, {term.coefficient, resolve_label(term.label, node, access)});
      }
      const std::size_t dimension = pooled.access.indices.size();
      if (index.is_computed && tensor != nullptr && dimension < tensor->extents.size())
        resolved.terms.push_back({1, add_positions(*tensor, dimension)});
      pooled.access.indices.push_back(std::move(resolved));
    }
    if (tensor == nullptr || (tensor->broken && tensor->extents.size() != access.indices.size())) {
      scope_.note_broken_read();
      return std::nullopt;
    }
    if (tensor->extents.size() != access.indices.size()) {
      state_.error(fmt::format("'{}' has {} dimension{} but is read with {} ind{}", access.tensor.text,
                               tensor->extents.size(), tensor->extents.size() == 1 ? "" : "s", access.indices.size(),
                               access.indices.size() == 1 ? "ex" : "ices"),
                   {expr_.nodes[node].span, tensor->where}, "give one index per dimension");
      scope_.note_broken_read();
      return std::nullopt;
    }
    scope_.note_access(access, pooled.access, tensor->extents);
    if (tensor->broken || !check_pad(state_, access, tensor->dtype, expr_.nodes[node].span)) return std::nullopt;
    pooled.vertex = tensor->vertex;
    pooled.dtype = tensor->dtype;
    return pooled;
  }

  static void add_term(Index& index, IndexTerm term) {
    for (IndexTerm& known : index.terms) {
      if (known.label == term.label) {
        known.coefficient += term.coefficient;
        return;
      }
    }
    index.terms.push_back(term);
  }

  /// A label for the dimension that a computed index picks from, called as the tensor calls it.
  std::size_t add_positions(const TensorInfo& tensor, std::size_t dimension) {
    std::string name = "v";
    if (dimension < tensor.labels.size()) {
      name = tensor.labels[dimension];
    } else if (!tensor.broken) {
      const Vertex& vertex = state_.builder.graph()[tensor.vertex];
      const std::vector<std::optional<std::size_t>> labels = result_labels(vertex);
      if (!is_input(vertex) && labels[dimension]) name = label_names(vertex)[*labels[dimension]];
    }
    return scope_.add_positions(name, tensor.extents[dimension]);
  }

  void resolve_extents() {
    accesses_.resize(expr_.nodes.size());
    for (std::size_t i = 0; i < expr_.nodes.size(); ++i) {
      if (const auto* access = std::get_if<build::Access>(&expr_.nodes[i].op)) {
        accesses_[i] = resolve_access(*access, i);
      } else if (const auto* use = std::get_if<build::NameUse>(&expr_.nodes[i].op)) {
        if (const auto label = find_label(use->name, i)) scope_.note_use(*label);
      } else if (const auto* call = std::get_if<build::OpaqueCall>(&expr_.nodes[i].op)) {
        const auto matrix = matrix_of(*call, i);
        if (matrix.size() > 2 && matrix[0] && matrix[1] && matrix[2])
          scope_.note_shorter(*matrix[2], {*matrix[0], *matrix[1]});
      }
    }
    check_left_labels();
    scope_.unify();
  }

  /// The labels of a call of linear algebra, as its argument knows them.
  std::vector<std::optional<std::size_t>> matrix_of(const build::OpaqueCall& call, std::size_t i) const {
    std::vector<std::optional<std::size_t>> matrix;
    for (const build::Name& name : call.matrix) {
      const auto own = std::find_if(bound_[i].begin(), bound_[i].end(),
                                    [&](std::size_t label) { return scope_.name(label) == name.text; });
      matrix.push_back(own == bound_[i].end() ? find_label(name.text, i) : *own);
    }
    return matrix;
  }

  /// A label on the left that the right side has only inside reductions over it is a slip, not a broadcast.
  void check_left_labels() {
    for (const std::size_t label : left_) {
      const bool is_reduced = std::any_of(bound_.begin(), bound_.end(), [&](const auto& labels) {
        return std::any_of(labels.begin(), labels.end(),
                           [&](std::size_t l) { return scope_.name(l) == scope_.name(label); });
      });
      if (is_reduced && !scope_.is_used(label)) {
        state_.error(
            fmt::format("label '{}' is reduced on the right, so it cannot stand on the left too", scope_.name(label)),
            {scope_.mark(label)}, "drop it on the left, or reduce over another label");
        scope_.excuse(label);
      }
      scope_.note_use(label);
    }
  }

  // --- types and vertices -------------------------------------------------------------------------

  TensorInfo build() {
    for (std::size_t i = 0; i < expr_.nodes.size(); ++i) type_node(i);
    const Span whole = expr_.nodes.back().span;
    typed_.settle(whole);
    TensorInfo info;
    is_computed_ = typed_.top().kind == TypedBuilder::Value::Kind::strong;
    if (!is_computed_) return info;  // it reads what is broken
    info.dtype = typed_.top().dtype;
    Vertex vertex = finish();
    vertex.name = definition_.name.text;
    const bool may_be_another = state_.made != nullptr && !state_.made->is_named;
    const bool is_unnamed = may_be_another || state_.unnamed.count(vertex.name) != 0;
    vertex.dtype = is_unnamed ? compute_type(info.dtype) : info.dtype;
    info.vertex = may_be_another
                      ? state_.builder.find_or_add(std::move(vertex), definition_.name.text, state_.tensor_names)
                      : state_.builder.add(std::move(vertex));
    for (const auto& [name, type] : typed_.integer_scalars()) {
      ScalarDeclaration& scalar = state_.scalars.at(name);
      if (!scalar.integer_type || type == DType::i32) scalar.integer_type = type;
      if (scalar.value && !is_exact(*scalar.value, type)) {
        state_.error(fmt::format("scalar '{}' meets integers: {} is no {}", name, *scalar.value, name_of(type)),
                     {whole}, "cast first, for example f32(...)");
      }
    }
    return info;
  }

  void type_node(std::size_t i) {
    const build::Node& node = expr_.nodes[i];
    struct Visitor {
      DefinitionChecker& self;
      std::size_t i;
      Span span;
      void operator()(const build::Number& number) const { self.typed_.push_number(number); }
      void operator()(const build::NameUse& use) const { self.type_name(use, i); }
      void operator()(const build::Access& access) const {
        build::arity(self.expr_.nodes[i]) == 0 ? self.type_access(i) : self.type_pick(access, i);
      }
      void operator()(const build::Unary& unary) const { self.typed_.unary(unary.function, span); }
      void operator()(const build::Binary& binary) const { self.typed_.binary(binary.function, span); }
      void operator()(const build::Where&) const { self.typed_.where(span); }
      void operator()(const build::Cast& cast) const { self.typed_.cast(cast.type, span); }
      void operator()(const build::Reduce& reduce) const { self.type_reduction(reduce, i); }
      void operator()(const build::Random& random) const { self.type_random(random, i); }
      void operator()(const build::InRange& range) const { self.typed_.in_range(check_of(range), span); }
      void operator()(const build::OpaqueCall& call) const { self.type_opaque(call, i); }
      void operator()(const build::ComplexCall&) const { throw Bug("complex numbers leave the program before typing"); }
      void operator()(const build::MacroCall&) const { throw Bug("macro calls are expanded before typing"); }
    };
    std::visit(Visitor{*this, i, node.span}, node.op);
  }

  void type_access(std::size_t i) { accesses_[i] ? push_read(*accesses_[i]) : typed_.push_poison(); }

  /// E[T[s],d]: a vertex of its own, which is read in this place.
  void type_pick(const build::Access& access, std::size_t i) {
    const std::vector<ComputedIndex> indices = pop_indices(access);
    const bool is_known = accesses_[i] && !indices.empty();
    if (!is_known || !may_be_picked(state_, access, *accesses_[i], indices, expr_.nodes[i].span)) {
      typed_.push_poison();
      return;
    }
    const Pick pick = pick_element(maker_, scope_, *accesses_[i], indices);
    const bool is_whole = i + 1 == expr_.nodes.size() &&
                          std::is_permutation(left_.begin(), left_.end(), pick.output.begin(), pick.output.end());
    const std::vector<std::size_t>& output = is_whole ? left_ : pick.output;
    const DType stored = maker_.graph()[accesses_[i]->vertex].dtype;
    push_result(maker_.make(pick.body, output, {pick.label}, pick.reducer, stored), accesses_[i]->dtype, output,
                is_whole);
  }

  /// Takes the computed indices of an access off the stack; none, with an error, where one is no whole number.
  std::vector<ComputedIndex> pop_indices(const build::Access& access) {
    std::vector<ComputedIndex> indices;
    bool is_good = true;
    for (std::size_t d = access.indices.size(); d-- > 0;) {
      const build::Index& index = access.indices[d];
      if (!index.is_computed) continue;
      typed_.settle(index.span);
      const TypedBuilder::Value value = typed_.top();
      const bool is_value = value.kind == TypedBuilder::Value::Kind::strong;
      if (is_value && !is_integer(value.dtype)) {
        state_.error(
            fmt::format("'{}' is indexed by {}, not by whole numbers", access.tensor.text, name_of(value.dtype)),
            {index.span}, "an index is an element of a tensor of i32 or i64; convert others: i64(...)");
      }
      is_good = is_good && is_value && is_integer(value.dtype);
      indices.insert(indices.begin(), {d, typed_.pop(), value.dtype});
    }
    return is_good ? indices : std::vector<ComputedIndex>{};
  }

  static CheckRange check_of(const build::InRange& range) {
    CheckRange check{range.tensor, {}, range.indexed, range.extent};
    for (const std::int64_t extent : range.shape) check.shape.emplace_back(extent);
    return check;
  }

  void type_name(const build::NameUse& use, std::size_t i) {
    const Span span = expr_.nodes[i].span;
    const auto scalar = state_.scalars.find(use.name);
    if (const auto label = find_label(use.name, i)) {
      if (scalar != state_.scalars.end()) {
        state_.error(fmt::format("'{}' is both a label and a scalar here", use.name), {span}, "rename the label");
      }
      typed_.push_label(*label);
    } else if (scalar != state_.scalars.end()) {
      typed_.push_scalar(use.name);
    } else {
      std::vector<std::string> left;
      for (const std::size_t known : left_) left.push_back(scope_.name(known));
      report_unknown_name(state_, use.name, span, left);
      typed_.push_poison();
    }
  }

  void type_reduction(const build::Reduce& reduce, std::size_t i) {
    const Span span = expr_.nodes[i].span;
    typed_.settle(span);
    typed_.prepare_reduction(reduce.reducer);
    const auto value = typed_.top();
    if (value.kind == TypedBuilder::Value::Kind::poison) return;
    const ScalarExpr body = typed_.pop();
    const std::vector<std::size_t> used = maker_.labels_of(body);
    bool good = true;
    for (std::size_t k = 0; k < bound_[i].size(); ++k) {
      const auto same = [&](std::size_t label) { return scope_.name(label) == scope_.name(bound_[i][k]); };
      if (std::any_of(bound_[i].begin() + static_cast<std::ptrdiff_t>(k) + 1, bound_[i].end(), same) ||
          std::any_of(bound_[i].begin(), bound_[i].begin() + static_cast<std::ptrdiff_t>(k), same)) {
        good = false;  // reported as standing twice
        continue;
      }
      if (std::binary_search(used.begin(), used.end(), bound_[i][k])) {
        good = check_not_empty(reduce, bound_[i][k], span) && good;
        continue;
      }
      good = false;
      report_absent(reduce.labels[k]);
    }
    if (!good) {
      typed_.push_poison();
      return;
    }
    std::vector<std::size_t> free;
    for (const std::size_t label : used) {
      if (std::find(bound_[i].begin(), bound_[i].end(), label) == bound_[i].end()) free.push_back(label);
    }
    std::vector<std::size_t> left = left_;
    std::sort(left.begin(), left.end());
    const DType reduced = reduced_type(reduce.reducer, value.dtype);
    const std::optional<DType> cast = cast_of_whole(i, reduced);
    const bool is_whole = (i + 1 == expr_.nodes.size() || cast) && free == left;
    const std::vector<std::size_t>& output = is_whole ? left_ : free;
    const DType dtype = is_whole ? cast.value_or(reduced) : compute_type(reduced);
    Vertex vertex = maker_.make(body, output, bound_[i], reduce.reducer, dtype);
    push_result(std::move(vertex), reduced, output, is_whole);
  }

  /// bf16(sum[j] ...) is one vertex, whose results are rounded once; so is f32(sum[j] ...) of bf16.
  std::optional<DType> cast_of_whole(std::size_t reduction, DType reduced) const {
    if (reduction + 2 != expr_.nodes.size()) return std::nullopt;
    const auto* const cast = std::get_if<build::Cast>(&expr_.nodes.back().op);
    const bool is_stored = cast != nullptr && compute_type(cast->type) == compute_type(reduced);
    return is_stored ? std::optional(cast->type) : std::nullopt;
  }

  /// uniform(seed): the number at the position that the labels on the left give. The seed is on the stack.
  void type_random(const build::Random& random, std::size_t i) {
    const Span span = expr_.nodes[i].span;
    if (random.stream) return typed_.random({random.function, *random.stream}, span);
    if (enclosing_[i] != build::no_reduction) {
      state_.error(fmt::format("{}(...) stands in a reduction, but it is one number for each element of a tensor",
                               name_of(random.function)),
                   {span},
                   fmt::format("give the numbers a tensor of their own: R[i,j] = {}(1)", name_of(random.function)));
    }
    push_position(span);
    const auto iteration = state_.scalars.find(iteration_name);
    if (iteration != state_.scalars.end() && iteration->second.is_iteration) {
      typed_.push_scalar(iteration_name);
    } else {
      typed_.push_number(whole(0));
    }
    typed_.random({random.function, stream_of(state_.current)}, span);
  }

  static build::Number whole(std::int64_t number) { return {static_cast<double>(number), number}; }

  /// Of the element on the left, in row-major order.
  void push_position(Span span) {
    typed_.push_number(whole(0));
    for (const std::size_t label : left_) {
      typed_.push_number(whole(scope_.extent(label).value_or(1)));
      typed_.binary(BinaryFunction::multiply, span);
      typed_.push_label(label);
      typed_.binary(BinaryFunction::add, span);
    }
  }

  /// inverse[i,j](x): a vertex over the batches and the matrices of x, which reads x.
  void type_opaque(const build::OpaqueCall& call, std::size_t i) {
    const Span span = expr_.nodes[i].span;
    typed_.settle(span);
    const auto value = typed_.top();
    if (value.kind == TypedBuilder::Value::Kind::poison) return;
    const ScalarExpr body = typed_.pop();
    std::optional<OpaqueVertex> made =
        opaque_vertex(state_, scope_, maker_, {call, matrix_of(call, i), body, value.dtype, left_, span});
    if (!made) {
      typed_.push_poison();
      return;
    }
    made->vertex.where = where_;
    const bool is_whole = i + 1 == expr_.nodes.size() && made->output == left_;
    push_result(std::move(made->vertex), value.dtype, made->output, is_whole);
  }

  void report_absent(const build::Name& label) {
    const std::string shown = display_label(label.text);
    if (shown != label.text) {  // made by a macro
      state_.error(fmt::format("label '{}' is this macro's own, so it does not occur in what it is called with", shown),
                   {label.span}, fmt::format("make it a parameter of the macro: def name[{}](...)", shown));
    } else {
      state_.error(fmt::format("label '{}' is reduced but does not occur in the reduced expression", shown),
                   {label.span}, "remove it, or use it");
    }
  }

  /// The reductions that have no value over nothing say so here.
  bool check_not_empty(const build::Reduce& reduce, std::size_t label, Span span) {
    const bool needs_one = has(reduce.reducer, ReducerTrait::needs_one);
    if (!needs_one || scope_.extent(label) != MaybeExtent(0)) return true;
    state_.error(fmt::format("{}[{}] has no value: the label's extent is 0", name_of(reduce.reducer),
                             display_label(scope_.name(label))),
                 {span}, "give the label a positive extent");
    return false;
  }

  /// Puts the value of a reduction on the stack as a read of its vertex. The last one of a statement is that
  /// statement's own vertex, kept back for finish().
  void push_result(Vertex vertex, DType dtype, const std::vector<std::size_t>& output, bool is_whole) {
    PooledAccess result;
    result.dtype = dtype;
    for (const std::size_t label : output) result.access.indices.push_back({0, {{1, label}}});
    if (is_whole) {
      whole_ = std::move(vertex);
      typed_.push_operand(maker_.add(std::move(result)), dtype, whole_->dtype);
    } else {
      result.vertex = maker_.find_or_add(std::move(vertex));
      push_read(std::move(result));
    }
  }

  void push_read(PooledAccess read) {
    const DType dtype = read.dtype;
    const DType stored = maker_.graph()[read.vertex].dtype;
    typed_.push_operand(maker_.add(std::move(read)), dtype, stored);
  }

  Vertex finish() {
    const DType dtype = typed_.top().dtype;
    if (whole_) return std::move(*whole_);
    ScalarExpr body = typed_.pop();
    // What is stored is rounded then.
    const std::size_t count = body.steps.size();
    const bool rounds_twice = count > 1 && body.steps.back() == ScalarStep{DType::f32, Round{dtype}};
    if (rounds_twice && body.steps[count - 2].type == DType::f32) body.steps.pop_back();
    return maker_.make(body, left_, {}, std::nullopt, dtype);
  }

  CheckState& state_;
  const build::Definition& definition_;
  Span where_;
  LabelScope scope_;
  TypedBuilder typed_;
  VertexMaker maker_;  // whose pool says what OperandValue means in typed_
  build::Expr expr_;
  std::vector<std::size_t> left_;                      // labels of the left side
  std::vector<std::size_t> enclosing_;                 // per node
  std::vector<std::vector<std::size_t>> bound_;        // per Reduce node, its labels
  std::vector<std::optional<PooledAccess>> accesses_;  // per Access node that is right
  std::optional<Vertex> whole_;                        // the statement is one reduction
  bool is_computed_ = false;                           // by a vertex
};

}  // namespace

VertexId check_made(CheckState& state, const build::Definition& definition, Span where, const MadeDefinition& made) {
  struct BeingMade {
    CheckState& state;
    BeingMade(CheckState& all, const MadeDefinition& it) : state(all) { state.made = &it; }
    ~BeingMade() { state.made = nullptr; }
    BeingMade(const BeingMade&) = delete;
    BeingMade& operator=(const BeingMade&) = delete;
  };
  const BeingMade being_made(state, made);
  build::Definition placed = definition;
  for (build::Node& node : placed.value.nodes) node.span = where;
  return DefinitionChecker(state, placed, where).run().vertex;
}

TensorInfo checked_in_real_numbers(CheckState& state, const build::Definition& definition, Span where) {
  return DefinitionChecker(state, definition, where).run();
}

TensorInfo checked_definition(CheckState& state, const build::Definition& definition, Span where) {
  return state.has_complex ? checked_complex(state, definition, where)
                           : checked_in_real_numbers(state, definition, where);
}

void check_definition(CheckState& state, const build::Definition& definition, Span where) {
  state.current = definition.name.text;
  TensorInfo info = checked_definition(state, definition, where);
  state.tensors.insert({definition.name.text, std::move(info)});
}

}  // namespace einrel::checking
