"""Explanations, plans, pages and errors of functions of functions say names and lines of Python's, and no others."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import einrel as er

Function = Callable[[Any, Any], Any]  # of a matrix and a vector: a number


def plain(weights: Any, start: Any) -> Any:
    hidden = er.tanh(start @ weights)
    return ((hidden - start) ** 2).sum()


def with_numbers(weights: Any, start: Any) -> Any:
    return er.max(er.where(start > 0.5, start * 2 + 1, start[::-1])) * er.mean(er.exp(weights * 0.1))


def with_positions(weights: Any, start: Any) -> Any:
    return er.sum(er.take(weights, np.array([1, 0]), axis=0) @ start) + weights[1, 2]


def with_an_inverse(weights: Any, start: Any) -> Any:
    return er.sum(er.linalg.solve(weights + 5 * er.eye(4), start))


def named(weights: Any, start: Any) -> Any:
    return er.sum(er.named(er.tanh(start @ weights), "hidden") ** 2)


def scanned(weights: Any, start: Any) -> Any:
    def step(state: Any, row: Any) -> tuple[Any, Any]:
        after = er.tanh(state @ weights + row)
        return after, after.sum()

    last, sums = er.scan(step, start, weights)
    return last.sum() + (sums * sums).sum()


def repeated(weights: Any, start: Any) -> Any:
    both = er.fori_loop(0, 3, lambda i, both: {"a": both["a"] @ weights, "b": both["b"] + i}, {"a": start, "b": 0.0})
    return both["a"].sum() * both["b"]


def while_small(weights: Any, start: Any) -> Any:
    return er.while_loop(lambda state: state.sum() < 100, lambda state: state * 2 + weights[0] ** 2, start).sum()


def computed_again(weights: Any, start: Any) -> Any:
    block = er.checkpoint(lambda state: er.tanh(state @ weights))
    return block(block(start)).sum()


def looped_block(weights: Any, start: Any) -> Any:
    block = er.checkpoint(lambda state: er.fori_loop(0, 2, lambda _, inner: er.tanh(inner @ weights), state))
    return er.scan(lambda state, _: (block(state), None), start, length=2)[0].sum()


DIFFERENTIABLE: dict[str, Function] = {
    function.__name__: function
    for function in (
        plain,
        with_numbers,
        with_positions,
        with_an_inverse,
        named,
        scanned,
        repeated,
        computed_again,
        looped_block,
    )
}
OF_GRADIENTS: dict[str, Callable[[Function], Callable[..., Any]]] = {
    "grad": er.grad,
    "grad by both": lambda function: er.grad(function, argnums=(0, 1)),
    "value_and_grad": er.value_and_grad,
    "jacobian": lambda function: er.jacobian(lambda weights, start: weights[0] * function(weights, start)),
    "hessian": lambda function: er.hessian(function, 1),
    "gradient of a gradient": lambda function: er.grad(lambda weights, start: er.grad(function)(weights, start).sum()),
    "vmap of grad": lambda function: er.vmap(er.grad(function, 1), (None, 0)),
    "grad of vmap": lambda function: er.grad(lambda weights, start: er.vmap(function, (None, 0))(weights, start).sum()),
    "jvp": lambda function: lambda weights, start: er.jvp(function, (weights, start), (weights, start)),
    "descent": lambda function: (
        lambda weights, start: er.fori_loop(
            0, 2, lambda _, moved: moved - 0.1 * er.grad(function)(moved, start), weights
        )
    ),
}
OF_VALUES: dict[str, Callable[[Function], Callable[..., Any]]] = {
    "jit": lambda function: function,
    "vmap": lambda function: er.vmap(function, (None, 0)),
}
LOOPS = {"scanned", "repeated", "looped_block"}
SLOW = {"scanned", "looped_block"}  # where all steps are parts of one program
OF_SAMPLES = {"vmap", "vmap of grad", "grad of vmap"}
CASES = [
    *(
        (name, how)
        for name in DIFFERENTIABLE
        for how in (*OF_VALUES, *OF_GRADIENTS)
        if (how != "hessian" or name not in LOOPS) and (how != "descent" or name not in SLOW)
    ),
    *(("while_small", how) for how in OF_VALUES),
]
# t1, grad_t1, t1_index, n0, next_c0: what programs call arrays that nobody named
OF_OURS = re.compile(r"\b(?:(?:grad|next|initial|all)_)*(?:[tnckxybzY]|go)[0-9]+(?:_index\w*)?\b")


def jitted(name: str, how: str) -> tuple[Any, tuple[Any, Any]]:
    function = (DIFFERENTIABLE | {"while_small": while_small})[name]
    transformed = (OF_VALUES | OF_GRADIENTS)[how](function)
    start = np.linspace(0.1, 0.4, 4)
    given = np.full((4, 4), 0.1) + np.eye(4), np.stack([start, start * 2]) if how in OF_SAMPLES else start
    return er.jit(lambda weights, start: transformed(weights, start)), given


def check_said(said: str, but: frozenset[str] = frozenset()) -> None:
    assert set(OF_OURS.findall(said)) <= but
    lines = re.findall(r"(\S*),? \(?line [0-9]+", said)
    assert all(file.endswith("test_names_of_transformations.py,") for file in lines), lines


def programs_in(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["plan"] for one in plan["programs"]] if "programs" in plan else [plan]


def names_in(plan: dict[str, Any]) -> set[str]:
    """What arrays are called in all programs of a plan."""
    return {
        name
        for one in programs_in(plan)
        for name in (*one["inputs"], *one["outputs"], *(vertex["name"] for vertex in one["vertices"]))
    }


@pytest.mark.parametrize(("name", "how"), CASES)
def test_names_and_lines_are_of_python(name: str, how: str) -> None:
    function, given = jitted(name, how)
    sites = {} if name in LOOPS | {"computed_again", "while_small"} else {"sites": 2}  # many programs take long to plan
    plan = json.loads(function.plan(*given, **sites))
    names = names_in(plan)
    assert not set(filter(OF_OURS.fullmatch, names))
    assert any("weights" in name or "start" in name for name in names)
    labels = frozenset(
        label for one in programs_in(plan) for vertex in one["vertices"] for label in vertex["labels"]
    )  # k2, say
    check_said(json.dumps(plan), labels)
    check_said(function.explain(*given, **sites), labels)
    page = html.unescape(function.html(*given, **sites))
    blank = er.jit(lambda weights: weights + weights).html(np.ones(4), **sites)
    check_said(page, labels | frozenset(OF_OURS.findall(blank)))
    with pytest.raises(er.ProgramError) as error:
        function.explain(*given, sites=2, memory=16)
    check_said(str(error.value))


@pytest.mark.parametrize("how", ["grad", "grad by both", "value_and_grad", "gradient of a gradient", "vmap of grad"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_called_by_what_they_are_by(name: str, how: str) -> None:
    function, given = jitted(name, how)
    by = "start" if how == "vmap of grad" else "weights"
    assert any(name.startswith(f"grad_{by}") for name in names_in(json.loads(function.plan(*given))))


def test_steps_of_loops_have_the_names_of_their_functions() -> None:
    function, given = jitted("scanned", "jit")
    plan = json.loads(function.plan(*given, sites=2))
    (loop,) = (one["plan"] for one in plan["programs"] if one["title"].startswith("a loop"))
    assert {"state", "weights"} <= set(loop["inputs"])
    assert set(loop["outputs"]) == {"new_state", "result"}
    assert "row" in [vertex["name"] for vertex in loop["vertices"]]
    function, given = jitted("repeated", "jit")
    plan = json.loads(function.plan(*given, sites=2))
    (loop,) = (one["plan"] for one in plan["programs"] if one["title"].startswith("a loop"))
    assert {"both_a", "both_b"} <= set(loop["inputs"])


def test_parts_of_gradients_say_what_they_are_the_gradient_of() -> None:
    for name, kind in (("scanned", "a loop"), ("computed_again", "a function of einrel.checkpoint")):
        function, given = jitted(name, "grad")
        titles = [one["title"] for one in json.loads(function.plan(*given, sites=2))["programs"]]
        own = next(title for title in titles if title.startswith(kind))
        assert f"the gradient of {own}" in titles
        assert own.endswith(".py, line " + own.split()[-1]) and "test_names_of_transformations" in own


def test_names_of_their_own_hold_in_gradients_and_in_samples() -> None:
    for how in ("jit", "grad", "value_and_grad", "vmap", "vmap of grad"):
        function, given = jitted("named", how)
        assert "hidden" in names_in(json.loads(function.plan(*given, sites=2)))


@pytest.mark.parametrize("how", ["jit", "grad", "value_and_grad", "vmap of grad"])
@pytest.mark.parametrize("loop", [False, True])
def test_errors_of_runs_say_python(how: str, loop: bool) -> None:
    def function(weights: Any, start: Any) -> Any:
        big = er.zeros((300_000, 300_000))

        def body(state: Any) -> Any:
            return er.tanh((big @ (big + state)) @ weights)

        return (er.fori_loop(0, 2, lambda _, state: body(state), start) if loop else body(start)).sum()

    weights, start = np.ones(300_000), np.ones(300_000)
    transformed = (OF_VALUES | OF_GRADIENTS)[how](function)
    with pytest.raises(er.RunError, match=r"needs .* of memory") as error:
        er.jit(transformed)(weights, np.stack([start, start]) if how in OF_SAMPLES else start)
    check_said(str(error.value))


def test_errors_of_gradients_say_python() -> None:
    big = er.zeros((300_000, 300_000))
    weights = er.asarray(np.ones(300_000))
    slope = er.grad(er.sum(er.tanh((big @ (big + weights)) @ weights)), weights)
    with pytest.raises(er.RunError, match=r"needs .* of memory") as error:
        slope.compute()
    check_said(str(error.value))


def test_a_plan_of_a_function_with_loops_fits_it() -> None:
    """Though what it computes has no names."""
    for name in ("scanned", "repeated", "computed_again", "while_small"):
        function, given = jitted(name, "jit")
        found = er.jit(function.__wrapped__, plan=function.plan(*given, sites=2))(*given)
        np.testing.assert_allclose(found, function(*given), rtol=1e-12)
