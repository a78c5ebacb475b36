"""The memory of a plan: one number, wherever it is shown, and where a plan is refused for it."""

import json
import random

from einrel_process import ProgramTest, job, main

SITES = 3
PLANNERS = ("sqrt", "data", "eindecomp")


def random_program(seed):
    """Two products, and between them what is computed element by element."""
    chance = random.Random(seed)
    extents = " ".join(f"{label}={chance.randint(5, 60)}" for label in "bfhl")
    reduction = chance.choice(("softmax[h](Y[b,h])", "Y[b,h] - mean[h] Y[b,h]", "Y[b,h] * (max[b] Y[b,h])"))
    return (f"dims {extents}\ninput X[b,f], W[f,h], V[h,l], c[h]\nY[b,h] = relu((sum[f] X[b,f] * W[f,h]) + c[h])\n"
            f"S[b,h] = {reduction}\nZ[b,l] = sum[h] S[b,h] * V[h,l]\noutput S, Z\n")


class PlanMemory(ProgramTest):
    def plans(self, command, *arguments):
        return json.loads(self.succeed(command, self.program, *arguments, "--json").out)

    def test_is_one_number(self):
        for seed in range(2):
            self.program = self.text_file("program.ein", random_program(seed))
            on_sites = ("--sites", str(SITES))
            table = self.plans("explain", *on_sites, *(f"--planner={planner}" for planner in ("single", *PLANNERS)))
            for planner, shown in zip(PLANNERS, table["plans"][1:]):
                number = shown["peak_memory"]["predicted"]
                swept = self.plans("explain", "--sites", f"{SITES},1", "--planner", planner)["sweep"][0]
                self.assertEqual(swept["peak_memory"], number, (seed, planner))
                arguments = (*on_sites, "--planner", planner)
                if planner == "eindecomp":  # beside others it starts from their plans, too
                    shown = self.plans("explain", *arguments)["plans"][0]
                    number = shown["peak_memory"]["predicted"]
                for plans in (self.plans("explain", *arguments), self.plans("run", *arguments, "--random", "1")):
                    self.assertEqual(plans["plans"][0]["peak_memory"], shown["peak_memory"], (seed, planner))
                on_ranks = json.loads(job(SITES, "run", self.program, "--planner", planner, "--random", "1", "--json").out)
                self.assertEqual(on_ranks["plans"][0]["peak_memory"]["predicted"], number, (seed, planner))

    def test_is_what_a_plan_is_refused_for(self):
        self.program = self.text_file("program.ein", random_program(1))
        number = self.plans("explain", "--planner", "data", "--sites", "2")["plans"][0]["peak_memory"]["predicted"]
        little = ("--planner", "data", "--memory", str(number - 1))
        alone = self.refuse(1, "explain", self.program, *little, "--sites", "2", mentions=["does not fit", "a site"]).err
        ran = job(2, "run", self.program, "--random", "1", *little)
        self.assertEqual(ran.code, 1)
        self.assertTrue(ran.err.startswith(alone), ran.err)
        row = self.plans("explain", *little, "--sites", "2,8")["sweep"][0]
        self.assertIn(row["refused"], alone)
        self.plans("explain", "--planner", "data", "--memory", str(number), "--sites", "2")

    def test_that_a_plan_fits_is_enough_where_it_may_spill(self):
        self.program = self.text_file("flipped.ein", "dims i=300 j=200 k=100\ninput X[i,j], W[j,k]\nY[i,k] = sum[j] X[299-i,j] * W[j,k]\n"
                                      "Z[i,k] = Y[299-i,k] + Y[i,k]\nS[u,k] = Z[3*u+1,k]\nR[k] = sum[u] S[u,k]\noutput R, Z\n")
        for more in ((), ("--spill", self.folder)):
            ran = job(4, "run", self.program, "--random", "3", "--cost", "bytes", "--memory", "272000", *more)
            self.assertEqual(ran.code, 0, ran.err)

    def test_of_parts_of_one_process_costs_what_the_process_does(self):
        self.program = self.text_file("product.ein", "dims i=1200 j=1200 k=1200\ninput A[i,j], B[j,k]\n"
                                      "C[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n")
        for command, more in (("explain", ()), ("run", ("--random", "1"))):
            whole = self.plans(command, *more)
            parts = self.plans(command, *more, "--memory", "9MB")
            whole, parts = (report.get("plans", [report])[0] for report in (whole, parts))
            self.assertGreater(parts["sites"], 1)
            self.assertEqual(parts["cost"]["seconds"], whole["cost"]["seconds"])
            self.assertEqual(parts["cost"]["bytes"], 0)
        shown = self.succeed("explain", self.program, "--memory", "9MB", "--verbose").out
        self.assertIn("parts of one process", shown)
        self.assertNotIn("next: ", shown)

    def test_that_no_plan_has_is_said_at_once(self):
        self.program = self.text_file("wide.ein", "dims i=4000 j=4000\ninput A[i,j]\nB[i,j] = exp(A[i,j])\noutput B\n")
        self.refuse(1, "explain", self.program, "--sites", "4", "--memory", "31MB",  # of 128 MB
                    mentions=["none can fit: while B is computed", "takes 32 MB on a site", "over 4 sites", "31 MB a site"])

    def test_of_very_many_chunks_is_told_to_be_of_whole_tensors(self):
        lines = ["dims i=4096", "input X0[i]"] + [f"X{n + 1}[i] = exp(X{n}[{4095}-i])" for n in range(70)]
        self.program = self.text_file("many.ein", "\n".join([*lines, "output X70", ""]))
        note = "not made, of more than 65536 chunks"
        self.assertIn(note, self.succeed("explain", self.program, "--sites", "1024", "--planner", "sqrt").out)
        self.assertNotIn(note, self.succeed("explain", self.program, "--sites", "8", "--planner", "sqrt").out)


if __name__ == "__main__":
    main()
