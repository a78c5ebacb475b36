"""Errors are those that docstrings name, and lists of parameters are whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_documentation import public_functions

import einrel as er
from einrel import _parameters

X = np.arange(6.0).reshape(2, 3)
Z = np.array([1j, 2.0])
FLAT = np.array([[1.0, 2.0], [2.0, 4.0]])

# For each error that is named, a call that raises it.
CALLS: dict[str, dict[type[Exception], Callable[[], Any]]] = {
    "append": {ValueError: lambda: er.append(X, X.T, 0)},
    "broadcast_arrays": {ValueError: lambda: er.broadcast_arrays(X, X.T)},
    "broadcast_to": {ValueError: lambda: er.broadcast_to(X, (3, 2))},
    "checkpoint": {er.ProgramError: lambda: er.grad(er.checkpoint(lambda x: er.sum(x if x[0, 0] > 0 else -x)))(X)},
    "compute": {
        er.ProgramError: lambda: er.compute(er.asarray(X) + 1, planner="none"),
        er.RunError: lambda: er.compute(er.zeros((10**7, 10**7)) @ er.ones(10**7) + er.zeros((10**7, 10**7))),
        IndexError: lambda: er.compute(er.asarray(X)[er.asarray([5])]),
        np.linalg.LinAlgError: lambda: er.compute(er.linalg.inv(FLAT)),
    },
    "concat": {ValueError: lambda: er.concat([X, X.T])},
    "expand_dims": {np.exceptions.AxisError: lambda: er.expand_dims(X, 4)},
    "explain": {er.ProgramError: lambda: er.explain(er.asarray(X) + 1, planners=["none"])},
    "plan": {er.ProgramError: lambda: er.plan(er.asarray(X) + 1, planners=["none"])},
    "html": {er.ProgramError: lambda: er.html(er.asarray(X) + 1, planners=["none"])},
    "flip": {np.exceptions.AxisError: lambda: er.flip(X, 2)},
    "jit": {
        er.ProgramError: lambda: er.jit(lambda x: x if x[0, 0] > 0 else -x)(X),
        TypeError: lambda: er.jit(lambda x: er.zeros(()))({1, 2}),
    },
    "jvp": {TypeError: lambda: er.jvp(er.sin, X, X), ValueError: lambda: er.jvp(er.sin, (X,), (X.T,))},
    "vjp": {TypeError: lambda: er.vjp(er.sin, 1), ValueError: lambda: er.vjp(er.sin, X)[1](X.T)},
    "value_and_grad": {TypeError: lambda: er.value_and_grad(er.sin)(X)},
    "grad": {TypeError: lambda: er.grad(er.sin)(X)},
    "hessian": {TypeError: lambda: er.hessian(er.sum)(1), NotImplementedError: lambda: er.hessian(er.sum)(Z)},
    "load_program": {
        OSError: lambda: er.load_program("no such file"),
        er.ProgramError: lambda: er.load_program(__file__),
    },
    "matmul": {ValueError: lambda: er.matmul(X, X)},
    "tensordot": {ValueError: lambda: er.tensordot(X, X, 1)},
    "vecdot": {ValueError: lambda: er.vecdot(X, X.T)},
    "inner": {ValueError: lambda: er.inner(X, X.T)},
    "cross": {ValueError: lambda: er.cross(np.ones(4), np.ones(4))},
    "meshgrid": {ValueError: lambda: er.meshgrid([1], indexing="ji")},
    "moveaxis": {np.exceptions.AxisError: lambda: er.moveaxis(X, 0, 2)},
    "permute_dims": {ValueError: lambda: er.permute_dims(X, (0, 0))},
    "transpose": {ValueError: lambda: er.transpose(X, (0, 0))},
    "pow": {ValueError: lambda: er.pow([2], -1), NotImplementedError: lambda: er.pow(Z, 0.5)},
    "program_of": {er.ProgramError: lambda: er.program_of({"y": er.asarray(X) + er.asarray(X * 2)}, {})},
    "remainder": {NotImplementedError: lambda: er.remainder([True], [True])},
    "floor_divide": {NotImplementedError: lambda: er.floor_divide([True], [True])},
    "reshape": {ValueError: lambda: er.reshape(X, (4,))},
    "ravel": {ValueError: lambda: er.ravel(X, "Z")},
    "result_type": {NotImplementedError: lambda: er.result_type("M8[s]")},
    "rot90": {ValueError: lambda: er.rot90(X, 1, (1, 1))},
    "roll": {np.exceptions.AxisError: lambda: er.roll(X, 1, 2)},
    "squeeze": {ValueError: lambda: er.squeeze(X, 0)},
    "stack": {ValueError: lambda: er.stack([X, X.T])},
    "swapaxes": {np.exceptions.AxisError: lambda: er.swapaxes(X, 0, 2)},
    "tile": {ValueError: lambda: er.tile(X, -1)},
    "tril": {ValueError: lambda: er.tril(1.0)},
    "triu": {ValueError: lambda: er.triu(1.0)},
    "unstack": {np.exceptions.AxisError: lambda: er.unstack(X, 2)},
    "where": {ValueError: lambda: er.where(X > 1, X, X.T), NotImplementedError: lambda: er.where(X > 1)},
    "select": {ValueError: lambda: er.select([X > 1], [X, X])},
    "piecewise": {ValueError: lambda: er.piecewise(X, [X > 1], [1, 2, 3])},
    "diagonal": {ValueError: lambda: er.diagonal(X[0])},
    "hsplit": {ValueError: lambda: er.hsplit(X, 2)},
    "vsplit": {ValueError: lambda: er.vsplit(X, 3)},
    "dsplit": {ValueError: lambda: er.dsplit(X[None], 2)},
    "ldexp": {TypeError: lambda: er.ldexp(X, 0.5)},
    "nan_to_num": {NotImplementedError: lambda: er.nan_to_num(Z)},
    "cov": {ValueError: lambda: er.cov(Z)},
    "corrcoef": {ValueError: lambda: er.corrcoef(Z)},
    "inv": {np.linalg.LinAlgError: lambda: er.linalg.inv(X)},
    "solve": {np.linalg.LinAlgError: lambda: er.linalg.solve(FLAT, X[0, :2]).compute()},
    "matrix_power": {np.linalg.LinAlgError: lambda: er.linalg.matrix_power(FLAT, -1).compute()},
    "matrix_norm": {
        np.linalg.LinAlgError: lambda: er.linalg.matrix_norm(X[0]),
        NotImplementedError: lambda: er.linalg.matrix_norm(X, ord=2),
    },
    "qr": {np.linalg.LinAlgError: lambda: er.linalg.qr(X[0])},
    "vmap": {ValueError: lambda: er.vmap(er.add)(X, X.T)},
}


def test_all_errors_that_are_named_have_a_call() -> None:
    assert CALLS.keys() == _parameters._RAISES.keys()
    for name, calls in CALLS.items():
        words = _parameters._RAISES[name]
        assert all(error.__name__ in words for error in calls), name
        assert sum(word.strip(",;.").endswith("Error") for word in words.split()) == len(calls), name


@pytest.mark.parametrize("name", CALLS)
def test_errors_are_those_of_the_docstring(name: str) -> None:
    functions = [function for path, function in public_functions() if path.rpartition(".")[2] == name]
    assert functions and any(_parameters._RAISES[name].split()[0] in inspect.getdoc(one) for one in functions)  # type: ignore[operator]
    for error, call in CALLS[name].items():
        with pytest.raises(error):
            call()


def test_a_list_of_parameters_is_whole() -> None:
    lists = 0
    for name, function in public_functions():
        listed = (inspect.getdoc(function) or "").partition("\nParameters:\n")[2].partition(">>>")[0]
        if listed:
            lists += 1
            for parameter in inspect.signature(function).parameters:
                assert f"    {parameter}: " in listed, f"{name}({parameter})"
    assert lists > 200
    for function in (er.grad, er.jit, er.fori_loop, er.stack):
        assert "\nParameters:\n" in (inspect.getdoc(function) or "")
