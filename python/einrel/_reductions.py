"""Reductions over dimensions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

import einrel as er

from ._array import Array, Operand, node_of
from ._dtypes import (
    BY_NAME,
    NAMES,
    DType,
    bool_,
    computed_as,
    dtype_of,
    float64,
    int64,
    is_complex,
    is_floating,
)
from ._formula import Definition, Formula, apply, call, cast, element, kept, label
from ._native import Type
from ._numbers import constant

Axis = int | tuple[int, ...] | None
Where = Operand | None  # a mask of the elements that count


def axes_of(axis: Axis, rank: int) -> tuple[int, ...]:
    """Which dimensions are meant, each from 0 up, in order."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = []
    for one in given:
        try:
            position = operator.index(one)
        except TypeError:
            what = f"an array of the shape {one.shape}" if hasattr(one, "shape") else repr(one)
            raise TypeError(f"axis is {what}: give a dimension, or a tuple of dimensions") from None
        if not -rank <= position < rank:
            raise np.exceptions.AxisError(position, rank)
        axes.append(position % rank)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} has a dimension twice")
    return tuple(sorted(axes))


def reduced_axes(axis: Axis, rank: int) -> tuple[int, ...]:
    """Which dimensions are reduced; a number has none, and NumPy takes the axes 0 and -1 for it."""
    is_of_number = rank == 0 and isinstance(axis, (int, np.integer)) and axis in (0, -1)
    return () if is_of_number else axes_of(axis, rank)


class Layout:
    """The labels of a reduction: those of the result come first, then those that are reduced."""

    def __init__(self, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> None:
        of_result = [d for d in range(len(shape)) if keepdims or d not in axes]
        self.rank = len(of_result)
        self.extents = [1 if d in axes else shape[d] for d in of_result]
        self.extents += [shape[d] for d in axes]
        self.over = list(range(self.rank, len(self.extents)))
        reduced = dict(zip(axes, self.over))
        kept_at = {d: i for i, d in enumerate(of_result)}
        self.read = [label(reduced.get(d, kept_at.get(d, 0))) for d in range(len(shape))]

    def reduced(self, function: str, value: Formula) -> Formula:
        """function[all reduced labels](value)."""
        return call(function, value, over=self.over) if self.over else value

    def definition(self, type: Type, value: Formula) -> Definition:
        """Result = value."""
        return Definition.statement([type], value, self.extents, self.rank)


@kept
def _reduction(function: str, axes: tuple[int, ...], keepdims: bool, dtype: str, result: str, type: Type) -> Definition:
    layout = Layout(type.shape, axes, keepdims)
    value = element(0, layout.read)
    if type.dtype != dtype:
        value = cast(dtype, value)
    value = layout.reduced(function, value)
    return layout.definition(type, value if dtype == result else cast(result, value))


def _reduce(function: str, x: Operand, axis: Axis, keepdims: bool, dtype: DType, result: DType | None = None) -> Array:
    node = node_of(x)
    axes = reduced_axes(axis, len(node.type.shape))
    wanted = NAMES[result or dtype]
    return Array(apply(_reduction(function, axes, keepdims, NAMES[dtype], wanted, node.type), node))


def _dtype_of(x: Operand) -> DType:
    return BY_NAME[node_of(x).type.dtype]


def _summed_as(x: Operand, dtype: npt.DTypeLike | None) -> DType:
    if dtype is not None:
        return computed_as(dtype_of(dtype))
    own = _dtype_of(x)
    return own if is_floating(own) else int64


def _averaged_as(x: Operand, dtype: npt.DTypeLike | None = None) -> DType:
    if dtype is not None:
        return computed_as(dtype_of(dtype))
    own = _dtype_of(x)
    return own if is_floating(own) else float64


def refuse_out(out: object) -> None:
    """Results have memory of their own; NumPy's functions write those of ours to arrays of NumPy's."""
    if out is not None:
        raise TypeError("out: an einrel.Array does not change; NumPy's function of that name writes to NumPy's arrays")


def _chosen(x: Operand, where: Where, otherwise: float) -> Operand:
    """The elements that count, and others in place of the rest."""
    if where is True or where is None:
        return x
    x, mask = (Array(node_of(value)) for value in (x, where))
    if mask.dtype != bool_:
        raise TypeError(f"where: an array of {mask.dtype}, not of truth values")
    return er.where(mask, x, otherwise)


def _joined(name: str, result: Array, initial: Any) -> Array:
    """The result together with one more element."""
    if initial is None:
        return result
    joined: Array = getattr(er, name)(result, er.asarray(initial, result.dtype))
    return joined


def sum(
    x: Operand,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """The sum over dimensions, of the elements at which `where` holds, and of `initial`; of integers i64.

    >>> sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    refuse_out(out)
    result = _reduce("sum", _chosen(x, where, 0), axis, keepdims, _summed_as(x, dtype))
    return _joined("add", result, initial)


def sumsq(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The sum of the squares over dimensions; of integers i64. Floats are squared and added in f64.

    >>> sumsq([[1, 2], [3, 4]], axis=0).tolist()
    [10, 20]
    """
    return _reduce("sumsq", x, axis, keepdims, _summed_as(x, None))


def prod(
    x: Operand,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """The product over dimensions, of the elements at which `where` holds, and of `initial`; of integers i64.

    >>> prod([[1, 2], [3, 4]], axis=0).tolist()
    [3, 8]
    """
    refuse_out(out)
    own, wanted = _chosen(x, where, 1), _summed_as(x, dtype)
    if is_complex(wanted):
        result = _product_of_complex(er.astype(own, wanted, copy=False), axis, keepdims)
    else:
        result = _reduce("prod", own, axis, keepdims, wanted)
    return _joined("multiply", result, initial)


def _product_of_complex(x: Array, axis: Axis, keepdims: bool) -> Array:
    """In steps, each of which multiplies neighbours: the language has no such reduction."""
    axes = reduced_axes(axis, x.ndim)
    others = [d for d in range(x.ndim) if d not in axes]
    shape = tuple(x.shape[d] for d in others)
    left = er.reshape(er.permute_dims(x, (*others, *axes)), (*shape, math.prod(x.shape[d] for d in axes)))
    while left.shape[-1] > 1:
        half = left.shape[-1] // 2
        pairs = left[..., :half] * left[..., half : 2 * half]
        left = er.concat([pairs, left[..., 2 * half :]], axis=-1) if left.shape[-1] % 2 else pairs
    extents = tuple(1 if d in axes else x.shape[d] for d in range(x.ndim)) if keepdims else shape
    return er.reshape(left, extents) if left.shape[-1] == 1 else er.ones(extents, x.dtype)


def _extreme(
    name: str, x: Operand, axis: Axis, out: None, keepdims: bool, initial: Operand | None, where: Where
) -> Array:
    refuse_out(out)
    own = Array(node_of(x))
    if where is not True and where is not None:
        if initial is None:
            raise ValueError(f"{name} where a mask holds, which may be nowhere: give initial as well")
        own = er.where(where, own, er.asarray(initial, own.dtype))
    axes = reduced_axes(axis, own.ndim)
    both = "maximum" if name == "max" else "minimum"
    if 0 in [own.shape[d] for d in axes]:
        if initial is None:
            raise ValueError(f"{name} of no elements, along a dimension of extent 0: give initial")
        extents = [1 if d in axes else own.shape[d] for d in range(own.ndim) if keepdims or d not in axes]
        return er.full(extents, initial, own.dtype)
    return _joined(both, _reduce(name, own, axis, keepdims, own.dtype), initial)


def max(
    x: Operand,
    /,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """The largest over dimensions, of the elements at which `where` holds, and of `initial`; NaN if any is.

    >>> max([[1, 2], [3, 0]], axis=0).tolist()
    [3, 2]
    """
    return _extreme("max", x, axis, out, keepdims, initial, where)


def min(
    x: Operand,
    /,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """The smallest over dimensions, of the elements at which `where` holds, and of `initial`; NaN if any is.

    >>> min([[1, 2], [3, 0]], axis=0).tolist()
    [1, 0]
    """
    return _extreme("min", x, axis, out, keepdims, initial, where)


def mean(
    x: Operand,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Where = True,
) -> Array:
    """The mean over dimensions, of the elements at which `where` holds; of integers f64.

    >>> mean([[1, 2], [3, 4]], axis=0).tolist()
    [2.0, 3.0]
    """
    refuse_out(out)
    if where is True or where is None:
        return _reduce("mean", x, axis, keepdims, _averaged_as(x, dtype))
    x = er.astype(x, _averaged_as(x, dtype), copy=False)
    return sum(x, axis=axis, keepdims=keepdims, where=where) / _count(x, axis, keepdims, where)


def _count(x: Array, axis: Axis, keepdims: bool, where: Where) -> Array:
    """How many elements count, in the type of x."""
    counted = True if where is None else where
    return sum(er.broadcast_to(counted, x.shape), axis=axis, keepdims=keepdims, dtype=x.dtype)


def _decidable(x: Operand) -> Operand:
    """Truth values of complex numbers; others are compared with 0 where they are reduced."""
    return er.not_equal(x, 0) if is_complex(_dtype_of(x)) else x


def any(x: Operand, /, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Where = True) -> Array:
    """Whether an element over dimensions is not 0, of those at which `where` holds.

    >>> any([[0, 2], [0, 0]], axis=0).tolist()
    [False, True]
    """
    refuse_out(out)
    x = _decidable(_chosen(x, where, 0))
    return _reduce("any", x, axis, keepdims, _dtype_of(x), bool_)


def all(x: Operand, /, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Where = True) -> Array:
    """Whether no element over dimensions is 0, of those at which `where` holds.

    >>> all([[1, 2], [0, 4]], axis=0).tolist()
    [False, True]
    """
    refuse_out(out)
    x = _decidable(_chosen(x, where, 1))
    return _reduce("all", x, axis, keepdims, _dtype_of(x), bool_)


def logsumexp(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over dimensions, without overflow.

    >>> logsumexp([1000.0, -1000.0]).tolist()
    1000.0
    """
    return _reduce("logsumexp", x, axis, keepdims, _averaged_as(x))


def count_nonzero(x: Operand, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """How many elements over dimensions are not 0.

    >>> count_nonzero([1, 0, 2]).tolist()
    2
    """
    return _reduce("sum", Array(node_of(x)) != 0, axis, keepdims, int64)


def _position(function: str, x: Operand, axis: int | None, keepdims: bool) -> Array:
    array = Array(node_of(x))
    if 0 in [array.shape[d] for d in reduced_axes(axis, array.ndim)]:
        raise ValueError(f"{function} of no elements, along a dimension of extent 0")
    if array.ndim == 0:  # where there is one element
        reduced_axes(axis, 0)
        return Array(node_of(np.int64(0)))
    return _reduce(function, array, axis, keepdims, array.dtype, int64)


def argmax(x: Operand, /, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """The position of the largest element, the first among equals: i64; without `axis` in row-major order.

    >>> argmax([[1, 2], [3, 0]], axis=1).tolist()
    [1, 0]
    """
    refuse_out(out)
    return _position("argmax", x, axis, keepdims)


def argmin(x: Operand, /, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """The position of the smallest element, the first among equals: i64; without `axis` in row-major order.

    >>> argmin([[1, 2], [3, 0]], axis=1).tolist()
    [0, 1]
    """
    refuse_out(out)
    return _position("argmin", x, axis, keepdims)


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Array:
    """Whether each element of x1 is one of x2; or is not, with `invert`.

    >>> isin([1, 2, 3], [3, 1]).tolist()
    [True, False, True]
    """
    left, right = (Array(node_of(x)) for x in (x1, x2))
    found = any(left[..., None] == right.reshape(-1), axis=-1)
    return ~found if invert else found


@kept
def _variance(
    axes: tuple[int, ...], correction: float, keepdims: bool, dtype: str, root: bool, type: Type
) -> Definition:
    layout = Layout(type.shape, axes, keepdims)
    value = cast(dtype, element(0, layout.read))
    count = int(np.prod([type.shape[d] for d in axes], dtype=np.int64))
    spread = value - layout.reduced("mean", value)
    squares = layout.reduced("sum", spread * spread)
    variance = squares / np.maximum(count - correction, 0.0).item()
    return layout.definition(type, call("sqrt", variance) if root else variance)


def _spread(
    x: Operand,
    axis: Axis,
    dtype: npt.DTypeLike | None,
    out: None,
    ddof: float,
    keepdims: bool,
    where: Where,
    mean: Operand | None,
    correction: float | None,
    root: bool,
) -> Array:
    refuse_out(out)
    node = node_of(x)
    axes = reduced_axes(axis, len(node.type.shape))
    if correction is not None and ddof != 0:
        raise ValueError(f"ddof={ddof} and correction={correction} are names of the same: give one")
    own = _averaged_as(Array(node), dtype)
    divisor_less = float(
        constant("ddof" if correction is None else "correction", ddof if correction is None else correction)
    )
    if where is True and mean is None and not is_complex(own):
        return Array(apply(_variance(axes, divisor_less, keepdims, NAMES[own], root, node.type), node))
    return _spread_of(er.astype(Array(node), own, copy=False), axis, divisor_less, keepdims, where, mean, root)


def _spread_of(
    x: Array, axis: Axis, divisor_less: float, keepdims: bool, where: Where, middle: Operand | None, root: bool
) -> Array:
    """Of the elements at which `where` holds, from a mean that may be given."""
    distance = x - (mean(x, axis=axis, keepdims=True, where=where) if middle is None else middle)
    squares = sum(er.real(distance * er.conj(distance)), axis=axis, keepdims=keepdims, where=where)
    variance = squares / er.maximum(_count(er.real(x), axis, keepdims, where) - divisor_less, 0)
    return er.sqrt(variance) if root else variance


def var(
    x: Operand,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    ddof: float = 0.0,
    keepdims: bool = False,
    *,
    where: Where = True,
    mean: Operand | None = None,
    correction: float | None = None,
) -> Array:
    """The mean of squared distances from the mean, over dimensions; divided by their number less `correction`.

    NumPy calls that number `ddof`. `mean` is the mean with the dimensions kept, where it is known already.

    >>> var([1.0, 2.0, 3.0], correction=1).tolist()
    1.0
    """
    return _spread(x, axis, dtype, out, ddof, keepdims, where, mean, correction, False)


def std(
    x: Operand,
    /,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    ddof: float = 0.0,
    keepdims: bool = False,
    *,
    where: Where = True,
    mean: Operand | None = None,
    correction: float | None = None,
) -> Array:
    """The root of `var`.

    >>> std([1.0, 2.0, 3.0], correction=1).tolist()
    1.0
    """
    return _spread(x, axis, dtype, out, ddof, keepdims, where, mean, correction, True)


@kept
def _normalised(function: str, axes: tuple[int, ...], parameters: tuple[float, ...], type: Type) -> Definition:
    labels = [label(d) for d in range(len(type.shape))]
    value = call(function, element(0, labels), *parameters, over=axes)
    return Definition.statement([type], value, list(type.shape), len(type.shape))


def _normalise(function: str, x: Operand, axis: Axis, *parameters: float) -> Array:
    node = node_of(x)
    axes = axes_of(axis, len(node.type.shape))
    if 0 in node.type.shape:
        return er.astype(Array(node), _averaged_as(Array(node)), copy=False)
    return Array(apply(_normalised(function, axes, parameters, node.type), node))


def softmax(x: Operand, /, axis: Axis = -1) -> Array:
    """exp(x) / sum(exp(x)) over dimensions, without overflow.

    >>> softmax([1000.0, 1000.0]).tolist()
    [0.5, 0.5]
    """
    return _normalise("softmax", x, axis)


def log_softmax(x: Operand, /, axis: Axis = -1) -> Array:
    """The logarithm of `softmax`.

    >>> log_softmax([1000.0]).tolist()
    [0.0]
    """
    return _normalise("log_softmax", x, axis)


def layer_norm(x: Operand, /, axis: Axis = -1, *, eps: float = 1e-5) -> Array:
    """(x - mean x) / sqrt(var x + eps) over dimensions.

    >>> layer_norm([1.0, 3.0], eps=0.0).tolist()
    [-1.0, 1.0]
    """
    return _normalise("layer_norm", x, axis, constant("eps", eps))


def rms_norm(x: Operand, /, axis: Axis = -1, *, eps: float = 1e-5) -> Array:
    """x / sqrt(mean(x * x) + eps) over dimensions.

    >>> rms_norm([3.0, -3.0], eps=0.0).tolist()
    [1.0, -1.0]
    """
    return _normalise("rms_norm", x, axis, constant("eps", eps))
