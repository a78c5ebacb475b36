"""The functions as a loadable extension of SQLite, in Python's and in its shell: printed scripts run, and no bytes crash it.

Usage: sql_extension_test.py EINREL EXTENSION
"""

import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from einrel_process import ProgramTest, main, sqlite_with

EXTENSION = sys.argv.pop(2)
LAYERS = """dims b=13 f=7 h=5
input X[b,f] : f64
input W[f,h] : f64
H[b,h] = relu(sum[f] X[b,f] * W[f,h])
M[h] = max[b] H[b,h]
Z[b,h] = H[b,h] - M[h]
output Z, M
"""


def connection():
    return sqlite_with(EXTENSION)


def functions(database):
    """Names, and whether they are aggregates."""
    listed = database.execute("SELECT name, type <> 's' FROM pragma_function_list WHERE name GLOB 'einrel_*'")
    return {name: bool(is_aggregate) for name, is_aggregate in listed if name != "einrel_version"}


class Extension(ProgramTest):
    def test_the_extension_of_postgresql_has_the_same_functions(self):
        folder = Path(__file__).parents[2] / "src/sql/postgres/extension"
        made = re.findall(r"^CREATE (FUNCTION|AGGREGATE) (\w+)\(", (folder / "einrel--1.0.sql").read_text(), re.M)
        aggregates = {name for kind, name in made if kind == "AGGREGATE"}
        found = {name: name in aggregates for _, name in made if name.rpartition("_")[0] not in aggregates}
        for name in ("einrel_elements", "einrel_to_array", "einrel_from_array", "einrel_receive"):  # tables and types are its own
            self.assertFalse(found.pop(name))
        self.assertEqual(found, functions(connection()))

    def test_scripts_run_in_any_program(self):
        random = np.random.default_rng(1)
        x, w = random.standard_normal((13, 7)), random.standard_normal((7, 5))
        hidden = np.maximum(x @ w, 0)
        program = self.text_file("layers.ein", LAYERS)
        for formats in (None, "tile-3", "X=row,W=single"):
            with self.subTest(formats=formats):
                script = self.succeed("sql", program, *(["--formats", formats] if formats else [])).out
                database = connection()
                for name, array in (("X", x), ("W", w)):
                    labels = {"X": "b, f", "W": "f, h"}[name]
                    database.execute(f"CREATE TABLE {name} ({labels}, value)")
                    rows = [(*map(int, np.unravel_index(at, array.shape)), float(array.flat[at])) for at in range(array.size)]
                    database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
                database.executescript(script)
                found = np.full((13, 5), np.nan)
                for b, h, value in database.execute("SELECT b, h, value FROM Z"):
                    found[b, h] = value
                np.testing.assert_allclose(found, hidden - hidden.max(0), rtol=1e-12, atol=1e-12)
                most = [value for _, value in sorted(database.execute("SELECT h, value FROM M"))]
                np.testing.assert_allclose(most, hidden.max(0), rtol=1e-12)
                database.close()

    def test_scripts_run_in_the_shell(self):
        random = np.random.default_rng(4)
        x, w = random.standard_normal((13, 7)), random.standard_normal((7, 5))
        script = self.succeed("sql", self.text_file("layers.ein", LAYERS), "--formats", "X=row-strip-4,tile-3").out
        words = []
        for name, labels, array in (("X", "b, f", x), ("W", "f, h", w)):
            words.append(f"CREATE TABLE {name} ({labels}, value);")
            words += [f"INSERT INTO {name} VALUES ({i}, {j}, {float(array[i, j])!r});" for i, j in np.ndindex(array.shape)]
        for file in (EXTENSION, EXTENSION.removesuffix(".so")):  # the shell adds what is missing
            with self.subTest(file=file):
                done = subprocess.run(["sqlite3", "-batch", "-bail"], input="\n".join([f".load {file}", *words, script, "SELECT h, value FROM M;"]),
                                      capture_output=True, text=True, timeout=100, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                found = [float(line.split("|")[1]) for line in sorted(done.stdout.splitlines()[-5:])]
                np.testing.assert_allclose(found, np.maximum(x @ w, 0).max(0), rtol=1e-12)

    def test_connections_come_and_go(self):
        for _ in range(20):
            first, second = connection(), connection()
            self.assertEqual(first.execute("SELECT einrel_version()").fetchall(), second.execute("SELECT einrel_version()").fetchall())
            first.close()
            array = second.execute("SELECT einrel_zeros('f32', 2, 3)").fetchone()[0]
            self.assertEqual(second.execute("SELECT count(*), sum(value) FROM einrel_elements(?)", (array,)).fetchone(), (6, 0))
            second.close()

    def test_a_call_that_fails_leaves_the_next_ones_as_they_are(self):
        database = connection()
        array = database.execute("SELECT einrel_positions(3, 4)").fetchone()[0]
        queries = ("einrel_kernel('id', ?)", "einrel_fold('matAdd', ?)", "einrel_concat(0, 0, ?)", "einrel_place(?, 0)",
                   "einrel_gather('f64', 'T', 1, 1, 1, 0, length(?), 'i', 'value')")
        before = [database.execute("SELECT " + query, (array,)).fetchone()[0] for query in queries]
        self.assertEqual(before[:4], [array] * 4)
        for bad in ("einrel_extent(?, 7)", "einrel_fold('no kernel', ?)", "einrel_place(?)", "einrel_gather('f64', 'T', 1, 2, 1, 0, length(?), 'i', 'value')"):
            for _ in range(2):
                with self.assertRaises(sqlite3.Error):
                    database.execute(f"SELECT {bad} FROM (VALUES (1), (2))", (array,)).fetchall()
            self.assertEqual([database.execute("SELECT " + query, (array,)).fetchone()[0] for query in queries], before, bad)

    def test_a_kernel_ends_when_its_connection_is_interrupted(self):
        weeks = "SELECT einrel_kernel('kernel f(A[i]) -> [] with j=400000000000000 = sum[i,j] A[i]*exp(j)', einrel_zeros('f64', 3))"
        database = sqlite_with(EXTENSION, check_same_thread=False)
        interrupting = threading.Timer(0.3, database.interrupt)
        interrupting.start()
        with self.assertRaisesRegex(sqlite3.OperationalError, "interrupted"):
            database.execute(weeks)
        interrupting.join()
        end = time.monotonic() + 0.3
        database.set_progress_handler(lambda: time.monotonic() > end, 1000)
        with self.assertRaisesRegex(sqlite3.OperationalError, "interrupted"):
            database.execute(weeks)
        database.set_progress_handler(None, 0)
        self.assertEqual(database.execute("SELECT length(einrel_kernel('id', einrel_zeros('f64', 3)))").fetchone(), (40,))

    def test_a_group_is_put_together_along_one_dimension(self):
        rows = "(VALUES (1, 0, 1, 2), (1, 1, 1, 3), (0, 2, 5, 2))"
        with self.assertRaisesRegex(sqlite3.Error, "two dimensions"):
            connection().execute(f"SELECT einrel_concat(column1, column2, einrel_zeros('f32', column3, column4)) FROM {rows}").fetchall()

    def test_no_bytes_crash_it(self):
        random = np.random.default_rng(2)
        database = connection()
        array = database.execute("SELECT einrel_zeros('f32', 3, 4)").fetchone()[0]
        kernels = ["id", "matMul", "relu", "kernel Z(A[i,j]) -> [j,i] = A[i,j]", "", "kernel", "kernel Z(", "diag . matAdd", "\0"]

        def value():
            choice = random.integers(0, 8)
            if choice < 4:  # an array with some bytes changed, cut off or added
                data = bytearray(array)
                for _ in range(random.integers(0, 4)):
                    data[random.integers(0, min(len(data), 40))] = random.integers(0, 256)
                return bytes(data[:random.integers(0, len(data) + 1)]) if random.integers(0, 3) == 0 else bytes(data)
            return [None, int(random.integers(-2**62, 2**62)), int(random.integers(-2, 5)),
                    kernels[random.integers(0, len(kernels))]][choice - 4]

        def right_value(kind):
            if kind == "a":
                return array
            if kind == "n":
                return int(random.integers(0, 3))
            return {"k": "relu", "d": "f64", "c": "key", "0": 0, "1": 1}[kind]

        signatures = {"einrel_kernel": "ka", "einrel_positions": "nn", "einrel_zeros": "dnn", "einrel_tile": "annn", "einrel_box": "annnn",
                      "einrel_extent": "an", "einrel_gather": "dc1110ncc", "einrel_whole": "dc11110c", "einrel_fold": "kan", "einrel_concat": "nna",
                      "einrel_place": "a00"}
        calls = sorted(functions(database))
        answers, failures = Counter(), 0
        for turn in range(6000):
            name = calls[turn % len(calls)]
            wanted = signatures[name]
            if random.integers(0, 3) > 0:  # as it should be called, but for a value now and then
                arguments = [value() if random.integers(0, 12) == 0 else right_value(kind) for kind in wanted]
            else:
                arguments = [value() for _ in range(random.integers(0, 7))]
            if name in ("einrel_kernel", "einrel_fold", "einrel_zeros") and arguments:
                arguments[0] = kernels[random.integers(0, len(kernels))] if name != "einrel_zeros" else "f64"
            query = f"SELECT {name}({', '.join('?' * len(arguments))})"
            if turn % 50 == 0:
                query, arguments = "SELECT sum(value) FROM einrel_elements(?)", [value()]
            try:
                answer = database.execute(query, arguments).fetchone()
                answers[query.partition("(")[0]] += 1
                self.assertTrue(name == "einrel_whole" or turn % 50 == 0 or answer[0] is not None, (query, arguments))
            except (sqlite3.Error, OverflowError, MemoryError):
                failures += 1
        for name in calls:
            self.assertGreater(answers["SELECT " + name], 20, answers)
        self.assertGreater(sum(answers.values()), 1000)
        self.assertGreater(failures, 1000)
        self.assertEqual(database.execute("SELECT einrel_extent(?, 1)", (array,)).fetchone(), (4,))


if __name__ == "__main__":
    main()
