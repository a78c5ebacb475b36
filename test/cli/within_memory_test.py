"""Programs under --memory: what they are refused for, how finely they are cut, what planning them takes.

Usage: within_memory_test.py EINREL    (an EINREL without sanitizers, which need memory of their own)
"""

import itertools
import json
import re

import numpy as np

from einrel_process import ProgramTest, einrel, job, main


class WithinMemory(ProgramTest):
    def run_within(self, memory, text, *options):
        """The report of a run with random inputs."""
        program = self.text_file("program.ein", text)
        return json.loads(self.succeed("run", program, "--random", "1", "--memory", memory, "--json", *options).out)

    def test_statements_fit_in_any_order_and_on_any_number_of_threads(self):
        groups = [("input U[r,c]", ["S[] = sum[i] U[i,i]", "Z[b] = U[3,b] * U[b,7]"], {"r": 3000, "c": 3000}),
                  ("input A[R,C]", ["S[] = sum[a,b] A[a,2*b+1]", "Z[c] = A[4,c] * 1"], {"R": 5, "C": 700000}),
                  ("input X[r,c]\nU[r,c] = X[r,c] + 1", ["S[] = sum[i] U[i,i]", "Z[b] = U[3,b] * U[b,7]"],
                   {"r": 2000, "c": 2000}),
                  ("input U[r,c]", ["Q[r] = U[r,5] * U[5,r]", "W[] = max[i,k] U[k,i+1]", "T[c,r] = U[r,c] * 2"],
                   {"r": 2000, "c": 2000})]
        for first, statements, dims in groups:
            sizes = [f"--dim={name}={size}" for name, size in dims.items()]
            outputs = [statement[0] for statement in statements]
            for order in itertools.permutations(statements):
                text = "\n".join([first, *order, "output " + ", ".join(outputs)])
                program = self.text_file("program.ein", text)
                paths = {name: self.path(f"{name}.npy") for name in outputs}
                saved = [f"--out={name}={path}" for name, path in paths.items()]
                self.succeed("run", program, "--random", "1", *sizes, *saved)
                expected = {name: np.load(path) for name, path in paths.items()}
                for threads in ("1", "2", "4"):
                    with self.subTest(order=order, threads=threads):
                        self.run_within("12MB", text, "--threads", threads, *sizes, *saved)
                        for name, path in paths.items():
                            np.testing.assert_allclose(np.load(path), expected[name], rtol=1e-3, atol=1e-2)

    def test_planning_keeps_to_the_limit(self):
        random = np.random.default_rng(3)
        lines = ["dims a=16 b=16 c=16 d=16 e=16 f=16", "input X[a,b,c,d,e,f]"]  # 67 MB
        for number in range(16):
            labels = random.permutation(list("abcdef"))
            lines.append(f"T{number}[{','.join(labels[:3])}] = sum[{','.join(labels[3:])}] X[a,b,c,d,e,f]")
        for cost in ("seconds", "bytes"):
            with self.subTest(cost=cost):
                ran = self.run_within("9MB", "\n".join(lines), "--cost", cost)
                anonymous = ran["peak_memory"]["measured"] - ran["measured"]["file_pages_per_rank"][0]
                self.assertLess(anonymous, 9e6 + 24e6)

    def test_tasks_are_few_whatever_the_cost(self):
        windows = ["input A[R,C]", "L[] = sum[a,b] A[a,2*b+1]", "S[] = sum[a,b] A[a+21,b+17]"]
        mixed = ["dims a1=300 a2=300", "input A[R,C] : f32", "O0[] = mean[a0] A[299,a0]*1", "O1[] = min[a1] A[a1,a1+8700]",
                 "O2[] = argmax[a2,b2] pad(A[a2-36,b2],3)", "O3[] = logsumexp[a3,b3] A[a3+28,b3+2]"]
        for cost in ("seconds", "bytes", "floats", "bound"):
            for lines, rows, columns, memory in ((windows, 1500, 2100, "9MB"), (windows, 1500, 2100, "24MB"),
                                                 (mixed, 300, 9000, "24MB")):
                with self.subTest(cost=cost, program=lines[-1], memory=memory):
                    ran = self.run_within(memory, "\n".join(lines), "--dim", f"R={rows}", "--dim", f"C={columns}",
                                          "--sites", "3", "--cost", cost)
                    self.assertLess(ran["measured"]["tasks"], 300)

    def test_what_runs_at_one_limit_runs_at_larger_ones(self):
        text = "input U[r,c]\nd[c] = sum[r] U[r,c]\nW[] = max[i,k] U[i+1,k]\nX[] = max[i,k] U[k,i+1]\n"
        for memory, threads in (("9MB", "1"), ("9MB", "4"), ("20MB", "2"), ("21.8MB", "2"), ("40MB", "2"), ("40MB", "16"),
                                ("100MB", "32")):
            with self.subTest(memory=memory, threads=threads):
                ran = self.run_within(memory, text, "--dim", "r=4000", "--dim", "c=8000", "--threads", threads)
                self.assertLess(ran["measured"]["tasks"], 3000)

    def test_tensors_are_computed_again_where_there_is_no_room_to_keep_them(self):
        layers = 24
        lines = ["dims b=2000 h=500 k=500", "input X[b,h], W[h,k]", "A0[b,h] = X[b,h] * 2"]
        lines += [f"A{n}[b,k] = tanh(sum[h] A{n - 1}[b,h] * W[h,k] * 0.05) * (uniform({n}) < 0.9)"
                  for n in range(1, layers + 1)]
        lines += [f"loss[] = sum[b,k] sq(A{layers}[b,k])", "gradient G = loss wrt W", "output loss, G"]
        program = self.text_file("deep.ein", "\n".join(lines))
        given = ("run", program, "--random", "1", "--json", "--out", f"G={self.path('g.npy')}")
        free = json.loads(self.succeed(*given).out)
        expected = np.load(self.path("g.npy"))
        self.assertEqual(free["recomputed"], [])
        for memory in (220e6, 190e6):
            with self.subTest(memory=memory):
                limited = json.loads(self.succeed(*given, "--memory", f"{memory:.0f}").out)
                self.assertGreater(len(limited["recomputed"]), 0)
                self.assertEqual(limited["measured"]["bytes_spilled"], 0, "nothing has to go to disk")
                again = sum(tensor["flops"] for tensor in limited["recomputed"])
                flops = sum(vertex["flops"] for vertex in free["vertices"])
                self.assertLess(again, flops, "at most once more")
                anonymous = limited["peak_memory"]["measured"] - limited["measured"]["file_pages_per_rank"][0]
                self.assertLess(anonymous, memory + 24e6)
                np.testing.assert_allclose(np.load(self.path("g.npy")), expected, rtol=1e-4, atol=1e-3)
        text = self.succeed("explain", program, "--memory", "190MB", "--sites", "1").out
        self.assertRegex(text, r"recomputed +A\d.* instead of being kept: .*flop, .* % of all")
        result = job(2, *given[:-2], "--memory", "95MB", "--out", f"G={self.path('j.npy')}", "--threads", "1")
        self.assertEqual(result.code, 0, result)
        np.testing.assert_allclose(np.load(self.path("j.npy")), expected, rtol=1e-4, atol=1e-3)

    def test_a_refusal_says_why_and_what_is_enough(self):
        chain = [f"Y{t + 1}[i,j] = sum[k] Y{t}[i,k] * X[k,j]" for t in range(300)]
        cases = [("input A[i,j]\nd[i] = A[i,i]", {"i": 3000, "j": 3000}, "'i' of d cannot be cut: it stands twice"),
                 ("input A[i]\ndims z=3000000\nd[z] = A[z+1]", {"i": 3000001}, None),
                 ("input A[i,j]\nB[i,j] = A[i,j] + 1\nd[i] = B[i,i]", {"i": 3000, "j": 3000}, "'i' of d cannot be cut"),
                 ("input A[i]\nd[i] = A[2999999-i]", {"i": 3000000}, None),
                 ("input A[i,j]\ndims z=1999\nd[z,j] = A[z+1,j]\nY[j,z] = d[z,j] * 2", {"i": 2000, "j": 3}, None),
                 ("input A[i,j], B[z]\ndims z=2999\nd[i] = sum[j] A[i,j]\nS[z] = A[z+1,z+1] + B[z]", {"i": 3000, "j": 3000},
                  "'z' of S cannot be cut: it stands twice"),
                 ("\n".join(["dims i=8 j=8", "input X[i,j]", "Y0[i,j] = X[i,j] * 1", *chain, "output Y300"]), {},
                  "the bookkeeping of 303 tasks")]
        for text, dims, reason in cases:
            program = self.text_file("program.ein", text)
            for memory, threads in (("1kB", "1"), ("1MB", "8"), ("9MB", "2")):
                given = ("run", program, "--random", "1", "--threads", threads,
                         *(f"--dim={name}={size}" for name, size in dims.items()), "--memory")
                with self.subTest(text=text[:60], memory=memory, threads=threads):
                    result = einrel(*given, memory)
                    if result.code == 0:
                        continue
                    if reason:
                        self.assertIn(reason, result.err)
                    enough = re.search("give at least ([0-9.]+ .?B)", result.err).group(1).replace(" ", "")
                    self.succeed(*given, enough)


if __name__ == "__main__":
    main()
