"""Inputs from files in runs within a limit of memory: they take none of it.

Usage: input_memory_test.py EINREL    (an EINREL without sanitizers, which need memory of their own)
"""

import gzip
import json
import os
import resource
import struct
import subprocess

import numpy as np

import einrel_process
from einrel_process import ProgramTest, main

MPIRUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "mpirun")


class InputsWithinLimits(ProgramTest):
    """Inputs that take several times what a run may, and are not used where they lie in their files."""

    ROWS, COLUMNS = 2500, 8000  # 80 MB of f32

    def setUp(self):
        super().setUp()
        self.values = np.random.default_rng(3).integers(0, 200, (50, self.COLUMNS))
        self.values = np.tile(self.values, (self.ROWS // 50, 1))  # that compresses well

    def expect_limit_held(self, dtype, name, *options):
        program = self.text_file("sums.ein", f"input X[i,j] : {dtype}\nS[i] = sum[j] X[i,j]\noutput S\n")
        ran = json.loads(self.succeed("run", program, "--in", f"X={self.path(name)}", "--memory", "12MB", "--threads", "2",
                                      "--out", f"S={self.path('s.npy')}", "--json", *options).out)
        np.testing.assert_array_equal(np.load(self.path("s.npy")), self.values.sum(axis=1))
        self.assertEqual([file for file in os.listdir(self.folder) if "spill" in file], [])
        measured = ran["measured"]
        self.assertLess(ran["peak_memory"]["measured"] - measured["file_pages_per_rank"][0], 40e6)
        return measured

    def test_converted_inputs_are_converted_part_by_part(self):
        for stored, dtype in (("u1", "f32"), ("u1", "i32"), ("u2", "f64"), (">f8", "f64"), (">f4", "f32"), (">i8", "i64")):
            for order in "CF":
                with self.subTest(stored=stored, dtype=dtype, order=order):
                    np.save(self.path("x.npy"), np.asarray(self.values, stored, order=order))
                    self.expect_limit_held(dtype, "x.npy")

    def test_a_converted_input_is_read_in_parts_with_other_plans_and_in_jobs(self):
        np.save(self.path("x.npy"), np.asarray(self.values, "u1"))
        for options in (("--sites", "3"), ("--repeat", "2"), ("--planner", "single")):
            self.expect_limit_held("f32", "x.npy", *options)
        program = self.path("sums.ein")
        for ranks in ("1", "2", "3"):
            einrel_process.cases += 1
            subprocess.run([MPIRUN, "-n", ranks, einrel_process.PROGRAM, "run", program, "--in", f"X={self.path('x.npy')}",
                            "--out", f"S={self.path('s.npy')}"], check=True, capture_output=True, timeout=100)
            np.testing.assert_array_equal(np.load(self.path("s.npy")), self.values.sum(axis=1))

    def test_inputs_that_are_made_are_made_again_and_do_not_go_to_disk(self):
        # Twice over all of the input, which takes several times what there is: for the greatest value, and its position.
        program = self.text_file("position.ein", f"dims i={self.ROWS} j={self.COLUMNS} z={self.ROWS - 10}\n"
                                 "input X[i,j]\nS[] = argmax[z,j] X[z+7,j]\n")
        np.save(self.path("x.npy"), np.asarray(self.values, "u1"))
        for given in (("--random", "1"), ("--in", f"X={self.path('x.npy')}")):
            with self.subTest(given=given):
                whole = json.loads(self.succeed("run", program, *given, "--json").out)
                ran = json.loads(self.succeed("run", program, *given, "--memory", "12MB", "--threads", "1", "--json").out)
                self.assertEqual(ran["outputs"], whole["outputs"])
                self.assertLess(ran["measured"]["bytes_spilled"], 1e6)
                self.assertLess(ran["measured"]["bytes_read_back"], 1e6)

    def write_compressed(self):
        np.savez_compressed(self.path("x.npz"), X=self.values.astype(np.float32), other=np.ones(3))
        with gzip.open(self.path("x.idx.gz"), "wb", compresslevel=1) as file:
            file.write(bytes([0, 0, 0x0D, 2]) + struct.pack(">II", self.ROWS, self.COLUMNS))
            file.write(self.values.astype(">f4").tobytes())

    def test_compressed_inputs_are_decompressed_to_disk(self):
        self.write_compressed()
        for name in ("x.npz:X", "x.idx.gz"):
            for options in ((), ("--spill", self.folder)):
                with self.subTest(name=name, options=options):
                    measured = self.expect_limit_held("f32", name, *options)
                    self.assertGreater(measured["file_pages_per_rank"][0], 80e6)
        program = self.path("sums.ein")
        self.succeed("run", program, "--in", self.path("x.npz"), "--memory", "12MB", "--out", f"S={self.path('s.npy')}")
        np.testing.assert_array_equal(np.load(self.path("s.npy")), self.values.sum(axis=1))
        self.succeed("einsum", "ij->i", f"{self.path('x.npz')}:X", "--memory", "12MB", "--out", self.path("s.npy"))
        np.testing.assert_array_equal(np.load(self.path("s.npy")), self.values.sum(axis=1))

    def test_compressed_inputs_without_room_on_disk_are_named(self):
        def small_files():  # as a full disk refuses
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

        self.write_compressed()
        program = self.text_file("sums.ein", "input X[i,j]\nS[i] = sum[j] X[i,j]\noutput S\n")
        folder = self.path("small")
        os.mkdir(folder)
        for name in ("x.npz:X", "x.idx.gz"):
            given = ("run", program, "--in", f"X={self.path(name)}", "--memory", "12MB")
            self.refuse(2, *given, "--spill", folder, mentions=[f"'{folder}'", name, "decompressed there, to 80 MB"],
                        preexec_fn=small_files)
            self.assertEqual(os.listdir(folder), [])
            self.refuse(1, *given, mentions=["'/proc'", name, "decompressed there", "name another folder"],
                        env={**os.environ, "TMPDIR": "/proc"})
            self.refuse(1, *given, "--spill", "/nowhere", mentions=["/nowhere"])
            for without in ((), ("--memory", "none")):  # in memory
                self.succeed("run", program, "--in", f"X={self.path(name)}", *without, preexec_fn=small_files)
        self.refuse(1, "run", program, "--in", f"X={self.path(name)}", "--memory", "none", "--spill", "/nowhere",
                    mentions=["--spill needs --memory SIZE"])


if __name__ == "__main__":
    main()
