"""Inputs that lie on the sites already: plans take them from there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import einrel as er


def planned(placements: Any, sites: int = 4) -> dict[str, dict[str, Any]]:
    """The vertices of a plan by name."""
    program = er.program("dims b=8 f=6 g=4\ninput X[b,f], W[f,g]\nZ[b,g] = sum[f] X[b,f] * W[f,g]\n")
    plan = json.loads(program.plan(sites=sites, cost="bytes", placements=placements))
    return {vertex["name"]: vertex for vertex in plan["plans"][0]["vertices"]}


@pytest.mark.parametrize("x", [{"f": 4}, {1: 4}, [("f", 4)], {np.int64(1): np.int64(4)}])
def test_an_input_lies_as_is_said(x: Any) -> None:
    vertices = planned({"X": x})
    assert vertices["X"]["sites"] == {"1": 4} and vertices["X"]["strides"] == {"1": 1}
    assert vertices["Z"]["sites"].get("f", 1) > 1  # to move X would be dearer


def test_digits_are_given_the_highest_first() -> None:
    lies = planned({"X": [("copies", 2), ("b", 2), ("copies", 2)]}, 8)["X"]
    assert lies["sites"] == {"0": 2} and lies["strides"] == {"0": 2}
    assert lies["copies"] == [{"count": 2, "stride": 1}, {"count": 2, "stride": 4}]
    assert planned({"X": {}})["X"]["sites"] == {}


def test_traced_functions_and_arrays_say_it_by_their_names(rng: np.random.Generator) -> None:
    x, w = rng.normal(size=(8, 6)), rng.normal(size=(6, 4))
    traced = er.jit(lambda x, w: er.matmul(x["here"], w))
    of_array = er.matmul(er.asarray(x), er.asarray(w))
    page = traced.html({"here": x}, w, sites=2, placements={"x_here": {1: 2}})
    assert "<html" in page
    text = traced.explain({"here": x}, w, sites=2, placements={"x_here": {1: 2}})
    assert "1x2 chunks on 2 sites, as is given" in text
    assert "as is given" in of_array.explain(sites=2, placements={"x": {0: 2}})


def placed(page: str) -> dict[str, set[str]]:
    """The inputs that lie as is given, by the title of the program."""
    found: dict[str, set[str]] = {}
    for line in page.splitlines():
        if "<" not in line and " in " in line and not line.startswith(" "):
            title = line
            found[title] = set()
        elif "as is given" in line:
            found[title].add(line.split()[1].split("[")[0])
    return found


def test_programs_of_a_function_with_loops_have_the_placements_of_their_own_inputs(rng: np.random.Generator) -> None:
    def f(x: er.Array, w: er.Array, rows: er.Array) -> er.Array:
        y = er.fori_loop(0, 3, lambda i, v: er.tanh(v @ w), x @ w)
        last, _ = er.scan(lambda v, row: (v + row, None), y, rows)
        return last * x

    arguments = rng.normal(size=(4, 4)), rng.normal(size=(4, 4)), rng.normal(size=(3, 4, 4))
    jitted = er.jit(f)

    def lies(**placements: Any) -> list[set[str]]:
        return list(placed(jitted.explain(*arguments, sites=2, placements=placements)).values())

    assert lies(x={0: 2}) == [{"x"}, set(), set(), {"x"}]
    assert lies(w={1: 2}) == [{"w"}, {"w"}, set(), set()]
    assert lies(rows={2: 2}, w={0: 2}) == [{"w"}, {"w"}, {"rows"}, set()]
    assert jitted.html(*arguments, sites=2, placements={"rows": {2: 2}}).count("<iframe") == 4
    with pytest.raises(er.ProgramError, match=r"placements of 'y': none of the programs .*rows, .*w, x"):
        lies(x={0: 2}, y={0: 2})
    with pytest.raises(TypeError, match="is no mapping from names"):
        jitted.explain(*arguments, sites=2, placements=["x"])


def test_functions_that_are_computed_again_have_the_placements_of_their_own_inputs(rng: np.random.Generator) -> None:
    x, w = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    jitted = er.jit(er.grad(lambda w, x: er.sum(er.checkpoint(lambda v: er.tanh(v @ w))(x) ** 2)))
    text = jitted.explain(w, x, sites=2, placements={"x": {0: 2}})
    assert list(placed(text).values()).count({"x"}) == 2  # forwards, and where it is computed again
    with pytest.raises(er.ProgramError, match="placements of 'v': none of the programs"):
        jitted.explain(w, x, sites=2, placements={"v": {0: 2}})


def test_dimensions_are_counted_from_the_end_too(rng: np.random.Generator) -> None:
    x, w = rng.normal(size=(4, 8)), rng.normal(size=(8, 4))
    jitted = er.jit(lambda x, w: x @ w)
    for negative, positive in ((-1, 1), (-2, 0)):
        said = [jitted.explain(x, w, sites=2, placements={"x": {place: 2}}) for place in (negative, positive)]
        assert said[0] == said[1] and "as is given" in said[0]
    for outside in (-3, 2):
        with pytest.raises(er.ProgramError, match=rf"nothing reads it by a label '{outside}'\n  help: name 0"):
            jitted.explain(x, w, sites=2, placements={"x": {outside: 2}})
    with pytest.raises(er.ProgramError, match="is a dimension that it names already"):
        jitted.explain(x, w, sites=4, placements={"x": [(1, 2), (-1, 2)]})


@pytest.mark.parametrize(
    ("placements", "error", "said"),
    [
        ({"Y": {"b": 2}}, er.ProgramError, "the program has no input 'Y'"),
        ({"X": {"g": 2}}, er.ProgramError, "nothing reads it by a label 'g'"),
        ({"X": {"b": 2, "f": 3}}, er.ProgramError, "its sites are more than 4"),
        ({"X": {"f": 7}}, er.ProgramError, "7 parts of 'f', which has 6 positions"),
        ({"X": {"b": 0}}, ValueError, r"placements\['X'\]\['b'\]=0: give 1 or more"),
        ({"X": {"b": "2"}}, TypeError, r"placements\['X'\]\['b'\]='2' is no whole number"),
        ({"X": 4}, TypeError, r"placements\['X'\]=4 is no mapping from labels or dimensions"),
        (["X"], TypeError, "is no mapping from names"),
    ],
)
def test_what_cannot_be_is_told(placements: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        planned(placements)


def test_two_programs_have_inputs_at_one_place(rng: np.random.Generator) -> None:
    """Data parallelism brings W, whole, to all sites. Of the second program, which finds it there, nothing moves."""
    text = (
        "dims b=8 f=6 g=4\ninput X[b,f], W[f,g]\nstate S[b,g] = 0.0\nZ[b,g] = (sum[f] X[b,f] * W[f,g]) + S[b,g]\n"
        "next S[b,g] = Z[b,g]\noutput Z\n"
    )
    one, many = er.program(text), er.program(text, dims={"b": 64})
    x, w = rng.normal(size=(64, 6)).astype("f"), rng.normal(size=(6, 4)).astype("f")
    how = {"sites": 4, "planner": "data"}
    lie = one.placements_of_steps({"X": x[:8], "W": w}, fed=["X"], at_most=9, options=how)
    assert lie == {"W": [("copies", 4)]} == one.placements(sites=4, planners="data", steps=9, fed="X")
    (step,) = one.steps(X=iter([x[:8]]), W=w, at_most=9, options=how)
    assert step.report.bytes_moved == 3 * w.nbytes
    apart = many.run(X=x, W=w, options=how)
    there = many.run(X=x, W=w, options={**how, "placements": lie})
    assert (apart.report.bytes_moved, there.report.bytes_moved) == (3 * w.nbytes, 0)
    np.testing.assert_allclose(np.asarray(there.Z), x @ w, rtol=1e-5, atol=1e-5)
    assert one.placements_of_steps({"X": x[:8], "W": w}, fed=["X"]) == {}  # no plan
    assert one.placements_of_steps({"X": x[:8], "W": w}, options={**how, "memory": "64MiB"}) == {}
    with pytest.raises(er.ProgramError, match="in that plan, the input W lies otherwise than its placement says"):
        many.run(X=x, W=w, options={"plan": many.plan(sites=4), "placements": lie})
    there = many.run(X=x, W=w, options={"plan": many.plan(sites=4, placements=lie), "placements": lie})
    np.testing.assert_allclose(np.asarray(there.Z), x @ w, rtol=1e-5, atol=1e-5)


def test_arrays_that_are_computed_have_no_placements() -> None:
    x = er.asarray(np.ones((4, 4)))
    for computed in (
        lambda: er.compute(x @ x, sites=2, placements={"x": {0: 2}}),
        lambda: er.jit(lambda a: a @ a, sites=2, placements={"a": {0: 2}})(x),
        lambda: er.jit(lambda a: er.fori_loop(0, 3, lambda i, c: c @ a, a), sites=2, placements={"a": {0: 2}})(x),
    ):
        with pytest.raises(er.ProgramError, match="placements= is for explain, plan and html"):
            computed()


SAID = {
    "against the mesh": "its dimension 0 takes the axes 'b', 'a' in another order than the mesh has them; put it on",
    "axes that are not neighbours": "its dimension 0 takes the axes 'a', 'c', which are no neighbours in the mesh; put",
    "3 before 2": "the mesh is 3 x 2, and plans divide 6 devices by 2 x 3 in this order",
    "3 columns before 2 copies": "the mesh is 3 x 2, and plans divide 6 devices by 2 x 3 in this order",
    "3 before 4": "the mesh is 3 x 4, and plans divide 12 devices by 2 x 2 x 3 in this order",
    "6 by 6": "plans divide 36 devices by 2 x 2 x 3 x 3 in this order, of which axes are neighbouring factors; put it "
    "elsewhere by jax.device_put",
    "sites": "x lies on 4 devices, and the plan is for sites=8",
    "devices": "w and x lie on different devices",
    "order of devices": "w lies as no plan has it, NamedSharding(",
    "contradiction": "placements['x'] says {1: 4}, and the array lies on 4 devices as {0: 4}",
    "no input": "the program has no input 'v'",
    "in a dict": "p_x lies as no plan has it",
}


def test_arrays_of_jax_are_taken_from_where_they_lie() -> None:
    script = Path(__file__).with_name("sharded_in_jax.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    refused = {name: one.pop("said") for name, one in found.items() if "said" in one}
    assert set(refused) == set(SAID)
    for name, said in SAID.items():
        assert said in refused[name], name
    computed = {name: one for name, one in found.items() if one}
    assert len(computed) == 9 + 5 + 3  # as they lie, on the mesh that is advised, and with placements
    for name, one in computed.items():
        assert one["off"] < 1e-4 and one.get("doubled", 0) == 0, name
        assert one.get("stays", 0) == 0, name  # element by element, nothing moves
    # Of rows no element moves: weights come once to 7 more devices, and to each of 8, twice at most, 8 sums of columns.
    assert found["rows"]["moved"] <= 7 * 24 * 8 * 4 + 2 * 8 * 8 * 4
    assert found["also said"]["w"] == found["none said"]["w"] != found["the other said"]["w"]
