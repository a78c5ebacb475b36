# %% [markdown]
# # Training a network
# A network with two hidden layers learns which of two intertwined spirals a point is on.

# %%
import numpy as np

import einrel as er

rng = np.random.default_rng(1)


def spirals(count):
    """(points, class of each)"""
    label = rng.integers(0, 2, count)
    angle = np.sqrt(rng.uniform(0.02, 1, count)) * 3 * np.pi
    at = angle + np.pi * label
    points = np.stack([angle * np.cos(at), angle * np.sin(at)], axis=1) / (3 * np.pi)
    return points.astype("f4"), label


# %% [markdown]
# ## The network
# Parameters are a dict; functions take such things as they are.


# %%
def layer(inputs, outputs):
    deviation = np.sqrt(2 / inputs)
    return {"w": (rng.standard_normal((inputs, outputs)) * deviation).astype("f4"), "b": np.zeros(outputs, "f4")}


def apply(layers, x):
    for own in layers[:-1]:
        x = er.relu(x @ own["w"] + own["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def loss_of(layers, x, label):
    """Cross entropy: minus the logarithm of the probability of the class that a point has."""
    logarithms = er.log_softmax(apply(layers, x), axis=-1)
    return -er.mean(er.take_along_axis(logarithms, label[:, None], axis=1))


# %% [markdown]
# ## A step, with momentum
# All gradients are asked for at once, in a list.


# %%
@er.jit
def step(layers, momenta, x, label, rate):
    flat = [own[key] for own in layers for key in ("w", "b")]
    loss = loss_of(layers, x, label)
    slopes = er.grad(loss, flat)
    pushed = [0.9 * momentum + slope for momentum, slope in zip(momenta, slopes)]
    moved = [parameter - rate * push for parameter, push in zip(flat, pushed)]
    layers = [{"w": w, "b": b} for w, b in zip(moved[::2], moved[1::2])]
    return loss, layers, pushed


layers = [layer(2, 64), layer(64, 64), layer(64, 2)]
momenta = [np.zeros_like(own[key]) for own in layers for key in ("w", "b")]
for i in range(1001):
    x, label = spirals(128)
    loss, layers, momenta = step(layers, momenta, x, label, 0.05)
    if i % 250 == 0:
        print(f"step {i:4}: loss {float(loss):.3f}")

# %%
x, label = spirals(1000)
found = np.asarray(er.argmax(apply(layers, er.asarray(x)), axis=1))
print(f"{(found == label).mean():.1%} of new points are told apart")
