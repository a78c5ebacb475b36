"""Programs that `einrel explain --spmd --jax` writes, in JAX on 1, 2, 4 and 8 forced CPU devices.

Every document of test/lang gives what `einrel run` gives, and the collectives of the compiled program move exactly the
bytes that the plan predicts. What is refused, and what JAX computes otherwise, is listed here and in docs/export.md.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/cli"), str(ROOT / "test/lang")]

import documents  # noqa: E402
import einrel_process  # noqa: E402
from script_documents import array_of, file_array  # noqa: E402

SITES = (1, 2, 4, 8)
TOLERANCES = {"f64": 1e-11, "f32": 2e-5, "bf16": 2e-2, "f16": 2e-3}
# By document, why it is not exported.
REFUSED = {
    "23_empty": "a label without positions",
    "90_inverse": "a label without positions",
    "90_qr": "a label without positions",
    "94_complex": "complex numbers",
}
# By document, tensors that come out otherwise in JAX.
DIFFERENT = {
    "14_accurate_functions": {"E", "F"},  # silu and gelu of -inf are NaN
    "39_narrow_casts": {"JW", "Of"},  # of an i64 above 2^53, rounded twice
}
# Documents that compute one thing twice, of which compilers see it: then less moves than the plan says.
COMPUTED_TWICE = {"program_attention"}  # Y and Y3
EXAMPLES = ("two_layer", "mlp", "kmeans", "multi_head_attention", "train_mnist", "train_dropout", "attention_gradient",
            "llama_layer", "cnn", "hmm", "crf", "ffnn", "convolution_layers")
NUMPY_TYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16", "i32": "int32", "i64": "int64", "bool": "bool"}
TYPES = "|".join(NUMPY_TYPES)


def known():
    """By name, the documents that are programs and run."""
    read = (documents.read(path) for path in sorted((ROOT / "test/lang").glob("*.ein")))
    return {document.name: document for document in read if not document.is_refused and not document.failure}


class ExportedTest(einrel_process.ProgramTest):
    def options(self, document):
        return [word for label, extent in document.dims().items() for word in ("--dim", f"{label}={extent}")]

    def wanted(self, document, arrays):
        """What einrel run gives, by output: the type and an array."""
        run = ["run", document.path, *self.options(document)]
        run += [word for scalar, value in document.assignments("scalar").items() for word in ("--scalar", f"{scalar}={value}")]
        if document.has_state:
            run += ["--steps", str(self.steps(document))]
        for name, info in document.inputs().items():
            np.save(self.path(f"in {name}.npy"), file_array(arrays[name], info))
            run += ["--in", f"{name}={self.path(f'in {name}.npy')}"]
        names = re.findall(rf"^(\S+) +(?:{TYPES})\b", self.succeed(*run).out, re.M)
        self.succeed(*run, *(word for name in names for word in ("--out", f"{name}={self.path(f'out {name}.npy')}")), "--overwrite")
        return {name: array_of(self.path(f"out {name}.npy")) for name in names}

    def steps(self, document):
        return int((document.rests("steps") or ["1"])[0])

    def export(self, document, arrays, sites):
        """Why the document is not exported; None where it is."""
        path = Path(self.path(f"{document.name}_{sites}.py"))
        told = einrel_process.einrel("explain", document.path, *self.options(document), "--sites", str(sites), "--spmd", "--jax", path)
        if told.code != 0:
            self.assertEqual(told.code, 1, told)
            self.assertFalse(path.exists())
            return told.err
        scalars = {name: float(value) for name, value in document.assignments("scalar").items()}
        path.with_suffix(".json").write_text(json.dumps({"steps": self.steps(document), "scalars": scalars}))
        np.savez(path.with_suffix(".npz"), **arrays)
        return None

    def run_exported(self):
        done = subprocess.run([sys.executable, Path(__file__).with_name("exported.py"), self.folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])

    def expect(self, document, sites, wanted):
        path = Path(self.path(f"{document.name}_{sites}.py"))
        self.assertFalse(path.with_suffix(".error").exists(), path.with_suffix(".error").exists() and path.with_suffix(".error").read_text()[-2000:])
        moved, predicted = map(int, path.with_suffix(".bytes").read_text().split())
        if document.name in COMPUTED_TWICE:
            self.assertLessEqual(moved, predicted)
        else:
            self.assertEqual(moved, predicted, "bytes of the compiled program, and predicted ones")
        found = np.load(path.with_suffix(".out.npz"))
        types = json.loads(path.with_suffix(".types").read_text())
        for name, (dtype, array) in wanted.items():
            self.assertEqual(found[name].shape, array.shape, name)
            self.assertEqual(types[name], NUMPY_TYPES[dtype], name)
            if name not in DIFFERENT.get(document.name, ()):
                tolerance = TOLERANCES.get(dtype, 0)
                largest = np.max(np.abs(array), initial=0, where=np.isfinite(array))
                np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance * min(1, largest), err_msg=name)

    def test_documents_give_what_a_run_gives_and_move_what_is_predicted(self):
        self.check(known(), SITES)

    def check(self, chosen, sites):
        exported = {}
        for name, document in chosen.items():
            arrays = document.arrays()
            refused = {self.export(document, arrays, count) for count in sites} - {None}
            with self.subTest(document=name):
                self.assertEqual(bool(refused), name in REFUSED, refused)
                self.assertTrue(all(REFUSED.get(name, "") in why for why in refused), refused)
            if not refused:
                exported[name] = self.wanted(document, arrays)
        self.run_exported()
        for name, wanted in exported.items():
            for count in sites:
                with self.subTest(document=name, sites=count):
                    self.expect(chosen[name], count, wanted)

    def test_examples_move_what_is_predicted(self):
        refused = {"train_cnn": "a way that has no collectives"}
        for name in [*EXAMPLES, *refused]:
            path = Path(self.path(f"{name}.py"))
            told = einrel_process.einrel("explain", ROOT / f"examples/{name}.ein", "--sites", "8", "--spmd", "--jax", path)
            with self.subTest(example=name):
                self.assertEqual(told.code, 1 if name in refused else 0, told)
                self.assertIn(refused.get(name, ""), told.err)
            path.with_suffix(".json").write_text(json.dumps({"steps": 0}))
        self.run_exported()
        for name in EXAMPLES:
            with self.subTest(example=name):
                moved, predicted = map(int, Path(self.path(f"{name}.bytes")).read_text().split())
                self.assertEqual(moved, predicted)

    def test_linear_algebra_is_of_whole_matrices(self):
        program = self.text_file("linear.ein", "dims b=4 i=3 j=3 k=3\ninput X[b,i,j] : f64\nY[b,i,j] = inverse[i,j](X[b,i,j])\n"
                                 "Q[b,i,k] = qr_q[i,j,k](X[b,i,j])\nR[b,k,j] = qr_r[i,j,k](X[b,i,j])\noutput Y, Q, R\n")
        document = documents.read(Path(program))
        arrays = {"X": np.random.default_rng(1).normal(size=(4, 3, 3))}
        self.assertIsNone(self.export(document, arrays, 4))
        self.run_exported()
        self.expect(document, 4, self.wanted(document, arrays))

    def test_small_halves_are_not_lost(self):
        small = [2.0**-24, 2.0**-25, 1.5 * 2.0**-24, -3e-7, 5e-5, 2.0**-14, 6.1e-5, 65519.0, 65520.0, 0.1]
        wanted = {"Z": np.float32(small).astype(np.float16), "W": np.float16(small).astype(np.float32)}
        program = self.text_file("halves.ein", f"dims i={len(small)}\ninput X[i] : f32\nZ[i] = f16(X[i])\nW[i] = f32(f16(X[i]))\noutput Z, W\n")
        document = documents.read(Path(program))
        self.assertIsNone(self.export(document, {"X": np.float32(small)}, 2))
        self.run_exported()
        found = np.load(self.path("halves_2.out.npz"))
        for name in ("Z", "W"):
            self.assertEqual(found[name].dtype, wanted[name].dtype)
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)

    def test_names_and_files_with_quotes(self):
        names = ["_read", "_positions", "_half", "_uniform", "_normal", "_to_integer", "_whole_power"]
        labels = [f"l{i}" for i in range(40)]
        text = "dims i=4 " + " ".join(f"{label}=1" for label in labels) + "\n"
        text += "".join(f"input {name}[i] : f64\n" for name in names) + f"input L[{','.join(labels)}] : f64\ninput R[l39,i] : f64\n"
        text += "S[i] = " + " + ".join(f"{name}[i]" for name in names) + "\n"
        text += "Y[i] = f64(i64(S[i] * 3) ** 2) + f64(f16(S[i])) + pad(S[i-1], 0)\n"
        text += f"M[i] = sum[{','.join(labels)}] L[{','.join(labels)}] * R[l39,i]\noutput Y, M\n"
        program = self.text_file('a"""\\b.ein', text)
        document = documents.read(Path(program))
        random = np.random.default_rng(2)
        arrays = {name: random.normal(size=4) for name in names} | {"L": random.normal(size=(1,) * 40), "R": random.normal(size=(1, 4))}
        path = Path(self.path("quoted_2.py"))
        self.succeed("explain", program, "--sites", "2", "--spmd", "--jax", path)
        path.with_suffix(".json").write_text(json.dumps({"steps": 1, "scalars": {}}))
        np.savez(path.with_suffix(".npz"), **arrays)
        self.run_exported()
        found = np.load(self.path("quoted_2.out.npz"))
        for name, (_, array) in self.wanted(document, arrays).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-12, err_msg=name)

    def test_programs_run_by_themselves(self):
        for name in ("power_iteration", "kmeans", "train_dropout"):
            path = Path(self.path(f"{name}.py"))
            self.succeed("explain", ROOT / f"examples/{name}.ein", "--sites", "8", "--spmd", "--jax", path)
            path.with_suffix(".json").write_text(json.dumps({"is_program": True}))
        self.run_exported()
        self.assertEqual([path.read_text()[-500:] for path in Path(self.folder).glob("*.error")], [])

    def test_what_does_not_fit_is_refused(self):
        program = self.text_file("small.ein", "dims i=2 j=4\ninput X[i,j] : f32\ninput K[i] : i32\nY[i,j] = X[i,j] * f32(K[i])\noutput Y\n")
        path = self.path("small.py")
        self.succeed("explain", program, "--sites", "2", "--spmd", "--jax", path)
        done = subprocess.run([sys.executable, Path(__file__).with_name("misfits.py"), path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertEqual(done.stdout.splitlines(), [
            "X has the shape (2, 4) in this program, and here it has (4, 2)",
            "K is of int32 in this program, which cannot hold all elements of this float64",
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
                         f"{path}: the plan of eindecomp as a program for JAX\n")
        planned = self.path("planned.py")
        self.succeed("explain", program, "--sites", "6", "--spmd", "--jax", planned)
        self.assertEqual(Path(path).read_text(), Path(planned).read_text())
        told = self.succeed("explain", program, "--sites", "8", "--spmd", "--planner", "tensor", "--planner", "eindecomp", "--jax", path)
        self.assertEqual(told.out, f"{path}: the plan of tensor as a program for JAX\n")

    def test_what_is_refused_is_documented(self):
        text = (ROOT / "docs/export.md").read_text(encoding="utf-8")
        for reason in REFUSED.values():
            self.assertIn(reason, text)


if __name__ == "__main__":
    einrel_process.main()
