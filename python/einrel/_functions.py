"""Functions of elements that need more than a formula: parameters, or no computing for some types."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from ._array import Array, Operand, node_of
from ._dtypes import BY_NAME, NAMES, bool_, computed_as, is_floating, promoted
from ._elementwise import (
    BINARY,
    UNARY,
    Binary,
    Unary,
    _ceil,
    _floor,
    _floor_divide,
    _remainder,
    _round,
    _trunc,
    cast_definition,
    together,
)
from ._formula import apply, broadcast_element, call, cast, kept
from ._formula import where as where_
from ._native import Definition, Type

_ROUNDING: Final = {
    "floor": Unary("floor", "floating", _floor, "The largest whole number up to x.", ""),
    "ceil": Unary("ceil", "floating", _ceil, "The smallest whole number from x on.", ""),
    "trunc": Unary("trunc", "floating", _trunc, "The whole number next to x on the side of 0.", ""),
    "round": Unary("round", "floating", _round, "The nearest whole number, the even one of two.", ""),
}
_FINITE: Final = Unary("isfinite", "floating", lambda x: call("abs", x) < float("inf"), "", "")
_INFINITE: Final = Unary("isinf", "floating", lambda x: call("abs", x) == float("inf"), "", "")
_FLOOR_DIVIDE: Final = Binary("floor_divide", "real", _floor_divide, "", "")
_REMAINDER: Final = Binary("remainder", "real", _remainder, "", "")
_INVERT: Final = Unary("bitwise_invert", "number", lambda x: -1 - x, "", "")


def _rounded(name: str, x: Operand) -> Array:
    node = node_of(x)
    if not is_floating(BY_NAME[node.type.dtype]):
        return Array(node)
    return _ROUNDING[name](Array(node))


def floor(x: Operand, /) -> Array:
    """The largest whole number up to x, of the type of x.

    >>> floor([-1.5, 1.5]).tolist()
    [-2.0, 1.0]
    """
    return _rounded("floor", x)


def ceil(x: Operand, /) -> Array:
    """The smallest whole number from x on, of the type of x.

    >>> ceil([-1.5, 1.5]).tolist()
    [-1.0, 2.0]
    """
    return _rounded("ceil", x)


def trunc(x: Operand, /) -> Array:
    """The whole number next to x on the side of 0, of the type of x.

    >>> trunc([-1.5, 1.5]).tolist()
    [-1.0, 1.0]
    """
    return _rounded("trunc", x)


def round(x: Operand, /) -> Array:
    """The nearest whole number, the even one of two, of the type of x.

    >>> round([0.5, 1.5, 1.6]).tolist()
    [0.0, 2.0, 2.0]
    """
    return _rounded("round", x)


def isfinite(x: Operand, /) -> Array:
    """Whether it is neither infinite nor NaN.

    >>> isfinite([1.0, float("inf")]).tolist()
    [True, False]
    """
    return _FINITE(x)


def isinf(x: Operand, /) -> Array:
    """Whether it is infinite.

    >>> isinf([1.0, float("inf")]).tolist()
    [False, True]
    """
    return _INFINITE(x)


def _whole(name: str, function: Binary, x: Operand, y: Operand) -> Array:
    """A function of division, whose result has the type that x and y are promoted to."""
    nodes = together([x, y])
    dtype = promoted(*[BY_NAME[node.type.dtype] for node in nodes])
    if dtype == np.int64 or dtype == bool_:
        raise NotImplementedError(f"{name} of {dtype}: the language does not divide integers; floats and int32 work")
    if dtype == np.float64:
        return function(*[Array(node) for node in nodes])
    dividend, divisor = (astype(Array(node), np.float64) for node in nodes)
    result = astype(function(dividend, divisor), dtype)
    return result if is_floating(dtype) else where(divisor == 0, 0, result)  # as NumPy's of integers


def floor_divide(x: Operand, y: Operand, /) -> Array:
    """floor(x / y).

    >>> floor_divide([-7.0, 7.0], 2).tolist()
    [-4.0, 3.0]
    """
    return _whole("floor_divide", _FLOOR_DIVIDE, x, y)


def remainder(x: Operand, y: Operand, /) -> Array:
    """x - floor(x / y) * y, which has the sign of y.

    >>> remainder([-7.0, 7.0], 2).tolist()
    [1.0, 1.0]
    """
    return _whole("remainder", _REMAINDER, x, y)


@kept
def _power(exponent: float, type: Type) -> Definition:
    base = broadcast_element(0, type.shape, type.shape)
    return Definition.statement([type], call("pow", base, exponent), list(type.shape), len(type.shape))


_POW: Final = Binary("pow", "signed", lambda x, y: call("pow", x, y), "", "")


def pow(x: Operand, y: Operand, /) -> Array:
    """x to the y. A negative number as the exponent of integers is an error.

    >>> pow([2, 3], 2).tolist()
    [4, 9]
    """
    if isinstance(y, np.integer):
        y = int(y)
    base = x if isinstance(x, (Array, np.ndarray)) else None
    if base is not None and isinstance(y, (int, float)) and not isinstance(y, bool):
        node = node_of(base)
        dtype = BY_NAME[node.type.dtype]
        if y < 0 and isinstance(y, int) and not is_floating(dtype):
            raise ValueError(f"{dtype} to the power of {y}: a negative exponent of integers; cast them first")
        if (isinstance(y, int) and dtype != bool_) or is_floating(dtype):
            return Array(apply(_power(y, node.type), node))
    return _POW(x, y)


@kept
def _where(condition: Type, x: Type, y: Type) -> Definition:
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    values = [broadcast_element(i, type.shape, shape) for i, type in enumerate((condition, x, y))]
    common = NAMES[promoted(BY_NAME[x.dtype], BY_NAME[y.dtype])]
    of_common = [value if type.dtype == common else cast(common, value) for value, type in zip(values[1:], (x, y))]
    value = cast(common, where_(values[0], *of_common))
    return Definition.statement([condition, x, y], value, list(shape), len(shape))


def where(condition: Operand, x: Operand, y: Operand, /) -> Array:
    """x where the condition holds, else y.

    >>> where([True, False], [1, 2], [3, 4]).tolist()
    [1, 4]
    """
    nodes = [node_of(condition), *together([x, y])]
    return Array(apply(_where(*[node.type for node in nodes]), *nodes))


def clip(x: Operand, /, min: Operand | None = None, max: Operand | None = None) -> Array:
    """x, but at least `min` and at most `max`, of the type of x.

    >>> clip([1, 5, 9], 2, 8).tolist()
    [2, 5, 8]
    """
    clipped = Array(node_of(x))
    dtype = clipped.dtype
    if min is not None:
        clipped = BINARY["maximum"](clipped, min)
    if max is not None:
        clipped = BINARY["minimum"](clipped, max)
    return astype(clipped, dtype)


def astype(x: Operand, dtype: npt.DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Array:
    """The elements as another type: floats towards zero and saturating to integers, NaN as 0.

    >>> astype([1.9, -1.9], "int32").tolist()
    [1, -1]
    """
    node = node_of(x)
    wanted = NAMES[computed_as(np.dtype(dtype))]
    if node.type.dtype == wanted:
        return Array(node)
    return Array(apply(cast_definition(wanted, node.type), node))


def _bitwise(name: str, logical: str, x: Operand, y: Operand) -> Array:
    nodes = together([x, y])
    if any(node.type.dtype != "bool" for node in nodes):
        raise NotImplementedError(f"{name} of integers: the language has no operations on bits")
    return BINARY[logical](*[Array(node) for node in nodes])


def bitwise_and(x: Operand, y: Operand, /) -> Array:
    """Whether both hold; of bools only.

    >>> bitwise_and([True, True], [True, False]).tolist()
    [True, False]
    """
    return _bitwise("bitwise_and", "logical_and", x, y)


def bitwise_or(x: Operand, y: Operand, /) -> Array:
    """Whether one holds; of bools only.

    >>> bitwise_or([False, True], [False, False]).tolist()
    [False, True]
    """
    return _bitwise("bitwise_or", "logical_or", x, y)


def bitwise_xor(x: Operand, y: Operand, /) -> Array:
    """Whether exactly one holds; of bools only.

    >>> bitwise_xor([True, True], [True, False]).tolist()
    [False, True]
    """
    return _bitwise("bitwise_xor", "logical_xor", x, y)


def bitwise_invert(x: Operand, /) -> Array:
    """-1 - x of integers, the opposite of bools.

    >>> bitwise_invert([0, 5]).tolist()
    [-1, -6]
    """
    node = node_of(x)
    if node.type.dtype == "bool":
        return UNARY["logical_not"](Array(node))
    if is_floating(BY_NAME[node.type.dtype]):
        raise TypeError(f"bitwise_invert of {node.type.dtype}: integers and bools have bits")
    return _INVERT(Array(node))


def conj(x: Operand, /) -> Array:
    """x: there are no complex numbers yet.

    >>> conj([1.0]).tolist()
    [1.0]
    """
    return Array(node_of(x))


real = conj


class Unsupported:
    """A function of the standard that the language cannot say."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = "Not there: the language cannot say it."

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"einrel.{self.__name__}: the language cannot say it yet; NumPy's takes our arrays")
