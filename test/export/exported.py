"""Runs modules that einrel exported to JAX, in a process with eight forced CPU devices.

The folder has NAME.py, NAME.npz with the inputs, and NAME.json with `steps` (0: it is compiled alone) and `scalars`; or with `is_program`: it runs as
the program that it is. Beside them come NAME.out.npz with all that a step gives, NAME.types with their types, and NAME.bytes
with what the devices receive, as the compiled program says.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from collective_bytes import collective_bytes


def run(module: dict[str, Any], inputs: dict[str, Any], steps: int) -> tuple[dict[str, Any], int]:
    """What so many steps give, and the bytes of one."""
    mesh = module["make_mesh"]()
    arrays = module["place"](mesh, {name: inputs[name] for name in (*module["INPUTS"], *module["UNREAD"])})
    arrays.update(module["initial_states"](mesh, arrays))
    for name, (_, _, spec) in module["STATES"].items():
        assert arrays[name].sharding.is_equivalent_to(jax.sharding.NamedSharding(mesh, spec), arrays[name].ndim), name
    step = module["step"](mesh)
    moved = collective_bytes(step.lower(arrays).compile().as_text(), mesh.size)
    for _ in range(steps):
        results = step(arrays)
        arrays = {**arrays, **results}
        if "until" in results and bool(results["until"]):
            break
    for name, (shape, dtype, _) in {**module["STATES"], **module["OUTPUTS"]}.items():
        assert arrays[name].shape == shape, (name, arrays[name].shape, shape)
        assert arrays[name].dtype == np.dtype(dtype), (name, arrays[name].dtype, dtype)
    return arrays, moved


def moved_alone(module: dict[str, Any]) -> int:
    """The bytes of a step, which is compiled and not run."""
    mesh = module["make_mesh"]()
    tensors = {**module["INPUTS"], **module["STATES"]}
    arrays = {
        name: jax.ShapeDtypeStruct(shape, dtype, sharding=jax.sharding.NamedSharding(mesh, spec))
        for name, (shape, dtype, spec) in tensors.items()
    }
    return collective_bytes(module["step"](mesh).lower(arrays).compile().as_text(), mesh.size)


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.py")):
        try:
            write_results(path)
        except Exception:
            path.with_suffix(".error").write_text(traceback.format_exc())


def write_results(path: Path) -> None:
    how = json.loads(path.with_suffix(".json").read_text())
    module = runpy.run_path(str(path))
    if how.get("is_program"):
        module["main"]()
        return
    if how["steps"] == 0:
        path.with_suffix(".bytes").write_text(f"{moved_alone(module)} {module['PREDICTED_BYTES']}")
        return
    module.get("SCALARS", {}).update({k: v for k, v in how["scalars"].items() if k in module.get("SCALARS", {})})
    inputs = {**dict(np.load(path.with_suffix(".npz"))), **how["scalars"]}
    results, moved = run(module, inputs, how["steps"])
    as_wide = {k: np.asarray(v.astype("float32") if v.dtype == "bfloat16" else v) for k, v in results.items()}
    np.savez(path.with_suffix(".out.npz"), **as_wide)
    path.with_suffix(".types").write_text(json.dumps({name: str(array.dtype) for name, array in results.items()}))
    path.with_suffix(".bytes").write_text(f"{moved} {module['PREDICTED_BYTES']}")
    jax.clear_caches()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
