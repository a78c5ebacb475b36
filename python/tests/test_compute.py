"""Computing lazily, gradients, traced functions and programs."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import einrel as er


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    x = er.asarray(np.arange(3.0))
    y = x + 1
    assert "not computed" in repr(y)
    z = y.sum()
    assert "not computed" in repr(y)
    assert float(z) == 6
    assert "not computed" not in repr(z)


def test_text_of_an_array_is_that_of_its_elements(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([[0.5, 2.0], [1.0, -1.0]])
    print(er.asarray(x) * 2, er.sum(er.asarray(x)), f"{er.asarray(x) * 2}", f"{er.asarray(x[0, 0]) * 3:.2f}")
    assert capsys.readouterr().out == f"{x * 2} 2.5 {x * 2} 1.50\n"
    assert "not computed" in repr(er.asarray(x) * 2)
    seen: list[str] = []
    er.jit(lambda x: (seen.extend([str(x), f"{x}"]), x)[1])(x)
    er.grad(lambda x: (seen.append(str(x * 2)), er.sum(x))[1])(x)
    assert seen == ["einrel.Array(shape=(2, 2), dtype=float64, not computed)"] * 2 + [str(x * 2)]


def test_arrays_of_numpy_are_read_where_they_are() -> None:
    x = np.arange(3.0)
    assert np.shares_memory(np.asarray(er.asarray(x)), x)
    y = er.asarray(x) * 2
    x[0] = 5
    assert y.tolist() == [10.0, 2.0, 4.0]


def test_several_arrays_at_once() -> None:
    x = er.asarray(np.arange(3.0))
    shared = er.exp(x)
    total, mean = er.compute(er.sum(shared), er.mean(shared), threads=1)
    np.testing.assert_allclose([float(total), float(mean)], [np.exp(np.arange(3)).sum(), np.exp(np.arange(3)).mean()])


@pytest.mark.parametrize(
    "options",
    [{"sites": 4}, {"sites": 3, "planner": "data"}, {"memory": "64MiB"}, {"sites": 2, "cost": "bytes"}],
)
def test_by_a_plan(options: dict[str, Any], rng: np.random.Generator) -> None:
    a, b = rng.random((40, 30)), rng.random((30, 20))
    z = er.softmax(er.asarray(a) @ b)
    e = np.exp(a @ b - (a @ b).max(-1, keepdims=True))
    np.testing.assert_allclose(np.asarray(z.compute(**options)), e / e.sum(-1, keepdims=True))


def test_wrong_options_are_errors() -> None:
    x = er.asarray(np.ones(3)) + 1
    with pytest.raises(er.ProgramError, match="planner"):
        x.compute(planner="eindekomp")
    with pytest.raises(ValueError, match="no size"):
        x.compute(memory="much")
    with pytest.raises(TypeError, match="colour"):
        x.compute(colour="red")


def test_a_plan_that_was_written_down(rng: np.random.Generator) -> None:
    a, b = rng.random((40, 30)), rng.random((30, 20))
    plan = (er.asarray(a) @ b).plan(sites=4, planners=["sqrt"])
    np.testing.assert_allclose(np.asarray((er.asarray(a) @ b).compute(plan=plan)), a @ b)
    program = er.program("dims i=4 j=3\ninput A[i,j] : f64\nZ[i] = sum[j] A[i,j]")
    results = program.run(A=a[:4, :3], options={"plan": program.plan(sites=2)})
    assert results.report.sites == 2
    np.testing.assert_allclose(np.asarray(results.Z), a[:4, :3].sum(1))
    with pytest.raises(er.ProgramError, match="is a plan already"):
        (er.asarray(a) @ b).compute(plan=plan, sites=4)


def test_notebooks_show_the_plan_as_a_page() -> None:
    z = er.asarray(np.ones((40, 30))) @ np.ones((30, 20))
    shown = z._repr_html_()
    assert shown.startswith("<pre>einrel.Array(") and "not computed)</pre><details><summary>" in shown
    assert "<iframe srcdoc=" in shown
    assert "<html" in z.html(sites=4)
    z.compute()
    assert "einrel.Array(" in z._repr_html_()


def test_several_arrays_are_planned_together() -> None:
    x = er.asarray(np.ones((40, 30)))
    shared = er.exp(x)
    together = [er.sum(shared), er.sum(shared * 2, axis=0)]
    plan = json.loads(er.plan(*together, sites=4))
    assert plan["sites"] == 4
    assert len(plan["outputs"]) == 2
    assert "4 sites" in er.explain(*together, sites=4, machine="laptop")
    assert er.html(*together, sites=4).startswith("<!doctype html>")
    total, rows = er.compute(*together, plan=er.plan(*together, sites=4))
    np.testing.assert_allclose(float(total), 1200 * np.e)
    np.testing.assert_allclose(np.asarray(rows), np.full(30, 80 * np.e))
    with pytest.raises(TypeError, match="nothing to plan"):
        er.explain(sites=4)


def test_planners_follow_labels_from_array_to_array() -> None:
    x, w, v = (er.asarray(np.empty(shape, "f4")) for shape in ((512, 128), (128, 512), (512, 128)))
    heads = er.reshape(er.einsum("bf,fhd->bhd", x, er.asarray(np.empty((128, 8, 16), "f4"))), (512, 128))
    arrays = er.softmax(er.relu(x @ w) @ v) + heads
    text = er.program(
        "dims b=512 f=128 g=512 l=128 h=8 d=16\ninput X[b,f], W[f,g], V[g,l], U[f,h,d]\n"
        "H1[b,g] = sum[f] X[b,f] * W[f,g]\nH[b,g] = relu(H1[b,g])\nY[b,l] = sum[g] H[b,g] * V[g,l]\n"
        "S[b,l] = softmax[l](Y[b,l])\nA[b,h,d] = sum[f] X[b,f] * U[f,h,d]\nB[b,(h d)] = view A[b,h,d]\n"
        "Z[b,l] = S[b,l] + B[b,l]\noutput Z"
    )
    for planner in ("data", "fsdp", "tensor", "data:4 x tensor:2", "eindecomp"):
        costs = [
            json.loads(what.plan(sites=8, machine="a100-server", planners=[planner]))["plans"][0]["cost"]
            for what in (arrays, text)
        ]
        assert costs[0]["bytes"] == costs[1]["bytes"], planner


def test_explain_shows_formulas_and_plans() -> None:
    z = er.asarray(np.ones((40, 30))) @ np.ones((30, 20))
    assert "sum[" in z.explain()
    assert "eindecomp" in z.explain(sites=4)


def test_plans_for_many_steps_leave_weights_where_they_are_used() -> None:
    served = er.program(
        "dims b=16 i=64 j=64\ninput X[b,i], W[i,j]\nH[b,j] = relu(sum[i] X[b,i] * W[i,j])\n"
        "Y[b,i] = sum[j] H[b,j] * W[i,j]\n"
    )
    cost = json.loads(served.plan(sites=4, cost="bytes", steps=1000, fed=["X"]))["plans"][0]["cost"]
    assert cost["steps"] == 1000
    assert cost["once"]["bytes"] == 3 * 64 * 64 * 4
    assert cost["each_step"]["bytes"] == 0
    once = json.loads(served.plan(sites=4, cost="bytes"))["plans"][0]["cost"]
    assert 0 < once["bytes"] < cost["bytes"]
    with pytest.raises(er.ProgramError, match="no input 'Z'"):
        served.explain(sites=4, steps=2, fed="Z")
    with pytest.raises(er.ProgramError, match="'steps'"):
        served.explain(sites=4, fed="X")


def test_long_chains_need_no_stack() -> None:
    x = er.asarray(np.zeros(2))
    for _ in range(3000):
        x = x + 1
    kept = weakref.ref(x)
    del x
    gc.collect()
    assert kept() is None
    y = er.asarray(np.zeros(2))
    for _ in range(200):
        y = y + 1
    assert y.tolist() == [200.0, 200.0]


def test_what_was_computed_forgets_its_operands() -> None:
    x = er.asarray(np.ones(4))
    operand = weakref.ref(x)
    y = x + 1
    del x
    np.asarray(y)
    gc.collect()
    assert operand() is None


def test_gradients(rng: np.random.Generator) -> None:
    x, w = rng.random((5, 3)), rng.random((3, 2))
    weights = er.asarray(w)
    loss = er.sum(er.square(er.asarray(x) @ weights))
    np.testing.assert_allclose(np.asarray(er.grad(loss, weights)), 2 * x.T @ (x @ w))
    hidden = er.asarray(x) @ weights
    of_hidden, of_weights = er.grad(er.sum(er.exp(hidden)), [hidden, weights])
    np.testing.assert_allclose(np.asarray(of_hidden), np.exp(x @ w))
    np.testing.assert_allclose(np.asarray(of_weights), x.T @ np.exp(x @ w))


def test_gradients_of_what_is_computed_in_between() -> None:
    w = er.asarray(np.array([1.0, 2.0]))
    loss = er.sum(w * w)
    gradient = er.grad(loss, w)
    assert float(loss) == 5
    assert gradient.tolist() == [2.0, 4.0]
    assert er.grad(er.sum(er.grad(er.sum(w**3), w)), w).tolist() == [6.0, 12.0]


def test_gradients_that_there_are_not() -> None:
    w = er.asarray(np.array([1.0, 2.0]))
    with pytest.raises(TypeError, match="ndarray"):
        er.grad(er.sum(w * w), [np.ones(2)])  # type: ignore[list-item]
    with pytest.raises(er.ProgramError, match="does not depend"):
        er.grad(er.sum(w), er.asarray(np.ones(3)))


def test_traced_functions() -> None:
    traces = []

    @er.jit
    def step(weights: dict[str, er.Array], x: er.Array, name: str = "add") -> tuple[Any, ...]:
        traces.append(name)
        y = x @ weights["w"] + weights["b"]
        return y, {"sum": er.sum(y)}, weights["b"], [2.0]

    x, w, b = np.ones((2, 3)), np.ones((3, 2)), np.arange(2.0)
    for _ in range(3):
        y, sums, same, (number,) = step({"w": w, "b": b}, x)
        np.testing.assert_array_equal(np.asarray(y), x @ w + b)
        assert float(sums["sum"]) == (x @ w + b).sum()
        np.testing.assert_array_equal(np.asarray(same), b)
        assert float(number) == 2
    step({"w": w, "b": b}, x, name="other")
    step({"w": w, "b": b}, np.ones((4, 3)))
    assert traces == ["add", "other", "add"]
    assert "sum[" in step.explain({"w": w, "b": b}, x)


def test_traced_gradient_steps() -> None:
    @er.jit(threads=1)
    def step(w: er.Array, x: er.Array) -> er.Array:
        return w - 0.1 * er.grad(er.sum(er.square(x @ w)), w)

    x, w = np.eye(2), np.ones(2)
    ours: Any = w
    for _ in range(3):
        ours = step(ours, x)
        w = w - 0.2 * w
    np.testing.assert_allclose(np.asarray(ours), w)


def test_traced_functions_give_arrays() -> None:
    with pytest.raises(ValueError, match="gives no array"):
        er.jit(lambda x: None)(np.ones(3))


def test_arguments_that_are_traced_have_no_elements() -> None:
    with pytest.raises(er.ProgramError, match="traced"):
        er.jit(lambda x: x if float(x.sum()) > 0 else -x)(np.ones(3))


TWO_LAYERS = """
input X[b,f], W[f,h]
scalar scale = 1
H[b,h] = relu(sum[f] X[b,f] * W[f,h]) * scale
total[] = sum[b,h] H[b,h]
output H, total
"""


def test_programs(rng: np.random.Generator) -> None:
    program = er.program(TWO_LAYERS)
    x, w = rng.normal(size=(4, 3)).astype("f4"), rng.normal(size=(3, 2)).astype("f4")
    results = program.run(X=x, W=er.asarray(w), scalars={"scale": 2})
    np.testing.assert_allclose(np.asarray(results.H), 2 * np.maximum(x @ w, 0), rtol=1e-6)
    np.testing.assert_allclose(float(results["total"]), 2 * np.maximum(x @ w, 0).sum(), rtol=1e-6)
    assert results.report.sites == 1
    assert [info.name for info in program.inputs] == ["X", "W"]
    assert program.run({"X": x, "W": w}, options={"sites": 2}).report.sites == 2
    assert "relu" in er.program(TWO_LAYERS, dims={"b": 4, "f": 3, "h": 2}).explain()
    with pytest.raises(AttributeError, match="the outputs are: H, total"):
        results.Z
    with pytest.raises(er.ProgramError, match="that are missing: W"):
        program.run(X=x)
    with pytest.raises(er.ProgramError, match="train.ein:2:"):
        er.program("input X[i]\nZ[i] = Y[i]", name="train.ein")


def test_messages_speak_of_options_as_python_writes_them() -> None:
    x = er.asarray(np.ones((2000, 2000)))
    y = x @ x
    messages = [y.explain()]
    for options in (
        {"memory": "1KB"},
        {"memory": "9MB", "plan": y.plan(sites=2)},
        {"spill": "/tmp"},
        {"steps": 2},
        {"plan": "{}"},
        {"plan": y.plan(sites=2), "sites": 2},
        {"sites": 0},
        {"threads": 0},
        {"planner": "data:3"},
        {"machine": "abacus"},
        {"cost": "money"},
    ):
        with pytest.raises(ValueError, match=".") as raised:
            y.compute(**options)
        messages.append(str(raised.value))
    for message in messages:
        assert "--" not in message.replace("-->", ""), message
        assert "RunOptions" not in message
    assert any("laptop" in message for message in messages if "abacus" in message)


def test_gradients_by_arrays_over_the_same_memory_are_apart():
    x = np.array([1.0, 2.0])
    a, b = er.asarray(x), er.asarray(x)
    by_a, by_b, again = er.grad(er.sum(a * a * b), [a, b, a])
    np.testing.assert_array_equal(by_a, 2 * x * x)
    np.testing.assert_array_equal(by_b, x * x)
    np.testing.assert_array_equal(again, by_a)
    assert er.grad(er.sum(a * a * b), []) == []


def test_a_gradient_of_a_gradient_keeps_arrays_apart():
    x = np.array([1.0, 2.0])
    a, b = er.asarray(x), er.asarray(x)
    by_a = er.grad(er.sum(a**3 * b), a)
    np.testing.assert_allclose(er.grad(er.sum(by_a), b), 3 * x**2)


def test_numbers_in_traced_functions_take_the_type_of_arrays():
    w = np.ones(3, "f4")
    for rate in (0.1, 2):
        traced = er.jit(lambda w, r: (w - r * w, w * (2 * r), w * -r))(w, rate)
        eager = (er.asarray(w) - rate * er.asarray(w), er.asarray(w) * (2 * rate), er.asarray(w) * -rate)
        for one, other in zip(traced, eager):
            assert one.dtype == other.dtype == np.float32
            np.testing.assert_allclose(one, other)
    assert er.jit(lambda i, r: i * r)(np.arange(3, dtype="i4"), 0.5).dtype == np.float64
    assert er.jit(lambda x, r: x * r)(w, np.float64(2)).dtype == np.float64


def test_a_traced_array_can_be_an_index_and_has_a_shape():
    pick = er.jit(lambda x, i: (x[i], np.shape(x)[0] * np.ndim(i) * np.size(i) + x[0]))
    picked, sizes = pick(np.arange(5.0), np.array([3, 1]))
    assert picked.tolist() == [3.0, 1.0]
    assert float(sizes) == 10.0


def test_traced_functions_take_named_tuples_and_say_what_they_cannot():
    point = namedtuple("point", "x y")
    made = er.jit(lambda p: point(p.y, p.x))(point(1.0, np.ones(2)))
    assert type(made) is point and made.x.tolist() == [1.0, 1.0]
    with pytest.raises(er.ProgramError, match=r"Python asked for elements.*einrel\.where"):
        er.jit(lambda x: x if x[0] > 0 else -x)(np.ones(2))


def test_a_traced_function_keeps_so_many_forms():
    double = er.jit(lambda x: 2 * x)
    for extent in range(1, 200):
        double(np.ones(extent))
    assert len(double._traced) <= 128


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"threads": -1}, ValueError, "threads=-1: give 1 or more"),
        ({"threads": "2"}, TypeError, "threads='2' is no whole number"),
        ({"sites": 2.5}, TypeError, r"sites=2.5 is no whole number"),
        ({"memory": 1e9}, TypeError, "is no whole number"),
        ({"memory": 10**30}, ValueError, "64 bits"),
        ({"plan": 5}, TypeError, "plan=5 is no text"),
        ({"planner": ["data"]}, TypeError, "is no text"),
        ({"state": 5}, TypeError, "state=5"),
        ({"nodes": 4}, TypeError, "there is no option 'nodes'; there are threads, sites"),
    ],
)
def test_options_that_are_wrong_are_told_by_name(options, error, said):
    with pytest.raises(error, match=said):
        er.ones(3).compute(**options)


def test_one_planner_may_be_given_as_a_text():
    assert "by single" in (er.ones((4, 4)) @ er.ones((4, 4))).explain(sites=2, planners="single")


def test_a_child_ends_after_its_parent_has_computed_on_threads():
    script = """
import os, sys
import numpy as np, einrel as er
a = er.asarray(np.ones((64, 64)))
(a @ a + 2).compute(sites=2)
child = os.fork()
if child == 0:
    if len(sys.argv) > 1:
        assert float((a @ a + 3).compute(sites=2)[0, 0]) == 67
    sys.exit(7)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    for arguments in ([], ["compute"]):
        done = subprocess.run([sys.executable, "-c", script, *arguments], timeout=60, check=False)
        assert done.returncode == 7


def test_a_calibrated_machine_is_kept_for_the_user(tmp_path):
    """In a process of its own: plans of this one stay as they are."""
    program = (
        "import einrel as er\n"
        "print(er.calibrate(threads=1))\n"
        "print(er.einsum('ij,jk', er.zeros((64, 64)), er.zeros((64, 64))).explain(sites=2))"
    )
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": str(Path(er.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=100
    )
    assert json.loads((tmp_path / "einrel" / "machine.json").read_text())["name"] == "calibrated"
    measured, plan = done.stdout.split("\n<expressions>")
    assert "flop/s" in measured
    assert "on machine calibrated" in plan


@pytest.mark.parametrize("n", [3, -7, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, -(2**70)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x + n,
        lambda x, n: x == n,
        lambda x, n: x < n,
        lambda x, n: er.where(x > 1, x, n),
        lambda x, n: x * (n + 1),
        lambda x, n: x + (n - 2**31) * 2,
        lambda x, n: (x < n - n % 2) + (n > 3),
        lambda x, n: x + n % 10 + abs(n) // 2**40,
        lambda x, n: x * 0.5 + n,
    ],
)
def test_whole_numbers_are_as_large_in_traced_functions_as_without(function, n):
    def result(call, number=n):
        try:
            return np.asarray(call(er.asarray(np.array([1, 2], "i4")), number))
        except OverflowError as error:
            return type(error)

    traced = er.jit(function)
    result(traced, 2**31 + 5)  # whose trace serves other numbers, too
    for jitted in (traced, er.jit(function)):
        assert result(jitted) is OverflowError or result(jitted).dtype == result(function).dtype
        np.testing.assert_array_equal(result(jitted), result(function))
