"""Computes programs from what `einrel explain --json` prints, with NumPy alone, as docs/explain-json.md says: an independent reader of the format."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

Json = dict[str, Any]
Arrays = dict[str, np.ndarray]

TYPES = {"f64": np.float64, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "i64": np.int64, "i32": np.int32, "bool": np.bool_}
erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])



def _unless_lowest(x: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The limit at minus infinity is 0."""
    return np.where(x == -np.inf, 0, value)


UNARY = {
    "-": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sq": lambda x: x * x, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0), "step": lambda x: np.where(np.isnan(x), x, x > 0), "erf": erf, "erfc": erfc,
    "gelu": lambda x: _unless_lowest(x, x / 2 * erfc(-x / math.sqrt(2))), "silu": lambda x: _unless_lowest(x, x / (1 + np.exp(-x))), "sin": np.sin, "cos": np.cos,
    "floor": lambda x: np.floor(x) if x.dtype.kind == "f" else x, "stop_gradient": lambda x: x,
}  # fmt: skip
BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
REDUCERS = {
    "sum": np.sum, "sumsq": lambda x, axis: np.sum(x * x, axis=axis), "prod": np.prod, "max": np.max, "min": np.min, "mean": lambda x, axis: np.sum(x, axis=axis) / x.shape[axis],
    "any": lambda x, axis: np.any(x != 0, axis=axis), "all": lambda x, axis: np.all(x != 0, axis=axis), "argmax": np.argmax, "argmin": np.argmin,
    "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x - _finite_peak(x)), axis=axis)) + _finite_peak(x)[..., 0],
}  # fmt: skip


def _finite_peak(values: np.ndarray) -> np.ndarray:
    peak = np.max(values, axis=-1, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(peak), peak, 0)


def rounded(values: np.ndarray, to: str) -> np.ndarray:
    """To the nearest number of the type, in one step: through f32 it would be rounded twice."""
    digits, least = {"bf16": (8, -133), "f16": (11, -24)}[to]
    wide = values.astype(np.longdouble)  # which holds every i64
    last = np.maximum(np.frexp(wide)[1] - digits, least)
    return np.ldexp(np.rint(np.ldexp(wide, -last)), last).astype(np.float32).astype(TYPES[to])


def power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Of integers modulo 2^64: with a negative exponent 0, unless the base is 1 or -1."""
    if base.dtype.kind == "f":
        return np.power(base, exponent)
    below = np.where(base == 1, 1, np.where(base == -1, np.where(exponent % 2 == 0, 1, -1), 0))
    return np.where(exponent < 0, below, np.power(base, np.maximum(exponent, 0)))


def converted(values: np.ndarray, to: str) -> np.ndarray:
    """Floats to integers are truncated and saturate, NaN is 0; integers wrap; anything but 0 is true."""
    wanted = TYPES[to]
    if to == "bool":
        return values != 0
    if values.dtype.kind == "f" and to in ("i32", "i64"):
        limits = np.iinfo(wanted)
        whole = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0, posinf=2.0**64, neginf=-(2.0**64))
        inside = np.where((whole > limits.min) & (whole < limits.max), whole, 0).astype(wanted)
        return np.where(whole >= limits.max, limits.max, np.where(whole <= limits.min, limits.min, inside)).astype(wanted)
    return values.astype(wanted)


def philox(counter: list[np.ndarray], key: list[np.ndarray]) -> list[np.ndarray]:
    """Philox 4x32-10 (Salmon et al. 2011): four words of four, all in arrays of u64."""
    low = np.uint64(0xFFFFFFFF)
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(second >> np.uint64(32)) ^ c[1] ^ k[0], second & low, (first >> np.uint64(32)) ^ c[3] ^ k[1], first & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c


def random_numbers(function: str, stream: int, dtype: str, seed: Any, position: Any, iteration: Any) -> np.ndarray:
    seed, position, iteration = (np.asarray(x, np.int64).astype(np.uint64) for x in (seed, position, iteration))
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    words = philox([position & low, position >> high, iteration & low, np.uint64(stream)], [seed & low, seed >> high])
    first, second = (((words[i] << high) | words[i + 1]) >> np.uint64(11) for i in (0, 2))
    if function == "uniform":
        return (first >> np.uint64(29)) * 2.0**-24 if dtype == "f32" else first * 2.0**-53
    return np.sqrt(-2 * np.log((first + 0.5) * 2.0**-53)) * np.cos(2 * np.pi * second * 2.0**-53)


class VertexOf:
    """One vertex, for tensors and scalars by name."""

    def __init__(self, vertex: Json, tensors: Arrays, scalars: dict[str, float]) -> None:
        self.vertex, self.operation, self.scalars = vertex, vertex["operation"], scalars
        self.inputs = [tensors[name] for name in vertex["inputs"]]

    def value(self) -> np.ndarray:
        found = np.asarray(getattr(self, f"_{self.operation['kind']}")())
        assert list(found.shape) == self.vertex["shape"], self.vertex["name"]
        return found.astype(TYPES[self.vertex["dtype"]])

    def _extents(self, labels: list[str]) -> list[int]:
        return [self.vertex["extents"][label] for label in labels]

    def _view(self) -> np.ndarray:
        split = [label for group in self.operation["from"] for label in group]
        order = [split.index(label) for group in self.operation["to"] for label in group]
        return self.inputs[0].reshape(self._extents(split)).transpose(order).reshape(self.vertex["shape"])

    def _linear_algebra(self) -> np.ndarray:
        operation = self.operation
        rows, columns = operation["matrix"][:2]
        batches = [label for label in operation["output"] if label in operation["operand"] and label not in operation["matrix"]]
        matrices = self.inputs[0].transpose([operation["operand"].index(label) for label in [*batches, rows, columns]])
        if operation["function"] == "inverse":
            return np.linalg.inv(matrices)
        return np.linalg.qr(matrices)[operation["function"] == "qr_r"]

    def _einsum(self) -> np.ndarray:
        operation = self.operation
        self.labels = operation["output"] + operation["reduced"]
        shape = self._extents(self.labels)
        values: list[np.ndarray] = []
        for node in operation["expression"]:
            values.append(self._node(node, values))
        whole = np.broadcast_to(values[-1], shape)
        if operation["reducer"] is None:
            return whole
        wide = whole.astype(np.float64) if whole.dtype.kind == "f" else whole if operation["reducer"] in ("any", "all") else whole.astype(np.int64)
        flat = wide.reshape([*shape[: len(operation["output"])], math.prod(self._extents(operation["reduced"]))])
        return REDUCERS[operation["reducer"]](flat, axis=-1)

    def _positions(self, label: str) -> np.ndarray:
        shape = [-1 if other == label else 1 for other in self.labels]
        return np.arange(self.vertex["extents"][label]).reshape(shape)

    def _read(self, operand: int) -> np.ndarray:
        array, access = self.inputs[operand], self.operation["operands"][operand]
        at, inside = [], np.array(True)
        for index, extent in zip(access["indices"], array.shape):
            position = np.asarray(index["offset"] + sum(term["coefficient"] * self._positions(term["label"]) for term in index["terms"]))
            inside = inside & (position >= 0) & (position < extent)
            at.append(np.clip(position, 0, max(extent - 1, 0)))
        assert access["pad"] is not None or inside.all(), "an access outside of its tensor"
        if 0 in array.shape:
            return np.zeros(np.broadcast_shapes(*(np.shape(position) for position in at)), array.dtype)
        read = array[tuple(at)]
        return read if access["pad"] is None else np.where(inside, read, np.asarray(float(access["pad"])).astype(array.dtype))

    def _node(self, node: Json, values: list[np.ndarray]) -> np.ndarray:
        dtype = node["type"]
        arguments = [values[i] for i in node.get("arguments", [])]
        if "operand" in node:
            value = self._read(node["operand"])
        elif "constant" in node:
            value = np.asarray(float(node["constant"]) if dtype in ("f32", "f64") else node["constant"])
        elif "label" in node:
            value = self._positions(node["label"])
        elif "scalar" in node:
            value = np.asarray(self.scalars[node["scalar"]])
        else:
            return np.asarray(self._applied(node, arguments)).astype(TYPES[dtype])
        return value.astype(TYPES[dtype])

    def _applied(self, node: Json, arguments: list[np.ndarray]) -> np.ndarray:
        function = node["function"]
        if function == "convert":
            return converted(arguments[0], node["type"])
        if function == "round":
            return rounded(arguments[0], node["to"])
        if function == "where":
            return np.where(arguments[0] != 0, arguments[1], arguments[2])
        if function == "check_range":
            assert ((arguments[0] >= 0) & (arguments[0] < node["extent"])).all(), node
            return arguments[0]
        if function in ("uniform", "normal"):
            return random_numbers(function, node["stream"], node["type"], *arguments)
        if function == "**":
            return power(*arguments)
        return (UNARY if len(arguments) == 1 else BINARY)[function](*arguments)


def computed(vertices: list[Json], tensors: Arrays, scalars: dict[str, float]) -> Arrays:
    """All tensors, those that are given among them."""
    tensors = dict(tensors)
    for vertex in vertices:
        tensors[vertex["name"]] = VertexOf(vertex, tensors, scalars).value()
    return tensors


def run(program: Json, inputs: Arrays, given: dict[str, float], steps: int) -> Arrays:
    """All tensors of the last of so many steps, and states after it."""
    scalars = {scalar["name"]: scalar["default"] for scalar in program["scalars"]} | given
    counting = [scalar["name"] for scalar in program["scalars"] if scalar["counts_steps"]]
    states: Arrays = {}
    if program["initial"]:
        first = computed(program["initial"]["vertices"], inputs, scalars | dict.fromkeys(counting, 0))
        states = {state: first[tensor] for state, tensor in program["initial"]["states"].items()}
    for step in range(steps):
        tensors = computed(program["vertices"], inputs | states, scalars | dict.fromkeys(counting, step))
        states = {state: tensors[tensor or state] for state, tensor in program["states"].items()}
        if program["until"] and tensors[program["until"]]:
            break
    return tensors | states
