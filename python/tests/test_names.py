"""Plans, pages and errors call arrays as the user's variables."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import einrel as er


def inputs_of(explanation: str) -> list[str]:
    """What inputs are called."""
    return [line.split("[")[0].split()[1] for line in explanation.splitlines() if line.startswith("  input ")]


def test_variables_name_arrays() -> None:
    features = np.ones((8, 4))
    weights = er.asarray(np.ones((4, 3)))
    hidden = er.relu(er.matmul(features, weights))
    result = hidden * 2
    for said in (result.explain(), er.explain(result, sites=2)):
        assert inputs_of(said)[:2] == ["features", "weights"]
        assert "hidden[i,k] = relu(" in said
        assert "outputs     result" in said
    assert "hidden" in result.html()


def test_names_are_those_where_an_array_is_seen_first() -> None:
    outer = er.asarray(np.ones(4))

    def within(inner: er.Array) -> str:
        doubled = inner * 2
        return doubled.explain()

    said = within(outer)
    assert inputs_of(said)[0] == "inner"
    assert "outputs     doubled" in said


def test_containers_and_objects_name_what_is_in_them() -> None:
    @dataclass
    class Layer:
        weights: er.Array
        bias: er.Array

    layer = Layer(er.asarray(np.ones((3, 2))), er.asarray(np.ones(2)))
    params = {"first": er.asarray(np.ones((4, 3))), "other one": er.asarray(np.ones(3))}
    stages = [er.asarray(np.ones((2, 4)))]
    made = (stages[0] @ params["first"] + params["other one"]) @ layer.weights + layer.bias
    assert inputs_of(made.explain()) == ["stages_0", "params_first", "x1", "layer_weights", "layer_bias"]


def test_names_that_the_language_has_no_room_for() -> None:
    sum = er.asarray(np.ones(4))
    x2 = er.asarray(np.arange(4.0))
    t1 = x2 + sum
    same = t1
    said = (same * 3 + x2 * er.asarray(np.full(4, 2.0))).explain()
    assert "x2" in inputs_of(said)
    assert len(set(inputs_of(said))) == len(inputs_of(said))
    assert "t1[i" in said or "same[i" in said


def test_arguments_name_inputs_of_traced_functions() -> None:
    @er.jit
    def layer(x: er.Array, params: dict[str, er.Array], *, rate: float) -> er.Array:
        return er.relu(x @ params["w"]) * rate + params["b"]

    params = {"w": np.ones((4, 3)), "b": np.ones(3)}
    said = layer.explain(np.ones((5, 4)), params, rate=0.5, sites=2, machine="laptop")
    assert sorted(inputs_of(said)) == ["params_b", "params_w", "rate", "x"]
    assert "on machine laptop" in said
    plan = layer.plan(np.ones((5, 4)), params, rate=0.5, sites=2)
    assert json.loads(plan)["sites"] == 2
    layer_by_plan = er.jit(layer.__wrapped__, plan=plan)
    np.testing.assert_allclose(np.asarray(layer_by_plan(np.ones((5, 4)), params, rate=0.5)), np.full((5, 3), 3.0))


def test_plans_do_not_depend_on_names() -> None:
    one = er.asarray(np.ones((8, 4))) @ np.ones((4, 2))
    plan = one.plan(sites=2)
    another = er.asarray(np.ones((8, 4))) @ np.ones((4, 2))
    np.testing.assert_array_equal(np.asarray(another.compute(plan=plan)), np.full((8, 2), 4.0))


def test_errors_name_variables_or_shapes() -> None:
    big = er.zeros((200_000, 200_000))
    square = big @ big
    with pytest.raises(er.RunError, match="computing 'square' needs .* of memory"):
        square.compute()
    with pytest.raises(er.RunError, match=r"computing an array of shape \(200000, 200000\) needs .* of memory"):
        (big @ big).compute()
