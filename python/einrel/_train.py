"""Training a program with state on samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._array import computed
from ._compute import Memory, bytes_of, scalars_of
from ._dtypes import BY_NAME
from ._native import Epoch, Node, TrainOptions, TrainResult
from ._program import Program


def _samples(program: Program, given: Mapping[str, Any]) -> dict[str, Node | str]:
    """Arrays, and names of files. Small integers, as images are, become what the input is, as those in files do."""
    types = {tensor.name: BY_NAME[tensor.dtype] for tensor in program._native.inputs}
    samples: dict[str, Node | str] = {}
    for name, value in given.items():
        if isinstance(value, str | Path):
            samples[name] = str(value)
            continue
        is_small = isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.dtype.itemsize < 4
        samples[name] = computed(value.astype(types[name]) if is_small and name in types else value)
    return samples


def _names(what: str, given: Sequence[str] | str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what}={given!r}: it is a list of names")
    return names


def train(
    program: Program,
    feeds: Mapping[str, Any],
    *,
    batch: Mapping[str, int],
    epochs: int,
    test: Mapping[str, Any] | None = None,
    header: bool | None = None,
    hold_out: float | None = None,
    inputs: Mapping[str, Any] | None = None,
    scalars: Mapping[str, float] | None = None,
    keep_last: bool = False,
    seed: int = 0,
    report: Sequence[str] | str = (),
    calibrate_with: int | None = None,
    save: str | Path | None = None,
    save_every: int | None = None,
    resume: str | Path | None = None,
    log: str | Path | None = None,
    local_steps: int | None = None,
    subnets: Sequence[str] | str = (),
    threads: int | None = None,
    sites: int | None = None,
    planner: str | None = None,
    cost: str | None = None,
    machine: str | None = None,
    memory: Memory = None,
    spill: str | Path | None = None,
    plan: str | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
    on_note: Callable[[str], object] | None = None,
) -> TrainResult:
    """Trains a program with state on samples: arrays, or files as `einrel train --feed` takes them (docs/training.md).

    `batch` names the label that stands for samples, and says how many a step takes; `epochs` says how often to go over
    all of `feeds`, which are by name of input. `on_epoch` is called after each epoch, `on_note` with what does not end
    the training. Under mpirun all ranks call this alike, each is a site, and what was learnt is in the checkpoints.

    The other options are those of the command. Samples: `header` says whether tables begin with names of columns,
    `test` gives samples to test on, `hold_out` a share of the feeds; `keep_last` makes a smaller batch of the last,
    `seed` chooses their order. `inputs` are the same in all steps, `scalars` numbers by name. `report` names what is
    told of an epoch, `log` a .csv file of that; `calibrate_with` is a number of samples for means in tests. Checkpoints
    go to the folder `save`, each `save_every` steps, and `resume` is one to go on from. `local_steps` and `subnets` are
    for sites that train apart. `threads`, `sites`, `planner`, `cost`, `machine`, `memory`, `spill` and `plan` are those
    of `compute`.

    Raises TypeError and ValueError for options that are none, ProgramError for a program or feeds that cannot be
    trained, before the first step; RunError where it diverges.

    >>> import numpy as np
    >>> line = Program("input x[b], y[b]\\nstate w[] = f32(0)\\nloss[] = mean[b] sq(w[] * x[b] - y[b])\\n"
    ...                "minimize loss over w by sgd(0.1)\\noutput loss", {}, "line")
    >>> x = np.linspace(-1, 1, 50, dtype="f")
    >>> result = train(line, {"x": x, "y": 3 * x}, batch={"b": 10}, epochs=30)
    >>> f"{float(Array(result.state.tensors['w'])):.3f}"
    '3.000'
    """
    if not isinstance(program, Program):
        raise TypeError(f"train() takes a program of er.program, not {type(program).__name__}")
    if not isinstance(batch, Mapping):
        raise TypeError(f"batch={batch!r}: give the label and the number of samples, as in {{'b': 64}}")
    if len(batch) != 1:
        raise ValueError(f"batch={dict(batch)!r}: one label stands for samples, as in {{'b': 64}}")
    ((label, samples),) = batch.items()
    given = {
        "batch_label": label,
        "batch": samples,
        "epochs": epochs,
        "test": _samples(program, test or {}),
        "header": header,
        "hold_out": hold_out,
        "inputs": {name: computed(value) for name, value in (inputs or {}).items()},
        "scalars": scalars_of(scalars),
        "keep_last": keep_last,
        "seed": seed,
        "report": _names("report", report),
        "calibrate_with": calibrate_with,
        "save": save and str(save),
        "save_every": save_every,
        "resume": resume and str(resume),
        "log": log and str(log),
        "local_steps": local_steps,
        "subnets": _names("subnets", subnets),
        "threads": threads,
        "sites": sites,
        "planner": planner,
        "cost": cost,
        "machine": machine,
        "memory": bytes_of(memory),
        "spill": spill and str(spill),
        "plan": plan,
        "on_epoch": on_epoch,
        "on_note": on_note,
    }
    options = TrainOptions()
    for name, value in given.items():
        if value is None:
            continue
        try:
            setattr(options, name, value)
        except TypeError:
            raise TypeError(f"{name}={value!r} is no value of this option, or too large for it") from None
    return program._native.train(_samples(program, feeds), options)
