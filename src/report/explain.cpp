#include "report/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "report/algebra_text.h"
#include "report/explain_summary.h"
#include "report/plan_text.h"

namespace einrel {
namespace {

std::string label_list(const std::vector<Label>& labels, const std::vector<std::size_t>& positions) {
  std::vector<std::string> texts;
  for (const std::size_t p : positions) texts.push_back(fmt::format("{}={}", labels[p].name, labels[p].extent.value()));
  return fmt::format("{}", fmt::join(texts, " "));
}

/// "b=1000 h=4096, sum over f=1600"
std::string labels_text(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return "";
  std::string text = label_list(einsum->labels, einsum->output);
  if (einsum->reducer) {
    text += fmt::format("{}{} over {}", text.empty() ? "" : ", ", name_of(*einsum->reducer),
                        label_list(einsum->labels, einsum->reduced));
  }
  return text;
}

/// "by packed (packed 14x32 (AVX-512)), 1.2 ms on one thread, workspace 394 kB; next direct, 2.3 ms"; of chunks
/// "8 x i=1024 k=1024 by packed (...), 1.2 ms each on one thread, ...".
std::string kernel_text(const KernelCall& call, const Vertex& vertex) {
  std::vector<std::string> extents;
  for (const auto& [label, extent] : call.extents) extents.push_back(fmt::format("{}={}", label, extent));
  const std::vector<Label>& labels = labels_of(vertex);
  const bool is_whole =
      std::equal(labels.begin(), labels.end(), call.extents.begin(), call.extents.end(),
                 [](const Label& label, const auto& extent) { return label.extent.value() == extent.second; });
  std::string text = "      ";
  if (!is_whole || call.times > 1)
    text += fmt::format("{} x {}{}", call.times, fmt::join(extents, " "), extents.empty() ? "" : " ");
  text +=
      fmt::format("by {} ({}), {}{} on one thread, workspace {}", call.kernel, call.path, seconds_text(call.seconds),
                  call.times > 1 ? " each" : "", bytes_text(call.own_bytes + call.shared_bytes));
  if (const std::optional<KernelSeconds> next = next_kernel(call))
    text += fmt::format("; next {}, {}", next->name, seconds_text(next->seconds));
  if (!call.together.empty()) text += fmt::format("; in one pass with {}", fmt::join(call.together, ", "));
  if (call.row_by_row) text += ", softmax row by row";
  return text + "\n";
}

/// That which takes longest, and how long the others do together.
std::string kernels_text(const std::vector<KernelCall>& calls, const Vertex& vertex) {
  if (calls.empty()) return "";
  std::string text = kernel_text(calls.front(), vertex);
  std::size_t times = 0;
  double seconds = 0;
  for (const KernelCall& other : calls) {
    times += other.times;
    seconds += other.all_seconds();
  }
  times -= calls.front().times;
  seconds -= calls.front().all_seconds();
  if (times > 0)
    text += fmt::format("      {} of other extents or layouts, {} on one thread\n", times, seconds_text(seconds));
  return text;
}

/// "f32 (10, 20)  i=10 k=20, sum over j=30  12 kflop  1.2 %  800 B"
std::string type_text(const Vertex& vertex, const VertexTotals& totals, double all_flops) {
  const std::string share = all_flops > 0 ? fmt::format("{:.1f} %", 100 * totals.flops / all_flops) : "-";
  const std::string type = fmt::format("{} {}", name_of(vertex.dtype), to_string(vertex.bound));
  return fmt::format("      {:<24} {:<34} {:>12} {:>8} {:>10}\n", type, labels_text(vertex), flops_text(totals.flops),
                     share, bytes_text(totals.bytes));
}

/// Vertices by name: a program may have as many contractions as vertices.
using VertexNames = std::unordered_map<std::string_view, const Vertex*>;

std::string contraction_text(const OrderedContraction& contraction, const EinGraph& graph, const VertexNames& names) {
  const double saved = contraction.flops_as_written / std::max(contraction.flops_ordered, 1.0);
  std::string text =
      fmt::format("  {}: {} factors, {} as written, {} in this order ({:.3g} times fewer, {})\n", contraction.tensor,
                  contraction.factors, flops_text(contraction.flops_as_written), flops_text(contraction.flops_ordered),
                  saved, contraction.optimal ? "optimal" : "found greedily");
  for (const std::string& step : contraction.steps) text += fmt::format("      {}\n", formula(*names.at(step), graph));
  return text;
}

std::string contractions_text(const Compiled& compiled) {
  if (compiled.contractions.empty()) return "";
  VertexNames names;
  for (const Vertex& vertex : compiled.graph.vertices) names.emplace(vertex.name, &vertex);
  std::string text = "\ncontraction order\n";
  for (const OrderedContraction& contraction : compiled.contractions)
    text += contraction_text(contraction, compiled.graph, names);
  return text;
}

/// What is said of each vertex.
class VertexLines {
 public:
  VertexLines(const Explanation& explained, const SourceText& source, Detail detail)
      : explained_(explained),
        source_(source),
        detail_(detail),
        folding_(is_full() ? unfolded(explained.graph()) : fold(explained.graph(), shown_plan())),
        totals_(totals_together(explained.graph(), explained.calls, folding_)) {
    for (const VertexTotals& each : totals_) all_flops_ += each.flops;
    if (explained.has_plan()) costs_ = costs_together(explained.plan(), folding_);
    if (explained.has_plan() && is_full())
      others_ = other_plans(explained.graph(), explained.plan(), explained.request, 1).runners_up;
  }

  std::string text() const {
    const EinGraph& graph = explained_.graph();
    std::string text = summary_text(explained_, costs_, folding_, source_) + inputs() + "\n" + title() + "\n";
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (is_input(graph.vertices[v]) || folding_.shown[v] != v) continue;
      if (const FoldedGroup* const group = group_at(folding_, v)) text += group_text(graph, *group);
      text += of(v);
    }
    return is_full() ? text + contractions_text(*explained_.compiled) : text;
  }

  const Folding& folding() const { return folding_; }

 private:
  bool is_full() const { return detail_ == Detail::full; }
  bool shows_cuts() const { return explained_.has_plan() && (is_full() || !explained_.is_on_one_site()); }

  std::vector<PlanReport> shown_plan() const {
    return explained_.has_plan() ? std::vector<PlanReport>{explained_.plan()} : std::vector<PlanReport>{};
  }

  std::string inputs() const {
    if (explained_.has_plan() && !explained_.is_on_one_site())
      return "\ninputs, and where they lie\n" + placed_inputs_text(explained_, costs_, folding_);
    std::string text = "\ninputs\n";
    for (std::size_t v = 0; v < folding_.shown.size(); ++v) {
      const Vertex& vertex = explained_.graph().vertices[v];
      if (!is_input(vertex) || folding_.shown[v] != v) continue;
      const std::size_t times = folding_.alike[v].size();
      text += fmt::format("  {:<60} {:>10}{}\n", formula(vertex, explained_.graph()), bytes_text(totals_[v].bytes),
                          times > 1 ? fmt::format("  x {}", times) : "");
    }
    return text;
  }

  std::string title() const {
    std::string facts = "operations; bytes";
    if (is_full()) facts = "type and bound; labels; operations and their share; bytes";
    if (shows_cuts()) {
      const std::string cuts =
          fmt::format("sites along each label{}; bytes received; seconds and their share; what moves",
                      explained_.request.machine.links.empty() ? "" : ", in brackets groups across each link");
      facts = is_full() ? facts + "; " + cuts : cuts;
    } else if (explained_.has_plan()) {
      facts += "; seconds and their share; kernel";
    }
    return fmt::format("vertices ({}){}", facts, is_full() ? "" : "; more with --verbose");
  }

  /// Of a vertex and all that it stands for.
  std::string of(std::size_t v) const {
    const EinGraph& graph = explained_.graph();
    const Vertex& vertex = graph.vertices[v];
    const std::string_view indent = is_in_group(folding_, v) ? "  " : "";
    std::string text = fmt::format("{}  {}\n", indent, formula(vertex, graph));
    if (is_full()) text += type_text(vertex, totals_[v], all_flops_);
    if (shows_cuts()) {
      text += fmt::format("{}      {}\n", indent, planned_text(explained_, v, costs_[v], folding_));
    } else if (!is_full()) {
      text += fmt::format("{}      {}\n", indent, short_text(v));
    }
    if (!is_full()) return text;
    if (explained_.has_plan()) {
      if (others_[v]) text += runner_up_text(vertex.name, *others_[v], explained_.request.cost);
      if (!explained_.is_on_one_site()) text += whole_labels_text(whole_labels(graph, v));
    }
    if (explained_.has_plan()) text += least_text(costs_[v], explained_.plan().least[v]);
    return explained_.has_plan() && explained_.tasks ? text + kernels_text(explained_.calls[v], vertex) : text;
  }

  /// "2 Gflop  4 MB  12 ms  80.1 %  by packed, 21.1 ms on one thread"
  std::string short_text(std::size_t v) const {
    std::string text = fmt::format("{:>12} {:>9}", flops_text(totals_[v].flops), bytes_text(totals_[v].bytes));
    if (!explained_.has_plan()) return text;
    const double all = explained_.plan().costs.seconds;
    const double seconds = costs_[v].seconds;
    text += fmt::format(" {:>9} {:>5.1f} %", seconds_text(seconds), all > 0 ? 100 * seconds / all : 0);
    if (!explained_.tasks) return text;
    if (const std::vector<KernelCall>& calls = explained_.calls[v]; !calls.empty())
      return text + fmt::format("   by {}, {} on one thread", calls.front().kernel, seconds_text(totals_[v].seconds));
    return view_of(explained_.graph().vertices[v]) == nullptr ? text : text + "   lies in the memory of what it reads";
  }

  const Explanation& explained_;
  const SourceText& source_;
  Detail detail_;
  Folding folding_;
  std::vector<VertexTotals> totals_;
  double all_flops_ = 0;
  std::vector<VertexCost> costs_;  // nothing without a plan
  std::vector<std::optional<RunnerUpFacts>> others_;
};

}  // namespace

std::string explanation_text(const Explanation& explained, const SourceText& source, Detail detail) {
  std::string text = printable(explained.program) + "\n";
  if (explained.compiled != nullptr) {
    const VertexLines lines(explained, source, detail);
    text = lines.text();
    if (explained.has_plan()) text += comparison_text(explained, source, lines.folding(), detail == Detail::full);
  }
  return explained.algebra ? text + algebra_text(*explained.algebra) : text;
}

}  // namespace einrel
