#include "tra/text/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "einsum/expr/precedence.h"
#include "tra/named_kernels.h"
#include "tra/signature.h"
#include "tra/text/print_kernel.h"

namespace einrel {
namespace {

std::string cut_text(const DimensionCut& cut) {
  if (const std::optional<Window>& window = cut.window) {
    return fmt::format("{} of {}{} from {} to {}{}", cut.parts, window->extent.value(),
                       window->coefficient == 1 ? "" : fmt::format(" by {}", window->coefficient), window->low,
                       window->high, window->pad ? " else " + number_text(*window->pad) : "");
  }
  return cut.unit == 1 ? fmt::format("{}", cut.parts) : fmt::format("{} by {}", cut.parts, cut.unit);
}

/// "[4,4] : f32 cut <2,2>"
std::string stored_text(const StoredRelation& stored) {
  std::vector<std::int64_t> extents;
  for (const Extent extent : stored.bound) extents.push_back(extent.value());
  const bool cuts_all = stored.cut == cut_of_all(stored.cut.cuts) && stored.cut.dims.size() == stored.bound.size();
  std::vector<std::string> named;
  for (std::size_t i = 0; i < stored.cut.dims.size(); ++i)
    named.push_back(fmt::format("{}: {}", stored.cut.dims[i], cut_text(stored.cut.cuts[i])));
  return fmt::format("[{}] : {} cut {}", fmt::join(extents, ","), name_of(stored.dtype),
                     cuts_all ? to_text(stored.cut.cuts) : fmt::format("<{}>", fmt::join(named, ", ")));
}

/// Comparisons need parentheses where '>' would close the key.
std::string map_text(const KeyMap& map, std::size_t arity) {
  std::vector<std::string> from;
  for (std::size_t i = 0; i < arity; ++i) from.push_back(fmt::format("k{}", i));
  std::vector<std::string> to;
  for (const KeyExpr& output : map.outputs) {
    const auto* call = std::get_if<KeyCall>(&output.steps.back());
    const bool is_logical = call != nullptr && call->function >= KeyFunction::equal;
    to.push_back(is_logical ? "(" + to_string(output) + ")" : to_string(output));
  }
  return fmt::format("<{}> -> <{}>", fmt::join(from, ","), fmt::join(to, ","));
}

const Kernel* kernel_of(const TraOp& op) {
  if (const auto* aggregate = std::get_if<Aggregate>(&op)) return &aggregate->kernel;
  if (const auto* join = std::get_if<Join>(&op)) return &join->kernel;
  const auto* transform = std::get_if<Transform>(&op);
  return transform == nullptr ? nullptr : &transform->kernel;
}

const KeyMap* numbers_of(const TraOp& op) {
  if (const auto* join = std::get_if<Join>(&op)) return &join->numbers;
  const auto* transform = std::get_if<Transform>(&op);
  return transform == nullptr ? nullptr : &transform->numbers;
}

/// Name and parameters of an operation; `kernel` is what its kernel is called, `arity` that of the keys that its own
/// read.
struct HeadText {
  const std::string& kernel;
  std::size_t arity;

  std::string operator()(const StoredRelation& op) const { return stored_text(op); }
  std::string operator()(const LabelPositions& op) const {
    return fmt::format("positions({}, {})", op.extent.value(), to_text(std::vector{op.cut}));
  }
  std::string operator()(const Aggregate& op) const {
    return fmt::format("aggregate({}, {})", to_string(op.group_by), kernel);
  }
  std::string operator()(const Join& op) const {
    return fmt::format("join({}, {}, {}{})", to_string(op.keys_left), to_string(op.keys_right), kernel,
                       numbers_text(op.numbers, arity));
  }
  std::string operator()(const ReKey& op) const { return fmt::format("rekey({})", map_text(op.map, arity)); }
  std::string operator()(const Filter& op) const { return fmt::format("filter({})", to_string(op.predicate)); }
  std::string operator()(const Transform& op) const {
    return fmt::format("transform({}{})", kernel, numbers_text(op.numbers, arity));
  }
  std::string operator()(const Tile& op) const { return fmt::format("tile({}, {})", op.dim, op.size); }
  std::string operator()(const Concat& op) const {
    return fmt::format("concat({}, {})", op.key_position, op.array_dim);
  }
  std::string operator()(const Repartition& op) const {
    return fmt::format("repartition({} -> {})", to_text(op.from), to_text(op.to));
  }
};

std::string op_text(const TraOp& op, const std::string& kernel, const std::vector<std::string>& inputs,
                    std::size_t arity) {
  std::string text = std::visit(HeadText{kernel, arity}, op);
  if (!inputs.empty()) text += fmt::format("({})", fmt::join(inputs, ", "));
  return text;
}

/// `name` as a word that can stand in text: every sign becomes '_'.
std::string as_word(const std::string& name) {
  std::string word;
  for (const char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80U;
    const bool is_digit = c >= '0' && c <= '9';
    if (is_letter || (is_digit && !word.empty())) {
      word += c;
    } else if (!word.empty() && word.back() != '_') {
      word += '_';
    }
  }
  while (!word.empty() && word.back() == '_') word.pop_back();
  return word.empty() ? "kernel1" : word;
}

/// `base`, or base_2, base_3, ...: the first that is not taken.
std::string unique_name(const std::string& base, const std::function<bool(const std::string&)>& is_taken) {
  std::string name = base;
  for (int n = 2; is_taken(name); ++n) name = fmt::format("{}_{}", base, n);
  return name;
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const TraExpr& program) : program_(program) {
    for (const TraNode& node : program.nodes) {
      std::vector<Signature> inputs;
      for (const TraId input : node.inputs) inputs.push_back(signatures_[input.index]);
      signatures_.push_back(signature_of(node.op, inputs));
    }
    name_nodes();
  }

  std::string run() {
    std::string lines;
    for (std::size_t i = 0; i < program_.nodes.size(); ++i) lines += line(i);
    std::string text;
    for (const ScalarDeclaration& scalar : program_.scalars) {
      text += fmt::format("scalar {}", scalar.name);
      text += scalar.value ? fmt::format(" = {}\n", *scalar.value) : "\n";
    }
    for (const std::string& statement : statements_) text += statement + "\n";
    return text + lines + outputs();
  }

 private:
  void name_nodes() {
    std::set<std::string> taken;
    names_.resize(program_.nodes.size());
    for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
      const TraNode& node = program_.nodes[i];
      const auto* stored = std::get_if<StoredRelation>(&node.op);
      if (stored != nullptr) names_[i] = stored->name;
      taken.insert(stored != nullptr ? stored->name : "");
    }
    const auto claim = [&](std::size_t i, const std::string& name) {
      if (names_[i].empty() && !name.empty() && taken.insert(name).second) names_[i] = name;
    };
    for (const TraOutput& output : program_.outputs) {
      if (program_[output.id].name == output.name) claim(output.id.index, output.name);
    }
    for (std::size_t i = 0; i < program_.nodes.size(); ++i) claim(i, program_.nodes[i].name);
    for (const TraOutput& output : program_.outputs) claim(output.id.index, output.name);
    std::size_t next = 1;
    for (std::string& name : names_) {
      while (name.empty()) {
        std::string candidate = fmt::format("t{}", next++);
        if (taken.insert(candidate).second) name = std::move(candidate);
      }
    }
  }

  std::string line(std::size_t i) {
    const TraNode& node = program_.nodes[i];
    std::vector<std::string> inputs;
    std::vector<std::size_t> ranks;
    for (const TraId input : node.inputs) {
      inputs.push_back(names_[input.index]);
      ranks.push_back(signatures_[input.index].rank);
    }
    if (std::holds_alternative<Aggregate>(node.op)) ranks.push_back(ranks.front());
    const KeyMap* numbers = numbers_of(node.op);
    if (numbers != nullptr) ranks.resize(ranks.size() + numbers->outputs.size(), 0);
    const std::size_t read = node.inputs.empty() ? 0 : signatures_[node.inputs.front().index].key_arity;
    const std::size_t arity = std::holds_alternative<Join>(node.op) ? signatures_[i].key_arity : read;
    const Kernel* kernel = kernel_of(node.op);
    const std::string text = op_text(node.op, kernel == nullptr ? "" : kernel_name(*kernel, ranks), inputs, arity);
    if (std::holds_alternative<StoredRelation>(node.op)) return fmt::format("input {}{}\n", names_[i], text);
    return fmt::format("{} = {}\n", names_[i], text);
  }

  std::string kernel_name(const Kernel& kernel, const std::vector<std::size_t>& ranks) {
    for (const Printed& printed : printed_) {
      if (printed.kernel == kernel && printed.ranks == ranks) return printed.name;
    }
    std::string name = kernel.name;
    if (!is_in_registry(kernel, ranks)) {
      name = is_identity(kernel) ? "id" : unique_name(as_word(kernel.name), [&](const std::string& candidate) {
        return is_named_kernel(candidate) || !kernel_names_.insert(candidate).second;
      });
      if (!is_identity(kernel)) statements_.push_back(kernel_statement(kernel, name, ranks));
    }
    printed_.push_back({kernel, ranks, name});
    return name;
  }

  std::string outputs() const {
    std::vector<std::string> texts;
    for (const TraOutput& output : program_.outputs) {
      const std::string& name = names_[output.id.index];
      texts.push_back(name == output.name ? name : fmt::format("{} = {}", output.name, name));
    }
    return texts.empty() ? "" : fmt::format("output {}\n", fmt::join(texts, ", "));
  }

  struct Printed {
    Kernel kernel;
    std::vector<std::size_t> ranks;
    std::string name;
  };

  const TraExpr& program_;
  std::vector<Signature> signatures_;
  std::vector<std::string> names_;  // per node
  std::vector<Printed> printed_;
  std::set<std::string> kernel_names_;
  std::vector<std::string> statements_;
};

}  // namespace

std::string to_text(const TraExpr& program) { return ProgramPrinter(program).run(); }

std::string to_text(const TraOp& op, const std::vector<std::string>& inputs, std::size_t key_arity) {
  const Kernel* kernel = kernel_of(op);
  return op_text(op, kernel == nullptr ? "" : kernel->name, inputs, key_arity);
}

std::string numbers_text(const KeyMap& numbers, std::size_t arity) {
  return numbers.outputs.empty() ? "" : ", " + map_text(numbers, arity);
}

std::string to_text(const std::vector<DimensionCut>& cuts) {
  std::vector<std::string> texts;
  for (const DimensionCut& cut : cuts) texts.push_back(cut_text(cut));
  return fmt::format("<{}>", fmt::join(texts, ","));
}

}  // namespace einrel
