#include "exec/memory/digests.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "support/random_einsum.h"

namespace einrel::test {
namespace {

std::uint64_t digest_of(const Tensor& tensor) { return einrel::digest_of(tensor, tensor.dtype(), tensor.shape()); }

Tensor numbered(const Shape& shape) {
  Tensor tensor(DType::i32, shape);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    std::memcpy(tensor.mutable_data() + 4 * i, &number, sizeof(number));
  }
  return tensor;
}

void change(Tensor& tensor, std::int64_t element) { tensor.mutable_data()[4 * element] ^= std::byte{1}; }

TEST(Digests, OfElementsAreThoseOfTheSameElementsHoweverTheyLie) {
  const Tensor rows = numbered({Extent(700), Extent(900)});  // more than a box
  const Tensor turned = rows.permuted({1, 0}).row_major();
  EXPECT_NE(digest_of(rows), digest_of(turned));
  EXPECT_EQ(digest_of(rows), digest_of(turned.permuted({1, 0})));
}

TEST(Digests, OfElementsSeeEveryElement) {
  for (const Shape& shape :
       {Shape{}, Shape{Extent(5)}, Shape{Extent(3), Extent(4)}, Shape{Extent(2), Extent(1), Extent(7)}}) {
    Tensor tensor = numbered(shape);
    std::set<std::uint64_t> digests{digest_of(tensor)};
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      change(tensor, i);
      EXPECT_TRUE(digests.insert(digest_of(tensor)).second) << to_string(shape) << " element " << i;
      change(tensor, i);
    }
  }
  // Of several boxes: each row of one, in part or whole.
  for (const Shape& shape : {Shape{Extent(300), Extent(1000), Extent(3)}, Shape{Extent(3), Extent(700'000)}}) {
    Tensor tensor = numbered(shape);
    std::set<std::uint64_t> digests{digest_of(tensor)};
    Random random(1);
    for (int i = 0; i < 50; ++i) {
      const std::int64_t element = i == 0 ? tensor.count() - 1 : random.between(0, tensor.count() - 1);
      change(tensor, element);
      EXPECT_TRUE(digests.insert(digest_of(tensor)).second) << to_string(shape) << " element " << element;
    }
  }
  EXPECT_EQ(digest_of(numbered({Extent(0), Extent(3)})), digest_of(numbered({Extent(0), Extent(4)})));
}

TEST(Digests, OfWhatIsMadeTakeSomeOfItFromTheFirstToTheLastElement) {
  const Shape bound{Extent(1'000'000), Extent(1'000)};  // 4 GB
  std::int64_t taken = 0;
  std::int64_t last = -1;
  const auto digest_with = [&](std::int64_t special) {
    taken = 0;
    const InputMaker make = [&](const std::vector<std::int64_t>& begin, const Shape& box, std::byte* to) {
      const std::int64_t count = element_count(box);
      taken += count;
      last = (begin[0] + box[0].value() - 1) * bound[1].value() + begin[1] + box[1].value() - 1;
      std::memset(to, 0, static_cast<std::size_t>(4 * count));
      const std::int64_t first = begin[0] * bound[1].value() + begin[1];
      if (special >= first && special <= last) to[0] = std::byte{1};
    };
    return einrel::digest_of(make, DType::f32, bound);
  };
  const std::uint64_t zeros = digest_with(-1);
  EXPECT_EQ(zeros, digest_with(-1));
  EXPECT_GT(taken, 8'000);
  EXPECT_LE(taken, 1 << 14);
  EXPECT_EQ(last, 999'999'999);
  EXPECT_NE(zeros, digest_with(0));
  EXPECT_NE(zeros, digest_with(999'999'999));
  EXPECT_NE(zeros, digest_with(123));
}

}  // namespace
}  // namespace einrel::test
