# %% [markdown]
# # A LLaMA layer, trained by JAX on four devices
# One layer of a language model of LLaMA's kind learns to find the mean of all positions so far. einrel plans a step of
# training, gradients and optimiser and all, and writes it as a module for JAX. Here the devices are four parts of a
# processor. On GPUs and TPUs leave out the first lines (docs/export.md).

# %%
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np

import einrel as er

# %% [markdown]
# ## The program
# b sequences of s positions (t counts them, too), e is the width, h heads of width d, m hidden units; c is half of d.
# `minimize` adds the gradients, and the next values of all weights by Adam.

# %%
program = er.program("""
dims b=16 s=32 t=32 e=64 h=4 d=16 c=8 m=172
input X[b,s,e], Wanted[b,s,e]
state G1[e] = 1
state G2[e] = 1
state WQ[h,d,e] = 0.125 * normal(1)
state WK[h,d,e] = 0.125 * normal(2)
state WV[h,d,e] = 0.125 * normal(3)
state WO[e,h,d] = 0.125 * normal(4)
state W1[m,e] = 0.125 * normal(5)
state W3[m,e] = 0.125 * normal(6)
state W2[e,m] = 0.08 * normal(7)

# Rotary embedding: pairs of columns are turned by an angle that grows with the position.
def turned[j](x, other, cosine, sine) = x * cosine + (2 * j - 1) * other * sine
Angle[s,c] = f64(s) / 10000 ** (f64(c) / 8)
Cos[s,c] = f32(cos(Angle[s,c]))
Sin[s,c] = f32(sin(Angle[s,c]))

N1[b,s,e] = rmsnorm[e](X[b,s,e], 1e-6) * G1[e]
Q[b,s,h,d] = sum[e] N1[b,s,e] * WQ[h,d,e]
K[b,s,h,d] = sum[e] N1[b,s,e] * WK[h,d,e]
V[b,s,h,d] = sum[e] N1[b,s,e] * WV[h,d,e]
QP[b,s,h,j,c] = view Q[b,s,h,(j c)]
KP[b,s,h,j,c] = view K[b,s,h,(j c)]
QR[b,s,h,j,c] = turned[j](QP[b,s,h,j,c], QP[b,s,h,1-j,c], Cos[s,c], Sin[s,c])
KR[b,s,h,j,c] = turned[j](KP[b,s,h,j,c], KP[b,s,h,1-j,c], Cos[s,c], Sin[s,c])
L[b,h,s,t] = 0.25 * sum[j,c] QR[b,s,h,j,c] * KR[b,t,h,j,c]
P[b,h,s,t] = softmax[t](where(t <= s, L[b,h,s,t], -inf))
O[b,s,h,d] = sum[t] P[b,h,s,t] * V[b,t,h,d]
Y[b,s,e] = X[b,s,e] + sum[h,d] O[b,s,h,d] * WO[e,h,d]
N2[b,s,e] = rmsnorm[e](Y[b,s,e], 1e-6) * G2[e]
F[b,s,m] = silu(sum[e] N2[b,s,e] * W1[m,e]) * sum[e] N2[b,s,e] * W3[m,e]
Z[b,s,e] = Y[b,s,e] + sum[m] F[b,s,m] * W2[e,m]
loss[] = mean[b,s,e] sq(Z[b,s,e] - Wanted[b,s,e])
minimize loss over G1, G2, WQ, WK, WV, WO, W1, W3, W2 by adam(0.01)
output loss
""")

# %% [markdown]
# ## The plan as a module
# Each device has a part of each tensor. The module knows what the devices receive in a step, and the compiled program
# moves that.

# %%
module = er.to_jax(program, sites=len(jax.devices()))
for name in ("X", "WQ", "W1"):
    shape, _, spec = (module.INPUTS | module.STATES)[name]
    print(f"{name} {shape} is cut by {spec}")
print(f"{module.PREDICTED_BYTES / 1e6:.2f} MB move in a step")

# %% [markdown]
# ## Training
# The weights stay where the plan has them: a step takes them and gives the next ones.

# %%
mesh = module.make_mesh()
step = module.step(mesh)
arrays = module.initial_states(mesh)
rng = np.random.default_rng(1)
for i in range(201):
    x = rng.standard_normal((16, 32, 64)).astype("f4")
    means = x.cumsum(axis=1) / np.arange(1, 33, dtype="f4")[:, None]
    arrays |= module.place(mesh, {"X": x, "Wanted": means})
    arrays |= step(arrays)
    if i % 50 == 0:
        print(f"step {i:3}: loss {float(arrays['loss']):.3f} on {len(jax.devices())} devices")
