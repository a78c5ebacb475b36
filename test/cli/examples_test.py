"""The examples of chains, networks and language models at small extents, against NumPy in double precision.

Usage: examples_test.py EINREL
"""

import os
import subprocess
import sys

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
LLAMA = {"b": 2, "s": 7, "e": 12, "h": 3, "d": 8, "c": 4, "m": 10, "v": 9}
LAYER = {"G1": "e", "WQ": "hde", "WK": "hde", "WV": "hde", "WO": "ehd", "G2": "e", "W1": "me", "W2": "em", "W3": "me"}


def text_of(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        return file.read()


def normal(dims, labels_of):
    """Float32 values by name that, as weights, keep what passes through them at its size."""
    rng = np.random.default_rng(5)
    shapes = {name: [dims[label] for label in labels] for name, labels in labels_of.items()}
    return {name: np.float32(rng.standard_normal(shape) / np.sqrt(shape[-1] if len(shape) > 1 else 1))
            for name, shape in shapes.items()}


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def rms_norm(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def llama_layer(x, weights, interleaved):
    """One layer of LLaMA; a pair of columns is a complex number here, and rotary embedding a factor of modulus 1."""
    w = {name: value.astype(float) for name, value in weights.items()}
    _, positions, width, half = *x.shape, LLAMA["d"] // 2
    turn = np.exp(1j * np.outer(np.arange(positions), 10000.0 ** (-np.arange(half) / half)))[:, None]

    def head(normed, matrix):
        return (normed @ matrix.reshape(-1, width).T).reshape(*x.shape[:2], -1, 2 * half)

    def turned(y):
        return turn * (y[..., ::2] + 1j * y[..., 1::2] if interleaved else y[..., :half] + 1j * y[..., half:])

    n = rms_norm(x) * w["G1"]
    scores = np.einsum("bshc,bthc->bhst", turned(head(n, w["WQ"])), turned(head(n, w["WK"])).conj()).real
    scores = np.where(np.tri(positions, dtype=bool), scores / np.sqrt(2 * half), -np.inf)
    mixed = np.einsum("bhst,bthd->bshd", softmax(scores), head(n, w["WV"]))
    y = x + mixed.reshape(*x.shape[:2], -1) @ w["WO"].reshape(width, -1).T
    n = rms_norm(y) * w["G2"]
    gate = n @ w["W1"].T
    return y + (gate / (1 + np.exp(-gate)) * (n @ w["W3"].T)) @ w["W2"].T


class Examples(process.ProgramTest):
    def outputs(self, text, dims, inputs, *options, names):
        """What the program `text` gives for these inputs, by name, in double precision."""
        np.savez(self.path("in.npz"), **inputs)
        arguments = [*options]
        for label, extent in dims.items():
            arguments += ["--dim", f"{label}={extent}"]
        for name in inputs:
            arguments += ["--in", f"{name}={self.path('in.npz')}:{name}"]
        for name in names:
            arguments += ["--out", f"{name}={self.path(name)}.npy"]
        self.succeed("run", "-", *arguments, stdin=text)
        return [np.load(self.path(f"{name}.npy")).astype(float) for name in names]

    def close(self, found, wanted, tolerance=2e-6):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())

    def test_chains_of_matrices(self):
        for name, dims in (("chain_uniform", dict.fromkeys("ijklm", 20)),
                           ("chain_skewed", {"i": 20, "j": 2, "k": 20, "l": 2, "m": 200})):
            with self.subTest(name=name):
                arrays = normal(dims, {"A": "ij", "B": "jk", "C": "il", "D": "lm", "E": "mk"})
                a, b, c, d, e = (array.astype(float) for array in arrays.values())
                (z,) = self.outputs(text_of(name + ".ein"), dims, arrays, names=["Z"])
                self.close(z, a @ b + c @ (d @ e))

    def test_a_training_step_goes_down_the_gradient(self):
        dims = {"b": 11, "f": 7, "h": 6, "l": 5}
        arrays = normal(dims, {"X": "bf", "W1": "fh", "W2": "hl", "Y": "bl"})
        arrays["Y"] = np.float32(arrays["Y"] > 0)
        x, *weights, y = (array.astype(float) for array in arrays.values())

        def loss_at(weights):
            p = 1 / (1 + np.exp(-np.maximum(x @ weights[0], 0) @ weights[1]))
            return -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum(1).mean()

        *found, loss = self.outputs(text_of("ffnn.ein"), dims, arrays, "--scalar", "eta=1", names=["V1", "V2", "loss"])
        self.close(loss, loss_at(weights))
        for i, after in enumerate(found):
            gradient = np.zeros_like(weights[i])
            for position in np.ndindex(gradient.shape):
                moved = [[w.copy() for w in weights] for _ in range(2)]
                for copy, by in zip(moved, (1e-6, -1e-6)):
                    copy[i][position] += by
                gradient[position] = (loss_at(moved[0]) - loss_at(moved[1])) / 2e-6
            self.close(weights[i] - after, gradient, 1e-5)

    def test_multi_head_attention(self):
        dims = {"s": 5, "t": 9, "a": 8, "h": 3, "d": 4}
        arrays = normal(dims, {"Q": "sa", "K": "ta", "V": "ta", "WQ": "had", "WK": "had", "WV": "had", "WO": "hda"})
        q, k, v, wq, wk, wv, wo = (array.astype(float) for array in arrays.values())
        (y,) = self.outputs(text_of("multi_head_attention.ein"), dims, arrays, "--scalar", "scale=0.5", names=["Y"])
        heads = [softmax((q @ wq[h]) @ (k @ wk[h]).T / 2) @ (v @ wv[h]) for h in range(3)]
        self.close(y, np.concatenate(heads, 1) @ wo.reshape(12, 8))

    def test_a_layer_of_llama_with_pairs_of_columns_apart_and_side_by_side(self):
        dims = {label: extent for label, extent in LLAMA.items() if label != "v"}
        arrays = normal(dims, {"X": "bse", **LAYER})
        text = text_of("llama_layer.ein")
        self.assertEqual(text.count(",(j c)]"), 2)
        for interleaved in (False, True):
            with self.subTest(interleaved=interleaved):
                (z,) = self.outputs(text.replace("(j c)]", "(c j)]") if interleaved else text, dims, arrays,
                                    "--scalar", "width=8", names=["Z"])
                self.close(z, llama_layer(arrays["X"].astype(float), arrays, interleaved))

    def test_all_layers_of_llama(self):
        labels = {f"{name}_{i}": labels for i in range(1, 33) for name, labels in LAYER.items()}
        arrays = normal(LLAMA, {"X_1": "bse", **labels, "G": "e", "WOut": "ve"})
        (logits,) = self.outputs(text_of("llama_7b.ein"), LLAMA, arrays, "--scalar", "width=8", names=["Logits"])
        x = arrays["X_1"].astype(float)
        for i in range(1, 33):
            x = llama_layer(x, {name: arrays[f"{name}_{i}"] for name in LAYER}, interleaved=False)
        self.close(logits, rms_norm(x) * arrays["G"] @ arrays["WOut"].T.astype(float), 1e-4)

    def test_all_layers_of_llama_are_printed_from_one(self):
        printed = subprocess.run([sys.executable, os.path.join(EXAMPLES, "llama_7b.py"), "--layers", "32"],
                                 capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed, text_of("llama_7b.ein"))
        self.assertEqual(printed.count("\n# layer "), 32)

    def test_full_sizes_are_checked_and_explained(self):
        for name, inputs in (("chain_uniform", 5), ("chain_skewed", 5), ("ffnn", 4), ("multi_head_attention", 7),
                             ("llama_layer", 10), ("llama_7b", 2 + 1 + 9 * 32)):
            with self.subTest(name=name):
                program = os.path.join(EXAMPLES, name + ".ein")
                self.assertIn("no errors", self.succeed("check", program).out)
                self.assertIn(f": {inputs} inputs, ", self.succeed("explain", program).out.split("\n")[0])


if __name__ == "__main__":
    process.main()
