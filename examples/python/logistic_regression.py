# %% [markdown]
# # Logistic regression
# Points of two classes, and the line that tells them apart: the loss is written once, its gradient follows.

# %%
import numpy as np

import einrel as er

rng = np.random.default_rng(1)
classes = rng.integers(0, 2, 500)
points = rng.standard_normal((500, 2)) + np.where(classes[:, None] == 1, 1.2, -1.2)

# %% [markdown]
# ## The loss
# The logarithm of the probability of what was seen. `logaddexp(0, z)` is log(1 + exp(z)) without overflow.


# %%
def loss_of(w, b, x, y):
    z = x @ w + b
    return er.mean(er.logaddexp(z, 0.0) - y * z)


# %% [markdown]
# ## A step downhill
# `jit` makes one program of the loss, both gradients and the new weights. What they have in common is computed once.


# %%
@er.jit
def step(w, b, x, y, rate):
    loss = loss_of(w, b, x, y)
    slope_w, slope_b = er.grad(loss, [w, b])
    return loss, w - rate * slope_w, b - rate * slope_b


w, b = np.zeros(2), np.zeros(())
for i in range(201):
    loss, w, b = step(w, b, points, classes, 0.5)
    if i % 50 == 0:
        print(f"step {i:3}: loss {float(loss):.4f}")

# %%
found = np.asarray(er.asarray(points) @ w + b) > 0
print(f"{(found == classes).mean():.1%} of {len(classes)} points are on their side of the line")
