"""The examples of chains, networks, language models, and of programs that learn and iterate, at small extents, against
NumPy in double precision.

Usage: examples_test.py EINREL
"""

import itertools
import os
import subprocess
import sys

import numpy as np

sys.dont_write_bytecode = True
import einrel_process as process  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
LLAMA = {"b": 2, "s": 7, "e": 12, "h": 3, "d": 8, "c": 4, "m": 10, "v": 9}
ONE_AND_THREE = ([], ["--sites", "3"])
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


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def classes(examples, count):
    """The class of each example; some are of none."""
    return np.random.default_rng(2).integers(-1, count + 1, examples)


def cross_entropy(z, y):
    """The mean over all examples; one of no class adds 0."""
    return -((np.arange(z.shape[1]) == y[:, None]) * log_softmax(z)).sum(1).mean()


def windows(images):
    return np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(-2, -1))


def largest_of_squares(images):
    *others, height, width = images.shape
    return images.reshape(*others, height // 2, 2, width // 2, 2).max((-3, -1))


def gradients(loss_at, weights):
    """By central differences: independent of any rule of differentiation."""
    found = [np.zeros_like(weight) for weight in weights]
    for i, gradient in enumerate(found):
        for position in np.ndindex(gradient.shape):
            moved = [[w.copy() for w in weights] for _ in range(2)]
            for copy, by in zip(moved, (1e-6, -1e-6)):
                copy[i][position] += by
            gradient[position] = (loss_at(moved[0]) - loss_at(moved[1])) / 2e-6
    return found


def all_paths(states, positions):
    """Every sequence of states, one a row: what algorithms that go along a chain need not list."""
    return np.array(list(itertools.product(range(states), repeat=positions)))


def log_sum_exp(x):
    return x.max() + np.log(np.exp(x - x.max()).sum())


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
        for weight, after, gradient in zip(weights, found, gradients(loss_at, weights)):
            self.close(weight - after, gradient, 1e-5)

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

    def steps_agree(self, name, dims, inputs, states, step, *options, outputs=()):
        """Three steps of an example, on one site and on three, against `step`, which makes of the values of `states`
        those that follow, and `outputs`. The example says with which values it begins."""
        text = text_of(name)
        values = begin = self.outputs(text, dims, inputs, *options, "--steps", "1", names=states)
        for _ in range(3):
            values, wanted = step(values)
        for sites in ONE_AND_THREE:
            with self.subTest(sites=sites):
                found = self.outputs(text, dims, inputs, *options, *sites, "--steps", "3",
                                     names=[*(f"next_{state}" for state in states), *outputs])
                for before, after, value in zip(begin, found, values):
                    self.close(after - before, value - before, 2e-5)
                for after, value in zip(found[len(states):], wanted):
                    self.close(after, value, 1e-5)

    def descends(self, name, dims, inputs, weights, loss_at):
        """Steps of an example go down the gradient of its loss."""

        def step(values):
            return [w - g / 2 for w, g in zip(values, gradients(loss_at, values))], [loss_at(values)]

        self.steps_agree(name, dims, inputs, weights, step, "--scalar", "eta=0.5", outputs=["loss"])

    def test_power_iteration_finds_the_first_principal_component(self):
        dims = {"n": 40, "i": 6, "j": 6}
        points = np.random.default_rng(7).standard_normal((40, 6)) * [1, 2, 5, 1, 1, 1] + 3
        covariance = np.cov(points.T, bias=True)
        wanted = []
        v, change = np.ones(6), 1.0
        while change > 1e-9:
            before, v = v, covariance @ v
            eigenvalue = np.linalg.norm(v)
            v = v / eigenvalue
            change = np.abs(v - before).max()
            wanted.append((eigenvalue, v, len(wanted) + 1))
        for steps, sites in itertools.product((1, 4, 1000), ONE_AND_THREE):
            with self.subTest(steps=steps, sites=sites):
                found = self.outputs(text_of("power_iteration.ein"), dims, {"Points": points}, "--steps", f"{steps}",
                                     *sites, names=["eigenvalue", "next_v", "steps"])
                for value, expected in zip(found, wanted[:steps][-1]):
                    self.close(value, expected, 1e-12)
        values, vectors = np.linalg.eigh(covariance)
        self.close(eigenvalue, values[-1])
        self.close(np.abs(v), np.abs(vectors[:, -1]), 1e-8)

    def test_k_means_moves_centres_until_they_stay(self):
        dims = {"n": 60, "k": 4, "d": 2}
        points = np.float32(np.random.default_rng(3).standard_normal((60, 2)) + 4 * (np.arange(60) % 3)[:, None])
        points[1] = points[0]  # so that the second centre has no points at first, and stays

        def step(values):
            (centres,) = values
            squared = ((points[:, None].astype(float) - centres) ** 2).sum(2)
            nearest = squared.argmin(1)
            after = [points[nearest == k].mean(0, dtype=float) if k in nearest else centre
                     for k, centre in enumerate(centres)]
            return [np.array(after)], [nearest, squared.min(1).sum()]

        self.steps_agree("kmeans.ein", dims, {"Points": points}, ["Centres"], step, outputs=["Nearest", "spread"])
        before, centres = np.zeros((4, 2)), points[:4].astype(float)
        self.assertNotIn(1, step([centres])[1][0])
        while not np.array_equal(before, centres):
            before = centres
            (centres,), _ = step([centres])
        found = self.outputs(text_of("kmeans.ein"), dims, {"Points": points}, "--steps", "1000",
                             names=["next_Centres", "Centres"])
        self.close(found[0], centres)
        np.testing.assert_array_equal(*found)

    def test_logistic_regression(self):
        dims = {"b": 13, "f": 5, "l": 4}
        x, y = normal(dims, {"X": "bf"})["X"], classes(13, 4)
        self.descends("logistic_regression.ein", dims, {"X": x, "Y": y}, ["W", "B"],
                      lambda values: cross_entropy(x.astype(float) @ values[0] + values[1], y))
        w, bias, accuracy = self.outputs(text_of("logistic_regression.ein"), dims, {"X": x, "Y": y}, "--steps", "20",
                                         names=["W", "B", "accuracy"])
        self.close(accuracy, (y == (x.astype(float) @ w + bias).argmax(1)).mean())

    def test_a_network_with_momentum(self):
        dims = {"b": 11, "f": 7, "h": 6, "l": 4}
        x, y = normal(dims, {"X": "bf"})["X"], classes(11, 4)
        weights = ["W1", "W2", "B1", "B2"]

        def loss_at(values):
            w1, w2, b1, b2 = values
            return cross_entropy(np.maximum(x.astype(float) @ w1 + b1, 0) @ w2 + b2, y)

        def step(values):
            velocities = [0.9 * m + g for m, g in zip(values[4:], gradients(loss_at, values[:4]))]
            return [w - m / 2 for w, m in zip(values, velocities)] + velocities, [loss_at(values[:4])]

        self.steps_agree("mlp.ein", dims, {"X": x, "Y": y}, [*weights, *("M" + weight for weight in weights)], step,
                         "--scalar", "eta=0.5", outputs=["loss"])

    def test_a_convolutional_network(self):
        dims = {"b": 3, "height": 14, "width": 10, "l": 4, "c": 2, "k": 3, "dy": 3, "dx": 3, "p": 2, "q": 1, "h": 5}
        images, y = normal(dims, {"Images": ["b", "height", "width"]})["Images"], classes(3, 4)

        def loss_at(values):
            k1, k2, w1, w2, b1, b2, b3, b4 = values
            x = np.einsum("byxuv,cuv->bcyx", windows(images.astype(float)), k1)
            x = largest_of_squares(np.maximum(x + b1[:, None, None], 0))
            x = np.einsum("bcyxuv,kcuv->bkyx", windows(x), k2)
            x = largest_of_squares(np.maximum(x + b2[:, None, None], 0)).reshape(3, -1)
            return cross_entropy(np.maximum(x @ w1.reshape(-1, 5) + b3, 0) @ w2 + b4, y)

        self.descends("cnn.ein", dims, {"Images": images, "Y": y}, ["K1", "K2", "W1", "W2", "B1", "B2", "B3", "B4"],
                      loss_at)

    def test_attention_learns_its_projections(self):
        dims = {"b": 2, "s": 5, "t": 5, "a": 6, "h": 2, "d": 3}
        arrays = normal(dims, {"X": "bsa", "Wanted": "bsa", "Gain": "a", "Shift": "a"})
        x, wanted, gain, shift = (array.astype(float) for array in arrays.values())
        centred = x - x.mean(-1, keepdims=True)
        n = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * gain + shift

        def loss_at(values):
            q, k, v = (np.einsum("bsa,had->bhsd", n, w) for w in values[:3])
            scores = np.where(np.tri(5, dtype=bool), q @ k.swapaxes(2, 3) * 0.3, -np.inf)
            return ((x + np.einsum("bhsd,hda->bsa", softmax(scores) @ v, values[3]) - wanted) ** 2).mean()

        def step(values):
            return [w - 2 * g for w, g in zip(values, gradients(loss_at, values))], [loss_at(values)]

        self.steps_agree("attention_gradient.ein", dims, arrays, ["WQ", "WK", "WV", "WO"], step,
                         "--scalar", "eta=2", "--scalar", "scale=0.3", outputs=["loss"])

    def test_a_hidden_markov_model(self):
        dims = {"t": 6, "j": 3, "k": 3, "v": 4}
        arrays = {name: array.astype(float) for name, array in
                  normal(dims, {"Start": "k", "Move": "jk", "Emit": "kv"}).items()}
        start, move, emit = (log_softmax(array) for array in arrays.values())
        arrays["Seen"] = np.array([2, 0, -1, 3, 7, 1])  # nothing is known of the third and the fifth
        seen = [emit[:, symbol] if 0 <= symbol < 4 else np.zeros(3) for symbol in arrays["Seen"]]
        for steps, sites in itertools.product((1, 4, 6, 100), ONE_AND_THREE):
            with self.subTest(steps=steps, sites=sites):
                paths = all_paths(3, min(steps, 6))
                scores = start[paths[:, 0]] + move[paths[:, :-1], paths[:, 1:]].sum(1)
                scores += sum(seen[t][path] for t, path in enumerate(paths.T))
                (found,) = self.outputs(text_of("hmm.ein"), dims, arrays, "--steps", f"{steps}", *sites,
                                        names=["log_likelihood"])
                self.close(found, log_sum_exp(scores), 1e-12)

    def test_marginals_of_a_conditional_random_field(self):
        dims = {"t": 6, "j": 3, "k": 3}
        arrays = {name: array.astype(float) for name, array in normal(dims, {"Score": "tk", "Move": "jk"}).items()}
        paths = all_paths(3, 6)
        scores = arrays["Score"][range(6), paths].sum(1) + arrays["Move"][paths[:, :-1], paths[:, 1:]].sum(1)
        probable = np.exp(scores - log_sum_exp(scores))
        tag = np.eye(3)[paths]
        for sites in ONE_AND_THREE:
            with self.subTest(sites=sites):
                log_z, tags, pairs = self.outputs(text_of("crf.ein"), dims, arrays, *sites,
                                                  names=["log_z", "Tags", "Pairs"])
                self.close(log_z, log_sum_exp(scores), 1e-12)
                self.close(tags, np.einsum("p,ptk->tk", probable, tag), 1e-12)
                self.close(pairs, np.einsum("p,ptj,ptk->jk", probable, tag[:, :-1], tag[:, 1:]), 1e-12)

    def test_full_sizes_are_checked_and_explained(self):
        for name, inputs in (("chain_uniform", 5), ("chain_skewed", 5), ("ffnn", 4), ("multi_head_attention", 7),
                             ("llama_layer", 10), ("llama_7b", 2 + 1 + 9 * 32)):
            with self.subTest(name=name):
                program = os.path.join(EXAMPLES, name + ".ein")
                self.assertIn("no errors", self.succeed("check", program).out)
                self.assertIn(f": {inputs} inputs, ", self.succeed("explain", program).out.split("\n")[0])


if __name__ == "__main__":
    process.main()
