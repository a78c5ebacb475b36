"""Arrays and devices that a module that einrel exported (the argument) has to refuse, and what it says of each."""

from __future__ import annotations

import os
import runpy
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from refused_calls import tell

module = runpy.run_path(sys.argv[1])
mesh = module["make_mesh"]()
place, step = module["place"], module["step"](mesh)
tell(lambda: place(mesh, {"X": np.ones((4, 2))}))
tell(lambda: place(mesh, {"K": [1, 2.7]}))
tell(lambda: place(mesh, {"X": np.full((2, 4), 1j, "c8")}))
tell(lambda: place(mesh, {"Z": 1}))
tell(lambda: step(place(mesh, {"X": np.ones((2, 4))})))
tell(lambda: module["make_mesh"](jax.devices()[:1]))
print(np.asarray(step(place(mesh, {"X": np.ones((2, 4)), "K": [2.0, 3.0]}))["Y"]).tolist())
