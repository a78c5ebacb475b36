# %% [markdown]
# # One script on several processes
# `mpirun -n 4 python examples/python/ranks.py` runs this script four times, and the four compute together: each array
# is cut, each process has its part, and what one needs of another is sent. Nothing in the script says so. Without
# mpirun it is a script as any other.

# %%
import numpy as np

import einrel as er

SIZE = 1000
made: list[int] = []  # bytes, by call


# %% [markdown]
# ## An array that nobody holds
# A function gives the elements of a region. Each process asks for the parts that it needs.


# %%
def waves(region: tuple[slice, ...]) -> np.ndarray:
    rows, columns = (np.arange(part.start, part.stop) for part in region)
    part = np.sin(np.outer(rows, columns) * (2 * np.pi / SIZE))
    made.append(part.nbytes)
    return part


A = er.from_function((SIZE, SIZE), waves)

# %% [markdown]
# ## The same computation everywhere
# Every process has to compute the same, in the same order, and gets the whole result. So compute first, and let one
# process print: `if er.rank() == 0: print(float(...))` would wait for others that do not compute.

# %%
gram = er.matmul(A, A.T)
trace, largest = er.compute(er.trace(gram), er.max(er.abs(A)))
is_right = abs(float(trace) - SIZE * (SIZE - 2) / 2) < 1e-6 * SIZE**2

if er.rank() == 0:
    print(f"{er.ranks()} ranks, trace {float(trace):.1f}, {'right' if is_right else 'wrong'}")
    print(f"rank 0 made {sum(made) / 1e6:.1f} MB of {A.nbytes / 1e6:.1f} MB, largest element {float(largest):.3f}")
