"""What somebody holds keeps its value, once it is computed on the way to something else, and so does what that needs;
what nobody holds does not."""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import einrel as er

SHAPE = (6, 5)


class Asked:
    """An array that counts how often somebody asks for all of its elements."""

    def __init__(self, elements: np.ndarray[Any, Any]) -> None:
        self.times = 0
        self._elements = elements
        self.array = er.from_function(elements.shape, self._part)

    def _part(self, region: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        self.times += 1
        return self._elements[region]


def is_computed(x: er.Array) -> bool:
    return "not computed" not in repr(x)


def test_a_held_array_is_computed_once(rng: np.random.Generator) -> None:
    elements = rng.random(SHAPE)
    asked = Asked(elements)
    y = er.exp(asked.array)
    for k in range(5):
        np.testing.assert_allclose(float(er.sum(y * k)), np.exp(elements).sum() * k)
    assert asked.times == 1


def test_a_loop_that_prints_goes_on_from_the_last_step(rng: np.random.Generator) -> None:
    u = start = rng.random(SHAPE)
    asked = Asked(start)
    ours = asked.array
    for _ in range(6):
        ours = er.tanh(ours @ ours.T @ ours + 0.1)
        u = np.tanh(u @ u.T @ u + 0.1)
        np.testing.assert_allclose(float(f"{er.sum(ours):.12f}"), u.sum())
        assert is_computed(ours)
    assert asked.times == 1


def test_training_keeps_weights_and_the_loss(rng: np.random.Generator) -> None:
    x, y, w = rng.random((20, 3)), rng.random(20), np.zeros(3)
    ours = er.asarray(w)
    for _ in range(5):
        loss = er.mean((er.asarray(x) @ ours - y) ** 2)
        ours = ours - 0.1 * er.grad(loss, ours)
        expected = ((x @ w - y) ** 2).mean()
        w = w - 0.1 * 2 * x.T @ (x @ w - y) / 20
        np.testing.assert_allclose(np.asarray(ours), w)
        assert is_computed(loss)  # of which the gradient took a copy
        np.testing.assert_allclose(float(loss), expected)


STEPS = 12


def slope(xp: Any, a: Any, w: Any) -> tuple[Any, Any]:
    """A loss and its gradient: by `er.value_and_grad`, and written out."""
    if xp is er:
        return er.value_and_grad(lambda v: er.sum((er.tanh(a @ v) - 1) ** 2))(w)  # type: ignore[no-any-return]
    t = np.tanh(a @ w)
    return ((t - 1) ** 2).sum(), a.T @ (2 * (t - 1) * (1 - t**2))


def looks_after_the_update(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    w = start
    for _ in range(STEPS):
        loss, change = slope(xp, a, w)
        w = w - 0.1 * change
        yield loss


def has_gradients_of_arrays(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    w = start * 1
    for _ in range(STEPS):
        loss = xp.sum((xp.tanh(a @ w) - 1) ** 2)
        w = w - 0.1 * (er.grad(loss, w) if xp is er else slope(np, a, w)[1])
        yield loss


def has_momentum(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    state = {"w": start, "m": start * 0}
    for _ in range(STEPS):
        loss, change = slope(xp, a, state["w"])
        m = 0.9 * state["m"] + change
        state = {"w": state["w"] - 0.1 * m, "m": m}
        yield loss


def looks_at_times(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    w = start
    for step in range(3 * STEPS):
        loss, change = slope(xp, a, w)
        w = w - 0.1 * change
        if step % 3 == 2:
            yield loss


def trains_on_a_state(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    w, u = start, start * 2
    for _ in range(STEPS):
        u = xp.sin(u @ a) + 1
        loss, change = slope(xp, a * u, w)
        w = w - 0.1 * change
        yield loss


def laplacian(xp: Any, u: Any) -> Any:
    return xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1) - 4 * u


def has_two_states(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    u, v = start + a, start - a
    for _ in range(STEPS):
        r = u * v * v
        u, v = u + 0.1 * laplacian(xp, u) - r + 0.04 * (1 - u), v + 0.05 * laplacian(xp, v) + r - 0.1 * v
        yield xp.mean(u)


def looks_at_the_other_state(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    u, v = start + a, start - a
    for _ in range(STEPS):
        u, v = xp.tanh(u @ v), xp.cos(u - v)
        yield xp.max(v)


def looks_at_an_element(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    u = start + a
    for _ in range(STEPS):
        u = u + 0.1 * laplacian(xp, u)
        yield u[2, 3]


def looks_at_a_row(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    u = start + a
    for _ in range(STEPS):
        u = xp.tanh(u * 1.1)
        yield xp.max(u[2])


def looks_at_what_is_old(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    u = start + a
    for _ in range(STEPS):
        total = xp.sum(u)
        u = xp.sin(u * 1.1)
        yield total


def has_many_states(xp: Any, a: Any, start: Any) -> Iterator[Any]:
    states = [start @ a + k for k in range(80)]
    for _ in range(STEPS):
        total = functools.reduce(operator.add, states)
        states = [xp.cos(u + 0.01 * total) for u in states]
        yield xp.sum(total)


LOOPS = [
    looks_after_the_update,
    has_gradients_of_arrays,
    has_momentum,
    looks_at_times,
    trains_on_a_state,
    has_two_states,
    looks_at_the_other_state,
    looks_at_an_element,
    looks_at_a_row,
    looks_at_what_is_old,
    has_many_states,
]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_loop_that_looks_makes_each_step_once(
    loop: Callable[[Any, Any, Any], Iterator[Any]], rng: np.random.Generator
) -> None:
    a, start = rng.random((5, 5)) / 5, rng.random(5)
    asked = Asked(start)
    forms = []
    for ours, expected in zip(loop(er, a, asked.array), loop(np, a, start)):
        forms.append(er.explain(ours))
        np.testing.assert_allclose(float(ours), expected)
    assert asked.times <= 4
    assert len(forms) == STEPS
    assert len(set(forms[3:])) == 1  # what a look computes is the same program in each step


@pytest.mark.parametrize(("options", "times"), [({}, 1), ({"memory": "64MiB"}, 2)])
def test_what_is_held_is_not_computed_of_the_same_anew(options: dict[str, Any], times: int) -> None:
    asked = Asked(np.ones(SHAPE))
    between = er.exp(asked.array)
    total, later = er.sum(between), er.tanh(between)
    del between
    total.compute(**options)
    later.compute()
    np.testing.assert_allclose(np.asarray(later), np.tanh(np.full(SHAPE, np.e)))
    assert asked.times == times


def test_gradients_go_on_through_what_is_needed(rng: np.random.Generator) -> None:
    x = rng.random(4)
    w = er.asarray(x) * 1
    h = er.sin(w)
    loss = er.sum(h * w)
    first = er.grad(loss, w)
    second = er.grad(er.sum(first**2), w)
    looks = [er.sum(h), er.sum(w * h), er.max(first), loss]
    del h, first, loss
    for look in looks:
        float(look)
    slopes = np.cos(x) * x + np.sin(x)
    np.testing.assert_allclose(np.asarray(second), 2 * slopes * (2 * np.cos(x) - np.sin(x) * x))


# What is held, and what is computed: the first is not made for the second.
NOT_MADE: dict[str, Callable[[er.Array], tuple[er.Array, er.Array]]] = {
    "a view of elements that are there": lambda x: (x.T, er.sum(x.T + 1)),
    "a constant": lambda x: ((y := er.ones(SHAPE)), y + x),
}


@pytest.mark.parametrize("made", NOT_MADE.values(), ids=NOT_MADE)
def test_what_is_not_made_on_the_way_is_not_kept(made: Callable[[er.Array], tuple[er.Array, er.Array]]) -> None:
    held, wanted = made(er.asarray(np.ones(SHAPE)))
    wanted.compute()
    assert not is_computed(held)


# What is made of elements that are not there is made as a whole, also where a part of it is wanted.
MADE: dict[str, Callable[[er.Array], tuple[er.Array, er.Array]]] = {
    "an element": lambda x: ((y := er.exp(x)), y[2, 3]),
    "a slice": lambda x: ((y := er.exp(x)), y[1:3] * 2),
    "an element of a product": lambda x: ((y := x @ x.T), y[2, 3]),
    "a row of what is made of a product": lambda x: ((y := er.tanh(x @ x.T)), y[2]),
    "a view of a product": lambda x: ((y := (x @ x.T).T), er.sum(y)),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_is_made_as_a_whole_is_kept(made: Callable[[er.Array], tuple[er.Array, er.Array]]) -> None:
    held, wanted = made(er.asarray(np.ones(SHAPE)))
    wanted.compute()
    assert is_computed(held)


@pytest.mark.parametrize("options", [{"memory": "64MiB"}, {"memory": "64MiB", "sites": 2}])
def test_a_limit_of_memory_wins(options: dict[str, Any]) -> None:
    y = er.exp(er.asarray(np.ones(SHAPE)))
    er.sum(y).compute(**options)
    assert not is_computed(y)


def test_a_plan_is_of_what_was_planned() -> None:
    y = er.exp(er.asarray(np.ones(SHAPE)))
    total = er.sum(y)
    total.compute(plan=total.plan(sites=2))
    np.testing.assert_allclose(float(total), 30 * np.e)
    assert not is_computed(y)


@pytest.mark.parametrize(("extent", "is_kept"), [(12_000, False), (1_000, True)])
def test_no_more_than_a_gigabyte_is_kept(extent: int, is_kept: bool) -> None:
    x = er.asarray(np.arange(extent) / extent)
    larger = er.maximum(x[:, None], x)
    np.testing.assert_allclose(float(er.max(larger)), (extent - 1) / extent)
    assert is_computed(larger) == is_kept


def test_of_many_held_arrays_the_last_ones_are_kept() -> None:
    x = er.asarray(np.ones(3))
    held = [x]
    for _ in range(1100):
        held.append(held[-1] + 1)
    assert er.sum(held[-1]).tolist() == 3303.0
    assert [is_computed(one) for one in held[1:]] == [False] * 76 + [True] * 1024
    assert held[50].tolist() == [51.0] * 3


def test_gradients_go_through_what_was_kept(rng: np.random.Generator) -> None:
    w = rng.random(4)
    ours = er.asarray(w)
    h = er.tanh(ours * 3)
    total = er.sum(h * ours)
    assert float(total) > 0
    assert is_computed(h)
    expected = np.tanh(3 * w) + 3 * w * (1 - np.tanh(3 * w) ** 2)
    np.testing.assert_allclose(np.asarray(er.grad(total, ours)), expected)
    of_h, of_w = er.grad(total, [h, ours])
    np.testing.assert_allclose(np.asarray(of_h), w)
    np.testing.assert_allclose(np.asarray(of_w), expected)


def test_traced_functions_keep_nothing_of_their_own() -> None:
    kept = []

    def f(x: er.Array) -> er.Array:
        kept.append(er.exp(x))
        return er.sum(er.grad(er.sum(kept[-1] * x), x))

    np.testing.assert_allclose(float(er.jit(f)(np.ones(2))), 4 * np.e)
    with pytest.raises(er.ProgramError, match="traced"):
        kept[0].tolist()
    np.testing.assert_allclose(np.asarray(er.grad(f)(np.ones(2))), np.full(2, 3 * np.e))


def test_slices_of_a_large_array_take_no_longer_the_more_there_are() -> None:
    """What it holds is counted once, however many slices are made of it, so that not all are looked at for each few."""

    def seconds_of_the_later(x: er.Array) -> float:
        slices = [x[i % 4] for i in range(10_000)]
        started = time.process_time()
        slices += [x[i % 4] for i in range(10_000)]
        return time.process_time() - started

    small, large = er.asarray(np.ones((4, 10))), er.asarray(np.ones((4, 3_000_000)))
    assert min(seconds_of_the_later(large) / seconds_of_the_later(small) for _ in range(3)) < 1.6
