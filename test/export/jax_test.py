"""Programs that `einrel explain --spmd --jax` writes, in JAX on 1, 2, 4 and 8 forced CPU devices.

Every document of test/lang gives what `einrel run` gives, and the collectives of the compiled program move exactly the
bytes that the plan predicts. What is refused, and what JAX computes otherwise, is listed here and in docs/export.md.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from collective_bytes import collective_bytes
from export_process import ROOT, ExportedPrograms

import einrel_process

EXAMPLES = ("two_layer", "mlp", "kmeans", "multi_head_attention", "train_mnist", "train_dropout", "attention_gradient",
            "llama_layer", "cnn", "hmm", "crf", "ffnn", "convolution_layers", "train_cnn")


class JaxTest(ExportedPrograms, einrel_process.ProgramTest):
    option = "--jax"
    runner = "exported.py"
    sites = (1, 2, 4, 8)
    helpers = ("_read", "_positions", "_half", "_extreme", "_uniform", "_normal", "_to_integer", "_whole_power")
    different = {
        "14_accurate_functions": {"E", "F"},  # silu and gelu of -inf are NaN
        "39_narrow_casts": {"JW", "Of"},  # of an i64 above 2^53, rounded twice
    }
    # Documents that compute one thing twice, of which compilers see it: then less moves than the plan says.
    moves_less = {"program_attention"}  # Y and Y3

    def test_collectives_of_many_arrays_are_counted(self):
        tuple_of_six = "f32[2,3]{1,0}, f32[4]{0}, s64[2]{0}, f32[8]{0}, f32[1]{0}, /*index=5*/f64[5]{0}"
        line = f"%all-reduce.9 = ({tuple_of_six}) all-reduce(%a, %b, %c, %d, %e, /*index=5*/%f), replica_groups={{{{0,1}},{{2,3}}}}, to_apply=%add"
        size = 4 * (6 + 4 + 8 + 1) + 8 * (2 + 5)  # around a ring of two, each device receives half of it twice
        self.assertEqual(collective_bytes(f"ENTRY %main {{\n  {line}\n}}", 4), 4 * size)

    def test_examples_move_what_is_predicted(self):
        for name in EXAMPLES:
            path = Path(self.path(f"{name}.py"))
            self.succeed("explain", ROOT / f"examples/{name}.ein", "--sites", "8", "--spmd", "--jax", path)
            path.with_suffix(".json").write_text(json.dumps({"steps": 0}))
        self.run_exported()
        for name in EXAMPLES:
            with self.subTest(example=name):
                moved, predicted = map(int, Path(self.path(f"{name}.bytes")).read_text().split())
                self.assertEqual(moved, predicted)

    def test_what_does_not_fit_is_refused(self):
        program = self.text_file("small.ein", "dims i=2 j=4\ninput X[i,j] : f32\ninput K[i] : i32\nY[i,j] = X[i,j] * f32(K[i])\noutput Y\n")
        path = self.path("small.py")
        self.succeed("explain", program, "--sites", "2", "--spmd", "--jax", path)
        done = subprocess.run([sys.executable, Path(__file__).with_name("misfits.py"), path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertEqual(done.stdout.splitlines(), [
            "X has the shape (2, 4) in this program, and here it has (4, 2)",
            "K is of int32 in this program, which cannot hold all elements of this float64",
            "X is of float32 in this program, which cannot hold all elements of this complex64",
            "Z is no tensor of this program; it has K, X",
            "there is no array for K",
            "the plan is for 2 devices, and here are 1: plan with --sites 1, or on CPUs set XLA_FLAGS=--xla_force_host_platform_device_count=2 before Python starts",
            "[[2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0]]"])

    def test_plans_from_files_are_written_where_one_program_says_them(self):
        program = ROOT / "examples/two_layer.ein"
        plans = {}
        for name, options in {"any": (), "one": ("--spmd",)}.items():
            plans[name] = self.text_file(f"{name}.json", self.succeed("explain", program, "--sites", "6", *options, "--json").out)
        path = self.path("given.py")
        self.refuse(1, "explain", program, "--plan", plans["any"], "--spmd", mentions=["no single program for all sites computes", "leave out --spmd"])
        self.refuse(1, "explain", program, "--plan", plans["any"], "--jax", path, mentions=["no single program", "plan with --spmd"])
        self.succeed("explain", program, "--plan", plans["one"], "--spmd")
        self.assertEqual(self.succeed("explain", program, "--plan", plans["one"], "--jax", path).out,
                         f"{path}: the plan of file as a program for JAX\n")
        planned = self.path("planned.py")
        self.succeed("explain", program, "--sites", "6", "--spmd", "--jax", planned)
        self.assertEqual(Path(path).read_text().replace("planned by file", "planned by eindecomp", 1), Path(planned).read_text())
        told = self.succeed("explain", program, "--sites", "8", "--spmd", "--planner", "tensor", "--planner", "eindecomp", "--jax", path)
        self.assertEqual(told.out, f"{path}: the plan of tensor as a program for JAX\n")


if __name__ == "__main__":
    einrel_process.main()
