"""What a run in PostgreSQL reads is of one moment, each query computed once; and what two runs do that make one table."""

import os
import subprocess
import threading

import numpy as np

from postgres_case import SERVER, EmptyDatabase, main, rows
import einrel_process

COUNTS = """input X[i], Y[i] : f64
d[] = max[i] abs(X[i] - Y[i])
n[] = sum[i] f64(X[i] == X[i])
output d, n
"""


class Moment(EmptyDatabase):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("live.ein", COUNTS)

    def run_it(self, x, y, *arguments):
        self.succeed("run", self.program, "--database", self.url, "--in", "X=" + x, "--in", "Y=" + y, *arguments, "--out", "d=" + self.path("d.npy"),
                     "--out", "n=" + self.path("n.npy"))
        return np.load(self.path("d.npy")), np.load(self.path("n.npy"))

    def test_a_table_that_grows_is_read_as_it_was_at_one_moment(self):
        SERVER.sql("CREATE TABLE live AS SELECT i, i::float8 AS v FROM generate_series(0, 999) AS i; CREATE VIEW seen AS SELECT i, v AS value FROM live; "
                   "CREATE TABLE pairs AS SELECT i, v AS value FROM live")
        with subprocess.Popen(SERVER.psql(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as other:
            ended = threading.Event()

            def write():
                while not ended.wait(0.005):
                    other.stdin.write("INSERT INTO live SELECT max(i) + 1, max(i) + 1 FROM live;\nINSERT INTO pairs SELECT max(i) + 1, max(i) + 1 FROM pairs;\n")
                    other.stdin.flush()

            writer = threading.Thread(target=write)
            writer.start()
            try:
                query = "query:SELECT v FROM live ORDER BY i"
                for x, y in ((query, query), ("table:seen", "query:SELECT i, v AS value FROM live"), ("table:pairs", "sparse:table:pairs")):
                    for formats in ((), ("--formats", "tile-64"), ("--formats", "element")):
                        with self.subTest(x=x, y=y, formats=formats):
                            difference, counted = self.run_it(x, y, *formats)
                            self.assertEqual(difference, 0)
                            self.assertGreaterEqual(counted, 1000)
            finally:
                ended.set()
                writer.join()

    def test_a_query_that_gives_other_rows_each_time_is_computed_once(self):
        for x in ("query:SELECT 1.5 AS v FROM generate_series(1, 100 + floor(random() * 1000)::int)",
                  "query:SELECT i, 1 AS value FROM generate_series(0, floor(random() * 1000)::int) AS i",
                  "query:SELECT 0 AS k0, einrel.einrel_zeros('f64', 1 + floor(random() * 1000)::int) AS chunk"):
            for _ in range(4):
                self.succeed("run", self.text_file("one.ein", "input X[i] : f64\nn[] = sum[i] f64(X[i] == X[i])\n"), "--database", self.url, "--in", "X=" + x)
        SERVER.sql("CREATE TABLE hidden AS SELECT 7 AS secret; CREATE FUNCTION dice() RETURNS TABLE (i int, value int) LANGUAGE sql AS 'SELECT n, secret FROM hidden, generate_series(0, floor(random() * 100)::int) AS n'; "
                   "CREATE VIEW shown AS SELECT * FROM dice()")
        for x in ("query:SELECT * FROM dice()", "table:shown"):  # a function that finds tables by the user's search path
            self.succeed("run", self.text_file("one.ein", "input X[i] : f64\nn[] = sum[i] f64(X[i] == 7)\n"), "--database", self.url, "--in", "X=" + x)

    def test_what_queries_give_is_gone_afterwards(self):
        before = self.content()
        self.run_it("query:SELECT i, 1 AS value FROM generate_series(0, 9) AS i", "query:SELECT 1 AS v FROM generate_series(0, 9)")
        self.assertEqual(self.content(), before)

    def test_a_table_whose_rows_a_policy_chooses_is_read_as_it_says(self):
        SERVER.sql("CREATE ROLE plain LOGIN; GRANT USAGE ON SCHEMA public TO plain; CREATE TABLE most AS SELECT 5 AS n; "
                   "CREATE TABLE own AS SELECT i, i::float8 AS value FROM generate_series(0, 9) AS i; "
                   "CREATE FUNCTION is_mine(int) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT $1 < n FROM most'; "
                   "ALTER TABLE own ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON own USING (is_mine(i)); GRANT SELECT ON own, most TO plain")
        self.addCleanup(SERVER.sql, "DROP OWNED BY plain; DROP ROLE plain")
        program = self.text_file("sum.ein", "input X[i] : f64\nS[] = sum[i] X[i]\n")
        for url, extent, wanted in ((self.url.replace("tester@", "plain@"), 5, 10), (self.url, 10, 45)):
            said = self.succeed("run", program, "--database", url, "--in", "X=table:own", "--out", "S=" + self.path("s.npy"))
            self.assertIn(f"read X f64 ({extent},) from table 'own'", said.out)
            self.assertEqual(np.load(self.path("s.npy")), wanted)

    def test_two_that_make_one_table_at_once(self):
        """The second one waits for the first, and then says what has happened."""
        SERVER.sql("CREATE TABLE x AS SELECT i, 1 AS value FROM generate_series(0, 9) AS i")
        program = self.text_file("two.ein", "input X[i] : f64\nZ[i] = X[i] * 2\n")
        for kind in ("table", "chunks"):
            with self.subTest(kind=kind), subprocess.Popen(SERVER.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
                other.stdin.write('BEGIN; CREATE TABLE z AS SELECT 5 AS five; SELECT 1;\n')
                other.stdin.flush()
                other.stdout.readline()
                run = subprocess.Popen([einrel_process.PROGRAM, "run", program, "--database", self.url, "--in", "X=table:x", "--out", f"Z={kind}:z"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "XDG_CONFIG_HOME": os.devnull})
                self.wait_until(lambda: SERVER.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'einrel' AND wait_event_type = 'Lock'").strip(), "1")
                other.stdin.write("COMMIT;\n")
                other.stdin.flush()
                out, err = run.communicate(timeout=60)
                self.assertEqual((run.returncode, out), (2, ""), err)
                self.assertRegex(err, r"error: the database .* another program has just made something of a name that this run needs: .*\bz\b")
            self.assertEqual(rows("SELECT * FROM z"), [["5"]])
            SERVER.sql("DROP TABLE z")

    def test_a_key_that_is_no_whole_number_is_named_whatever_the_program(self):
        for what, keys, shown in (("texts", "i::text", "'0'"), ("floats", "i::float8", "0.0"), ("bytes", "decode('00', 'hex')", "a blob of 1 byte"),
                                  ("numerics", "i + 0.5", "0.5"), ("one of them", "CASE WHEN i = 1 THEN 1.5 ELSE i END", "1.5"), ("NULL", "nullif(i, 1)", "NULL")):
            SERVER.sql(f"DROP TABLE IF EXISTS x; CREATE TABLE x AS SELECT {keys} AS i, 1.0 AS value FROM generate_series(0, 2) AS i")
            for formula in ("P[] = max[i] X[i]", "P[] = argmin[i] X[i]", "P[] = sum[i] X[i]", "P[i] = softmax[i](X[i])"):
                program = self.text_file("p.ein", f"input X[i] : f64\n{formula}\n")
                for arguments in ((), ("--dim", "i=3"), ("--formats", "element")):
                    with self.subTest(what=what, formula=formula, arguments=arguments):
                        self.refuse(1, "run", program, "--database", self.url, "--in", "X=table:x", *arguments,
                                    mentions=[f"error: table 'x': column 'i' is {shown}, no whole number, in the row of i={shown}"])

    def test_rooms_that_no_disk_has_are_refused_before_anything_is_made(self):
        disk = os.statvfs(SERVER.folder)
        names = [f"X{n}" for n in range(disk.f_bavail * disk.f_frsize // 900_000_000_000 + 2)]
        program = self.text_file("pages.ein", "dims n=330000 m=330000\n" + "".join(f"input {name}[n,m] : f64\n" for name in names)
                                 + f"Z[n] = {' + '.join(f'(sum[m] {name}[n,m])' for name in names)}\n")
        SERVER.sql("CREATE TABLE e AS SELECT 7 AS n, 8 AS m, 1.0 AS value")
        given = [word for name in names for word in ("--in", f"{name}=sparse:table:e")]
        found = self.refuse(2, "run", program, "--database", self.url, *given, mentions=["temporary tables, 871 GB of them for X0", "--formats element"])
        self.assertIn(SERVER.folder, found.err)

    def test_rows_of_a_query_that_no_disk_has_room_for_are_refused_before_they_are_kept(self):
        program = self.text_file("wide.ein", "input X[i,j] : f64\nS[] = sum[i,j] X[i,j]\n")
        rows_of = "SELECT " + ", ".join(f"a + {c}.5::float8 AS a{c}" for c in range(500)) + " FROM generate_series(1, 1000000) AS b, generate_series(1, 1000000) AS a"
        SERVER.sql("CREATE VIEW endless AS " + rows_of)
        for x, title in (("table:endless", "table 'endless'"), ("query:" + rows_of, "the query 'SELECT")):
            with self.subTest(x=x[:20]):
                found = self.refuse(2, "run", program, "--database", self.url, "--in", "X=" + x,
                                    mentions=["the rows of " + title, "of temporary tables that the disk of", "has room for", "ask for fewer"])
                self.assertIn(SERVER.folder, found.err)

    def test_chunks_of_a_query_are_those_of_computing_it_once(self):
        """More of them than are kept before they are counted, each time others."""
        program = self.text_file("chunks.ein", "input X[i] : f64\nn[] = sum[i] f64(X[i] == 0)\n")
        query = "SELECT k AS k0, einrel.einrel_zeros('f64', 3) AS chunk FROM generate_series(0, 20 + floor(random() * 179)::int) AS k"
        for _ in range(4):
            self.succeed("run", program, "--database", self.url, "--in", "X=query:" + query, "--out", "n=" + self.path("n.npy"))
            found = int(np.load(self.path("n.npy")))
            self.assertTrue(found % 3 == 0 and 60 <= found < 600, found)


if __name__ == "__main__":
    main()
