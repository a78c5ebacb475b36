"""Tables of chunks in PostgreSQL. Arguments as of postgres_run_test.py."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from chunk_tables import PRODUCT, ChunkTables  # noqa: E402
from einrel_process import ProgramTest, main  # noqa: E402
from server import Server  # noqa: E402

SERVER = None  # set below


class ChunksInPostgres(ChunkTables, ProgramTest):
    array_type = "bytea"

    def setUp(self):
        super().setUp()
        SERVER.sql("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public; " + SERVER.functions)
        self.url = SERVER.url

    def execute(self, statement):
        rows = [line.split("\t") for line in SERVER.sql(statement).splitlines()]
        return [[bytes.fromhex(cell[2:]) if cell.startswith("\\x") else int(cell) for cell in row] for row in rows]

    def literal(self, data):
        return f"'\\x{data.hex()}'::bytea"

    def name(self, table):
        return '"' + table.replace('"', '""') + '"'

    def content(self):
        tables = SERVER.sql("SELECT n.oid, nspname, relname, relkind FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
                            "WHERE nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1, 2, 3")
        names = [line.split("\t")[2] for line in tables.splitlines() if line.endswith("\tr")]
        return tables, [SERVER.sql(f"SELECT * FROM {self.name(name)} ORDER BY 1, 2, 3") for name in names]

    def own_changes(self, at):
        """Columns have types."""
        return (("ALTER TABLE {} ALTER chunk TYPE text USING encode(chunk, 'hex')", ("table 'bad'", "'chunk'", "text")),
                ("ALTER TABLE {} ALTER chunk TYPE int USING 1", ("table 'bad'", "'chunk'", "no arrays")),
                ("ALTER TABLE {} ALTER k0 TYPE text", ("table 'bad'", "'k0'")),
                (f"ALTER TABLE {{}} ALTER k0 TYPE numeric; UPDATE {{}} SET k0 = 1.5 {at}", ("table 'bad'", "'k0'", "1.5")))

    def test_keys_may_be_numeric_and_processes_share_the_work(self):
        x = np.random.default_rng(6).standard_normal((250, 200))
        y = np.random.default_rng(7).standard_normal((200, 300))
        np.save(self.path("y.npy"), y)
        self.store("x", x, (3, 2))
        self.execute('ALTER TABLE x ALTER k0 TYPE numeric, ALTER k1 TYPE smallint')
        self.done(PRODUCT, "--in", "X=table:public.x", "--in", f"Y={self.path('y.npy')}", "--out", "Z=chunks:z", "--formats", "tile-100")
        found = self.chunks("z")
        self.assertEqual(set(found), {(i, k) for i in range(3) for k in range(3)})
        np.testing.assert_allclose(np.block([[found[i, k] for k in range(3)] for i in range(3)]), x @ y, rtol=0, atol=1e-11)
        self.assertEqual(SERVER.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'einrel%'").strip(), "0")
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
    programs, module, script = sys.argv[2:5]
    del sys.argv[2:5]
    with Server(programs, module, script) as SERVER:
        main()
