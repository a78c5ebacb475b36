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


if __name__ == "__main__":
    main()
