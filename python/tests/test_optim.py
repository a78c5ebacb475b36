"""Optimisers beside those of the language, and of PyTorch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import einrel as er

# Debian's torch was built for an older NumPy; it is given lists.
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")

X = np.random.default_rng(0).normal(size=(20, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.3
START = {"w": np.array([0.5, 0.5, 0.5]), "b": np.array(0.0)}
STEPS = 6


class Case(NamedTuple):
    """One optimiser, in the three libraries."""

    ours: Any
    languages: str
    pytorchs: Any


CASES = {
    "sgd": Case(er.optim.sgd(0.05), "sgd(0.05)", lambda p: torch.optim.SGD(p, 0.05)),
    "momentum": Case(
        er.optim.momentum(0.05, 0.8), "momentum(0.05, 0.8)", lambda p: torch.optim.SGD(p, 0.05, momentum=0.8)
    ),
    "nesterov": Case(
        er.optim.nesterov(0.05), "nesterov(0.05)", lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True)
    ),
    "adam": Case(er.optim.adam(0.1), "adam(0.1)", lambda p: torch.optim.Adam(p, 0.1)),
    "adam with numbers": Case(
        er.optim.adam(0.1, 0.8, 0.99, 1e-3),
        "adam(0.1, 0.8, 0.99, 0.001)",
        lambda p: torch.optim.Adam(p, 0.1, (0.8, 0.99), 1e-3),
    ),
    "adamw": Case(er.optim.adamw(0.1, 0.2), "adamw(0.1, 0.2)", lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.2)),
}


def loss(p: Any, dtype: str) -> Any:
    return er.mean((X.astype(dtype) @ p["w"] + p["b"] - Y.astype(dtype)) ** 2)


def ours(optimiser: Any, dtype: str, jitted: bool) -> dict[str, Any]:
    def step(p: Any, state: Any) -> Any:
        updates, state = optimiser.update(er.grad(loss)(p, dtype), state, p)
        return er.optim.apply_updates(p, updates), state

    run = er.jit(step) if jitted else step
    p: Any = {name: value.astype(dtype) for name, value in START.items()}
    state = optimiser.init(p)
    for _ in range(STEPS):
        p, state = run(p, state)
    assert int(state.done) == STEPS
    return dict(p)


def languages(optimiser: str, dtype: str) -> dict[str, Any]:
    program = er.program(
        f"input X[i,j] : {dtype}, Y[i] : {dtype}, w0[j] : {dtype}, b0[] : {dtype}\n"
        "state w[j] = w0[j]\nstate b[] = b0[]\n"
        "loss[] = mean[i] sq(sum[j] X[i,j] * w[j] + b[] - Y[i])\n"
        f"minimize loss over w, b by {optimiser}\noutput loss"
    )
    numpys = {"f64": "f8", "f32": "f4"}[dtype]
    given = {"X": X, "Y": Y, "w0": START["w"], "b0": START["b"]}
    result = program.run({name: value.astype(numpys) for name, value in given.items()}, steps=STEPS)
    return {name: er.Array(result.state.tensors[name]) for name in ("w", "b")}


def pytorchs(optimiser: Any) -> dict[str, Any]:
    p = {name: torch.tensor(value.tolist(), dtype=torch.float64, requires_grad=True) for name, value in START.items()}
    x, y = (torch.tensor(value.tolist(), dtype=torch.float64) for value in (X, Y))
    made = optimiser(list(p.values()))
    for _ in range(STEPS):
        made.zero_grad()
        ((x @ p["w"] + p["b"] - y) ** 2).mean().backward()
        made.step()
    return {name: np.array(value.tolist()) for name, value in p.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("jitted", [False, True])
def test_steps_are_those_of_the_language_and_of_pytorch(name: str, jitted: bool) -> None:
    case = CASES[name]
    found = ours(case.ours, "float64", jitted)
    for other in (languages(case.languages, "f64"), pytorchs(case.pytorchs)):
        for which in START:
            np.testing.assert_allclose(found[which], other[which], rtol=1e-11, atol=1e-12)
    single = ours(case.ours, "float32", jitted)
    for which, value in languages(case.languages, "f32").items():
        assert single[which].dtype == np.float32
        np.testing.assert_allclose(single[which], value, rtol=3e-5, atol=3e-6)


def test_a_rate_is_a_number_an_array_or_a_function_of_steps() -> None:
    w, slope = np.ones(2, "f4"), np.array([1.0, -2.0], "f4")

    def after(rate: Any, steps: int = 3) -> Any:
        optimiser = er.optim.sgd(rate)
        p, state = w, optimiser.init(w)
        for _ in range(steps):
            updates, state = optimiser.update(slope, state)
            p = er.optim.apply_updates(p, updates)
        assert p.dtype == np.float32  # type: ignore[attr-defined]
        return np.asarray(p)

    np.testing.assert_allclose(after(0.5), [-0.5, 4.0])
    np.testing.assert_allclose(after(er.asarray(0.5)), [-0.5, 4.0])
    np.testing.assert_allclose(after(lambda done: 1 / (1 + done)), w - slope * (1 + 1 / 2 + 1 / 3), rtol=1e-6)
    halving = er.jit(
        lambda rate: er.optim.apply_updates(w, er.optim.sgd(rate).update(slope, er.optim.sgd(rate).init(w))[0])
    )
    np.testing.assert_allclose(halving(0.25), w - slope / 4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_halves_keep_their_type(name: str, dtype: str) -> None:
    optimiser = CASES[name].ours
    w = er.ones(3, dtype=getattr(er, dtype))
    updates, state = optimiser.update(w * 0.5, optimiser.init(w), w)
    kinds = {leaf.dtype for leaf in (updates, *state.moments.values(), er.optim.apply_updates(w, updates))}
    assert kinds == {w.dtype}
    wide, _ = optimiser.update(np.full(3, 0.5), optimiser.init(np.ones(3)), np.ones(3))
    np.testing.assert_allclose(np.asarray(updates).astype("f8"), wide, rtol=0.02)


def test_parameters_in_any_container_train() -> None:
    class Net:
        def __init__(self) -> None:
            self.layers = [er.asarray(np.eye(3) * 0.5), er.asarray(np.full((3, 1), 0.1))]
            self.width = 3

    def predicted(net: Net, x: Any) -> Any:
        return (er.tanh(x @ net.layers[0]) @ net.layers[1])[:, 0]

    optimiser = er.optim.adam(0.05)

    @er.jit
    def step(net: Any, state: Any) -> Any:
        value, slopes = er.value_and_grad(lambda net: er.mean((predicted(net, X) - np.tanh(X[:, 0])) ** 2))(net)
        updates, state = optimiser.update(slopes, state, net)
        return value, er.optim.apply_updates(net, updates), state

    net = Net()
    state = optimiser.init(net)
    values = []
    for _ in range(200):
        value, net, state = step(net, state)
        values.append(float(value))
    assert isinstance(net, Net) and values[-1] < values[0] / 50


def test_mistakes_say_what_is_missing() -> None:
    w = {"w": np.ones(2)}
    adamw = er.optim.adamw(0.1)
    with pytest.raises(TypeError, match="needs the parameters"):
        adamw.update(w, adamw.init(w))
    with pytest.raises(ValueError, match=r"only one of them has an array at \['v'\]"):
        er.optim.apply_updates(w, {"w": np.ones(2), "v": np.ones(2)})
    with pytest.raises(TypeError, match="a parameter of type int64"):
        er.optim.adam(0.1).init({"w": np.arange(3)})
