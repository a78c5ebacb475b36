"""NumPy's own functions on arrays of ours, and whatever shapes: ours stay arrays of ours, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import einrel as er

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of what is not finite

NDArray = np.ndarray[Any, Any]
X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]])
MASK = X > 0

# NumPy's functions that ours stand for, with the options that NumPy's users give them.
OURS: dict[str, Callable[[Any], Any]] = {
    "type": lambda x: np.add(x, 1, dtype="f4"),
    "cast": lambda x: np.multiply(x, 2, casting="unsafe", dtype="i4"),
    "order": lambda x: np.exp(x, order="K", subok=True),
    "reduction": lambda x: np.add.reduce(x, 1),
    "reduction of all": lambda x: np.maximum.reduce(x, axis=None, keepdims=True),
    "reduction in a type": lambda x: np.add.reduce(x, 0, "f4"),
    "reduction from a number": lambda x: np.multiply.reduce(x, initial=2.0, where=MASK),
    "running": lambda x: np.add.accumulate(x, 1),
    "running product": lambda x: np.multiply.accumulate(x),
    "running maximum": lambda x: np.maximum.accumulate(x, axis=1),
    "running minimum": lambda x: np.minimum.accumulate(x),
    "pairs": lambda x: np.subtract.outer(x[0], x),
    "positions": lambda x: np.sum(x, 0, None, None, True),
    "names": lambda x: np.clip(x, a_min=0, a_max=1),
    "linear algebra": lambda x: np.linalg.inv(x @ x.T),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "inverse function": lambda x: np.arctan2(x, x + 3),
    "masked": lambda x: np.mean(x, where=MASK),
    "mean in a type": lambda x: np.mean(x, 0, "f4"),
    "joined": lambda x: np.vstack([x, x * 2]),
    "shape": lambda x: np.zeros_like(x, shape=(2, 2)) + np.trace(x),
}


@pytest.mark.parametrize("function", OURS.values(), ids=OURS)
def test_numpys_functions_are_ours_in_traced_functions(function: Callable[[Any], Any]) -> None:
    expected = function(X)
    for found in (function(er.asarray(X)), er.jit(function)(X)):  # which has no elements that NumPy could have
        assert isinstance(found, er.Array)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, 2e-6 if found.dtype == np.float32 else 1e-13)


def test_results_go_to_arrays_of_numpys() -> None:
    x = er.asarray(X)
    for function in (np.exp, np.negative):
        ours, theirs = np.full((2, 3), 9.0), np.full((2, 3), 9.0)
        assert function(x, where=MASK, out=ours) is ours
        function(X, where=MASK, out=theirs)
        np.testing.assert_allclose(ours, theirs, 1e-15)
    fractions, wholes = np.zeros((2, 3)), np.zeros((2, 3))
    np.modf(x, out=(fractions, wholes))
    np.testing.assert_array_equal(fractions + wholes, X)
    total = np.zeros(3)
    assert np.sum(x, 0, None, total) is total
    np.testing.assert_allclose(total, X.sum(0))
    with pytest.raises(TypeError, match="does not change"):
        np.add(x, 1, out=x)
    with pytest.raises(TypeError, match="NumPy's function of that name writes to NumPy's arrays"):
        er.sum(x, out=total)  # type: ignore[arg-type]


def test_what_ours_have_not_of_complex_numbers_is_numpys() -> None:
    z = np.array([[1 + 2j, 3.0], [-1j, 2.0]])
    for function in (np.tanh, np.log, np.linalg.inv, np.max):
        np.testing.assert_allclose(np.asarray(function(er.asarray(z))), function(z))


def test_yes_and_no_are_pythons() -> None:
    x = er.asarray(X)
    assert np.allclose(x, X) is True
    assert np.array_equal(x, X + 1) is False
    assert isinstance(np.copy(x), np.ndarray)


def same(ours: Any, numpys: Any) -> None:
    if isinstance(numpys, (list, tuple)):
        assert len(ours) == len(numpys)
        for one, other in zip(ours, numpys):
            same(one, other)
        return
    assert isinstance(ours, er.Array)
    assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
    np.testing.assert_allclose(np.asarray(ours), numpys, 1e-12, 1e-12)


def both(name: str, *arguments: Any, **options: Any) -> None:
    """NumPy's and ours give the same, or refuse both."""
    given_ours = [er.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]
    try:
        expected = getattr(np, name)(*arguments, **options)
    except (ValueError, IndexError, TypeError, ArithmeticError) as refused:
        kinds = (ValueError, IndexError, TypeError, NotImplementedError)
        with pytest.raises(kinds):
            getattr(er, name)(*given_ours, **options)
            print(f"{name}{arguments!r} {options!r} is refused by NumPy: {refused!r}")
        return
    same(getattr(er, name)(*given_ours, **options), expected)


SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
FULL = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
MANY = settings(max_examples=60, deadline=None)


def filled(shape: tuple[int, ...]) -> NDArray:
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape) ** 1.5


@MANY
@given(st.data())
def test_margins_of_any_shape(data: Any) -> None:
    shape = data.draw(FULL)
    widths = [data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))) for _ in shape]
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    both("pad", filled(shape), widths, mode)
    both("pad", filled(shape), data.draw(st.integers(-1, 3)), constant_values=data.draw(st.sampled_from([0, 2.5])))


@MANY
@given(st.data())
def test_parts_of_any_shape(data: Any) -> None:
    x = filled(data.draw(SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    cuts = data.draw(st.one_of(st.integers(-1, 5), st.lists(st.integers(-5, 6), max_size=3)))
    for name in ("split", "array_split"):
        both(name, x, cuts, axis)
    for name in ("vsplit", "hsplit", "dsplit"):
        both(name, x, cuts)


@MANY
@given(st.data())
def test_places_of_any_shape(data: Any) -> None:
    x = filled(data.draw(SHAPES))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    extent = x.size if axis is None else x.shape[axis]
    places = data.draw(st.one_of(st.integers(-extent - 1, extent), st.lists(st.integers(-extent, extent), max_size=3)))
    both("delete", x, places, axis=axis)
    both("insert", x, places, 7.0, axis=axis)
    if extent:  # NumPy never ends otherwise
        both("take", x, np.asarray(places, int), axis=axis, mode=data.draw(st.sampled_from(["wrap", "clip"])))
    counts = data.draw(st.one_of(st.integers(0, 3), st.lists(st.integers(0, 3), min_size=extent, max_size=extent)))
    both("repeat", x, counts, axis=axis)
    both("append", x, x, axis=axis)
    both("roll", x, data.draw(st.integers(-9, 9)), axis=axis)


@MANY
@given(st.data())
def test_stacks_of_any_shape(data: Any) -> None:
    shapes = [data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=2)) for _ in range(2)]
    arrays = [filled(shape) for shape in shapes]
    for name in ("vstack", "hstack", "dstack", "column_stack", "stack", "concatenate", "atleast_2d", "atleast_3d"):
        function = [arrays] if name[:2] != "at" else arrays
        ours = [[er.asarray(x) for x in arrays]] if name[:2] != "at" else [er.asarray(x) for x in arrays]
        try:
            expected = getattr(np, name)(*function)
        except ValueError:
            with pytest.raises(ValueError):
                getattr(er, name)(*ours)
            continue
        same(getattr(er, name)(*ours), expected)


@MANY
@given(st.data())
def test_products_of_any_shape(data: Any) -> None:
    left, right = (filled(data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=3))) for _ in range(2))
    for name in ("dot", "inner", "vdot", "outer", "kron"):
        both(name, left, right)
    if left.ndim:
        both("diagonal", left, data.draw(st.integers(-3, 3)))
        both("trace", left, data.draw(st.integers(-3, 3)))
        both("diag", left, data.draw(st.integers(-3, 3)))


@MANY
@given(st.data())
def test_lines_of_any_shape(data: Any) -> None:
    x = filled(data.draw(SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    both("cumsum", x, axis)
    both("cumprod", x / 9, axis)
    both("gradient", x, axis=axis, edge_order=data.draw(st.integers(1, 2)))
    both("trapezoid", x, dx=0.5, axis=axis)
    both("diff", x, data.draw(st.integers(-1, 4)), axis)
    both("ptp", x, axis)
    if x.shape[axis]:
        both("average", x, axis, np.arange(1.0, x.shape[axis] + 1))
    one, other = filled((data.draw(st.integers(0, 5)),)), filled((data.draw(st.integers(0, 5)),))
    for mode in ("full", "same", "valid"):
        both("convolve", one, other, mode)
        both("correlate", one, other, mode)


@MANY
@given(st.data())
def test_reductions_of_any_shape(data: Any) -> None:
    x = filled(data.draw(SHAPES))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    options = {"axis": axis, "keepdims": data.draw(st.booleans())}
    mask = data.draw(hnp.arrays(bool, x.shape))
    for name in ("sum", "prod"):
        both(name, x, initial=0.5, where=mask, **options)
    for name in ("max", "min"):
        both(name, x, **options)
        both(name, x, initial=2.0, where=mask, **options)
    both("any", x, where=mask, **options)
    both("all", x, where=mask, **options)
    holes = np.where(mask, x, np.nan)
    for name in ("nansum", "nanprod"):
        both(name, holes, **options)
    if x.size and mask.any(axis).all():
        for name in ("nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
            both(name, holes, **options)


@pytest.mark.parametrize("extent", [513, 1000, 4099, 70_000, 131_072])
@pytest.mark.parametrize("dtype", ["f8", "i8", "f4"])
def test_running_sums_of_many(extent: int, dtype: str) -> None:
    rng = np.random.default_rng(extent)
    x = np.asarray(rng.normal(size=(2, extent)) * 5).astype(dtype)
    for axis, array in ((1, x), (0, x.T), (None, x)):
        scale = float(np.abs(np.cumsum(x.astype("f8"))).max()) + 1
        tolerance = 0 if dtype == "i8" else scale * float(np.finfo(dtype).eps) * 100
        np.testing.assert_allclose(er.cumsum(array, axis), np.cumsum(array, axis), rtol=0, atol=tolerance)
    signs = np.where(x > 0, 1, -1).astype(dtype)
    np.testing.assert_array_equal(er.cumprod(signs, 1), np.cumprod(signs, 1))
    np.testing.assert_array_equal(np.maximum.accumulate(er.asarray(x), 1), np.maximum.accumulate(x, 1))
    np.testing.assert_array_equal(er.vmap(er.cumsum)(signs), np.cumsum(signs, 1))


def test_running_sums_of_many_keep_what_comes_before_infinities() -> None:
    x = np.ones(5000)
    x[[1700, 3000]] = np.inf, np.nan
    np.testing.assert_array_equal(er.cumsum(x), np.cumsum(x))
    weights = np.random.default_rng(0).normal(size=5000)
    found = er.grad(lambda v: er.sum(er.cumsum(v) * weights))(np.ones(5000))
    np.testing.assert_allclose(found, np.cumsum(weights[::-1])[::-1], rtol=1e-9, atol=1e-9)


def test_running_products_keep_their_range_and_empty_batches_their_shape() -> None:
    x = np.repeat([0.1, 10.0, 0.1], 300)
    np.testing.assert_allclose(er.cumprod(x), np.cumprod(x), rtol=1e-9)
    for shape, axis in (((0, 1024), 1), ((1024, 0), 0), ((0, 700, 2), 1)):
        for name in ("cumsum", "cumprod"):
            assert getattr(er, name)(er.zeros(shape), axis).shape == shape
