"""`einrel train`: feeds, epochs, evaluation, checkpoints; in one process, on sites and on ranks, against NumPy."""

import csv
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import numpy as np

import einrel_process
from einrel_process import ProgramTest, job, main
from safetensors_files import load

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")

# Softmax regression with momentum: what a step does is easily written down in NumPy.
PROGRAM = """dims b=10 f=6 l=3
input Y[b] : i64, X[b,f]
state W[f,l] = 0.1 * normal(1)
state B[l] = 0
Z[b,l] = B[l] + sum[f] X[b,f] * W[f,l]
LogP[b,l] = logsoftmax[l](Z[b,l])
loss[] = -mean[b] (sum[l] where(l == Y[b], LogP[b,l], 0))
accuracy[] = mean[b] (Y[b] == argmax[l] Z[b,l])
minimize loss over W, B by momentum(0.1, 0.9)
output loss, accuracy
"""
LAYERS = """dims b=12 f=6 h=16 l=3
input Y[b] : i64, X[b,f]
state W1[f,h] = 0.4 * normal(1)
state W2[h,l] = 0.3 * normal(2)
H[b,h] = relu(sum[f] X[b,f] * W1[f,h])
LogP[b,l] = logsoftmax[l](sum[h] H[b,h] * W2[h,l])
loss[] = -mean[b] (sum[l] where(l == Y[b], LogP[b,l], 0))
minimize loss over W1, W2 by adam(0.01)
output loss
"""


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011), written down from the paper."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = q >> 32 ^ b ^ k, q & 0xFFFFFFFF, p >> 32 ^ d ^ m, p & 0xFFFFFFFF
        k, m = k + 0x9E3779B9 & 0xFFFFFFFF, m + 0xBB67AE85 & 0xFFFFFFFF
    return a, b


def stream_of(name):
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def shuffled(count, seed, turn, purpose):
    """docs/training.md: Fisher and Yates, from the end, with a number for each place."""
    order = list(range(count))
    for left in range(count, 1, -1):
        high, low = philox((left, 0, turn, stream_of(purpose)), (seed & 0xFFFFFFFF, seed >> 32))
        at = int(((high << 32 | low) >> 11) * 2.0**-53 * left)
        order[left - 1], order[at] = order[at], order[left - 1]
    return order


def softmax(z):
    powers = np.exp(z - z.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def evaluated(w, b, x, y):
    p = softmax(x @ w + b)
    return -np.log(p[np.arange(len(y)), y]).mean(), (p.argmax(1) == y).mean()


def trained(w, b, x, y, batches):
    """Momentum in double precision; the mean loss of all samples, each before its step."""
    velocity_w, velocity_b, losses = np.zeros_like(w), np.zeros_like(b), []
    for batch in batches:
        loss, _ = evaluated(w, b, x[batch], y[batch])
        losses += [loss] * len(batch)
        error = (softmax(x[batch] @ w + b) - np.eye(3)[y[batch]]) / len(batch)
        velocity_w = 0.9 * velocity_w + x[batch].T @ error
        velocity_b = 0.9 * velocity_b + error.sum(0)
        w, b = w - 0.1 * velocity_w, b - 0.1 * velocity_b
    return w, b, losses


def in_batches(order, size, keep_last=False):
    whole = [order[at:at + size] for at in range(0, len(order), size)]
    return whole if keep_last or len(whole[-1]) == size else whole[:-1]


class TrainTest(ProgramTest):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(3)
        self.x = rng.standard_normal((100, 6)).astype(np.float32)
        self.y = (self.x @ rng.standard_normal((6, 3))).argmax(1)
        np.save(self.path("x.npy"), self.x)
        np.save(self.path("y.npy"), self.y.astype(np.uint8))
        self.program = self.text_file("regression.ein", PROGRAM)
        self.layers = self.text_file("layers.ein", LAYERS)
        self.feeds = ["--feed", f"X={self.path('x.npy')}", "--feed", f"Y={self.path('y.npy')}"]

    def train(self, *arguments, program=None, run=None, batch=10):
        """What --json says."""
        result = (run or self.succeed)("train", program or self.program, *self.feeds, "--batch", f"b={batch}", "--json",
                                       *arguments)
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    def states(self, folder):
        """Those of the last checkpoint, which is a .safetensors file, read without einrel."""
        newest = sorted(pathlib.Path(self.path(folder)).glob("step-*.safetensors"))[-1]
        return load(newest)

    def assert_same_states(self, got, expected, tolerance=None):
        for name in (name for name in expected if not name.startswith("train.")):
            if tolerance is None:
                np.testing.assert_array_equal(got[name], expected[name], err_msg=name)
            else:
                np.testing.assert_allclose(got[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name)

    def first_states(self, *arguments):
        self.succeed("run", self.program, "--random", "1", "--save", self.path("first.npz"), "--steps", "1", "--scalar",
                     *arguments)


class Epochs(TrainTest):
    def begin(self):
        """The weights before the first step, by a program that does not change them."""
        text = PROGRAM.replace("minimize", "#").replace("output", "next W[f,l] = W[f,l]\noutput")
        still = self.text_file("still.ein", text)
        self.succeed("run", still, "--random", "1", "--save", self.path("first.npz"))
        with np.load(self.path("first.npz")) as first:
            return first["W"].astype(float), first["B"].astype(float)

    def test_epochs_are_what_numpy_makes_of_the_same_order(self):
        for arguments, keep_last in (([], False), (["--keep-last"], True)):
            for size in (10, 12):
                with self.subTest(size=size, keep_last=keep_last):
                    folder = f"save-{size}-{keep_last}"
                    report = self.train("--epochs", "3", "--seed", "7", "--hold-out", "0.2", "--save", self.path(folder),
                                        *arguments, batch=size)
                    held = shuffled(100, 7, 0, "hold-out")
                    test, rest = sorted(held[:20]), sorted(held[20:])
                    batches = [in_batches([rest[at] for at in shuffled(80, 7, epoch, "epoch")], size, keep_last)
                               for epoch in range(3)]
                    w, b = self.begin()
                    w, b, losses = trained(w, b, self.x.astype(float), self.y, sum(batches, []))
                    states = self.states(folder)
                    np.testing.assert_allclose(states["W"], w, rtol=2e-4, atol=2e-5)
                    np.testing.assert_allclose(states["B"], b, rtol=2e-4, atol=2e-5)
                    last = report["epochs"][-1]
                    seen = sum(map(len, batches[-1]))
                    self.assertAlmostEqual(last["training"]["loss"], np.mean(losses[-seen:]), places=4)
                    loss, accuracy = evaluated(w, b, self.x[test].astype(float), self.y[test])
                    self.assertAlmostEqual(last["test"]["loss"], loss, places=4)
                    self.assertAlmostEqual(last["test"]["accuracy"], accuracy, places=6)
                    self.assertEqual(report["steps"], sum(map(len, batches)))

    def test_curves_are_equal_on_ranks_and_for_every_planner(self):
        arguments = ["--epochs", "2", "--hold-out", "0.25", "--keep-last", "--save"]
        alone = self.train(*arguments, self.path("alone"), program=self.layers)
        for ranks in (1, 2, 3, 4):
            for more in ([], ["--cost", "bytes"]):
                with self.subTest(ranks=ranks, more=more):
                    folder = f"job-{ranks}-{'-'.join(more)}"
                    report = self.train(*arguments, self.path(folder), "--threads", "1", *more, program=self.layers,
                                        run=lambda *given, n=ranks: job(n, *given))
                    self.assert_same_states(self.states(folder), self.states("alone"), 2e-4)
                    for mine, other in zip(report["epochs"], alone["epochs"], strict=True):
                        self.assertAlmostEqual(mine["training"]["loss"], other["training"]["loss"], places=4)
                        self.assertAlmostEqual(mine["test"]["loss"], other["test"]["loss"], places=4)
                    sites = self.train("--epochs", "2", "--hold-out", "0.25", "--keep-last", "--sites", str(ranks), *more,
                                       program=self.layers)
                    self.assertAlmostEqual(sites["epochs"][1]["test"]["loss"], alone["epochs"][1]["test"]["loss"], places=4)

    def test_every_planner_learns_the_same(self):
        listed = self.succeed("list", "planners").out
        planners = set(re.findall(r"^[a-z0-9-]+", listed, re.M)) - {"heads", "sequence", "hybrid", "table-1", "ia-rules", "formats"}  # for others
        self.assertGreater(len(planners), 5)
        alone = self.train("--epochs", "1", program=self.layers)["epochs"][0]["training"]["loss"]
        for planner in sorted(planners):
            with self.subTest(planner=planner):
                report = self.train("--epochs", "1", "--threads", "1", "--planner", planner, program=self.layers,
                                    run=lambda *given: job(3, *given))
                self.assertAlmostEqual(report["epochs"][0]["training"]["loss"], alone, places=4)

    def test_plans_come_from_files(self):
        arguments = ["--epochs", "2", "--hold-out", "0.2"]
        alone = self.train(*arguments, program=self.layers)
        smaller = ["--epochs", "1", "--hold-out", "0.25", "--keep-last"]  # in the end a batch that the plan is not of
        alone_smaller = self.train(*smaller, program=self.layers)["epochs"][0]
        for planner in ("data", "eindecomp"):
            options = ["--planner", planner, *(["--batch", "b"] if planner == "data" else [])]
            plan = self.text_file("plan.json", self.succeed("explain", self.layers, "--dim", "b=10", "--dim", "f=6", "--sites",
                                                            "3", "--json", *options).out)
            for run, more in ((None, []), (lambda *given: job(3, *given), ["--threads", "1"])):
                with self.subTest(planner=planner, more=more):
                    by_file = self.train(*arguments, "--plan", plan, *more, program=self.layers, run=run)
                    by_name = self.train(*arguments, "--planner", planner, "--sites", "3", *more, program=self.layers, run=run)
                    for mine, named, other in zip(by_file["epochs"], by_name["epochs"], alone["epochs"], strict=True):
                        self.assertEqual(mine["bytes_moved"], named["bytes_moved"])
                        self.assertAlmostEqual(mine["test"]["loss"], other["test"]["loss"], places=4)
                    mine = self.train(*smaller, "--plan", plan, *more, program=self.layers, run=run)["epochs"][0]
                    self.assertAlmostEqual(mine["test"]["loss"], alone_smaller["test"]["loss"], places=4)
        refuse = ["train", self.layers, *self.feeds, "--batch", "b=10", "--epochs", "1", "--plan", plan]
        self.refuse(1, *refuse, "--sites", "2", mentions=["--sites 2", "plan for 3"])
        self.refuse(1, *refuse, "--planner", "data", mentions=["--planner", "--plan"])
        self.refuse(1, *refuse, "--local-steps", "2", mentions=["--local-steps", "--plan"])
        refuse[1] = self.program
        self.refuse(1, *refuse, mentions=["plan.json"])

    def test_training_within_memory(self):
        # The hidden values of a batch are 20 MB, of which a step holds several at a time without a limit.
        wide = self.text_file("wide.ein", LAYERS.replace("h=16", "h=50000").replace("relu(", "exp(-sq(").replace("W1[f,h])", "W1[f,h]))"))
        arguments = ["--epochs", "1", "--threads", "2", "--save"]
        self.train(*arguments, self.path("free"), program=wide, batch=100)
        limit = ["--memory", "64MB", "--spill", self.folder]
        for name, run, more in (("process", None, limit), ("sites", None, ["--sites", "2", *limit]),
                                ("ranks", lambda *given: job(2, *given), limit)):
            with self.subTest(name=name):
                report = self.train(*arguments, self.path(name), *more, program=wide, run=run, batch=100)
                self.assert_same_states(self.states(name), self.states("free"), 2e-4)
                moved = report["epochs"][0]["bytes_moved"]
                free = self.train("--epochs", "1", *more[:-4], program=wide, batch=100)["epochs"][0]["bytes_moved"]
                if run is None:  # finer chunks for want of memory lie on the same sites
                    self.assertEqual(moved, free)
                self.assertEqual(moved > 0, name != "process")
        begin = ["train", wide, *self.feeds, "--batch", "b=100", "--epochs", "1"]
        self.refuse(1, *begin, "--memory", "1MB", mentions=["--memory", "too little"])
        self.refuse(1, *begin, "--spill", self.folder, mentions=["--spill needs --memory"])
        self.refuse(1, *begin, "--memory", "64MB", "--spill", self.path("nowhere"), mentions=["nowhere"])

    def test_samples_stand_along_any_dimension(self):
        turned = PROGRAM.replace(": i64, X[b,f]", ": i64, X[f,b]").replace("X[b,f] *", "X[f,b] *")
        np.save(self.path("t.npy"), self.x.T)
        self.train("--epochs", "2", "--save", self.path("straight"))
        self.feeds[1] = f"X={self.path('t.npy')}"
        self.train("--epochs", "2", "--save", self.path("turned"), program=self.text_file("turned.ein", turned))
        self.assert_same_states(self.states("turned"), self.states("straight"), 1e-5)

    def test_tables_are_feeds(self):
        self.train("--epochs", "2", "--save", self.path("arrays"))
        with open(self.path("table.csv"), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"f{i}" for i in range(6)), "class"])
            writer.writerows([*map(repr, map(float, row)), label] for row, label in zip(self.x, self.y, strict=True))
        for number, (columns, label) in enumerate((("f0..f5", "class"), ("1..6", "7"))):
            with self.subTest(columns=columns):
                self.feeds = ["--feed", f"X={self.path('table.csv')}:{columns}", "--feed",
                              f"Y={self.path('table.csv')}:{label}"]
                self.train("--epochs", "2", "--save", self.path(f"table-{number}"))
                self.assert_same_states(self.states(f"table-{number}"), self.states("arrays"))

    def test_columns_have_commas_in_their_names_and_tabs_between_them(self):
        self.train("--epochs", "2", "--save", self.path("arrays"))
        rows = [[*map(repr, map(float, row)), str(label)] for row, label in zip(self.x, self.y, strict=True)]
        names = [*(f"f{i}, in cm" for i in range(6)), "class"]
        for number, (file, separator, quote) in enumerate((("table.csv", ",", '"'), ("table.csv", ";", '"'), ("table.tsv", "\t", ""))):
            with self.subTest(file=file, separator=separator):
                lines = [separator.join(quote + name + quote for name in names), *map(separator.join, rows)]
                table = self.text_file(file, "\n".join(lines))
                self.feeds = ["--feed", f"X={table}:f0, in cm..f5, in cm", "--feed", f"Y={table}:class"]
                self.train("--epochs", "2", "--save", self.path(f"table-{number}"))
                self.assert_same_states(self.states(f"table-{number}"), self.states("arrays"))

    def test_labels_are_integers_of_any_size(self):
        self.train("--epochs", "2", "--save", self.path("u1"))
        for dtype in (np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64):
            np.save(self.path("y.npy"), self.y.astype(dtype))
            name = np.dtype(dtype).name
            self.train("--epochs", "2", "--save", self.path(name))
            self.assert_same_states(self.states(name), self.states("u1"))

    def test_a_test_set_is_evaluated_to_its_last_sample(self):
        np.save(self.path("tx.npy"), self.x[:37])
        np.save(self.path("ty.npy"), self.y[:37].astype(np.int16))
        report = self.train("--epochs", "1", "--save", self.path("save"), "--test", f"X={self.path('tx.npy')}", "--test",
                            f"Y={self.path('ty.npy')}")
        states = self.states("save")
        loss, accuracy = evaluated(states["W"].astype(float), states["B"].astype(float), self.x[:37].astype(float),
                                   self.y[:37])
        self.assertAlmostEqual(report["epochs"][0]["test"]["loss"], loss, places=5)
        self.assertAlmostEqual(report["epochs"][0]["test"]["accuracy"], accuracy, places=6)

    def test_statistics_of_training_take_the_place_of_a_batch_s_own(self):
        text = """dims b=10 f=6 l=3
input Y[b] : i64, X[b,f]
state W[f,l] = 0.1 * normal(1)
S[b,l] = sum[f] X[b,f] * W[f,l]
m[l] = mean[b] S[b,l]
v[l] = mean[b] sq(S[b,l] - m[l])
LogP[b,l] = logsoftmax[l]((S[b,l] - m[l]) / sqrt(v[l] + 0.01))
loss[] = -mean[b] (sum[l] where(l == Y[b], LogP[b,l], 0))
minimize loss over W by sgd(0.5)
output loss
"""
        program = self.text_file("normalised.ein", text)
        for run, more in ((None, []), (lambda *given: job(2, *given), ["--threads", "1"])):
            with self.subTest(more=more):
                folder = f"save{len(more)}"
                report = self.train("--epochs", "2", "--hold-out", "0.25", "--calibrate-with", "50", "--save",
                                    self.path(folder), *more, program=program, run=run)
                held = shuffled(100, 0, 0, "hold-out")
                test, rest = sorted(held[:25]), sorted(held[25:])
                w = self.states(folder)["W"].astype(float)
                known = self.x[[rest[at] for at in shuffled(75, 0, 0, "statistics")[:50]]] @ w
                z = (self.x[test] @ w - known.mean(0)) / np.sqrt(known.var(0) + 0.01)
                loss = -np.log(softmax(z)[np.arange(25), self.y[test]]).mean()
                self.assertAlmostEqual(report["epochs"][-1]["test"]["loss"], loss, places=5)

    def test_it_ends_where_the_condition_holds(self):
        program = self.text_file("until.ein", PROGRAM + "until loss[] < 0.5\n")
        report = self.train("--epochs", "100", program=program)
        self.assertTrue(report["until"])
        self.assertLess(report["steps"], 1000)
        text = self.succeed("train", program, *self.feeds, "--batch", "b=10", "--epochs", "100").out
        self.assertIn(f"`until` holds after {report['steps']} steps", text)
        self.train("--epochs", "100", "--save", self.path("held"), program=program)
        again = self.train("--epochs", "100", "--resume", self.path("held"), program=program)
        self.assertEqual((again["steps"], again["until"], again["epochs"]), (report["steps"], True, []))
        begin = ["train", program, *self.feeds, "--batch", "b=10", "--epochs"]
        text = self.succeed(*begin, "200", "--resume", self.path("held")).out
        self.assertIn(f"nothing is left to do: after {report['steps']} steps the condition of `until` held, which ended", text)
        begin[1] = self.program
        self.succeed(*begin, "2", "--save", self.path("done"))
        text = self.succeed(*begin, "2", "--resume", self.path("done")).out
        self.assertIn("nothing is left to do: --epochs 2 were done before, in 20 steps; give more", text)

    def test_log_and_curve(self):
        log = self.path("log.csv")
        report = self.train("--epochs", "3", "--hold-out", "0.2", "--log", log, "--save", self.path("save"))
        with open(log, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["epoch"]) for row in rows], [1, 2, 3])
        for row, epoch in zip(rows, report["epochs"], strict=True):
            self.assertAlmostEqual(float(row["loss"]), epoch["training"]["loss"], places=6)
            self.assertAlmostEqual(float(row["test_accuracy"]), epoch["test"]["accuracy"], places=6)
        svg = xml.etree.ElementTree.parse(self.path("log.svg")).getroot()
        lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [3] * 4, "two names, training and test")
        self.train("--epochs", "5", "--hold-out", "0.2", "--log", log, "--resume", self.path("save"))
        with open(log, encoding="utf-8") as file:
            self.assertEqual([int(row["epoch"]) for row in csv.DictReader(file)], [1, 2, 3, 4, 5])

    def test_a_batch_is_no_larger_than_the_samples(self):
        whole = self.train("--epochs", "2", "--keep-last", batch=10**12)
        self.assertEqual(whole["steps"], 2)
        same = self.train("--epochs", "2", batch=100)
        self.assertEqual([epoch["training"] for epoch in whole["epochs"]], [epoch["training"] for epoch in same["epochs"]])

    def test_what_is_read_is_no_log(self):
        table = self.text_file("table.csv", "1\n" * 100)
        os.symlink(table, self.path("link.csv"))
        os.symlink(self.path("x.npy"), self.path("picture.svg"))
        begin = ["train", self.program, *self.feeds[:2], "--feed", f"Y={table}:1", "--batch", "b=10", "--epochs", "1", "--log"]
        self.refuse(1, *begin, table, mentions=["table.csv", "read"])
        self.refuse(1, *begin, self.path("link.csv"), mentions=["link.csv", "read"])
        self.refuse(1, *begin, self.path("picture.csv"), mentions=["picture.svg", "x.npy"])
        self.assertEqual(pathlib.Path(table).read_text(encoding="utf-8"), "1\n" * 100)

    def test_a_log_that_cannot_be_written_does_not_end_the_training(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))

        result = einrel_process.einrel("train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "3", "--log",
                                       self.path("log.csv"), preexec_fn=small_files)
        self.assertEqual(result.code, 2, result)
        self.assertEqual(len(result.out.splitlines()), 4, result)
        self.assertEqual(result.err.count("note: no row in the log"), 3, result)
        self.assertRegex(result.err, "error: the log is not complete: .*log")

    def test_what_is_said(self):
        result = self.succeed("train", self.program, *self.feeds, "--batch", "b=30", "--epochs", "2", "--report", "loss",
                              "--progress", "always")
        self.assertRegex(result.out, r"\A +epoch +steps +samples/s +loss\n( +\d+ +\d+ +\d+ +[\d.]+\n){2}\Z")
        self.assertIn("leaves out 10 samples", result.err)


class Checkpoints(TrainTest):
    def test_training_that_was_stopped_goes_on_to_the_bit(self):
        for run, more in ((None, []), (None, ["--sites", "3"]), (lambda *given: job(3, *given), ["--threads", "1"])):
            with self.subTest(more=more):
                name = f"{len(more)}-{run is None}"
                arguments = ["--hold-out", "0.2", "--keep-last", *more]
                whole = self.train("--epochs", "4", "--save", self.path("whole" + name), *arguments, program=self.layers,
                                   run=run, batch=12)
                half = self.path("half" + name)
                self.train("--epochs", "2", "--save", half, "--save-every", "5", *arguments, program=self.layers, run=run,
                           batch=12)
                self.assertEqual(len(os.listdir(half)), 2, "the last two are kept")
                # The newest one is that of the end; the one before it was in the middle of an epoch.
                os.remove(sorted(pathlib.Path(half).iterdir())[-1])
                self.assertTrue(os.listdir(half)[0].endswith("10.safetensors"), os.listdir(half))
                rest = self.train("--epochs", "4", "--save", half, "--resume", half, *arguments, program=self.layers,
                                  run=run, batch=12)
                self.assert_same_states(self.states("half" + name), self.states("whole" + name))
                for mine, other in zip(rest["epochs"], whole["epochs"][1:], strict=True):
                    self.assertEqual((mine["epoch"], mine["steps"]), (other["epoch"], other["steps"]))
                    self.assertEqual(mine["training"], other["training"])
                    self.assertEqual(mine["test"], other["test"])

    def test_one_training_at_a_time_writes_there_and_clears_what_the_killed_left(self):
        save = self.path("one")
        os.mkdir(save)
        left = os.path.join(save, ".einrel-0123456789abcdef.tmp")
        pathlib.Path(left).write_text("half a checkpoint")
        with subprocess.Popen([einrel_process.PROGRAM, "train", self.program, *self.feeds, "--batch", "b=8", "--epochs", "1000000", "--save", save],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            try:
                while os.path.exists(left):
                    self.assertIsNone(running.poll())
                    time.sleep(0.01)
                self.refuse(1, "train", self.program, *self.feeds, "--batch", "b=8", "--epochs", "1", "--save", save,
                            mentions=["another process writes there now"])
            finally:
                running.kill()

    def interrupted(self, *arguments):
        """Training that Ctrl-C ends after its first epoch, and how it went."""
        # A shell's jobs in the background ignore the signal.
        def default_signal():
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        with subprocess.Popen([einrel_process.PROGRAM, "train", self.layers, *self.feeds, "--batch", "b=8", "--epochs", "1000000",
                               *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=default_signal) as running:
            log = self.path("interrupted.csv")
            while not os.path.exists(log):
                self.assertIsNone(running.poll())
                time.sleep(0.001)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, -signal.SIGINT, err)
        einrel_process.cases += 1
        os.remove(log)
        return out, err

    def test_an_interrupt_ends_it_in_good_order(self):
        log = ["--log", self.path("interrupted.csv")]
        for number, more in enumerate(([], ["--sites", "2"], ["--keep-last", "--hold-out", "0.2"], ["--sites", "2", "--local-steps", "3"])):
            with self.subTest(more=more):
                save, whole = self.path(f"save{number}"), self.path(f"whole{number}")
                out, err = self.interrupted("--save", save, "--save-every", "1000000", *log, *more)
                steps, folder, again = re.search(r"^interrupted at step (\d+); --resume (\S+) goes on from step (\d+)$", err, re.M).groups()
                self.assertEqual((folder, again), (save, steps))
                self.assertIn("saved", out)
                self.assertEqual(int(self.states(save)["iteration"]), int(steps))
                epochs = str(int(steps) // (6 if "--local-steps" in more else 10) + 1)
                begin = ["--epochs", epochs, *more, "--save"]
                self.train(*begin, save, "--resume", save, program=self.layers, batch=8)
                self.train(*begin, whole, program=self.layers, batch=8)
                self.assert_same_states(self.states(save), self.states(whole))
        out, err = self.interrupted("--json", *log)
        steps = int(re.search(r"^interrupted at step (\d+); nothing is kept of it; --save FOLDER keeps", err, re.M).group(1))
        self.assertEqual(json.loads(out)["steps"], steps)

    def test_what_cannot_be_resumed(self):
        save = self.path("save")
        self.train("--epochs", "1", "--save", save)
        batch = ["--batch", "b=10"]

        def refuse(mentions, *arguments, program=None):
            self.refuse(1, "train", program or self.program, *self.feeds, "--epochs", "2", *arguments, mentions=mentions)

        refuse(["--seed 0, not 1"], *batch, "--resume", save, "--seed", "1")
        refuse(["10 samples, not 20"], "--batch", "b=20", "--resume", save)
        refuse(["100 samples", "80"], *batch, "--hold-out", "0.2", "--resume", save)
        other = self.text_file("other.ein", PROGRAM.replace("0.1, 0.9", "0.2, 0.9"))
        refuse(["another program"], *batch, "--resume", save, program=other)
        refuse(["options of training"], *batch, "--resume", save, "--report", "accuracy")
        refuse(["options of training"], *batch, "--resume", save, "--keep-last")
        refuse(["options of training"], *batch, "--resume", save, "--dim", "l=3")
        refuse(["without --local-steps"], *batch, "--resume", save, "--local-steps", "2")
        refuse(["no checkpoint"], *batch, "--resume", self.folder)
        refuse(["holds checkpoints", "--resume"], *batch, "--save", save)
        remarked = self.text_file("remarked.ein", "# A remark changes nothing.\n" + PROGRAM)
        self.succeed("train", remarked, *self.feeds, *batch, "--epochs", "3", "--save", save, "--resume", save)
        said = self.refuse(1, "train", other, *self.feeds, *batch, "--epochs", "4", "--resume", save)
        self.assertNotIn("remove", said.err)  # an older checkpoint would not help
        newest = sorted(pathlib.Path(save).iterdir())[-1]
        newest.write_bytes(newest.read_bytes()[:-20])
        refuse([newest.name, "step-000000020.safetensors is the one before it"], *batch, "--resume", save)

    def test_states_are_read_by_run(self):
        save = self.path("save")
        self.train("--epochs", "1", "--save", save)
        newest = sorted(pathlib.Path(save).iterdir())[-1]
        self.succeed("run", self.program, "--random", "1", "--load", newest)

    def test_a_kill_at_any_moment_leaves_a_complete_checkpoint(self):
        # Large states: most of the time, a checkpoint is being written.
        program = self.text_file("large.ein", "dims b=10 f=6 k=100000\ninput X[b,f]\nstate s[k] = f32(1)\n"
                                              "m[] = mean[b,f] X[b,f]\nnext s[k] = s[k] * (1 + 0.001 * m[])\noutput m\n")
        begin = ["train", program, *self.feeds[:2], "--batch", "b=10", "--save-every", "1", "--epochs"]
        start = time.monotonic()
        self.succeed(*begin, "1", "--save", self.path("timed"))
        seconds = time.monotonic() - start
        for moment in range(50):
            save = self.path(f"save{moment}")
            run = subprocess.Popen([einrel_process.PROGRAM, *begin, "1000", "--save", save], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            while not list(pathlib.Path(save).glob("step-*")):  # so that there is one that must stay
                self.assertIsNone(run.poll())
                time.sleep(0.001)
            time.sleep(seconds * moment / 50)
            run.send_signal(signal.SIGKILL)
            self.assertEqual(run.wait(), -signal.SIGKILL)
            einrel_process.cases += 1
            there = sorted(pathlib.Path(save).glob("step-*"))
            done = int(there[-1].stem.removeprefix("step-"))
            states = self.states(f"save{moment}")
            np.testing.assert_array_equal(states["iteration"], done)
            self.assertEqual(len(np.unique(states["s"])), 1, "all of it is of one step")
            if moment % 10 == 9:
                epochs = str(done // 10 + 1)
                result = self.succeed(*begin, epochs, "--save", save, "--resume", save)
                self.assertIn("saved", result.out)
            for path in there:
                path.unlink(missing_ok=True)

    def test_a_full_disk_is_said_and_loses_nothing(self):
        program = self.text_file("large.ein", "dims b=10 f=6 k=100000\ninput X[b,f]\nstate s[k] = f32(1)\n"
                                              "m[] = mean[b,f] X[b,f]\nnext s[k] = s[k] + m[]\noutput m\n")
        begin = ["train", program, *self.feeds[:2], "--batch", "b=10", "--epochs"]
        save = self.path("save")
        self.succeed(*begin, "1", "--save", save)
        before = self.states("save")

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

        result = einrel_process.einrel(*begin, "3", "--save", save, "--resume", save, preexec_fn=small_files)
        self.assertEqual(result.code, 2, result)
        self.assertEqual(result.err.count("note: no checkpoint after"), 2, result)
        self.assertIn("training goes on", result.err)
        self.assertRegex(result.err, "error: .*step-000000030.safetensors")
        self.assert_same_states(self.states("save"), before)
        self.assertEqual(os.listdir(save), ["step-000000010.safetensors"], "nothing half-written is left")
        self.succeed(*begin, "3", "--save", save, "--resume", save)


class Examples(ProgramTest):
    """What the examples learn from data that the repository makes."""

    def learn(self, script, arguments, program, feeds, *options):
        subprocess.run([sys.executable, os.path.join(EXAMPLES, script), *arguments], cwd=self.folder, check=True)
        given = [word for name, file in feeds.items() for word in ("--feed", f"{name}={self.path(file)}")]
        report = self.succeed("train", os.path.join(EXAMPLES, program), *given, "--hold-out", "0.2", "--json", *options)
        return json.loads(report.out)["epochs"][-1]["test"]

    def test_digits(self):
        feeds = {"Images": "images.npy", "Y": "labels.npy"}
        for program, options, least in (("train_mnist.ein", ["--batch", "b=32"], 0.3),
                                        ("train_dropout.ein", ["--batch", "b=32"], 0.3),
                                        ("train_cnn.ein", ["--batch", "b=32"], 0.5),
                                        ("train_subnets.ein", ["--batch", "b=16", "--sites", "4", "--local-steps", "10",
                                                               "--subnets", "h", "--calibrate-with", "200"], 0.2)):
            with self.subTest(program=program):
                test = self.learn("digits.py", ["1500"], program, feeds, "--epochs", "5", *options)
                self.assertGreater(test["accuracy"], least, "a tenth would be chance")

    def test_letters(self):
        test = self.learn("text.py", ["500"], "train_characters.ein", {"Now": "now.npy", "After": "after.npy"}, "--batch",
                          "b=16", "--epochs", "5")
        self.assertGreater(test["accuracy"], 0.75)

    def test_labels(self):
        test = self.learn("extreme.py", ["1000", "2000", "300"], "train_extreme.ein", {"Tags": "tags.npy", "X": "words.npy"},
                          "--batch", "b=50", "--epochs", "5")
        self.assertGreater(test["precision"], 0.8)


if __name__ == "__main__":
    main()
