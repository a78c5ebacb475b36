"""Functions and programs that JAX and PyTorch compute by einrel's plans, on the one device of this process."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest
import torch

import einrel as er


def test_a_function_gives_the_same_by_jax() -> None:
    def scaled(pair: dict[str, er.Array], factor: float) -> tuple[er.Array, list[er.Array]]:
        product = pair["a"] @ pair["b"]
        return product * factor, [product.sum(axis=0), pair["a"]]

    pair = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.ones((3, 4), "f4")}
    first, (second, third) = er.jit(scaled, backend="jax", sites=1)(pair, 2.5)
    wanted, (summed, same) = er.jit(scaled)(pair, 2.5)
    assert isinstance(first, jax.Array)
    np.testing.assert_allclose(np.asarray(first), np.asarray(wanted), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(second), np.asarray(summed), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(third), np.asarray(same))


def test_arrays_from_around_a_function_are_inputs_of_it() -> None:
    weights, shift = np.arange(4.0), er.asarray(np.full((3, 1), 0.5))
    function = er.jit(lambda x: (x * weights + shift) * np.float64(2), backend="jax", sites=1)
    for factor in (1.0, 3.0):
        x = factor * np.arange(12.0).reshape(3, 4)
        np.testing.assert_allclose(np.asarray(function(x)), (x * weights + 0.5) * 2)
    assert "INPUTS" in function.source(np.ones((3, 4)))


def test_results_are_arguments_again() -> None:
    step = er.jit(lambda x: x * 2 + 1, backend="jax", sites=1)
    x = step(step(np.ones(3, "f4")))
    assert np.asarray(x).tolist() == [7, 7, 7]


def test_gradients_are_part_of_it() -> None:
    slope = er.jit(er.grad(lambda x: (x**3).sum()), backend="jax", sites=1)
    np.testing.assert_allclose(np.asarray(slope(np.array([1.0, 2.0]))), [3, 12])


def test_a_program_is_a_module() -> None:
    program = er.program("dims i=4\ninput A[i]\nstate t[i] = 0\nnext t[i] = t[i] + A[i]\nZ[i] = 2 * t[i]\noutput Z\n")
    module = er.to_jax(program, sites=1)
    mesh = module.make_mesh()
    arrays = module.place(mesh, {"A": np.arange(4)}) | module.initial_states(mesh)
    step = module.step(mesh)
    for _ in range(3):
        arrays |= step(arrays)
    assert np.asarray(arrays["Z"]).tolist() == [0, 4, 8, 12]
    assert module.PREDICTED_BYTES == 0


def test_a_program_is_a_module_for_torch() -> None:
    program = er.program("dims i=4\ninput A[i]\nstate t[i] = 0\nnext t[i] = t[i] + A[i]\nZ[i] = 2 * t[i]\noutput Z\n")
    module = er.to_torch(program, sites=1)
    mesh = module.make_mesh("cpu")
    arrays = module.place(mesh, {"A": torch.arange(4)}) | module.initial_states(mesh)
    step = module.step(mesh)
    for _ in range(3):
        arrays |= step(arrays)
    assert module.whole(mesh, {"Z": arrays["Z"]})["Z"].tolist() == [0, 4, 8, 12]
    assert module.PREDICTED_BYTES == 0
    assert "import einrel" not in er.torch_source(program, sites=2)


def test_bf16_of_numpy_is_taken() -> None:
    module = er.to_jax(er.program("dims i=4\ninput A[i] : bf16\nZ[i] = A[i] * A[i]\noutput Z\n"), sites=1)
    mesh = module.make_mesh()
    a = np.array([0.5, -1.25, 3, np.inf], ml_dtypes.bfloat16)
    assert (a.dtype.kind, a.dtype.itemsize) == ("V", 2)  # by which modules for PyTorch know it
    assert module.step(mesh)(module.place(mesh, {"A": a}))["Z"].tolist() == [0.25, 1.5625, 9, np.inf]


def test_what_makes_no_program_is_refused() -> None:
    with pytest.raises(ValueError, match="by einrel or jax"):
        er.jit(lambda x: x, backend="torch")
    with pytest.raises(TypeError, match="the plan of a program"):
        er.to_jax(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the plan of a program"):
        er.torch_source(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(er.ProgramError, match="no complex numbers"):
        er.jax_source(er.program("dims i=2\ninput A[i] : c64\nZ[i] = A[i] * A[i]\n"))
