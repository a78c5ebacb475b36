"""Steps of training by `einrel run --steps`, against PyTorch's optimisers, in f64 and f32.

Usage: training_against_pytorch.py EINREL
"""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch
import torch.nn.functional as F

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import einrel_process as process  # noqa: E402

STEPS = 12
MODEL = """input X[b,f], I1[f,h], I2[h,l] : {dtype}
input T[b] : i64
state W1[f,h] = I1[f,h]
state W2[h,l] = I2[h,l]
A[b,h] = gelu(sum[f] X[b,f] * W1[f,h])
Z[b,l] = sum[h] A[b,h] * W2[h,l]
loss[] = mean[b] (-sum[l] where(l == T[b], logsoftmax[l](Z[b,l]), 0))
minimize loss over W1, W2 by {optimiser}
"""
# As the program says it, and PyTorch.
OPTIMISERS = {
    "sgd(0.3)": lambda weights: torch.optim.SGD(weights, lr=0.3),
    "momentum(0.1)": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
    "momentum(0.1, 0.5)": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.5),
    "nesterov(0.1, 0.8)": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.8, nesterov=True),
    "adam(0.01)": lambda weights: torch.optim.Adam(weights, lr=0.01),
    "adam(0.02, 0.8, 0.95, 1e-4)": lambda weights: torch.optim.Adam(weights, lr=0.02, betas=(0.8, 0.95), eps=1e-4),
    "adamw(0.01)": lambda weights: torch.optim.AdamW(weights, lr=0.01),
    "adamw(0.03, 0.2, 0.7, 0.9, 1e-6)":
        lambda weights: torch.optim.AdamW(weights, lr=0.03, weight_decay=0.2, betas=(0.7, 0.9), eps=1e-6),
}


class Training(unittest.TestCase):
    def compare(self, optimiser, dtype, more, tolerance):
        random = np.random.default_rng(3)
        kind = {"f32": np.float32, "f64": np.float64}[dtype]
        inputs = {name: random.standard_normal(shape).astype(kind)
                  for name, shape in {"X": (16, 6), "I1": (6, 9), "I2": (9, 4)}.items()}
        inputs["T"] = random.integers(0, 4, 16)
        with tempfile.TemporaryDirectory() as folder:
            for name, array in inputs.items():
                np.save(os.path.join(folder, f"{name}.npy"), array)
            program = os.path.join(folder, "p.ein")
            with open(program, "w", encoding="utf-8") as file:
                file.write(MODEL.format(dtype=dtype, optimiser=optimiser))
            given = [part for name in inputs for part in ("--in", f"{name}={os.path.join(folder, name)}.npy")]
            saved = os.path.join(folder, "state.npz")
            result = process.einrel("run", program, *given, "--steps", str(STEPS), "--save", saved, "--out",
                                    f"loss={os.path.join(folder, 'loss.npy')}", *more)
            self.assertEqual(result.code, 0, result)
            with np.load(saved) as file:
                states = dict(file)
            loss = np.load(os.path.join(folder, "loss.npy"))
        x, labels = torch.tensor(inputs["X"]), torch.tensor(inputs["T"])
        weights = [torch.tensor(inputs[name], requires_grad=True) for name in ("I1", "I2")]
        steps = OPTIMISERS[optimiser](weights)
        for _ in range(STEPS):
            steps.zero_grad()
            wanted = F.cross_entropy(F.gelu(x @ weights[0]) @ weights[1], labels)
            wanted.backward()
            steps.step()
        np.testing.assert_allclose(loss, wanted.detach().numpy(), rtol=tolerance, atol=tolerance)
        for name, weight in zip(("W1", "W2"), weights):
            np.testing.assert_allclose(states[name], weight.detach().numpy(), rtol=tolerance, atol=tolerance,
                                       err_msg=name)

    def test_every_optimiser_in_f64(self):
        for optimiser in OPTIMISERS:
            for more in ([], ["--sites", "3"]):
                with self.subTest(optimiser=optimiser, more=more):
                    self.compare(optimiser, "f64", more, 1e-10)

    def test_every_optimiser_in_f32(self):
        for optimiser in OPTIMISERS:
            with self.subTest(optimiser=optimiser):
                self.compare(optimiser, "f32", [], 1e-4)


if __name__ == "__main__":
    process.main()
