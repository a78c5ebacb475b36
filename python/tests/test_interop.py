"""Other libraries, with our arrays."""

from __future__ import annotations

import copy
import pickle

import einops
import einops.array_api
import ml_dtypes
import numpy as np
import opt_einsum
import pytest
import xarray

import einrel as er

X = np.arange(24.0).reshape(2, 3, 4)


def test_numpy_functions_make_lazy_arrays() -> None:
    x = er.asarray(X)
    for ours, numpys in [
        (np.exp(x), np.exp(X)),
        (np.add(x, 1), X + 1),
        (np.sum(x, axis=0), X.sum(0)),
        (np.sum(x, 1), X.sum(1)),
        (np.add.reduce(x), X.sum(0)),
        (np.concatenate([x, X]), np.concatenate([X, X])),
        (np.transpose(x), X.T),
        (np.einsum("ijk->k", x), np.einsum("ijk->k", X)),
        (np.where(x > 3, x, 0), np.where(X > 3, X, 0)),
        (X + x, X + X),
        (np.float64(2) * x, 2 * X),
    ]:
        assert isinstance(ours, er.Array)
        np.testing.assert_allclose(np.asarray(ours), numpys)


def test_numpy_functions_that_we_have_not_take_elements() -> None:
    x = er.asarray(X)
    assert np.median(x) == np.median(X)
    np.testing.assert_array_equal(np.arctan(x), np.arctan(X))
    assert np.allclose(x, X)
    out = np.zeros_like(X)
    assert np.add(x, 1, out=out) is out
    np.testing.assert_array_equal(out, X + 1)


def test_asarray_of_an_array() -> None:
    x = er.asarray(X) + 0
    assert np.asarray(x) is not np.array(x)
    assert np.asarray(x, dtype="f4").dtype == np.float32
    assert np.array(x, copy=True).flags.writeable
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, dtype="f4", copy=False)


def test_dlpack_both_ways() -> None:
    ours = er.asarray(X) * 1
    back = np.from_dlpack(ours)
    np.testing.assert_array_equal(back, X)
    assert np.shares_memory(back, np.asarray(ours))
    assert np.shares_memory(np.asarray(er.from_dlpack(X)), X)
    assert not np.shares_memory(np.asarray(er.from_dlpack(X, copy=True)), X)


def test_torch_shares_memory() -> None:
    torch = pytest.importorskip("torch")
    ours = er.asarray(X) * 1
    there = torch.from_dlpack(ours)
    there[0, 0, 0] = 7
    assert np.asarray(ours)[0, 0, 0] == 7
    assert (er.from_dlpack(there) + 1)[0, 0, 0].item() == 8


def test_jax_takes_our_arrays() -> None:
    jax = pytest.importorskip("jax")
    there = jax.dlpack.from_dlpack(er.asarray(X.astype("f4")) * 1)
    np.testing.assert_array_equal(np.asarray(there), X.astype("f4"))
    np.testing.assert_array_equal(np.asarray(er.from_dlpack(there) + 1), X.astype("f4") + 1)


def test_opt_einsum(rng: np.random.Generator) -> None:
    a, b, c = rng.random((3, 4)), rng.random((4, 5)), rng.random((5, 2))
    np.testing.assert_allclose(opt_einsum.contract("ij,jk,kl->il", a, b, c, backend="einrel"), a @ b @ c)
    ours = opt_einsum.contract("ij,jk,kl->il", *map(er.asarray, (a, b, c)))
    assert isinstance(ours, er.Array)
    np.testing.assert_allclose(np.asarray(ours), a @ b @ c)


def test_cotengra(rng: np.random.Generator) -> None:
    cotengra = pytest.importorskip("cotengra")
    a, b, c = rng.random((3, 4)), rng.random((4, 5)), rng.random((5, 2))
    ours = cotengra.einsum("ij,jk,kl->il", *map(er.asarray, (a, b, c)))
    np.testing.assert_allclose(np.asarray(ours), a @ b @ c)


def test_einops() -> None:
    x = er.asarray(X)
    np.testing.assert_array_equal(
        np.asarray(einops.array_api.rearrange(x, "a b c -> (c a) b")), einops.rearrange(X, "a b c -> (c a) b")
    )
    np.testing.assert_allclose(
        np.asarray(einops.array_api.reduce(x, "a b c -> a c", "mean")), einops.reduce(X, "a b c -> a c", "mean")
    )
    np.testing.assert_array_equal(
        np.asarray(einops.array_api.repeat(x, "a b c -> a (b 2) c")), einops.repeat(X, "a b c -> a (b 2) c")
    )


def test_xarray() -> None:
    ours = xarray.DataArray(er.asarray(X), dims=("a", "b", "c"))
    numpys = xarray.DataArray(X, dims=("a", "b", "c"))
    result = (ours * 2 + 1).sum("b")
    assert isinstance(result.data, er.Array)
    np.testing.assert_allclose(np.asarray(result.data), (numpys * 2 + 1).sum("b").data)
    np.testing.assert_allclose(np.asarray(ours.isel(a=1).transpose("c", "b").data), X[1].T)


def test_pickle_and_copy() -> None:
    for x in (X, np.arange(3).astype(ml_dtypes.bfloat16)):
        ours = er.asarray(x)
        for again in (pickle.loads(pickle.dumps(ours + 0)), copy.copy(ours), copy.deepcopy(ours)):
            assert isinstance(again, er.Array)
            np.testing.assert_array_equal(np.asarray(again), x)
    program = pickle.loads(pickle.dumps(er.program("input A[i]\nZ[i] = A[i] + 1")))
    assert program.run(A=np.ones(2, "f4")).Z.tolist() == [2.0, 2.0]
