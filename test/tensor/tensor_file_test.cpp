#include "tensor/tensor_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/limited_file_size.h"
#include "base/temporary_folder.h"
#include "tensor/compose.h"

namespace einrel {
namespace {

using namespace test;
using NameSet = std::set<std::string>;

TEST(FileRef, AMemberFollowsTheExtensionOfAnArchive) {
  EXPECT_EQ(parse_file_ref("w.npz:W1"), (FileRef{"w.npz", "W1"}));
  EXPECT_EQ(parse_file_ref("d/w.safetensors:layer.0.weight"), (FileRef{"d/w.safetensors", "layer.0.weight"}));
  EXPECT_EQ(parse_file_ref("w.npz"), (FileRef{"w.npz", ""}));
}

TEST(FileRef, AnyOtherColonBelongsToThePathOrToTheMember) {
  EXPECT_EQ(parse_file_ref("run:3/x.npy"), (FileRef{"run:3/x.npy", ""}));
  EXPECT_EQ(parse_file_ref("x.npy:W"), (FileRef{"x.npy:W", ""}));
  EXPECT_EQ(parse_file_ref("run:3/w.npz:dense/kernel:0"), (FileRef{"run:3/w.npz", "dense/kernel:0"}));
  EXPECT_EQ(parse_file_ref("a.npz:b.npz:c"), (FileRef{"a.npz", "b.npz:c"}));
  EXPECT_EQ(parse_file_ref("a.safetensors:b.npz:c"), (FileRef{"a.safetensors", "b.npz:c"}));
}

TEST(FileRef, IsWrittenAsItWasRead) {
  for (const char* text : {"x.npy", "w.npz:W1", "run:3/w.npz:dense/kernel:0", "w.safetensors"}) {
    EXPECT_EQ(to_string(parse_file_ref(text)), text);
  }
}

TEST(FileRef, MustNameAFileAndAMember) {
  EXPECT_EQ(user_error_of([] { parse_file_ref(""); }), "a file name is missing");
  EXPECT_EQ(user_error_of([] { parse_file_ref("w.npz:"); }), "'w.npz:': the name of a tensor is missing after ':'");
}

class OpenTensor : public testing::Test {
 protected:
  std::string complaint(const std::string& file) const {
    return user_error_of([&] { open_tensor(parse_file_ref(folder / file)); });
  }
  std::vector<double> values(const std::string& file) const {
    return values_of(read(open_tensor(parse_file_ref(folder / file))));
  }

  TemporaryFolder folder;
};

const std::string small_idx = idx_bytes(8, {3}, std::string("\0\1\2", 3));
const std::string small_safetensors =
    safetensors_bytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", std::string("\0\1\2", 3));

TEST_F(OpenTensor, TheExtensionTellsTheFormat) {
  put_file(folder / "x.npy", small_npy());
  put_file(folder / "x.npz", zip_bytes({{"a.npy", small_npy()}, deflated_member("b.npy", small_npy())}));
  put_file(folder / "x.safetensors", small_safetensors);
  put_file(folder / "x.idx", small_idx);
  put_file(folder / "x.idx.gz", deflated(small_idx, 31));
  EXPECT_EQ(values("x.npy"), (std::vector<double>{0, 1, -2}));
  EXPECT_EQ(values("x.npz:b"), (std::vector<double>{0, 1, -2}));
  EXPECT_EQ(values("x.safetensors:a"), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values("x.idx"), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values("x.idx.gz"), (std::vector<double>{0, 1, 2}));
}

TEST_F(OpenTensor, WithoutAKnownExtensionTheContentsTell) {
  for (const std::string& contents : {small_npy(), zip_bytes({{"a.npy", small_npy()}})}) {
    put_file(folder / "data", contents);
    EXPECT_EQ(values("data"), (std::vector<double>{0, 1, -2}));
  }
  for (const std::string& contents : {small_safetensors, small_idx, deflated(small_idx, 31)}) {
    put_file(folder / "t10k-labels-idx1-ubyte", contents);
    EXPECT_EQ(values("t10k-labels-idx1-ubyte"), (std::vector<double>{0, 1, 2}));
  }
  for (const std::string contents : {"", "hello", "{\"a\": 1}"}) {
    put_file(folder / "data", contents);
    EXPECT_NE(complaint("data").find("neither its name nor its contents"), std::string::npos);
  }
}

TEST_F(OpenTensor, AnExtensionThatLiesIsAnError) {
  put_file(folder / "x.npy", small_idx);
  EXPECT_EQ(complaint("x.npy"), (folder / "x.npy") + ": not an .npy file: it does not begin with \\x93NUMPY");
}

TEST_F(OpenTensor, AFileOfOneTensorNeedsNoMember) {
  put_file(folder / "one.npz", zip_bytes({{"a.npy", small_npy()}}));
  put_file(folder / "one.safetensors", small_safetensors);
  EXPECT_EQ(values("one.npz").size(), 3U);
  EXPECT_EQ(values("one.safetensors").size(), 3U);
}

TEST_F(OpenTensor, OfSeveralOneMustBeNamed) {
  const std::string two = zip_bytes({{"W1.npy", small_npy()}, {"W2.npy", small_npy()}});
  put_file(folder / "w.npz", two);
  put_file(folder / "w", two);
  const std::string path = folder / "w.npz";
  EXPECT_EQ(complaint("w.npz"), path + " holds 2 tensors; name one, as in " + path + ":W1 (it holds W1, W2)");
  EXPECT_NE(complaint("w").find("name one after giving the file its extension, as in w.npz:W1"), std::string::npos);
}

TEST_F(OpenTensor, AMissingMemberIsAnsweredWithWhatIsThere) {
  std::vector<HandMember> members;
  for (int i = 0; i < 15; ++i) members.push_back({"weight" + std::to_string(i) + ".npy", small_npy()});
  put_file(folder / "w.npz", zip_bytes(members));
  EXPECT_EQ(complaint("w.npz:wieght3"),
            (folder / "w.npz") +
                " holds no tensor 'wieght3' (did you mean 'weight3'?); it holds weight0, weight1, weight2, weight3, "
                "weight4, weight5, weight6, weight7, weight8, weight9 and 5 more");
  put_file(folder / "none.npz", zip_bytes({{"read.me", "hi"}}));
  EXPECT_EQ(complaint("none.npz:a"), (folder / "none.npz") + " holds no tensor");
}

class WriteTensors : public testing::Test {
 protected:
  std::string complaint(const std::vector<std::pair<std::string, DType>>& outputs) const {
    std::vector<std::pair<FileRef, DType>> files;
    for (const auto& [file, dtype] : outputs) files.emplace_back(parse_file_ref(folder / file), dtype);
    return user_error_of([&] { check_writable(files); });
  }
  void write(const std::vector<std::pair<std::string, Tensor>>& outputs) const {
    std::vector<std::pair<FileRef, Tensor>> files;
    for (const auto& [file, tensor] : outputs) files.emplace_back(parse_file_ref(folder / file), tensor);
    write_tensors(files);
  }
  std::vector<double> values(const std::string& file) const {
    return values_of(read(open_tensor(parse_file_ref(folder / file))));
  }

  TemporaryFolder folder;
  Tensor one = tensor_of(DType::f32, make_shape({1}), {1});
  Tensor two = tensor_of(DType::f32, make_shape({1}), {2});
};

TEST_F(WriteTensors, EveryFormatIsReadBack) {
  write({{"a.npy", one},
         {"b.npz:x", one},
         {"c.safetensors:x", one},
         {"d.idx", one},
         {"e.idx.gz", one},
         {"b.npz:y/z", two},
         {"c.safetensors:y", two}});
  EXPECT_EQ(folder.names(), (NameSet{"a.npy", "b.npz", "c.safetensors", "d.idx", "e.idx.gz"}));
  for (const char* file : {"a.npy", "b.npz:x", "c.safetensors:x", "d.idx", "e.idx.gz"}) {
    EXPECT_EQ(values(file), std::vector<double>{1}) << file;
  }
  EXPECT_EQ(values("b.npz:y/z"), std::vector<double>{2});
  EXPECT_EQ(values("c.safetensors:y"), std::vector<double>{2});
}

TEST_F(WriteTensors, AnArchiveIsNotReplacedWhereOtherTensorsWouldBeLost) {
  for (const std::string archive : {"w.npz", "w.safetensors"}) {
    write({{archive + ":a", one}, {archive + ":b", one}});
    EXPECT_EQ(complaint({{archive + ":c", DType::f32}}),
              "cannot write '" + (folder / archive) +
                  "': it holds other tensors, which would be lost (a, b); choose another file");
    write({{archive + ":a", two}, {archive + ":b", two}, {archive + ":c", two}});
    EXPECT_EQ(values(archive + ":a"), std::vector<double>{2});
  }
}

TEST_F(WriteTensors, AnInputMayBeReplacedByAnOutputMadeOfIt) {
  write({{"a.npy", counting_tensor(DType::f32, make_shape({300, 200}))}});
  const Tensor mapped = read(open_tensor(parse_file_ref(folder / "a.npy")));
  const std::string before = memory_of(mapped.permuted({1, 0}));
  write({{"a.npy", mapped.permuted({1, 0})}});
  EXPECT_TRUE(memory_of(read(open_tensor(parse_file_ref(folder / "a.npy")))) == before);
}

TEST_F(WriteTensors, WhatCannotBeWrittenIsRefusedWithTheRemedy) {
  const std::vector<std::pair<std::vector<std::pair<std::string, DType>>, std::string>> cases{
      {{{"x.txt", DType::f32}}, "use one of .npy, .npz, .safetensors, .idx and .idx.gz"},
      {{{"x", DType::f32}}, "the extension tells the format"},
      {{{"w.npz", DType::f32}}, "name the tensor in it, as in " + (folder / "w.npz:NAME")},
      {{{"w.safetensors", DType::f32}}, "name the tensor in it"},
      {{{"w.npz:../a", DType::f32}}, "'../a' cannot be a tensor's name in an .npz file"},
      {{{"w.safetensors:__metadata__", DType::f32}}, "'__metadata__' cannot be a tensor's name"},
      {{{"x.idx", DType::bf16}}, "idx files hold f32, f64, i32 and bool, not bf16; write .npy instead"},
      {{{"x.idx.gz", DType::i64}}, "idx files hold f32, f64, i32 and bool, not i64; write .npy instead"},
      {{{"none/x.npy", DType::f32}}, "the folder '" + (folder / "none") + "' does not exist"},
      {{{"x.npy", DType::f32}, {"./x.npy", DType::f32}}, "two outputs would be written to"},
      {{{"w.npz:a", DType::f32}, {"w.npz:b", DType::f32}, {"w.npz:a", DType::f32}}, "two outputs would be written to"},
  };
  for (const auto& [outputs, expected] : cases) {
    EXPECT_NE(complaint(outputs).find(expected), std::string::npos) << complaint(outputs);
  }
  EXPECT_EQ(user_error_of([] {
              check_writable({{FileRef{"x.npy", "a"}, DType::f32}});
            }),
            "cannot write 'x.npy:a': such a file holds one tensor, without a name");
  EXPECT_EQ(complaint({{"a.npy", DType::bf16}, {"b.npz:a", DType::f16}, {"b.npz:b", DType::i64}}), "no UserError");
  EXPECT_EQ(folder.names(), NameSet{}) << "checking leaves no trace";
}

TEST_F(WriteTensors, TwoNamesOfOneFileAreNoticedThroughLinks) {
  put_file(folder / "x.npy", "");
  std::filesystem::create_symlink("x.npy", folder / "y.npy");
  EXPECT_NE(complaint({{"x.npy", DType::f32}, {"y.npy", DType::f32}}).find("two outputs"), std::string::npos);
}

TEST_F(WriteTensors, TwoSpellingsOfOneRelativeNameAreNoticed) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string message = user_error_of([] {
    check_writable({{FileRef{"x.npy", ""}, DType::f32}, {FileRef{"./x.npy", ""}, DType::f32}});
  });
  std::filesystem::current_path(before);
  EXPECT_EQ(message, "two outputs would be written to './x.npy'; give each its own name");
}

TEST_F(WriteTensors, AShapeThatTheFormatCannotHoldIsRefusedBeforeAnythingIsWritten) {
  const Tensor wide(DType::f32, make_shape({0, std::int64_t{1} << 31}));
  EXPECT_NE(user_error_of([&] {
              write({{"a.npy", one}, {"x.idx", wide}});
            }).find("write .npy instead"),
            std::string::npos);
  const Tensor deep(DType::f32, Shape(256, Extent(1)));
  EXPECT_NE(user_error_of([&] {
              write({{"a.npy", one}, {"x.npy", deep}});
            }).find("at most 255 dimensions"),
            std::string::npos);
  EXPECT_EQ(folder.names(), NameSet{});
}

TEST_F(WriteTensors, WhenTheDiskIsFullNoFileHasChanged) {
  put_file(folder / "a.npy", "old");
  const Tensor large = counting_tensor(DType::f32, make_shape({100'000}));
  {
    const LimitedFileSize limit(100'000);
    EXPECT_THROW(write({{"a.npy", one}, {"b.npz:x", large}, {"c.npy", one}}), RunError);
  }
  EXPECT_EQ(folder.names(), NameSet{"a.npy"});
  EXPECT_EQ(contents_of(folder / "a.npy"), "old");
}

}  // namespace
}  // namespace einrel
