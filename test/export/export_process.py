"""Documents of test/lang as programs for another library: what they have to give, and how they are exported and compared."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
from random_layers import random_layers

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/cli"), str(ROOT / "test/lang")]

import documents  # noqa: E402
import einrel_process  # noqa: E402
from script_documents import array_of, file_array  # noqa: E402

NOISE = 1e-3  # all of a tensor below: what is left of numbers of about 1, rounded
TOLERANCES = {"f64": 1e-11, "f32": 2e-5, "bf16": 2e-2, "f16": 2e-3}
# By document, why it is not exported.
REFUSED = {
    "23_empty": "a label without positions",
    "90_inverse": "a label without positions",
    "90_qr": "a label without positions",
    "94_complex": "complex numbers",
}
NUMPY_TYPES = {"f32": "float32", "f64": "float64", "bf16": "bfloat16", "f16": "float16", "i32": "int32", "i64": "int64", "bool": "bool"}
TYPES = "|".join(NUMPY_TYPES)


def known():
    """By name, the documents that are programs and run."""
    read = (documents.read(path) for path in sorted((ROOT / "test/lang").glob("*.ein")))
    return {document.name: document for document in read if not document.is_refused and not document.failure}


class DocumentRuns:
    """How documents are given to the command, and what runs of them give."""

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


def agree(found, array, dtype, name):
    """Raises AssertionError, with the name, where one is not the other but for rounding."""
    tolerance = TOLERANCES.get(dtype, 0)
    largest = np.max(np.abs(array), initial=0, where=np.isfinite(array))
    np.testing.assert_allclose(found, array, rtol=tolerance, atol=tolerance * min(1, max(largest, NOISE)), err_msg=name)


class ExportedPrograms(DocumentRuns):
    """Tests of one library: its option of explain, what runs the modules of a folder, for how many devices, names in modules,
    and by document tensors that come out otherwise."""

    option = runner = ""
    sites = helpers = ()
    different = {}
    moves_less = {}

    def export(self, document, arrays, sites, *options):
        """Why the document is not exported; None where it is."""
        path = Path(self.path(f"{document.name}_{sites}.py"))
        told = einrel_process.einrel("explain", document.path, *self.options(document), "--sites", str(sites), "--spmd", self.option, path, *options)
        if told.code != 0:
            self.assertEqual(told.code, 1, told)
            self.assertFalse(path.exists())
            return told.err
        scalars = {name: float(value) for name, value in document.assignments("scalar").items()}
        path.with_suffix(".json").write_text(json.dumps({"steps": self.steps(document), "scalars": scalars}))
        np.savez(path.with_suffix(".npz"), **arrays)
        return None

    def run_exported(self):
        done = subprocess.run([sys.executable, Path(__file__).with_name(self.runner), self.folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])

    def expect(self, document, sites, wanted):
        path = Path(self.path(f"{document.name}_{sites}.py"))
        self.assertFalse(path.with_suffix(".error").exists(), path.with_suffix(".error").exists() and path.with_suffix(".error").read_text()[-2000:])
        moved, predicted = map(int, path.with_suffix(".bytes").read_text().split())
        if document.name in self.moves_less:
            self.assertLessEqual(moved, predicted)
        else:
            self.assertEqual(moved, predicted, "bytes that the program moves, and predicted ones")
        found = np.load(path.with_suffix(".out.npz"))
        types = json.loads(path.with_suffix(".types").read_text())
        for name, (dtype, array) in wanted.items():
            self.assertEqual(found[name].shape, array.shape, name)
            self.assertEqual(types[name], NUMPY_TYPES[dtype], name)
            if name not in self.different.get(document.name, ()):
                agree(found[name], array, dtype, name)

    def expect_on_some(self, document, arrays):
        """What a document gives, of its modules for the fewest sites."""
        self.run_exported()
        wanted = self.wanted(document, arrays)
        for sites in self.sites[:3]:
            with self.subTest(sites=sites):
                self.expect(document, sites, wanted)

    def test_documents_give_what_a_run_gives_and_move_what_is_predicted(self):
        self.check(known(), self.sites)

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

    def test_linear_algebra_is_of_whole_matrices(self):
        program = self.text_file("linear.ein", "dims b=4 i=3 j=3 k=3\ninput X[b,i,j] : f64\nY[b,i,j] = inverse[i,j](X[b,i,j])\n"
                                 "Q[b,i,k] = qr_q[i,j,k](X[b,i,j])\nR[b,k,j] = qr_r[i,j,k](X[b,i,j])\noutput Y, Q, R\n")
        document = documents.read(Path(program))
        arrays = {"X": np.random.default_rng(1).normal(size=(4, 3, 3))}
        self.assertIsNone(self.export(document, arrays, 2))
        self.run_exported()
        self.expect(document, 2, self.wanted(document, arrays))

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

    def test_no_device_loses_a_nan_of_another(self):
        text = ("dims i=8 j=5\ninput A[i,j], B[i,j] : f64, C[i,j] : bf16\n" + "".join(
            f"{how}{name}[j] = {how}[i] {name}[i,j]\n" for name in "ABC" for how in ("max", "min")) + "output " + ", ".join(
            f"{how}{name}" for name in "ABC" for how in ("max", "min")) + ", Z\n")
        text = text.replace("output", "Z[i] = where(A[i,0] > 0, 1 / 0, 0 / 0)\noutput")
        document = documents.read(Path(self.text_file("nan.ein", text)))
        values = np.float32(np.random.default_rng(3).integers(-9, 9, size=(8, 5)))
        values[0, 0] = values[5, 1] = values[7, 2] = np.nan  # on the first device, in between, on the last
        values[2, 3], values[3, 4] = np.inf, -np.inf
        arrays = {"A": values, "B": np.float64(values), "C": values}
        self.assertIsNone(self.export(document, arrays, 4, "--planner", "data"))
        self.run_exported()
        found = np.load(self.path("nan_4.out.npz"))
        np.testing.assert_array_equal(found["Z"], np.where(values[:, 0] > 0, np.inf, np.nan))
        for name in "ABC":
            np.testing.assert_array_equal(np.float64(found[f"max{name}"]), values.max(0), err_msg=name)
            np.testing.assert_array_equal(np.float64(found[f"min{name}"]), values.min(0), err_msg=name)

    def test_windows_that_are_convolutions_are_called_so(self):
        windows = {  # what is read of X, and what is multiplied with it
            "A[n,f,y]": ("dims n=4 f=4 c=2 y=5 d=3", "X[n,c,y+d]", "K[f,c,d]", "c,d"),
            "B[y,n,f,x]": ("dims n=4 f=4 c=2 y=4 x=3 d=3 e=2", "pad(X[c,2*y+d-1,n,x-3*e+1], 0)", "K[d,f,e,c]", "c,d,e"),
            "C[y]": ("dims y=8 d=3", "X[y+2*d]", "K[d]", "d"),
            "D[m,y,n,f,g]": ("dims m=2 n=4 f=2 g=4 c=2 b=2 y=4 d=3", "pad(X[n,c,3*y-d,b,m], 0)", "K[g,c,f,b,d]", "b,c,d"),
            "E[n,x,y,z]": ("dims n=4 x=2 y=3 z=4 d=2 e=2 h=2", "X[n,x+d,y+e,z+h+1]", "K[h,d,e]", "d,e,h"),
        }
        random = np.random.default_rng(5)
        shapes = {"A": ((4, 2, 7), (4, 2, 3)), "B": ((2, 9, 4, 4), (3, 4, 2, 2)), "C": ((12,), (3,)), "D": ((4, 2, 10, 2, 2), (4, 2, 2, 2, 3)), "E": ((4, 3, 4, 6), (2, 2, 2))}
        exported = []
        for result, (dims, read, filtered, reduced) in windows.items():
            name = result[0]
            declared = [f"{array}[{','.join(f'{array.lower()}{d}' for d in range(len(shape)))}]" for array, shape in zip("XK", shapes[name])]
            extents = " ".join(f"{array.lower()}{d}={extent}" for array, shape in zip("XK", shapes[name]) for d, extent in enumerate(shape))
            text = f"{dims} {extents}\ninput {', '.join(declared)} : f64\n{result} = 0.5 * sum[{reduced}] {read} * {filtered}\noutput {name}\n"
            document = documents.read(Path(self.text_file(f"{name}.ein", text)))
            arrays = {array: random.normal(size=shape) for array, shape in zip("XK", shapes[name])}
            for sites in self.sites[:3]:
                self.assertIsNone(self.export(document, arrays, sites))
                self.assertRegex(Path(self.path(f"{name}_{sites}.py")).read_text(), r"\.conv\w*\(")
            exported.append((document, self.wanted(document, arrays)))
        self.run_exported()
        for document, wanted in exported:
            for sites in self.sites[:3]:
                with self.subTest(result=document.name, sites=sites):
                    self.expect(document, sites, wanted)

    def test_layers_are_functions(self):
        sizes = {"v": 32, "b": 4, "s": 8, "e": 16, "h": 4, "d": 4, "m": 24, "c": 2, "f": 8, "g": 8}
        dims = "dims " + " ".join(f"{label}={extent}" for label, extent in sizes.items()) + "\n"
        mlp = dims + "input H0[b,f] : f64\n" + "".join(
            f"input W{n}[f,g] : f64\nH{n}[b,g] = tanh(sum[f] H{n - 1}[b,f] * W{n}[f,g])\n" for n in range(1, 13)) + "output H12, H6\n"
        llama = dims + re.sub(r"(?m)^dims.*$", "", runpy.run_path(str(ROOT / "examples/llama_7b.py"))["program"](4))
        random = np.random.default_rng(7)
        exported = []
        for name, text, formula in (("layers_mlp", mlp, "H_next[b,g] = tanh("), ("layers_llama", llama, "O[b,s,h,d] = sum[t]")):
            document = documents.read(Path(self.text_file(f"{name}.ein", text)))
            arrays = {each: np.asarray(random.normal(size=[sizes[label] for label in info.labels]) / 4, NUMPY_TYPES[info.dtype]) for each, info in document.inputs().items()}
            for sites in self.sites[:3]:
                self.assertIsNone(self.export(document, arrays, sites))
                source = Path(self.path(f"{name}_{sites}.py")).read_text()
                self.assertEqual((source.count("\ndef layer("), source.count(f"# {formula}")), (1, 1), source)
            exported.append((document, self.wanted(document, arrays)))
        self.run_exported()
        for document, wanted in exported:
            for sites in self.sites[:3]:
                with self.subTest(document=document.name, sites=sites):
                    self.expect(document, sites, wanted)

    def test_layers_that_are_trained(self):
        layers = range(1, 10)
        text = "dims b=16 f=8 g=8\ninput H0[b,f], Y[b,g] : f64\n"
        text += "".join(f"state W{n}[f,g] = 0.1 * f64(f - g) / (1 + f64(f) + {n})\n" for n in layers)
        text += "".join(f"H{n}[b,g] = tanh(sum[f] H{n - 1}[b,f] * W{n}[f,g])\n" for n in layers)
        text += f"loss[] = sum[b,g] sq(H9[b,g] - Y[b,g])\nminimize loss over {', '.join(f'W{n}' for n in layers)} by sgd(0.01)\noutput loss, H9\n"
        document = documents.read(Path(self.text_file("trained.ein", text)))
        random = np.random.default_rng(4)
        arrays = {name: random.normal(size=(16, 8)) for name in ("H0", "Y")}
        for sites in self.sites[:3]:
            self.assertIsNone(self.export(document, arrays, sites))
            source = Path(self.path(f"trained_{sites}.py")).read_text()
            self.assertRegex(source, r'H1 = layer\((H0\w*|inputs\["H0"\]), states\["W1"\]')
            for computed in ("H_next", "grad_H_next", "W_gradient", "next_W"):
                self.assertEqual(len(re.findall(rf"# {computed}\[\w,\w\] = ", source)), 1, source)
        self.expect_on_some(document, arrays)

    def test_layers_of_gradients_are_functions(self):
        sizes = {"v": 16, "b": 4, "s": 4, "e": 8, "h": 4, "d": 2, "m": 12, "c": 1}
        dims = "dims " + " ".join(f"{label}={extent}" for label, extent in sizes.items()) + "\n"
        model = re.sub(r"(?m)^dims.*$", "", runpy.run_path(str(ROOT / "examples/llama_7b.py"))["program"](4))
        model = model.replace("input X_1[b,s,e]", "input T[b,s] : i64, E[v,e]\nX_1[b,s,e] = E[T[b,s],e]")
        weights = re.findall(r"(\w+)(\[[^]]*\])", " ".join(re.findall(r"(?m)^input (?:T\[b,s\] : i64, )?(.*)$", model)))
        model = re.sub(r"(?m)^input (?!T).*$", "", model).replace(" : i64, E[v,e]", " : i64")
        states = "".join(f"state {name}{labels} = 0.3 * normal({seed})\n" for seed, (name, labels) in enumerate(weights))
        model = model.replace("output Logits", "input Wanted[b,s,v]\nloss[] = mean[b,s,v] sq(Logits[b,s,v] - Wanted[b,s,v])\n"
                              f"minimize loss over {', '.join(name for name, _ in weights)} by sgd(0.1)\noutput loss")
        document = documents.read(Path(self.text_file("layers_trained.ein", dims + states + model)))
        random = np.random.default_rng(8)
        arrays = {"T": random.integers(16, size=(4, 4)), "Wanted": random.normal(size=(4, 4, 16)).astype("f4")}
        for sites, planner in zip(self.sites[:3], ("eindecomp", "tensor", "data")):
            self.assertIsNone(self.export(document, arrays, sites, "--planner", planner))
            source = Path(self.path(f"layers_trained_{sites}.py")).read_text()
            for computed in ("grad_O", "grad_K", "grad_X_next", "WQ_gradient", "next_WQ"):
                self.assertEqual(len(re.findall(rf"# {computed}\[[a-z,() ]*\] = ", source)), 1, (computed, source))
        self.expect_on_some(document, arrays)

    def test_layers_take_scalars_and_random_numbers_of_their_own(self):
        layers = range(1, 11)
        text = "#! steps 3\ndims b=16 f=8 g=8 v=5\ninput Y[b,g]\nstate H0[b,f] = uniform(99) - 0.5\nstate E[v,g] = 0.1 * normal(98)\n"
        text += "scalar " + ", ".join(f"keep_{n} = {1 - n / 20}" for n in layers) + ", scale = 0.5\n"
        for n in layers:
            text += f"input T{n}[b] : i64\nstate W{n}[f,g] = 0.3 * normal({n})\n"
            text += f"D{n}[b,f] = where(uniform({n % 4}) < keep_{n}, scale * H{n - 1}[b,f] / keep_{n}, 0)\n"
            text += f"H{n}[b,g] = tanh((sum[f] D{n}[b,f] * W{n}[f,g]) + E[T{n}[b],g])\n"
        text += f"loss[] = sum[b,g] sq(H10[b,g] - Y[b,g])\nminimize loss over E, H0, {', '.join(f'W{n}' for n in layers)} by sgd(0.05)\noutput loss\n"
        document = documents.read(Path(self.text_file("dropped.ein", text)))
        random = np.random.default_rng(6)
        arrays = {"Y": random.normal(size=(16, 8)).astype("f4")} | {f"T{n}": random.integers(5, size=16) for n in layers}
        for sites in self.sites[:3]:
            self.assertIsNone(self.export(document, arrays, sites))
            source = Path(self.path(f"dropped_{sites}.py")).read_text()
            self.assertRegex(source, r"def layer\([^)]*\bkeep\b[^)]*\)")
            self.assertRegex(source, r"def layer\([^)]*\bseed, [^)]*stream\b")
            for computed in ("D", "H_next", "grad_H_next", "initial_W"):
                self.assertEqual(len(re.findall(rf"# {computed}\[\w,\w\] = ", source)), 1, (computed, source))
        self.expect_on_some(document, arrays)

    def test_inputs_that_nothing_reads_may_be_given(self):
        program = self.text_file("unread.ein", "dims i=4\ninput A[i], B[i] : f64\nC[i] = B[i] * 2\nstate S[i] = f64(0)\nnext S[i] = S[i] + A[i]\n"
                                 "Z[i] = A[i] + S[i]\noutput Z\n")
        document = documents.read(Path(program))
        arrays = {"A": np.arange(4.0), "B": np.ones(4)}
        self.assertIsNone(self.export(document, arrays, 2))
        self.assertIn('\nUNREAD = ("B",)\n', Path(self.path("unread_2.py")).read_text())
        self.run_exported()
        self.expect(document, 2, self.wanted(document, arrays))

    def test_random_layers(self):
        exported = []
        for seed in range(12):
            text, are_same, arrays = random_layers(seed)
            document = documents.read(Path(self.text_file(f"random{seed}.ein", text)))
            for sites in self.sites[:3]:
                self.assertIsNone(self.export(document, arrays, sites), text)
            if are_same:
                self.assertIn("def layer(", Path(self.path(f"random{seed}_{self.sites[0]}.py")).read_text(), text)
            exported.append((document, self.wanted(document, arrays)))
        self.run_exported()
        for document, wanted in exported:
            for sites in self.sites[:3]:
                with self.subTest(document=document.name, sites=sites):
                    self.expect(document, sites, wanted)

    def test_names_and_files_with_quotes(self):
        names = self.helpers
        labels = [f"l{i}" for i in range(30)]
        text = "dims i=4 " + " ".join(f"{label}=1" for label in labels) + "\n"
        text += "".join(f"input {name}[i] : f64\n" for name in names) + f"input L[{','.join(labels)}] : f64\ninput R[l29,i] : f64\n"
        text += "S[i] = " + " + ".join(f"{name}[i]" for name in names) + "\n"
        text += "Y[i] = f64(i64(S[i] * 3) ** 2) + f64(f16(S[i])) + pad(S[i-1], 0)\n"
        text += f"M[i] = sum[{','.join(labels)}] L[{','.join(labels)}] * R[l29,i]\noutput Y, M\n"
        program = self.text_file('a"""\\b.ein', text)
        document = documents.read(Path(program))
        random = np.random.default_rng(2)
        arrays = {name: random.normal(size=4) for name in names} | {"L": random.normal(size=(1,) * 30), "R": random.normal(size=(1, 4))}
        path = Path(self.path("quoted_2.py"))
        self.succeed("explain", program, "--sites", "2", "--spmd", self.option, path)
        path.with_suffix(".json").write_text(json.dumps({"steps": 1, "scalars": {}}))
        np.savez(path.with_suffix(".npz"), **arrays)
        self.run_exported()
        found = np.load(self.path("quoted_2.out.npz"))
        for name, (_, array) in self.wanted(document, arrays).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-12, err_msg=name)

    def test_programs_run_by_themselves(self):
        for name in ("power_iteration", "kmeans", "train_dropout"):
            path = Path(self.path(f"{name}_{self.sites[1]}.py"))
            self.succeed("explain", ROOT / f"examples/{name}.ein", "--sites", str(self.sites[1]), "--spmd", self.option, path)
            path.with_suffix(".json").write_text(json.dumps({"is_program": True}))
        self.run_exported()
        self.assertEqual([path.read_text()[-500:] for path in Path(self.folder).glob("*.error")], [])

    def test_what_is_refused_is_documented(self):
        text = (ROOT / "docs/export.md").read_text(encoding="utf-8")
        for reason in REFUSED.values():
            self.assertIn(reason, text)
        self.assertIn(f"{len(known()) - len(REFUSED)} of the {len(known())} programs", text)
