"""er.train by a plan that is given, and within a limit of memory."""

import numpy as np
import pytest
from test_train import PROGRAM

import einrel as er


def test_by_a_plan_and_within_memory(tmp_path):
    x = np.random.default_rng(1).standard_normal((64, 4)).astype("f")
    plane = {"X": x, "Y": x @ np.arange(1, 5, dtype="f")}
    program = er.program(PROGRAM)
    alone = er.train(program, plane, batch={"b": 8}, epochs=3)
    planned = er.train(program, plane, batch={"b": 8}, epochs=3, plan=program.plan(sites=2))
    limited = er.train(program, plane, batch={"b": 8}, epochs=3, memory="16MB", spill=tmp_path)
    for result in (planned, limited):
        assert result.epochs[-1].training["loss"] == pytest.approx(alone.epochs[-1].training["loss"], rel=1e-4)
    with pytest.raises(ValueError, match="spill.*memory"):
        er.train(program, plane, batch={"b": 8}, epochs=1, spill=tmp_path)
    with pytest.raises(ValueError, match="plan.*sites"):
        er.train(program, plane, batch={"b": 8}, epochs=1, plan=program.plan(sites=2), sites=2)


def test_messages_and_notes_have_the_names_of_arguments():
    program = er.program(PROGRAM)
    x, y = np.ones((20, 4), "f"), np.ones(20, "f")
    notes = []
    er.train(program, {"X": x, "Y": y}, batch={"b": 8}, epochs=1, on_note=notes.append)
    assert notes == ["each epoch leaves out 4 samples that make no whole batch; keep_last takes them"]
    with pytest.raises(ValueError, match=r"give them with feeds\['Y'\]"):
        er.train(program, {"X": x}, batch={"b": 8}, epochs=1)
    with pytest.raises(ValueError, match="calibrate_with=5 is for tests: give samples with hold_out, or with test"):
        er.train(program, {"X": x, "Y": y}, batch={"b": 8}, epochs=1, calibrate_with=5)
