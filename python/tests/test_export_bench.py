"""Exported plans beside what XLA makes by itself, and beside JAX by hand: exit codes say what differs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "bench/export"


def test_plans_beside_xla_move_what_they_predict() -> None:
    command = [sys.executable, FOLDER / "beside_xla", "--rounds", "1", "--only", "mlp,attention"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row.split(" | ")[0] for row in done.stdout.splitlines()[-2:]] == ["| mlp", "| attention"]


def test_exported_layers_give_what_a_scan_by_hand_gives() -> None:
    command = [sys.executable, FOLDER / "layers", "--layers", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("| 3 | ")
