"""Loops in functions that are traced and differentiated, beside JAX's."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import einrel as er

A = np.random.default_rng(0).normal(size=(3, 3)) / 3
XS = np.random.default_rng(1).normal(size=(7, 3))

Loss = Callable[[Any, Any, Any, Any], Any]  # of our functions or JAX's, scan, w and xs: a number


@pytest.fixture(autouse=True)
def of_64_bits() -> Iterator[None]:
    """JAX computes as we do."""
    with jax.enable_x64(True):
        yield


def recurrent(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = n.tanh(h @ w + x)
        return h, h * x

    last, given = scan(cell, n.sin(w[0]), xs * 2)
    return n.sum(given**2) + n.sum(last**3)


def backwards(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    return n.sum(scan(lambda h, x: (n.tanh(h @ w + x), h[0]), n.ones(3), xs, reverse=True)[1])


def of_whole_numbers_too(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    def step(value: Any, x: Any) -> Any:
        count, h, unused = value["count"], value["h"], value["unused"]
        h = h * n.where(count % 2 == 0, n.cos(x), w[0]) + count
        return {"count": count + 1, "h": h, "unused": unused}, (count, n.sum(h))

    start = {"count": np.int64(3), "h": xs[0], "unused": w}
    value, (counts, sums) = scan(step, start, xs)
    return n.sum(value["h"]) + n.sum(sums * counts) + n.sum(value["unused"])


def one_after_the_other(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    first, rows = scan(lambda h, x: (n.tanh(h @ w) + x, h + x), w[1], xs)
    between = n.exp(-rows * rows) @ w
    second, _ = scan(lambda h, x: (n.sin(h + x * first), None), first, between)
    return n.sum(second * first)


def without_rows(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    return n.sum(scan(lambda h, _: (n.tanh(w @ h), None), xs[0], None, length=4)[0])


def only_what_steps_give(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    return n.sum(scan(lambda i, x: (i + 1, n.sum((x @ w) ** 2) * i), np.int64(0), xs)[1])


def the_same_twice(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    a, b = scan(lambda v, x: ((v[1], n.sin(v[0] + v[1] * x)), None), (w[0], w[0]), xs)[0]
    return n.sum(a * b)


def of_two_that_depend(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    half = w * 0.5
    return n.sum(scan(lambda h, x: (n.sin(h @ w + x @ half), None), half[0], xs)[0])


def a_gradient_inside(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    t = er if n is er else jax

    def descend(v: Any, x: Any) -> Any:
        return v - 0.1 * t.grad(lambda v: n.sum((v @ w - x) ** 2))(v), n.sum(v)

    return n.sum(scan(descend, n.zeros(3), xs)[1])


def large(n: Any, scan: Any, w: Any, xs: Any) -> Any:
    """More of what steps give than a run of many steps keeps."""
    big = n.ones((100, 1)) * xs[0]
    return n.sum(scan(lambda h, x: (n.tanh(h @ w + x), n.sum(h)), big, xs)[1])


LOSSES: list[Loss] = [
    recurrent,
    backwards,
    of_whole_numbers_too,
    one_after_the_other,
    without_rows,
    only_what_steps_give,
    the_same_twice,
    of_two_that_depend,
    a_gradient_inside,
    large,
]


def ours(loss: Loss) -> Callable[[Any, Any], Any]:
    return lambda w, xs: loss(er, er.scan, w, xs)


def of_jax(loss: Loss) -> Callable[[Any, Any], Any]:
    return lambda w, xs: loss(jnp, jax.lax.scan, w, xs)


def close(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(
            np.asarray(one, "f8"), np.asarray(other, "f8"), rtol=rtol, atol=rtol * (1 + float(np.max(np.abs(other))))
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_loops_are_those_of_jax(loss: Loss) -> None:
    value, slopes = jax.value_and_grad(of_jax(loss), (0, 1))(A, XS)
    transformed = er.value_and_grad(ours(loss), (0, 1))
    for found, found_slopes in (transformed(A, XS), er.jit(transformed)(A, XS)):
        close([found, *found_slopes], [value, *slopes])


@pytest.mark.parametrize("loss", [recurrent, one_after_the_other, of_whole_numbers_too])
def test_gradients_of_gradients_of_loops(loss: Loss) -> None:
    def twice(t: Any, n: Any, f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return t.grad(lambda w, xs: n.sum(t.grad(f, 1)(w, xs) ** 2), 0)  # type: ignore[no-any-return]

    expected = twice(jax, jnp, of_jax(loss))(A, XS)
    close([twice(er, er, ours(loss))(A, XS)], [expected])
    close([er.jit(twice(er, er, ours(loss)))(A, XS)], [expected])


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)])
def test_gradients_of_loops_of_fewer_digits(dtype: Any) -> None:
    w, xs = A.astype(dtype), XS.astype(dtype)
    expected = jax.grad(of_jax(recurrent), (0, 1))(w, xs)
    found = er.jit(er.grad(ours(recurrent), (0, 1)))(w, xs)
    close(found, expected, rtol=20 * float(ml_dtypes.finfo(dtype).eps))


def test_gradients_of_loops_of_complex_numbers() -> None:
    def loss(n: Any, scan: Any, w: Any, xs: Any) -> Any:
        z = scan(lambda z, x: (z * w[0] + x * 1j, None), w[1] + 0j, xs)[0]
        return n.sum(n.real(z * n.conj(z)))

    w = A + 1j * A.T
    expected = jax.grad(of_jax(loss), (0, 1))(w, XS)
    found = er.grad(ours(loss), (0, 1))(w, XS)
    close([er.real(found[0]), er.imag(found[0]), found[1]], [expected[0].real, -expected[0].imag, expected[1]])


def test_a_loop_of_a_number_of_steps_has_a_gradient() -> None:
    def loss(n: Any, loop: Any) -> Callable[[Any], Any]:
        return lambda w: n.sum(loop(2, 30, lambda i, h: n.tanh(h @ w + i * 0.1), n.ones(3)) ** 2)

    expected = jax.grad(loss(jnp, jax.lax.fori_loop))(A)
    close([er.grad(loss(er, er.fori_loop))(A), er.jit(er.grad(loss(er, er.fori_loop)))(A)], [expected, expected])


def test_steps_of_a_traced_function_are_one_program() -> None:
    many = er.jit(lambda x, n: er.fori_loop(0, 100_000, lambda i, x: x + n * (i % 7), x) * 2)
    for x, n in ((0, 1), (5, 3)):
        assert many(x, n).tolist() == 2 * (x + n * sum(i % 7 for i in range(100_000)))
    slope = er.jit(er.grad(lambda w: er.fori_loop(0, 20_000, lambda i, x: x * w, 1.0)))(1.0001)
    np.testing.assert_allclose(float(slope), 20_000 * 1.0001**19_999, rtol=1e-9)


def test_a_condition_in_a_traced_function() -> None:
    double = er.jit(lambda x, most: er.while_loop(lambda x: x < most, lambda x: x * 2, x) + 1)
    assert [double(x, most).tolist() for x, most in ((1, 100), (3, 50), (200, 100))] == [129, 97, 201]
    root = er.jit(lambda x: er.while_loop(lambda g: er.abs(g * g - x) > 1e-12, lambda g: (g + x / g) / 2, x))
    np.testing.assert_allclose([float(root(x)) for x in (2.0, 9.0, 1.0)], [2**0.5, 3.0, 1.0])
    later = er.jit(lambda n: er.while_loop(lambda x: x < 40, lambda x: x * n, 1))
    assert [later(n).tolist() for n in (2, 7)] == [64, 49]


def test_a_gradient_by_a_condition_is_refused() -> None:
    def loss(w: Any) -> Any:
        return er.while_loop(lambda x: x < 9, lambda x: x * w, 1.0) * w

    assert er.grad(loss)(2.0).tolist() == 16 + 2 * 32
    with pytest.raises(er.ProgramError, match=r"computed by a loop in .*test_loop_gradients.*use einrel.fori_loop"):
        er.jit(er.grad(loss))(2.0)
    constant = er.jit(er.grad(lambda w: er.stop_gradient(er.while_loop(lambda x: x < 9, lambda x: x * w, 1.0)) * w))
    assert constant(2.0).tolist() == 16


def test_what_a_loop_does_not_depend_on_has_no_gradient() -> None:
    def loss(w: Any, v: Any) -> Any:
        return er.sum(er.fori_loop(0, 3, lambda i, x: er.round(x * v), er.ones(3))) + er.sum(w * v)

    for transformed in (er.grad(loss, (0, 1)), er.jit(er.grad(loss, (0, 1)))):
        close(transformed(A[0], A[1]), [A[1], A[0]])


def test_a_function_with_loops_says_how_it_is_computed() -> None:
    def total(w: Any) -> Any:
        return er.sum(er.fori_loop(0, 9, lambda i, x: er.tanh(x @ w), er.exp(w)))

    jitted = er.jit(total)
    told = jitted.explain(A)
    assert told.count("  outputs ") == 3 and "a loop in" in told and "test_loop_gradients.py" in told
    assert "for 4 sites" in jitted.explain(A, sites=4)
    assert all(part in told for part in ("before a loop in", ": each of 9 steps", "after a loop in"))
    expected = float(jitted(A))
    for options in ({"sites": 3}, {"memory": 200}, {"threads": 1}):
        np.testing.assert_allclose(float(er.jit(total, **options)(A)), expected, rtol=1e-12)


def scanned(w: Any) -> Any:
    return er.sum(er.scan(lambda h, x: (er.tanh(h @ w + x), h), er.exp(w)[0], w * 2)[1])


def halved(w: Any) -> Any:
    return er.while_loop(lambda v: er.sum(v * v) > 1e-3, lambda v: v @ w / 2, w + 1) * 2


OF_SEVERAL: dict[str, tuple[Callable[[Any], Any], list[int | None]]] = {
    "steps": (lambda w: er.sum(er.fori_loop(0, 9, lambda i, x: er.tanh(x @ w), er.exp(w))), [1, 9, 1]),
    "scan": (scanned, [1, 3, 1]),
    "condition": (halved, [1, None, 1]),
    "a loop alone": (lambda w: er.fori_loop(0, 4, lambda i, x: x @ w, w), [4]),
    "gradient": (er.grad(scanned), [1, 3, 1, 3, 1]),
    "checkpoint": (er.grad(lambda w: er.sum(er.checkpoint(lambda w: er.tanh(w @ w))(er.exp(w)))), [1, 1, 1, 1, 1]),
}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_a_function_of_several_programs_has_a_plan_of_each(name: str) -> None:
    function, times = OF_SEVERAL[name]
    jitted = er.jit(function)
    plan = jitted.plan(A, sites=2)
    programs = json.loads(plan)["programs"]
    assert [one["times"] for one in programs] == times
    assert all("test_loop_gradients.py, line" in one["title"] and one["plan"]["sites"] == 2 for one in programs)
    page = jitted.html(A, sites=2)
    assert page.startswith("<!doctype html>") and page.count("<iframe") == len(times)
    told = jitted.explain(A, sites=2)
    assert told.count("for 2 sites") == len(times)
    for one in programs:
        assert one["title"] in told and one["title"] in page
    followed = er.jit(function, plan=plan)
    np.testing.assert_allclose(followed(A), function(A), rtol=1e-12)


def test_a_plan_of_another_function_is_refused() -> None:
    function, _ = OF_SEVERAL["steps"]
    for plan in (er.jit(lambda w: w + 1).plan(A), er.jit(OF_SEVERAL["gradient"][0]).plan(A), "no plan"):
        with pytest.raises(er.ProgramError, match="the function is 3 programs .a loop in .*test_loop_gradients"):
            er.jit(function, plan=plan)(A)
    plan = er.jit(function).plan(A)
    with pytest.raises(er.ProgramError):
        er.jit(lambda w: w + 1, plan=plan)(A)
    with pytest.raises(er.ProgramError):
        er.jit(function, plan=plan)(np.ones((4, 4)))


def test_a_gradient_outside_of_a_function_of_what_has_a_loop_is_refused() -> None:
    w = er.asarray(2.0)
    powers = er.jit(lambda w: er.fori_loop(0, 5, lambda i, x: x * w, 1.0) + w)
    with pytest.raises(er.ProgramError, match="computed by a loop in .*test_loop_gradients"):
        er.grad(powers(w) * w, w)


def test_results_that_no_loop_is_needed_for_keep_their_gradients() -> None:
    w = er.asarray(2.0)
    both = er.jit(lambda w: (er.fori_loop(0, 5, lambda i, x: x * w, 1.0), w**3))
    powers, cube = both(w)
    close([er.grad(cube * w, w)], [np.float64(4 * 2.0**3)])
    with pytest.raises(er.ProgramError, match="computed by a loop in .*test_loop_gradients"):
        er.grad(powers * w, w)


def test_gradients_by_others_than_a_loop_is_made_of() -> None:
    """A loop of constants has none, one of another loop's results has."""

    def loss(loop: Any, n: Any) -> Callable[[Any], Any]:
        def of(w: Any) -> Any:
            fixed = loop(0, 4, lambda i, x: n.sin(x) + i, n.ones(3))
            h = loop(0, 3, lambda i, x: n.sin(x @ w), fixed)
            return n.sum(loop(0, 3, lambda i, x: n.cos(x) * fixed, h * 2))

        return of

    expected = jax.grad(loss(jax.lax.fori_loop, jnp))(A)
    close([er.grad(loss(er.fori_loop, er))(A)], [expected])
    close([er.jit(er.grad(loss(er.fori_loop, er)))(A)], [expected])


def test_arrays_may_be_looked_at_between_loops() -> None:
    def loss(w: Any) -> Any:
        h = er.fori_loop(0, 3, lambda i, x: er.sin(x @ w), er.ones(3))
        assert np.asarray(h).shape == (3,) and float(h[0]) == h.tolist()[0]
        return er.sum(er.fori_loop(0, 3, lambda i, x: er.sin(x @ w), h * 2))

    def expected(w: Any) -> Any:
        h = jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x @ w), jnp.ones(3))
        return jnp.sum(jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x @ w), h * 2))

    close([er.grad(loss)(A)], [jax.grad(expected)(A)])


def test_loops_in_loops() -> None:
    def nested(n: Any, loop: Any) -> Callable[[Any], Any]:
        def body(i: Any, x: Any) -> Any:
            return loop(0, 3, lambda j, y: n.sin(y @ x + j), x) + i

        return lambda x: n.sum(loop(0, 4, body, x))

    expected = jax.value_and_grad(nested(jnp, jax.lax.fori_loop))(A)
    close(er.value_and_grad(nested(er, er.fori_loop))(A), expected)
    close(er.jit(er.value_and_grad(nested(er, er.fori_loop)))(A), expected)


def test_a_label_of_samples_is_that_of_the_programs_that_have_it() -> None:
    def total(x: Any, w: Any) -> Any:
        return er.sum(er.fori_loop(0, 3, lambda i, h: er.tanh(h @ w), x @ w) * x)

    def refused(x: Any, w: Any) -> Any:
        return er.jit(total).explain(x, w, batch="nobody", sites=2)

    x = np.ones((8, 3))
    slope = er.grad(lambda x, w: total(x, w) + total(x * 2, w.T), 1)
    for function in (total, lambda x, w: er.checkpoint(total)(x, w), lambda x, w: er.sum(slope(x, w))):
        expected = float(er.jit(function)(x, A))
        told = er.jit(function).explain(x, A)
        labels = sorted({name for text in re.findall(r"\[([a-z0-9_,]+)\]", told) for name in text.split(",")})
        labels = [name for name in labels if not name.isdigit()]
        assert len(labels) > 3
        for batch in labels[::3]:
            assert "for 2 sites" in er.jit(function).explain(x, A, batch=batch, sites=2)
            found = er.jit(function, batch=batch, sites=2, planner="data")(x, A)
            np.testing.assert_allclose(float(found), expected, rtol=1e-12)
    for call in (er.jit(total, batch="nobody", sites=2), refused):
        with pytest.raises(er.ProgramError, match="batch='nobody': none of the programs .* their labels are: .*j"):
            call(x, A)


STOPPED: dict[str, Callable[[Any], Any]] = {
    "what goes in": lambda w: powers_of(er.stop_gradient(w)),
    "what comes out": lambda w: er.stop_gradient(powers_of(w)),
    "rounded": lambda w: powers_of(er.round(w)),
    "compared": lambda w: powers_of(er.astype(w > 0, w.dtype)),
}


def powers_of(w: Any) -> Any:
    return er.fori_loop(0, 40, lambda i, x: x * 0.5 + i, w)


@pytest.mark.parametrize("name", STOPPED)
def test_a_loop_that_no_gradient_goes_through_keeps_no_history(name: str) -> None:
    size = 300_000  # of which 40 are more than is kept before it is known
    w = np.linspace(-1.0, 1.0, size)
    slope = er.grad(lambda w: er.sum(w * STOPPED[name](w)))
    expected = np.asarray(STOPPED[name](er.asarray(w)))
    for transformed in (slope, er.jit(slope)):
        tracemalloc.start()
        try:
            found = np.asarray(transformed(w))
            assert tracemalloc.get_traced_memory()[1] < 6 * size * 8
        finally:
            tracemalloc.stop()
        np.testing.assert_allclose(found, expected)


def test_a_history_that_is_made_when_it_is_asked_for() -> None:
    w = np.full(300_000, 0.9)
    for transformed in (er.grad, lambda f: er.jit(er.grad(f))):
        found = transformed(lambda w: er.sum(er.fori_loop(0, 40, lambda i, x: x * w, w)))(w)
        np.testing.assert_allclose(found, 41 * w**40)
