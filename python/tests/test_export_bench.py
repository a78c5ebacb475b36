"""The comparison of plans with what XLA makes by itself: its exit code says that a plan moves what it predicts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench/export/beside_xla"


def test_plans_beside_xla_move_what_they_predict() -> None:
    command = [sys.executable, SCRIPT, "--rounds", "1", "--only", "mlp,attention"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row.split(" | ")[0] for row in done.stdout.splitlines()[-2:]] == ["| mlp", "| attention"]
