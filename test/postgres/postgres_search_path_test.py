"""Who may make functions, types and tables where a user's names are looked for gets none of that user's rights by a run."""

import os
import re

import numpy as np

from postgres_case import SERVER, EmptyDatabase, main, rows
from einrel_process import einrel

KERNELS = ("text, bytea", "text, bytea, bytea", "text, bytea, bigint", "text, bytea, integer", "text, bytea, bytea, bigint", "text, bytea, bytea, integer")
# Functions and operators that fit arguments of ours better than those of the extension and of the server, which take other types.
FUNCTIONS = {**{f"einrel_kernel({types})": "bytea" for types in KERNELS}, "einrel_positions(bigint, integer)": "bytea", "einrel_zeros(text, integer)": "bytea",
             "einrel_zeros(text, integer, integer)": "bytea", "einrel_tile(bytea, integer, integer, bigint)": "bytea", "einrel_box(bytea, integer, integer)": "bytea",
             "einrel_box(bytea, integer, integer, integer, integer)": "bytea", "einrel_extent(bytea, integer)": "bigint",
             "einrel_elements(bytea)": "SETOF record", "generate_series(bigint, integer)": "SETOF bigint", "substr(bytea, integer, integer)": "bytea",
             "length(bytea)": "integer", "floor(integer)": "integer", "max(integer)": "integer", "current_setting(unknown_name text)": "text",
             "to_regnamespace(unknown_name text)": "regnamespace", "quote_ident(name)": "text", "set_config(text, text, boolean)": "text"}
OPERATORS = (("%", "bigint", "integer"), ("&", "bigint", "integer"), ("||", "text", "integer"), ("+", "integer", "float8"), ("*", "numeric", "float8"),
             (">=", "numeric", "integer"), ("<=", "numeric", "integer"), ("=", "name", "varchar"), ("-", "bigint", "integer"), ("/", "bigint", "integer"))
PROGRAM = """input X[i,j] : f64
input W[j,k] : f64
H[i,k] = relu(sum[j] X[i,j] * W[j,k] + 1)
M[i] = max[k] H[i,k]
S[i] = H[i,3] + X[i,1] + f64(i)
T[k,i] = H[i,k] / (1 + exp(-H[i,k]))
output M, S, T
"""


class Hostile(EmptyDatabase):
    def setUp(self):
        super().setUp()
        SERVER.sql("CREATE ROLE attacker LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO attacker; CREATE SCHEMA tester; GRANT CREATE, USAGE ON SCHEMA tester TO attacker; "
                   "CREATE TABLE public.given AS SELECT i, j, sin(i * 7.0 + j) AS value FROM generate_series(0, 11) AS i, generate_series(0, 4) AS j; "
                   "CREATE TABLE public.more AS SELECT CAST(i AS numeric) AS r, CAST(j AS smallint) AS c, cos(i + 3.0 * j) AS value FROM generate_series(0, 4) AS i, "
                   "generate_series(0, 6) AS j")
        self.addCleanup(SERVER.sql, "DROP OWNED BY attacker CASCADE; DROP ROLE attacker")
        self.attackers = SERVER.url.replace("tester@", "attacker@")
        for schema in ("public", "tester"):
            self.set_traps(schema)
        i, j = np.indices((12, 5))
        k, m = np.indices((5, 7))
        self.x, self.w = np.sin(i * 7.0 + j), np.cos(k + 3.0 * m)

    def set_traps(self, schema):
        body = "BEGIN IF current_user <> ''attacker'' THEN ALTER ROLE attacker SUPERUSER; END IF; RETURN NULL; END"
        text = f"SET search_path = {schema};\n"
        for function, result in FUNCTIONS.items():
            returns = "RETURN" if "SETOF" in result else "RETURN NULL"
            text += f"CREATE FUNCTION {schema}.{function} RETURNS {result} LANGUAGE plpgsql AS '{body.replace('RETURN NULL', returns)}';\n"
        for number, (sign, left, right) in enumerate(OPERATORS):
            text += (f"CREATE FUNCTION {schema}.trap{number}({left}, {right}) RETURNS boolean LANGUAGE plpgsql AS '{body}';\n"
                     f"CREATE OPERATOR {schema}.{sign} (FUNCTION = {schema}.trap{number}, LEFTARG = {left}, RIGHTARG = {right});\n")
        for name, aggregate in (("fold", "text, bytea, bigint"), ("place", "bytea, integer"), ("place", "bytea, integer, integer"), ("concat", "integer, bigint, bytea")):
            types = aggregate.split(", ")
            add = f"{schema}.add_{name}{len(types)}"
            text += (f"CREATE FUNCTION {add}(bytea, {aggregate}) RETURNS bytea LANGUAGE plpgsql AS '{body}';\n"
                     f"CREATE AGGREGATE {schema}.einrel_{name}({aggregate}) (SFUNC = {add}, STYPE = bytea);\n")
        for kind in ("bytea", "text", "name"):
            text += f"CREATE DOMAIN {schema}.{kind} AS pg_catalog.{kind} CHECK (false);\n"
        for table in ("pg_class", "pg_namespace", "pg_extension", "elements", "numbers", "pieces", "step3", "one", "given_1"):
            text += f"CREATE VIEW {schema}.{table} AS SELECT {schema}.length(NULL::pg_catalog.bytea) AS oid;\n"
        SERVER.sql(text, self.attackers)

    def expect_nothing(self, *options, path, **more):
        environment = {**os.environ, "XDG_CONFIG_HOME": os.devnull, "PGOPTIONS": "-c search_path=" + path.replace(" ", "\\ ")}
        for x, w in (("table:public.given", "table:public.more"), ("query:SELECT * FROM public.given", "sparse:query:SELECT * FROM public.more"),
                     ("query:SELECT i, j, value FROM public.given", self.path("w.npy"))):
            result = einrel("run", self.text_file("p.ein", PROGRAM), "--database", SERVER.url, "--in", "X=" + x, "--in", "W=" + w, *options,
                            *(word for name in "MST" for word in ("--out", f"{name}={self.path(name)}.npy")), env=environment, **more)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(rows("SELECT rolsuper FROM pg_roles WHERE rolname = 'attacker'"), [["f"]], options)
            hidden = np.maximum(self.x @ self.w + 1, 0)
            np.testing.assert_allclose(np.load(self.path("M.npy")), hidden.max(1), rtol=1e-12)
            np.testing.assert_allclose(np.load(self.path("S.npy")), hidden[:, 3] + self.x[:, 1] + np.arange(12), rtol=1e-12)
            np.testing.assert_allclose(np.load(self.path("T.npy")), (hidden / (1 + np.exp(-hidden))).T, rtol=1e-12)

    def test_the_traps_would_work(self):
        """A user who writes no schema before a function falls into one."""
        SERVER.sql("SELECT einrel_kernel('id', einrel.einrel_zeros('f64', 3))")
        self.assertEqual(rows("SELECT rolsuper FROM pg_roles WHERE rolname = 'attacker'"), [["t"]])

    def test_no_run_calls_what_others_have_made(self):
        np.save(self.path("w.npy"), self.w)
        for path in ('"$user", public', "public", "pg_temp, public", "public, pg_catalog", "public, pg_temp, pg_catalog"):
            for formats in (("--formats", "tile-3"), (), ("--formats", "element")):
                with self.subTest(path=path, formats=formats):
                    self.expect_nothing(*formats, path=path)

    def test_nor_does_a_script_that_is_printed(self):
        """In chunks and in plain SQL, whose numbers are of several types, wherever the session looks for names."""
        program = self.text_file("p.ein", PROGRAM.replace("input X", "input given").replace("input W", "input more").replace("X[", "given[").replace("W[", "more["))
        SERVER.sql("CREATE SCHEMA mine; CREATE TABLE mine.given AS SELECT * FROM public.given; CREATE TABLE mine.more AS SELECT CAST(r AS integer) AS j, "
                   "CAST(c AS integer) AS k, CAST(value AS numeric) AS value FROM public.more")
        hidden = np.maximum(self.x @ self.w + 1, 0)
        wanted = {"M": hidden.max(1), "S": hidden[:, 3] + self.x[:, 1] + np.arange(12), "T": (hidden / (1 + np.exp(-hidden))).T}
        for formats in ((), ("--formats", "tile-3"), ("--formats", "element")):
            script = self.succeed("sql", program, "--dim", "i=12", "--dim", "j=5", "--dim", "k=7", "--dialect", "postgres", "--schema", "mine", *formats).out
            for path in ('"$user", public', "public", "public, pg_catalog", "tester, pg_temp, pg_catalog"):
                with self.subTest(formats=formats, path=path):
                    SERVER.sql(f"SET search_path = {path};\n{script}")
                    self.assertEqual(rows("SELECT rolsuper FROM pg_roles WHERE rolname = 'attacker'"), [["f"]])
                    for name, array in wanted.items():
                        found = [float(value) for (value,) in rows(f'SELECT value FROM mine."{name}" ORDER BY ' + ("k, i" if array.ndim == 2 else "i"))]
                        np.testing.assert_allclose(found, array.ravel(), rtol=1e-9)
                    SERVER.sql('DROP TABLE mine."M", mine."S", mine."T"')

    def test_the_traps_would_work_on_such_scripts_without_their_search_path(self):
        program = self.text_file("p.ein", "input given[i,j] : f64\nT[j,i] = given[i,j] * f64(i)\n")
        SERVER.sql("CREATE SCHEMA mine; CREATE TABLE mine.given AS SELECT i, j, 0.5 AS value FROM generate_series(0, 1) AS i, generate_series(0, 1) AS j")
        script = self.succeed("sql", program, "--dim", "i=2", "--dim", "j=2", "--dialect", "postgres", "--schema", "mine", "--formats", "element").out
        without = "".join(line + "\n" for line in script.splitlines() if not line.startswith("SET LOCAL"))
        SERVER.sql("SET search_path = public;\n" + without)
        self.assertEqual(rows("SELECT rolsuper FROM pg_roles WHERE rolname = 'attacker'"), [["t"]])


class Statements(EmptyDatabase):
    def test_every_name_of_the_extension_has_its_schema(self):
        """In all statements that the server is sent, and in scripts."""
        SERVER.sql("CREATE TABLE public.given AS SELECT i, j, sin(i * 7.0 + j) AS value FROM generate_series(0, 29) AS i, generate_series(0, 19) AS j; "
                   "CREATE TABLE public.more AS SELECT i AS r, j AS c, value FROM public.given WHERE i < 20 AND j < 10")
        own = [name for (name,) in rows("SELECT DISTINCT proname FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace WHERE nspname = 'einrel' UNION "
                                        "SELECT typname FROM pg_type JOIN pg_namespace AS n ON n.oid = typnamespace WHERE nspname = 'einrel'")]
        self.assertGreater(len(own), 20)
        bare = re.compile(rf"(?<![.\w])(?:{'|'.join(own)})\b")
        program = self.text_file("p.ein", PROGRAM)
        log = os.path.join(SERVER.folder, "log")
        begin = os.path.getsize(log)
        options = "-c log_statement=all -c log_min_messages=log -c max_parallel_workers_per_gather=2"
        for formats in ((), ("--formats", "tile-5"), ("--formats", "X=single,H=tile-1-2"), ("--formats", "element")):
            for x in ("table:given", "sparse:table:given", "query:SELECT * FROM given"):
                result = einrel("run", program, "--database", SERVER.url, "--in", "X=" + x, "--in", "W=table:more", *formats,
                                "--out", "M=table:m", "--out", "S=chunks:s" if formats != ("--formats", "element") else "S=table:s",
                                env={**os.environ, "XDG_CONFIG_HOME": os.devnull, "PGOPTIONS": options})
                self.assertEqual(result.code, 0, result)
                SERVER.sql("DROP TABLE m, s")
        for name in ("x", "w"):
            np.save(self.path(name + ".npy"), np.ones((600, 600)))
        result = einrel("run", program, "--database", SERVER.url, "--in", "X=" + self.path("x.npy"), "--in", "W=" + self.path("w.npy"), "--formats", "tile-200",
                        env={**os.environ, "XDG_CONFIG_HOME": os.devnull, "PGOPTIONS": options})
        self.assertEqual(result.code, 0, result)
        with open(log, encoding="utf-8") as file:
            file.seek(begin)
            sent = file.read()
        for name in ("einrel.einrel_kernel(", "einrel.einrel_fold(", "UNION ALL", "CREATE UNLOGGED TABLE"):
            self.assertIn(name, sent)
        self.assertEqual(bare.findall(sent), [])
        for formats in ((), ("--formats", "tile-50"), ("--formats", "H=tile-1-2")):
            script = self.succeed("sql", program, "--dim", "i=300", "--dim", "j=200", "--dim", "k=100", "--dialect", "postgres", *formats).out
            self.assertIn("einrel.einrel_kernel(", script)
            self.assertEqual(bare.findall(script), [])


if __name__ == "__main__":
    main()
