"""The memory that whole runs take, as the system counts it: not more than what lives at one time, and little besides.

Usage: memory_test.py EINREL    (an EINREL without sanitizers, which need memory of their own)
"""

import json
import resource
import subprocess
import sys

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

ROWS, COLUMNS = 5000, 10000
MATRIX = 4 * ROWS * COLUMNS  # 200 MB of f32
CONSTANT = 16_000_000  # the program itself and its libraries

# A new process inherits its parent's peak, and this one is large: so a small one starts the program.
LAUNCHER = """\
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
status, usage = os.wait4(child, 0)[1:]
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class MemoryTest(process.ProgramTest):
    def peak(self, program, *arguments):
        """Bytes at the peak of `einrel run`, and what its own report says of them."""
        process.cases += 1
        path = self.text_file("program.ein", program)
        ended = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, process.PROGRAM, "run", path, "--json", *arguments],
            capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.returncode, 0, ended)
        report, peak = ended.stdout.rstrip("\n").rsplit("\n", 1)
        return int(peak), json.loads(report)["peak_memory"]

    def expect_peak(self, live, program, *arguments):
        """`live`: bytes of inputs, outputs and living intermediates where they are most."""
        peak, report = self.peak(program, *arguments)
        print(f"{self._testMethodName}: {peak / 1e6:.0f} MB, of which tensors {live / 1e6:.0f} MB")
        self.assertLessEqual(peak, 1.2 * live + CONSTANT)
        self.assertLessEqual(abs(report["measured"] - peak), 0.02 * peak)
        self.assertLessEqual(report["predicted"], live)
        self.assertGreaterEqual(report["predicted"], 0.85 * live)

    def matrix(self, order="C", dtype=np.float32):
        path = self.path("x.npy")
        np.save(path, np.ones((ROWS, COLUMNS), dtype, order=order))
        return ("--in", f"X={path}")

    def test_elementwise_over_a_mapped_file(self):
        self.expect_peak(2 * MATRIX, "input X[i,j]\nY[i,j] = 2 * relu(X[i,j]) + 1\noutput Y\n", *self.matrix(),
                         "--out", f"Y={self.path('y.npy')}")

    def test_a_chain_frees_what_it_no_longer_needs(self):
        chain = "".join(f"Y{k + 1}[i,j] = sqrt(Y{k}[i,j]) + Y{k}[i,j]\n" for k in range(1, 6))
        self.expect_peak(2 * MATRIX, f"input X[i,j]\nY1[i,j] = X[i,j] + 1\n{chain}output Y6\n", *self.matrix())

    def test_a_chain_that_cannot_run_together_frees_what_it_no_longer_needs(self):
        chain = "".join(f"Y{k + 1}[i,j] = sqrt(Y{k}[{ROWS - 1}-i,j]) + Y{k}[i,j]\n" for k in range(1, 6))
        self.expect_peak(3 * MATRIX, f"input X[i,j]\nY1[i,j] = X[i,j] + 1\n{chain}output Y6\n", *self.matrix())

    def test_a_chain_through_a_view_frees_what_lies_behind_it(self):
        chain = "".join(f"Y{k + 1}[k] = sqrt(Y{k}[k]) + Y{k}[k]\n" for k in range(1, 4))
        self.expect_peak(3 * MATRIX, "input X[i,j]\nA[i,j] = X[i,j] + 1\nV[(i j)] = view A[i,j]\nY1[k] = V[k] + 1\n"
                         f"{chain}output Y4\n", *self.matrix())

    def test_a_view_that_takes_a_copy_is_foreseen(self):
        self.expect_peak(2 * MATRIX, "input X[i,j]\nV[(i j)] = view X[i,j]\noutput V\n", *self.matrix("F"))

    def test_a_file_in_fortran_order_is_not_copied(self):
        self.expect_peak(2 * MATRIX, "input X[i,j]\nY[i,j] = X[i,j] + 1\noutput Y\n", *self.matrix("F"))

    def test_a_sum_over_a_file_in_fortran_order_needs_the_file_only(self):
        self.expect_peak(MATRIX + 4 * ROWS, "input X[i,j]\nY[i] = sum[j] X[i,j]\noutput Y\n", *self.matrix("F"))

    def test_reductions_of_products_hold_no_products(self):
        self.expect_peak(MATRIX + 4 * ROWS, "input X[i,j]\nY[i] = sum[j] sq(X[i,j] - 1) * exp(X[i,j])\noutput Y\n",
                         *self.matrix())

    def test_bytes_widened_to_floats(self):
        self.expect_peak(MATRIX // 4 + 2 * MATRIX, "input X[i,j] : f32\nY[i,j] = X[i,j] / 255\noutput Y\n",
                         *self.matrix(dtype=np.uint8))

    def test_matrix_product(self):
        self.expect_peak(3 * 4 * 4000 * 4000, "dims i=4000 j=4000 k=4000\ninput A[i,k], B[k,j]\n"
                         "C[i,j] = sum[k] A[i,k] * B[k,j]\noutput C\n", "--random", "1")

    def test_matrix_product_of_transposed_operands(self):
        self.expect_peak(3 * 4 * 3000 * 3000, "dims i=3000 j=3000 k=3000\ninput A[k,i], B[j,k]\n"
                         "C[j,i] = sum[k] A[k,i] * B[j,k]\noutput C\n", "--random", "1")

    def test_a_run_that_cannot_fit_is_refused_before_inputs_are_filled(self):
        with open("/proc/meminfo", encoding="ascii") as file:
            available = 1024 * next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
        # X fits, X and Y do not. The limit protects this machine from a program that fills X all the same.
        self.refuse(2, "run", "-", "--random", "1", "--dim", f"i={available * 6 // 10 // 8}",
                    stdin="input X[i] : f64\nY[i] = X[i] + 1\noutput Y\n", mentions=["'Y'", "memory"],
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))

    def test_a_plan_that_cannot_fit_is_refused_and_told_of_the_disk(self):
        program = self.text_file("wide.ein", "dims i=4000000 j=4000000\ninput X[i,j]\nY[i,j] = X[i,j] + 1\noutput Y\n")
        for arguments in ((), ("--sites", "4")):
            said = self.refuse(2, "run", program, "--random", "1", *arguments, mentions=["TB of memory", "--memory SIZE"],
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32)))
            self.assertNotIn("RunOptions", said.err)


if __name__ == "__main__":
    process.main()
