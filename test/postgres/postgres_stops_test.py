"""A function that computes a chunk ends soon after somebody asks for it: nobody has to kill a process of the server."""

import subprocess

from postgres_case import SERVER, EmptyDatabase, main, rows
from einrel_process import einrel

# Weeks of work, on arrays of a few bytes.
KERNELS = {"blocks": "'kernel f(A[i]) -> [] with j=400000000000000 = sum[i,j] A[i]*exp(j)', einrel.einrel_zeros('f64', 3)",
           "results": "'kernel f(A[i]) -> [i] with j=400000000000000 = max[j] (A[i]+sin(j))', einrel.einrel_zeros('f64', 3)",
           "products": "'kernel f(A[i], B[k]) -> [i,k] with j=400000000000000 = sum[j] (sin(A[i]*j)*B[k])', einrel.einrel_zeros('f64', 3), "
                       "einrel.einrel_zeros('f64', 3)"}
RUNS = "query LIKE 'SELECT length(einrel.einrel_kernel%' AND state = 'active' AND pid <> pg_backend_pid()"


class Stops(EmptyDatabase):
    def begin(self, kernel, options=""):
        """A session that computes it."""
        text = f"\\set VERBOSITY verbose\n{options}SELECT length(einrel.einrel_kernel({KERNELS[kernel]}));\n"
        session = subprocess.Popen(SERVER.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(session.kill)
        session.stdin.write(text)
        session.stdin.flush()
        return session

    def running(self):
        return [int(pid) for (pid,) in rows(f"SELECT pid FROM pg_stat_activity WHERE {RUNS}")]

    def end_of(self, session):
        out, err = session.communicate(timeout=60)
        self.assertEqual(out, "")
        self.wait_until(self.running, [])
        return err

    def test_a_statement_ends_at_its_timeout(self):
        for kernel in KERNELS:
            with self.subTest(kernel=kernel):
                err = self.end_of(self.begin(kernel, "SET statement_timeout = '300ms';\n"))
                self.assertIn("57014: canceling statement due to statement timeout", err)

    def test_a_statement_that_is_cancelled_ends_and_the_session_goes_on(self):
        for kernel in KERNELS:
            with self.subTest(kernel=kernel):
                session = self.begin(kernel, "\\set ON_ERROR_STOP off\n")
                self.wait_until(lambda: len(self.running()), 1)
                SERVER.sql(f"SELECT pg_cancel_backend({self.running()[0]})")
                self.wait_until(self.running, [])
                session.stdin.write("SELECT length(einrel.einrel_kernel('id', einrel.einrel_zeros('f64', 3)));\n")
                out, err = session.communicate(timeout=60)
                self.assertIn("57014: canceling statement due to user request", err)
                self.assertEqual(out, "40\n")

    def test_a_backend_that_is_terminated_ends_and_the_server_stays(self):
        began = rows("SELECT pg_postmaster_start_time(), pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        for kernel in KERNELS:
            with self.subTest(kernel=kernel):
                session = self.begin(kernel)
                self.wait_until(lambda: len(self.running()), 1)
                SERVER.sql(f"SELECT pg_terminate_backend({self.running()[0]})")
                self.assertIn("57P01: terminating connection due to administrator command", self.end_of(session))
        self.assertEqual(rows("SELECT pg_postmaster_start_time(), pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"), began)

    def test_what_nobody_waits_for_any_more_ends(self):
        session = self.begin("blocks", "SET client_connection_check_interval = '200ms';\n")
        self.wait_until(lambda: len(self.running()), 1)
        session.kill()
        session.communicate()
        self.wait_until(self.running, [])

    def test_a_run_is_cancelled_while_a_chunk_is_computed(self):
        program = self.text_file("long.ein", "dims j=400000000000\ninput X[i] : f64\nZ[i] = sum[j] sin(X[i] * j)\n")
        SERVER.sql("CREATE TABLE x AS SELECT i, 1.5 AS value FROM generate_series(0, 2) AS i")
        before = self.content()
        result = einrel("run", program, "--database", SERVER.url + "&options=-c%20statement_timeout%3D1000", "--in", "X=table:x", "--formats", "X=single,Z=single",
                        "--out", "Z=table:z")
        self.assertEqual(result.code, 2, result)
        self.assertIn("the run was stopped: canceling statement due to statement timeout", result.err)
        self.assertEqual(self.content(), before)


if __name__ == "__main__":
    main()
