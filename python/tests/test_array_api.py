"""Every function of the array API standard 2025.12, compared with array_api_strict's.

A case is a strategy for the arguments of one function, with NumPy's arrays where arrays go. Both libraries are called
with their own arrays of these. What array_api_strict refuses is refused by einrel, too; types that the standard leaves
open are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import einrel as er

# NumPy's, of means of nothing.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NDArray = np.ndarray[Any, np.dtype[Any]]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Case = st.SearchStrategy[Arguments]

DTYPES: Final = ("bool", "int32", "int64", "float32", "float64")
TOLERANCE: Final = {"float32": 2e-5, "float64": 1e-11}
STANDARD: Final = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def _unsupported() -> dict[str, frozenset[str]]:
    lines = Path(__file__).with_name("array_api_xfails.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(maxsplit=2) for line in lines if not line.startswith("#")]
    return {name: frozenset(DTYPES if dtypes == "*" else dtypes.split(",")) for name, dtypes, _ in rows}


UNSUPPORTED: Final = _unsupported()
NOWHERE: Final = {name for name, dtypes in UNSUPPORTED.items() if dtypes == frozenset(DTYPES)}


def called(namespace: Any, name: str, arguments: Arguments) -> Any:
    """namespace.name(arguments), in which NumPy's arrays are its arrays and names of types its types."""

    def own(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return namespace.asarray(value)
        return type(value)(map(own, value)) if isinstance(value, (list, tuple)) else value

    function = namespace
    for part in name.split("."):
        function = getattr(function, part)
    named = {key: own(value) for key, value in arguments[1].items()}
    if isinstance(named.get("dtype"), str):
        named["dtype"] = getattr(namespace, named["dtype"])
    return function(*map(own, arguments[0]), **named)


def _arrays(value: Any) -> Iterator[NDArray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)


def same(ours: Any, theirs: Any, what: str) -> None:
    """Equal in type, shape and, but for rounding, elements."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs):
            same(one, other, what)
        return
    expected = np.asarray(theirs)
    assert isinstance(ours, er.Array), what
    assert ours.shape == expected.shape, f"{what}: shape {ours.shape}, not {expected.shape}"
    assert ours.dtype == expected.dtype, f"{what}: dtype {ours.dtype}, not {expected.dtype}"
    tolerance = TOLERANCE.get(expected.dtype.name, 0)
    np.testing.assert_allclose(np.asarray(ours), expected, rtol=tolerance, atol=tolerance, err_msg=what)


def same_zeros(ours: Any, theirs: Any, what: str) -> None:
    """Zeros have the same sign."""
    found, expected = np.asarray(ours), np.asarray(theirs)
    if expected.dtype.kind == "f":
        zeros = (found == 0) & (expected == 0)
        signs = np.signbit(found[zeros]), np.signbit(expected[zeros])
        np.testing.assert_array_equal(*signs, err_msg=f"{what}: signs of zeros")


def agree(name: str, arguments: Arguments) -> None:
    """The function of both libraries gives the same, or is refused by both."""
    what = f"{name}{arguments[0]!r} {arguments[1]!r}"
    dtypes = {array.dtype.name for array in _arrays([*arguments[0], *arguments[1].values()])}
    if dtypes & UNSUPPORTED.get(name, frozenset()):
        with pytest.raises(NotImplementedError, match=name.rpartition(".")[2]):
            called(er, name, arguments)
        return
    try:
        with np.errstate(all="ignore"):
            theirs = called(strict, name, arguments)
    except (TypeError, RuntimeError):
        assume(False)
    except Exception as refused:
        with pytest.raises((ValueError, IndexError)):
            called(er, name, arguments)
            print(f"{what} is refused by array_api_strict: {refused!r}")
        return
    ours = called(er, name, arguments)
    same(ours, theirs, what)
    if name in UNARY or name in BINARY:
        same_zeros(ours, theirs, what)


# Strategies

SHAPES: Final = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def elements_of(dtype: str, *, plain: bool = False) -> st.SearchStrategy[Any]:
    """Any elements; plain ones are small whole numbers, of which every sum and product is exact."""
    if dtype == "bool":
        return st.booleans()
    if plain:
        return st.integers(-9, 9).map(float if dtype.startswith("float") else int)
    if dtype.startswith("int"):
        return st.one_of(st.integers(-9, 9), hnp.from_dtype(np.dtype(dtype)))
    return st.one_of(st.floats(-9, 9, width=32), hnp.from_dtype(np.dtype(dtype), allow_subnormal=False))


def array(shape: Any = SHAPES, dtypes: tuple[str, ...] = DTYPES, *, plain: bool = False) -> st.SearchStrategy[NDArray]:
    return st.sampled_from(dtypes).flatmap(
        lambda dtype: hnp.arrays(np.dtype(dtype), shape, elements=elements_of(dtype, plain=plain))
    )


@st.composite
def beside(draw: st.DrawFn, count: int = 2, *, dtypes: tuple[str, ...] = DTYPES, plain: bool = False) -> list[NDArray]:
    """Arrays whose shapes broadcast, mostly of types that promote."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=4)).input_shapes
    kind = draw(st.sampled_from([("bool",), ("int32", "int64"), ("float32", "float64")]))
    own = tuple(dtype for dtype in kind if dtype in dtypes) or dtypes
    return [draw(array(shape, own, plain=plain)) for shape in shapes]


@st.composite
def reduced(draw: st.DrawFn, *, is_single: bool = False, **more: st.SearchStrategy[Any]) -> Arguments:
    """An array, and over which dimensions."""
    x = draw(array(plain=True))
    one = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none()
    axes = hnp.valid_tuple_axes(x.ndim) if not is_single else one
    named = {"axis": draw(st.one_of(st.none(), one, axes)), "keepdims": draw(st.booleans())}
    return (x,), {**named, **{name: draw(value) for name, value in more.items()}}


@st.composite
def of_axis(draw: st.DrawFn, name: str = "axis", *, extra: int = 0, position: bool = False) -> Arguments:
    """An array of one dimension or more, and one of them, sometimes one that it has not."""
    x = draw(array(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
    rank = x.ndim + extra
    axis = draw(st.integers(-rank - 1, rank))
    return ((x, axis), {}) if position else ((x,), {name: axis})


@st.composite
def several(draw: st.DrawFn, *, is_concat: bool) -> Arguments:
    """Arrays of one shape, but for the dimension along which they come together."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    d = draw(st.integers(-len(shape), len(shape) - 1 if is_concat else len(shape)))
    shapes = [list(shape) for _ in range(draw(st.integers(1, 3)))]
    if is_concat:
        for own in shapes:
            own[d] = draw(st.integers(0, 3))
    kind = draw(st.sampled_from([("bool",), ("int32", "int64"), ("float32", "float64")]))
    return ([draw(array(tuple(own), kind)) for own in shapes],), {"axis": d}


@st.composite
def rolled(draw: st.DrawFn) -> Arguments:
    x = draw(array())
    axis = draw(st.one_of(st.none(), hnp.valid_tuple_axes(x.ndim, min_size=1) if x.ndim else st.none()))
    count = len(axis) if axis else 1
    shift = draw(st.tuples(*[st.integers(-9, 9)] * count))
    return (x, shift if axis else shift[0]), {"axis": axis}


@st.composite
def reshaped(draw: st.DrawFn) -> Arguments:
    x = draw(array())
    shape = list(draw(st.permutations(x.shape)))
    if shape and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    wrong = draw(st.sampled_from([[], [], [], [2]]))
    return (x, (*shape, *wrong)), {}


@st.composite
def multiplied(draw: st.DrawFn) -> list[NDArray]:
    """Matrices or vectors whose inner extents match, in batches that broadcast."""
    shapes = draw(
        hnp.mutually_broadcastable_shapes(signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, min_side=0, max_side=3)
    ).input_shapes
    kind = draw(st.sampled_from([("int32", "int64"), ("float32", "float64")]))
    return [draw(array(shape, kind, plain=True)) for shape in shapes]


@st.composite
def dotted(draw: st.DrawFn) -> Arguments:
    """Two arrays with a dimension of the same extent, the others broadcast."""
    shapes = draw(hnp.mutually_broadcastable_shapes(signature="(n),(n)->()", max_dims=2, min_side=0, max_side=3))
    kind = draw(st.sampled_from([("int32", "int64"), ("float32", "float64")]))
    return tuple(draw(array(shape, kind, plain=True)) for shape in shapes.input_shapes), {}


@st.composite
def contracted(draw: st.DrawFn) -> Arguments:
    x = draw(array(plain=True))
    count = draw(st.integers(0, x.ndim))
    rest = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    if draw(st.booleans()):
        return (x, draw(array((*x.shape[x.ndim - count :], *rest), (x.dtype.name,), plain=True))), {"axes": count}
    axes = draw(st.permutations(range(x.ndim)))[:count]
    y = draw(array((*rest, *[x.shape[d] for d in axes]), (x.dtype.name,), plain=True))
    return (x, y), {"axes": (list(axes), list(range(len(rest), y.ndim)))}


@st.composite
def squares(draw: st.DrawFn) -> NDArray:
    """Matrices that are far from singular."""
    n = draw(st.integers(0, 3))
    batch = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=2))
    x = draw(array((*batch, n, n), ("float32", "float64"), plain=True))
    return x + (30 * np.eye(n)).astype(x.dtype)  # type: ignore[no-any-return]


@st.composite
def solved(draw: st.DrawFn) -> Arguments:
    x = draw(squares())
    columns = draw(st.sampled_from([(x.shape[-1],), (*x.shape[:-1], 2)]))
    return (x, draw(array(columns, (x.dtype.name,), plain=True))), {}


@st.composite
def taken(draw: st.DrawFn, *, is_along: bool = False) -> Arguments:
    x = draw(array(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    d = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape) if is_along else [draw(st.integers(0, 4))]
    if is_along:
        shape[d] = draw(st.integers(0, 4))
    positions = hnp.arrays(np.int64, tuple(shape), elements=st.integers(-x.shape[d], x.shape[d] - 1))
    return (x, draw(positions)), {"axis": d}


def _often_infinite(x: NDArray) -> NDArray:
    """Floats with infinities in place of the largest and the least."""
    return np.where(np.abs(x) == 9, x * np.inf, x).astype(x.dtype) if x.dtype.kind == "f" else np.where(x == 0, 1, x)


def _clipped(three: list[NDArray]) -> Arguments:
    """A value and its bounds, all of one type."""
    x, *bounds = (array.astype(three[0].dtype) for array in three)
    return (x, np.minimum(*bounds), np.maximum(*bounds)), {}


def only(*positional: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> Case:
    return st.tuples(st.tuples(*positional), st.fixed_dictionaries(named))


MATRICES: Final = hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4)
OFFSETS: Final = st.integers(-5, 5)
NEW_DTYPES: Final = st.sampled_from([None, *DTYPES])

UNARY: Final = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh",
    "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not",
    "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt",
    "tan", "tanh", "trunc",
)  # fmt: skip
BINARY: Final = (
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal",
    "remainder", "subtract",
)  # fmt: skip
CASES: Final[dict[str, Case]] = {
    **{name: only(array()) for name in UNARY},
    "imag": only(st.sampled_from([np.array([1 + 2j, 0, -3j]), np.zeros((2, 0), "complex64")])),  # of no real ones
    **{name: beside().map(lambda both: (tuple(both), {})) for name in BINARY},
    "pow": beside(plain=True).map(lambda both: ((both[0], np.abs(both[1])), {})),
    # inf // x is left open; x - floor(x / y) * y is exact where the quotient is of few digits.
    "floor_divide": beside(plain=True).map(lambda both: ((both[0], _often_infinite(both[1])), {})),
    "remainder": beside(plain=True).map(lambda both: ((both[0], _often_infinite(both[1])), {})),
    "clip": beside(3, dtypes=("int32", "int64", "float64"), plain=True).map(_clipped),
    "where": beside(3).map(lambda three: ((three[0].astype(bool), *three[1:]), {})),
    **{name: reduced() for name in ("all", "any", "max", "mean", "min", "count_nonzero")},
    **{name: reduced(dtype=NEW_DTYPES) for name in ("sum", "prod")},
    **{name: reduced(correction=st.sampled_from([0, 1, 0.5])) for name in ("std", "var")},
    **{name: reduced(is_single=True) for name in ("argmax", "argmin")},
    **{name: of_axis() for name in ("cumulative_sum", "cumulative_prod", "diff", "sort", "argsort", "unstack")},
    **{name: only(array()) for name in ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values")},
    "searchsorted": only(array((3,), plain=True), array((2,), plain=True)),
    "isin": only(array(plain=True), array((3,), plain=True)),
    "broadcast_arrays": beside(3).map(lambda three: (tuple(three), {})),
    "broadcast_to": beside().map(lambda both: ((both[0], both[1].shape), {})),
    "concat": several(is_concat=True),
    "stack": several(is_concat=False),
    "expand_dims": of_axis(extra=1),
    "flip": st.one_of(of_axis(), only(array())),
    "matrix_transpose": only(array(MATRICES)),
    "moveaxis": array((2, 3, 0)).flatmap(lambda x: only(st.just(x), st.integers(-3, 2), st.integers(-3, 2))),
    "permute_dims": array().flatmap(lambda x: only(st.just(x), st.permutations(range(x.ndim)).map(tuple))),
    "repeat": array().flatmap(
        lambda x: only(st.just(x), st.integers(0, 3), axis=st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    ),
    "reshape": reshaped(),
    "roll": rolled(),
    "squeeze": st.one_of(of_axis(position=True), only(array((1, 2, 1)), st.sampled_from([0, -1, (0, 2), 1]))),
    "tile": only(array(), st.lists(st.integers(0, 3), max_size=4).map(tuple)),
    "take": taken(),
    "take_along_axis": taken(is_along=True),
    "matmul": multiplied().map(lambda both: (tuple(both), {})),
    "tensordot": contracted(),
    "vecdot": dotted(),
    "linalg.cholesky": only(squares()),
    "linalg.cross": only(array((2, 3), ("float64",)), array((2, 3), ("float64",))),
    "linalg.det": only(squares()),
    "linalg.diagonal": only(array(MATRICES), offset=OFFSETS),
    "linalg.eigh": only(squares()),
    "linalg.eigvalsh": only(squares()),
    "linalg.inv": only(squares()),
    "linalg.matmul": multiplied().map(lambda both: (tuple(both), {})),
    "linalg.matrix_norm": only(
        array(MATRICES, ("float32", "float64"), plain=True),
        ord=st.sampled_from(["fro", 1, -1, np.inf, -np.inf]),
        keepdims=st.booleans(),
    ),
    "linalg.matrix_power": only(squares(), st.integers(-2, 3)),
    "linalg.matrix_rank": only(squares()),
    "linalg.matrix_transpose": only(array(MATRICES)),
    "linalg.outer": only(array((3,), ("float64",)), array((2,), ("float64",))),
    "linalg.pinv": only(squares()),
    "linalg.qr": only(squares()),
    "linalg.slogdet": only(squares()),
    "linalg.solve": solved(),
    "linalg.svd": only(squares()),
    "linalg.svdvals": only(squares()),
    "linalg.tensordot": contracted(),
    "linalg.trace": only(
        array(MATRICES, DTYPES[1:], plain=True), offset=OFFSETS, dtype=st.sampled_from([None, *DTYPES[1:]])
    ),
    "linalg.vecdot": dotted(),
    "linalg.vector_norm": array(dtypes=("float32", "float64"), plain=True).flatmap(
        lambda x: only(
            st.just(x),
            axis=st.one_of(st.none(), hnp.valid_tuple_axes(x.ndim)),
            keepdims=st.booleans(),
            ord=st.sampled_from([0, 1, 2, 3, np.inf, -np.inf, -1]),
        )
    ),
    "arange": only(st.integers(-9, 9), st.one_of(st.none(), st.integers(-9, 9)), st.sampled_from([-3, -1, 1, 2, 0.5])),
    "linspace": only(st.floats(-9, 9), st.floats(-9, 9), st.integers(0, 9), endpoint=st.booleans()),
    "eye": only(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4)), k=OFFSETS),
    **{name: only(SHAPES) for name in ("ones", "zeros")},
    "full": only(SHAPES, st.one_of(st.booleans(), st.integers(-9, 9), st.floats(-9, 9))),
    **{name: only(array()) for name in ("ones_like", "zeros_like")},
    "full_like": only(array(dtypes=DTYPES[1:]), st.integers(-9, 9)),
    "meshgrid": st.lists(array((3,), ("int64",)) | array((2,), ("int64",)), max_size=3).flatmap(
        lambda xs: only(*map(st.just, xs), indexing=st.sampled_from(["xy", "ij"]))
    ),
    "tril": only(array(MATRICES), k=OFFSETS),
    "triu": only(array(MATRICES), k=OFFSETS),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_function(name: str) -> None:
    @STANDARD
    @given(CASES[name])
    def check(arguments: Arguments) -> None:
        agree(name, arguments)

    check()


def specials(dtype: str) -> NDArray:
    """Floats at which functions do something of their own."""
    limits = np.finfo(dtype)
    plain = [
        0.0,
        0.25,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        30.0,
        1e10,
        limits.max,
        limits.smallest_normal,
        limits.eps,
        np.inf,
    ]
    return np.array([*plain, *[-x for x in plain], np.nan], dtype)


def of_floats(names: tuple[str, ...]) -> list[str]:
    # remainder is NaN where the quotient has more than 100 binary digits.
    without = {*NOWHERE, "bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor", "remainder"}
    without |= {"bitwise_left_shift", "bitwise_right_shift"}
    return [name for name in names if name not in without and not name.startswith("logical")]


def differences(name: str, *operands: NDArray) -> list[str]:
    """Where the function of special values gives another value, or another sign of 0, than array_api_strict's."""
    with np.errstate(all="ignore"):
        theirs = np.asarray(called(strict, name, (operands, {})))
    ours = np.asarray(called(er, name, (operands, {})))
    assert ours.dtype == theirs.dtype
    tolerance = TOLERANCE.get(theirs.dtype.name, 0)
    with np.errstate(all="ignore"):
        same_value = np.isclose(ours, theirs, rtol=tolerance, atol=0, equal_nan=True)
        is_zero = (theirs == 0) & (theirs.dtype.kind == "f") & (name not in ("maximum", "minimum"))
        right = same_value & ~(is_zero & (np.signbit(ours) != np.signbit(theirs)))
    own = np.broadcast_arrays(*operands)
    return [
        f"{name}({', '.join(str(x[at]) for x in own)}) is {ours[at]}, not {theirs[at]}"
        for at in zip(*np.nonzero(~right))
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", of_floats(UNARY))
def test_function_of_special_values(name: str, dtype: str) -> None:
    assert differences(name, specials(dtype)) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", of_floats((*BINARY, "pow")))
def test_function_of_two_special_values(name: str, dtype: str) -> None:
    x = specials(dtype)
    assert differences(name, x[:, None], x[None, :]) == []
