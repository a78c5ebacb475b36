"""Random numbers that are functions of keys: the same wherever and however they are computed.

A key is a whole number of 64 bits, in an array without dimensions. A key and a shape say the numbers: use each key
once, and make others of it by `split` and `fold_in`. The generator is that of the language's `uniform` and `normal`,
Philox 4x32-10 with the key as key and the position in row-major order as counter.

>>> import einrel as er
>>> first, second = er.random.split(er.random.key(7))
>>> er.random.uniform(first, (2,)).shape
(2,)
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._array import Array, Operand, node_of
from ._creation import arange, zeros
from ._dtypes import HALVES, DType, computed_as, float32, float64, int64
from ._einsum import einsum
from ._functions import astype, where
from ._indexing import take
from ._reductions import sum as sum_
from ._shapes import Shape, reshape, shape_of

__all__ = ["bernoulli", "fold_in", "key", "normal", "permutation", "randint", "split", "uniform"]

# What numbers are for: streams of the generator, so that keys that are split differ from numbers that are drawn.
_DRAWN: Final = 0
_SPLIT: Final = 1
_FOLDED: Final = 2

_DIGITS: Final = {HALVES[0]: 11, HALVES[1]: 8}  # binary ones, of halves


def key(seed: int | Array) -> Array:
    """The key of a whole number, of which 64 bits count.

    >>> key(-1).tolist() == key(2**64 - 1).tolist()
    True
    """
    if isinstance(seed, Array) and seed.dtype.kind == "i" and seed.shape == ():
        return astype(Array(seed._node), int64)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"a key is made of a whole number, not of {seed!r}")
    return Array(node_of(np.uint64(int(seed) % 2**64).astype(np.int64)))


def _key(given: Any) -> Array:
    if not isinstance(given, Array) or given.dtype != int64 or given.shape != ():
        told = f"an array of {given.dtype} and shape {given.shape}" if isinstance(given, Array) else repr(given)
        raise TypeError(
            f"{told} is no key: er.random.key(seed) makes one, and the elements of er.random.split are keys"
        )
    return given


def _bits(given: Any, positions: Array, stream: int) -> Array:
    """64 random bits at each position."""

    def half(which: int) -> str:
        return f"i64(floor({2**32} * f64(uniform_at(x, y, {which}, {stream}))))"

    return einsum(",i->i", _key(given), positions, join=f"({half(0)} - {2**31}) * {2**32} + {half(1)}")  # type: ignore[no-any-return]


def split(key: Array, num: int | tuple[int, ...] = 2) -> Array:
    """Further keys, that many: an array, whose elements are keys that have nothing to do with each other.

    >>> len({int(one) for one in split(key(0), 1000)})
    1000
    """
    shape = shape_of(num)
    return reshape(_bits(key, arange(math.prod(shape)), _SPLIT), shape)


def fold_in(key: Array, data: Operand) -> Array:
    """Another key for each whole number, as the number of a step.

    >>> fold_in(key(0), 1).tolist() != fold_in(key(0), 2).tolist()
    True
    """
    number = Array(node_of(data))
    if number.dtype.kind != "i" or number.shape != ():
        raise TypeError(f"one whole number is folded into a key, not {number.dtype} of shape {number.shape}")
    return reshape(_bits(key, reshape(astype(number, int64), (1,)), _FOLDED), ())


def _drawn(function: str, given: Any, shape: Any, dtype: npt.DTypeLike | None) -> tuple[Array, DType]:
    wanted = float64 if dtype is None else computed_as(np.dtype(dtype))
    if wanted.kind not in "fV":
        raise TypeError(f"random numbers of type {wanted}: they are of floating point")
    extents = shape_of(shape)
    count = math.prod(extents)
    if count == 0:
        return zeros(extents, dtype=wanted), wanted
    number = f"{function}_at(x, y, 0, {_DRAWN})"
    join = f"f64({number})" if wanted == float64 else f"f32({number})"
    return reshape(einsum(",i->i", _key(given), arange(count), join=join), extents), wanted


def uniform(
    key: Array, shape: Shape = (), dtype: npt.DTypeLike | None = None, minval: Operand = 0.0, maxval: Operand = 1.0
) -> Array:
    """Numbers from `minval` up to, but not including, `maxval`, but for rounding; float64 where no type is given.

    >>> (uniform(key(0), (100,)) < 1).all().tolist()
    True
    """
    drawn, wanted = _drawn("uniform", key, shape, dtype)
    if wanted in HALVES:  # without rounding up to 1
        steps = 2.0 ** _DIGITS[wanted]
        drawn = astype(astype(drawn * steps, int64), float32) / steps
    drawn = astype(drawn, wanted, copy=False)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)) and (minval, maxval) == (0, 1):
        return drawn
    low, high = (astype(bound, wanted, copy=False) for bound in (minval, maxval))
    return low + drawn * (high - low)


def normal(key: Array, shape: Shape = (), dtype: npt.DTypeLike | None = None) -> Array:
    """Numbers of mean 0 and deviation 1; float64 where no type is given.

    >>> normal(key(0), (2, 3)).shape
    (2, 3)
    """
    drawn, wanted = _drawn("normal", key, shape, dtype)
    return astype(drawn, wanted, copy=False)


def bernoulli(key: Array, p: Operand = 0.5, shape: Shape | None = None) -> Array:
    """True with probability p, which may be an array; its shape is that of p where none is given.

    >>> bernoulli(key(0), 1.0, (2,)).tolist()
    [True, True]
    """
    probability = Array(node_of(p))
    return uniform(key, probability.shape if shape is None else shape) < probability


def randint(key: Array, shape: Shape, minval: Operand, maxval: Operand, dtype: npt.DTypeLike = int64) -> Array:
    """Whole numbers from `minval` up to, but not including, `maxval`, which are less than 2^53 apart.

    >>> sorted({int(i) for i in randint(key(0), (100,), -1, 2)})
    [-1, 0, 1]
    """
    wanted = computed_as(np.dtype(dtype))
    if wanted.kind != "i":
        raise TypeError(f"random whole numbers of type {wanted}")
    if isinstance(minval, int) and isinstance(maxval, int) and not 0 < maxval - minval <= 2**53:
        raise ValueError(f"there are no random whole numbers from {minval} up to {maxval}: give 1 to 2^53 of them")
    low, high = (astype(Array(node_of(bound)), int64, copy=False) for bound in (minval, maxval))
    steps = astype(uniform(key, shape) * astype(high - low, float64), int64)
    return astype(low + steps, wanted, copy=False)


def _order(numbers: Array) -> Array:
    """The positions of these in ascending order."""
    if not numbers._node.is_traced:
        return Array(node_of(np.argsort(np.asarray(numbers), kind="stable").astype(np.int64)))
    at = arange(numbers.size)
    comes_before = (numbers[None] < numbers[:, None]) | ((numbers[None] == numbers[:, None]) & (at[None] < at[:, None]))
    rank = sum_(comes_before, axis=1)
    return sum_(where(at[:, None] == rank[None], at[None], 0), axis=1)


def permutation(key: Array, x: Operand, axis: int = 0) -> Array:
    """The array with its positions along an axis in a random order; of a whole number n, those of 0 up to n.

    In a function that is traced, each position is compared with each other one.

    >>> sorted(permutation(key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return _order(uniform(key, (int(x),)))
    array = Array(node_of(x))
    return take(array, _order(uniform(key, (array.shape[axis],))), axis=axis)
