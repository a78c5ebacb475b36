"""NumPy's functions of samples: their spread, and what they are without those that are NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import einrel as er

from ._array import Array, Operand, node_of
from ._dtypes import float64, is_complex, is_floating
from ._joining import concat
from ._numbers import whole
from ._reductions import Axis, Where, axes_of, refuse_out
from ._shapes import broadcast_to, reshape

__all__ = [
    "average",
    "corrcoef",
    "cov",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "ptp",
]


def ptp(x: Operand, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element less the smallest over dimensions.

    >>> ptp([3, 1, 7]).tolist()
    6
    """
    refuse_out(out)
    return er.max(x, axis, keepdims=keepdims) - er.min(x, axis, keepdims=keepdims)


def average(
    x: Operand,
    axis: Axis = None,
    weights: Operand | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The mean over dimensions, of elements with weights; with `returned` a pair: the sum of the weights as well.

    >>> average([1.0, 3.0], weights=[3.0, 1.0]).tolist()
    1.5
    """
    own = Array(node_of(x))
    axes = axes_of(axis, own.ndim)
    if weights is None:
        middle = er.mean(own, axis, keepdims=keepdims)
        count = np.prod([own.shape[d] for d in axes], dtype=np.float64)
        return (middle, er.full_like(middle, float(count))) if returned else middle
    share = Array(node_of(weights))
    if share.shape != own.shape:
        if share.shape != tuple(own.shape[d] for d in axes) or axis is None:
            raise ValueError(f"weights of shape {share.shape} for an array of shape {own.shape} over axis {axis}")
        share = reshape(share, [extent if d in axes else 1 for d, extent in enumerate(own.shape)])
    common = er.result_type(own, share)
    common = common if is_floating(common) else float64
    own, share = (er.astype(part, common, copy=False) for part in (own, broadcast_to(share, own.shape)))
    total = er.sum(share, axis, keepdims=keepdims)
    middle = er.sum(own * share, axis, keepdims=keepdims) / total
    return (middle, total) if returned else middle


def cov(
    m: Operand,
    y: Operand | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Operand | None = None,
    aweights: Operand | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
) -> Array:
    """Covariances of the rows, each a variable; of the columns without `rowvar`. Divided by their number less `ddof`,
    which is 0 with `bias`, else 1.

    >>> cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if fweights is not None or aweights is not None:
        raise NotImplementedError("einrel.cov with weights; NumPy's takes our arrays")
    parts = [Array(node_of(part)) for part in (m, y) if part is not None]
    if any(part.ndim > 2 or is_complex(part.dtype) for part in parts):
        raise ValueError("covariances are of real arrays of one or two dimensions")
    rows = [er.atleast_2d(part) if rowvar or part.ndim < 2 else part.mT for part in parts]
    samples = concat(rows) if len(rows) > 1 else rows[0]
    samples = er.astype(samples, er.result_type(samples, float64) if dtype is None else dtype, copy=False)
    less = (0 if bias else 1) if ddof is None else whole("ddof", ddof)
    distance = samples - er.mean(samples, 1, keepdims=True)
    table = er.matmul(distance, distance.mT) / float(max(samples.shape[1] - less, 0))
    return table.squeeze()


def corrcoef(x: Operand, y: Operand | None = None, rowvar: bool = True, *, dtype: npt.DTypeLike | None = None) -> Array:
    """Correlations of the rows, each a variable, from -1 to 1; of the columns without `rowvar`.

    >>> corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).round(6).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    table = cov(x, y, rowvar, dtype=dtype)
    if table.ndim == 0:
        return table / table
    spread = er.sqrt(er.diagonal(table))
    return er.clip(table / spread[:, None] / spread[None, :], -1.0, 1.0)


# Without those that are NaN


def _is_there(x: Array, where: Where) -> Array:
    number = er.logical_not(er.isnan(x))
    return number if where is True or where is None else number & where


def nansum(
    x: Operand,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """`sum` of the elements that are not NaN.

    >>> nansum([1.0, np.nan]).tolist()
    1.0
    """
    return er.sum(x, axis, dtype, out, keepdims, initial, _is_there(Array(node_of(x)), where))


def nanprod(
    x: Operand,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """`prod` of the elements that are not NaN.

    >>> nanprod([2.0, np.nan]).tolist()
    2.0
    """
    return er.prod(x, axis, dtype, out, keepdims, initial, _is_there(Array(node_of(x)), where))


def nanmean(
    x: Operand,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Where = True,
) -> Array:
    """`mean` of the elements that are not NaN.

    >>> nanmean([1.0, np.nan]).tolist()
    1.0
    """
    return er.mean(x, axis, dtype, out, keepdims, where=_is_there(Array(node_of(x)), where))


def nanvar(
    x: Operand,
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
    """`var` of the elements that are not NaN.

    >>> nanvar([1.0, np.nan, 3.0]).tolist()
    1.0
    """
    number = _is_there(Array(node_of(x)), where)
    return er.var(x, axis, dtype, out, ddof, keepdims, where=number, mean=mean, correction=correction)


def nanstd(
    x: Operand,
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
    """`std` of the elements that are not NaN.

    >>> nanstd([1.0, np.nan, 3.0]).tolist()
    1.0
    """
    number = _is_there(Array(node_of(x)), where)
    return er.std(x, axis, dtype, out, ddof, keepdims, where=number, mean=mean, correction=correction)


def _nan_extreme(name: str, x: Operand, axis: Axis, keepdims: bool, initial: Operand | None, where: Where) -> Array:
    own = Array(node_of(x))
    extreme = er.max if name == "max" else er.min
    if not is_floating(own.dtype):
        return extreme(own, axis, None, keepdims, initial, where)
    number = _is_there(own, where)
    found = extreme(er.where(number, own, -np.inf if name == "max" else np.inf), axis, keepdims=keepdims)
    found = er.where(er.any(number, axis, keepdims=keepdims), found, np.nan)
    if initial is None:
        return found
    return (er.fmax if name == "max" else er.fmin)(found, initial)


def nanmax(
    x: Operand,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """`max` of the elements that are not NaN; NaN where there are none.

    >>> nanmax([1.0, np.nan]).tolist()
    1.0
    """
    refuse_out(out)
    return _nan_extreme("max", x, axis, keepdims, initial, where)


def nanmin(
    x: Operand,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Operand | None = None,
    where: Where = True,
) -> Array:
    """`min` of the elements that are not NaN; NaN where there are none.

    >>> nanmin([1.0, np.nan]).tolist()
    1.0
    """
    refuse_out(out)
    return _nan_extreme("min", x, axis, keepdims, initial, where)


def nanargmax(x: Operand, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """`argmax` of the elements that are not NaN; 0 where there are none.

    >>> nanargmax([1.0, np.nan, 2.0]).tolist()
    2
    """
    return er.argmax(er.where(er.isnan(x), -np.inf, x), axis, out, keepdims=keepdims)


def nanargmin(x: Operand, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """`argmin` of the elements that are not NaN; 0 where there are none.

    >>> nanargmin([np.nan, 1.0, 2.0]).tolist()
    1
    """
    return er.argmin(er.where(er.isnan(x), np.inf, x), axis, out, keepdims=keepdims)
