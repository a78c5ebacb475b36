"""Running sums and products, and NumPy's names for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy.typing as npt

import einrel as er

from ._array import Array, Operand, node_of
from ._formula import Definition, Formula, apply, call, element, kept, label, where
from ._joining import concat
from ._native import Type
from ._reductions import _summed_as, axes_of, refuse_out
from ._shapes import reshape

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "nancumprod",
    "nancumsum",
]


# How two neighbours become one, and what stands before the first.
_JOINED: Final[dict[str, Callable[[Formula, Formula], Formula]]] = {
    "sum": lambda x, y: x + y,
    "prod": lambda x, y: x * y,
    "max": lambda x, y: call("maximum", x, y),
    "min": lambda x, y: call("minimum", x, y),
}


@kept
def _with_earlier(function: str, axis: int, distance: int, type: Type) -> Definition:
    """Each element together with the one so far before it, where there is one."""
    rank = len(type.shape)
    own = element(0, [label(d) for d in range(rank)])
    indices = [label(d) - distance if d == axis else label(d) for d in range(rank)]
    both = _JOINED[function](own, call("pad", element(0, indices), 0))
    value = both if function == "sum" else where(label(axis) < distance, own, both)
    return Definition.statement([type], value, list(type.shape), rank)


_SHORT: Final = 512  # an extent along which all is done in one
_BLOCKS: Final = range(256, 31, -1)  # extents of blocks of a longer one


def _of_short(function: str, x: Array, axis: int) -> Array:
    """In as many steps as the extent has bits: each looks twice as far."""
    node, distance = x._node, 1
    while distance < x.shape[axis]:
        node = apply(_with_earlier(function, axis, distance, node.type), node)
        distance *= 2
    return Array(node)


@kept
def _in_blocks(axis: int, length: int, type: Type) -> Definition:
    """Rows of so many elements in place of the axis, with zeros at the end."""
    rank = len(type.shape) + 1
    indices = [label(d) for d in range(axis)]
    indices += [label(axis) * length + label(axis + 1), *(label(d) for d in range(axis + 2, rank))]
    shape = [*type.shape[:axis], -(-type.shape[axis] // length), length, *type.shape[axis + 1 :]]
    return Definition.statement([type], call("pad", element(0, indices), 0), shape, rank)


@kept
def _with_blocks_before(function: str, axis: int, inside: Type, blocks: Type) -> Definition:
    """Each element of rows together with all rows before its own."""
    rank = len(inside.shape)
    own = element(0, [label(d) for d in range(rank)])
    indices = [label(d) - 1 if d == axis else label(d) for d in range(rank) if d != axis + 1]
    both = _JOINED[function](own, call("pad", element(1, indices), 0))
    value = both if function == "sum" else where(label(axis) < 1, own, both)
    return Definition.statement([inside, blocks], value, list(inside.shape), rank)


def running(function: str, x: Array, axis: int) -> Array:
    """Sums, for example, up to each position: in blocks of a long extent, and over the blocks.

    Products are made of neighbours alone: that of a block may leave the range of its type where none from the first
    element on does.
    """
    extent = x.shape[axis]
    if extent <= _SHORT or function == "prod":
        return _of_short(function, x, axis)
    length = next((length for length in _BLOCKS if extent % length == 0), 128)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    is_whole = extent % length == 0
    count = -(-extent // length)
    rows = (
        reshape(x, (*before, count, length, *after))
        if is_whole
        else Array(apply(_in_blocks(axis, length, x._node.type), x._node))
    )
    inside = _of_short(function, rows, axis + 1)
    blocks = running(function, inside[(*[slice(None)] * (axis + 1), -1)], axis)
    types = inside._node.type, blocks._node.type
    joined = apply(_with_blocks_before(function, axis, *types), inside._node, blocks._node)
    flat = reshape(Array(joined), (*before, count * length, *after))
    return flat if is_whole else flat[(*[slice(None)] * axis, slice(extent))]


def cumulative_max(x: Operand, axis: int = 0) -> Array:
    """The largest element up to each one, as `numpy.maximum.accumulate` has it.

    >>> cumulative_max([1, 3, 2]).tolist()
    [1, 3, 3]
    """
    own = Array(node_of(x))
    return running("max", own, *axes_of(axis, own.ndim))


def cumulative_min(x: Operand, axis: int = 0) -> Array:
    """The smallest element up to each one, as `numpy.minimum.accumulate` has it.

    >>> cumulative_min([2, 3, 1]).tolist()
    [2, 2, 1]
    """
    own = Array(node_of(x))
    return running("min", own, *axes_of(axis, own.ndim))


def _cumulative(
    function: str, x: Operand, axis: int | None, dtype: npt.DTypeLike | None, include_initial: bool
) -> Array:
    own = er.astype(x, _summed_as(x, dtype), copy=False)
    if axis is None or (own.ndim == 0 and axis in (0, -1)):
        own, axis = reshape(own, (-1,)), 0
    (d,) = axes_of(axis, own.ndim)
    own = running(function, own, d)
    if not include_initial:
        return own
    first = er.full((*own.shape[:d], 1, *own.shape[d + 1 :]), 0 if function == "sum" else 1, own.dtype)
    return concat([first, own], axis=d)


def _of_the_standard(x: Operand, axis: int | None) -> int | None:
    """The axis, which may be left out of arrays of one dimension."""
    rank = len(node_of(x).type.shape)
    if rank == 0 or (axis is None and rank != 1):
        raise ValueError(f"give an axis: the array has {rank} dimensions")
    return 0 if axis is None else axis


def cumulative_sum(
    x: Operand, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Sums of the elements up to each one along a dimension; with `include_initial` 0 before them.

    >>> cumulative_sum([1, 2, 3], include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _cumulative("sum", x, _of_the_standard(x, axis), dtype, include_initial)


def cumulative_prod(
    x: Operand, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Products of the elements up to each one along a dimension; with `include_initial` 1 before them.

    They are made of products of neighbours. Where one of those leaves the range of the type, so does the result, or it
    is NaN, also where the product from the first element on does not.

    >>> cumulative_prod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    return _cumulative("prod", x, _of_the_standard(x, axis), dtype, include_initial)


def cumsum(x: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None) -> Array:
    """Sums of the elements up to each one along a dimension; without one, of all elements in one.

    >>> cumsum([[1, 2], [3, 4]]).tolist()
    [1, 3, 6, 10]
    """
    refuse_out(out)
    return _cumulative("sum", x, axis, dtype, False)


def cumprod(x: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None) -> Array:
    """Products of the elements up to each one along a dimension; without one, of all elements in one.

    >>> cumprod([[1, 2], [3, 4]]).tolist()
    [1, 2, 6, 24]
    """
    refuse_out(out)
    return _cumulative("prod", x, axis, dtype, False)


def nancumsum(x: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None) -> Array:
    """`cumsum`, with 0 for NaN.

    >>> nancumsum([1.0, np.nan, 2.0]).tolist()
    [1.0, 1.0, 3.0]
    """
    return cumsum(er.where(er.isnan(x), 0, x), axis, dtype, out)


def nancumprod(x: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None) -> Array:
    """`cumprod`, with 1 for NaN.

    >>> nancumprod([1.0, np.nan, 2.0]).tolist()
    [1.0, 1.0, 2.0]
    """
    return cumprod(er.where(er.isnan(x), 1, x), axis, dtype, out)
