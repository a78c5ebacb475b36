"""Several arrays as one, and what is made of an array beside itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._array import Array, NDArray, Operand, identity, node_of
from ._changing import changes
from ._creation import arange
from ._division import remainder
from ._dtypes import NAMES, DType, cast_allowed, computed_as, promoted
from ._elementwise import cast_definition
from ._formula import Definition, Formula, apply, call, cast, element, kept, label, made_at_once, where
from ._native import Node, Type
from ._numbers import whole
from ._parts import is_within_transformation
from ._reductions import axes_of, refuse_out
from ._shapes import Shape, atleast_1d, atleast_2d, atleast_3d, broadcast_to, moveaxis, reshape, shape_of


def _axis_of(axis: int, rank: int) -> int:
    (position,) = axes_of(axis, rank)
    return position


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
_MOST_AT_ONCE: Final = 2**28  # bytes that are copied before somebody asks for them
_SMALL: Final = 2**16  # bytes of an array of NumPy's that is copied where it stands beside another one


def _is_small(part: Operand) -> bool:
    return type(part) is np.ndarray and part.nbytes <= _SMALL


def _elements_at_hand(parts: Sequence[Any]) -> list[NDArray] | None:
    """Those of each, if all have them in memory."""
    elements: list[NDArray] = []
    for part in parts:
        if isinstance(part, Array) and part._node.is_in_memory:
            elements.append(part._elements())
        elif _is_small(part):
            elements.append(part)
        else:
            return None
    return elements


def _at_once(parts: Sequence[Any], dtype: DType, whole: Array, join: Callable[[list[NDArray]], NDArray]) -> Array:
    """Many arrays that have their elements, copied to where they stand together; or the array that will be so."""
    if len(parts) <= _AT_ONCE or whole.nbytes > _MOST_AT_ONCE:
        return whole
    elements = _elements_at_hand(parts)
    if elements is None:
        return whole
    return _copied(join([np.asarray(one, dtype=dtype) for one in elements]), whole, "put together")


def _copied(elements: NDArray, whole: Array, how: str) -> Array:
    """The elements, which are those that the array will have: gradients go through it."""
    leaf = node_of(elements)
    return Array(made_at_once(leaf, identity(leaf.type), [whole._node], how))


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


def _given(arrays: Sequence[Operand], out: None) -> list[Any]:
    refuse_out(out)
    if isinstance(arrays, Array):
        return list(unstack(arrays))
    given = [array if isinstance(array, (Array, np.ndarray)) else Array(node_of(array)) for array in arrays]
    if not given:
        raise ValueError("nothing to put together: give one array or more")
    return given


def _common(arrays: Sequence[Any], dtype: npt.DTypeLike | None, casting: Any) -> DType:
    """The type of several arrays together, or the one that is asked for."""
    common = promoted(*{computed_as(dtype): None for dtype in {array.dtype: None for array in arrays}})
    return common if dtype is None else cast_allowed(common, dtype, casting)


def concat(
    arrays: Sequence[Operand],
    /,
    axis: int | None = 0,
    out: None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    casting: str = "same_kind",
) -> Array:
    """The arrays behind each other along a dimension; without one, of all elements.

    >>> concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    given = _given(arrays, out)
    if axis is None:
        return concat([array.reshape(-1) for array in given], dtype=dtype, casting=casting)
    if given[0].ndim == 0:
        raise ValueError(
            "arrays without dimensions do not stand behind each other: einrel.stack puts them beside each other"
        )
    position = _axis_of(axis, given[0].ndim)
    first = given[0].shape
    for shape in {array.shape: None for array in given}:
        rest = shape[:position] + shape[position + 1 :]
        if len(shape) != len(first) or rest != first[:position] + first[position + 1 :]:
            raise ValueError(f"arrays of shapes {first} and {shape} behind each other along {axis}")
    dtype = _common(given, dtype, casting)
    full = [array for array in given if array.shape[position] > 0] or given[:1]

    def join(some: list[NDArray]) -> NDArray:
        return np.concatenate(some, position)

    whole = _behind_each_other(position, dtype, [node for _, node in _with_neighbours(full, dtype, join)])
    return _at_once(full, dtype, whole, join)


def stack(
    arrays: Sequence[Operand],
    /,
    axis: int = 0,
    out: None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    casting: str = "same_kind",
) -> Array:
    """The arrays beside each other along a new dimension, which is `axis` of the result.

    >>> stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    given = _given(arrays, out)
    position = _axis_of(axis, given[0].ndim + 1)
    shapes = list({array.shape: None for array in given})
    if len(shapes) > 1:
        raise ValueError(f"arrays of shapes {shapes[0]} and {shapes[1]} beside each other")
    dtype = _common(given, dtype, casting)
    nodes: list[Node] = []

    def join(some: list[NDArray]) -> NDArray:
        if position == 0 and some[0].ndim > 0:  # the same, without a view of each
            return np.concatenate(some).reshape(len(some), *some[0].shape)
        return np.stack(some, position)

    parts = _with_neighbours(given, dtype, join)
    for are_stacked, group in itertools.groupby(parts, lambda part: part[0]):
        some = [node for _, node in group]
        nodes += some if are_stacked else _put_together(_stacking, position, dtype, some)
    return _at_once(given, dtype, _behind_each_other(position, dtype, nodes), join)


def unstack(x: Operand, /, axis: int = 0) -> tuple[Array, ...]:
    """One array for each position along a dimension.

    >>> [row.tolist() for row in unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def _is_awaited(shift: Any) -> bool:
    parts = shift if isinstance(shift, (list, tuple)) else [shift]
    return any(isinstance(part, Array) and part._node.is_traced for part in parts)


def _rolled_by_unknown(array: Array, shift: Any, axes: tuple[int, ...]) -> Array:
    """By numbers that are made of arguments of a traced function: positions are theirs, too."""
    shifts = Array(node_of(shift))
    if shifts.ndim > 1 or shifts.dtype.kind != "i":
        raise TypeError(f"einrel.roll by an array of {shifts.dtype} and shape {shifts.shape}: give whole numbers")
    pairs = np.broadcast_shapes(shifts.shape, (len(axes),))
    shifts = broadcast_to(shifts, pairs)
    for i, axis in enumerate(np.broadcast_to(axes, pairs).tolist()):
        d = _axis_of(axis, array.ndim)
        if array.shape[d] > 0:
            positions = arange(array.shape[d]) - remainder(shifts[i], array.shape[d])  # below 0 from the end
            array = array[(*(slice(None),) * d, positions)]
    return array


def roll(x: Operand, /, shift: Shape, axis: Shape | None = None) -> Array:
    """The elements moved along dimensions, those that leave at one end coming in at the other.

    In a function that is traced, it may be by numbers that are made of arguments.

    >>> roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    array = Array(node_of(x))
    if axis is None:
        return reshape(roll(reshape(array, (-1,)), shift, axis=0), array.shape)
    if _is_awaited(shift):
        return _rolled_by_unknown(array, shift, shape_of(axis))
    shifts, axes = np.broadcast_arrays(shape_of(shift), shape_of(axis))
    for by, given in zip(shifts.tolist(), axes.tolist()):
        d = _axis_of(given, array.ndim)
        cut = -by % array.shape[d] if array.shape[d] else 0
        before = (slice(None),) * d
        is_another = array.shape[d] > 0 and not array._node.is_traced and changes(("roll", array._node.type, d), cut)
        # For gradients one index is one program for all numbers.
        is_at_hand = is_another and not is_within_transformation() and array._node.is_in_memory
        is_at_hand = is_at_hand and array.nbytes <= _MOST_AT_ONCE
        if is_another and not is_at_hand:
            array = array[(*before, np.roll(np.arange(array.shape[d]), by))]
        elif cut:
            parts = [array[(*before, slice(cut, None))], array[(*before, slice(None, cut))]]
            joined = concat(parts, axis=d)
            array = _copied(np.roll(array._elements(), by, axis=d), joined, "rolled") if is_at_hand else joined
    return array


def diff(
    x: Operand, /, n: int = 1, axis: int = -1, prepend: Operand | None = None, append: Operand | None = None
) -> Array:
    """Each element less the one before it along a dimension, n times; of the array with others before and behind.

    >>> diff([1, 4, 9, 16]).tolist()
    [3, 5, 7]
    """
    array = Array(node_of(x))
    n = whole("n", n)
    if n < 0:
        raise ValueError(f"differences of order {n}: give 0 or more")
    if n == 0:
        return array
    d = _axis_of(axis, array.ndim)
    edges = [None if edge is None else _edge(edge, array.shape, d) for edge in (prepend, append)]
    parts = [edges[0], array, edges[1]]
    array = concat([part for part in parts if part is not None], axis=d)
    before = (slice(None),) * d
    for _ in range(min(n, array.shape[d])):
        later, earlier = array[(*before, slice(1, None))], array[(*before, slice(None, -1))]
        array = later != earlier if array.dtype == np.bool_ else later - earlier
    return array


def _edge(edge: Operand, shape: tuple[int, ...], d: int) -> Operand:
    """What stands before or behind an array of that shape; a number as one position of dimension d."""
    return broadcast_to(edge, (*shape[:d], 1, *shape[d + 1 :])) if np.ndim(edge) == 0 else edge


def vstack(arrays: Sequence[Operand], *, dtype: npt.DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Rows, or arrays of them, below each other.

    >>> vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([atleast_2d(array) for array in _given(arrays, None)], dtype=dtype, casting=casting)


def hstack(arrays: Sequence[Operand], *, dtype: npt.DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """The arrays behind each other along the second dimension, vectors along the first.

    >>> hstack([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    given = [atleast_1d(array) for array in _given(arrays, None)]
    return concat(given, 0 if given[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(arrays: Sequence[Operand]) -> Array:
    """The arrays behind each other along the third dimension.

    >>> dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat([atleast_3d(array) for array in _given(arrays, None)], 2)


def column_stack(arrays: Sequence[Operand]) -> Array:
    """Columns, or matrices of them, beside each other.

    >>> column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    return concat([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in _given(arrays, None)], 1)


def append(x: Operand, values: Operand, axis: int | None = None) -> Array:
    """The values behind x along a dimension; without one, of all elements.

    >>> append([1, 2], [[3], [4]]).tolist()
    [1, 2, 3, 4]
    """
    return concat([x, values], axis)


def block(arrays: Any) -> Array:
    """An array in blocks: those in a list stand beside each other, the rows of a list of lists below each other.

    >>> block([[np.ones((1, 2)), np.zeros((1, 1))], [np.zeros((1, 3))]]).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if not isinstance(arrays, list):
        return Array(node_of(arrays))
    rows = arrays if any(isinstance(row, list) for row in arrays) else [arrays]
    if not all(isinstance(row, list) and row for row in rows) or any(isinstance(x, list) for row in rows for x in row):
        raise NotImplementedError(
            "einrel.block: blocks are in a list, or in a list of lists; einrel.concat does the rest"
        )
    whole = concat(
        [concat([atleast_1d(x) if rows[0] is arrays else atleast_2d(x) for x in row], -1) for row in rows],
        -2 if rows is arrays else 0,
    )
    return whole
