"""Functions of elements that need more than a formula: parameters, or no computing for some types."""

from __future__ import annotations

import builtins
import math
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from ._array import Array, Operand, asarray, node_of
from ._changing import changes
from ._dtypes import BY_NAME, NAMES, DType, bool_, cast_allowed, computed_as, is_complex, is_floating, promoted
from ._elementwise import (
    BINARY,
    UNARY,
    Binary,
    Unary,
    _ceil,
    _floor,
    _round,
    _trunc,
    cast_definition,
    together,
)
from ._formula import Definition, Formula, apply, broadcast_element, call, cast, element, kept, label
from ._formula import where as where_
from ._native import Node, Type
from ._numbers import TracedNumber, check_exponent, is_number, whole
from ._reductions import refuse_out

_ROUNDING: Final = {
    "floor": Unary("floor", "floating", _floor, "The largest whole number up to x.", ""),
    "ceil": Unary("ceil", "floating", _ceil, "The smallest whole number from x on.", ""),
    "trunc": Unary("trunc", "floating", _trunc, "The whole number next to x on the side of 0.", ""),
    "round": Unary("round", "floating", _round, "The nearest whole number, the even one of two.", ""),
}
_FINITE: Final = Unary("isfinite", "floating", lambda x: call("abs", x) < float("inf"), "", "")
_INFINITE: Final = Unary("isinf", "floating", lambda x: call("abs", x) == float("inf"), "", "")
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


def round(x: Operand, /, decimals: int = 0, out: None = None) -> Array:
    """The nearest number of so many digits behind the point, the even one of two, of the type of x.

    >>> round([0.5, 1.5, 1.6]).tolist()
    [0.0, 2.0, 2.0]
    >>> round([1.25, 12.37], 1).tolist()
    [1.2, 12.4]
    """
    refuse_out(out)
    digits = whole("decimals", decimals)
    own = Array(node_of(x))
    if is_complex(own.dtype):
        return round(real(own), digits) + 1j * round(imag(own), digits)
    if digits == 0:
        return _rounded("round", own)
    if not is_floating(own.dtype):
        if digits > 0:
            return own
        raise NotImplementedError(f"einrel.round of integers to decimals={digits}; NumPy's takes our arrays")
    scale = 10.0 ** builtins.abs(digits)
    rounded = _rounded("round", own * scale if digits > 0 else own / scale)
    return rounded / scale if digits > 0 else rounded * scale


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


def _whole_where_near(x: Formula) -> Formula:
    """x, but the whole number that is some roundings away, where there is one."""
    distance = call("floor", x + 0.5) - x
    is_near = call("abs", distance) <= call("abs", x) * 2.0**-50
    return x + call("stop_gradient", where_(is_near, distance, 0.0))


_WHOLE_WHERE_NEAR: Final = Unary("logarithm", "floating", _whole_where_near, "", "")


def _logarithm(x: Operand, base: int) -> Array:
    """In f64, so that rounding to less hides what rounding there is."""
    node = node_of(x)
    dtype = BY_NAME[node.type.dtype]
    value = UNARY["log"](astype(Array(node), np.float64, copy=False)) / math.log(base)
    return astype(_WHOLE_WHERE_NEAR(value), dtype if is_floating(dtype) else np.float64, copy=False)


def log2(x: Operand, /) -> Array:
    """The logarithm to base 2, whole of powers of 2.

    >>> log2([8.0]).tolist()
    [3.0]
    """
    return _logarithm(x, 2)


def log10(x: Operand, /) -> Array:
    """The logarithm to base 10, whole of powers of 10.

    >>> log10([1000.0]).tolist()
    [3.0]
    """
    return _logarithm(x, 10)


@kept
def _power(exponent: float, type: Type) -> Definition:
    base = broadcast_element(0, type.shape, type.shape)
    if exponent == 0.5:  # as NumPy's
        value = call("sqrt", base)
    elif exponent == -1 and is_floating(BY_NAME[type.dtype]):
        value = 1 / base
    else:
        value = call("pow", base, exponent)
    return Definition.statement([type], value, list(type.shape), len(type.shape))


_POW: Final = Binary("pow", "signed", lambda x, y: call("pow", x, y), "", "")


_PLAIN: Final = 64  # up to that, whole and half exponents have kernels and derivatives of their own


def _to_number(node: Node, exponent: bool | int | float) -> Array | None:
    """An array to the power of a number, where that is a function of its own."""
    dtype = BY_NAME[node.type.dtype]
    if is_complex(dtype):
        return _power_of_complex(Array(node), exponent)
    if not is_floating(dtype) and isinstance(exponent, int):
        check_exponent(exponent, dtype)
    is_of_its_kind = is_floating(dtype) or isinstance(exponent, int)
    if isinstance(exponent, bool) or dtype == bool_ or math.isnan(exponent) or not is_of_its_kind:
        return None
    exponent = float(exponent) if is_floating(dtype) else np.asarray(exponent, dtype).item()
    is_plain = abs(exponent) <= _PLAIN and float(2 * exponent).is_integer()
    is_exact = dtype in (np.float32, np.float64)  # others would round the exponent
    if not is_plain and not node.is_traced and is_exact and changes(("pow", node.type), exponent):
        return _POW.of(Array(node), exponent)
    return Array(apply(_power(exponent, node.type), node))


def _is_of_complex(operand: Operand) -> bool:
    if isinstance(operand, Array) or not is_number(operand):
        return node_of(operand).type.dtype in _COMPLEX
    return isinstance(operand, complex)


_COMPLEX: Final = ("c64", "c128")


def _power_of_complex(x: Operand, y: Operand) -> Array:
    """A whole power, as products."""
    base, own = (Array(node) for node in together([x, y]))
    is_known = not isinstance(y, Array) and np.ndim(y) == 0
    exponent = complex(y) if is_known else 0.5
    if not (exponent.imag == 0 and exponent.real.is_integer() and builtins.abs(exponent.real) <= _PLAIN):
        raise NotImplementedError(
            f"einrel.pow of complex numbers is there for whole numbers up to {_PLAIN} as exponents; numpy.power takes "
            "our arrays, and einrel.exp(y * (einrel.log(einrel.abs(x)) + 1j * einrel.angle(x))) is x to the y"
        )
    square = astype(base, promoted(base.dtype, own.dtype), copy=False)
    power = Array(apply(_nothing(square._node.type), square._node)) + 1 if exponent == 0 else None
    for bit in f"{builtins.abs(int(exponent.real)):b}"[::-1]:
        if bit == "1":
            power = square if power is None else power * square
        square = square * square
    assert power is not None
    return 1 / power if exponent.real < 0 else power


def pow(x: Operand, y: Operand, /) -> Array:
    """x to the y. A negative number as the exponent of integers is an error; complex numbers have whole exponents.

    >>> pow([2, 3], 2).tolist()
    [4, 9]
    """
    powered = None
    if isinstance(x, (Array, np.ndarray)) and not isinstance(x, TracedNumber):
        node = node_of(x)
        if isinstance(y, np.generic) and y.dtype.kind in "iuf":  # a number with a type
            dtype = promoted(BY_NAME[node.type.dtype], computed_as(y.dtype))
            powered = _to_number(astype(Array(node), dtype, copy=False)._node, y.astype(dtype).item())
        elif isinstance(y, (bool, int, float)):
            powered = _to_number(node, y)
    if powered is not None:
        return powered
    if _is_of_complex(x) or _is_of_complex(y):
        return _power_of_complex(x, y)
    return _POW(x, _not_negative(x, y))


def _is_real(operand: Operand) -> bool:
    """Whether it is of floating point; also of whole numbers of any size, which are none."""
    if isinstance(operand, (bool, int, float)):
        return isinstance(operand, float)
    return is_floating(BY_NAME[node_of(operand).type.dtype])


def _not_negative(x: Operand, y: Operand) -> Operand:
    """Exponents, which are an error where they are integers below 0, and so is x."""
    if _is_real(x) or _is_real(y):
        return y
    exponent = node_of(y)
    if isinstance(y, TracedNumber):
        if not is_number(x):  # of numbers Python computes it
            y.course.exponent(y, BY_NAME[node_of(x).type.dtype])
        return y
    if exponent.is_computed and (Array(exponent)._elements() < 0).any():
        raise ValueError("a negative exponent of integers; cast them first")
    if exponent.is_computed or exponent.type.dtype == "bool":
        return y
    return Array(apply(_checked(exponent.type), exponent, _ONE_POSITION))


@kept
def _checked(type: Type) -> Definition:
    """x, or the error that a position is outside of 0 up to 0, where it is below 0."""
    own = broadcast_element(0, type.shape, type.shape)
    nothing = element(1, [cast("i64", own < 0)])
    return Definition.statement(
        [type, _ONE_POSITION.type], own + cast(type.dtype, nothing), list(type.shape), len(type.shape)
    )


_ONE_POSITION: Final = node_of(np.zeros(1, np.int32))


@kept
def _where(condition: Type, x: Type, y: Type) -> Definition:
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    values = [broadcast_element(i, type.shape, shape) for i, type in enumerate((condition, x, y))]
    common = NAMES[promoted(BY_NAME[x.dtype], BY_NAME[y.dtype])]
    of_common = [value if type.dtype == common else cast(common, value) for value, type in zip(values[1:], (x, y))]
    value = cast(common, where_(values[0], *of_common))
    return Definition.statement([condition, x, y], value, list(shape), len(shape))


def where(condition: Operand, x: Operand | None = None, y: Operand | None = None, /) -> Array:
    """x where the condition holds, else y.

    >>> where([True, False], [1, 2], [3, 4]).tolist()
    [1, 4]
    """
    if x is None or y is None:
        raise NotImplementedError(
            "einrel.where(condition) without x and y: the shape would depend on elements; numpy.where takes our arrays"
        )
    nodes = [node_of(condition), *together([x, y])]
    if nodes[0].type.dtype in _COMPLEX:
        nodes[0] = astype(Array(nodes[0]), bool_)._node
    return Array(apply(_where(*[node.type for node in nodes]), *nodes))


def clip(
    x: Operand,
    /,
    min: Operand | None = None,
    max: Operand | None = None,
    out: None = None,
    *,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
) -> Array:
    """x, but at least `min` and at most `max`, which NumPy calls a_min and a_max, too; of the type of all three.

    >>> clip([1, 5, 9], 2, 8).tolist()
    [2, 5, 8]
    """
    refuse_out(out)
    min, max = a_min if min is None else min, a_max if max is None else max
    own = Array(node_of(x))
    bounds: list[tuple[Operand, str]] = []
    if min is not None and not _is_beyond(min, own.dtype, "min"):
        bounds.append((min, "maximum"))
    if max is not None and not _is_beyond(max, own.dtype, "max"):
        bounds.append((max, "minimum"))
    nodes = together([own, *[bound for bound, _ in bounds]])
    clipped = astype(own, promoted(*[BY_NAME[node.type.dtype] for node in nodes]), copy=False)
    for node, (_, function) in zip(nodes[1:], bounds):
        clipped = BINARY[function](clipped, Array(node))
    return clipped


def _is_beyond(bound: Operand, dtype: DType, limit: str) -> bool:
    """Whether it is a number that elements of this type never come to: no bound for them."""
    if dtype.kind != "i" or not is_number(bound) or not isinstance(bound, int):
        return False
    last = int(getattr(np.iinfo(dtype), limit))
    return bound <= last if limit == "min" else bound >= last


def astype(
    x: Operand, dtype: npt.DTypeLike, /, *, copy: bool = True, casting: str = "unsafe", device: str | None = None
) -> Array:
    """The elements as another type: floats towards zero and saturating to integers, NaN as 0.

    With `copy`, they have memory of their own, even where the type is theirs already. Those that are there, in an array
    of NumPy's or computed, are then copied at once.

    >>> astype([1.9, -1.9], "int32").tolist()
    [1, -1]
    """
    node = node_of(x)
    wanted = NAMES[cast_allowed(BY_NAME[node.type.dtype], dtype, casting)]
    if node.type.dtype == wanted and not copy:
        return Array(node)
    if node.type.dtype == wanted and node.is_computed:
        return asarray(Array(node), copy=True)
    return Array(apply(cast_definition(wanted, node.type), node))


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


def _of_complex(function: str, x: Operand) -> Array:
    node = node_of(x)
    return Array(apply(_part(function, node.type), node)) if is_complex(BY_NAME[node.type.dtype]) else Array(node)


@kept
def _part(function: str, type: Type) -> Definition:
    value = call(function, element(0, [label(d) for d in range(len(type.shape))]))
    return Definition.statement([type], value, list(type.shape), len(type.shape))


def conj(x: Operand, /) -> Array:
    """The complex conjugate; of real numbers they themselves.

    >>> conj([1.0 + 2.0j]).tolist()
    [(1-2j)]
    """
    return _of_complex("conj", x)


def real(x: Operand, /) -> Array:
    """The real part; of real numbers they themselves.

    >>> real([1.0 + 2.0j]).tolist()
    [1.0]
    """
    return _of_complex("real", x)


def imag(x: Operand, /) -> Array:
    """The imaginary part; of real numbers 0.

    >>> imag([1.0 + 2.0j]).tolist()
    [2.0]
    """
    node = node_of(x)
    return _of_complex("imag", x) if is_complex(BY_NAME[node.type.dtype]) else Array(apply(_nothing(node.type), node))


@kept
def _nothing(type: Type) -> Definition:
    own = element(0, [label(d) for d in range(len(type.shape))])
    return Definition.statement(
        [type], cast(type.dtype, where_(own == own, Formula(0), 0)), list(type.shape), len(type.shape)
    )


class Unsupported:
    """A function of the standard that the language cannot say."""

    def __init__(self, name: str, instead: str = "") -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = "Not there: the language cannot say it."
        self._instead = instead or f"numpy.{name}"

    def __repr__(self) -> str:
        return f"<einrel.{self.__name__}, which the language cannot say>"

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(
            f"einrel.{self.__name__}: the language cannot say it; {self._instead} takes our arrays and computes it"
        )
