"""Tables of chunks in PostgreSQL."""

import os
import signal

import numpy as np

from postgres_case import SERVER, EmptyDatabase, main, quoted, rows
from chunk_tables import PRODUCT, ChunkTables


class ChunksInPostgres(ChunkTables, EmptyDatabase):
    array_type = "bytea"

    def execute(self, statement):
        return [[bytes.fromhex(cell[2:]) if cell.startswith("\\x") else int(cell) for cell in row] for row in rows(statement)]

    def literal(self, data):
        return f"'\\x{data.hex()}'::bytea"

    def name(self, table):
        return quoted(table)

    def destroy_chunks(self, table, is_lost):
        """They lie in a table beside, of which the server reads what it needs."""
        (path,), = rows(f"SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = '{quoted(table)}'::regclass")
        SERVER.stop(signal.SIGINT)
        try:
            self.destroy_pages(os.path.join(SERVER.folder, "data", path), 8192, is_lost)
        finally:
            SERVER.launch()

    def own_changes(self, at):
        """Columns have types."""
        return (("ALTER TABLE {} ALTER chunk TYPE text USING encode(chunk, 'hex')", ("table 'bad'", "'chunk'", "text")),
                ("ALTER TABLE {} ALTER chunk TYPE int USING 1", ("table 'bad'", "'chunk'", "no arrays")),
                ("ALTER TABLE {} ALTER k0 TYPE text", ("table 'bad'", "'k0'")),
                (f"ALTER TABLE {{}} ALTER k0 TYPE numeric; UPDATE {{}} SET k0 = 1.5 {at}", ("table 'bad'", "'k0'", "1.5")))

    def test_keys_may_be_numeric_and_processes_share_the_work(self):
        x = np.random.default_rng(6).standard_normal((250, 200))
        y = np.random.default_rng(7).standard_normal((200, 4000))
        np.save(self.path("y.npy"), y)
        self.store("x", x, (3, 2))
        self.execute('ALTER TABLE x ALTER k0 TYPE numeric, ALTER k1 TYPE smallint')
        self.done(PRODUCT, "--in", "X=table:public.x", "--in", f"Y={self.path('y.npy')}", "--out", "Z=chunks:z", "--formats", "tile-100")
        found = self.chunks("z")
        self.assertEqual(set(found), {(i, k) for i in range(3) for k in range(40)})
        np.testing.assert_allclose(np.block([[found[i, k] for k in range(40)] for i in range(3)]), x @ y, rtol=0, atol=1e-11)
        self.assertEqual(SERVER.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'einrel%' AND nspname <> 'einrel'").strip(), "0")
        self.assertEqual(SERVER.sql("SELECT attstorage FROM pg_attribute WHERE attrelid = 'z'::regclass AND attname = 'chunk'").strip(), "e")

    def test_a_query_that_writes_is_refused(self):
        self.store("x", np.eye(4), (2, 2))
        np.save(self.path("y.npy"), np.eye(4))
        SERVER.sql("CREATE FUNCTION sly(chunk bytea) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN DELETE FROM x; RETURN chunk; END $$; "
                   "CREATE VIEW shy AS SELECT k0, k1, sly(chunk) AS chunk FROM x")
        before = self.content()
        for source in ("table:shy", "query:SELECT k0, k1, sly(chunk) AS chunk FROM x"):
            result = self.run_there(PRODUCT, "--in", "X=" + source, "--in", f"Y={self.path('y.npy')}", "--out", "Z=chunks:z")
            self.assertEqual(result.code, 1, result)
            self.assertIn("read", result.err)
            self.assertEqual(self.content(), before)


if __name__ == "__main__":
    main()
