"""More functions of elements, under NumPy's names and the standard's: made of those that the language has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import einrel as er

from ._array import Array, Operand, node_of
from ._dtypes import HALVES, bool_, float32, float64, is_complex, is_floating
from ._elementwise import Binary, Elementwise, Unary, _signbit, _trunc, together
from ._formula import Formula, call, where

__all__ = [
    "acos",
    "allclose",
    "angle",
    "array_equal",
    "array_equiv",
    "asin",
    "atan",
    "atan2",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "cbrt",
    "deg2rad",
    "divmod",
    "exp2",
    "fabs",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "ldexp",
    "logaddexp2",
    "modf",
    "nan_to_num",
    "piecewise",
    "rad2deg",
    "reciprocal",
    "rint",
    "select",
    "sinc",
]

# Cephes' rational function for the inverse of the tangent, below tan(pi / 8) + 0.25.
_P: Final = (
    -8.750608600031904122785e-1,
    -1.615753718733365076637e1,
    -7.500855792314704667340e1,
    -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)
_Q: Final = (
    1.0,
    2.485846490142306297962e1,
    1.650270098316988542046e2,
    4.328810604912902668951e2,
    4.853903996359136964868e2,
    1.945506571482613964425e2,
)
_LARGE: Final = 2.41421356237309504880  # tan(3 pi / 8)
_SMALL: Final = 0.66


def _polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    value = Formula(coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


# In steps of their own: as one formula, each part would stand in it as often as all others use it.


def _near(x: Formula) -> Formula:
    """x brought near 0, where the tangent of a sum is known; borders lie where all sides hold."""
    size = where(x < 0, -x, x)
    return where(size > _LARGE, -1 / size, where(size > _SMALL, (size - 1) / (size + 1), x))


def _angle_of(x: Formula, near: Formula) -> Formula:
    square = near * near
    angle = near * (1 + square * _polynomial(square, _P) / _polynomial(square, _Q))
    size = where(x < 0, -x, x)
    of_size = where(size > _LARGE, math.pi / 2, math.pi / 4) + angle
    return where(size > _SMALL, where(x < 0, -of_size, of_size), angle)


def _slope_of(y: Formula, x: Formula) -> Formula:
    """y / x, or -x / y where y is larger; of infinities and of two zeros that of the direction."""
    size_y, size_x = where(y < 0, -y, y), where(x < 0, -x, x)
    is_flat = size_y <= size_x
    slope = where(is_flat, y, -x) / where(is_flat, where(x == 0, 1.0, x), y)
    of_infinite = where(_signbit(y), -1.0, 1.0) * where(x < 0, -1.0, 1.0)
    return where(call("minimum", size_y == math.inf, size_x == math.inf), of_infinite, slope)


def _turned(y: Formula, x: Formula, angle: Formula) -> Formula:
    is_flat = where(y < 0, -y, y) <= where(x < 0, -x, x)
    turn = where(is_flat, where(_signbit(x), math.pi, 0.0), math.pi / 2)
    return where(_signbit(y), -turn, turn) + angle


_NEAR: Final = Unary("atan", "floating", _near, "", "")
_ANGLE_OF: Final = Binary("atan", "floating", _angle_of, "", "")
_HALF_ASIN: Final = Unary("asin", "floating", lambda x: x / (1 + call("sqrt", (1 - x) * (1 + x))), "", "")
_HALF_ACOS: Final = Unary("acos", "floating", lambda x: call("sqrt", 1 - x) / call("sqrt", 1 + x), "", "")
_SLOPE_OF: Final = Binary("atan2", "floating", _slope_of, "", "")
_TURNED: Final = Elementwise("atan2", "floating", _turned, "", "")


def _in_steps(of: Callable[..., Array], *operands: Operand) -> Array:
    """The function, of halves in float32, so that they are rounded once."""
    own = [Array(node) for node in together(operands, "floating")]
    common = er.result_type(*own)
    if common not in HALVES:
        return of(*own)
    return er.astype(of(*[er.astype(x, float32) for x in own]), common, copy=False)


def _atan(x: Array) -> Array:
    return _ANGLE_OF(x, _NEAR(x))


def atan(x: Operand, /) -> Array:
    """The inverse of the tangent.

    >>> atan([0.0]).tolist()
    [0.0]
    """
    return _in_steps(_atan, x)


def asin(x: Operand, /) -> Array:
    """The inverse of the sine.

    >>> asin([0.0]).tolist()
    [0.0]
    """
    return _in_steps(lambda x: _atan(_HALF_ASIN(x)) * 2, x)


def acos(x: Operand, /) -> Array:
    """The inverse of the cosine.

    >>> acos([1.0]).tolist()
    [0.0]
    """
    return _in_steps(lambda x: _atan(_HALF_ACOS(x)) * 2, x)


def atan2(x1: Operand, x2: Operand, /) -> Array:
    """The angle of the point with coordinates x2, x1, from -pi to pi.

    >>> atan2([0.0], [1.0]).tolist()
    [0.0]
    """
    return _in_steps(lambda y, x: _TURNED.of(y, x, _atan(_SLOPE_OF(y, x))), x1, x2)


def _cbrt(x: Formula) -> Formula:
    return where(x == 0, x, where(x < 0, -call("pow", -x, 1 / 3), call("pow", x, 1 / 3)))


def _sinc(x: Formula) -> Formula:
    angle = math.pi * x
    square = angle * angle
    near = 1 - square / 6 * (1 - square / 20 * (1 - square / 42))  # also where derivatives of a quotient are none
    return where(call("abs", x) < 2e-3, near, call("sin", angle) / where(x == 0, 1.0, angle))


def _heaviside(x: Formula, at_zero: Formula) -> Formula:
    return where(x < 0, 0.0, where(x == 0, at_zero, where(x > 0, 1.0, x)))


def _of_numbers(function: str) -> Callable[[Formula, Formula], Formula]:
    """The larger or smaller one of those that are not NaN."""
    return lambda x, y: where(x != x, y, where(y != y, x, call(function, x, y)))


def _whole_reciprocal(x: Formula) -> Formula:
    return where(call("maximum", x == 1, x == -1), x, x - x)


_LOG2: Final = math.log(2)

_UNARY: Final[list[tuple[Any, ...]]] = [
    ("cbrt", _cbrt, "The cube root.", ">>> cbrt([-27.0]).tolist()\n[-3.0]"),
    ("deg2rad", lambda x: x * (math.pi / 180), "Degrees as radians.", ">>> deg2rad([0.0]).tolist()\n[0.0]"),
    ("exp2", lambda x: 2.0**x, "2 to the x.", ">>> exp2([3.0]).tolist()\n[8.0]"),
    ("fabs", lambda x: call("abs", x), "The absolute value, as floats.", ">>> fabs([-2]).tolist()\n[2.0]"),
    ("rad2deg", lambda x: x * (180 / math.pi), "Radians as degrees.", ">>> rad2deg([0.0]).tolist()\n[0.0]"),
    ("sinc", _sinc, "sin(pi x) / (pi x), and 1 at 0.", ">>> sinc([0.0]).tolist()\n[1.0]"),
    ("isposinf", lambda x: x == math.inf, "Whether it is infinite above 0.",
     ">>> isposinf([np.inf, -np.inf]).tolist()\n[True, False]"),
    ("isneginf", lambda x: x == -math.inf, "Whether it is infinite below 0.",
     ">>> isneginf([np.inf, -np.inf]).tolist()\n[False, True]"),
]  # fmt: skip

_BINARY: Final[list[tuple[Any, ...]]] = [
    ("heaviside", "floating", _heaviside, "0 below 0, 1 above, and x2 at 0.",
     ">>> heaviside([-1.0, 0.0, 2.0], 0.5).tolist()\n[0.0, 0.5, 1.0]"),
    ("fmax", "number", _of_numbers("maximum"), "The larger one; NaN if both are.",
     ">>> fmax([np.nan, 1.0], 2.0).tolist()\n[2.0, 2.0]"),
    ("fmin", "number", _of_numbers("minimum"), "The smaller one; NaN if both are.",
     ">>> fmin([np.nan, 1.0], 2.0).tolist()\n[2.0, 1.0]"),
]  # fmt: skip

UNARY: Final[dict[str, Unary]] = {row[0]: Unary(row[0], "floating", *row[1:]) for row in _UNARY}
BINARY: Final[dict[str, Binary]] = {row[0]: Binary(*row) for row in _BINARY}

cbrt = UNARY["cbrt"]
deg2rad = UNARY["deg2rad"]
exp2 = UNARY["exp2"]
fabs = UNARY["fabs"]
fmax = BINARY["fmax"]
fmin = BINARY["fmin"]
heaviside = BINARY["heaviside"]
isneginf = UNARY["isneginf"]
isposinf = UNARY["isposinf"]
rad2deg = UNARY["rad2deg"]
sinc = UNARY["sinc"]

_RECIPROCAL: Final = Unary("reciprocal", "number", _whole_reciprocal, "", "")


def _fraction(x: Formula) -> Formula:
    """With the sign of x, also where it is 0."""
    fraction = where(_signbit(x), -(_trunc(x) - x), x - _trunc(x))
    return where(call("abs", x) == math.inf, 0 * where(x > 0, 1.0, -1.0), fraction)


_FRACTION: Final = Unary("modf", "floating", _fraction, "", "")


def reciprocal(x: Operand, /) -> Array:
    """1 / x; of integers the whole part of it, as NumPy's.

    >>> reciprocal([4.0]).tolist()
    [0.25]
    """
    own = Array(node_of(x))
    return er.divide(1, own) if is_floating(own.dtype) else _RECIPROCAL(own)


def rint(x: Operand, /) -> Array:
    """The nearest whole number, the even one of two, as floats.

    >>> rint([0.5, 1.6]).tolist()
    [0.0, 2.0]
    """
    own = Array(node_of(x))
    return er.round(own if is_floating(own.dtype) else er.astype(own, float64))


def fmod(x1: Operand, x2: Operand, /) -> Array:
    """What is left of x1 after whole multiples of x2 are taken away towards 0: it has the sign of x1.

    >>> fmod([-7.0, 7.0], 3).tolist()
    [-1.0, 1.0]
    """
    own, other = (Array(node) for node in together([x1, x2]))
    own, other = (er.astype(x, er.result_type(own, other), copy=False) for x in (own, other))
    if own.dtype.kind == "i":  # without -x, which the smallest one has not
        left = er.remainder(own, other)
        return er.where((left != 0) & ((left < 0) != (own < 0)), left - other, left)
    left = er.remainder(er.where(own < 0, -own, own), er.where(other < 0, -other, other))
    return er.where(own == 0, own, er.where(own < 0, -left, left))


def divmod(x1: Operand, x2: Operand, /) -> tuple[Array, Array]:
    """`floor_divide` and `remainder`.

    >>> [x.tolist() for x in divmod([7, -7], 2)]
    [[3, -4], [1, 1]]
    """
    return er.floor_divide(x1, x2), er.remainder(x1, x2)


def modf(x: Operand, /) -> tuple[Array, Array]:
    """What stands behind the point, and the whole number before it, both with the sign of x.

    >>> [x.tolist() for x in modf([2.5, -2.5])]
    [[0.5, -0.5], [2.0, -2.0]]
    """
    own = Array(node_of(x))
    own = own if is_floating(own.dtype) else er.astype(own, float64)
    return _FRACTION(own), er.trunc(own)


def float_power(x1: Operand, x2: Operand, /) -> Array:
    """x1 to the x2, in f64 at least.

    >>> float_power([2, 4], -1).tolist()
    [0.5, 0.25]
    """
    base, exponent = (Array(node_of(x)) for x in (x1, x2))
    common = er.result_type(base, exponent, float64)
    return er.pow(er.astype(base, common, copy=False), er.astype(exponent, common, copy=False))


def ldexp(x1: Operand, x2: Operand, /) -> Array:
    """x1 times 2 to the x2.

    >>> ldexp([3.0], [2]).tolist()
    [12.0]
    """
    own, exponent = Array(node_of(x1)), Array(node_of(x2))
    if is_floating(exponent.dtype):
        raise TypeError(f"ldexp by exponents of {exponent.dtype}: they are whole numbers")
    own = own if is_floating(own.dtype) else er.astype(own, float64)
    half = er.floor_divide(exponent, 2)  # of which the powers stay in the range
    wide = er.astype(own, float64, copy=False) * er.exp2(half) * er.exp2(exponent - half)
    return er.astype(wide, own.dtype, copy=False)


def logaddexp2(x1: Operand, x2: Operand, /) -> Array:
    """log2(2**x1 + 2**x2), without overflow.

    >>> logaddexp2([0.0], [0.0]).tolist()
    [1.0]
    """
    return er.logaddexp(er.multiply(x1, _LOG2), er.multiply(x2, _LOG2)) / _LOG2


def _shifted(name: str, x1: Operand, x2: Operand) -> tuple[Array, Array]:
    own, by = (Array(node) for node in together([x1, x2]))
    if by._node.is_computed and (by._elements() < 0).any():
        raise ValueError(f"{name} by a number below 0")
    common = er.result_type(own, by)
    if is_floating(common):
        raise TypeError(f"{name} of {own.dtype} by {by.dtype}: integers have bits")
    if common == bool_:
        common = np.dtype(np.int64)
    return er.astype(own, common, copy=False), er.astype(by, common, copy=False)


def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Array:
    """x1 times 2 to the x2, without the bits that leave the type.

    >>> bitwise_left_shift([1, 3], 2).tolist()
    [4, 12]
    """
    own, by = _shifted("bitwise_left_shift", x1, x2)
    return er.where(by < own.dtype.itemsize * 8, own * er.pow(2, er.maximum(by, 0)), 0)


def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Array:
    """The largest whole number up to x1 divided by 2 to the x2.

    >>> bitwise_right_shift([4, -3], 1).tolist()
    [2, -2]
    """
    own, by = _shifted("bitwise_right_shift", x1, x2)
    last = own.dtype.itemsize * 8 - 2
    halved = er.floor_divide(own, er.pow(2, er.clip(by, 0, last)))
    return er.where(by > last, er.astype(er.where(own < 0, -1, 0), own.dtype, copy=False), halved)


def angle(z: Operand, deg: bool = False) -> Array:
    """The angle of complex numbers, in radians, or with `deg` in degrees.

    >>> angle([1.0, -1.0], deg=True).tolist()
    [0.0, 180.0]
    """
    turned = atan2(er.imag(z), er.real(z))
    return rad2deg(turned) if deg else turned


def isreal(x: Operand, /) -> Array:
    """Whether the imaginary part is 0.

    >>> isreal([1.0, 1j]).tolist()
    [True, False]
    """
    return er.equal(er.imag(x), 0)


def iscomplex(x: Operand, /) -> Array:
    """Whether the imaginary part is not 0.

    >>> iscomplex([1.0, 1j]).tolist()
    [False, True]
    """
    return er.not_equal(er.imag(x), 0)


def iscomplexobj(x: Operand, /) -> bool:
    """Whether its type is of complex numbers.

    >>> iscomplexobj([1.0])
    False
    """
    return is_complex(Array(node_of(x)).dtype)


def isrealobj(x: Operand, /) -> bool:
    """Whether its type is of real numbers.

    >>> isrealobj([1.0])
    True
    """
    return not iscomplexobj(x)


def nan_to_num(
    x: Operand, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Numbers in place of NaN and infinities: of these the largest and the smallest of the type, if none are given.

    >>> nan_to_num([np.nan, 1.0, np.inf], posinf=9.0).tolist()
    [0.0, 1.0, 9.0]
    """
    own = Array(node_of(x))
    if not is_floating(own.dtype):
        return own
    if is_complex(own.dtype):
        raise NotImplementedError("einrel.nan_to_num of complex numbers; NumPy's takes our arrays")
    limits = er.finfo(own.dtype)
    above, below = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    finite = er.where(er.isnan(own), float(nan), own)
    return er.where(isposinf(own), float(above), er.where(isneginf(own), float(below), finite))


def isclose(a: Operand, b: Operand, rtol: Operand = 1e-05, atol: Operand = 1e-08, equal_nan: bool = False) -> Array:
    """Whether |a - b| is at most atol + rtol |b|, or both are equal; with `equal_nan`, also where both are NaN.

    >>> isclose([1.0, 2.0], [1.0 + 1e-9, 3.0]).tolist()
    [True, False]
    """
    x, y = (Array(node) for node in together([a, b]))
    if y.dtype.kind in "ib":
        y = er.astype(y, float64)
    is_near = er.less_equal(er.abs(x - y), er.abs(y) * rtol + atol)
    close = (is_near & er.isfinite(y)) | er.equal(x, y)
    return close | (er.isnan(x) & er.isnan(y)) if equal_nan else close


def allclose(a: Operand, b: Operand, rtol: Operand = 1e-05, atol: Operand = 1e-08, equal_nan: bool = False) -> Array:
    """Whether `isclose` holds of all elements.

    >>> allclose([1.0], [1.0 + 1e-9]).tolist()
    True
    """
    return er.all(isclose(a, b, rtol, atol, equal_nan))


def _equal(x: Array, y: Array, equal_nan: bool) -> Array:
    same = er.equal(x, y)
    return er.all(same | (er.isnan(x) & er.isnan(y)) if equal_nan else same)


def array_equal(a1: Operand, a2: Operand, equal_nan: bool = False) -> Array:
    """Whether shapes are the same and all elements are equal.

    >>> array_equal([1, 2], [1, 2]).tolist()
    True
    """
    x, y = Array(node_of(a1)), Array(node_of(a2))
    return _equal(x, y, equal_nan) if x.shape == y.shape else Array(node_of(np.False_))


def array_equiv(a1: Operand, a2: Operand) -> Array:
    """Whether all elements are equal, where shapes broadcast.

    >>> array_equiv([1, 1], 1).tolist()
    True
    """
    x, y = Array(node_of(a1)), Array(node_of(a2))
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return Array(node_of(np.False_))
    return _equal(x, y, False)


def select(condlist: Sequence[Operand], choicelist: Sequence[Operand], default: Operand = 0) -> Array:
    """Of the first condition that holds the choice, and the default where none does.

    >>> select([[True, False], [True, True]], [[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            f"{len(condlist)} conditions and {len(choicelist)} choices: give one choice for each, and one or more"
        )
    chosen: Any = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        chosen = er.where(condition, choice, chosen)
    return Array(node_of(chosen))


def piecewise(x: Operand, condlist: Any, funclist: Sequence[Any], *arguments: Any, **options: Any) -> Array:
    """Of the last condition that holds the function of x, or the number; one more stands for where none holds.

    Functions are called with all of x. The result has the type of x.

    >>> piecewise([-1.0, 2.0], [np.array([True, False])], [0.0, lambda x: 3 * x]).tolist()
    [0.0, 6.0]
    """
    own = Array(node_of(x))
    conditions = (
        list(condlist) if isinstance(condlist, (list, tuple)) and np.ndim(condlist[0]) == own.ndim else [condlist]
    )
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"{len(funclist)} functions for {len(conditions)} conditions: give as many, or one more")
    values = [f(own, *arguments, **options) if callable(f) else f for f in funclist]
    made: Any = values[len(conditions)] if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values):
        made = er.where(condition, value, made)
    return er.broadcast_to(er.astype(made, own.dtype, copy=False), own.shape)
