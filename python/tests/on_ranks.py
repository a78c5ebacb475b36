"""Python scripts that mpirun starts several times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import einrel as er

ROOT = Path(__file__).parents[2]


def run_on(ranks: int, *command: str | Path, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What Python does with these arguments on so many ranks, with this package or that of the folder ``packages``.

    Each rank writes its lines whole: unbuffered, print writes a line in parts, and parts of two ranks meet.
    """
    found = packages or Path(er.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(found)}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        [ROOT / "tools/mpirun", "-n", str(ranks), sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment,
    )
