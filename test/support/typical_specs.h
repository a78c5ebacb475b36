#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/evaluate.h"
#include "support/program.h"

namespace einrel::test {

/// An EinSum that users run, of the size that they run it in.
struct TypicalSpec {
  std::string name;  ///< the program and the statement
  Vertex vertex;
  KernelSpec spec;  ///< everything in row-major order
};

struct TypicalProgram {
  std::string_view name;
  std::string_view text;
};

/// Whoever adds a kernel adds the program that it is for.
inline const std::vector<TypicalProgram>& typical_programs() {
  static const std::vector<TypicalProgram> programs{
      {"large matrix product", R"(dims i=1024 j=1024 k=1024
          input X[i,j], Y[j,k]
          Z[i,k] = sum[j] X[i,j] * Y[j,k])"},
      {"matrix product of odd extents, transposed", R"(dims i=131 j=517 k=129
          input X[j,i], Y[k,j] : f64
          Z[i,k] = sum[j] X[j,i] * Y[k,j])"},
      {"product of bf16 matrices", R"(dims i=256 j=256 k=256
          input X[i,j], Y[j,k] : bf16
          Z[i,k] = sum[j] X[i,j] * Y[j,k])"},
      {"product of integer matrices", R"(dims i=128 j=128 k=128
          input X[i,j], Y[j,k] : i32
          Z[i,k] = sum[j] X[i,j] * Y[j,k])"},
      {"many small matrix products", R"(dims b=4096 i=4 j=4 k=4
          input X[b,i,j], Y[b,j,k]
          Z[b,i,k] = sum[j] X[b,i,j] * Y[b,j,k])"},
      {"matrix times vector", R"(dims i=2048 j=1024
          input X[i,j], v[j]
          Z[i] = sum[j] X[i,j] * v[j])"},
      {"transposed matrix times vector", R"(dims i=2048 j=1024
          input X[i,j], v[i]
          Z[j] = sum[i] X[i,j] * v[i])"},
      {"two rows times a wide matrix", R"(dims r=2 i=333 j=1999
          input v[r,i], X[i,j] : f64
          Z[r,j] = sum[i] v[r,i] * X[i,j])"},
      {"sums, means and maxima of columns", R"(dims i=203 j=1501
          input X[i,j]
          input Y[i,j] : f64
          input W[i,j] : i32
          S[j] = sum[i] X[i,j]
          M[j] = mean[i] Y[i,j]
          L[j] = max[i] X[i,j]
          N[j] = sum[i] W[i,j]
          A[j] = argmax[i] Y[i,j])"},
      {"scalar product", R"(dims i=1000000
          input x[i], y[i]
          z[] = sum[i] x[i] * y[i])"},
      {"outer product", R"(dims i=1000 j=1000
          input x[i], y[j]
          Z[i,j] = x[i] * y[j])"},
      {"coupled clusters", R"(dims a=24 b=24 c=24 d=24 i=12 j=12
          input T[c,d,i,j], V[a,b,c,d] : f64
          Z[a,b,i,j] = sum[c,d] T[c,d,i,j] * V[a,b,c,d]
          W[i,a,b,j] = sum[c,d] T[c,d,i,j] * V[c,a,d,b])"},
      {"attention", R"(dims b=4 h=8 q=64 k=64 d=32
          input Q[b,q,h,d], K[b,k,h,d], V[b,k,h,d]
          S[b,h,q,k] = sum[d] Q[b,q,h,d] * K[b,k,h,d]
          P[b,h,q,k] = softmax[k](S[b,h,q,k])
          Z[b,q,h,d] = sum[k] P[b,h,q,k] * V[b,k,h,d])"},
      {"softmax", R"(dims i=1000 j=1000
          input X[i,j]
          Z[i,j] = softmax[j](X[i,j]))"},
      {"layer normalisation", R"(dims i=512 j=768
          input X[i,j], g[j], b[j]
          M[i] = mean[j] X[i,j]
          V[i] = mean[j] sq(X[i,j] - M[i])
          Z[i,j] = g[j] * (X[i,j] - M[i]) * rsqrt(V[i] + 0.00001) + b[j])"},
      {"squared distances", R"(dims a=300 b=300 j=64
          input X[a,j], Y[b,j]
          D[a,b] = sum[j] sq(X[a,j] - Y[b,j]))"},
      {"largest absolute differences", R"(dims a=300 b=300 j=64
          input X[a,j], Y[b,j]
          D[a,b] = max[j] abs(X[a,j] - Y[b,j]))"},
      {"shortest paths", R"(dims a=200 b=200 c=200
          input X[a,c], Y[c,b]
          D[a,b] = min[c] (X[a,c] + Y[c,b]))"},
      {"bias and activation", R"(dims i=1000 j=1000
          input X[i,j], b[j]
          Z[i,j] = relu(X[i,j] + b[j]))"},
      {"element-wise chain", R"(dims i=1000000
          input X[i], Y[i]
          Z[i] = tanh(X[i] * Y[i] + 1) * sigmoid(X[i]))"},
      {"tensors put together", R"(dims i=600 j=1500 k=700
          input X[i,k], Y[i,k]
          input A[k] : bool
          input B[k] : bool
          Z[i,j] = where(j < 700, pad(X[i,j], 0), pad(Y[i,j-700], 0))
          C[j] = where(j < 700, pad(A[j], 0), pad(B[j-700], 0)))"},
      {"bools", R"(dims i=1000000
          input A[i] : bool
          input B[i] : bool
          input X[i] : f64
          Z[i] = min(A[i], B[i])
          W[i] = where(A[i] != B[i], X[i], 0)
          p[] = all[i] A[i])"},
      {"transpose", R"(dims i=1000 j=1000
          input X[i,j]
          Z[j,i] = X[i,j])"},
      {"convolution", R"(dims n=2 c=16 o=16 y=28 x=28 dy=3 dx=3
          input X[n,c,y,x], W[o,c,dy,dx]
          Z[n,o,y,x] = sum[c,dy,dx] pad(X[n,c,y+dy-1,x+dx-1], 0) * W[o,c,dy,dx])"},
      {"large convolution and its gradients", R"(dims n=1 c=96 o=128 y=28 x=28 p=3 q=3
          input X[n,c,y,x], W[o,c,p,q], D[n,o,y,x]
          Z[n,o,y,x] = sum[c,p,q] pad(X[n,c,y+p-1,x+q-1], 0) * W[o,c,p,q]
          G[o,c,p,q] = sum[n,y,x] pad(X[n,c,y+p-1,x+q-1], 0) * D[n,o,y,x]
          E[n,c,y,x] = sum[o,p,q] pad(D[n,o,y-p+1,x-q+1], 0) * W[o,c,p,q])"},
      {"depthwise convolution", R"(dims n=2 c=64 y=28 x=28 dy=3 dx=3 h=30 w=30
          input X[n,c,h,w], W[c,dy,dx]
          Z[n,c,y,x] = sum[dy,dx] X[n,c,y+dy,x+dx] * W[c,dy,dx])"},
      {"pooling", R"(dims n=4 c=32 y=28 x=28 dy=2 dx=2 h=56 w=56
          input X[n,c,h,w]
          Z[n,c,y,x] = max[dy,dx] X[n,c,2*y+dy,2*x+dx])"},
      {"reductions of rows and columns", R"(dims i=1000 j=1000
          input X[i,j]
          R[i] = sum[j] X[i,j]
          C[j] = sum[i] X[i,j]
          L[i] = logsumexp[j] X[i,j]
          B[i] = argmax[j] X[i,j]
          A[j] = argmin[i] X[i,j])"},
      {"reductions of everything", R"(dims i=1000 j=1000
          input X[i,j], K[j,i]
          s[] = sum[i,j] X[i,j]
          t[] = sum[i,j] X[i,j] * K[j,i]
          m[] = max[i,j] abs(X[i,j])
          w[] = argmax[i,j] (X[i,j] - K[j,i])
          p[] = any[i,j] (X[i,j] > 0.5))"},
      {"gathers, scatters and a transposed window", R"(dims v=3000 s=4000 d=50 x=2001 y=1000 k=2
          input E[v,d], X[s,d], G[y,k]
          input T[s] : i64
          H[s,d] = sum[v] where(v == T[s], E[v,d], 0)
          D[v,d] = sum[s] where(v == T[s], X[s,d], 0)
          C[v] = sum[s] (v == T[s])
          W[x] = sum[y,k] where(x == 2 * y + k, G[y,k], 0))"},
  };
  return programs;
}

inline std::vector<TypicalSpec> typical_specs() {
  std::vector<TypicalSpec> specs;
  for (const TypicalProgram& program : typical_programs()) {
    const EinGraph graph = *check_text(std::string(program.text) + "\n").graph;
    for (const Vertex& vertex : graph.vertices) {
      if (!std::holds_alternative<EinSum>(vertex.op)) continue;
      std::vector<ArrayLayout> operands;
      for (const VertexId input : vertex.inputs) {
        operands.push_back(row_major_layout(graph[input].dtype, graph[input].bound));
      }
      specs.push_back({std::string(program.name) + ", " + vertex.name, vertex, *spec_of(vertex, operands, {})});
    }
  }
  return specs;
}

}  // namespace einrel::test
