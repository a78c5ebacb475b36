"""Slices, positions, powers and shifts that change from call to call, and many arrays put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import einrel as er

X = np.random.default_rng(5).random((40, 6)) + 0.5

# Of a number that changes, and of an array; NumPy's functions take ours, and so both are written once.
CHANGING: dict[str, Callable[[Any, int], Any]] = {
    "rows": lambda x, k: x[k : k + 3],
    "columns": lambda x, k: x[:, k % 6 :],
    "every third row": lambda x, k: x[k::3],
    "backwards": lambda x, k: x[k::-1],
    "a row": lambda x, k: x[k],
    "an element": lambda x, k: x[k, k % 6],
    "a row as a matrix": lambda x, k: x[None, k, :],
    "a gather": lambda x, k: x[np.arange(k, k + 4) % 40],
    "a roll": lambda x, k: np.roll(x, k, axis=0),
    "a roll of all": lambda x, k: np.roll(x, 7 * k),
    "a roll of two": lambda x, k: np.roll(x, (k, -k), axis=(0, 1)),
    "a power": lambda x, k: x ** (k / 7),
    "a negative power": lambda x, k: x ** (-k / 7),
    "a whole power": lambda x, k: x**k,
}


@pytest.mark.parametrize("of", [lambda: er.asarray(X), lambda: er.asarray(X) * 1.0], ids=["elements", "lazy"])
@pytest.mark.parametrize("function", CHANGING.values(), ids=CHANGING)
def test_values_stay_those_of_numpy(function: Callable[[Any, int], Any], of: Callable[[], er.Array]) -> None:
    for k in range(20):
        np.testing.assert_allclose(np.asarray(function(of(), k)), function(X, k), rtol=1e-12)


@pytest.mark.parametrize("function", CHANGING.values(), ids=CHANGING)
def test_gradients_stay_the_same(function: Callable[[Any, int], Any]) -> None:
    """Those of the first calls, which are programs of their own, are those of the later ones, and of traced ones."""
    weights = np.random.default_rng(6).random(X.size)

    def loss(x: Any, k: int) -> Any:
        y = function(x, k)
        return er.sum(er.square(y) * weights[: y.size].reshape(y.shape))

    for k in range(1, 13):
        traced = er.jit(er.grad(lambda x, k=k: loss(x, k)))(X)
        np.testing.assert_allclose(np.asarray(er.grad(loss)(X, k)), np.asarray(traced), rtol=1e-10, atol=1e-12)
        x = er.asarray(X)
        np.testing.assert_allclose(np.asarray(er.grad(loss(x, k), x)), np.asarray(traced), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "i8", "?", "c16", ml_dtypes.bfloat16])
def test_slices_of_elements_are_views(dtype: Any) -> None:
    plain = (X > 1).astype(dtype) if dtype == "?" else (X * 10).astype(dtype)
    x = er.asarray(plain)
    part = x[3:7]
    assert part.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(part), plain[3:7])
    np.testing.assert_array_equal(np.asarray(part[1, 2:]), plain[4, 2:])
    assert np.asarray(part[1, 2:]).base is not None
    assert np.shares_memory(np.asarray(part).view("u1"), plain.view("u1"))


def test_slices_of_read_only_elements_are_read_only() -> None:
    plain = np.arange(6.0)
    plain.flags.writeable = False
    assert not np.asarray(er.asarray(plain)[2:4]).flags.writeable


def test_slices_of_files_read_no_more_than_they_need(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    x = er.from_file(str(tmp_path / "x.npy"))
    np.testing.assert_array_equal(np.asarray(x[3:7]), X[3:7])
    assert not x._node.is_in_memory


def test_slices_within_functions_of_many_samples() -> None:
    rows = np.random.default_rng(3).random((5, 8))
    x = er.asarray(rows[0])
    assert er.vmap(lambda row: er.sum(row[2:5]) + x[1])(rows).shape == (5,)
    value, pull = er.vjp(lambda x: er.asarray(x, copy=True)[2:4] * x[0], rows[0])
    np.testing.assert_allclose(np.asarray(value), rows[0, 2:4] * rows[0, 0])
    expected = np.zeros(8)
    expected[2:4], expected[0] = rows[0, 0], rows[0, 2:4].sum()
    np.testing.assert_allclose(np.asarray(pull(np.ones(2))[0]), expected)


JOINS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "stack": lambda xp, arrays: xp.stack(arrays),
    "stack behind": lambda xp, arrays: xp.stack(arrays, axis=-1),
    "concat": lambda xp, arrays: xp.concat(arrays),
    "concat along 1": lambda xp, arrays: xp.concat(arrays, axis=1),
    "vstack": lambda xp, arrays: xp.vstack(arrays),
}


@pytest.mark.parametrize("count", [1, 8, 9, 63, 200])
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_many_arrays_together(join: Callable[[Any, list[Any]], Any], count: int) -> None:
    plain = [np.full((2, 3), k) * (1.0 if k % 2 else 1) for k in range(count)]
    expected = join(np, plain)
    for given in (
        [er.asarray(x) for x in plain],
        [er.asarray(x) * 1 for x in plain[:70]] + [er.asarray(x) for x in plain[70:]],
        [x if k % 3 else er.asarray(x) for k, x in enumerate(plain)],
    ):
        joined = join(er, given)
        assert joined.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(joined), expected)


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_gradients_by_each_of_many_arrays(join: Callable[[Any, list[Any]], Any]) -> None:
    plain = [np.random.default_rng(k).random((2, 3)) for k in range(20)]
    given = [er.asarray(x) for x in plain]
    slopes = er.grad(er.sum(join(er, given) ** 3), given)
    for slope, x in zip(slopes, plain):
        np.testing.assert_allclose(np.asarray(slope), 3 * x**2)
    function = er.grad(lambda arrays: er.sum(join(er, arrays) ** 3))
    for slope, x in zip(function(plain), plain):
        np.testing.assert_allclose(np.asarray(slope), 3 * x**2)


def test_what_is_put_together_is_a_copy_where_it_has_elements() -> None:
    plain = [np.ones(2) for _ in range(12)]
    joined = er.stack([er.asarray(x) for x in plain])
    plain[3][0] = 5
    np.testing.assert_array_equal(np.asarray(joined), np.ones((12, 2)))
