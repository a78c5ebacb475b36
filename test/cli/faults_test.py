"""What becomes of runs and jobs when a process of theirs is killed, stopped or given too little."""

import glob
import os
import pathlib
import signal
import subprocess
import time

import numpy as np

import einrel_process
from einrel_process import main
from run_plan_test import CHAIN, MPIRUN, RunTest


def sizes(extent):
    """The options that give the labels of CHAIN this extent."""
    return [word for label in "ijk" for word in ("--dim", f"{label}={extent}")]


class Faults(RunTest):
    """What happens to a job when a rank of it is killed or stopped, or when the whole run is."""

    def test_runs_that_begin_at_the_same_time_share_no_files(self):
        # StarPU starts for it.
        arguments = ["run", self.text_file("chain.ein", CHAIN), "--random", "1", "--sites", "4", "--threads", "2",
                     "--memory", "9MB", *sizes(1000)]
        home, temporary = self.path("home"), self.path("temporary")
        os.mkdir(home)
        os.mkdir(temporary)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("STARPU_", "XDG_"))}
        environment |= {"HOME": home, "TMPDIR": temporary}
        for _ in range(3):
            runs = [subprocess.Popen([einrel_process.PROGRAM, *arguments], env=environment, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE) for _ in range(8)]
            for run in runs:
                self.addCleanup(run.kill)
            einrel_process.cases += len(runs)
            results = [(run.communicate(timeout=100), run.returncode) for run in runs]
            self.assertEqual([code for _, code in results], [0] * len(runs), results)
            self.assertEqual((os.listdir(home), os.listdir(temporary)), ([], []))
        self.refuse(2, *arguments, env={**environment, "TMPDIR": self.path("none")}, mentions=["TMPDIR"])

    LONG = ["--random", "1", "--threads", "1", "--timeout", "1", *sizes(5000)]

    def command_line(self, pid):
        try:
            return os.fsdecode(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:  # another test's, that has ended meanwhile
            return ""

    def ranks_at_work(self, folder):
        """The processes that compute, once the file for the output is there."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(name.startswith(".einrel") for name in os.listdir(folder)):
                time.sleep(0.3)
                listed = subprocess.run(["pgrep", "-x", os.path.basename(einrel_process.PROGRAM)],
                                        capture_output=True, text=True, check=False).stdout.split()
                return [int(pid) for pid in listed if folder in self.command_line(pid)]
            time.sleep(0.02)
        self.fail("the job never began")

    def soon(self, condition, otherwise):
        """What watches the processes is a moment behind them."""
        deadline = time.monotonic() + 10
        while not condition():
            self.assertLess(time.monotonic(), deadline, otherwise)
            time.sleep(0.05)

    def expect_end(self, job, folder):
        out, err = job.communicate(timeout=60)
        self.soon(lambda: not os.listdir(folder), "files are left")
        return out.decode(), err.decode()

    def test_a_home_that_cannot_be_written(self):
        homeless = {**os.environ, "HOME": "/proc/none", "TMPDIR": self.folder, "XDG_CONFIG_HOME": os.devnull}
        self.succeed("run", self.text_file("chain.ein", CHAIN), "--random", "1", "--sites", "4", env=homeless)

    def test_a_current_folder_that_is_removed(self):
        program = self.text_file("chain.ein", CHAIN)
        run, gone = ["run", program, "--random", "1"], self.path("gone")

        def einrel_there(*arguments):
            einrel_process.cases += 1
            os.mkdir(gone)
            script = 'rmdir "$PWD"; exec "$@"'
            return einrel_process.Result(subprocess.run(["sh", "-c", script, "sh", einrel_process.PROGRAM, *arguments],
                                                        cwd=gone, capture_output=True, timeout=100, check=False))

        for arguments in (run, [*run, "--sites", "2"], ["check", program], [*run, "--out", f"E={self.path('e.npy')}"],
                          [*run, "--out", f"E={self.path('e.npz')}:E", "--sites", "2"], ["list", "machines"],
                          ["explain", program, "--sites", "2", "--html", self.path("e.html")]):
            with self.subTest(arguments=arguments):
                result = einrel_there(*arguments)
                self.assertEqual((result.code, result.err), (0, ""), result)
        for arguments, name in (([*run, "--out", "E=e.npy"], "e.npy"), ([*run, "--out", "E=./e.npz:E"], "./e.npz"),
                                ([*run, "--out", "E=../e.npy", "--sites", "2"], "../e.npy"),
                                ([*run, "--sites", "2", "--trace", "t.json"], "t.json"),
                                (["explain", program, "--sites", "2", "--html", "e.html"], "e.html")):
            with self.subTest(arguments=arguments):
                result = einrel_there(*arguments)
                self.assertEqual((result.code, result.out), (1, ""), result)
                self.assertIn(f"error: cannot write '{name}': the current folder is not there any more", result.err)
        for arguments in (["check", "p.ein"], [*run, "--in", "A=a.npy"], ["einsum", "i->", "a.npy"], ["explain", "p.tra"],
                          [*run, "--memory", "9kB", "--sites", "2", "--spill", "."], [*run, "--machine", "./m.json"],
                          [*run, "--plan", "p.json"]):
            with self.subTest(arguments=arguments):
                result = einrel_there(*arguments)
                self.assertEqual((result.code, result.out), (1, ""), result)
                self.assertIn("No such file or directory", result.err)

    def test_a_rank_that_is_killed_or_stopped_ends_the_job(self):
        program = self.text_file("chain.ein", CHAIN)
        for number, sent in enumerate((signal.SIGKILL, signal.SIGSTOP)):
            folder = self.path(f"ranks{number}")
            os.mkdir(folder)
            job = subprocess.Popen([MPIRUN, "-n", "3", einrel_process.PROGRAM, "run", program, *self.LONG,
                                    "--out", f"E={folder}/e.npy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            ranks = self.ranks_at_work(folder)
            self.assertEqual(len(ranks), 3)
            os.kill(ranks[-1], sent)
            _, err = self.expect_end(job, folder)
            self.assertEqual(job.returncode, 2, err)
            self.assertRegex(err, rf"error: rank \d \(process {ranks[-1]}\)")
            self.soon(lambda: not any(os.path.exists(f"/proc/{rank}") for rank in ranks), "a rank is left")

    def test_a_rank_that_is_stopped_or_gone_before_it_began_ends_the_job(self):
        program = self.text_file("chain.ein", CHAIN)
        for done, said in (("kill -STOP $$", r"rank 2 \(process \d+\) made no progress for 1 s: it is stopped"),
                           ("exit 0", "rank 2 was not there for 10 s")):
            with self.subTest(done=done):
                einrel_process.cases += 1
                script = f'[ "$OMPI_COMM_WORLD_RANK" != 2 ] || {done}; exec "$@"'
                job = subprocess.run([MPIRUN, "-n", "3", "sh", "-c", script, "sh", einrel_process.PROGRAM, "run", program,
                                      "--random", "1", "--timeout", "1", *sizes(100)], capture_output=True, timeout=60,
                                     check=False)
                self.assertEqual((job.returncode, job.stdout), (2, b""), job)
                self.assertRegex(job.stderr.decode(), f"error: {said}")

    def test_a_run_that_is_interrupted_or_killed_leaves_nothing(self):
        program = self.text_file("chain.ein", CHAIN)
        for number, sent in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
            folder = self.path(f"alone{number}")
            os.mkdir(folder)
            run = subprocess.Popen([einrel_process.PROGRAM, "run", program, *self.LONG, "--sites", "2",
                                    "--out", f"E={folder}/e.npy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.ranks_at_work(folder)
            run.send_signal(sent)
            self.expect_end(run, folder)
            self.assertNotEqual(run.returncode, 0)

    def test_a_run_that_is_ended_while_it_starts_leaves_no_folder(self):
        program = self.text_file("chain.ein", CHAIN)
        temporary = self.path("temporary")
        os.mkdir(temporary)
        for number in range(24):
            einrel_process.cases += 1
            run = subprocess.Popen([einrel_process.PROGRAM, "run", program, *self.LONG[4:], "--random", "1", "--sites", "2",
                                    "--threads", "2", "--memory", "40MB"],  # StarPU starts for it
                                   env={**os.environ, "TMPDIR": temporary}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while run.poll() is None and not os.listdir(temporary):
                pass
            time.sleep(0.002 * (number // 3))
            run.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[number % 3])
            self.expect_end(run, temporary)

    def parent_of(self, pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return int(status.split("PPid:")[1].split()[0])

    def janitor_of(self, pid):
        """The small process that removes what this one leaves."""
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        names = {int(child): pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip() for child in children}
        return next(child for child, name in names.items() if name == "einrel-janitor")

    def shared_memory(self, pids):
        return {line[line.index("/"):] for pid in pids for line in self.maps(pid).splitlines()
                if "/vader_segment." in line}

    def begun_job(self, ranks, *arguments):
        """A job, and its ranks while they compute."""
        einrel_process.cases += 1
        job = subprocess.Popen([MPIRUN, "-n", str(ranks), einrel_process.PROGRAM, "run",
                                self.text_file("chain.ein", CHAIN), "--random", "1", "--threads", "1", *arguments,
                                "--out", f"E={self.folder}/e.npy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(job.kill)
        return job, self.ranks_at_work(self.folder)

    def test_helpers_that_are_stopped_do_not_hold_the_job(self):
        job, ranks = self.begun_job(2, *sizes(3500))
        os.kill(self.parent_of(ranks[0]), signal.SIGSTOP)
        os.kill(self.janitor_of(ranks[1]), signal.SIGSTOP)
        _, err = job.communicate(timeout=180)  # of computing, which other tests may slow down
        self.assertEqual(job.returncode, 0, err)
        self.soon(lambda: not self.running(ranks), "a process is left")

    def test_a_job_ends_whoever_of_it_is_killed_and_leaves_no_shared_memory(self):
        for killed in ("a rank", "a rank whose guard is stopped", "a guard", "mpirun"):
            with self.subTest(killed):
                job, ranks = self.begun_job(2, *self.LONG[4:])
                guard = self.parent_of(ranks[0])
                segments = self.shared_memory(ranks)
                self.assertTrue(segments)
                if killed == "a rank whose guard is stopped":
                    os.kill(guard, signal.SIGSTOP)
                os.kill({"a guard": guard, "mpirun": job.pid}.get(killed, ranks[0]), signal.SIGKILL)
                job.communicate(timeout=60)
                self.assertNotEqual(job.returncode, 0)
                self.soon(lambda: not self.running(ranks), "a rank is left")
                self.soon(lambda: not any(map(os.path.exists, segments)), f"shared memory is left: {segments}")
                self.soon(lambda: not any(name.startswith(".") for name in os.listdir(self.folder)), "files are left")

    def test_a_job_that_is_killed_while_it_starts_leaves_no_shared_memory(self):
        program, number = self.text_file("chain.ein", CHAIN), pathlib.Path(self.path("number"))
        named = f"echo $OMPI_MCA_ess_base_jobid > {number}.$$ && mv {number}.$$ {number}; exec \"$@\""
        seen = 0
        for _ in range(8):
            einrel_process.cases += 1
            number.unlink(missing_ok=True)
            job = subprocess.Popen([MPIRUN, "-n", "2", "sh", "-c", named, "sh", einrel_process.PROGRAM, "run", program,
                                    *self.LONG[4:], "--random", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(job.kill)
            self.soon(number.exists, "no rank starts")
            segments = f"/dev/shm/vader_segment.*.{int(number.read_text(encoding='utf-8')):x}.*"
            while job.poll() is None and not glob.glob(segments):
                pass
            seen += bool(glob.glob(segments))
            job.kill()
            job.communicate(timeout=60)
            self.soon(lambda segments=segments: not glob.glob(segments), "shared memory is left")
        self.assertGreater(seen, 0)

    def running(self, pids):
        return [pid for pid in pids if os.path.exists(f"/proc/{pid}") and self.maps(pid)]

    def test_what_fails_on_one_rank_alone_ends_the_job(self):
        lines = "".join(f"Z{i}[a] = X[a] * {i}\noutput Z{i}\n" for i in range(400))
        program = self.text_file("long.ein", f"dims a=7\ninput X[a]\n{lines}")
        einrel_process.cases += 1
        done = subprocess.run([MPIRUN, "-n", "2", "sh", "-c", "exec \"$@\" > /dev/full", "sh", einrel_process.PROGRAM,
                               "run", program, "--random", "1", "--threads", "1", "--explain"],
                              capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("cannot write to standard output", done.stderr.decode())

    def test_links_of_others_where_outputs_go_are_not_followed(self):
        folder, precious = self.path("shared"), self.text_file("precious", "keep")
        os.mkdir(folder)
        # A process keeps its number when it becomes another program: these are the names that could be foreseen.
        links = "for i in 0 1 2; do for e in npy tmp; do ln -s \"$0\" .einrel-$$-$i.$e; done; done; exec \"$@\""
        done = subprocess.run(["sh", "-c", links, precious, einrel_process.PROGRAM, "run", self.program, *self.files,
                               "--sites", "2", "--out", f"S={folder}/s.npz:S", "--out", f"Y={folder}/y.npy"],
                              cwd=folder, capture_output=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(pathlib.Path(precious).read_text(encoding="utf-8"), "keep")
        self.assertEqual(len([name for name in os.listdir(folder) if os.path.islink(f"{folder}/{name}")]), 6)
        with np.load(f"{folder}/s.npz") as archive:
            np.testing.assert_allclose(archive["S"], self.expected["S"], rtol=1e-4, atol=1e-5)

    def test_a_run_that_is_ended_while_it_writes_another_format_leaves_nothing(self):
        program = self.text_file("add.ein", "dims i=5000 j=5000\ninput A[i,j]\nZ[i,j] = A[i,j] + 1\n")
        for number, sent in enumerate((signal.SIGTERM, signal.SIGKILL)):
            folder = self.path(f"formats{number}")
            os.mkdir(folder)
            for _ in range(20):  # on a busy machine it may be done before it is seen to write
                run = subprocess.Popen([einrel_process.PROGRAM, "run", program, "--random", "1", "--sites", "2", "--out",
                                        f"Z={folder}/z.npz:Z"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                while run.poll() is None and len(os.listdir(folder)) < 2:  # the chunks, and the archive made of them
                    pass
                run.send_signal(sent)
                run.communicate(timeout=60)
                if run.returncode == -sent:
                    break
                os.unlink(f"{folder}/z.npz")
            self.assertEqual(run.returncode, -sent)
            self.soon(lambda: not os.listdir(folder), "files are left")

    def test_an_input_that_becomes_shorter_ends_the_run_by_name(self):
        program = self.text_file("chain.ein", CHAIN)
        size = int(self.LONG[-1].split("=")[1])
        for number, start in enumerate(([einrel_process.PROGRAM], [einrel_process.PROGRAM],
                                        [MPIRUN, "-n", "3", einrel_process.PROGRAM])):
            folder = os.path.realpath(self.path(f"short{number}"))  # as the system calls it
            os.mkdir(folder)
            inputs = [f"{folder}/{name}.npy" for name in "AB"]
            for path in inputs:
                np.lib.format.open_memmap(path, "w+", np.float32, (size, size))  # zeros that take no disk
            plan = ["--sites", "2"] if number == 1 else []
            run = subprocess.Popen([*start, "run", program, *self.LONG[2:], *plan, "--in", f"A={inputs[0]}", "--in",
                                    f"B={inputs[1]}", "--out", f"E={folder}/e.npy"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.once_mapped(folder, inputs[1])
            os.truncate(inputs[1], 4096)
            _, err = run.communicate(timeout=60)
            self.assertEqual(run.returncode, 2, err)
            self.assertIn(f"input file '{inputs[1]}' became shorter", err.decode())
            self.soon(lambda: sorted(os.listdir(folder)) == ["A.npy", "B.npy"], "files are left")

    def maps(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        except OSError:
            return ""

    def once_mapped(self, folder, path):
        """Waits until all that compute have mapped a file, and have begun."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            listed = subprocess.run(["pgrep", "-x", os.path.basename(einrel_process.PROGRAM)],
                                    capture_output=True, text=True, check=False).stdout.split()
            ours = [pid for pid in listed if folder in self.command_line(pid)]
            if ours and all(path in self.maps(pid) for pid in ours):
                time.sleep(0.3)
                return
            time.sleep(0.02)
        self.fail("the input is never mapped")


if __name__ == "__main__":
    main()
