"""einrel run --database postgresql://... and einrel sql --dialect postgres, against NumPy and the server itself."""

import json
import os
import random
import re
import subprocess
from collections import Counter

import numpy as np

from postgres_case import SERVER, EmptyDatabase, ProductTest, main, quoted
from einrel_process import einrel


class Postgres(ProductTest):
    def test_every_format_gives_the_product(self):
        for number, formats in enumerate(("", "single", "row", "row-strip-10", "column-strip-3", "tile-10-4")):
            for other in ("tile-5", "Z=column"):
                with self.subTest(x=formats, other=other):
                    given = ",".join(([f"X={formats}"] if formats else []) + [other])
                    result = self.run_product("--formats", given, "--out", f"Z=table:Z{number}{other[0]}")
                    self.assertEqual(result.code, 0, result)
                    np.testing.assert_allclose(self.table(f'"Z{number}{other[0]}"', (25, 7)), self.x @ self.y, rtol=1e-12)

    def test_queries_and_files_are_inputs_and_files_outputs(self):
        SERVER.sql("CREATE TABLE samples AS SELECT 3 * n AS id, n AS a, CAST(n * n AS numeric) AS b, 1.5::real AS c, n % 2 = 1 AS odd "
                   "FROM generate_series(0, 19) AS n")
        y = np.arange(6.0).reshape(3, 2)
        np.save(self.path("y.npy"), y)
        result = einrel("run", self.program, "--database", SERVER.url, "--in", "Y=" + self.path("y.npy"), "--in",
                        "X=query:SELECT a, b, c FROM samples WHERE odd ORDER BY id DESC -- the last first",
                        "--out", "Z=" + self.path("z.npy"))
        self.assertEqual(result.code, 0, result)
        x = np.array([(n, n * n, 1.5) for n in range(19, -1, -2)], float)
        np.testing.assert_allclose(np.load(self.path("z.npy")), x @ y)

    def test_a_matrix_may_have_one_column(self):
        SERVER.sql("CREATE TABLE tall AS SELECT a FROM (VALUES (CAST(1.5 AS real)), (2.5), (-4)) AS given(a)")
        given = ("--in", "X=table:tall", "--in", "Y=query:SELECT 2.0 AS a, 3 AS b", "--out", "Z=" + self.path("z.npy"))
        for formats in ("tile-2", "X=row", "element"):
            with self.subTest(formats=formats):
                self.succeed("run", self.program, "--database", SERVER.url, *given, "--formats", formats)
                np.testing.assert_array_equal(np.load(self.path("z.npy")), [[3.0, 4.5], [5.0, 7.5], [-8.0, -12.0]])
        given = ("--in", "X=query:SELECT nullif(a, 2.5) AS a FROM tall", *given[2:])
        for formats in ("tile-2", "element"):
            self.refuse(1, "run", self.program, "--database", SERVER.url, *given, "--formats", formats, mentions=["column 'a' is NULL at row=1, column=0"])

    def test_labels_may_be_called_as_the_servers_own_columns(self):
        program = self.text_file("own.ein", "input X[xmin,ctid] : f64\nZ[ctid,xmin] = X[xmin,ctid]\n")
        np.save(self.path("x.npy"), self.x)
        for number, formats in enumerate(("tile-4", "element")):
            self.succeed("run", program, "--database", SERVER.url, "--in", "X=" + self.path("x.npy"), "--formats", formats, "--out",
                         f"Z=table:own{number}")
            np.testing.assert_allclose(self.table(f"own{number}", (13, 25)), self.x.T, rtol=1e-12)
            self.assertEqual(SERVER.sql(f"SELECT d0, d1 FROM own{number} WHERE d0 = 12 AND d1 = 24"), "12\t24\n")

    def test_numbers_are_exact_however_the_server_prints_them(self):
        SERVER.sql("ALTER ROLE tester SET extra_float_digits = -10")
        try:
            for formats in ("tile-4", "element"):
                self.succeed("run", self.text_file("same.ein", "input X[i,j] : f64\nZ[i,j] = X[i,j]\n"), "--database", SERVER.url, "--in", "X=table:X",
                             "--formats", formats, "--out", "Z=" + self.path("z.npy"))
                np.testing.assert_array_equal(np.load(self.path("z.npy")), self.x)
        finally:
            SERVER.sql("ALTER ROLE tester RESET extra_float_digits")

    def test_absent_elements_are_zeros_of_what_is_sparse(self):
        SERVER.sql('DELETE FROM "X" WHERE (i + j) % 5 > 0 OR i >= 20')
        x = self.x * ((np.add.outer(np.arange(25), np.arange(13)) % 5 == 0) & (np.arange(25) < 20)[:, None])
        self.refused(("table 'X'", "hole", "sparse:table:NAME"))
        for number, formats in enumerate(("", "X=tile-10-4", "X=row", "element")):
            with self.subTest(formats=formats):
                arguments = ("--dim", "i=25", "--out", f"Z=table:Z{number}") + (("--formats", formats) if formats else ())
                result = self.run_product(*arguments, x="sparse:table:X")
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table(f'"Z{number}"', (25, 7)), x @ self.y, rtol=1e-12)
        for query, words in (('SELECT i, j, value FROM "X" UNION ALL SELECT 0, 5, 1', ("two rows", "i=0, j=5")),
                             ('SELECT i, j, nullif(j, 5) AS value FROM "X"', ("NULL", "j=5")),
                             ('SELECT i - 1 AS i, j, value FROM "X"', ("'i'", "-1")),
                             ('SELECT 1 AS a, 2 AS b', ("leave out sparse:",))):
            with self.subTest(query=query):
                for formats in ("X=tile-10-4", "element"):
                    self.refused(words, "--formats", formats, x="sparse:query:" + query)

    def test_every_type_of_number_is_read_and_written(self):
        program = self.text_file("types.ein", "input A[i] : f64\ninput B[i] : i64\ninput C[i] : bool\ninput D[i] : i32\n"
                                 "P[i] = 2 * A[i]\nQ[i] = B[i] + 1\nR[i] = C[i]\nS[i] = D[i]\nT[i] = f32(A[i])\n")
        SERVER.sql("CREATE TABLE numbers AS SELECT n::smallint AS i, (n + 0.5)::numeric AS a, (9007199254740993 + n)::bigint AS b, n = 1 AS c, "
                   "n::numeric AS d FROM generate_series(0, 2) AS n")
        arguments = [word for name, column in zip("ABCD", "abcd")
                     for word in ("--in", f"{name}=query:SELECT i, {column} AS value FROM numbers")]
        arguments += [word for name in "PQRST" for word in ("--out", f"{name}=table:{name}")]
        self.succeed("run", program, "--database", SERVER.url, *arguments)
        found = [SERVER.sql(f'SELECT value, pg_typeof(value) FROM {quoted(name)} ORDER BY i').split("\n")[1].split("\t") for name in "PQRST"]
        self.assertEqual(found, [["3", "double precision"], ["9007199254740995", "bigint"], ["t", "boolean"], ["1", "integer"],
                                 ["1.5", "real"]])

    def test_nan_and_infinity_are_kept_both_ways_in_every_type_that_has_them(self):
        inf, nan = np.inf, np.nan
        x = np.array([nan, inf, -inf, 1.5, -2.0])
        kinds = ("double precision", "real", "numeric")
        SERVER.sql("CREATE TABLE special AS SELECT n - 1 AS i, " + ", ".join(f"value::{kind} AS {quoted(kind)}" for kind in kinds)
                   + " FROM unnest(ARRAY['NaN', 'Infinity', '-Infinity', '1.5', '-2']) WITH ORDINALITY AS given(value, n)")
        vector = self.text_file("special.ein", "input X[i] : f64\nS[i] = X[i]\nT[i] = f32(X[i])\nD[i] = S[i] - X[i]\n")
        wanted = {"S": ("double precision", x), "T": ("real", x), "D": ("double precision", [nan, nan, nan, 0, 0])}
        matrix = self.text_file("wide.ein", "input X[i,j] : f64\nS[i,j] = X[i,j]\n")
        for number, formats in enumerate(("X=single", "tile-2", "element")):
            for kind in kinds:
                for source in (f"SELECT i, {quoted(kind)} AS value FROM special", f"SELECT {quoted(kind)} FROM special ORDER BY i"):
                    with self.subTest(formats=formats, source=source):
                        run = ("run", vector, "--database", SERVER.url, "--formats", formats, "--in", "X=query:" + source)
                        self.succeed(*run, *(word for name in wanted for word in ("--out", f"{name}=table:{name}")))
                        self.succeed(*run, *(word for name in wanted for word in ("--out", f"{name}={self.path(name)}.npy")))
                        for name, (type_of, value) in wanted.items():
                            np.testing.assert_array_equal(np.load(self.path(name + ".npy")), value)
                            np.testing.assert_array_equal(self.table(quoted(name), (5,)), value)
                            if formats != "element":  # which has doubles
                                self.assertEqual(SERVER.sql(f"SELECT DISTINCT pg_typeof(value) FROM {quoted(name)}").split("\n")[0], type_of)
                            SERVER.sql(f"DROP TABLE {quoted(name)}")
            self.succeed("run", matrix, "--database", SERVER.url, "--formats", formats, "--in",
                         f"X=query:SELECT {', '.join(map(quoted, kinds))} FROM special ORDER BY i", "--out", f"S=table:wide{number}")
            np.testing.assert_array_equal(self.table(f"wide{number}", (5, 3)), np.stack([x] * 3, 1))
        self.succeed("run", vector, "--database", SERVER.url, "--formats", "S=row-strip-2", "--in", "X=query:SELECT i, numeric AS value FROM special",
                     "--out", "S=chunks:kept")
        self.succeed("run", vector, "--database", SERVER.url, "--in", "X=table:kept", "--out", "S=" + self.path("kept.npy"))
        np.testing.assert_array_equal(np.load(self.path("kept.npy")), x)

    def test_nan_and_infinity_are_no_whole_numbers(self):
        for value, shown in (("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf")):
            for column in ("double precision", "real", "numeric"):
                for kind in ("i64", "i32", "bool"):
                    program = self.text_file("whole.ein", f"input X[i] : {kind}\nS[i] = X[i]\n")
                    for formats in ("X=single", "element"):
                        with self.subTest(value=value, column=column, kind=kind, formats=formats):
                            self.refuse(1, "run", program, "--database", SERVER.url, "--formats", formats, "--in",
                                        f"X=query:SELECT 0 AS i, '{value}'::{column} AS value",
                                        mentions=(f"'value' is {shown} at i=0", f"no whole number, as {kind} wants"))
                    program = self.text_file("key.ein", "input X[i] : f64\nS[i] = X[i]\n")
                    self.refuse(1, "run", program, "--database", SERVER.url, "--in", f"X=query:SELECT '{value}'::{column} AS i, 1 AS value",
                                mentions=(f"column 'i' is {shown}, no whole number, in the row of i={shown}\n",))

    def test_names_are_names_whatever_stands_in_them(self):
        for name in ('a""b', "it's; DROP TABLE X", "caf\u00e9 \u4e2d", "select", "x)--", '"temp.X"', "$1", "/* ", "pg_temp", "\\"):
            with self.subTest(name=name):
                bare = name.replace('""', '"') if name == 'a""b' else name.strip('"')
                given = name if name.startswith('"') else bare
                self.store(bare, self.x, ("i", "j"))
                out = f'"out {bare}"' if "." in bare else f"out {bare}"
                result = self.run_product("--out", f"Z=table:{out}", x="table:" + given)
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table(quoted("out " + bare), (25, 7)), self.x @ self.y, rtol=1e-12)
        self.assertEqual(SERVER.sql('SELECT count(*) FROM "X"').strip(), str(self.x.size))

    def test_columns_are_names_whatever_stands_in_them(self):
        names = ('a"b', "it's; DROP TABLE X; --", "caf\u00e9 \u4e2d", "select", "$1", "/* ", "e", "v", "c0", "k0", "chunk x", "\\", "i")
        SERVER.sql(f"CREATE TABLE wide ({', '.join(quoted(name) + ' float8' for name in names)}); INSERT INTO wide VALUES "
                   + ", ".join(f"({', '.join(repr(float(value)) for value in row)})" for row in self.x))
        self.assertEqual(self.run_product("--out", "Z=table:out", x="table:wide").code, 0)
        np.testing.assert_allclose(self.table("out", (25, 7)), self.x @ self.y, rtol=1e-12)
        for number, name in enumerate(names):
            with self.subTest(name=name):
                SERVER.sql(f'CREATE TABLE "keys {number}" AS SELECT i AS {quoted(name)}, j, value FROM "X"')
                result = self.run_product("--out", f"Z=table:Z{number}", x=f"table:keys {number}")
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table(f'"Z{number}"', (25, 7)), self.x @ self.y, rtol=1e-12)
                SERVER.sql(f'DROP TABLE "Z{number}"; UPDATE "keys {number}" SET {quoted(name)} = 77 WHERE j = 3 AND {quoted(name)} = 4')
                self.refused((f"table 'keys {number}'", "hole", f"{name}=4, j=3"), "--formats", "X=single", "--dim", "i=78", x=f"table:keys {number}")
                SERVER.sql(f'DROP TABLE "keys {number}"')

    def test_schemas_say_where_tables_are(self):
        SERVER.sql('CREATE SCHEMA "My shop"; ALTER TABLE "X" SET SCHEMA "My shop"')
        self.assertEqual(self.run_product("--out", 'Z=table:My shop."a.b"', x='table:My shop.X').code, 0)
        np.testing.assert_allclose(self.table('"My shop"."a.b"', (25, 7)), self.x @ self.y, rtol=1e-12)
        for x, out, word in (("table:X", "Z", "no table 'X'"), ('table:My shop.X', "nowhere.Z", "no schema 'nowhere'"),
                             ("table:a.b.c", "Z", "no name of a table"), ('table:"X', "Z", "no name of a table"),
                             ("table:.X", "Z", "no name of a table"), ('table:My shop.X', "Z" * 64, "63 bytes")):
            with self.subTest(x=x, out=out):
                result = self.run_product("--out", "Z=table:" + out, x=x)
                self.assertEqual(result.code, 1, result)
                self.assertIn(word, result.err)
        SERVER.sql('DROP SCHEMA "My shop" CASCADE')

    def test_long_names_of_tensors_are_told_apart(self):
        long = "a" * 70
        program = self.text_file("long.ein", f"input X[i,j] : f64\n{long}1[i,j] = X[i,j] + 1\n{long}2[i,j] = sq({long}1[i,j])\n"
                                 f"Z[i] = sum[j] {long}1[i,j] * {long}2[i,j]\n")
        self.succeed("run", program, "--database", SERVER.url, "--in", "X=table:X", "--out", "Z=table:Z")
        np.testing.assert_allclose(self.table('"Z"', (25,)), ((self.x + 1) ** 3).sum(1), rtol=1e-9)

    def test_bad_data_are_named_and_nothing_changes(self):
        for statement, words in (
                ("INSERT INTO \"X\" VALUES (2, 3, 1)", ("table 'X'", "two rows", "i=2, j=3")),
                ("UPDATE \"X\" SET value = NULL WHERE i = 4 AND j = 5", ("table 'X'", "'value'", "NULL", "i=4, j=5")),
                ("DELETE FROM \"X\" WHERE i = 7 AND j = 8", ("table 'X'", "hole", "i=7, j=8")),
                ("DELETE FROM \"X\" WHERE i < 10", ("table 'X'", "hole", "i=9, j=")),
                ("UPDATE \"X\" SET i = -1 WHERE i = 7 AND j = 8", ("table 'X'", "'i'", "-1")),
                ("UPDATE \"X\" SET i = NULL WHERE i = 7 AND j = 8", ("table 'X'", "'i'", "NULL")),
                ("ALTER TABLE \"X\" ALTER i TYPE numeric; UPDATE \"X\" SET i = 1.5 WHERE i = 7 AND j = 8", ("table 'X'", "'i'", "1.5")),
                ("ALTER TABLE \"X\" ALTER i TYPE bigint; UPDATE \"X\" SET i = 9223372036854775807 WHERE i = 7", ("table 'X'", "'i'")),
                ("ALTER TABLE \"X\" ALTER j TYPE text; UPDATE \"X\" SET j = 'a' WHERE i = 7 AND j = '8'", ("table 'X'", "'j'")),
                ("ALTER TABLE \"X\" ALTER value TYPE text; UPDATE \"X\" SET value = '1.5x'", ("table 'X'", "'value'", "1.5x")),
                ("ALTER TABLE \"X\" ALTER value TYPE date USING '2020-01-01'", ("table 'X'", "'value'", "2020-01-01"))):
            with self.subTest(statement=statement):
                SERVER.sql('CREATE TABLE kept AS SELECT * FROM "X"; ' + statement)
                try:
                    self.refused(words, "--formats", "X=tile-10-4")
                    self.refused(words[:2], "--formats", "element")
                finally:
                    SERVER.sql('DROP TABLE "X"; ALTER TABLE kept RENAME TO "X"')

    def test_bad_rows_for_samples_are_named_and_nothing_changes(self):
        """A column for each index has no key, so that none is there twice; what is missing is a NULL or a row, which makes X shorter."""
        SERVER.sql(f"CREATE TABLE wide ({', '.join(f'c{j} float8' for j in range(13))}); INSERT INTO wide VALUES "
                   + ", ".join(f"({', '.join(repr(float(value)) for value in row)})" for row in self.x))
        query = "query:SELECT * FROM wide ORDER BY c0"
        row = "WHERE c0 = (SELECT min(c0) FROM wide)"  # the first one of the query; a table has no order
        for statement, words, arguments in (
                (f"UPDATE wide SET c3 = NULL {row}", ("column 'c3' is NULL at row=", ", column=3; every element needs a number"), ()),
                ("ALTER TABLE wide ALTER c3 TYPE text", ("column 'c3' has the type text, no numbers",), ()),
                ("ALTER TABLE wide ALTER c3 TYPE bytea USING NULL", ("column 'c3' has the type bytea, no numbers",), ()),
                ("ALTER TABLE wide DROP c12", ("'j' has extent 12", "13"), ()),
                (f"DELETE FROM wide {row}", ("'i' has extent 25 in --dim but 24 in X[i,j]",), ("--dim", "i=25")),
                (f"INSERT INTO wide SELECT * FROM wide {row}", ("'i' has extent 25 in --dim but 26 in X[i,j]",), ("--dim", "i=25"))):
            with self.subTest(statement=statement):
                SERVER.sql("CREATE TABLE kept AS SELECT * FROM wide; " + statement)
                try:
                    for x, named in (("table:wide", "table 'wide'"), (query, "the query 'SELECT * FROM wide ORDER BY c0'")):
                        for formats in ("X=tile-10-4", "element"):
                            self.refused((named, *words), *arguments, "--formats", formats, x=x)
                    if "NULL WHERE" in statement:
                        self.refused(("row=0, column=3",), x=query)
                finally:
                    SERVER.sql("DROP TABLE wide; ALTER TABLE kept RENAME TO wide")

    def test_keys_and_extents_that_do_not_fit_are_refused_with_the_remedy(self):
        for statement, arguments, words in (
                ('INSERT INTO "X" VALUES (1000, 0, 1)', (), ("table 'X' has no row for i=25, j=0", "i=1000, j=12", "sparse:table:NAME")),
                ('DELETE FROM "X" WHERE i = 24', ("--dim", "i=25"), ("but 24 in X[i,j] (table 'X', whose largest key is i=23)", "sparse:table:NAME")),
                ('DELETE FROM "X"', ("--dim", "i=25"), ("table 'X' has no row", "sparse:table:NAME")),
                ('UPDATE "X" SET i = i - 100', (), ("column 'i' has the key -100, but keys are whole numbers from 0 to ",)),
                ('ALTER TABLE "X" ALTER i TYPE bigint; UPDATE "X" SET i = 9223372036854775807 WHERE i = 7', (), ("the key 9223372036854775807",)),
                ('ALTER TABLE "X" ALTER i TYPE boolean USING i > 3', (), ("key column 'i' is boolean", "CAST(i AS integer)")),
                ('ALTER TABLE "X" ALTER i TYPE float8', (), ("column 'i' is ", "no whole number", "CAST(i AS bigint)")),
                ('ALTER TABLE "X" ALTER i TYPE numeric; UPDATE "X" SET i = i + 0.5', (), ("column 'i' is ", ".5, no whole number")),
                ('ALTER TABLE "X" RENAME i TO k0; ALTER TABLE "X" RENAME j TO k1; ALTER TABLE "X" RENAME value TO chunk', (),
                 ("column 'chunk'", "no arrays", "another name"))):
            with self.subTest(statement=statement):
                SERVER.sql('CREATE TABLE kept AS SELECT * FROM "X"; ' + statement)
                try:
                    self.refused(words, *arguments)
                finally:
                    SERVER.sql('DROP TABLE "X"; ALTER TABLE kept RENAME TO "X"')

    def test_what_is_wrong_with_the_command_is_said(self):
        SERVER.sql('CREATE TABLE "Z" (a int, b int, c int)')
        self.refused(("table 'Z' already",))
        SERVER.sql('DROP TABLE "Z"')
        for x, word in (("table:Xs", "no table 'Xs'"), ('query:DELETE FROM "X"', "only reads"), ("query:SELECT 1; SELECT 2", "one query"),
                        ('query:SELECT i, j, value FROM "X") AS q; DROP TABLE "X"; --', "syntax"), ("query:SELEC", "syntax"),
                        ("query:SELECT value, value FROM \"X\"", "two columns"), ("query:SELECT $1::int AS a, 2 AS b", "parameters"),
                        ("query:", "one query"), ('query:INSERT INTO "X" VALUES (1, 2, 3) RETURNING *', "only reads"),
                        ('query:WITH gone AS (DELETE FROM "X" RETURNING *) SELECT * FROM gone', "only reads"),
                        ("query:EXPLAIN SELECT 1", "only reads"), ('query:SELECT i, j, value INTO "W" FROM "X"', "only reads"),
                        ("query:SELECT 'a' AS a, 1 AS b", "column 'a' has the type text"), ("query:COMMIT", "only reads")):
            with self.subTest(x=x):
                self.refused((word,), x=x)

    def test_a_query_that_calls_a_function_that_writes_is_refused(self):
        SERVER.sql("CREATE FUNCTION sly() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM \"Y\"; RETURN 1; END $$; "
                   "CREATE SEQUENCE numbers; CREATE VIEW shy AS SELECT i, j, value * sly() AS value FROM \"X\"")
        for x in ('query:SELECT i, j, value * sly() AS value FROM "X"', "table:shy", "query:SELECT i, j, nextval('numbers') AS value FROM \"X\"",
                  'query:SELECT i, j, value FROM "X" FOR UPDATE'):
            with self.subTest(x=x):
                self.refused(("read",), x=x)

    def test_a_lock_of_another_transaction_is_said(self):
        with subprocess.Popen(SERVER.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            other.stdin.write('BEGIN; LOCK TABLE "X"; SELECT 1;\n')
            other.stdin.flush()
            other.stdout.readline()
            result = self.run_product("--out", "Z=table:Z")
            other.stdin.write("ROLLBACK;\n")
        self.assertEqual(result.code, 2, result)
        self.assertIn("locked", result.err)

    def test_weights_of_its_server_choose_formats(self):
        weights = {"about": "a test", "operation": 1e-10, "network_byte": 0, "tuple": 3e-5, "read_byte": 1e-9, "statement": 0, "intermediate_byte": 1e-9,
                   "piece": 4e-6, "stored_byte": 1e-8}
        os.makedirs(self.path("einrel"))
        self.text_file("einrel/databases.json", json.dumps({"databases": [
            {"server": "sqlite", **weights, "tuple": 5}, {"server": f"postgresql {SERVER.folder}:5432", **weights}]}))
        result = self.run_product("--out", "Z=table:Z", "--analyze", "--json", env={**os.environ, "XDG_CONFIG_HOME": self.folder})
        self.assertEqual(result.code, 0, result)
        found = json.loads(result.out)
        self.assertEqual(found["weights"], {"workers": 2} | {name: weights[name] for name in found["weights"] if name != "workers"})
        self.assertTrue(all(tensor["measured"] > 0 for tensor in found["tensors"]), found)
        np.testing.assert_allclose(self.table('"Z"', (25, 7)), self.x @ self.y, rtol=1e-12)

    def run_large(self, *arguments, url=None, **settings):
        """A product whose work processes share where they may, of a table and a file; other settings of the server."""
        SERVER.sql('DROP TABLE IF EXISTS large; CREATE TABLE large AS SELECT i, j, sin(i * 7 + j) AS value FROM generate_series(0, 249) AS i, '
                   "generate_series(0, 199) AS j")
        y = np.random.default_rng(3).standard_normal((200, 4000))
        np.save(self.path("y.npy"), y)
        options = "".join(f" -c {name}={value}" for name, value in settings.items())
        result = einrel("run", self.program, "--database", url or SERVER.url, "--in", "X=table:large", "--in", "Y=" + self.path("y.npy"), "--out",
                        "Z=" + self.path("z.npy"), *arguments, env={**os.environ, "PGOPTIONS": options})
        self.assertEqual(result.code, 0, result)
        i, j = np.indices((250, 200))
        np.testing.assert_allclose(np.load(self.path("z.npy")), np.sin(i * 7 + j) @ y, rtol=0, atol=1e-11)

    def test_processes_share_what_is_large_and_leave_nothing(self):
        explained = {"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": 0, "auto_explain.log_analyze": "on",
                     "log_min_messages": "log"}
        schemas = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1"
        before = SERVER.sql(schemas)
        for formats, workers, launched in (("tile-100", 2, True), ("X=row-strip-100,Y=single,Z=row-strip-100", 3, True), ("tile-100", 0, False), ("X=single,Y=single,Z=single", 2, False)):
            with self.subTest(formats=formats, workers=workers):
                begin = os.path.getsize(os.path.join(SERVER.folder, "log"))
                self.run_large("--formats", formats, max_parallel_workers_per_gather=workers, **explained)
                with open(os.path.join(SERVER.folder, "log"), encoding="utf-8") as log:
                    log.seek(begin)
                    plans = log.read()
                self.assertEqual("Parallel Append" in plans, launched, plans)
                self.assertEqual(f"Workers Launched: {workers}" in plans, launched, plans)
                self.assertEqual(SERVER.sql(schemas), before)

    def test_who_may_not_make_schemas_computes_alone(self):
        SERVER.sql("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN; GRANT USAGE ON SCHEMA public TO plain; "
                   "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO plain")
        try:
            self.run_large("--formats", "tile-100", url=SERVER.url.replace("tester@", "plain@"))
        finally:
            SERVER.sql("DROP OWNED BY plain; DROP ROLE plain")

    def test_a_database_that_only_reads_is_said(self):
        before = self.content()
        for arguments in ((), ("--formats", "element"), ("--formats", "tile-4")):
            result = self.run_product(*arguments, env={**os.environ, "PGOPTIONS": "-c default_transaction_read_only=on"})
            self.assertEqual(result.code, 1, result)
            self.assertIn("only reads", result.err)
            self.assertEqual(self.content(), before)

    def test_tables_that_one_may_not_read_or_make_are_said(self):
        SERVER.sql('DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN; GRANT USAGE ON SCHEMA public TO plain; GRANT SELECT ON "X" TO plain')
        try:
            url = SERVER.url.replace("tester@", "plain@")
            turned = 'query:SELECT i AS j, j AS k, value FROM "X"'
            for y, out, words in (("table:Y", (), ("table 'Y' cannot be read", "permission denied")), (turned, ("--out", "Z=table:Z"), ("permission denied",)),
                                  (turned, ("--out", "Z=chunks:Z"), ("permission denied",))):
                result = einrel("run", self.program, "--database", url, "--in", "X=query:SELECT j AS i, i AS j, value FROM \"X\"", "--in", "Y=" + y, *out)
                self.assertEqual(result.code, 1, result)
                for word in words:
                    self.assertIn(word, result.err)
        finally:
            SERVER.sql("DROP OWNED BY plain; DROP ROLE plain")

    def test_steps_share_what_is_large(self):
        program = self.text_file("steps.ein", "input A[i,j] : f64\nstate X[i,j] = A[i,j]\nP[i,k] = sum[j] A[i,j] * X[j,k]\n"
                                 "next X[i,j] = P[i,j] / 10\noutput next_X\n")
        a = np.random.default_rng(4).standard_normal((600, 600))
        np.save(self.path("a.npy"), a)
        self.succeed("run", program, "--database", SERVER.url, "--in", "A=" + self.path("a.npy"), "--steps", "3", "--formats", "tile-200", "--out",
                     "next_X=table:Z")
        expected = a @ (a @ (a @ a / 10) / 10) / 10
        np.testing.assert_allclose(self.table('"Z"', (600, 600)), expected, rtol=0, atol=1e-10 * abs(expected).max())

    def test_what_is_no_database_is_said(self):
        for url, word in (("postgresql:///einrel?host=/nowhere", "cannot connect"), ("postgres:einrel", "--database: write"),
                          (SERVER.url.replace("/einrel?", "/other?"), "other")):
            result = einrel("run", self.program, "--database", url, "--in", "X=table:X", "--in", "Y=table:Y")
            self.assertEqual(result.code, 1, result)
            self.assertIn(word, result.err)
            self.assertNotIn("\\x", result.err)

    def test_scripts_run_in_psql(self):
        dims = ("--dim", "i=25", "--dim", "j=13", "--dim", "k=7")
        for formats in ((), ("--formats", "tile-5"), ("--formats", "element")):
            script = self.succeed("sql", self.program, *dims, "--dialect", "postgres", *formats).out
            SERVER.sql(script)
            np.testing.assert_allclose(self.table('"Z"', (25, 7)), self.x @ self.y, rtol=1e-12)
            SERVER.sql('DROP TABLE "Z"')


class Functions(EmptyDatabase):
    """The functions as anybody may call them."""

    def test_arrays_of_postgresql_and_of_einrel_are_the_same(self):
        for array in ("{{1,2,3},{4,5,6}}", "{1.5}", "{}", "{NaN,Infinity,-0}"):
            self.assertEqual(SERVER.sql(f"SELECT einrel.einrel_to_array(einrel.einrel_from_array('{array}'))").strip(), array)
        self.assertEqual(SERVER.sql("SELECT einrel.einrel_to_array(einrel.einrel_kernel('matMul', einrel.einrel_from_array('{{1,2},{3,4}}'), "
                                    "einrel.einrel_from_array('{{1,1},{1,0}}')))").strip(), "{{3,1},{7,3}}")

    def test_aggregates_in_parallel_give_what_they_give_alone(self):
        SERVER.sql("CREATE TABLE many AS SELECT n AS k0, n % 7 AS k1, einrel.einrel_from_array(ARRAY[n::float8, 2 * n, n % 3]) AS chunk, "
                   "repeat('x', 1000) AS filler FROM generate_series(0, 9999) AS n; ANALYZE many")
        queries = ("einrel.einrel_to_array(einrel.einrel_fold('matAdd', chunk))", "einrel.einrel_to_array(einrel.einrel_fold('matSub', chunk, k0))",
                   "md5(einrel.einrel_concat(0, k0, chunk)::text)", "md5(einrel.einrel_place(chunk, 3 * k0)::text)")
        for query in queries:
            alone, together = (SERVER.sql(f"SET max_parallel_workers_per_gather = {workers}; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                                          f"SET min_parallel_table_scan_size = 0; SELECT {query} FROM many; EXPLAIN SELECT {query} FROM many")
                               for workers in (0, 2))
            self.assertNotIn("Partial", alone)
            self.assertIn("Partial", together, query)
            self.assertEqual(alone.splitlines()[0], together.splitlines()[0], query)
            nothing = SERVER.sql("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                                 f"SET min_parallel_table_scan_size = 0; SELECT {query} IS NULL FROM many WHERE k0 + 0 < 0; "
                                 f"EXPLAIN SELECT {query} FROM many WHERE k0 + 0 < 0")
            self.assertEqual(nothing.splitlines()[0], "t", query)
            self.assertIn("Partial", nothing, query)
        SERVER.sql("DROP TABLE many")

    def test_no_bytes_crash_the_server(self):
        chance = random.Random(5)
        started = SERVER.sql("SELECT pg_postmaster_start_time()")
        good = SERVER.sql("SELECT encode(einrel.einrel_from_array('{{1,2},{3,4}}'), 'hex')").strip()

        def array():
            kind = chance.randrange(10)
            if kind > 4:
                return f"einrel.einrel_from_array('{chance.choice(('{{1,2},{3,4}}', '{{1,2},{3,4}}', '{1,2}', '{}'))}')"
            if kind == 0:
                return "'\\x" + bytes(chance.randrange(256) for _ in range(chance.randrange(60))).hex() + "'::bytea"
            if kind == 1:
                return chance.choice(("NULL", "NULL::bytea", "'abc'", "1.5", "now()", "ARRAY[1]", "-1", "9223372036854775807", "true"))
            changed = bytearray.fromhex(good)
            for _ in range(chance.choice((0, 0, 1, 3))):
                changed[chance.randrange(len(changed))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
            return f"'\\x{bytes(changed[:chance.choice((len(changed), chance.randrange(len(changed))))]).hex()}'::bytea"

        def number():
            return chance.choice(("0", "1", "2", "-1", "3", "1000000000000", "9223372036854775807", "NULL", "'x'"))

        def kernel():
            return chance.choice(("'matMul'", "'matAdd'", "'id'", "'diag'", "NULL", "''", "'kernel Z(A[i,j]) -> [j,i] = A[i,j]'",
                                  "'kernel Z(A[i,j], B[k,l]) -> [i,j,k,l] = A[i,j] * B[k,l]'", "'kernel Z(A[i,j]) -> [i] with i=9 = sum[j] A[i,j]'",
                                  "'kernel Z(A[i]) -> [i,j] with j=100000000000 = A[i]'", "'diag . matAdd'", "repeat('(', 100000)", "'inverse'"))

        def several(make, most):
            return "".join(", " + make() for _ in range(chance.randrange(most)))

        def elements():
            return chance.choice(("'{1,2,NaN}'", "'{}'", "'[-5:-4]={1,2}'", "'{{{{{{1}}}}}}'", "'{1,NULL}'", "NULL", "'{{1},{2,3}}'", "ARRAY[1,2]::int[]",
                                  "array_fill(1::float8, ARRAY[3,0,2])", "array_fill(1::float8, ARRAY[100,100], ARRAY[-7,2147483000])", "'{x}'"))

        calls = (lambda: f"einrel.einrel_kernel({kernel()}{several(array, 4)}{several(number, 2)})", lambda: f"einrel.einrel_positions({number()}, {number()})",
                 lambda: f"einrel.einrel_zeros({chance.choice((chr(39) + 'f32' + chr(39), 'NULL', kernel()))}{several(number, 4)})",
                 lambda: f"einrel.einrel_tile({array()}, {number()}, {number()}, {number()})", lambda: f"einrel.einrel_box({array()}{several(number, 5)})",
                 lambda: f"einrel.einrel_extent({array()}, {number()})", lambda: f"einrel.einrel_to_array({array()})",
                 lambda: f"einrel.einrel_fold({kernel()}, {array()}{several(number, 3)})", lambda: f"einrel.einrel_concat({number()}, {number()}, {array()})",
                 lambda: f"einrel.einrel_place({array()}{several(number, 4)})",
                 lambda: f"einrel.einrel_gather('f32', 'T', {number()}, {number()}, {number()}, {number()}, {array()}, 'a', 'b')",
                 lambda: f"einrel.einrel_gather('i64', 'T', 1, 3, 2, n, {array()}, 'a', 'b')",
                 lambda: f"einrel.einrel_whole('f32', 'T', 1, {number()}, {number()}, true, {number()}, 'a')",
                 lambda: "einrel.einrel_fold_finish(NULL)", lambda: f"einrel.einrel_receive({array()}, NULL)", lambda: f"einrel.einrel_from_array({elements()})",
                 lambda: f"einrel.einrel_to_array(einrel.einrel_from_array({elements()}))",
                 lambda: f"einrel.einrel_gather('i64', 'T', 1, 2, 1, n - 1, {number()}, 'a', 'b')", lambda: f"einrel.einrel_concat({number()}, n, {array()})",
                 lambda: f"einrel.einrel_place({array()}, 2 * (n - 1){several(number, 2)})", lambda: f"einrel.einrel_fold('matAdd', {array()}{several(number, 2)})",
                 lambda: f"einrel.einrel_kernel('{chance.choice(('matMul', 'matSub'))}', {array()}, {array()})",
                 lambda: f"einrel.einrel_box({array()}, {chance.randrange(2)}, 1, 0, {chance.randrange(3)})",
                 lambda: f"einrel.einrel_tile({array()}, {chance.randrange(2)}, 1, {chance.randrange(2)})")
        parts = (lambda: f"einrel.einrel_{chance.choice(('gather', 'whole'))}_add(NULL, 'f32', 'T'{several(number, 5)})",  # of aggregates, called alone
                 lambda: f"einrel.einrel_fold_add(NULL, {kernel()}, {array()}{several(number, 3)})", lambda: f"einrel.einrel_place_add(NULL, {array()})",
                 lambda: f"einrel.einrel_concat_add(NULL, {number()}, {number()}, {array()})",
                 lambda: f"einrel.einrel_{chance.choice(('fold', 'concat', 'place'))}_{chance.choice(('combine(NULL, NULL)', 'send(NULL)', 'finish(NULL)'))}")
        windows = (calls[7], calls[8], calls[9], calls[11], calls[12])
        statements = []
        for turn in range(2500):
            if turn % 10 == 0:
                statements.append(f"SELECT {chance.choice(parts)()} IS NULL;")
                statements.append(f"SELECT length(({chance.choice(windows)()} OVER (ORDER BY n ROWS 1 PRECEDING))::text) FROM generate_series(1, 3) AS n;")
            call = chance.choice(calls)()
            statements.append(f"SELECT '{call.partition('(')[0].removeprefix('einrel.')}', length(({call})::text) FROM generate_series(1, 2) AS n;")
            statements.append(f"SELECT 'einrel_elements', count(*) FROM einrel.einrel_elements({array()}) AS e(value {chance.choice(('real', 'float8', 'bigint', 'text'))}"
                              f"{''.join(f', d{d} bigint' for d in range(chance.randrange(4)))});")
        result = SERVER.call("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", SERVER.url, check=False,
                             input="\\set VERBOSITY verbose\nSET statement_timeout = '20s';\n" + "\n".join(statements))
        self.assertEqual(result.returncode, 0, result.stderr[-2000:])
        self.assertNotIn("server closed", result.stderr)
        self.assertEqual(SERVER.sql("SELECT pg_postmaster_start_time()"), started)
        states = Counter(re.findall(r"ERROR:  (\w{5}): ", result.stderr))
        bugs = [line for line in result.stderr.splitlines() if "ERROR:  ER003" in line
                or ("ERROR:  XX" in line and "is a part of an aggregate" not in line)]
        self.assertEqual(bugs, [])
        self.assertEqual(states["57014"], 0, "a statement takes longer than its time")
        self.assertGreater(states["ER001"], 300)
        answers = Counter(line.partition("|")[0] for line in result.stdout.splitlines() if line.partition("|")[2])
        for name in ("kernel", "positions", "zeros", "tile", "box", "extent", "to_array", "from_array", "elements", "fold", "concat", "place", "gather"):
            self.assertGreater(answers["einrel_" + name], 5, answers)
        self.assertGreater(sum(answers.values()), 700)


if __name__ == "__main__":
    main()
