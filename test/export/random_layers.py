"""Random programs in which a few statements come several times, with other tensors each time, and gradients of some."""

import numpy as np

SIDE = 8
UNARY = ("tanh({})", "relu({})", "0.5 * {}", "sq(sigmoid({}))")


def random_body(random):
    """Statements that compute {out} of {into}, both [i,j], of the layer {n}, and the shapes of the inputs of their own."""
    lines, inputs, known = [], {}, ["{into}"]
    for s in range(random.integers(3, 6)):
        name = f"T{s}_{{n}}"
        old, other = (known[random.integers(len(known))] for _ in range(2))
        kind = s if s < 2 else random.integers(5)
        if kind == 0:  # first, so that a layer is long enough to be found
            inputs[f"W{s}"] = (SIDE, SIDE)
            lines.append(f"{name}[i,j] = tanh(sum[k] {old}[i,k] * W{s}_{{n}}[k,j])")
        elif kind == 2:
            inputs[f"g{s}"] = (SIDE,)
            lines.append(f"{name}[i,j] = {UNARY[random.integers(len(UNARY))].format(f'{old}[i,j]')} * g{s}_{{n}}[j] + {other}[j,i]")
        elif kind == 1:
            lines.append(f"R{s}_{{n}}[i] = max[j] {old}[i,j]\n{name}[i,j] = exp({old}[i,j] - R{s}_{{n}}[i]) * {other}[i,j]")
        elif kind == 3:
            lines.append(f"{name}[i,j] = sum[k] {old}[i,k] * Table[j,k] / {SIDE}")
        else:
            lines.append(f"{name}[i,j] = {old}[i,j] + X0[i,j] * width")
        known.append(name)
    lines.append(f"{{out}}[i,j] = tanh({' + '.join(f'{name}[i,j]' for name in known)})")
    return lines, inputs


def random_layers(seed):
    """A program, whether all its layers are the same, and its inputs."""
    random = np.random.default_rng(seed)
    lines, inputs = random_body(random)
    layers = int(random.integers(4, 7))
    is_changed = seed % 3 == 2
    changed = int(random.integers(layers)) if is_changed else None
    shapes = {"X0": (SIDE, SIDE), "Table": (SIDE, SIDE)}
    text = f"dims i={SIDE} j={SIDE} k={SIDE}\ninput X0[i,j], Table[i,j] : f64\nscalar width = 0.25\n"
    for n in range(1, layers + 1):
        for name, shape in inputs.items():
            shapes[f"{name}_{n}"] = shape
            text += f"input {name}_{n}[{'i,j' if len(shape) == 2 else 'j'}] : f64\n"
        body = [line.format(n=n, into=f"X{n - 1}", out=f"X{n}") for line in lines]
        if n - 1 == changed:
            body[-1] = body[-1].replace("tanh(", "sigmoid(")
        text += "\n".join(body) + "\n"
    outputs = [f"X{layers}"] + ([f"X{layers // 2}"] if random.integers(2) else [])
    if seed % 2 == 1:
        read = ["X0"] + [f"{name}_{n}" for n in range(1, layers + 1) for name in inputs]
        text += f"loss[] = sum[i,j] sq(X{layers}[i,j])\ngradient {', '.join(f'grad_of_{name}' for name in read)} = loss wrt {', '.join(read)}\n"
        outputs += [f"grad_of_{name}" for name in read]
    text += f"output {', '.join(outputs)}\n"
    return text, not is_changed, {name: random.normal(size=shape) for name, shape in shapes.items()}
