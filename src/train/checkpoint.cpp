#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "exec/digests.h"
#include "exec/starpu/alike.h"
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

template <class Number>
std::vector<Number> numbers_of(const StoredTensor& file, DType dtype) {
  if (file.shape.size() != 1 || !fits(file.type, dtype)) throw UserError(file.name + " is no part of a checkpoint");
  const Tensor tensor = read(file, dtype).row_major();
  std::vector<Number> numbers(static_cast<std::size_t>(tensor.count()));
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.data(), numbers.size() * sizeof(Number));
  return numbers;
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
  write(path_of(folder_, steps_done),
        {{numbers_name, tensor_of_numbers(DType::i64, numbers)}, {sums_name, tensor_of_numbers(DType::f64, sums)}});
  if (job_.rank != 0) return;
  const std::vector<std::string> there = checkpoints_in(folder_);
  std::error_code stays;  // one too many does no harm
  for (std::size_t i = 0; i + kept < there.size(); ++i) fs::remove(there[i], stays);
}

std::optional<std::string> Checkpoints::last() const {
  const std::vector<std::string> there = checkpoints_in(folder_);
  return there.empty() ? std::nullopt : std::optional(there.back());
}

Resumed resume_from(const std::string& folder, const TrainIdentity& identity) {
  const std::vector<std::string> there = checkpoints_in(folder);
  if (there.empty()) {
    std::error_code unseen;
    const char* const reason = fs::is_directory(folder, unseen) ? "there is no checkpoint in it (step-*.safetensors)"
                               : fs::exists(folder, unseen)     ? "it is a file; name the folder of checkpoints"
                                                                : "there is no such folder";
    throw UserError(fmt::format("--resume {}: {}", printable(folder), reason));
  }
  Resumed resumed{there.back(), {}};
  TrainIdentity then;
  try {
    const ArchiveContents contents = open_archive(resumed.path, {numbers_name, sums_name});
    if (contents.tensors.size() != 2) throw UserError(printable(resumed.path) + " is no checkpoint of `einrel train`");
    const auto numbers = numbers_of<std::int64_t>(contents.tensors.at(numbers_name), DType::i64);
    const auto sums = numbers_of<double>(contents.tensors.at(sums_name), DType::f64);
    if (numbers.size() != number_count || sums.size() < 2)
      throw UserError(printable(resumed.path) + " is no checkpoint of `einrel train`");
    then = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    resumed.position = {numbers[5], numbers[6], sums[1],        {sums.begin() + 2, sums.end()},
                        sums[0],    numbers[7], numbers[8] != 0};
    constexpr std::int64_t most = std::int64_t{1} << 31U;
    const Position& at = resumed.position;
    if (at.epoch < 0 || at.step < 0 || at.epoch > most || at.step > most || at.bytes < 0)
      throw UserError(printable(resumed.path) + " says that a number of epochs or steps was done which cannot be");
  } catch (const UserError& error) {
    if (there.size() < 2)
      throw UserError(fmt::format("{}\n  help: no older one is there; begin anew, without --resume", error.what()));
    throw UserError(fmt::format("{}\n  help: {} is the one before it; remove the newer one to resume from there",
                                error.what(), printable(there[there.size() - 2])));
  }
  check_same(resumed.path, identity, then);
  return resumed;
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
