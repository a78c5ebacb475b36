#include <einrel/einrel.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "errors.h"

namespace {

using einrel::Program;
using einrel::Samples;
using einrel::Tensor;
using einrel::TrainOptions;
using einrel::TrainResult;
using einrel::test::message_of;
using testing::HasSubstr;

constexpr const char* regression =
    "dims b=8 f=4\n"
    "input X[b,f], Y[b]\n"
    "state W[f] = 0\n"
    "error[b] = (sum[f] X[b,f] * W[f]) - Y[b]\n"
    "loss[] = mean[b] sq(error[b])\n"
    "minimize loss over W by sgd(0.1)\n"
    "output loss\n";
constexpr std::size_t samples = 64;

/// Points on a plane: their weights are 1, 2, 3, 4.
std::pair<Tensor, Tensor> plane() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  std::vector<float> y;
  for (std::size_t s = 0; s < samples; ++s) {
    float sum = 0;
    for (int f = 1; f <= 4; ++f) {
      x.push_back(normal(random));
      sum += static_cast<float>(f) * x.back();
    }
    y.push_back(sum);
  }
  return {Tensor({samples, 4}, std::move(x)), Tensor({samples}, std::move(y))};
}

TEST(Train, FindsTheWeightsOfAPlane) {
  const auto [x, y] = plane();
  const Program program = Program::parse(regression);
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 8;
  options.epochs = 60;
  options.hold_out = 0.25;
  std::vector<std::int64_t> told;
  options.on_epoch = [&](const einrel::Epoch& epoch) { told.push_back(epoch.epoch); };
  const TrainResult result = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  ASSERT_EQ(result.epochs.size(), 60U);
  EXPECT_EQ(told.size(), 60U);
  EXPECT_EQ(result.state.steps_done, 60 * 6);
  EXPECT_LT(result.epochs.back().test.at("loss"), 1e-6);
  EXPECT_LT(result.epochs.back().training.at("loss"), result.epochs.front().training.at("loss"));
  for (std::size_t f = 0; f < 4; ++f)
    EXPECT_NEAR(result.state.tensors.at("W").values<float>()[f], static_cast<float>(f + 1), 1e-3);
}

TEST(Train, EndsWhereTheLossIsInfinite) {
  const auto [x, y] = plane();
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 8;
  options.scalars = {{"eta", 1e20}};
  const std::string text = regression;
  const Program program = Program::parse("scalar eta\n" + text.substr(0, text.find("0.1")) + "eta)\noutput loss\n");
  const std::string said = message_of<einrel::RunError>([&] { einrel::train(program, {{"X", x}, {"Y", y}}, options); });
  EXPECT_THAT(said, HasSubstr("at step 2 the loss 'loss' is infinite: training has diverged"));
}

TEST(Train, SitesOnTheirOwnFindThemToo) {
  const auto [x, y] = plane();
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 8;
  options.epochs = 60;
  options.sites = 2;
  options.local_steps = 2;
  const TrainResult result = einrel::train(Program::parse(regression), {{"X", x}, {"Y", y}}, options);
  EXPECT_LT(result.epochs.back().training.at("loss"), 1e-4);
  EXPECT_EQ(result.epochs.front().bytes_moved, 2 * 2 * 2 * 4 * 4) << "2 rounds, 2 sites, out and back, 4 floats";
}

TEST(Train, GoesOnFromACheckpoint) {
  const auto [x, y] = plane();
  std::string pattern = (std::filesystem::temp_directory_path() / "einrel-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 8;
  options.epochs = 4;
  const Program program = Program::parse(regression);
  const TrainResult whole = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  options.save = std::filesystem::path(pattern) / "checkpoints";
  options.epochs = 2;
  const TrainResult half = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  EXPECT_TRUE(std::filesystem::exists(half.checkpoint.value()));
  options.epochs = 4;
  options.resume = options.save;
  const TrainResult rest = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  EXPECT_EQ(rest.epochs.size(), 2U);
  EXPECT_TRUE(
      std::ranges::equal(rest.state.tensors.at("W").values<float>(), whole.state.tensors.at("W").values<float>()));
  std::filesystem::remove_all(pattern);
}

TEST(Train, ExtentsThatAProgramWasGivenHold) {
  const Program program = Program::parse(
      "dims b=8 f=4 h=2\n"
      "input X[b,f], Y[b]\n"
      "state W[f,h] = 0.1 * normal(1)\n"
      "loss[] = mean[b] sq((sum[f,h] X[b,f] * W[f,h]) - Y[b])\n"
      "minimize loss over W by sgd(0.1)\n"
      "output loss\n",
      {{"h", 3}});
  const auto [x, y] = plane();
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 8;
  const TrainResult result = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  EXPECT_THAT(result.state.tensors.at("W").shape(), testing::ElementsAre(4, 3));
}

TEST(Train, ByAPlanAndWithinMemory) {
  const auto [x, y] = plane();
  const Program program = Program::parse(regression, {{"b", 8}, {"f", 4}});
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 8;
  options.epochs = 3;
  const TrainResult alone = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  options.plan = program.plan({.sites = 2});
  const TrainResult planned = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  options.plan.reset();
  options.memory = 16 << 20;
  options.spill = std::filesystem::temp_directory_path();
  const TrainResult limited = einrel::train(program, {{"X", x}, {"Y", y}}, options);
  for (const TrainResult& result : {planned, limited})
    EXPECT_NEAR(result.epochs.back().training.at("loss"), alone.epochs.back().training.at("loss"), 1e-6);
}

TEST(Train, MessagesNameTheOptionsOfThisInterface) {
  const auto [x, y] = plane();
  const Program program = Program::parse(regression);
  TrainOptions options;
  options.batch_label = "b";
  options.batch = 24;
  std::vector<std::string> notes;
  options.on_note = [&](const std::string& note) { notes.push_back(note); };
  einrel::train(program, {{"X", x}, {"Y", y}}, options);
  EXPECT_THAT(notes,
              testing::ElementsAre("each epoch leaves out 16 samples that make no whole batch; keep_last takes them"));
  const auto said = [&](const std::map<std::string, Samples>& feeds) {
    return message_of([&] { einrel::train(program, feeds, options); });
  };
  EXPECT_THAT(said({{"X", x}}), HasSubstr("no samples for input Y[b] : f32; give them with feeds['Y']"));
  EXPECT_THAT(said({{"X", x}, {"Y", y}, {"Q", y}}), HasSubstr("feeds['Q']: the program has no input 'Q'"));
  options.batch = 65;
  EXPECT_THAT(said({{"X", x}, {"Y", y}}), HasSubstr("batch['b']=65 is more than the 64 samples"));
  options.batch = 8;
  options.hold_out = 0.001;
  EXPECT_THAT(said({{"X", x}, {"Y", y}}), HasSubstr("hold_out=0.001 of 64 samples"));
  options.hold_out.reset();
  options.resume = "/nowhere";
  EXPECT_THAT(said({{"X", x}, {"Y", y}}), HasSubstr("resume=/nowhere: there is no such folder"));
  options.resume.reset();
  options.inputs.insert({"X", x});
  EXPECT_THAT(said({{"X", x}, {"Y", y}}), HasSubstr("inputs['X'] and feeds['X'] both bind 'X'"));
  options.inputs.clear();
  options.local_steps = 1;
  options.subnets = {""};
  EXPECT_THAT(said({{"X", x}, {"Y", y}}), HasSubstr("the program has no label ''"));
}

TEST(Train, WhatDoesNotFitIsSaid) {
  const auto [x, y] = plane();
  const Program program = Program::parse(regression);
  const auto said = [&](const TrainOptions& options) {
    return message_of([&] { einrel::train(program, {{"X", x}, {"Y", y}}, options); });
  };
  TrainOptions options;
  EXPECT_THAT(said(options), HasSubstr("batch_label"));
  options.batch_label = "b";
  options.batch = 65;
  EXPECT_THAT(said(options), HasSubstr("64 samples"));
  options.batch = 0;
  EXPECT_THAT(said(options), HasSubstr("1 or more"));
  options.batch = 8;
  options.subnets = {"f"};
  EXPECT_THAT(said(options), HasSubstr("local_steps"));
  options.local_steps = 1;
  EXPECT_THAT(said(options), HasSubstr("input X[b,f]"));
}

}  // namespace
