"""NumPy's functions of samples along a line: slopes, areas, convolutions, and what lies between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import einrel as er

from ._array import Array, Operand, node_of
from ._dtypes import NAMES, float64, is_floating
from ._formula import Definition, apply, call, cast, element, kept, label
from ._joining import concat
from ._native import Type
from ._reductions import axes_of
from ._shapes import reshape

__all__ = [
    "convolve",
    "correlate",
    "ediff1d",
    "gradient",
    "interp",
    "polyval",
    "trapezoid",
]


def _of_floats(x: Operand) -> Array:
    own = Array(node_of(x))
    return own if is_floating(own.dtype) else er.astype(own, float64)


@kept
def _sliding(start: int, count: int, dtype: str, long: Type, short: Type) -> Definition:
    """Elements start up to start + count of the whole convolution."""
    one, other = call("pad", element(0, [label(0) + start - label(1)]), 0), element(1, [label(1)])
    values = [value if type.dtype == dtype else cast(dtype, value) for value, type in ((one, long), (other, short))]
    total = call("sum", values[0] * values[1], over=[1])
    return Definition.statement([long, short], total, [count, short.shape[0]], 1)


def _line(name: str, x: Operand) -> Array:
    own = er.atleast_1d(x)
    if own.ndim != 1 or own.size == 0:
        raise ValueError(f"{name} of an array of shape {own.shape}: it has one dimension, and elements")
    return own  # type: ignore[no-any-return]


def convolve(a: Operand, v: Operand, mode: str = "full") -> Array:
    """Sums of products of a with v the other way round, which slides along it; where they touch ("full"), of the extent
    of the longer one ("same"), or where one lies within the other ("valid").

    >>> convolve([1.0, 2.0, 3.0], [1.0, 1.0]).tolist()
    [1.0, 3.0, 5.0, 3.0]
    """
    long, short = _line("convolve", a), _line("convolve", v)
    if short.size > long.size:
        long, short = short, long
    whole, part = long.size + short.size - 1, short.size - 1
    ranges = {"full": (0, whole), "same": (part // 2, long.size), "valid": (part, long.size - part)}
    if mode not in ranges:
        raise ValueError(f"mode {mode!r}: it is one of {', '.join(ranges)}")
    dtype = er.result_type(long, short)
    if dtype == np.bool_:
        return er.astype(convolve(er.astype(long, np.int64), er.astype(short, np.int64), mode), bool)
    nodes = [long._node, short._node]
    return Array(apply(_sliding(*ranges[mode], NAMES[dtype], *[node.type for node in nodes]), *nodes))


def correlate(a: Operand, v: Operand, mode: str = "valid") -> Array:
    """Sums of products of a with the conjugate of v, which slides along it; modes as of `convolve`.

    >>> correlate([1.0, 2.0, 3.0], [0.0, 1.0]).tolist()
    [2.0, 3.0]
    """
    own, other = _line("correlate", a), _line("correlate", v)
    if other.size > own.size:
        return er.flip(er.conj(correlate(other, own, mode)))
    return convolve(own, er.conj(er.flip(other)), mode)


def ediff1d(x: Operand, to_end: Operand | None = None, to_begin: Operand | None = None) -> Array:
    """Each element less the one before it, of all elements in one dimension; with others behind and before.

    >>> ediff1d([1, 4, 9], to_end=[0]).tolist()
    [3, 5, 0]
    """
    middle = er.diff(er.ravel(x))
    edges = [None if edge is None else er.astype(er.ravel(edge), middle.dtype) for edge in (to_begin, to_end)]
    return concat([part for part in (edges[0], middle, edges[1]) if part is not None])


def trapezoid(y: Operand, x: Operand | None = None, dx: Operand = 1.0, axis: int = -1) -> Array:
    """The area below straight lines between the samples along a dimension, which stand at x, or dx apart.

    >>> trapezoid([1.0, 2.0, 3.0]).tolist()
    4.0
    """
    own = _of_floats(y)
    (d,) = axes_of(axis, own.ndim)
    before = (slice(None),) * d
    means = (own[(*before, slice(1, None))] + own[(*before, slice(None, -1))]) / 2
    if x is None:
        return er.sum(means * dx, d)
    places = Array(node_of(x))
    widths = er.diff(places, axis=d if places.ndim > 1 else -1)
    if places.ndim == 1:
        widths = reshape(widths, (-1,) + (1,) * (own.ndim - 1 - d))
    return er.sum(means * widths, d)


def _slope(f: Array, spacing: Any, d: int, edge_order: int) -> Array:
    """Along dimension d: of second order within, and of `edge_order` at both ends."""
    before = (slice(None),) * d

    def part(first: int, last: int | None) -> Array:
        return f[(*before, slice(first, last))]

    extent = f.shape[d]
    if extent < edge_order + 1:
        raise ValueError(f"a slope along extent {extent}: it takes {edge_order + 1} samples or more")
    column = (-1,) + (1,) * (f.ndim - 1 - d)
    if np.ndim(spacing) == 0:
        one: Any = spacing
        left = right = spacing
        within = (part(2, None) - part(0, -2)) / (2 * spacing)
    else:
        places = Array(node_of(spacing))
        if places.shape != (extent,):
            raise ValueError(f"places of shape {places.shape} along extent {extent}")
        widths = _of_floats(er.diff(places))
        one = None
        left, right = widths[0], widths[-1]
        h, k = reshape(widths[:-1], column), reshape(widths[1:], column)
        within = -k / (h * (h + k)) * part(0, -2) + (k - h) / (h * k) * part(1, -1) + h / (k * (h + k)) * part(2, None)
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / left, (part(-1, None) - part(-2, -1)) / right
        return concat([first, within, last], axis=d)
    h, k = (one, one) if one is not None else (widths[0], widths[1])
    first = -(2 * h + k) / (h * (h + k)) * part(0, 1) + (h + k) / (h * k) * part(1, 2) - h / (k * (h + k)) * part(2, 3)
    h, k = (one, one) if one is not None else (widths[-2], widths[-1])
    last = k / (h * (h + k)) * part(-3, -2) - (k + h) / (h * k) * part(-2, -1)
    last = last + (2 * k + h) / (k * (h + k)) * part(-1, None)
    return concat([first, within, last], axis=d)


def gradient(f: Operand, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> Any:
    """How samples change along each dimension: the slope from the one before to the one behind.

    Samples are 1 apart, or as far as one number, or a number or places for each dimension, say. A tuple, unless there
    is one dimension.

    >>> gradient([1.0, 4.0, 9.0]).tolist()
    [3.0, 4.0, 5.0]
    """
    own = _of_floats(f)
    axes = list(range(own.ndim)) if axis is None else [axes_of(a, own.ndim)[0] for a in np.atleast_1d(axis).tolist()]
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 and np.ndim(varargs[0]) > 0 and len(axes) > 1):
        raise TypeError(f"{len(varargs)} distances for {len(axes)} dimensions: give one number, or one for each")
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order={edge_order}: it is 1 or 2")
    spacings = list(varargs) or [1.0]
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    slopes = tuple(_slope(own, spacing, d, edge_order) for spacing, d in zip(spacings, axes))
    return slopes[0] if len(slopes) == 1 else slopes


@kept
def _count_up_to(type: Type, places: Type) -> Definition:
    """How many of the places are not above each element."""
    rank = len(type.shape)
    own = element(0, [label(d) for d in range(rank)])
    count = call("sum", cast("i64", element(1, [label(rank)]) <= own), over=[rank])
    return Definition.statement([type, places], count, [*type.shape, places.shape[0]], rank)


def interp(
    x: Operand, xp: Operand, fp: Operand, left: Operand | None = None, right: Operand | None = None, period: None = None
) -> Array:
    """What lies at x on straight lines through the points xp, fp, where xp increases.

    Beyond them lies the first or the last value, or `left` and `right`. In f64. It looks at every point for each x.

    >>> interp([0.5, 3.0], [0.0, 1.0], [0.0, 10.0]).tolist()
    [5.0, 10.0]
    """
    if period is not None:
        raise NotImplementedError("einrel.interp with a period; NumPy's takes our arrays")
    own, places, values = (
        er.astype(part, float64, copy=False) for part in (x, _line("interp", xp), _line("interp", fp))
    )
    if places.shape != values.shape:
        raise ValueError(f"interp through {places.size} places and {values.size} values")
    below, above = (values[i] if edge is None else edge for i, edge in ((0, left), (-1, right)))
    if places.size == 1:
        between = er.broadcast_to(values[0], own.shape)
    else:
        count = Array(apply(_count_up_to(own._node.type, places._node.type), own._node, places._node))
        at = er.clip(count - 1, 0, places.size - 2)
        start, value = places[at], values[at]
        between = (values[at + 1] - value) / (places[at + 1] - start) * (own - start) + value
        between = er.where(own == places[-1], values[-1], between)
    return er.where(own < places[0], below, er.where(own > places[-1], above, between))


def polyval(p: Operand, x: Operand) -> Array:
    """The polynomial with these coefficients, that of the highest power first, at x.

    >>> polyval([1.0, 0.0, 2.0], 3.0).tolist()
    11.0
    """
    coefficients, own = er.atleast_1d(p), Array(node_of(x))
    value = er.zeros_like(own)
    for coefficient in coefficients:
        value = value * own + coefficient
    return value
