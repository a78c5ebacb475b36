"""NumPy's products of arrays, and its norm."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

import einrel as er

from ._array import Array, Operand, node_of
from ._linalg import _product, inv, matmul, matrix_diagonal, matrix_norm, tensordot, vector_norm
from ._numbers import whole
from ._reductions import Axis, axes_of, refuse_out
from ._shapes import moveaxis, permute_dims, reshape

__all__ = [
    "cross",
    "diag",
    "diagflat",
    "diagonal",
    "dot",
    "inner",
    "kron",
    "trace",
    "vdot",
]


def dot(a: Operand, b: Operand, out: None = None) -> Array:
    """The sum of products over the last dimension of a and the last but one of b; of numbers their product.

    >>> dot([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    refuse_out(out)
    left, right = Array(node_of(a)), Array(node_of(b))
    if left.ndim == 0 or right.ndim == 0:
        return er.multiply(a, b)
    if left.ndim <= 2 and right.ndim <= 2:
        return matmul(left, right)
    return tensordot(left, right, ([-1], [max(right.ndim - 2, 0)]))


def inner(a: Operand, b: Operand, /) -> Array:
    """The sum of products over the last dimensions; of numbers their product.

    >>> inner([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    left, right = Array(node_of(a)), Array(node_of(b))
    if left.ndim == 0 or right.ndim == 0:
        return er.multiply(a, b)
    return tensordot(left, right, ([-1], [-1]))


def vdot(a: Operand, b: Operand, /) -> Array:
    """The sum of products of all elements, of the conjugates of a.

    >>> vdot([[1, 2], [3, 4]], [[1, 1], [1, 1]]).tolist()
    10
    """
    return tensordot(er.ravel(er.conj(a)), er.ravel(b), 1)


def kron(a: Operand, b: Operand) -> Array:
    """Kronecker's product: b, times each element of a, in its place.

    >>> kron([[1, 2]], [[1], [1]]).tolist()
    [[1, 2], [1, 2]]
    """
    left, right = Array(node_of(a)), Array(node_of(b))
    rank = max(left.ndim, right.ndim)
    left, right = (reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in (left, right))
    shape = [m * n for m, n in zip(left.shape, right.shape)]
    apart = tensordot(left, right, 0)
    order = [d for pair in zip(range(rank), range(rank, 2 * rank)) for d in pair]
    return reshape(permute_dims(apart, order), shape)


def cross(a: Operand, b: Operand, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The product of vectors of three elements along a dimension, which is orthogonal to both.

    >>> cross([1, 0, 0], [0, 1, 0]).tolist()
    [0, 0, 1]
    """
    axes = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    left, right = (moveaxis(x, d, -1) for x, d in zip((a, b), axes))
    if left.shape[-1] != 3 or right.shape[-1] != 3:
        raise ValueError(f"cross of vectors of {left.shape[-1]} and {right.shape[-1]} elements: there are three")
    (one, two, three), (first, second, third) = ([x[..., i] for i in range(3)] for x in (left, right))
    parts = [two * third - three * second, three * first - one * third, one * second - two * first]
    return moveaxis(er.stack(parts, -1), -1, axes[2]) if parts[0].ndim else er.stack(parts)


def cross_of_the_standard(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Array:
    """The product of vectors of three elements along a dimension, which is orthogonal to both.

    >>> cross_of_the_standard([1, 0, 0], [0, 1, 0]).tolist()
    [0, 0, 1]
    """
    left, right = Array(node_of(x1)), Array(node_of(x2))
    d = axis if axis < 0 else axis - max(left.ndim, right.ndim)  # of what they broadcast to
    axes_of(d, min(left.ndim, right.ndim))
    return cross(left, right, axis=d)


def diagonal(x: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Diagonal `offset` of two dimensions, which becomes the last one; `einrel.linalg.diagonal` has that of matrices.

    >>> diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    own = Array(node_of(x))
    if own.ndim < 2:
        raise ValueError(f"a diagonal of an array of shape {own.shape}: it takes two dimensions")
    return matrix_diagonal(moveaxis(own, (axis1, axis2), (-2, -1)), offset=offset)


def trace(
    x: Operand,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of `diagonal`; `einrel.linalg.trace` has that of matrices.

    >>> trace([[1, 2], [3, 4]]).tolist()
    5
    """
    return er.sum(diagonal(x, offset, axis1, axis2), -1, dtype, out)


def diagflat(x: Operand, k: int = 0) -> Array:
    """The matrix with all elements of x on diagonal k, and 0 elsewhere.

    >>> diagflat([[1, 2]]).tolist()
    [[1, 0], [0, 2]]
    """
    own, k = er.ravel(x), whole("k", k)
    before, after = max(-k, 0), max(k, 0)
    rows = er.pad(own, (before, after)) if k else own
    columns = er.pad(own, (after, before)) if k else own
    is_on = er.eye(own.size + abs(k), k=k, dtype=bool)
    return er.where(is_on, rows[:, None] if k <= 0 else columns[None, :], er.zeros((), own.dtype))


def diag(x: Operand, k: int = 0) -> Array:
    """Diagonal k of a matrix; of a vector the matrix that has it there, and 0 elsewhere.

    >>> diag([1, 2]).tolist()
    [[1, 0], [0, 2]]
    """
    own = Array(node_of(x))
    if own.ndim not in (1, 2):
        raise ValueError(f"diag of an array of shape {own.shape}: it has one or two dimensions")
    return diagflat(own, k) if own.ndim == 1 else diagonal(own, k)


def norm(x: Operand, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The norm of vectors along a dimension, of matrices in two; without an axis, of all elements, or as x is one.

    Orders are those of `vector_norm` and `matrix_norm`.

    >>> norm([3.0, 4.0]).tolist()
    5.0
    >>> norm([[1.0, 2.0], [3.0, 4.0]], 1).tolist()
    6.0
    """
    own = Array(node_of(x))
    if axis is None:
        if ord is None:
            return vector_norm(own, keepdims=keepdims)
        if own.ndim not in (1, 2):
            raise ValueError(f"a norm of order {ord!r} of {own.ndim} dimensions: give an axis, or two of them")
        axis = tuple(range(own.ndim))
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    if len(axes) == 1:
        return vector_norm(own, axis=axes, keepdims=keepdims, ord=2 if ord is None else _order(ord))
    if len(axes) != 2:
        raise ValueError(f"a norm over axis {axis}: vectors have one, matrices two")
    if ord is None:
        return vector_norm(own, axis=axes, keepdims=keepdims)
    moved = moveaxis(own, axes, (-2, -1))
    found = matrix_norm(moved, ord=ord)
    return er.expand_dims(found, axes_of(axes, own.ndim)) if keepdims else found


def _order(ord: Any) -> float:
    if isinstance(ord, str):
        raise ValueError(f"a norm of order {ord!r} is of matrices")
    return float(ord)


def cond(x: Operand, p: Any = None) -> Array:
    """The condition of matrices: the norm times that of the inverse, of order 1, -1, inf, -inf or "fro".

    >>> cond([[1.0, 0.0], [0.0, 4.0]], 1).tolist()
    4.0
    """
    if p in (None, 2, -2):
        raise NotImplementedError(
            "einrel.linalg.cond of order 2: the language has no singular values; NumPy's takes our arrays"
        )
    own = Array(node_of(x))
    return matrix_norm(own, ord=p) * matrix_norm(inv(own), ord=p)


def multi_dot(arrays: Sequence[Operand]) -> Array:
    """The product of matrices, of which the first and the last may be vectors; the order is planned.

    >>> multi_dot([[1, 2], [[1, 0], [0, 1]], [3, 4]]).tolist()
    11
    """
    own = [Array(node_of(array)) for array in arrays]
    if len(own) < 2 or any(array.ndim != 2 for array in own[1:-1]) or not {own[0].ndim, own[-1].ndim} <= {1, 2}:
        raise ValueError("multi_dot of two arrays or more: matrices, of which the first and the last may be vectors")
    letters = string.ascii_letters[: len(own) + 1]
    terms = [letters[i : i + 2] for i in range(len(own))]
    if own[0].ndim == 1:
        terms[0] = terms[0][1:]
    if own[-1].ndim == 1:
        terms[-1] = terms[-1][:1]
    ends = letters[0] * (own[0].ndim == 2) + letters[-1] * (own[-1].ndim == 2)
    return _product(f"{','.join(terms)}->{ends}", [array._node for array in own])
