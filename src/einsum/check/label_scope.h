#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "einsum/check/check_state.h"

namespace einrel::checking {

/// The labels of one statement: each left-side label and each reduction's labels is one, known by its id. Their
/// extents come from declarations and from what they index.
class LabelScope {
 public:
  explicit LabelScope(CheckState& state) : state_(state) {}

  std::size_t add(const build::Name& label);
  /// One that no text names: it runs over a dimension of this extent, from which a computed index picks positions.
  std::size_t add_positions(const std::string& name, const MaybeExtent& extent);
  const std::string& name(std::size_t id) const { return labels_[id].name; }
  Span mark(std::size_t id) const { return labels_[id].mark; }
  /// After unify(): the extent, if the data that gives it is known.
  MaybeExtent extent(std::size_t id) const { return labels_[id].extent; }

  /// `resolved` indexes a tensor of these extents; its labels are ids. `access` and `extents` must live until unify().
  void note_access(const build::Access& access, const Access& resolved, const std::vector<MaybeExtent>& extents);

  /// Somebody uses the label: its extent matters.
  void note_use(std::size_t id) { labels_[id].used = true; }
  bool is_used(std::size_t id) const { return labels_[id].used; }
  /// An error about this label has been reported: do not complain about it again.
  void excuse(std::size_t id) { labels_[id].determined = true; }
  /// A label that is as long as the shorter of two others, each of which something else decides.
  void note_shorter(std::size_t id, const std::array<std::size_t, 2>& of);
  /// Some read of this statement could not be resolved: labels without extents may be its fault.
  void note_broken_read() { broken_ = true; }

  /// Finds every label's extent: a plain index X[..,j,..] gives j the extent of that dimension; a window such as
  /// X[2*y+dy] gives a label that nothing else decides the largest extent that stays inside. Reports conflicts,
  /// labels without any extent, and reads outside a tensor.
  void unify();

 private:
  struct LabelInfo {
    std::string name;
    Span mark;
    MaybeExtent extent;
    std::string source;                          // who declared the extent, for messages
    const build::Access* source_read = nullptr;  // or which read in this statement decided it,
    Span source_mark;                            // and where
    bool used = false;
    bool determined = false;  // somebody decides, even if the value is not known yet
  };
  struct Read {
    const build::Access* written;
    Access access;
    const std::vector<MaybeExtent>* extents;
    const MaybeExtent& extent(std::size_t dimension) const { return (*extents)[dimension]; }
    Span mark(std::size_t dimension) const { return written->indices[dimension].span; }
  };

  void take_extent(std::size_t label, const MaybeExtent& extent, const Read& read, std::size_t dimension);
  void apply_plain_indices(bool padded);
  struct Candidate {
    std::size_t label = 0;
    MaybeExtent extent;
    const Read* read = nullptr;
    std::size_t dimension = 0;
  };
  bool is_part_of_window(const Read& read, std::size_t dimension) const;
  std::optional<Candidate> window_candidate(const Read& read, std::size_t dimension) const;
  void infer_windows();
  void take_shorter();
  void report_undetermined();
  void check_range(const Read& read, std::size_t dimension);

  CheckState& state_;
  std::vector<LabelInfo> labels_;
  std::vector<Read> reads_;
  std::vector<std::pair<std::size_t, std::array<std::size_t, 2>>> shorter_;  // labels, and of which two
  bool broken_ = false;
  bool has_windows_ = false;
};

/// "X[i,2*y+dy]" as written.
std::string access_text(const build::Access& access);

}  // namespace einrel::checking
