"""What a run in SQLite reads: all of one moment, each query once; how, it says; and whose key is no number."""

import contextlib
import json
import os
import sqlite3
import subprocess
import threading
import time

import numpy as np

from einrel_process import ProgramTest, einrel, main

COUNTS = """input X[i], Y[i] : f64
d[] = max[i] abs(X[i] - Y[i])
n[] = sum[i] f64(X[i] == X[i])
output d, n
"""
# A table whose keys are no whole numbers, and a program to whose formulas an extent of 0 means more than to a sum.
STRANGE_KEYS = {"blobs": ([np.int64(i) for i in range(3)], "a blob of 8 bytes"), "texts": (["0", "1", "2"], "the text '0'"), "reals": ([0.0, 1.0, 2.0], "0.0"),
                "one of them": ([0, 1, "2"], "the text '2'"), "NULL": ([0, None, 2], "NULL")}


class Inputs(ProgramTest):
    def setUp(self):
        super().setUp()
        self.file = self.path("a.db")
        self.url = "sqlite:" + self.file

    def execute(self, *statements):
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    def test_a_table_that_grows_is_read_as_it_was_at_one_moment(self):
        program = self.text_file("live.ein", COUNTS)
        self.execute("PRAGMA journal_mode = WAL", "CREATE TABLE live (i INTEGER PRIMARY KEY, v REAL)", "CREATE VIEW seen AS SELECT i, v AS value FROM live",
                     "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO live SELECT i, i FROM n")
        ended = threading.Event()

        def write():
            with contextlib.closing(sqlite3.connect(self.file, isolation_level=None, timeout=10)) as connection:
                while not ended.wait(0.002):
                    connection.execute("INSERT INTO live SELECT max(i) + 1, max(i) + 1 FROM live")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for x, y in (("query:SELECT v FROM live ORDER BY i", "query:SELECT v FROM live ORDER BY i"), ("table:seen", "query:SELECT i, v AS value FROM live"),
                         ("sparse:table:seen", "table:seen")):
                for formats in ((), ("--formats", "tile-64"), ("--formats", "element")):
                    with self.subTest(x=x, y=y, formats=formats):
                        self.succeed("run", program, "--database", self.url, "--in", "X=" + x, "--in", "Y=" + y, *formats, "--out", "d=" + self.path("d.npy"),
                                     "--out", "n=" + self.path("n.npy"))
                        self.assertEqual(np.load(self.path("d.npy")), 0)
                        self.assertGreaterEqual(np.load(self.path("n.npy")), 1000)
        finally:
            ended.set()
            writer.join()

    def test_a_query_that_gives_other_rows_each_time_is_computed_once(self):
        program = self.text_file("any.ein", "input X[i,j] : f64\nn[] = sum[i,j] f64(X[i,j] == X[i,j])\nS[j] = sum[i] X[i,j]\noutput n, S\n")
        self.execute("CREATE TABLE t (a)")
        rows = "WITH RECURSIVE n(i, r) AS (SELECT 0, 0 UNION ALL SELECT i + 1, abs(random() % 50) FROM n WHERE r < 45) SELECT "
        self.execute(f"CREATE VIEW dice AS {rows} 1 AS a, 2 AS b FROM n")
        for x in (f"query:{rows} 1 AS a, 2 AS b FROM n", f"query:{rows} i, 0 AS j, 2 AS value FROM n", f"sparse:query:{rows} i, 0 AS j, 2 AS value FROM n", "table:dice"):
            for formats in ((), ("--formats", "X=row"), ("--formats", "element")):
                for _ in range(4):
                    self.succeed("run", program, "--database", self.url, "--in", "X=" + x, *formats, "--out", "n=" + self.path("n.npy"), "--out",
                                 "S=" + self.path("S.npy"))
                    counted, sums = np.load(self.path("n.npy")), np.load(self.path("S.npy"))
                    self.assertEqual(counted, sums[0] + sums[1] / 2 if len(sums) == 2 else sums[0] / 2)

    def test_the_order_of_a_query_is_kept(self):
        self.execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i * 7919 % 5001 AS place, i AS v FROM n")
        program = self.text_file("same.ein", "input X[i] : f64\nZ[i] = X[i]\n")
        self.succeed("run", program, "--database", self.url, "--in", "X=query:SELECT v FROM t ORDER BY place DESC", "--out", "Z=" + self.path("z.npy"))
        place = np.arange(5001) * 7919 % 5001
        np.testing.assert_array_equal(np.load(self.path("z.npy")), np.argsort(-place))

    def test_values_of_a_query_stay_what_they_are(self):
        """A column of a temporary table has no type, which would make numbers of texts."""
        self.execute("CREATE TABLE numbers (i INTEGER, value REAL)", "INSERT INTO numbers VALUES (0, 1.5)", "CREATE TABLE texts (i, value TEXT)",
                     "INSERT INTO texts VALUES (1, '2')")
        program = self.text_file("same.ein", "input X[i] : f64\nZ[i] = X[i]\n")
        for first, second in (("numbers", "texts"), ("texts", "numbers")):
            self.refuse(1, "run", program, "--database", self.url, "--in", f"X=query:SELECT * FROM {first} UNION ALL SELECT * FROM {second}",
                        mentions=["column 'value' is the text '2' at i=1, no number"])

    def test_nothing_is_left_of_what_queries_gave(self):
        self.execute("CREATE TABLE t AS SELECT 0 AS i, 1.5 AS value")
        program = self.text_file("same.ein", "input X[i] : f64\nZ[i] = X[i]\n")
        self.succeed("run", program, "--database", self.url, "--in", "X=query:SELECT * FROM t", "--out", "Z=table:z")
        self.assertEqual(self.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1"), [("t",), ("z",)])

    def test_how_a_table_is_read_is_said(self):
        self.execute("CREATE TABLE ratings (user INTEGER, item INTEGER, rating REAL)", "INSERT INTO ratings VALUES (0, 0, 4.5), (0, 1, 3.0), (1000, 2001, 20.5)",
                     "CREATE TABLE triples AS SELECT 1 AS i, 2 AS j, 3.0 AS value")
        program = self.text_file("tr.ein", "input X[i,j] : f64\nY[i] = sum[j] X[i,j]\n")
        query = "SELECT user, rating FROM ratings ORDER BY item"
        for x, arguments, how in (("table:ratings", (), "read X f64 (3, 3) from table 'ratings': a row for each i, a column for each j, in no certain order\n"),
                                  ("query:" + query, (), f"read X f64 (3, 2) from the query '{query}': a row for each i, a column for each j, in its order\n"),
                                  ("sparse:table:triples", (), "read X f64 (2, 3) from table 'triples': a row for each element that is not zero\n"),
                                  ("table:kept", (), "read X f64 (2, 3) from table 'kept': a row for each chunk\n")):
            with self.subTest(x=x):
                if x == "table:kept":
                    self.succeed("run", self.text_file("keep.ein", "input X[i,j] : f64\nZ[i,j] = X[i,j]\n"), "--database", self.url, "--in",
                                 "X=sparse:table:triples", "--out", "Z=chunks:kept")
                said = self.succeed("run", program, "--database", self.url, "--in", "X=" + x, *arguments).out
                self.assertEqual(said.splitlines(keepends=True)[0], how)
                found = json.loads(self.succeed("run", program, "--database", self.url, "--in", "X=" + x, "--analyze", "--json").out)["read"]
                (read,) = found
                self.assertEqual(f"read {read['tensor']} {read['type']} from {read['from']}: {read['how']}\n", how)
        vector = self.text_file("v.ein", "input V[i], c[] : f64\nY[] = c[] + sum[i] V[i]\n")
        said = self.succeed("run", vector, "--database", self.url, "--in", "V=query:SELECT rating FROM ratings", "--in", "c=query:SELECT 1 AS value",
                            "--formats", "element").out
        self.assertIn("read V f64 (3,) from the query 'SELECT rating FROM ratings': a row for each i, in its order\n", said)
        self.assertIn("read c f64 () from the query 'SELECT 1 AS value': a row for the number\n", said)

    def test_a_key_that_is_no_whole_number_is_named_whatever_the_program(self):
        formulas = ("max[i] X[i]", "min[i] X[i]", "argmax[i] X[i]", "argmin[i] X[i]", "sum[i] X[i]", "mean[i] X[i]", "logsumexp[i] X[i]")
        programs = [self.text_file(f"{n}.ein", f"input X[i] : f64\nP[] = {formula}\n") for n, formula in enumerate(formulas)]
        programs += [self.text_file(f"{name}.ein", f"input X[i] : f64\nP[i] = {name}[i](X[i])\n") for name in ("softmax", "logsoftmax")]
        for what, (keys, shown) in STRANGE_KEYS.items():
            self.execute("DROP TABLE IF EXISTS x", "CREATE TABLE x (i, value)")
            with contextlib.closing(sqlite3.connect(self.file)) as connection, connection:
                connection.executemany("INSERT INTO x VALUES (?, ?)", [(key, float(n)) for n, key in enumerate(keys)])
            for program in programs:
                for arguments in ((), ("--dim", "i=3"), ("--formats", "element")):
                    with self.subTest(what=what, program=program, arguments=arguments):
                        self.refuse(1, "run", program, "--database", self.url, "--in", "X=table:x", *arguments,
                                    mentions=[f"error: table 'x': column 'i' is {shown}, no whole number, in the row of i={shown}"])

    def test_a_matrix_with_a_key_that_is_none_is_named_too(self):
        program = self.text_file("m.ein", "input X[i,j] : f64\nP[i,j] = softmax[j](X[i,j])\n")
        self.execute("CREATE TABLE x (i, j, value)", "INSERT INTO x VALUES (0, 0, 1.0), (0, x'00', 2.0)")
        for x in ("table:x", "sparse:table:x", "query:SELECT * FROM x"):
            self.refuse(1, "run", program, "--database", self.url, "--in", "X=" + x, mentions=["column 'j' is a blob of 1 byte, no whole number, in the row of i=0, j=a blob"])

    def test_rooms_that_no_disk_has_are_refused_before_anything_is_made(self):
        """Of sparse tables whose zeros would fill the disk."""
        disk = os.statvfs("/dev/shm")
        count = disk.f_bavail * disk.f_frsize // 900_000_000_000 + 2
        names = [f"X{n}" for n in range(count)]
        program = self.text_file("pages.ein", "dims n=330000 m=330000\n" + "".join(f"input {name}[n,m] : f64\n" for name in names)
                                 + f"state r[n] = f64(1)\nnext r[n] = {' + '.join(f'(sum[m] {name}[n,m] * r[m])' for name in names)}\n")
        self.execute("CREATE TABLE e AS SELECT 7 AS n, 8 AS m, 1.0 AS value")
        given = [word for name in names for word in ("--in", f"{name}=sparse:table:e")]
        environment = {**os.environ, "XDG_CONFIG_HOME": os.devnull, "SQLITE_TMPDIR": "/dev/shm"}
        self.refuse(2, "run", program, "--database", self.url, *given, "--steps", "2", env=environment,
                    mentions=["temporary tables, 871 GB of them for X0 f64 (330000, 330000), but the disk of '/dev/shm' has", "--formats element", "SQLITE_TMPDIR"])
        outer = self.text_file("outer.ein", "dims i=2000000 j=2000000\ninput X[k] : f64\nZ[i,j] = i * j + sum[k] X[k]\n")
        for arguments, words in ((("--out", "Z=table:Z"), "tables of results"), ((), "memory for results")):
            self.refuse(2, "run", outer, "--database", self.url, "--in", "X=query:SELECT 1.0 AS v", "--formats", "element", *arguments, env=environment, mentions=[words])
        self.assertEqual(self.execute("SELECT name FROM sqlite_schema"), [("e",)])

    def test_much_room_is_said_before_it_is_taken(self):
        """A run that begins with 20 GB of zeros, and is then ended."""
        program = self.text_file("pages.ein", "dims n=50000 m=50000\ninput A[n,m] : f64\nZ[n] = sum[m] A[n,m]\n")
        self.execute("CREATE TABLE e AS SELECT 7 AS n, 8 AS m, 1.0 AS value")
        disk = os.statvfs("/var/tmp")
        if disk.f_bavail * disk.f_frsize < 25_000_000_000:  # it is refused then, which is another test's
            self.refuse(2, "run", program, "--database", self.url, "--in", "A=sparse:table:e", mentions=["temporary tables"])
            return
        from einrel_process import PROGRAM  # noqa: PLC0415: main() sets it
        environment = {**os.environ, "XDG_CONFIG_HOME": os.devnull, "SQLITE_TMPDIR": "/var/tmp"}
        with subprocess.Popen([PROGRAM, "run", program, "--database", self.url, "--in", "A=sparse:table:e"], stderr=subprocess.PIPE, text=True, env=environment) as run:
            self.assertEqual(run.stderr.readline(), "note: the run takes 20 GB of temporary tables, 20 GB of them for A f64 (50000, 50000)\n")
            run.kill()
        first = self.text_file("first.ein", "dims n=50000 m=50000\ninput A[n,m] : f64\nstate r[n] = sum[m] A[n,m]\nnext r[n] = 2 * r[n]\n")
        with subprocess.Popen([PROGRAM, "run", first, "--database", self.url, "--in", "A=sparse:table:e"], stderr=subprocess.PIPE, text=True, env=environment) as run:
            self.assertEqual(run.stderr.readline(), "note: the first values of states take 20 GB of temporary tables, 20 GB of them for A f64 (50000, 50000)\n")
            run.kill()

    def test_rows_of_a_query_that_no_disk_has_room_for_are_refused_before_they_are_kept(self):
        """Of a query and of a view with more rows than anybody waits for."""
        environment = {**os.environ, "XDG_CONFIG_HOME": os.devnull, "SQLITE_TMPDIR": "/dev/shm"}
        program = self.text_file("wide.ein", "input X[i,j] : f64\nS[] = sum[i,j] X[i,j]\n")
        rows = "WITH RECURSIVE c(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM c WHERE k < 999999999999) SELECT "
        columns = [f"k + {c}.5 AS a{c}" for c in range(500)]
        self.execute("CREATE VIEW endless AS " + rows + ", ".join(columns) + " FROM c")
        for x, title in (("table:endless", "table 'endless'"), ("query:" + rows + ", ".join(columns) + " FROM c", "the query 'WITH")):
            with self.subTest(x=x[:20]):
                self.refuse(2, "run", program, "--database", self.url, "--in", "X=" + x, env=environment,
                            mentions=["the rows of " + title, "of temporary tables that the disk of '/dev/shm' has room for", "ask for fewer", "SQLITE_TMPDIR"])

    def test_chunks_of_a_query_are_those_of_computing_it_once(self):
        """More of them than are kept before they are counted, each time others."""
        program = self.text_file("chunks.ein", "input X[i] : f64\nn[] = sum[i] f64(X[i] == 0)\n")
        self.execute("CREATE TABLE e (i)")
        query = ("WITH RECURSIVE c(k, most) AS (SELECT 0, 20 + abs(random() % 180) UNION ALL SELECT k + 1, most FROM c WHERE k + 1 < most) "
                 "SELECT k AS k0, einrel_zeros('f64', 3) AS chunk FROM c")
        for _ in range(4):
            self.succeed("run", program, "--database", self.url, "--in", "X=query:" + query, "--out", "n=" + self.path("n.npy"))
            found = int(np.load(self.path("n.npy")))
            self.assertTrue(found % 3 == 0 and 60 <= found < 600, found)


class Files(ProgramTest):
    """The file of a database: it is made where nothing is read of it, and never replaced by a result."""

    def setUp(self):
        super().setUp()
        self.program = self.text_file("v.ein", "input X[i] : f64\nY[i] = 2 * X[i]\n")
        np.save(self.path("x.npy"), np.array([1.0, 2.0]))
        self.file = self.path("shop.db")

    def run_it(self, *arguments, **options):
        return einrel("run", self.program, "--database", "sqlite:" + self.file, *arguments, **options)

    def rows(self, query):
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(query).fetchall()

    def test_a_result_that_would_replace_a_file_of_the_database_is_refused(self):
        names = {"shop.npy": "itself", "link.npy": "a link", "hard.npy": "a hard link"}
        self.file = self.path("shop.npy")
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE x (i INTEGER, value REAL); INSERT INTO x VALUES (0, 1.0)")
            os.symlink(self.file, self.path("link.npy"))
            os.link(self.file, self.path("hard.npy"))
            os.symlink(self.file + "-wal", self.path("wal.npy"))
            with open(self.file, "rb") as file:
                before = file.read()
            for name in (*names, "wal.npy"):
                for arguments in (("--in", "X=table:x"), ("--in", "X=" + self.path("x.npy")), ("--in", "X=table:x", "--formats", "element")):
                    with self.subTest(name=name, arguments=arguments):
                        result = self.run_it(*arguments, "--out", "Y=" + self.path(name))
                        self.assertEqual(result.code, 1, result)
                        self.assertIn(f"cannot write '{self.path(name)}': it is a file that is read", result.err)
                        with open(self.file, "rb") as file:
                            self.assertEqual(file.read(), before)
        result = self.run_it("--in", "X=" + self.path("x.npy"), "--out", "Y=" + self.path("x.npy"))
        self.assertEqual(result.code, 1, result)
        self.assertIn("it is a file that is read", result.err)
        np.testing.assert_array_equal(np.load(self.path("x.npy")), [1, 2])

    def test_a_database_is_made_where_nothing_is_read_of_it(self):
        result = self.run_it("--in", "X=" + self.path("x.npy"), "--out", "Y=table:y")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.rows("SELECT i, value FROM y"), [(0, 2.0), (1, 4.0)])
        self.assertEqual(sorted(os.listdir(self.folder)), ["shop.db", "v.ein", "x.npy"])
        os.remove(self.file)
        os.symlink(self.path("elsewhere.db"), self.file)
        for formats in ((), ("--formats", "element")):
            result = self.run_it("--in", "X=" + self.path("x.npy"), "--out", "Y=table:y", *formats)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(self.rows("SELECT i, value FROM y"), [(0, 2.0), (1, 4.0)])
            self.assertTrue(os.path.islink(self.file))
            os.remove(self.path("elsewhere.db"))

    def test_a_run_that_makes_no_table_leaves_no_file(self):
        result = self.run_it("--in", "X=" + self.path("x.npy"), "--out", "Y=" + self.path("y.npy"))
        self.assertEqual(result.code, 0, result)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), [2, 4])
        self.assertEqual(sorted(os.listdir(self.folder)), ["v.ein", "x.npy", "y.npy"])

    def test_a_run_that_fails_or_is_killed_leaves_no_file(self):
        before = sorted(os.listdir(self.folder))
        for arguments in (("--in", "X=" + self.path("x.npy"), "--out", "Y=table:sqlite_y"), ("--in", "X=" + self.path("x.npy"), "--formats", "Q=row", "--out", "Y=table:y"),
                          ("--out", "Y=table:y"), ("--in", "X=" + self.path("x.npy"), "--out", "Y=table:y", "--dim", "i=3")):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.run_it(*arguments).code, 1)
                self.assertEqual(sorted(os.listdir(self.folder)), before)
        long = self.text_file("long.ein", "dims j=400000000000000\ninput X[i] : f64\nY[i] = sum[j] sin(X[i] * j)\n")
        from einrel_process import PROGRAM  # noqa: PLC0415: main() sets it
        run = subprocess.Popen([PROGRAM, "run", long, "--database", "sqlite:" + self.file, "--in", "X=" + self.path("x.npy"), "--out", "Y=table:y"])
        end = time.monotonic() + 60
        while len(os.listdir(self.folder)) == len(before) + 1 and time.monotonic() < end:  # its file is there, under another name
            time.sleep(0.01)
        run.kill()
        run.wait()
        while len(os.listdir(self.folder)) > len(before) + 1 and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*before, "long.ein"]))

    def test_a_name_that_is_mistyped_makes_no_file_where_a_table_is_read(self):
        for x in ("table:x", "query:SELECT 1 AS v", "sparse:table:x"):
            result = self.run_it("--in", "X=" + x, "--out", "Y=table:y")
            self.assertEqual(result.code, 1, result)
            self.assertIn(f"cannot open the database '{self.file}': No such file or directory; a run that reads no table of it makes one", result.err)
            self.assertEqual(sorted(os.listdir(self.folder)), ["v.ein", "x.npy"])


if __name__ == "__main__":
    main()
