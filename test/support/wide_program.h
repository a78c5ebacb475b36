#pragma once

#include <string>
#include <vector>

#include "support/random_einsum.h"

namespace einrel::test {

inline std::string one_of(Random& random, const std::vector<std::string>& from) {
  return from[static_cast<std::size_t>(random.between(0, std::ssize(from) - 1))];
}

/// Some of the labels i, j and k, one at least, in some order: "k,i".
inline std::string some_labels(Random& random) {
  return one_of(random, {"i", "j", "k", "i,j", "j,i", "i,k", "k,j", "i,j,k", "k,j,i"});
}

/// One statement over 3 to 5 tensors, element by element or reduced.
inline std::string wide_program(Random& random) {
  std::string inputs = "input W[i,j,k]";
  std::string body = "W[i,j,k]";
  const std::int64_t others = random.between(2, 4);
  for (std::int64_t x = 0; x < others; ++x) {
    const std::string read = "X" + std::to_string(x) + "[" + some_labels(random) + "]";
    inputs += ", " + read;
    switch (random.between(0, 5)) {
      case 0: body = "(" + body + " + " + read + ")"; break;
      case 1: body = "(" + read + " - " + body + ")"; break;
      case 2: body = "abs(" + body + ") * " + read; break;
      case 3: body = "max(" + body + ", " + read + " + i)"; break;
      case 4: body = "where(" + read + " > 2, " + body + ", " + read + " * 0.5)"; break;
      default: body = "where(W[i,j,k] > " + read + ", j, " + body + ")"; break;
    }
  }
  const std::string statement = one_of(random, {"Z[i,j,k] = ", "Z[k,i,j] = ", "Z[i,j] = sum[k] ", "Z[k] = mean[i,j] ",
                                                "Z[j,i] = max[k] ", "Z[] = min[i,j,k] "});
  return "dims i=7 j=6 k=5\n" + inputs + "\n" + statement + "(" + body + ")\noutput Z\n";
}

}  // namespace einrel::test
