# %% [markdown]
# # A tour of Einrel
# NumPy's arrays go in; lazy arrays come out, which are planned and computed as one program when you look at them.
# Each cell stands on those before it. Jupyter opens this script as a notebook with Jupytext.

# %%
import numpy as np

import einrel as er

rng = np.random.default_rng(1)
points = rng.standard_normal((1000, 8))
centres = rng.standard_normal((5, 8))

# %% [markdown]
# ## Einsum, with any join and reduction
# Squared distances between all points and all centres: a matrix product, but with `sq(x-y)` in place of the product.

# %%
distances = er.einsum("pd,cd->pc", points, centres, join="sq(x-y)")
print(distances)

# %% [markdown]
# Nothing was computed. `np.asarray` computes; so does whatever needs a number.

# %%
nearest = er.argmin(distances, axis=1)
print("points per centre", np.bincount(np.asarray(nearest), minlength=5))

# %% [markdown]
# ## NumPy's functions, NumPy's rules
# Names are those of the array API standard. NumPy's own functions take our arrays as well, and stay lazy.

# %%
weights = er.softmax(-distances, axis=1)
mixed = weights @ centres
print("mean error", float(np.sqrt(er.mean((mixed - points) ** 2))))

# %% [markdown]
# ## The plan
# `explain` says what is computed, by which kernel, in which time, and what moves between sites.

# %%
print(mixed.explain(sites=4))

# %% [markdown]
# ## In less memory than it needs
# The product below has 8 MB of inputs, and a result of 8 MB. It is computed in 4 MB besides; what has no room there
# goes to disk.

# %%
a = rng.standard_normal((1000, 1000))
product = er.matmul(er.tanh(er.asarray(a)), a)
product.compute(memory="4MiB")
print("as NumPy computes it:", np.allclose(product, np.tanh(a) @ a))

# %% [markdown]
# ## Gradients
# How the mean distance to the nearest centre changes with each centre: one step downhill brings them closer.

# %%
where = er.asarray(centres)
loss = er.mean(er.min(er.einsum("pd,cd->pc", points, where, join="sq(x-y)"), axis=1))
slope = er.grad(loss, where)
before, slope = er.compute(loss, slope)
moved = centres - 0.5 * np.asarray(slope)
after = er.mean(er.min(er.einsum("pd,cd->pc", points, moved, join="sq(x-y)"), axis=1))
print(f"mean squared distance {float(before):.3f}, after a step {float(after):.3f}")

# %% [markdown]
# ## A function that runs many times
# `jit` traces it once. From then on a call binds arrays and runs one program.


# %%
@er.jit
def assigned(points, centres):
    """The mean of the points nearest to each centre: a step of k-means."""
    nearest = er.argmin(er.einsum("pd,cd->pc", points, centres, join="sq(x-y)"), axis=1)
    member = er.astype(nearest[:, None] == er.arange(centres.shape[0]), er.float64)
    count = er.maximum(er.sum(member, axis=0), 1)
    return member.T @ points / count[:, None]


for _ in range(20):
    centres = assigned(points, centres)
loss = er.mean(er.min(er.einsum("pd,cd->pc", points, centres, join="sq(x-y)"), axis=1))
print(f"after k-means {float(loss):.3f}")
