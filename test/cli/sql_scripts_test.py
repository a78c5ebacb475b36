"""The scripts of all documents in SQLite: in chunks with the loadable extension, element by element without.

Usage: sql_scripts_test.py EINREL EXTENSION
"""

import sqlite3
import sys

import numpy as np

from einrel_process import ProgramTest, main, sqlite_with
from script_documents import ScriptsOfDocuments

EXTENSION = sys.argv.pop(2)
# Documents with tensors whose names differ in the case of letters alone.
ONE_NAME = {"96_gradients_at_kinks": "tables a and A", "97_gradients_of_reads": "tables b and B", "98_gradients_of_gathers": "tables c2 and C2"}


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class ScriptsInSqlite(ScriptsOfDocuments, ProgramTest):
    dialect = "sqlite"
    failure = sqlite3.Error
    in_chunks = {"12_comparisons": "is NULL", "22_nan_and_infinity": "is NULL", "9h_any_of_selections": "is NULL", **ONE_NAME}  # it has no NaN
    in_elements = {"22_nan_and_infinity": "Max: element", "37_integer_products": "Large: element", "9h_any_of_selections": "ofFloats: element", **ONE_NAME}

    def made(self, inputs, script, tables):
        is_plain = "einrel_" not in script
        database = sqlite3.connect(":memory:", isolation_level=None) if is_plain else sqlite_with(EXTENSION)
        for name, (labels, _, array) in inputs.items():
            database.execute(f"CREATE TABLE {quoted(name)} ({''.join(quoted(label) + ', ' for label in labels)}value)")
            rows = [(*key, array[key].item()) for key in np.ndindex(array.shape)]
            database.executemany(f"INSERT INTO {quoted(name)} VALUES ({', '.join('?' * (array.ndim + 1))})", rows)
        try:
            database.executescript(script)
            self.assertEqual(database.execute("SELECT name FROM temp.sqlite_temp_schema").fetchall(), [])
            return {table: database.execute(f"SELECT * FROM {quoted(table)}").fetchall() for table in tables}
        finally:
            database.close()


if __name__ == "__main__":
    main()
