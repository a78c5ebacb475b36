"""Programs that `einrel explain --spmd --torch` writes, in PyTorch on 1, 2 and 4 processes.

Every document of test/lang gives what `einrel run` gives, and its collectives move exactly the bytes that the plan predicts. What is refused, and
what PyTorch computes otherwise, is listed here and in docs/export.md.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from export_process import ROOT, ExportedPrograms

import documents
import einrel_process
from script_documents import file_array

# train_dropout is not among them: random numbers shift bits, which PyTorch 1.13 has no function for on meta.
EXAMPLES = ("two_layer", "mlp", "kmeans", "multi_head_attention", "train_mnist", "attention_gradient", "llama_layer", "cnn", "hmm", "crf",
            "ffnn", "convolution_layers", "train_cnn")


class TorchTest(ExportedPrograms, einrel_process.ProgramTest):
    option = "--torch"
    runner = "torch_ranks.py"
    sites = (1, 2, 4)
    helpers = ("_read", "_rounded", "_extreme", "_uniform", "_normal", "_to_integer", "_whole_power", "_all_gather", "mesh", "dist")
    different = {
        "14_accurate_functions": {"E", "F"},  # silu and gelu of -inf are NaN
        "39_narrow_casts": {"JW", "Of"},  # of an i64 above 2^53, rounded twice
    }

    def test_examples_move_what_is_predicted(self):
        paths = {name: self.path(f"{name}.py") for name in EXAMPLES}
        for name, path in paths.items():
            self.succeed("explain", ROOT / f"examples/{name}.ein", "--sites", "8", "--spmd", "--torch", path)
        counted = subprocess.run([sys.executable, Path(__file__).with_name("torch_unrun.py"), *paths.values()], capture_output=True, text=True)
        self.assertEqual(counted.returncode, 0, counted.stderr[-2000:])
        lines = [line.split() for line in counted.stdout.splitlines()]
        self.assertEqual([path for path, _, _ in lines], list(paths.values()))
        for path, moved, predicted in lines:
            with self.subTest(example=path):
                self.assertEqual(moved, predicted)

    def test_bf16_of_numpy_are_taken_by_their_bits(self):
        text = "dims i=8 j=4\ninput X[i,j] : bf16\ninput s[] : bf16\nY[i,j] = X[i,j] * s[]\nZ[j] = sum[i] X[i,j]\noutput Y, Z\n"
        document = documents.read(Path(self.text_file("bf16.ein", text)))
        arrays = {"X": np.float32(np.arange(-16, 16) / 8).reshape(8, 4), "s": np.float32(0.5)}
        as_bits = {name: file_array(array[()], document.inputs()[name]) for name, array in arrays.items()}
        self.assertEqual({array.dtype.str for array in as_bits.values()}, {"|V2"})
        self.assertIsNone(self.export(document, as_bits, 2))
        self.run_exported()
        self.expect(document, 2, self.wanted(document, arrays))

    def test_what_does_not_fit_is_refused(self):
        program = self.text_file("small.ein", "dims i=2 j=4\ninput X[i,j] : f32\ninput K[i] : i32\nY[i,j] = X[i,j] * f32(K[i])\noutput Y\n")
        paths = {sites: self.path(f"small_{sites}.py") for sites in (1, 2)}
        for sites, path in paths.items():
            self.succeed("explain", program, "--sites", str(sites), "--spmd", "--torch", path)
        alone = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        done = subprocess.run([sys.executable, Path(__file__).with_name("torch_misfits.py"), paths[1], paths[2]], capture_output=True, text=True, env=alone)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertEqual(done.stdout.splitlines(), [
            "X has the shape (2, 4) in this program, and here it has (4, 2)",
            "K is of torch.int32 in this program, which cannot hold all elements of this torch.float64",
            "X is of torch.float32 in this program, which cannot hold all elements of this torch.complex64",
            "Z is no tensor of this program; it has K, X",
            "there is no array for K",
            "the plan is for 2 devices, and here are 1: plan with --sites 1, or start as many processes as it is for, as torchrun --nproc_per_node 2 does",
            "[[2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0]]"])

    def test_both_libraries_are_written_or_none(self):
        program = ROOT / "examples/two_layer.ein"
        paths = {library: self.path(f"{library}.py") for library in ("jax", "torch")}
        files = [word for library, path in paths.items() for word in (f"--{library}", path)]
        told = self.succeed("explain", program, "--sites", "4", "--spmd", *files)
        self.assertEqual(told.out, f"{paths['jax']}: the plan of eindecomp as a program for JAX\n{paths['torch']}: the plan of eindecomp as a program for PyTorch\n")
        self.assertIn("allow_tf32 = False", Path(paths["torch"]).read_text())
        self.assertIn("PRECISION = lax.Precision.HIGHEST", Path(paths["jax"]).read_text())
        self.refuse(1, "explain", program, "--sites", "4", "--torch", paths["torch"], mentions=["--torch writes the program", "add --spmd"])
        self.refuse(1, "explain", program, "--sites", "4", "--spmd", "--torch", program, mentions=["name another file"])
        self.refuse(1, "explain", program, "--sites", "2,4", "--spmd", "--torch", paths["torch"], mentions=["--torch is for one number of sites"])


if __name__ == "__main__":
    einrel_process.main()
