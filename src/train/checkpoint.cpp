#include "train/checkpoint.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_error.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "einsum/graph/ein_graph.h"
#include "exec/job/alike.h"
#include "exec/memory/digests.h"
#include "tensor/convert.h"
#include "tensor/tensor_file.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "step-";
constexpr std::string_view extension = ".safetensors";
constexpr std::size_t kept = 2;
// No state is called so: names in programs have no dots.
constexpr const char* numbers_name = "train.numbers";
constexpr const char* sums_name = "train.sums";
constexpr const char* check_name = "train.check";
constexpr std::size_t number_count = 9;

std::string path_of(const std::string& folder, std::int64_t steps_done) {
  return (fs::path(folder) / fmt::format("{}{:09}{}", prefix, steps_done, extension)).string();
}

std::optional<std::int64_t> steps_in_name(const std::string& name) {
  if (!name.starts_with(prefix) || !name.ends_with(extension)) return std::nullopt;
  const char* const begin = name.data() + prefix.size();
  const char* const end = name.data() + name.size() - extension.size();
  std::int64_t steps = 0;
  const auto [rest, error] = std::from_chars(begin, end, steps);
  return error == std::errc{} && rest == end && steps >= 0 ? std::optional(steps) : std::nullopt;
}

template <class Number>
Tensor tensor_of_numbers(DType dtype, const std::vector<Number>& numbers) {
  Tensor tensor(dtype, {Extent(static_cast<std::int64_t>(numbers.size()))});
  if (!numbers.empty()) std::memcpy(tensor.mutable_data(), numbers.data(), numbers.size() * sizeof(Number));
  return tensor;
}

/// Of these tensors in a file, in whatever order they stand there: a CRC-32 of names, types, shapes and elements.
std::int64_t check_sum(const std::map<std::string, Tensor>& tensors) {
  uLong sum = ::crc32(0, nullptr, 0);
  const auto add = [&](const void* bytes, std::size_t count) {
    sum = ::crc32_z(sum, static_cast<const Bytef*>(bytes), count);
  };
  for (const auto& [name, tensor] : tensors) {
    const std::string head = fmt::format("{} {} {};", name, name_of(tensor.dtype()), to_string(tensor.shape()));
    add(head.data(), head.size());
    const Tensor elements = tensor.row_major();
    if (elements.byte_count() > 0) add(elements.data(), static_cast<std::size_t>(elements.byte_count()));
  }
  return static_cast<std::int64_t>(sum);
}

[[noreturn]] void no_checkpoint(const std::string& path, const std::string& reason) {
  throw UserError(fmt::format("{} is no checkpoint of `einrel train`: {}", printable(path), reason));
}

/// A tensor of a checkpoint.
template <class Number>
std::vector<Number> numbers_of(const std::string& path, const ArchiveContents& contents, const std::string& name,
                               DType dtype, std::size_t rank = 1) {
  const StoredTensor& file = contents.tensors.at(name);
  if (file.shape.size() != rank || natural_dtype(file.type) != dtype)
    no_checkpoint(path, fmt::format("'{}' is {} {}", name, name_of(file.type), to_string(file.shape)));
  const Tensor tensor = read(file, dtype).row_major();
  std::vector<Number> numbers(static_cast<std::size_t>(tensor.count()));
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.data(), numbers.size() * sizeof(Number));
  return numbers;
}

/// All that is in a file has the check sum that is in it, too.
void check_whole(const std::string& path, const std::vector<std::string>& others, std::int64_t wanted) {
  std::set<std::string> names(others.begin(), others.end());
  names.insert({iteration_name, numbers_name, sums_name});
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, file] : open_archive(path, names).tensors)
    tensors[name] = read(file, natural_dtype(file.type));
  if (tensors.size() != names.size() || check_sum(tensors) != wanted)
    no_checkpoint(path, "its contents do not have its check sum, so it is damaged");
}

/// What a checkpoint says besides the states.
struct Contents {
  TrainIdentity identity;
  Position position;
  std::int64_t iteration = 0;
};

Contents contents_of(const std::string& path, const Job& job) {
  const std::set<std::string> parts{iteration_name, numbers_name, sums_name, check_name};
  const ArchiveContents contents = open_archive(path, parts);
  for (const std::string& part : parts) {
    if (contents.tensors.count(part) != 0) continue;
    no_checkpoint(path, fmt::format("it lacks '{}'{}", part,
                                    part == check_name ? ", the check sum, which older versions did not write" : ""));
  }
  const auto check = numbers_of<std::int64_t>(path, contents, check_name, DType::i64, 0);
  if (job.rank == 0) check_whole(path, contents.others, check.front());
  const auto numbers = numbers_of<std::int64_t>(path, contents, numbers_name, DType::i64);
  const auto sums = numbers_of<double>(path, contents, sums_name, DType::f64);
  if (numbers.size() != number_count || sums.size() < 2)
    no_checkpoint(path, "it does not have as many numbers as a checkpoint");
  return {{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]},
          {numbers[5], numbers[6], sums[1], {sums.begin() + 2, sums.end()}, sums[0], numbers[7], numbers[8] != 0},
          numbers_of<std::int64_t>(path, contents, iteration_name, DType::i64, 0).front()};
}

/// The parts of a checkpoint of this training fit each other.
void check_fits(const std::string& path, const Contents& found, const CheckpointForm& form) {
  const Position& at = found.position;
  const std::int64_t steps = form.steps_of_epoch;
  constexpr std::int64_t most_epochs = std::int64_t{1} << 31U;  // of which steps can be counted
  const bool is_counted =
      at.epoch >= 0 && at.epoch <= most_epochs && at.step >= 0 && at.step <= steps && found.iteration >= at.step;
  const std::int64_t before = is_counted ? found.iteration - at.step : 0;
  const std::int64_t epochs = before / steps + (before % steps == 0 ? 0 : 1);  // `until` may cut the last one short
  const bool is_there = is_counted && (at.is_held ? epochs <= at.epoch : before % steps == 0 && epochs == at.epoch);
  const bool has_samples = at.samples >= 0 && at.samples <= static_cast<double>(found.identity.samples);
  if (!is_there || !has_samples || at.sums.size() != form.reported || !(at.seconds >= 0) || at.bytes < 0)
    no_checkpoint(path, fmt::format("its parts do not fit each other: {} steps, of which {} in epoch {}",
                                    found.iteration, at.step, at.epoch + 1));
}

void check_same(const std::string& path, const TrainIdentity& now, const TrainIdentity& then) {
  const auto refuse = [&](const std::string& what) {
    throw UserError(fmt::format("{} cannot be resumed: {}", printable(path), what));
  };
  if (now.seed != then.seed)
    refuse(fmt::format("it was trained with --seed {}, not {}", static_cast<std::uint64_t>(then.seed),
                       static_cast<std::uint64_t>(now.seed)));
  if (now.batch != then.batch) refuse(fmt::format("its batches have {} samples, not {}", then.batch, now.batch));
  if (now.samples != then.samples)
    refuse(fmt::format("it was trained on {} samples, and there are {}", then.samples, now.samples));
  if (now.sites != then.sites)
    refuse(now.sites == 0 || then.sites == 0
               ? fmt::format("it was trained with{} --local-steps", then.sites == 0 ? "out" : "")
               : fmt::format("it was trained by {} sites on their own, not {}", then.sites, now.sites));
  if (now.program != then.program)
    refuse(
        "it is of another program, or of one with other extents, scalars or options of training (--dim, --scalar, "
        "--report, --keep-last, --hold-out, --local-steps, --subnets)\n"
        "  help: `einrel run --load` takes states from it");
}

/// Whether what one rank has thrown all have.
bool is_together(const Job& job) { return job.ranks == 1 || *job.fails_together; }

}  // namespace

std::int64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return std::bit_cast<std::int64_t>(hash);
}

std::vector<std::string> checkpoints_in(const std::string& folder) {
  std::map<std::int64_t, std::string> found;
  std::error_code unseen;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unseen)) {
    if (const auto steps = steps_in_name(entry.path().filename().string())) found[*steps] = entry.path().string();
  }
  std::vector<std::string> paths;
  for (const auto& [steps, path] : found) paths.push_back(path);
  return paths;
}

Checkpoints::Checkpoints(const std::string& folder, bool goes_on, const TrainIdentity& identity, const Job& job)
    : folder_(folder), identity_(identity), job_(job) {
  agree(job, [&] {
    if (job.rank != 0) return;
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error))
      throw UserError(fmt::format("--save {}: it is a file, not a folder", printable(folder)));
    fs::create_directory(folder, error);
    if (error) {
      throw UserError(fmt::format("--save {}: cannot make the folder: {}", printable(folder), error.message()));
    }
    lock_.emplace(folder, fmt::format("--save {}", printable(folder)));
    const std::vector<std::string> there = checkpoints_in(folder);
    if (!there.empty() && !goes_on) {
      throw UserError(
          fmt::format("--save {0}: it holds checkpoints, up to {1}\n  help: go on with --resume {0}, or name "
                      "another folder",
                      printable(folder), printable(fs::path(there.back()).filename().string())));
    }
    check_replaceable(path_of(folder, 0));
    remove_leftovers(folder);
  });
}

void Checkpoints::save(std::int64_t steps_done, const Position& position, const Write& write) {
  const std::vector<std::int64_t> numbers{identity_.program, identity_.seed,  identity_.samples,
                                          identity_.batch,   identity_.sites, position.epoch,
                                          position.step,     position.bytes,  position.is_held ? 1 : 0};
  std::vector<double> sums{position.seconds, position.samples};
  sums.insert(sums.end(), position.sums.begin(), position.sums.end());
  const std::string path = path_of(folder_, steps_done);
  AddedTensors added{{{{path, numbers_name}, DType::i64, {Extent(std::ssize(numbers))}},
                      {{path, sums_name}, DType::f64, {Extent(std::ssize(sums))}},
                      {{path, check_name}, DType::i64, {}}},
                     {}};
  added.add = [&](FileTensors& tensors) {
    tensors.emplace_back(FileRef{path, numbers_name}, tensor_of_numbers(DType::i64, numbers));
    tensors.emplace_back(FileRef{path, sums_name}, tensor_of_numbers(DType::f64, sums));
    std::map<std::string, Tensor> all;
    for (const auto& [file, tensor] : tensors) all[file.member] = tensor;
    tensors.emplace_back(FileRef{path, check_name}, tensor_of(DType::i64, {}, {static_cast<double>(check_sum(all))}));
  };
  std::exception_ptr failure;
  bool is_full = false;
  try {
    write(path, added);
  } catch (const NoRoom&) {
    failure = std::current_exception();
    is_full = true;
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure && !(is_together(job_) && make_room(is_full))) std::rethrow_exception(failure);
  if (failure) {
    *job_.fails_together = false;
    write(path, added);
  }
  if (job_.rank != 0) return;
  const std::vector<std::string> there = checkpoints_in(folder_);
  std::error_code stays;  // one too many does no harm
  for (std::size_t i = 0; i + kept < there.size(); ++i) fs::remove(there[i], stays);
}

/// On all ranks, of which one may have found the disk full: whether there is more room now, since two were there.
bool Checkpoints::make_room(bool is_full) const {
  if (largest(job_, is_full ? 1 : 0) == 0) return false;
  int removed = 0;
  if (job_.rank == 0) {
    const std::vector<std::string> there = checkpoints_in(folder_);
    std::error_code stays;
    for (std::size_t i = 0; i + 1 < there.size(); ++i) removed += fs::remove(there[i], stays) ? 1 : 0;
  }
  return largest(job_, removed) > 0;
}

std::optional<std::string> Checkpoints::last() const {
  const std::vector<std::string> there = checkpoints_in(folder_);
  return there.empty() ? std::nullopt : std::optional(there.back());
}

Resumed resume_from(const std::string& folder, const TrainIdentity& identity, const CheckpointForm& form,
                    const Job& job) {
  const std::vector<std::string> there = checkpoints_in(folder);
  if (there.empty()) {
    std::error_code unseen;
    const char* const reason = fs::is_directory(folder, unseen) ? "there is no checkpoint in it (step-*.safetensors)"
                               : fs::exists(folder, unseen)     ? "it is a file; name the folder of checkpoints"
                                                                : "there is no such folder";
    throw UserError(fmt::format("--resume {}: {}", printable(folder), reason));
  }
  const std::string& path = there.back();
  const auto unless_damaged = [&](const auto& look) {
    try {
      return look();
    } catch (const UserError& error) {
      if (there.size() < 2)
        throw UserError(fmt::format("{}\n  help: no older one is there; begin anew, without --resume", error.what()));
      throw UserError(fmt::format("{}\n  help: {} is the one before it; remove the newer one to resume from there",
                                  error.what(), printable(there[there.size() - 2])));
    }
  };
  const Contents found = unless_damaged([&] { return contents_of(path, job); });
  check_same(path, identity, found.identity);
  unless_damaged([&] { check_fits(path, found, form); });
  return {path, found.position};
}

void check_alike(const std::optional<Resumed>& resumed, const Job& job) {
  if (!resumed || job.ranks == 1) return;
  std::vector<Fact> facts;
  agree(job, [&] {
    const FileBytes file = map_file(resumed->path);
    const Tensor bytes(DType::boolean, {Extent(static_cast<std::int64_t>(file.bytes.size()))}, {1}, file.bytes.data(),
                       file.owner);
    const std::string name = printable(fs::path(resumed->path).filename().string());
    facts = {{"the checkpoint to resume from", name},
             {"another " + name, "", digest_of(bytes, bytes.dtype(), bytes.shape())}};
  });
  check_alike(job, facts);
}

}  // namespace einrel
