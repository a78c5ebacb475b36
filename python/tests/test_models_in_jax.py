"""Language models that JAX computes on four devices, by the plans of several planners."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from language_models import CONFIG, greedy, random_weights, write_folder
from models_in_jax import PROMPTS


@pytest.mark.parametrize("planner", ["eindecomp", "data:2 x tensor:2"])
def test_logits_are_numpys(planner, tmp_path, rng):
    """Two heads of queries for each of keys, weights of bf16, prompts of two lengths, and a token after them."""
    weights = {name: weight.astype(ml_dtypes.bfloat16) for name, weight in random_weights(CONFIG, rng).items()}
    write_folder(tmp_path, CONFIG, weights)
    out = tmp_path / "found.npz"
    script = Path(__file__).with_name("models_in_jax.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, planner, out], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = np.load(out)["logits"]
    for text, prompt in enumerate(PROMPTS):
        np.testing.assert_allclose(found[:, text], greedy(CONFIG, weights, prompt, 2)[0], atol=1e-4)
