"""The same elements under other shapes, and several arrays as one."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from ._array import Array, NDArray, Operand, node_of
from ._dtypes import BY_NAME, NAMES, DType, computed_as, promoted
from ._elementwise import cast_definition
from ._formula import (
    Definition,
    Formula,
    apply,
    broadcast_element,
    call,
    cast,
    element,
    kept,
    label,
    permuted_view,
    where,
)
from ._native import Node, Type
from ._reductions import axes_of

Shape = int | Sequence[int]


def _axis_of(axis: int, rank: int) -> int:
    (position,) = axes_of(axis, rank)
    return position


def shape_of(shape: Shape) -> tuple[int, ...]:
    """A shape, given as one or as the extent of a single dimension."""
    return tuple(map(operator.index, shape)) if isinstance(shape, Sequence) else (operator.index(shape),)


@kept
def _permutation(order: tuple[int, ...], type: Type) -> Definition:
    return permuted_view(type, order)


def permute_dims(x: Operand, /, axes: tuple[int, ...]) -> Array:
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


def reshape(x: Operand, /, shape: Shape, *, copy: bool | None = None) -> Array:
    """The same elements, in row-major order, under another shape; one extent may be -1 and follows.

    >>> reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
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


def flip(x: Operand, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements the other way round along these dimensions.

    >>> flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    node = node_of(x)
    axes = axes_of(axis, len(node.type.shape))
    if 0 in node.type.shape:
        return Array(node)
    return Array(apply(_flipping(axes, node.type), node))


@kept
def _concatenation(axis: int, dtype: str, *types: Type) -> Definition:
    shape = list(types[0].shape)
    shape[axis] = sum(type.shape[axis] for type in types)
    value: Formula | None = None
    begin = shape[axis]
    for operand, type in reversed(list(enumerate(types))):
        begin -= type.shape[axis]
        indices = [label(d) - begin if d == axis and begin else label(d) for d in range(len(shape))]
        own = call("pad", element(operand, indices), 0)
        own = own if type.dtype == dtype else cast(dtype, own)
        value = own if value is None else where(label(axis) < begin + type.shape[axis], own, value)
    assert value is not None
    return Definition.statement(list(types), value, shape, len(shape))


@kept
def _stacking(axis: int, dtype: str, *types: Type) -> Definition:
    shape = [*types[0].shape[:axis], len(types), *types[0].shape[axis:]]
    others = [label(d) for d in range(len(shape)) if d != axis]
    value: Formula | None = None
    for operand, type in reversed(list(enumerate(types))):
        own = element(operand, others)
        own = own if type.dtype == dtype else cast(dtype, own)
        value = own if value is None else where(label(axis) <= operand, own, value)
    assert value is not None
    return Definition.statement(list(types), value, shape, len(shape))


_AT_ONCE: Final = 8  # arrays that a statement puts together: each of its elements looks at all of them
_SMALL: Final = 2**16  # bytes of an array of NumPy's that is copied where it stands beside another one


def _is_small(part: Operand) -> bool:
    return type(part) is np.ndarray and part.nbytes <= _SMALL


def _put_together(join: Callable[..., Definition], axis: int, dtype: DType, nodes: list[Node]) -> list[Node]:
    """Each few neighbours as one."""
    groups = [nodes[first : first + _AT_ONCE] for first in range(0, len(nodes), _AT_ONCE)]
    return [apply(join(axis, NAMES[dtype], *[node.type for node in group]), *group) for group in groups]


def _behind_each_other(axis: int, dtype: DType, nodes: list[Node]) -> Array:
    while len(nodes) > 1:
        nodes = _put_together(_concatenation, axis, dtype, nodes)
    return Array(apply(cast_definition(NAMES[dtype], nodes[0].type), nodes[0]))


def _with_neighbours(
    parts: Sequence[Operand], dtype: DType, join: Callable[[list[NDArray]], NDArray]
) -> Iterator[tuple[bool, Node]]:
    """The parts, where small arrays of NumPy's that are neighbours are one; and whether it is such a one."""
    for is_small, group in itertools.groupby(parts, _is_small):
        if is_small:
            yield True, node_of(join([np.asarray(part, dtype=dtype) for part in group]))
        else:
            yield from ((False, node_of(part)) for part in group)


def concat(arrays: Sequence[Operand], /, *, axis: int | None = 0) -> Array:
    """The arrays behind each other along a dimension; without one, of all elements.

    >>> concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    given = [array if isinstance(array, (Array, np.ndarray)) else Array(node_of(array)) for array in arrays]
    if not given:
        raise ValueError("nothing to put together: give one array or more")
    if axis is None:
        return concat([array.reshape(-1) for array in given])
    position = _axis_of(axis, given[0].ndim)
    for array in given:
        rest = array.shape[:position] + array.shape[position + 1 :]
        if array.ndim != given[0].ndim or rest != given[0].shape[:position] + given[0].shape[position + 1 :]:
            raise ValueError(f"arrays of shapes {given[0].shape} and {array.shape} behind each other along {axis}")
    dtype = promoted(*[computed_as(array.dtype) for array in given])
    full = [array for array in given if array.shape[position] > 0] or given[:1]
    nodes = [node for _, node in _with_neighbours(full, dtype, lambda some: np.concatenate(some, position))]
    return _behind_each_other(position, dtype, nodes)


def stack(arrays: Sequence[Operand], /, *, axis: int = 0) -> Array:
    """The arrays beside each other along a new dimension, which is `axis` of the result.

    >>> stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    given = [array if isinstance(array, (Array, np.ndarray)) else Array(node_of(array)) for array in arrays]
    if not given:
        raise ValueError("nothing to put together: give one array or more")
    position = _axis_of(axis, given[0].ndim + 1)
    for array in given:
        if array.shape != given[0].shape:
            raise ValueError(f"arrays of shapes {given[0].shape} and {array.shape} beside each other")
    dtype = promoted(*[computed_as(array.dtype) for array in given])
    nodes: list[Node] = []
    parts = _with_neighbours(given, dtype, lambda some: np.stack(some, position))
    for are_stacked, group in itertools.groupby(parts, lambda part: part[0]):
        some = [node for _, node in group]
        nodes += some if are_stacked else _put_together(_stacking, position, dtype, some)
    return _behind_each_other(position, dtype, nodes)


def unstack(x: Operand, /, *, axis: int = 0) -> tuple[Array, ...]:
    """One array for each position along a dimension.

    >>> [row.tolist() for row in unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def roll(x: Operand, /, shift: Shape, *, axis: Shape | None = None) -> Array:
    """The elements moved along dimensions, those that leave at one end coming in at the other.

    >>> roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    array = Array(node_of(x))
    if axis is None:
        return reshape(roll(reshape(array, (-1,)), shift, axis=0), array.shape)
    shifts, axes = np.broadcast_arrays(shape_of(shift), shape_of(axis))
    for by, given in zip(shifts.tolist(), axes.tolist()):
        d = _axis_of(given, array.ndim)
        cut = -by % array.shape[d] if array.shape[d] else 0
        if cut:
            before = (slice(None),) * d
            array = concat([array[(*before, slice(cut, None))], array[(*before, slice(None, cut))]], axis=d)
    return array


def repeat(x: Operand, repeats: int, /, *, axis: int | None = None) -> Array:
    """Each element so many times.

    >>> repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]
    """
    array = Array(node_of(x))
    if not isinstance(repeats, (int, np.integer)):
        raise NotImplementedError("einrel.repeat with a number for each element: the shape would depend on elements")
    if axis is None:
        return repeat(reshape(array, (-1,)), repeats, axis=0)
    d = _axis_of(axis, array.ndim)
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


def diff(
    x: Operand, /, *, axis: int = -1, n: int = 1, prepend: Operand | None = None, append: Operand | None = None
) -> Array:
    """Each element less the one before it along a dimension, n times.

    >>> diff([1, 4, 9, 16]).tolist()
    [3, 5, 7]
    """
    array = Array(node_of(x))
    d = _axis_of(axis, array.ndim)
    parts = [prepend, array, append]
    array = concat([part for part in parts if part is not None], axis=d)
    before = (slice(None),) * d
    for _ in range(n):
        later, earlier = array[(*before, slice(1, None))], array[(*before, slice(None, -1))]
        array = later != earlier if array.dtype == np.bool_ else later - earlier
    return array
