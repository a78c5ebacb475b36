#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/source.h"
#include "einsum/graph/ein_graph.h"
#include "einsum/reference.h"
#include "tensor/tensor.h"

/// What a document says about itself in its comments `#! ...`; README.md describes them for people.
namespace einrel::test {

/// A directive that cannot be understood, or that does not fit its program: the document is wrong.
struct DocumentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// #! expect Z = [[7,10],[15,22]] ~ 1e-5
struct ExpectedValue {
  std::string tensor;
  nlohmann::json value;
  std::optional<double> tolerance;  ///< for max(1, |value|) = 1; default: a few units in the last place
};
/// #! expect Z : f32 [2,2]
struct ExpectedType {
  std::string tensor;
  DType dtype = DType::f32;
  Shape shape;
};
/// #! same Z Z2
struct ExpectedSame {
  std::string first;
  std::string second;
  std::optional<double> tolerance;
};
/// #! error 7:24 words, and #! help words
struct ExpectedError {
  std::optional<LineColumn> where;  ///< missing for an error about the program as a whole
  std::string words;
  std::string help;
};

using Dims = std::map<std::string, std::int64_t>;

/// A program with what it is run with and what must come out of it.
struct Document {
  SourceText source;
  std::map<std::string, nlohmann::json> inputs;
  std::optional<std::uint64_t> seed;
  ScalarBindings scalars;
  Dims dims;
  std::vector<Dims> other_dims;  ///< #! also dim ...: extents to run with besides
  std::vector<ExpectedValue> values;
  std::vector<ExpectedType> types;
  std::vector<ExpectedSame> sames;
  std::vector<ExpectedError> errors;
  std::vector<std::string> failure;  ///< #! fails words: what is said when the data stop the run, whatever computes
  std::optional<std::vector<std::string>> outputs;
  std::size_t steps = 1;  ///< #! steps 5
};

/// Reads the directives of a program text. Throws DocumentError, also when the text expects nothing.
Document read_document(SourceText source);
SourceText read_source(const std::filesystem::path& path);

/// The shape of nested arrays. Throws DocumentError when rows differ.
Shape literal_shape(const nlohmann::json& literal);
/// Throws DocumentError when a number is none of `dtype`.
Tensor tensor_from_literal(const nlohmann::json& literal, DType dtype);

/// Small multiples of 1/8 (whole numbers for integers), so that short sums of products are exact in every dtype. The
/// same on every machine.
Tensor small_random_tensor(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape);

using Outputs = std::map<std::string, Tensor>;

/// What of `document` is not so in `outputs`, one sentence each.
std::vector<std::string> broken_values(const Document& document, const Outputs& outputs);
std::vector<std::string> broken_types(const Document& document, const Outputs& outputs);
std::vector<std::string> broken_sames(const Document& document, const Outputs& outputs);
/// What `found` has that is not expected, or the other way round.
std::vector<std::string> broken_errors(const Document& document, const std::vector<Diagnostic>& found);
/// Where two runs of one program differ by more than rounding. A tensor that the document compares with another one to
/// a tolerance is as sensitive to rounding here.
std::vector<std::string> differences(const Document& document, const Outputs& found, const Outputs& wanted);

}  // namespace einrel::test
