# Attention of several heads, written as one would in NumPy, planned for 4 sites and compared with NumPy.
#   python3 examples/python/attention.py
import numpy as np

import einrel as er


def attention(x, query, key, value):
    """x [batch, position, feature] -> [batch, position, head, feature of a head]."""
    q, k, v = (er.einsum("bsf,fhd->bshd", x, weights) for weights in (query, key, value))
    scores = er.einsum("bshd,bthd->bhst", q, k) / q.shape[-1] ** 0.5
    return er.einsum("bhst,bthd->bshd", er.softmax(scores, axis=-1), v)


def main():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 64, 128)).astype("f4")
    weights = [rng.normal(size=(128, 8, 16)).astype("f4") / 11 for _ in range(3)]
    z = attention(x, *weights)
    print(z.explain(sites=4))

    q, k, v = (np.einsum("bsf,fhd->bshd", x, w) for w in weights)
    scores = np.einsum("bshd,bthd->bhst", q, k) / 4
    soft = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhst,bthd->bshd", soft / soft.sum(-1, keepdims=True), v)
    print("off NumPy's by", np.abs(np.asarray(z.compute(sites=4)) - expected).max())


if __name__ == "__main__":
    main()
