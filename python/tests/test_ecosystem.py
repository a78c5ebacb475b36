"""The libraries that people use NumPy with, each with einrel's arrays in place of NumPy's.

A library that is missing is a failure: python/requirements-test.txt has them all.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import autoray
import cotengra
import einops
import einops.array_api
import jax
import ml_dtypes
import numpy as np
import opt_einsum
import pytest
import torch
import xarray

import einrel as er

# Debian's torch was built for an older NumPy; DLPack needs none.
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")

NDArray = np.ndarray[Any, np.dtype[Any]]

# Contractions as papers write them: chains, outer products, hyperedges, traces, batches, scalars.
EQUATIONS = [
    "ij,jk,kl->il",
    "ij,jk,kl,lm->im",
    "ab,cd->abcd",
    "ai,bi,ci->abc",
    "bij,bjk->bik",
    "ii,ij->j",
    "ij,ij->",
    "abc,bd,ce,de->a",
    ",ij->ij",
]


def operands_of(equation: str, rng: np.random.Generator) -> list[NDArray]:
    extents = {letter: 2 + i % 3 for i, letter in enumerate(sorted(set(equation) & set("abcdeijklm")))}
    return [
        rng.standard_normal([extents[letter] for letter in term])
        for term in equation.split("->", maxsplit=1)[0].split(",")
    ]


@pytest.fixture
def x() -> NDArray:
    return np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_opt_einsum_contracts_arrays_of_numpy(equation: str, rng: np.random.Generator) -> None:
    operands = operands_of(equation, rng)
    result = opt_einsum.contract(equation, *operands, backend="einrel")
    np.testing.assert_allclose(np.asarray(result), np.einsum(equation, *operands), rtol=1e-12)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_opt_einsum_contracts_lazy_arrays(equation: str, rng: np.random.Generator) -> None:
    operands = operands_of(equation, rng)
    result = opt_einsum.contract(equation, *map(er.asarray, operands))
    assert isinstance(result, er.Array)
    np.testing.assert_allclose(np.asarray(result), np.einsum(equation, *operands), rtol=1e-12)


def test_an_expression_of_opt_einsum_is_made_once(rng: np.random.Generator) -> None:
    equation = "ij,jk,kl->il"
    contract = opt_einsum.contract_expression(equation, (3, 4), (4, 5), (5, 2))
    for _ in range(3):
        operands = [rng.standard_normal(shape) for shape in ((3, 4), (4, 5), (5, 2))]
        result = contract(*operands, backend="einrel")
        np.testing.assert_allclose(np.asarray(result), np.einsum(equation, *operands), rtol=1e-12)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_cotengra_contracts_lazy_arrays(equation: str, rng: np.random.Generator) -> None:
    operands = operands_of(equation, rng)
    result = cotengra.einsum(equation, *map(er.asarray, operands))
    assert isinstance(result, er.Array)
    np.testing.assert_allclose(np.asarray(result), np.einsum(equation, *operands), rtol=1e-12)


def test_cotengra_contracts_a_network_in_slices() -> None:
    inputs, output, _, sizes = cotengra.utils.lattice_equation([4, 4], d_min=2, d_max=2)
    arrays = cotengra.utils.make_arrays_from_inputs(inputs, sizes, seed=1)
    tree = cotengra.array_contract_tree(inputs, output, sizes, optimize="greedy").slice(target_slices=4)
    assert tree.nslices == 4
    np.testing.assert_allclose(float(tree.contract([er.asarray(a) for a in arrays])), tree.contract(arrays), rtol=1e-10)


def test_autoray_finds_our_functions(x: NDArray) -> None:
    ours = er.asarray(x)
    assert autoray.infer_backend(ours) == "einrel"
    for function, arguments in [
        ("einsum", ("ijk->ki", ours)),
        ("tensordot", (ours, ours, ([0, 1, 2], [0, 1, 2]))),
        ("transpose", (ours, (2, 0, 1))),
        ("reshape", (ours, (6, 4))),
        ("exp", (ours,)),
    ]:
        result = autoray.do(function, *arguments)
        assert isinstance(result, er.Array)
        plain = [np.asarray(argument) if isinstance(argument, er.Array) else argument for argument in arguments]
        np.testing.assert_allclose(np.asarray(result), getattr(np, function)(*plain))


@pytest.mark.parametrize(
    "pattern", ["a b c -> c b a", "a b c -> (a b) c", "a b (c d) -> a d (b c)", "a b c -> a 1 b c"]
)
def test_einops_rearranges(pattern: str, x: NDArray) -> None:
    sizes = {"d": 2} if "(c d)" in pattern else {}
    result = einops.array_api.rearrange(er.asarray(x), pattern, **sizes)
    assert isinstance(result, er.Array)
    np.testing.assert_array_equal(np.asarray(result), einops.rearrange(x, pattern, **sizes))


@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod"])
def test_einops_reduces(reduction: str, x: NDArray) -> None:
    result = einops.array_api.reduce(er.asarray(x), "a b (c d) -> b d", reduction, d=2)
    np.testing.assert_allclose(np.asarray(result), einops.reduce(x, "a b (c d) -> b d", reduction, d=2))


def test_einops_repeats_packs_and_unpacks(x: NDArray) -> None:
    ours = er.asarray(x)
    repeated = einops.array_api.repeat(ours, "a b c -> (a 2) b c d", d=3)
    np.testing.assert_array_equal(np.asarray(repeated), einops.repeat(x, "a b c -> (a 2) b c d", d=3))
    packed, shapes = einops.array_api.pack([ours, ours[:, 0]], "a * c")
    expected, _ = einops.pack([x, x[:, 0]], "a * c")
    np.testing.assert_array_equal(np.asarray(packed), expected)
    first, second = einops.array_api.unpack(packed, shapes, "a * c")
    np.testing.assert_array_equal(np.asarray(first), x)
    np.testing.assert_array_equal(np.asarray(second), x[:, 0])


def test_xarray_computes_lazily(x: NDArray) -> None:
    ours = xarray.DataArray(er.asarray(x), dims=("a", "b", "c"), coords={"c": [1, 2, 3, 4]})
    numpys = xarray.DataArray(x, dims=("a", "b", "c"), coords={"c": [1, 2, 3, 4]})
    for name, function in {
        "arithmetic": lambda d: d * 2 + 1,
        "broadcast": lambda d: d - d.mean("c"),
        "sum": lambda d: d.sum("b"),
        "max": lambda d: d.max(("a", "c"), skipna=False),
        "transpose": lambda d: d.transpose("c", "b", "a"),
        "isel": lambda d: d.isel(a=1, c=slice(None, None, 2)),
        "sel": lambda d: d.sel(c=3),
        "where": lambda d: d.where(d > 5, 0.0),
        "ufunc": np.exp,
    }.items():
        result = function(ours)
        assert isinstance(result.data, er.Array), name
        expected = function(numpys)
        assert result.dims == expected.dims, name
        np.testing.assert_allclose(np.asarray(result.data), expected.data, err_msg=name)


def test_xarray_of_several_variables(x: NDArray) -> None:
    data = xarray.Dataset({"u": (("a", "b", "c"), er.asarray(x)), "v": (("c",), er.asarray(x[0, 0]))})
    result = (data.u * data.v).sum("c")
    np.testing.assert_allclose(np.asarray(result.data), x @ x[0, 0])
    assert "einrel" in repr(data.u) or "Array" in repr(data.u)


def test_asarray_of_every_dtype() -> None:
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.bool_):
        own = np.arange(6).astype(dtype).reshape(2, 3)
        result = np.asarray(er.asarray(own).T)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, own.T)
    assert np.asarray(er.asarray(np.arange(3)), dtype=np.float32).dtype == np.float32
    assert np.array([er.asarray(np.float32(1)), er.asarray(np.float32(2))]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_torch_shares_our_elements(dtype: str) -> None:
    ours = er.asarray(np.arange(6).reshape(2, 3).astype(dtype)) + 0
    theirs = torch.from_dlpack(ours)
    assert theirs.tolist() == ours.tolist()
    assert theirs.data_ptr() == np.asarray(ours).ctypes.data


def test_we_share_torchs_elements() -> None:
    theirs = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    ours = er.from_dlpack(theirs)
    assert np.asarray(ours).ctypes.data == theirs.data_ptr()
    assert er.sum(ours).item() == 15
    for strided in (theirs.T, theirs[:, ::2], theirs[0], theirs[:0]):
        assert (er.from_dlpack(strided) + 1).tolist() == (strided + 1).tolist()


def test_torchs_tensors_are_operands() -> None:
    x, w = torch.ones(2, 3), torch.ones(3, 2)
    for product in (er.matmul(x, w), er.einsum("ij,jk->ik", x, w), er.asarray(x) @ er.asarray(w)):
        assert product.tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
def test_jax_takes_our_elements(dtype: str) -> None:
    own = np.arange(6).reshape(2, 3).astype(dtype)
    theirs = jax.dlpack.from_dlpack(er.asarray(own)[::-1])
    np.testing.assert_array_equal(np.asarray(theirs), own[::-1])
    np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(er.asarray(own))), own)


def test_we_take_jaxs_elements() -> None:
    theirs = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
    ours = er.from_dlpack(theirs)
    assert (ours * 2).tolist() == (theirs * 2).tolist()
    assert er.asarray(theirs).tolist() == theirs.tolist()


def test_jax_gives_bfloat16() -> None:
    theirs = jax.numpy.arange(6, dtype="bfloat16")
    assert (er.asarray(np.asarray(theirs)) + 1).tolist() == [1, 2, 3, 4, 5, 6]


def test_array_api_compat_knows_our_namespace(x: NDArray) -> None:
    ours = er.asarray(x)
    namespace = array_api_compat.array_namespace(ours)
    assert namespace is er
    assert array_api_compat.device(ours) == "cpu"
    assert array_api_compat.size(ours) == 24
    # What a library does that is written for every array library.
    centred = ours - namespace.mean(ours, axis=-1, keepdims=True)
    expected = x - x.mean(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(centred / namespace.std(ours)), expected / x.std())
