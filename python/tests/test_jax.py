"""Functions and programs that JAX and PyTorch compute by einrel's plans, on the one device of this process."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
import torch

import einrel as er
from einrel._trees import flatten


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


def test_arrays_from_around_a_function_go_to_the_devices_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, shift = np.arange(12.0).reshape(4, 3), er.asarray(np.full(3, 0.5))
    function = er.jit(lambda x: er.tanh(x @ weights + shift) @ weights.T, backend="jax", sites=1)
    put: list[tuple[int, ...]] = []

    def counted(array: jax.Array, *where: object) -> jax.Array:
        put.append(array.shape)
        return device_put(array, *where)

    device_put = jax.device_put
    monkeypatch.setattr(jax, "device_put", counted)
    calls = [np.asarray(function(np.full((2, 4), float(i)))) for i in range(3)]
    assert sorted(put) == [(2, 4), (2, 4), (2, 4), (3,), (4, 3)]  # weights once, though they are read twice
    for i, found in enumerate(calls):
        np.testing.assert_allclose(found, np.tanh(np.full((2, 4), float(i)) @ weights + 0.5) @ weights.T)
    weights[:] = 0  # as of the first call, whether or not JAX shares memory with NumPy
    np.testing.assert_array_equal(np.asarray(function(np.full((2, 4), 2.0))), calls[2])


OF_ARGUMENTS: dict[str, Callable[..., Any]] = {
    "an argument is not read": lambda p, x, n: x + 1,
    "a leaf is not read": lambda p, x, n: p["a"] + x,
    "a number is not read": lambda p, x, n: p["a"] @ p["b"],
    "only a number is read": lambda p, x, n: er.ones(3) * n,
    "nothing is read": lambda p, x, n: er.ones(3),
    "an argument is the result": lambda p, x, n: p["b"],
    "one result twice": lambda p, x, n: [x * 2] * 2,
    "one argument is all results": lambda p, x, n: (x, {"again": x}),
    "an array from around twice": lambda p, x, n: (AROUND, x @ AROUND + AROUND),
    "a gradient that does not read all": lambda p, x, n: er.grad(lambda x, y: er.sum(x) + er.sum(y * y), 1)(x, p["a"]),
    "gradients and an array from around twice": lambda p, x, n: er.grad(lambda x: er.sum((x @ AROUND + AROUND) ** 2))(
        x
    ),
    "many results": lambda p, x, n: [x * i for i in range(12)],
}
AROUND = np.arange(9.0).reshape(3, 3) / 9


@pytest.mark.parametrize("name", OF_ARGUMENTS)
def test_functions_that_are_traced_are_computed_by_jax_whatever_they_read(name: str) -> None:
    x = np.arange(9.0).reshape(3, 3)
    arguments = {"a": x + 1, "b": x.T - 2}, x * 3, 2.5
    wanted: list[Any] = []
    form = flatten(er.jit(OF_ARGUMENTS[name])(*arguments), wanted)
    found: list[Any] = []
    # Containers are the same; arrays are those of JAX.
    assert flatten(er.jit(OF_ARGUMENTS[name], backend="jax", sites=1)(*arguments), found) == form
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)


def test_inputs_of_a_module_are_called_as_parameters() -> None:
    def function(x: Any, inputs: Any, result0: Any, jnp: Any, max: Any, t1: Any, *more: Any, **named: Any) -> er.Array:
        return (x["a"] + x["b"] * inputs) @ result0 + jnp * max - t1 * more[0] + more[1] * named["ü"]

    x = np.arange(9.0).reshape(3, 3)
    arguments = {"a": x, "b": x + 1}, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8
    jitted = er.jit(function, backend="jax", sites=1)
    np.testing.assert_allclose(np.asarray(jitted(*arguments, **{"ü": x + 9})), function(*arguments, **{"ü": x + 9}))
    source = jitted.source(*arguments, **{"ü": x})
    named = dict.fromkeys(re.findall(r'^    "(\w+)": \(', source.split("OUTPUTS")[0], re.MULTILINE))
    assert set(named) == {"x_a", "x_b", "inputs", "result0_2", "jnp", "max_1", "t1", "more", "more_2", "x"}


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


def test_inputs_that_nothing_reads_are_taken() -> None:
    program = er.program("dims i=4\ninput A[i], B[i], C[i]\nZ[i] = 2 * A[i]\noutput Z\n")
    arrays = {name: np.arange(4, dtype="f4") for name in "ABC"}
    module = er.to_jax(program, sites=1, placements={"B": {0: 1}})
    assert module.UNREAD == ("B", "C")
    assert module.step(module.make_mesh())(module.place(module.make_mesh(), arrays))["Z"].tolist() == [0, 2, 4, 6]
    module = er.to_torch(program, sites=2, placements={"B": {"i": 2}, "A": {"i": 2}})
    assert module.UNREAD == ("B", "C")
    with pytest.raises(er.ProgramError, match="the program has no input 'D'"):
        er.to_jax(program, sites=2, placements={"D": {0: 2}})


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
