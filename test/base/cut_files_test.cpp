#include "base/cut_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/temporary_folder.h"

namespace einrel {
namespace {

using test::put_file;
using test::TemporaryFolder;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr std::size_t megabyte = 1U << 20U;

int sum_of(const FileBytes& file) {
  return std::accumulate(file.bytes.begin(), file.bytes.end(), 0,
                         [](int sum, std::byte byte) { return sum + std::to_integer<int>(byte); });
}

std::string refusal_of(const CutWatch& watch) {
  try {
    watch.check();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(CutFiles, ReadAsZerosAndAreNamed) {
  outlive_cut_files();
  const TemporaryFolder folder;
  put_file(folder / "a", std::string(megabyte, 1));
  const FileBytes file = map_file(folder / "a");
  const CutWatch watch;
  EXPECT_EQ(cut_file_mapped_at(file.bytes), std::nullopt);
  EXPECT_THAT(file_mapped_at(file.bytes.last(1)), Optional(HasSubstr("/a")));
  std::filesystem::resize_file(folder / "a", 100);
  EXPECT_EQ(sum_of(file), 100);
  EXPECT_THAT(refusal_of(watch), HasSubstr("/a' became shorter while it was in use"));
  EXPECT_THAT(cut_file_mapped_at(file.bytes), Optional(HasSubstr("/a")));
  EXPECT_EQ(refusal_of(CutWatch()), "");
}

TEST(CutFiles, AreFoundWhereTheirLastPageIsStillThere) {
  const TemporaryFolder folder;
  put_file(folder / "a", std::string(1000, 1));
  const FileBytes file = map_file(folder / "a");
  std::filesystem::resize_file(folder / "a", 999);
  EXPECT_THAT(cut_file_mapped_at(file.bytes), Optional(HasSubstr("/a")));
}

TEST(CutFiles, AreToldFromThoseMappedBeforeAndAfterThem) {
  const TemporaryFolder folder;
  std::vector<FileBytes> files;
  const auto map = [&](int number) {
    const std::string path = folder / std::to_string(number);
    put_file(path, std::string(megabyte, 1));
    return map_file(path);
  };
  for (int i = 0; i < 9; ++i) files.push_back(map(i));
  for (const int i : {1, 4, 8}) files[static_cast<std::size_t>(i)] = {};
  for (const int i : {4, 1, 8}) files[static_cast<std::size_t>(i)] = map(i);
  for (int i = 0; i < 9; ++i) {
    const auto bytes = files[static_cast<std::size_t>(i)].bytes;
    EXPECT_THAT(file_mapped_at(bytes), Optional(EndsWith("/" + std::to_string(i))));
    EXPECT_THAT(file_mapped_at(bytes.last(1)), Optional(EndsWith("/" + std::to_string(i))));
  }
  const std::string here;
  EXPECT_EQ(file_mapped_at(std::as_bytes(std::span(here.data(), 1))), std::nullopt);
  const auto gone = files[4].bytes;
  files[4] = {};
  EXPECT_EQ(file_mapped_at(gone), std::nullopt);
}

TEST(CutFiles, AreNotThoseThatWereReplaced) {
  outlive_cut_files();
  const TemporaryFolder folder;
  put_file(folder / "a", std::string(megabyte, 1));
  const FileBytes file = map_file(folder / "a");
  put_file(folder / "b", "short");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_EQ(sum_of(file), static_cast<int>(megabyte));
  EXPECT_EQ(cut_file_mapped_at(file.bytes), std::nullopt);
}

TEST(CutFiles, AreNamedWhenTheyAreGone) {
  outlive_cut_files();
  const TemporaryFolder folder;
  const CutWatch watch;
  for (const char* name : {"a", "b"}) {
    put_file(folder / name, std::string(megabyte, 1));
    const FileBytes file = map_file(folder / name);
    std::filesystem::resize_file(folder / name, 0);
    EXPECT_EQ(sum_of(file), 0);
  }
  EXPECT_THAT(refusal_of(watch), HasSubstr("/b'"));
  put_file(folder / "c", std::string(megabyte, 1));
  const FileBytes whole = map_file(folder / "c");  // where one of them was
  EXPECT_EQ(cut_file_mapped_at(whole.bytes), std::nullopt);
}

TEST(CutFiles, BytesOfNoFileHaveNone) {
  const std::vector<std::byte> bytes(100);
  EXPECT_EQ(file_mapped_at(bytes), std::nullopt);
  EXPECT_EQ(cut_file_mapped_at(bytes), std::nullopt);
}

// Sanitizers have a handler of their own, which prints a report in place of ending the process by the signal.
void forget_handler() { std::signal(SIGBUS, SIG_DFL); }

TEST(CutFilesDeathTest, EndTheProcessWhereNobodyWatches) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  forget_handler();
  const TemporaryFolder folder;
  put_file(folder / "a", std::string(megabyte, 1));
  outlive_cut_files();
  const FileBytes file = map_file(folder / "a");
  std::filesystem::resize_file(folder / "a", 100);
  EXPECT_EXIT(std::exit(sum_of(file)), ::testing::KilledBySignal(SIGBUS), "");
}

TEST(CutFilesDeathTest, OtherSignalsGoWhereTheyWent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        forget_handler();
        outlive_cut_files();
        std::raise(SIGBUS);
        std::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace einrel
