#include "einsum/check/label_scope.h"

#include <fmt/format.h>

#include <algorithm>

namespace einrel::checking {
namespace {

/// Wide enough for the sum of many coefficient * extent without overflow.
__extension__ using Wide = __int128;

bool is_plain(const Index& index) {
  return index.offset == 0 && index.terms.size() == 1 && index.terms[0].coefficient == 1;
}

std::string index_text(const build::Index& index) {
  if (index.is_computed) return "...";
  std::string text;
  for (const build::IndexTerm& term : index.terms) {
    if (term.coefficient < 0)
      text += '-';
    else if (!text.empty())
      text += '+';
    const std::int64_t size = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (size != 1) text += fmt::format("{}*", size);
    text += display_label(term.label.text);
  }
  if (index.offset != 0 || text.empty())
    text += fmt::format("{}{}", index.offset >= 0 && !text.empty() ? "+" : "", index.offset);
  return text;
}

}  // namespace

std::string access_text(const build::Access& access) {
  std::string text = access.tensor.text + "[";
  for (std::size_t i = 0; i < access.indices.size(); ++i) {
    const std::vector<build::IndexTerm>& terms = access.indices[i].terms;
    if (!terms.empty() && is_parts_label(terms.front().label.text)) continue;  // nobody wrote it
    text += (i > 0 ? "," : "") + index_text(access.indices[i]);
  }
  return text + "]";
}

std::size_t LabelScope::add(const build::Name& label) {
  LabelInfo info;
  info.name = label.text;
  info.mark = label.span;
  if (state_.made == nullptr) state_.seen_labels.insert(label.text);
  const auto given = state_.environment.dims.find(label.text);
  if (state_.made != nullptr) {
    info.extent = state_.made->extents.at(label.text).value();
    info.determined = true;
  } else if (const auto declared = state_.labels.find(label.text); declared != state_.labels.end()) {
    info.extent = declared->second.extent;
    info.source = declared->second.source;
    info.determined = true;
  } else if (given != state_.environment.dims.end()) {
    info.extent = given->second;
    info.source = "--dim";
    info.determined = true;
  }
  labels_.push_back(std::move(info));
  return labels_.size() - 1;
}

std::size_t LabelScope::add_positions(const std::string& name, const MaybeExtent& extent) {
  LabelInfo info;
  info.name = name;
  info.extent = extent;
  info.determined = true;
  labels_.push_back(std::move(info));
  return labels_.size() - 1;
}

void LabelScope::note_access(const build::Access& access, const Access& resolved,
                             const std::vector<MaybeExtent>& extents) {
  reads_.push_back({&access, resolved, &extents});
  for (const Index& index : resolved.indices) has_windows_ = has_windows_ || !is_plain(index);
}

void LabelScope::take_extent(std::size_t label, const MaybeExtent& extent, const Read& read, std::size_t dimension) {
  LabelInfo& info = labels_[label];
  info.determined = true;
  if (!extent) return;
  if (!info.extent) {
    info.extent = extent;
    info.source_read = read.written;
    info.source_mark = read.mark(dimension);
  } else if (*info.extent != *extent) {
    std::vector<Span> marks{read.mark(dimension)};
    if (info.source_read != nullptr) marks.insert(marks.begin(), info.source_mark);
    if (info.source_read == read.written) {
      state_.error(fmt::format("label '{}' indexes dimensions of extent {} and {} in {}", display_label(info.name),
                               *info.extent, *extent, access_text(*read.written)),
                   marks, "a diagonal needs equal extents");
      return;
    }
    const std::string source = info.source_read != nullptr ? access_text(*info.source_read) : info.source;
    state_.error(fmt::format("label '{}' has extent {} in {} but {} in {}", display_label(info.name), *info.extent,
                             source, *extent, access_text(*read.written)),
                 marks, "declare both with the same extent, or rename one label");
  }
}

/// Whether the statement also reads the same dimension of the same tensor through a window over the same label, as in
/// X[o+1] - X[o]. Then the plain read is one of the window's positions and does not fix the label's extent.
bool LabelScope::is_part_of_window(const Read& read, std::size_t dimension) const {
  const std::size_t label = read.access.indices[dimension].terms[0].label;
  return std::any_of(reads_.begin(), reads_.end(), [&](const Read& other) {
    if (other.written->tensor.text != read.written->tensor.text || other.access.indices.size() <= dimension)
      return false;
    const Index& index = other.access.indices[dimension];
    return !is_plain(index) && std::any_of(index.terms.begin(), index.terms.end(),
                                           [&](const IndexTerm& term) { return term.label == label; });
  });
}

void LabelScope::apply_plain_indices(bool padded) {
  for (const Read& read : reads_) {
    if (read.access.pad.has_value() != padded) continue;
    for (std::size_t d = 0; d < read.access.indices.size(); ++d) {
      if (!is_plain(read.access.indices[d])) continue;
      const std::size_t label = read.access.indices[d].terms[0].label;
      // A padded read decides only what nothing else does: its label may reach past the end on purpose.
      if (padded && labels_[label].determined) continue;
      if (has_windows_ && !padded && is_part_of_window(read, d)) continue;
      take_extent(label, read.extent(d), read, d);
    }
  }
}

/// The one open label of an index and the largest extent that keeps the index inside (unknown while data is missing);
/// nothing when no or several labels are open.
std::optional<LabelScope::Candidate> LabelScope::window_candidate(const Read& read, std::size_t dimension) const {
  const Index& index = read.access.indices[dimension];
  const MaybeExtent& extent = read.extent(dimension);
  std::size_t open = 0;
  IndexTerm term;
  Wide low = index.offset;
  Wide high = index.offset;
  bool known = extent.has_value();
  for (const IndexTerm& t : index.terms) {
    const LabelInfo& label = labels_[t.label];
    if (!label.determined) {
      ++open;
      term = t;
    } else if (!label.extent) {
      known = false;
    } else if (*label.extent > 0) {
      (t.coefficient < 0 ? low : high) += static_cast<Wide>(t.coefficient) * (*label.extent - 1);
    }
  }
  if (open != 1 || term.coefficient == 0) return std::nullopt;
  Candidate candidate{term.label, std::nullopt, &read, dimension};
  if (known) {
    const Wide room = term.coefficient > 0 ? *extent - 1 - high : low;
    const Wide step = term.coefficient > 0 ? static_cast<Wide>(term.coefficient) : -static_cast<Wide>(term.coefficient);
    // No room at all: say 1, so that the range check names the read that does not fit.
    candidate.extent = room < 0 ? 1 : static_cast<std::int64_t>(room / step + 1);
  }
  return candidate;
}

/// Each round decides the labels that are alone in some window, by the tightest of their windows.
void LabelScope::infer_windows() {
  while (has_windows_) {
    std::map<std::size_t, Candidate> tightest;
    for (const Read& read : reads_) {
      for (std::size_t d = 0; !read.access.pad && d < read.access.indices.size(); ++d) {
        const auto candidate = window_candidate(read, d);
        if (!candidate) continue;
        Candidate& best = tightest.insert({candidate->label, *candidate}).first->second;
        if (!candidate->extent || (best.extent && *candidate->extent < *best.extent)) best = *candidate;
      }
    }
    if (tightest.empty()) return;
    for (const auto& [label, best] : tightest) take_extent(label, best.extent, *best.read, best.dimension);
  }
}

void LabelScope::note_shorter(std::size_t id, const std::array<std::size_t, 2>& of) {
  labels_[id].determined = true;
  labels_[id].used = true;
  shorter_.emplace_back(id, of);
}

void LabelScope::take_shorter() {
  for (const auto& [label, of] : shorter_) {
    LabelInfo& info = labels_[label];
    const LabelInfo& first = labels_[of[0]];
    const LabelInfo& second = labels_[of[1]];
    if (!first.extent || !second.extent) continue;
    const std::int64_t extent = std::min(*first.extent, *second.extent);
    if (!info.extent) info.extent = extent;
    if (*info.extent == extent) continue;
    state_.error(fmt::format("label '{}' has extent {}, but {} between '{}' of {} and '{}' of {}",
                             display_label(info.name), *info.extent, extent, display_label(first.name), *first.extent,
                             display_label(second.name), *second.extent),
                 {info.mark}, "two factors meet in a label of the shorter of both extents");
  }
}

void LabelScope::report_undetermined() {
  if (state_.arrays_give_extents) return;
  for (LabelInfo& label : labels_) {
    if (label.determined || !label.used || broken_ || state_.is_suspect(label.name)) continue;
    const std::string shown = display_label(label.name);
    state_.error(fmt::format("nothing tells the extent of label '{}'", shown), {label.mark},
                 fmt::format("declare it: dims {0}=...; or give it on the command line: --dim {0}=...", shown));
  }
}

void LabelScope::check_range(const Read& read, std::size_t dimension) {
  const Index& index = read.access.indices[dimension];
  Wide low = index.offset;
  Wide high = index.offset;
  bool known = true;
  const auto least = [&](const IndexTerm& term) { return labels_[term.label].extent.value_or(1); };
  for (const IndexTerm& term : index.terms) {
    known = known && labels_[term.label].extent;
    (term.coefficient < 0 ? low : high) += static_cast<Wide>(term.coefficient) * (least(term) - 1);
  }
  if (!known && !state_.arrays_give_extents) return;  // the data may give a label nothing to do
  known = known && read.extent(dimension);
  const Wide limit = static_cast<Wide>(1) << 62;
  const Wide extent = known ? *read.extent(dimension) : limit;
  if (read.access.pad || (!known && low >= 0)) {  // may read anywhere, as long as positions can be computed
    if (low > -limit && high < limit) return;
    state_.error(fmt::format("{} reaches positions beyond 2^62", access_text(*read.written)), {read.mark(dimension)},
                 "use smaller extents or coefficients");
    return;
  }
  if (low >= 0 && high < extent) return;
  const auto position = static_cast<std::int64_t>(low < 0 ? low : high);
  std::string help = fmt::format("pad({}, 0) reads 0 outside", access_text(*read.written));
  if (index.terms.empty()) help = "positions count from 0";
  const auto longest = std::max_element(index.terms.begin(), index.terms.end(),
                                        [&](const IndexTerm& a, const IndexTerm& b) { return least(a) < least(b); });
  if (low >= 0 && longest != index.terms.end() && longest->coefficient > 0) {
    const Wide excess = (high - extent) / longest->coefficient + 1;
    const Wide fits = least(*longest) - excess;
    if (fits > 0) {
      help += fmt::format("; or let label '{}' have an extent of at most {}",
                          display_label(labels_[longest->label].name), static_cast<std::int64_t>(fits));
    }
  }
  const std::string whole = known ? fmt::format(", whose extent is {}", *read.extent(dimension)) : "";
  state_.error(
      fmt::format("{} reads position {} of dimension {}{}", access_text(*read.written), position, dimension + 1, whole),
      {read.mark(dimension)}, help);
}

void LabelScope::unify() {
  apply_plain_indices(false);
  infer_windows();
  apply_plain_indices(true);
  take_shorter();
  report_undetermined();
  for (const Read& read : reads_) {
    const bool reads_nothing =
        std::any_of(read.access.indices.begin(), read.access.indices.end(), [&](const Index& index) {
          return std::any_of(index.terms.begin(), index.terms.end(),
                             [&](const IndexTerm& term) { return labels_[term.label].extent == MaybeExtent(0); });
        });
    for (std::size_t d = 0; d < read.access.indices.size(); ++d) {
      const Index& index = read.access.indices[d];
      // A negative constant is a mistake whatever the data, so that what is right does not depend on them.
      if (reads_nothing && (!index.terms.empty() || index.offset >= 0)) continue;
      // A conflict of plain indices has been reported as such, unless they are part of a window.
      const bool is_window = !is_plain(index) || (has_windows_ && is_part_of_window(read, d));
      if (is_window) check_range(read, d);
    }
  }
}

}  // namespace einrel::checking
