"""Plans, pages and errors call arrays as the user's variables."""

from __future__ import annotations

import inspect
import json
import re
import time
from dataclasses import dataclass

import numpy as np
import pytest

import einrel as er
from einrel import _names


def inputs_of(explanation: str) -> list[str]:
    """What inputs are called."""
    return [line.split("[")[0].split()[1] for line in explanation.splitlines() if line.startswith("  input ")]


def line_name(before: int) -> str:
    """What an array is called that was made so many lines before the call of this."""
    return f"test_names_{inspect.stack()[1].lineno - before}"


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
    inputs = inputs_of(made.explain())
    assert inputs == ["stages_0", "params_first", line_name(4), "layer_weights", "layer_bias"]


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


def test_lines_name_what_has_no_variable() -> None:
    first, second = er.asarray(np.ones((8, 4))), np.ones((4, 4))
    result = er.softmax(first @ second, axis=1) @ second
    said = result.explain(sites=2)
    assert re.search(rf"  {line_name(2)}\[i,\w+\] = sum\[\w+\] first\[.*second\[", said)
    assert "(line" not in said
    assert not re.search(r"\b[tx][0-9]+\b", said), said
    slope = er.grad(lambda w: er.sum(er.tanh(first @ w)))(second)
    assert not re.search(r"\b[tx][0-9]+\b", slope.explain())
    traced = er.jit(lambda x: er.softmax(x @ x) * 2).explain(second)
    assert f"{line_name(1)}[" in traced and not re.search(r"\b[tx][0-9]+\b", traced)


def test_many_arrays_of_a_line() -> None:
    """Their names are that of the line and a number, which is found without asking for all before it."""
    x = er.asarray(np.ones(2))
    for _ in range(6000):
        x = er.sin(x)
    started = time.process_time()
    names = [name for name, _ in _names.with_lines([x._node], [])]
    assert time.process_time() - started < 2.5
    assert len(set(names)) == len(names) >= 6000
    assert re.fullmatch(r"test_names_[0-9]+_6000", names[-1])


def test_explanations_plans_and_pages_say_the_same_names() -> None:
    features, weights = np.ones((8, 4)), np.ones((4, 3))
    result = er.relu(features @ er.asarray(weights)) * 3
    plan = json.loads(result.plan(sites=2))
    names = [vertex["name"] for vertex in plan["vertices"]]
    assert {"features", "weights"} <= set(plan["inputs"]) and "result" in names
    said, page = result.explain(sites=2), result.html(sites=2)
    assert all(f"  {name}[" in said or f" {name}[" in said for name in names)
    assert all(name in page for name in names)


def test_a_plan_holds_for_arrays_of_other_names() -> None:
    features, weights = np.ones((8, 4)), np.ones((4, 3))
    plan = (er.relu(features @ er.asarray(weights)) * 3).plan(sites=2)

    def elsewhere(x: np.ndarray, w: er.Array) -> er.Array:
        hidden = er.relu(x @ w)
        return hidden * 3

    np.testing.assert_array_equal(elsewhere(features, er.asarray(weights)).compute(plan=plan), np.full((8, 3), 12.0))
    with pytest.raises(er.ProgramError, match="the program has"):
        (features @ er.asarray(weights)).compute(plan=plan)


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
    of_line = (
        r"computing an array of shape \(200000,( 200000)?\), made in .*test_names.py, line [0-9]+, needs .* of memory"
    )
    with pytest.raises(er.RunError, match=of_line):
        (big @ big).compute()
    with pytest.raises(er.RunError, match=of_line):
        er.jit(lambda x: x @ er.zeros((200_000, 200_000)))(np.ones(200_000)).compute()


def line_in(error: BaseException) -> int:
    """The line of this file that an error tells."""
    told = re.search(r"test_names.py, line ([0-9]+)$", str(error))
    assert told is not None, error
    return int(told[1])


def test_errors_say_the_line_that_made_what_is_wrong() -> None:
    rows, matrix = er.asarray(np.ones((3, 2))), er.asarray(np.zeros((2, 2)))
    wrong = er.exp(er.take(rows * 2, er.asarray([0, 2]) + 1, axis=0))
    inverse = er.linalg.inv(matrix * 2) + 1
    here = inspect.stack()[0].lineno
    with pytest.raises(IndexError, match="taken in") as taken:
        np.asarray(wrong + 1)
    assert line_in(taken.value) == here - 2
    with pytest.raises(np.linalg.LinAlgError, match="it was made in") as singular:
        np.asarray(inverse * 2)
    assert line_in(singular.value) == here - 1
    with pytest.raises(IndexError) as traced:
        er.jit(lambda x, i: er.take(x, i, axis=0))(np.ones(3), np.array([7]))
    assert line_in(traced.value) == inspect.stack()[0].lineno - 1


def test_the_batch_is_the_label_that_one_says() -> None:
    weights, samples = np.arange(24.0).reshape(4, 6), np.ones((6, 8))
    result = er.relu(er.asarray(weights) @ samples)

    def parts(**options: str) -> list[dict[str, int]]:
        return [one["parts"] for one in json.loads(result.plan(sites=2, planners=["data"], **options))["vertices"]]

    assert parts() == [{"i": 2, "k": 1, "j": 1}, {"i": 2, "k": 1}]  # product[i,k] = sum[j] weights[i,j] * samples[j,k]
    assert parts(batch="k") == [{"i": 1, "k": 2, "j": 1}, {"i": 1, "k": 2}]
    found = result.compute(sites=2, planner="data", batch="k")
    np.testing.assert_array_equal(found, weights @ samples)
    with pytest.raises(er.ProgramError, match="has no label 'samples'"):
        result.explain(sites=2, planners=["data"], batch="samples")
    with pytest.raises(er.ProgramError, match="leave out sites, planner, cost, batch and machine"):
        (result * 2).compute(plan="{}", batch="k")


def test_an_array_has_a_name_of_its_own() -> None:
    features = er.named(np.ones((8, 4)), "samples")
    weights = np.ones((4, 3))
    hidden = er.named(er.relu(features @ weights), "activations")
    result = hidden * 2
    for said in (result.explain(), er.explain(result, sites=2)):
        assert inputs_of(said)[:2] == ["samples", "weights"]
        assert "activations[i,k] = relu(" in said and "hidden" not in said and "outputs     result" in said
    plan = json.loads(result.plan(sites=2))
    assert "samples" in plan["inputs"] and "activations" in [vertex["name"] for vertex in plan["vertices"]]
    assert "activations" in result.html()
    np.testing.assert_array_equal(result, np.full((8, 3), 8.0))


def attention(q: er.Array, k: er.Array) -> er.Array:
    scores = er.named(q @ k.T, "scores")
    return er.softmax(scores, axis=-1) @ er.named(k * 2, "twice")


def test_a_traced_function_has_the_names_of_what_is_gone() -> None:
    q = np.ones((4, 3))
    plain = er.jit(lambda q, k: er.softmax(q @ k.T, axis=-1) @ (k * 2))
    for function, names in (
        (attention, ["scores", "twice"]),
        (lambda q, k: attention(attention(q, k), k), ["scores", "twice", "scores_2"]),
        (lambda q, k: attention(er.fori_loop(0, 3, lambda i, h: er.tanh(h), q), k), ["scores", "twice"]),
    ):
        jitted = er.jit(function)
        for said in (jitted.explain(q, q), jitted.plan(q, q, sites=2), jitted.html(q, q, sites=2)):
            assert all(re.search(rf"\b{name}\b", said) for name in names)
    np.testing.assert_array_equal(er.jit(attention)(q, q), plain(q, q))
    assert "scores" not in plain.explain(q, q)


def test_a_name_of_its_own_goes_with_its_array() -> None:
    x = er.asarray(np.ones((2, 2)))
    product = er.named(x @ x, "product_of_x")
    assert "product_of_x[" in (product + 1).explain()
    del product
    assert "product_of_x" not in (x @ x + 1).explain()
    big = er.zeros((200_000, 200_000))
    square = er.named(big @ big, "too_large")
    with pytest.raises(er.RunError, match="computing 'too_large' needs .* of memory"):
        square.compute()


def test_any_other_word_is_a_name() -> None:
    x = np.ones(2)
    for name in ("result_of", "i", "x_", "samples"):
        assert f"{name}[" in er.named(x * 2, name).explain()


@pytest.mark.parametrize("name", ["sum", "input", "two words", "1st", "", "gr\u00f6\u00dfe", "f64", "a-b"])
def test_what_is_no_name_says_so(name: str) -> None:
    with pytest.raises(er.ProgramError, match="is no word of the language"):
        er.named(np.ones(2), name)
    with pytest.raises(TypeError, match="a name is a text"):
        er.named(np.ones(2), 3)


@pytest.mark.parametrize(
    "word", ["max", "step", "sum", "min", "exp", "abs", "log", "input", "any", "all", "prod", "gr\u00f6\u00dfe"]
)
def test_a_word_of_the_language_is_a_name_with_a_number(word: str) -> None:
    x = er.asarray(np.ones(3))
    names: dict[str, er.Array] = {}
    exec(
        f"{word} = mean(x * 2)\nsaid = {word}.explain()\nafter = ({word} + 1).explain()",
        {"x": x, "mean": er.mean},
        names,
    )
    for said in map(str, (names["said"], names["after"])):
        assert "t1" not in said
        assert f"{word}_1[] = mean[" in said or not word.isascii()
    inputs = er.jit(eval(f"lambda {word}, x: {word} @ x")).explain(np.ones(3), np.ones(3))
    assert inputs_of(inputs) == [f"{word}_1", "x"] or not word.isascii()


def test_such_a_name_is_another_ones_no_more() -> None:
    max_1 = er.asarray(np.ones(3))
    max = er.max(max_1)
    assert "max_2[] = max[" in max.explain() and inputs_of(max.explain()) == ["max_1"]
