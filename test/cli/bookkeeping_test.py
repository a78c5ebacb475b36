"""What runs take within a limit of memory: many tasks, many inputs, and all that is kept of them.

Usage: bookkeeping_test.py EINREL    (an EINREL without sanitizers, which need memory of their own)
"""

import json
import re

from einrel_process import main
from run_plan_test import PROCESS, RunTest


class Bookkeeping(RunTest):
    def test_a_plan_that_takes_more_than_the_program_keeps_to_the_limit(self):
        program = self.text_file("max.ein", "dims i=400 j=400 k=400\ninput A[i,j], B[j,k], C[i,k]\n"
                                 "Z[i] = max[j,k] (A[i,j] + B[j,k]) * C[i,k]\n")
        ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "60MB").out)
        self.assertLess(ran["peak_memory"]["measured"], 160e6)

    def test_repeats_keep_to_the_limit(self):
        labels = "pqrtuv"
        program = self.text_file("random.ein", "\n".join(
            [f"dims {' '.join(f'{label}=2000' for label in labels)} s=8", "input A[s,p]"] +
            [f"input {name}[{a},{b}]" for name, a, b in zip("BCDEF", labels, labels[1:])] +
            ["G[s,q] = sum[p] A[s,p] * B[p,q]"] +
            [f"{out}[s,{b}] = sum[{a}] {of}[s,{a}] * {name}[{a},{b}]"
             for out, of, name, a, b in zip("HIJK", "GHIJ", "CDEF", labels[1:], labels[2:])] + ["output K"]))
        for repeats in ("1", "3"):  # an input has 16 MB
            ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "40MB", "--repeat",
                                          repeats).out)
            self.assertLess(ran["peak_memory"]["measured"], 40e6 + PROCESS, repeats)

    def test_an_unrolled_recurrence_keeps_to_the_limit(self):
        # A step reads one position of X and two of A, which take 26 MB each.
        steps, bytes_of_a = 200, 26e6
        lines = [f"dims t={steps} b=64 h=512 k=512", "input X[t,b,h], U[h,k], S0[b,k]", "A[t,b,k] = 2 * X[t,b,k]"]
        for t in range(steps):
            lines.append(f"S{t + 1}[b,k] = tanh(0.1 * A[{t},b,k] - A[{max(t - 1, 0)},b,k] * X[{t},b,k] "
                         f"+ 0.01 * sum[h] S{t}[b,h] * U[h,k])")
        program = self.text_file("recurrence.ein", "\n".join([*lines, f"output S{steps}"]))
        whole = json.loads(self.succeed("run", program, "--random", "1", "--json").out)["outputs"][f"S{steps}"]
        for threads in ("1", "16"):
            with self.subTest(threads=threads):
                ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "20MB",
                                              "--threads", threads).out)
                for key in ("min", "max", "mean"):
                    self.assertAlmostEqual(ran["outputs"][f"S{steps}"][key], whole[key],
                                           delta=1e-3 * abs(whole[key]) + 1e-5)
                # All of A is written, and read twice; the rest is what the scheduler puts away too early.
                self.assertLess(ran["measured"]["bytes_read_back"], 20 * bytes_of_a)
                self.assertLess(ran["peak_memory"]["measured"], 20e6 + PROCESS)

    def test_many_small_tasks_keep_to_the_limit(self):
        lines = ["dims i=64 j=64", "input X[i,j], W[j,j]", "Y0[i,j] = X[i,j] * 1"]
        lines += [f"Y{t + 1}[i,j] = sum[k] Y{t}[i,k] * W[k,j]" for t in range(2000)]
        chain = self.text_file("products.ein", "\n".join([*lines, "output Y2000"]))
        long_sum = self.text_file("sum.ein", "dims i=40000000\ninput X[i]\ns[] = sum[i] X[i]\noutput s\n")
        for program, limit in ((chain, 20), (long_sum, 9)):
            ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", f"{limit}MB",
                                          "--threads", "2").out)
            self.assertGreater(ran["measured"]["tasks"], 250)
            self.assertLess(ran["peak_memory"]["measured"], limit * 1e6 + PROCESS)

    def test_bookkeeping_of_many_chunks_counts(self):
        # For 16 threads there would be 10,240 tasks, which take 24 MB.
        program = self.text_file("transposed.ein", "dims i=20000 j=8000\ninput A[i,j], B[j,i]\n"
                                 "C[i,j] = A[i,j] + B[j,i]\nD[i] = sum[j] C[i,j] * A[i,j]\noutput D\n")
        ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "9MB",
                                      "--threads", "16").out)
        self.assertGreater(ran["measured"]["tasks"], 2000)
        self.assertLess(ran["measured"]["tasks"], 6000)
        self.assertLess(ran["peak_memory"]["measured"], 9e6 + PROCESS)

    def many_inputs(self, count):
        lines = ["dims i=1000"] + [f"input X{n}[i]" for n in range(count)] + ["T0[] = sum[i] sq(X0[i])"]
        lines += [f"T{n}[] = T{n - 1}[] + sum[i] sq(X{n}[i])" for n in range(1, count)]
        return self.text_file("many.ein", "\n".join([*lines, f"output T{count - 1}"]))

    def expect_allocated(self, ran, least, most):
        for peak, file in zip(ran["measured"]["peak_memory_per_rank"], ran["measured"]["file_pages_per_rank"]):
            self.assertLess(peak - file, most)
            self.assertGreater(peak - file, least)

    def test_bookkeeping_is_what_statements_and_inputs_take(self):
        program = self.many_inputs(1500)
        ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", "30MB").out)
        self.expect_allocated(ran, 18e6, 31e6)
        refused = self.refuse(1, "run", program, "--random", "1", "--memory", "18MB",
                              mentions=["--memory 18 MB is too little: the bookkeeping of"])
        advice = re.search(r"give at least ([\d.]+) MB", refused.err).group(1)
        ran = json.loads(self.succeed("run", program, "--random", "1", "--json", "--memory", f"{advice}MB").out)
        self.expect_allocated(ran, 18e6, float(advice) * 1e6 + PROCESS)

    def test_bookkeeping_counts_in_jobs(self):
        program = self.many_inputs(1500)
        for options in ((), ("--spill", self.folder), ("--planner", "single")):
            with self.subTest(options=options):
                done = self.job(2, program, "--random", "1", "--json", "--memory", "36MB", *options)
                self.assertEqual(done.code, 0, done)
                self.expect_allocated(json.loads(done.out), 18e6, 40e6)
                refused = self.job(2, program, "--random", "1", "--memory", "18MB", *options)
                self.assertEqual(refused.code, 1, refused)
                self.assertRegex(refused.err, r"--memory 18 MB is too little: the bookkeeping of \d+ tasks takes \d")

    def test_ranks_that_spill_leave_room_for_bookkeeping(self):
        lines = ["dims i=1500 j=1500 k=1500", "input X[i,j]", "Y[i,j] = exp(X[i,j])", "T0[i] = sum[j] X[i,j]"]
        lines += [f"T{n}[i] = T{n - 1}[i] * 0.5 + 1" for n in range(1, 600)]
        lines += ["Z[i,j] = X[i,j] * T599[i] + Y[i,j]", "W[i,k] = sum[j] Z[i,j] * Y[k,j]", "output W"]
        program = self.text_file("long.ein", "\n".join(lines))
        for megabytes in range(20, 46, 6):
            with self.subTest(megabytes=megabytes):
                done = self.job(2, program, "--random", "1", "--json", "--memory", f"{megabytes}MB", "--spill", self.folder)
                self.assertEqual(done.code, 0, done)
                self.assertLess(json.loads(done.out)["peak_memory"]["measured"], megabytes * 1e6 + PROCESS)


if __name__ == "__main__":
    main()
