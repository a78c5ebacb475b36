"""einrel run --database and einrel sql, against NumPy and SQLite itself."""

import itertools
import json
import os
import resource
import sqlite3

import numpy as np

from einrel_process import einrel, main
from sqlite_case import SqliteProduct


class Database(SqliteProduct):
    def test_every_format_gives_the_product(self):
        for number, formats in enumerate(("", "single", "row", "column", "row-strip-10", "column-strip-3", "tile-10-4", "tile-1-1")):
            for other in ("tile-5", "Z=column", "Y=row-strip-4"):
                with self.subTest(x=formats, other=other):
                    given = ",".join(([f"X={formats}"] if formats else []) + [other])
                    table = f"Z{number}{other[0]}"
                    result = self.run_product("--formats", given, "--out", "Z=table:" + table)
                    self.assertEqual(result.code, 0, result)
                    np.testing.assert_allclose(self.table(table, (25, 7)), self.x @ self.y, rtol=1e-12)

    def test_a_result_may_lie_in_any_tiles(self):
        program = self.text_file("t.ein", "input X[i,j] : f64\nT[i,j] = X[i,j] * 2\nC[j,i] = X[i,j]\nU[i,j] = sq(T[i,j]) + X[i,j]\noutput T, C, U\n")
        for formats in ("T=tile-1-2", "T=tile-2-1", "C=tile-1-5", "U=tile-1-2,X=row", "T=tile-1-3,C=tile-4-1,U=tile-5-1", "X=tile-1-2", "T=tile-1-2,U=tile-2-1,X=single"):
            with self.subTest(formats=formats):
                self.succeed("run", program, "--database", "sqlite:" + self.file, "--in", "X=table:X", "--formats", formats,
                             *(word for name in "TCU" for word in ("--out", f"{name}={self.path(name)}.npy")))
                for name, wanted in (("T", 2 * self.x), ("C", self.x.T), ("U", (2 * self.x) ** 2 + self.x)):
                    np.testing.assert_allclose(np.load(self.path(name + ".npy")), wanted, rtol=1e-12)

    def test_formats_are_chosen_by_cost_and_explained(self):
        dims = ("--dim", "i=2000", "--dim", "j=3000", "--dim", "k=50")
        chosen = json.loads(self.succeed("sql", self.program, *dims, "--explain", "--json").out)
        self.assertTrue(chosen["is_least"])
        self.assertEqual([tensor["name"] for tensor in chosen["tensors"]], ["X", "Y", "Z"])
        self.assertLessEqual(chosen["cost"]["seconds"], chosen["all_tile"]["seconds"])
        given = json.loads(self.succeed("sql", self.program, *dims, "--explain", "--json", "--formats", "X=row").out)
        x, _, z = given["tensors"]
        self.assertEqual((x["format"], x["given"], z["given"]), ("row", True, False))
        self.assertGreater(given["cost"]["seconds"], chosen["cost"]["seconds"])
        tiles = json.loads(self.succeed("sql", self.program, *dims, "--explain", "--json", "--formats", "all-tile").out)
        self.assertEqual(tiles["cost"], chosen["all_tile"])
        for plan in (chosen, given, tiles):
            weights = plan["weights"]
            costs = [tensor["cost"] for tensor in plan["tensors"]]
            costs += [change["cost"] for tensor in plan["tensors"] for change in tensor["transformations"]]
            for cost in (*costs, plan["cost"]):
                seconds = (weights["operation"] * cost["compute"] + weights["network_byte"] * cost["network"]
                           + weights["tuple"] * cost["tuples"] + weights["read_byte"] * cost["read"] + weights["intermediate_byte"] * cost["intermediate"]
                           + weights["statement"] * cost["statements"]
                           + weights["piece"] * cost["pieces"] + weights["stored_byte"] * cost["stored"])
                self.assertAlmostEqual(cost["seconds"], seconds, delta=1e-9 * seconds)
            for part in plan["cost"]:
                self.assertAlmostEqual(plan["cost"][part], sum(cost[part] for cost in costs), delta=1e-9 * plan["cost"][part])
        text = self.succeed("sql", self.program, *dims, "--explain").out
        for tensor in chosen["tensors"]:
            self.assertIn(tensor["format"], text)
        for arguments, word in ((("--json",), "--explain"), (("--explain", "--formats", "element"), "element"),
                                (("--formats", "X=strip"), "row-strip-H"), (("--formats", "Xs=row"), "'X'"),
                                (("--schema", "main"), "a schema is of PostgreSQL's scripts"), (("--schema", "", "--dialect", "postgres"), "the value is empty"),
                                (("--schema", "shop", "--dialect", "postgres", "--explain"), "--explain prints none")):
            result = einrel("sql", self.program, *dims, *arguments)
            self.assertEqual(result.code, 1, result)
            self.assertIn(word, result.err)
        self.assertIn("einrel sql", einrel("explain", self.program, *dims, "--planner", "formats").err)
        self.assertEqual(len([line for line in self.succeed("list", "formats").out.splitlines() if " a chunk is " in line]), 19)

    def test_formats_that_are_not_proven_to_cost_least_are_said_to_be_so(self):
        forms = ("sum[k] {0}[i,k] * {1}[k,j]", "sum[k] {0}[k,i] * {1}[k,j]", "sum[k] {0}[i,k] * {1}[j,k]", "{0}[i,j] + {1}[j,i]")
        for count, is_least in ((8, True), (40, False)):
            lines = ["dims i=2000 j=2000 k=2000", "input V0[i,j] : f64"]
            for v in range(1, count):
                lines.append(f"V{v}[i,j] = " + forms[v * v % 7 % 4].format(f"V{v - 1}", f"V{v ** 3 % 23 % v}"))
            program = self.text_file("many.ein", "\n".join(lines) + "\n")
            text = self.succeed("sql", program, "--explain").out
            self.assertEqual("formats of least cost" in text, is_least, text)
            self.assertEqual("formats of low cost; not proven least" in text, not is_least, text)
            self.assertIs(json.loads(self.succeed("sql", program, "--explain", "--json").out)["is_least"], is_least)

    def test_direct_transformations_are_those_of_one_step(self):
        n = 10**4
        sizes = {"single": (n, n), "row": (1, n), "column": (n, 1), "element": (1, 1)}
        for a in (10, 100, 1000):
            sizes |= {f"row-strip-{a}": (a, n), f"column-strip-{a}": (n, a)} | {f"tile-{a}-{b}": (a, b) for b in (10, 100, 1000)}
        inside = {(a, b) for a in sizes for b in sizes if a != b and all(s % t == 0 for s, t in zip(sizes[a], sizes[b]))}
        found = {"cut": set(), "put together": set()}
        for line in self.succeed("list", "formats").out.splitlines():
            if " -> " in line:
                before, _, rest = line.partition(" -> ")
                after, _, how = rest.partition(": ")
                others = set(sizes) - {before.strip()} if after == "all others" else after.split(", ")
                found[how] |= {(before.strip(), to) for to in others}
        self.assertEqual(found, {"cut": inside, "put together": {(b, a) for a, b in inside}})
        for papers in ("single tile-100-100", "row single", "element row", "row-strip-10 row", "column-strip-100 tile-100-100"):
            self.assertIn(tuple(papers.split()), found["cut"] | found["put together"])

    def test_an_analysis_has_a_line_for_each_statement(self):
        formats = ("--formats", "X=row,Y=column-strip-3,Z=tile-10-4")
        result = self.run_product(*formats, "--out", "Z=table:Z", "--analyze", "--json")
        self.assertEqual(result.code, 0, result)
        np.testing.assert_allclose(self.table("Z", (25, 7)), self.x @ self.y, rtol=1e-12)
        found = json.loads(result.out)
        self.assertEqual([tensor["name"] for tensor in found["tensors"]], ["X", "Y", "Z"])
        parts = [tensor["measured"] for tensor in found["tensors"]]
        changes = [change for tensor in found["tensors"] for change in tensor["transformations"]]
        self.assertEqual({change["tensor"] for change in changes}, {"X", "Y"})
        parts += [change["measured"] for change in changes]
        self.assertTrue(all(seconds > 0 for seconds in parts), found)
        rest = {part["about"]: part["seconds"] for part in found["measured"]["rest"]}
        self.assertEqual(set(rest), {"Z put out", "all else"})
        self.assertAlmostEqual(found["measured"]["seconds"], sum(parts) + sum(rest.values()), delta=1e-9)
        text = self.run_product(*formats, "--analyze").out
        for words in ("measured", *(tensor["formula"] for tensor in found["tensors"]), "X to ", "Y to ", "Z put out", "in all"):
            self.assertIn(words, text)
        for arguments, word in ((("--json",), "--analyze"), (("--analyze", "--formats", "element"), "element")):
            self.refused((word,), *arguments)

    def test_an_analysis_of_steps_is_of_one_step(self):
        program = self.text_file("steps.ein", "dims i=50 j=40\ninput X[i,j] : f64\nstate S[j] = f64(0)\nP[i] = sum[j] X[i,j] * S[j]\n"
                                 "next S[j] = S[j] + sum[i] X[i,j] * (1 - P[i]) / 1000\n")
        np.save(self.path("x.npy"), np.ones((50, 40)))
        arguments = ("run", program, "--database", "sqlite:" + self.file, "--in", "X=" + self.path("x.npy"), "--steps", "4", "--analyze")
        found = json.loads(self.succeed(*arguments, "--json").out)
        self.assertEqual(found["measured"]["steps"], 4)
        computed = {tensor["name"]: tensor["measured"] for tensor in found["tensors"]}
        self.assertGreater(min(computed["X"], computed["P"]), 0)
        self.assertGreater(found["measured"]["seconds"], 4 * computed["P"] + computed["X"])
        said = self.succeed(*arguments).out
        self.assertIn("4 steps", said)
        self.assertIn("input X[50,40] : f64, gathered\n", said)
        self.assertIn("state S[40] : f64\n", said)

    def test_weights_of_a_database_choose_formats_and_change_no_result(self):
        chosen = set()
        strips = ("--formats", "X=row-strip-10")  # brought to one chunk, or computed with as they are
        for tuple_seconds, piece in ((1e-2, 1e-8), (1e-8, 1e-2)):
            weights = {"server": "sqlite", "about": "a test", "operation": 1e-10, "network_byte": 0,
                       "tuple": tuple_seconds, "read_byte": 0, "intermediate_byte": 1e-8, "statement": 0, "piece": piece, "stored_byte": 1e-9}
            other = {**weights, "server": "postgresql db.example.org:5432", "tuple": 77}
            environment = self.settings(json.dumps({"databases": [other, weights]}))
            table = f"Z{len(chosen)}"
            result = self.run_product(*strips, "--out", "Z=table:" + table, "--analyze", "--json", env=environment)
            self.assertEqual(result.code, 0, result)
            found = json.loads(result.out)
            self.assertEqual(found["weights"], {"workers": 1} | {name: weights[name] for name in found["weights"] if name != "workers"})
            chosen.add(len(found["tensors"][-1]["transformations"]))
            np.testing.assert_allclose(self.table(table, (25, 7)), self.x @ self.y, rtol=1e-12)
            explained = self.succeed("sql", self.program, "--dim", "i=25", "--dim", "j=13", "--dim", "k=7", *strips, "--explain", "--json", env=environment)
            self.assertEqual(json.loads(explained.out)["weights"], found["weights"])
            self.execute(f'DROP TABLE "{table}"')
        self.assertEqual(chosen, {0, 1})

    def test_settings_that_hold_no_weights_are_refused(self):
        entry = {"server": "sqlite", "about": "", "operation": 0, "network_byte": 0, "tuple": 0, "read_byte": 0, "intermediate_byte": 0, "statement": 0,
                 "piece": 0, "stored_byte": 0}
        for text, word in (("{", "JSON"), ("[]", "'databases'"), ('{"databases": 1}', "'databases'"), ('{"databases": [7]}', "entry 1"),
                           (json.dumps({"databases": [entry, entry]}), "twice"),
                           (json.dumps({"databases": [{**entry, "tuple": -1}]}), "'tuple'"),
                           (json.dumps({"databases": [{**entry, "piece": "2"}]}), "'piece'"),
                           (json.dumps({"databases": [{**entry, "more": 1}]}), "fields"),
                           ('{"databases": [' + "[" * 100000, "JSON"), ("x" * (1 << 20) + "x", "1 MiB")):
            with self.subTest(text=text[:40]):
                environment = self.settings(text)
                self.refused(("databases.json", word, "delete"), env=environment)
                self.refuse(1, "calibrate", "--database", "sqlite:" + self.file, mentions=["databases.json", word], env=environment)
                with open(self.path("settings/einrel/databases.json"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), text)

    def test_what_cannot_be_calibrated_is_said(self):
        environment = self.settings('{"databases": []}')
        text = self.text_file("text.db", "this is no database, only a text that is long enough" * 40)
        for url, words in (("sqlite:" + self.path("gone.db"), ("cannot open",)), ("sqlite:" + text, ("cannot be read",)),
                           ("mysql://x", ("sqlite:FILE",)),
                           (f"postgresql://a@/b?host={self.folder}", ("cannot connect",))):
            self.refuse(1, "calibrate", "--database", url, mentions=words, env=environment)
        self.refuse(1, "calibrate", "--database", "sqlite:" + self.file, "--threads", "1", mentions=["--threads"], env=environment)
        with open(self.path("settings/einrel/databases.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), '{"databases": []}')

    def test_queries_and_files_are_inputs_and_files_outputs(self):
        self.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, a, b, c, kind)")
        rows = [(3 * n, n, n * n, 1.5, "odd" if n % 2 else "even") for n in range(20)]
        self.execute("INSERT INTO samples VALUES (?, ?, ?, ?, ?)", rows)
        y = np.arange(6.0).reshape(3, 2)
        np.save(self.path("y.npy"), y)
        result = einrel("run", self.program, "--database", "sqlite:" + self.file, "--in", "Y=" + self.path("y.npy"), "--in",
                        "X=query:SELECT a, b, c FROM samples WHERE kind = 'odd' ORDER BY id DESC -- the last first",
                        "--out", "Z=" + self.path("z.npy"))
        self.assertEqual(result.code, 0, result)
        x = np.array([row[1:4] for row in reversed(rows) if row[4] == "odd"], float)
        np.testing.assert_allclose(np.load(self.path("z.npy")), x @ y)

    def test_a_matrix_may_have_one_column(self):
        self.execute("CREATE TABLE tall (a)")
        self.execute("INSERT INTO tall VALUES (?)", [(1.5,), (2.5,), (-4.0,)])
        given = ("--in", "X=table:tall", "--in", "Y=query:SELECT 2.0 AS a, 3.0 AS b", "--out", "Z=" + self.path("z.npy"))
        for formats in ("tile-2", "X=row", "element"):
            with self.subTest(formats=formats):
                result = einrel("run", self.program, "--database", "sqlite:" + self.file, *given, "--formats", formats)
                self.assertEqual(result.code, 0, result)
                np.testing.assert_array_equal(np.load(self.path("z.npy")), [[3.0, 4.5], [5.0, 7.5], [-8.0, -12.0]])
        self.execute("UPDATE tall SET a = NULL WHERE a = 2.5")
        for formats in ("tile-2", "element"):
            result = einrel("run", self.program, "--database", "sqlite:" + self.file, *given, "--formats", formats)
            self.assertEqual(result.code, 1, result)
            self.assertIn("column 'a' is NULL at row=1, column=0", result.err)

    def test_infinity_is_kept_both_ways_and_nan_is_null(self):
        inf, nan = np.inf, np.nan
        x = np.array([inf, -inf, 1.5, -2.0, 1e308])
        self.store("special", x, ("i",))
        self.execute("CREATE VIEW wide AS SELECT value FROM special ORDER BY i")
        program = self.text_file("special.ein", "input X[i] : f64\nS[i] = X[i]\nT[i] = 10 * f32(X[i])\nD[i] = S[i] - X[i]\nM[] = max[i] X[i]\n")
        wanted = {"S": x, "T": np.array([inf, -inf, 15, -20, inf]), "D": np.array([nan, nan, 0, 0, 0]), "M": np.array(inf)}
        run = ("run", program, "--database", "sqlite:" + self.file)
        for number, (formats, source) in enumerate(itertools.product(("X=single", "tile-2", "element"), ("table:special", "table:wide"))):
            with self.subTest(formats=formats, source=source):
                for kind, out in (("table", f"{{}}{number}"), ("file", self.path("{}.npy"))):
                    outputs = [f"{name}=table:{out.format(name)}" if kind == "table" else f"{name}={out.format(name)}" for name in wanted]
                    self.succeed(*run, "--in", "X=" + source, "--formats", formats, *(word for output in outputs for word in ("--out", output)))
                for name, value in wanted.items():
                    found = np.load(self.path(f"{name}.npy"))
                    stored = [row[-1] for row in self.execute(f"SELECT * FROM {name}{number} ORDER BY 1")]
                    np.testing.assert_array_equal(found, value)
                    self.assertEqual(stored, [None if np.isnan(each) else each for each in np.atleast_1d(value)])
        # What is NULL cannot come back from a table of elements; an array of chunks has NaN.
        result = self.refuse(1, *run, "--in", "X=table:D0", mentions=("table 'D0'", "'value' is NULL at i=", "every element needs a number"))
        self.assertRegex(result.err, "i=[01];")
        self.succeed(*run, "--in", "X=table:special", "--formats", "D=row-strip-2", "--out", "D=chunks:kept")
        self.succeed(*run, "--in", "X=table:kept", "--out", "S=" + self.path("kept.npy"))
        np.testing.assert_array_equal(np.load(self.path("kept.npy")), wanted["D"])
        for kind, words in (("i64", "no whole number, as i64 wants"), ("bool", "no whole number, as bool wants")):
            whole = self.text_file("whole.ein", f"input X[i] : {kind}\nS[i] = X[i]\n")
            for formats in ("X=single", "element"):
                self.refuse(1, "run", whole, "--database", "sqlite:" + self.file, "--formats", formats, "--in",
                            "X=query:SELECT i, value FROM special WHERE i = 0", mentions=("'value' is inf at i=0", words))
        self.refuse(1, "run", self.text_file("same.ein", "input X[i] : f64\nS[i] = X[i]\n"), "--database", "sqlite:" + self.file,
                    "--in", "X=query:SELECT value AS i, i AS value FROM special WHERE i = 0",
                    mentions=("column 'i' is inf, no whole number, in the row of i=inf\n",))

    def test_columns_with_the_names_of_labels_stand_in_any_order(self):
        for number, order in enumerate(itertools.permutations(("i", "j", "value"))):
            with self.subTest(order=order):
                self.execute(f"CREATE VIEW turned{number} AS SELECT {', '.join(order)} FROM X")
                result = self.run_product("--out", f"Z=table:Z{number}", x=f"table:turned{number}")
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table(f"Z{number}", (25, 7)), self.x @ self.y, rtol=1e-12)

    def test_a_column_with_the_name_of_another_label_is_no_key_by_its_place(self):
        self.execute("CREATE VIEW turned AS SELECT j, i AS n, value FROM X")
        for formats in ((), ("--formats", "element")):
            result = self.run_product(*formats, x="table:turned")
            self.assertEqual(result.code, 1, result)
            for word in ("table 'turned'", "column 'j'", "label i"):
                self.assertIn(word, result.err)

    def test_a_key_that_is_far_too_large_is_named(self):
        for key in (5 * 10**9, 2 * 10**8):
            query = f"query:SELECT i, CASE WHEN i = 3 AND j = 2 THEN {key} ELSE j END AS j, value FROM X"
            for formats in ((), ("--formats", "element")):
                self.refused((f"j={key}", "sparse:"), *formats, x=query)

    def test_numbers_of_elements_stand_in_a_column_value(self):
        """Else they would be rows of a matrix of the keys."""
        for columns in ("i, j, value AS w", "j, i, value AS w", "value AS w, I, J"):
            for formats in ((), ("--formats", "element")):
                self.refused(("the columns", "'value'", "w"), *formats, x=f"query:SELECT {columns.replace('I, J', 'i AS I, j AS J')} FROM X")

    def test_runs_that_make_no_tables_hinder_nobody_and_wait_for_nobody(self):
        reader, writer = (sqlite3.connect(self.file, isolation_level=None) for _ in range(2))
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM X").fetchone()
        writer.execute("BEGIN IMMEDIATE")  # both for longer than a run waits
        for formats in ((), ("--formats", "element"), ("--analyze",)):
            self.assertEqual(self.run_product(*formats).code, 0)
        self.assertEqual(self.run_product("--out", "Z=" + self.path("z.npy")).code, 0)
        np.testing.assert_allclose(np.load(self.path("z.npy")), self.x @ self.y, rtol=1e-12)
        reader.close()
        writer.close()

    def test_what_is_neither_file_nor_table_says_how_a_table_is_written(self):
        for source in ("tabel:X", "table=X", "X", "nowhere.npy"):
            self.refused((f"no file '{source}'", "X=table:NAME"), x=source)

    def test_scripts_take_any_names_or_say_why_not(self):
        """Of tensors: those that differ in the case of letters only, that SQLite keeps, and inputs that are put out."""
        program = self.text_file("names.ein", "dims i=3\ninput X[i], x[i] : f64\nZ[i] = X[i] - x[i]\n")
        for formats in ((), ("--formats", "element")):
            self.assertIn("same name", einrel("sql", program, *formats).err)
            self.assertNotIn("same name", einrel("sql", program, *formats, "--dialect", "postgres").err)
        kept = self.text_file("kept.ein", "dims i=3\ninput sqlite_y[i] : f64\nZ[i] = sqlite_y[i] + 1\n")
        self.assertIn("keeps such names", einrel("sql", kept).err)
        own = self.text_file("own.ein", "dims i=3\ninput x[i] : f64\nsqlite_x[i] = exp(x[i])\nZ[] = sum[i] sqlite_x[i]\noutput Z, x\n")
        self.execute("CREATE TABLE numbered AS SELECT i, value FROM X WHERE j = 0 AND i < 3")
        for formats in ((), ("--formats", "element")):
            for source in ("table:numbered", "query:SELECT value FROM numbered ORDER BY i"):
                result = einrel("run", own, "--database", "sqlite:" + self.file, "--in", "x=" + source, *formats, "--out", "Z=" + self.path("z.npy"))
                self.assertEqual(result.code, 0, result)
                self.assertAlmostEqual(float(np.load(self.path("z.npy"))), np.exp(self.x[:3, 0]).sum())
            self.assertNotIn('CREATE TABLE main."x"', self.succeed("sql", own, *formats).out)

    def test_names_are_names_whatever_stands_in_them(self):
        for name in ('a"b', "it's; DROP TABLE X", "caf\u00e9 \u4e2d", "select", "x)--", "temp.X", "?1", "/* "):
            with self.subTest(name=name):
                self.store(name, self.x, ("i", "j"))
                result = self.run_product("--out", f"Z=table:out {name}", x="table:" + name)
                self.assertEqual(result.code, 0, result)
                np.testing.assert_allclose(self.table("out " + name, (25, 7)), self.x @ self.y, rtol=1e-12)
        self.assertEqual(len(self.execute("SELECT * FROM X")), self.x.size)

    def test_columns_are_names_whatever_stands_in_them(self):
        names = ('a"b', "it's; DROP TABLE X; --", "caf\u00e9 \u4e2d", "select", "?1", "/* ", "rowid", "e", "v", "c0", "k0", "chunk x", "i")
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        self.execute(f"CREATE TABLE wide ({', '.join(quoted)})")
        self.execute(f"INSERT INTO wide VALUES ({', '.join('?' * 13)})", [[float(value) for value in row] for row in self.x])
        self.assertEqual(self.run_product("--out", "Z=table:Z", x="table:wide").code, 0)
        np.testing.assert_allclose(self.table("Z", (25, 7)), self.x @ self.y, rtol=1e-12)
        self.execute("DROP TABLE Z")
        for number, (name, column) in enumerate(zip(names, quoted)):
            with self.subTest(name=name):
                row = f"WHERE _rowid_ = {number + 1}"
                kept = self.execute(f"SELECT {column} FROM wide {row}")
                self.execute(f"UPDATE wide SET {column} = NULL {row}")
                self.refused(("table 'wide'", f"column '{name}' is NULL", f"row={number}, column={number}"), x="table:wide")
                self.execute(f"UPDATE wide SET {column} = ? {row}", kept)
                self.execute(f'CREATE TABLE "keys {number}" ({column}, j, value)')
                self.execute(f'INSERT INTO "keys {number}" SELECT * FROM X')
                self.assertEqual(self.run_product("--out", f"Z=table:Z{number}", x=f"table:keys {number}").code, 0)
                np.testing.assert_allclose(self.table(f"Z{number}", (25, 7)), self.x @ self.y, rtol=1e-12)
                self.execute(f'UPDATE "keys {number}" SET {column} = 77 WHERE j = 3 AND {column} = 4')
                self.refused((f"table 'keys {number}'", "hole", f"{name}=4, j=3"), "--formats", "X=single", x=f"table:keys {number}")

    def test_bad_data_are_named_and_nothing_changes(self):
        for statement, words in (
                ("INSERT INTO X VALUES (2, 3, 1)", ("table 'X'", "two rows", "i=2, j=3")),
                ("UPDATE X SET value = NULL WHERE i = 4 AND j = 5", ("table 'X'", "'value'", "NULL", "i=4, j=5")),
                ("UPDATE X SET value = '1.5x' WHERE i = 4 AND j = 5", ("table 'X'", "'value'", "1.5x", "i=4, j=5")),
                ("UPDATE X SET value = x'00' WHERE i = 4 AND j = 5", ("table 'X'", "'value'", "a blob of 1 byte", "i=4, j=5")),
                ("DELETE FROM X WHERE i = 7 AND j = 8", ("table 'X'", "hole", "i=7, j=8", "sparse:table:NAME")),
                ("DELETE FROM X WHERE i < 10", ("table 'X'", "hole", "i=9, j=0")),
                ("UPDATE X SET i = -1 WHERE i = 7 AND j = 8", ("table 'X'", "'i'", "-1")),
                ("UPDATE X SET i = 1.5 WHERE i = 7 AND j = 8", ("table 'X'", "'i'", "1.5")),
                ("UPDATE X SET i = NULL WHERE i = 7 AND j = 8", ("table 'X'", "'i'", "NULL")),
                ("UPDATE X SET j = 'a' WHERE i = 7 AND j = 8", ("table 'X'", "'j'", "'a'")),
                ("UPDATE X SET i = 1 << 62 WHERE i = 7 AND j = 8", ("table 'X'", "'i'"))):
            with self.subTest(statement=statement):
                whole = self.content()
                self.execute(statement)
                self.refused(words, "--formats", "X=tile-10-4")
                with open(self.file, "wb") as file:
                    file.write(whole)

    def test_keys_that_say_another_extent_are_named(self):
        remedy = "where absent elements are zeros, write sparse:table:NAME"
        for statement, arguments, words in (
                ("INSERT INTO X VALUES (1000, 0, 1)", ("--formats", "X=tile-10-4"), ("table 'X' has no row for i=25, j=0", "i=1000, j=12", remedy)),
                ("INSERT INTO X VALUES (1000, 0, 1)", ("--formats", "element"), ("table 'X' has no row for i=25, j=0", "i=1000, j=12", remedy)),
                ("DELETE FROM X WHERE i = 24", ("--dim", "i=25"), ("'i' has extent 25 in --dim but 24 in X[i,j] (table 'X', whose largest key is i=23)", remedy)),
                ("DELETE FROM X WHERE j = 12", (), ("'j' has extent 12 in X[i,j] (table 'X', whose largest key is j=11) but 13 in", remedy)),
                ("INSERT INTO Y VALUES (100, 0, 1)", (), ("13 in X[i,j]", "but 101 in Y[j,k] (table 'Y', whose largest key is j=100)", remedy))):
            with self.subTest(statement=statement, arguments=arguments):
                whole = self.content()
                self.execute(statement)
                self.refused(words, *arguments)
                with open(self.file, "wb") as file:
                    file.write(whole)
        too_long = self.run_product("--dim", "i=20")  # zeros would not make it shorter
        self.assertIn("'i' has extent 20 in --dim but 25 in X[i,j] (table 'X', whose largest key is i=24)", too_long.err)
        self.assertNotIn("sparse:", too_long.err)

    def test_keys_below_zero_and_beyond_all_extents_are_named(self):
        for key, shown in (("i - 100", "-100"), ("i - 1", "-1"), ("i - 25", "-25"), ("(i + 1) << 50", str(25 << 50)), ("(i + 1) << 58", str(25 << 58)),
                           ("9223372036854775807 - i", str(2**63 - 1))):
            for sparse in ("", "sparse:"):
                for arguments in ((), ("--dim", "i=25"), ("--formats", "element")):
                    with self.subTest(key=key, sparse=sparse, arguments=arguments):
                        self.refused((f"column 'i' has the key {shown}, but keys are whole numbers from 0 to ",), *arguments,
                                     x=f"{sparse}query:SELECT {key} AS i, j, value FROM X")

    def test_keys_of_another_type_are_refused_with_the_remedy(self):
        for arguments in ((), ("--dim", "i=25"), ("--formats", "element"), ("--formats", "X=row")):
            for sparse in ("", "sparse:"):
                with self.subTest(arguments=arguments, sparse=sparse):
                    self.refused(("column 'i' is ", ".0, no whole number", "CAST(i AS bigint)"), *arguments,
                                 x=sparse + "query:SELECT i * 1.0 AS i, j, value FROM X")
                    half = self.run_product(*arguments, x=sparse + "query:SELECT i + 0.5 AS i, j, value FROM X")
                    self.assertIn(".5, no whole number", half.err)
                    self.assertNotIn("CAST", half.err)
        self.assertEqual(self.run_product("--out", "Z=table:Z", x="query:SELECT CAST(i * 1.0 AS bigint) AS i, j, value FROM X").code, 0)
        np.testing.assert_allclose(self.table("Z", (25, 7)), self.x @ self.y, rtol=1e-12)

    def test_a_table_without_rows_has_no_elements(self):
        self.execute("CREATE TABLE none (i, j, value)")
        program = self.text_file("next.ein", "input X[i,j] : f64\nZ[i,j] = X[i,j] + 1\n")
        run = ("run", program, "--database", "sqlite:" + self.file, "--in", "X=table:none", "--out", "Z=" + self.path("z.npy"))
        for dims, shape in (((), (0, 0)), (("i=2",), (2, 0)), (("j=2",), (0, 2)), (("i=2", "j=0"), (2, 0)), (("i=0", "j=3"), (0, 3))):
            for formats in ((), ("--formats", "tile-2"), ("--formats", "X=row")):
                with self.subTest(dims=dims, formats=formats):
                    self.succeed(*run, *formats, *(word for dim in dims for word in ("--dim", dim)))
                    self.assertEqual(np.load(self.path("z.npy")).shape, shape)
        self.refuse(1, *run, "--dim", "i=2", "--dim", "j=3", mentions=["table 'none' has no row for i=0, j=0", "sparse:table:NAME"])
        self.refuse(1, *run, "--dim", "i=2", "--dim", "j=3", "--formats", "element", mentions=["table 'none' has no rows", "sparse:table:NAME"])
        self.assertEqual(self.run_product("--out", "Z=" + self.path("z.npy"), x="table:none").code, 0)  # as long as Y says
        self.assertEqual(np.load(self.path("z.npy")).shape, (0, 7))

    def test_columns_that_are_called_as_those_of_chunks_are_refused_with_the_remedy(self):
        self.execute("CREATE TABLE pairs AS SELECT i AS k0, value AS chunk FROM X WHERE j = 0")
        self.refused(("table 'pairs'", "column 'chunk'", "no array", "another name", "AS"), x="table:pairs")
        whole = self.text_file("pairs.ein", "input X[i,j] : f64\nZ[] = sum[i,j] X[i,j]\n")
        self.succeed("run", whole, "--database", "sqlite:" + self.file, "--in", "X=query:SELECT k0, chunk AS c FROM pairs", "--out",
                     "Z=" + self.path("z.npy"))
        np.testing.assert_allclose(np.load(self.path("z.npy")), self.x[:, 0].sum() + 300, rtol=1e-12)

    def test_formats_for_all_others_are_one(self):
        dims = ("--dim", "i=25", "--dim", "j=13", "--dim", "k=7")
        for formats, words in (("all-tile,tile-3", ("all-tile and tile-3",)), ("tile-3,X=row,tile-3", ("tile-3 and tile-3",)),
                               ("element,tile-3", ("element and tile-3",)), ("tile-3,element", ("tile-3 and element",)),
                               ("X=row,", ("'' is no TENSOR=FORMAT", "row-strip-H")), (",tile-3", ("'' is no TENSOR=FORMAT", "row-strip-H")), ("", ("--formats", "empty"))):
            with self.subTest(formats=formats):
                self.refused(words, "--formats", formats)
                for explain in ((), ("--explain",)):
                    self.refuse(1, "sql", self.program, *dims, "--formats", formats, *explain, mentions=words)

    def test_an_input_that_is_missing_is_said_in_one_way(self):
        for dims in ((), ("--dim", "k=7")):
            with self.subTest(dims=dims):
                self.refuse(1, "run", self.program, "--database", "sqlite:" + self.file, "--in", "X=table:X", *dims,
                            mentions=["missing input Y[", "; give Y as Y=table:NAME, Y='query:SELECT ...' or a file\n"])

    def test_what_is_wrong_with_the_command_is_said(self):
        self.execute("CREATE TABLE z (a)")
        self.refused(("table 'Z' already",))
        self.execute("DROP TABLE z")
        self.execute("CREATE VIEW broken AS SELECT * FROM nowhere")
        for x, word in (("table:Xs", "no table 'Xs'"), ("query:DELETE FROM X", "only reads"), ("query:SELECT 1; SELECT 2", "one query"),
                        ("query:SELECT i, j, value FROM X) AS q; DROP TABLE X; --", "syntax"), ("query:SELEC", "syntax"),
                        ("query:SELECT value, value FROM X", "two columns"), ("query:SELECT ?", "parameters"), ("query:", "one query"),
                        ("query:PRAGMA table_info(X)", "does not take the query"), ("query:EXPLAIN SELECT 1", "does not take the query"),
                        ("query:SELECT abs(i - 9223372036854775807 - 1) AS i, j, value FROM X", "integer overflow"),
                        ("query:SELECT load_extension('X'), 1", "not authorized"), ("table:broken", "table 'broken' cannot be read"),
                        ("query:SELECT CAST(i AS REAL) AS i, j, value FROM X", ".0, no whole number")):
            with self.subTest(x=x):
                self.refused((word,), x=x)
        for place in ("table:sqlite_z", "chunks:sqlite_z"):
            before = self.content()
            result = self.run_product("--out", "Z=" + place)
            self.assertEqual((result.code, self.content()), (1, before), result)
            self.assertIn("reserved", result.err)
        self.refused(("no format 'tile-0'",), "--formats", "X=tile-0")
        self.refused(("no tensor 'Q'",), "--formats", "Q=row")
        self.refused(("--sites",), "--sites", "2")
        for option, place in (("--in", "X=table:X"), ("--in", "X=query:SELECT 1"), ("--in", "X=sparse:table:X"), ("--in", "table:X"),
                              ("--out", "Z=table:Z"), ("--out", "Z=chunks:Z")):
            nowhere = einrel("run", self.program, option, place)
            self.assertEqual(nowhere.code, 1, nowhere)
            self.assertIn(f"{option} {place} is in a database; say in which: --database", nowhere.err)
        gone = einrel("run", self.program, "--database", "sqlite:" + self.path("gone.db"), "--in", "X=table:X")
        self.assertEqual((gone.code, os.path.exists(self.path("gone.db"))), (1, False), gone)
        self.assertIn("a run that reads no table of it makes one", gone.err)
        folder = einrel("run", self.program, "--database", "sqlite:" + os.path.dirname(self.file))
        self.assertEqual(folder.code, 1, folder)
        self.assertIn("Is a directory", folder.err)
        no_database = self.text_file("text.db", "this is no database, only a text that is long enough" * 40)
        self.assertEqual(einrel("run", self.program, "--database", "sqlite:" + no_database, "--in", "X=table:X").code, 1)

    def test_a_file_that_cannot_be_written_leaves_the_database_as_it_was(self):
        """Not a table of the one output beside a part of the others, which together are larger than any file may be."""
        room = len(self.content()) + 2_000_000
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))  # noqa: E731
        lines = [f"Z{n}[k,l] = f64(k + l * {n})" for n in range(6)]
        many = self.text_file("many.ein", "\n".join(["dims k=300 l=200", "input X[a,b] : f64", "S[] = sum[a,b] X[a,b]", *lines]) + "\n")
        files = [word for n in range(6) for word in ("--out", f"Z{n}={self.path('z.npz')}:Z{n}")]
        given = ("run", many, "--database", "sqlite:" + self.file, "--in", "X=table:X", "--out", "S=table:S", *files)
        before = self.content()
        for formats in ((), ("--formats", "element")):
            result = einrel(*given, *formats, preexec_fn=limit)
            self.assertEqual(result.code, 2, result)
            self.assertIn("z.npz", result.err)
            self.assertEqual(self.content(), before)
            self.assertEqual([name for name in os.listdir(self.folder) if "z.npz" in name], [])
        reader = sqlite3.connect(self.file)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM X").fetchone()
        result = einrel(*given)  # the other way round: the transaction cannot end
        reader.rollback()
        reader.close()
        self.assertEqual(result.code, 2, result)
        self.assertIn("locked", result.err)
        self.assertEqual(self.content(), before)
        self.assertEqual([name for name in os.listdir(self.folder) if "z.npz" in name], [])

    def test_programs_run_element_by_element_without_functions(self):
        self.assertEqual(self.run_product("--formats", "element", "--out", "Z=table:Z").code, 0)
        np.testing.assert_allclose(self.table("Z", (25, 7)), self.x @ self.y, rtol=1e-12)
        self.execute("DROP TABLE Z")
        for statement, words in (("UPDATE X SET value = NULL WHERE i = 4 AND j = 5", ("table 'X'", "'value'", "NULL", "i=4, j=5")),
                                 ("INSERT INTO X VALUES (2, 3, 1)", ("table 'X'", "two rows", "i=2, j=3")),
                                 ("DELETE FROM X WHERE i = 7 AND j = 8", ("table 'X'", "hole", "i=7, j=8")),
                                 ("UPDATE X SET j = 'a' WHERE i = 7 AND j = 8", ("table 'X'", "'j'", "'a'"))):
            whole = self.content()
            self.execute(statement)
            self.refused(words, "--formats", "element")
            with open(self.file, "wb") as file:
                file.write(whole)

    def test_scripts_of_elements_run_in_sqlite_alone(self):
        dims = ("--dim", "i=25", "--dim", "j=13", "--dim", "k=7")
        script = self.succeed("sql", self.program, *dims, "--formats", "element").out
        with sqlite3.connect(self.file) as connection:
            connection.executescript(script)
        np.testing.assert_allclose(self.table("Z", (25, 7)), self.x @ self.y, rtol=1e-12)
        for arguments, word in ((("--dialect", "duckdb"), "--formats element"), (("--dialect", "duckdb", "--explain"), "--formats element"), (("--dialect", "postgres"), "bytea"), (("--dialect", "postgre"), "postgres"), ((), "BEGIN")):
            result = einrel("sql", self.program, *dims, *arguments)
            self.assertIn(word, result.out + result.err)


if __name__ == "__main__":
    main()
