"""Functions of one sample as functions of many, beside a loop over samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from drawing import HALVES
from test_derivatives import CASES

import einrel as er

X = np.random.default_rng(0).normal(size=(4, 3))
W = np.random.default_rng(1).normal(size=(3, 2))


def by_loop(function: Callable[..., Any], in_axes: Sequence[int | None], *arrays: Any) -> np.ndarray[Any, Any]:
    """What the function gives of each sample, one after the other."""
    count = next(np.shape(x)[axis] for x, axis in zip(arrays, in_axes) if axis is not None)
    samples = [[x if axis is None else np.take(x, i, axis) for x, axis in zip(arrays, in_axes)] for i in range(count)]
    return np.stack([np.asarray(function(*sample)) for sample in samples])


def check(function: Callable[..., Any], in_axes: Sequence[int | None], *arrays: Any) -> None:
    expected = by_loop(function, in_axes, *arrays)
    found = er.vmap(function, tuple(in_axes))(*arrays)
    assert found.dtype == expected.dtype
    tolerance = {np.dtype("f8"): 1e-12, np.dtype("f4"): 1e-5}.get(expected.dtype, 2e-2)
    np.testing.assert_allclose(np.asarray(found).astype("f8"), expected.astype("f8"), rtol=tolerance, atol=tolerance)


LAPACKS = ("linalg.inv", "linalg.matrix_power", "linalg.qr", "linalg.solve")  # which has no halves


@pytest.mark.parametrize("dtype", [np.dtype("f8"), HALVES[0]], ids=str)
@pytest.mark.parametrize(("name", "function", "point"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_every_function_is_that_of_each_sample(
    name: str, function: Callable[..., Any], point: Sequence[Any], dtype: Any
) -> None:
    dtype = np.dtype("f4") if name in LAPACKS and dtype in HALVES else dtype
    arrays = [np.stack([np.asarray(x, "f8"), np.asarray(x, "f8") * 1.001]).astype(dtype) for x in point]

    def of_one(*samples: Any) -> Any:
        return er.asarray(function(*map(er.asarray, samples)))

    check(of_one, [0] * len(arrays), *arrays)
    check(of_one, [0, *[None] * (len(arrays) - 1)], arrays[0], *[x[0] for x in arrays[1:]])
    if dtype == np.float64:

        def slope(*samples: Any) -> Any:
            return er.grad(lambda x, *others: er.sum(of_one(x, *others) ** 2))(*samples)

        check(slope, [0] * len(arrays), *arrays)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[int | None], Sequence[Any]]] = {
    "constants": (lambda x: er.ones(3) + er.arange(3), [0], [X]),
    "closed over": (lambda x: er.asarray(X) @ x, [0], [X]),
    "another axis": (lambda x, w: x @ w, [1, None], [X.T, W]),
    "last axis": (lambda x, y: x + y, [-1, 0], [X, X[0]]),
    "slices": (lambda x: x[::-2] * x[1], [0], [X]),
    "positions": (lambda x, i: x[i] + er.take(X, i, axis=0), [0, 0], [X, np.array([0, 2, 1, -1])]),
    "positions of shared": (lambda x, i: x[i], [None, 0], [X, np.array([[0, 2], [1, 1], [3, 0]])]),
    "masked": (lambda x: er.where(x > 0, x, 0.0).sum(), [0], [X]),
    "argmax": (er.argmax, [0], [X]),
    "whole numbers": (lambda x: x // 2 + x % 3, [0], [np.arange(6, dtype="i4").reshape(2, 3)]),
    "powers": (lambda x, p: x**p, [0, 0], [np.arange(1, 4), np.arange(3)]),
    "bools": (lambda x: (x > 0) & (x < 1), [0], [X]),
    "complex": (lambda z: er.sum(z * er.conj(z)) + z, [0], [X + 1j * X[::-1]]),
    "implicit einsum": (lambda x: er.einsum("ba,a", X @ np.ones((3, 3)), x), [0], [X]),
    "einsum with dots": (lambda x: er.einsum("...i,i->...", X, x), [0], [X]),
    "distances": (lambda x: er.einsum("i,j->ij", x, x, join="sq(x-y)", reduce="max"), [0], [X]),
    "softmax of products": (lambda x, w: er.softmax(er.tanh(x @ w) @ w.T), [0, None], [X, W]),
    "no samples": (lambda x: x.sum(), [0], [np.zeros((1, 0))]),
    "jitted": (er.jit(lambda x: er.tanh(x) * 2), [0], [X]),
    "a gradient by what is shared": (lambda x: er.grad(lambda w: er.sum(er.tanh(x @ w)))(W), [0], [X]),
    "a gradient by an array": (lambda x: _by_array(x), [0], [X]),
    "a gradient of a gradient": (er.grad(lambda x: er.sum(er.grad(lambda y: er.sum(er.exp(y @ W)))(x) ** 2)), [0], [X]),
    "a gradient that is zero": (er.grad(lambda x: er.sum(er.asarray(W)) * 1.0), [0], [X]),
    "a gradient of what is shared": (lambda x: er.grad(lambda w, y: er.sum(w * w) + 0.0)(W, x) * x[0], [0], [X]),
}


def _by_array(x: Any) -> Any:
    w = er.asarray(W)
    return er.grad(er.sum((x @ w) ** 2), w)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("jitted", [False, True])
def test_functions_of_samples(name: str, jitted: bool) -> None:
    function, in_axes, arrays = FUNCTIONS[name]
    expected = by_loop(function, in_axes, *arrays)
    many = er.vmap(function, tuple(in_axes))
    found = (er.jit(many) if jitted else many)(*arrays)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-12)


def test_of_no_samples_there_is_nothing() -> None:
    assert er.vmap(lambda x: er.tanh(x) @ W)(np.zeros((0, 3))).shape == (0, 2)


def test_samples_of_samples() -> None:
    distances = er.vmap(er.vmap(lambda x, y: er.sum((x - y) ** 2), (None, 0)), (0, None))(X, X)
    np.testing.assert_allclose(distances, ((X[:, None] - X[None]) ** 2).sum(-1))
    inner = er.vmap(lambda x: er.vmap(lambda y: x * y.sum(), out_axes=1)(X), out_axes=2)(X)
    np.testing.assert_allclose(inner, np.einsum("ai,bj->ibaj", X, X).sum(-1).reshape(3, 4, 4))


def test_a_gradient_of_samples() -> None:
    loss = er.vmap(lambda w, x: er.sum(er.tanh(x @ w)), (None, 0))
    slope = er.grad(lambda w: er.sum(loss(w, X) ** 2))(W)
    by_rows = er.grad(lambda w: er.sum(er.sum(er.tanh(X @ w), axis=1) ** 2))(W)
    np.testing.assert_allclose(slope, by_rows, rtol=1e-12)


def test_containers_of_axes_and_results() -> None:
    def function(p: Any, x: Any, *, named: Any) -> Any:
        return {"sum": x + p["b"], "all": (p["w"] @ x, 1.5, "name"), "named": named}

    found = er.vmap(function, in_axes=({"w": None, "b": 0}, 1), out_axes={"sum": 1, "all": 0, "named": 0})(
        {"w": W.T, "b": np.arange(4.0)}, X.T, named=np.arange(4)
    )
    np.testing.assert_allclose(found["sum"], (X + np.arange(4.0)[:, None]).T)
    np.testing.assert_allclose(found["all"][0], X @ W)
    assert found["all"][1].tolist() == [1.5] * 4 and found["all"][2] == "name"
    assert found["named"].tolist() == [0, 1, 2, 3]
    shared = er.vmap(lambda x: (x, er.asarray(W) * 2), out_axes=(0, None))(X)[1]
    np.testing.assert_allclose(shared, W * 2)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "numbers of samples": (
        lambda: er.vmap(lambda x, y: x)(X, X[:2]),
        ValueError,
        r"4 in argument \[0\], 2 in argument",
    ),
    "a number": (lambda: er.vmap(lambda x, y: x)(X, 1.0), ValueError, r"axis 0 of argument \[1\], of shape \(\)"),
    "no samples": (lambda: er.vmap(lambda x: x, in_axes=None)(X), ValueError, "needs an argument with"),
    "too many axes": (lambda: er.vmap(lambda x: x, in_axes=(0, 1))(X), ValueError, "2 axes for 1 values"),
    "other keys": (lambda: er.vmap(lambda p: p["a"], ({"b": 0},))({"a": X}), ValueError, "in_axes"),
    "differing": (lambda: er.vmap(lambda x: x, out_axes=None)(X), ValueError, "differs from sample to sample"),
    "elements": (lambda: er.vmap(lambda x: x if x[0] > 0 else -x)(X), er.ProgramError, "traced"),
    "numpys": (lambda: er.vmap(np.sort)(X), er.ProgramError, "traced"),
    "no function": (lambda: er.vmap(X), TypeError, "a function of samples"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_function_of_samples_says_so(name: str) -> None:
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()


def test_a_way_from_outside_is_not_lost() -> None:
    w = er.asarray(np.ones(3))
    doubled = w * 2
    with pytest.raises(NotImplementedError, match="made before, outside"):
        er.vmap(lambda x: er.grad(er.sum((doubled * x + w) ** 2), w))(X)
