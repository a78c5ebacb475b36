#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "einsum/check/check.h"
#include "tensor/inflate.h"
#include "tensor/stored_tensor.h"
#include "tensor/tensor.h"

namespace einrel {

/// Where samples come from: FILE of the command line, also FILE.csv, FILE.tsv and FILE.csv:COLUMNS (tensor/csv.h), or
/// memory.
using FeedSource = std::variant<std::string, Tensor>;
using FeedSources = std::vector<std::pair<std::string, FeedSource>>;  // by input

/// The samples of one input, one behind the other along its dimension of the batch label.
struct Feed {
  std::string name;
  DType dtype = DType::f32;
  StoredTensor file;
  std::size_t batch = 0;  ///< that dimension
};

/// Samples for all inputs that have the batch label.
struct Feeds {
  std::vector<Feed> feeds;
  std::int64_t samples = 0;
  std::vector<std::string> notes = {};  ///< what the first lines of tables were taken for
};

/// Whether a source is FILE.csv, FILE.csv:COLUMNS, or the same of a .tsv.
bool is_table(const std::string& source);

/// The files among them.
std::vector<std::string> paths_of(const FeedSources& sources);

/// A tensor in memory as if it stood in a file, called so in messages.
StoredTensor stored(std::string name, const Tensor& tensor);

/// Opens the sources, which are mapped. `option` is what messages call them: "--feed"; `header` whether first lines of
/// tables name the columns, else names_columns (tensor/csv.h) says it; `folder` is where those that are compressed are
/// decompressed. Throws UserError where one is
/// for no input, for one without the batch label or with it twice, does not fit the type that the input is declared
/// with, or has other samples than the others; where an input with the label gets none; and as open_tensor and
/// parse_csv do.
Feeds open_feeds(const FeedSources& sources, const std::vector<DeclaredInput>& inputs, const std::string& batch_label,
                 const std::string& option, std::optional<bool> header, const InflateFolder& folder);

/// What the checks of a program need to know of a feed from which so many samples are taken at a time.
BoundInput describe(const Feed& feed, std::int64_t batch);

/// The numbers from 0 to count - 1 in an order that these numbers decide: Fisher and Yates' shuffle by Philox.
/// `purpose` names what it is for, so that orders for several purposes have nothing to do with each other. O(count).
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t round,
                                   const std::string& purpose);

}  // namespace einrel
