#include "tra/text/print_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "tra/named_kernels.h"
#include "tra/signature.h"
#include "tra/text/call_tree.h"

namespace einrel {
namespace {

/// Whether two kernels are the same but for their names and the order of operands and labels.
bool same_steps(const Kernel& a, const Kernel& b) {
  return a.arguments == b.arguments && in_reading_order(a).steps == in_reading_order(b).steps;
}

/// "diag . matAdd" at its dots.
std::vector<std::string> split_names(const std::string& name) {
  constexpr std::string_view dot = " . ";
  std::vector<std::string> names;
  std::size_t begin = 0;
  for (std::size_t at = name.find(dot); at != std::string::npos; at = name.find(dot, begin)) {
    names.push_back(name.substr(begin, at - begin));
    begin = at + dot.size();
  }
  names.push_back(name.substr(begin));
  return names;
}

/// Names every value of a kernel and makes its statement.
class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, const std::vector<std::size_t>& ranks) : kernel_(kernel), ranks_(ranks) {
    std::set<std::string> taken;
    for (const KernelStep& step : kernel.steps) {
      std::visit([&](const auto& op) { note_labels(op, taken); }, step.op);
    }
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) names_.push_back(fresh(taken, 'A'));
    for (std::size_t i = 0; i + 1 < kernel.steps.size(); ++i) names_.push_back(fresh(taken, 'S'));
    names_.push_back(fresh(taken, 'Z'));
    for (const KernelStep& step : kernel.steps) steps_.push_back(with_distinct_labels(step));
  }

  const std::set<std::string>& scalars() const { return scalars_; }

  /// The statement; with `explicit_types` every value in it says its type.
  std::string statement(const std::string& name, bool explicit_types) const {
    std::vector<std::string> parameters;
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i)
      parameters.push_back(fmt::format("{}[{}]", names_[i], indices_of(i)));
    std::map<std::string, std::int64_t> extents;
    for (const KernelStep& step : steps_)
      std::visit([&](const auto& op) { note_extents(op.labels, extents); }, step.op);
    std::vector<std::string> dims;
    for (const auto& [label, extent] : extents) dims.push_back(fmt::format("{}={}", label, extent));
    std::vector<std::string> given;
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
      const auto [left, body] = halves(formula_of(i, explicit_types));
      given.push_back(fmt::format("{}[{}] = {}", names_[kernel_.arguments.size() + i], left, body));
    }
    auto [left, body] = halves(formula_of(steps_.size() - 1, explicit_types));
    const bool is_one_view = steps_.size() == 1 && view_of(steps_[0]) != nullptr;
    if (is_one_view && kernel_.arguments.size() == 1) body = "view";
    return fmt::format("kernel {}({}) -> [{}]{}{} = {}{}{}", name, fmt::join(parameters, ", "), left,
                       dims.empty() ? "" : " with ", fmt::join(dims, ", "), body, given.empty() ? "" : " given ",
                       fmt::join(given, ", "));
  }

 private:
  void note_labels(const EinSum& einsum, std::set<std::string>& taken) {
    for (const Label& label : einsum.labels) taken.insert(label.name);
    for (const ScalarStep& step : einsum.body.steps) {
      if (const auto* scalar = std::get_if<ScalarValue>(&step.op)) scalars_.insert(scalar->name);
    }
    taken.insert(scalars_.begin(), scalars_.end());
  }
  template <class Other>
  static void note_labels(const Other& other, std::set<std::string>& taken) {
    for (const Label& label : other.labels) taken.insert(label.name);
  }

  /// A, B, ..., Z, A2, B2, ...: the first from `letter` on that nothing is called.
  static std::string fresh(std::set<std::string>& taken, char letter) {
    constexpr int letters = 26;
    for (int i = letter - 'A';; ++i) {
      std::string name(1, static_cast<char>('A' + i % letters));
      if (i >= letters) name += std::to_string(i / letters + 1);
      if (taken.insert(name).second) return name;
    }
  }

  /// Text needs labels that differ from each other and from scalars.
  KernelStep with_distinct_labels(KernelStep step) const {
    std::set<std::string> taken = scalars_;
    std::visit(
        [&](auto& op) {
          for (Label& label : op.labels) {
            const std::string base = label.name;
            for (int n = 2; !taken.insert(label.name).second; ++n) label.name = fmt::format("{}{}", base, n);
          }
        },
        step.op);
    return step;
  }

  /// "[i,k] = body" of a step as the language prints it.
  std::string formula_of(std::size_t i, bool explicit_types) const {
    EinGraph graph;
    for (std::size_t v = 0; v < kernel_.arguments.size() + i; ++v) {
      const bool is_argument = v < kernel_.arguments.size();
      const DType dtype = is_argument ? kernel_.arguments[v] : steps_[v - kernel_.arguments.size()].dtype;
      graph.vertices.push_back({names_[v], dtype, {}, {}, Input{}, {}});
    }
    const KernelStep& step = steps_[i];
    Vertex vertex{"", step.dtype, {}, {}, Input{}, {}};
    for (const std::size_t read : step.reads) vertex.inputs.push_back({read});
    std::visit([&](const auto& op) { vertex.op = op; }, step.op);
    if (EinSum* einsum = einsum_of(vertex); einsum != nullptr && explicit_types) write_types(*einsum, step.dtype);
    std::string text = formula(vertex, graph);
    if (explicit_types && rounds_reduction(vertex)) {  // the reduction, not what it is of
      text.insert(text.find("] = ") + 4, std::string(name_of(vertex.dtype)) + "(");
      text += ")";
    }
    return text;
  }

  static bool rounds_reduction(const Vertex& vertex) {
    const EinSum* const einsum = einsum_of(vertex);
    return einsum != nullptr && einsum->reducer && is_narrow(vertex.dtype);
  }

  /// Adds conversions that change nothing but say the type of what text would leave open. Numbers of integer types
  /// narrower than i64 cannot say it; they take it from what they meet.
  static void write_types(EinSum& einsum, DType result) {
    ScalarExpr body;
    for (const ScalarStep& step : einsum.body.steps) {
      body.steps.push_back(step);
      const bool is_value = std::holds_alternative<OperandValue>(step.op);
      const bool is_scalar = std::holds_alternative<ScalarValue>(step.op);
      const bool is_number = std::holds_alternative<Constant>(step.op) || std::holds_alternative<LabelValue>(step.op);
      const bool says_type = is_value || (is_scalar && is_float(step.type)) ||
                             (is_number && (is_float(step.type) || step.type == DType::i64));
      if (says_type) body.steps.push_back({step.type, Convert{}});
    }
    const bool is_rounded = body.steps.back() == ScalarStep{DType::f32, Round{result}};
    if (is_narrow(result) && !einsum.reducer && !is_rounded) body.steps.push_back({DType::f32, Round{result}});
    einsum.body = std::move(body);
  }

  /// What stands between the brackets on the left, and what follows the sign.
  static std::pair<std::string, std::string> halves(const std::string& formula) {
    const std::size_t close = formula.find("] = ");
    return {formula.substr(1, close - 1), formula.substr(close + 4)};
  }

  /// Those that no array gives.
  static void note_extents(const std::vector<Label>& labels, std::map<std::string, std::int64_t>& extents) {
    for (const Label& label : labels) {
      if (!label.extent.is_open()) extents[label.name] = label.extent.value();
    }
  }

  /// Whether the operand gives no label its extent.
  static bool is_padded(const KernelStep& step, std::size_t operand) {
    const EinSum* const einsum = einsum_of(step);
    return einsum != nullptr && einsum->operands[operand].pad.has_value();
  }

  /// Whether a body uses the operand; others are there for their extents.
  static bool is_used(const KernelStep& step, std::size_t operand) {
    const EinSum* einsum = einsum_of(step);
    return einsum == nullptr ||
           std::any_of(einsum->body.steps.begin(), einsum->body.steps.end(), [&](const ScalarStep& each) {
             const auto* value = std::get_if<OperandValue>(&each.op);
             return value != nullptr && value->operand == operand;
           });
  }

  /// The indices of a parameter: of the operand that is there for its extents, else as it is first read, else one label
  /// per dimension.
  std::string indices_of(std::size_t argument) const {
    for (const bool used : {false, true}) {
      for (const KernelStep& step : steps_) {
        for (std::size_t i = 0; i < step.reads.size(); ++i) {
          if (step.reads[i] == argument && is_used(step, i) == used && !is_padded(step, i))
            return indices_text(step, i);
        }
      }
    }
    std::vector<std::string> labels;
    for (std::size_t d = 0; d < ranks_[argument]; ++d) labels.push_back(fmt::format("unused{}", d));
    return fmt::format("{}", fmt::join(labels, ","));
  }

  /// The indices of an operand, as the language prints a body that is nothing but its read.
  static std::string indices_text(const KernelStep& step, std::size_t operand) {
    EinGraph graph;
    graph.vertices.push_back({"X", DType::f32, {}, {}, Input{}, {}});
    Vertex vertex{"", DType::f32, {}, {{0}}, Input{}, {}};
    if (const EinSum* const einsum = einsum_of(step)) {
      EinSum only{einsum->labels, {}, {}, std::nullopt, {einsum->operands[operand]}, {}};
      only.operands[0].pad.reset();
      only.body.steps.push_back({DType::f32, OperandValue{0}});
      vertex.op = std::move(only);
    } else {
      std::visit([&](const auto& op) { vertex.op = op; }, step.op);
    }
    const std::string text = formula(vertex, graph);
    const std::size_t open = text.rfind("X[") + 2;
    return text.substr(open, text.find(']', open) - open);
  }

  const Kernel& kernel_;
  const std::vector<std::size_t>& ranks_;
  std::set<std::string> scalars_;
  std::vector<std::string> names_;  // of the arguments, then the results of the steps
  std::vector<KernelStep> steps_;
};

/// Whether reading the statement makes the kernel again.
bool makes(const std::string& statement, const std::set<std::string>& scalars, const Kernel& kernel) {
  std::vector<Diagnostic> errors;
  calls::Program program = calls::parse(SourceText(kernel.name, statement), errors);
  if (!errors.empty()) return false;
  KernelDefinition& definition = std::get<calls::KernelStatement>(program.statements.front().what).definition;
  definition.scalars.assign(scalars.begin(), scalars.end());
  const std::optional<Kernel> made = kernel_from(definition, kernel.arguments, errors);
  return made && same_steps(*made, kernel);
}

/// What no text says, in words that there are.
class ReadableBody {
 public:
  explicit ReadableBody(const EinSum& einsum) : einsum_(einsum) {}

  ScalarExpr run() {
    for (const ScalarStep& step : einsum_.body.steps) add(step);
    for (const std::size_t label : einsum_.reduced) {
      if (!is_read(label)) use(label);
    }
    return std::move(body_);
  }

 private:
  void add(const ScalarStep& step) {
    const auto* const constant = std::get_if<Constant>(&step.op);
    const auto* const real = constant == nullptr ? nullptr : std::get_if<double>(&constant->value);
    if (real != nullptr && std::isnan(*real)) {
      const ScalarStep infinite{step.type, Constant{std::numeric_limits<double>::infinity()}};
      body_.steps.push_back(infinite);
      body_.steps.push_back(infinite);
      body_.steps.push_back({step.type, ApplyBinary{BinaryFunction::subtract}});
    } else if (constant != nullptr && real == nullptr && step.type != DType::i64) {
      body_.steps.push_back({DType::i64, step.op});
      body_.steps.push_back({step.type, Convert{}});
    } else {
      body_.steps.push_back(step);
      // What is rounded is of the narrow type in text, but f32 here; random numbers take the type of what they meet.
      const bool says_other = std::holds_alternative<Round>(step.op) || std::holds_alternative<ApplyRandom>(step.op);
      if (says_other) body_.steps.push_back({step.type, Convert{}});
    }
  }

  bool is_read(std::size_t label) const {
    return std::any_of(einsum_.body.steps.begin(), einsum_.body.steps.end(), [&](const ScalarStep& step) {
      const auto* const value = std::get_if<LabelValue>(&step.op);
      const auto* const operand = std::get_if<OperandValue>(&step.op);
      return (value != nullptr && value->label == label) ||
             (operand != nullptr && reads(einsum_.operands[operand->operand], label));
    });
  }

  static bool reads(const Access& operand, std::size_t label) {
    return std::any_of(operand.indices.begin(), operand.indices.end(), [&](const Index& index) {
      return std::any_of(index.terms.begin(), index.terms.end(),
                         [&](const IndexTerm& term) { return term.label == label; });
    });
  }

  /// where(l == l, body, body)
  void use(std::size_t label) {
    const std::vector<ScalarStep> once = std::move(body_.steps);
    const DType type = once.back().type;
    const ScalarStep position{DType::i64, LabelValue{label}};
    body_.steps = {position, position, {DType::boolean, ApplyBinary{BinaryFunction::equal}}};
    for (int time = 0; time < 2; ++time) body_.steps.insert(body_.steps.end(), once.begin(), once.end());
    body_.steps.push_back({type, ApplyWhere{}});
  }

  const EinSum& einsum_;
  ScalarExpr body_;
};

}  // namespace

bool is_in_registry(const Kernel& kernel, const std::vector<std::size_t>& ranks) {
  std::vector<DType> dtypes = kernel.arguments;
  std::vector<std::size_t> rest = ranks;
  std::optional<Kernel> made;
  const std::vector<std::string> names = split_names(kernel.name);
  try {
    for (std::size_t i = names.size(); i-- > 0;) {
      if (!is_named_kernel(names[i])) return false;
      const Kernel next = named_kernel(names[i], dtypes, rest);
      rest = {result_rank(next, rest)};
      dtypes = {result_dtype(next)};
      made = made ? compose(next, *made) : next;
    }
  } catch (const UserError&) {
    return false;  // the name is of the registry, but it does not take such arrays
  }
  return *made == kernel;
}

std::string kernel_statement(const Kernel& kernel, const std::string& name, const std::vector<std::size_t>& ranks) {
  const KernelPrinter printer(kernel, ranks);
  std::string statement = printer.statement(name, false);
  if (makes(statement, printer.scalars(), kernel)) return statement;
  std::string typed = printer.statement(name, true);
  return makes(typed, printer.scalars(), kernel) ? typed : statement;
}

std::string readable_statement(const Kernel& kernel, const std::string& name, const std::vector<std::size_t>& ranks) {
  const KernelPrinter printer(kernel, ranks);
  for (const bool explicit_types : {false, true}) {
    std::string statement = printer.statement(name, explicit_types);
    if (makes(statement, printer.scalars(), kernel)) return statement;
  }
  Kernel other = kernel;
  for (KernelStep& step : other.steps) {
    if (EinSum* const einsum = einsum_of(step)) einsum->body = ReadableBody(*einsum).run();
  }
  return KernelPrinter(other, ranks).statement(name, true);
}

}  // namespace einrel
