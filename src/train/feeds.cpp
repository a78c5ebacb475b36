#include "train/feeds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/expr/random_number.h"
#include "run/stored_input.h"
#include "tensor/csv.h"
#include "tensor/tensor_file.h"

namespace einrel {
namespace {

std::string labelled(const DeclaredInput& input) {
  return fmt::format("{}[{}]", input.name, fmt::join(input.labels, ","));
}

/// FILE.csv, FILE.tsv, and both with :COLUMNS.
struct TableRef {
  std::string path;
  std::string columns;
};

std::optional<TableRef> table_in(const std::string& text) {
  for (const std::string extension : {".csv", ".tsv", ".csv.gz", ".tsv.gz"}) {
    if (text.ends_with(extension)) return TableRef{text, ""};
    const std::size_t end = text.find(extension + ":");
    if (end == std::string::npos) continue;
    return TableRef{text.substr(0, end + extension.size()), text.substr(end + extension.size() + 1)};
  }
  return std::nullopt;
}

/// What the first line of a table was taken for, and how to say otherwise.
std::string note_of(const std::string& path, const Tensor& samples, bool has_names) {
  return fmt::format("{}: {} {}", printable(path),
                     counted(static_cast<std::size_t>(samples.shape().front().value()), "sample"),
                     has_names ? "below a line of names; if that line is a sample, too, say so with --header"
                               : "with the first line; if that line names the columns, say so with --header");
}

StoredTensor open_source(const DeclaredInput& input, const FeedSource& source, std::optional<bool> header,
                         const InflateFolder& folder, std::vector<std::string>& notes) {
  if (const auto* const tensor = std::get_if<Tensor>(&source)) return stored(fmt::format("'{}'", input.name), *tensor);
  const auto& text = std::get<std::string>(source);
  const std::optional<TableRef> table = table_in(text);
  if (!table) return open_tensor(parse_file_ref(text), folder);
  if (table->path.ends_with(".gz"))
    throw UserError(
        fmt::format("{}: tables are not decompressed; do that before, with gunzip -k", printable(table->path)));
  const FileBytes file = map_file(table->path);
  try {
    const bool has_names = header.value_or(names_columns(file));
    const Tensor samples = parse_csv(file, table->columns, input.dtype, has_names);
    const std::string note = note_of(table->path, samples, has_names);
    if (!header && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    return stored(printable(text), samples);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}\n  help: it is read as {}", error.what(), declaration_of(input)));
  }
}

const DeclaredInput& input_named(const std::string& name, const std::vector<DeclaredInput>& inputs,
                                 const std::string& option) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; });
  if (found != inputs.end()) return *found;
  std::vector<std::string> names;
  for (const DeclaredInput& input : inputs) names.push_back(input.name);
  const std::string near = did_you_mean(name, names);
  throw UserError(fmt::format("{} {}=...: the program has no input '{}'; {}", option, printable(name), printable(name),
                              !near.empty() ? near : fmt::format("its inputs are {}", fmt::join(names, ", "))));
}

bool has_label(const DeclaredInput& input, const std::string& label) {
  return std::find(input.labels.begin(), input.labels.end(), label) != input.labels.end();
}

void check_label(const std::vector<DeclaredInput>& inputs, const std::string& batch_label) {
  if (std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) { return has_label(input, batch_label); }))
    return;
  std::vector<std::string> declarations;
  for (const DeclaredInput& input : inputs) declarations.push_back(labelled(input));
  throw UserError(fmt::format("no input has the batch label '{}'; the inputs are {}", printable(batch_label),
                              fmt::join(declarations, ", ")));
}

std::size_t batch_dimension(const DeclaredInput& input, const std::string& label, const std::string& option) {
  const auto count = std::count(input.labels.begin(), input.labels.end(), label);
  if (count == 0) {
    throw UserError(
        fmt::format("{} {}=...: the input {} has no label '{}', so it is the same for all samples\n"
                    "  help: bind it with --in {}=FILE",
                    option, input.name, labelled(input), label, input.name));
  }
  if (count > 1)
    throw UserError(fmt::format("{} {}=...: the input {} has the label '{}' twice; samples stand along one dimension",
                                option, input.name, labelled(input), label));
  const auto found = std::find(input.labels.begin(), input.labels.end(), label);
  return static_cast<std::size_t>(found - input.labels.begin());
}

void check_feed(const Feed& feed, const DeclaredInput& input, const std::string& option) {
  if (feed.file.shape.size() != input.labels.size()) {
    throw UserError(fmt::format("{} {}=...: {} has shape {}, but the input is {}, of {}", option, feed.name,
                                feed.file.name, to_string(feed.file.shape), labelled(input),
                                counted(input.labels.size(), "dimension")));
  }
  if (fits(feed.file.type, feed.dtype)) return;
  throw UserError(
      fmt::format("{0} {1}=...: {2} holds {3}, but the input {4} is {5}\n  help: declare it {6}, and change "
                  "its type in the program: {5}({1}[{7}])",
                  option, feed.name, feed.file.name, name_of(feed.file.type), labelled(input), name_of(feed.dtype),
                  name_of(natural_dtype(feed.file.type)), fmt::join(input.labels, ",")));
}

std::int64_t samples_of(const Feed& feed) { return feed.file.shape[feed.batch].value(); }

}  // namespace

bool is_table(const std::string& source) { return table_in(source).has_value(); }

std::vector<std::string> paths_of(const FeedSources& sources) {
  std::vector<std::string> paths;
  for (const auto& [name, source] : sources) {
    const auto* const text = std::get_if<std::string>(&source);
    if (text == nullptr) continue;
    const std::optional<TableRef> table = table_in(*text);
    paths.push_back(table ? table->path : parse_file_ref(*text).path);
  }
  return paths;
}

StoredTensor stored(std::string name, const Tensor& tensor) {
  return {std::move(name),     stored_type(tensor.dtype()),
          std::endian::native, tensor.shape(),
          tensor.strides(),    tensor.data(),
          tensor.owner()};
}

Feeds open_feeds(const FeedSources& sources, const std::vector<DeclaredInput>& inputs, const std::string& batch_label,
                 const std::string& option, std::optional<bool> header, const InflateFolder& folder) {
  check_label(inputs, batch_label);
  Feeds all;
  for (const auto& [name, source] : sources) {
    const DeclaredInput& input = input_named(name, inputs, option);
    Feed feed{name, input.dtype, {}, batch_dimension(input, batch_label, option)};
    feed.file = open_source(input, source, header, folder, all.notes);
    check_feed(feed, input, option);
    all.feeds.push_back(std::move(feed));
  }
  for (const DeclaredInput& input : inputs) {
    if (!has_label(input, batch_label)) continue;
    const auto fed = [&](const Feed& feed) { return feed.name == input.name; };
    if (std::any_of(all.feeds.begin(), all.feeds.end(), fed)) continue;
    throw UserError(
        fmt::format("no samples for {}; give them with {} {}=FILE", declaration_of(input), option, input.name));
  }
  const Feed& first = all.feeds.front();
  all.samples = samples_of(first);
  for (const Feed& feed : all.feeds) {
    if (samples_of(feed) == all.samples) continue;
    throw UserError(
        fmt::format("{} has {}, but {} has {}: their shapes are {} and {}; all of {} have to have the same samples",
                    first.file.name, counted(static_cast<std::size_t>(all.samples), "sample"), feed.file.name,
                    samples_of(feed), to_string(first.file.shape), to_string(feed.file.shape), option));
  }
  if (all.samples == 0) throw UserError(fmt::format("{} holds no samples", first.file.name));
  return all;
}

BoundInput describe(const Feed& feed, std::int64_t batch) {
  BoundInput bound = describe(feed.file);
  bound.shape[feed.batch] = Extent(batch);
  return bound;
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t round,
                                   const std::string& purpose) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  RandomPlace place{static_cast<std::int64_t>(seed), 0, round, stream_of(purpose)};
  for (std::size_t left = order.size(); left > 1; --left) {
    place.position = static_cast<std::int64_t>(left);
    const double at = random_number(RandomFunction::uniform, place, false) * static_cast<double>(left);
    std::swap(order[left - 1], order[std::min(static_cast<std::size_t>(at), left - 1)]);
  }
  return order;
}

}  // namespace einrel
