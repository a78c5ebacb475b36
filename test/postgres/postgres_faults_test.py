"""Runs in PostgreSQL that do not come to their end: the database is as it was, and somebody says why."""

import os
import re
import signal
import subprocess
import time

import numpy as np

from postgres_case import SERVER, ProductTest, main, rows
import einrel_process
from einrel_process import einrel


class Interrupted(ProductTest):
    def test_a_full_disk_is_said_and_the_database_is_as_it_was(self):
        most = (20 << 20) + 4096  # with half a page, which is one that finds no room
        result = self.text_file("result.ein", "dims i=2000 k=2000\ninput X[a,b] : f64\nZ[i,k] = sin(f64(i * k * k)) + sum[a,b] X[a,b]\n")
        table = self.text_file("table.ein", "dims i=900 k=900\ninput X[a,b] : f64\nZ[i,k] = i * k + sum[a,b] X[a,b]\n")
        np.save(self.path("large.npy"), np.random.default_rng(8).standard_normal((2000, 2000)))
        before = self.content()
        SERVER.stop()
        SERVER.launch(most)
        try:
            for what, program, x, arguments in (("a result", result, "table:X", ()), ("a table", table, "table:X", ("--out", "Z=table:Z")),
                                                ("chunks", result, "table:X", ("--out", "Z=chunks:Z")),
                                                ("an input", self.program, self.path("large.npy"), ("--formats", "X=single")),
                                                ("elements", self.program, self.path("large.npy"), ("--formats", "element"))):
                with self.subTest(what=what):
                    more = ("--in", "Y=query:SELECT k AS i, 0 AS k, 1 AS value FROM generate_series(0, 1999) AS k") if program == self.program else ()
                    found = einrel("run", program, "--database", SERVER.url, "--in", "X=" + x, *more, *arguments)
                    self.assertEqual(found.code, 2, found)
                    self.assertRegex(found.err, "finds no room on its disk|File too large")
                    self.assertEqual(self.content(), before)
        finally:
            SERVER.stop()
            SERVER.launch()
        self.assertEqual(self.run_product("--out", "Z=table:Z").code, 0)

    def test_a_server_without_free_locks_is_said_with_the_remedy(self):
        before = self.content()
        with subprocess.Popen(SERVER.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
            other.stdin.write("\\set ON_ERROR_STOP off\nSELECT pg_advisory_lock(i) FROM generate_series(1, 1000000) AS i;\n"
                              "SELECT count(pg_advisory_unlock(i)), 'are free again' FROM generate_series(1, 8) AS i;\n")  # for the connection
            other.stdin.flush()
            self.assertEqual(other.stdout.readline(), "8\tare free again\n")
            result = self.run_product("--out", "Z=table:Z")
        self.assertEqual(result.code, 2, result)
        self.assertIn("out of shared memory", result.err)
        self.assertIn("max_locks_per_transaction", result.err)
        self.assertEqual(self.content(), before)

    def slow(self):
        """A run that takes a minute, once it computes."""
        return subprocess.Popen(
            [einrel_process.PROGRAM, "run", self.program, "--database", SERVER.url, "--in",
             'X=query:SELECT i, j, value FROM "X" WHERE (SELECT pg_sleep(60)) IS NOT NULL', "--in", "Y=table:Y", "--dim", "i=25", "--dim",
             "j=13", "--out", "Z=table:Z"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sleeping(self):
        return SERVER.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").strip()

    def test_a_client_that_is_stopped_or_killed_leaves_the_database_as_it_was(self):
        before = self.content()
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how), self.slow() as run:
                self.wait_until(self.sleeping, "1")
                run.send_signal(how)
                run.communicate(timeout=20)
                self.assertEqual(run.returncode, -how)
                self.wait_until(self.sleeping, "0")
                self.wait_until(self.content, before)

    def test_a_calibration_that_is_stopped_leaves_the_database_as_it_was(self):
        before = self.content()
        environment = {**os.environ, "XDG_CONFIG_HOME": self.folder}
        with subprocess.Popen([einrel_process.PROGRAM, "calibrate", "--database", SERVER.url], env=environment,
                              stdout=subprocess.DEVNULL) as stopped:
            time.sleep(1)
            stopped.send_signal(signal.SIGINT)
        self.assertEqual(stopped.returncode, -signal.SIGINT)
        self.assertEqual(self.content(), before)
        self.assertFalse(os.path.exists(self.path("einrel/databases.json")))

    def test_a_server_that_is_killed_is_said_and_its_database_is_as_it_was(self):
        before = self.content()
        sleeper = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        for how, ends in (("the backend", lambda: SERVER.sql(f"SELECT pg_terminate_backend(pid) {sleeper}")),
                          ("its process", lambda: os.kill(int(SERVER.sql(f"SELECT pid {sleeper}")), signal.SIGKILL)), ("the server", SERVER.stop)):
            with self.subTest(how=how), self.slow() as run:
                self.wait_until(self.sleeping, "1")
                ends()
                err = run.communicate(timeout=20)[1]
                self.assertEqual(run.returncode, 2, err)
                self.assertIn("is gone", err)
                if how == "the server":
                    SERVER.launch()
                self.wait_until(SERVER.answers, True)
                self.assertEqual(self.content(), before)


WORKER = "backend_type = 'parallel worker'"  # nothing but what processes share has one
LEADER = "backend_type = 'client backend' AND application_name = 'einrel'"


class InterruptedWhileProcessesShare(ProductTest):
    """What they share takes many seconds of work, so that a process of the server is seen at it."""

    def setUp(self):
        super().setUp()
        self.program = self.text_file("shared.ein", "input X[i,j] : f64\ninput Y[j,k] : f64\nZ[i,k] = sum[j] sin(exp(sin(exp(sin(X[i,j] * Y[j,k])))))\n")
        for name, shape in (("x", (2000, 1000)), ("y", (1000, 2000))):
            np.save(self.path(name + ".npy"), np.random.default_rng(9).standard_normal(shape))
        self.before, self.left = self.content(), self.orphans()

    def shared(self):
        """A run whose work other processes of the server are at."""
        run = subprocess.Popen(
            [einrel_process.PROGRAM, "run", self.program, "--database", self.url, "--in", "X=" + self.path("x.npy"), "--in", "Y=" + self.path("y.npy"),
             "--formats", "tile-250", "--out", "Z=chunks:kept"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PGOPTIONS": "-c max_parallel_workers_per_gather=2", "XDG_CONFIG_HOME": os.devnull})
        self.addCleanup(run.kill)
        self.wait_until(lambda: self.count(WORKER) if run.poll() is None else self.fail(run.stderr.read()), 2)
        return run

    def count(self, processes):
        return len(self.numbers(processes))

    def numbers(self, processes):
        return [int(number) for (number,) in rows(f"SELECT pid FROM pg_stat_activity WHERE {processes}")]

    def orphans(self):
        """Files of the database that belong to none of its tables, and their sizes."""
        SERVER.sql("CHECKPOINT")  # which removes files of tables that are gone
        folder = os.path.join(SERVER.folder, "data", "base", rows("SELECT oid FROM pg_database WHERE datname = current_database()")[0][0])
        known = {os.path.basename(path) for (path,) in rows("SELECT pg_relation_filepath(oid) FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL")}
        return {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)
                if re.match(r"t?\d", name) and re.split("[._]", name)[0] not in known}

    def test_a_client_that_is_stopped_or_killed_leaves_nothing(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how), self.shared() as run:
                run.send_signal(how)
                run.communicate(timeout=60)
                self.assertEqual(run.returncode, -how)
                self.wait_until(lambda: self.count(f"{WORKER} OR {LEADER}"), 0)
                self.assertEqual(self.content(), self.before)
                self.assertEqual(self.orphans(), self.left)

    def test_a_process_of_the_server_that_is_killed_is_said_and_leaves_no_more_than_a_page_of_each_file(self):
        for processes, how in ((WORKER, signal.SIGKILL), (LEADER, signal.SIGKILL), (WORKER, signal.SIGTERM), (LEADER, signal.SIGTERM)):
            with self.subTest(processes=processes, how=how), self.shared() as run:
                os.kill(self.numbers(processes)[0], how)
                err = run.communicate(timeout=60)[1]
                self.assertEqual(run.returncode, 2, err)
                self.assertRegex(err, "^error: the database 'einrel' on .* is gone: .* nothing was changed")
                self.wait_until(SERVER.answers, True)
                self.wait_until(lambda: self.count(f"{WORKER} OR {LEADER}"), 0)
                self.assertEqual(self.content(), self.before)
                self.assertEqual({name: size for name, size in self.orphans().items()
                                  if name not in self.left and (how == signal.SIGTERM or size > 8192)}, {})
                self.left = self.orphans()  # of a server that began anew
        result = self.run_product("--out", "Z=table:Z")
        self.assertEqual(result.code, 0, result)
        np.testing.assert_allclose(self.table('"Z"', (25, 7)), np.sin(np.exp(np.sin(np.exp(np.sin(self.x[:, :, None] * self.y))))).sum(1), rtol=1e-9)


if __name__ == "__main__":
    main()
