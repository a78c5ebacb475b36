"""Inputs from files in runs within a limit of memory: they take none of it."""

import json
import os
import subprocess
import sys

import numpy as np

import einrel_process
from einrel_process import ProgramTest, main

MPIRUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "mpirun")
SANITIZED = "--sanitized" in sys.argv
if SANITIZED:
    sys.argv.remove("--sanitized")
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"  # hwloc, below StarPU, loads plugins that keep memory until the end


class InputsWithinLimits(ProgramTest):
    """Inputs that take several times what a run may, and are not used where they lie in their files."""

    ROWS, COLUMNS = 2500, 8000  # 80 MB of f32

    def setUp(self):
        super().setUp()
        self.values = np.random.default_rng(3).integers(0, 200, (50, self.COLUMNS))
        self.values = np.tile(self.values, (self.ROWS // 50, 1))  # that compresses well

    def expect_limit_held(self, dtype, name, *options):
        program = self.text_file("sums.ein", f"input X[i,j] : {dtype}\nS[i] = sum[j] X[i,j]\noutput S\n")
        ran = json.loads(self.succeed("run", program, "--in", f"X={self.path(name)}", "--memory", "12MB", "--threads", "2",
                                      "--out", f"S={self.path('s.npy')}", "--json", *options).out)
        np.testing.assert_array_equal(np.load(self.path("s.npy")), self.values.sum(axis=1))
        self.assertEqual([file for file in os.listdir(self.folder) if "spill" in file], [])
        measured = ran["measured"]
        if not SANITIZED:
            self.assertLess(ran["peak_memory"]["measured"] - measured["file_pages_per_rank"][0], 40e6)
        return measured

    def test_converted_inputs_are_converted_part_by_part(self):
        for stored, dtype in (("u1", "f32"), ("u1", "i32"), ("u2", "f64"), (">f8", "f64"), (">f4", "f32"), (">i8", "i64")):
            for order in "CF":
                with self.subTest(stored=stored, dtype=dtype, order=order):
                    np.save(self.path("x.npy"), np.asarray(self.values, stored, order=order))
                    self.expect_limit_held(dtype, "x.npy")

    def test_a_converted_input_is_read_in_parts_with_other_plans_and_in_jobs(self):
        np.save(self.path("x.npy"), np.asarray(self.values, "u1"))
        for options in (("--sites", "3"), ("--repeat", "2"), ("--planner", "single")):
            self.expect_limit_held("f32", "x.npy", *options)
        program = self.path("sums.ein")
        for ranks in ("1", "2", "3"):
            einrel_process.cases += 1
            subprocess.run([MPIRUN, "-n", ranks, einrel_process.PROGRAM, "run", program, "--in", f"X={self.path('x.npy')}",
                            "--out", f"S={self.path('s.npy')}"], check=True, capture_output=True, timeout=100)
            np.testing.assert_array_equal(np.load(self.path("s.npy")), self.values.sum(axis=1))


if __name__ == "__main__":
    main()
