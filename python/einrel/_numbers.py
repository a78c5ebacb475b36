"""Numbers of Python's: what they become beside arrays, and in functions that are traced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import einrel as er

from ._array import Array
from ._dtypes import DType
from ._native import Node

_LARGEST: Final = 2**63
UNKNOWN_NUMBER: Final = (
    "a number that decides a shape or a slice is made of arguments of a function that is traced, whose values are not "
    "known yet: er.jit(..., static_argnums=...) or static_argnames= makes an argument part of the program"
)


def is_number(operand: object) -> bool:
    """Whether it is a number of Python's, whose type gives way to that of an array."""
    return isinstance(operand, (TracedNumber, bool, int, float, complex)) and not isinstance(operand, np.generic)


def is_whole(number: object) -> bool:
    """Whether it is one of Python's whole numbers that a traced function can take, in 64 bits."""
    return isinstance(number, int) and -_LARGEST <= number < _LARGEST


def constant(name: str, value: Any) -> Any:
    """A number of Python's that becomes a part of the program; also one that an array without dimensions has.

    >>> constant("eps", np.array(0.5))
    0.5
    """
    if isinstance(value, Array) and value._node.is_traced:
        raise TypeError(
            f"{name} is made of arguments of a function that is traced, whose elements are not known yet: give a "
            "number from outside the function"
        )
    if isinstance(value, (Array, np.ndarray)) and value.ndim == 0:
        return value.item()
    if isinstance(value, np.bool_):
        return bool(value)
    if not isinstance(value, (int, float, np.number)):
        raise TypeError(
            f"{name}={value!r} is no number: give one, such as float(...) makes of an array with one element"
        )
    return value


def whole(name: str, value: Any) -> int:
    """A whole number that becomes a part of the program.

    >>> whole("k", np.array(2))
    2
    """
    number = constant(name, value)
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={value!r} is no whole number") from None


def check_exponent(exponent: int, dtype: DType) -> None:
    """Raises where integers would be taken to a negative power."""
    if exponent < 0:
        raise ValueError(f"{dtype} to the power of {exponent}: a negative exponent of integers; cast them first")


class Course:
    """What a traced function makes of its numbers, as Python does: without bounds, where the program has 64 bits."""

    def __init__(self) -> None:
        self._arguments = 0
        self._steps: list[tuple[Callable[..., Any], list[Any]]] = []
        self._limits: list[tuple[int, DType]] = []
        self._exponents: list[tuple[int, DType]] = []

    def argument(self, node: Node) -> TracedNumber:
        """The next number among the arguments."""
        self._arguments += 1
        return TracedNumber(node, self, self._arguments - 1)

    def made(self, node: Node, function: Callable[..., Any], *operands: Any) -> TracedNumber:
        """The number that is a function of numbers."""
        self._steps.append((function, list(operands)))
        return TracedNumber(node, self, self._arguments + len(self._steps) - 1)

    def limit(self, number: TracedNumber, dtype: DType) -> None:
        """A whole number stands beside an array of integers, in whose type it has to fit."""
        self._limits.append((number.position, dtype))

    def exponent(self, number: TracedNumber, dtype: DType) -> None:
        """Integers of that type are taken to the power of a whole number, which must not be negative."""
        self._exponents.append((number.position, dtype))

    def check(self, given: Sequence[Any]) -> None:
        """Raises what Python or NumPy would, with these numbers as arguments."""
        numbers = list(given)
        for function, operands in self._steps:
            values = [numbers[it.position] if isinstance(it, TracedNumber) else it for it in operands]
            made = function(*values)
            if isinstance(made, int) and not is_whole(made):
                raise OverflowError(f"Python integer {made} out of bounds for int64, in a function that is traced")
            numbers.append(made)
        for position, dtype in self._limits:
            np.asarray(numbers[position], dtype)
        for position, dtype in self._exponents:
            check_exponent(numbers[position], dtype)


def _counted(number: Any) -> Any:
    """A truth value as the whole number that Python reckons it for."""
    return er.astype(number, np.int64) if isinstance(number, bool) or number_type(number) == np.bool_ else number


def number_type(number: Any) -> DType:
    """The type of a number by itself."""
    return number.dtype if isinstance(number, TracedNumber) else np.asarray(number).dtype


def _operator(name: str, of: Callable[..., Any], is_reflected: bool = False) -> Callable[..., Any]:
    method_of_arrays = getattr(Array, f"__{'r' * is_reflected}{of.__name__.strip('_')}__")
    counts = name not in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")

    def method(self: TracedNumber, other: Any) -> Any:
        if not is_number(other):
            return method_of_arrays(self, other)
        left, right = (other, self) if is_reflected else (self, other)
        operands = [_counted(left), _counted(right)] if counts else [left, right]
        return self.course.made(getattr(er, name)(*operands)._node, of, left, right)

    return method


def _unary(name: str, of: Callable[..., Any]) -> Callable[[TracedNumber], TracedNumber]:
    return lambda self: self.course.made(getattr(er, name)(_counted(self))._node, of, self)


def _pow(x: Any, y: Any) -> Any:
    """Python's, of whole numbers where both are."""
    power = x**y
    if isinstance(power, float) and isinstance(x, int) and isinstance(y, int):
        raise ValueError(f"{x} to the power of {y} in a function that is traced: write {float(x)}, or cast it first")
    if isinstance(power, complex) and not isinstance(x, complex) and not isinstance(y, complex):
        raise NotImplementedError(f"{x} to the power of {y} in a function that is traced is complex: give {x} + 0j")
    return power


class TracedNumber(Array):
    """A number of Python's in a function that is traced: beside an array it takes the array's type, as numbers do.

    What operators make of numbers is a number again. Python computes it, too, call by call: what does not fit into the
    types of the program is an error, as it is without tracing.
    """

    __slots__ = ("course", "position")

    def __init__(self, node: Node, course: Course, position: int) -> None:
        super().__init__(node)
        self.course = course
        self.position = position

    def __index__(self) -> int:
        raise TypeError(UNKNOWN_NUMBER)

    __add__ = _operator("add", operator.add)
    __radd__ = _operator("add", operator.add, True)
    __sub__ = _operator("subtract", operator.sub)
    __rsub__ = _operator("subtract", operator.sub, True)
    __mul__ = _operator("multiply", operator.mul)
    __rmul__ = _operator("multiply", operator.mul, True)
    __truediv__ = _operator("divide", operator.truediv)
    __rtruediv__ = _operator("divide", operator.truediv, True)
    __floordiv__ = _operator("floor_divide", operator.floordiv)
    __rfloordiv__ = _operator("floor_divide", operator.floordiv, True)
    __mod__ = _operator("remainder", operator.mod)
    __rmod__ = _operator("remainder", operator.mod, True)
    __pow__ = _operator("pow", _pow)
    __rpow__ = _operator("pow", _pow, True)
    __lt__ = _operator("less", operator.lt)
    __le__ = _operator("less_equal", operator.le)
    __gt__ = _operator("greater", operator.gt)
    __ge__ = _operator("greater_equal", operator.ge)
    __eq__ = _operator("equal", operator.eq)
    __ne__ = _operator("not_equal", operator.ne)
    __hash__ = None
    __neg__ = _unary("negative", operator.neg)
    __pos__ = _unary("positive", operator.pos)
    __abs__ = _unary("abs", operator.abs)
