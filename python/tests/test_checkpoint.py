"""Functions that are computed again for their gradients: the same gradients, in less memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import einrel as er

A = np.random.default_rng(0).normal(size=(3, 3)) / 2
X = np.random.default_rng(1).normal(size=(4, 3))


def blocks(n: Any, again: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A number of weights and samples, by three functions of which each may be computed again."""

    def loss(w: Any, x: Any) -> Any:
        scale = n.exp(w[0, 0])
        first = again(lambda h: {"h": n.tanh(h @ w) * scale, "sums": (n.sum(h * h), h > 0)})
        second = again(lambda p, k: p["h"] @ w * k + p["sums"][0])
        h = second(first(x), 0.5)
        return n.sum(again(n.sin)(h) ** 2) + n.sum(n.where(first(h)["sums"][1], h, 0.0))

    return loss


def gradients(n: Any, t: Any, again: Callable[[Any], Any]) -> dict[str, Any]:
    loss = blocks(n, again)
    inner = t.grad(loss, 1)
    return {
        "both": t.value_and_grad(loss, (0, 1)),
        "by gradients": t.grad(lambda w, x: n.sum(inner(w, x) ** 2)),
        "of samples": t.vmap(t.grad(loss), (None, 0)),
        "hessian": t.hessian(lambda w, x: loss(w, x[:1])),
    }


def leaves(tree: Any) -> list[Any]:
    return jax.tree_util.tree_leaves(tree, is_leaf=lambda leaf: isinstance(leaf, er.Array))


@pytest.mark.parametrize("name", ["both", "by gradients", "of samples", "hessian"])
def test_gradients_are_those_of_the_function(name: str) -> None:
    x = X[:, None] if name == "of samples" else X
    with jax.enable_x64(True):
        expected = leaves(gradients(jnp, jax, jax.checkpoint)[name](A, x))
    transformed = gradients(er, er, er.checkpoint)[name]
    for found in (transformed(A, x), er.jit(transformed)(A, x)):
        for one, other in zip(leaves(found), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_values_are_the_same_bits() -> None:
    plain, again = (blocks(er, function) for function in (lambda f: f, er.checkpoint))
    assert float(again(A, X)) == float(plain(A, X))
    for dtype in (np.dtype("f4"), np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)):
        w, x = A.astype(dtype), X.astype(dtype)
        expected, found = (er.jit(er.grad(loss))(w, x) for loss in (plain, again))
        tolerance = 20 * float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(found, "f8"), np.asarray(expected, "f8"), rtol=tolerance, atol=tolerance)


def test_without_a_gradient_it_is_a_part_of_what_is_around_it() -> None:
    loss = er.jit(blocks(er, er.checkpoint))
    vertices, plain = (
        [one["formula"].partition("=")[2].count("[") for one in json.loads(jitted.plan(A, X))["vertices"]]
        for jitted in (loss, er.jit(blocks(er, lambda f: f)))
    )
    assert vertices == plain
    slope = er.jit(er.grad(blocks(er, er.checkpoint)))
    assert "a function of einrel.checkpoint in" in slope.explain(A, X)


def test_it_goes_with_loops() -> None:
    def loss(n: Any, scan: Any, again: Any) -> Callable[[Any], Any]:
        step = again(lambda h, x: (n.tanh(h @ A + x), n.sum(h)))
        before = again(lambda w: n.sin(w @ A))
        return lambda w: n.sum(scan(step, before(w), X)[1] ** 2)

    with jax.enable_x64(True):
        expected = jax.grad(loss(jnp, jax.lax.scan, jax.checkpoint))(A[0])
    ours = er.grad(loss(er, er.scan, er.checkpoint))
    for found in (ours(A[0]), er.jit(ours)(A[0])):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


_PEAK = """
import re, sys
import numpy as np
import einrel as er

def block(x):
    for _ in range(6):
        x = er.tanh(er.sin(x) * x)
    return x

block = er.checkpoint(block) if sys.argv[1] == "again" else block

@er.jit
@er.grad
def slope(x):
    for _ in range(6):
        x = block(x)
    return er.sum(x)

def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1])

x = np.linspace(0.1, 1.0, 1_000_000)
slope(x[:10])
before = peak()
found = np.asarray(slope(x))
print(peak() - before, repr(float(found.sum())))
"""


def test_less_is_kept() -> None:
    def peak(how: str) -> tuple[int, float]:
        done = subprocess.run([sys.executable, "-c", _PEAK, how], capture_output=True, text=True, check=True)
        kilobytes, total = done.stdout.split()
        return int(kilobytes), float(total)

    (plain, total), (again, same) = peak("plain"), peak("again")
    np.testing.assert_allclose(same, total, rtol=1e-12)
    assert again < plain / 2, (again, plain)
