"""Counts what a step of each module for PyTorch (the arguments), all for as many devices, moves: prints its path, that, and what it predicts.

Tensors are on PyTorch's device meta and have no elements, so that large programs on many devices take a moment: each process's part is computed here,
one after the other, and nothing is sent.
"""

from __future__ import annotations

import math
import runpy
import sys
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch_ranks import Received


class Move(NamedTuple):
    op: Any
    tensor: torch.Tensor
    peer: int


def nothing_is_sent(world: int) -> None:
    """Groups are lists of ranks, and collectives do nothing."""
    dist.is_initialized = lambda: True
    dist.get_world_size = lambda group=None: world if group is None else len(group)
    dist.new_group = list
    dist.P2POp = Move
    for name in ("all_gather", "all_to_all_single", "all_reduce"):
        setattr(dist, name, lambda *arguments, group: None)
    dist.batch_isend_irecv = lambda moves: ()


def run_on(module: dict[str, Any], rank: int) -> None:
    dist.get_rank = lambda: rank
    mesh = module["Mesh"](torch.device("meta"))
    arrays = {}
    for name, (shape, dtype, cut) in {**module["INPUTS"], **module["STATES"]}.items():
        part = [extent // math.prod(module["MESH"][axis] for axis in axes) for extent, axes in zip(shape, cut)]
        arrays[name] = torch.empty(part, dtype=dtype, device="meta")
    module["step"](mesh)(arrays)


def main(paths: list[str]) -> None:
    modules = {path: runpy.run_path(path) for path in paths}
    (world,) = {math.prod(module["MESH"].values()) for module in modules.values()}
    nothing_is_sent(world)
    received = Received()
    for path, module in modules.items():
        before = received.bytes
        for rank in range(world):
            run_on(module, rank)
        print(path, received.bytes - before, module["PREDICTED_BYTES"])


if __name__ == "__main__":
    main(sys.argv[1:])
