"""Steps of programs with state, from Python."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import einrel as er
from einrel import _native
from einrel._compute import run_options

COUNTING = """
input X[i] : f64
state total[i] = f64(0)
next total[i] = total[i] + X[i]
output next_total
"""


def test_steps_keep_their_state() -> None:
    program = er.program(COUNTING)
    batches = [np.full(2, 1.0), np.full(2, 10.0), np.full(2, 100.0)]
    seen = [step.next_total.tolist() for step in program.steps(X=iter(batches))]
    assert seen == [[1.0, 1.0], [11.0, 11.0], [111.0, 111.0]]
    ten = program.run(X=np.ones(2), steps=10)
    assert ten.next_total.tolist() == [10.0, 10.0]
    assert program.run(X=np.ones(2), state=ten.state).next_total.tolist() == [11.0, 11.0]
    assert ten.state.steps_done == 10


def test_steps_go_on_with_other_shapes() -> None:
    program = er.program(
        "input X[b] : f64\nstate total[] = f64(0)\nnext total[] = total[] + sum[b] X[b]\noutput next_total"
    )
    steps = program.steps(X=iter([np.ones(2), np.ones(3), np.ones(3)]))
    assert [float(step.next_total) for step in steps] == [2.0, 5.0, 8.0]
    assert steps.state.steps_done == 3
    with pytest.raises(StopIteration):
        next(steps)
    assert float(program.run(X=np.ones(4), state=steps.state).next_total) == 12.0


def test_steps_end_after_so_many() -> None:
    steps = er.program(COUNTING).steps(X=np.ones(2), at_most=3)
    with pytest.raises(er.ProgramError, match="no state before the first step"):
        _ = steps.state
    assert len(list(steps)) == 3
    state = steps.state
    assert state.steps_done == 3
    more = er.program(COUNTING).steps(X=np.ones(2), state=state)
    assert more.state.steps_done == 3
    assert next(more).next_total.tolist() == [4.0, 4.0]
    with pytest.raises(ValueError, match="at_most=0"):
        er.program(COUNTING).steps(X=np.ones(2), at_most=0)
    with pytest.raises(TypeError, match="foo"):
        er.program(COUNTING).steps(X=np.ones(2), options={"foo": 1})


def test_inputs_that_stay_are_read_once() -> None:
    asked = []

    def part(region: tuple[slice, ...]) -> np.ndarray:
        asked.append(region)
        return np.ones(2)[region]

    steps = er.program(COUNTING).steps(X=er.from_function((2,), part, dtype="float64"), options={"sites": 2})
    assert [next(steps).next_total.tolist() for _ in range(3)] == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert sum(region[0].stop - region[0].start for region in asked) == 2


def test_steps_end_where_until_holds() -> None:
    text = "state x[] = 1.0\nnext x[] = 2 * x[]\nuntil x[] > 5\noutput x"
    assert [float(step.x) for step in er.program(text).steps(at_most=100)] == [1, 2, 4, 8]
    assert float(er.program(text).run(steps=100).x) == 8


def test_what_is_written_into_results_is_not_the_state() -> None:
    program = er.program("state x[] = 1.0\nnext x[] = 2 * x[]\noutput next_x")
    seen = []
    for step in program.steps(at_most=3):
        result = np.asarray(step.next_x)
        seen.append(float(result))
        if result.flags.writeable:
            result[...] = 100
    assert seen == [2, 4, 8]
    first = program.run(steps=1)
    assert not np.asarray(first.next_x).flags.writeable
    assert float(program.run(steps=1, state=first.state).next_x) == 4


def test_there_is_no_step_after_one_that_failed() -> None:
    def values() -> Iterator[er.Array]:
        yield er.asarray(np.ones(2))
        yield er.from_function((2,), lambda region: 1 / 0, dtype="float64")

    steps = er.program(COUNTING).steps(X=values())
    next(steps)
    with pytest.raises(ZeroDivisionError):
        next(steps)
    with pytest.raises(er.ProgramError, match="a step has failed"):
        _ = steps.state


def test_another_thread_is_told_of_a_step_that_is_being_done() -> None:
    begins, ends = threading.Event(), threading.Event()

    def slow(region: tuple[slice, ...]) -> np.ndarray:
        begins.set()
        assert ends.wait(30)
        return np.ones(2)[region]

    def values() -> Iterator[er.Array]:
        yield er.asarray(np.ones(2))
        yield er.from_function((2,), slow, dtype="float64")
        yield er.asarray(np.full(2, 10.0))

    steps = er.program(COUNTING).steps(X=values(), at_most=3)
    next(steps)
    found: list[er.Array] = []
    thread = threading.Thread(target=lambda: found.append(next(steps).next_total))
    thread.start()
    try:
        assert begins.wait(30)
        for ask in (lambda: next(steps), lambda: steps.state):
            with pytest.raises(er.ProgramError, match="another thread is doing a step"):
                ask()
    finally:
        ends.set()
        thread.join()
    assert found[0].tolist() == [2.0, 2.0]
    assert [step.next_total.tolist() for step in steps] == [[12.0, 12.0]]  # none was lost
    assert steps.state.steps_done == 3


def test_a_function_that_makes_an_input_is_told_of_the_step_that_is_being_done() -> None:
    said = []

    def asks(region: tuple[slice, ...]) -> np.ndarray:
        for ask in (lambda: native.state(), lambda: native.step({})):
            with pytest.raises(er.ProgramError, match="a step is being done") as told:
                ask()
            said.append(str(told.value))
        return np.ones(2)[region]

    array = er.from_function((2,), asks, dtype="float64")
    native = _native.Stepper(er.program(COUNTING)._native, {"X": array._node}, [], run_options())
    outputs, _ = native.step({})
    assert er.Array(outputs["next_total"]).tolist() == [1.0, 1.0] and said
    assert native.state().steps_done == 1


def test_what_feeds_steps_may_ask_for_the_state() -> None:
    def values() -> Iterator[np.ndarray]:
        yield np.ones(2)
        while True:
            yield np.asarray(er.Array(steps.state.tensors["total"])) * 2

    steps = er.program(COUNTING).steps(X=values(), at_most=3)
    assert [step.next_total.tolist() for step in steps] == [[1.0, 1.0], [3.0, 3.0], [9.0, 9.0]]


@pytest.mark.parametrize("name", ["scalars", "steps", "state"])
def test_arguments_of_their_own_are_no_options(name: str) -> None:
    program = er.program(COUNTING)
    options = {name: None}
    with pytest.raises(TypeError, match=f"'{name}', which is an argument of its own: give {name}="):
        program.run(X=np.ones(2), options=options)
    own = "at_most" if name == "steps" else name
    with pytest.raises(TypeError, match=f"'{name}', which is an argument of its own: give {own}="):
        program.steps(X=np.ones(2), options=options)
    if name != "state":
        with pytest.raises(TypeError, match=f"'{name}', which is an argument of its own: give {own}="):
            program.placements_of_steps({"X": np.ones(2)}, options=options)


def test_options_are_a_mapping() -> None:
    program = er.program(COUNTING)
    for function in (program.run, program.steps, program.placements_of_steps):
        with pytest.raises(TypeError, match="options=3 is no mapping from names"):
            function({"X": np.ones(2)}, options=3)


def test_a_state_is_made_of_arrays() -> None:
    program = er.program("state x[i] = i\nnext x[i] = 2 * x[i] + iteration\nZ[i] = x[i]\n", dims={"i": 3})
    begun = program.run(steps=3)
    for tensors in ({"x": np.asarray(er.Array(begun.state.tensors["x"]))}, begun.state.tensors):
        state = er.State(tensors, steps_done=3)
        np.testing.assert_array_equal(program.run(state=state).Z, program.run(steps=4).Z)
    lazy = er.State(tensors={"x": er.asarray(np.arange(3)) * 1})
    assert lazy.steps_done == 0
    np.testing.assert_array_equal(program.run(state=lazy).Z, program.run(steps=1).Z)
    assert er.State.__doc__ is not None and "State(tensors, steps_done=0)" in er.State.__doc__
    with pytest.raises(er.ProgramError, match="is not negative"):
        er.State({}, -1)
