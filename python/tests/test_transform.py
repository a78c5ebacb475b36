"""Gradients of functions and of arrays, whatever is done on the way."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import einrel as er

W = np.array([0.5, -1.0, 2.0])

# Debian's torch was built for an older NumPy; it is given lists.
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")


def by_differences(f: Callable[[Any], Any], at: np.ndarray) -> np.ndarray:
    """The gradient of a function of one array, which gives a number."""
    h = 1e-6
    steps = h * np.eye(at.size).reshape(at.size, *at.shape)
    slopes = [float(f(er.asarray(at + s))) - float(f(er.asarray(at - s))) for s in steps]
    return np.reshape(slopes, at.shape) / (2 * h)


LOOKS: dict[str, Callable[[er.Array], Any]] = {
    "asarray": np.asarray,
    "tolist": lambda h: h.tolist(),
    "compute": lambda h: h.compute(),
    "together": lambda h: er.compute(h, h + 1),
    "print": lambda h: f"{h} {h[0]:.3f} {h.compute()!r}",
    "float": lambda h: float(h[0]) + h[1].item() + int(h[2]),
    "bool": lambda h: bool((h > 0).any()) and not np.isfinite(h).all(),
    "pickle": lambda h: pickle.loads(pickle.dumps(h)),
    "deepcopy": copy.deepcopy,
    "copy": lambda h: er.asarray(h, copy=True),
    "sort": np.sort,
    "dlpack": lambda h: torch.from_dlpack(h),
    "mask": lambda h: h[h > 0],
    "jit": lambda h: er.jit(lambda x: x * 2)(h),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_was_looked_at_has_the_same_gradient(look: Callable[[er.Array], Any]) -> None:
    def loss(w: er.Array) -> er.Array:
        h = er.tanh(w * 3)
        look(h)
        return er.sum(h * w) + er.sum(w * w)

    expected = np.tanh(3 * W) + 3 * W * (1 - np.tanh(3 * W) ** 2) + 2 * W
    np.testing.assert_allclose(er.grad(loss)(W), expected)
    w = er.asarray(W)
    np.testing.assert_allclose(er.grad(loss(w), w), expected)


def layers(w: er.Array) -> er.Array:
    """The arrays on the way are gone at the end, after they were looked at."""
    h = w
    for _ in range(5):
        h = er.tanh(h * w + 0.1)
        assert np.isfinite(np.asarray(h)).all()
    return er.sum(h * h)


def test_arrays_that_were_looked_at_and_are_gone() -> None:
    expected = by_differences(layers, W)
    np.testing.assert_allclose(er.grad(layers)(W), expected, rtol=1e-6)
    w = er.asarray(W)
    np.testing.assert_allclose(er.grad(layers(w), w), expected, rtol=1e-6)


COPIES: dict[str, Callable[[er.Array], Any]] = {
    "deepcopy": copy.deepcopy,
    "copy": lambda h: er.asarray(h, copy=True),
    "list": lambda h: er.asarray([h[0], h[1], h[2]]),
    "nested list": lambda h: er.asarray([[h[0], 1.0], [h[1], h[2]]]),
    "full": lambda h: er.full((2, 3), h[0]) * er.full_like(h, h[1]),
    "linspace": lambda h: er.linspace(h[0], h[2], 5),
    "from_dlpack": er.from_dlpack,
    "list as operand": lambda h: [h[0], 1.0, h[2]] * er.asarray(W),
    "jit": er.jit(lambda h: h * 1),
    "jit of several": lambda h: er.jit(lambda a, b: {"x": [a * b]})(h, h)["x"][0],
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_and_traced_results_carry_gradients(copied: Callable[[er.Array], Any]) -> None:
    def loss(w: er.Array) -> er.Array:
        return er.sum(er.square(copied(er.tanh(w)))) + er.sum(w)

    expected = by_differences(loss, W)
    np.testing.assert_allclose(er.grad(loss)(W), expected, rtol=1e-6)
    w = er.asarray(W)
    np.testing.assert_allclose(er.grad(loss(w), w), expected, rtol=1e-6)


# What is no part of a graph; each of these lines has to be named.
LEAVING: dict[str, Callable[[er.Array], Any]] = {
    "sort": lambda w: np.sort(w),
    "partition": lambda w: np.partition(w, 1),
    "det": lambda w: np.linalg.det(er.outer(w, w) + er.eye(3)),
    "median": lambda w: np.median(w),
    "eigh": lambda w: np.linalg.eigh(er.outer(w, w)).eigenvalues,
    "accumulate": lambda w: np.hypot.accumulate(w),
    "out": lambda w: np.multiply(w, w, out=np.zeros(3)),
    "einsum out": lambda w: er.einsum("i,i->i", w, w, out=np.zeros(3)),
    "elements": lambda w: np.asarray(w * 2),
    "part of elements": lambda w: np.asarray(w * 2)[::-1][:2],
    "other type": lambda w: np.asarray(w * 2, dtype="f4"),
    "transposed": lambda w: np.asarray(er.outer(w, w)).T,
    "cast": lambda w: er.asarray(np.asarray(er.outer(w, w)).T, dtype="f4"),
    "buffer": lambda w: np.frombuffer(memoryview(np.asarray(w * 2))),
    "dlpack": lambda w: np.from_dlpack(w * 2),
    "pytorch": lambda w: torch.from_dlpack(w * 2),
    "copy": lambda w: np.copy(w),
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("by_function", [False, True])
def test_a_gradient_through_what_left_the_graph_is_refused(leave: Callable[[er.Array], Any], by_function: bool) -> None:
    def loss(w: er.Array) -> er.Array:
        return er.sum(er.square(er.asarray(leave(w)))) + er.sum(w * w)

    line = inspect.getsourcelines(leave)[1]
    w = er.asarray(W)
    with pytest.raises(er.ProgramError, match=rf"test_transform.py, line {line}\b"):
        er.grad(loss)(W) if by_function else er.grad(loss(w), w)
    value = loss(w)
    np.testing.assert_allclose(er.grad(er.sum(w * value) + value, value), W.sum() + 1)


def test_what_left_the_graph_may_be_a_constant() -> None:
    def loss(w: er.Array) -> er.Array:
        largest = er.stop_gradient(np.sort(w))[-1]
        order = np.argsort(w)  # positions have no gradient
        return er.sum(w[order] * np.arange(3.0)) * largest

    expected = 2.0 * np.array([1.0, 0.0, 2.0])
    np.testing.assert_allclose(er.grad(loss)(W), expected)
    w = er.asarray(W)
    np.testing.assert_allclose(er.grad(loss(w), w), expected)
    numbers = float(er.sum(w))  # as PyTorch's item(): a number of Python's is a constant
    np.testing.assert_allclose(er.grad(er.sum(w) * numbers, w), [1.5, 1.5, 1.5])


def test_numpys_functions_of_elements_give_our_arrays() -> None:
    x = er.asarray(np.array([3.0, 1.0], "f4"))
    assert isinstance(np.sort(x), er.Array)
    assert np.sort(x).dtype == np.float32
    assert (np.sort(x) * 2).tolist() == [2.0, 6.0]
    values, vectors = np.linalg.eigh(er.eye(2))
    assert isinstance(vectors, er.Array) and values.tolist() == [1.0, 1.0]
    assert isinstance(np.argsort(x), np.ndarray)
    assert isinstance(np.fft.fft(x), er.Array)  # complex
    assert np.copy(x).flags.writeable
    assert np.allclose(x, x) is True


def test_arguments_in_any_form() -> None:
    def loss(parameters: dict[str, Any], x: er.Array, *, power: int = 2) -> er.Array:
        (a, b), c = parameters["list"], parameters["c"]
        return er.sum(a * x**power) + b * er.sum(c)

    given = {"list": [np.array([1.0, 2.0]), 3.0], "c": (np.ones((2, 2), "f4"))}
    x = np.array([1.0, 10.0])
    slopes = er.grad(loss)(given, x)
    np.testing.assert_allclose(slopes["list"][0], x**2)
    assert float(slopes["list"][1]) == 4.0
    np.testing.assert_allclose(slopes["c"], np.full((2, 2), 3.0))
    assert slopes["c"].dtype == np.float32
    by_x = er.grad(loss, 1)(given, x, power=3)
    np.testing.assert_allclose(by_x, 3 * x**2 * given["list"][0])
    value, (by_all, by_x) = er.value_and_grad(loss, argnums=(0, -1))(given, x)
    assert float(value) == 201.0 + 12.0
    np.testing.assert_allclose(by_x, 2 * x * given["list"][0])
    assert sorted(by_all) == ["c", "list"]


def test_auxiliary_results() -> None:
    def loss(w: er.Array) -> tuple[er.Array, dict[str, er.Array]]:
        h = w * 2
        return er.sum(h * h), {"h": h}

    slope, others = er.grad(loss, has_aux=True)(W)
    np.testing.assert_allclose(slope, 8 * W)
    np.testing.assert_allclose(others["h"], 2 * W)
    (value, others), slope = er.value_and_grad(loss, has_aux=True)(W)
    np.testing.assert_allclose([float(value), *np.asarray(slope)], [4 * (W @ W), *(8 * W)])


def test_only_the_argument_is_differentiated_by() -> None:
    w = er.asarray(W)
    product = lambda a, b: er.sum(a * a * b)  # noqa: E731
    np.testing.assert_allclose(er.grad(product)(w, w), 2 * W * W)
    np.testing.assert_allclose(er.grad(product, 1)(w, w), W * W)
    for slope, expected in zip(er.grad(product, (0, 1))(w, w), (2 * W * W, W * W)):
        np.testing.assert_allclose(slope, expected)
    np.testing.assert_allclose(er.grad(lambda x: er.sum(x * w))(w), W)
    np.testing.assert_allclose(er.jit(er.grad(product))(w, w), 2 * W * W)
    both = er.jit(lambda x: er.grad(product, (0, 1))(x, x))(w)
    np.testing.assert_allclose(both[0], 2 * W * W)
    np.testing.assert_allclose(both[1], W * W)


def test_arguments_of_numpys_may_be_written_to_afterwards() -> None:
    w = W.copy()
    value, slope = er.value_and_grad(lambda p: er.sum(p["w"] ** 2))({"w": w})
    w -= 0.5 * np.asarray(slope["w"])
    assert w.tolist() == [0.0, 0.0, 0.0]
    assert float(value) == W @ W


def test_a_value_and_another_gradient_of_it() -> None:
    w = er.asarray(W)
    value, slope = er.value_and_grad(lambda x: er.sum(x**3))(w)
    np.testing.assert_allclose(er.grad(value + er.sum(slope) + er.sum(w), w), 3 * W**2 + 6 * W + 1)
    np.asarray(slope)
    np.testing.assert_allclose(er.grad(value + er.sum(slope) + er.sum(w), w), 3 * W**2 + 6 * W + 1)


def test_arguments_that_nothing_depends_on_have_gradients_of_zeros() -> None:
    slopes = er.grad(lambda p: er.sum(p["a"]))({"a": W, "b": np.ones(2, "f4")})
    np.testing.assert_array_equal(slopes["b"], np.zeros(2, "f4"))
    slopes = er.grad(lambda a, b: er.sum(a * er.floor(b)), (0, 1))(W, W)
    np.testing.assert_array_equal(slopes[0], np.floor(W))
    np.testing.assert_array_equal(slopes[1], np.zeros(3))
    assert er.grad(lambda x: er.sum(er.floor(x)))(W).tolist() == [0.0, 0.0, 0.0]


def test_functions_without_a_gradient() -> None:
    with pytest.raises(TypeError, match="gave a float"):
        er.grad(lambda w: float(er.sum(w)))(W)
    with pytest.raises(TypeError, match=r"shape \(3,\)"):
        er.grad(lambda w: w * 2)(W)
    with pytest.raises(TypeError, match="int64"):
        er.grad(lambda w: er.sum(w) * 1.0)(np.arange(3))
    with pytest.raises(TypeError, match="given by position"):
        er.grad(lambda w, x: er.sum(w), 2)(W, W)
    with pytest.raises(TypeError, match="a function"):
        er.value_and_grad(W)  # type: ignore[arg-type]


def test_transformations_compose() -> None:
    f = lambda x: er.sum(er.sin(x) * x)  # noqa: E731
    first = W * np.cos(W) + np.sin(W)
    second = 2 * np.cos(W) - W * np.sin(W)
    third = -3 * np.sin(W) - W * np.cos(W)
    total = lambda g: lambda x: er.sum(g(x))  # noqa: E731
    for one in (er.grad(f), er.jit(er.grad(f)), er.grad(er.jit(f)), er.jit(er.grad(er.jit(f)))):
        np.testing.assert_allclose(one(W), first)
        np.testing.assert_allclose(one(W), first)
    two = er.grad(total(er.grad(f)))
    for one in (two, er.jit(two), er.grad(er.jit(total(er.jit(er.grad(f))))), er.grad(total(er.grad(er.jit(f))))):
        np.testing.assert_allclose(one(W), second, rtol=1e-12)
    np.testing.assert_allclose(er.grad(total(two))(W), third, rtol=1e-12)
    np.testing.assert_allclose(er.jit(er.grad(er.jit(total(two))))(W), third, rtol=1e-12)


def test_jitted_functions_within_jitted_functions() -> None:
    inner = er.jit(lambda x, by=2: {"y": x * by})
    outer = er.jit(lambda x: inner(x)["y"] + inner(x, by=3)["y"] + 1)
    assert outer(np.ones(2)).tolist() == [6.0, 6.0]
    assert er.jit(lambda w: er.jit(lambda x: x * w)(np.ones(2)))(np.array([2.0, 3.0])).tolist() == [2.0, 3.0]
    with pytest.raises(er.ProgramError, match="traced"):
        er.jit(lambda x: er.jit(lambda y: y if float(y[0]) > 0 else -y)(x))(W)


def test_a_looked_at_argument_that_is_not_computed_yet() -> None:
    w = er.asarray(W)
    slope = er.grad(lambda h: er.sum(h * h) if float(h[0]) < 1 else er.sum(h))(er.tanh(w))
    np.testing.assert_allclose(slope, 2 * np.tanh(W))


def test_gradients_by_what_is_computed_in_between() -> None:
    base = er.asarray(W)
    w = base * 1
    slope = er.grad(er.sum(w**3), w)
    np.asarray(w)
    loss = er.sum(slope * w)
    np.testing.assert_allclose(er.grad(loss, w), 9 * W**2)
    np.asarray(slope)
    np.testing.assert_allclose(er.grad(loss, w), 9 * W**2)
    np.testing.assert_allclose(er.grad(loss, [w, base])[1], 9 * W**2)
    del base
    for _ in range(100):  # so that how w was made is forgotten
        np.asarray(w * 2)
    np.testing.assert_allclose(er.grad(loss, w), 9 * W**2)


@pytest.mark.parametrize("steps", [20, 60])
def test_a_gradient_by_an_array_from_which_all_is_gone_is_refused(steps: int) -> None:
    """What a long loop computes forgets how; the array at its beginning is still there."""
    w = er.asarray(np.ones(1 << 20))
    h = w
    for _ in range(steps):
        h = h * 1.5
        h.compute()
    with pytest.raises(er.ProgramError, match=r"computed in .*test_transform.py, line \d+, from arrays that are gone"):
        er.grad(er.sum(h) + er.sum(w), w)
    np.testing.assert_allclose(er.grad(er.sum(h * w), h), np.ones(1 << 20))

    def loop(w: er.Array) -> er.Array:
        h = w
        for _ in range(20):
            h = h * 1.5
            h.compute()
        return er.sum(h) + er.sum(w)

    np.testing.assert_allclose(er.grad(loop)(w), np.full(1 << 20, 1.5**20 + 1))


@pytest.mark.parametrize("jitted", [False, True])
def test_a_loop_keeps_few_elements_that_nobody_holds(jitted: bool) -> None:
    """Though there is an array by which gradients might be asked for, and all losses are kept."""
    rate = er.asarray(np.array(0.5))
    step = (er.jit if jitted else lambda f: f)(lambda w, x: (w * rate + x, er.sum(w)))
    w: Any = np.zeros(1 << 20)
    losses, batches = [], []
    for _ in range(40):
        x = np.ones(1 << 20)
        batches.append(weakref.ref(x))
        w, loss = step(er.asarray(w), x)
        er.compute(w, loss)
        losses.append(loss)
    del x
    gc.collect()
    assert sum(batch() is not None for batch in batches) <= 20


def test_what_nothing_asks_for_is_forgotten_at_once() -> None:
    x = np.ones(4)
    kept = weakref.ref(x)
    y = er.asarray(x) + 1
    del x
    np.asarray(y)
    gc.collect()
    assert kept() is None


def test_programs_of_what_was_looked_at() -> None:
    x = er.asarray(W)
    total = er.sum(x * x)
    float(total)
    program = er.program_of({"y": x / total}, {"x": x})
    np.testing.assert_allclose(program.run(x=2 * W).y, 2 * W / (4 * (W @ W)))
    with pytest.raises(er.ProgramError, match="numpy.sort"):
        er.program_of({"y": x * np.sort(x)[0]}, {"x": x})


def test_gradients_beside_pytorchs(rng: np.random.Generator) -> None:
    x, w, v = rng.normal(size=(6, 4)), rng.normal(size=(4, 3)), rng.normal(size=3)
    pick = np.array([2, 0, 2])

    @er.jit
    def layer(x: er.Array, w: er.Array) -> er.Array:
        return er.tanh(x @ w)

    def loss(w: er.Array, v: er.Array, looks: bool = True) -> er.Array:
        h = layer(x, w)
        if looks:
            assert h.tolist()
        chosen = h[pick] * np.exp(v)
        return er.logsumexp(chosen) + er.linalg.vector_norm(h) * er.std(v)

    tw, tv = (torch.tensor(a.tolist(), dtype=torch.float64, requires_grad=True) for a in (w, v))
    th = torch.tanh(torch.tensor(x.tolist(), dtype=torch.float64) @ tw)
    chosen = th[torch.tensor(pick.tolist())] * torch.exp(tv)
    (torch.logsumexp(chosen.reshape(-1), 0) + torch.linalg.norm(th) * torch.std(tv, unbiased=False)).backward()
    traced = er.jit(er.grad(er.jit(loss), (0, 1)))
    for slopes in (er.grad(loss, (0, 1))(w, v), traced(w, v, looks=False), er.grad(loss, (0, 1))(w, v, looks=False)):
        for slope, expected in zip(slopes, (tw.grad, tv.grad)):
            np.testing.assert_allclose(slope, expected.tolist(), rtol=1e-9)


def test_gradients_of_gradients_beyond_the_bound_are_refused_not_zero() -> None:
    def slope(x: Any) -> Any:
        return er.exp(er.sin(x) * x) / (1 + x * x)

    nested = slope
    for _ in range(10):
        nested = er.grad(nested)
    with pytest.raises(er.ProgramError, match="expand to more than"):
        nested(er.asarray(1.0))


@pytest.mark.parametrize(("of", "by"), [(3, 0), (np.ones(2), W), (er.asarray(1.0), 0), (er.asarray(1.0), W), ("f", W)])
def test_what_has_no_gradient_says_what_has_one(of: Any, by: Any) -> None:
    with pytest.raises(TypeError, match="give a function, or an einrel.Array"):
        er.grad(of, by)
    with pytest.raises(TypeError, match="by others, not by ndarray"):
        er.grad(er.asarray(1.0), [W])
