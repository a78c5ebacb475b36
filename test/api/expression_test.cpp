#include <einrel/einrel.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "errors.h"

namespace {

using namespace einrel;
using einrel::test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

/// The right side that a formula becomes, over labels i and j.
std::string text_of(const Expression& value) {
  const Label i("i", 2);
  const Label j("j", 3);
  const std::string text = Program::build({define("Z", {i, j}, value)}).text();
  const std::size_t begin = text.find("Z[i,j] = ") + 9;
  return text.substr(begin, text.find('\n', begin) - begin);
}

class ApiExpression : public testing::Test {
 protected:
  Label i{"i", 2}, j{"j", 3}, k{"k", 4};
  Variable x = input("X", {i, j});
  Variable y = input("Y", {j, k});
  Expression a = x(i, j);
};

TEST_F(ApiExpression, BecomesTheTextOneWouldHaveWritten) {
  const Variable z = define("Z", {i, k}, relu(sum({j}, x(i, j) * y(j, k))));
  EXPECT_EQ(Program::build({z}).text(),
            "dims i=2 j=3 k=4\n"
            "input X[i,j] : f32\n"
            "input Y[j,k] : f32\n"
            "Z[i,k] = relu(sum[j] X[i,j] * Y[j,k])\n"
            "output Z\n");
}

TEST_F(ApiExpression, HasParenthesesWhereTheLanguageNeedsThem) {
  EXPECT_EQ(text_of(a + a * a), "X[i,j] + X[i,j] * X[i,j]");
  EXPECT_EQ(text_of((a + a) * a), "(X[i,j] + X[i,j]) * X[i,j]");
  EXPECT_EQ(text_of(a - (a - a)), "X[i,j] - (X[i,j] - X[i,j])");
  EXPECT_EQ(text_of(a - a - a), "X[i,j] - X[i,j] - X[i,j]");
  EXPECT_EQ(text_of(a / (a * a)), "X[i,j] / (X[i,j] * X[i,j])");
  EXPECT_EQ(text_of(-pow(a, 2)), "-X[i,j] ** 2");
  EXPECT_EQ(text_of(pow(-a, 2)), "(-X[i,j]) ** 2");
  EXPECT_EQ(text_of(pow(pow(a, 2), 3)), "(X[i,j] ** 2) ** 3");
  EXPECT_EQ(text_of(a * -2), "X[i,j] * (-2)");
  EXPECT_EQ(text_of(2.0 * a), "2.0 * X[i,j]");
  EXPECT_EQ(text_of((a < 1) * a), "(X[i,j] < 1) * X[i,j]");
  EXPECT_EQ(text_of(sum({k}, y(j, k) + 1) * a), "(sum[k] (Y[j,k] + 1)) * X[i,j]");
  EXPECT_EQ(text_of(a - sum({k}, -y(j, k))), "X[i,j] - (sum[k] (-Y[j,k]))");
  EXPECT_EQ(text_of(max({k}, y(j, k)) / 2 + 1), "(max[k] Y[j,k]) / 2 + 1");
}

TEST_F(ApiExpression, MayBeAnEinsumInNumPysNotation) {
  const Variable z = einrel::einsum("Z", "ij,jk->ki", {{x, DType::f32, {2, 3}}, {y, DType::f32, {3, 4}}});
  const Variable d =
      einrel::einsum("D", "ab,cb->ac", {{x, DType::f32, {2, 3}}, {x, DType::f32, {2, 3}}}, "sq(x-y)", "max");
  EXPECT_EQ(Program::build({z, d}).text(),
            "dims i=2 j=3 k=4\n"
            "input X[i,j] : f32\n"
            "input Y[j,k] : f32\n"
            "Z[k,i] = sum[j] X[i,j] * Y[j,k]\n"
            "D[a,c] = max[b] sq(X[a,b] - X[c,b])\n"
            "output Z, D\n");
  EXPECT_THAT(message_of([&] {
                einrel::einsum("Z", "ij,jk", {{x, DType::f32, {2, 3}}, {y, DType::f32, {4, 4}}});
              }),
              HasSubstr("label 'j' has extent 3 before, but 4 in operand 2"));
}

TEST_F(ApiExpression, HasAsManyIndicesAsAVectorGives) {
  EXPECT_EQ(text_of(x.element({i, j})), "X[i,j]");
  EXPECT_EQ(text_of(x.element({1, j})), "X[1,j]");
  const Variable merged = view("V", {LabelGroup(Labels{i, j})}, x, {LabelGroup(Labels{i}), LabelGroup(Labels{j})});
  EXPECT_THAT(Program::build({merged}).text(), HasSubstr("V[(i j)] = view X[i,j]"));
}

/// Every way to nest two operations means the same in both forms.
TEST_F(ApiExpression, MeansWhatCppPrecedenceSays) {
  const float p = 3;
  const float q = 0.5;
  const float r = -2;
  const Label none("i", 1);
  const Variable v = input("V", {none});
  const auto value = [&](const Expression& formula) {
    const Program program = Program::build({define("Z", {none}, formula)});
    return program.run({{"V", Tensor({1}, std::vector<float>{p})}})["Z"].at<float>({0});
  };
  const Expression e = v(none);
  EXPECT_EQ(value(e - q - r), p - q - r);
  EXPECT_EQ(value(e - (Expression(q) - r)), p - (q - r));
  EXPECT_EQ(value(e / q / r), p / q / r);
  EXPECT_EQ(value(e / (e / r)), p / (p / r));
  EXPECT_EQ(value(-e * r), -p * r);
  EXPECT_EQ(value(-(e + r)), -(p + r));
  EXPECT_EQ(value(-pow(e, 2)), -(p * p));
  EXPECT_EQ(value(pow(r, 2) * e), r * r * p);
  EXPECT_EQ(value(pow(e, -2)), 1 / (p * p));
  EXPECT_EQ(value(where(e > 2, e, r)), p);
  EXPECT_EQ(value(where(e + 1 == 4, q, r)), q);
  EXPECT_EQ(value(where((e < 1) == (e < 2), q, r)), q);
  EXPECT_EQ(value(1e-9 + e * 1e30), 1e-9F + p * 1e30F);
  EXPECT_EQ(value(maximum(e, std::numeric_limits<double>::infinity())), std::numeric_limits<float>::infinity());
  EXPECT_EQ(value(minimum(e, -HUGE_VAL)), -std::numeric_limits<float>::infinity());
}

TEST_F(ApiExpression, HasEveryFunctionOfTheLanguage) {
  const std::vector<std::pair<Expression, std::string>> rows{
      {abs(a), "abs"},     {exp(a), "exp"},         {log(a), "log"},     {log1p(a), "log1p"},
      {expm1(a), "expm1"}, {sqrt(a), "sqrt"},       {rsqrt(a), "rsqrt"}, {sq(a), "sq"},
      {tanh(a), "tanh"},   {sigmoid(a), "sigmoid"}, {relu(a), "relu"},   {step(a), "step"},
      {gelu(a), "gelu"},   {silu(a), "silu"},       {erf(a), "erf"},     {erfc(a), "erfc"},
      {sin(a), "sin"},     {cos(a), "cos"},         {floor(a), "floor"}, {stop_gradient(a), "stop_gradient"}};
  for (const auto& [formula, name] : rows) EXPECT_EQ(text_of(formula), name + "(X[i,j])");
  EXPECT_EQ(text_of(uniform(1)), "uniform(1)");
  EXPECT_EQ(text_of(2 * normal(1)), "2 * normal(1)");
  EXPECT_EQ(text_of(maximum(a, 0)), "max(X[i,j], 0)");
  EXPECT_EQ(text_of(minimum(a, 0)), "min(X[i,j], 0)");
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::boolean}) {
    EXPECT_EQ(text_of(cast(dtype, a)), std::string(name_of(dtype)) + "(X[i,j])");
  }
  const Expression b = y(j, k);
  const std::vector<std::pair<Expression, std::string>> reductions{{sum({k}, b), "sum"},
                                                                   {sumsq({k}, b), "sumsq"},
                                                                   {prod({k}, b), "prod"},
                                                                   {max({k}, b), "max"},
                                                                   {min({k}, b), "min"},
                                                                   {mean({k}, b), "mean"},
                                                                   {any({k}, b), "any"},
                                                                   {all({k}, b), "all"},
                                                                   {argmax({k}, b), "argmax"},
                                                                   {argmin({k}, b), "argmin"},
                                                                   {logsumexp({k}, b), "logsumexp"}};
  for (const auto& [formula, name] : reductions) EXPECT_EQ(text_of(formula), name + "[k] Y[j,k]");
  EXPECT_EQ(text_of(softmax({j}, a)), "softmax[j](X[i,j])");
  EXPECT_EQ(text_of(logsoftmax({j}, a)), "logsoftmax[j](X[i,j])");
  EXPECT_EQ(text_of(norm({k}, b)), "norm[k](Y[j,k])");
  EXPECT_EQ(text_of(variance({k}, b)), "variance[k](Y[j,k])");
  EXPECT_EQ(text_of(layernorm({j}, a, 1e-5)), "layernorm[j](X[i,j], 1e-05)");
  EXPECT_EQ(text_of(rmsnorm({j}, a, 1e-5)), "rmsnorm[j](X[i,j], 1e-05)");
  EXPECT_EQ(text_of(a != 1), "X[i,j] != 1");
  EXPECT_EQ(text_of(a <= 1), "X[i,j] <= 1");
  EXPECT_EQ(text_of(a >= 1), "X[i,j] >= 1");
}

TEST_F(ApiExpression, ReadsWindowsAndLabelsAsValues) {
  EXPECT_EQ(text_of(pad(y(2 * (i - 1) * 3 - j + 2 * 2, -(-j)), 0)), "pad(Y[6*i-j-2,j], 0)");
  const Label o("o", 3);
  const Label d("d", 3);
  const Variable s = input("S", {o}, DType::i32);
  const Variable z = define("Z", {o}, sum({d}, pad(s(o + d - 1), -1) * cast(DType::i32, where(d <= o, 1, 10))));
  const Program program = Program::build({z});
  const Tensor data({3}, std::vector<std::int32_t>{1, 2, 3});
  std::vector<std::int32_t> want;
  for (int at = 0; at < 3; ++at) {
    int total = 0;
    for (int step = 0; step < 3; ++step) {
      const int index = at + step - 1;
      total += (index < 0 || index > 2 ? -1 : index + 1) * (step <= at ? 1 : 10);
    }
    want.push_back(total);
  }
  const RunResult result = program.run({{"S", data}});
  EXPECT_THAT(result["Z"].values<std::int32_t>(), testing::ElementsAreArray(want));
}

TEST_F(ApiExpression, ReadsAtElementsOfOthers) {
  const Variable t = input("T", {i}, DType::i64);
  const Variable z = define("Z", {i, k}, pad(y(t(i) + 1, k), 0) + 2 * y(t(i), 3));
  const Program program = Program::build({z});
  EXPECT_THAT(program.text(), HasSubstr("Z[i,k] = pad(Y[T[i] + 1,k], 0) + 2 * Y[T[i],3]\n"));
  const std::vector<float> rows{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
  const Tensor y_values({3, 4}, rows);
  const Tensor found = program.run({{"Y", y_values}, {"T", Tensor({2}, std::vector<std::int64_t>{2, 0})}})["Z"];
  EXPECT_EQ(found.at<float>({0, 1}), 2 * 23);
  EXPECT_EQ(found.at<float>({1, 1}), 11 + 2 * 3);
  const Tensor outside({2}, std::vector<std::int64_t>{2, 3});
  EXPECT_THAT(message_of<RunError>([&] {
                program.run({{"Y", y_values}, {"T", outside}});
              }),
              HasSubstr("T[1] is 3, but indexes a dimension of Y of extent 3"));
}

TEST_F(ApiExpression, RegroupsDimensions) {
  const Label h("h", 2);
  const Label d("d");
  const Label f("f", 6);
  const Variable flat = input("F", {i, f});
  const Variable split = view("S", {i, h, d}, flat, {i, {h, d}});
  const Variable column = view("T", {d, i, {h}, {}}, split, {i, h, d});
  const Program program = Program::build({column});
  EXPECT_THAT(program.text(), HasSubstr("S[i,h,d] = view F[i,(h d)]\nT[d,i,h,1] = view S[i,h,d]\n"));
  std::vector<float> values(12);
  for (std::size_t n = 0; n < 12; ++n) values[n] = static_cast<float>(n);
  const RunResult result = program.run({{"F", Tensor({2, 6}, values)}});
  EXPECT_THAT(result["T"].shape(), ElementsAre(3, 2, 2, 1));
  EXPECT_EQ(result["T"].at<float>({2, 1, 1, 0}), 6 + 3 + 2);
}

TEST_F(ApiExpression, ScalarsAreBoundWhenItRuns) {
  const Expression eta = scalar("eta", 0.5);
  const Program program = Program::build({define("Z", {i, j}, a - eta * a)});
  const Tensor ones({2, 3}, std::vector<float>(6, 1));
  EXPECT_EQ(program.run({{"X", ones}})["Z"].at<float>({0, 0}), 0.5F);
  EXPECT_EQ(program.run({{"X", ones}}, {.scalars = {{"eta", 0.25}}})["Z"].at<float>({0, 0}), 0.75F);
  EXPECT_THAT(message_of([&] {
                program.run({{"X", ones}}, {.scalars = {{"eat", 1}}});
              }),
              HasSubstr("scalars['eat']=1: the program has no scalar 'eat'; did you mean 'eta'?"));
  const Program open = Program::build({define("Z", {i, j}, a * scalar("mu"))});
  EXPECT_THAT(message_of([&] {
                open.run({{"X", ones}});
              }),
              HasSubstr("scalar 'mu' has no value: give it with scalars['mu']"));
}

TEST_F(ApiExpression, StandsOnceHoweverOftenItIsRead) {
  const Variable z = define("Z", {i, j}, a * a);
  const Variable w = define("W", {i, j}, z(i, j) + a);
  EXPECT_EQ(Program::build({w, z}).text(),
            "dims i=2 j=3\n"
            "input X[i,j] : f32\n"
            "Z[i,j] = X[i,j] * X[i,j]\n"
            "W[i,j] = Z[i,j] + X[i,j]\n"
            "output W, Z\n");
}

TEST_F(ApiExpression, ComputesWhatStandsTwiceOnce) {
  const Expression e = exp(a);
  const Variable z = define("Z", {i, j}, e * e + e);
  EXPECT_THAT(Program::build({z}).text(),
              HasSubstr("Z_shared[i,j] = exp(X[i,j])\nZ[i,j] = Z_shared[i,j] * Z_shared[i,j] + Z_shared[i,j]\n"));
  // Under labels of its own, for two statements, beside a tensor that has the name, and with a macro that reduces k.
  const Expression length = norm({k}, y(j, k)) + 1;
  const Variable taken = define("U_shared", {i, j}, a);
  const Variable u = define("U", {i, j}, a / length + taken(i, j));
  const Variable w = define("W", {j}, length * length);
  EXPECT_THAT(Program::build({u, w}).text(),
              HasSubstr("U_shared2[j] = norm[k](Y[j,k]) + 1\nU[i,j] = X[i,j] / U_shared2[j] + U_shared[i,j]\n"
                        "W[j] = U_shared2[j] * U_shared2[j]\n"));
  // What is cheap, or reads no tensor, stays where it is.
  EXPECT_EQ(text_of((a + 1) * (a + 1)), "(X[i,j] + 1) * (X[i,j] + 1)");
  const Expression root = sqrt(Expression(i) + 2);
  EXPECT_EQ(text_of(a * root + root), "X[i,j] * sqrt(i + 2) + sqrt(i + 2)");
}

TEST_F(ApiExpression, RoundsWhatStandsTwiceWhereItsTensorIsStored) {
  const Variable halves = input("H", {i}, DType::f16);
  const Expression square = sqrt(sq(halves(i) * halves(i)));  // 90000, which is no f16
  const Variable z = define("Z", {i}, square / (square + square));
  const Program program = Program::build({z});
  EXPECT_THAT(program.text(), HasSubstr("Z_shared[i] = "));
  const Tensor data = Tensor::copy({2}, std::array{einrel::to_float16(300), einrel::to_float16(-3)});
  const Tensor ratio = program.run({{"H", data}})["Z"];
  ASSERT_EQ(ratio.dtype(), DType::f16);
  EXPECT_EQ(to_float(ratio.at<einrel::Float16>({0})), 0.5F);
  EXPECT_EQ(to_float(ratio.at<einrel::Float16>({1})), 0.5F);

  // 1 + 1/256 rounds to 1 in bf16, so a copy that was rounded would differ from 1 by nothing.
  const Variable coarse = input("B", {i}, DType::bf16);
  const Expression root = sqrt(sq(coarse(i) + 1));
  const Variable difference = define("D", {i}, (root - 1) * 256 + (root - root));
  const Tensor small = Tensor::copy({2}, std::array{einrel::to_bfloat16(1.0F / 256), einrel::to_bfloat16(0)});
  const Tensor found = Program::build({difference}).run({{"B", small}})["D"];
  EXPECT_EQ(to_float(found.at<einrel::BFloat16>({0})), 1.0F);
  EXPECT_EQ(to_float(found.at<einrel::BFloat16>({1})), 0.0F);
}

TEST_F(ApiExpression, GivesWhatCopiesWouldGive) {
  const Tensor data({2, 3}, std::vector<float>{0.5F, -1, 2, 0.25F, 1, -0.125F});
  Expression power = a;  // a to the power of 2 to the power of 40, if nothing were shared 10^12 factors
  for (int n = 0; n < 40; ++n) power = power * power;
  const RunResult powers = Program::build({define("Z", {i, j}, power)}).run({{"X", data}});
  EXPECT_THAT(powers["Z"].values<float>(), ElementsAre(0, 1, INFINITY, 0, 1, 0));

  const Label n("n", 2);
  const Expression window = exp(x(n, i + j));  // i and j get their extents nowhere: it has to be copied
  const Variable kernel = input("K", {i});
  const Variable row = define("R", {n, j}, sum({i}, window / (1 + window) * kernel(i)));
  const Label open_i("i");
  const Label open_j("j");
  const Variable longer = input("L", {n, Label("m")});
  const Expression open = exp(longer(n, open_i + open_j));
  const Variable other = input("K", {open_i});
  const Variable shape = input("S", {open_j});
  const Variable tall = define("T", {n, open_j}, sum({open_i}, open / (1 + open) * other(open_i)) + shape(open_j));
  const Program program = Program::build({tall});
  EXPECT_THAT(program.text(), HasSubstr("exp(L[n,i+j]) / (1 + exp(L[n,i+j]))"));
  const Tensor wide({2, 4}, std::vector<float>{0.5F, -1, 2, 0.25F, 1, -0.125F, 3, 0});
  const RunResult result = program.run(
      {{"L", wide}, {"K", Tensor({2}, std::vector<float>{2, 1})}, {"S", Tensor({3}, std::vector<float>{0, 0, 0})}});
  const auto sigmoid_of = [](double value) { return std::exp(value) / (1 + std::exp(value)); };
  EXPECT_NEAR(result["T"].at<float>({1, 1}), 2 * sigmoid_of(-0.125) + sigmoid_of(3), 1e-6);
}

TEST_F(ApiExpression, MayBeALongSum) {
  Expression total = a;
  for (int n = 1; n < 20000; ++n) total = total + n;
  EXPECT_THAT(text_of(total), HasSubstr("X[i,j] + 1 + 2"));
}

TEST_F(ApiExpression, RefusesCopiesWithoutNumber) {
  const Label open("m");
  Expression power = input("L", {Label("q")})(open + Label("p"));
  for (int n = 0; n < 60; ++n) power = exp(power) - power;
  const Variable z = define("Z", {open}, max({Label("p")}, power));
  EXPECT_THAT(message_of([&] { Program::build({z}); }), HasSubstr("help: define what it repeats"));
}

TEST_F(ApiExpression, InvertsMatrices) {
  const Label r("r", 2);
  const Label c("c", 2);
  const Variable m = input("M", {i, r, c});
  const Program program = Program::build({define("Z", {i, r, c}, inverse({r, c}, m(i, r, c)))});
  EXPECT_THAT(program.text(), HasSubstr("Z[i,r,c] = inverse[r,c](M[i,r,c])"));
  const RunResult result = program.run({{"M", Tensor({2, 2, 2}, std::vector<float>{2, 0, 0, 4, 0, 1, 1, 0})}});
  EXPECT_THAT(result["Z"].values<float>(), ElementsAre(0.5F, 0, 0, 0.25F, 0, 1, 1, 0));
  EXPECT_THAT(message_of([&] { inverse({r}, m(i, r, c)); }), HasSubstr("2 of them, not 1"));
}

TEST_F(ApiExpression, ComputesComplexNumbers) {
  using C = std::complex<float>;
  const Label r("r", 2);
  const Label c("c", 2);
  const Variable first = input("A", {r, c}, DType::c64);
  const Variable second = input("B", {c}, DType::c64);
  const Program program = Program::build({define("Z", {r}, sum({c}, first(r, c) * conj(second(c)))),
                                          define("S", {r}, abs(first(r, 0)) + real(first(r, 1)) * imag(first(r, 1))),
                                          define("M", {r}, complex(real(first(r, 0)), 1) == first(r, 0))});
  EXPECT_THAT(program.text(), HasSubstr("input A[r,c] : c64"));
  EXPECT_THAT(program.text(), HasSubstr("Z[r] = sum[c] A[r,c] * conj(B[c])"));
  EXPECT_EQ(program.outputs().front().dtype, DType::c64);
  EXPECT_EQ(program.outputs().front().labels, std::vector<std::string>{"r"});
  const Tensor given({2, 2}, std::vector<C>{{3, 4}, {1, -1}, {0, 1}, {2, 2}});
  EXPECT_EQ(given.count(), 4);
  const RunResult result = program.run({{"A", given}, {"B", Tensor({2}, std::vector<C>{{1, 1}, {0, 2}})}});
  // (3+4i)(1-i) + (1-i)(-2i), i (1-i) + (2+2i)(-2i)
  EXPECT_THAT(result["Z"].values<C>(), ElementsAre(C(5, -1), C(5, -3)));
  EXPECT_THAT(result["S"].values<float>(), ElementsAre(4, 5));
  EXPECT_THAT(result["M"].values<bool>(), ElementsAre(false, true));
  EXPECT_THAT(message_of([&] {
                program.run({{"A", Tensor({2, 2}, std::vector<float>(4))}, {"B", given}});
              }),
              HasSubstr("'A' is declared c64, but the tensor given for A holds f32"));
}

TEST_F(ApiExpression, FactorsMatrices) {
  const Label r("r", 3);
  const Label c("c", 2);
  const Label between("k", 2);
  const Variable m = input("M", {r, c});
  const Program program = Program::build({define("Q", {r, between}, qr_q({r, c, between}, m(r, c))),
                                          define("R", {between, c}, qr_r({r, c, between}, m(r, c)))});
  EXPECT_THAT(program.text(), HasSubstr("Q[r,k] = qr_q[r,c,k](M[r,c])"));
  const RunResult result = program.run({{"M", Tensor({3, 2}, std::vector<float>{2, 3, 1, 3, 2, 0})}});
  const auto near = [](float value) { return testing::FloatNear(value, 1e-6F); };
  EXPECT_THAT(result["R"].values<float>(), ElementsAre(near(-3), near(-3), near(0), near(-3)));
  EXPECT_THAT(result["Q"].values<float>(), ElementsAre(near(-2 / 3.F), near(-1 / 3.F), near(-1 / 3.F), near(-2 / 3.F),
                                                       near(-2 / 3.F), near(2 / 3.F)));
  EXPECT_THAT(message_of([&] { qr_q({r, c}, m(r, c)); }), HasSubstr("3 of them, not 2"));
}

TEST_F(ApiExpression, IsDifferentiated) {
  const Variable loss = define("loss", {}, sum({i, j}, sq(x(i, j)) * stop_gradient(x(i, j))));
  const Variable z = define("Z", {i, k}, sum({j}, x(i, j) * y(j, k)));
  const Variable s = input("S", {i, k});
  const std::vector<Variable> by_x = gradient({"G"}, loss, {x});
  const std::vector<Variable> both = gradient({"GX", "GY"}, z, {x, y}, s);
  const Variable step = define("V", {i, j}, x(i, j) - by_x[0](i, j));
  const Program program = Program::build({step, both[0], both[1]});
  EXPECT_THAT(program.text(), HasSubstr("gradient G = loss wrt X\n"));
  EXPECT_THAT(program.text(), HasSubstr("gradient GX, GY = Z wrt X, Y given S\n"));
  const Tensor one({2, 4}, std::vector<float>(8, 1));
  const Tensor ones({3, 4}, std::vector<float>(12, 1));
  const RunResult result =
      program.run({{"X", Tensor({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})}, {"Y", ones}, {"S", one}});
  EXPECT_THAT(result["V"].values<float>(), ElementsAre(-1, -6, -15, -28, -45, -66));  // x - 2 x * x
  EXPECT_THAT(result["GX"].values<float>(), ElementsAre(4, 4, 4, 4, 4, 4));
  EXPECT_THAT(result["GY"].values<float>(), ElementsAre(5, 5, 5, 5, 7, 7, 7, 7, 9, 9, 9, 9));
  EXPECT_THAT(message_of<UserError>([&] { gradient({"A", "B"}, loss, {x}); }), HasSubstr("2 names for 1 variable"));
}

TEST_F(ApiExpression, GoesOnFromStepToStep) {
  const Variable w = state("W", {i, j}, 2 * x(i, j));
  const Variable n = state("n", {}, cast(DType::i64, 0));
  const Expression half = w(i, j) / 2;
  const Variable next_w = next(w, {i, j}, half * half + half);
  const Variable next_n = next(n, {}, n() + iteration());
  const Variable most = define("most", {}, max({i, j}, next_w(i, j)));
  const Program program = Program::build({most, next_n}, {}, {.next = {next_w, next_n}, .until = most() > 1000});
  EXPECT_THAT(program.text(), HasSubstr("state W[i,j] = 2 * X[i,j]\n"));
  EXPECT_THAT(program.text(), HasSubstr("next n[] = n[] + iteration\n"));
  EXPECT_THAT(program.text(), HasSubstr("until most[] > 1000\n"));
  const einrel::Inputs inputs{{"X", Tensor({2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5})}};
  // From 2 x = w: w/2 (w/2 + 1) is 30 after 10, 240 after 30, 14520 after 240.
  const RunResult two = program.run(inputs, {.steps = 2});
  EXPECT_THAT(two["most"].values<float>(), ElementsAre(240));
  EXPECT_THAT(two["next_n"].values<std::int64_t>(), ElementsAre(1));
  EXPECT_EQ(two.state.steps_done, 2);
  EXPECT_THAT(two.state.tensors.at("W").values<float>(), ElementsAre(0, 2, 12, 42, 110, 240));
  const RunResult all = program.run(inputs, {.steps = 100, .state = two.state});
  EXPECT_EQ(all.state.steps_done, 3) << "until ends it";
  EXPECT_THAT(all["most"].values<float>(), ElementsAre(14520));
  EXPECT_THAT(all["next_n"].values<std::int64_t>(), ElementsAre(3));
  for (const std::int64_t sites : {1, 2, 3}) {
    const RunResult planned = program.run(inputs, {.sites = sites, .steps = 3});
    EXPECT_THAT(planned.state.tensors.at("W").values<float>(), ElementsAre(0, 2, 42, 462, 3080, 14520));
  }
}

TEST_F(ApiExpression, SaysWhatIsWrongWithStepsAndStates) {
  const Variable w = state("W", {i, j}, x(i, j));
  const Variable next_w = next(w, {i, j}, w(i, j) + 1);
  const Program program = Program::build({next_w}, {}, {.next = {next_w}});
  const Program plain = Program::build({define("Z", {i, j}, x(i, j) * 2)});
  const Variable loss = define("loss", {}, sum({i, j}, sq(w(i, j))));
  EXPECT_THAT(message_of([&] {
                Program::build({loss}, {}, {.minimize = {{loss, {}, sgd(1)}}});
              }),
              HasSubstr("over is empty"));
  const Program trained = Program::build({loss}, {}, {.minimize = {{loss, {w}, sgd(0.25)}}});
  EXPECT_THAT(trained.text(), HasSubstr("minimize loss over W by sgd(0.25)\n"));
  const Tensor value({2, 3}, std::vector<float>(6, 1));
  EXPECT_THAT(trained.run({{"X", value}}, {.steps = 2}).state.tensors.at("W").values<float>(),
              ElementsAre(0.25F, 0.25F, 0.25F, 0.25F, 0.25F, 0.25F));
  EXPECT_THAT(message_of([&] { plain.run({{"X", value}}, {.steps = 2}); }), HasSubstr("programs with state"));
  EXPECT_THAT(message_of([&] { program.run({{"X", value}}, {.steps = 0}); }), HasSubstr("'steps' is 0"));
  EXPECT_THAT(message_of([&] { program.run({}); }), HasSubstr("missing input X"));
  EXPECT_THAT(message_of([&] { program.run({{"X", value}}, {.state = State{}}); }), HasSubstr("no first value"));
  EXPECT_THAT(message_of([&] {
                program.run({{"X", value}}, {.state = State{{{"V", value}}}});
              }),
              HasSubstr("no state 'V'"));
  EXPECT_THAT(message_of([&] { program.run({{"X", value}}, {.state = State{{{"W", value}}, -1}}); }), HasSubstr("-1"));
  const Tensor other({3}, std::vector<float>(3, 1));
  EXPECT_THAT(message_of([&] { program.run({{"X", value}}, {.state = State{{{"W", other}}}}); }), HasSubstr("(3,)"));
  EXPECT_THAT(message_of([&] {
                program.run({{"X", value}}, {.scalars = {{"iteration", 2}}});
              }),
              HasSubstr("scalar 'iteration' cannot be given"));
  EXPECT_EQ(program.run({{"X", value}}, {.state = State{{{"W", value}}, 7}}).state.steps_done, 8);
}

TEST_F(ApiExpression, MayBeALongChainOfVariables) {
  Variable last = input("V0", {i});
  for (int n = 1; n < 20000; ++n) last = define("V" + std::to_string(n), {i}, last(i) + 1);
  const Variable copy = last;
  last = x;
  EXPECT_EQ(copy.name(), "V19999");
}

TEST_F(ApiExpression, ShowsTheStatementThatIsWrong) {
  const Variable bad = define("Z", {i, k}, x(i, j) * y(j, k));
  const std::string message = message_of([&] { Program::build({bad}); });
  EXPECT_THAT(message, HasSubstr("Z[i,k] = X[i,j] * Y[j,k]"));
  EXPECT_THAT(message, HasSubstr("sum[j]"));
  EXPECT_THAT(message_of([&] { Program::build({define("Z", {i}, x(i))}); }), HasSubstr("Z[i] = X[i]"));
  EXPECT_THAT(message_of([&] {
                Program::build({define("Z", {i}, sum({j}, softmax({j, k}, a)))});
              }),
              HasSubstr("Z[i] = sum[j] softmax[j,k](X[i,j])"));
}

TEST_F(ApiExpression, RefusesTwoExtentsOfALabelAndTwoVariablesOfAName) {
  const Variable other = input("Q", {Label("j", 5)});
  EXPECT_THAT(message_of([&] { Program::build({define("Z", {i}, sum({j}, a * other(j)))}); }), HasSubstr("'j'"));
  const Variable twin = input("X", {j});
  EXPECT_THAT(message_of([&] { Program::build({define("Z", {i, j}, a * twin(j))}); }), HasSubstr("'X'"));
  EXPECT_NE(message_of([&] { Program::build({}); }), "");
  EXPECT_NE(message_of([&] { Program::build({x, x}); }), "");
}

TEST_F(ApiExpression, RefusesWhatHasNoText) {
  for (const char* const name : {"", "a b", "A[i]", "1a", "sum", "input", "x\noutput y", "a#"}) {
    EXPECT_NE(message_of([&] { Label{name}; }), "") << name;
    EXPECT_NE(message_of([&] { input(name, {i}); }), "") << name;
    EXPECT_NE(message_of([&] { scalar(name); }), "") << name;
    EXPECT_NE(message_of([&] { define(name, {i}, 1); }), "") << name;
    EXPECT_NE(message_of([&] { view(name, {i}, x, {i}); }), "") << name;
  }
  EXPECT_THAT(message_of([&] { Label("i", -1); }), HasSubstr("extent -1"));
  EXPECT_THAT(message_of([&] { text_of(a * std::nan("")); }), HasSubstr("NaN"));
  EXPECT_NE(message_of([&] { text_of(a * std::numeric_limits<std::uint64_t>::max()); }), "");
  for (const Expression& index : {i * i, Expression(2.5), Expression(i) / 2, Expression(i) * 2 * j}) {
    EXPECT_THAT(message_of([&] { y(0, index); }), HasSubstr("index 1 of an element of Y is no sum of labels"));
  }
  EXPECT_THAT(message_of([&] { pad(a + 1, 0); }), HasSubstr("pad takes an element"));
  EXPECT_THAT(message_of([&] { pad(a, i); }), HasSubstr("pad takes an element"));
  EXPECT_EQ(message_of([&] { Label("größe", 3); }), "");
}

TEST_F(ApiExpression, StaysWholeWhenItIsMovedFrom) {
  Expression formula = a + 1;
  const Expression moved = std::move(formula);
  EXPECT_EQ(text_of(formula), text_of(moved));  // NOLINT(bugprone-use-after-move): that is what is tested
}

}  // namespace
