"""What `einrel train` makes of noise that is for learning only, of first lines of tables, and of batches that only a later step would meet."""

import json

import numpy as np

import einrel_process
from einrel_process import job, main
from train_test import PROGRAM, TrainTest, evaluated

# PROGRAM, whose inputs are dropped with a probability of one half, in steps.
DROPOUT = PROGRAM.replace("state W", "scalar training\nD[b,f] = where(training, where(uniform(7) < 0.5, 2, 0), 1)\nstate W", 1).replace(
    "X[b,f] * W[f,l]", "X[b,f] * D[b,f] * W[f,l]")
ALWAYS = DROPOUT.replace("scalar training\n", "").replace("where(training, where(uniform(7) < 0.5, 2, 0), 1)",
                                                          "where(uniform(7) < 0.5, 2, 0)")
# Its inputs are centred by what is their mean in the batch.
CENTRED = DROPOUT.replace("Z[b,l]", "M[f] = mean[b] (X[b,f] * D[b,f])\nZ[b,l]", 1).replace(
    "X[b,f] * D[b,f] * W", "(X[b,f] * D[b,f] - M[f]) * W")


class Noise(TrainTest):
    def setUp(self):
        super().setUp()
        self.dropout = self.text_file("dropout.ein", DROPOUT)
        self.always = self.text_file("always.ein", ALWAYS)
        self.tests = [word.replace("--feed", "--test") for word in self.feeds]

    def learnt(self, folder):
        states = self.states(folder)
        return states["W"].astype(float), states["B"].astype(float)

    def test_it_is_in_steps_and_not_in_tests(self):
        ways = (self.succeed, ["--sites", "2"], ["--sites", "2", "--local-steps", "2"], lambda *given: job(2, *given),
                ["--keep-last", "--planner", "data", "--sites", "4"])
        for number, way in enumerate(ways):
            with self.subTest(way=number):
                more, run = (way, None) if isinstance(way, list) else ([], way)
                options = ["--epochs", "2", *self.tests, *more]
                got = self.train(*options, "--save", self.path(f"save{number}"), program=self.dropout, run=run, batch=16)["epochs"][-1]
                loss, accuracy = evaluated(*self.learnt(f"save{number}"), self.x.astype(float), self.y)
                np.testing.assert_allclose([got["test"]["loss"], got["test"]["accuracy"]], [loss, accuracy], rtol=1e-5)
                noisy = self.train(*options, program=self.always, run=run, batch=16)["epochs"][-1]
                self.assertEqual(got["training"], noisy["training"])  # the same numbers, in steps
                self.assertGreater(abs(noisy["test"]["loss"] - loss), 0.01)

    def test_statistics_of_training_are_without_it_too(self):
        centred = self.text_file("centred.ein", CENTRED)
        got = self.train("--epochs", "2", *self.tests, "--calibrate-with", "100", "--save", self.path("save"), program=centred)
        loss, _ = evaluated(*self.learnt("save"), self.x - self.x.mean(0, dtype=float), self.y)
        np.testing.assert_allclose(got["epochs"][-1]["test"]["loss"], loss, rtol=1e-5)

    def test_a_program_that_does_not_say_where_it_belongs_is_noted_once(self):
        begin = [*self.feeds, "--batch", "b=10", "--epochs", "2"]
        noted = "note: the tests have the random numbers of `D[b,f] = where(uniform(7) < 0.5, 2, 0)` (line 3, column 1)"
        for more in ([], ["--sites", "2", "--local-steps", "2"]):
            self.assertEqual(self.succeed("train", self.always, *begin, *self.tests, *more).err.count(noted), 1)
        for program, more in ((self.always, []), (self.dropout, self.tests), (self.program, self.tests)):  # first values are none
            self.assertNotIn("random", self.succeed("train", program, *begin, *more).err)
        unused = self.text_file("unused.ein", ALWAYS.replace("output loss, accuracy", "N[] = normal(1)\noutput loss, N")
                                .replace("* D[b,f]", ""))
        self.assertNotIn("random", self.succeed("train", unused, *begin, *self.tests, "--report", "loss").err)

    def test_run_takes_it_as_no_training_unless_told(self):
        def loss(program, *more):
            run = self.succeed("run", program, "--in", f"X={self.path('x10.npy')}", "--in", f"Y={self.path('y10.npy')}", "--json", *more)
            return json.loads(run.out)["outputs"]["loss"]["min"]

        np.save(self.path("x10.npy"), self.x[:10])
        np.save(self.path("y10.npy"), self.y[:10])
        self.assertEqual(loss(self.dropout), loss(self.program))
        self.assertEqual(loss(self.dropout, "--scalar", "training=0"), loss(self.program))
        self.assertEqual(loss(self.dropout, "--scalar", "training=1"), loss(self.always))
        self.assertNotEqual(loss(self.always), loss(self.program))
        self.refuse(1, "run", self.dropout, "--random", "1", "--scalar", "training=0.5", mentions=["'training' is 1 or 0"])

    def test_nobody_else_says_it(self):
        self.refuse(1, "train", self.dropout, *self.feeds, "--batch", "b=10", "--epochs", "1", "--scalar", "training=0",
                    mentions=["--scalar training", "1 in its steps, and 0 in its tests"])
        for value, code in (("1", 1), ("0.5", 1), ("0", 0)):
            program = self.text_file("given.ein", DROPOUT.replace("scalar training", f"scalar training = {value}"))
            said = einrel_process.einrel("check", program)
            self.assertEqual(said.code, code, said)
            self.assertEqual("leave its value out" in said.err, code == 1, said)


class FirstLines(TrainTest):
    def setUp(self):
        super().setUp()
        self.lin = self.text_file("lin.ein", "input X[b,f], Y[b]\ndims f=2\nstate W[f] = f32(0)\nn[] = sum[b] (0 * Y[b] + 1)\n"
                                             "loss[] = mean[b] sq((sum[f] X[b,f] * W[f]) - Y[b])\n"
                                             "minimize loss over W by sgd(0)\noutput loss")

    def read(self, text, *more):
        table = self.text_file("t.csv", text)
        return einrel_process.einrel("train", self.lin, "--feed", f"X={table}:1..2", "--feed", f"Y={table}:3", "--batch", "b=1",
                                     "--epochs", "1", "--json", *more)

    def test_what_they_are_taken_for_is_said_and_can_be_changed(self):
        rows = "1,2,3\n4,5,6\n"
        for first, looks_like_names in (("0,1,2\n", False), ("a,b,c\n", True)):
            for header in (None, "yes", "no"):
                said = self.read(first + rows, *(["--header", header] if header else []))
                with self.subTest(first=first, header=header):
                    if header == "no" and looks_like_names:
                        self.assertEqual(said.code, 1, said)
                        self.assertIn("t.csv, line 1: column 1: 'a' is no number", said.err)
                        continue
                    has_names = looks_like_names if header is None else header == "yes"
                    report = json.loads(said.out)
                    self.assertEqual(report["steps"], 2 if has_names else 3)
                    targets = [3, 6] if has_names else [2, 3, 6]
                    self.assertAlmostEqual(report["epochs"][0]["training"]["loss"], np.mean(np.square(targets)))
                    notes = [] if header else [f"note: {self.path('t.csv')}: " +
                                               ("2 samples below a line of names" if has_names else "3 samples with the first line")]
                    self.assertEqual([line.split(";")[0] for line in said.err.splitlines()], notes)

    def test_names_that_are_numbers_name_columns(self):
        table = self.text_file("years.csv", "2001,2002,2003\n1,2,3\n4,5,6\n")
        said = self.succeed("train", self.lin, "--feed", f"X={table}:2001..2002", "--feed", f"Y={table}:2003", "--batch", "b=1",
                            "--epochs", "1", "--header", "yes", "--json")
        self.assertAlmostEqual(json.loads(said.out)["epochs"][0]["training"]["loss"], (9 + 36) / 2)

    def test_it_is_yes_or_no(self):
        self.assertIn("write yes or no", self.read("1,2,3\n", "--header", "true").err)


class BeforeTheFirstStep(TrainTest):
    """What an epoch, or its test, would meet at its end."""

    def refuse_training(self, program, *arguments, mentions):
        said = self.refuse(1, "train", self.text_file("p.ein", program), *self.feeds, "--batch", "b=16", "--epochs", "1",
                           "--save", self.path("save"), *arguments, mentions=mentions)
        self.assertNotIn("checkpoint", said.err)
        return said

    def test_a_state_of_the_samples_of_a_batch(self):
        keeps = PROGRAM.replace("minimize", "state P[b,f] = 0\nnext P[b,f] = X[b,f]\nprev[] = mean[b,f] P[b,f]\nminimize").replace(
            "accuracy\n", "accuracy, prev\n")
        state = ["'P'", "`state P[b,f] = 0` (line 9, column 1)"]
        tests = [word.replace("--feed", "--test") for word in self.feeds]
        for more in ([], ["--sites", "2"]):
            self.refuse_training(keeps, "--keep-last", *more, mentions=[*state, "(16, 6)", "(4, 6)", "--keep-last", "4 samples"])
            self.refuse_training(keeps, "--hold-out", "0.2", *more, mentions=[*state, "(4, 6)", "--hold-out", "last batch of the tests"])
            self.refuse_training(keeps, *tests, *more, mentions=[*state, "--test", "last batch of the tests, of 4 samples"])
        self.succeed("train", self.text_file("p.ein", keeps), *self.feeds, "--batch", "b=16", "--epochs", "1", "--hold-out", "0.32")
        self.succeed("train", self.text_file("p.ein", keeps), *self.feeds, "--batch", "b=16", "--epochs", "1", "--hold-out", "0.2",
                     "--report", "loss")  # tests do not need it
        centred = keeps.replace("mean[b,f] P[b,f]", "mean[b,f] (P[b,f] - M[f])").replace("Z[b,l]", "M[f] = mean[b] X[b,f]\nZ[b,l]", 1)
        centred = centred.replace("X[b,f] * W[f,l]", "(X[b,f] - M[f]) * W[f,l]")
        statistic = centred.replace("M[f] = mean[b] X[b,f]", "M[f] = mean[b] (X[b,f] + P[b,f])").replace("state P[b,f] = 0\n", "").replace(
            "state W", "state P[b,f] = 0\nstate W", 1)
        self.refuse_training(statistic, "--hold-out", "0.32", "--calibrate-with", "20", mentions=["'P'", "20 samples of --calibrate-with"])

    def test_a_program_that_is_none_for_fewer_samples(self):
        pairs = PROGRAM.replace("b=10", "b=16").replace("loss[]", "dims c=8\nV[g,c,f] = view X[(g c),f]\nspread[] = mean[g,c,f] sq(V[g,c,f])\nloss[]", 1).replace(
            "accuracy\n", "accuracy, spread\n")
        self.refuse_training(pairs, "--keep-last", mentions=["p.ein:8:20", "last batch of an epoch, of 4 samples", "--keep-last"])
        self.refuse_training(pairs, "--hold-out", "0.2", mentions=["last batch of the tests, of 4 samples", "--hold-out"])
        self.refuse_training(pairs, "--hold-out", "0.32", "--sites", "2", "--local-steps", "2", "--calibrate-with", "9",
                             mentions=["9 samples of --calibrate-with"])
        self.succeed("train", self.text_file("p.ein", pairs), *self.feeds, "--batch", "b=16", "--epochs", "1", "--hold-out", "0.32")

    def test_fewer_samples_than_sites_are_computed_all_the_same(self):
        for name, array in (("x", self.x), ("y", self.y.astype(np.uint8))):
            np.save(self.path(f"{name}.npy"), array[:65])
        for more in (["--keep-last"], ["--hold-out", "0.5076"], ["--hold-out", "0.26", "--keep-last", "--calibrate-with", "3"]):
            want = self.train("--epochs", "2", *more, batch=16)
            for planner in ("data", "fsdp", "eindecomp"):
                with self.subTest(more=more, planner=planner):
                    got = self.train("--epochs", "2", "--sites", "4", "--planner", planner, *more, batch=16)
                    for epoch, other in zip(got["epochs"], want["epochs"], strict=True):
                        for what in ("training", "test"):
                            np.testing.assert_allclose(list(epoch[what].values()), list(other[what].values()), rtol=1e-4)


if __name__ == "__main__":
    main()
