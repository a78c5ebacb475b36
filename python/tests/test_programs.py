"""Features where they meet: drawn programs of loops, transformations, looks and calls of NumPy, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from drawing import ROUNDS

import einrel as er

N = 3
Program = Callable[["Library", Any, Any, Any], Any]  # of vectors a and b and a matrix w: a vector


class Library:
    """What a program is written in: ours, or JAX's."""

    def __init__(self, n: Any, t: Any, loops: Any, softmax: Any, stop: Any) -> None:
        self.n, self.t, self.loops, self.softmax, self.stop = n, t, loops, softmax, stop

    @property
    def is_ours(self) -> bool:
        return self.n is er

    def looked_at(self, a: Any, how: int) -> Any:
        """The same; elements are asked for where there are some."""
        if isinstance(a, er.Array) and not a._node.is_traced:
            looks = (np.asarray, repr, lambda x: float(x[0]), er.compute, np.sort, lambda x: x.tolist())
            looks[how % len(looks)](a)
        return a

    def by_numpy(self, a: Any, which: int) -> Any:
        """What NumPy's functions give of ours."""
        n = np if self.is_ours else jnp
        functions = (n.tanh, n.cumsum, n.sin, lambda x: n.where(x > 0, x, x * 0.5), lambda x: n.clip(x, -0.7, 0.9))
        joins = (
            lambda x: n.stack([x, x])[1],
            lambda x: n.concatenate([x, x])[1 : N + 1],
            lambda x: n.diff(x, prepend=0.0),
        )
        both = (*functions, *joins)
        return both[which % len(both)](a)

    def jacobian(self, function: Any) -> Any:
        return self.t.jacobian(function) if self.is_ours else jax.jacrev(function)


OURS = Library(er, er, er, lambda x: er.softmax(x, axis=-1), er.stop_gradient)
JAXS = Library(jnp, jax, jax.lax, jax.nn.softmax, jax.lax.stop_gradient)


class Drawing:
    """Draws programs; `f` and `g` are those that a larger one is made of."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def program(self, depth: int) -> Program:
        c, k = float(np.round(self._rng.normal(), 2)), int(self._rng.integers(1, 4))
        if depth <= 0:
            leaves: list[Program] = [
                lambda e, a, b, w: a,
                lambda e, a, b, w: b,
                lambda e, a, b, w: w[1] * c,
                lambda e, a, b, w: a * c + b,
            ]
            return leaves[self._rng.integers(len(leaves))]
        f, g = self.program(depth - 1), self.program(depth - 2)
        kinds = (self._plain, self._plain, self._loops, self._transformed)
        programs = kinds[self._rng.integers(len(kinds))](f, g, c, k)
        return programs[self._rng.integers(len(programs))]

    def _plain(self, f: Program, g: Program, c: float, k: int) -> list[Program]:
        look = int(self._rng.integers(100))
        return [
            lambda e, a, b, w: e.n.tanh(f(e, a, b, w)) @ w,
            lambda e, a, b, w: w @ e.n.sin(f(e, a, b, w) * c),
            lambda e, a, b, w: f(e, a, b, w) * e.n.tanh(g(e, a, b, w)),
            lambda e, a, b, w: f(e, a, b, w) + c * g(e, a, b, w),
            lambda e, a, b, w: e.n.where(a > 0.1, f(e, a, b, w), g(e, a, b, w)),
            lambda e, a, b, w: e.looked_at(f(e, a, b, w), look),
            lambda e, a, b, w: e.by_numpy(e.n.tanh(f(e, a, b, w)), look),
            lambda e, a, b, w: e.n.roll(f(e, a, b, w), k)[::-1],
            lambda e, a, b, w: e.softmax(f(e, a, b, w)),
            lambda e, a, b, w: e.stop(f(e, a, b, w)) * g(e, a, b, w),
            lambda e, a, b, w: e.n.max(f(e, a, b, w)) * b,
            lambda e, a, b, w: e.n.einsum("ij,i->j", w, f(e, a, b, w)),
            lambda e, a, b, w: e.n.concatenate([f(e, a, b, w), b])[k - 1 : k + 2],
        ]

    def _loops(self, f: Program, g: Program, c: float, k: int) -> list[Program]:
        def scanned(e: Library, a: Any, b: Any, w: Any) -> Any:
            def step(v: Any, x: Any) -> Any:
                return e.n.tanh(f(e, v, x, w)), e.n.sum(v) * x

            last, rows = e.loops.scan(step, g(e, a, b, w) * 1.0, w * c, reverse=k == 1)
            return last + e.n.sum(rows, axis=0)

        def of_two(e: Library, a: Any, b: Any, w: Any) -> Any:
            def step(i: Any, v: Any) -> Any:
                return {"x": e.n.sin(f(e, v["x"], v["y"], w)), "y": v["x"]}

            return e.loops.fori_loop(0, k, step, {"x": g(e, a, b, w) * 1.0, "y": b * 1.0})["x"]

        return [
            scanned,
            of_two,
            lambda e, a, b, w: e.loops.fori_loop(
                0, k + 1, lambda i, v: e.n.tanh(f(e, v, b, w) + i * 0.1), g(e, a, b, w) * 1.0
            ),
        ]

    def _transformed(self, f: Program, g: Program, c: float, k: int) -> list[Program]:
        return [
            lambda e, a, b, w: e.t.jit(lambda a, b: f(e, a, b, w))(a, b),
            lambda e, a, b, w: e.t.jit(lambda a, b, w: f(e, a, b, w))(a * 1.0, b, w),
            lambda e, a, b, w: e.t.checkpoint(lambda a, b: f(e, a, b, w))(a * 1.0, b * 1.0),
            lambda e, a, b, w: e.n.sum(e.t.vmap(lambda row: f(e, row, b, w))(w * 1.0), axis=0),
            lambda e, a, b, w: e.t.vmap(lambda row, x: e.n.sum(f(e, x * a, b, w) * row))(w * 1.0, a * 1.0),
            lambda e, a, b, w: e.n.tanh(e.t.grad(lambda v: e.n.sum(g(e, v, b, w) * v))(a * 1.0)),
            lambda e, a, b, w: e.t.jvp(lambda v: e.n.tanh(g(e, v, b, w)), (a * 1.0,), (b * 1.0,))[1],
            lambda e, a, b, w: e.t.vjp(lambda v: e.n.sin(f(e, v, b, w)), a * 1.0)[1](e.n.tanh(b))[0],
            lambda e, a, b, w: e.n.sum(e.jacobian(lambda v: e.n.tanh(g(e, v, b, w)))(a * 1.0), axis=0),
        ]


def _loss(e: Library, program: Program) -> Callable[..., Any]:
    return lambda a, b, w: e.n.sum(program(e, a, b, w) * e.n.cos(a))


def _of_samples(e: Library, program: Program) -> Callable[..., Any]:
    return lambda a, b, w: e.t.vmap(lambda a: program(e, a, b, w))(e.n.stack([a, b, a - b]))


def _squares(e: Library, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *of: e.n.sum(e.n.sin(function(*of)) ** 2)


WHOLE: dict[str, Callable[[Library, Program], Callable[..., Any]]] = {
    "value": lambda e, p: lambda a, b, w: p(e, a, b, w),
    "gradient": lambda e, p: e.t.grad(_loss(e, p), (0, 1, 2)),
    "samples": _of_samples,
    "gradient of samples": lambda e, p: e.t.grad(_squares(e, _of_samples(e, p)), (0, 2)),
    "gradients of samples": lambda e, p: e.t.vmap(e.t.grad(_loss(e, p), 2), (None, None, 0)),
    "gradient of a gradient": lambda e, p: e.t.grad(_squares(e, e.t.grad(_loss(e, p))), (0, 2)),
}
OPTIONS: list[dict[str, Any]] = [{}, {"sites": 2}, {"threads": 1}, {"sites": 3, "memory": "1MiB"}]


@pytest.fixture(autouse=True)
def of_64_bits() -> Iterator[None]:
    """JAX computes as we do."""
    with jax.enable_x64(True):
        yield


def numbers(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(one) for one in (results if isinstance(results, (tuple, list)) else [results])]


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("seed", range(max(ROUNDS // 6, 1)))
def test_programs_are_those_of_jax(whole: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, w = rng.normal(size=N), rng.normal(size=N), rng.normal(size=(N, N)) * 0.6
    program = Drawing(100 * seed + list(WHOLE).index(whole)).program(3)
    arguments = (a, b, np.stack([w, -w])) if whole == "gradients of samples" else (a, b, w)
    expected = numbers(jax.jit(WHOLE[whole](JAXS, program))(*arguments))
    ours = WHOLE[whole](OURS, program)
    for function in (ours, er.jit(ours, **OPTIONS[seed % len(OPTIONS)])):
        for found, of_jax in zip(numbers(function(*arguments)), expected, strict=True):
            scale = 1 + float(np.abs(of_jax).max())
            np.testing.assert_allclose(found, of_jax, rtol=1e-8, atol=1e-10 * scale)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)], ids=str)
@pytest.mark.parametrize("seed", range(max(ROUNDS // 10, 1)))
def test_programs_of_fewer_digits_are_those_of_more_but_for_rounding(dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = [x.astype(dtype) for x in (rng.normal(size=N), rng.normal(size=N), rng.normal(size=(N, N)) * 0.4)]
    program = Drawing(7000 + seed).program(2)
    exact = [x.astype("f8") for x in given]
    for whole in ("value", "samples", "gradient"):
        function = WHOLE[whole](OURS, program)
        tolerance = 60 * float(ml_dtypes.finfo(dtype).eps)
        for one, other in zip(numbers(er.jit(function)(*given)), numbers(function(*exact)), strict=True):
            assert one.dtype == dtype
            scale = 1 + float(np.abs(other).max())
            np.testing.assert_allclose(one.astype("f8"), other, rtol=tolerance, atol=tolerance * scale)
