"""The tables of docs/cookbook.md: what a row writes in NumPy is evaluated by NumPy, what it writes in Einrel by einrel.

Usage: cookbook_test.py EINREL
"""

import json
import math
import re
import struct
import sys
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

COOKBOOK = Path(__file__).resolve().parent.parent.parent / "docs" / "cookbook.md"
EXTENTS = {"i": 4, "j": 5, "k": 3, "n": 2, "h": 3, "d": 4, "b": 2, "s": 3, "o": 3, "c": 2, "y": 6, "x": 5, "dy": 3,
           "dx": 3}
DTYPES = {"f": "f32", "i": "i64", "b": "bool"}


def rows(title):
    """(spans of code on the left, spans on the right) of each row of the table below a title."""
    section = COOKBOOK.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    found = [tuple(re.findall("`([^`]*)`", cell) for cell in row) for row in cells]
    if not found or not all(left and right for left, right in found):
        raise ValueError(f"docs/cookbook.md has no table of code '{title}'")
    return found


def reads(expression):
    """The tensors of an expression, which have names of one letter here, with the labels that each is read by."""
    return {name: split_labels(labels) for name, labels in re.findall(r"\b([A-Za-z])\[([^\]]*)\]", expression)}


def split_labels(labels):
    return [re.split("[+]", label)[0] for label in labels.split(",") if label]


def extent(label):
    return math.prod(EXTENTS[part] for part in label.strip("()").split())


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def conv2d(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("ncyxuv,kcuv->nkyx", windows, w)


def to_bf16(x):
    """The nearest number with 8 bits of mantissa, ties to even, as f32."""
    bits = x.view(np.uint32).astype(np.uint64)
    bits += 0x7FFF + (bits >> 16 & 1)
    return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32)


gauss = np.vectorize(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2)
# What PyTorch documents of its functions, in NumPy, of the tensors that the row's other side reads.
PYTORCH = {
    "F.linear(x, W, b)": lambda X, W, b: X @ W.T + b,
    "F.relu(x)": lambda X: np.maximum(X, 0),
    "F.gelu(x)": lambda X: gauss(X),
    "F.silu(x)": lambda X: X / (1 + np.exp(-X)),
    "x.softmax(-1)": softmax,
    "x.log_softmax(-1)": lambda X: np.log(softmax(X)),
    "F.layer_norm(x, ...)":
        lambda X: (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5),
    "F.rms_norm(x, ...)": lambda X: X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-5),
    "torch.bmm(A, B)": lambda A, B: np.stack([a @ b for a, b in zip(A, B)]),
    "x.view(b, s, h, d)": lambda X: X.reshape([EXTENTS[label] for label in "bshd"]),
    "x.masked_fill(mask, -inf)": lambda X, M: np.ma.filled(np.ma.array(X, mask=M), -np.inf),
    "torch.cdist(a, b)": lambda A, B: np.linalg.norm(A[:, None] - B[None], axis=-1),
    "F.conv2d(x, w, padding=1)": lambda X, W: conv2d(X, W),
    "x.logsumexp(1)": lambda X: np.log(np.exp(X).sum(1)),
    "x.to(torch.bfloat16)": to_bf16,
}
# Rows of expressions alone: where a tensor's labels are not those of the first that is read, and how it comes to NumPy.
STATEMENTS = {
    "F.conv2d(x, w, padding=1)": "Z[n,k,y,x] = {}",
    "x.to(torch.bfloat16)": "Z[i,j] = f32({})",
}


class Cookbook(process.ProgramTest):
    def tensors(self, row, statement):
        rng = np.random.default_rng(7)
        found = {}
        for name, labels in reads(statement.split(" = ", 1)[1]).items():
            values = rng.standard_normal([extent(label) for label in labels]).astype(np.float32)
            found[name] = values > 0 if name == "M" else np.ones(values.shape, np.int64) if "arange" in row else values
        return found

    def by_einrel(self, statement, tensors):
        labels = set(re.findall(r"\w+", " ".join(re.findall(r"\[([^\]]*)\]", statement)))) & set(EXTENTS)
        program = ["dims " + " ".join(f"{label}={EXTENTS[label]}" for label in sorted(labels))]
        options = []
        for name, values in tensors.items():
            np.save(self.path(f"{name}.npy"), values)
            own = ",".join(f"{name}_{axis}" for axis in range(values.ndim))  # the row's own labels would be a claim
            program.append(f"input {name}[{own}] : {DTYPES[values.dtype.kind]}")
            options += ["--in", f"{name}={self.path(name)}.npy"]
        defined = statement.split("[")[0]
        path = self.text_file("row.ein", "\n".join([*program, statement, f"output {defined}", ""]))
        self.succeed("run", path, *options, "--out", f"{defined}={self.path('result.npy')}", "--overwrite")
        return np.load(self.path("result.npy"))

    def compare(self, found, wanted):
        self.assertEqual(found.shape, np.shape(wanted))
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)

    def test_every_row_from_numpy_says_what_numpy_computes(self):
        for left, right in rows("From NumPy"):
            for row, theirs in zip(left, right, strict=True):
                with self.subTest(row=row):
                    if theirs.startswith("einrel "):
                        self.compare_command(row, theirs)
                        continue
                    tensors = self.tensors(row, theirs)
                    sizes = {label: EXTENTS[label] for label in "nhd"}
                    wanted = np.asarray(eval(row, {"np": np, **sizes, **tensors}))
                    found = self.by_einrel(theirs, tensors)
                    self.assertEqual(found.dtype, wanted.dtype)
                    self.compare(found, wanted)

    def compare_command(self, row, command):
        rng = np.random.default_rng(8)
        a, b = rng.standard_normal((4, 5)), rng.standard_normal((5, 3))
        np.save(self.path("a.npy"), a)
        np.save(self.path("b.npy"), b)
        words = [word.strip("'") for word in command.split()[1:]]
        self.succeed(*words, "--out", "c.npy", cwd=self.folder)
        self.compare(np.load(self.path("c.npy")), eval(row, {"np": np, "A": a, "B": b}))

    def test_every_row_from_pytorch_says_what_pytorch_computes(self):
        for left, right in rows("From PyTorch"):
            for row, theirs in zip(left, right, strict=True):
                with self.subTest(row=row):
                    if theirs.startswith("--in "):
                        self.compare_archive(theirs)
                        continue
                    statement = theirs
                    if not re.match(r"\w+\[[^\]]*\] = ", theirs):
                        first = next(iter(reads(theirs).values()))
                        statement = STATEMENTS.get(row, f"Z[{','.join(first)}] = {{}}").format(theirs)
                    tensors = self.tensors(row, statement)
                    oracle = PYTORCH[row]
                    in_order = oracle(*tensors.values()) if len(tensors) == 1 else oracle(**tensors)
                    self.compare(self.by_einrel(statement, tensors), in_order)

    def compare_archive(self, option):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
        with open(self.path("w.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + values.tobytes())
        self.text_file("archive.ein", "input w[i,j]\nZ[i,j] = 2 * w[i,j]\n")
        self.succeed("run", "archive.ein", *option.split(), "--out", "Z=z.npy", cwd=self.folder)
        self.compare(np.load(self.path("z.npy")), 2 * values)


if __name__ == "__main__":
    process.main()
