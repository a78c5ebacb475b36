"""Passes over programs: shown, and left out.

Usage: passes_test.py EINREL
"""

import re

import numpy as np

from einrel_process import ProgramTest, main

CHAIN = (
    "dims i=50 j=50 k=50 l=1\ninput A[i,j], B[j,k], C[k,l]\n"
    "D[i,l] = sum[j,k] A[i,j] * B[j,k] * C[k,l]\nZ[i,l] = exp(D[i,l] / 1000) + 1\noutput Z\n"
)
OPTIONAL = ("selections", "order", "factors", "recompute", "fusion")
TRAINED = (
    "dims f=3\ninput X[b,f], y[b]\nstate w[f] = f32(0)\nloss[] = mean[b] sq(sum[f] X[b,f] * w[f] - y[b])\n"
    "minimize loss over w by sgd(0.1)\noutput loss\n"
)


class Passes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.program = self.text_file("chain.ein", CHAIN)

    def passes(self, *arguments):
        """By name, vertices before and after."""
        shown = self.succeed(*arguments, "--show-passes").out
        return {
            name: (int(before), int(after))
            for name, before, after in re.findall(r"^  (\w+) +(\d+) -> (\d+) ", shown, re.MULTILINE)
        }

    def test_are_listed(self):
        listed = self.succeed("list", "passes").out
        names = re.findall(r"^(\w+)", listed, re.MULTILINE)
        self.assertEqual(names, ["gradient", "minimize", "needed", *OPTIONAL[:3], "joins", *OPTIONAL[3:]])
        self.assertEqual(listed.count("must run"), 4)

    def test_explain_run_and_train_show_what_each_made(self):
        for arguments in (
            ("explain", self.program),
            ("explain", self.program, "--sites", "2"),
            ("explain", self.program, "--sites", "2", "--planner", "table-1"),
            ("run", self.program, "--random", "1"),
            ("run", self.program, "--random", "1", "--sites", "2"),
        ):
            with self.subTest(arguments=arguments):
                made = self.passes(*arguments)
                self.assertEqual(made["order"], (5, 6))  # D is two products of two factors
                self.assertEqual(made["needed"], (5, 5))
        rng = np.random.default_rng(1)
        feeds = []
        for name, shape in (("X", (8, 3)), ("y", (8,))):
            np.save(self.path(name + ".npy"), rng.normal(size=shape).astype(np.float32))
            feeds += ["--feed", f"{name}={self.path(name + '.npy')}"]
        trained = self.text_file("trained.ein", TRAINED)
        options = ("--batch", "b=4", "--epochs", "1")
        for more in ((), ("--local-steps", "1", "--sites", "2")):
            made = self.passes("train", trained, *feeds, *options, *more)
            self.assertGreater(made["gradient"][1], made["gradient"][0])
            self.assertGreater(made["minimize"][1], made["minimize"][0])

    def test_left_out_change_how_but_not_what_is_computed(self):
        expected = None
        for skipped in ((), *((name,) for name in OPTIONAL), OPTIONAL):
            options = [f"--skip-pass={name}" for name in skipped]
            out = self.path("z.npy")
            self.succeed("run", self.program, "--random", "1", "--out", f"Z={out}", *options)
            found = np.load(out)
            expected = found if expected is None else expected
            np.testing.assert_allclose(found, expected, rtol=1e-4)
            made = self.passes("run", self.program, "--random", "1", *options)
            self.assertTrue(made.keys().isdisjoint(skipped))

    def test_unknown_ones_and_those_that_must_run_are_refused_with_the_others(self):
        for name, message in (
            ("ordr", "there is no pass 'ordr'; did you mean 'order'?"),
            ("needed", "the pass 'needed' must run"),
        ):
            for command in (("explain", self.program), ("run", self.program), ("einsum", "i->", self.path("x.npy"))):
                said = self.refuse(1, *command, "--skip-pass", name).err
                self.assertIn(message, said)
                self.assertIn(", ".join(OPTIONAL), said)

    def test_programs_in_the_algebra_and_json_have_none(self):
        tra = self.text_file("p.tra", "input A[4,4] cut <2,2>\nC = transform(matNeg)(A)\n")
        for command in (("explain", tra, "--show-passes"), ("run", tra, "--skip-pass", "fusion")):
            self.assertIn(".ein programs", self.refuse(1, *command).err)
        self.assertIn("--json", self.refuse(1, "explain", self.program, "--show-passes", "--json").err)


if __name__ == "__main__":
    main()
