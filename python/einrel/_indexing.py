"""x[...]: slices, single positions, new dimensions, and gathers by arrays of positions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

import einrel as er

from ._array import Array, Operand, node_of
from ._changing import changes
from ._formula import Definition, Formula, apply, broadcast_element, call, element, kept, label, made_at_once, where
from ._native import Node, Type
from ._reductions import axes_of, refuse_out
from ._shapes import reshape


class Range(NamedTuple):  # and no dataclass, since many are made and compared
    """Positions start, start + step, ...: so many of them."""

    start: int
    step: int
    length: int


@dataclass(frozen=True)
class Gathered:
    """Positions in an array of integers, which is operand `operand`."""

    operand: int


@dataclass(frozen=True)
class NewDimension:
    """A dimension of extent 1."""


@dataclass(frozen=True)
class Apart:
    """An ellipsis of no dimension, on whose sides positions are apart."""


@dataclass(frozen=True)
class MaskedDimension:
    """Where a mask of this extent holds."""

    positions: Any
    extent: int


Part = int | Range | Gathered | NewDimension | Apart


def _is_array(part: Any) -> bool:
    return isinstance(part, (Array, np.ndarray))


def _positions_in(part: list[Any] | tuple[Any, ...]) -> Any:
    """Nested lists of positions as one array; none are positions, too."""
    positions = np.asarray(part)
    return positions.astype(np.intp) if positions.size == 0 else positions


def _with_positions(key: tuple[Any, ...]) -> list[Any]:
    """Arrays of truth values as the positions where they hold, which are computed for it."""
    parts: list[Any] = []
    for part in key:
        own = _positions_in(part) if isinstance(part, (list, tuple)) else part
        if isinstance(own, (bool, np.bool_)) or (isinstance(own, (Array, np.ndarray)) and own.dtype == np.bool_):
            if np.ndim(own) == 0:
                raise IndexError("a single truth value as an index: use einrel.where")
            parts.extend(map(MaskedDimension, np.nonzero(np.asarray(own)), np.shape(own)))
        else:
            parts.append(own)
    return parts


def _expanded(key: Any, rank: int) -> list[Any]:
    """One part for each dimension, and those that make new ones."""
    parts = _with_positions(key if isinstance(key, tuple) else (key,))
    at = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index has one '...' at most")
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if named > rank:
        raise IndexError(f"{named} indices for {rank} dimensions")
    where_ = at[0] if at else len(parts)
    whole = [slice(None)] * (rank - named) if not at or named < rank else [...]
    return [*parts[:where_], *whole, *parts[where_ + 1 :]]


def _position(part: Any, extent: int, dimension: int) -> int:
    try:
        position = operator.index(part)
    except TypeError:
        raise IndexError(f"{part!r} as an index: it is an integer, a slice, None, '...' or an array") from None
    if not -extent <= position < extent:
        raise IndexError(f"position {position} in dimension {dimension}, which has extent {extent}")
    return position % extent


@kept
def _whole(shape: tuple[int, ...]) -> tuple[Range, ...]:
    return tuple(Range(0, 1, extent) for extent in shape)


def _parsed(key: Any, shape: tuple[int, ...]) -> tuple[tuple[Part, ...], list[Node]]:
    if type(key) is slice and shape:  # often, and soon done
        chosen = range(*key.indices(shape[0]))
        return (Range(chosen.start, chosen.step, len(chosen)), *_whole(shape[1:])), []
    if type(key) is int and shape:
        return (_position(key, shape[0], 0), *_whole(shape[1:])), []
    parts: list[Part] = []
    positions: list[Node] = []
    dimension = 0
    for given in _expanded(key, len(shape)):
        part = given.positions if isinstance(given, MaskedDimension) else given
        if part is None or part is ...:
            parts.append(NewDimension() if part is None else Apart())
            continue
        extent = shape[dimension]
        if isinstance(given, MaskedDimension) and given.extent != extent:
            raise IndexError(f"a mask of extent {given.extent} for dimension {dimension}, which has {extent}")
        if isinstance(part, slice):
            chosen = range(*part.indices(extent))
            parts.append(Range(chosen.start, chosen.step, len(chosen)))
        elif _is_array(part):
            node = node_of(part)
            if node.type.dtype not in ("i32", "i64"):
                raise IndexError(f"an array of {node.type.dtype} as an index: positions are integers")
            if extent == 0 and 0 not in node.type.shape:
                raise IndexError(f"positions in dimension {dimension}, which has extent 0: it has none")
            positions.append(node)
            parts.append(Gathered(len(positions)))
        else:
            parts.append(_position(part, extent, dimension))
        dimension += 1
    return tuple(part for part in parts if positions or not isinstance(part, Apart)), positions


def _gathered(parts: tuple[Part, ...], positions: tuple[Type, ...]) -> tuple[tuple[int, ...], int, bool]:
    """The shape that arrays of positions have together, where it stands, and whether it stands in front."""
    shape = _together([type.shape for type in positions])
    # As in NumPy: single positions count as arrays where there are any, and what is apart comes first.
    at = [i for i, part in enumerate(parts) if isinstance(part, (Gathered, int))]
    is_together = at == list(range(at[0], at[0] + len(at)))
    return shape, at[0], not is_together


def _together(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of positions that are broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(f"positions of shapes {', '.join(map(str, shapes))} do not broadcast") from None


@kept
def _selection(parts: tuple[Part, ...], type: Type, *positions: Type) -> Definition:
    """The statement of an index."""
    shape, at, is_in_front = _gathered(parts, positions) if positions else ((), -1, False)
    extents: list[int] = []
    first_gathered = 0
    own: dict[int, int] = {}
    if positions and is_in_front:
        extents += shape
    for i, part in enumerate(parts):
        if positions and not is_in_front and i == at:
            first_gathered = len(extents)
            extents += shape
        if isinstance(part, (Range, NewDimension)):
            own[i] = len(extents)
            extents.append(part.length if isinstance(part, Range) else 1)
    indices: list[Formula] = []
    is_cut = False
    for i, part in enumerate(parts):
        extent = type.shape[len(indices)] if len(indices) < len(type.shape) else 1
        if isinstance(part, Range):
            is_plain = (part.start, part.step) == (0, 1)
            is_cut = is_cut or (is_plain and part.length < extent)
            indices.append(label(own[i]) if is_plain else label(own[i]) * part.step + part.start)
        elif isinstance(part, Gathered):
            indices.append(_wrapped(part.operand, positions[part.operand - 1], shape, first_gathered, extent))
        elif isinstance(part, int):
            indices.append(Formula(part))
    value = element(0, indices)
    # Without pad, a label that is an index by itself has all positions of the dimension.
    return Definition.statement([type, *positions], call("pad", value, 0) if is_cut else value, extents, len(extents))


def _wrapped(operand: int, type: Type, shape: tuple[int, ...], first: int, extent: int) -> Formula:
    """A position, where those below 0 count from the end."""
    missing = first + len(shape) - len(type.shape)
    position = element(
        operand,
        [
            Formula(0) if own == 1 and shape[d - len(type.shape)] != 1 else label(missing + d)
            for d, own in enumerate(type.shape)
        ],
    )
    return where(position < 0, position + extent, position)


def _without_ranges(array: Array, parts: tuple[Part, ...]) -> tuple[Array, tuple[Part, ...]]:
    """The slices of an index done, and what is left to do."""
    dimensions = [part for part in parts if not isinstance(part, (NewDimension, Apart))]
    cut: list[Part] = [
        part if isinstance(part, Range) else Range(0, 1, extent) for part, extent in zip(dimensions, array.shape)
    ]
    array = get(array, tuple(slice(None) if not isinstance(part, Range) else _slice(part) for part in cut))
    return array, tuple(Range(0, 1, part.length) if isinstance(part, Range) else part for part in parts)


def _nothing(array: Array, parts: tuple[Part, ...], positions: list[Type]) -> Array:
    """What no positions choose, which may be none of an empty dimension."""
    shape, at, is_in_front = _gathered(parts, tuple(positions))
    extents = [
        (part.length if isinstance(part, Range) else 1, i)
        for i, part in enumerate(parts)
        if isinstance(part, (Range, NewDimension))
    ]
    before = [extent for extent, i in extents if not is_in_front and i < at]
    after = [extent for extent, i in extents if is_in_front or i > at]
    return Array(node_of(np.zeros((*before, *shape, *after), array.dtype)))


def _slice(part: Range) -> slice:
    stop = part.start + part.length * part.step
    return slice(part.start, None if stop < 0 else stop, part.step)


class Moving(NamedTuple):
    """Positions start, start + step, ..., where a number of operand 1 is the start; without a length, one position."""

    at: int
    step: int = 0
    length: int | None = None
    is_moving: bool = True  # and so like no Range


_POSITIONS: Final = [Moving(at) for at in range(64)]  # a dimension each, of which NumPy has no more


def _with_starts(parts: tuple[Part, ...]) -> tuple[tuple[Moving | Part, ...], tuple[int, ...]]:
    """An index apart from where its slices begin."""
    starts: list[int] = []
    form: list[Moving | Part] = []
    for part in parts:
        is_whole = isinstance(part, Range) and (part.start, part.step) == (0, 1)
        if isinstance(part, int):
            form.append(_POSITIONS[len(starts)])
            starts.append(part)
        elif isinstance(part, Range) and not is_whole and part.length > 0:
            form.append(Moving(len(starts), part.step, part.length))
            starts.append(part.start)
        else:
            form.append(part)
    return tuple(form), tuple(starts)


def _moved(array: Array, parts: tuple[Part, ...]) -> tuple[Definition, list[Node]]:
    """What computes a slice of one program for all places, and of what."""
    form, starts = _with_starts(parts)
    if not starts:
        return _selection(parts, array._node.type), [array._node]
    begins = Node.leaf(np.array(starts, np.int64))
    return _moving_selection(form, array._node.type, begins.type), [array._node, begins]


def _is_elsewhere(array: Array, parts: tuple[Part, ...]) -> bool:
    """Whether such a slice began elsewhere many times, as in a loop: that would be a program each."""
    form, starts = _with_starts(parts)
    return bool(starts) and changes((array._node.type, form), starts)


def _in_place(array: Array, parts: tuple[Part, ...]) -> Array | None:
    """Elements in memory that lie in one stretch, where they are."""
    node = array._node
    if not node.is_in_memory:
        return None
    key = [part if isinstance(part, int) else _slice(part) if isinstance(part, Range) else None for part in parts]
    elements = np.asarray(node.elements)[(*key, ...)]
    if elements.size == 0 or not elements.flags.c_contiguous:
        return None
    definition, operands = _moved(array, parts)
    return Array(made_at_once(Node.leaf(elements, node.type.dtype == "bf16"), definition, operands, "indexed"))


@kept
def _moving_selection(parts: tuple[Moving | Part, ...], type: Type, begins: Type) -> Definition:
    extents: list[int] = []
    indices: list[Formula] = []
    is_cut = False
    for part in parts:
        extent = type.shape[len(indices)] if len(indices) < len(type.shape) else 1
        own = label(len(extents))
        if isinstance(part, Moving):
            begin = element(1, [Formula(part.at)])
            indices.append(begin if part.length is None else own * part.step + begin)
            extents += [] if part.length is None else [part.length]
        elif isinstance(part, Range):
            is_cut = is_cut or part.length < extent
            indices.append(own)
            extents.append(part.length)
        else:
            extents.append(1)
    value = element(0, indices)
    return Definition.statement([type, begins], call("pad", value, 0) if is_cut else value, extents, len(extents))


def get(array: Array, key: Any) -> Array:
    """array[key]."""
    is_array = isinstance(key, (Array, np.ndarray))
    if isinstance(key, (bool, np.bool_)) or (is_array and key.ndim == 0 and key.dtype == np.bool_):
        return get(array, None)[: int(key)]  # as NumPy's: a dimension of one position, or of none
    parts, positions = _parsed(key, array.shape)
    if parts == _whole(array.shape):
        return Array(array._node)
    if positions:  # in a step of their own: no position may be read as one that pad allows
        array, parts = _without_ranges(array, parts)
    elif not array._node.is_traced:
        if (elements := _in_place(array, parts)) is not None:
            return elements
        if _is_elsewhere(array, parts):
            definition, operands = _moved(array, parts)
            return Array(apply(definition, *operands))
    nodes = [array._node, *positions]
    if positions and 0 in _together([node.type.shape for node in positions]):
        return _nothing(array, parts, [node.type for node in positions])
    return Array(apply(_selection(parts, *[node.type for node in nodes]), *nodes))


def take(x: Operand, indices: Operand, /, axis: int | None = None, out: None = None, mode: str = "raise") -> Array:
    """The elements at these positions of a dimension; without one, of all elements in one.

    Positions below 0 count from the end. Those outside are an error, or with `mode` "wrap" counted round and round, or
    with "clip" the first or the last one.

    >>> take([10, 20, 30], [2, 0]).tolist()
    [30, 10]
    """
    refuse_out(out)
    array = Array(node_of(x))
    if axis is None:
        array, axis = reshape(array, (-1,)), 0
    (d,) = axes_of(axis, array.ndim)
    positions = Array(node_of(indices))
    if mode == "wrap":
        positions = er.remainder(positions, array.shape[d])
    elif mode == "clip":
        positions = er.clip(positions, 0, array.shape[d] - 1)
    elif mode != "raise":
        raise ValueError(f"mode {mode!r}: it is one of raise, wrap and clip")
    return array[(*[slice(None)] * d, positions)]


@kept
def _along(axis: int, shape: tuple[int, ...], type: Type, positions: Type) -> Definition:
    rank = len(shape)
    position = broadcast_element(1, positions.shape, shape)
    at = where(position < 0, position + type.shape[axis], position)
    indices = [
        at if d == axis else (label(d) if extent == shape[d] else Formula(0)) for d, extent in enumerate(type.shape)
    ]
    return Definition.statement([type, positions], element(0, indices), list(shape), rank)


def take_along_axis(x: Operand, indices: Operand, /, axis: int | None = -1) -> Array:
    """Of each row along a dimension the elements at the positions in the same row of `indices`.

    Other dimensions broadcast. Without an axis, the elements of x are one row.

    >>> take_along_axis([[10, 20], [30, 40]], [[1], [0]]).tolist()
    [[20], [30]]
    """
    array, positions = Array(node_of(x)), node_of(indices)
    if axis is None:
        array, axis = reshape(array, (-1,)), 0
    (d,) = axes_of(axis, array.ndim)
    chosen = positions.type.shape
    if array.ndim != len(chosen):
        raise ValueError("positions have as many dimensions as the array")
    if positions.type.dtype not in ("i32", "i64"):
        raise IndexError(f"an array of {positions.type.dtype} as an index: positions are integers")
    others = [(*shape[:d], 1, *shape[d + 1 :]) for shape in (array.shape, chosen)]
    shape = tuple(chosen[d] if i == d else extent for i, extent in enumerate(_together(others)))
    if array.shape[d] == 0 and 0 not in shape:
        raise IndexError(f"positions in dimension {d}, which has extent 0: it has none")
    if 0 in shape:
        return Array(node_of(np.zeros(shape, array.dtype)))
    return Array(apply(_along(d, shape, array._node.type, positions.type), array._node, positions))
