# %% [markdown]
# # JAX by einrel's plan
# A network is trained by JAX on all its devices; einrel says what each of them computes and sends. Here they are four
# parts of a processor. On GPUs and TPUs leave out the first lines (docs/export.md).

# %%
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np

import einrel as er

rng = np.random.default_rng(1)
x = rng.standard_normal((64, 16)).astype("f4")
y = np.sin(x.sum(axis=1, keepdims=True)).astype("f4")
layers = {"w": 0.2 * rng.standard_normal((16, 32)).astype("f4"), "v": 0.2 * rng.standard_normal((32, 1)).astype("f4")}


# %%
def loss_of(layers, x, y):
    return ((er.tanh(x @ layers["w"]) @ layers["v"] - y) ** 2).mean()


@er.jit(backend="jax", sites=len(jax.devices()))
def step(layers, x, y):
    loss, slopes = er.value_and_grad(loss_of)(layers, x, y)
    return loss, {name: layers[name] - 0.3 * slopes[name] for name in layers}


# %%
for i in range(101):
    loss, layers = step(layers, x, y)
    if i % 50 == 0:
        print(f"step {i}: loss {float(loss):.3f} on {len(jax.devices())} devices")

# %% [markdown]
# What a device runs, as text:

# %%
source = step.source(layers, x, y)
print("\n".join(line for line in source.splitlines() if "lax.p" in line or "lax.all" in line))
