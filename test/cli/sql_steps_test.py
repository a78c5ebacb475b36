"""Programs with state in SQLite."""

import sqlite3

import numpy as np

from einrel_process import ProgramTest, main
from state_tables import StateTables


class StepsInSqlite(StateTables, ProgramTest):
    def setUp(self):
        super().setUp()
        self.file = self.path("a.db")
        self.url = "sqlite:" + self.file
        sqlite3.connect(self.file).close()

    def table(self, name, shape):
        result = np.full(shape, np.nan)
        with sqlite3.connect(self.file) as connection:
            for *key, value in connection.execute(f"SELECT * FROM {name}"):
                result[tuple(key)] = value
        return result

    def tables(self):
        with sqlite3.connect(self.file) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def test_what_only_first_values_need_may_be_missing_where_a_state_is_given(self):
        program = self.text_file("first.ein", "dims i=3\ninput A[i] : f64, B[i] : f64, C[i] : f64\nstate x[i] = A[i] * B[i]\n"
                                 "state y[i] = B[i] + 1\nnext x[i] = x[i] + y[i]\nnext y[i] = 2 * y[i] + C[i]\noutput next_x, next_y\n")
        a, b, c, x, y = np.random.default_rng(8).standard_normal((5, 3))
        for name, array in zip("ABCxy", (a, b, c, x, y)):
            np.save(self.path(name + ".npy"), array)
        run = ("run", program, "--database", "sqlite:" + self.file, "--steps", "2")
        for given, missing in (("ABC", ""), ("xBC", ""), ("yABC", ""), ("xyC", ""), ("xyABC", ""), ("BC", "A"), ("xC", "B"), ("yC", "AB"), ("xyB", "C")):
            with self.subTest(given=given):
                inputs = [word for name in given for word in ("--in", f"{name}={self.path(name + '.npy')}")]
                if missing:
                    said = self.refuse(1, *run, *inputs, mentions=[f"missing input {name}[3]" for name in missing]).err
                    self.assertEqual(said.count("missing"), len(missing))
                    continue
                self.succeed(*run, *inputs, "--out", "next_x=" + self.path("next_x.npy"), "--out", "next_y=" + self.path("next_y.npy"))
                now = (x if "x" in given else a * b), (y if "y" in given else b + 1)
                for _ in range(2):
                    now = now[0] + now[1], 2 * now[1] + c
                for name, wanted in zip(("next_x", "next_y"), now):
                    np.testing.assert_allclose(np.load(self.path(name + ".npy")), wanted, rtol=1e-12)


if __name__ == "__main__":
    main()
