#include "einsum/front/text/other_notations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "einsum/expr/functions.h"
#include "tensor/dtype.h"

namespace einrel::other_notations {
namespace {

struct Row {
  std::string_view words;  ///< separated by blanks
  std::string_view help;
};

constexpr const char* product_help = "a product of matrices is Z[i,k] = sum[j] X[i,j] * Y[j,k]";
constexpr const char* transpose_help = "a transpose is its labels in another order: T[j,i] = X[i,j]";
constexpr const char* comment_help = "comments begin with #; a quotient is rounded down by floor(x / y)";
constexpr const char* both_help = "both conditions hold where min(a < b, c < d)";
constexpr const char* either_help = "one of two conditions holds where max(a < b, c < d)";
constexpr const char* loop_help =
    "there are no loops: labels run over their extents, Z[i] = ..., and sum[j] ... reduces";
constexpr const char* choice_help = "a choice is written where(condition, a, b)";
constexpr const char* remainder_help = "a remainder is x - n * floor(x / n)";
constexpr const char* view_help = "a statement of its own regroups dimensions: Z[i,j] = view X[(i j)]";
constexpr const char* selection_help = "select by a comparison: sum[v] (v == I[b]) * X[v,...]";
constexpr const char* inverse_help = "an inverse names rows and columns: inverse[i,j](A[i,j])";
constexpr const char* outside_help =
    "the language has nothing like it; compute it outside and bind the result, --in NAME=FILE";
constexpr const char* window_help = "a window is an index with a sum of labels: sum[d] X[i+d] * W[d]";
constexpr const char* extent_help = "an extent has no name of its own; write the number, or give it as a scalar";

/// Longer signs before those that they begin with.
constexpr std::array signs{
    Row{"+= -= *= /= :=", "a tensor has one definition, with '='; give the new value another name"},
    Row{"// /*", comment_help},
    Row{"&& &", both_help},
    Row{"|| |", either_help},
    Row{"->", "the notation of einsum is for einrel einsum 'ij,jk->ik'; here it is Z[i,k] = sum[j] X[i,j] * Y[j,k]"},
    Row{"<>", "'not equal' is written !="},
    Row{"...", "name every dimension: a tensor is read with one index for each"},
    Row{"@", product_help},
    Row{"^", "a power is written x ** y"},
    Row{"%", remainder_help},
    Row{"! ~", "the opposite of a condition is x == 0"},
    Row{"?", choice_help},
    Row{"{ }", "labels and indices stand in [...], arguments and groups in (...)"},
    Row{"\\", "a line continues after an operator or a comma, and inside brackets"},
    Row{";", "write each statement on its own line"},
    Row{"− –", "the minus sign is '-'"},
    Row{"× · ∗", "a product is written *"},
    Row{"÷", "a quotient is written /"},
    Row{"≤", "written <="},
    Row{"≥", "written >="},
    Row{"≠", "written !="},
};

constexpr std::array words_of_statements{
    Row{"for while loop repeat until do foreach", loop_help},
    Row{"import from using include require load",
        "nothing is imported: functions are built in, files are bound with --in NAME=FILE"},
    Row{"if else elif then switch case unless", choice_help},
    Row{"return end begin endfor pass",
        "a statement is one line, NAME[labels] = expression; its value is what it computes"},
    Row{"print display disp show echo", "outputs are printed by themselves: output NAME"},
    Row{"let var const auto val set float double int tensor Tensor parameter param variable",
        "a tensor is defined as Z[i,j] = ..., data are declared as input X[i,j], numbers as scalar eta = 0.1"},
    Row{"function fn func lambda class struct fun", "a macro is written def name[j](x, y) = expression"},
    Row{"and", both_help},
    Row{"or", either_help},
    Row{"not", "the opposite of a condition is x == 0"},
    Row{"in is", selection_help},
    Row{"mod rem", remainder_help},
    Row{"outputs result", "what is computed is named by output NAME"},
    Row{"inputs", "data are declared as input X[i,j] : f32"},
    Row{"dim", "extents are declared as dims i=3 j=4"},
};

constexpr std::array functions{
    Row{"inv", inverse_help},
    Row{"solve lstsq", "a solution is X[i] = sum[j] inverse[i,j](A[i,j]) * Y[j]"},
    Row{"qr", "its factors have a name each: Q[i,k] = qr_q[i,j,k](A[i,j]) and R[k,j] = qr_r[i,j,k](A[i,j])"},
    Row{"pinv det slogdet eig eigh eigvals svd lu cholesky matrix_rank", outside_help},
    Row{"sort argsort topk unique median quantile searchsorted", outside_help},
    Row{"fft ifft rfft fft2 gamma lgamma arctan atan arctan2 atan2 arcsin asin arccos acos", outside_help},
    Row{"transpose swapaxes permute moveaxis t", transpose_help},
    Row{"dot matmul mm bmm inner vdot mv multi_dot", product_help},
    Row{"einsum tensordot contract", "the formula stands as it is: Z[i,k] = sum[j] X[i,j] * Y[j,k]"},
    Row{"outer kron", "an outer product is Z[i,j] = X[i] * Y[j]"},
    Row{"trace", "a trace is sum[i] X[i,i]"},
    Row{"diag diagonal", "a diagonal is D[i] = X[i,i]; a matrix with it is where(i == j, D[i], 0)"},
    Row{"reshape flatten ravel squeeze unsqueeze expand_dims rearrange", view_help},
    Row{"broadcast_to expand tile repeat broadcast",
        "a label on the left alone repeats: Z[i,j] = X[j] with dims i=..."},
    Row{"concat concatenate stack cat hstack vstack append",
        "one behind the other, with dims i=5: where(i < 3, pad(X[i], 0), pad(Y[i-3], 0))"},
    Row{"zeros zeros_like ones ones_like full full_like empty",
        "a number for every element: Z[i,j] = 0 with dims i=... j=..."},
    Row{"eye identity", "the identity is f32(i == j)"},
    Row{"arange range linspace enumerate", "a label's own name is its value, 0, 1, 2, ...: Z[i] = X[i] * i"},
    Row{"tril", "a lower triangle is where(j <= i, X[i,j], 0)"},
    Row{"triu", "an upper triangle is where(j >= i, X[i,j], 0)"},
    Row{"pow power", "a power is written x ** y"},
    Row{"square", "a square is sq(x)"},
    Row{"cbrt", "a root is a power: x ** (1 / 3)"},
    Row{"exp2", "a power is written 2 ** x"},
    Row{"log2 log10", "a logarithm to another base is log(x) / log(2)"},
    Row{"ln", "the natural logarithm is log(x)"},
    Row{"tan", "a tangent is sin(x) / cos(x)"},
    Row{"sinh cosh", "written (exp(x) - exp(-x)) / 2, and + for cosh"},
    Row{"ceil ceiling", "rounded up is -floor(-x)"},
    Row{"round rint", "rounded is floor(x + 0.5)"},
    Row{"trunc fix", "without its fraction is f32(i64(x))"},
    Row{"sign sgn signum", "a sign is (x > 0) - (x < 0)"},
    Row{"mod fmod remainder rem divmod", remainder_help},
    Row{"clip clamp", "between two numbers is min(max(x, low), high)"},
    Row{"maximum fmax", "the larger one is max(x, y)"},
    Row{"minimum fmin", "the smaller one is min(x, y)"},
    Row{"fabs absolute", "written abs(x)"},
    Row{"reciprocal", "written 1 / x"},
    Row{"isnan", "only NaN differs from itself: x != x"},
    Row{"isinf", "written abs(x) == inf"},
    Row{"average avg", "a mean names its labels: mean[j] X[i,j]"},
    Row{"std stddev", "a standard deviation is sqrt(variance[j](X[i,j]))"},
    Row{"var", "a variance names its labels: variance[j](X[i,j])"},
    Row{"product", "a product names its labels: prod[j] X[i,j]"},
    Row{"nansum", "a sum without NaN is sum[j] where(x == x, x, 0)"},
    Row{"cumsum cumulative", "a running sum is C[i] = sum[k] where(k <= i, X[k], 0)"},
    Row{"count count_nonzero", "a count is sum[j] (X[i,j] != 0)"},
    Row{"not logical_not", "the opposite of a condition is x == 0"},
    Row{"and logical_and", both_help},
    Row{"or logical_or", either_help},
    Row{"if ifelse iif select choose cond", choice_help},
    Row{"gather take take_along_axis index_select embedding one_hot scatter lookup", selection_help},
    Row{"conv conv1d conv2d conv3d convolve max_pool2d avg_pool2d unfold", window_help},
    Row{"rand randn random normal uniform", "--random SEED fills the inputs that have no file"},
    Row{"len shape size numel ndim", extent_help},
    Row{"print", "outputs are printed by themselves: output NAME"},
    Row{"leaky_relu", "written where(x > 0, x, 0.01 * x)"},
    Row{"softplus", "written log1p(exp(x))"},
    Row{"elu", "written where(x > 0, x, expm1(x))"},
    Row{"cross_entropy nll_loss", "written -mean[b] sum[c] Y[b,c] * logsoftmax[c](X[b,c])"},
    Row{"mse_loss", "written mean[i,j] sq(X[i,j] - Y[i,j])"},
    Row{"layer_norm", "written layernorm[j](x, 1e-5)"},
    Row{"rms_norm", "written rmsnorm[j](x, 1e-5)"},
    Row{"log_softmax", "written logsoftmax[j](x)"},
};

constexpr std::array members{
    Row{"T mT H", transpose_help},
    Row{"shape size ndim numel", extent_help},
    Row{"astype to type dtype float half double long int", "a cast is a function: f64(X[i,j])"},
    Row{"view", view_help},
};

constexpr std::array names{
    Row{"pi PI Pi", "declare it: scalar pi = 3.141592653589793"},
    Row{"True true", "1 stands for true"},
    Row{"False false", "0 stands for false"},
    Row{"nan NaN NAN", "NaN is inf - inf"},
    Row{"None null newaxis", "a dimension of extent 1 is added by a view: Z[i,1] = view X[i]"},
    Row{"Inf INF infinity Infinity", "infinity is written inf"},
};

constexpr std::array dtypes{
    Row{"float float32 single fp32", "f32"}, Row{"double float64 fp64", "f64"}, Row{"half float16 fp16", "f16"},
    Row{"bfloat16 bfloat", "bf16"},          Row{"int int32 int32_t", "i32"},   Row{"long int64 int64_t", "i64"},
    Row{"boolean bool_ logical", "bool"},
};

/// Calls `visit` with each of the words of a row.
template <class Visit>
void for_each_word(const Row& row, Visit&& visit) {
  for (std::size_t begin = 0; begin < row.words.size();) {
    const std::size_t end = std::min(row.words.find(' ', begin), row.words.size());
    visit(row.words.substr(begin, end - begin));
    begin = end + 1;
  }
}

template <std::size_t rows>
std::string look_up(const std::array<Row, rows>& table, std::string_view word) {
  for (const Row& row : table) {
    bool found = false;
    for_each_word(row, [&](std::string_view each) { found = found || each == word; });
    if (found) return std::string(row.help);
  }
  return "";
}

bool continues_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// .name.name at the front of `text`: what follows an object in Python.
std::size_t member_length(std::string_view text) {
  std::size_t length = 0;
  while (length + 1 < text.size() && text[length] == '.' && continues_word(text[length + 1])) {
    ++length;
    while (length < text.size() && continues_word(text[length])) ++length;
  }
  return length;
}

std::string help_for_member(std::string_view name) {
  if (reducer_named(name)) return fmt::format("a reduction names its labels: {}[j] X[i,j]", name);
  if (unary_named(name) || binary_named(name) || dtype_named(name) || name == "where")
    return fmt::format("functions stand alone: {}(...)", name);
  std::string help = look_up(members, name);
  if (help.empty()) help = help_for_function(name);
  return !help.empty() ? help : "functions stand alone, and tensors have nothing but indices: exp(X[i,j])";
}

}  // namespace

std::size_t sign_length(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() == '"' || text.front() == '\'') {  // a word in quotes, if they close on this line
    const std::size_t end = text.find_first_of(text.front() == '"' ? "\"\n" : "'\n", 1);
    return end == std::string_view::npos || text[end] == '\n' ? 1 : end + 1;
  }
  if (const std::size_t member = member_length(text)) return member;
  std::size_t length = 0;
  for (const Row& row : signs)
    for_each_word(row, [&](std::string_view sign) {
      if (text.starts_with(sign)) length = std::max(length, sign.size());
    });
  return length;
}

std::string help_for_sign(std::string_view sign) {
  if (sign.starts_with('"') || sign.starts_with('\''))
    return "there are no texts in the language; a transpose is its labels in another order: T[j,i] = X[i,j]";
  if (member_length(sign) == sign.size()) return help_for_member(sign.substr(sign.rfind('.') + 1));
  return look_up(signs, sign);
}

std::string help_for_word(std::string_view word) { return look_up(words_of_statements, word); }

std::string help_for_function(std::string_view name) {
  const std::string dtype = look_up(dtypes, name);
  return dtype.empty() ? look_up(functions, name) : fmt::format("a cast is a function of its dtype: {}(x)", dtype);
}

std::string help_for_name(std::string_view name) { return look_up(names, name); }

std::string help_for_dtype(std::string_view name) {
  if (name.starts_with("u") && (name.find("int") != std::string_view::npos || name == "u8"))
    return "declare i32 or i64: files of small integers are widened";
  const std::string dtype = look_up(dtypes, name);
  return dtype.empty() ? "" : fmt::format("it is called {}", dtype);
}

}  // namespace einrel::other_notations
