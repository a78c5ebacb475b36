"""What generated comparisons share: how many there are, in which ways they are computed, and in which types."""

from __future__ import annotations

import os
from typing import Any, Final

import ml_dtypes
import numpy as np

ROUNDS: Final = int(os.environ.get("EINREL_VALUE_ROUNDS", "30"))
FLOAT16: Final = np.dtype("f2")
BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
HALVES: Final = (FLOAT16, BFLOAT16)
PLANNERS: Final = ("eindecomp", "eindecomp-paper", "single", "sqrt", "all-tile", "kcut")  # each plans anything


def way(rng: np.random.Generator) -> dict[str, Any]:
    """Options of `compute`: sites, planners, a limit of memory, of a byte at times, and threads."""
    options: dict[str, Any] = {}
    if rng.random() < 0.6:
        options["sites"] = int(rng.integers(1, 7))
    if rng.random() < 0.4:
        options["planner"] = PLANNERS[rng.integers(len(PLANNERS))]
    if rng.random() < 0.4:
        options["memory"] = int(2 ** rng.uniform(0, 16))
    if rng.random() < 0.2:
        options["threads"] = int(rng.integers(1, 4))
    return options


def smallest(dtype: np.dtype[Any]) -> float:
    """The smallest number above 0, by which roundings may differ where numbers have fewer digits."""
    return float(ml_dtypes.finfo(dtype).smallest_subnormal) if dtype in HALVES or dtype.kind == "f" else 0.0
