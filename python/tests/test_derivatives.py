"""First and second derivatives of every function, beside differences, also at special points where it is smooth.

Each row has a function of some arrays and points. Along random directions, the result times random numbers is a
function of one number. Its derivatives by `er.grad`, of arrays of each type, jitted or not, are compared with those by
differences of its values in f64. EINREL_VALUE_ROUNDS (see drawing.py) draws more directions, and points near these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from drawing import HALVES, ROUNDS, way
from numpy_names import NAMES as NUMPY_NAMES

import einrel as er

NDArray = np.ndarray[Any, Any]
Point = Sequence[Any]  # an array-like for each argument

# Values: of both signs, 0, equal, opposite, tiny and large beside each other.
SPECIAL: Final = [0.0, 0.7, -0.7, 1.0, -1.0, 1e-9, 2.5]
POSITIVE: Final = [1.0, 0.3, 2.0, 1.0 + 1e-9, 7.0]
PAIRS: Final = [([0.0, 1.0, 1.0, -2.0, 3.0, 3.0, -0.5], [2.0, 1.0, -1.0, 2.0, 0.0, 1e-9, -0.5])]
UNEQUAL: Final = [([0.0, 1.0, 1.0, -2.0, 3.0], [2.0, 1.5, -1.0, 2.0, 0.0])]
ROWS: Final = [[[0.5, 0.0, -1.0], [2.0, 2.0, 0.3]], [[1.0, 1.0, 1.0], [0.0, -1e-9, 4.0]]]
NO_TIES: Final = [[[0.5, 0.0, -1.0], [2.0, 1.0, 0.3]]]
SQUARE: Final = [[[2.0, 0.0], [1.0, 3.0]]]
INDEX: Final = np.array([[2, 0], [1, 1]])


def of_one(function: Callable[..., Any], values: Sequence[Any] = SPECIAL) -> tuple[Callable[..., Any], list[Point]]:
    """A function of one array, at these points, together."""
    return function, [(list(values),)]


def at(function: Callable[..., Any], arrays: Sequence[Any]) -> tuple[Callable[..., Any], list[Point]]:
    """A function of one array, at each of these."""
    return function, [(array,) for array in arrays]


Row = tuple[Callable[..., Any], list[Any]]

TABLE: Final[dict[str, Row | list[Row]]] = {
    "abs": of_one(er.abs, [0.7, -0.7, 1e-3 + 1]),
    "acosh": of_one(er.acosh, [1.5, 2.0, 40.0]),
    "add": (er.add, PAIRS),
    "asinh": of_one(er.asinh),
    "astype": of_one(lambda x: er.astype(er.astype(x, "float64"), er.float64, copy=True) * x),
    "atanh": of_one(er.atanh, [0.0, 0.5, -0.5, 1e-9]),
    "broadcast_arrays": (lambda x, y: er.broadcast_arrays(x, y)[0] * y, [([1.0, 0.0], [[2.0], [0.5]])]),
    "broadcast_to": of_one(lambda x: er.broadcast_to(x, (2, 7)) ** 2),
    "clip": of_one(lambda x: er.clip(x, -0.9, 0.9) ** 2, [0.0, 0.5, -2.0, 1.5]),
    "concat": (lambda x, y: er.concat([x, y, x]) ** 2, PAIRS),
    "conj": of_one(er.conj),
    "copysign": (er.copysign, [([1.0, -2.0, 3.0], [-1.0, 2.0, 0.5])]),
    "cos": of_one(er.cos),
    "cosh": of_one(er.cosh),
    "diagonal": at(lambda x: er.diagonal(x) ** 2, ROWS),
    "diff": at(lambda x: er.diff(x) ** 2, ROWS),
    "divide": (er.divide, [([0.0, 1.0, 1.0, -2.0], [2.0, 1.0, -1.0, 0.5])]),
    "einsum": [
        (lambda x, y: er.einsum("ij,jk->ik", x, y), [(ROWS[0], np.array(ROWS[1]).T)]),
        (lambda x, y: er.einsum("i,j->ij", x, y, join="sq(x-y)"), PAIRS),
        (lambda x: er.einsum("ii->i", x) ** 2, [(SQUARE[0],)]),
    ],
    "erf": of_one(er.erf),
    "erfc": of_one(er.erfc),
    "exp": of_one(er.exp),
    "expand_dims": of_one(lambda x: er.expand_dims(x, axis=0) ** 2),
    "expm1": of_one(er.expm1),
    "flip": of_one(lambda x: er.flip(x) ** 2 * x),
    "floor_divide": (lambda x, y: er.floor_divide(x, y) * x, [([1.0, -2.0, 3.2], [0.7, 0.9, -1.1])]),
    "gelu": of_one(er.gelu),
    "hypot": (er.hypot, [([0.0, 1.0, 1.0, -2.0, 3.0, 3.0, -0.5], [2.0, 1.0, -1.0, 2.0, 0.0, 1e-9, -0.5])]),
    "layer_norm": at(lambda x: er.layer_norm(x), NO_TIES + [[[0.0, 1.0, 0.5], [3.0, 3.0, 2.0]]]),
    "log": of_one(er.log, POSITIVE),
    "log10": of_one(er.log10, [*POSITIVE, 10.0, 100.0]),
    "log1p": of_one(er.log1p, [0.0, 0.5, -0.5, 1e-9]),
    "log2": of_one(er.log2, [*POSITIVE, 8.0]),
    "log_softmax": at(er.log_softmax, ROWS),
    "logaddexp": (er.logaddexp, PAIRS),
    "logsumexp": [at(er.logsumexp, ROWS), at(lambda x: er.logsumexp(x, axis=1), ROWS)],
    "matmul": (er.matmul, [(ROWS[0], np.array(ROWS[1]).T)]),
    "matrix_transpose": at(lambda x: er.matrix_transpose(x) ** 2, ROWS),
    "max": at(lambda x: er.max(x**2, axis=1), NO_TIES),
    "maximum": (er.maximum, UNEQUAL),
    "mean": at(lambda x: er.mean(x**2, axis=0), ROWS),
    "meshgrid": (lambda x, y: er.meshgrid(x, y)[0] * er.meshgrid(x, y)[1], PAIRS),
    "min": at(lambda x: er.min(x * 2, axis=1) ** 2, NO_TIES),
    "minimum": (er.minimum, UNEQUAL),
    "moveaxis": at(lambda x: er.moveaxis(x, 0, 1) ** 2, ROWS),
    "multiply": (er.multiply, PAIRS),
    "named": of_one(lambda x: er.named(x, "own") ** 2),
    "negative": of_one(lambda x: er.negative(x) ** 2),
    "outer": (er.outer, PAIRS),
    "permute_dims": at(lambda x: er.permute_dims(x, (1, 0)) ** 2, ROWS),
    "positive": of_one(lambda x: er.positive(x) ** 2),
    "pow": [
        *[of_one(lambda x, n=n: er.pow(er.asarray(x), n)) for n in (0, 1, 2, 3, 4)],
        *[of_one(lambda x, n=n: er.asarray(x) ** n, POSITIVE) for n in (-1, -2, 0.5, 1.5, 2.5)],
        of_one(lambda x: 2.0**x),
        (er.pow, [([1.0, 2.0, 0.5, 1.0], [2.0, 0.0, -1.0, 1.0])]),
        of_one(lambda x: er.pow(x, er.asarray(2.0))),
    ],
    "prod": at(lambda x: er.prod(x, axis=1), ROWS),
    "real": of_one(er.real),
    "reciprocal": of_one(er.reciprocal, POSITIVE),
    "relu": of_one(er.relu, [0.5, -0.5]),
    "remainder": (er.remainder, [([1.0, -2.5, 3.2], [0.7, 0.9, -1.1])]),
    "repeat": of_one(lambda x: er.repeat(x, 2) ** 2),
    "reshape": at(lambda x: er.reshape(x, (3, 2)) ** 2, ROWS),
    "rms_norm": at(lambda x: er.rms_norm(x), ROWS),
    "roll": of_one(lambda x: er.roll(x, 2) * x),
    "rsqrt": of_one(er.rsqrt, POSITIVE),
    "sigmoid": of_one(er.sigmoid),
    "silu": of_one(er.silu),
    "sin": of_one(er.sin),
    "sinh": of_one(er.sinh),
    "softmax": at(er.softmax, ROWS),
    "sqrt": of_one(er.sqrt, POSITIVE),
    "square": of_one(er.square),
    "squeeze": of_one(lambda x: er.squeeze(x[None], 0) ** 2),
    "stack": (lambda x, y: er.stack([x, y, x]) ** 2, PAIRS),
    "std": at(lambda x: er.std(x, axis=0, correction=1), ROWS[:1] + [[[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]]),
    "stop_gradient": of_one(lambda x: x * x + 0 * er.stop_gradient(x)),
    "subtract": (er.subtract, PAIRS),
    "sum": at(lambda x: er.sum(x, axis=1) ** 2, ROWS),
    "take": of_one(lambda x: er.take(x, INDEX, axis=0) ** 2),
    "take_along_axis": at(lambda x: er.take_along_axis(x, INDEX, axis=1) ** 2, ROWS),
    "sumsq": [at(er.sumsq, ROWS), at(lambda x: er.sumsq(x, axis=1), ROWS)],
    "tan": of_one(er.tan),
    "tanh": of_one(er.tanh),
    "tensordot": (lambda x, y: er.tensordot(x, y, axes=1), [(ROWS[0], np.array(ROWS[1]).T)]),
    "tile": of_one(lambda x: er.tile(x, (2,)) ** 2),
    "trace": at(lambda x: er.trace(x) ** 2, SQUARE),
    "transpose": at(lambda x: er.transpose(x) ** 2, ROWS),
    "tril": at(lambda x: er.tril(x) ** 2, SQUARE),
    "triu": at(lambda x: er.triu(x) ** 2, SQUARE),
    "unstack": at(lambda x: er.unstack(x)[1] ** 2, ROWS),
    "var": at(lambda x: er.var(x, axis=1), ROWS),
    "vecdot": (er.vecdot, PAIRS),
    "where": of_one(lambda x: er.where(er.asarray(x) > 0.1, x, er.sin(x))),
    "linalg.diagonal": at(lambda x: er.linalg.diagonal(x) ** 2, ROWS),
    "linalg.inv": at(er.linalg.inv, SQUARE),
    "linalg.matmul": (er.linalg.matmul, [(ROWS[0], np.array(ROWS[1]).T)]),
    "linalg.matrix_norm": [
        at(er.linalg.matrix_norm, [*ROWS, [[3.0, 0.0], [0.0, 0.0]]]),
        at(lambda x: er.linalg.matrix_norm(x, ord=1) ** 2, [[[0.5, 0.7], [2.0, -1.0]]]),
        at(lambda x: er.linalg.matrix_norm(x, ord=np.inf) ** 2, [[[0.5, 0.7], [2.0, -1.0]]]),
    ],
    "linalg.matrix_power": [
        at(lambda x, n=n: er.linalg.matrix_power(x, n), SQUARE) for n in (0, 1, 3, -2)
    ],
    "linalg.matrix_transpose": at(lambda x: er.linalg.matrix_transpose(x) ** 2, ROWS),
    "linalg.outer": (er.linalg.outer, PAIRS),
    "linalg.qr": [
        at(lambda x, n=n: er.linalg.qr(x)[n] ** 2, [*SQUARE, ROWS[0], [[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]]])
        for n in (0, 1)
    ],
    "linalg.solve": (er.linalg.solve, [(SQUARE[0], [1.0, 0.0])]),
    "linalg.tensordot": (lambda x, y: er.linalg.tensordot(x, y, axes=1), [(ROWS[0], np.array(ROWS[1]).T)]),
    "linalg.trace": at(lambda x: er.linalg.trace(x) ** 2, SQUARE),
    "linalg.vecdot": (er.linalg.vecdot, PAIRS),
    "linalg.vector_norm": [
        at(er.linalg.vector_norm, [[3.0, 0.0], [0.0, -0.2], *ROWS]),
        *[at(lambda x, n=n: er.linalg.vector_norm(x, ord=n), [[3.0, 0.0, -1.0]]) for n in (4, 6)],
        *[
            at(lambda x, n=n: er.linalg.vector_norm(x, ord=n), [[3.0, 0.5, -1.0]])
            for n in (0, 1, 1.5, 3, -1, np.inf, -np.inf)
        ],
    ],
}  # fmt: skip

# Whose results are constants, bools or integers, or no arrays.
# fmt: off
WITHOUT: Final = frozenset({
    "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_shapes", "bytes_of",
    "calibrate", "can_cast", "ceil", "checkpoint", "compute", "count_nonzero", "empty", "empty_like", "equal",
    "explain", "eye", "finfo", "floor", "fori_loop", "from_dlpack", "from_file", "from_function", "full", "full_like",
    "grad", "greater", "greater_equal", "hessian", "html", "iinfo", "imag", "isdtype", "isfinite", "isin", "isinf",
    "isnan", "jacobian", "jax_source", "jit", "jvp", "less", "less_equal", "linspace", "load_program", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal", "ones", "ones_like", "plan", "planners", "program",
    "program_of", "rank", "ranks", "result_type", "round", "scan", "sign", "signbit", "to_jax", "to_torch",
    "torch_source", "train", "trunc", "value_and_grad", "vjp", "vmap", "while_loop", "zeros", "zeros_like",
})
# fmt: on


def public_functions() -> set[str]:
    """Names of what the package has to call, but for classes, types, and what it says is not there."""
    found = set()
    others = (type, er._functions.Unsupported, er._dtypes.ElementType)
    for prefix, module in (("", er), ("linalg.", er.linalg)):
        for name in module.__all__:
            what = getattr(module, name)
            is_there = callable(what) and not isinstance(what, others)
            if is_there and not name.startswith("_") and name != "newaxis":
                found.add(prefix + name)
    return found


def test_every_function_has_a_row() -> None:
    elsewhere = NUMPY_NAMES - set(TABLE)  # in test_numpy_names.py
    assert public_functions() - WITHOUT - elsewhere == set(TABLE)


def rows(name: str) -> list[Row]:
    row = TABLE[name]
    return row if isinstance(row, list) else [row]


CASES: Final = [(name, function, point) for name in TABLE for function, points in rows(name) for point in points]


def by_differences(value: Callable[[float], float]) -> tuple[float, float]:
    """The first and the second derivative at 0, of the fourth order."""
    h = 2e-3
    near = [value(step * h) for step in (-2, -1, 0, 1, 2)]
    first = (near[0] - 8 * near[1] + 8 * near[3] - near[4]) / (12 * h)
    second = (-near[0] + 16 * near[1] - 30 * near[2] + 16 * near[3] - near[4]) / (12 * h * h)
    return first, second


def derivatives(
    function: Callable[..., Any], weights: NDArray, directions: list[NDArray], *arrays: er.Array
) -> tuple[list[er.Array], list[er.Array]]:
    """Slopes of the weighted result by each array, and the slopes of what they are along the directions."""
    nothing = sum(er.sum(0 * x * x) for x in arrays)  # so that it depends on each
    slopes = er.grad(er.sum(weights * function(*arrays)) + nothing, arrays)
    along = sum(er.sum(slope * direction) for slope, direction in zip(slopes, directions))
    return slopes, er.grad(along + nothing, arrays)


def check_derivatives(
    function: Callable[..., Any], point: Point, dtype: np.dtype[Any], rng: np.random.Generator, jitted: bool
) -> None:
    """Beside those by differences of f64, but for roundings of terms as large as those that are added up."""

    def of_type(x: Any) -> NDArray:
        return np.asarray(x, "f8").astype(dtype)

    start = [of_type(x) for x in point]
    directions = [of_type(rng.normal(size=x.shape)) for x in start]
    shape = er.asarray(function(*map(er.asarray, start))).shape
    weights = of_type(rng.normal(size=shape) + 2)

    def value(t: float) -> float:
        moved = [x.astype("f8") + t * direction.astype("f8") for x, direction in zip(start, directions)]
        return float(er.sum(weights.astype("f8") * function(*map(er.asarray, moved))))

    def ours(*arrays: er.Array) -> Any:
        return derivatives(function, weights, directions, *arrays)

    options = way(rng) if jitted else {}
    found = (er.jit(ours, **options) if jitted else ours)(*map(er.asarray, start))
    rounding = float(ml_dtypes.finfo(dtype).eps)
    terms = 1.0
    for expected, arrays in zip(by_differences(value), found):
        products = [np.asarray(x).astype("f8") * direction.astype("f8") for x, direction in zip(arrays, directions)]
        terms += sum(np.abs(product).sum() for product in products)
        allowed = 1e-5 * (1 + abs(expected)) + 2 * rounding * terms
        assert abs(sum(product.sum() for product in products) - expected) <= allowed, (start, directions, options)


def near(point: Point, rng: np.random.Generator) -> Point:
    """On the same side of borders."""
    return [np.asarray(x) * rng.uniform(0.995, 1.005, np.shape(x)) for x in point]


@pytest.mark.parametrize("dtype", [np.dtype("f8"), np.dtype("f4"), *HALVES], ids=str)
@pytest.mark.parametrize(("name", "function", "point"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_derivatives_are_those_by_differences(
    name: str, function: Callable[..., Any], point: Point, dtype: np.dtype[Any], rng: np.random.Generator
) -> None:
    for i in range(max(ROUNDS // 15, 2)):
        at_or_near = point if i < 2 else near(point, rng)
        try:
            check_derivatives(function, at_or_near, dtype, rng, jitted=i % 2 == 1)
        except er.ProgramError as refused:
            assert dtype in HALVES, refused
            assert " computes f32 and f64" in str(refused)


def test_a_rest_has_the_derivative_of_its_right_side() -> None:
    """At exact multiples, where it jumps; PyTorch's, too, is that of x - floor(x / y) * y."""
    for x, y in ((4.0, 2.0), (0.0, 2.0), (-6.0, 3.0), (6.0, -3.0), (0.0, -1.0)):
        a, b = er.asarray(np.array(x)), er.asarray(np.array(y))
        by_a, by_b = er.grad(er.remainder(a, b), [a, b])
        assert (float(by_a), float(by_b)) == (1.0, -np.floor(x / y))
    z = er.asarray(np.array(0.0))
    assert float(er.grad((z % 1.0 - 0.3) ** 2, z)) == -0.6


@pytest.mark.parametrize("order", [2, 3, 1.5, 4, "fro"])
def test_a_norm_of_zeros_has_no_slope(order: float | str) -> None:
    x = er.asarray(np.zeros((2, 2)))
    norm = er.linalg.matrix_norm(x) if order == "fro" else er.linalg.vector_norm(x, ord=order)
    assert er.grad(norm, x).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_equal_elements_have_no_spread() -> None:
    x = er.asarray(np.array([[1.0, 1.0], [1.0, 2.0]]))
    np.testing.assert_allclose(er.grad(er.sum(er.std(x, axis=0)), x), [[0.0, -0.5], [0.0, 0.5]])


def test_nothing_flows_twice_to_infinite_equals() -> None:
    for infinity in (np.inf, -np.inf):
        x, y = er.asarray(np.array(infinity)), er.asarray(np.array(infinity))
        total = er.logaddexp(x, y)
        assert float(total) == infinity
        assert [float(slope) for slope in er.grad(total, [x, y])] == [0.5, 0.5]


@pytest.mark.parametrize(("name", "expected"), [("sinh", 1.0), ("asinh", -1.0), ("atanh", 2.0), ("tanh", -2.0)])
def test_third_derivatives_at_zero(name: str, expected: float) -> None:
    x = er.asarray(np.array(0.0))
    slope = getattr(er, name)(x)
    for _ in range(3):
        slope = er.grad(slope, x)
    np.testing.assert_allclose(float(slope), expected, rtol=1e-12)
