"""Arrays cut apart, and with elements added or taken away at places that are known."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import einrel as er

from ._array import Array, Operand, node_of
from ._formula import Definition, apply, call, element, kept, label
from ._joining import concat
from ._native import Type
from ._numbers import whole
from ._reductions import axes_of, refuse_out
from ._shapes import broadcast_to, moveaxis, reshape

__all__ = [
    "array_split",
    "compress",
    "delete",
    "dsplit",
    "extract",
    "hsplit",
    "insert",
    "pad",
    "split",
    "vsplit",
]

Places = int | slice | Sequence[int] | Array | np.ndarray[Any, Any]


def _slices(x: Array, borders: Sequence[Any], axis: int) -> list[Array]:
    before = (slice(None),) * axis
    return [x[(*before, slice(first, last))] for first, last in zip([0, *borders], [*borders, None])]


def array_split(x: Operand, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """So many parts along a dimension, the first ones longer by 1 where they do not come out even; or cut at indices.

    >>> [part.tolist() for part in array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    array = Array(node_of(x))
    (d,) = axes_of(axis, array.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _slices(array, [operator.index(border) for border in indices_or_sections], d)
    sections = whole("indices_or_sections", indices_or_sections)
    if sections <= 0:
        raise ValueError(f"{sections} parts: there is one or more")
    each, longer = divmod(array.shape[d], sections)
    return _slices(array, [i * each + min(i, longer) for i in range(1, sections)], d)


def split(x: Operand, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """So many equal parts along a dimension, or cut at indices.

    >>> [part.tolist() for part in split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    """
    array = Array(node_of(x))
    (d,) = axes_of(axis, array.ndim)
    if isinstance(indices_or_sections, (int, np.integer)) and array.shape[d] % max(int(indices_or_sections), 1):
        raise ValueError(
            f"extent {array.shape[d]} in {indices_or_sections} equal parts: einrel.array_split makes parts that differ"
        )
    return array_split(array, indices_or_sections, d)


def vsplit(x: Operand, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`split` along the first dimension.

    >>> [part.tolist() for part in vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    _has_dimensions("vsplit", x, 2)
    return split(x, indices_or_sections, 0)


def hsplit(x: Operand, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`split` along the second dimension, of a vector along the first.

    >>> [part.tolist() for part in hsplit([[1, 2], [3, 4]], 2)]
    [[[1], [3]], [[2], [4]]]
    """
    _has_dimensions("hsplit", x, 1)
    return split(x, indices_or_sections, min(np.ndim(x) - 1, 1))


def dsplit(x: Operand, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`split` along the third dimension.

    >>> [part.tolist() for part in dsplit([[[1, 2]]], 2)]
    [[[[1]]], [[[2]]]]
    """
    _has_dimensions("dsplit", x, 3)
    return split(x, indices_or_sections, 2)


def _has_dimensions(name: str, x: Operand, least: int) -> None:
    if np.ndim(x) < least:
        raise ValueError(f"{name} of an array of shape {np.shape(x)}: it has {least} dimensions or more")


# Pads

Widths = Any  # a number, a pair, or pairs for each dimension, as NumPy broadcasts them


def _pairs(name: str, given: Any, rank: int) -> list[tuple[Any, Any]]:
    """A pair for each dimension."""
    if isinstance(given, dict):
        raise NotImplementedError(f"einrel.pad: {name} as a dict; give pairs in a list, one for each dimension")
    try:
        pairs = np.broadcast_to(np.asarray(given), (rank, 2))
    except ValueError:
        raise ValueError(f"{name}={given!r}: give a number, a pair, or a pair for each of {rank} dimensions") from None
    return [(first, last) for first, last in pairs.tolist()]


@kept
def _padding(widths: tuple[tuple[int, int], ...], value: float, type: Type) -> Definition:
    extents = [before + extent + after for (before, after), extent in zip(widths, type.shape)]
    indices = [label(d) - before for d, (before, _) in enumerate(widths)]
    return Definition.statement([type], call("pad", element(0, indices), value), extents, len(extents))


def _constant_pad(array: Array, widths: list[tuple[int, int]], values: list[tuple[Any, Any]]) -> Array:
    fits = {np.asarray(value).astype(array.dtype).item() for pair in values for value in pair}
    if len(fits) == 1 and 0 not in array.shape and array.dtype.kind != "c":
        (value,) = fits
        return Array(apply(_padding(tuple(widths), value, array._node.type), array._node))
    for d, (counts, fills) in enumerate(zip(widths, values)):
        shapes = [(*array.shape[:d], count, *array.shape[d + 1 :]) for count in counts]
        before, after = (er.full(shape, fill, array.dtype) for shape, fill in zip(shapes, fills))
        array = concat([before, array, after], axis=d)
    return array


def pad(
    x: Operand, pad_width: Widths, mode: str = "constant", *, constant_values: Any = 0, reflect_type: str = "even"
) -> Array:
    """The array with a margin: `pad_width` elements before and behind, as a number, a pair, or a pair per dimension.

    Modes are "constant" (`constant_values`), "edge", "reflect", "symmetric" and "wrap", as NumPy's.

    >>> pad([1, 2], 1).tolist()
    [0, 1, 2, 0]
    >>> pad([1, 2], (0, 2), "edge").tolist()
    [1, 2, 2, 2]
    """
    array = Array(node_of(x))
    widths = [
        (operator.index(before), operator.index(after)) for before, after in _pairs("pad_width", pad_width, array.ndim)
    ]
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"pad_width={pad_width!r}: widths are 0 or more; an index such as x[1:-1] cuts")
    if mode == "constant":
        return _constant_pad(array, widths, _pairs("constant_values", constant_values, array.ndim))
    if mode not in ("edge", "reflect", "symmetric", "wrap") or reflect_type != "even":
        raise NotImplementedError(f"einrel.pad of mode {mode!r}, {reflect_type}; NumPy's takes our arrays")
    for d, width in enumerate(widths):
        if any(width):
            positions = np.pad(np.arange(array.shape[d]), width, mode=mode)  # type: ignore[call-overload]
            array = er.take(array, positions, axis=d)
    return array


# Elements at places that are known


def _places(name: str, given: Places) -> Any:
    """Positions as NumPy takes them; those in an array are computed, since shapes depend on them."""
    if isinstance(given, Array):
        if given._node.is_traced:
            raise NotImplementedError(f"einrel.{name} at places of a traced function: the shape would depend on them")
        return given._elements()
    return given


def _along(x: Operand, axis: int | None) -> tuple[Array, int]:
    array = Array(node_of(x))
    if axis is None:
        return reshape(array, (-1,)), 0
    return array, axes_of(axis, array.ndim)[0]


def delete(x: Operand, obj: Places, axis: int | None = None) -> Array:
    """Without what is at these places of a dimension; without an axis, of all elements in one.

    >>> delete([1, 2, 3], 1).tolist()
    [1, 3]
    """
    array, d = _along(x, axis)
    positions = np.delete(np.arange(array.shape[d]), _places("delete", obj))
    return er.take(array, positions, axis=d)


def insert(x: Operand, obj: Places, values: Operand, axis: int | None = None) -> Array:
    """With values before these places of a dimension, in the type of x; without an axis, of all elements in one.

    >>> insert([1, 2, 3], 1, 7).tolist()
    [1, 7, 2, 3]
    """
    array, d = _along(x, axis)
    places = _places("insert", obj)
    new = er.astype(values, array.dtype, copy=False)
    extent = array.shape[d]
    if np.ndim(places) == 0 and not isinstance(places, slice):
        new = reshape(new, (1,) * (array.ndim - new.ndim) + new.shape) if new.ndim < array.ndim else new
        new = moveaxis(new, 0, d)
        count = new.shape[d]
    else:
        count = len(range(extent)[places]) if isinstance(places, slice) else int(np.asarray(places).size)
        if np.asarray(places).dtype == np.bool_:
            count = int(np.count_nonzero(places))
        count = new.shape[d] if count == 1 and new.ndim == array.ndim else count
    new = broadcast_to(new, (*array.shape[:d], count, *array.shape[d + 1 :]))
    positions = np.insert(np.arange(extent), places, np.arange(extent, extent + count))
    return er.take(concat([array, new], axis=d), positions, axis=d)


def compress(condition: Places, x: Operand, axis: int | None = None, out: None = None) -> Array:
    """What stands at the places of a dimension at which the condition holds; without one, of all elements in one.

    >>> compress([True, False, True], [1, 2, 3]).tolist()
    [1, 3]
    """
    refuse_out(out)
    array, d = _along(x, axis)
    (positions,) = np.nonzero(_places("compress", condition))
    return er.take(array, positions, axis=d)


def extract(condition: Places, x: Operand) -> Array:
    """The elements at which the condition holds, in row-major order.

    >>> extract([[True, False], [False, True]], [[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    return compress(np.ravel(_places("extract", condition)), x)
