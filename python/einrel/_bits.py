"""Bits of integers, which the language has not: NumPy's functions, or arithmetic where elements are not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ._array import Array, Operand, node_of
from ._division import floor_divide, remainder
from ._dtypes import BY_NAME, NAMES, DType, bool_, int32, is_floating, promoted
from ._elementwise import BINARY, together
from ._formula import Definition, Formula, apply, broadcast_element, call, cast, element, kept, label
from ._functions import astype
from ._native import Node, Type
from ._numbers import is_whole

_LOGICAL: Final = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}
_OF_BITS: Final[dict[str, Callable[[Formula, Formula], Formula]]] = {
    "bitwise_and": lambda x, y: x * y,
    "bitwise_or": lambda x, y: x + y - x * y,
    "bitwise_xor": lambda x, y: x + y - 2 * x * y,
}
_LOW: Final = 31  # bits of the lower part of an int64: both parts are exact in f64


def _bit(x: Formula, weight: Formula) -> Formula:
    """Of a whole number, that of this weight, in two's complement."""
    return call("floor", x / weight) - 2 * call("floor", x / (2 * weight))


@kept
def _of_bits(name: str, result: str, x: Type, y: Type, weights: Type) -> Definition:
    shape = np.broadcast_shapes(x.shape, y.shape)
    which = len(shape)
    weight = element(2, [label(which)])
    bits = [
        _bit(cast("f64", broadcast_element(i, type.shape, shape)), call("abs", weight)) for i, type in enumerate((x, y))
    ]
    value = cast(result, call("sum", weight * _OF_BITS[name](*bits), over=[which]))
    return Definition.statement([x, y, weights], value, [*shape, *weights.shape], which)


def _of(name: str, x: Array, y: Array, bits: int, is_signed: bool) -> Array:
    """Of so many bits, the highest of which says the sign."""
    weights = 2.0 ** np.arange(bits)
    weights[-1] *= -1 if is_signed else 1
    nodes = [x._node, y._node, node_of(weights)]
    return Array(apply(_of_bits(name, NAMES[x.dtype], *[node.type for node in nodes]), *nodes))


def _by_arithmetic(name: str, x: Array, y: Array) -> Array:
    if x.dtype == int32:
        return _of(name, x, y, 32, True)
    high = _of(name, floor_divide(x, 2**_LOW), floor_divide(y, 2**_LOW), 64 - _LOW, True)
    low = _of(name, remainder(x, 2**_LOW), remainder(y, 2**_LOW), _LOW, False)
    return BINARY["add"](BINARY["multiply"](high, 2**_LOW), low)


def _masked(x: Array, mask: int) -> Array:
    """The bits of x that a mask of the lower part has."""
    low = x if x.dtype == int32 else remainder(x, 2**_LOW)
    return _of("bitwise_and", low, Array(node_of(np.asarray(mask, x.dtype))), max(mask.bit_length(), 1), False)


def _common(name: str, nodes: list[Node]) -> DType:
    common = promoted(*[BY_NAME[node.type.dtype] for node in nodes])
    if is_floating(common):
        raise TypeError(f"{name} of {' and '.join(node.type.dtype for node in nodes)}: integers and bools have bits")
    return common


def _bitwise(name: str, x: Operand, y: Operand) -> Array:
    nodes = together([x, y])
    common = _common(name, nodes)
    if common == bool_:
        return BINARY[_LOGICAL[name]](*[Array(node) for node in nodes])
    arrays = [astype(Array(node), common, copy=False) for node in nodes]
    if not any(node.is_traced for node in nodes):
        function: Any = getattr(np, name)
        return Array(node_of(np.asarray(function(*[array._elements() for array in arrays]))))
    for mask, other in ((x, arrays[1]), (y, arrays[0])):
        if name == "bitwise_and" and is_whole(mask) and 0 <= mask < 2**_LOW:
            return _masked(other, int(mask))
    return _by_arithmetic(name, *arrays)


def bitwise_and(x: Operand, y: Operand, /) -> Array:
    """The bits that both have; of bools whether both hold.

    Here and below integers are computed at once, by NumPy. In a function that is traced they are computed by
    arithmetic, which takes as many steps as there are bits: 64, or those of a mask that is a number. TypeError for
    floats.

    >>> bitwise_and([5, -1], 3).tolist()
    [1, 3]
    """
    return _bitwise("bitwise_and", x, y)


def bitwise_or(x: Operand, y: Operand, /) -> Array:
    """The bits that one has; of bools whether one holds.

    >>> bitwise_or([5, -1], 3).tolist()
    [7, -1]
    """
    return _bitwise("bitwise_or", x, y)


def bitwise_xor(x: Operand, y: Operand, /) -> Array:
    """The bits that exactly one has; of bools whether exactly one holds.

    >>> bitwise_xor([5, -1], 3).tolist()
    [6, -4]
    """
    return _bitwise("bitwise_xor", x, y)
