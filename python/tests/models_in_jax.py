"""Writes what JAX computes of a language model on four forced CPU devices: models_in_jax.py MODEL PLANNER OUT.npz.

Of two prompts the logits after them, and after the most likely token, whose step begins with the states of the first.
"""

from __future__ import annotations

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

import einrel as er

PROMPTS = ([3, 17, 42, 5, 8, 23], [7, 9, 11])


def main(path: str, planner: str, out: str) -> None:
    model = er.models.load(path)
    counts = [len(prompt) for prompt in PROMPTS]
    tokens = np.zeros((len(PROMPTS), max(counts)), "i8")
    for text, prompt in enumerate(PROMPTS):
        tokens[text, : len(prompt)] = prompt
    weights = {name: np.asarray(weight) for name, weight in model.inputs().items()}
    states, logits = None, []
    for count in (np.array(counts), np.ones(len(PROMPTS), "i8")):
        program = model.program(batch=len(PROMPTS), tokens=tokens.shape[1], capacity=8)
        module = er.to_jax(program, sites=4, spmd=True, planners=planner)
        mesh = module.make_mesh()
        begin = module.initial_states(mesh) if states is None else module.place(mesh, states)
        inputs = module.place(mesh, weights | {"Tokens": tokens, "Count": count})
        results = module.step(mesh)(inputs | begin)
        logits.append(np.asarray(results["Logits"]))
        states = {name: np.asarray(results[name]) for name in module.STATES}
        tokens = np.asarray(results["Next"])[:, None]
    np.savez(out, logits=logits)


if __name__ == "__main__":
    main(*sys.argv[1:])
