"""Gradients of whole models, by `einrel run`, against those of PyTorch's autograd, in f64.

Usage: gradients_against_pytorch.py EINREL
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

torch.set_default_dtype(torch.float64)


class Model:
    """A program, its inputs, and the same loss in PyTorch."""

    def __init__(self, program, inputs, loss, wrt):
        self.program = program
        self.inputs = inputs
        self.loss = loss
        self.wrt = wrt


def numbers(*shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


def mlp():
    inputs = {"X": numbers(8, 5, seed=1), "W1": numbers(5, 7, seed=2), "B1": numbers(7, seed=3),
              "W2": numbers(7, 4, seed=4), "B2": numbers(4, seed=5),
              "T": np.random.default_rng(6).integers(0, 4, 8)}
    program = """
input X[b,f], W1[f,h], B1[h], W2[h,l], B2[l] : f64
input T[b] : i64
A[b,h] = gelu((sum[f] X[b,f] * W1[f,h]) + B1[h])
Z[b,l] = (sum[h] A[b,h] * W2[h,l]) + B2[l]
L[b,l] = logsoftmax[l](Z[b,l])
loss[] = mean[b] (-sum[l] where(l == T[b], L[b,l], 0))
"""

    def loss(t):
        return F.cross_entropy(F.gelu(t["X"] @ t["W1"] + t["B1"]) @ t["W2"] + t["B2"], t["T"])
    return Model(program, inputs, loss, ["X", "W1", "B1", "W2", "B2"])


def convolutions():
    inputs = {"I": numbers(2, 3, 9, 8, seed=1), "K1": numbers(4, 3, 3, 3, seed=2), "K2": numbers(2, 4, 3, 2, seed=3),
              "S": numbers(2, 2, 3, seed=4)}
    program = """
dims n=2 c=3 y=5 x=4 d=4 e=3 g=3 o=2 p=3 q=3 r=3 s=2 u=2 v=2
input I[n,c,height,width], K1[d,c,e,g] : f64
input K2[o,d,r,s], S[n,o,p] : f64
A[n,d,y,x] = sum[c,e,g] pad(I[n,c,2*y+e-1,2*x+g-1], 0) * K1[d,c,e,g]
R[n,d,y,x] = relu(A[n,d,y,x])
B[n,o,p,q] = sum[d,r,s] pad(R[n,d,p+2*r-1,q+2*s-1], 0) * K2[o,d,r,s]
M[n,o,p] = max[q] B[n,o,p,q]
loss[] = (sum[n,o,p] M[n,o,p] * S[n,o,p]) + sum[n,o,p,q] sq(B[n,o,p,q])
"""

    def loss(t):
        a = F.relu(F.conv2d(t["I"], t["K1"], stride=2, padding=1))
        b = F.conv2d(a, t["K2"], padding=1, dilation=2)[:, :, :3, :3]
        return (b.amax(dim=3) * t["S"]).sum() + (b ** 2).sum()
    return Model(program, inputs, loss, ["I", "K1", "K2", "S"])


def attention():
    inputs = {"X": numbers(2, 6, 8, seed=1), "Q": numbers(8, 2, 4, seed=2), "K": numbers(8, 2, 4, seed=3),
              "V": numbers(8, 2, 4, seed=4), "O": numbers(2, 4, 8, seed=5), "Y": numbers(2, 6, 8, seed=6),
              "G": numbers(8, seed=7), "H": numbers(8, seed=8)}
    program = """
dims t=6
input X[b,s,a], Q[a,h,d], K[a,h,d], V[a,h,d], O[h,d,a], Y[b,s,a], G[a], H[a] : f64
N[b,s,a] = layernorm[a](X[b,s,a], 0.00001) * G[a] + H[a]
QS[b,h,s,d] = sum[a] N[b,s,a] * Q[a,h,d]
KS[b,h,s,d] = sum[a] N[b,s,a] * K[a,h,d]
VS[b,h,s,d] = sum[a] N[b,s,a] * V[a,h,d]
L[b,h,s,t] = 0.5 * sum[d] QS[b,h,s,d] * KS[b,h,t,d]
P[b,h,s,t] = softmax[t](where(t <= s, L[b,h,s,t], -inf))
C[b,h,s,d] = sum[t] P[b,h,s,t] * VS[b,h,t,d]
Z[b,s,a] = X[b,s,a] + sum[h,d] C[b,h,s,d] * O[h,d,a]
loss[] = mean[b,s,a] sq(Z[b,s,a] - Y[b,s,a])
"""

    def loss(t):
        n = F.layer_norm(t["X"], (8,), t["G"], t["H"], 1e-5)
        q, k, v = (torch.einsum("bsa,ahd->bhsd", n, t[name]) for name in "QKV")
        scores = 0.5 * q @ k.transpose(2, 3)
        mask = torch.tril(torch.ones(6, 6, dtype=torch.bool))
        p = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=3)
        z = t["X"] + torch.einsum("bhsd,hda->bsa", p @ v, t["O"])
        return ((z - t["Y"]) ** 2).mean()
    return Model(program, inputs, loss, ["X", "Q", "K", "V", "O", "G", "H"])


def embedding():
    inputs = {"E": numbers(10, 4, seed=1), "T": np.random.default_rng(2).integers(0, 10, (3, 5)),
              "W": numbers(4, seed=3)}
    program = """
input E[v,d], W[d] : f64
input T[b,s] : i64
H[b,s,d] = sum[v] where(v == T[b,s], E[v,d], 0)
loss[] = sum[b,s] tanh(sum[d] H[b,s,d] * W[d])
"""

    def loss(t):
        return torch.tanh(F.embedding(t["T"], t["E"]) @ t["W"]).sum()
    return Model(program, inputs, loss, ["E", "W"])


def linear_algebra():
    inputs = {"A": numbers(3, 4, 4, seed=1) + 5 * np.eye(4), "B": numbers(3, 4, seed=2)}
    program = """
input A[b,i,j], B[b,j] : f64
X[b,i] = sum[j] inverse[i,j](A[b,i,j]) * B[b,j]
loss[] = sum[b] norm[i](X[b,i])
"""

    def loss(t):
        return torch.linalg.norm(torch.linalg.solve(t["A"], t["B"]), dim=1).sum()
    return Model(program, inputs, loss, ["A", "B"])


def factors():
    inputs = {"A": numbers(3, 5, 4, seed=1), "B": numbers(4, 6, seed=2), "C": numbers(3, 5, 4, seed=3)}
    program = """
input A[b,i,j], C[b,i,k], B[r,c] : f64
Q[b,i,k] = qr_q[i,j,k](A[b,i,j])
R[b,k,j] = qr_r[i,j,k](A[b,i,j])
P[r,m] = qr_q[r,c,m](B[r,c])
S[m,c] = qr_r[r,c,m](B[r,c])
loss[] = sum[b,i,k] Q[b,i,k] * C[b,i,k] + sum[b,k,j] sin(R[b,k,j]) + sum[r,m] sq(P[r,m]) * r * m + sum[m,c] S[m,c] * c
"""

    def loss(t):
        q, r = torch.linalg.qr(t["A"])
        p, s = torch.linalg.qr(t["B"])
        rows, columns = torch.arange(4.), torch.arange(6.)
        weighed = (p ** 2 * rows[:, None] * rows).sum() + (s * columns).sum()
        return (q * t["C"]).sum() + torch.sin(r).sum() + weighed
    return Model(program, inputs, loss, ["A", "B", "C"])


def reductions():
    inputs = {"X": np.round(numbers(4, 6, seed=1)), "Z": np.array([[1., 0, 3], [0, 0, 2], [1, 2, 3], [-1, 2, 0]])}
    program = """
input X[i,j], Z[i,k] : f64
loss[] = sum[i] (max[j] X[i,j]) * (i + 1) + sum[j] (min[i] X[i,j]) * j + sum[i] (prod[k] Z[i,k]) * (i + 2) \
+ sum[i] logsumexp[j] X[i,j] + sum[i,j] abs(X[i,j]) * j + sum[i] variance[j](X[i,j]) * i
"""

    def loss(t):
        x, z = t["X"], t["Z"]
        i, j = torch.arange(4.0), torch.arange(6.0)
        return ((x.amax(1) * (i + 1)).sum() + (x.amin(0) * j).sum() + (z.prod(1) * (i + 2)).sum()
                + torch.logsumexp(x, 1).sum() + (x.abs() * j).sum() + (x.var(1, unbiased=False) * i).sum())
    return Model(program, inputs, loss, ["X", "Z"])


class AgainstPyTorch(unittest.TestCase):
    def check(self, model, *options):
        tensors = {name: torch.tensor(value) for name, value in model.inputs.items()}
        for name in model.wrt:
            tensors[name].requires_grad_(True)
        loss = model.loss(tensors)
        loss.backward()
        with tempfile.TemporaryDirectory() as folder:
            names = ", ".join("G_" + name for name in model.wrt)
            program = os.path.join(folder, "model.ein")
            with open(program, "w", encoding="utf-8") as file:
                file.write(f"{model.program}gradient {names} = loss wrt {', '.join(model.wrt)}\noutput loss, {names}\n")
            arguments = ["run", program, *options]
            for name, value in model.inputs.items():
                np.save(os.path.join(folder, name + ".npy"), value)
                arguments += ["--in", f"{name}={folder}/{name}.npy"]
            for name in ["loss", *("G_" + name for name in model.wrt)]:
                arguments += ["--out", f"{name}={folder}/{name}.npy"]
            done = process.einrel(*arguments)
            self.assertEqual(done.code, 0, done)
            np.testing.assert_allclose(np.load(os.path.join(folder, "loss.npy")), loss.item(), rtol=1e-10)
            for name in model.wrt:
                expected = tensors[name].grad.numpy()
                scale = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(np.load(os.path.join(folder, f"G_{name}.npy")), expected, rtol=1e-9,
                                           atol=1e-11 * scale, err_msg=name)

    def test_models_agree(self):
        for model in (mlp, convolutions, attention, embedding, linear_algebra, factors, reductions):
            with self.subTest(model.__name__):
                self.check(model())

    def test_models_agree_on_any_number_of_sites(self):
        for model in (mlp, convolutions, attention, embedding, linear_algebra, factors, reductions):
            for sites in (2, 3, 4, 6):
                with self.subTest(model.__name__, sites=sites):
                    self.check(model(), "--sites", str(sites))


if __name__ == "__main__":
    process.main()
