#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "kernel/evaluate.h"
#include "support/compare.h"
#include "support/evaluate.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// The inverse of matrices whose labels stand in the operand in this order.
Vertex inverse_of(DType dtype, const std::vector<std::int64_t>& extents, std::vector<std::size_t> operand) {
  Opaque opaque{OpaqueFunction::inverse, {}, std::move(operand)};
  Vertex vertex{"Z", dtype, make_shape(extents), {VertexId{0}}, Input{}, {}};
  for (const std::int64_t extent : extents) {
    opaque.labels.push_back({std::string(1, static_cast<char>('a' + opaque.labels.size())), Extent(extent)});
  }
  vertex.op = std::move(opaque);
  return vertex;
}

/// Random matrices with a heavy diagonal, which are well-conditioned, with dimensions in the order of `vertex`'s
/// operand.
Tensor operand_of(const Vertex& vertex, Random& random) {
  const auto& opaque = std::get<Opaque>(vertex.op);
  std::vector<double> values;
  const auto n = opaque.labels.back().extent.value();
  for (std::int64_t e = 0; e < element_count(vertex.bound); ++e) {
    const bool is_diagonal = n > 0 && e / n % n == e % n;
    values.push_back(static_cast<double>(random.between(-8, 8)) / 8 + (is_diagonal ? static_cast<double>(2 * n) : 0));
  }
  return tensor_of(vertex.dtype, vertex.bound, values).permuted(opaque.operand);
}

TEST(Inverse, AgreesWithTheReferenceForAllLayouts) {
  Random random(7);
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (int round = 0; round < 60; ++round) {
      std::vector<std::int64_t> extents;
      for (std::int64_t batches = random.between(0, 2); batches > 0; --batches) extents.push_back(random.between(0, 4));
      const std::int64_t n = random.between(0, 40);
      extents.insert(extents.end(), {n, n});
      std::vector<std::size_t> order(extents.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      random.shuffle(order);
      const Vertex vertex = inverse_of(dtype, extents, order);
      const Tensor operand = operand_of(vertex, random);
      const Tensor got = evaluate_alone(vertex, {operand}, {});
      const auto elements = static_cast<std::size_t>(element_count(vertex.bound));
      const std::vector<double> allowed(elements, dtype == DType::f32 ? 1e-6 : 1e-14);  // of numbers below 1
      EXPECT_TRUE(agree(got, evaluate_reference(vertex, {operand}, {}), allowed)) << to_string(vertex.bound);
    }
  }
}

/// Q or R of matrices whose batches, rows and columns have these extents and stand in the operand in this order.
Vertex factor_of(DType dtype, std::vector<std::int64_t> extents, std::vector<std::size_t> operand,
                 std::uint8_t output) {
  extents.push_back(std::min(extents[extents.size() - 2], extents.back()));
  Opaque opaque{OpaqueFunction::qr, {}, std::move(operand), output};
  for (const std::int64_t extent : extents)
    opaque.labels.push_back({std::string(1, static_cast<char>('a' + opaque.labels.size())), Extent(extent)});
  Vertex vertex{"Z", dtype, {}, {VertexId{0}}, Input{}, {}};
  for (const std::size_t label : dimensions_of(opaque)) vertex.bound.push_back(opaque.labels[label].extent);
  vertex.op = std::move(opaque);
  return vertex;
}

TEST(Qr, AgreesWithTheReferenceForAllLayouts) {
  Random random(11);
  for (int round = 0; round < 120; ++round) {
    const DType dtype = round % 2 == 0 ? DType::f32 : DType::f64;
    std::vector<std::int64_t> extents;
    for (std::int64_t batches = random.between(0, 2); batches > 0; --batches) extents.push_back(random.between(0, 3));
    extents.push_back(random.between(0, 40));
    extents.push_back(random.between(0, 40));
    const std::int64_t rows = extents[extents.size() - 2];
    const std::int64_t columns = extents.back();
    std::vector<double> values;
    for (std::int64_t e = 0; e < element_count(make_shape(extents)); ++e) {  // with a heavy diagonal
      const double heavy = e % columns == e / columns % rows ? static_cast<double>(rows + columns) : 0;
      values.push_back(static_cast<double>(random.between(-8, 8)) / 8 + heavy);
    }
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    const Tensor operand = tensor_of(dtype, make_shape(extents), values).permuted(order);
    for (const std::uint8_t output : {std::uint8_t{0}, std::uint8_t{1}}) {
      const Vertex vertex = factor_of(dtype, extents, order, output);
      const double scale = output == 0 ? 1 : static_cast<double>(2 * (rows + columns));
      const std::vector<double> allowed(static_cast<std::size_t>(element_count(vertex.bound)),
                                        scale * (dtype == DType::f32 ? 1e-5 : 1e-13));
      EXPECT_TRUE(agree(evaluate_alone(vertex, {operand}, {}), evaluate_reference(vertex, {operand}, {}), allowed))
          << to_string(vertex.bound);
    }
  }
}

TEST(Inverse, GivesTheSameBitsWithAnyNumberOfThreads) {
  Random random(3);
  const Vertex vertex = inverse_of(DType::f64, {9, 30, 30}, {0, 1, 2});
  const Tensor operand = operand_of(vertex, random);
  Workers one(1);
  Workers three(3);
  EXPECT_EQ(values_of(evaluate(vertex, {operand}, {}, one)), values_of(evaluate(vertex, {operand}, {}, three)));
}

TEST(Inverse, NamesTheSingularMatrix) {
  const Vertex vertex = inverse_of(DType::f64, {2, 3, 2, 2}, {0, 1, 2, 3});
  std::vector<double> values;
  for (int batch = 0; batch < 6; ++batch) values.insert(values.end(), {1, 2, 2, batch == 4 ? 4.0 : 5.0});
  const Tensor operand = tensor_of(DType::f64, vertex.bound, values);
  const auto message = [](const auto& run) -> std::string {
    try {
      run();
    } catch (const UserError& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string wanted = "the matrix at a=1, b=1 in Z is singular: it has no inverse";
  EXPECT_EQ(message([&] { evaluate_alone(vertex, {operand}, {}); }), wanted);
  EXPECT_EQ(message([&] { evaluate_reference(vertex, {operand}, {}); }), wanted);
}

TEST(Inverse, RefusesMoreRowsThanItHasRoomFor) {
  constexpr std::int64_t rows = 1 << 20;
  const Vertex vertex = inverse_of(DType::f64, {rows, rows}, {0, 1});
  EXPECT_THROW(choice_of(vertex, {row_major_layout(DType::f64, vertex.bound)}, {}), UserError);
}

}  // namespace
}  // namespace einrel::test
