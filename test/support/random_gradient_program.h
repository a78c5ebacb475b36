#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace einrel::test {

/// A random program in f64 that computes `loss[]`, smooth nearly everywhere, with its inputs' sizes.
class RandomGradientProgram {
 public:
  explicit RandomGradientProgram(std::uint64_t seed) : random_(seed) {
    text_ = "dims i=2 j=3 k=2 m=6\ninput A[i,j], B[j,k], C[i] : f64\n";
    tensors_ = {{"A", {"i", "j"}}, {"B", {"j", "k"}}, {"C", {"i"}}};
    const int statements = 1 + below(4);
    for (int s = 0; s < statements; ++s) add_statement("T" + std::to_string(s));
    std::string loss;
    for (const Tensor& tensor : tensors_) loss += (loss.empty() ? "" : " + ") + weighed(tensor);
    text_ += "loss[] = " + loss + "\n";
  }

  const std::string& text() const { return text_; }
  std::map<std::string, std::size_t> inputs() const { return {{"A", 6}, {"B", 6}, {"C", 2}}; }

 private:
  struct Tensor {
    std::string name;
    std::vector<std::string> labels;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  template <class T>
  const T& any(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

  static std::string joined(const std::vector<std::string>& labels) {
    std::string text;
    for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
    return text;
  }

  static std::string weighed(const Tensor& tensor) {
    std::string weight = "0.3";
    for (const std::string& label : tensor.labels) weight += " + 0.2 * " + label;
    const std::string read = "sin(" + tensor.name + "[" + joined(tensor.labels) + "])";
    return tensor.labels.empty() ? read : "(sum[" + joined(tensor.labels) + "] (" + weight + ") * " + read + ")";
  }

  /// A read of a tensor, sometimes through a window or at a constant; notes the labels that it has.
  std::string read(std::vector<std::string>& used) {
    const Tensor tensor = any(tensors_);
    std::vector<std::string> indices;
    bool pads = false;
    for (const std::string& label : tensor.labels) {
      const int form = below(12);
      if (form == 0) {
        indices.push_back("1");
        continue;
      }
      used.push_back(label);
      const bool shifts = form == 1 || form == 2;
      pads = pads || shifts;
      const std::string other = label == "j" ? "i" : "j";
      if (form == 2) used.push_back(other);
      indices.push_back(form == 1 ? label + "+1" : form == 2 ? label + "-" + other : label);
    }
    const std::string element = tensor.name + "[" + joined(indices) + "]";
    return pads ? "pad(" + element + ", 0.5)" : element;
  }

  std::string expression(std::vector<std::string>& used, int depth) {
    if (depth == 0 || below(4) == 0) return below(8) == 0 ? "0.7" : read(used);
    const std::string x = expression(used, depth - 1);
    switch (below(16)) {
      case 0: return "tanh(" + x + ")";
      case 1: return "sigmoid(" + x + ")";
      case 2: return "exp(-sq(" + x + "))";
      case 3: return "log1p(sq(" + x + "))";
      case 4: return "sqrt(1 + sq(" + x + "))";
      case 5: return "gelu(" + x + ")";
      case 6: return "abs(" + x + " + 3)";
      case 7: return "silu(" + x + ") / (2 + sq(" + x + "))";
      default: break;
    }
    const std::string y = expression(used, depth - 1);
    switch (below(7)) {
      case 0: return "(" + x + " + " + y + ")";
      case 1: return "(" + x + " - " + y + ")";
      case 2: return "(" + x + ") / (2 + sq(" + y + "))";
      case 3: return "max(" + x + ", " + y + " + 0.01)";
      case 4: return "where(" + x + " < " + y + " + 0.013, " + y + ", " + x + ")";
      default: return "(" + x + ") * (" + y + ")";
    }
  }

  void add_statement(const std::string& name) {
    if (below(8) == 0) {
      const Tensor tensor = any(tensors_);
      if (tensor.labels == std::vector<std::string>{"i", "j"} || tensor.labels == std::vector<std::string>{"j", "k"}) {
        text_ += name + "[(" + tensor.labels[1] + " " + tensor.labels[0] + ")] = view " + tensor.name + "[" +
                 joined(tensor.labels) + "]\n";
        tensors_.push_back({name, {"m"}});
        return;
      }
    }
    std::vector<std::string> used;
    const std::string body = "sin(0.2 * (" + expression(used, 1 + below(3)) + "))";
    std::vector<std::string> kept;
    std::vector<std::string> reduced;
    for (const std::string label : {"k", "i", "j", "m"}) {
      const bool is_used = std::find(used.begin(), used.end(), label) != used.end();
      if (is_used) (below(2) == 0 ? kept : reduced).push_back(label);
    }
    const std::string reducer =
        any(std::vector<std::string>{"sum", "sum", "sum", "mean", "max", "min", "logsumexp", "prod"});
    text_ += name + "[" + joined(kept) +
             "] = " + (reduced.empty() ? body : reducer + "[" + joined(reduced) + "] (" + body + ")") + "\n";
    tensors_.push_back({name, kept});
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<Tensor> tensors_;
};

}  // namespace einrel::test
