#include "einsum/graph/vertex_key.h"

#include <gtest/gtest.h>

#include <map>

#include "einsum/check/check.h"

namespace einrel::test {
namespace {

/// The key of the last statement of a program of these.
std::string key_of(const std::string& statement) {
  const SourceText source("key.ein", "dims i=4 j=4 k=4\ninput X[i,j], Y[j,k] : f32\nscalar s\n" + statement + "\n");
  const CheckedProgram checked = parse_and_check(source, {});
  ByteKey key;
  put_computation(key, checked.graph->vertices.back());
  return key.take();
}

TEST(VertexKey, DoesNotDependOnNames) {
  EXPECT_EQ(key_of("Z[i,k] = sum[j] X[i,j] * Y[j,k]"), key_of("Other[a,c] = sum[b] X[a,b] * Y[b,c]"));
  EXPECT_EQ(key_of("Z[i] = X[i,0]"), key_of("W[k] = Y[k,0]"));
  EXPECT_EQ(key_of("Z[j,i] = view X[i,j]"), key_of("W[b,a] = view Y[a,b]"));
}

TEST(VertexKey, TellsAllElseApart) {
  std::map<std::string, std::string> seen;
  for (const char* const statement : {"Z[i,j] = X[i,j]",
                                      "Z[j,i] = X[i,j]",
                                      "Z[i] = X[i,0]",
                                      "Z[i] = X[i,1]",
                                      "Z[i] = X[0,i]",
                                      "Z[i] = X[i,i]",
                                      "Z[i,j] = 2 * X[i,j]",
                                      "Z[i,j] = 3 * X[i,j]",
                                      "Z[i,j] = X[i,j] * 2",
                                      "Z[i,j] = s * X[i,j]",
                                      "Z[i,j] = i * X[i,j]",
                                      "Z[i,j] = exp(X[i,j])",
                                      "Z[i,j] = sin(X[i,j])",
                                      "Z[i,j] = f64(X[i,j])",
                                      "Z[i,j] = bf16(X[i,j])",
                                      "Z[i,j] = f32(bf16(X[i,j]))",
                                      "Z[i] = sum[j] X[i,j]",
                                      "Z[i] = max[j] X[i,j]",
                                      "Z[j] = sum[i] X[i,j]",
                                      "Z[] = sum[i,j] X[i,j]",
                                      "Z[i,k] = sum[j] X[i,j] * Y[j,k]",
                                      "Z[i,j] = X[i,j] * Y[i,j]",
                                      "Z[i,j] = X[i,j] + Y[i,j]",
                                      "Z[i,j] = pad(X[i,j+1], 0)",
                                      "Z[i,j] = pad(X[i,j+1], 1)",
                                      "Z[i,j] = pad(X[i,j+2], 0)",
                                      "Z[j,i] = view X[i,j]",
                                      "Z[(i j)] = view X[i,j]",
                                      "Z[(j i)] = view X[i,j]",
                                      "Z[i,j] = inverse[i,j](X[i,j])",
                                      "Z[i,j] = inverse[i,j](X[j,i])",
                                      "Z[i,k] = qr_q[i,j,k](X[i,j])",
                                      "Z[k,j] = qr_r[i,j,k](X[i,j])"}) {
    const auto [other, is_new] = seen.insert({key_of(statement), statement});
    EXPECT_TRUE(is_new) << statement << " and " << other->second;
  }
}

}  // namespace
}  // namespace einrel::test
