"""Programs that run in a database, against NumPy and SQLite's own shell."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

import einrel as er

Shop = tuple[Path, NDArray[np.float64]]
PRODUCT = "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    file = tmp_path / "shop.db"
    x = np.random.default_rng(1).standard_normal((9, 4))
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, a, b, c, d)")
        values = [(7 * i, *map(float, row)) for i, row in enumerate(x)]
        connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", values)
    connection.close()
    return file, x


def rows(file: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(file)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def test_queries_and_arrays_are_inputs(shop: Shop) -> None:
    file, x = shop
    y = np.random.default_rng(2).standard_normal((4, 5))
    program = er.program(PRODUCT)
    query = "query:SELECT a, b, c, d FROM samples ORDER BY id"
    result = program.run_in_database(f"sqlite:{file}", X=query, Y=y)
    np.testing.assert_allclose(np.asarray(result.Z), x @ y, rtol=1e-12)
    assert result.steps == 1
    lazy = er.asarray(y) * 2
    result = program.run_in_database(
        f"sqlite:{file}", {"X": query}, Y=lazy, tables={"Z": "scores"}, formats="X=row,tile-2"
    )
    assert result == {}
    found = np.zeros((9, 5))
    for i, k, value in rows(file, "SELECT i, k, value FROM scores"):
        found[i, k] = value
    np.testing.assert_allclose(found, 2 * x @ y, rtol=1e-12)


def test_absent_elements_are_zeros_of_what_is_sparse(shop: Shop) -> None:
    file, x = shop
    y = np.zeros((4, 5))
    y[1, 2], y[3, 0] = 2, -1
    program = er.program(PRODUCT, dims={"k": 5})
    values = "sparse:query:SELECT 1 AS j, 2 AS k, 2.0 AS value UNION ALL SELECT 3, 0, -1.0"
    samples = "query:SELECT a, b, c, d FROM samples ORDER BY id"
    for formats in (None, "tile-3", "element"):
        result = program.run_in_database(f"sqlite:{file}", X=samples, Y=values, formats=formats)
        np.testing.assert_allclose(np.asarray(result.Z), x @ y, rtol=1e-12)
    with pytest.raises(er.ProgramError, match="a hole.*sparse:table:NAME"):
        er.program(PRODUCT).run_in_database(f"sqlite:{file}", X=samples, Y=values.removeprefix("sparse:"))


def test_formats_are_explained_without_a_run() -> None:
    program = er.program(PRODUCT, dims={"i": 2000, "j": 3000, "k": 50})
    text = program.explain_sql(formats="X=row-strip-100")
    for word in ("formats of least cost", "X[i,j]", "row-strip-100", "as --formats says", "compute"):
        assert word in text
    explained = json.loads(program.explain_sql("postgres", formats="X=row-strip-100", json=True))
    assert [tensor["name"] for tensor in explained["tensors"]] == ["X", "Y", "Z"]
    assert explained["tensors"][0]["format"] == "row-strip-100"
    for formats in ("element", "X=rows"):
        with pytest.raises(er.ProgramError, match=formats[2:]):
            program.explain_sql(formats=formats)
    with pytest.raises(er.ProgramError, match="postgres"):
        program.explain_sql("oracle")
    with pytest.raises(er.ProgramError, match="extent"):
        er.program(PRODUCT).explain_sql()


def test_states_go_on_in_the_database(shop: Shop) -> None:
    file, x = shop
    y = np.sign(x[:, 0])
    program = er.program(
        "input X[b,f] : f64, Y[b] : f64\nscalar eta = 0.5\ndims f=4\nstate W[f] = f64(0)\n"
        "E[b] = (sum[f] X[b,f] * W[f]) - Y[b]\n"
        "loss[] = mean[b] sq(E[b])\nminimize loss over W by sgd(eta)\noutput loss, next_W\n"
    )
    samples = "query:SELECT a, b, c, d FROM samples ORDER BY id"
    result = program.run_in_database(
        f"sqlite:{file}", X=samples, Y=y, steps=6, scalars={"eta": 0.1}, tables={"next_W": "w"}
    )
    w = np.zeros(4)
    for _ in range(6):
        loss = np.mean((x @ w - y) ** 2)
        w = w - 0.1 * 2 * x.T @ (x @ w - y) / 9
    assert result.steps == 6
    np.testing.assert_allclose(float(result.loss), loss, rtol=1e-12)
    np.testing.assert_allclose([value for _, value in sorted(rows(file, "SELECT * FROM w"))], w, rtol=1e-12)
    more = program.run_in_database(f"sqlite:{file}", X=x, Y=y, W="table:w", scalars={"eta": 0.1})
    np.testing.assert_allclose(float(more.loss), np.mean((x @ w - y) ** 2), rtol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "options", "words"),
    [
        ({"X": "query:SELECT a, b, nullif(c, c), d FROM samples", "Y": np.eye(4)}, {}, ["NULL", "column=2"]),
        ({"X": "samples", "Y": np.eye(4)}, {}, ["X is given as 'samples'", "table:NAME"]),
        ({"X": "sparse:samples", "Y": np.eye(4)}, {}, ["sparse:table:NAME"]),
        ({"X": "table:nowhere", "Y": np.eye(4)}, {}, ["no table 'nowhere'"]),
        ({"X": "table:sam\0ples", "Y": np.eye(4)}, {}, ["no table", "sam", "ples"]),
        ({"X": "query:SELECT a, b, c, d FROM \0samples", "Y": np.eye(4)}, {}, ["NUL byte"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"tables": {"Z": "a\0b"}}, ["NUL byte"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"chunks": {"Z": "a\0b"}}, ["NUL byte"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"tables": {"Z": "z"}, "chunks": {"Z": "Z"}}, ["two", "'Z'"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"chunks": {"Z": "z"}, "formats": "element"}, ["Z", "element"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"analyze": True, "formats": "element"}, ["analyze", "element"]),
        ({"X": np.eye(4)}, {}, ["missing", "Y[j,k] : f64"]),
        ({"X": np.eye(4), "Y": np.eye(4), "Q": np.eye(4)}, {}, ["no input 'Q'"]),
        ({"X": np.eye(4), "Y": np.eye(3)}, {}, ["X", "Y", "4", "3"]),
        ({"X": np.eye(4, dtype="f"), "Y": np.eye(4)}, {}, ["f32", "X"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"tables": {"Z": "samples"}}, ["'samples' already"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"tables": {"Q": "new"}}, ["Q"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"tables": {"Z": "table:new"}}, ["Z becomes 'table:new'", "without table:"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"chunks": {"Z": "chunks:new"}}, ["Z becomes 'chunks:new'"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"formats": "X=rows"}, ["no format 'rows'"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"steps": 2}, ["steps", "state"]),
        ({"X": np.eye(4), "Y": np.eye(4)}, {"scalars": {"eta": 1.0}}, ["no scalar 'eta'"]),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(
    shop: Shop, inputs: dict[str, Any], options: dict[str, Any], words: list[str]
) -> None:
    file, _ = shop
    before = file.read_bytes()
    with pytest.raises(er.ProgramError) as raised:
        er.program(PRODUCT).run_in_database(f"sqlite:{file}", inputs, **options)
    for word in words:
        assert word in str(raised.value)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tables": ["Z"]}, "tables=['Z'] is no mapping from names, such as {'Z': 'scores'}"),
        ({"tables": {"Z": 5}}, "tables['Z']=5 is no text"),
        ({"tables": {5: "Z"}}, "tables={5: 'Z'} is no mapping from names"),
        ({"chunks": "Z"}, "chunks='Z' is no mapping from names, such as {'Z': 'scores'}"),
        ({"scalars": ["eta"]}, "scalars=['eta'] is no mapping from names, such as {'eta': 0.1}"),
        ({"scalars": {"eta": "1"}}, "scalars['eta']='1' is no number"),
        ({"formats": {"X": "row"}}, "formats={'X': 'row'} is no text, such as 'X=row,tile-500'"),
        ({"steps": 2.5}, "steps=2.5 is no whole number"),
    ],
)
def test_a_value_of_another_type_names_its_option(options: dict[str, Any], said: str) -> None:
    program = er.program(PRODUCT, dims={"i": 4})
    runs = [lambda **options: program.run_in_database("sqlite::memory:", X=np.eye(4), Y=np.eye(4), **options)]
    if "scalars" in options:
        runs += [lambda **options: program.run(X=np.eye(4), Y=np.eye(4), **options), program.sql]
    if "formats" in options:
        runs += [program.sql, program.explain_sql]
    for run in runs:
        with pytest.raises(TypeError, match=re.escape(said)):
            run(**options)


def test_a_value_of_another_type_names_its_argument(shop: Shop) -> None:
    program = er.program(PRODUCT)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: program.run_in_database(shop[0]), "database=PosixPath('"),
        (lambda: er.calibrate(database=shop[0]), "is no text, such as 'sqlite:FILE'"),
        (lambda: er.calibrate(threads="2"), "threads='2' is no whole number"),
        (lambda: program.run_in_database("sqlite:x.db", np.eye(4)), "is no mapping from names, such as {'X': array}"),
        (lambda: program.run([np.eye(4)]), "is no mapping from names, such as {'X': array}"),
        (lambda: program.explain_sql(5), "dialect=5 is no text"),
        (lambda: program.explain_sql(None), "dialect=None is no text"),
        (lambda: program.sql(b"sqlite"), "dialect=b'sqlite' is no text"),
        (lambda: program.sql("postgres", schema=5), "schema=5 is no text"),
        (lambda: er.program(5), "text=5 is no text"),
        (lambda: er.program(PRODUCT, name=5), "name=5 is no text"),
        (lambda: er.program(PRODUCT, dims=["i"]), "dims=['i'] is no mapping from names, such as {'b': 100}"),
        (lambda: er.program(PRODUCT, dims={"i": 2.5}), "dims['i']=2.5 is no whole number"),
    ]
    for call, said in calls:
        with pytest.raises(TypeError, match=re.escape(said)):
            call()


def test_no_text_has_half_a_character() -> None:
    half, program = "\udcff", er.program(PRODUCT)
    given = {"X": np.eye(4), "Y": np.eye(4)}
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: program.run_in_database(f"sqlite:{half}", given), "database: 'sqlite:"),
        (lambda: program.run_in_database("sqlite::memory:", given | {"X": f"table:{half}"}), "X: 'table:"),
        (lambda: program.run_in_database("sqlite::memory:", given | {half: 1}), "inputs: '"),
        (lambda: program.run_in_database("sqlite::memory:", given, tables={"Z": half}), re.escape("tables['Z']: '")),
        (lambda: er.program(PRODUCT + half), "text: '"),
    ]
    for call, said in calls:
        with pytest.raises(er.ProgramError, match=rf"^{said}.*\\udcff' is not valid Unicode$"):
            call()


@pytest.mark.parametrize("x", [None, Path("x.npy"), b"table:x", {"table": "x"}, np.array([None])])
def test_what_is_no_array_is_named(x: Any) -> None:
    program = er.program(PRODUCT)
    for run in (program.run, lambda **inputs: program.run_in_database("sqlite::memory:", **inputs)):
        with pytest.raises(NotImplementedError, match="^the input 'X': arrays of "):
            run(X=x, Y=np.eye(4))
    with pytest.raises(TypeError, match="^the input 'X': an array with a mask"):
        program.run(X=np.ma.masked_array(np.eye(4), np.eye(4)), Y=np.eye(4))


def test_an_input_is_given_once() -> None:
    program = er.program(PRODUCT)
    for run in (program.run, lambda *inputs, **named: program.run_in_database("sqlite::memory:", *inputs, **named)):
        with pytest.raises(er.ProgramError, match="the input 'X' is given twice"):
            run({"X": "table:x"}, X=np.eye(4), Y=np.eye(4))
    with pytest.raises(er.ProgramError, match=r"missing input Y\[4,4\] : f64; give Y as .* or a tensor$"):
        er.program(PRODUCT, dims={"k": 4}).run_in_database("sqlite::memory:", X=np.eye(4))


def test_inputs_may_have_the_names_of_options() -> None:
    names = ["scalars", "steps", "state", "options", "tables", "chunks", "formats", "analyze", "database", "inputs"]
    for name in [*names, "self"]:
        program = er.program(f"input {name}[i] : f64\nZ[i] = {name}[i] + f64(1)\n")
        given = {name: np.ones(2)}
        assert program.run(given).Z.tolist() == [2, 2]
        assert program.run_in_database("sqlite::memory:", given).Z.tolist() == [2, 2]
        counting = er.program(f"input {name}[]\nstate x[] = 0.0\nnext x[] = x[] + {name}[]\noutput next_x")
        steps = counting.steps({name: iter(np.ones(3, "f"))})
        assert [float(step.next_x) for step in steps] == [1, 2, 3]
    words = "= is an option, so the input of that name goes into a mapping.*"
    for name in names[:4]:
        program = er.program(f"input {name}[i]\nZ[i] = {name}[i] + 1\n")
        with pytest.raises(er.ProgramError, match=f"{name}{words}{{'{name}': ...}}"):
            program.run(**{name: np.ones(2, "f")})
    for name in [*names[:2], *names[4:8]]:
        program = er.program(f"input {name}[i]\nZ[i] = {name}[i] + 1\n")
        with pytest.raises(er.ProgramError, match=f"{name}{words}{{'{name}': ...}}"):
            program.run_in_database("sqlite::memory:", **{name: np.ones(2, "f")})


@pytest.mark.parametrize("database", ["shop.db", "sqlite:", "oracle:x", "sqlite:/nowhere/at/all.db"])
def test_databases_that_are_none(database: str) -> None:
    with pytest.raises((er.ProgramError, er.RunError), match="^database: write|^cannot (open|write)"):
        er.program(PRODUCT).run_in_database(database, X=np.eye(4), Y=np.eye(4))


def test_an_interrupted_run_leaves_the_database(shop: Shop) -> None:
    file, _ = shop
    before = file.read_bytes()
    program = er.program("state x[] = f64(1)\nnext x[] = x[] + 1\noutput next_x\n")
    before_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            program.run_in_database(f"sqlite:{file}", steps=10**9, tables={"next_x": "counted"})
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before_handler)
    time.sleep(0.2)  # for the statement that was under way
    assert file.read_bytes() == before
    assert rows(file, "SELECT name FROM sqlite_master WHERE name = 'counted'") == []


def test_an_interrupted_run_ends_in_the_middle_of_a_statement(shop: Shop) -> None:
    """Of a query without an end, in a transaction that writes."""
    file, _ = shop
    before = file.read_bytes()
    endless = (
        "query:WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i, i AS value FROM n WHERE i < 0"
    )
    program = er.program("dims i=2\nstate x[i] = f64(1)\nnext x[i] = x[i] + 1\noutput next_x\n")
    before_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            program.run_in_database(f"sqlite:{file}", x=endless, tables={"next_x": "counted"})
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before_handler)
    with sqlite3.connect(file, timeout=20) as connection:
        connection.execute("BEGIN IMMEDIATE")  # nobody else writes
        connection.rollback()
    connection.close()
    assert file.read_bytes() == before


def test_arrays_become_programs_for_a_database(shop: Shop) -> None:
    """With numbers in them, of several types, gradients, and results that others are made of."""
    file, x = shop
    given, w = er.asarray(x), er.asarray(np.random.default_rng(4).standard_normal((4, 5)))
    hidden = er.tanh(given @ w) * 0.3 + 0.1
    outputs = {
        "Z": hidden,
        "total": er.where(hidden > 0.1, hidden, 0).sum(),
        "slope": er.grad((hidden * hidden).sum(), w),
        "same": er.where(hidden > 0.1, hidden, 0).sum(),
    }
    program = er.program_of(outputs, {"X": given, "W": w})
    assert [info.name for info in program.inputs] == ["X", "W"]
    result = program.run_in_database(f"sqlite:{file}", X="query:SELECT a, b, c, d FROM samples", W=w)
    for name, array in outputs.items():
        np.testing.assert_allclose(result[name], np.asarray(array), rtol=1e-12)
    again = er.program(program.text).run(X=x * 2, W=w)
    np.testing.assert_allclose(again.Z, np.tanh(2 * x @ np.asarray(w)) * 0.3 + 0.1, rtol=1e-12)
    assert "CREATE TABLE" in program.sql("duckdb", formats="element")


def test_names_are_those_that_were_given() -> None:
    """Whatever the program calls what nobody has named."""
    x, w = er.asarray(np.arange(6.0).reshape(2, 3)), er.asarray(np.ones((2, 3)) * 2)
    for names in itertools.permutations(("x1", "x2", "t1", "t2"), 4):
        made = (x * w + 1) * x
        program = er.program_of({names[0]: made, names[1]: er.exp(made)}, {names[2]: x, names[3]: w})
        results = program.run({names[2]: x, names[3]: w})
        np.testing.assert_allclose(results[names[0]], made)
        np.testing.assert_allclose(results[names[1]], np.exp(np.asarray(made)))


def an_array(count: int = 2) -> er.Array:
    return er.asarray(np.ones(count))


@pytest.mark.parametrize(
    ("outputs", "inputs", "error", "said"),
    [
        (lambda x: {}, lambda x: {"x": x}, er.ProgramError, "without outputs"),
        (lambda x: {"y": x}, lambda x: {"x": x}, er.ProgramError, "y is an input, or has been computed"),
        (lambda x: {"y": er.exp(x)}, lambda x: {"x": er.exp(x)}, er.ProgramError, "x is made of other arrays"),
        (
            lambda x: {"y": er.exp(x)},
            lambda x: {},
            er.ProgramError,
            "an array of the shape (2,) that is none of the inputs",
        ),
        (lambda x: {"y": er.exp(x)}, lambda x: {"x": x, "w": an_array()}, er.ProgramError, "made of the input w"),
        (lambda x: {"y": er.exp(x)}, lambda x: {"x": x, "w": x}, er.ProgramError, "are the same array"),
        (lambda x: {"y": er.exp(x)}, lambda x: {"x y": x}, er.ProgramError, "x y"),
        (lambda x: {"y": np.ones(2)}, lambda x: {"x": x}, TypeError, "not of ndarray"),
        (lambda x: er.exp(x), lambda x: {"x": x}, TypeError, "outputs="),
    ],
)
def test_what_is_no_program_says_why(
    outputs: Callable[[er.Array], Any], inputs: Callable[[er.Array], Any], error: type[Exception], said: str
) -> None:
    x = an_array()
    with pytest.raises(error, match=re.escape(said)):
        er.program_of(outputs(x), inputs(x))


def test_two_threads_run_at_a_time(shop: Shop) -> None:
    file, x = shop
    results: dict[int, Any] = {}

    def run(name: int) -> None:
        results[name] = np.asarray(er.program(PRODUCT).run_in_database(f"sqlite:{file}", X=x, Y=np.eye(4)).Z)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        np.testing.assert_array_equal(results[i], x)


PLAIN = [
    ("dims i=3 j=4 k=2\ninput X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n", {}),
    (
        "dims i=3 j=4\nscalar eta\ninput X[i,j] : f64\nM[i] = max[j] X[i,j]\nZ[i,j] = exp(X[i,j] - M[i]) * eta\n",
        {"eta": 0.5},
    ),
    ("dims i=5 w=3 o=4\ninput X[i] : f64\nK[w] = w + f64(1)\nZ[o] = sum[w] pad(X[o+w-1], 0) * K[w]\n", {}),
    ("dims i=4 j=3\ninput X[i,j] : f64\nV[(j i)] = view X[i,j]\nZ[] = logsumexp[j,i] X[i,j]\noutput V, Z\n", {}),
    ("dims i=4 j=3\ninput X[i,j] : f64\nZ[i] = argmin[j] X[i,j]\nP[j] = prod[i] X[i,j]\noutput Z, P\n", {}),
]


def made_by_duckdb(
    text: str, inputs: dict[str, Any], scalars: dict[str, float] | None = None, value_type: str = "DOUBLE"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the script, as it is printed, makes of tables with values of that type, and what the program computes."""
    program = er.program(text)
    connection = duckdb.connect()
    for info in program.inputs:
        columns = "".join(f'"{label}" BIGINT, ' for label in info.labels)
        connection.execute(f'CREATE TABLE "{info.name}" ({columns}"value" {value_type})')
        array = inputs[info.name]
        values = [(*map(int, np.unravel_index(at, array.shape)), float(array.flat[at])) for at in range(array.size)]
        connection.executemany(f'INSERT INTO "{info.name}" VALUES ({", ".join("?" * (array.ndim + 1))})', values)
    connection.execute(program.sql("duckdb", formats="element", scalars=scalars))
    wanted = {name: np.asarray(value) for name, value in program.run(inputs, scalars=scalars).items()}
    found = {name: np.full(array.shape, np.nan) for name, array in wanted.items()}
    for name, array in found.items():
        for *key, value in connection.execute(f'SELECT * FROM "{name}"').fetchall():
            array[tuple(key)] = value
    return found, wanted


@pytest.mark.parametrize(("text", "scalars"), PLAIN)
def test_plain_scripts_run_in_duckdb(text: str, scalars: dict[str, float]) -> None:
    random = np.random.default_rng(7)
    inputs = {
        info.name: random.standard_normal([extent or 0 for extent in info.extents]) for info in er.program(text).inputs
    }
    found, wanted = made_by_duckdb(text, inputs, scalars)
    for name, expected in wanted.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, err_msg=name)


def test_plain_scripts_in_duckdb_know_nan_and_infinities() -> None:
    special = [np.nan, np.inf, -np.inf, 0.0, 1.5, -1000.0, 1000.0]
    rows = np.array(np.meshgrid(special, special, special)).reshape(3, -1).T.copy()
    text = f"dims i={len(rows)} j=3\ninput X[i,j] : f64\n"
    for reducer in ("sum", "sumsq", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "logsumexp"):
        text += f"of_{reducer}[i] = {reducer}[j] X[i,j]\n"
    found, wanted = made_by_duckdb(text + "E[i,j] = exp(X[i,j])\nS[i,j] = sigmoid(X[i,j])\n", {"X": rows})
    for name, expected in wanted.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, err_msg=name)


def test_plain_scripts_in_duckdb_compute_with_the_types_of_the_language() -> None:
    text = (
        "dims i=3\ninput X[i], Y[i] : f64\ninput N[i] : i64\nZ[i] = X[i] / Y[i]\nM[] = max[i] X[i]\nV[i] = view Y[i]\n"
        "W[i] = M[] / V[i]\nS[] = sum[i] X[i]\nH[] = S[] / 4\nQ[i] = N[i] * N[i] * 100000\noutput Z, W, H, Q\n"
    )
    inputs = {"X": np.array([1.0, 2, 5]), "Y": np.array([2.0, 3, 4]), "N": np.array([30000, -2, 7])}
    for value_type in ("SMALLINT", "INTEGER", "BIGINT", "DECIMAL(9, 2)", "REAL"):
        found, wanted = made_by_duckdb(text, inputs, value_type=value_type)
        for name, expected in wanted.items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-12, err_msg=f"{value_type}, {name}")


def test_scripts_say_what_they_are_not_for() -> None:
    with pytest.raises(er.ProgramError, match="extents"):
        er.program(PRODUCT).sql()
    with pytest.raises(er.ProgramError, match="no dialect 'duckbd'.*duckdb"):
        er.program(PLAIN[0][0]).sql("duckbd")
    for tell in (er.program(PLAIN[0][0]).sql, er.program(PLAIN[0][0]).explain_sql):
        with pytest.raises(er.ProgramError, match="DuckDB has no functions.*; with formats=element"):
            tell("duckdb")
    with pytest.raises(er.ProgramError, match="state"):
        er.program("state x[] = 1.0\nnext x[] = 2 * x[]\noutput next_x").sql()
    program = er.program(PLAIN[0][0])
    assert "einrel_kernel" in program.sql("postgres")
    for formats in (None, "element"):
        assert '"public".' in program.sql("postgres", formats=formats)
        script = program.sql("postgres", schema='a "shop"', formats=formats)
        assert 'CREATE TABLE "a ""shop""".' in script
        assert '"public".' not in script
    with pytest.raises(er.ProgramError, match="a schema is of PostgreSQL's scripts, not of sqlite"):
        program.sql("sqlite", schema="main")
    with pytest.raises(er.ProgramError, match="the schema of the script's tables has no name"):
        program.sql("postgres", schema="")


def test_an_analysis_has_what_was_predicted_beside_what_was_measured(shop: Shop) -> None:
    file, x = shop
    program = er.program(PRODUCT)
    query = "query:SELECT a, b, c, d FROM samples ORDER BY id"
    result = program.run_in_database(f"sqlite:{file}", X=query, Y=np.eye(4), formats="X=row", analyze=True)
    np.testing.assert_array_equal(np.asarray(result.Z), x)
    assert result.analysis is not None and result.analysis_json is not None
    for words in ("measured", "Z[i,k] = sum[j] X[i,j] * Y[j,k]", "as --formats says", "in all"):
        assert words in result.analysis
    found = json.loads(result.analysis_json)
    assert [tensor["name"] for tensor in found["tensors"]] == ["X", "Y", "Z"]
    assert all(tensor["measured"] > 0 and tensor["cost"]["seconds"] > 0 for tensor in found["tensors"])
    assert found["measured"]["seconds"] >= sum(tensor["measured"] for tensor in found["tensors"])
    plain = program.run_in_database(f"sqlite:{file}", X=query, Y=np.eye(4))
    assert (plain.analysis, plain.analysis_json) == (None, None)


def test_chunks_are_kept_and_read(shop: Shop) -> None:
    file, x = shop
    y = np.random.default_rng(3).standard_normal((4, 5))
    program = er.program(PRODUCT)
    kept = {"Z": "strips"}
    program.run_in_database(f"sqlite:{file}", X=x, Y=y, chunks=kept, tables={"Z": "elements"}, formats="Z=row-strip-4")
    strips = rows(file, "SELECT k0, k1, chunk FROM strips ORDER BY k0")
    assert [key for *key, _ in strips] == [[0, 0], [1, 0], [2, 0]]
    elements = b"".join(chunk[24:] for *_, chunk in strips)
    np.testing.assert_allclose(np.frombuffer(elements).reshape(9, 5), x @ y, rtol=1e-12)
    assert len(rows(file, "SELECT * FROM elements")) == 45
    result = program.run_in_database(f"sqlite:{file}", X="table:strips", Y=np.eye(5), analyze=True)
    np.testing.assert_allclose(np.asarray(result.Z), x @ y, rtol=1e-12)
    assert "as it lies" in str(result.analysis)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE strips SET chunk = x'00' WHERE k0 = 1")
    connection.close()
    with pytest.raises(er.ProgramError, match="table 'strips': column 'chunk' at k0=1, k1=0: these bytes are no array"):
        program.run_in_database(f"sqlite:{file}", X="table:strips", Y=np.eye(5))


def test_a_database_is_calibrated(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, x = shop
    before = file.read_bytes()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for options, words in (
        ({"database": "shop.db"}, "sqlite:FILE"),
        ({"database": "sqlite:gone.db"}, "cannot open"),
        ({"database": f"sqlite:{file}", "threads": 2}, "threads"),
    ):
        with pytest.raises(er.ProgramError, match=words):
            er.calibrate(**options)
    before_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            er.calibrate(database=f"sqlite:{file}")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before_handler)
    settings = tmp_path / "einrel" / "databases.json"
    assert not settings.exists()
    try:
        said = er.calibrate(database=f"sqlite:{file}")
    except er.RunError as error:  # as where tests run side by side
        assert "queries were measured 2 times, and still" in str(error) and not settings.exists()
        return
    assert "R^2" in said and str(settings) in said
    assert file.read_bytes() == before
    (found,) = json.loads(settings.read_text())["databases"]
    result = er.program(PRODUCT).run_in_database(f"sqlite:{file}", X=x, Y=np.eye(4), analyze=True)
    used = json.loads(str(result.analysis_json))["weights"]
    assert used == {"workers": 1} | {name: found[name] for name in used if name != "workers"}
