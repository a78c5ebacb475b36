"""What becomes of runs and jobs that find no room for what they need.

Usage: address_space_test.py EINREL    (an EINREL without sanitizers, which need addresses of their own)
"""

import os
import resource
import subprocess

import einrel_process
from einrel_process import main
from run_plan_test import CHAIN, MPIRUN, RunTest


class AddressSpace(RunTest):
    """A limit on the addresses of a process, on all ranks or one."""

    def test_what_executors_lack_is_named_and_nothing_is_left(self):
        program = self.text_file("chain.ein", CHAIN)
        temporary = self.path("temporary")
        os.mkdir(temporary)
        environment = {**os.environ, "TMPDIR": temporary}
        sizes = [word for label in "ijk" for word in ("--dim", f"{label}=1000")]
        within = ["--threads", "2", "--memory", "9MB"]  # StarPU starts for it
        for options, limited, most, mentions in (
                (["--threads", "1000"], resource.RLIMIT_AS, 2**32, "--threads"),
                (within, resource.RLIMIT_FSIZE, 0, "ulimit -f"), (within, resource.RLIMIT_FSIZE, 4096, "ulimit -f"),
                (within, resource.RLIMIT_NOFILE, 4, "ulimit -n"), (within, resource.RLIMIT_NOFILE, 8, "ulimit -n"),
                (within, resource.RLIMIT_NOFILE, 16, "ulimit -n")):
            with self.subTest(limited=mentions, most=most):
                self.refuse(2, "run", program, "--random", "1", "--sites", "4", *options, *sizes,
                            mentions=[mentions], env=environment,
                            preexec_fn=lambda limited=limited, most=most: resource.setrlimit(limited, (most, most)))
                self.assertEqual(os.listdir(temporary), [])

    def test_ranks_without_memory_end_the_job_by_name(self):
        program = self.text_file("chain.ein", CHAIN)
        for limited in ("", "[ $OMPI_COMM_WORLD_RANK = 0 ] || "):  # all ranks, or one
            for mebibytes in (150, 220, 300, 340, 380):
                with self.subTest(mebibytes=mebibytes, limited=limited):
                    einrel_process.cases += 1
                    script = f"{limited} ulimit -v {mebibytes * 1024}; exec \"$@\""
                    sizes = [word for label in "ijk" for word in ("--dim", f"{label}=5000")]
                    done = subprocess.run([MPIRUN, "-n", "2", "sh", "-c", script, "sh", einrel_process.PROGRAM, "run",
                                           program, "--random", "1", "--threads", "1", *sizes],
                                          capture_output=True, timeout=60, check=False)
                    err = done.stderr.decode()
                    self.assertEqual(done.returncode, 2, err)
                    self.assertRegex(err, r"(?m)^error: .*(ulimit -v|out of memory)")


if __name__ == "__main__":
    main()
