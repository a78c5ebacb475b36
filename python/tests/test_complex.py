"""Complex arrays, beside NumPy's and, for gradients, beside differences."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einrel as er

NDArray = np.ndarray[Any, np.dtype[Any]]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray:
    values = rng.standard_normal((2, *shape))
    whole = values[0] + 1j * values[1] if np.dtype(dtype).kind == "c" else 4 * values[0]
    return whole.astype(dtype)


# Functions of two arrays, some of which are real.
FUNCTIONS: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    "add": lambda np, x, y: x + y,
    "subtract": lambda np, x, y: x - y,
    "multiply": lambda np, x, y: x * y,
    "divide": lambda np, x, y: x / y,
    "matmul": lambda np, x, y: x @ y,
    "einsum": lambda np, x, y: np.einsum("ij,jk,ki->i", x, y, np.conj(x)),
    "outer": lambda np, x, y: np.einsum("ij,kl->ijkl", x, y),
    "conj": lambda np, x, y: np.conj(x) - y,
    "real": lambda np, x, y: np.real(x) * np.imag(y),
    "abs": lambda np, x, y: np.abs(x) + abs(x @ y),
    "exp": lambda np, x, y: np.exp(x / 4),
    "square": lambda np, x, y: np.square(x) + 1j,
    "sum": lambda np, x, y: np.sum(x * y, axis=1),
    "mean": lambda np, x, y: np.mean(x, axis=0) - np.mean(y),
    "where": lambda np, x, y: np.where(np.abs(x) > 1, x, y),
    "equal": lambda np, x, y: (x == np.conj(x)) | (y != y),
    "numbers": lambda np, x, y: (2 - 1j) * x + 3 - x / 1j,
    "tensordot": lambda np, x, y: np.tensordot(x, y, axes=1),
    "concatenate": lambda np, x, y: (np.concat if np is er else np.concatenate)([x, y], axis=1)[::2, 1:],
    "transpose": lambda np, x, y: x.T.reshape((1, 9)) * y.reshape((9, 1)),
    "take": lambda np, x, y: np.take(x, np.asarray([2, 0]), axis=1),
}  # fmt: skip

TYPES: Final = st.sampled_from(["complex64", "complex128", "float32", "float64", "int32", "bool"])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FUNCTIONS)), TYPES, TYPES, st.integers(0, 1000))
def test_functions_give_what_numpys_give(name: str, first: str, second: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = numbers(rng, (3, 3), first), numbers(rng, (3, 3), second)
    if x.dtype.kind == "b" or "c" not in x.dtype.kind + y.dtype.kind:
        x = x + 0j
    function = FUNCTIONS[name]
    if name == "divide":
        y[y == 0] = 1  # where the language says NaN, NumPy infinite
    if name == "subtract" and "b" in x.dtype.kind + y.dtype.kind:
        return
    wanted = np.asarray(function(np, x, y))
    result = function(er, er.asarray(x), er.asarray(y))
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    narrow = "complex64" in (first, second) or "float32" in (first, second)
    np.testing.assert_allclose(
        np.asarray(result), wanted, rtol=3e-5 if narrow else 1e-12, atol=3e-5 if narrow else 1e-12
    )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_arrays_come_and_go_without_a_copy(dtype: str) -> None:
    x = numbers(np.random.default_rng(1), (4, 5), dtype)
    a = er.asarray(x)
    assert (a.dtype, a.shape) == (x.dtype, x.shape)
    assert np.shares_memory(np.asarray(a), x)
    np.testing.assert_array_equal(np.asarray(er.asarray(x.T)), x.T)
    assert complex(er.sum(a)) == pytest.approx(complex(x.sum()), rel=1e-5)


def test_a_program_takes_and_gives_them() -> None:
    program = er.program(
        "input Z[i,j], W[j,k] : c64\nC[i,k] = sum[j] Z[i,j] * conj(W[j,k])\nsize[i] = sum[k] abs(C[i,k])\n"
        "output C, size\n"
    )
    rng = np.random.default_rng(2)
    z, w = numbers(rng, (3, 4), "complex64"), numbers(rng, (4, 2), "complex64")
    out = program.run(Z=z, W=w)
    assert np.asarray(out["C"]).dtype == np.complex64
    np.testing.assert_allclose(np.asarray(out["C"]), z @ w.conj(), rtol=1e-4)
    np.testing.assert_allclose(np.asarray(out["size"]), np.abs(z @ w.conj()).sum(1), rtol=1e-4)
    with pytest.raises(er.ProgramError, match="declared c64"):
        program.run(Z=z.real.copy(), W=w)


def test_files_hold_them(tmp_path: Path) -> None:
    x = numbers(np.random.default_rng(3), (3, 4), "complex128")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "turned.npy", np.asfortranarray(x))
    np.save(tmp_path / "big.npy", x.astype(">c8"))
    for name in ("x.npy", "turned.npy", "big.npy"):
        np.testing.assert_array_equal(np.asarray(er.from_file(str(tmp_path / name))), np.load(tmp_path / name))


def test_gradients_are_pytorchs() -> None:
    rng = np.random.default_rng(4)
    z, w = numbers(rng, (3,), "complex128"), numbers(rng, (3,), "complex128")

    def loss(z: Any) -> Any:
        return er.sum(er.abs(z * w) ** 2) + er.sum(er.real(er.exp(z) * w))

    a = er.asarray(z)
    gradient = np.asarray(er.grad(loss(a), a))
    step = 1e-6
    for i in range(3):
        for unit in (1, 1j):
            there, back = z.copy(), z.copy()
            there[i] += step * unit
            back[i] -= step * unit
            slope = (float(loss(er.asarray(there))) - float(loss(er.asarray(back)))) / (2 * step)
            part = gradient[i].real if unit == 1 else gradient[i].imag
            assert part == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda z: er.max(z), "no max of complex"),
        (lambda z: z < 1, "'<' has no meaning of complex"),
        (lambda z: er.tanh(z), "no tanh of complex"),
        (lambda z: er.linalg.inv(z), "no inverse of complex"),
        (lambda z: er.astype(z, "float32"), "no f32 of complex"),
    ],
)
def test_what_has_no_meaning_says_so(refused: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(er.ProgramError, match=words):
        np.asarray(refused(er.asarray(np.eye(2, dtype="complex64"))))
    with pytest.raises(NotImplementedError, match=r"whole numbers up to 64 .* einrel.exp\(y"):
        er.asarray([1j, 2]) ** 0.5


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("power", [0, 1, 2, 3, 7, -1, -3, 2.0, 64, 3 + 0j, np.int64(2), np.float32(4), True])
def test_whole_powers_are_numpys(power: Any, dtype: str) -> None:
    z = numbers(np.random.default_rng(7), (5,), dtype)
    expected = z**power
    for found in (er.asarray(z) ** power, er.jit(lambda z: z**power)(z), np.power(er.asarray(z), power)):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=3e-4 if expected.dtype == np.complex64 else 1e-12)
    if power in (0, 2, -3):
        assert complex(er.jit(lambda k: k**power)(0.5 - 1j)) == pytest.approx((0.5 - 1j) ** power)
        slope = er.grad(lambda z: er.sum(er.real(z**power)))(z.astype("complex128"))
        np.testing.assert_allclose(slope, np.conj(power * z.astype("complex128") ** (power - 1)), rtol=1e-10)


class Foreign:
    """An array of another library, whose types are not NumPy's."""

    dtype = "its own"

    def __init__(self, elements: NDArray) -> None:
        self._elements = elements

    def __dlpack__(self, **options: Any) -> Any:
        return self._elements.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._elements.__dlpack_device__()


def test_powers_of_lists_and_foreign_arrays() -> None:
    assert er.pow([1j, 2], 2).tolist() == [-1, 4]
    assert er.pow(Foreign(np.array([1j, 2])), 2).tolist() == [-1, 4]
    assert (er.asarray([2.0, 3.0]) ** Foreign(np.array([2.0, 1.0]))).tolist() == [4.0, 3.0]


def test_other_powers_are_refused_in_pythons_words() -> None:
    z = er.asarray([1j, 2.0])
    for call in (lambda: z**0.5, lambda: 2**z, lambda: z**z, lambda: z**65, lambda: z**1j):
        with pytest.raises(NotImplementedError, match="numpy.power takes our arrays") as said:
            call()
        assert "Z[i]" not in str(said.value)
    with pytest.raises(er.ProgramError, match=r"write it as a product: z \* z"):
        er.exp2(z)
    assert np.allclose(np.power(z, 0.5), np.asarray(z) ** 0.5)


@pytest.mark.parametrize("shape", [(3, 4), (7,), (1,), (2, 0), ()])
@pytest.mark.parametrize("name", ["prod", "var", "std", "any", "all", "count_nonzero", "round", "nanprod", "cumprod"])
def test_reductions_are_numpys(name: str, shape: tuple[int, ...]) -> None:
    z = numbers(np.random.default_rng(8), shape, "complex128")
    z = np.where(np.abs(z) < 0.4, 0, z)
    axes: list[Any] = [None, *range(len(shape))]
    for axis in [None] if name == "round" else axes:
        options = {} if name == "round" else {"axis": axis}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the mean of nothing
            expected = np.asarray(getattr(np, name)(z, **options))
        for found in (
            getattr(er, name)(er.asarray(z), **options),
            er.jit(functools.partial(getattr(er, name), **options))(z),
        ):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    if len(shape) == 2 and name in ("prod", "var"):
        ours = getattr(er, name)(z, axis=(0, 1), keepdims=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(ours, getattr(np, name)(z, axis=(0, 1), keepdims=True), rtol=1e-12)


def test_truths_of_complex_numbers_are_numpys() -> None:
    z = np.array([0, 1j, 2, 0j])
    w = np.array([0, 0, 1.5, 1])
    for name in ("logical_and", "logical_or", "logical_xor"):
        for a, b in ((z, w), (w, z), (z, z), (z, w > 1)):
            np.testing.assert_array_equal(getattr(er, name)(a, b), getattr(np, name)(a, b), strict=True)
    np.testing.assert_array_equal(er.where(er.asarray(z), 1, 2), np.where(z, 1, 2), strict=True)
    np.testing.assert_array_equal(er.asarray(z).astype(bool), z.astype(bool), strict=True)


def test_a_product_has_a_gradient() -> None:
    z = numbers(np.random.default_rng(9), (5,), "complex128")
    others = np.array([np.prod(np.delete(z, i)) for i in range(5)])
    np.testing.assert_allclose(er.grad(lambda z: er.real(er.prod(z)))(z), np.conj(others))
    np.testing.assert_allclose(er.vmap(er.prod)(np.stack([z, 2 * z])), [np.prod(z), np.prod(2 * z)])
