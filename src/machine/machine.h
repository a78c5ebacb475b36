#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "machine/processor.h"
#include "tensor/dtype.h"

namespace einrel {

/// A link that groups of sites share, as all GPUs behind one socket share what leads to the next one.
struct Link {
  std::string name;
  std::int64_t sites = 1;  ///< in each group: those of site s are of group floor(s / sites)
  double bandwidth = 1e9;  ///< bytes a second that a group receives from the others
  double latency = 5e-5;   ///< seconds, besides those of each site's own link
  bool operator==(const Link&) const = default;
};

/// What a plan runs on: equal sites and the network between them. Those of one node share its cores and its memory:
/// flops and bandwidths are what each of them has while all compute. Of the processor, planners ask for what files of
/// machines have: flops_per_core and second_cache.
struct Machine {
  std::string name = "laptop";
  std::string about;                             ///< where its figures come from
  std::int64_t sites = 1;                        ///< as many as are used where nobody says how many
  double cores = 1;                              ///< per site
  Processor processor = {};                      ///< of each core
  double memory_bandwidth = 2e10;                ///< bytes a second, per site
  double network_bandwidth = 1e9;                ///< bytes a second that a site receives while all do
  double network_latency = 5e-5;                 ///< seconds of every message that a site waits for
  double task_seconds = 5e-6;                    ///< to start one kernel call
  std::int64_t memory = std::int64_t{16} << 30;  ///< bytes per site
  std::int64_t sites_per_node = 1;               ///< site s is on node floor(s / sites_per_node)
  double flops_alone = 1;                        ///< times as many has a site while the others of its node wait
  double memory_alone = 1;                       ///< times as much memory bandwidth
  double network_alone = 1;                      ///< times as much receives a site while the others of its node do not
  std::int64_t ranks = 0;                        ///< of the job that its figures were measured on; 0: for any number
  std::vector<Link> links = {};                  ///< from the outside in, beyond each site's own; groups inside groups
  /// Times as long as its model says of nominal_processor takes a kernel of this name on its threads, as all sites
  /// compute; none where nobody measured.
  std::map<std::string, double> kernel_times = {};
  std::map<DType, double> flops_of = {};  ///< as Processor::flops_per_core, on other types than f32
  double dollars_per_hour = 0;            ///< of one site; 0: nobody says
  bool operator==(const Machine&) const = default;
};

}  // namespace einrel
