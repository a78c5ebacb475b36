# %% [markdown]
# # The amplitude of a random quantum circuit
# A circuit is a network of small tensors: a gate on one qubit is a matrix, a gate on two has four dimensions. The
# amplitude of an outcome is the number that remains when all of them are contracted. cotengra finds the order; Einrel
# contracts.
#
# The gates here are real: rotations about the Y axis, and controlled-Z. With these alone any quantum computation can be
# done.

# %%
import cotengra
import numpy as np

import einrel as er

QUBITS, LAYERS = 12, 8
rng = np.random.default_rng(1)
CONTROLLED_Z = np.diag([1.0, 1.0, 1.0, -1.0]).reshape(2, 2, 2, 2)


def rotation(angle):
    return np.array([[np.cos(angle / 2), -np.sin(angle / 2)], [np.sin(angle / 2), np.cos(angle / 2)]])


# %% [markdown]
# ## The network
# Each qubit is a wire, cut into pieces by its gates; a piece is a label. All qubits begin as 0, and the outcome asked
# for is 0 for every qubit, too. A layer rotates each qubit by a random angle, then joins neighbours.

# %%
ZERO = np.array([1.0, 0.0])
gates = []  # (tensor, the qubits it acts on)
for layer in range(LAYERS):
    gates += [(rotation(angle), (q,)) for q, angle in enumerate(rng.uniform(0, 2 * np.pi, QUBITS))]
    gates += [(CONTROLLED_Z, (q, q + 1)) for q in range(layer % 2, QUBITS - 1, 2)]

piece = list(range(QUBITS))
inputs, tensors = [(q,) for q in piece], [ZERO] * QUBITS
labels = QUBITS
for gate, qubits in gates:
    before = [piece[q] for q in qubits]
    after = list(range(labels, labels + len(qubits)))
    labels += len(qubits)
    for q, label in zip(qubits, after):
        piece[q] = label
    inputs.append((*after, *before))
    tensors.append(gate)
inputs += [(label,) for label in piece]
tensors += [ZERO] * QUBITS
print(f"{len(tensors)} tensors, {labels} labels")

# %% [markdown]
# ## The order of contraction
# Contracted as the circuit runs, the largest tensor has 2^12 elements, a dimension per qubit. A good order needs less.

# %%
names = [tuple(map(cotengra.get_symbol, own)) for own in inputs]
sizes = {name: 2 for own in names for name in own}
tree = cotengra.array_contract_tree(names, (), sizes, optimize="greedy")
print(f"largest tensor 2^{tree.contraction_width():.0f}, {tree.contraction_cost():.2g} multiplications")

# %% [markdown]
# ## The amplitude
# The whole contraction becomes one lazy array, so one program, before anything is computed.

# %%
amplitude = tree.contract([er.asarray(tensor) for tensor in tensors])
print(f"amplitude of 00...0: {float(amplitude):.6e}")

# %% [markdown]
# The same by the state of all qubits, in NumPy: 2^12 numbers, on which one gate after the other acts.

# %%
state = np.zeros([2] * QUBITS)
state[(0,) * QUBITS] = 1
for gate, qubits in gates:
    k = len(qubits)
    state = np.tensordot(gate, state, axes=(list(range(k, 2 * k)), qubits))
    state = np.moveaxis(state, list(range(k)), qubits)
assert np.isclose(float(amplitude), state[(0,) * QUBITS])
print(f"by the whole state:  {state[(0,) * QUBITS]:.6e}")
