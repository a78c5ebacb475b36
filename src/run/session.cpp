#include "run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/thread.h"
#include "exec/job/alike.h"
#include "exec/memory/digests.h"
#include "run/memory.h"

namespace einrel {
namespace {

/// Tells a listener how far a run is while this lives, and at the end.
class Ticker {
 public:
  /// Of so many steps.
  Ticker(const PlannedTasks& tasks, const TaskProgress& progress, const ProgressListener& listener, const Job& job,
         std::size_t steps)
      : tasks_(tasks), progress_(progress), listener_(listener) {
    for (const Task& task : tasks.graph.tasks) {
      const bool is_here = job.ranks == 1 || site_of(tasks.graph, task) == job.rank;
      if (!is_here || std::holds_alternative<Send>(task.op)) continue;
      ++total_.total;
      total_.flops_total += flops_of(task);
    }
    total_.total *= steps;
    total_.flops_total *= static_cast<double>(steps);
    thread_ = start_thread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        tell();
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
      }
    });
  }
  ~Ticker() {
    thread_.request_stop();
    thread_.join();
    total_.total = progress_.done;  // inputs in memory were no tasks, and not all steps may have been needed
    total_.flops_total = progress_.flops;
    tell();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void tell() const {
    RunProgress now = total_;
    now.done = std::min<std::size_t>(progress_.done, now.total);
    now.flops_done = progress_.flops;
    now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    now.vertex = name_of(tasks_, progress_.task);
    listener_(now);
  }

  const PlannedTasks& tasks_;
  const TaskProgress& progress_;
  const ProgressListener& listener_;
  RunProgress total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

/// Seconds, received bytes and the most live bytes of one rank's tasks, by vertex: what it sends to rank 0, one after
/// the other.
std::vector<double> by_vertex(const PlannedTasks& tasks, const TaskReport& own) {
  const std::size_t count = tasks.names.size();
  std::vector<double> values(3 * count, 0);
  for (const TaskSpan& span : own.spans) {
    const std::optional<std::size_t> vertex = tasks.vertices[tasks.graph.tasks[span.task].node.index];
    if (!vertex) continue;
    values[*vertex] += span.seconds;
    double& live = values[2 * count + *vertex];
    live = std::max(live, static_cast<double>(span.live_bytes));
  }
  for (const auto& [node, bytes] : own.received) {
    if (const auto vertex = tasks.vertices[node.index]) values[count + *vertex] += static_cast<double>(bytes);
  }
  return values;
}

std::vector<double> numbers_of(const std::vector<TaskSpan>& spans) {
  std::vector<double> numbers;
  for (const TaskSpan& span : spans) {
    numbers.insert(numbers.end(), {static_cast<double>(span.task), span.start, span.seconds,
                                   static_cast<double>(span.thread), static_cast<double>(span.live_bytes)});
  }
  return numbers;
}

std::vector<double> numbers_of(const std::vector<MessageSpan>& messages) {
  std::vector<double> numbers;
  for (const MessageSpan& message : messages)
    numbers.insert(numbers.end(), {static_cast<double>(message.task), message.start, message.end});
  return numbers;
}

/// Whether a rank says so.
bool is_true_somewhere(const Job& job, bool here) {
  if (job.ranks == 1) return here;
  bool is_true = false;
  for (const std::vector<double>& rank : gather(job, {here ? 1.0 : 0.0})) is_true = is_true || rank.front() != 0;
  return !from_rank_0(job, is_true ? "true" : "").empty();
}

std::int64_t bytes_received(const TaskReport& report) {
  return std::accumulate(report.received.begin(), report.received.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& node) { return sum + node.second; });
}

/// The last of several runs, with what only the first one received.
TaskReport with_received(TaskReport last, const TaskReport& once) {
  for (const auto& [node, bytes] : once.received) last.received[node] += bytes;
  return last;
}

/// Bytes, per site, that a plan counts for a step that is not the first.
std::vector<std::int64_t> received_later(const PlannedTasks& tasks) {
  std::vector<std::int64_t> received = tasks.traffic.received;
  if (!tasks.first) return received;
  for (std::size_t site = 0; site < received.size(); ++site) received[site] -= tasks.first->traffic.received[site];
  return received;
}

/// What rank 0 makes of what every rank did: in its last run, and once, before the first; nothing where that is long
/// ago.
PlanRunReport gathered(const PlannedTasks& tasks, const TaskReport& last, const std::optional<TaskReport>& before,
                       const std::vector<double>& runs, const Job& job) {
  const TaskReport once = before.value_or(TaskReport());
  const TaskReport own = with_received(last, once);
  PlanRunReport report;
  report.runs.assign(runs.size(), 0);
  for (const std::vector<double>& rank : gather(job, runs)) {
    for (std::size_t i = 0; i < rank.size(); ++i) report.runs[i] = std::max(report.runs[i], rank[i]);
  }
  for (const std::vector<double>& rank : gather(job, numbers_of(own.spans))) {
    std::vector<TaskSpan>& spans = report.spans.emplace_back();
    for (std::size_t i = 0; i < rank.size(); i += 5) {
      spans.push_back({static_cast<std::size_t>(rank[i]), rank[i + 1], rank[i + 2], static_cast<int>(rank[i + 3]),
                       static_cast<std::int64_t>(rank[i + 4])});
    }
    report.tasks += spans.size();
  }
  for (const std::vector<double>& rank : gather(job, numbers_of(own.messages))) {
    std::vector<MessageSpan>& messages = report.messages.emplace_back();
    for (std::size_t i = 0; i < rank.size(); i += 3)
      messages.push_back({static_cast<std::size_t>(rank[i]), rank[i + 1], rank[i + 2]});
  }
  const std::int64_t file_bytes = resident_file_bytes().value_or(0);
  const std::int64_t peak_bytes = std::max(peak_resident_bytes().value_or(0), file_bytes);
  for (const std::vector<double>& rank :
       gather(job, {own.seconds, static_cast<double>(peak_bytes), static_cast<double>(own.spilled),
                    static_cast<double>(own.read_back), static_cast<double>(file_bytes),
                    static_cast<double>(bytes_received(once))})) {
    report.seconds = std::max(report.seconds, rank[0]);
    report.peak_bytes.push_back(static_cast<std::int64_t>(rank[1]));
    report.spilled += static_cast<std::int64_t>(rank[2]);
    report.read_back += static_cast<std::int64_t>(rank[3]);
    report.file_bytes.push_back(static_cast<std::int64_t>(rank[4]));
    report.received_once.push_back(static_cast<std::int64_t>(rank[5]));
  }
  const std::size_t vertices = tasks.names.size();
  report.vertex_seconds.assign(vertices, 0);
  report.vertex_bytes.assign(vertices, 0);
  report.vertex_live.assign(vertices, 0);
  report.is_counted = job.ranks > 1;
  if (!report.is_counted) {
    report.received = before ? tasks.traffic.received : received_later(tasks);
    report.received_once = before && tasks.first ? tasks.first->traffic.received : std::vector<std::int64_t>();
  }
  for (const std::vector<double>& rank : gather(job, by_vertex(tasks, own))) {
    std::int64_t received = 0;
    for (std::size_t v = 0; v < vertices; ++v) {
      report.vertex_seconds[v] = std::max(report.vertex_seconds[v], rank[v]);
      report.vertex_bytes[v] += static_cast<std::int64_t>(rank[vertices + v]);
      report.vertex_live[v] = std::max(report.vertex_live[v], static_cast<std::int64_t>(rank[2 * vertices + v]));
      received += static_cast<std::int64_t>(rank[vertices + v]);
    }
    if (report.is_counted) report.received.push_back(received);
  }
  return report;
}

}  // namespace

/// What tasks meet in `run`, with memory for the next time.
struct Session::Outside {
  Outside(const TaskGraph& graph, std::int64_t most_bytes) : whole(come_whole(graph)), outputs(graph.outputs.size()) {
    bindings.is_timed = false;
    bindings.most_bytes = most_bytes;
    bindings.inputs.resize(graph.inputs.size());
    for (std::size_t o = 0; o < outputs.size(); ++o) bindings.outputs.push_back(writer_to(outputs[o], whole[o]));
  }

  /// They are the caller's, as outputs are; what they take here stays for the next ones.
  void forget_inputs() {
    static const Tensor nothing(DType::f32, {}, {}, nullptr, nullptr);
    for (InputSource& input : bindings.inputs) input = nothing;
  }

  TaskBindings bindings;
  std::vector<bool> whole;  // by output, whether it comes in one chunk
  std::vector<Tensor> outputs;
};

Session::Session(const PlannedTasks& tasks, RunResources resources, Job job)
    : tasks_(tasks),
      resources_(std::move(resources)),
      job_(std::move(job)),
      executor_(executor_for(tasks.graph, resources_, job_)) {}

Session::~Session() = default;

const PreparedTasks& Session::ready_for(const TaskBindings& bindings) {
  constexpr std::size_t most_kept = 8;
  const auto found =
      std::find_if(ready_.begin(), ready_.end(), [&](const PreparedTasks& tasks) { return tasks.is_for(bindings); });
  if (found != ready_.end()) {
    found->rebind(bindings.scalars);
    ready_.splice(ready_.begin(), ready_, found);
    return ready_.front();
  }
  if (!kernels_) kernels_ = std::make_shared<ChunkKernels>(tasks_.graph, bindings.scalars);
  ready_.emplace_front(tasks_.graph, bindings, job_.site(), kernels_);
  if (ready_.size() > most_kept) {
    ready_.pop_back();
    kernels_.reset();  // those of layouts that come no more live no longer than what calls them
  }
  return ready_.front();
}

std::vector<const InputSource*> pointers_to(const std::vector<InputSource>& inputs) {
  std::vector<const InputSource*> pointers;
  for (const InputSource& input : inputs) pointers.push_back(&input);
  return pointers;
}

InMemory Session::run(std::span<const InputSource* const> inputs, const ScalarBindings& scalars,
                      const std::stop_token& stop) {
  const TaskGraph& graph = tasks_.graph;
  invariant(job_.ranks == 1 && tasks_.states.empty() && !tasks_.first,
            "a run in memory is of one process, one step, and has no states");
  if (inputs.size() != graph.inputs.size())
    throw UserError(fmt::format("the program has {} inputs, but {} are given", graph.inputs.size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check_type(graph.inputs[i].name, graph.inputs[i].dtype, graph.inputs[i].bound, *inputs[i]);
  if (!outside_) outside_ = std::make_unique<Outside>(graph, resources_.most_bytes);
  TaskBindings& bindings = outside_->bindings;
  for (std::size_t i = 0; i < inputs.size(); ++i) bindings.inputs[i] = *inputs[i];
  if (!have_same_bits(bindings.scalars, scalars)) bindings.scalars = scalars;
  std::vector<Tensor>& outputs = outside_->outputs;
  try {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outside_->whole[o]) outputs[o] = Tensor(graph.outputs[o].dtype, graph.outputs[o].bound);
    }
    const ExecutorAtWork at_work(*executor_, stop);
    TaskReport report = executor_->run(ready_for(bindings), bindings);
    outside_->forget_inputs();
    return {{std::make_move_iterator(outputs.begin()), std::make_move_iterator(outputs.end())}, std::move(report)};
  } catch (...) {
    outside_.reset();
    throw;
  }
}

/// Steps that have begun, and what changes from one to the next of what tasks meet. The executor is at work when it is
/// made, and in each step.
class Session::Stepping {
 public:
  /// Brings what stays to where all steps use it. `asked` must outlive it.
  Stepping(Session& session, const InputSources& sources, std::vector<OutputWriter> writers,
           const ScalarBindings& scalars, const StepsAsked& asked)
      : session_(session),
        tasks_(session.tasks_),
        states_(asked.states),
        asked_(asked),
        kept_(tasks_.graph.tasks.size()),
        said_(std::move(writers)) {
    invariant(states_ != nullptr || tasks_.states.empty(), "states are kept between steps");
    InputSources all = sources;
    for (std::size_t s = 0; s < tasks_.states.size(); ++s) {
      if (tasks_.states[s].input) all[tasks_.states[s].type.name] = (*states_)[s].now();
    }
    if (tasks_.first) all.merge(session_.bring(all, *once_));
    bindings_ = task_bindings(tasks_.graph, all, {}, scalars);
    bindings_.most_bytes = session_.resources_.most_bytes;
    said_.resize(tasks_.graph.outputs.size(), nobody);
    if (asked.count > 1 && !is_limited(session.resources_.memory)) bindings_.kept = &kept_;
    find_state_reads();
  }

  void tell(TaskProgress* progress) { bindings_.progress = progress; }

  /// One step; whether no other one is to follow.
  bool step(bool is_last) {
    begin(is_last);
    // Ranks begin together, with their kernels made: executors wait for no message until there is something to send.
    const PreparedTasks* ready = nullptr;
    agree(session_.job_, [&] { ready = &session_.ready_for(bindings_); });
    own_ = session_.executor_->run(*ready, bindings_);
    runs_.push_back(own_.seconds + (is_first_ && once_ ? once_->seconds : 0));
    is_first_ = false;
    return end();
  }

  /// Of the steps since the last report.
  PlanRunReport report() {
    PlanRunReport report = gathered(tasks_, own_, once_, runs_, session_.job_);
    report.is_last = is_last_;
    once_.reset();
    runs_.clear();
    return report;
  }

 private:
  static void nobody(const std::vector<std::int64_t>& /*begin*/, const Tensor& /*chunk*/) {}

  void begin(bool is_last) {
    bindings_.outputs.assign(said_.size(), nobody);
    if (is_last || tasks_.until || asked_.after) bindings_.outputs = said_;
    if (tasks_.until)
      also(*tasks_.until, [this](const auto&, const Tensor& chunk) { holds_ = values_of(chunk)[0] != 0; });
    for (std::size_t s = 0; s < tasks_.states.size(); ++s) {
      const TaskState& state = tasks_.states[s];
      if (state.input) bindings_.inputs[*state.input] = (*states_)[s].now();
      if (state.next) also(*state.next, (*states_)[s].next());
    }
    for (const std::size_t task : state_reads_) kept_[task].reset();  // what the last step read
    if (asked_.feed && !is_first_) feed(asked_.feed());
    if (tasks_.iteration) count(*tasks_.iteration);
  }

  /// Whether that was the last one.
  bool end() {
    if (states_ != nullptr) {
      for (std::size_t s = 0; s < tasks_.states.size(); ++s) {
        if (tasks_.states[s].next) (*states_)[s].advance();
      }
      states_->count_step();
    }
    is_last_ = tasks_.until && is_true_somewhere(session_.job_, holds_);
    return (asked_.after && !asked_.after()) || is_last_;
  }

  void also(std::size_t output, OutputWriter writer) {
    OutputWriter& known = bindings_.outputs[output];
    known = [first = std::move(known), second = std::move(writer)](const auto& begin, const Tensor& chunk) {
      first(begin, chunk);
      second(begin, chunk);
    };
  }

  /// The tasks that read states.
  void find_state_reads() {
    std::set<std::size_t> inputs;
    for (const TaskState& state : tasks_.states) {
      if (state.input) inputs.insert(*state.input);
    }
    for (std::size_t t = 0; t < tasks_.graph.tasks.size(); ++t) {
      const auto* const read = std::get_if<ReadInput>(&tasks_.graph.tasks[t].op);
      if (read != nullptr && inputs.count(read->input) != 0) state_reads_.push_back(t);
    }
  }

  /// Inputs that are new in this step; those that no task reads are none of it.
  void feed(InputSources sources) {
    const std::vector<StoredRelation>& inputs = tasks_.graph.inputs;
    std::vector<bool> is_new(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto source = sources.find(inputs[i].name);
      if (source == sources.end()) continue;
      invariant(!is_brought(i), "an input that stays where it was brought is not fed");
      check_type(inputs[i].name, inputs[i].dtype, inputs[i].bound, source->second);
      bindings_.inputs[i] = std::move(source->second);
      is_new[i] = true;
    }
    for (std::size_t t = 0; t < tasks_.graph.tasks.size(); ++t) {
      const auto* const read = std::get_if<ReadInput>(&tasks_.graph.tasks[t].op);
      if (read != nullptr && is_new[read->input]) kept_[t].reset();
    }
  }

  bool is_brought(std::size_t input) const {
    if (!tasks_.first) return false;
    const std::vector<std::size_t>& of = tasks_.first->brought.of;
    return std::find(of.begin(), of.end(), input) != of.end();
  }

  void count(const ScalarDeclaration& scalar) {
    const auto done = static_cast<double>(states_->steps_done());
    if (scalar.integer_type && !is_exact(done, *scalar.integer_type))
      throw RunError(fmt::format("'{}' is {}, which is no {}", scalar.name, done, name_of(*scalar.integer_type)));
    bindings_.scalars[scalar.name] = done;
  }

  Session& session_;
  const PlannedTasks& tasks_;
  KeptStates* states_;
  const StepsAsked& asked_;
  TaskBindings bindings_;
  KeptInputs kept_;
  std::vector<std::size_t> state_reads_;
  std::vector<OutputWriter> said_;                 // by output; of those that are not, nobody
  std::optional<TaskReport> once_ = TaskReport();  // of bringing what stays; nothing once that is reported
  TaskReport own_;                                 // of the last step
  std::vector<double> runs_;
  bool is_first_ = true;
  std::atomic<bool> holds_ = false;
  bool is_last_ = false;
};

/// Tasks that differ from rank to rank would wait for messages that nobody sends, or mix the parts of two plans.
void Session::compare_ranks() {
  if (job_.ranks == 1 || std::exchange(is_compared_, true)) return;
  const auto fact = [](const TaskGraph& graph) {
    return Fact{"another plan", "", digest_of(graph),
                "plans differ where ranks read other files of machines or plans, also those that einrel calibrate "
                "has kept in another home folder, or, under a limit of memory, compute on other numbers of threads: "
                "name one file of a machine, and give the threads"};
  };
  std::vector<Fact> facts{fact(tasks_.graph)};
  if (tasks_.first) facts.push_back(fact(tasks_.first->brought.graph));
  check_alike(job_, facts);
}

/// Brings inputs to where all steps use them. What lies with other ranks nobody reads here.
InputSources Session::bring(const InputSources& sources, TaskReport& report) {
  const BroughtOnce& brought = tasks_.first->brought;
  const std::vector<TaskOutput>& outputs = brought.graph.outputs;
  std::vector<Tensor> arrays(outputs.size(), Tensor(DType::f32, {}, {}, nullptr, nullptr));
  std::vector<OutputWriter> writers;
  for (Tensor& array : arrays) writers.push_back(writer_to(array, true));
  TaskBindings bindings = task_bindings(brought.graph, sources, std::move(writers), {});
  bindings.most_bytes = resources_.most_bytes;
  std::optional<PreparedTasks> ready;
  agree(job_, [&] { ready.emplace(brought.graph, bindings, job_.site()); });
  report = executor_->run(*ready, bindings);
  InputSources there;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (job_.ranks == 1 || brought.sites[o] == job_.rank) {
      there[outputs[o].name] = std::move(arrays[o]);
    } else {
      there[outputs[o].name] = [](const auto&, const Shape&, std::byte*) { throw Bug("another rank's array is read"); };
    }
  }
  return there;
}

PlanRunReport Session::step(const InputSources& sources, std::vector<OutputWriter> writers,
                            const ScalarBindings& scalars, const StepsAsked& asked) {
  compare_ranks();
  InputSources all = asked.feed ? asked.feed() : InputSources{};
  all.insert(sources.begin(), sources.end());
  std::optional<Stepping> stepping;
  {
    const ExecutorAtWork at_work(*executor_, asked.stop);
    stepping.emplace(*this, all, std::move(writers), scalars, asked);
    TaskProgress progress;
    std::optional<Ticker> ticker;
    if (asked.listener) {
      stepping->tell(&progress);
      ticker.emplace(tasks_, progress, asked.listener, job_, asked.count);
    }
    bool is_done = false;
    for (std::size_t done = 1; !is_done; ++done) {
      const bool is_last = done == asked.count;
      is_done = stepping->step(is_last) || is_last;
    }
  }
  return stepping->report();
}

OngoingSteps::OngoingSteps(Session& session, InputSources sources, std::vector<OutputWriter> writers,
                           ScalarBindings scalars, KeptStates* states)
    : session_(session), sources_(std::move(sources)), writers_(std::move(writers)), scalars_(std::move(scalars)) {
  asked_.count = std::numeric_limits<std::size_t>::max();
  asked_.states = states;
  asked_.feed = [this] { return std::move(fed_); };
  asked_.after = [] { return true; };  // outputs are wanted after each
}

OngoingSteps::~OngoingSteps() = default;

PlanRunReport OngoingSteps::step(InputSources fed, const std::stop_token& stop) {
  session_.compare_ranks();
  {
    const ExecutorAtWork at_work(*session_.executor_, stop);
    if (!stepping_) {
      fed.merge(std::exchange(sources_, {}));
      stepping_ = std::make_unique<Session::Stepping>(session_, fed, std::move(writers_), scalars_, asked_);
    } else {
      fed_ = std::move(fed);
    }
    stepping_->step(false);
  }
  return stepping_->report();
}

std::int64_t PlanRunReport::moved() const { return std::accumulate(received.begin(), received.end(), std::int64_t{0}); }

std::int64_t PlanRunReport::moved_once() const {
  return std::accumulate(received_once.begin(), received_once.end(), std::int64_t{0});
}

std::int64_t PlanRunReport::most_live() const { return *std::max_element(vertex_live.begin(), vertex_live.end()); }

}  // namespace einrel
