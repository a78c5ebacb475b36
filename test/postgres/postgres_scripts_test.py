"""The scripts of all documents in PostgreSQL: in chunks, and element by element."""

import numpy as np

from postgres_case import SERVER, EmptyDatabase, main, quoted
from script_documents import ScriptsOfDocuments

# Plain SQL computes with numbers of 64 bits, and bools are 0 and 1; chunks are gathered of any type.
PLAIN_TYPES = {"f64": "double precision", "f32": "double precision", "bf16": "double precision", "f16": "double precision", "i64": "bigint",
               "i32": "bigint", "bool": "bigint"}
TYPES = {"f64": "double precision", "f32": "real", "bf16": "real", "f16": "real", "i64": "bigint", "i32": "integer", "bool": "boolean"}


def number(text, dtype):
    """A value as psql prints it, of a column of that type; numeric is what sums of bigint are."""
    if text == "":
        return None
    if dtype == "boolean":
        return text == "t"
    return int(text) if dtype in ("integer", "bigint", "numeric") else float(text)


class ScriptsInPostgres(ScriptsOfDocuments, EmptyDatabase):
    dialect = "postgres"
    failure = RuntimeError
    ways = ("", "element")  # in small chunks a server takes seconds for each; postgres_test has them
    place = ("--schema", 'a "schema"')
    in_chunks = {}
    in_elements = {"37_integer_products": "bigint out of range", "96_gradients_at_kinks": "division by zero"}

    def made(self, inputs, script, tables):
        """In one connection, whose temporary tables go with it, in a schema of its own. It finds the tables wherever the session would look."""
        types = TYPES if "einrel_" in script else PLAIN_TYPES
        schema = quoted(self.place[1])
        text = f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; SET search_path = {schema};\n"
        for name, (labels, dtype, array) in inputs.items():
            text += f"CREATE TABLE {quoted(name)} ({''.join(quoted(label) + ' integer, ' for label in labels)}value {types[dtype]});\n"
            numbers = array.astype(int) if types[dtype] == "bigint" else array
            rows = ", ".join(f"({''.join(f'{k}, ' for k in key)}'{numbers[key].item()}')" for key in np.ndindex(array.shape))
            text += f"INSERT INTO {quoted(name)} VALUES {rows};\n" if rows else ""
        text += f"SET search_path = '';\n{script}SET search_path = {schema};\n"
        text += "SELECT 'left', relname FROM pg_class WHERE relnamespace = pg_my_temp_schema();\n"
        for table in tables:
            text += (f"SELECT 'table', pg_typeof(value) FROM (SELECT 1) AS one LEFT JOIN {quoted(table)} ON true LIMIT 1; "
                     f"SELECT * FROM {quoted(table)};\n")
        found = []
        for line in SERVER.sql(text).splitlines():
            begin, *cells = line.split("\t")
            self.assertNotEqual(begin, "left")
            if begin == "table":
                dtype = cells[0]
                found.append([])
            elif found:  # behind what checks of the script give
                *keys, value = line.split("\t")
                found[-1].append((*map(int, keys), number(value, dtype)))
        return dict(zip(tables, found, strict=True))

    def test_a_script_leaves_the_names_of_its_session_free(self):
        program = self.text_file("t.ein", "dims i=2 j=2\ninput X[i,j] : f64\nT[i] = 1 + (sum[j] X[i,j])\n")
        SERVER.sql('CREATE TABLE "X" (i int, j int, value float8); CREATE TABLE "X_2" (a int); '
                   'INSERT INTO "X" SELECT i, j, i + j FROM generate_series(0, 1) AS i, generate_series(0, 1) AS j')
        for formats in ("element", "tile-1"):
            script = self.succeed("sql", program, "--dialect", "postgres", "--formats", formats).out
            found = SERVER.sql(script + 'INSERT INTO "X_2" VALUES (7); DROP TABLE "T";\n' + script
                               + 'SELECT a FROM public."X_2"; DELETE FROM public."X_2"; SELECT i, value FROM "T" ORDER BY i; DROP TABLE "T"')
            self.assertEqual(found.split()[-5:], ["7", "0", "2", "1", "4"])

    def test_names_that_differ_in_the_case_of_letters_are_two(self):
        program = self.text_file("names.ein", "input x[i] : f64\nX[i] = x[i] + 1\nZ[i] = x[i] + 2\nz[i] = x[i] + 3\noutput X, Z, z\n")
        for formats in ((), ("--formats", "tile-2"), ("--formats", "element")):
            script = self.succeed("sql", program, "--dim", "i=3", "--dialect", "postgres", *self.place, *formats).out
            made = self.made({"x": (["i"], "f64", np.array([10.0, 20, 30]))}, script, ["X", "Z", "z"])
            for name, more in (("X", 1), ("Z", 2), ("z", 3)):
                self.assertEqual(sorted(made[name]), [(0, 10 + more), (1, 20 + more), (2, 30 + more)])


if __name__ == "__main__":
    main()
