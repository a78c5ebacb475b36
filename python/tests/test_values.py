"""Functions of operands of all kinds, beside NumPy's: values, types, shapes, and what is refused.

Operands are drawn: arrays, arrays without dimensions, NumPy's scalars and Python's numbers, of every type, huge whole
numbers among them; and so is how they are computed: jitted or not, by plans for some sites, in little memory.
EINREL_VALUE_ROUNDS=1000 draws that many for each function (and makes test_derivatives.py longer, too).

NumPy computes of float16 and bfloat16 as float32, of which the result is rounded to the type that it has.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import BFLOAT16, FLOAT16, HALVES, ROUNDS, smallest, way

import einrel as er

DTYPES = [*[np.dtype(name) for name in ("int32", "int64", "float32", "float64", "float16", "bool")], BFLOAT16]
WHOLE = [
    0,
    1,
    -1,
    2,
    3,
    5,
    -7,
    100,
    30000,
    2**24 + 1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**70),
]
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 1e-3, 100.0, -3e4, 7e4, 1e10, 1e30, np.inf, -np.inf, np.nan]
REFUSED = ("of bools: cast them first, or use logical functions", "could not be promoted by")  # the latter by NumPy
Function = Callable[..., Any]


def array(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Elements that are often small, and sometimes the type's extremes."""
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind == "i":
        small, large = rng.integers(-9, 10, shape), rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape)
        return np.where(rng.random(shape) < 0.85, small, large).astype(dtype)
    with np.errstate(all="ignore"):
        values = np.where(rng.random(shape) < 0.6, rng.normal(size=shape) * 3, rng.choice(REAL, shape))
        return np.asarray(values).astype(dtype)


def operand(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """An array half of the time, else a number of some kind."""
    dtype = DTYPES[rng.integers(len(DTYPES))]
    kind = rng.integers(8)
    if kind < 4:
        return array(rng, dtype, tuple(1 if rng.random() < 0.2 else extent for extent in shape[rng.integers(2) :]))
    if kind == 4:
        return array(rng, dtype, ())
    if kind == 5:
        return array(rng, dtype, ())[()]
    if kind == 6:
        return WHOLE[rng.integers(len(WHOLE))]
    return [bool(rng.integers(2)), REAL[rng.integers(len(REAL))]][int(rng.random() < 0.7)]


def result_of(function: Function, operands: list[Any]) -> Any:
    """What it gives, or the error that it raises."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = function(*operands)
            return np.asarray(result) if isinstance(result, er.Array) else result
    except Exception as error:
        return error


def as_ours(value: Any) -> Any:
    """The same for our functions, which get our arrays."""
    return er.asarray(value) if isinstance(value, np.ndarray) else value


def shown(operands: list[Any]) -> str:
    return ", ".join(f"{x!r}" if not hasattr(x, "dtype") else f"{x!r}:{x.dtype}" for x in operands)


def widened(x: Any) -> Any:
    """The same as float32, if it is of half precision."""
    return x.astype("f4") if getattr(x, "dtype", None) in HALVES else x


def of_halves(function: Function, are_weak: bool = True) -> Function:
    """NumPy's function of halves: computed in float32 and rounded once. Numbers beside them are weak, so that they are
    rounded to halves before; or they are f64 and i64, as in lists of arrays."""

    def call(*operands: Any) -> Any:
        dtypes = {x.dtype for x in operands if hasattr(x, "dtype")} - {np.dtype("bool")}
        halves = dtypes & set(HALVES)
        if not halves:
            return function(*operands)
        if are_weak and len(dtypes) == 1:
            (half,) = halves
            operands = tuple(x if hasattr(x, "dtype") else float(np.array(x, "f8").astype(half)) for x in operands)
        result = function(*map(widened, operands))
        as_float16 = function(*[x.astype(FLOAT16) if getattr(x, "dtype", None) == BFLOAT16 else x for x in operands])
        is_half = as_float16.dtype == FLOAT16 and len(halves) == 1
        return result.astype(*halves) if is_half else result

    return call


TOLERANCES = {"bfloat16": 1.6e-2, "float16": 2e-3, "float32": 4e-7}


def is_refused(result: Any) -> bool:
    """What the language lacks, by name."""
    is_reason = isinstance(result, TypeError) and any(reason in str(result) for reason in REFUSED)
    return is_reason or isinstance(result, NotImplementedError)


def check_same(ours: Any, numpys: Any, tolerance: float, what: str, scale: Any = 0.0) -> None:
    """But for roundings, also those of terms as large as `scale`."""
    if is_refused(ours) and not isinstance(numpys, Exception):
        return
    if isinstance(numpys, OverflowError) and getattr(ours, "dtype", None) == np.bool_:
        return  # a truth value compared with a whole number of more than 64 bits
    if isinstance(ours, OverflowError) and what.startswith(("where", "np.where")):
        return  # NumPy's wraps such numbers
    assert isinstance(ours, Exception) == isinstance(numpys, Exception), f"{what}: {ours!r}, but NumPy {numpys!r}"
    if isinstance(ours, Exception):
        return
    assert (ours.dtype, ours.shape) == (numpys.dtype, np.shape(numpys)), f"{what}: {ours!r}, but NumPy {numpys!r}"
    relative = max(TOLERANCES.get(str(ours.dtype), 0.0), tolerance)
    with np.errstate(all="ignore"):
        absolute = smallest(ours.dtype) + np.nan_to_num(relative * scale, posinf=0.0)
        np.testing.assert_allclose(ours.astype("f8"), numpys.astype("f8"), rtol=relative, atol=absolute, err_msg=what)
        if ours.dtype.kind in "ib":
            np.testing.assert_array_equal(ours, numpys, err_msg=what)


def computed(function: Function, options: dict[str, Any]) -> Function:
    """The function, whose result is computed so."""

    def call(*operands: Any) -> Any:
        result = function(*operands)
        return result.compute(**options) if options and isinstance(result, er.Array) else result

    return call


def check(
    name: str,
    ours: Function,
    numpys: Function,
    count: int,
    tolerance: float = 1e-14,
    scale: Function = lambda *_: 0.0,
) -> None:
    """Draws operands and ways to compute; jitted without options, it has to be exactly as without."""
    rng = np.random.default_rng([*name.encode()])
    jitted = er.jit(lambda *operands: ours(*operands))
    for i in range(ROUNDS):
        shape = tuple(int(extent) for extent in rng.integers(1, 12 if rng.random() < 0.15 else 4, 2))
        operands = [operand(rng, shape) for _ in range(count)]
        if not any(isinstance(x, np.ndarray) for x in operands):  # none of them would be ours
            operands[0] = array(rng, DTYPES[i % len(DTYPES)], shape)
        options = way(rng) if i % 2 else {}
        what = f"{name}({shown(operands)}), {options}"
        given = [as_ours(x) for x in operands]
        expected = result_of(numpys, operands)
        terms = result_of(scale, operands)
        plain = result_of(computed(ours, options), given)
        check_same(plain, expected, tolerance, what, terms)
        if i % 4 == 0:
            traced = result_of(jitted, given)
        elif i % 4 == 1:
            traced = result_of(er.jit(lambda *operands: ours(*operands), **options), given)
        else:
            continue
        if isinstance(traced, (er.ProgramError, NotImplementedError)) and name.startswith("np."):
            continue  # what the language lacks, NumPy computes of elements, which there are none of
        assert isinstance(traced, Exception) == isinstance(plain, Exception), f"jitted {what}: {traced!r}, {plain!r}"
        if isinstance(plain, Exception):
            continue
        check_same(traced, expected, tolerance, f"jitted {what}", terms)
        if not options:  # as f64, which has a NaN that NumPy knows
            np.testing.assert_array_equal(traced.astype("f8"), plain.astype("f8"), err_msg=f"jitted {what}")


def of_bools_as_f64(function: Function) -> Function:
    """NumPy has float16 of bools; ours are f64."""

    def call(*operands: Any) -> Any:
        bools = all(np.asarray(x).dtype == np.bool_ for x in operands)
        return function(*[np.asarray(x, "f8") if bools else x for x in operands])

    return call


BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal"]
BINARY += ["equal", "not_equal", "logical_and", "logical_or", "logical_xor"]


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name: str) -> None:
    check(name, getattr(er, name), of_halves(getattr(np, name)), 2)


@pytest.mark.parametrize("name", ["divide", "hypot", "copysign"])
def test_floating_functions_of_two(name: str) -> None:
    check(name, getattr(er, name), of_halves(of_bools_as_f64(getattr(np, name))), 2, 1e-13)


def power(x: Any, y: Any) -> Any:
    """np.power, which takes the root of -inf at times, NaN, for its power of 0.5, which is inf."""
    result = np.power(x, y)
    if result.dtype.kind != "f":
        return result
    return np.where((np.asarray(x) == -np.inf) & (np.asarray(y) == 0.5), np.inf, result).astype(result.dtype)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "lt", "eq", "pow"])
def test_operators(name: str) -> None:
    function = getattr(operator, name)
    expected = power if name == "pow" else function
    check(name, function, of_halves(of_bools_as_f64(function) if name == "truediv" else expected), 2, 1e-13)


UNARY = ["negative", "positive", "abs", "square", "sign", "isnan", "isfinite", "isinf", "logical_not"]
FLOATING = ["exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sinh", "cosh", "tanh", "signbit"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name: str) -> None:
    check(name, getattr(er, name), of_halves(getattr(np, name)), 1)


@pytest.mark.parametrize("name", FLOATING)
def test_floating_functions_of_one(name: str) -> None:
    check(name, getattr(er, name), of_halves(of_bools_as_f64(getattr(np, name))), 1, 1e-13)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding(name: str) -> None:
    def numpys(x: Any) -> Any:  # which rounds bools to float16
        return x if np.asarray(x).dtype == np.bool_ else getattr(np, name)(x)

    check(name, getattr(er, name), of_halves(numpys), 1)


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """np.where; what the condition is of does not count among types."""
    return of_halves(lambda x, y: np.where(widened(condition), x, y))(x, y)


def clipped(x: Any, low: Any, high: Any) -> Any:
    """np.clip, whose first operand is no number beside the others."""
    return of_halves(np.clip)(np.asarray(x), low, high)


def test_where() -> None:
    check("where", lambda c, x, y: er.where(c, x, y), chosen, 3)


def test_clip() -> None:
    check("clip", lambda x, low, high: er.clip(er.asarray(x), low, high), clipped, 3)
    check("np.clip", lambda x, low, high: np.clip(er.asarray(x), low, high), clipped, 3)


@pytest.mark.parametrize("name", ["logaddexp", "isin", "floor_divide", "remainder"])
def test_other_functions_of_two(name: str) -> None:
    numpys = getattr(np, name)
    expected = of_halves(of_bools_as_f64(numpys) if name == "logaddexp" else numpys, are_weak=name != "isin")
    check(name, getattr(er, name), expected, 2, 1e-12)


def test_powers() -> None:
    check("er.pow", er.pow, of_halves(power), 2, 1e-13)
    check("np.power", np.power, of_halves(power), 2, 1e-13)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "less", "equal"])
def test_numpys_functions_of_our_arrays(name: str) -> None:
    check(f"np.{name}", getattr(np, name), of_halves(getattr(np, name)), 2)


def test_more_functions_of_numpys_of_our_arrays() -> None:
    check("np.true_divide", np.true_divide, of_halves(of_bools_as_f64(np.true_divide)), 2, 1e-13)
    check("np.log2", np.log2, of_halves(of_bools_as_f64(np.log2)), 1, 1e-13)
    check("np.where", np.where, chosen, 3)


@pytest.mark.parametrize("name", ["stack", "concat"])
def test_arrays_put_together(name: str) -> None:
    numpys = {"stack": np.stack, "concat": np.concatenate}[name]

    def flat(x: Any) -> Any:
        return x.reshape(-1)[:1] if isinstance(x, (er.Array, np.ndarray)) else np.reshape(np.asarray(x), (1,))

    expected = of_halves(lambda *x: numpys(list(map(flat, x))), are_weak=False)
    check(name, lambda *x: getattr(er, name)(list(map(flat, x))), expected, 3)


def test_einsum() -> None:
    expected = of_halves(lambda *x: np.einsum(",,->", *map(total, x)), are_weak=False)
    check("einsum", lambda *x: er.einsum(",,->", *map(total, x)), expected, 3, 1e-10)


def total(x: Any) -> Any:
    """Something without dimensions, of the type of x."""
    return x if np.ndim(x) == 0 else x[(0,) * x.ndim]


def size_of_terms(name: str) -> Function:
    """Of numbers as large as this the result is made, however small it is itself."""
    size = {"sum": np.sum, "mean": np.mean, "var": lambda x: np.max(x) ** 2}[name]
    return lambda x: size(np.abs(x.astype("f8")))


@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_reductions_that_round(name: str) -> None:
    check(name, getattr(er, name), of_halves(getattr(np, name)), 1, 1e-9, size_of_terms(name))


@pytest.mark.parametrize("name", ["prod", "max", "min", "any", "all", "argmax", "argmin"])
def test_reductions(name: str) -> None:
    check(name, getattr(er, name), of_halves(getattr(np, name)), 1, 1e-9)


def check_equal(function: Function, ours: list[Any], numpys: list[Any]) -> None:
    """Jitted as well."""
    expected, what = result_of(function, numpys), shown(numpys)
    for name, result in (("", result_of(function, ours)), ("jitted", result_of(er.jit(function), ours))):
        assert isinstance(result, Exception) == isinstance(expected, Exception), f"{name} {what}: {result!r}"
        if not isinstance(result, Exception):
            np.testing.assert_array_equal(result, expected, err_msg=f"{name} {what}", strict=True)


@pytest.mark.parametrize("seed", range(ROUNDS // 2))
def test_elements_along_an_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    axis = int(rng.integers(-rank, rank))
    x = rng.normal(size=rng.integers(1, 4, rank))
    extents = [1 if rng.random() < 0.3 else extent for extent in x.shape]
    extents[axis] = int(rng.integers(0, 4))
    if seed % 5 == 0:
        extents[0] += 1
    positions = rng.integers(-x.shape[axis], x.shape[axis], extents)
    if seed % 7 == 0:
        x = x[:1]  # which is what broadcasts
    if seed % 6 == 1:
        x, axis = x.reshape(-1), 0
        positions = positions.reshape(-1) % x.size
    expected = result_of(lambda: np.take_along_axis(x, positions, axis), [])
    if isinstance(expected, IndexError) and "shape" not in str(expected):
        return  # a position outside, which is an error of the run
    results = [result_of(lambda: er.take_along_axis(x, positions, axis=axis), [])]
    results.append(result_of(er.jit(lambda x, at: er.take_along_axis(x, at, axis=axis)), [x, positions]))
    for result in results:
        assert isinstance(result, Exception) == isinstance(expected, Exception), (
            x.shape,
            positions.shape,
            axis,
            result,
        )
        if not isinstance(expected, Exception):
            np.testing.assert_array_equal(result, expected, strict=True)


def test_elements_along_no_axis_are_of_one_row() -> None:
    x, positions = np.arange(6.0).reshape(2, 3), np.array([5, 0, -1])
    np.testing.assert_array_equal(er.take_along_axis(x, positions, axis=None), np.take_along_axis(x, positions, None))
    with pytest.raises(IndexError, match="bool as an index"):
        er.take_along_axis(x, np.array([[True]]))


def index(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Something for each dimension, in which an ellipsis may stand for some, or for none."""
    together = (2,) if rng.random() < 0.5 else (2, 1)

    def part(extent: int) -> Any:
        at = rng.integers(-extent, extent, together if rng.random() < 0.7 else ())
        return [slice(None), slice(1, None), slice(None, None, -1), int(rng.integers(extent)), at, at, at.tolist()][
            int(rng.integers(7))
        ]

    parts = [part(extent) for extent in shape]
    if rng.random() < 0.6:
        first = int(rng.integers(len(parts) + 1))
        count = int(rng.integers(0, len(parts) - first + 1)) if rng.random() < 0.5 else 0
        parts[first : first + count] = [...]
    if rng.random() < 0.3:
        parts.insert(int(rng.integers(len(parts) + 1)), None)
    return tuple(parts)


@pytest.mark.parametrize("seed", range(ROUNDS * 2))
def test_indices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(1, 4, rng.integers(1, 4)))
    key = index(rng, x.shape)
    check_equal(lambda array: array[key], [er.asarray(x)], [x])


def test_no_positions_and_nested_sequences_are_indices() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for key in ([], ((0, 1), (1, 2)), ([], slice(None)), ([[0, 1], [2, 0]],)):
        check_equal(operator.itemgetter(key), [er.asarray(x)], [x])
