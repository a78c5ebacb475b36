#pragma once

#include <string>
#include <utility>

#include "support/random_einsum.h"

namespace einrel::test {

/// A tensor by its name and its labels, one letter each.
using Named = std::pair<std::string, std::string>;

/// A statement `name[..] = sum[..] x[..] * y[..]` that keeps each label with this chance, two at most; and its tensor.
inline std::pair<std::string, Named> random_product(Random& random, const std::string& name, const Named& x,
                                                    const Named& y, double keeps) {
  std::string all = x.second;
  for (const char label : y.second) {
    if (all.find(label) == std::string::npos) all += label;
  }
  std::string output;
  std::string reduced;
  for (const char label : all) ((output.size() < 2 && random.chance(keeps)) ? output : reduced) += label;
  const auto list = [](const std::string& letters) {
    std::string joined;
    for (const char letter : letters) joined += (joined.empty() ? "" : ",") + std::string(1, letter);
    return joined;
  };
  return {name + "[" + list(output) + "] = " + (reduced.empty() ? "" : "sum[" + list(reduced) + "] ") + x.first + "[" +
              list(x.second) + "] * " + y.first + "[" + list(y.second) + "]\n",
          {name, output}};
}

}  // namespace einrel::test
