"""What of the array API standard is no function of arrays: parameters, types, operators, indices, attributes."""

from __future__ import annotations

import inspect
import operator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from test_array_api import CASES, DTYPES, NOWHERE, STANDARD, array, beside, same

import einrel as er

# What the standard has besides functions that take and give arrays; the tests here are theirs, and those of CASES.
OTHERS = {
    "asarray", "empty", "empty_like", "from_dlpack", "astype", "broadcast_shapes", "can_cast", "finfo", "iinfo",
    "isdtype", "result_type", "__array_namespace_info__",
}  # fmt: skip
# array_api_strict's own names, types that are widened or not there, and constants.
NO_FUNCTIONS = {name for name in strict.__all__ if "strict" in name.lower() or not callable(getattr(strict, name))}
NO_FUNCTIONS |= {"Device", "fft", "linalg", "bool", *strict.__all__[strict.__all__.index("int8") :][:12]}
FUNCTIONS = sorted({name for name in strict.__all__ if name not in NO_FUNCTIONS})
LINALG = sorted(f"linalg.{name}" for name in strict.linalg.__all__)


def function_of(namespace: Any, name: str) -> Any:
    return operator.attrgetter(name)(namespace)


def test_every_function_has_a_test() -> None:
    assert set(FUNCTIONS) | set(LINALG) == set(CASES) | OTHERS


@pytest.mark.parametrize("name", [*FUNCTIONS, *LINALG])
def test_a_function_takes_the_parameters_of_the_standard(name: str) -> None:
    ours = function_of(er, name)
    if name in NOWHERE:
        with pytest.raises(NotImplementedError, match=name):
            ours(er.asarray([1.0]))
        return
    own, theirs = inspect.signature(ours).parameters, inspect.signature(function_of(strict, name)).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in theirs.values()):
        return
    by_name = {key: parameter for key, parameter in theirs.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(by_name) <= set(own)
    for key, parameter in by_name.items():
        assert (own[key].default is inspect.Parameter.empty) == (parameter.default is inspect.Parameter.empty), key
    by_place = [p for p in theirs.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    ours_by_place = [p for p in own.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert len(ours_by_place) >= len(by_place)
    for mine, given_ in zip(ours_by_place, by_place):
        if given_.kind is given_.POSITIONAL_OR_KEYWORD:
            assert mine.name == given_.name
            assert mine.kind is given_.kind


def test_constants_and_versions() -> None:
    assert er.__array_api_version__ == strict.__array_api_version__
    for name in ("e", "pi", "inf"):
        assert getattr(er, name) == getattr(strict, name)
    assert np.isnan(er.nan)
    assert er.newaxis is None
    x = er.asarray([1.0])
    assert x.__array_namespace__() is er
    assert x.__array_namespace__(api_version="2024.12") is er
    with pytest.raises(ValueError, match="2099"):
        x.__array_namespace__(api_version="2099.12")


def test_what_the_namespace_says_of_itself() -> None:
    info = er.__array_namespace_info__()
    assert set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert info.default_device() in info.devices()
    assert set(info.default_dtypes()) >= {"real floating", "integral", "indexing"}
    assert {"bool", "int32", "int64", "float32", "float64"} <= set(info.dtypes())
    assert set(info.dtypes(kind="bool")) == {"bool"}
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int32", "int64"}


@pytest.mark.parametrize("one", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_types_promote(one: str, other: str) -> None:
    own, others = getattr(er, one), getattr(er, other)
    assert er.can_cast(own, others) == np.can_cast(own, others)
    assert er.result_type(own, others) == np.result_type(own, others)
    assert er.result_type(er.zeros(2, dtype=own), others) == np.result_type(own, others)
    assert (er.ones(2, dtype=own) * er.ones(2, dtype=others)).dtype == np.result_type(own, others)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kinds_and_limits(dtype: str) -> None:
    own, theirs = getattr(er, dtype), getattr(strict, dtype)
    for kind in (
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
    ):
        assert er.isdtype(own, kind) == strict.isdtype(theirs, kind), kind
    assert er.isdtype(own, own)
    if dtype.startswith("float"):
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(er.finfo(own), field) == getattr(strict.finfo(theirs), field)
    if dtype.startswith("int"):
        for field in ("bits", "max", "min"):
            assert getattr(er.iinfo(own), field) == getattr(strict.iinfo(theirs), field)


@STANDARD
@given(array(plain=True), st.sampled_from(DTYPES))
def test_astype(x: Any, dtype: str) -> None:
    same(er.astype(er.asarray(x), getattr(er, dtype)), x.astype(dtype), f"astype({x!r}, {dtype})")


@pytest.mark.parametrize("dtype", DTYPES)
def test_creation_of_every_type(dtype: str) -> None:
    own = getattr(er, dtype)
    for made, expected in [
        (er.zeros((2, 0, 3), dtype=own), np.zeros((2, 0, 3), dtype)),
        (er.ones(3, dtype=own), np.ones(3, dtype)),
        (er.full((), 1, dtype=own), np.full((), 1, dtype)),
        (er.eye(3, dtype=own), np.eye(3, dtype=dtype)),
        (er.ones_like(er.zeros(2), dtype=own), np.ones(2, dtype)),
        (er.asarray([[0, 1], [1, 0]], dtype=own), np.asarray([[0, 1], [1, 0]], dtype)),
    ]:
        same(made, expected, dtype)
    assert er.empty((2, 3), dtype=own).shape == (2, 3)
    assert er.empty_like(er.zeros(2, dtype=own)).dtype == dtype


def test_asarray_copies_where_it_is_asked_to() -> None:
    x = np.arange(3.0)
    assert np.shares_memory(np.asarray(er.asarray(x)), x)
    assert np.shares_memory(np.asarray(er.asarray(x, copy=False)), x)
    assert not np.shares_memory(np.asarray(er.asarray(x, copy=True)), x)
    with pytest.raises(ValueError, match="copi"):
        er.asarray([1.0, 2.0], copy=False)
    with pytest.raises(ValueError, match="device"):
        er.asarray(x, device="gpu")
    for value, dtype in [(True, "bool"), (1, "int64"), (1.0, "float64"), ([], "float64"), ([[True]], "bool")]:
        assert er.asarray(value).dtype == dtype
    nested = er.asarray([er.asarray(1.0), er.asarray(2.0)])
    assert nested.tolist() == [1.0, 2.0]


def test_broadcast_shapes() -> None:
    assert er.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(ValueError, match="broadcast"):
        er.broadcast_shapes((2,), (3,))


UNARY_OPERATORS = [operator.pos, operator.neg, operator.abs, operator.invert]
BINARY_OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
    operator.ne, operator.iadd, operator.isub, operator.imul, operator.itruediv,
]  # fmt: skip


def agree(function: Any, *operands: Any) -> None:
    """The operator gives the same for both libraries' arrays; what is refused or not there is left."""
    what = f"{function.__name__}{operands!r}"

    def of(namespace: Any) -> Any:
        return function(*(namespace.asarray(x, copy=True) if isinstance(x, np.ndarray) else x for x in operands))

    try:
        with np.errstate(all="ignore"):
            theirs = of(strict)
    except (TypeError, OverflowError, ValueError):
        assume(False)
    try:
        ours = of(er)
    except NotImplementedError:
        assume(False)
    same(ours, theirs, what)


@pytest.mark.parametrize("function", UNARY_OPERATORS, ids=lambda function: function.__name__)
def test_unary_operator(function: Any) -> None:
    check = STANDARD(given(array())(lambda x: agree(function, x)))
    check()


@pytest.mark.parametrize("function", BINARY_OPERATORS, ids=lambda function: function.__name__)
def test_binary_operator(function: Any) -> None:
    nonzero = function in (operator.floordiv, operator.mod)

    @STANDARD
    @given(beside(plain=True), st.one_of(st.booleans(), st.integers(1, 9), st.floats(-9, 9)))
    def check(both: list[Any], number: Any) -> None:
        x, y = both
        y = np.where(y == 0, 1, y).astype(y.dtype) if nonzero else y
        y = np.abs(y) if function is operator.pow and y.dtype.kind in "iu" else y
        number = number or 1 if nonzero else number
        agree(function, x, y)
        agree(function, x, number)
        if not function.__name__.startswith("i"):
            agree(function, number, y)

    check()


def test_matmul_operators() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    x, y = er.asarray(a), er.asarray(b)
    same(x @ y, a @ b, "@")
    same(a @ y, a @ b, "reflected @")
    x @= y
    same(x, a @ b, "@=")


@st.composite
def indexed(draw: st.DrawFn) -> Any:
    x = draw(array(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
    key = draw(hnp.basic_indices(x.shape, allow_ellipsis=True, allow_newaxis=True, max_dims=5))
    return x, key


@STANDARD
@given(indexed())
def test_slices_and_single_positions(case: Any) -> None:
    x, key = case
    same(er.asarray(x)[key], x[key], f"{x!r}[{key!r}]")


@st.composite
def gathered(draw: st.DrawFn) -> Any:
    x = draw(array(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=x.ndim, max_dims=2, min_side=0, max_side=3))
    key = tuple(
        draw(st.one_of(hnp.arrays(np.int64, shape, elements=st.integers(-n, n - 1)), st.just(slice(None, None, -1))))
        for n, shape in zip(x.shape, shapes.input_shapes)
    )
    return x, key[: draw(st.integers(1, x.ndim))]


@STANDARD
@given(gathered())
def test_arrays_of_positions(case: Any) -> None:
    x, key = case
    same(
        er.asarray(x)[tuple(er.asarray(k) if isinstance(k, np.ndarray) else k for k in key)], x[key], f"{x!r}[{key!r}]"
    )


@STANDARD
@given(array(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)), st.data())
def test_masks(x: Any, data: Any) -> None:
    mask = data.draw(hnp.arrays(np.bool_, x.shape))
    same(er.asarray(x)[er.asarray(mask)], x[mask], f"{x!r}[{mask!r}]")


def test_positions_that_are_not_there() -> None:
    x = er.zeros((2, 3))
    for key in (2, -3, (0, 3), (0, 0, 0), (Ellipsis, Ellipsis), 0.5, "a"):
        with pytest.raises(IndexError):
            x[key]
    for mask in ([True], [True, False, True], [[True, False]]):
        with pytest.raises(IndexError):
            x[er.asarray(mask)]
    with pytest.raises((er.RunError, IndexError), match="7"):
        np.asarray(x[er.asarray([0, 7])])


def test_attributes() -> None:
    own = np.arange(24.0).reshape(2, 3, 4)
    x = er.asarray(own)
    assert (x.shape, x.ndim, x.size, x.device, x.dtype) == ((2, 3, 4), 3, 24, "cpu", np.float64)
    same(x.mT, own.mT, "mT")
    same(er.asarray(own[0]).T, own[0].T, "T")
    assert x.to_device("cpu") is x
    assert x.__dlpack_device__() == (1, 0)
    assert len(x) == 2


@pytest.mark.parametrize("value", [True, 3, -2.5, np.float32(7)])
def test_single_elements_are_numbers(value: Any) -> None:
    x = er.asarray(value)
    assert bool(x) == bool(value)
    assert float(x) == float(value)
    assert int(x) == int(value)
    assert complex(x) == complex(value)
    if isinstance(value, int) and not isinstance(value, bool):
        assert operator.index(x) == value
        assert list(range(5))[x] == 3
    with pytest.raises((TypeError, ValueError)):
        bool(er.asarray([1, 2]))
    with pytest.raises(TypeError):
        float(er.asarray([1.0, 2.0]))
    with pytest.raises(TypeError):
        operator.index(er.asarray(1.5))
