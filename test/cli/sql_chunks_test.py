"""Tables of chunks in SQLite."""

import sqlite3

from chunk_tables import ChunkTables
from einrel_process import ProgramTest, main


class ChunksInSqlite(ChunkTables, ProgramTest):
    array_type = "BLOB"

    def setUp(self):
        super().setUp()
        self.file = self.path("a.db")
        self.url = "sqlite:" + self.file
        sqlite3.connect(self.file).close()

    def execute(self, statement):
        with sqlite3.connect(self.file) as connection:
            return connection.execute(statement).fetchall()

    def literal(self, data):
        return f"x'{data.hex()}'"

    def name(self, table):
        return '"' + table.replace('"', '""') + '"'

    def content(self):
        with open(self.file, "rb") as file:
            return file.read()

    def destroy_chunks(self, table, is_lost):
        """All that is no row's first page; a row's other pages are read one after the other, where they are needed."""
        (page_bytes,), = self.execute("PRAGMA page_size")
        row_page = 13
        self.destroy_pages(self.file, page_bytes, lambda page: page[0] != row_page and is_lost(page))

    def own_changes(self, at):
        """Any value may stand in any column."""
        key = ("table 'bad'", "column 'chunk'", "k0=1, k1=1", "no array")
        return ((f"UPDATE {{}} SET chunk = 'a text' {at}", (*key, "a text")), (f"UPDATE {{}} SET chunk = 7 {at}", key),
                (f"UPDATE {{}} SET k0 = 'one' {at}", ("table 'bad'", "'k0'", "one")), (f"UPDATE {{}} SET k0 = 1.5 {at}", ("table 'bad'", "'k0'", "1.5")))


if __name__ == "__main__":
    main()
