#include "run/saved_states.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "run/stored_input.h"

namespace einrel {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  const std::vector<std::string> some(names.begin(),
                                      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  return fmt::format("{}{}", fmt::join(some, ", "), some.size() < names.size() ? ", ..." : "");
}

std::int64_t steps_in(const StoredTensor& file, const std::string& path) {
  if (!file.shape.empty() || !fits(file.type, DType::i64))
    throw UserError(fmt::format("'{}' of {} is no number of steps", iteration_name, printable(path)));
  const std::int64_t steps = read(file, DType::i64).load<std::int64_t>(0);
  constexpr std::int64_t most = std::int64_t{1} << 53U;  // a scalar counts them
  if (steps < 0 || steps > most)
    throw UserError(fmt::format("{} says that {} steps were done, which cannot be", printable(path), steps));
  return steps;
}

void check_fits(const Vertex& state, const StoredTensor& file) {
  if (file.shape != state.bound)
    throw UserError(fmt::format("the state '{}' has shape {}, but {} has {}", state.name, to_string(state.bound),
                                file.name, to_string(file.shape)));
  if (natural_dtype(file.type) != state.dtype && !fits(file.type, state.dtype))
    throw UserError(fmt::format("the state '{}' is {}, but {} holds {}", state.name, name_of(state.dtype), file.name,
                                name_of(file.type)));
}

}  // namespace

GivenStates LoadedStates::given() const {
  GivenStates given{{}, steps_done};
  for (const auto& [name, file] : files) given.values[name] = source_of(file.first, file.second);
  return given;
}

LoadedStates load_states(const EinGraph& graph, const std::string& path, const InflateFolder& folder) {
  if (!is_archive(path)) throw UserError(fmt::format("--load {}: give FILE.safetensors or FILE.npz", printable(path)));
  std::set<std::string> wanted{iteration_name};
  for (const State& state : graph.steps.states) wanted.insert(graph[state.now].name);
  ArchiveContents found = open_archive(path, wanted, folder);
  LoadedStates loaded;
  std::vector<std::string> missing;
  for (const State& state : graph.steps.states) {
    const Vertex& now = graph[state.now];
    const auto file = found.tensors.find(now.name);
    if (file == found.tensors.end()) {
      missing.push_back(now.name);
      continue;
    }
    check_fits(now, file->second);
    loaded.files.emplace(now.name, std::pair(std::move(file->second), now.dtype));
  }
  if (!missing.empty()) {
    throw UserError(fmt::format("{} does not hold the {} {}{}", printable(path),
                                missing.size() == 1 ? "state" : "states", list_of(missing),
                                found.others.empty() ? "" : "; it holds " + list_of(found.others)));
  }
  const auto steps = found.tensors.find(iteration_name);
  if (steps != found.tensors.end()) loaded.steps_done = steps_in(steps->second, path);
  return loaded;
}

std::vector<std::pair<FileRef, DType>> files_of_states(const EinGraph& graph, const std::string& path) {
  if (!is_archive(path)) throw UserError(fmt::format("--save {}: give FILE.safetensors or FILE.npz", printable(path)));
  std::vector<std::pair<FileRef, DType>> files;
  for (const State& state : graph.steps.states)
    files.emplace_back(FileRef{path, graph[state.now].name}, graph[state.now].dtype);
  files.emplace_back(FileRef{path, iteration_name}, DType::i64);
  return files;
}

StateFile::StateFile(std::string path, const PlannedTasks& tasks, const Job& job, AddedTensors added)
    : path_(std::move(path)), job_(job), added_(std::move(added)) {
  added_.planned.insert(added_.planned.begin(), {{path_, iteration_name}, DType::i64, {}});
  std::vector<PlannedTensor> planned;
  std::map<std::string, FileRef> files;
  for (const TaskState& state : tasks.states) {
    types_.push_back(state.type);
    files[state.type.name] = {path_, state.type.name};
    planned.push_back({files[state.type.name], state.type.dtype, state.type.bound});
  }
  planned.insert(planned.end(), added_.planned.begin(), added_.planned.end());
  if (job.ranks > 1) chunks_ = std::make_unique<ChunkedOutputs>(types_, files, false, job, added_.planned);
  agree(job, [&] {
    const bool has_room = chunks_ && layout_of(planned);
    if (job.rank == 0 && !has_room) room_ = take_room(planned);
  });
}

std::vector<AtomicFile> StateFile::complete(const KeptStates& states) {
  const AddTensors add_all = [&](FileTensors& tensors) {
    Tensor steps(DType::i64, {});
    const std::int64_t count = states.steps_done();
    std::memcpy(steps.mutable_data(), &count, sizeof(count));
    tensors.emplace_back(FileRef{path_, iteration_name}, steps);
    if (added_.add) added_.add(tensors);
    room_.clear();  // for what is written now
  };
  if (!chunks_) {
    FileTensors tensors;
    for (std::size_t s = 0; s < types_.size(); ++s)
      tensors.emplace_back(FileRef{path_, types_[s].name}, std::get<Tensor>(states[s].now()));
    add_all(tensors);
    return complete_files(tensors);
  }
  const std::vector<OutputWriter> writers = chunks_->writers();
  agree(job_, [&] {
    for (std::size_t s = 0; s < types_.size(); ++s) {
      for (const KeptState::Part& part : states[s].parts()) writers[s](part.begin, part.elements);
    }
  });
  return chunks_->complete(add_all);
}

void save_states(const KeptStates& states, const PlannedTasks& tasks, const std::string& path, const Job& job,
                 const AddedTensors& added) {
  std::vector<AtomicFile> files = StateFile(path, tasks, job, added).complete(states);
  agree(job, [&] {
    for (AtomicFile& file : files) file.commit();
  });
}

}  // namespace einrel
