"""Arrays and devices that modules for PyTorch, of one device and of two (the arguments), have to refuse, and what is said of each."""

from __future__ import annotations

import runpy
import sys

import numpy as np
import torch
from refused_calls import tell

one, two = map(runpy.run_path, sys.argv[1:])
mesh = one["make_mesh"]("cpu")
place, step = one["place"], one["step"](mesh)
tell(lambda: place(mesh, {"X": np.ones((4, 2))}))
tell(lambda: place(mesh, {"K": [1, 2.7]}))
tell(lambda: place(mesh, {"X": np.full((2, 4), 1j, "c8")}))
tell(lambda: place(mesh, {"Z": 1}))
tell(lambda: step(place(mesh, {"X": np.ones((2, 4))})))
tell(lambda: two["make_mesh"]("cpu"))
print(step(place(mesh, {"X": torch.ones(2, 4), "K": [2.0, 3.0]}))["Y"].tolist())
