#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "einsum/front/build/formula.h"

namespace einrel::build {

/// What stands in the place of labels. A label without an entry stays.
using LabelForms = std::map<std::string, Index>;

/// a + factor * b, terms of one label together.
Index plus(const Index& a, const Index& b, std::int64_t factor);

/// An index with other labels in it.
Index with_labels(const Index& index, const LabelForms& forms);

/// The value of an index, as a number.
Formula value_of(const Index& index);

/// `formula`, which reduces nothing, with other labels in it. Reads at labels of `padded` are 0 outside of their
/// tensor. O(nodes).
Formula with_labels(const Formula& formula, const LabelForms& forms, const std::set<std::string>& padded = {});

/// Calls `visit` for each part of a formula, once where it stands in several places.
void for_each_part(const Formula& formula, const std::function<void(const Formula&)>& visit);

/// Every name that a formula has in indices or by itself: labels and scalars.
std::set<std::string> names_in(const Formula& formula);

/// Whether an access has the label in one of its indices.
bool reads_at(const Access& access, const std::string& label);

}  // namespace einrel::build
