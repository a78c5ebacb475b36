"""Functions of elements, beside NumPy's."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from drawing import HALVES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import einrel as er

BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "hypot",
    "logaddexp",
    "copysign",
    "floor_divide",
]
BINARY += ["remainder", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
BINARY += ["logical_and", "logical_or", "logical_xor"]
UNARY = ["negative", "positive", "abs", "square", "sign", "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
UNARY += ["asinh", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "signbit", "logical_not"]
OF_POSITIVE = ["log", "log1p", "log2", "log10", "sqrt", "reciprocal"]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e300, -1e300, 1e-300, np.inf, -np.inf, np.nan])


def close(ours: er.Array, numpys: Any, tolerance: float = 1e-12) -> None:
    """Equal but for rounding, with the type and the shape of NumPy's."""
    assert ours.dtype == numpys.dtype
    assert ours.shape == numpys.shape
    np.testing.assert_allclose(np.asarray(ours), numpys, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts(name: str, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(3, 1, 4)), rng.normal(size=(5, 1))
    close(getattr(er, name)(x, y), getattr(np, name)(x, y))


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4)) * 3
    close(getattr(er, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erfc_is_accurate_where_it_is_small(dtype: Any) -> None:
    x = np.linspace(-6, 9, 1001, dtype=dtype)
    expected = np.array([math.erfc(value) for value in x])
    np.testing.assert_allclose(np.asarray(er.erfc(x)), expected, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", OF_POSITIVE)
def test_unary_of_positive_numbers(name: str, rng: np.random.Generator) -> None:
    x = rng.random(size=(3, 4)) + 0.1
    close(getattr(er, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("name", UNARY)
def test_unary_of_special_numbers(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(SPECIAL)
    usual = np.abs(SPECIAL) < 1e200 if name in ("sin", "cos", "tan") else np.full(SPECIAL.shape, True)
    close(getattr(er, name)(SPECIAL)[np.flatnonzero(usual)], expected[usual])


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "copysign", "maximum", "minimum", "less", "equal"])
def test_binary_of_special_numbers(name: str) -> None:
    x, y = SPECIAL[:, None], SPECIAL[None]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    close(getattr(er, name)(x, y), expected)


@pytest.mark.parametrize("name", ["acosh", "atanh"])
def test_inverse_functions(name: str, rng: np.random.Generator) -> None:
    x = rng.random(50) * 0.98 + (1 if name == "acosh" else -0.49)
    close(getattr(er, name)(x), getattr(np, "arc" + name[1:])(x))


@pytest.mark.parametrize("left", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("right", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "maximum", "less"])
def test_types_are_promoted_as_in_numpy(name: str, left: str, right: str) -> None:
    x, y = np.array([1, 0, 1]).astype(left), np.array([1, 1, 1]).astype(right)
    numpys = getattr(np, name)(x, y)
    if name == "divide" and {left, right} == {"bool"}:
        numpys = numpys.astype("float64")
    if numpys.dtype == np.float16 and {left, right} & {"int32", "int64"}:
        numpys = numpys.astype("float64")
    close(getattr(er, name)(x, y), numpys, 1e-3)


@pytest.mark.parametrize("number", [2, 2.5, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32", "float64"])
def test_numbers_take_the_type_of_arrays(dtype: str, number: float) -> None:
    x = np.arange(4).astype(dtype)
    expected = x * number
    if isinstance(number, float) and dtype.startswith("int"):
        expected = expected.astype("float64")
    close(er.asarray(x) * number, expected)
    close(number * er.asarray(x), expected)
    close(er.asarray(x) - number, x - number)


def test_small_integers_are_widened() -> None:
    for given_, wide in [("int8", "int32"), ("uint8", "int32"), ("uint16", "int32"), ("uint32", "int64")]:
        x = np.array([1, 100]).astype(given_)
        close(er.asarray(x) + x, (x.astype(wide) + x.astype(wide)))


def _normalised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: er.var(x, axis=-1), lambda x: x.var(-1)),
        (lambda x: er.std(x, axis=-1), lambda x: x.std(-1)),
        (lambda x: er.std(x, axis=-1, correction=1), lambda x: x.std(-1, ddof=1)),
        (
            lambda x: er.softmax(x),
            lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max()).sum(-1)[..., None],
        ),
        (lambda x: er.layer_norm(x), _normalised),
        (lambda x: er.rms_norm(x), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)),
        (lambda x: er.linalg.vector_norm(x, axis=-1), lambda x: np.linalg.norm(x, axis=-1)),
        (lambda x: er.linalg.vector_norm(x, axis=-1, ord=4), lambda x: np.linalg.norm(x, axis=-1, ord=4)),
        (lambda x: er.linalg.matrix_norm(x), lambda x: np.linalg.norm(x)),
    ],
)
def test_functions_of_halves_round_once(dtype: Any, ours: Any, numpys: Any) -> None:
    """Neither the mean, 257, is a bfloat16, nor the square of 258 a float16."""
    x = np.array([[256, 258, 256, 258]]).astype(dtype)
    np.testing.assert_array_equal(np.asarray(ours(x)), numpys(x.astype(float)).astype(dtype))


def test_bfloat16_is_computed_with() -> None:
    x = np.array([1.0, 2.5, -3.0]).astype(ml_dtypes.bfloat16)
    ours = er.asarray(x) * 2
    assert ours.dtype == er.bfloat16
    np.testing.assert_array_equal(np.asarray(ours).astype("f4"), [2.0, 5.0, -6.0])
    assert (er.asarray(x) + np.ones(3, "f2")).dtype == np.float32


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, -1.5, 0])
def test_powers(exponent: float, rng: np.random.Generator) -> None:
    x = rng.random(10) + 0.5
    close(er.asarray(x) ** exponent, x**exponent)
    close(er.pow(x, np.full(10, exponent, "f8")), x**exponent)
    close(exponent ** er.asarray(x), exponent**x) if exponent > 0 else None


def test_powers_of_integers() -> None:
    x = np.arange(5)
    close(er.asarray(x) ** 3, x**3)
    close(2 ** er.asarray(x), 2**x)


def test_truth_values() -> None:
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    for operation in ("__and__", "__or__", "__xor__"):
        close(getattr(er.asarray(x), operation)(y), getattr(x, operation)(y))
    close(~er.asarray(x), ~x)
    close(er.asarray(x) + y, x + y)
    close(er.asarray(x) * y, x * y)
    with pytest.raises(TypeError, match="subtract of bools"):
        er.asarray(x) - y


def test_where_and_clip(rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 5))
    close(er.where(x > 0, x, 0), np.where(x > 0, x, 0))
    close(er.where(x > 0, np.arange(5), x), np.where(x > 0, np.arange(5), x))
    close(er.clip(x, -0.5, 0.5), np.clip(x, -0.5, 0.5))
    close(er.clip(er.asarray(x), max=0.1), np.clip(x, None, 0.1))


def test_casts_go_towards_zero() -> None:
    x = np.array([1.9, -1.9, 0.0])
    close(er.astype(x, "int32"), x.astype("int32"))
    close(er.astype(x, bool), x.astype(bool))
    close(er.astype(np.arange(3), "float32"), np.arange(3).astype("float32"))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_broadcastable_shapes(data: Any) -> None:
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4)).input_shapes
    elements = st.floats(-100, 100, width=32)
    x, y = (data.draw(hnp.arrays("f4", shape, elements=elements)) for shape in shapes)
    close(er.add(x, y), np.add(x, y), 1e-6)
    close(er.multiply(x, y) - x, np.multiply(x, y) - x, 1e-2)


def test_what_the_language_lacks_is_named() -> None:
    with pytest.raises(NotImplementedError, match=r"einrel.nextafter: .*numpy.nextafter takes our arrays"):
        er.nextafter(1.0, 2.0)


def test_logarithms_of_powers_are_whole() -> None:
    for base, function, exponents in ((2, "log2", range(-1022, 1024)), (10, "log10", range(-300, 300))):
        powers = np.array([float(base) ** exponent for exponent in exponents])
        np.testing.assert_array_equal(getattr(er, function)(powers), getattr(np, function)(powers))
        np.testing.assert_array_equal(getattr(er, function)(powers), np.array(exponents, "f8"))
    narrow = (2.0 ** np.arange(-126, 128)).astype("f4")
    np.testing.assert_array_equal(er.log2(narrow), np.log2(narrow), strict=True)
    x = er.asarray(np.array([8.0, 5.0]))
    close(er.grad(er.sum(er.log2(x)), x), 1 / np.array([8.0, 5.0]) / np.log(2))


SIZES = np.array([0.0, -0.0, 1.0, -2.5, 3.0, 0.1, -0.1, 1e15, -1e20, 2.0**60, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_quotients_and_rests_are_numpys(name: str, rng: np.random.Generator) -> None:
    def same(x: Any, y: Any) -> None:
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, y)
        ours = np.asarray(getattr(er, name)(x, y))
        np.testing.assert_array_equal(ours, expected, strict=True)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(np.where(np.isnan(expected), ours, expected)))

    same(SIZES[:, None], SIZES)
    same(np.arange(-500, 500) / 10, np.float64(0.1))
    x, y = (rng.normal(size=500) * 10 ** rng.uniform(-3, 3, 500) for _ in range(2))
    same(x, y)
    same(x.astype("f4"), y.astype("f4"))
    same(np.float32(1e10), np.float32(3))
    whole = rng.integers(-(2**63), 2**63 - 1, 500), rng.integers(-(2**63), 2**63 - 1, 500) >> rng.integers(0, 63, 500)
    same(*whole)
    same(*[n.astype("i4") for n in whole])
    same(np.array([-(2**63), 2**63 - 1, 5]), np.array([-1, -(2**63), 0]))


def test_gradients_of_remainder_are_those_of_its_definition() -> None:
    x, y = (er.asarray(np.array(v)) for v in ([5.0, -5.0, 6.0, 0.0, 7.5], [3.0, 3.0, 3.0, 3.0, -2.0]))
    by_x, by_y = er.grad(er.sum(er.remainder(x, y)), [x, y])
    assert by_x.tolist() == [1.0] * 5
    assert by_y.tolist() == [-1.0, 2.0, -2.0, 0.0, 4.0]


def test_exponents_of_numpys_have_their_type() -> None:
    for x, n in (
        (np.array([2000], "i4"), np.int64(3)),
        (np.array([1.1], "f4"), np.float64(20.5)),
        (np.array([1.5], "f4"), np.int64(2)),
        (np.array([3], "f2"), np.float64(2.5)),
    ):
        close(er.asarray(x) ** n, x**n)


@pytest.mark.parametrize("name", ["sinh", "cosh"])
@pytest.mark.parametrize(("dtype", "last"), [("f4", 89.4), ("f8", 710.4)])
def test_hyperbolic_functions_round_large_numbers_little(name: str, dtype: str, last: float) -> None:
    """Up to where the result is infinite, and exp(x) is long before."""
    x = np.array([*np.linspace(-last, last, 10001), np.inf, -np.inf, last + 2, 0.0]).astype(dtype)
    exact = getattr(np, name)(x.astype("longdouble"))
    with np.errstate(over="ignore"):
        close(getattr(er, name)(x), exact.astype(dtype), 4 * np.finfo(dtype).eps)


def test_integers_to_negative_powers_are_refused() -> None:
    x, n = er.asarray(np.array([2, 3])), er.asarray(np.array([1, -1]))
    for exponent in (-1, np.int64(-1), np.array([1, -1]), n):
        with pytest.raises(ValueError, match="negative exponent"):
            x**exponent
    with pytest.raises(er.RunError, match="positions are from -1 up to 0"):
        (x ** (n + 0)).compute()
    assert (x ** (n + 1)).tolist() == [4, 1]


def test_integers_to_negative_powers_are_refused_of_traced_numbers(rng: np.random.Generator) -> None:
    """Which are known when the function is called."""
    power = er.jit(lambda x, n: x**n)
    for x in (np.array([2, 3]), np.array([True, False])):
        with pytest.raises(ValueError, match=f"{x.dtype} to the power of -1: a negative exponent of integers"):
            power(x, -1)
    assert power(np.array([2, 3]), 3).tolist() == [8, 27]
    np.testing.assert_array_equal(power(np.array([2.0, 4.0]), -1), [0.5, 0.25])


def test_whole_numbers_of_any_size_stand_beside_floats() -> None:
    x = np.array([1.0, -np.inf], ml_dtypes.bfloat16)
    for number in (2**63, -(2**70)):
        for function in (lambda x, n=number: x + n, er.jit(lambda x, n=number: n + x)):
            np.testing.assert_array_equal(np.asarray(function(er.asarray(x))).astype("f8"), [number, -np.inf])
    for dtype in (ml_dtypes.bfloat16, "f4", "f8"):
        powers = er.pow(2**70, er.asarray(np.array([0.5, 1.0], dtype)))
        np.testing.assert_array_equal(np.asarray(powers).astype("f8"), [2.0**35, 2.0**70])
    with pytest.raises(OverflowError):
        er.asarray(x) * 10**400


@pytest.mark.parametrize("dtype", [np.dtype("f8"), np.dtype("f4"), *HALVES], ids=str)
def test_round_gives_the_nearest_and_keeps_the_sign_of_zeros(dtype: Any) -> None:
    ends = [np.inf, -np.inf, np.nan, 0.0, -0.0, 0.49999999999999994, -0.49999999999999994, 0.49999997, -0.49999997]
    large = [1023.5, -2049, 4194303.5, 8388609, -8388609, 2.0**51 + 0.5, 2.0**52 + 1, -(2.0**52) - 1]
    with np.errstate(over="ignore"):
        x = np.array([*np.arange(-40, 41) * 0.25, *ends, *large]).astype(dtype)
        expected = np.round(x)
    found = np.asarray(er.round(x))
    np.testing.assert_array_equal(found.astype("f8"), expected.astype("f8"))
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
