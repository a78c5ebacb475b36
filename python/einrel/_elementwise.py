"""Functions of one element of each operand, by NumPy's rules of broadcasting and of types."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

import einrel as er

from ._array import Array, Operand, node_of
from ._dtypes import (
    BY_NAME,
    NAMES,
    DType,
    bool_,
    float64,
    int64,
    is_complex,
    is_floating,
    number_as,
    number_dtype,
    promoted,
)
from ._formula import Definition, Formula, apply, broadcast_element, call, cast, element, kept, label, where
from ._native import Node, ProgramError, Type
from ._numbers import TracedNumber, is_number, is_whole

# Which operands a function takes, and in which type they are computed.
#   number: any, as they are        signed: no bool          floating: as floats, integers as f64
Kind = Literal["number", "signed", "floating"]


_OF_TRUTHS: Final = frozenset({"logical_and", "logical_or", "logical_xor"})
# Functions that only look for the place of a number, or whether it is 0.
_COMPARED: Final = _OF_TRUTHS | {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def _computing(kind: Kind, name: str, dtypes: Sequence[DType]) -> DType:
    """The type that operands of these types are computed in."""
    common = promoted(*dtypes)
    if kind == "floating":
        return common if is_floating(common) else float64
    if kind == "signed" and common == bool_:
        raise TypeError(f"{name} of bools: cast them first, or use logical functions")
    return common


def of_type(dtype: Any, casting: str, operand: Operand) -> Array:
    """An operand in the type that a function is asked to compute in."""
    return er.asarray(operand, dtype) if is_number(operand) else er.astype(operand, dtype, casting=casting, copy=False)


_PARAMETERS: Final = """\
Of arrays and numbers x, or x1 and x2 (x and y above), which broadcast; ValueError where they do not. Of the `options`,
`dtype` is the type that it is computed in, `casting` the rule by which operands may become that; `out`, and a mask for
`where`, raise TypeError."""


class Elementwise:
    """A function over formulas, with what it takes; called with arrays."""

    def __init__(self, name: str, kind: Kind, formula: Callable[..., Formula], summary: str, example: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "einrel"
        described = f"{summary}\n\n{_PARAMETERS}"
        self.__doc__ = f"{described}\n\n{example}" if example else described
        self._kind: Kind = kind
        self._formula = formula
        self._use: Use = "compared" if name in _COMPARED else "floating" if kind == "floating" else "typed"

    def __repr__(self) -> str:
        return f"<function einrel.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__name__

    def of(self, *operands: Operand) -> Array:
        """What it is of these."""
        nodes = together(operands, self._use)
        return Array(apply(_definition(self, *[node.type for node in nodes]), *nodes))

    def given(self, operands: Sequence[Operand], options: Mapping[str, Any]) -> Array:
        """What it is of these, in the type `dtype` of NumPy's options; others there are not."""
        dtype, casting = options.get("dtype"), options.get("casting", "same_kind")
        for name, value in options.items():
            if name not in ("dtype", "casting", "out", "where"):
                raise TypeError(f"{self.__name__}() got an unexpected keyword argument {name!r}")
            if value is not None and (name == "out" or (name == "where" and value is not True)):
                raise TypeError(
                    f"{self.__name__}({name}=...): an einrel.Array does not change; numpy.{self.__name__} writes to "
                    "arrays of NumPy's"
                )
        if dtype is None:
            return self.of(*operands)
        return self.of(*[of_type(dtype, casting, operand) for operand in operands])

    def definition(self, types: Sequence[Type]) -> Definition:
        """What computes it of operands of these types."""
        shape = np.broadcast_shapes(*[type.shape for type in types])
        dtypes = [BY_NAME[type.dtype] for type in types]
        are_truths = self.__name__ in _OF_TRUTHS and any(map(is_complex, dtypes))
        computing = "bool" if are_truths else NAMES[_computing(self._kind, self.__name__, dtypes)]
        arguments = []
        for operand, type in enumerate(types):
            value = broadcast_element(operand, type.shape, shape)
            arguments.append(value if type.dtype == computing else as_type(computing, value, type))
        value = self._formula(*arguments) if computing != "bool" else self._of_bools(arguments)
        try:
            return Definition.statement(list(types), value, list(shape), len(shape))
        except ProgramError as error:
            raise error.__class__(f"{self.__name__}: {error}") from None

    def _of_bools(self, arguments: Sequence[Formula]) -> Formula:
        return _OF_BOOLS.get(self.__name__, self._formula)(*arguments)


class Unary(Elementwise):
    """A function of one operand."""

    def __call__(self, x: Operand, /, **options: Any) -> Array:
        return self.given((x,), options) if options else self.of(x)


class Binary(Elementwise):
    """A function of two operands."""

    def __call__(self, x1: Operand, x2: Operand, /, **options: Any) -> Array:
        return self.given((x1, x2), options) if options else self.of(x1, x2)


# Arithmetic of truth values, in which the language counts them as numbers.
_OF_BOOLS: Final[dict[str, Callable[..., Formula]]] = {
    "add": lambda x, y: cast("bool", call("maximum", x, y)),
    "multiply": lambda x, y: cast("bool", call("minimum", x, y)),
    "maximum": lambda x, y: cast("bool", call("maximum", x, y)),
    "minimum": lambda x, y: cast("bool", call("minimum", x, y)),
    "abs": lambda x: x,
}


@kept
def _definition(function: Elementwise, *types: Type) -> Definition:
    return function.definition(types)


def as_type(dtype: str, value: Formula, type: Type) -> Formula:
    """An element of an array of that type as another one; the truth of complex numbers is that they are not 0."""
    return value != 0 if dtype == "bool" and is_complex(BY_NAME[type.dtype]) else cast(dtype, value)


@kept
def cast_definition(dtype: str, type: Type) -> Definition:
    """What casts an array to a type."""
    value = as_type(dtype, element(0, [label(d) for d in range(len(type.shape))]), type)
    return Definition.statement([type], value, list(type.shape), len(type.shape))


# What a number becomes beside arrays: one of their type, a float where they have none, or, where only its place among
# them counts, one of a type that has it.
Use = Literal["typed", "floating", "compared"]


def _compared_number(number: Any, beside: DType) -> Node | None:
    """A whole number that an array of integers is compared with, where it is none of their type."""
    if isinstance(number, TracedNumber):
        return number._node if number.dtype == int64 else None
    if not isinstance(number, int) or np.can_cast(np.min_scalar_type(number), beside):
        return None
    return node_of(np.int64(number) if is_whole(number) else np.float64(math.copysign(math.inf, number)))


def _number_beside(number: Any, beside: DType, use: Use) -> Node:
    """A number in the type that it takes beside an array of that type."""
    if use == "compared" and not is_floating(beside) and (compared := _compared_number(number, beside)) is not None:
        return compared
    if use == "floating" and not is_floating(beside):
        beside = float64
    if not isinstance(number, TracedNumber):
        return node_of(number_as(number, number_dtype(number, beside)))
    wanted = number_dtype(number.dtype.type(0).item(), beside)
    if number.dtype == int64 and not is_floating(wanted):
        number.course.limit(number, wanted)
    return apply(cast_definition(NAMES[wanted], number._node.type), number._node)


def together(operands: Sequence[Operand], use: Use = "typed") -> list[Node]:
    """Their nodes; numbers take the type of the arrays that they stand beside, as far as they are used so."""
    numbers = [is_number(operand) for operand in operands]
    if all(numbers) or not any(numbers):
        return [node_of(operand) for operand in operands]
    arrays = {i: node_of(operand) for i, operand in enumerate(operands) if not numbers[i]}
    beside = promoted(*[BY_NAME[node.type.dtype] for node in arrays.values()])
    return [arrays[i] if i in arrays else _number_beside(operand, beside, use) for i, operand in enumerate(operands)]


def _unary(function: str) -> Callable[..., Formula]:
    return lambda x: call(function, x)


def _binary(function: str) -> Callable[..., Formula]:
    return lambda x, y: call(function, x, y)


def _truth(x: Formula) -> Formula:
    return cast("bool", x)


def _magnitude(x: Formula) -> Formula:
    return call("abs", x)


def _floor(x: Formula) -> Formula:
    return call("floor", x)


def _ceil(x: Formula) -> Formula:
    return -_floor(-x)


def _trunc(x: Formula) -> Formula:
    return where(x < 0, _ceil(x), _floor(x))


def _round(x: Formula) -> Formula:
    up = _ceil(x)  # from above, so that what becomes 0 keeps its sign
    missing = up - x
    is_odd = up - 2 * _floor(up * 0.5)
    return up - where(missing == 0.5, is_odd, missing > 0.5)


def _sign(x: Formula) -> Formula:
    return where(x > 0, 1, where(x < 0, -1, where(x == 0, 0, x)))


def _signbit(x: Formula) -> Formula:
    return call("maximum", x < 0, call("minimum", x == 0, 1 / x < 0))


# Each side of a `where` below holds beyond the border between them, too, so that derivatives of every order are those
# of the function on both sides of it: no abs, maximum or special case stands where the function is smooth.


def _half_exp(x: Formula) -> Formula:
    """exp(x) / 2, also where exp(x) is too large; x / 2 is exact, where x - log(2) would be rounded."""
    root = call("exp", x / 2)
    return root / 2 * root


def _sinh(x: Formula) -> Formula:
    near = (call("expm1", x) - call("expm1", -x)) / 2
    far = where(x < 0, -_half_exp(-x), _half_exp(x))
    return where(_magnitude(x) > 20, far, near)


def _cosh(x: Formula) -> Formula:
    return _half_exp(x) + _half_exp(-x)


def _asinh(x: Formula) -> Formula:
    def of_positive(x: Formula) -> Formula:
        near = call("log1p", x * (1 + x / (1 + call("sqrt", 1 + x * x))))
        return where(x > 1e10, call("log", x) + math.log(2), near)

    return where(x < 0, -of_positive(-x), of_positive(x))


def _acosh(x: Formula) -> Formula:
    t = x - 1
    return where(x > 1e10, call("log", x) + math.log(2), call("log1p", t + call("sqrt", t) * call("sqrt", t + 2)))


def _hypot(x: Formula, y: Formula) -> Formula:
    large = call("maximum", _magnitude(x), _magnitude(y))
    scale = call("stop_gradient", where(large == 0, 1, large))  # the result is the same for any
    size = scale * call("sqrt", call("sq", x / scale) + call("sq", y / scale))
    is_infinite = call("maximum", _magnitude(x) == math.inf, _magnitude(y) == math.inf)
    return where(is_infinite, math.inf, size)


def _logaddexp(x: Formula, y: Formula) -> Formula:
    of_larger = where(x > y, x + call("log1p", call("exp", y - x)), y + call("log1p", call("exp", x - y)))
    are_infinite = call("minimum", x == y, _magnitude(x) == math.inf)  # their difference is NaN
    return where(are_infinite, (x + y) / 2, of_larger)


_ARITHMETIC: Final = [
    ("add", "number", _binary("add"), "x + y.", ">>> add([1, 2], 3).tolist()\n[4, 5]"),
    ("subtract", "signed", _binary("subtract"), "x - y.", ">>> subtract([1, 2], 3).tolist()\n[-2, -1]"),
    ("multiply", "number", _binary("multiply"), "x * y.", ">>> multiply([1, 2], 3).tolist()\n[3, 6]"),
    ("divide", "floating", _binary("divide"), "x / y; of integers f64.",
     ">>> divide([1, 2], 4).tolist()\n[0.25, 0.5]"),
    ("maximum", "number", _binary("maximum"), "The larger one; NaN if either is.",
     ">>> maximum([1, 5], 3).tolist()\n[3, 5]"),
    ("minimum", "number", _binary("minimum"), "The smaller one; NaN if either is.",
     ">>> minimum([1, 5], 3).tolist()\n[1, 3]"),
    ("negative", "signed", lambda x: -x, "-x.", ">>> negative([1, -2]).tolist()\n[-1, 2]"),
    ("positive", "signed", lambda x: x, "x.", ">>> positive([1, -2]).tolist()\n[1, -2]"),
    ("abs", "number", _magnitude, "The absolute value.", ">>> abs([1, -2]).tolist()\n[1, 2]"),
    ("square", "signed", lambda x: x * x, "x * x.", ">>> square([3]).tolist()\n[9]"),
    ("sign", "signed", _sign, "1, 0 or -1, as x is above, at or below 0; NaN of NaN.",
     ">>> sign([5, -3]).tolist()\n[1, -1]"),
    ("hypot", "floating", _hypot, "The root of x * x + y * y, without overflow.",
     ">>> hypot([3.0], [4.0]).tolist()\n[5.0]"),
    ("logaddexp", "floating", _logaddexp, "log(exp(x) + exp(y)), without overflow.",
     ">>> logaddexp([0.0], [-800.0]).tolist()\n[0.0]"),
    ("copysign", "floating", lambda x, y: where(_signbit(y), -_magnitude(x), _magnitude(x)), "x with the sign of y.",
     ">>> copysign([3.0], [-0.0]).tolist()\n[-3.0]"),
]  # fmt: skip

_COMPARISONS: Final = [
    ("less", "number", _binary("less"), "x < y.", ">>> less([1, 3], 2).tolist()\n[True, False]"),
    ("less_equal", "number", _binary("less_equal"), "x <= y.", ">>> less_equal([1, 3], 3).tolist()\n[True, True]"),
    ("greater", "number", _binary("greater"), "x > y.", ">>> greater([1, 3], 2).tolist()\n[False, True]"),
    ("greater_equal", "number", _binary("greater_equal"), "x >= y.",
     ">>> greater_equal([1, 3], 3).tolist()\n[False, True]"),
    ("equal", "number", _binary("equal"), "x == y.", ">>> equal([1, 3], 3).tolist()\n[False, True]"),
    ("not_equal", "number", _binary("not_equal"), "x != y.", ">>> not_equal([1, 3], 3).tolist()\n[True, False]"),
    ("isnan", "number", lambda x: x != x, "Whether it is NaN.",
     ">>> isnan([0.0, float('nan')]).tolist()\n[False, True]"),
    ("logical_and", "number", lambda x, y: cast("bool", call("minimum", _truth(x), _truth(y))),
     "Whether neither is 0.", ">>> logical_and([True, True], [True, False]).tolist()\n[True, False]"),
    ("logical_or", "number", lambda x, y: cast("bool", call("maximum", _truth(x), _truth(y))),
     "Whether one is not 0.", ">>> logical_or([False, True], [False, False]).tolist()\n[False, True]"),
    ("logical_xor", "number", lambda x, y: _truth(x) != _truth(y), "Whether exactly one is not 0.",
     ">>> logical_xor([True, True], [True, False]).tolist()\n[False, True]"),
    ("logical_not", "number", lambda x: x == 0, "Whether it is 0.",
     ">>> logical_not([True, False]).tolist()\n[False, True]"),
    ("signbit", "floating", _signbit, "Whether it has a minus, as -0.0 has.",
     ">>> signbit([-0.0, 1.0]).tolist()\n[True, False]"),
]  # fmt: skip

_MATHEMATICS: Final = [
    ("exp", _unary("exp"), "e to the x.", ">>> exp([0.0]).tolist()\n[1.0]"),
    ("expm1", _unary("expm1"), "exp(x) - 1, exact near 0.", ">>> expm1([0.0]).tolist()\n[0.0]"),
    ("log", _unary("log"), "The natural logarithm.", ">>> log([1.0]).tolist()\n[0.0]"),
    ("log1p", _unary("log1p"), "log(1 + x), exact near 0.", ">>> log1p([0.0]).tolist()\n[0.0]"),
    ("sqrt", _unary("sqrt"), "The square root.", ">>> sqrt([9.0]).tolist()\n[3.0]"),
    ("rsqrt", _unary("rsqrt"), "1 / sqrt(x).", ">>> rsqrt([4.0]).tolist()\n[0.5]"),
    ("sin", _unary("sin"), "The sine.", ">>> sin([0.0]).tolist()\n[0.0]"),
    ("cos", _unary("cos"), "The cosine.", ">>> cos([0.0]).tolist()\n[1.0]"),
    ("tan", lambda x: call("sin", x) / call("cos", x), "The tangent.", ">>> tan([0.0]).tolist()\n[0.0]"),
    ("sinh", _sinh, "The hyperbolic sine.", ">>> sinh([0.0]).tolist()\n[0.0]"),
    ("cosh", _cosh, "The hyperbolic cosine.", ">>> cosh([0.0]).tolist()\n[1.0]"),
    ("tanh", _unary("tanh"), "The hyperbolic tangent.", ">>> tanh([0.0]).tolist()\n[0.0]"),
    ("asinh", _asinh, "The inverse of sinh.", ">>> asinh([0.0]).tolist()\n[0.0]"),
    ("acosh", _acosh, "The inverse of cosh.", ">>> acosh([1.0]).tolist()\n[0.0]"),
    ("atanh", lambda x: (call("log1p", x) - call("log1p", -x)) / 2, "The inverse of tanh.",
     ">>> atanh([0.0]).tolist()\n[0.0]"),
    ("erf", _unary("erf"), "The error function.", ">>> erf([0.0]).tolist()\n[0.0]"),
    ("erfc", _unary("erfc"), "1 - erf(x), exact for large x.", ">>> erfc([0.0]).tolist()\n[1.0]"),
    ("sigmoid", _unary("sigmoid"), "1 / (1 + exp(-x)).", ">>> sigmoid([0.0]).tolist()\n[0.5]"),
    ("relu", _unary("relu"), "The larger of x and 0.", ">>> relu([-1.0, 2.0]).tolist()\n[0.0, 2.0]"),
    ("gelu", _unary("gelu"), "x times the share of a normal distribution below x.",
     ">>> gelu([0.0]).tolist()\n[0.0]"),
    ("silu", _unary("silu"), "x * sigmoid(x).", ">>> silu([0.0]).tolist()\n[0.0]"),
    ("stop_gradient", _unary("stop_gradient"), "x, which gradients take for a constant.",
     ">>> stop_gradient([2.0]).tolist()\n[2.0]"),
]  # fmt: skip


def _arity(formula: Callable[..., Formula]) -> int:
    return len(inspect.signature(formula).parameters)


_ROWS: Final[list[tuple[Any, ...]]] = [
    *_ARITHMETIC,
    *_COMPARISONS,
    *((name, "floating", *rest) for name, *rest in _MATHEMATICS),
]
UNARY: Final[dict[str, Unary]] = {row[0]: Unary(*row) for row in _ROWS if _arity(row[2]) == 1}
BINARY: Final[dict[str, Binary]] = {row[0]: Binary(*row) for row in _ROWS if _arity(row[2]) == 2}
