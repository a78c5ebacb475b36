"""Runs modules that einrel exported to PyTorch, in as many processes as each has devices, on gloo.

The folder has NAME_DEVICES.py, .npz with the inputs, and .json with `steps` and `scalars`, or with `is_program`: it runs as the program that it
is. Beside them come .out.npz with all that a step gives, .types with their types, and .bytes with what the devices receive
in a step, as the collectives that are called say, and what is predicted.
"""

from __future__ import annotations

import datetime
import json
import runpy
import sys
import traceback
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes


class Received:
    """What this process receives from others in collectives, in bytes: of sums as a ring moves them."""

    def __init__(self) -> None:
        self.bytes = Fraction(0)
        for name in ("all_gather", "all_to_all_single", "all_reduce", "batch_isend_irecv"):
            setattr(dist, name, self._counting(name, getattr(dist, name)))

    def _counting(self, name: str, call: Any) -> Any:
        def counted(*arguments: Any, group: Any = None) -> Any:
            self.bytes += getattr(self, f"_of_{name}")(*arguments, count=dist.get_world_size(group))
            return call(*arguments) if group is None else call(*arguments, group=group)

        return counted

    def _of_all_gather(self, parts: list[torch.Tensor], array: torch.Tensor, count: int) -> Fraction:
        return Fraction((count - 1) * _bytes(array))

    def _of_all_to_all_single(self, found: torch.Tensor, sent: torch.Tensor, count: int) -> Fraction:
        return Fraction((count - 1) * _bytes(found), count)

    def _of_all_reduce(self, array: torch.Tensor, op: Any, count: int) -> Fraction:
        return Fraction(2 * (count - 1) * _bytes(array), count)

    def _of_batch_isend_irecv(self, moves: list[Any], count: int) -> Fraction:
        return Fraction(sum(_bytes(move.tensor) for move in moves if move.op is dist.irecv))


def _bytes(array: torch.Tensor) -> int:
    return array.numel() * array.element_size()


def run(module: dict[str, Any], inputs: dict[str, Any], steps: int, received: Received) -> tuple[dict[str, Any], Fraction]:
    """What so many steps give, whole, and the bytes that this process receives in one."""
    mesh = module["make_mesh"]("cpu")
    arrays = module["place"](mesh, {name: inputs[name] for name in (*module["INPUTS"], *module["UNREAD"])})
    arrays.update(module["initial_states"](mesh, inputs))
    step = module["step"](mesh)
    before = received.bytes
    moved = Fraction(0)
    for count in range(steps):
        results = step(arrays)
        if count == 0:
            moved = received.bytes - before
        arrays = {**arrays, **results}
        if "until" in results and bool(results["until"]):
            break
    wholes = module["whole"](mesh, {name: arrays[name] for name in {**module["STATES"], **module["OUTPUTS"]}})
    for name, (shape, dtype, _) in {**module["STATES"], **module["OUTPUTS"]}.items():
        assert wholes[name].shape == shape, (name, wholes[name].shape, shape)
        assert wholes[name].dtype == dtype, (name, wholes[name].dtype, dtype)
    return wholes, moved


def write_results(path: Path, rank: int, received: Received) -> None:
    how = json.loads(path.with_suffix(".json").read_text())
    module = runpy.run_path(str(path))
    if how.get("is_program"):
        return module["main"]()
    if "SCALARS" in module:
        module["SCALARS"].update({k: v for k, v in how["scalars"].items() if k in module["SCALARS"]})
    inputs = {**dict(np.load(path.with_suffix(".npz"))), **how["scalars"]}
    results, moved = run(module, inputs, how["steps"], received)
    all_moved: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(all_moved, moved)
    if rank == 0:
        np.savez(path.with_suffix(".out.npz"), **{k: (v.float() if v.dtype == torch.bfloat16 else v).numpy() for k, v in results.items()})
        path.with_suffix(".types").write_text(json.dumps({k: str(v.dtype).replace("torch.", "") for k, v in results.items()}))
        path.with_suffix(".bytes").write_text(f"{sum(all_moved)} {module['PREDICTED_BYTES']}")


def work(rank: int, world: int, store: str, paths: list[Path]) -> None:
    """The modules, one after the other, until one fails: the others of this process's group may wait for it then."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=120))
    received = Received()
    for path in paths:
        try:
            write_results(path, rank, received)
        except Exception:
            path.with_suffix(".error").write_text(traceback.format_exc())
            sys.exit(1)
        path.with_suffix(f".done{rank}").touch()


def run_all(world: int, paths: list[Path]) -> None:
    while paths:
        store = paths[0].with_suffix(".store")
        context = processes.get_context("fork")  # which imports torch once
        ranks = [context.Process(target=work, args=(rank, world, str(store), paths)) for rank in range(world)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
        left = [path for path in paths if not all(path.with_suffix(f".done{rank}").exists() for rank in range(world))]
        if left and not left[0].with_suffix(".error").exists():
            left[0].with_suffix(".error").write_text("a process ended without a word")
        paths = left[1:]


def main(folder: Path) -> None:
    by_world: dict[int, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*.json")):
        by_world[int(path.stem.rsplit("_", 1)[1])].append(path.with_suffix(".py"))
    for world, paths in by_world.items():
        run_all(world, paths)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
