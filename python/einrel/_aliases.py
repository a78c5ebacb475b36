"""NumPy's names of what the array API standard calls otherwise, and what NumPy has as functions besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import einrel as er

from ._array import Array, Operand, node_of
from ._division import remainder
from ._elementwise import BINARY, UNARY
from ._functions import bitwise_invert, conj, pow, round, trunc
from ._joining import concat
from ._mathematics import acos, asin, atan, atan2, bitwise_left_shift, bitwise_right_shift, deg2rad, rad2deg
from ._reductions import axes_of, max, min

__all__ = [
    "absolute",
    "amax",
    "amin",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "array",
    "concatenate",
    "conjugate",
    "copy",
    "degrees",
    "fix",
    "invert",
    "left_shift",
    "mod",
    "ndim",
    "power",
    "radians",
    "right_shift",
    "shape",
    "size",
    "true_divide",
]

absolute = UNARY["abs"]
amax = max
amin = min
arccos = acos
arccosh = UNARY["acosh"]
arcsin = asin
arcsinh = UNARY["asinh"]
arctan = atan
arctan2 = atan2
arctanh = UNARY["atanh"]
around = round
concatenate = concat
conjugate = conj
degrees = rad2deg
fix = trunc
invert = bitwise_invert
left_shift = bitwise_left_shift
mod = remainder
power = pow
radians = deg2rad
right_shift = bitwise_right_shift
true_divide = BINARY["divide"]


def array(value: Any, dtype: npt.DTypeLike | None = None, *, copy: bool | None = True, ndmin: int = 0) -> Array:
    """An array of these elements, which are copied: what is written to them later, it does not see.

    >>> array([[1, 2], [3, 4]], "f4").dtype
    dtype('float32')
    """
    if isinstance(value, (list, tuple)):
        value, copy = er.asarray(value), True if copy is None else copy
    if isinstance(value, Array):  # which nobody writes to, unless its elements are there
        own = er.astype(value, value.dtype if dtype is None else dtype, copy=copy is not False)
    else:
        own = er.asarray(value, dtype, copy=copy)
    return own.reshape((1,) * (ndmin - own.ndim) + own.shape) if own.ndim < ndmin else own


def copy(x: Operand) -> Array:
    """The elements as they are now, in memory of their own.

    >>> copy([1, 2]).tolist()
    [1, 2]
    """
    return Array(node_of(x)).copy()


def shape(x: Operand) -> tuple[int, ...]:
    """The extent of every dimension.

    >>> shape([[1, 2, 3]])
    (1, 3)
    """
    return Array(node_of(x)).shape


def ndim(x: Operand) -> int:
    """The number of dimensions.

    >>> ndim([[1, 2, 3]])
    2
    """
    return len(shape(x))


def size(x: Operand, axis: Any = None) -> int:
    """The number of elements, or the extent of a dimension.

    >>> size([[1, 2, 3]], 0)
    1
    """
    own = shape(x)
    return int(np.prod([own[d] for d in axes_of(axis, len(own))], dtype=np.int64))
