"""Writes, as JSON, what JAX computes of arrays that lie on forced CPU devices already: sharded_in_jax.py.

For every sharding of one array: the most that differs from NumPy's result, and the bytes that move as predicted, also
for a function element by element. For those that no plan has, what is said, and the same of the mesh that is advised.
"""

from __future__ import annotations

import json
import os
import re

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=36"
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
    "3 before 2": ((3, 2), P("b", "a")),
    "3 columns before 2 copies": ((3, 2), P(None, "a")),
    "3 before 4": ((3, 4), P("b", "a")),
    "6 by 6": ((6, 6), P(None, "a")),
}
ADVISED = re.compile(r"put it on the mesh (.*) by jax.device_put")


def found_of(array: jax.Array, w: np.ndarray, x: np.ndarray) -> dict[str, float]:
    """What two functions make of an array."""
    function = er.jit(lambda x, w: er.tanh(x @ w).sum(axis=0), backend="jax", planners="eindecomp")
    doubled = er.jit(lambda x: x * 2, backend="jax")
    return {
        "off": float(np.abs(np.asarray(function(array, w)) - np.tanh(x @ w).sum(axis=0)).max()),
        "moved": predicted(function.source(array, w)),
        "doubled": float(np.abs(np.asarray(doubled(array)) - 2 * x).max()),
        "stays": predicted(doubled.source(array)),
    }


def predicted(source: str) -> int:
    return int(source.split("PREDICTED_BYTES = ")[1].split("\n", maxsplit=1)[0])


def parts(array: jax.Array) -> dict[jax.Device, list[tuple[int, ...]]]:
    """Which part of an array each device has."""
    of_device = array.sharding.devices_indices_map(array.shape)
    return {device: [part.indices(n) for part, n in zip(of_device[device], array.shape)] for device in of_device}


def refused(function: er.jit, *arrays: jax.Array) -> str:
    try:
        function(*arrays)
    except er.ProgramError as error:
        return str(error)
    return "nothing"


def main() -> None:
    random = np.random.default_rng(5)
    x, w = random.normal(size=(16, 24)).astype("f4"), random.normal(size=(24, 8)).astype("f4")
    found = {}
    for name, (sizes, spec) in SHARDINGS.items():
        devices = np.array(jax.devices()[: np.prod(sizes)][::-1]).reshape(sizes)  # other numbers than the system's
        mesh = Mesh(devices, tuple("abc"[: len(sizes)]))
        array = jax.device_put(x, NamedSharding(mesh, spec))
        try:
            found[name] = found_of(array, w, x)
        except er.ProgramError as error:
            said = str(error)
            found[name] = {"said": said}
            if advised := ADVISED.search(said):
                other = jax.device_put(array, NamedSharding(eval(advised[1], {"jax": jax, "mesh": mesh}), spec))
                assert parts(other) == parts(array), name
                found[name] |= found_of(other, w, x)
    four = Mesh(np.array(jax.devices()[:4]), ("a",))
    few = jax.device_put(x, NamedSharding(four, P("a")))
    others = jax.device_put(w, NamedSharding(Mesh(np.array(jax.devices()[4:8]), ("a",)), P("a")))
    turned = jax.device_put(w, NamedSharding(Mesh(np.array(jax.devices()[3::-1]), ("a",)), P("a")))

    def product(**options: object) -> er.jit:
        return er.jit(lambda x, w: x @ w, backend="jax", **options)

    found["sites"] = {"said": refused(product(sites=8), few, w)}
    found["devices"] = {"said": refused(product(), few, others)}
    found["order of devices"] = {"said": refused(product(), few, turned)}
    found["contradiction"] = {"said": refused(product(placements={"x": {1: 4}}), few, w)}
    found["no input"] = {"said": refused(product(placements={"v": {1: 4}}), few, w)}
    inside = er.jit(lambda p: p["x"].T @ p["x"], backend="jax")
    against = jax.device_put(
        x, NamedSharding(Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b")), P(("b", "a")))
    )
    found["in a dict"] = {"said": refused(inside, {"x": against})}
    for name, lies in (("none said", {}), ("also said", {"x": [(0, 2), (0, 2)]}), ("the other said", {"w": {1: 4}})):
        function = product(placements=lies)
        source = function.source(few, w)
        found[name] = {
            "off": float(np.abs(np.asarray(function(few, w)) - x @ w).max()),
            "w": source.split('"w": ')[1].split("\n")[0],
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
