"""Shapes, indices, new arrays and reductions, beside NumPy's."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import einrel as er

X = np.arange(120.0).reshape(4, 5, 6) - 40


def same(ours: er.Array, numpys: Any) -> None:
    """Equal to the bit, with the same type and shape."""
    assert ours.dtype == numpys.dtype
    assert ours.shape == numpys.shape
    np.testing.assert_array_equal(np.asarray(ours), numpys)


INDICES = [
    np.s_[1], np.s_[-1], np.s_[1:3], np.s_[:2], np.s_[-2:], np.s_[::2], np.s_[::-1], np.s_[3:0:-2, :4, 2], np.s_[2:2],
    np.s_[..., 1], np.s_[:, None], np.s_[1, 2, 3], np.s_[-1, ..., None], np.s_[None, ..., ::3], np.s_[...], np.s_[()],
    np.s_[[0, 2]], np.s_[:, [1, -1]], np.s_[[0, 1], [2, 3]], np.s_[[0, 1], :, [2, 3]], np.s_[[0, 1], 1:3, [2, 3]],
    np.s_[:, [[0, 1], [2, 3]]], np.s_[1, [0, 1]], np.s_[0, :, [0, 1]], np.s_[:, [0, 2], None, :3],
    np.s_[[[0], [1]], [[1, 2]]],
    np.s_[X[:, 0, 0] > 0], np.s_[X > 3], np.s_[:, X[0, :, 0] > -20],
]  # fmt: skip


@pytest.mark.parametrize("key", INDICES, ids=repr)
def test_index(key: Any) -> None:
    same(er.asarray(X)[key], X[key])


def test_wrong_indices_are_errors() -> None:
    for key in (4, (0, -6), (0, 0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            er.asarray(X)[key]
    with pytest.raises(IndexError, match="a mask of extent 2 for dimension 0, which has 4"):
        er.asarray(X)[np.array([True, False])]
    with pytest.raises(IndexError, match="as an index"):
        er.asarray(X)["a"]
    with pytest.raises(IndexError, match="positions are integers"):
        er.asarray(X)[np.array([0.5])]
    message = re.escape("the position at [0] is 7, in a dimension of extent 4: positions are from -4 up to 3")
    with pytest.raises(er.RunError, match=message) as caught:
        np.asarray(er.asarray(X)[np.array([7])])
    assert isinstance(caught.value, IndexError)
    with pytest.raises(TypeError, match="does not change"):
        er.asarray(X)[0] = 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_basic_index(data: Any) -> None:
    key = data.draw(hnp.basic_indices(X.shape, allow_newaxis=True))
    same(er.asarray(X)[key], X[key])


REDUCTIONS = ["sum", "prod", "max", "min", "mean", "any", "all", "var", "std"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (-1, 0, 1), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction(name: str, axis: Any, keepdims: bool) -> None:
    x = X / 30
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    ours = getattr(er, name)(x, axis=axis, keepdims=keepdims)
    assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 2])
@pytest.mark.parametrize("keepdims", [False, True])
def test_position_of_an_extremum(name: str, axis: Any, keepdims: bool, rng: np.random.Generator) -> None:
    x = rng.integers(0, 5, X.shape)
    same(getattr(er, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims))


def test_reductions_of_integers_and_truth_values() -> None:
    x = np.arange(6, dtype="int32").reshape(2, 3)
    same(er.sum(x, axis=0), x.sum(axis=0))
    same(er.sum(x > 2), (x > 2).sum())
    same(er.mean(x, axis=1), x.mean(axis=1))
    same(er.max(x, axis=1), x.max(axis=1))
    same(er.sum(x, dtype="float32"), x.sum(dtype="float32"))
    same(er.count_nonzero(x, axis=0), np.count_nonzero(x, axis=0))
    np.testing.assert_allclose(float(er.var(x, correction=1)), x.var(ddof=1))


def test_softmax_and_its_relatives(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4))
    e = np.exp(x - x.max(-1, keepdims=True))
    soft = e / e.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(er.softmax(x)), soft)
    np.testing.assert_allclose(np.asarray(er.log_softmax(x)), np.log(soft))
    np.testing.assert_allclose(np.asarray(er.logsumexp(x, axis=0)), np.log(np.exp(x).sum(0)))
    np.testing.assert_allclose(np.asarray(er.sumsq(x, axis=0)), (x**2).sum(0))
    spread = x - x.mean(-1, keepdims=True)
    normal = spread / np.sqrt((spread**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(np.asarray(er.layer_norm(x)), normal)
    np.testing.assert_allclose(np.asarray(er.rms_norm(x)), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5))


@pytest.mark.parametrize(
    "shape", [(20, 6), (4, 30), (120,), (8, 15), (2, 2, 5, 3, 2), (1, 4, 1, 5, 6), (6, 5, 4), (-1, 7)]
)
def test_reshape(shape: tuple[int, ...]) -> None:
    if shape == (-1, 7):
        with pytest.raises(ValueError, match="as one of shape"):
            er.reshape(X, shape)
        return
    same(er.reshape(X, shape), X.reshape(shape))
    same(er.asarray(X).reshape(*shape) + 1, X.reshape(shape) + 1)


def test_other_shapes() -> None:
    x = er.asarray(X)
    same(er.permute_dims(x, (2, 0, 1)), X.transpose(2, 0, 1))
    same(x.T, X.T)
    same(er.matrix_transpose(x), X.swapaxes(-1, -2))
    same(er.moveaxis(x, (0, 1), (-1, 0)), np.moveaxis(X, (0, 1), (-1, 0)))
    same(er.expand_dims(x, axis=(0, -1)), np.expand_dims(X, (0, -1)))
    same(er.squeeze(x[:1], 0), X[0])
    same(er.flip(x, axis=(0, 2)), np.flip(X, (0, 2)))
    same(er.roll(x, (1, -2), axis=(0, 2)), np.roll(X, (1, -2), (0, 2)))
    same(er.roll(x, 7), np.roll(X, 7))
    same(er.concat([x, X[:1], x[2:]]), np.concatenate([X, X[:1], X[2:]]))
    same(er.concat([x, X], axis=None), np.concatenate([X, X], axis=None))
    same(er.concat([np.arange(2), x[0, 0]]), np.concatenate([np.arange(2), X[0, 0]]))
    same(er.stack([x, X], axis=-1), np.stack([X, X], -1))
    same(er.tile(x, (2, 1, 1, 2)), np.tile(X, (2, 1, 1, 2)))
    same(er.repeat(x, 3, axis=1), np.repeat(X, 3, 1))
    same(er.broadcast_to(x[0], (3, 5, 6)), np.broadcast_to(X[0], (3, 5, 6)))
    same(er.unstack(x, axis=1)[2], X[:, 2])
    same(er.take(x, [2, 0], axis=1), np.take(X, [2, 0], 1))
    positions = np.argsort(-X, axis=1)
    same(er.take_along_axis(x, positions, axis=1), np.take_along_axis(X, positions, 1))


def test_empty_arrays() -> None:
    x = np.zeros((0, 3))
    same(er.asarray(x) + 1, x + 1)
    same(er.sum(x, axis=0), x.sum(0))
    same(er.reshape(x, (3, 0)), x.reshape(3, 0))
    same(er.concat([x, X[0, :, :3]]), np.concatenate([x, X[0, :, :3]]))
    same(er.matmul(x.T, x), x.T @ x)
    same(er.flip(x), np.flip(x))


def test_new_arrays() -> None:
    same(er.arange(5), np.arange(5))
    same(er.arange(2, 11, 3), np.arange(2, 11, 3))
    same(er.arange(5, 0, -2), np.arange(5, 0, -2))
    same(er.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25))
    same(er.linspace(-1, 1, 7), np.linspace(-1, 1, 7))
    same(er.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False))
    same(er.linspace(3, 4, 1), np.linspace(3, 4, 1))
    with pytest.raises(TypeError):
        er.linspace(0, 1, 2.5)
    same(er.arange(np.bool_(True)), np.arange(np.bool_(True)))
    same(er.eye(3, 4, k=1), np.eye(3, 4, k=1))
    same(er.zeros((2, 3), dtype="int32"), np.zeros((2, 3), "int32"))
    same(er.ones(3), np.ones(3))
    same(er.full((2,), np.nan), np.full((2,), np.nan))
    same(er.full_like(X, 7), np.full_like(X, 7))
    same(er.tril(X, k=1), np.tril(X, 1))
    same(er.triu(X, k=-1), np.triu(X, -1))
    for ours, numpys in zip(er.meshgrid(np.arange(3), np.arange(4)), np.meshgrid(np.arange(3), np.arange(4))):
        same(ours, numpys)


def test_products_of_matrices(rng: np.random.Generator) -> None:
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2))]
    for left, right in shapes:
        a, b = rng.random(left), rng.random(right)
        np.testing.assert_allclose(np.asarray(er.matmul(a, b)), a @ b)
        assert (er.asarray(a) @ b).shape == (a @ b).shape
    a, b = rng.random((2, 3, 4)), rng.random((4, 3, 5))
    np.testing.assert_allclose(
        np.asarray(er.tensordot(a, b, axes=([1, 2], [1, 0]))), np.tensordot(a, b, ([1, 2], [1, 0]))
    )
    np.testing.assert_allclose(np.asarray(er.tensordot(a, b, axes=1)), np.tensordot(a, b, 1))
    np.testing.assert_allclose(np.asarray(er.vecdot(a, a, axis=1)), (a * a).sum(1))
    np.testing.assert_allclose(np.asarray(er.outer(a[0, 0], b[0, 0])), np.outer(a[0, 0], b[0, 0]))
    with pytest.raises(ValueError, match="matmul of shapes"):
        er.matmul(a, a)


def test_linear_algebra(rng: np.random.Generator) -> None:
    a = rng.random((3, 4, 4)) + np.eye(4)
    np.testing.assert_allclose(np.asarray(er.linalg.inv(a)), np.linalg.inv(a))
    b = rng.random((3, 4, 2))
    np.testing.assert_allclose(np.asarray(er.linalg.solve(a, b)), np.linalg.solve(a, b))
    for x in (
        a,
        b,
        b.transpose(0, 2, 1),
        b[0].astype("f4"),
        np.arange(6).reshape(3, 2),
        np.zeros((0, 3)),
        np.zeros((2, 0)),
    ):
        q, r = er.linalg.qr(x)
        wanted = np.linalg.qr(x)
        assert (q.dtype, r.dtype) == (wanted.Q.dtype, wanted.R.dtype)
        np.testing.assert_allclose(np.asarray(q), wanted.Q, atol=1e-6 if x.dtype == "f4" else 1e-12)
        np.testing.assert_allclose(np.asarray(r), wanted.R, atol=1e-6 if x.dtype == "f4" else 1e-12)
    with pytest.raises(NotImplementedError, match="complete"):
        er.linalg.qr(a, mode="complete")
    with pytest.raises(ValueError, match="two dimensions"):
        er.linalg.qr(a[0, 0])
    same(er.linalg.diagonal(a, offset=1), np.diagonal(a, 1, 1, 2))
    np.testing.assert_allclose(np.asarray(er.linalg.trace(a)), np.trace(a, axis1=1, axis2=2))
    for order in (1, 2, 3, np.inf, -np.inf):
        ours = er.linalg.vector_norm(a, axis=-1, ord=order)
        np.testing.assert_allclose(np.asarray(ours), np.linalg.vector_norm(a, axis=-1, ord=order))
    for order in ("fro", 1, -1, np.inf, -np.inf):
        ours = er.linalg.matrix_norm(a, ord=order)
        np.testing.assert_allclose(np.asarray(ours), np.linalg.matrix_norm(a, ord=order))
    np.testing.assert_allclose(np.asarray(er.linalg.matrix_power(a[0], -3)), np.linalg.matrix_power(a[0], -3))
    with pytest.raises(NotImplementedError, match="linalg.svd"):
        er.linalg.svd(a)


def test_layouts_of_numpy_come_in() -> None:
    for view in (X.T, X[:, ::2], X[::-1], np.asfortranarray(X), X.transpose(1, 2, 0), X[..., 0], X.astype(">f8")):
        same(er.asarray(view) + 1, (view + 1).astype("f8"))
    readonly = X.copy()
    readonly.flags.writeable = False
    same(er.asarray(readonly) * 2, readonly * 2)
    assert not np.asarray(er.asarray(readonly)).flags.writeable
    assert np.asarray(er.asarray(readonly) * 2).flags.writeable


JOINS = [("stack", "stack"), ("concat", "concatenate")]


@pytest.mark.parametrize(("ours", "numpys"), JOINS)
@pytest.mark.parametrize("count", [1, 2, 8, 9, 65])
def test_many_arrays_are_put_together(ours: str, numpys: str, count: int, rng: np.random.Generator) -> None:
    for axis in (0, -1):
        for kinds in (("f8",), ("f4", "i4"), ("i4", "f2", "?")):
            plain = [(rng.normal(size=(2, 1, 3)) * 9).astype(kinds[i % len(kinds)]) for i in range(count)]
            expected = getattr(np, numpys)(plain, axis)
            mixed = [er.asarray(x) if rng.random() < 0.5 else x for x in plain]
            for parts in (plain, [er.asarray(x) for x in plain], [er.asarray(x) + 0 for x in plain], mixed):
                result = getattr(er, ours)(parts, axis=axis)
                np.testing.assert_array_equal(result, expected.astype(result.dtype))
                assert result.dtype == er.result_type(*{x.dtype for x in plain})


def test_thousands_of_arrays_are_put_together_in_linear_time() -> None:
    rows = [np.full(2, i, float) for i in range(3000)]
    ours = [er.asarray(row) for row in rows]
    begin = time.process_time()
    for parts in (rows, ours):
        np.testing.assert_array_equal(er.stack(parts), np.stack(rows))
        np.testing.assert_array_equal(er.concat(parts), np.concatenate(rows))
        np.testing.assert_array_equal(np.vstack([ours[0], *parts]), np.vstack([rows[0], *rows]))
    np.testing.assert_array_equal(er.jit(lambda *x: er.stack(x))(*ours[:1000]), np.stack(rows[:1000]))
    gradients = er.grad(er.sum(er.stack(ours[:500]) ** 3), ours[:500])
    np.testing.assert_array_equal(np.stack(er.compute(*gradients)), 3 * np.stack(rows[:500]) ** 2)
    assert time.process_time() - begin < 60  # minutes, where it grows with the third power


def test_what_does_not_fit_is_not_put_together() -> None:
    for join in (er.stack, er.concat):
        with pytest.raises(ValueError, match="nothing to put together"):
            join([])
        with pytest.raises(ValueError, match=r"arrays of shapes \(2, 3\) and \(3, 2\)"):
            join([np.ones((2, 3)), er.ones((3, 2))])
    assert er.concat([np.ones((0, 2)), np.ones((0, 2))]).shape == (0, 2)
    assert er.concat([np.ones((2, 2)), 3 * np.ones((1, 2))], axis=None).tolist() == [1, 1, 1, 1, 3, 3]


NUMBERS = {
    "start": lambda n: er.arange(n, 3),
    "stop": lambda n: er.arange(n),
    "step": lambda n: er.arange(0, 3, n),
    "num": lambda n: er.linspace(0, 1, n),
    "k": lambda n: er.tril(np.ones((2, 2)), k=n),
    "offset": lambda n: er.trace(np.eye(3), offset=n),
    "eps": lambda n: er.layer_norm(np.arange(3.0), eps=n),
    "correction": lambda n: er.var(np.arange(5.0), correction=n),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_a_program_are_numbers(name: str) -> None:
    """Or what has one: not arguments of a function that is traced."""
    function = NUMBERS[name]
    for number in (np.int64(1), np.array(1), er.asarray(np.array(1)), er.asarray(np.array(0)) + 1):
        np.testing.assert_array_equal(function(number), function(1), strict=True)
    for wrong in (np.ones(2), er.asarray(np.ones(2)), "1", [1]):
        with pytest.raises(TypeError, match=rf"(?s){name}=.* is no number: give one"):
            function(wrong)
    for argument in (1, np.array(1)):
        with pytest.raises(TypeError, match=f"{name} is made of arguments of a function that is traced.*from outside"):
            er.jit(function)(argument)


def test_slices_that_move_are_one_program(rng: np.random.Generator) -> None:
    elements = rng.normal(size=(40, 7, 5))
    x = er.asarray(elements)
    for i in range(30):
        j = i % 5
        for key in (
            np.s_[i : i + 4],
            np.s_[i],
            np.s_[:, j, -1],
            np.s_[i : i + 9 : 2, j],
            np.s_[i + 9 : i : -3, None, ..., j],
            np.s_[i : i + 3, :4, 1:3],
            np.s_[-i - 1, ..., :2],
            np.s_[i:i],
        ):
            np.testing.assert_array_equal(np.asarray(x[key]), elements[key])
            if i > 25:
                expected = np.zeros_like(elements)
                expected[key] = 2 * elements[key]
                if expected.any():
                    np.testing.assert_allclose(er.grad(er.sum(x[key] ** 2), x), expected)
    lazy = x + 0
    first = [lazy[i : i + 4].explain() for i in range(9)]
    assert lazy[33:37].explain() == lazy[34:38].explain()  # where they begin is an input
    assert first[5] != first[6]  # these came among the first ones


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_positions_in_a_dimension_without_any(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    d = shape.index(0)
    before = (slice(None),) * d
    for call in (
        lambda n, x: x[(*before, [0])],
        lambda n, x: x[(*before, np.zeros((2, 2), int))],
        lambda n, x: n.take(x, n.asarray([0]), axis=d),
        lambda n, x: n.take_along_axis(x, n.asarray(np.zeros([max(extent, 1) for extent in shape], int)), axis=d),
    ):
        for module, array in ((np, x), (er, er.asarray(x))):
            with pytest.raises(IndexError):
                call(module, array)
        with pytest.raises(IndexError):
            er.jit(lambda x, call=call: call(er, x))(x)
    for key in ((*before, []), (*before, np.zeros((0, 2), int))):
        assert er.asarray(x)[key].shape == x[key].shape


@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0,), (2, 0, 3)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_what_is_normalised_may_be_empty(name: str, shape: tuple[int, ...]) -> None:
    for dtype in ("f4", "f8", "i4"):
        of_some = getattr(er, name)(np.ones(3, dtype)).dtype
        for axis in (*range(len(shape)), -1):
            for found in (
                getattr(er, name)(er.zeros(shape, dtype), axis),
                er.jit(getattr(er, name))(np.zeros(shape, dtype)),
            ):
                assert (np.asarray(found).shape, found.dtype) == (shape, of_some)
    assert er.logsumexp(er.zeros((2, 0)), axis=-1).tolist() == [-np.inf, -np.inf]
    x = np.zeros(shape)
    assert er.grad(lambda x: er.sum(getattr(er, name)(x)))(x).shape == shape


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "count_nonzero", "nansum"]
)
def test_a_number_has_the_axes_that_numpys_has(name: str) -> None:
    for axis in (0, -1):
        ours, numpys = getattr(er, name)(er.asarray(3.0), axis=axis), getattr(np, name)(np.asarray(3.0), axis=axis)
        assert (ours.tolist(), ours.shape, ours.dtype) == (numpys.tolist(), numpys.shape, numpys.dtype)
    for axis in (1, -2, (0,)):
        with pytest.raises((np.exceptions.AxisError, TypeError)):
            getattr(er, name)(er.asarray(3.0), axis=axis)
    assert er.cumsum(er.asarray(3.0), axis=0).tolist() == [3.0] == er.cumprod(er.asarray(3.0), axis=-1).tolist()


@pytest.mark.parametrize(
    ("shift", "axis"), [(1, None), (-7, 0), (4, 1), ((1, -2), (0, 1)), ((3, 4), 0), (2, (0, 1)), (0, -1), (-(2**62), 1)]
)
def test_rolls_by_numbers_of_a_traced_function(shift: Any, axis: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    wanted = np.roll(x, shift, axis)
    rolled = er.jit(lambda x, k: er.roll(x, k, axis))
    np.testing.assert_array_equal(rolled(x, shift), wanted)
    np.testing.assert_array_equal(rolled(x, np.asarray(shift)), wanted)
    slope = er.jit(er.grad(lambda x, k: er.sum(er.roll(x, k, axis) * np.arange(12.0).reshape(3, 4))))(x, shift)
    inverse = tuple(-one for one in shift) if isinstance(shift, tuple) else -shift
    np.testing.assert_array_equal(slope, np.roll(x, inverse, axis))
    np.testing.assert_array_equal(
        er.vmap(lambda k: er.roll(x, k, axis))(np.asarray([shift, shift])), np.stack([wanted, wanted])
    )
    with pytest.raises(TypeError, match="give whole numbers"):
        er.jit(er.roll)(x, 0.5)
    assert er.fori_loop(0, 3, lambda i, v: er.roll(v, i), np.arange(4)).tolist() == np.roll(np.arange(4), 3).tolist()


@pytest.mark.parametrize("ord", [1, -1, np.inf, -np.inf, None, 0, 2, 3])
@pytest.mark.parametrize("dtype", ["i4", "i8", "?", "f4"])
def test_norms_of_integers_are_floats(ord: Any, dtype: str) -> None:
    for x in (np.array([[1, 2], [3, 0]], dtype), np.array([1, 0, 2], dtype)):
        if x.ndim == 2 and ord in (0, 2, 3):
            continue
        with np.errstate(divide="ignore"):  # of 0 to the power of -1
            ours, numpys = er.linalg.norm(x, ord), np.linalg.norm(x, ord)
        assert ours.dtype == numpys.dtype
        np.testing.assert_allclose(ours, numpys, rtol=1e-6)
