"""er.train, against NumPy and the command's own files."""

import subprocess
import sys

import numpy as np
import pytest
from on_ranks import run_on

import einrel as er

PROGRAM = """dims b=8 f=4
input X[b,f], Y[b]
state W[f] = 0
loss[] = mean[b] sq((sum[f] X[b,f] * W[f]) - Y[b])
minimize loss over W by sgd(0.1)
output loss
"""


@pytest.fixture
def plane():
    x = np.random.default_rng(1).standard_normal((64, 4)).astype("f")
    return {"X": x, "Y": x @ np.arange(1, 5, dtype="f")}


def weights(result):
    return np.asarray(er.Array(result.state.tensors["W"]))


def test_it_finds_the_weights_of_a_plane(plane):
    told = []
    result = er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=60, hold_out=0.25, on_epoch=told.append)
    assert [epoch.epoch for epoch in told] == list(range(1, 61))
    assert result.state.steps_done == 60 * 6
    np.testing.assert_allclose(weights(result), [1, 2, 3, 4], atol=1e-3)
    rest = plane["X"] @ weights(result) - plane["Y"]
    assert result.epochs[-1].test["loss"] < 1e-6
    assert np.mean(rest**2) < 1e-6


def test_files_and_arrays_are_the_same_feeds(plane, tmp_path):
    program = er.program(PROGRAM)
    np.save(tmp_path / "x.npy", plane["X"])
    table = "\n".join(f"{float(value)!r}" for value in plane["Y"])
    (tmp_path / "y.csv").write_text(table)
    from_arrays = er.train(program, plane, batch={"b": 8}, epochs=3)
    from_files = er.train(program, {"X": tmp_path / "x.npy", "Y": f"{tmp_path}/y.csv:1"}, batch={"b": 8}, epochs=3)
    np.testing.assert_array_equal(weights(from_files), weights(from_arrays))
    lazy = er.train(program, {"X": er.asarray(plane["X"]) * 1, "Y": plane["Y"]}, batch={"b": 8}, epochs=3)
    np.testing.assert_array_equal(weights(lazy), weights(from_arrays))


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
def test_small_integers_are_what_the_input_is(plane, tmp_path, dtype):
    program = er.program(PROGRAM.replace("sgd(0.1)", "sgd(0.0001)"))
    pixels = np.random.default_rng(2).integers(0, 100, (64, 4)).astype(dtype)
    np.save(tmp_path / "x.npy", pixels)
    by_values = er.train(program, {"X": pixels.astype("f"), "Y": plane["Y"]}, batch={"b": 8}, epochs=2)
    for x in (pixels, tmp_path / "x.npy"):
        given = er.train(program, {"X": x, "Y": plane["Y"]}, batch={"b": 8}, epochs=2)
        np.testing.assert_array_equal(weights(given), weights(by_values))


def test_an_epoch_tells_what_it_is(plane):
    told = str(er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=1, hold_out=0.25).epochs[0])
    assert told.startswith("Epoch(epoch=1, steps=6, seconds=") and "test={'loss': " in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epochs": 2.5}, "epochs=2.5"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**70}, "seed="),
        ({"batch": {"b": 10.0}}, "batch=10.0"),
        ({"batch": "b"}, "batch='b'"),
        ({"report": [3]}, "report="),
        ({"scalars": ["eta"]}, "scalars="),
        ({"scalars": {"eta": "x"}}, "scalars.*='x'"),
    ],
)
def test_a_value_of_another_type_names_its_option(plane, options, said):
    with pytest.raises(TypeError, match=said):
        er.train(er.program(PROGRAM), plane, **({"batch": {"b": 8}, "epochs": 1} | options))
    with pytest.raises(TypeError, match="takes a program"):
        er.train(PROGRAM, plane, batch={"b": 8}, epochs=1)


def test_one_name_needs_no_list(plane):
    with pytest.raises(er.ProgramError, match="losses"):
        er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=1, report="losses")


def test_it_goes_on_to_the_bit_and_leaves_a_log(plane, tmp_path):
    program = er.program(PROGRAM)
    whole = er.train(program, plane, batch={"b": 8}, epochs=4)
    half = er.train(program, plane, batch={"b": 8}, epochs=2, save=tmp_path / "save", log=tmp_path / "log.csv")
    assert half.checkpoint is not None and half.checkpoint.endswith("step-000000016.safetensors")
    rest = er.train(program, plane, batch={"b": 8}, epochs=4, resume=tmp_path / "save", log=tmp_path / "log.csv")
    np.testing.assert_array_equal(weights(rest), weights(whole))
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 5


def test_sites_on_their_own(plane):
    result = er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=40, sites=2, local_steps=2)
    np.testing.assert_allclose(weights(result), [1, 2, 3, 4], atol=1e-2)
    assert result.epochs[0].bytes_moved == 2 * 2 * 2 * 4 * 4


def test_what_is_no_longer_finite_ends_it(plane, tmp_path):
    program = er.program(PROGRAM.replace("sgd(0.1)", "sgd(1e20)"))
    with pytest.raises(er.RunError, match="at step 2 the loss 'loss' is infinite"):
        er.train(program, plane, batch={"b": 8}, epochs=1, save=tmp_path / "save", save_every=1)
    assert [file.name for file in (tmp_path / "save").iterdir()] == ["step-000000001.safetensors"]
    for value, said in ((np.inf, "infinite"), (np.nan, "not a number")):
        plane["X"][7, 2] = value
        with pytest.raises(er.ProgramError, match=f"sample 7 .*'X'.* {said}"):
            er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=1)


def test_what_a_callback_raises_ends_it(plane):
    def stop(epoch):
        raise KeyError(epoch.epoch)

    with pytest.raises(KeyError, match="1"):
        er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=1000, on_epoch=stop)


def test_what_does_not_fit_is_said(plane):
    program = er.program(PROGRAM)
    with pytest.raises(er.ProgramError, match="64 samples"):
        er.train(program, plane, batch={"b": 65}, epochs=1)
    with pytest.raises(er.ProgramError, match="no input 'Z'"):
        er.train(program, {**plane, "Z": plane["Y"]}, batch={"b": 8}, epochs=1)
    with pytest.raises(ValueError, match="one label"):
        er.train(program, plane, batch={}, epochs=1)


@pytest.mark.parametrize("local", [{}, {"local_steps": 2}])
def test_ranks_learn_together(plane, tmp_path, local):
    for name, samples in plane.items():
        np.save(tmp_path / f"{name}.npy", samples)
    script = tmp_path / "train.py"
    script.write_text(
        f"import einrel as er\nprogram = er.program({PROGRAM!r})\n"
        f"feeds = {{name: {str(tmp_path)!r} + f'/{{name}}.npy' for name in 'XY'}}\n"
        f"result = er.train(program, feeds, batch={{'b': 8}}, epochs=3, save={str(tmp_path / 'save')!r}, **{local!r})\n"
        "print(er.rank(), len(result.epochs), result.epochs[-1].training['loss'])\n"
    )
    done = run_on(2, script)
    assert done.returncode == 0, done.stderr
    told = sorted(line.split() for line in done.stdout.splitlines())
    assert [line[:2] for line in told] == [["0", "3"], ["1", "3"]]
    alone = er.train(er.program(PROGRAM), plane, batch={"b": 8}, epochs=3, **({**local, "sites": 2} if local else {}))
    for line in told:
        assert float(line[2]) == pytest.approx(alone.epochs[-1].training["loss"], rel=1e-4)
    saved = er.train(
        er.program(PROGRAM),
        plane,
        batch={"b": 8},
        epochs=3,
        resume=tmp_path / "save",
        **({**local, "sites": 2} if local else {}),
    )
    assert saved.epochs == []
    np.testing.assert_allclose(weights(saved), weights(alone), rtol=1e-4)


def test_control_c_ends_it(tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        "import os, signal, threading\nimport numpy as np, einrel as er\n"
        f"program = er.program({PROGRAM!r})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever started the tests may ignore it
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "x = np.ones((64, 4), 'f')\n"
        "er.train(program, {'X': x, 'Y': x[:, 0]}, batch={'b': 8}, epochs=10**9)\n"
    )
    done = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True, timeout=60)
    assert "KeyboardInterrupt" in done.stderr


def test_what_was_learnt_goes_on_in_a_run(plane):
    program = er.program(PROGRAM)
    state = er.train(program, plane, batch={"b": 8}, epochs=2).state
    batch = {"X": plane["X"][:8], "Y": plane["Y"][:8]}
    w = np.asarray(er.Array(state.tensors["W"]))
    loss = np.mean((batch["X"] @ w - batch["Y"]) ** 2)
    np.testing.assert_allclose(float(program.run(batch, state=state).loss), loss, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": {"c": 8}}, "c"),
        ({"hold_out": 2.0}, "between 0 and 1"),
        ({"report": ["accuracy"]}, "accuracy"),
        ({"local_steps": 2, "subnets": ["f"], "sites": 2}, "f"),
        ({"cost": "time"}, "there is no cost 'time'"),
        ({"planner": "none"}, "there is no planner 'none'"),
        ({"resume": "/nowhere"}, "/nowhere"),
    ],
)
def test_mistakes_are_told_before_the_first_step(plane, options, said):
    with pytest.raises(er.ProgramError, match=said):
        er.train(
            er.program(PROGRAM),
            plane,
            **({"batch": {"b": 8}, "epochs": 1} | options),
            on_epoch=lambda epoch: pytest.fail("an epoch was trained"),
        )


NOISE = "scalar training\nD[b,f] = where(training, where(uniform(1) < 0.5, 2, 0), 1)\n"
NOISY = PROGRAM.replace("loss[]", NOISE + "loss[]", 1).replace("X[b,f] * W", "X[b,f] * D[b,f] * W")


def test_noise_for_learning_is_in_no_test(plane):
    notes = []
    begin = {"batch": {"b": 8}, "epochs": 20, "test": plane, "on_note": notes.append}
    program = er.program(NOISY)
    result = er.train(program, plane, **begin)
    loss = np.mean((plane["X"] @ weights(result) - plane["Y"]) ** 2)
    assert result.epochs[-1].test["loss"] == pytest.approx(loss, rel=1e-4)
    noise = np.mean(((plane["X"] * weights(result)) ** 2).sum(axis=1))  # its variance: factors are 0 or 2
    assert result.epochs[-1].training["loss"] == pytest.approx(loss + noise, rel=0.3)
    assert notes == []
    batch = {"X": plane["X"][:8], "Y": plane["Y"][:8]}
    loss = np.mean((batch["X"] @ weights(result) - batch["Y"]) ** 2)
    assert float(program.run(batch, state=result.state).loss) == pytest.approx(loss, rel=1e-4)
    noisy = program.run(batch, state=result.state, scalars={"training": True})
    assert abs(float(noisy.loss) - loss) > 0.1
    always = NOISY.replace("scalar training\n", "").replace("where(training, ", "where(1 > 0, ")
    er.train(er.program(always), plane, **begin)
    (note,) = notes
    assert "`scalar training`" in note
    with pytest.raises(er.ProgramError, match=r"scalars\['training'\].*: training says it itself"):
        er.train(program, plane, **begin, scalars={"training": 1})


def test_first_lines_of_tables(plane, tmp_path):
    program = er.program(PROGRAM.replace("b=8 f=4", "f=2").replace("sgd(0.1)", "sgd(0)"))
    table = tmp_path / "pandas.csv"
    table.write_text("0,1,2\n1,2,3\n4,5,6\n")
    feeds = {"X": f"{table}:1..2", "Y": f"{table}:3"}
    for header, targets in ((None, [2, 3, 6]), (False, [2, 3, 6]), (True, [3, 6])):
        notes = []
        result = er.train(program, feeds, batch={"b": 1}, epochs=1, header=header, on_note=notes.append)
        assert result.epochs[0].training["loss"] == pytest.approx(np.mean(np.square(targets)))
        said = f"{table}: 3 samples with the first line; if that line names the columns, say so with header"
        assert notes == ([said] if header is None else [])
