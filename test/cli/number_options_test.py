"""Every option that takes a number, of every command, at the limits of what numbers can be: it works, or is refused."""

import os
import re
import subprocess

import numpy as np

import einrel_process
from einrel_process import ProgramTest, main

NUMBERS = ["0", "-0", "-1", "1", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
           "9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775808",
           "-9223372036854775809", "1e400", "-1e400", "1e-400", "1e308", "0.5", "nan", "-nan", "inf", "-inf", "", " ", "x", "1x", "0x10"]
# Ends after one step whatever is asked for.
STEPS = """dims f=2
input X[b,f]
scalar eta = 0.1
state w[f] = f32(1)
loss[] = mean[b] sq(sum[f] X[b,f] * w[f])
minimize loss over w by sgd(eta)
until loss[] >= 0
output loss
"""
TRAINED = STEPS.replace("until", "#")
# What the placeholder of a number looks like in --help.
NUMBER = re.compile(r"\b(N|J|SIZE|SECONDS|SHARE|SEED|LABEL=N|NAME=X|SITE=SPEED):|the number of ")


class NumberOptions(ProgramTest):
    def setUp(self):
        super().setUp()
        np.save(self.path("x.npy"), np.ones((8, 2), np.float32))
        steps, trained = self.text_file("steps.ein", STEPS), self.text_file("trained.ein", TRAINED)
        product = self.text_file("product.ein", "dims i=2 k=2\ninput X[i,j]\nZ[i,k] = sum[j] X[i,j] * X[k,j]\n")
        x = f"X={self.path('x.npy')}"
        run = ["run", steps, "--in", x]
        train = ["train", steps, "--feed", x, "--epochs", "1", "--batch", "b=2"]
        local = ["train", trained, "--feed", x, "--epochs", "1", "--batch", "b=2", "--sites", "2"]
        random = ["run", product, "--random", "1", "--dim", "j=2"]
        einsum = ["einsum", "bi,bj->ij", self.path("x.npy"), self.path("x.npy")]
        save = ["--save", self.path("save")]
        explain = ["explain", product, "--dim", "j=2"]
        self.options = {
            "run": {"--threads": run, "--sites": run, "--memory": run, "--steps": run, "--repeat": random, "--timeout": run,
                    "--random": ["run", product, "--dim", "j=2"], "--dim j=": ["run", product, "--random", "1"],
                    "--scalar eta=": run},
            "train": {"--threads": train, "--sites": train, "--memory": train, "--timeout": train, "--batch b=": train[:6],
                      "--epochs": [*train[:4], "--batch", "b=2"], "--hold-out": train, "--seed": train,
                      "--calibrate-with": [*train, "--hold-out", "0.5"], "--save-every": [*train, *save],
                      "--local-steps": local, "--dim f=": train, "--scalar eta=": train},
            "explain": {"--sites": explain, "--memory": explain, "--steps": explain, "--dim j=": ["explain", product],
                        "--slow 0=": [*explain, "--simulate"]},
            "check": {"--dim j=": ["check", product]},
            "einsum": {"--threads": einsum, "--sites": einsum, "--memory": einsum, "--repeat": einsum, "--timeout": einsum},
            "sql": {"--dim j=": ["sql", product], "--scalar eta=": ["sql", steps, "--dim", "b=8"]},
            "calibrate": {"--threads": None},  # would measure; see test_threads_of_calibrate
        }

    def test_the_table_has_them_all(self):
        for command, known in self.options.items():
            said = self.succeed(command, "--help").out
            options = re.findall(r"^  (?:-\w,)?(--[a-z-]+) TEXT(?: \.\.\.)?(.*(?:\n {6,}.*)*)", said, re.M)
            self.assertTrue(options, said)
            numbers = {option for option, text in options if NUMBER.search(text)}
            self.assertEqual(numbers, {option.split()[0] for option in known}, command)

    def end_of(self, arguments):
        """The exit code; 0 for what would go on for long. And what was said."""
        einrel_process.cases += 1
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "XDG_CONFIG_HOME": os.devnull}
        try:
            done = subprocess.run([einrel_process.PROGRAM, *arguments], capture_output=True, text=True, timeout=3, env=environment)
        except subprocess.TimeoutExpired:
            return 0, ""
        return done.returncode, done.stderr

    def test_no_number_is_a_fault(self):
        for command, known in self.options.items():
            for option, begin in known.items():
                for number in NUMBERS if begin else []:
                    name, _, label = option.partition(" ")
                    code, said = self.end_of([*begin, name, label + number])
                    with self.subTest(command=command, option=option, number=number):
                        self.assertIn(code, (0, 1, 2), said)
                        if code == 1:
                            self.assertRegex(said, "^error: ")
                        if code == 2:  # a number that is one, but for which there is no memory, or a step of that size
                            self.assertRegex(said, "memory|diverged")

    def test_numbers_that_are_none_are_refused(self):
        for command, known in self.options.items():
            for option, begin in known.items():
                for number in ("", " ", "x", "1x", "1e400") if begin else []:
                    name, _, label = option.partition(" ")
                    code, said = self.end_of([*begin, name, label + number])
                    with self.subTest(command=command, option=option, number=number):
                        self.assertEqual(code, 1, said)
                        self.assertIn(name, said)

    def test_threads_of_calibrate(self):
        for number in ("0", "-1", "9223372036854775808", "1e400", "nan", "x"):
            self.refuse(1, "calibrate", "--threads", number, mentions=["--threads"])


if __name__ == "__main__":
    main()
