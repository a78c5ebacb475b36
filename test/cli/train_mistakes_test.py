"""What `einrel train` refuses, and what it says where something fails: feeds, options, checkpoints, logs."""

import csv
import json
import os
import pathlib
import re
import resource

import numpy as np

from einrel_process import einrel, job, main
from safetensors_files import dump, load, signed
from train_test import PROGRAM, TrainTest

# The same as PROGRAM, but classes are picked, so that there has to be one of that number.
PICKED = PROGRAM.replace("(sum[l] where(l == Y[b], LogP[b,l], 0))", "LogP[b,Y[b]]")

# One weight, which a step multiplies by 1 - 2 eta.
ONE = """dims b=10 f=6
input X[b,f]
scalar eta
state w[] = 1
loss[] = mean[b,f] (w[] * w[] + 0 * X[b,f])
minimize loss over w by sgd(eta)
output loss
"""
# A state that a step multiplies by 1e20, and one that is infinite from the beginning; a scalar that is 0 / 0.
GROWING = """dims b=10 f=6
input X[b,f]
state s[] = 1
state least[] = exp(1000)
m[] = mean[b,f] (0 * X[b,f])
ratio[] = m[] / m[]
next s[] = s[] * GROWTH
next least[] = least[] + m[]
output m, ratio
"""


class Refused(TrainTest):
    def refuse_training(self, *arguments, mentions=(), feeds=None, program=None, code=1):
        return self.refuse(code, "train", program or self.program, *(feeds or self.feeds), "--epochs", "1", *arguments,
                           mentions=mentions)

    def feed(self, name, values, what="X"):
        np.save(self.path(name), values)
        return [word.replace(self.path({"X": "x.npy", "Y": "y.npy"}[what]), self.path(name)) for word in self.feeds]

    def test_feeds_that_do_not_fit(self):
        batch = ["--batch", "b=10"]
        short = self.feed("short.npy", self.y[:99].astype(np.uint8), "Y")
        self.refuse_training(*batch, feeds=short, mentions=["100 samples", "99", "short.npy"])
        self.refuse_training(*batch, feeds=self.feed("wide.npy", np.zeros((100, 7), np.float32)), mentions=["f", "7"])
        self.refuse_training(*batch, feeds=self.feed("flat.npy", np.zeros(100, np.float32)), mentions=["X[b,f]", "(100,)"])
        self.refuse_training(*batch, feeds=self.feed("double.npy", self.x.astype(float)), mentions=["f64", "f32", "X"])
        self.refuse_training(*batch, feeds=self.feed("none.npy", np.zeros((0, 6), np.float32)), mentions=["0 samples"])
        none = [word.replace("y.npy", "no-y.npy") for word in self.feed("none.npy", np.zeros((0, 6), np.float32))]
        np.save(self.path("no-y.npy"), self.y[:0].astype(np.uint8))
        self.refuse_training(*batch, feeds=none, mentions=["no samples"])
        self.refuse_training(*batch, feeds=self.feeds[:2], mentions=["Y[b]", "--feed Y=FILE"])
        self.refuse_training(*batch, feeds=[*self.feeds, "--feed", "Z=z.npy"], mentions=["no input 'Z'"])
        turned = self.feed("turned.npy", self.x.T.copy())
        self.refuse_training(*batch, feeds=turned, mentions=["6 samples", "100", "(6, 100)"])
        with open(self.path("x.npy"), "rb") as file:
            data = file.read()
        with open(self.path("cut.npy"), "wb") as file:
            file.write(data[:-100])
        cut = [word.replace("x.npy", "cut.npy") for word in self.feeds]
        self.refuse_training(*batch, feeds=cut, mentions=["cut.npy"])
        free = self.text_file("free.ein", PROGRAM.replace("f=6", ""))  # its extents are those of the samples
        np.save(self.path("wide.npy"), np.zeros((9, 7), np.float32))
        np.save(self.path("few.npy"), self.y[:9].astype(np.uint8))
        test = ["--test", f"X={self.path('wide.npy')}", "--test", f"Y={self.path('few.npy')}"]
        for program in (self.program, free):
            said = self.refuse_training(*batch, *test, program=program, mentions=["--test X", "wide.npy", "(9, 7)", "(100, 6)"])
            self.assertNotIn("epoch", said.out)

    def test_samples_that_are_no_finite_numbers(self):
        x = self.x.copy()
        half = self.text_file("half.ein", PROGRAM.replace("X[b,f]\n", "X16[b,f] : f16\n", 1).replace("state W", "X[b,f] = f32(X16[b,f])\nstate W"))
        for value, said in ((np.inf, "infinite"), (-np.inf, "infinite"), (np.nan, "not a number")):
            x[41, 3] = value
            feeds = self.feed("nan.npy", x)
            np.save(self.path("x16.npy"), x.astype(np.float16))
            table = self.text_file("x.csv", "\n".join(",".join(map(repr, map(float, row))) for row in x))
            for run, program, given, file in (
                    (einrel, self.program, feeds, "nan.npy"), (lambda *given: job(2, *given), self.program, feeds, "nan.npy"),
                    (einrel, half, ["--feed", f"X16={self.path('x16.npy')}", *feeds[2:]], "x16.npy"),
                    (einrel, self.program, ["--feed", f"X={table}", *feeds[2:]], "x.csv")):
                with self.subTest(value=value, file=file):
                    save = ["--save", self.path(f"save{value}{file}{program == half}{run == einrel}"), "--save-every", "1"]
                    result = run("train", program, *given, "--batch", "b=10", "--epochs", "1", *save)
                    self.assertEqual(result.code, 1, result)
                    self.assertRegex(result.err, rf"sample 41 .*{file}, which 'X(16)?' .* {said}\n")
        x[41, 3] = np.nan
        self.feed("nan.npy", x)
        test = ["--test", f"X={self.path('nan.npy')}", "--test", f"Y={self.path('y.npy')}"]  # seen at the end of an epoch
        said = einrel("train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "1", *test, "--save",
                                     self.path("kept"))
        self.assertEqual(said.code, 1, said)
        self.train("--epochs", "1", "--save", self.path("whole"))
        self.assert_same_states(self.states("kept"), self.states("whole"))

    def test_options_that_do_not_fit(self):
        self.refuse_training("--batch", "b=101", mentions=["101", "100 samples", "--keep-last"])
        self.refuse_training("--batch", "q=10", mentions=["no input has the batch label 'q'", "X[b,f]"])
        self.refuse_training("--batch", "10", mentions=["--batch"])
        self.refuse_training("--batch", "b=0", mentions=["--batch b=0", "from 1 to 2^63-1"])
        self.refuse_training("--batch", "b=10", "--report", "los", mentions=["did you mean 'loss'"])
        self.refuse_training("--batch", "b=10", "--report", "Z", mentions=["(10, 3)"])
        self.refuse_training("--batch", "b=10", "--calibrate-with", "10", mentions=["--calibrate-with", "--hold-out"])
        self.refuse_training("--batch", "b=10", "--calibrate-with", "81", "--hold-out", "0.2",
                             mentions=["--calibrate-with 81", "80 samples to train on", "take 80 or fewer"])
        self.refuse_training("--batch", "b=10", "--hold-out", "1.5", mentions=["--hold-out"])
        self.refuse_training("--batch", "b=10", "--hold-out", "0.001", mentions=["no sample to test on"])
        self.refuse_training("--batch", "b=10", "--log", self.path("log.txt"), mentions=["FILE.csv"])
        self.refuse_training("--batch", "b=10", "--dim", "b=3", mentions=["--batch"])
        self.refuse_training("--batch", "b=10", "--save-every", "3", mentions=["--save"])
        self.refuse_training("--batch", "b=10", "--planner", "table-1", mentions=["states"])
        still = self.text_file("still.ein", "dims b=3\ninput X[b]\ny[] = sum[b] X[b]\n")
        self.refuse_training("--batch", "b=10", program=still, feeds=self.feeds[:2], mentions=["shape"])
        still = self.text_file("still.ein", "dims b=3 f=6\ninput X[b,f]\ny[] = sum[b,f] X[b,f]\n")
        self.refuse_training("--batch", "b=10", program=still, feeds=self.feeds[:2], mentions=["learns nothing"])

    def test_nothing_is_given_twice(self):
        for name, file in (("X", "x.npy"), ("Y", "y.npy")):
            self.refuse_training("--batch", "b=10", "--in", f"{name}={self.path(file)}",
                                 mentions=[f"--in {name}=...", f"--feed {name}=...", "leave one out"])
            self.refuse_training("--batch", "b=10", "--feed", f"{name}={self.path(file)}", mentions=["--feed", name, "twice"])

    def test_names_in_lists(self):
        for empty in (" ", "loss, ", " ,loss", "loss,", ",loss", ",", "loss,,accuracy"):
            self.refuse_training("--batch", "b=10", "--report", empty, mentions=["--report", "a name is empty"])
        self.refuse_training("--batch", "b=10", "--report", "", mentions=["--report", "the value is empty"])
        self.refuse_training("--batch", "b=10", "--report", "loss, loss", mentions=["--report loss,loss", "twice"])
        spaced = self.train("--epochs", "1", "--report", "accuracy, loss")
        self.assertEqual(sorted(spaced["epochs"][0]["training"]), ["accuracy", "loss"])

    def test_files_are_not_decompressed_to_disk_without_a_limit(self):
        for more in ([], ["--sites", "2"], ["--local-steps", "2"]):
            self.refuse_training("--batch", "b=10", "--spill", self.folder, *more,
                                 mentions=["--spill needs --memory", "decompressed into memory", "leave out --spill"])

    def test_tables_with_mistakes(self):
        for text, mentions in (("1,2\n3,x\n", ["line 2", "column 2", "'x'"]), ("1,2\n3\n", ["line 2", "1 field"]),
                               ("", ["no numbers"]), ("1,2\n3,\n", ["column 2", "''"])):
            with self.subTest(text=text):
                table = self.text_file("bad.csv", text)
                self.refuse_training("--batch", "b=1", feeds=["--feed", f"X={table}", *self.feeds[2:]], mentions=mentions)
        for text, mentions in (("1e400", ["line 2: column 2: 1e400 is too large for f32"]), ("-1e39", ["-1e39 is too large"])):
            table = self.text_file("bad.csv", f"1,2\n3,{text}\n")
            said = self.refuse_training("--batch", "b=1", feeds=["--feed", f"X={table}", *self.feeds[2:]], mentions=mentions)
            self.assertIn("it is read as input X[b,f] : f32", said.err)
        table = self.text_file("twice.csv", "a,b,a\n1,2,3\n")
        self.refuse_training("--batch", "b=1", feeds=["--feed", f"X={table}:a..b", *self.feeds[2:]],
                             mentions=["columns 1 and 3 are both called 'a'", "give the number"])
        for more in ("", ":a..b"):
            for packed in ("x.csv.gz", "x.tsv.gz"):
                self.refuse_training("--batch", "b=1", feeds=["--feed", f"X={packed}{more}", *self.feeds[2:]],
                                     mentions=[f"{packed}: tables are not decompressed", "gunzip -k"])
        table = self.text_file("bad.csv", "a,b\n1,2\n")
        self.refuse_training("--batch", "b=1", feeds=["--feed", f"X={table}:c", *self.feeds[2:]], mentions=["'c'", "2 columns"])
        whole = self.text_file("whole.ein", PROGRAM.replace("Y[b] : i64, X[b,f]", "Y[b], X[b,f] : i64"))  # X, too
        table = self.text_file("bad.csv", "1,2,3,4,5,6\n1,2,3,4,5,6.5\n")
        self.refuse_training("--batch", "b=1", program=whole, feeds=["--feed", f"X={table}", *self.feeds[2:]],
                             mentions=["'6.5' is no whole number", "it is read as input X[b,f] : i64"])
        self.refuse_training("--batch", "b=10", "--in", f"Q={table}:1", mentions=["--in Q=", "--feed only", ".npy"])
        table = self.text_file("bad.csv", "1.5\n2\n")
        self.refuse_training("--batch", "b=1", feeds=[*self.feeds[:2], "--feed", f"Y={table}:1"],
                             mentions=["'1.5'", "whole number"])


class Picked(TrainTest):
    """Elements picked by a sample that has no such position."""

    def runs(self):
        """Ways to train, and the options that belong to them."""
        ranks = lambda *given: job(2, *given)  # noqa: E731
        return ((einrel, []), (einrel, ["--sites", "2"]), (einrel, ["--sites", "2", "--local-steps", "2"]),
                (ranks, ["--threads", "1"]), (ranks, ["--threads", "1", "--local-steps", "2"]))

    def expect(self, program, sample, file, name, *arguments, feeds=None, run=einrel, batch=10):
        said = run("train", self.text_file("picked.ein", program), *(feeds or self.feeds), "--batch", f"b={batch}", "--epochs",
                   "1", *arguments)
        self.assertEqual(said.code, 2, said)
        self.assertRegex(said.err, rf"error: (rank \d: )?sample {sample} \(from 0 on\) of \S*{file}, which '{name}' is fed with")
        return said

    def wrong(self, sample, value, file="wrong.npy"):
        y = self.y.copy()
        y[sample] = value
        np.save(self.path(file), y)
        return ["--feed", f"X={self.path('x.npy')}", "--feed", f"Y={self.path(file)}"]

    def test_the_sample_is_named(self):
        for sample, value in ((41, 3), (0, -1), (99, 10**12)):
            for run, more in self.runs():
                with self.subTest(sample=sample, more=more):
                    said = self.expect(PICKED, sample, "wrong.npy", "Y", *more, feeds=self.wrong(sample, value), run=run)
                    self.assertRegex(said.err, rf"Y\[\d\] is {value}, but indexes a dimension of LogP of extent 3")

    def test_of_other_samples_than_those_of_whole_batches(self):
        feeds = self.wrong(41, 3)
        for seed in ("1", "2"):
            for run, more in self.runs()[:2]:
                self.expect(PICKED, 41, "wrong.npy", "Y", "--keep-last", "--seed", seed, *more, feeds=feeds, run=run, batch=70)
            self.expect(PICKED, 41, "wrong.npy", "Y", "--hold-out", "0.5", "--seed", seed, feeds=feeds)
        test = ["--test", f"X={self.path('x.npy')}", "--test", f"Y={self.path('wrong.npy')}"]
        for run, more in self.runs():
            self.expect(PICKED, 41, "wrong.npy", "Y", *test, *more, run=run)
        centred = PICKED.replace("LogP[b,l] = logsoftmax[l](Z[b,l])",
                                 "P[b,l] = logsoftmax[l](Z[b,l])\nM[] = mean[b] P[b,Y[b]]\nLogP[b,l] = P[b,l] - M[]")
        self.expect(centred, 0, "first.npy", "Y", "--hold-out", "0.2", "--calibrate-with", "5", feeds=self.wrong(0, 5, "first.npy"))

    def test_positions_that_are_computed_from_samples(self):
        for run, more in self.runs():
            with self.subTest(more=more):
                self.expect(PICKED.replace("Y[b]]", "2 - Y[b]]"), 41, "wrong.npy", "Y", *more, feeds=self.wrong(41, 7), run=run)
        least = int(np.flatnonzero(self.y == 0)[0])
        y = self.y.copy()
        y[y == 0] = 1
        y[least] = 0
        np.save(self.path("one.npy"), y)
        self.feeds[3] = f"Y={self.path('one.npy')}"
        self.expect(PICKED.replace("Y[b]]", "Y[b] - 1]"), least, "one.npy", "Y")
        self.expect(PICKED.replace("loss[] =", "N[b] = Y[b] - 1\nloss[] =").replace("Y[b]]", "N[b]]"), least, "one.npy", "Y")

    def test_positions_in_tables(self):
        table = np.stack([self.y, self.y * 2], 1)
        table[41, 1] = 5
        np.save(self.path("table.npy"), table)
        np.save(self.path("turned.npy"), table.T)
        words = PICKED.replace("Y[b] : i64", "Y[b,c] : i64").replace("dims", "dims c=2 v=5").replace("Y[b]", "Y[b,0]")
        words = words.replace("Z[b,l] = B[l]", "state E[v,l] = 0.1 * normal(2)\nZ[b,l] = B[l] + E[Y[b,1],l]").replace("W, B", "W, B, E")
        self.feeds[3] = f"Y={self.path('table.npy')}"
        self.expect(words, 41, "table.npy", "Y")
        turned = re.sub(r"Y\[b,(\w)\]", r"Y[\1,b]", words)
        self.feeds[3] = f"Y={self.path('turned.npy')}"
        self.expect(turned, 41, "turned.npy", "Y", "--sites", "2")

    def test_what_the_help_shows_runs(self):
        """In place of what reads out of range, what the help says; compared with leaving such samples out of the sum."""
        turned = PICKED.replace("LogP[b,Y[b]]", "Q[Y[b],b]").replace("loss[] =", "Q[l,b] = LogP[b,l]\nloss[] =")
        feeds = self.wrong(41, 3)
        masked = PROGRAM  # a comparison with a number that no class has gives 0
        self.feeds = feeds
        wanted = self.train("--epochs", "2", program=self.text_file("masked.ein", masked))["epochs"][-1]["training"]["loss"]
        for program in (PICKED, turned, PICKED.replace("Y[b]]", "Y[b] + 0]")):
            said = self.expect(program, 41, "wrong.npy", "Y", feeds=feeds).err
            after, before = re.search(r"write (\S+\(.*?\)) in place of (\S+)\n", said).groups()
            name = before.removesuffix("[...]")
            self.assertEqual(before, name + "[...]", said)
            read = re.search(rf"{name}\[[^\[\]]*\[[^\[\]]*\][^\[\]]*\]", program).group(0)
            mended = program.replace(read, after.replace(before, read))
            got = self.train("--epochs", "2", program=self.text_file("mended.ein", mended))["epochs"][-1]["training"]["loss"]
            self.assertAlmostEqual(got, wanted, places=5)


class Diverged(TrainTest):
    """What is learnt is no longer finite: at a step that is worked out by hand."""

    def runs(self):
        ranks = lambda *given: job(2, *given)  # noqa: E731
        return ((einrel, []), (einrel, ["--sites", "2"]), (einrel, ["--sites", "2", "--local-steps", "1"]),
                (ranks, ["--threads", "1"]), (ranks, ["--threads", "1", "--local-steps", "1"]))

    def diverge(self, program, number, run, *more):
        said = run("train", self.text_file("diverged.ein", program), *self.feeds[:2], "--batch", "b=10", "--epochs", "1", "--save",
                   self.path(f"save{number}"), "--save-every", "1", *more)
        self.assertEqual(said.code, 2, said)
        return said.err, self.states(f"save{number}")

    def test_a_loss_that_is_infinite(self):
        # The weight is 1, -2e10, 4e20, whose square is beyond 3.4e38: the loss of step 3.
        for number, (run, more) in enumerate(self.runs()):
            with self.subTest(more=more):
                said, kept = self.diverge(ONE, number, run, "--scalar", "eta=1e10", *more)
                self.assertRegex(said, r"at step 3 the loss 'loss' is infinite: training has diverged\n  help: take smaller steps")
                self.assertEqual(kept["iteration"], 2)
                self.assertAlmostEqual(kept["w"] / 4e20, 1, places=5)

    def test_a_loss_that_is_not_a_number(self):
        program = ONE.replace("w[] * w[]", "v[] * v[] - v[] * v[] + w[]")  # v is 1, 1e30, whose square is infinite
        program = program.replace("state w", "state v[] = 1\nnext v[] = v[] * 1e30\nstate w")
        said, kept = self.diverge(program, 0, einrel, "--scalar", "eta=1")
        self.assertRegex(said, "at step 2 the loss 'loss' is not a number: training has diverged")
        self.assertEqual(kept["iteration"], 1)

    def test_a_state_that_is_infinite_takes_no_checkpoint_s_place(self):
        for number, (run, more) in enumerate(self.runs()):
            with self.subTest(more=more):
                said, kept = self.diverge(GROWING.replace("GROWTH", "1e20"), number, run, *more)
                self.assertRegex(said, "after 2 steps the state 's' has an element that is infinite: training has diverged")
                self.assertEqual(kept["iteration"], 1)
                self.assertAlmostEqual(kept["s"] / 1e20, 1, places=5)

    def test_a_state_that_is_infinite_ends_it_with_its_epoch_without_checkpoints_too(self):
        begin = ["train", self.text_file("diverged.ein", GROWING.replace("GROWTH", "1e20")), *self.feeds[:2], "--batch", "b=10"]
        for run, more in self.runs():
            with self.subTest(more=more):
                said = run(*begin, "--epochs", "5", *more)
                self.assertEqual(said.code, 2, said)
                steps = 5 if "--local-steps" in more else 10  # each of two sites does half of an epoch's
                self.assertIn(f"after {steps} steps the state 's'", said.err)
                self.assertEqual(len(said.out.splitlines()), 1, said)

    def test_what_began_infinite_and_scalars_that_nothing_learns_from_may_be_so(self):
        self.feeds = self.feeds[:2]
        program = self.text_file("still.ein", GROWING.replace("GROWTH", "2"))
        report = self.train("--epochs", "1", "--save", self.path("save"), program=program)
        self.assertEqual(report["steps"], 10)
        self.assertEqual(self.states("save")["least"], np.inf)
        self.assertEqual(self.states("save")["s"], 2**10)


class OthersFiles(TrainTest):
    """A log takes the place of no file that somebody else has written."""

    def test_they_are_refused_and_stay(self):
        log, picture = self.path("log.csv"), self.path("log.svg")
        begin = ["train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "1", "--log", log]
        for file, what, text in ((log, "log", "height,class\n1,2\n"), (log, "log", "1\n"), (log, "log", "epoch,loss\n1,2\n"),
                                 (picture, "picture", "<svg xmlns='http://www.w3.org/2000/svg'><rect/></svg>"),
                                 (picture, "picture", "x")):
            for run in (einrel, lambda *given: job(2, *given)):
                with self.subTest(text=text):
                    pathlib.Path(file).write_text(text, encoding="utf-8")
                    said = run(*begin)
                    self.assertEqual(said.code, 1, said)
                    self.assertRegex(said.err, rf"--log would replace \S*{os.path.basename(file)}, which is no {what} that `einrel train`")
                    self.assertNotIn("samples/s", said.out)
                    self.assertEqual(pathlib.Path(file).read_text(encoding="utf-8"), text)
                    os.remove(file)
                    self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("log")], [])

    def test_our_own_and_empty_ones_are_replaced(self):
        log = self.path("log.csv")
        self.text_file("log.csv", "")
        self.text_file("log.svg", "")
        for epochs in (2, 1):
            self.train("--epochs", str(epochs), "--log", log)
            with open(log, encoding="utf-8", newline="") as file:
                self.assertEqual(len(list(csv.DictReader(file))), epochs)


class Unwritten(TrainTest):
    """What cannot be written does not take what was learnt with it."""

    def fail(self, *arguments, limit=2000):
        """With files of so many bytes at most."""
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        result = einrel("train", self.layers, *self.feeds, "--batch", "b=10", "--epochs", "2", *arguments,
                        preexec_fn=small_files)
        self.assertEqual(result.code, 2, result)
        return result

    def test_the_report_comes_out(self):
        for number, more in enumerate(([], ["--sites", "2"], ["--sites", "2", "--local-steps", "2"], ["--hold-out", "0.2"])):
            with self.subTest(more=more):
                wanted = self.train("--epochs", "2", *more, program=self.layers)
                save = self.path(f"save{number}")
                said = self.fail("--save", save, "--json", *more)
                report = json.loads(said.out)
                self.assertIsNone(report["checkpoint"])
                self.assertEqual(report["steps"], wanted["steps"])
                for mine, other in zip(report["epochs"], wanted["epochs"], strict=True):
                    self.assertEqual((mine["training"], mine["test"]), (other["training"], other["test"]))
                self.assertRegex(said.err, rf"error: .*save{number}/step-0*{wanted['steps']}\.safetensors")
                self.assertEqual(os.listdir(save), [])
                text = self.fail("--save", save, *more)
                self.assertEqual(len(text.out.splitlines()), 3, text)
                self.assertNotIn("saved", text.out)

    def test_the_last_complete_checkpoint_is_told(self):
        save = self.path("save")
        self.train("--epochs", "1", "--save", save, program=self.layers)
        report = json.loads(self.fail("--save", save, "--resume", save, "--json").out)
        self.assertTrue(report["checkpoint"].endswith("step-000000010.safetensors"), report)

    def test_a_log_that_is_not_complete(self):
        said = self.fail("--log", self.path("log.csv"), "--json", limit=64)
        self.assertEqual(len(json.loads(said.out)["epochs"]), 2)
        self.assertRegex(said.err, r"error: the log is not complete: .*log\.csv")


class Resumed(TrainTest):
    def test_folders_that_hold_none(self):
        begin = ["train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "2"]
        self.refuse(1, *begin, "--resume", self.path("nowhere"), mentions=["--resume", "nowhere", "no such folder"])
        self.refuse(1, *begin, "--resume", self.path("x.npy"), mentions=["--resume", "x.npy", "it is a file", "folder"])
        self.refuse(1, *begin, "--save", self.path("x.npy"), mentions=["--save", "x.npy", "it is a file"])
        save = self.path("save")
        self.train("--epochs", "1", "--save", save)
        self.refuse(1, *begin, "--resume", save, "--dim", "l=3", mentions=["--dim", "--scalar", "--report", "--keep-last"])
        (newest,) = pathlib.Path(save).iterdir()
        self.refuse(1, *begin, "--resume", newest, mentions=[newest.name, "it is a file"])
        newest.write_bytes(newest.read_bytes()[:-20])
        self.refuse(1, *begin, "--resume", save, mentions=[newest.name, "no older one", "begin anew, without --resume"])

    def test_an_epoch_of_which_only_the_test_is_left(self):
        log = ["--log", self.path("log.csv")]
        tests = [word.replace("--feed", "--test") for word in self.feeds]
        wrong = np.load(self.path("x.npy"))
        wrong[3, 0] = np.nan
        np.save(self.path("wrong.npy"), wrong)
        for number, more in enumerate(([], ["--sites", "2"], ["--sites", "2", "--local-steps", "2"])):
            with self.subTest(more=more):
                save = self.path(f"save{number}")
                said = einrel("train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "1", "--save", save, *more,
                              *(word.replace("x.npy", "wrong.npy") for word in tests))
                self.assertIn("wrong.npy", said.err)
                report = self.train("--epochs", "1", "--save", save, "--resume", save, *log, *tests, *more)
                whole = self.train("--epochs", "1", *tests, *more)
                for what in "training", "test", "steps":
                    self.assertEqual(report["epochs"][0][what], whole["epochs"][0][what])
                self.assertEqual(report["epochs"][0]["samples_per_second"], 0)  # none were taken by this call
                with open(log[1], encoding="utf-8", newline="") as file:
                    self.assertEqual([row["samples_per_second"] for row in csv.DictReader(file)], ["0"])

    def test_numbers_of_a_log_are_exact(self):
        """Bytes beyond what a double, or nine digits, can say, in what was done before and in what goes on."""
        for before in (0, 10**9 + 7, 10**12 + 1, 2**53 + 1, 2**62 + 1):
            with self.subTest(before=before):
                save, log = self.path(f"save{before}"), self.path(f"log{before}.csv")
                options = ["--sites", "2", "--planner", "data", "--save", save, "--log", log]
                self.train("--epochs", "1", *options, program=self.layers)
                (newest,) = pathlib.Path(save).iterdir()
                tensors = load(newest)
                numbers = tensors["train.numbers"].copy()
                numbers[7] = before
                dump(newest, signed({**tensors, "train.numbers": numbers}))
                said = []
                for epochs in ("3", "4"):
                    said += self.train("--epochs", epochs, *options, "--resume", save, program=self.layers)["epochs"]
                self.assertGreater(said[0]["bytes_moved"], before)
                with open(log, encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file))[1:]
                for row, epoch in zip(rows, said, strict=True):
                    for column, key in (("bytes", "bytes_moved"), ("epoch", "epoch"), ("steps", "steps")):
                        self.assertEqual(row[column], str(epoch[key]))

    def test_what_an_epoch_leaves_out(self):
        begin = ["train", self.layers, *self.feeds, "--epochs", "1", "--batch"]
        for batch, more, left in (("30", [], 10), ("20", ["--sites", "3", "--local-steps", "1"], 40),
                                  ("16", ["--sites", "2", "--local-steps", "2"], 4)):
            said = self.succeed(*begin, f"b={batch}", *more)
            self.assertIn(f"leaves out {left} samples", said.err)
            self.assertEqual("--keep-last" in said.err, not more, said)
            steps = json.loads(self.succeed(*begin, f"b={batch}", *more, "--json").out)["steps"]
            self.assertEqual(steps * int(batch) * (int(more[1]) if more else 1), 100 - left)


if __name__ == "__main__":
    main()
