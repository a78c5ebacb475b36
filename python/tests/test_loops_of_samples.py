"""Loops in functions of samples, and in derivatives along directions, beside JAX's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import einrel as er

XS = np.random.default_rng(1).normal(size=(4, 3))
W = np.random.default_rng(2).normal(size=(3, 3)) / 3

Function = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def of_64_bits() -> Iterator[None]:
    """JAX computes as we do."""
    with jax.enable_x64(True):
        yield


def counted(n: Any, loop: Any, scan: Any) -> Function:
    return lambda x: n.sum(loop(0, 4, lambda i, h: n.tanh(h * x + i), n.ones(3)))


def what_steps_give(n: Any, loop: Any, scan: Any) -> Function:
    """Of samples are the xs and what is around; a counter is the same for all."""

    def of(x: Any) -> Any:
        def step(value: Any, row: Any) -> Any:
            count, h = value
            return (count + 1, n.tanh(h @ W + row * count)), (h * row, count)

        (count, h), (rows, counts) = scan(step, (np.int64(1), n.sin(x)), n.ones((5, 1)) * x, reverse=True)
        return n.sum(h * x) * count + n.sum(rows[0]) + n.sum(counts)

    return of


def only_around(n: Any, loop: Any, scan: Any) -> Function:
    """Nothing of samples goes into the loop before its steps."""
    return lambda x: n.sum(scan(lambda h, y: (n.sin(h + y), h * x), n.zeros(3), W)[1] ** 2)


def the_same_for_all(n: Any, loop: Any, scan: Any) -> Function:
    return lambda x: n.sum(x * loop(0, 3, lambda i, h: n.cos(h @ W), n.ones(3)))


FUNCTIONS = [counted, what_steps_give, only_around, the_same_for_all]

TRANSFORMED: dict[str, Callable[[Any, Any, Function], Callable[..., Any]]] = {
    "values": lambda t, n, f: t.vmap(f),
    "another axis": lambda t, n, f: lambda xs: t.vmap(f, 1)(xs.T),
    "samples of samples": lambda t, n, f: lambda xs: t.vmap(t.vmap(f))(n.stack([xs, -xs])),
    "gradients of samples": lambda t, n, f: t.vmap(t.grad(f)),
    "a gradient of samples": lambda t, n, f: t.grad(lambda xs: n.sum(t.vmap(f)(xs) ** 2)),
    "gradients of gradients": lambda t, n, f: t.grad(lambda xs: n.sum(t.vmap(t.grad(f))(xs) ** 2)),
    "hessian": lambda t, n, f: lambda xs: t.hessian(f)(xs[0]),
    "hessians of samples": lambda t, n, f: t.vmap(t.hessian(f)),
    "jacobian": lambda t, n, f: lambda xs: t.jacobian(lambda x: x * f(x))(xs[0]),
    "jvp": lambda t, n, f: lambda xs: t.jvp(f, (xs[0],), (xs[1],))[1],
    "vjp of samples": lambda t, n, f: t.vmap(lambda x: t.vjp(f, x)[1](n.cos(x[0]))[0]),
    "vjp of the value": lambda t, n, f: t.grad(lambda xs: n.sum(t.vjp(f, xs[0])[1](f(xs[0]))[0])),
    "again": lambda t, n, f: t.vmap(t.grad(t.checkpoint(lambda x: f(x) * n.sin(x[0])))),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_transformations_of_loops_are_those_of_jax(name: str, function: Callable[..., Function]) -> None:
    transform = TRANSFORMED[name]
    functions = jax if name != "jacobian" else _WithJacobian
    expected = transform(functions, jnp, function(jnp, jax.lax.fori_loop, jax.lax.scan))(XS)
    ours = transform(er, er, function(er, er.fori_loop, er.scan))
    for found in (ours(XS), er.jit(ours)(XS)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


class _WithJacobian:
    jacobian = staticmethod(jax.jacobian)


WHILE: dict[str, Callable[[Any, Any], Function]] = {
    "a condition of each sample": lambda n, loop: lambda x: loop(lambda v: n.sum(v) < 90, lambda v: v * 2, n.abs(x)),
    "begins for some": lambda n, loop: lambda x: loop(lambda v: n.sum(v) < 1, lambda v: v + 1, x)[0],
    "a condition of all": lambda n, loop: (
        lambda x: loop(lambda v: v[0] < 9, lambda v: (v[0] + 1, v[1] * x), (0, n.ones(3)))[1]
    ),
    "counts": lambda n, loop: (
        lambda x: loop(lambda v: v[0] * v[0] < 50, lambda v: (v[0] + v[1], v[1] + 1), (n.abs(x[0]), 0))[1]
    ),
    "a limit of each sample": lambda n, loop: lambda x: loop(lambda v: v < x[0] ** 2 * 20, lambda v: v + 1, 0),
}


@pytest.mark.parametrize("name", WHILE)
def test_conditions_of_samples_are_those_of_jax(name: str) -> None:
    expected = jax.vmap(WHILE[name](jnp, jax.lax.while_loop))(XS)
    ours = er.vmap(WHILE[name](er, er.while_loop))
    for found in (ours(XS), er.jit(ours)(XS)):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_many_steps_of_samples_are_one_program() -> None:
    many = er.vmap(lambda x: er.fori_loop(0, 100_000, lambda i, v: v + x * (i % 7), x))
    expected = np.arange(4) * (1 + sum(i % 7 for i in range(100_000)))
    assert many(np.arange(4)).tolist() == er.jit(many)(np.arange(4)).tolist() == expected.tolist()
    slopes = er.jit(er.vmap(er.grad(lambda w: er.fori_loop(0, 20_000, lambda i, x: x * w, 1.0))))
    np.testing.assert_allclose(slopes(np.array([1.0, 1.0001])), [20_000.0, 20_000 * 1.0001**19_999], rtol=1e-9)
    told = er.jit(many).explain(np.arange(4))
    assert "a loop in" in told and "4" in told.partition("i0[]")[0]


def test_what_is_no_program_says_so() -> None:
    with pytest.raises(er.ProgramError, match="1000000 steps in a step .* or in a function of einrel.vjp"):
        er.vjp(lambda x: er.fori_loop(0, 10**6, lambda i, x: x * 2, x), 1.0)
    with pytest.raises(er.ProgramError, match="does not know how many steps there are"):
        er.vmap(er.grad(lambda x: er.while_loop(lambda x: x < 9, lambda x: x * 2, x)))(XS[0])


def test_a_condition_in_a_step_of_another_loop_says_what_to_write() -> None:
    def condition(x: Any) -> Any:
        return x < 9 + x % 5

    def body(x: Any) -> Any:
        return x * 2 - 1

    def refused(_: Any, x: Any) -> Any:
        return er.while_loop(condition, body, x + 1)

    def of_python(x: int) -> int:
        while condition(x):
            x = body(x)
        return x

    line = refused.__code__.co_firstlineno + 1
    for call in (
        lambda: er.fori_loop(0, 3, refused, 1),
        lambda: er.jit(lambda x: er.fori_loop(0, 3, refused, x))(1),
        lambda: er.scan(lambda x, _: (refused(0, x), None), 1, length=3),
    ):
        with pytest.raises(er.ProgramError, match=rf"test_loops_of_samples.py, line {line}, in a step") as error:
            call()
    (written,) = [told for told in str(error.value).splitlines() if told.startswith("    ")]
    names = {"einrel": er, "most": 20, "condition": condition, "body": body}

    def as_written(_: Any, x: Any) -> Any:
        return eval(written.strip(), {**names, "value": x + 1})

    expected = functools.reduce(lambda x, _: of_python(x + 1), range(3), 1)
    assert er.fori_loop(0, 3, as_written, 1).tolist() == expected
    assert er.jit(lambda x: er.fori_loop(0, 3, as_written, x))(1).tolist() == expected
