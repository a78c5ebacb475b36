"""Checkpoints of `einrel train`: those that are damaged, and the signals that leave one."""

import os
import pathlib
import re
import signal
import subprocess
import time

import numpy as np

import einrel_process
from einrel_process import MPIRUN, main
from safetensors_files import dump, load, signed
from train_test import TrainTest


class Damaged(TrainTest):
    """A good one after 15 steps, in the second epoch of 10, is changed; then it goes on, or is none."""

    def setUp(self):
        super().setUp()
        self.save = self.path("save")
        self.train("--epochs", "2", "--save", self.save, "--save-every", "5")
        (_, newest) = sorted(pathlib.Path(self.save).iterdir())
        newest.unlink()
        (self.file,) = pathlib.Path(self.save).iterdir()
        self.bytes = self.file.read_bytes()
        self.good = load(self.file)

    def resume(self):
        return einrel_process.einrel("train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "2", "--resume", self.save)

    def assert_none(self, tensors, *mentions):
        dump(self.file, tensors)
        said = self.resume()
        self.assertEqual((said.code, said.out), (1, ""), said)
        for text in (self.file.name, *mentions):
            self.assertIn(text, said.err, said)

    def test_the_order_in_a_file_is_all_the_same(self):
        self.assertEqual(self.resume().code, 0)
        dump(self.file, dict(reversed(self.good.items())))
        self.assertEqual(self.resume().code, 0)
        np.testing.assert_array_equal(signed(self.good)["train.check"], self.good["train.check"])

    def test_every_part_has_to_be_there(self):
        for name in self.good:
            rest = {other: array for other, array in self.good.items() if other != name}
            with self.subTest(name=name):
                self.assert_none(rest, "is no checkpoint")
                if name != "train.check":
                    self.assert_none(signed(rest), name)
        self.assert_none({name: array for name, array in self.good.items() if name != "train.check"}, "check sum", "older versions")

    def test_every_part_has_to_be_as_it_was(self):
        for name, array in self.good.items():
            other = array.copy()
            other.reshape(-1)[-1:] += 1
            with self.subTest(name=name):
                self.assert_none({**self.good, name: other}, "is no checkpoint", "check sum")
        renamed = {name.replace("W", "V"): array for name, array in self.good.items()}
        self.assert_none(renamed, "check sum")
        self.assert_none({**self.good, "more": np.zeros(3)}, "check sum")

    def test_parts_have_to_fit_each_other(self):
        numbers = self.good["train.numbers"]
        for what, changes in (
                ("as it was, of another epoch", {"train.numbers": {5: 2}}), ("a step beyond the epoch", {"train.numbers": {6: 100}}),
                ("another step", {"train.numbers": {6: 4}}), ("before the first epoch", {"train.numbers": {5: -1}}),
                ("negative bytes", {"train.numbers": {7: -1}}), ("more samples than there are", {"train.sums": {1: 1e6}}),
                ("no number of seconds", {"train.sums": {0: np.nan}})):
            changed = dict(self.good)
            for name, places in changes.items():
                changed[name] = self.good[name].copy()
                for place, value in places.items():
                    changed[name][place] = value
            with self.subTest(what=what):
                self.assert_none(signed(changed), "is no checkpoint", "do not fit")
        for iteration in (0, 14, 16, 2**53, 2**63 - 2, -1):
            with self.subTest(iteration=iteration):
                self.assert_none(signed({**self.good, "iteration": np.array(iteration, np.int64)}), "is no checkpoint")
        self.assert_none(signed({**self.good, "train.sums": self.good["train.sums"][:-1]}), "is no checkpoint")
        self.assert_none(signed({**self.good, "train.sums": np.zeros(2)}), "is no checkpoint")
        self.assert_none(signed({**self.good, "train.numbers": numbers[:8]}), "is no checkpoint")
        self.assert_none(signed({**self.good, "train.numbers": numbers.astype(np.float64)}), "is no checkpoint")
        self.assert_none(signed({**self.good, "iteration": np.array([15])}), "is no checkpoint")

    def test_no_bit_may_change(self):
        rng = np.random.default_rng(1)
        for place in rng.integers(0, 8 * len(self.bytes), 60):
            data = bytearray(self.bytes)
            data[place // 8] ^= 1 << place % 8
            self.file.write_bytes(data)
            said = self.resume()
            self.assertEqual((said.code, said.out), (1, ""), f"bit {place}: {said}")

    def test_ranks_find_it_too(self):
        changed = self.good["W"].copy()
        changed[2, 1] += 1
        dump(self.file, {**self.good, "W": changed})
        said = einrel_process.job(2, "train", self.program, *self.feeds, "--batch", "b=10", "--epochs", "2", "--resume", self.save)
        self.assertEqual(said.code, 1, said)
        self.assertEqual(said.err.count("check sum"), 1, said)


class Ended(TrainTest):
    """A signal ends training after the step under way, with a checkpoint of it."""

    def begun(self, *arguments, before=(), **options):
        """Training that goes on for ever, in its first steps."""
        log = self.path("log.csv")
        running = subprocess.Popen(
            [*before, einrel_process.PROGRAM, "train", self.layers, *self.feeds, "--batch", "b=10", "--epochs", "1000000",
             "--log", log, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        einrel_process.cases += 1
        while not os.path.exists(log) or not self.note_signals(log):
            self.assertIsNone(running.poll(), running)
            time.sleep(0.01)
        os.remove(log)
        return running

    @staticmethod
    def processes(name, argument):
        """Numbers and states, as /proc has them, of processes of this name with this argument."""
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
                command = (status.parent / "cmdline").read_bytes()
            except OSError:
                continue
            if text.startswith(f"Name:\t{name}\n") and argument.encode() in command:
                yield int(status.parent.name), text

    def note_signals(self, argument):
        """Whether the processes with this argument that train, and not those that watch them, would note SIGUSR1."""
        masks = [int(re.search(r"^SigCgt:\t(\w+)$", text, re.M).group(1), 16) for _, text in self.processes("einrel", argument)]
        return bool(masks) and all(mask >> (signal.SIGUSR1 - 1) & 1 for mask in masks)

    def assert_kept(self, save, err, more=()):
        steps = int(re.search(r"^interrupted at step (\d+); --resume \S+ goes on from step \1$", err, re.M).group(1))
        self.assertEqual(int(self.states(save)["iteration"]), steps)
        epochs = str(steps // 10 + 1)
        for folder, begin in ((save, ["--resume", save]), (save + "-whole", [])):
            self.train("--epochs", epochs, "--save", folder, *begin, *more, program=self.layers)
        self.assert_same_states(self.states(save), self.states(save + "-whole"), 1e-5)

    def test_any_of_those_that_systems_send(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            with self.subTest(signal=number):
                save = self.path(f"save{number}")
                running = self.begun("--save", save, preexec_fn=lambda number=number: signal.signal(number, signal.SIG_DFL))
                running.send_signal(number)
                out, err = running.communicate(timeout=60)
                self.assertEqual(running.returncode, -number, err)
                self.assertIn("saved", out)
                self.assert_kept(save, err)

    def test_one_that_is_ignored_stays_so(self):
        running = self.begun("--save", self.path("save"), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        running.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
        self.assertEqual(running.returncode, -signal.SIGTERM)

    def test_ranks_end_together(self):
        """mpirun hands SIGUSR1 on to its ranks."""
        for more in ([], ["--local-steps", "2"]):
            with self.subTest(more=more):
                save = self.path(f"save{len(more)}")
                running = self.begun("--save", save, *more, before=[MPIRUN, "-n", "2"])
                running.send_signal(signal.SIGUSR1)
                out, err = running.communicate(timeout=60)
                self.assertEqual(running.returncode, 128 + signal.SIGUSR1, err)
                self.assertEqual(err.count("the step under way is finished first"), 1, err)
                self.assertIn("saved", out)
                if not more:
                    self.assert_kept(save, err)

    def test_one_rank_that_is_told_tells_the_others(self):
        save = self.path("save")
        running = self.begun("--save", save, before=[MPIRUN, "-n", "2"])
        guards = [number for number, _ in self.processes("einrel-guard", save)]
        self.assertEqual(len(guards), 2)
        os.kill(max(guards), signal.SIGTERM)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 128 + signal.SIGTERM, err)
        self.assert_kept(save, err)


if __name__ == "__main__":
    main()
