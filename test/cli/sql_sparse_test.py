"""Inputs of einrel run --database whose absent elements are zeros, against NumPy."""

import sqlite3

import numpy as np

from einrel_process import ProgramTest, einrel, main

PRODUCT = "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"
FORMATS = ("", "X=single", "X=row", "X=column", "X=row-strip-10", "X=column-strip-3", "X=tile-10-4", "X=element", "tile-5", "element")


class Sparse(ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("product.ein", PRODUCT)
        self.file = self.path("a.db")
        random = np.random.default_rng(1)
        self.x = random.standard_normal((25, 13)) * (random.random((25, 13)) < 0.1)
        self.x[21:] = self.x[:, 11:] = self.x[:12, :5] = 0  # whole chunks are absent, and the last rows and columns
        self.x[20, 10] = 2.5
        self.y = random.standard_normal((13, 7))
        self.store("X", self.x[self.x != 0], *np.nonzero(self.x))
        self.store("Y", self.y.ravel(), *np.unravel_index(np.arange(self.y.size), self.y.shape))

    def execute(self, statement, rows=()):
        with sqlite3.connect(self.file) as connection:
            return connection.executemany(statement, rows) if rows else connection.execute(statement).fetchall()

    def store(self, table, values, *keys):
        labels = [f"d{d}" for d in range(len(keys))]
        self.execute(f"CREATE TABLE {table} ({', '.join([*labels, 'value'])})")
        rows = [(*map(int, key), float(value)) for *key, value in zip(*keys, values)]
        self.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * (len(keys) + 1))})", rows)

    def run_product(self, x, *arguments, y="table:Y"):
        return einrel("run", self.program, "--database", "sqlite:" + self.file, "--in", "X=" + x, "--in", "Y=" + y,
                      "--out", "Z=" + self.path("z.npy"), *arguments)

    def gives(self, wanted, x, *arguments, **options):
        result = self.run_product(x, *arguments, **options)
        self.assertEqual(result.code, 0, result)
        np.testing.assert_allclose(np.load(self.path("z.npy")), wanted, rtol=1e-12)

    def refused(self, words, x, *arguments, **options):
        result = self.run_product(x, *arguments, **options)
        self.assertEqual(result.code, 1, result)
        for word in words:
            self.assertIn(word, result.err)

    def test_every_format_gives_the_product(self):
        for formats in FORMATS:
            with self.subTest(formats=formats):
                given = ("--formats", formats) if formats else ()
                # j is as long as Y says; i, which only X has, ends with its largest key unless --dim says more.
                self.gives(self.x[:21] @ self.y, "sparse:table:X", *given)
                self.gives(self.x @ self.y, "sparse:query:SELECT d0, d1, value FROM X", "--dim", "i=25", *given)

    def test_two_that_are_sparse_are_as_long_as_the_longer(self):
        self.execute("DELETE FROM Y WHERE d0 > 9")
        self.gives(self.x[:21, :10] @ self.y[:10], "sparse:table:X", y="sparse:table:Y")
        self.gives(self.x[:21, :10] @ self.y[:10], "sparse:query:SELECT * FROM X WHERE d1 < 10", "--dim", "i=21", y="sparse:table:Y")
        self.refused(("label 'j'", "10", "11"), "sparse:table:X", y="table:Y")

    def test_nothing_but_zeros(self):
        self.execute("DELETE FROM X")
        for formats in FORMATS:
            with self.subTest(formats=formats):
                self.gives(np.zeros((25, 7)), "sparse:table:X", "--dim", "i=25", *(("--formats", formats) if formats else ()))

    def test_every_rank_and_type(self):
        random = np.random.default_rng(5)
        for shape in ((), (11,), (3, 4, 5)):
            for dtype in ("f64", "f32", "bf16", "i32", "i64", "bool"):
                for count in (0, 1, 5):
                    for formats in ("tile-2", "A=row", "element"):
                        with self.subTest(shape=shape, dtype=dtype, count=count, formats=formats):
                            size = int(np.prod(shape))
                            dense = np.zeros(size)
                            dense[random.permutation(size)[:count]] = 1
                            dense = dense.reshape(shape)
                            labels = ",".join("abc"[:len(shape)])
                            dims = "dims " + " ".join(f"{label}={n}" for label, n in zip("abc", shape)) + "\n" if shape else ""
                            program = self.text_file("p.ein", f"{dims}input A[{labels}] : {dtype}\nB[{labels}] = f64(A[{labels}])\n")
                            self.execute("DROP TABLE IF EXISTS A")
                            keys = ", ".join([*"abc"[:len(shape)], "value"])
                            self.execute(f"CREATE TABLE A ({keys})")
                            rows = [(*map(int, key), 1) for key in np.argwhere(dense)]
                            if rows:
                                self.execute(f"INSERT INTO A VALUES ({', '.join('?' * (len(shape) + 1))})", rows)
                            self.succeed("run", program, "--database", "sqlite:" + self.file, "--in", "A=sparse:table:A",
                                         "--out", "B=" + self.path("b.npy"), "--formats", formats)
                            np.testing.assert_array_equal(np.load(self.path("b.npy")), dense)

    def test_states_begin_with_what_is_sparse(self):
        program = self.text_file("s.ein", "dims i=25 j=13\nstate W[i,j] = f64(0)\nnext W[i,j] = W[i,j] + 1\noutput next_W\n")
        self.succeed("run", program, "--database", "sqlite:" + self.file, "--in", "W=sparse:table:X", "--steps", "2",
                     "--out", "next_W=" + self.path("w.npy"))
        np.testing.assert_array_equal(np.load(self.path("w.npy")), self.x + 2)

    def test_what_is_wrong_is_named(self):
        for query, words in (
                ("SELECT * FROM X UNION ALL SELECT * FROM X WHERE d0 = 20", ("two rows", "d0=20, d1=10")),
                ("SELECT d0, d1, nullif(value, 2.5) AS value FROM X", ("NULL", "d0=20, d1=10")),
                ("SELECT d0, d1, CASE WHEN d0 = 20 THEN 'a' ELSE 0 END AS value FROM X", ("'a'", "d0=20, d1=10")),
                ("SELECT d0, d1, CASE WHEN d0 = 20 THEN x'00' ELSE 0 END AS value FROM X", ("a blob of 1 byte", "d0=20, d1=10")),
                ("SELECT d0 - 20 AS d0, d1, value FROM X", ("'d0'", "-")),
                ("SELECT nullif(d0, 20) AS d0, d1, value FROM X", ("'d0'", "NULL", "d1=10")),
                ("SELECT d0, d1 + 0.5 AS d1, value FROM X", ("'d1'", ".5")),
                ("SELECT d0, CASE WHEN d0 = 20 THEN 'a' ELSE d1 END AS d1, value FROM X", ("'d1'", "'a'")),
                ("SELECT 1 << 62 AS d0, d1, value FROM X", ("'d0'", "4611686018427387904"))):
            for formats in ("X=tile-10-4", "element"):
                with self.subTest(query=query, formats=formats):
                    self.refused((*words, "SELECT"), "sparse:query:" + query, "--formats", formats)
        self.refused(("label 'j'", "12", "13", "table 'Y'"), "sparse:query:SELECT d0, d1 + 2 AS d1, value FROM X",
                     "--dim", "j=12", y="table:Y")
        self.refused(("label 'i'", "has extent 20", "21", "table 'X'"), "sparse:table:X", "--dim", "i=20")
        stray = "sparse:query:SELECT * FROM X UNION ALL SELECT 999999999, 0, 1.5"
        self.refused(("label 'i' would have extent 1000000000", "SELECT * FROM X", "--dim i=N"), stray)
        self.refused(("label 'i'", "has extent 25", "1000000000"), stray, "--dim", "i=25")
        self.refused(("X f64 (5000001, 5000001) has 200 TB", "element"), "sparse:query:SELECT 5000000 AS d0, 5000000 AS d1, 1.5 AS value",
                     y="sparse:query:SELECT 0 AS d0, 0 AS d1, 1.0 AS value")
        self.refused(("no table 'Xs'",), "sparse:table:Xs")
        for given in ("sparse:X", "sparse:", "sparse:sparse:table:X", "sparse:SELECT * FROM X"):
            self.refused(("sparse:table:NAME", "sparse:query:SELECT"), given)
        self.refused(("row for each index", "leave out sparse:"), "sparse:query:SELECT d0, d1 FROM X")
        for columns in ("d0, d1, d0 AS d2, value", "d0, value", "d0, d1, value AS v"):
            shown = ", ".join(column.split()[-1] for column in columns.split(", "))
            self.refused((f"has the columns {shown}, but a sparse table has one for each label (i, j), and behind them one called 'value'",),
                         f"sparse:query:SELECT {columns} FROM X")
        self.execute("CREATE TABLE C AS SELECT 0 AS k0, 0 AS k1, x'00' AS chunk")
        self.refused(("table 'C'", "row for each chunk", "leave out sparse:"), "sparse:table:C")
        result = einrel("run", self.program, "--database", "sqlite:" + self.file, "--out", "Z=sparse:table:Z")
        self.assertEqual(result.code, 1, result)
        self.assertIn("table:NAME, chunks:NAME or a file", result.err)

    def test_the_error_of_a_hole_says_the_remedy(self):
        self.refused(("a hole", "sparse:table:NAME"), "table:X", "--dim", "i=21", y="sparse:query:SELECT * FROM Y WHERE d0 < 11")
        self.refused(("no row", "sparse:table:NAME"), "query:SELECT * FROM X WHERE d0 = 20", "--formats", "element",
                     y="sparse:query:SELECT * FROM Y WHERE d0 < 11")


if __name__ == "__main__":
    main()
