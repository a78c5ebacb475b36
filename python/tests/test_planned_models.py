"""The page of planned language models is what the planners say; of its rows those that are planned in seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench/models/planned"


def test_the_page_is_what_planners_say():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
