"""Runs in SQLite that do not come to their end: the database is as it was, and somebody says why."""

import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import time

import einrel_process
from einrel_process import einrel, main
from sqlite_case import SqliteProduct

JOURNAL, WAL = "delete", "wal"  # how SQLite keeps what was begun apart
ENDLESS = "query:WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i, 0 AS j, i AS value FROM n WHERE i < 0"


class Faults(SqliteProduct):
    def large(self, i, k):
        """A program whose result has so many rows and columns."""
        return self.text_file("large.ein", f"dims i={i} k={k}\ninput X[a,b] : f64\nZ[i,k] = i * k + sum[a,b] X[a,b]\n")

    def run_of(self, program, *arguments):
        return ["run", program, "--database", "sqlite:" + self.file, "--in", "X=table:X", *arguments]

    def set_journal(self, mode):
        self.assertEqual(self.execute(f"PRAGMA journal_mode = {mode}"), [(mode,)])

    def dump(self):
        """All that is in the database, as statements."""
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return list(connection.iterdump())

    @contextlib.contextmanager
    def another(self, *statements):
        """A connection of this process that has begun a transaction. Reading the file here meanwhile would end its locks."""
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement).fetchall()
            yield connection
            connection.execute("ROLLBACK")

    def expect_locked(self, before, arguments, *statements):
        with self.another(*statements):
            result = einrel(*arguments)
        self.assertEqual((result.code, result.out), (2, ""), result)
        for words in (f"the database '{self.file}' is locked by another program", "it is as it was", "Try again"):
            self.assertIn(words, result.err)
        self.assertEqual(self.dump(), before)
        self.assertFalse(os.path.exists(self.file + "-journal"))

    def product_of(self, *arguments):
        return self.run_of(self.program, "--in", "Y=table:Y", *arguments)

    def test_a_lock_of_another_program_is_said(self):
        before = self.dump()
        self.expect_locked(before, self.product_of("--out", "Z=table:Z"), "BEGIN EXCLUSIVE")

    def test_a_reader_that_stays_keeps_what_was_computed_out(self):
        """It holds a lock that others may share, until somebody wants to write the file: at the end, or, of a table that no cache
        holds, before."""
        before, bytes_before = self.dump(), self.content()
        for arguments in (self.product_of("--out", "Z=table:Z"), self.run_of(self.large(400, 400), "--out", "Z=table:Z")):
            with self.subTest(arguments=arguments):
                self.expect_locked(before, arguments, "BEGIN", "SELECT count(*) FROM X")
                self.assertEqual(self.content(), bytes_before)
        self.expect_product()

    def expect_product(self):
        self.succeed(*self.product_of("--out", "Z=table:Z"))
        self.assertTrue((abs(self.table("Z", (25, 7)) - self.x @ self.y) < 1e-12).all())

    def test_where_the_journal_lets_read_and_write_at_once_a_reader_disturbs_nobody(self):
        self.set_journal(WAL)
        with self.another("BEGIN", "SELECT count(*) FROM X") as reader:
            self.expect_product()
            self.assertEqual(reader.execute("SELECT name FROM sqlite_schema ORDER BY 1").fetchall(), [("X",), ("Y",)])  # of then
        self.assertEqual(self.execute("SELECT count(*) FROM Z"), [(25 * 7,)])
        before = self.dump()
        self.expect_locked(before, self.product_of("--out", "Z=table:other"), "BEGIN IMMEDIATE", "DELETE FROM X")  # of one that writes

    def test_a_full_disk_is_said_and_the_database_is_as_it_was(self):
        self.execute("CREATE TABLE filler AS SELECT randomblob(200000) AS bytes")
        size, before = len(self.content()), self.content()
        for what, program, room, out in (("the result", self.large(200, 200), size, ("--out", "Z=table:Z")),
                                         ("chunks", self.large(200, 200), size, ("--out", "Z=chunks:Z")),
                                         ("temporary files", self.large(4000, 4000), 20 << 20, ())):
            with self.subTest(what=what):
                result = einrel(*self.run_of(program, *out), preexec_fn=lambda room=room: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
                self.assertEqual((result.code, result.out), (2, ""), result)
                for words in (f"the database '{self.file}'", "no room on the disk", "File too large", "the database is as it was"):
                    self.assertIn(words, result.err)
                self.assertEqual(self.content(), before)
                self.assertEqual(self.execute("PRAGMA integrity_check"), [("ok",)])
        self.expect_product()

    def begun(self, arguments):
        einrel_process.cases += 1
        return subprocess.Popen([einrel_process.PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**os.environ, "XDG_CONFIG_HOME": os.devnull})

    def wait_for(self, run, what):
        end = time.monotonic() + 60
        while not what():
            self.assertIsNone(run.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def end_and_look(self, run, how, before):
        """Whoever opens the database next undoes what was begun."""
        run.send_signal(how)
        run.communicate(timeout=20)
        self.assertEqual(run.returncode, -how)
        self.assertEqual(self.dump(), before)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith("a.db")), ["a.db"])

    def test_a_run_that_is_ended_while_it_writes_leaves_the_database_as_it_was(self):
        before, arguments = self.dump(), self.run_of(self.large(2000, 1500), "--out", "Z=table:Z")
        for mode, grows in ((JOURNAL, self.file), (WAL, self.file + "-wal")):
            self.set_journal(mode)
            size = os.path.getsize(self.file) if grows == self.file else 0
            for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                with self.subTest(mode=mode, how=how), self.begun(arguments) as run:
                    self.wait_for(run, lambda: os.path.exists(grows) and os.path.getsize(grows) > size + 1000000)
                    self.end_and_look(run, how, before)

    def test_a_run_that_is_ended_in_a_long_statement_leaves_the_database_as_it_was(self):
        before = self.dump()
        arguments = ["run", self.program, "--database", "sqlite:" + self.file, "--in", "X=" + ENDLESS, "--in", "Y=table:Y", "--dim", "i=2", "--out", "Z=table:Z"]
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how), self.begun(arguments) as run:
                self.wait_for(run, lambda: self.processor_seconds(run.pid) > 0.3)  # it starts in far less
                self.end_and_look(run, how, before)

    def processor_seconds(self, process):
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
