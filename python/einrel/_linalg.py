"""Products of matrices, and linear algebra."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.linalg import LinAlgError

from ._array import Array, Operand, node_of
from ._creation import eye
from ._dtypes import BY_NAME, HALVES, NAMES, float32, float64, is_complex, is_floating, promoted
from ._einsum import einsum
from ._elementwise import BINARY, UNARY, together
from ._formula import Definition, apply, call, cast, element, kept, label
from ._functions import astype, conj, where
from ._native import Node, Type
from ._numbers import whole
from ._reductions import Axis, axes_of
from ._reductions import max as max_
from ._reductions import min as min_
from ._reductions import sum as sum_
from ._shapes import broadcast_to, expand_dims, moveaxis, ravel, reshape


def _product(subscripts: str, nodes: Sequence[Node]) -> Array:
    """Of numbers that are promoted first, and of truth values as einsum takes them."""
    dtype = promoted(*[BY_NAME[node.type.dtype] for node in nodes])
    return einsum(subscripts, *[astype(Array(node), dtype, copy=False) for node in nodes])  # type: ignore[no-any-return]


def matmul(x1: Operand, x2: Operand, /) -> Array:
    """The product of matrices in the last two dimensions; of one dimension, a row or a column that is gone afterwards.

    >>> matmul([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    nodes = [node_of(x1), node_of(x2)]
    ranks = [len(node.type.shape) for node in nodes]
    if 0 in ranks:
        raise ValueError("matmul of an array without dimensions: multiply instead")
    left, right = ("j" if ranks[0] == 1 else "...ij"), ("j" if ranks[1] == 1 else "...jk")
    result = "..." * (max(ranks) > 1) + "i" * (ranks[0] > 1) + "k" * (ranks[1] > 1)
    inner = (nodes[0].type.shape[-1], nodes[1].type.shape[-1 if ranks[1] == 1 else -2])
    if inner[0] != inner[1]:
        raise ValueError(
            f"matmul of shapes {nodes[0].type.shape} and {nodes[1].type.shape}: {inner[0]} is not {inner[1]}"
        )
    return _product(f"{left},{right}->{result}", nodes)


def tensordot(x1: Operand, x2: Operand, /, axes: int | Sequence[Any] = 2) -> Array:
    """The sum over pairs of dimensions: the last ones of x1 with the first of x2, or those that are named.

    >>> tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]], axes=1).tolist()
    [[1, 2], [3, 4]]
    """
    nodes = [node_of(x1), node_of(x2)]
    ranks = [len(node.type.shape) for node in nodes]
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(ranks):
            raise ValueError(f"tensordot over {axes} dimensions of arrays that have {ranks[0]} and {ranks[1]}")
        pairs = [(ranks[0] - int(axes) + i, i) for i in range(int(axes))]
    else:
        first, second = ([axis] if isinstance(axis, (int, np.integer)) else list(axis) for axis in axes)
        if len(first) != len(second):
            raise ValueError(f"tensordot over {len(first)} and {len(second)} dimensions")
        pairs = [(axes_of(a, ranks[0])[0], axes_of(b, ranks[1])[0]) for a, b in zip(first, second)]
    if any(len(set(named)) < len(named) for named in zip(*pairs)):
        raise ValueError(f"tensordot over {axes}: a dimension stands there twice")
    for a, b in pairs:
        if nodes[0].type.shape[a] != nodes[1].type.shape[b]:
            raise ValueError(f"tensordot of shapes {nodes[0].type.shape} and {nodes[1].type.shape} over {axes}")
    left = string.ascii_letters[: ranks[0]]
    right = list(string.ascii_letters[ranks[0] : sum(ranks)])
    for a, b in pairs:
        right[b] = left[a]
    reduced = {left[a] for a, _ in pairs}
    result = "".join(letter for letter in [*left, *right] if letter not in reduced)
    return _product(f"{left},{''.join(right)}->{result}", nodes)


def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Array:
    """The sum of products along a dimension, of the first one's conjugates; others broadcast.

    >>> vecdot([1, 2], [3, 4]).tolist()
    11
    """
    moved = [moveaxis(x, axis, -1) for x in (conj(x1), x2)]
    if moved[0].shape[-1] != moved[1].shape[-1]:
        raise ValueError(f"vecdot over extents {moved[0].shape[-1]} and {moved[1].shape[-1]}")
    return _product("...i,...i->...", [x._node for x in moved])


def outer(x1: Operand, x2: Operand, /) -> Array:
    """x1[i] * x2[j], of all elements of each.

    >>> outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    left, right = (ravel(Array(node)) for node in together([x1, x2]))
    return BINARY["multiply"](expand_dims(left, axis=1), right)


@kept
def _diagonal(offset: int, type: Type) -> Definition:
    *batch, rows, columns = type.shape
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    along = label(len(batch))
    indices = [*[label(d) for d in range(len(batch))], along - min(offset, 0), along + max(offset, 0)]
    # Without pad, a label that is an index by itself has all positions of the dimension.
    value = call("pad", element(0, indices), 0)
    return Definition.statement([type], value, [*batch, count], len(batch) + 1)


def _matrices(name: str, x: Operand) -> Node:
    """The node of x, whose last two dimensions are those of matrices."""
    node = node_of(x)
    if len(node.type.shape) < 2:
        raise LinAlgError(f"{name} of an array of shape {node.type.shape}: a matrix has two dimensions")
    return node


def matrix_diagonal(x: Operand, /, *, offset: int = 0) -> Array:
    """Diagonal `offset` of the last two dimensions.

    >>> matrix_diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    node = _matrices("diagonal", x)
    return Array(apply(_diagonal(whole("offset", offset), node.type), node))


def matrix_trace(x: Operand, /, *, offset: int = 0, dtype: npt.DTypeLike | None = None) -> Array:
    """The sum of a diagonal of the last two dimensions.

    >>> matrix_trace([[1, 2], [3, 4]]).tolist()
    5
    """
    return sum_(matrix_diagonal(x, offset=offset), axis=-1, dtype=dtype)


def _square(name: str, x: Operand) -> Node:
    node = _matrices(name, x)
    rows, columns = node.type.shape[-2:]
    if rows != columns:
        raise LinAlgError(f"{name} of matrices of {rows} rows and {columns} columns: they have as many of both")
    return node


@kept
def _inverse(dtype: str, type: Type) -> Definition:
    rank = len(type.shape)
    own = cast(dtype, element(0, [label(d) for d in range(rank)]))
    return Definition.statement([type], call("inv", own, over=(rank - 2, rank - 1)), list(type.shape), rank)


def inv(x: Operand, /) -> Array:
    """The inverse of the matrices in the last two dimensions.

    >>> inv([[2.0]]).tolist()
    [[0.5]]
    """
    node = _square("inv", x)
    own = BY_NAME[node.type.dtype]
    return Array(apply(_inverse(NAMES[own if is_floating(own) else float64], node.type), node))


class QRResult(NamedTuple):
    """Both factors of `qr`."""

    Q: Array
    R: Array


@kept
def _factor(function: str, dtype: str, type: Type) -> Definition:
    batches = list(type.shape[:-2])
    rank = len(type.shape)
    rows, columns = type.shape[-2:]
    between = min(rows, columns)
    # Labels of the result come first: row, between, column of Q; between, column, row of R.
    names = [rows, between, columns] if function == "qr_q" else [between, columns, rows]
    row, middle, column = (rank - 2, rank - 1, rank) if function == "qr_q" else (rank, rank - 2, rank - 1)
    own = element(0, [label(d) for d in [*range(rank - 2), row, column]])
    value = call(function, cast(dtype, own), over=(row, column, middle))
    return Definition.statement([type], value, [*batches, *names], rank)


def qr(x: Operand, /, *, mode: str = "reduced") -> QRResult:
    """Q and R of the matrices in the last two dimensions, x = Q @ R: the columns of Q are orthonormal, R is upper
    triangular. Between them is the shorter of both extents (`mode` "reduced", the only one). Signs are as NumPy's.

    >>> q, r = qr([[3.0, 0.0], [4.0, 5.0]])
    >>> np.round(np.asarray(q @ r), 6).tolist()
    [[3.0, 0.0], [4.0, 5.0]]
    """
    if mode != "reduced":
        raise NotImplementedError(f"einrel.linalg.qr of mode {mode!r}: only 'reduced' is there")
    node = _matrices("qr", x)
    own = BY_NAME[node.type.dtype]
    dtype = NAMES[own if is_floating(own) else float64]
    q, r = (Array(apply(_factor(name, dtype, node.type), node)) for name in ("qr_q", "qr_r"))
    return QRResult(q, r)


def solve(x1: Operand, x2: Operand, /) -> Array:
    """inv(x1) @ x2; a vector x2 is a column.

    >>> solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).tolist()
    [1.0, 1.0]
    """
    return matmul(inv(x1), x2)


def _largest(size: Array, axis: Axis, keepdims: bool) -> Array:
    """The largest of these magnitudes; of none 0."""
    is_empty = 0 in [size.shape[d] for d in axes_of(axis, size.ndim)]
    return (sum_ if is_empty else max_)(size, axis=axis, keepdims=keepdims)


def _norm(own: Array, axis: Axis, keepdims: bool, ord: float) -> Array:
    size = UNARY["abs"](own)
    if ord == np.inf:
        return _largest(size, axis, keepdims)
    if ord == -np.inf:
        return min_(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return sum_(astype(size != 0, own.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        own = size if is_complex(own.dtype) else own
        return UNARY["sqrt"](sum_(own * own, axis=axis, keepdims=keepdims))
    # Without abs, which has no second derivative at 0, where that changes nothing.
    powers = own**ord if ord % 2 == 0 and not is_complex(own.dtype) else size**ord
    total = sum_(powers, axis=axis, keepdims=keepdims)
    root = total ** (1 / ord)
    return where(total == 0, 0, root) if ord > 0 else root  # whose derivative at 0 is infinite, and the norm's is none


def vector_norm(x: Operand, /, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The norm of all elements over dimensions: the root of the sum of squares, or of order `ord`.

    >>> vector_norm([3.0, 4.0]).tolist()
    5.0
    """
    own = Array(node_of(x))
    own = own if is_floating(own.dtype) else astype(own, float64, copy=False)
    if own.dtype in HALVES:  # what is summed on the way is not rounded
        return astype(_norm(astype(own, float32, copy=False), axis, keepdims, ord), own.dtype, copy=False)
    return _norm(own, axis, keepdims, ord)


def matrix_norm(x: Operand, /, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices in the last two dimensions: "fro", 1, -1, inf or -inf.

    >>> matrix_norm([[3.0, 0.0], [0.0, 4.0]]).tolist()
    5.0
    """
    own = Array(_matrices("matrix_norm", x))
    own = own if is_floating(own.dtype) else astype(own, float64, copy=False)
    if own.dtype in HALVES:
        wide = matrix_norm(astype(own, float32, copy=False), keepdims=keepdims, ord=ord)
        return astype(wide, own.dtype, copy=False)
    if ord == "fro":
        return vector_norm(own, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        raise NotImplementedError(
            f"einrel.linalg.matrix_norm of order {ord!r}: the language has no singular values; NumPy's takes our arrays"
        )
    inner, outer_ = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = sum_(UNARY["abs"](own), axis=inner, keepdims=True)
    chosen = _largest(sums, outer_, True) if ord > 0 else min_(sums, axis=outer_, keepdims=True)
    return chosen if keepdims else reshape(chosen, own.shape[:-2])


def matrix_power(x: Operand, n: int, /) -> Array:
    """x @ x @ ..., n times; of n below 0, of the inverse.

    >>> matrix_power([[1, 1], [0, 1]], 3).tolist()
    [[1, 3], [0, 1]]
    """
    base = inv(x) if n < 0 else Array(_square("matrix_power", x))
    if n == 0:
        return broadcast_to(eye(base.shape[-1], dtype=base.dtype), base.shape)
    power, square = None, base
    for bit in bin(abs(n))[:1:-1]:
        if bit == "1":
            power = square if power is None else matmul(power, square)
        square = matmul(square, square)
    assert power is not None
    return power
