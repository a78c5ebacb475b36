# %% [markdown]
# # Attention, and its plan for 64 GPUs
# The same few lines compute attention on this machine, and show how 64 processors would share it.

# %%
import numpy as np

import einrel as er


def attention(x, wq, wk, wv, wo):
    """Causal attention of several heads; x is (batch, position, width), the weights (head, width, width of a head)."""
    q, k, v = (er.einsum("bsa,had->bhsd", x, w) for w in (wq, wk, wv))
    scores = er.einsum("bhsd,bhtd->bhst", q, k) * q.shape[-1] ** -0.5
    position = er.arange(x.shape[1])
    seen = position[:, None] >= position[None, :]
    weights = er.softmax(er.where(seen, scores, -np.inf), axis=-1)
    return er.einsum("bhst,bhtd,had->bsa", weights, v, wo)


def inputs(make, batch, positions, heads, size):
    width = heads * size
    return [make((batch, positions, width)), *[make((heads, width, size)) for _ in range(4)]]


# %% [markdown]
# ## On this machine

# %%
rng = np.random.default_rng(1)
x, *weights = inputs(lambda shape: rng.standard_normal(shape).astype("f4") * 0.1, 2, 32, 4, 16)
y = np.asarray(attention(er.asarray(x), *weights))
print("result", y.shape, y.dtype)

# %% [markdown]
# Position 0 sees itself alone: there, attention is the value of position 0.

# %%
wv, wo = weights[2], weights[3]
first = np.einsum("ba,had,hcd->bc", x[:, 0], wv, wo)
print("position 0 sees itself alone:", np.allclose(y[:, 0], first, rtol=1e-4, atol=1e-5))

# %% [markdown]
# ## On 64 GPUs
# 16 sequences of 4096 positions, 32 heads of width 128. `np.empty` takes no memory before something is written into it,
# and a plan reads no elements: so the inputs may be as large as you like. A machine is one of `einrel list machines`,
# or a file.

# %%
large = attention(*map(er.asarray, inputs(lambda shape: np.empty(shape, "f4"), 16, 4096, 32, 128)))
print(large.explain(sites=64, machine="a100-server"))
