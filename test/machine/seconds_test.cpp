// The model of seconds, by figures worked out by hand.

#include "machine/seconds.h"

#include <gtest/gtest.h>

namespace einrel {
namespace {

/// Of round figures: two sites on a node, which compute and read twice as fast alone.
Machine round_machine() {
  Machine machine;
  machine.cores = 2;
  machine.processor.flops_per_core = 100;
  machine.memory_bandwidth = 10;
  machine.network_bandwidth = 5;
  machine.network_latency = 3;
  machine.task_seconds = 7;
  machine.sites_per_node = 2;
  machine.flops_alone = machine.memory_alone = machine.network_alone = 2;
  return machine;
}

TEST(ModelOfSeconds, CountsOperationsOrMemoryAndTheStartOfCalls) {
  const Machine machine = round_machine();
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .bytes = 10, .busy = 2}, machine), 3);
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .on = DType::f64, .bytes = 10, .busy = 2}, machine), 6);
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .bytes = 100, .busy = 2}, machine), 10);
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .bytes = 10, .calls = 4, .busy = 2}, machine), 3 + 2 * 7);
}

TEST(ModelOfSeconds, KnowsThatASiteIsFasterWhileOthersOfItsNodeWait) {
  const Machine machine = round_machine();
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .bytes = 10, .busy = 1}, machine), 1.5);
  EXPECT_DOUBLE_EQ(memory_seconds(100, 1, machine), 5);
  EXPECT_DOUBLE_EQ(memory_seconds(100, 2, machine), 10);
  EXPECT_DOUBLE_EQ(memory_seconds(100, 64, machine), 10);  // on 32 nodes
}

TEST(ModelOfSeconds, KnowsHowFastOtherTypesAre) {
  Machine machine = round_machine();
  EXPECT_DOUBLE_EQ(flops_per_core(DType::f64, machine), 50);
  EXPECT_DOUBLE_EQ(flops_per_core(DType::bf16, machine), 100);
  machine.flops_of = {{DType::bf16, 1600}, {DType::f64, 100}};
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 6400, .on = DType::bf16, .bytes = 10, .busy = 2}, machine), 2);
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .on = DType::f64, .bytes = 10, .busy = 2}, machine), 3);
  EXPECT_DOUBLE_EQ(computing_seconds({.flops = 600, .on = DType::f16, .bytes = 10, .busy = 2}, machine), 3);
}

TEST(ModelOfSeconds, CountsMessagesBesideTheirBytes) {
  const Machine machine = round_machine();
  EXPECT_DOUBLE_EQ(receiving_seconds(20, 2, 2, machine), 2 * 3 + 4);
  EXPECT_DOUBLE_EQ(receiving_seconds(20, 2, 1, machine), 2 * 3 + 2);
  EXPECT_DOUBLE_EQ(receiving_seconds(0, 2, 1, machine), 0);
  EXPECT_DOUBLE_EQ(crossing_seconds(20, {"link", 1, 4, 1}), 6);
  EXPECT_DOUBLE_EQ(crossing_seconds(0, {"link", 1, 4, 1}), 0);
}

TEST(ModelOfSeconds, ReadsFromTheCacheWhatFitsThere) {
  Processor processor;
  processor.third_cache = 1000;
  processor.cache_bandwidth = 100;
  processor.thread_bandwidth = 10;
  EXPECT_DOUBLE_EQ(transfer_seconds(processor, 900), 9);
  EXPECT_DOUBLE_EQ(transfer_seconds(processor, 2000), 200);
}

TEST(ModelOfSeconds, CutsWhatTakesLongIntoAtMost64Parts) {
  EXPECT_EQ(parts_worth(0, 1), 1);
  EXPECT_EQ(parts_worth(3.5, 1), 3);
  EXPECT_EQ(parts_worth(1e300, 1), 64);
  EXPECT_DOUBLE_EQ(seconds_on_threads(1, 1), 1);
  EXPECT_DOUBLE_EQ(seconds_on_threads(1.8, 2), 1);
  EXPECT_DOUBLE_EQ(seconds_on_threads(packed_part_seconds, 8), packed_part_seconds);
  EXPECT_DOUBLE_EQ(seconds_on_threads(2 * packed_part_seconds, 8), packed_part_seconds);
}

}  // namespace
}  // namespace einrel
