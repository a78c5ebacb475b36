"""Sites that train on their own (`einrel train --local-steps`): local SGD and independent subnets, against NumPy."""

import os
import pathlib

import numpy as np

from einrel_process import einrel, job, main
from train_test import LAYERS, PROGRAM, TrainTest, in_batches, shuffled, softmax

# The thesis's network in small, by plain gradient descent: layers N0-N1-N2-N3-Nt without biases.
DEEP = """dims b=10 f=6 h1=8 h2=12 h3=16 l=3
input Y[b] : i64, X[b,f]
state W1[f,h1] = 0.4 * normal(1)
state W2[h1,h2] = 0.4 * normal(2)
state W3[h2,h3] = 0.4 * normal(3)
state W4[h3,l] = 0.4 * normal(4)
A[b,h1] = tanh(sum[f] X[b,f] * W1[f,h1])
B[b,h2] = tanh(sum[h1] A[b,h1] * W2[h1,h2])
C[b,h3] = tanh(sum[h2] B[b,h2] * W3[h2,h3])
LogP[b,l] = logsoftmax[l](sum[h3] C[b,h3] * W4[h3,l])
loss[] = -mean[b] (sum[l] where(l == Y[b], LogP[b,l], 0))
minimize loss over W1, W2, W3, W4 by sgd(0.2)
output loss
"""
WIDTHS = [6, 8, 12, 16, 3]
# Two convolutions, whose filters are divided.
FILTERS = """dims b=10 f=6 c=4 k=6 d=3 e=2 l=3
input Y[b] : i64, X[b,f]
state K1[c,d] = 0.4 * normal(1)
state K2[k,c,e] = 0.4 * normal(2)
state W[k,l] = 0.4 * normal(3)
A[b,c,y] = tanh(sum[d] X[b,y+d] * K1[c,d])
B[b,k,x] = tanh(sum[c,e] A[b,c,x+e] * K2[k,c,e])
P[b,k] = max[x] B[b,k,x]
LogP[b,l] = logsoftmax[l](sum[k] P[b,k] * W[k,l])
loss[] = -mean[b] (sum[l] where(l == Y[b], LogP[b,l], 0))
minimize loss over K1, K2, W by sgd(0.2)
output loss
"""


def step(weights, x, y, rate=0.2):
    """One of gradient descent on DEEP, in double precision."""
    values = [x]
    for w in weights[:-1]:
        values.append(np.tanh(values[-1] @ w))
    error = (softmax(values[-1] @ weights[-1]) - np.eye(3)[y]) / len(y)
    changed = []
    for w, value in zip(reversed(weights), reversed(values), strict=True):
        changed.insert(0, w - rate * value.T @ error)
        error = error @ w.T * (1 - value * value)
    return changed


class Locally(TrainTest):
    def setUp(self):
        super().setUp()
        self.deep = self.text_file("deep.ein", DEEP)

    def first(self):
        still = self.text_file("still.ein", DEEP.replace("minimize", "#"))
        self.succeed("run", still, "--random", "1", "--save", self.path("first.npz"))
        with np.load(self.path("first.npz")) as first:
            return [first[f"W{i}"].astype(float) for i in range(1, 5)]

    def by_numpy(self, sites, steps, labels, seed=5, epochs=2):
        """Weights after epochs of rounds; `labels` are the layers, 1 to 3, that are divided."""
        weights, done = self.first(), 0
        for epoch in range(epochs):
            batches = in_batches(shuffled(100, seed, epoch, "epoch"), 10)
            each = len(batches) // sites
            for begin in range(0, each, steps):
                count = min(steps, each - begin)
                orders = {layer: shuffled(WIDTHS[layer], seed, done, f"subnet h{layer}") for layer in labels}
                trained = []
                for site in range(sites):
                    parts = [np.arange(width) for width in WIDTHS]
                    for layer, order in orders.items():
                        size, more = divmod(len(order), sites)
                        at = site * size + min(site, more)
                        parts[layer] = np.array(sorted(order[at:at + size + (site < more)]))
                    own = [w[np.ix_(parts[i], parts[i + 1])] for i, w in enumerate(weights)]
                    for j in range(begin, begin + count):
                        batch = batches[j * sites + site]
                        own = step(own, self.x[batch].astype(float), self.y[batch])
                    trained.append((parts, own))
                for i in range(4):
                    if i in labels or i + 1 in labels:
                        for parts, own in trained:
                            weights[i][np.ix_(parts[i], parts[i + 1])] = own[i]
                    else:
                        weights[i] = np.mean([own[i] for _, own in trained], axis=0)
                done += count
        return weights

    def test_rounds_are_what_numpy_makes_of_them(self):
        for sites, steps, labels in ((2, 3, []), (3, 2, []), (2, 2, [1, 2, 3]), (3, 3, [1, 2, 3]), (4, 1, [2]), (2, 3, [1])):
            with self.subTest(sites=sites, steps=steps, labels=labels):
                name = f"save-{sites}-{steps}-{len(labels)}"
                divided = ["--subnets", ",".join(f"h{layer}" for layer in labels)] if labels else []
                arguments = ["--epochs", "2", "--seed", "5", "--local-steps", str(steps), *divided]
                self.train(*arguments, "--sites", str(sites), "--save", self.path(name), program=self.deep)
                expected = self.by_numpy(sites, steps, labels)
                states = self.states(name)
                for i, weights in enumerate(expected, 1):
                    np.testing.assert_allclose(states[f"W{i}"], weights, rtol=1e-4, atol=1e-5, err_msg=f"W{i}")
                self.train(*arguments, "--threads", "1", "--save", self.path(name + "-job"), program=self.deep,
                           run=lambda *given, n=sites: job(n, *given))
                self.assert_same_states(self.states(name + "-job"), states)

    def test_filters_are_divided(self):
        """Against runs of the program with a site's filters alone, one step each."""
        filters = self.text_file("filters.ein", FILTERS)
        still = self.text_file("still.ein", FILTERS.replace("minimize", "#"))
        self.succeed("run", still, "--random", "1", "--save", self.path("first.npz"))
        with np.load(self.path("first.npz")) as first:
            whole = {name: first[name] for name in ("K1", "K2", "W")}
        batches = in_batches(shuffled(100, 5, 0, "epoch"), 10)
        for turn in range(5):
            orders = {label: shuffled(width, 5, turn, f"subnet {label}") for label, width in (("c", 4), ("k", 6))}
            changed = {name: value.copy() for name, value in whole.items()}
            for site in range(2):
                c, k = (np.array(sorted(order[site * len(order) // 2:(site + 1) * len(order) // 2])) for order in orders.values())
                parts = {"K1": np.ix_(c, range(3)), "K2": np.ix_(k, c, range(2)), "W": np.ix_(k, range(3))}
                np.savez(self.path("part.npz"), **{name: whole[name][part] for name, part in parts.items()})
                batch = batches[2 * turn + site]
                np.savez(self.path("batch.npz"), X=self.x[batch], Y=self.y[batch])
                self.succeed("run", filters, "--dim", "c=2", "--dim", "k=3", "--in", self.path("batch.npz"), "--load",
                             self.path("part.npz"), "--steps", "1", "--save", self.path("after.npz"), "--overwrite")
                with np.load(self.path("after.npz")) as after:
                    for name, part in parts.items():
                        changed[name][part] = after[name]
            whole = changed
        self.train("--epochs", "1", "--seed", "5", "--local-steps", "1", "--subnets", "c,k", "--sites", "2", "--save",
                   self.path("saved"), program=filters)
        for name, expected in whole.items():
            np.testing.assert_allclose(self.states("saved")[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)

    def stream_of(self, tensor):
        """FNV-1a of its name."""
        value = 2166136261
        for byte in tensor.encode():
            value = (value ^ byte) * 16777619 % 2**32
        return value

    def noise(self, tensor, position, count, extents):
        """What uniform(3) is in three steps at positions that are said for (site, *labels), by `count` of sites."""
        labels = ",".join("s" if d == 0 else f"d{d}" for d in range(len(extents) + 1))
        dims = " ".join(["t=3", f"s={count}", *(f"d{d}={extent}" for d, extent in enumerate(extents, 1))])
        program = self.text_file("places.ein", f"dims {dims}\n"
                                 f"R[t,{labels}] = uniform_at(3, {position}, t, {self.stream_of(tensor)})\noutput R\n")
        self.succeed("run", program, "--out", "R=" + self.path("places.npy"), "--overwrite")
        return np.load(self.path("places.npy")).astype(float)

    def test_sites_draw_numbers_of_their_own(self):
        """Positions of a site lie between those of the others; what is averaged of the numbers is their mean."""
        program = self.text_file("noise.ein", """dims b=4 f=6 t=3
input Y[b] : i64, X[b,f]
state w[f] = 0.5
U[b] = uniform(3)
state Seen[t,b] = 0
next Seen[t,b] = where(t == iteration, U[b], Seen[t,b])
Drop[b,f] = where(uniform(3) < 0.5, X[b,f], 0)
state Kept[t] = 0
next Kept[t] = where(t == iteration, sum[b,f] f32(uniform_at(3, b * 6 + f, iteration, DROP) < 0.5), Kept[t])
loss[] = mean[b] sq(Y[b] - sum[f] w[f] * Drop[b,f])
minimize loss over w by sgd(0.01)
output loss
""".replace("DROP", str(self.stream_of("Drop"))))
        for sites in (1, 2, 3):
            with self.subTest(sites=sites):
                local = ["--epochs", "1", "--local-steps", "3"]
                self.train(*local, "--sites", str(sites), "--save", self.path(f"seen{sites}"), program=program, batch=4)
                seen = self.states(f"seen{sites}")
                expected = self.noise("U", f"d1 * {sites} + s", sites, [4]).mean(axis=1)
                np.testing.assert_allclose(seen["Seen"], expected, rtol=1e-6)
                numbers = self.noise("Drop", f"(d1 * 6 + d2) * {sites} + s", sites, [4, 6])
                np.testing.assert_allclose(seen["Kept"], (numbers < 0.5).sum(axis=(2, 3)).mean(axis=1), rtol=1e-6)
                self.train(*local, "--threads", "1", "--save", self.path(f"job{sites}"), program=program, batch=4,
                           run=lambda *given, n=sites: job(n, *given))
                self.assert_same_states(self.states(f"job{sites}"), seen)

    def test_units_of_a_subnet_draw_the_numbers_of_their_place_in_the_whole(self):
        program = self.text_file("units.ein", """dims b=4 f=6 h=7 t=3
input Y[b] : i64, X[b,f]
state W[f,h] = 0.1 * normal(1)
Mask[h] = uniform(3)
Noise[b,h] = uniform(3)
state Seen[t,h] = 0
next Seen[t,h] = where(t == iteration, Mask[h], Seen[t,h])
state Sums[t,h] = 0
next Sums[t,h] = where(t == iteration, sum[b] Noise[b,h], Sums[t,h])
H[b,k] = sum[f] X[b,f] * W[f,k]
loss[] = mean[b] sq(Y[b] - sum[h] H[b,h] * (Mask[h] + Noise[b,h]))
minimize loss over W by sgd(0.001)
output loss
""")
        for sites in (1, 2, 3):
            with self.subTest(sites=sites):
                local = ["--epochs", "1", "--local-steps", "2", "--subnets", "h"]
                self.train(*local, "--sites", str(sites), "--save", self.path(f"units{sites}"), program=program, batch=4)
                seen = self.states(f"units{sites}")
                np.testing.assert_allclose(seen["Seen"], self.noise("Mask", "d1", 1, [7])[:, 0], rtol=1e-6)
                sums = self.noise("Noise", "d1 * 7 + d2", 1, [4, 7])[:, 0].sum(axis=1)
                np.testing.assert_allclose(seen["Sums"], sums, rtol=1e-6)
                self.train(*local, "--threads", "1", "--save", self.path(f"ranks{sites}"), program=program, batch=4,
                           run=lambda *given, n=sites: job(n, *given))
                self.assert_same_states(self.states(f"ranks{sites}"), seen)

    def test_one_site_is_plain_training_to_the_bit(self):
        for program, subnets in ((self.deep, ["--subnets", "h1,h2,h3"]), (self.layers, ["--subnets", "h"]),
                                 (self.program, [])):
            with self.subTest(program=program):
                name = os.path.basename(program)
                common = ["--epochs", "3", "--hold-out", "0.2", "--save"]
                plain = self.train(*common, self.path("plain" + name), program=program)
                local = self.train(*common, self.path("local" + name), "--local-steps", "3", *subnets, program=program)
                self.assert_same_states(self.states("local" + name), self.states("plain" + name))
                for mine, other in zip(local["epochs"], plain["epochs"], strict=True):
                    self.assertEqual(mine["test"], other["test"])
                    self.assertAlmostEqual(mine["training"]["loss"], other["training"]["loss"], places=12)

    def test_bytes_are_those_of_the_formula(self):
        first, last = WIDTHS[0] * WIDTHS[1], WIDTHS[3] * WIDTHS[4]
        middle = WIDTHS[1] * WIDTHS[2] + WIDTHS[2] * WIDTHS[3]
        for sites in (1, 2, 4):
            for steps in (1, 2):
                with self.subTest(sites=sites, steps=steps):
                    local = ["--epochs", "1", "--sites", str(sites), "--local-steps", str(steps)]
                    rounds = -(-(10 // sites) // steps)
                    divided = self.train(*local, "--subnets", "h1,h2,h3", program=self.deep)["epochs"][0]["bytes_moved"]
                    self.assertEqual(divided, 2 * 4 * rounds * (first + last + middle / sites), "out and back, 4 bytes each")
                    whole = self.train(*local, program=self.deep)["epochs"][0]["bytes_moved"]
                    self.assertEqual(whole, 2 * 4 * rounds * sites * (first + last + middle))
                    biased = DEEP.replace("state W4", "state D[l] = 0\nstate W4").replace("(sum[h3]", "(D[l] + sum[h3]")
                    program = self.text_file("biased.ein", biased.replace("over W1,", "over D, W1,"))
                    more = self.train(*local, "--subnets", "h1,h2,h3", program=program)["epochs"][0]["bytes_moved"]
                    self.assertEqual(more - divided, 2 * 4 * rounds * sites * WIDTHS[4], "what is averaged goes to all")

    def test_moments_go_with_their_weights(self):
        report = self.train("--epochs", "1", "--sites", "2", "--local-steps", "2", "--subnets", "h", program=self.layers,
                            batch=12)
        self.assertEqual(report["epochs"][0]["bytes_moved"], 2 * 4 * 2 * 3 * (6 * 16 + 16 * 3), "weights and two moments")

    def test_it_goes_on_to_the_bit(self):
        for run, more in ((None, ["--sites", "3"]), (lambda *given: job(3, *given), ["--threads", "1"])):
            with self.subTest(more=more):
                arguments = ["--local-steps", "2", "--subnets", "h", "--hold-out", "0.1", *more]
                name = str(run is None)
                whole = self.train("--epochs", "4", "--save", self.path("whole" + name), *arguments, program=self.layers,
                                   run=run, batch=5)
                half = self.path("half" + name)
                self.train("--epochs", "2", "--save", half, "--save-every", "4", *arguments, program=self.layers, run=run,
                           batch=5)
                os.remove(sorted(pathlib.Path(half).iterdir())[-1])
                rest = self.train("--epochs", "4", "--save", half, "--resume", half, *arguments, program=self.layers,
                                  run=run, batch=5)
                self.assert_same_states(self.states("half" + name), self.states("whole" + name))
                self.assertEqual(rest["epochs"][-1]["test"], whole["epochs"][-1]["test"])

    def test_labels_that_cannot_be_divided(self):
        text = LAYERS.replace("output loss", "state K[d] = 1\nG[b,h] = sum[d] pad(H[b,h+d], 0) * K[d]\n"
                              "n[] = sum[b,h] G[b,h]\noutput loss, n").replace("dims b=12", "dims d=3 b=12")
        window = self.text_file("window.ein", text)
        text = LAYERS.replace("output loss", "m[] = sum[b,h] H[b,h] * f32(h)\noutput loss, m")
        number = self.text_file("number.ein", text)

        def refuse(label, *mentions, program=self.layers, sites="2"):
            self.refuse(1, "train", program, *self.feeds, "--batch", "b=10", "--epochs", "1", "--sites", sites,
                        "--local-steps", "2", "--subnets", label, mentions=mentions)

        for line, use in (("m[] = mean[b] f64(argmax[h] H[b,h])", "position"), ("m[] = mean[b] H[b,0]", "at one place"),
                          ("G[b,k] = H[b,k] * f32(k)\nm[] = sum[b,k] G[b,k]", "as a number"),
                          ("dims k=16\nm[] = sum[b,k] pad(H[b,k+1], 0)", "offset")):
            named = self.text_file("named.ein", LAYERS.replace("output loss", line + "\noutput loss, m"))
            refuse("h", "'h'", use, f"`{line.splitlines()[-1 if use != 'as a number' else 0]}` (line", "column 1)", program=named)
        refuse("f", "'f'", "input X[b,f]")
        refuse("b", "'b'", "input Y[b]")
        refuse("k", "no label 'k'", "its labels are b, f, h, l")
        refuse("hh", "no label 'hh'", "did you mean 'h'?")
        refuse("h", "'h'", "number", "`m[] = sum[b,h] H[b,h] * f32(h)` (line 9, column 1)", program=number)
        refuse("h", "'h'", "window", "`G[b,h] = sum[d] pad(H[b,h+d], 0) * K[d]` (line 10, column 1)", program=window)
        refuse("d", "'d'", "window", program=window)
        refuse("l", "'l'", "number", "`loss[] = -mean[b] (sum[l] where(l == Y[b], LogP[b,l], 0))` (line 7, column 1)")
        for twice in ("h,h", "h, h", " h,h "):
            refuse(twice, "'h'", "twice", "name each label once")
        refuse("", "--subnets", "the value is empty")
        for empty in (" ", "h, ", " ,h", "h,", ",h", ","):
            refuse(empty, "--subnets", "a name is empty", "leave --subnets out")
        refuse("h", "16 values", "17 sites", sites="17")
        free = self.text_file("free.ein", LAYERS.replace("output loss", "R[q] = uniform(3)\nr[] = sum[q] R[q]\noutput loss, r")
                              .replace("dims", "dims q=5"))
        refuse("q", "'q'", "no state", program=free)

    def test_samples_that_are_no_numbers(self):
        x = self.x.copy()
        x[41, 3] = np.nan
        np.save(self.path("x.npy"), x)
        for run in (lambda *given: einrel(*given, "--sites", "2"), lambda *given: job(2, *given)):
            result = run("train", self.layers, *self.feeds, "--batch", "b=10", "--epochs", "1", "--local-steps", "2")
            self.assertEqual(result.code, 1, result)
            self.assertRegex(result.err, r"sample 41 .*x\.npy.*'X'")

    def test_options_that_do_not_fit(self):
        def refuse(*arguments, mentions, program=self.layers):
            self.refuse(1, "train", program, *self.feeds, "--batch", "b=10", "--epochs", "1", *arguments, mentions=mentions)

        refuse("--subnets", "h", mentions=["--local-steps"])
        refuse("--local-steps", "2", "--planner", "data", mentions=["--planner"])
        refuse("--local-steps", "0", mentions=["--local-steps"])
        refuse("--local-steps", "2", "--keep-last", mentions=["--keep-last"])
        refuse("--local-steps", "2", "--sites", "11", mentions=["10 batches", "11 sites"])
        until = self.text_file("until.ein", PROGRAM + "until loss[] < 0.5\n")
        refuse("--local-steps", "2", program=until, mentions=["until"])


if __name__ == "__main__":
    main()
