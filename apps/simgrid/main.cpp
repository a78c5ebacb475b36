// einrel-simgrid: replays the jobs of a simulation (exec/simulated/protocol.h) with SimGrid, which
// exec/simulated/simulate starts. A program of its own: SimGrid has one engine for each process, and its library
// exports functions by the names of MPI's.
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <queue>
#include <set>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/simulated/protocol.h"

namespace einrel {
namespace {

namespace s4u = simgrid::s4u;

/// Bandwidth is shared among flows as evenly as links allow (max-min), without what SimGrid knows of TCP by default.
void configure() {
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/bandwidth-factor:1");
  s4u::Engine::set_config("network/latency-factor:1");
  s4u::Engine::set_config("network/weight-S:0");
  s4u::Engine::set_config("surf/precision:1e-9");
}

/// The endpoints and what is between them: without links a star; with links a route for each pair that sends, in a
/// table with a row and a column for each endpoint.
class Platform {
 public:
  explicit Platform(const SimulationMemory& memory)
      : memory_(memory), zone_(*(is_star() ? s4u::create_star_zone("sites") : s4u::create_full_zone("sites"))) {
    for (std::size_t n = 0; n < memory.nodes().size(); ++n)
      nodes_.push_back(link("node" + std::to_string(n), memory.nodes()[n].bandwidth));
    for (std::size_t e = 0; e < memory.endpoints().size(); ++e) add_endpoint(e);
    for (const SimulatedLink& shared : memory.links()) add_groups(shared);
    for (const SimulatedJob& job : memory.jobs()) {
      if (job.from >= 0 && !is_star()) add_route(job);
    }
    zone_.seal();
  }
  s4u::Host* receiver(const SimulatedJob& message) const { return hosts_[static_cast<std::size_t>(message.at)]; }
  s4u::Host* sender(const SimulatedJob& message) const {
    if (message.from == SimulatedJob::everywhere) return beside_[static_cast<std::size_t>(message.at)];
    return hosts_[static_cast<std::size_t>(message.from)];
  }

 private:
  using Duplex = s4u::SplitDuplexLink;
  using Direction = s4u::LinkInRoute::Direction;
  /// Hosts only send and receive: what is computed one after the other needs no more than a clock.
  static constexpr double computes_nothing = 1;
  /// As many times as wide as what it leads to, so that it limits nothing; SimGrid compares bandwidths with some
  /// rounding.
  static constexpr double wide = 10;

  bool is_star() const { return memory_.links().empty(); }

  void add_endpoint(std::size_t e) {
    const std::string name = std::to_string(e);
    const SimulatedEndpoint& endpoint = memory_.endpoints()[e];
    own_.push_back(link("own" + name, endpoint.bandwidth));
    hosts_.push_back(zone_.create_host("site" + name, computes_nothing)->seal());
    if (!is_star()) return;
    add_ray(*hosts_.back(), {{own_.back(), Direction::UP}, {nodes_[endpoint.node], Direction::UP}});
    beside_.push_back(zone_.create_host("beside" + name, computes_nothing)->seal());
    add_ray(*beside_.back(), {{link("wide" + name, wide * endpoint.bandwidth), Direction::UP}});
  }

  /// What leads from a host into the star, and from there to it.
  void add_ray(s4u::Host& host, const std::vector<s4u::LinkInRoute>& links) {
    zone_.add_route(host.get_netpoint(), nullptr, nullptr, nullptr, links, true);
  }

  Duplex* link(const std::string& name, double bandwidth) {
    Duplex* const made = zone_.create_split_duplex_link(name, bandwidth);
    made->set_latency(0)->seal();
    return made;
  }

  void add_groups(const SimulatedLink& shared) {
    const std::string level = "link" + std::to_string(groups_.size()) + "_";
    std::vector<Duplex*>& groups = groups_.emplace_back();
    while (groups.size() * shared.endpoints < memory_.endpoints().size())
      groups.push_back(link(level + std::to_string(groups.size()), shared.bandwidth));
  }

  void add_route(const SimulatedJob& message) {
    if (!connected_.insert({message.from, message.at}).second) return;
    const auto from = static_cast<std::size_t>(message.from);
    const auto to = static_cast<std::size_t>(message.at);
    std::vector<s4u::LinkInRoute> route{{own_[from], Direction::UP},
                                        {nodes_[memory_.endpoints()[from].node], Direction::UP}};
    for (std::size_t l = 0; l < groups_.size(); ++l) {
      const std::size_t of_sender = from / memory_.links()[l].endpoints;
      const std::size_t of_receiver = to / memory_.links()[l].endpoints;
      if (of_sender == of_receiver) continue;
      route.emplace_back(groups_[l][of_sender], Direction::UP);
      route.emplace_back(groups_[l][of_receiver], Direction::DOWN);
    }
    route.emplace_back(nodes_[memory_.endpoints()[to].node], Direction::DOWN);
    route.emplace_back(own_[to], Direction::DOWN);
    zone_.add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr, nullptr, route, false);
  }

  const SimulationMemory& memory_;
  s4u::NetZone& zone_;
  std::vector<Duplex*> nodes_;
  std::vector<Duplex*> own_;
  std::vector<std::vector<Duplex*>> groups_;  // per link
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::Host*> beside_;  // what sends an endpoint that which has no place in the network
  std::set<std::pair<std::int32_t, std::int32_t>> connected_;
};

/// What does one job at a time; of those that wait, the first in their order.
struct Server {
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> waiting;
  bool is_busy = false;
};

/// The jobs, of which SimGrid has the messages that are on their way, and the clock.
class Replay {
 public:
  Replay(const SimulationMemory& memory, const Platform& platform)
      : memory_(memory),
        platform_(platform),
        waits_(memory.jobs().size(), 0),
        computing_(memory.endpoints().size()),
        receiving_(memory.endpoints().size()) {
    for (const std::uint32_t successor : memory.successors()) ++waits_[successor];
  }

  /// Starts what waits for nothing.
  void begin() {
    for (std::uint32_t job = 0; job < waits_.size(); ++job) {
      if (waits_[job] == 0) ready_.push_back(job);
    }
    go_on();
  }

  void done(const s4u::Activity& activity) {
    const auto found = running_.find(&activity);
    if (found == running_.end()) return;
    const auto [job, kept] = found->second;
    running_.erase(found);
    end(job);
    go_on();
  }

  bool is_all_done() const { return done_ == waits_.size(); }

 private:
  bool is_message(std::uint32_t job) const { return memory_.jobs()[job].from != SimulatedJob::nowhere; }
  Server& server_of(std::uint32_t job) {
    const auto at = static_cast<std::size_t>(memory_.jobs()[job].at);
    return is_message(job) ? receiving_[at] : computing_[at];
  }

  void end(std::uint32_t job) {
    memory_.times()[job].end = s4u::Engine::get_clock();
    ++done_;
    const std::uint64_t first = job == 0 ? 0 : memory_.jobs()[job - 1].successors;
    for (std::uint64_t s = first; s < memory_.jobs()[job].successors; ++s) {
      const std::uint32_t successor = memory_.successors()[s];
      if (--waits_[successor] == 0) ready_.push_back(successor);
    }
    if (memory_.jobs()[job].at == SimulatedJob::nowhere) return;
    Server& server = server_of(job);
    server.is_busy = false;
    free_.push_back(&server);
  }

  /// Starts what may begin, and what takes no time at all ends at once. A loop, since such jobs may follow each other.
  void go_on() {
    while (!ready_.empty() || !free_.empty()) {
      for (const std::uint32_t job : std::exchange(ready_, {})) {
        if (memory_.jobs()[job].at == SimulatedJob::nowhere) {
          memory_.times()[job].begin = s4u::Engine::get_clock();
          end(job);
        } else {
          server_of(job).waiting.push(job);
          free_.push_back(&server_of(job));
        }
      }
      for (Server* const server : std::exchange(free_, {})) {
        if (server->is_busy || server->waiting.empty()) continue;
        const std::uint32_t job = server->waiting.top();
        server->waiting.pop();
        server->is_busy = true;
        start(job);
      }
    }
  }

  void start(std::uint32_t job) {
    const SimulatedJob& what = memory_.jobs()[job];
    memory_.times()[job].begin = s4u::Engine::get_clock();
    if (what.seconds == 0) return after_seconds(job);
    const double speed = is_message(job) ? 1 : memory_.endpoints()[static_cast<std::size_t>(what.at)].speed;
    simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + what.seconds / speed, [this, job] {
      after_seconds(job);
      go_on();
    });
  }

  /// What has been computed is done; of a message its receiver is ready for the bytes.
  void after_seconds(std::uint32_t job) {
    if (memory_.jobs()[job].bytes > 0) return carry(job);
    end(job);
  }

  void carry(std::uint32_t job) {
    const SimulatedJob& what = memory_.jobs()[job];
    const s4u::CommPtr flow = s4u::Comm::sendto_init(platform_.sender(what), platform_.receiver(what));
    flow->set_payload_size(static_cast<std::uint64_t>(what.bytes));
    running_.emplace(flow.get(), std::pair(job, flow));
    flow->vetoable_start();
  }

  const SimulationMemory& memory_;
  const Platform& platform_;
  std::vector<std::uint32_t> waits_;  // per job, for how many others
  std::vector<Server> computing_;     // per endpoint
  std::vector<Server> receiving_;
  std::vector<std::uint32_t> ready_;
  std::vector<Server*> free_;
  std::unordered_map<const s4u::Activity*, std::pair<std::uint32_t, s4u::CommPtr>> running_;  // messages
  std::size_t done_ = 0;
};

std::byte* shared_memory() {
  struct stat known = {};
  if (fstat(simulation_descriptor, &known) != 0) return nullptr;
  void* const begin = mmap(nullptr, static_cast<std::size_t>(known.st_size), PROT_READ | PROT_WRITE, MAP_SHARED,
                           simulation_descriptor, 0);
  return begin == MAP_FAILED ? nullptr : static_cast<std::byte*>(begin);
}

int simulate(char* program) {
  std::byte* const begin = shared_memory();
  if (begin == nullptr) {
    std::fputs("einrel-simgrid is started by einrel explain --simulate, not by hand\n", stderr);
    return 1;
  }
  const SimulationMemory memory(begin);
  std::string quiet = "--log=root.threshold:error";
  std::array<char*, 3> arguments{program, quiet.data(), nullptr};
  int count = 2;
  s4u::Engine engine(&count, arguments.data());
  configure();
  const Platform platform(memory);
  Replay replay(memory, platform);
  s4u::Activity::on_completion_cb([&](const s4u::Activity& activity) { replay.done(activity); });
  replay.begin();
  engine.run();
  if (replay.is_all_done()) return 0;
  std::fputs("jobs wait for each other\n", stderr);
  return 1;
}

}  // namespace
}  // namespace einrel

int main(int /*count*/, char** arguments) {
  try {
    return einrel::simulate(arguments[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
