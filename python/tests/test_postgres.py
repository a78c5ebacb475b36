"""What programs in a database of PostgreSQL are given, on a server of its own without Einrel's extension."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import einrel as er

sys.path.insert(0, str(Path(__file__).parents[2] / "test/postgres"))

from server import Server  # type: ignore[import-not-found]

PRODUCT = "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    programs = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True).stdout.strip()
    with Server(programs) as running:
        running.sql(
            "CREATE TABLE samples AS SELECT i, j, CAST(i * 4 + j AS float8) AS value "
            "FROM generate_series(0, 2) AS i, generate_series(0, 3) AS j; CREATE SCHEMA shop"
        )
        yield running


def tables(server: Any) -> str:
    return str(server.sql("SELECT relnamespace, relname FROM pg_class WHERE oid >= 16384 ORDER BY 1, 2"))


def test_a_table_becomes_a_table(server: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    y = np.random.default_rng(1).standard_normal((4, 2))
    before = tables(server)
    program = er.program(PRODUCT)
    result = program.run_in_database(server.url, X="table:samples", Y=y, formats="element")
    np.testing.assert_allclose(np.asarray(result.Z), x @ y, rtol=1e-12)
    program.run_in_database(server.url, X="table:samples", Y=y, formats="element", tables={"Z": "shop.made"})
    found = np.zeros((3, 2))
    for row in server.sql("SELECT * FROM shop.made").splitlines():
        i, k, value = row.split("\t")
        found[int(i), int(k)] = float(value)
    np.testing.assert_allclose(found, x @ y, rtol=1e-12)
    server.sql("DROP TABLE shop.made")
    assert tables(server) == before


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"X": "table:samples\0"}, {}),
        ({"X": "table:sam\0ples"}, {}),
        ({"X": "table:public\0.samples"}, {}),
        ({"X": 'table:"samples\0"'}, {}),
        ({"X": "sparse:table:samples\0"}, {}),
        ({"X": "query:SELECT * FROM samples\0"}, {}),
        ({"X": "query:SELECT i, j, value FROM samples\0 WHERE i < 0"}, {}),
        ({"X": "sparse:query:SELECT * FROM samples\0"}, {}),
        ({}, {"tables": {"Z": "made\0"}}),
        ({}, {"tables": {"Z": "shop\0.made"}}),
        ({}, {"tables": {"Z": "shop.made\0"}}),
    ],
)
def test_a_nul_byte_is_refused_wherever_it_stands(server: Any, inputs: dict[str, str], options: dict[str, Any]) -> None:
    """C ends a text there, and so a name or a query would be another one."""
    before = tables(server)
    with pytest.raises(er.ProgramError, match="NUL byte"):
        er.program(PRODUCT).run_in_database(
            server.url, {"X": "table:samples", "Y": np.eye(4)} | inputs, **{"formats": "element"} | options
        )
    assert tables(server) == before


def test_a_nul_byte_in_a_url_is_refused(server: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.db").touch()
    for database in (f"{server.url}\0", server.url.replace("/einrel?", "/einrel\0x?"), f"sqlite:{tmp_path}/shop.db\0x"):
        with pytest.raises(er.ProgramError, match="NUL byte"):
            er.program(PRODUCT).run_in_database(database, X=np.eye(4), Y=np.eye(4))
        with pytest.raises(er.ProgramError, match="NUL byte"):
            er.calibrate(database=database)


def test_a_nul_byte_in_a_label_is_refused(server: Any) -> None:
    with pytest.raises(er.ProgramError):
        er.program(PRODUCT.replace("j", "j\0"))
    with pytest.raises(er.ProgramError, match="i"):
        er.program(PRODUCT, dims={"i\0": 3}).run_in_database(server.url, X="table:samples", Y=np.eye(4))
    columns = 'query:SELECT i AS "i\0", j, value FROM samples'
    with pytest.raises(er.ProgramError, match="NUL byte"):
        er.program(PRODUCT).run_in_database(server.url, X=columns, Y=np.eye(4), formats="element")
