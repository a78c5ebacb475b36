"""Computing, and traced functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from . import _native
from ._array import Array, node_of
from ._errors import compute_nodes
from ._names import names_of
from ._native import ExplainOptions, RunOptions, State

Memory = int | str | None
Placement = Mapping[str | int, int] | Sequence[tuple[str | int, int]]
Part = TypeVar("Part")


def bytes_of(memory: Memory) -> int | None:
    """A number of bytes: one, or a text as the command takes it.

    >>> bytes_of("2KiB")
    2048
    """
    if not isinstance(memory, str):
        return memory
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kmgt]?)(i?)b?", memory, re.IGNORECASE)
    if match is None:
        raise ValueError(f"memory={memory!r} is no size: one is a number of bytes, or as '2GiB' or '40M'")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit.lower() or " "))


def whole_of(name: str, value: Any, least: int = 1) -> int:
    """A whole number among the options."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r} is no whole number")
    if not least <= value < 2**63:
        raise ValueError(f"{name}={value}: give {least} or more, of 64 bits")
    return int(value)


def _unicode(name: str, text: str) -> str:
    """The text, which others than Python can read: without half a character, as names of files may have it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _native.ProgramError(f"{name}: {text!r} is not valid Unicode") from None
    return text


def text_of(name: str, value: Any, like: str = "") -> str:
    """A text among the options."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is no text" + (f", such as {like!r}" if like else ""))
    return _unicode(name, value)


def number_of(name: str, value: Any) -> float:
    """A number among the options."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, OverflowError):
        pass
    raise TypeError(f"{name}={value!r} is no number of 64 bits")


def by_name(name: str, given: Any, like: str, part: Callable[[str, Any], Part]) -> dict[str, Part]:
    """What a mapping gives for names, each as `part` reads it; nothing, where there is no mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise TypeError(f"{name}={given!r} is no mapping from names, such as {like}")
    return {_unicode(name, key): part(f"{name}[{key!r}]", value) for key, value in given.items()}


def scalars_of(scalars: Any) -> dict[str, float]:
    """The option `scalars`."""
    return by_name("scalars", scalars, "{'eta': 0.1}", number_of)


def optional(part: Callable[[str, Any], Part], name: str, value: Any) -> Part | None:
    """What may be left out."""
    return None if value is None else part(name, value)


def _known(unknown: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in unknown:
        raise TypeError(f"there is no option {name!r}; there are {', '.join(known)}")


def array_options(**options: Any) -> RunOptions:
    """Those of `run_options` but for `placements`: arrays that are computed lie in this process, and have no names."""
    if options.get("placements") is not None:
        raise _native.ProgramError(
            "placements= is for explain, plan and html, for backend='jax', and for programs that are run: arrays are "
            "brought from this process, wherever a plan has them; leave it out"
        )
    return run_options(**options)


def run_options(
    *,
    threads: int | None = None,
    sites: int | None = None,
    planner: str | None = None,
    cost: str | None = None,
    machine: str | None = None,
    batch: str | None = None,
    memory: Memory = None,
    spill: str | Path | None = None,
    plan: str | None = None,
    placements: Mapping[str, Placement] | None = None,
    scalars: Mapping[str, float] | None = None,
    steps: int | None = None,
    state: State | None = None,
    **unknown: Any,
) -> RunOptions:
    """How to run: the options of the command `einrel run` (docs/running.md).

    `threads` compute; with any of the others a run follows a plan: for `sites` sites, by `planner`, least in `cost`, on
    `machine`, where `batch` is the label of samples, in `memory` bytes besides inputs and outputs, what does not fit in
    the folder `spill`; or the `plan` that the method of that name gave. `placements` says where inputs lie already, as
    for `explain`.
    """
    known = ("threads", "sites", "planner", "cost", "machine", "batch", "memory", "spill", "plan", "placements")
    _known(unknown, known)
    if state is not None and not isinstance(state, State):
        raise TypeError(f"state={state!r} is no state that results have")
    return RunOptions(
        threads=optional(whole_of, "threads", threads),
        sites=optional(whole_of, "sites", sites),
        planner=optional(text_of, "planner", planner),
        cost=optional(text_of, "cost", cost),
        machine=optional(text_of, "machine", machine),
        batch=optional(text_of, "batch", batch),
        memory=optional(whole_of, "memory", bytes_of(memory)),
        spill=None if spill is None else str(spill),
        plan=optional(text_of, "plan", plan),
        placements=by_name("placements", placements, "{'X': {'b': 4}}", placement_of),
        scalars=scalars_of(scalars),
        steps=None if steps is None else whole_of("steps", steps, 0),
        state=state,
    )


def explain_options(
    *,
    sites: int | None = None,
    planners: Sequence[str] = (),
    cost: str | None = None,
    machine: str | None = None,
    memory: Memory = None,
    batch: str | None = None,
    spmd: bool = False,
    steps: int | None = None,
    fed: Sequence[str] = (),
    placements: Mapping[str, Placement] | None = None,
    **unknown: Any,
) -> ExplainOptions:
    """What to plan for, as `einrel explain` takes it; with several planners the plans are compared.

    With `steps` the plan is for so many runs: inputs stay where the first brings them, but for those of `fed`, which
    are new in each. `placements` says by name where inputs lie already: numbers of sites by label, by number of a
    dimension, -1 for the last, or of "copies". These are the digits of a site's number, the highest first:
    `{"X": {"b": 4, "f": 2}}` has part 3 of b and part 1 of f on site 7; `{"X": {}}` is whole on site 0. Pairs may stand
    in the place of a dict.
    """
    known = ("sites", "planners", "cost", "machine", "memory", "batch", "spmd", "steps", "fed", "placements")
    _known(unknown, known)
    names = [planners] if isinstance(planners, str) else [text_of("planners", name) for name in planners]
    return ExplainOptions(
        sites=optional(whole_of, "sites", sites),
        planners=names,
        cost=optional(text_of, "cost", cost),
        machine=optional(text_of, "machine", machine),
        memory=optional(whole_of, "memory", bytes_of(memory)),
        batch=optional(text_of, "batch", batch),
        spmd=bool(spmd),
        steps=None if steps is None else whole_of("steps", steps, 0),
        fed=[fed] if isinstance(fed, str) else [text_of("fed", name) for name in fed],
        placements=by_name("placements", placements, "{'X': {'b': 4}}", placement_of),
    )


def placement_of(name: str, given: Any) -> list[tuple[str, int]]:
    """Where one input lies, as digits of the numbers of sites."""
    try:
        pairs = [(along, sites) for along, sites in (given.items() if isinstance(given, Mapping) else given)]
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}={given!r} is no mapping from labels or dimensions to numbers of sites, such as {{0: 4}}"
        ) from None
    return [
        (along if isinstance(along, str) else str(whole_of(name, along, -64)), whole_of(f"{name}[{along!r}]", sites))
        for along, sites in pairs
    ]


def compute(*arrays: Array, **options: Any) -> tuple[Array, ...]:
    """Computes arrays at once: what they share is computed once. They keep their elements.

    >>> import numpy as np
    >>> x = Array(node_of(np.ones(3)))
    >>> total, mean = compute(x.sum(), x.mean(), threads=1)
    >>> float(total), float(mean)
    (3.0, 1.0)
    """
    lazy = tuple(array if isinstance(array, Array) else Array(node_of(array)) for array in arrays)
    compute_nodes([array._node for array in lazy], array_options(**options))
    return lazy


def _together(arrays: Sequence[Array]) -> list[_native.Node]:
    if not arrays:
        raise TypeError("nothing to plan: give one array or more")
    return [node_of(array) for array in arrays]


def explain(*arrays: Array, **options: Any) -> str:
    """What `compute` does of these arrays together, as text; options of `Array.explain`.

    Arrays are called as the variables that they are in, others by the line that made them: `step_12` is made in line 12
    of step.py.

    >>> import numpy as np
    >>> x = Array(node_of(np.ones(3)))
    >>> "2 vertices" in explain(x + 1, x * 2)
    True
    """
    nodes = _together(arrays)
    return _native.explain(nodes, explain_options(**options), names_of(nodes))


def plan(*arrays: Array, **options: Any) -> str:
    """The plan for these arrays together as JSON, which `compute(..., plan=...)` takes; options of `Array.explain`."""
    nodes = _together(arrays)
    return _native.plan(nodes, explain_options(**options), names_of(nodes))


def html(*arrays: Array, **options: Any) -> str:
    """The plan for these arrays together as a page for a browser; options of `Array.explain`."""
    nodes = _together(arrays)
    return _native.html(nodes, explain_options(**options), names_of(nodes))


def planners() -> dict[str, str]:
    """What `planner=` and `planners=` take: names, and a line about each, the default one first.

    >>> next(iter(planners()))
    'eindecomp'
    """
    return dict(_native.planners())


def calibrate(*, threads: int | None = None, database: str | None = None) -> str:
    """Measures this machine in a few seconds, and keeps the figures: plans are made for it from then on.

    They lie in the folder for settings, for all programs of this user, as those of the command `einrel calibrate`.
    Under mpirun it measures the network, too. Gives what was measured, as text.

    With `database`, a URL as of `Program.run_in_database`, it measures that instead, in a minute or two, and leaves it
    as it was: formats in it are chosen by these figures from then on.
    """
    if database is None:
        return _native.calibrate(optional(whole_of, "threads", threads))
    if threads is not None:
        raise _native.ProgramError("threads does not go with database, which computes as it does in a run")
    if _native.ranks() > 1:
        raise _native.ProgramError("a database is measured by one process; start it without mpirun")
    return _native.calibrate_database(text_of("database", database, "sqlite:FILE"))
