"""Loops as programs with state, beside Python's own."""

from __future__ import annotations

import dataclasses
import functools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import einrel as er
from einrel import _steps

A = np.random.default_rng(0).normal(size=(3, 3)) / 3


def repeated(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    return functools.reduce(lambda value, i: body(i, value), range(lower, upper), init)


LOOPS: dict[str, tuple[int, int, Callable[[Any, Any], Any], Any]] = {
    "whole numbers": (0, 10, lambda i, x: x + i, np.int64(0)),
    "backwards in meaning": (-3, 4, lambda i, x: x * 2 - i, np.int64(1)),
    "matrices": (0, 60, lambda i, x: np.tanh(x @ A) + i * 0.01, A),
    "a transposed result": (0, 5, lambda i, x: x.T @ A, A),
    "without the number": (0, 7, lambda i, x: x @ A, A),
    "without the value": (0, 7, lambda i, x: A * i, A),
    "unchanged": (0, 3, lambda i, x: x, A),
    "several": (
        0,
        9,
        lambda i, v: {"a": v["b"], "b": [v["a"][0] + v["b"][0]]},
        {"a": [np.int64(0)], "b": [np.int64(1)]},
    ),
    "one is not read": (0, 4, lambda i, v: (v[1], v[1] * 2, v[2]), (np.float64(7), np.float64(1), A)),
    "bools": (0, 5, lambda i, x: ~x, np.array([True, False])),
    "complex": (0, 6, lambda i, z: z * z * 0.5 + 0.1j, np.array([0.2 + 0.3j, -0.4])),
    "single": (0, 6, lambda i, x: x * 1.5 + i, np.ones(3, "f4")),
    "none": (3, 3, lambda i, x: x + 1, A),
    "empty": (0, 3, lambda i, x: x + 1, np.zeros((0, 2))),
}


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        same(list(found.values()), list(expected.values()))
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_numbers(name: str) -> None:
    lower, upper, body, init = LOOPS[name]
    expected = repeated(lower, upper, body, init)
    same(er.fori_loop(lower, upper, body, init), expected)
    same(er.jit(lambda value: er.fori_loop(lower, upper, body, value))(init), expected)


@pytest.mark.parametrize("scale", [1.0, 2.0, 3.0])
def test_a_loop_takes_arrays_from_around_it_as_they_are(scale: float) -> None:
    lazy = er.asarray(A) * scale
    found = er.fori_loop(0, 4, lambda i, x: x @ lazy + scale, np.ones(3))
    np.testing.assert_allclose(found, repeated(0, 4, lambda i, x: x @ (A * scale) + scale, np.ones(3)))


def test_many_steps_are_one_program() -> None:
    total = er.fori_loop(0, 200_000, lambda i, x: x + i % 7, 0)
    assert total.tolist() == sum(i % 7 for i in range(200_000))


def test_while_a_condition_holds() -> None:
    def root(x: float) -> Any:
        def better(state: Any) -> Any:
            guess, steps = state
            return (guess + x / guess) / 2, steps + 1

        return er.while_loop(lambda state: er.abs(state[0] ** 2 - x) > 1e-12, better, (x, 0))

    for x in (2.0, 9.0, 1.0):
        guess, steps = root(x)
        np.testing.assert_allclose(float(guess), x**0.5, rtol=1e-12)
        assert int(steps) < 8 and (x > 1 or int(steps) == 0)
    assert er.while_loop(lambda x: x < 100, lambda x: x * 3, 1).tolist() == 243


def python_scan(function: Callable[..., Any], init: Any, xs: Any, reverse: bool) -> Any:
    rows, value = [], init
    for x in xs[::-1] if reverse else xs:
        value, row = function(value, x)
        rows.append(row)
    return value, np.stack(rows[::-1] if reverse else rows)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 5, 300, 700])
def test_scans(count: int, reverse: bool) -> None:
    xs = np.random.default_rng(count).normal(size=(count, 3))

    def step(h: Any, x: Any) -> Any:
        after = np.tanh(h @ A + x)
        return after, after * 2 + x

    expected = python_scan(step, np.zeros(3), xs, reverse)
    same(er.scan(step, np.zeros(3), xs, reverse=reverse), expected)
    if count < 100:
        same(er.jit(lambda xs: er.scan(step, np.zeros(3), xs, reverse=reverse))(xs), expected)


def test_what_steps_give_may_be_of_any_form_and_size() -> None:
    xs = {"x": np.arange(12.0).reshape(4, 3), "n": np.arange(4)}

    def step(total: Any, x: Any) -> Any:
        return total + x["x"].sum(), {"big": er.ones((50, 400)) * x["n"], "is_even": x["n"] % 2 == 0, "name": "step"}

    total, given = er.scan(step, 0.0, xs)
    assert total.tolist() == 66.0 and given["name"] == "step" and given["is_even"].tolist() == [True, False] * 2
    assert given["big"].shape == (4, 50, 400) and given["big"][:, 3, 3].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert er.scan(lambda x, _: (x * 2, None), 1, length=10)[0].tolist() == 1024
    assert er.scan(lambda x, _: (x * 2, x), 1, length=3)[1].tolist() == [1, 2, 4]


def test_no_steps_give_nothing() -> None:
    for run in (lambda f: f(), lambda f: er.jit(lambda x: f())(1.0)):
        value, given = run(lambda: er.scan(lambda v, x: (v + x.sum(), x[:2]), 0.5, np.zeros((0, 3))))
        assert value.tolist() == 0.5 and given.shape == (0, 2)


def test_gradients_go_through_steps() -> None:
    def by_scan(w: Any) -> Any:
        last, rows = er.scan(lambda h, x: (er.tanh(h @ w + x), er.sum(h)), np.zeros(3), A)
        return er.sum(last) + er.sum(rows**2)

    def by_loop(w: Any) -> Any:
        return er.sum(er.fori_loop(0, 4, lambda i, h: er.tanh(h @ w + i), np.ones(3)))

    def by_while(w: Any) -> Any:
        return er.while_loop(lambda x: x < 50, lambda x: x * (1.5 + er.sum(w * w)), 1.0)

    h = 1e-6
    for function in (by_scan, by_loop, by_while):
        slopes = [
            (float(function(A + h * d)) - float(function(A - h * d))) / (2 * h) for d in np.eye(9).reshape(9, 3, 3)
        ]
        np.testing.assert_allclose(er.grad(function)(A), np.reshape(slopes, (3, 3)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(er.jit(er.grad(by_scan))(A), er.grad(by_scan)(A))
    many = er.vmap(by_loop)(np.stack([A, -A]))
    np.testing.assert_allclose(many, [float(by_loop(A)), float(by_loop(-A))])


def test_a_gradient_through_a_loop_outside_of_a_function_is_refused() -> None:
    w = er.asarray(2.0)
    with pytest.raises(er.ProgramError, match="computed by a loop in .*test_loops"):
        er.grad(er.fori_loop(0, 5, lambda i, x: x * w, 1.0) + w, w)
    with pytest.raises(er.ProgramError, match="computed by a loop"):
        er.grad(er.sum(er.scan(lambda x, _: (x * w, x), 1.0, length=3)[1]) + w, w)


def test_training_in_a_loop() -> None:
    x = np.random.default_rng(4).normal(size=(40, 3))
    y = x @ np.array([1.0, -2.0, 0.5])
    optimiser = er.optim.adam(0.05)

    def step(i: Any, both: Any) -> Any:
        w, state = both
        noise = er.random.normal(er.random.fold_in(er.random.key(0), i), y.shape) * 1e-3
        updates, state = optimiser.update(er.grad(lambda w: er.mean((x @ w - y + noise) ** 2))(w), state)
        return er.optim.apply_updates(w, updates), state

    start = (np.zeros(3), optimiser.init(np.zeros(3)))
    w, state = er.fori_loop(0, 400, step, start)
    np.testing.assert_allclose(w, [1.0, -2.0, 0.5], atol=0.02)
    assert state.done.tolist() == 400
    few = er.fori_loop(0, 5, step, start)[0]
    np.testing.assert_allclose(few, repeated(0, 5, step, start)[0], rtol=1e-12)


def test_errors_of_a_step_are_those_of_numpy() -> None:
    said = r"in a dimension of extent 3.*; in a loop in .*test_loops.py, line [0-9]+$"
    for run in (lambda f: f, er.jit, er.grad):
        with pytest.raises(IndexError, match=said):
            run(lambda start: er.fori_loop(0, 5, lambda i, x: x + er.take(A[0], i), start))(0.0)
    line = r"made in .*test_loops.py, line [0-9]+"
    with pytest.raises(er.RunError, match=rf"an array of shape \(1000000,\), {line}, needs .*; in a loop in .*.py"):
        er.fori_loop(0, 2, lambda i, x: (er.zeros((10**6, 10**6)) + x) @ x, er.ones(10**6))


@dataclasses.dataclass
class Flagged:
    x: Any
    is_done: Any


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "type": (lambda: er.fori_loop(0, 3, lambda i, x: x + 0.5, 0), TypeError, r"gave float64 .* in place of int64"),
    "shape": (lambda: er.fori_loop(0, 3, lambda i, x: {"a": x["a"][:1]}, {"a": A}), TypeError, r"at \['a'\]"),
    "form": (lambda: er.fori_loop(0, 3, lambda i, x: (x, x), 0), TypeError, "keeps its form"),
    "nothing": (lambda: er.while_loop(lambda x: True, lambda x: x, None), TypeError, "its condition never changes"),
    "an attribute": (
        lambda: er.fori_loop(0, 3, lambda i, s: Flagged(s.x, s.x > 0), Flagged(1.0, False)),
        TypeError,
        r"bools in attributes are no arrays: give einrel.asarray\(...\)",
    ),
    "no pair": (lambda: er.scan(lambda v, x: v, 0.0, A[0]), TypeError, "gives what goes on, and a result"),
    "no length": (lambda: er.scan(lambda v, x: (v, v), 0.0), ValueError, "over nothing steps"),
    "lengths": (lambda: er.scan(lambda v, x: (v, v), 0.0, (A, A[:2])), ValueError, "say one number"),
    "numbers": (lambda: er.scan(lambda v, x: (v, v), 0.0, 1.0), ValueError, "say one number"),
    "condition": (lambda: er.while_loop(lambda x: x > 0, lambda x: x, A), TypeError, r"a condition of shape \(3, 3\)"),
    "elements": (lambda: er.fori_loop(0, 3, lambda i, x: x if x > 0 else -x, 1.0), er.ProgramError, "traced"),
    "a traced bound": (
        lambda: er.jit(lambda n: er.fori_loop(0, n, lambda i, x: x, 1.0))(3),
        TypeError,
        "with upper= an argument .* static_argnums.* er.while_loop goes on while i < upper",
    ),
    "a traced array as a bound": (
        lambda: er.jit(lambda n: er.fori_loop(n[0], 5, lambda i, x: x, 1.0))(np.array([3])),
        TypeError,
        "with lower= an argument",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_loop_says_so(name: str) -> None:
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()


def test_a_loop_of_constants_in_a_traced_function_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the function is traced: what it gives is a constant of the program from then on."""
    runs: list[Any] = []
    run_steps = _steps.run_steps
    monkeypatch.setattr(_steps, "run_steps", lambda *of: runs.append(of) or run_steps(*of))

    def powers() -> Any:
        return er.fori_loop(0, 7, lambda i, x: x * 2 + i, np.ones(3))

    constant = repeated(0, 7, lambda i, x: x * 2 + i, np.ones(3))
    both = er.jit(lambda x: (x + powers(), powers()))
    loop_of_it = er.jit(lambda x: er.fori_loop(0, 2, lambda i, y: y + x, powers()))
    for x in (1.0, 2.0, 3.0):
        same(both(np.full(3, x)), (x + constant, constant))
        same(loop_of_it(np.full(3, x)), constant + 2 * x)
    assert len(runs) == 2 + 1 + 3  # two loops of constants, another one, and one that is not of constants


@pytest.mark.parametrize("transformed", [er.jit, lambda f: er.grad(lambda x: er.sum(f(x) * x))])
def test_a_loop_without_a_gradient_keeps_no_history(transformed: Callable[[Any], Any]) -> None:
    """What went on before steps is only kept where a gradient may be asked for."""
    size = 10**5
    function = transformed(lambda x: x + er.fori_loop(0, 20, lambda i, y: y * 0.5 + i, np.ones(size)))
    tracemalloc.start()
    try:
        np.asarray(function(np.ones(size)))
        assert tracemalloc.get_traced_memory()[1] < 10 * size * 8
    finally:
        tracemalloc.stop()


def test_a_history_is_held_once() -> None:
    steps, size = 20, 10**5
    tracemalloc.start()
    try:
        rows = np.asarray(er.scan(lambda x, _: (x * 0.5, x), np.ones(size), length=steps)[1])
        assert tracemalloc.get_traced_memory()[1] < 1.5 * steps * size * 8
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(rows[:, 0], 0.5 ** np.arange(steps))


@pytest.mark.parametrize("run", [lambda f: f, er.jit, lambda f: lambda: er.vmap(lambda x: f())(np.zeros(1))])
@pytest.mark.parametrize("no", [False, np.False_, np.array(False)])
def test_bools_go_on_from_step_to_step(no: Any, run: Any) -> None:
    """Python's, NumPy's, and arrays are the same."""

    def values(tree: Any) -> Any:
        return [np.asarray(one).reshape(-1)[-1].item() for one in tree]

    body = lambda s: (s[0] * 2, s[0] > 3)  # noqa: E731
    assert values(run(lambda: er.while_loop(lambda s: ~s[1], body, (1.0, no)))()) == [8.0, True]
    assert values(run(lambda: er.fori_loop(0, 2, lambda _, s: body(s), (1.0, no)))()) == [4.0, False]
    step = lambda s, x: ((~s[0],), (s[0], True))  # noqa: E731
    (last,), rows = run(lambda: er.scan(step, (no,), np.arange(3)))()
    assert values([last]) == [True]
    assert [np.asarray(row).reshape(-1)[-3:].tolist() for row in rows] == [[False, True, False], [True] * 3]


@pytest.mark.parametrize("nothing", [None, (), {"a": None}, "text"])
def test_a_loop_may_carry_nothing(nothing: Any) -> None:
    xs = np.arange(3.0)
    for run in (lambda f: f, er.jit):
        value, rows = er.scan(lambda v, x: (v, x * 2), nothing, xs)
        assert value == nothing and rows.tolist() == [0.0, 2.0, 4.0]
        rows = run(lambda xs: er.scan(lambda v, x: (v, x * 2), nothing, xs)[1])(xs)
        assert rows.tolist() == [0.0, 2.0, 4.0]
        slope = run(er.grad(lambda xs: er.sum(er.scan(lambda v, x: (v, x * x), nothing, xs)[1])))(xs)
        assert slope.tolist() == [0.0, 2.0, 4.0]
    assert er.vmap(lambda x: er.scan(lambda v, y: (v, x * y), nothing, xs)[1])(xs).tolist() == np.outer(xs, xs).tolist()
    assert er.fori_loop(0, 3, lambda i, v: v, nothing) == nothing
