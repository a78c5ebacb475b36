"""Scripts of all documents (test/lang) in DuckDB, as they are printed, against runs and what the documents say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import einrel as er

sys.path.insert(0, str(Path(__file__).parents[2] / "test/lang"))

import documents  # type: ignore[import-not-found]

STATELESS = {document.name: document for document in documents.stateless()}
# What plain SQL does not compute, or not as the language defines it, by words of what is said then.
NOT_PLAIN = {
    "13_functions": "no erf",
    "14_accurate_functions": "no erf",
    "30_casts": "no floats that narrow",
    "34_integers_wrap": "powers of whole numbers",
    "38_numbers_alone": "powers of whole numbers",
    "39_narrow_casts": "no floats that narrow",
    "3a_statements_round_once": "no floats that narrow",
    "90_inverse": "no linear algebra",
    "90_qr": "no linear algebra",
    "91_random_numbers": "random numbers",
    "92_gathers": "does not check an index",
    "94_complex": "does not check an index",
    "96_gradients_at_kinks": "tables a and A",
    "97_gradients_of_reads": "tables b and B",
    "98_gradients_of_gathers": "tables c2 and C2",
    "error_gather_negative": "does not check an index",
    "error_gather_outside": "does not check an index",
}
DIFFERENT = {"37_integer_products": "Overflow in multiplication of INT64"}


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, float) else str(int(value))  # 'nan', '-inf'


def made(inputs: dict[str, Any], arrays: dict[str, Any], script: str, tables: list[str]) -> dict[str, list[Any]]:
    """The rows of these tables, by name, once the script is done."""
    connection = duckdb.connect()
    for name, info in inputs.items():
        is_float = info.dtype in documents.EPSILONS
        columns = "".join(f'"{label}" BIGINT, ' for label in info.labels)
        connection.execute(f'CREATE TABLE "{name}" ({columns}"value" {"DOUBLE" if is_float else "BIGINT"})')
        array = arrays[name]
        rows = [f"({', '.join(map(literal, (*key, array[key].item())))})" for key in np.ndindex(array.shape)]
        if rows:
            connection.execute(f'INSERT INTO "{name}" VALUES {", ".join(rows)}')
    connection.execute(script)
    return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}


def expect_comments(script: str) -> None:
    begin, *statements, end = script.split("\n\n")
    assert (begin, end) == ("BEGIN;", "COMMIT;\n")
    for statement in statements:
        if statement.startswith("DROP "):  # of what the script made on its way
            assert all(line.startswith("DROP TABLE ") for line in statement.splitlines())
            continue
        about, _, text = statement.partition("\n")
        assert about.startswith("-- ") and about.endswith("; element")
        assert text.startswith("CREATE ") and text.endswith(";")


@pytest.mark.parametrize("name", STATELESS)
def test_scripts_of_documents_make_in_duckdb_what_a_run_gives(name: str) -> None:
    document = STATELESS[name]
    program = er.program(document.text, dims={label: int(extent) for label, extent in document.dims().items()})
    scalars = {scalar: float(value) for scalar, value in document.assignments("scalar").items()}
    if name in NOT_PLAIN:
        with pytest.raises(er.ProgramError, match=NOT_PLAIN[name]):
            program.sql("duckdb", formats="element", scalars=scalars)
        return
    script = program.sql("duckdb", formats="element", scalars=scalars)
    expect_comments(script)
    inputs, arrays = document.inputs(), document.arrays()
    assert {info.name: (list(info.labels), info.dtype) for info in program.inputs} == {
        each: (info.labels, info.dtype) for each, info in inputs.items()
    }
    given = {
        each: array.astype(er.bfloat16 if inputs[each].dtype == "bf16" else array.dtype)
        for each, array in arrays.items()
    }
    wanted = program.run(given, scalars=scalars)
    said = []
    try:
        rows = made(inputs, arrays, script, list(wanted))
    except duckdb.Error as error:
        said.append(str(error))
        rows = {}
    for info in program.outputs if rows else []:
        right = np.asarray(wanted[info.name]).astype(documents.TYPES[info.dtype])
        tolerance = document.tolerances().get(info.name)
        said.append(documents.difference(info.name, info.dtype, rows[info.name], right, tolerance))
        if info.name in document.literals("expect"):
            numbers, tolerance = document.literals("expect")[info.name]
            said.append(
                documents.difference(info.name, info.dtype, rows[info.name], np.array(numbers, right.dtype), tolerance)
            )
    words = "; ".join(filter(None, said))
    if name in DIFFERENT:
        assert DIFFERENT[name] in words
    else:
        assert words == ""


def test_names_that_duckdb_takes_for_one_are_refused() -> None:
    with pytest.raises(er.ProgramError, match="both tables x and X.*the same name"):
        er.program("dims i=3\ninput x[i] : f64\nX[i] = x[i] + 1").sql("duckdb", formats="element")
