"""What tests with a server share. Scripts are called SCRIPT EINREL PROGRAMS CMAKE BUILD, the last three as server.py takes them."""

import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

import einrel_process  # noqa: E402
from einrel_process import ProductInDatabase, ProgramTest, einrel  # noqa: E402
from server import Server  # noqa: E402

SERVER = Server(*sys.argv[2:5])  # of all tests of a script; it begins in main()
del sys.argv[2:5]
CATALOGUE = ("SELECT n.oid, nspname, relname, relkind FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
             "WHERE nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 2, 3")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def rows(query):
    return [line.split("\t") for line in SERVER.sql(query).splitlines()]


class EmptyDatabase(ProgramTest):
    """Every test begins with a database that has nothing but the extension."""

    def setUp(self):
        super().setUp()
        SERVER.empty()
        self.url = SERVER.url

    def store(self, table, array, labels, kind="double precision"):
        order = np.random.default_rng(2).permutation(array.size)  # tables have no order
        values = ", ".join(f"({', '.join(map(str, np.unravel_index(at, array.shape)))}, {float(array.flat[at])!r})" for at in order)
        SERVER.sql(f"CREATE TABLE {quoted(table)} ({''.join(label + ' integer, ' for label in labels)}value {kind}); "
                   f"INSERT INTO {quoted(table)} VALUES {values}")

    def table(self, name, shape):
        """Of a name as a statement writes it."""
        result = np.full(shape, np.nan)
        for *key, value in rows(f"SELECT * FROM {name}"):
            result[tuple(map(int, key))] = float(value)
        return result

    def content(self):
        """All that is in the database, as text: schemas, tables, and their rows."""
        schemas = SERVER.sql("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1")
        tables = rows(CATALOGUE)
        return schemas, tables, [sorted(SERVER.sql(f"SELECT * FROM {quoted(schema)}.{quoted(name)}").splitlines())
                                 for _, schema, name, kind in tables if kind == "r"]

    def wait_until(self, what, wanted):
        end = time.monotonic() + 60
        while what() != wanted:
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)


class ProductTest(ProductInDatabase, EmptyDatabase):
    """A product, of two tables."""

    def setUp(self):
        super().setUp()
        self.program = self.text_file("product.ein", "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n")
        random_numbers = np.random.default_rng(1)
        self.x, self.y = random_numbers.standard_normal((25, 13)), random_numbers.standard_normal((13, 7))
        self.store("X", self.x, ("i", "j"))
        self.store("Y", self.y, ("j", "k"))

    def run_product(self, *arguments, x="table:X", url=None, **options):
        return einrel("run", self.program, "--database", url or SERVER.url, "--in", "X=" + x, "--in", "Y=table:Y", *arguments, **options)


def main():
    with SERVER:
        einrel_process.main()
