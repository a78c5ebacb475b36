"""What tests with a database of SQLite share."""

import os
import sqlite3

import numpy as np

from einrel_process import ProductInDatabase, ProgramTest, einrel

PRODUCT = "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"


class SqliteProduct(ProductInDatabase, ProgramTest):
    """A product, of two tables of a file."""

    def setUp(self):
        super().setUp()
        self.program = self.text_file("product.ein", PRODUCT)
        self.file = self.path("a.db")
        random = np.random.default_rng(1)
        self.x, self.y = random.standard_normal((25, 13)), random.standard_normal((13, 7))
        self.store("X", self.x, ("i", "j"))
        self.store("Y", self.y, ("j", "k"))

    def execute(self, statement, rows=None):
        with sqlite3.connect(self.file) as connection:
            if rows is not None:
                return connection.executemany(statement, rows)
            return connection.execute(statement).fetchall()

    def store(self, table, array, labels):
        name = '"' + table.replace('"', '""') + '"'
        self.execute(f"CREATE TABLE {name} ({', '.join(labels)}, value)")
        order = np.random.default_rng(2).permutation(array.size)  # tables have no order
        rows = [(*map(int, np.unravel_index(at, array.shape)), float(array.flat[at])) for at in order]
        self.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * (array.ndim + 1))})", rows)

    def table(self, name, shape):
        quoted = '"' + name.replace('"', '""') + '"'
        result = np.full(shape, np.nan)
        for *key, value in self.execute(f"SELECT * FROM {quoted}"):
            result[tuple(key)] = value
        return result

    def run_product(self, *arguments, x="table:X", **options):
        return einrel("run", self.program, "--database", "sqlite:" + self.file, "--in", "X=" + x, "--in", "Y=table:Y",
                      *arguments, **options)

    def settings(self, text):
        """The environment of a user whose databases.json holds this."""
        os.makedirs(self.path("settings/einrel"), exist_ok=True)
        self.text_file("settings/einrel/databases.json", text)
        return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "XDG_CONFIG_HOME": self.path("settings")}

    def content(self):
        with open(self.file, "rb") as file:
            return file.read()
