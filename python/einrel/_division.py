"""Division with a rest: whole quotients and what is left, exact where x / y rounds."""

from __future__ import annotations

from typing import Final

from ._array import Array, Operand
from ._dtypes import BY_NAME, NAMES, bool_, is_floating, promoted
from ._elementwise import Elementwise, cast_definition, together
from ._formula import Formula, apply, call, cast, where

_SPLIT: Final = 2.0**27 + 1  # of 53 bits into two halves
_FAR: Final = 2.0**500  # beyond which halves of products might leave the range of f64
_WHOLE: Final = 2.0**53  # from here on numbers have no fractions
_NAN: Final = Formula(0.0) / 0.0
_INFINITY: Final = float("inf")


def _size(x: Formula) -> Formula:
    return where(x < 0, -x, x)


def _scale(x: Formula, y: Formula) -> Formula:
    """A power of two by which both are multiplied, so that no product leaves the range."""
    is_far = call("maximum", _size(x) > _FAR, _size(y) > _FAR)
    up, down, one = (cast("f64", Formula(number)) for number in (_FAR, 1 / _FAR, 1.0))
    return where(is_far, down, where(_size(x) < down, up, one))


def _halves(x: Formula) -> tuple[Formula, Formula]:
    """x as the sum of two numbers of 26 bits (Veltkamp)."""
    high = x * _SPLIT - (x * _SPLIT - x)
    return high, x - high


def _rest(a: Formula, times: Formula, b: Formula) -> Formula:
    """a - times * b without the rounding of the product (Dekker)."""
    (t_high, t_low), (b_high, b_low) = _halves(times), _halves(b)
    product = times * b
    rounded_off = ((t_high * b_high - product) + t_high * b_low + t_low * b_high) + t_low * b_low
    return where(times == 0, a, (a - product) - rounded_off)


def _have_one_sign(x: Formula, y: Formula) -> Formula:
    return (x < 0) == (y < 0)


def _whole_quotient(x: Formula, y: Formula, times: Formula, more: Formula, rest: Formula) -> Formula:
    sum_ = times + where(rest < 0, more - 1, more)
    is_exact = call("minimum", rest == 0, sum_ > 0)
    quotient = where(_have_one_sign(x, y), sum_, where(is_exact, -sum_, -sum_ - 1))
    is_rounded = call("minimum", x != 0, times < _WHOLE)
    is_undefined = call("minimum", _size(x) == _INFINITY, y != 0)
    return where(is_undefined, _NAN, where(is_rounded, quotient, x / y))


def _rest_with_sign(x: Formula, y: Formula, b: Formula, scale: Formula, more: Formula, rest: Formula) -> Formula:
    within = where(rest < 0, rest + b, rest)
    opposite = where(within == 0, 0.0 - within, b - within)  # at 0, which has no minus, the slope is that of x, too
    left = where(_have_one_sign(x, y), within, opposite) / scale
    has_sign_of_y = call("maximum", x == 0, _have_one_sign(x, y))
    left_of_less = where(has_sign_of_y, where(y < 0, -x, x) + 0.0, _size(y) - _size(x))
    left = where(_size(x) < _size(y), left_of_less, where(_size(more) < _WHOLE, left, _NAN))
    return where(y < 0, -left, left)


def _step(formula: object) -> Elementwise:
    return Elementwise("division", "floating", formula, "", "")  # type: ignore[arg-type]


_SCALE: Final = _step(_scale)
_SCALED: Final = _step(lambda x, scale: _size(x) * scale + 0.0)  # no -0.0
_TIMES: Final = _step(lambda a, b: call("floor", a / b))
_REST: Final = _step(_rest)
_QUOTIENT: Final = _step(_whole_quotient)
_REMAINDER: Final = _step(_rest_with_sign)


def _of_floats(name: str, x: Array, y: Array) -> Array:
    """Of f64. What is left after a first quotient, which is rounded, is divided once more."""
    scale = _SCALE.of(x, y)
    a, b = _SCALED.of(x, scale), _SCALED.of(y, scale)
    times = _TIMES.of(a, b)
    left = _REST.of(a, times, b)
    more = _TIMES.of(left, b)
    rest = _REST.of(left, more, b)
    return (
        _QUOTIENT.of(x, y, times, more, rest) if name == "floor_divide" else _REMAINDER.of(x, y, b, scale, more, rest)
    )


def _integer(formula: object) -> Elementwise:
    return Elementwise("division", "number", formula, "", "")  # type: ignore[arg-type]


def _as_float(x: Formula) -> Formula:
    return cast("f64", x)


def _is_below(rest: Formula, y: Formula) -> Formula:
    return where(y > 0, rest < 0, rest > 0)


def _is_above(rest: Formula, y: Formula) -> Formula:
    return where(y > 0, rest >= y, rest <= y)


def _mended_quotient(y: Formula, times: Formula, more: Formula, rest: Formula) -> Formula:
    sum_ = times + more
    return where(y == 0, 0, where(_is_below(rest, y), sum_ - 1, where(_is_above(rest, y), sum_ + 1, sum_)))


def _mended_rest(y: Formula, rest: Formula) -> Formula:
    return where(y == 0, 0, where(_is_below(rest, y), rest + y, where(_is_above(rest, y), rest - y, rest)))


_NEARLY: Final = _integer(lambda x, y: cast("i64", _as_float(x) / _as_float(y)))
_NEARLY_BELOW: Final = _integer(lambda x, y: cast("i64", call("floor", _as_float(x) / _as_float(y))))
_LEFT: Final = _integer(lambda x, times, y: x - times * y)
_WHOLE_QUOTIENT: Final = _integer(_mended_quotient)
_WHOLE_REST: Final = _integer(_mended_rest)


def _of_integers(name: str, x: Array, y: Array) -> Array:
    """Of i64, whose quotients f64 rounds: in two steps, of which the second is off by one at most."""
    times = _NEARLY.of(x, y)
    left = _LEFT.of(x, times, y)
    more = _NEARLY_BELOW.of(left, y)
    rest = _LEFT.of(left, more, y)
    return _WHOLE_QUOTIENT.of(y, times, more, rest) if name == "floor_divide" else _WHOLE_REST.of(y, rest)


def _divided(name: str, x: Operand, y: Operand) -> Array:
    """One of the two functions, whose result has the type that x and y are promoted to: it is computed in 64 bits."""
    nodes = together([x, y])
    dtype = promoted(*[BY_NAME[node.type.dtype] for node in nodes])
    if dtype == bool_:
        raise NotImplementedError(f"{name} of bools: cast them first")
    wide = "f64" if is_floating(dtype) else "i64"
    operands = [Array(apply(cast_definition(wide, node.type), node)) for node in nodes]
    result = (_of_floats if is_floating(dtype) else _of_integers)(name, *operands)._node
    return Array(apply(cast_definition(NAMES[dtype], result.type), result))


def floor_divide(x: Operand, y: Operand, /) -> Array:
    """floor(x / y), of the exact quotient; of integers, 0 where y is 0.

    >>> floor_divide([-7.0, 7.0], 2).tolist()
    [-4.0, 3.0]
    >>> floor_divide(1.0, 0.1).tolist()
    9.0
    """
    return _divided("floor_divide", x, y)


def remainder(x: Operand, y: Operand, /) -> Array:
    """x - floor(x / y) * y, which has the sign of y; of integers, 0 where y is 0.

    It is exact. Of floats that hold y more than 2^100 times, it is NaN.

    >>> remainder([-7.0, 7.0], 2).tolist()
    [1.0, 1.0]
    """
    return _divided("remainder", x, y)
