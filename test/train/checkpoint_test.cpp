#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file_error.h"
#include "base/temporary_folder.h"
#include "tensor/tensor_file.h"

namespace einrel {
namespace {

/// A disk that has room for so many files in a folder.
class SmallDisk {
 public:
  SmallDisk(std::string folder, std::size_t room) : folder_(std::move(folder)), room_(room) {}

  Checkpoints::Write write() {
    return [this](const std::string& /*path*/, const AddedTensors& added) {
      EXPECT_EQ(names().empty(), !has_written_) << "there is no good one while another is written";
      if (names().size() >= room_) throw NoRoom("the disk is full");
      FileTensors tensors;
      added.add(tensors);
      write_tensors(tensors);
      has_written_ = true;
    };
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const std::string& path : checkpoints_in(folder_))
      found.push_back(std::filesystem::path(path).filename().string());
    return found;
  }

 private:
  std::string folder_;
  std::size_t room_;
  bool has_written_ = false;
};

using test::TemporaryFolder;
using Names = std::vector<std::string>;
const std::string first = "step-000000001.safetensors";
const std::string second = "step-000000002.safetensors";
const std::string third = "step-000000003.safetensors";
const std::string fourth = "step-000000004.safetensors";

TEST(Checkpoints, TheLastTwoAreKeptWhereThereIsRoom) {
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder / "save", false, {}, {});
  SmallDisk disk(folder / "save", 3);
  for (std::int64_t steps = 1; steps <= 4; ++steps) checkpoints.save(steps, {}, disk.write());
  EXPECT_EQ(disk.names(), (Names{third, fourth}));
}

TEST(Checkpoints, ADiskWithRoomForTwoKeepsGettingNewerOnes) {
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder / "save", false, {}, {});
  SmallDisk disk(folder / "save", 2);
  checkpoints.save(1, {}, disk.write());
  checkpoints.save(2, {}, disk.write());
  EXPECT_EQ(disk.names(), (Names{first, second}));
  checkpoints.save(3, {}, disk.write());
  EXPECT_EQ(disk.names(), (Names{second, third}));
  checkpoints.save(4, {}, disk.write());
  EXPECT_EQ(disk.names(), (Names{third, fourth}));
}

TEST(Checkpoints, TheOnlyOneStaysWhereTheDiskHasNoRoomForAnother) {
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder / "save", false, {}, {});
  SmallDisk disk(folder / "save", 2);
  checkpoints.save(1, {}, disk.write());
  checkpoints.save(2, {}, disk.write());
  const Checkpoints::Write full = [](const std::string& /*path*/, const AddedTensors& /*added*/) {
    throw NoRoom("the disk is full");
  };
  EXPECT_THROW(checkpoints.save(3, {}, full), NoRoom);
  EXPECT_EQ(disk.names(), (Names{second}));
  EXPECT_THROW(checkpoints.save(4, {}, full), NoRoom);
  EXPECT_EQ(disk.names(), (Names{second}));
}

TEST(Checkpoints, BothStayWhereSomethingElseFails) {
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder / "save", false, {}, {});
  SmallDisk disk(folder / "save", 3);
  checkpoints.save(1, {}, disk.write());
  checkpoints.save(2, {}, disk.write());
  const Checkpoints::Write fails = [](const std::string& /*path*/, const AddedTensors& /*added*/) {
    throw RunError("the disk is broken");
  };
  EXPECT_THROW(checkpoints.save(3, {}, fails), RunError);
  EXPECT_EQ(disk.names(), (Names{first, second}));
}

}  // namespace
}  // namespace einrel
