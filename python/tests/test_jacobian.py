"""Derivatives of functions beside JAX's: of random programs, under transformations in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawing import ROUNDS
from hypothesis import given, settings
from hypothesis import strategies as st

import einrel as er

X = np.array([0.5, -0.25, 1.0])
A = np.random.default_rng(2).normal(size=(3, 3)) / 2

Function = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def of_64_bits() -> Iterator[None]:
    """JAX computes as we do."""
    with jax.enable_x64(True):
        yield


# From three numbers to three numbers; `n` is a module of functions: ours, or JAX's.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda n, x: n.tanh(x),
    "sin": lambda n, x: n.sin(2 * x),
    "exp": lambda n, x: n.exp(-x * x),
    "square": lambda n, x: x * x,
    "divide": lambda n, x: x / (1 + x * x),
    "matmul": lambda n, x: x @ A,
    "outer": lambda n, x: n.outer(x, x) @ A[0],
    "mean": lambda n, x: x - n.mean(x),
    "max": lambda n, x: x * n.max(x),
    "prod": lambda n, x: x + n.prod(x),
    "reverse": lambda n, x: n.flip(x, axis=0) * x,
    "slice": lambda n, x: n.concat([x[1:] * x[:-1], x[:1]]),
    "take": lambda n, x: n.take(x, np.array([2, 2, 0]), axis=0) * x,
    "stack": lambda n, x: n.stack([x, n.sin(x)]).sum(axis=0),
    "reshape": lambda n, x: n.reshape(x, (3, 1)) @ n.ones((1, 1)) @ A[:1] @ A[0],
    "where": lambda n, x: n.where(x > 0.1, x, n.sin(x)),
    "einsum": lambda n, x: n.einsum("i,ij,j->j", x, A, x),
    "power": lambda n, x: (1 + x * x) ** 1.5,
    "loop": lambda n, x: loops(n).fori_loop(1, 4, lambda i, y: n.sin(y + x * i), n.cos(x)),
    "scan": lambda n, x: loops(n).scan(lambda y, row: (n.tanh(y * x + row), y[0] * row), x, n.outer(x, A[0]))[1].sum(0),
    "from the end": lambda n, x: loops(n).scan(lambda y, a: (n.sin(y) * a, None), x, x * 2, reverse=True)[0],
    "checkpoint": lambda n, x: (er if n is er else jax).checkpoint(lambda y: n.tanh(y * x) + n.sin(x))(x * x),
    "look": lambda n, x: looked_at(x) * 2,
}


def loops(n: Any) -> Any:
    """The module that has loops, for a module of functions."""
    return er if n is er else jax.lax


def looked_at(x: Any) -> Any:
    """The array, whose elements the user has seen, if there are any."""
    if isinstance(x, er.Array) and not x._node.is_traced:
        assert np.asarray(x).shape == x.shape
    return x


# From such a function to another one; `t` has the transformations: our package, or JAX.
TRANSFORMATIONS: dict[str, Callable[[Any, Any, Function], Function]] = {
    "jit": lambda t, n, f: t.jit(f),
    "grad": lambda t, n, f: t.grad(lambda x: f(x).sum()),
    "value_and_grad": lambda t, n, f: lambda x: sum(t.value_and_grad(lambda y: (f(y) * x).sum())(x)),
    "jvp": lambda t, n, f: lambda x: t.jvp(f, (x,), (n.cos(x),))[1],
    "vjp": lambda t, n, f: lambda x: t.vjp(f, x)[1](n.sin(x))[0],
    "jacobian": lambda t, n, f: lambda x: t.jacobian(f)(x) @ x,
    "hessian": lambda t, n, f: lambda x: t.hessian(lambda y: f(y).sum())(x) @ x,
    "vmap": lambda t, n, f: lambda x: t.vmap(f)(n.outer(x, x)).sum(axis=0),
    "vmap over columns": lambda t, n, f: lambda x: t.vmap(f, 1, 1)(n.outer(x, n.cos(x))).sum(axis=1),
    "vmap of samples": lambda t, n, f: lambda x: t.vmap(lambda y: f(x) * y)(x) @ x,
}


def built(t: Any, n: Any, operations: list[str], transformations: list[str]) -> Function:
    def function(x: Any) -> Any:
        for name in operations:
            x = OPERATIONS[name](n, x)
        return x

    made: Function = function
    for name in transformations:
        made = TRANSFORMATIONS[name](t, n, made)
    return made


@settings(max_examples=max(ROUNDS // 2, 1), deadline=None)
@given(
    st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=3),
    st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), min_size=1, max_size=3),
)
def test_transformations_in_any_order_are_those_of_jax(operations: list[str], transformations: list[str]) -> None:
    expected = jax.jit(built(jax, jnp, operations, transformations))(X)
    found = built(er, er, operations, transformations)(X)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    scale = 1 + float(np.abs(expected).max())
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-8, atol=1e-9 * scale)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_gradients_and_samples_of_each_transformation(name: str) -> None:
    for other in ("grad", "vmap"):
        expected = jax.jit(built(jax, jnp, ["outer", "tanh"], [name, other]))(X)
        found = built(er, er, ["outer", "tanh"], [name, other])(X)
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-11, err_msg=other)


def of_trees(n: Any) -> Callable[..., Any]:
    return lambda p, x: {"y": n.tanh(x @ p["w"]) + p["b"], "z": [n.sum(p["w"]) * p["b"], n.outer(x, x)]}


P = {"w": A[:, :2], "b": np.array(0.5)}


def leaves(tree: Any) -> list[Any]:
    return jax.tree_util.tree_leaves(tree, is_leaf=lambda leaf: isinstance(leaf, er.Array))


def same(found: Any, expected: Any) -> None:
    assert len(leaves(found)) == len(leaves(expected))
    for ours, jaxs in zip(leaves(found), leaves(expected)):
        assert (ours.shape, ours.dtype) == (jaxs.shape, jaxs.dtype)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(jaxs), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1, 0)])
def test_jacobians_of_containers(argnums: Any) -> None:
    expected = jax.jit(jax.jacobian(of_trees(jnp), argnums))(P, X)
    same(er.jacobian(of_trees(er), argnums)(P, X), expected)
    same(er.jit(er.jacobian(of_trees(er), argnums))(P, X), expected)


def test_hessians_of_containers() -> None:
    def of(n: Any) -> Callable[..., Any]:
        return lambda p, x: n.sum(of_trees(n)(p, x)["y"] ** 2)

    same(er.hessian(of(er), (0, 1))(P, X), jax.jit(jax.hessian(of(jnp), (0, 1)))(P, X))


def test_products_with_jacobians_of_containers() -> None:
    tangents = ({"b": np.array(2.0), "w": A[:, 1:]}, X[::-1])
    ordered = ({"w": tangents[0]["w"], "b": tangents[0]["b"]}, X[::-1])
    same(er.jvp(of_trees(er), (P, X), ordered), jax.jvp(of_trees(jnp), (P, X), tangents))
    value, pull = er.vjp(of_trees(er), P, X)
    jaxs, jaxs_pull = jax.vjp(of_trees(jnp), P, X)
    same(value, jaxs)
    same(pull(value), jaxs_pull(jaxs))
    same(pull(value), jaxs_pull(jaxs))  # a second time


def test_auxiliary_results() -> None:
    value, change, aux = er.jvp(lambda x: (x * 2, "aux"), (X,), (X,), has_aux=True)
    assert (value.tolist(), change.tolist(), aux) == ((2 * X).tolist(), (2 * X).tolist(), "aux")
    for transformation in ("jacobian", "hessian"):
        for to in (lambda n, x: x**3, lambda n, x: n.sum(x**3)):

            def of(n: Any, to: Any = to) -> Function:
                return lambda x: (to(n, x), n.sin(x))

            ours = getattr(er, transformation)(of(er), has_aux=True)
            jaxs = getattr(jax, transformation)(of(jnp), has_aux=True)
            same(ours(X), jaxs(X))
            same(er.jit(ours)(X), jaxs(X))
    value, pull, more = er.vjp(lambda x: (x * 2, x), X, has_aux=True)
    assert pull(np.ones(3))[0].tolist() == [2.0] * 3 and more.tolist() == X.tolist()


def test_what_results_do_not_depend_on_gives_zeros() -> None:
    assert er.jvp(lambda x: er.ones(2), (X,), (X,))[1].tolist() == [0.0, 0.0]
    assert er.vjp(lambda x, y: x, X, 2.0)[1](X)[1].tolist() == 0.0
    assert er.jacobian(lambda x: er.ones(2))(X).tolist() == np.zeros((2, 3)).tolist()
    assert er.hessian(lambda x: er.sum(x))(X).tolist() == np.zeros((3, 3)).tolist()
    assert er.hessian(lambda x: er.ones(()))(X).tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_types_stay(dtype: str) -> None:
    x = er.asarray(X).astype(getattr(er, dtype))
    value, change = er.jvp(er.tanh, (x,), (X,))
    slope = 1 - np.tanh(X) ** 2
    for found, expected in ((value, np.tanh(X)), (change, X * slope), (er.jacobian(er.tanh)(x), np.diag(slope))):
        assert found.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(found).astype("f8"), expected, rtol=0.03, atol=0.01)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "integers": (lambda: er.jvp(lambda x: x.astype(int), (X,), (X,)), TypeError, "has_aux=True"),
    "by integers": (lambda: er.vjp(lambda x: x * 1.0, 1), TypeError, "give floating point"),
    "shapes": (lambda: er.jvp(er.tanh, (X,), (X[:2],)), ValueError, r"tangents\[0\] have shape \(2,\)"),
    "forms": (lambda: er.vjp(lambda x: (x, x), X)[1](X), ValueError, "cotangents have another form"),
    "no tuples": (lambda: er.jvp(er.tanh, X, X), TypeError, "are tuples"),
    "complex": (lambda: er.jacobian(lambda z: z * z)(1j), NotImplementedError, "complex"),
    "nothing": (lambda: er.vjp(lambda x: None, X), TypeError, "gives no array"),
    "arguments": (lambda: er.jacobian(er.tanh, 1)(X), TypeError, "arguments 1 of 1"),
    "no function": (lambda: er.jacobian(X), TypeError, "of a function"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_has_no_derivative_says_so(name: str) -> None:
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()


def test_hessians_of_several_numbers() -> None:
    def of(n: Any) -> Function:
        return lambda x: {"a": n.sin(x) * x[0], "b": n.outer(x, x), "c": n.sum(x**3)}

    same(er.hessian(of(er))(X), jax.hessian(of(jnp))(X))
    same(er.jit(er.vmap(er.hessian(of(er))))(np.stack([X, -X])), jax.vmap(jax.hessian(of(jnp)))(np.stack([X, -X])))


@pytest.mark.parametrize("name", ["sin", "loop", "scan", "checkpoint", "outer", "look"])
def test_what_vjp_gives_is_a_function_of_samples(name: str) -> None:
    def of(n: Any) -> Function:
        return lambda x: OPERATIONS[name](n, x)

    pull, jaxs = er.vjp(of(er), X)[1], jax.vjp(of(jnp), X)[1]
    flows = np.random.default_rng(3).normal(size=(4, 3))
    same(er.vmap(pull)(flows), jax.vmap(jaxs)(flows))
    same(er.jit(er.vmap(pull))(flows), jax.vmap(jaxs)(flows))
    same(pull(flows[0]), jaxs(flows[0]))
    same(er.jit(lambda x: er.vmap(er.vjp(of(er), x)[1])(flows))(X), jax.vmap(jaxs)(flows))
