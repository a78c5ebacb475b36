"""The scripts in examples/python, run as a reader would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import einrel as er

SCRIPTS = sorted((Path(__file__).parents[2] / "examples/python").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_runs(script: Path) -> None:
    packages = str(Path(er.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": packages},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not done.stderr
