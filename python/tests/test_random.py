"""Random numbers of keys, beside Philox 4x32-10 as it is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import einrel as er


def philox(counter: tuple[int, int, int, int], key: int) -> list[int]:
    """Four words of 32 bits: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"."""
    mask = 2**32 - 1
    x, k = list(counter), [key & mask, key >> 32 & mask]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ k[0], b & mask, (a >> 32) ^ x[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return x


def uniform(seed: int, position: int, stream: int = 0, iteration: int = 0) -> float:
    high, low, _, _ = philox((position & (2**32 - 1), position >> 32, iteration, stream), seed % 2**64)
    return ((high << 32 | low) >> 11) * 2.0**-53


SEEDS = [0, 7, -1, 2**40 + 3, 2**63, 2**64 - 5]


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_those_of_philox(seed: int) -> None:
    expected = np.array([uniform(seed, position) for position in range(6)])
    found = er.random.uniform(er.random.key(seed), (2, 3))
    np.testing.assert_array_equal(found, expected.reshape(2, 3))
    single = er.random.uniform(er.random.key(seed), 6, "float32")
    np.testing.assert_array_equal(single, (np.floor(expected * 2**24) / 2**24).astype("f4"))


@pytest.mark.parametrize("seed", SEEDS)
def test_keys_are_words_of_philox(seed: int) -> None:
    def word(position: int, iteration: int, stream: int) -> int:
        return philox((position & (2**32 - 1), position >> 32, iteration, stream), seed % 2**64)[0]

    def bits(position: int, stream: int) -> int:
        return ((word(position, 0, stream) - 2**31) << 32) + word(position, 1, stream)

    key = er.random.key(seed)
    assert er.random.split(key, 3).tolist() == [bits(position, 1) for position in range(3)]
    assert er.random.split(key, (2, 2)).tolist() == [[bits(0, 1), bits(1, 1)], [bits(2, 1), bits(3, 1)]]
    assert er.random.fold_in(key, 2**33 + 1).tolist() == bits(2**33 + 1, 2)


def test_a_seed_may_be_an_argument() -> None:
    drawn = er.jit(lambda seed: er.random.normal(er.random.key(seed), 3))
    for seed in (0, -7, 2**40):
        np.testing.assert_array_equal(drawn(seed), er.random.normal(er.random.key(seed), 3))
    np.testing.assert_array_equal(er.random.key(er.asarray(np.int32(5))), er.random.key(5))


def test_the_language_has_the_same_numbers() -> None:
    program = er.program("input K[] : i64\nU[i] = f64(uniform_at(K[], i, 0, 0))", dims={"i": 5})
    np.testing.assert_array_equal(program.run(K=np.int64(9)).U, er.random.uniform(er.random.key(9), 5))


DRAWN: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda key: er.random.uniform(key, (3, 4), minval=-2, maxval=2.5),
    "uniform between arrays": lambda key: er.random.uniform(key, (3, 4), "f4", np.zeros(4), np.arange(4.0)),
    "normal": lambda key: er.random.normal(key, (3, 4), er.bfloat16),
    "bernoulli": lambda key: er.random.bernoulli(key, np.array([0.2, 0.8]), (30, 2)),
    "randint": lambda key: er.random.randint(key, (3, 4), -5, 5, "int32"),
    "permutation": lambda key: er.random.permutation(key, 20),
    "permutation of columns": lambda key: er.random.permutation(key, np.arange(90).reshape(3, 30), axis=1),
    "split": lambda key: er.random.normal(er.random.split(key)[1], 3),
    "fold_in": lambda key: er.random.uniform(er.random.fold_in(key, 3)),
    "nothing": lambda key: er.random.uniform(key, (0, 2)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_are_the_same_however_they_are_computed(name: str) -> None:
    draw = DRAWN[name]
    keys = er.random.split(er.random.key(3), 4)
    eager = [draw(key) for key in keys]
    traced, planned = er.jit(draw), er.jit(draw, sites=3)
    together = er.vmap(draw)(keys)
    for key, one, other in zip(keys, eager, together):
        for found in (traced(key), planned(key), other):
            assert (found.dtype, found.shape) == (one.dtype, one.shape)
            np.testing.assert_array_equal(np.asarray(found).astype("f8"), np.asarray(one).astype("f8"))
    if eager[0].size:
        assert np.asarray(eager[0]).tolist() != np.asarray(eager[1]).tolist()


def test_distributions() -> None:
    key, n = er.random.key(11), 20000
    u = np.asarray(er.random.uniform(key, n))
    assert abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.005 and u.min() >= 0 and u.max() < 1
    z = np.asarray(er.random.normal(key, n))
    assert (
        abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.03 and abs((z**3).mean()) < 0.1 and abs((z**4).mean() - 3) < 0.2
    )
    assert abs(float(er.mean(er.random.bernoulli(key, 0.3, n))) - 0.3) < 0.015
    counts = np.bincount(np.asarray(er.random.randint(key, n, 3, 8)), minlength=8)
    assert counts[:3].sum() == 0 and (np.abs(counts[3:] - n / 5) < 5 * np.sqrt(n / 5)).all()
    places = np.stack([np.asarray(er.random.permutation(one, 5)) for one in er.random.split(key, 500)])
    assert (np.abs(np.stack([np.bincount(column, minlength=5) for column in places.T]) - 100) < 50).all()
    first, second = (np.asarray(er.random.normal(one, n)) for one in er.random.split(key))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_stay_below_one(dtype: str) -> None:
    drawn = np.asarray(er.random.uniform(er.random.key(0), 20000, getattr(er, dtype))).astype("f8")
    assert drawn.max() < 1 and abs(drawn.mean() - 0.5) < 0.02


def test_dropout_in_a_jitted_gradient() -> None:
    x, rate = np.random.default_rng(0).normal(size=(50, 8)), 0.25

    @er.jit
    def step(w: Any, key: Any, number: Any) -> Any:
        def loss(w: Any) -> Any:
            hidden = er.tanh(x @ w)
            keeps = er.random.bernoulli(er.random.fold_in(key, number), 1 - rate, hidden.shape)
            return er.sum(er.where(keeps, hidden / (1 - rate), 0.0) ** 2)

        return er.value_and_grad(loss)(w)

    w, key = np.ones((8, 3)), er.random.key(5)
    for number in range(3):
        keeps = np.asarray(er.random.bernoulli(er.random.fold_in(key, number), 1 - rate, (50, 3)))
        hidden = np.tanh(x @ w)
        value, slope = step(w, key, number)
        np.testing.assert_allclose(float(value), ((keeps * hidden / 0.75) ** 2).sum())
        np.testing.assert_allclose(slope, x.T @ (2 * keeps / 0.75**2 * hidden * (1 - hidden**2)), atol=1e-12)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a number": (lambda: er.random.uniform(7), TypeError, "7 is no key"),  # type: ignore[arg-type]
    "several keys": (lambda: er.random.normal(er.random.split(er.random.key(0))), TypeError, r"shape \(2,\) is no key"),
    "a float": (lambda: er.random.key(0.5), TypeError, "a whole number"),  # type: ignore[arg-type]
    "integers": (lambda: er.random.uniform(er.random.key(0), 2, int), TypeError, "of floating point"),
    "none": (lambda: er.random.randint(er.random.key(0), 2, 3, 3), ValueError, "from 3 up to 3"),
    "floats": (lambda: er.random.randint(er.random.key(0), 2, 0, 3, float), TypeError, "whole numbers of type"),
    "folded": (lambda: er.random.fold_in(er.random.key(0), 0.5), TypeError, "one whole number"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_key_or_type_says_so(name: str) -> None:
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()
