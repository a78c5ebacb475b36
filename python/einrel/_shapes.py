"""The same elements under other shapes, and several arrays as one."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import einrel as er

from ._array import Array, Operand, node_of
from ._dtypes import BY_NAME
from ._formula import Definition, apply, broadcast_element, element, kept, label, permuted_view
from ._native import Type
from ._numbers import UNKNOWN_NUMBER
from ._reductions import axes_of

Shape = int | Sequence[int]


def _axis_of(axis: int, rank: int) -> int:
    (position,) = axes_of(axis, rank)
    return position


def shape_of(shape: Shape) -> tuple[int, ...]:
    """A shape, given as one or as the extent of a single dimension."""
    if isinstance(shape, Array) and shape._node.is_traced:
        raise TypeError(UNKNOWN_NUMBER)
    if isinstance(shape, (Array, np.ndarray)):
        shape = shape.tolist()
    extents = tuple(map(operator.index, shape)) if isinstance(shape, Sequence) else (operator.index(shape),)
    if max(extents, default=0) >= 2**63:
        raise ValueError(f"a shape of {shape}: extents have 64 bits")
    return extents


@kept
def _permutation(order: tuple[int, ...], type: Type) -> Definition:
    return permuted_view(type, order)


def permute_dims(x: Operand, /, axes: Sequence[int]) -> Array:
    """The dimensions in another order: dimension d of the result is axes[d] of x.

    >>> permute_dims([[1, 2], [3, 4]], (1, 0)).tolist()
    [[1, 3], [2, 4]]
    """
    node = node_of(x)
    rank = len(node.type.shape)
    order = tuple(_axis_of(axis, rank) for axis in axes)
    if sorted(order) != list(range(rank)):
        raise ValueError(f"axes {axes} do not name each of {rank} dimensions once")
    if order == tuple(range(rank)):
        return Array(node)
    return Array(apply(_permutation(order, node.type), node))


def swapaxes(x: Operand, axis1: int, axis2: int) -> Array:
    """Two dimensions swapped.

    >>> swapaxes([[1, 2], [3, 4]], 0, 1).tolist()
    [[1, 3], [2, 4]]
    """
    array = Array(node_of(x))
    order = list(range(array.ndim))
    first, second = _axis_of(axis1, array.ndim), _axis_of(axis2, array.ndim)
    order[first], order[second] = second, first
    return permute_dims(array, tuple(order))


def rollaxis(x: Operand, axis: int, start: int = 0) -> Array:
    """A dimension moved in front of dimension `start`; see `moveaxis`, which is easier to read.

    >>> rollaxis(np.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    array = Array(node_of(x))
    from_ = _axis_of(axis, array.ndim)
    if not -array.ndim <= start <= array.ndim:
        raise np.exceptions.AxisError(start, array.ndim + 1)
    to = start + array.ndim if start < 0 else start
    return moveaxis(array, from_, to - 1 if from_ < to else to)


def transpose(x: Operand, axes: Sequence[int] | None = None) -> Array:
    """As `permute_dims`; without `axes` the dimensions the other way round.

    >>> transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    array = Array(node_of(x))
    return permute_dims(array, tuple(range(array.ndim))[::-1] if axes is None else tuple(axes))


def matrix_transpose(x: Operand, /) -> Array:
    """The last two dimensions swapped.

    >>> matrix_transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    array = Array(node_of(x))
    if array.ndim < 2:
        raise ValueError(f"a matrix has two dimensions or more, not {array.ndim}")
    order = (*range(array.ndim - 2), array.ndim - 1, array.ndim - 2)
    return permute_dims(array, order)


def moveaxis(x: Operand, source: Shape, destination: Shape, /) -> Array:
    """The dimensions `source` moved to `destination`, the others in order.

    >>> moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    array = Array(node_of(x))
    from_ = [_axis_of(axis, array.ndim) for axis in shape_of(source)]
    to = [_axis_of(axis, array.ndim) for axis in shape_of(destination)]
    order = [d for d in range(array.ndim) if d not in from_]
    for position, axis in sorted(zip(to, from_)):
        order.insert(position, axis)
    return permute_dims(array, tuple(order))


def _factors(from_: Sequence[int], to: Sequence[int]) -> list[list[list[int]]] | None:
    """Extents that the dimensions of both shapes are made of, in groups, if there are such."""
    sides = [[list[int]() for _ in from_], [list[int]() for _ in to]]
    left, right = list(from_), list(to)
    a = b = 0
    while a < len(left) and b < len(right):
        if left[a] == 1 or right[b] == 1:  # a dimension of its own, without labels
            a, b = (a + 1, b) if left[a] == 1 else (a, b + 1)
            continue
        common = min(left[a], right[b])
        if left[a] % common or right[b] % common:
            return None
        sides[0][a].append(common)
        sides[1][b].append(common)
        left[a] //= common
        right[b] //= common
    return sides


@kept
def _regrouping(to: tuple[int, ...], type: Type) -> Definition | None:
    """The view that is a reshape, where the dimensions of both shapes are made of the same factors."""
    sides = _factors(type.shape, to)
    if sides is None or 0 in to:
        return None
    extents = [extent for group in sides[0] for extent in group]
    numbered = []
    for side in sides:
        numbers = iter(range(len(extents)))
        numbered.append([[next(numbers) for _ in group] for group in side])
    return Definition.view(type, numbered[1], numbered[0], extents)


def reshape(x: Operand, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements under another shape; one extent may be -1 and follows.

    In row-major order, or in column-major order with `order="F"`.

    >>> reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    >>> reshape([1, 2, 3, 4], (2, -1), order="F").tolist()
    [[1, 3], [2, 4]]
    """
    if order == "F":
        return transpose(reshape(transpose(x), shape_of(shape)[::-1]))
    if order not in ("C", "A", "K"):
        raise ValueError(f"order {order!r}: it is 'C', row-major, or 'F', column-major")
    node = node_of(x)
    own = node.type.shape
    wanted = shape_of(shape)
    if wanted.count(-1) == 1:
        others = -math.prod(wanted)
        if others != 0 and math.prod(own) % others == 0:
            wanted = tuple(math.prod(own) // others if extent == -1 else extent for extent in wanted)
    if math.prod(own) != math.prod(wanted) or min(wanted, default=0) < 0:
        raise ValueError(f"an array of shape {own} as one of shape {shape_of(shape)}")
    if wanted == own:
        return Array(node)
    if 0 in own:
        return Array(node_of(np.zeros(wanted, BY_NAME[node.type.dtype])))
    view = _regrouping(wanted, node.type)
    if view is None:
        return reshape(reshape(Array(node), (-1,)), wanted)
    return Array(apply(view, node))


def ravel(x: Operand, order: str = "C") -> Array:
    """All elements in one dimension, in row-major order, or in column-major order with `order="F"`.

    >>> ravel([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    return reshape(x, (-1,), order)


def _at_least(x: Operand, before: int, after: int) -> Array:
    """With so many new dimensions of extent 1."""
    array = Array(node_of(x))
    return reshape(array, (1,) * before + array.shape + (1,) * after)


def _each(function: Callable[[Operand], Array], arrays: Sequence[Operand]) -> Any:
    made = tuple(map(function, arrays))
    return made[0] if len(made) == 1 else made


def atleast_1d(*arrays: Operand) -> Any:
    """The array with one dimension or more; a tuple of several.

    >>> atleast_1d(3).tolist()
    [3]
    """
    return _each(lambda x: _at_least(x, 1 - min(np.ndim(x), 1), 0), arrays)


def atleast_2d(*arrays: Operand) -> Any:
    """The array with two dimensions or more, new ones first; a tuple of several.

    >>> atleast_2d([3, 4]).tolist()
    [[3, 4]]
    """
    return _each(lambda x: _at_least(x, 2 - min(np.ndim(x), 2), 0), arrays)


def atleast_3d(*arrays: Operand) -> Any:
    """The array with three dimensions or more, those there are in the middle; a tuple of several.

    >>> atleast_3d([3, 4]).shape
    (1, 2, 1)
    """
    return _each(lambda x: _at_least(x, (2, 1, 0, 0)[min(np.ndim(x), 3)], int(np.ndim(x) < 3)), arrays)


def expand_dims(x: Operand, /, axis: Shape = 0) -> Array:
    """With new dimensions of extent 1, which are `axis` of the result.

    >>> expand_dims([1, 2], axis=1).tolist()
    [[1], [2]]
    """
    array = Array(node_of(x))
    given = shape_of(axis)
    new = axes_of(given, array.ndim + len(given))
    extents = iter(array.shape)
    return reshape(array, [1 if d in new else next(extents) for d in range(array.ndim + len(given))])


def squeeze(x: Operand, /, axis: Shape | None = None) -> Array:
    """Without these dimensions, whose extent is 1.

    >>> squeeze([[1], [2]], 1).tolist()
    [1, 2]
    """
    array = Array(node_of(x))
    if axis is None:
        axis = tuple(d for d, extent in enumerate(array.shape) if extent == 1)
    gone = axes_of(shape_of(axis), array.ndim)
    for d in gone:
        if array.shape[d] != 1:
            raise ValueError(f"dimension {d} has extent {array.shape[d]}, not 1")
    return reshape(array, [extent for d, extent in enumerate(array.shape) if d not in gone])


@kept
def _broadcasting(shape: tuple[int, ...], type: Type) -> Definition:
    return Definition.statement([type], broadcast_element(0, type.shape, shape), list(shape), len(shape))


def broadcast_to(x: Operand, /, shape: Shape) -> Array:
    """The elements again and again, by NumPy's rules.

    >>> broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    node = node_of(x)
    wanted = shape_of(shape)
    if np.broadcast_shapes(node.type.shape, wanted) != wanted:
        raise ValueError(f"an array of shape {node.type.shape} does not broadcast to {wanted}")
    if wanted == node.type.shape:
        return Array(node)
    return Array(apply(_broadcasting(wanted, node.type), node))


def broadcast_arrays(*arrays: Operand) -> tuple[Array, ...]:
    """All of one shape, by NumPy's rules.

    >>> [x.tolist() for x in broadcast_arrays([1, 2], 3)]
    [[1, 2], [3, 3]]
    """
    own = [Array(node_of(array)) for array in arrays]
    shape = np.broadcast_shapes(*[array.shape for array in own])
    return tuple(broadcast_to(array, shape) for array in own)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these have together.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return np.broadcast_shapes(*shapes)


@kept
def _flipping(axes: tuple[int, ...], type: Type) -> Definition:
    indices = [label(d) * -1 + (extent - 1) if d in axes else label(d) for d, extent in enumerate(type.shape)]
    return Definition.statement([type], element(0, indices), list(type.shape), len(type.shape))


def flip(x: Operand, /, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements the other way round along these dimensions.

    >>> flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    node = node_of(x)
    axes = axes_of(axis, len(node.type.shape))
    if 0 in node.type.shape:
        return Array(node)
    return Array(apply(_flipping(axes, node.type), node))


def fliplr(x: Operand) -> Array:
    """The second dimension the other way round.

    >>> fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    return flip(x, 1)


def flipud(x: Operand) -> Array:
    """The first dimension the other way round.

    >>> flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    return flip(x, 0)


def rot90(x: Operand, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Turned k times by a quarter, from the first of these dimensions towards the second.

    >>> rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    array = Array(node_of(x))
    first, second = (_axis_of(axis, array.ndim) for axis in axes)
    if first == second:
        raise ValueError(f"axes {axes} are one dimension: a turn has two")
    if k % 4 in (0, 2):
        return flip(array, (first, second)) if k % 4 else array
    return swapaxes(flip(array, second), first, second) if k % 4 == 1 else flip(swapaxes(array, first, second), second)


def repeat(x: Operand, repeats: int | Sequence[int] | Operand, /, axis: int | None = None) -> Array:
    """Each element so many times; a number for each one is computed, as the shape depends on it.

    >>> repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]
    >>> repeat([1, 2], [0, 3]).tolist()
    [2, 2, 2]
    """
    array = Array(node_of(x))
    if axis is None:
        return repeat(reshape(array, (-1,)), repeats, axis=0)
    d = _axis_of(axis, array.ndim)
    if not isinstance(repeats, (int, np.integer)):
        if isinstance(repeats, Array) and repeats._node.is_traced:
            raise NotImplementedError("einrel.repeat by an argument of a traced function: the shape would depend on it")
        counts: Any = repeats._elements() if isinstance(repeats, Array) else repeats
        return er.take(array, np.repeat(np.arange(array.shape[d]), counts), axis=d)
    if repeats < 0:
        raise ValueError(f"each element {repeats} times: give 0 or more")
    before, after = array.shape[: d + 1], array.shape[d + 1 :]
    many = broadcast_to(expand_dims(array, axis=d + 1), (*before, int(repeats), *after))
    return reshape(many, (*before[:-1], before[-1] * int(repeats), *after))


def tile(x: Operand, repetitions: Shape, /) -> Array:
    """The whole array so many times along each dimension.

    >>> tile([1, 2], 2).tolist()
    [1, 2, 1, 2]
    """
    array = Array(node_of(x))
    times = shape_of(repetitions)
    rank = max(array.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - array.ndim) + array.shape
    apart = reshape(array, [extent for own in shape for extent in (1, own)])
    many = broadcast_to(apart, [extent for pair in zip(times, shape) for extent in pair])
    return reshape(many, [count * own for count, own in zip(times, shape)])
