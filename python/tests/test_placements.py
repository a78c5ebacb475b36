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


def test_arrays_of_jax_are_taken_from_where_they_lie() -> None:
    script = Path(__file__).with_name("sharded_in_jax.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    refused = {name: found.pop(name) for name in list(found) if isinstance(found[name], str)}
    assert set(refused) == {"against the mesh", "axes that are not neighbours", "sites", "devices"}
    for name in ("against the mesh", "axes that are not neighbours"):
        assert "x0 lies as no plan has it" in refused[name]
    assert "x0 lies on 4 devices, and the plan is for sites=8" in refused["sites"]
    assert "x1 and x0 lie on different devices" in refused["devices"]
    assert len(found) == 9
    for name, one in found.items():
        assert one["off"] < 1e-4 and one["doubled"] == 0, name
        assert one["stays"] == 0, name  # element by element, nothing moves
    # Of rows no element moves: weights come once to 7 more devices, and to each of 8, twice at most, 8 sums of columns.
    assert found["rows"]["moved"] <= 7 * 24 * 8 * 4 + 2 * 8 * 8 * 4
