#include "exec/executors/starpu/run.h"

#include <mpi.h>
#include <starpu.h>
#include <starpu_mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/error.h"
#include "exec/executors/first_error.h"
#include "exec/executors/turns.h"
#include "exec/job/byte_matrix.h"
#include "exec/memory/array_store.h"
#include "exec/tasks/prepared_tasks.h"

namespace einrel {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Bounds what is sent, or received, at a time. Under a limit of memory, arrays on their way cannot go to disk: those
/// of later tasks must leave room for the earlier ones that others wait for.
class Transit {
 public:
  explicit Transit(std::optional<std::int64_t> most_bytes) : most_bytes_(most_bytes) {}

  /// Waits until there is room; one array, however large, always has it.
  void enter(std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] {
      return count_ == 0 || (count_ < most_arrays && bytes_ + bytes <= most_bytes_.value_or(bytes_ + bytes));
    });
    ++count_;
    bytes_ += bytes;
  }
  void leave(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    --count_;
    bytes_ -= bytes;
    left_.notify_one();
  }

 private:
  static constexpr int most_arrays = 32;
  std::optional<std::int64_t> most_bytes_;
  std::mutex mutex_;
  std::condition_variable left_;
  int count_ = 0;
  std::int64_t bytes_ = 0;
};

/// A task that just fits takes a quarter of the memory (run/out_of_core); what is sent and what is received get one
/// each, and one is left for what goes to disk or comes from it.
std::optional<std::int64_t> most_in_transit(const StarpuSession& session) {
  if (!session.is_limited()) return std::nullopt;
  return starpu_memory_get_available(STARPU_MAIN_RAM) / 4;
}

/// What all tasks of a run share.
struct RunState {
  RunState(const PreparedTasks& run_tasks, const TaskBindings& run_bindings, StarpuSession& run_session,
           const std::stop_token& run_stop, std::optional<Site> run_site)
      : tasks(run_tasks),
        graph(run_tasks.graph()),
        bindings(run_bindings),
        session(run_session),
        stop(run_stop),
        live(graph),
        turns(tasks, run_bindings.most_bytes, run_site),
        sent(most_in_transit(run_session)),
        received(most_in_transit(run_session)) {}

  const PreparedTasks& tasks;
  const TaskGraph& graph;
  const TaskBindings& bindings;
  StarpuSession& session;
  const std::stop_token& stop;
  LiveArrays live;
  TaskTurns turns;
  FirstError error;
  Transit sent;
  Transit received;
};

/// One task as StarPU gets it: what it runs on, apart from the arrays that StarPU keeps.
struct TaskCall {
  RunState& state;
  std::size_t number = 0;  ///< of the task in the graph
  const Task& task;
  std::vector<std::optional<Tensor>> in_place;  ///< per read, if it is part of an input
  std::vector<std::size_t> buffers;             ///< per other read, which buffer
  TaskSpan span;
};

std::byte* pointer_of(void* buffer) {
  const std::uintptr_t address = STARPU_MATRIX_GET_PTR(buffer);  // StarPU keeps addresses as numbers
  return reinterpret_cast<std::byte*>(address);                  // NOLINT(performance-no-int-to-ptr)
}

/// Runs a task on its arrays.
class TaskRun {
 public:
  TaskRun(const TaskCall& call, void** buffers) : call_(call), graph_(call.state.graph) {
    for (std::size_t i = 0; i < call.task.reads.size(); ++i) {
      const ArrayId read = call.task.reads[i];
      tensors_.push_back(call.in_place[i] ? *call.in_place[i]
                                          : borrowed(graph_[read], pointer_of(buffers[call.buffers[i]])));
    }
    for (const Tensor& tensor : tensors_) reads_.push_back(&tensor);
    for (std::size_t i = 0; i < call.task.makes.size(); ++i) results_.push_back(pointer_of(buffers[i]));
  }

  void operator()(const ReadInput& op) const {
    read_part(op, call_.state.bindings.inputs[op.input], bound(), results_.front());
  }
  void operator()(const CallKernel& op) const {
    std::vector<const std::byte*> arguments;
    for (const Tensor& array : std::span(tensors_).first(tensors_.size() - (op.onto ? 1 : 0)))
      arguments.push_back(array.data());
    for (const std::int64_t& number : op.numbers) arguments.push_back(std::as_bytes(std::span(&number, 1)).data());
    call_.state.tasks.kernel(call_.number).run(arguments, results_, call_.state.session.workers());
  }
  void operator()(const CopyBoxes& op) const { copy_boxes(op, reads_, made(), results_.front()); }
  void operator()(const Send&) const { throw Bug("a Send is no task of StarPU's"); }
  void operator()(const WriteOutput& op) const { call_.state.bindings.outputs[op.output](op.begin, tensors_.front()); }

 private:
  const TaskArray& made() const { return graph_[call_.task.makes.front()]; }
  const Shape& bound() const { return made().bound; }

  const TaskCall& call_;
  const TaskGraph& graph_;
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> reads_;
  std::vector<std::byte*> results_;
};

/// What StarPU's threads call.
void run_task(void* buffers[], void* argument) {
  TaskCall& call = *static_cast<TaskCall*>(argument);
  RunState& state = call.state;
  if (state.error) {
    state.turns.end_task(call.number);
    return;
  }
  state.live.begin(call.task);
  try {
    if (state.stop.stop_requested()) throw RunError("the run was stopped before it was done");
    const TaskClock clock(state.graph, call.number, starpu_worker_get_id(), state.bindings.progress);
    std::visit(TaskRun(call, buffers), call.task.op);
    call.span = clock.stop(state.live.bytes());
  } catch (...) {
    state.error.keep();
  }
  for (const ArrayId read : call.task.reads) state.live.end_use(read);
  if (overwritten(call.task)) state.live.begin(call.task.makes.front());
  for (const ArrayId made : call.task.makes) state.live.end_use(made);
  state.turns.end_task(call.number);
  call.in_place = {};  // there are as many calls as tasks, until the end of the run
  call.buffers = {};
}

/// What goes to another rank, or comes from it.
struct Transfer {
  RunState& state;
  ArrayId array;
  MessageSpan span;
};

void end_receive(void* argument) {
  auto& [state, array, span] = *static_cast<Transfer*>(argument);
  span.end = seconds_now();
  state.live.end_use(array);
  state.turns.end_task(span.task);
  state.received.leave(bytes_of(state.graph[array]));
}

void end_send(void* argument) {
  auto& [state, array, span] = *static_cast<Transfer*>(argument);
  span.end = seconds_now();
  state.live.end_use(array);
  state.turns.end_task(span.task);
  state.sent.leave(bytes_of(state.graph[array]));
}

starpu_codelet make_codelet() {
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.cpu_funcs[0] = run_task;
  codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
  codelet.name = "einrel";
  return codelet;
}

/// Memory that StarPU gives back itself, by free().
template <class Item>
Item* allocated_for_starpu(std::size_t count) {
  return static_cast<Item*>(std::malloc(count * sizeof(Item)));  // owned by StarPU
}

/// Called when a task is done and what it made is free to be sent: others wait for it, and the thread that sends has a
/// core only when somebody lets it have one. Where ranks share cores, threads that look for work take their turns
/// first: with two ranks on a core there are three others.
void let_send(void*) {
  constexpr int turns = 4;
  for (int turn = 0; turn < turns; ++turn) std::this_thread::yield();
}

/// By array, whether it is sent to another site.
std::vector<bool> sent_arrays(const TaskGraph& graph) {
  std::vector<bool> sent(graph.arrays.size());
  for (const Task& task : graph.tasks) {
    if (std::holds_alternative<Send>(task.op)) sent[task.reads.front().index] = true;
  }
  return sent;
}

/// Hands a graph to StarPU, task by task.
class Submission {
 public:
  Submission(RunState& state, const Job& job)
      : state_(state),
        job_(job),
        graph_(state.graph),
        codelet_(make_codelet()),
        arrays_(graph_.arrays.size()),
        is_sent_(sent_arrays(graph_)) {}

  /// Returns when all is done.
  TaskReport run() {
    const Clock::time_point start = Clock::now();
    const std::int64_t spilled_before = state_.session.spill().written;
    const std::int64_t read_before = state_.session.spill().read;
    try {
      for (std::size_t t = 0; t < graph_.tasks.size() && !state_.error; ++t) {
        state_.turns.wait_for(t);
        submit(t);
        for (const ArrayId array : state_.tasks.last_used_by(t)) release(arrays_[array.index]);
        starpu_task_wait_for_n_submitted(most_tasks_submitted);
      }
    } catch (...) {
      state_.error.keep();
    }
    // Others wait for what this rank will not send, and it for them.
    if (state_.error && job_.ranks > 1) job_.on_failure(state_.error.get(), job_);
    for (Array& array : arrays_) release(array);
    starpu_task_wait_for_all();
    if (job_.ranks > 1) starpu_mpi_wait_for_all(MPI_COMM_WORLD);
    if (state_.error && job_.ranks > 1) job_.on_failure(state_.error.get(), job_);
    if (state_.error) std::rethrow_exception(state_.error.get());
    report_.seconds = seconds_since(start);
    report_.spilled = state_.session.spill().written - spilled_before;
    report_.read_back = state_.session.spill().read - read_before;
    for (const TaskCall& call : calls_) report_.spans.push_back(call.span);
    for (const Transfer& transfer : transfers_) report_.messages.push_back(transfer.span);
    return report_;
  }

 private:
  /// Where an array is: with StarPU, or part of an input, or both.
  struct Array {
    starpu_data_handle_t handle = nullptr;
    std::optional<Tensor> in_place;
  };

  void submit(std::size_t t) {
    const Task& task = graph_.tasks[t];
    if (std::holds_alternative<Send>(task.op)) {
      send(t);
    } else if (job_.ranks == 1 || site_of(graph_, task) == job_.rank) {
      if (!taken_in_place(t)) call(t);
    }
  }

  /// Where a ReadInput is no task: its array lies in an input, or was kept when it was read before.
  std::optional<Tensor> read_in_place(const ReadInput& read, std::size_t t) {
    const InputSource& source = state_.bindings.inputs[read.input];
    const TaskArray& array = graph_[graph_.tasks[t].makes.front()];
    if (const PartInPlace* const part = state_.tasks.in_place(graph_.tasks[t].makes.front())) {
      const auto& whole = std::get<Tensor>(source);
      return Tensor(array.dtype, array.bound, part->layout.strides, whole.data() + part->place, whole.owner());
    }
    if (state_.bindings.kept == nullptr) return std::nullopt;
    return kept_part(read, source, array, (*state_.bindings.kept)[t]);
  }

  bool taken_in_place(std::size_t t) {
    const Task& task = graph_.tasks[t];
    const auto* const read = std::get_if<ReadInput>(&task.op);
    if (read == nullptr) return false;
    const ArrayId made = task.makes.front();
    std::optional<Tensor>& in_place = arrays_[made.index].in_place;
    in_place = read_in_place(*read, t);
    if (!in_place) return false;
    state_.live.begin(made);
    state_.live.end_use(made);
    state_.turns.end_task(t);
    return true;
  }

  void send(std::size_t t) {
    const Task& task = graph_.tasks[t];
    const auto tag = static_cast<starpu_mpi_tag_t>(t);
    const Site from = graph_[task.reads.front()].site;
    const ArrayId made = task.makes.front();
    const Site to = graph_[made].site;
    const std::int64_t bytes = einrel::bytes_of(graph_[made]);
    if (from == job_.rank) {
      state_.sent.enter(bytes);
      starpu_mpi_isend_detached(handle_to_send(task.reads.front()), static_cast<int>(to), tag, MPI_COMM_WORLD, end_send,
                                &transfers_.emplace_back(Transfer{state_, task.reads.front(), {t, seconds_now(), 0}}));
      report_.bytes_sent += bytes;
    }
    if (to == job_.rank) {
      state_.received.enter(bytes);
      state_.live.begin(made);
      starpu_mpi_irecv_detached(new_handle(made), static_cast<int>(from), tag, MPI_COMM_WORLD, end_receive,
                                &transfers_.emplace_back(Transfer{state_, made, {t, seconds_now(), 0}}));
      report_.received[task.node] += bytes;
    }
  }

  /// An input's part in place is sent from where it lies: it is in one piece.
  starpu_data_handle_t handle_to_send(ArrayId id) {
    Array& array = arrays_[id.index];
    if (array.handle == nullptr) {
      invariant(array.in_place && array.in_place->is_row_major(), "what is sent is in one piece");
      array.handle = register_bytes_at(array.in_place->data(), array.in_place->byte_count());
    }
    return array.handle;
  }

  starpu_data_handle_t new_handle(ArrayId id) {
    const TaskArray& array = graph_[id];
    return arrays_[id.index].handle = register_bytes(bytes_of(array));
  }

  void call(std::size_t t) {
    const Task& task = graph_.tasks[t];
    TaskCall& call = calls_.emplace_back(TaskCall{state_, t, task, {}, {}, {}});
    std::vector<starpu_data_handle_t> handles;
    std::vector<starpu_data_access_mode> modes;
    const auto use = [&](starpu_data_handle_t handle, starpu_data_access_mode mode) {
      const auto known = std::find(handles.begin(), handles.end(), handle);
      if (known != handles.end()) return static_cast<std::size_t>(known - handles.begin());
      handles.push_back(handle);
      modes.push_back(mode);
      return handles.size() - 1;
    };
    if (const std::optional<ArrayId> before = overwritten(task)) {
      Array& made = arrays_[task.makes.front().index];
      made.handle = arrays_[before->index].handle;
      use(made.handle, STARPU_RW);
    } else {
      for (const ArrayId made : task.makes) use(new_handle(made), STARPU_W);
    }
    for (const ArrayId read : task.reads) {
      const Array& array = arrays_[read.index];
      call.in_place.push_back(array.in_place);
      call.buffers.push_back(array.in_place ? 0 : use(array.handle, STARPU_R));
    }
    if (const std::optional<ArrayId> before = overwritten(task)) arrays_[before->index] = {};
    insert(call, handles, modes);
  }

  void insert(TaskCall& call, const std::vector<starpu_data_handle_t>& handles,
              const std::vector<starpu_data_access_mode>& modes) {
    starpu_task* const task = starpu_task_create();
    task->cl = &codelet_;
    task->cl_arg = &call;
    const auto is_sent = [this](ArrayId made) { return is_sent_[made.index]; };
    if (std::any_of(call.task.makes.begin(), call.task.makes.end(), is_sent)) task->callback_func = let_send;
    // What was handed over first is done first: chunks of later tasks would take the memory of its own.
    if (state_.session.is_limited())
      task->priority = -static_cast<int>(std::min<std::size_t>(call.number, std::numeric_limits<int>::max()));
    task->nbuffers = static_cast<int>(handles.size());
    starpu_data_handle_t* to_handles = task->handles;
    starpu_data_access_mode* to_modes = task->modes;
    if (handles.size() > STARPU_NMAXBUFS) {  // StarPU frees these with the task
      to_handles = task->dyn_handles = allocated_for_starpu<starpu_data_handle_t>(handles.size());
      to_modes = task->dyn_modes = allocated_for_starpu<starpu_data_access_mode>(handles.size());
    }
    std::copy(handles.begin(), handles.end(), to_handles);
    std::copy(modes.begin(), modes.end(), to_modes);
    if (starpu_task_submit(task) != 0) throw RunError("StarPU takes no task: there is no thread that could run it");
  }

  static void release(Array& array) {
    if (array.handle != nullptr) starpu_data_unregister_submit(array.handle);
    array = {};
  }

  RunState& state_;
  const Job& job_;
  const TaskGraph& graph_;
  starpu_codelet codelet_;
  std::vector<Array> arrays_;
  std::vector<bool> is_sent_;
  std::deque<TaskCall> calls_;  // so that tasks can point to them
  std::deque<Transfer> transfers_;
  TaskReport report_;
};

}  // namespace

StarpuExecutor::StarpuExecutor(SessionOptions options, Job job) : options_(std::move(options)), job_(std::move(job)) {}

void StarpuExecutor::begin(const std::stop_token& stop) {
  stop_ = stop;
  started_.emplace(stop, options_, job_);
  started_->session.cancel_on(stop_);
}

TaskReport StarpuExecutor::run(const PreparedTasks& tasks, const TaskBindings& bindings) {
  const TaskGraph& graph = tasks.graph();
  const bool fits = job_.ranks == 1 ? graph.memory == SiteMemory::shared
                                    : graph.memory == SiteMemory::apart && graph.sites <= job_.ranks;
  if (!fits) throw Bug("a task graph for another number of processes");
  const AtWork at_work;
  RunState state(tasks, bindings, started_->session, stop_, job_.site());
  return Submission(state, job_).run();
}

}  // namespace einrel
