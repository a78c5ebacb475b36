"""Ranks that are told, or find, different things: an error that names the first of them, before anything is computed."""

import os
import subprocess

import numpy as np

import einrel_process
from einrel_process import MPIRUN, ProgramTest, main

PRODUCT = """input A[i,j], B[j,k]
scalar s = 2
C[i,k] = sum[j] s * A[i,j] * B[j,k]
"""
STEPS = """dims i=6
state X[i] = 1
next X[i] = 2 * X[i]
"""


def jobs_of(*ranks):
    """Runs a job in which each rank has a command line of its own."""
    einrel_process.cases += 1
    words = [MPIRUN]
    for number, arguments in enumerate(ranks):
        words += [":"] * (number > 0) + ["-n", "1", einrel_process.PROGRAM, *map(os.fspath, arguments)]
    return einrel_process.Result(subprocess.run(words, capture_output=True, timeout=100, check=False))


class RanksThatDiffer(ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("product.ein", PRODUCT)
        self.sizes = [word for label in "ijk" for word in ("--dim", f"{label}=40")]
        self.run = ["run", self.program, "--random", "1", *self.sizes]

    def array(self, name, values):
        np.save(self.path(name), np.asarray(values, np.float32))
        return self.path(name)

    def refuse_job(self, mentions, *ranks):
        result = jobs_of(*ranks)
        self.assertEqual((result.code, result.out), (1, ""), result)
        self.assertEqual(result.err.count("error: "), 1, result)
        self.assertIn("computes something else than rank 0", result.err)
        for text in mentions:
            self.assertIn(text, result.err, result)
        return result

    def test_options(self):
        base = ["run", self.program, *self.sizes[2:]]
        for option, on_0, on_1 in (("--random", "1", "2"), ("--dim", "i=40", "i=41"), ("--scalar", "s=3", "s=4"),
                                   ("--planner", "single", "data"), ("--memory", "20MB", "30MB"), ("--cost", "bytes", "floats"),
                                   ("--repeat", "2", "3"), ("--out", f"C={self.path('c.npy')}", f"C={self.path('d.npy')}")):
            rest = ([] if option == "--random" else ["--random", "1"]) + ([] if option == "--dim" else ["--dim", "i=40"])
            with self.subTest(option=option):
                self.refuse_job([f"{option} is ", on_0, on_1],
                                [*base, *rest, option, on_0], [*base, *rest, option, on_1])
        self.refuse_job(["--scalar is s=3 there, and not given on rank 0"], self.run, [*self.run, "--scalar", "s=3"])
        self.refuse_job(["--steps is 3 there, and 2 on rank 0"],
                        *(["run", self.text_file("steps.ein", STEPS), "--steps", steps] for steps in "23"))
        self.refuse_job(["SUBSCRIPTS is ik there, and ij on rank 0"],
                        *(["einsum", subscripts, self.array("m.npy", np.eye(4))] for subscripts in ("ij", "ik")))
        self.refuse_job(["the command is einsum there, and run on rank 0"], self.run,
                        ["einsum", "ij", self.array("m.npy", np.eye(4))])
        self.assertEqual(os.listdir(self.folder).count("c.npy"), 0)

    def test_an_option_that_only_one_rank_is_given_wrongly(self):
        for wrong, words in ((["--never"], "no option '--never'"), (["--memory", "much"], "--memory"),
                             (["--dim", "i=40"], "--dim")):
            with self.subTest(wrong=wrong):
                result = jobs_of(self.run, [*self.run, *wrong])
                self.assertEqual((result.code, result.out), (1, ""), result)
                self.assertEqual(result.err.count("error: "), 1, result)
                self.assertIn(words, result.err)

    def test_programs(self):
        other = self.text_file("other.ein", PRODUCT.replace("s * A", "s + A"))
        self.refuse_job(["it has another program"], self.run, ["run", other, *self.run[2:]])
        # As rank 0 has it where there is none, as on a node that does not share the folder; and the same by another path.
        alone = jobs_of(self.run)
        for path in (self.path("none.ein"), self.text_file("copy.ein", PRODUCT)):
            result = jobs_of(self.run, ["run", path, *self.run[2:]])
            self.assertEqual((result.code, result.err), (0, ""), result)
            self.assertEqual(result.out.split()[:3], alone.out.split()[:3])

    def test_inputs(self):
        a = np.random.default_rng(1).standard_normal((40, 40))
        b = self.array("b.npy", a + 1)
        one_other = a.copy()
        one_other[39, 39] += 1
        for name, values, words in (("one.npy", one_other, "it has other elements of input A"),
                                    ("last.npy", one_other[:, :39], "input A is f32 (40, 39) there, and f32 (40, 40) on rank 0")):
            commands = [["run", self.program, "--in", f"A={self.array(file, values)}",
                         "--in", f"B={self.array('b2.npy', (a + 1)[:values.shape[1]])}", "--out", f"C={self.path('c.npy')}"]
                        for file, values in (("a.npy", a), (name, values))]
            if name == "last.npy":  # each of them is right by itself
                commands[0][5] = f"B={b}"
            self.refuse_job([words], *commands)
            self.assertFalse(os.path.exists(self.path("c.npy")))
        self.refuse_job(["it has other elements of input x"],
                        *(["einsum", "ij->i", self.path(file)] for file in ("a.npy", "one.npy")))
        # Elsewhere, and in another order in the file, but the same.
        np.save(self.path("turned.npy"), np.asfortranarray(a.astype(np.float32)))
        result = jobs_of(*(["run", self.program, "--in", f"A={self.path(file)}", "--in", f"B={b}",
                            "--out", f"C={self.path('c.npy')}"] for file in ("a.npy", "turned.npy")))
        self.assertEqual(result.code, 0, result)
        np.testing.assert_allclose(np.load(self.path("c.npy")), 2 * a @ (a + 1), rtol=1e-3, atol=1e-3)

    def test_states_and_samples(self):
        program = self.text_file("steps.ein", STEPS)
        for name, steps in (("one", "1"), ("two", "2")):
            self.succeed("run", program, "--steps", steps, "--save", self.path(f"{name}.safetensors"))
        self.refuse_job(["the number of steps done before is 2 there, and 1 on rank 0"],
                        *(["run", program, "--load", self.path(f"{name}.safetensors")] for name in ("one", "two")))
        learns = self.text_file("learns.ein", "dims f=3\ninput X[b,f], Y[b]\nstate W[f] = 0\n"
                                "loss[] = mean[b] sq((sum[f] X[b,f] * W[f]) - Y[b])\nminimize loss over W by sgd(0.1)\n")
        train = ["train", learns, "--batch", "b=2", "--epochs", "1", "--feed", f"Y={self.array('y.npy', np.ones(4))}"]
        self.refuse_job(["it has other elements of the samples of X"],
                        *([*train, "--feed", f"X={self.array(f'x{n}.npy', np.full((4, 3), n))}"] for n in (1, 2)))
        same = [*train, "--feed", f"X={self.path('x1.npy')}"]
        self.refuse_job(["--seed is 2 there, and not given on rank 0"], [*same], [*same, "--seed", "2"])

    def test_plans(self):
        plans = []
        for name, planner in (("by_data.json", "data"), ("by_rows.json", "single")):
            report = self.succeed("explain", self.program, *self.sizes, "--sites", "2", "--planner", planner,
                                  *(["--batch", "j"] if planner == "data" else []), "--json").out
            plans.append([*self.run, "--plan", self.text_file(name, report)])
        result = self.refuse_job(["it has another plan", "help: "], *plans)
        self.assertNotIn("C  f32", result.out)

    def test_three_ranks_of_which_two_differ(self):
        result = self.refuse_job(["rank 1 computes something else than rank 0, and so does rank 2: --scalar is s=3 there"],
                                 self.run, *([*self.run, "--scalar", f"s={n}"] for n in (3, 4)))
        self.assertIn("not given on rank 0", result.err)


if __name__ == "__main__":
    main()
