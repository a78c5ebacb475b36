"""Bits of integers, beside NumPy's: by its functions, and by arithmetic in functions that are traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import einrel as er

NAMES = ["bitwise_and", "bitwise_or", "bitwise_xor"]


def whole(dtype: str, seed: int) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(limits.min, limits.max, 100, dtype=dtype, endpoint=True)
    return np.concatenate([drawn, np.array([limits.min, limits.max, 0, -1, 1, 3], dtype)])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", NAMES)
def test_bits_are_numpys(name: str, dtype: str) -> None:
    function, numpys = getattr(er, name), getattr(np, name)
    x = whole(dtype, 0)
    masks: list[Any] = [0, 1, 3, 5, -1, -7, 2**31 - 1, np.int64(5), np.int32(-3), True, x[::-1].copy()]
    for mask in masks if dtype == "int32" else [*masks, 2**40, -(2**63), 2**63 - 1]:
        expected = numpys(x, mask)
        runs: list[Callable[[], Any]] = [
            lambda mask=mask: function(x, mask),
            lambda mask=mask: function(mask, er.asarray(x)),
            lambda mask=mask: er.jit(lambda x: function(x, mask))(x),
            lambda mask=mask: er.jit(lambda x: function(mask, x))(x),
            lambda mask=mask: er.jit(function)(x, mask),
            lambda mask=mask: numpys(er.asarray(x), mask),
        ]
        for run in runs:
            np.testing.assert_array_equal(run(), expected, strict=True)
    many = er.vmap(lambda a: function(a, 6))(x.reshape(2, -1))
    np.testing.assert_array_equal(many, numpys(x.reshape(2, -1), 6), strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_both_broadcast_and_are_promoted(name: str) -> None:
    function, numpys = getattr(er, name), getattr(np, name)
    x, y = whole("int32", 1)[:, None], whole("int64", 2)
    for run in (function, er.jit(function)):
        np.testing.assert_array_equal(run(x, y), numpys(x, y), strict=True)
        np.testing.assert_array_equal(run(x, y > 0), numpys(x, y > 0), strict=True)
        np.testing.assert_array_equal(run(x > 0, y > 0), numpys(x > 0, y > 0), strict=True)


def test_operators_and_loops() -> None:
    n = er.asarray(np.arange(8))
    assert (n & 3).tolist() == [0, 1, 2, 3] * 2 and (1 | n).tolist() == [1, 1, 3, 3, 5, 5, 7, 7]
    assert (n ^ 5).tolist() == [5, 4, 7, 6, 1, 0, 3, 2]
    assert er.jit(lambda n: er.sum(er.where(n & 1 == 0, 1, 0)))(np.arange(7)).tolist() == 4
    assert er.jit(lambda k: k & 6)(5).tolist() == 4
    parity = er.fori_loop(0, 10, lambda i, total: total ^ i, 0)
    assert parity.tolist() == np.bitwise_xor.reduce(np.arange(10))


def test_floats_have_no_bits() -> None:
    for call in (lambda: er.asarray([1.0]) & 1, lambda: er.asarray([1]) | 1.5, lambda: er.jit(er.bitwise_xor)(1, 0.5)):
        with pytest.raises(TypeError, match="integers and bools have bits"):
            call()
    with pytest.raises(OverflowError, match="out of bounds for int32"):
        er.asarray(np.array([1], "int32")) & 2**40
