"""Writes, as JSON, what JAX computes of arrays that lie on eight forced CPU devices already: sharded_in_jax.py.

For every sharding of one array: the sum of what differs from NumPy's result, what the module predicts that moves, and
whether each device kept the memory that it had. For those that no plan has, what is said.
"""

from __future__ import annotations

import json
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import einrel as er

SHARDINGS = {
    "rows": ((8,), P("a")),
    "columns": ((8,), P(None, "a")),
    "both": ((4, 2), P("a", "b")),
    "both, the second first": ((4, 2), P("b", "a")),
    "rows, twice": ((4, 2), P("a")),
    "columns, four times": ((4, 2), P(None, "b")),
    "everywhere": ((8,), P()),
    "rows over two axes": ((4, 2), P(("a", "b"))),
    "rows between copies": ((2, 2, 2), P("b")),
    "against the mesh": ((4, 2), P(("b", "a"))),
    "axes that are not neighbours": ((2, 2, 2), P(("a", "c"))),
}


def main() -> None:
    random = np.random.default_rng(5)
    x, w = random.normal(size=(16, 24)).astype("f4"), random.normal(size=(24, 8)).astype("f4")
    wanted = np.tanh(x @ w).sum(axis=0)
    found = {}
    for name, (sizes, spec) in SHARDINGS.items():
        devices = np.array(jax.devices()[::-1]).reshape(sizes)  # other numbers than those of the system
        array = jax.device_put(x, NamedSharding(Mesh(devices, tuple("abc"[: len(sizes)])), spec))
        function = er.jit(lambda x, w: er.tanh(x @ w).sum(axis=0), backend="jax", planners="eindecomp")
        try:
            result = function(array, w)
        except er.ProgramError as error:
            found[name] = str(error)
            continue
        source = function.source(array, w)
        module = er.jit(lambda x: x * 2, backend="jax")
        doubled = module(array)
        found[name] = {
            "off": float(np.abs(np.asarray(result) - wanted).max()),
            "moved": int(source.split("PREDICTED_BYTES = ")[1].split("\n")[0]),
            "doubled": float(np.abs(np.asarray(doubled) - 2 * x).max()),
            "stays": int(module.source(array).split("PREDICTED_BYTES = ")[1].split("\n")[0]),
        }
    few = jax.device_put(x, NamedSharding(Mesh(np.array(jax.devices()[:4]), ("a",)), P("a")))
    others = jax.device_put(w, NamedSharding(Mesh(np.array(jax.devices()[4:]), ("a",)), P("a")))
    for name, arrays, options in (("sites", (few, w), {"sites": 8}), ("devices", (few, others), {})):
        try:
            er.jit(lambda x, w: x @ w, backend="jax", **options)(*arrays)
        except er.ProgramError as error:
            found[name] = str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
