"""Computing, and traced functions."""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from . import _native
from ._array import Array, identity, node_of
from ._formula import apply
from ._lines import line_of_user
from ._native import ExplainOptions, Node, RunOptions, State, Traced
from ._native import compute as compute_nodes
from ._numbers import Course, is_number, is_whole

Memory = int | str | None
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


def run_options(
    *,
    threads: int | None = None,
    sites: int | None = None,
    planner: str | None = None,
    cost: str | None = None,
    machine: str | None = None,
    memory: Memory = None,
    spill: str | Path | None = None,
    plan: str | None = None,
    scalars: Mapping[str, float] | None = None,
    steps: int | None = None,
    state: State | None = None,
    **unknown: Any,
) -> RunOptions:
    """How to run: the options of the command `einrel run` (docs/running.md).

    `threads` compute; with any of the others a run follows a plan: for `sites` sites, by `planner`, least in `cost`, on
    `machine`, in `memory` bytes besides inputs and outputs, what does not fit in the folder `spill`; or the `plan` that
    the method of that name gave.
    """
    _known(unknown, ("threads", "sites", "planner", "cost", "machine", "memory", "spill", "plan"))
    if state is not None and not isinstance(state, State):
        raise TypeError(f"state={state!r} is no state that results have")
    return RunOptions(
        threads=optional(whole_of, "threads", threads),
        sites=optional(whole_of, "sites", sites),
        planner=optional(text_of, "planner", planner),
        cost=optional(text_of, "cost", cost),
        machine=optional(text_of, "machine", machine),
        memory=optional(whole_of, "memory", bytes_of(memory)),
        spill=None if spill is None else str(spill),
        plan=optional(text_of, "plan", plan),
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
    **unknown: Any,
) -> ExplainOptions:
    """What to plan for, as `einrel explain` takes it; with several planners the plans are compared."""
    _known(unknown, ("sites", "planners", "cost", "machine", "memory"))
    names = [planners] if isinstance(planners, str) else [text_of("planners", name) for name in planners]
    return ExplainOptions(
        sites=optional(whole_of, "sites", sites),
        planners=names,
        cost=optional(text_of, "cost", cost),
        machine=optional(text_of, "machine", machine),
        memory=optional(whole_of, "memory", bytes_of(memory)),
    )


def compute(*arrays: Array, **options: Any) -> tuple[Array, ...]:
    """Computes arrays at once: what they share is computed once. They keep their elements.

    >>> import numpy as np
    >>> x = Array(node_of(np.ones(3)))
    >>> total, mean = compute(x.sum(), x.mean(), threads=1)
    >>> float(total), float(mean)
    (3.0, 1.0)
    """
    lazy = tuple(array if isinstance(array, Array) else Array(node_of(array)) for array in arrays)
    compute_nodes([array._node for array in lazy], run_options(**options))
    return lazy


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


_transformation: Final = threading.local()


@contextlib.contextmanager
def within_transformation() -> Iterator[None]:
    """Meanwhile jitted functions are parts of the function that is traced or differentiated."""
    depth = getattr(_transformation, "depth", 0)
    _transformation.depth = depth + 1
    try:
        yield
    finally:
        _transformation.depth = depth


def flatten(value: Any, leaves: list[Any]) -> Any:
    """The form of nested lists, tuples and dicts; their arrays and numbers are appended to `leaves`."""
    if isinstance(value, dict):
        return ("dict", tuple((key, flatten(value[key], leaves)) for key in value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value), tuple(flatten(item, leaves) for item in value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, tuple(flatten(item, leaves) for item in value))
    if isinstance(value, (str, bytes, bool, type(None))) or (isinstance(value, int) and not is_whole(value)):
        return ("constant", value)
    leaves.append(value if is_number(value) else Array(node_of(value)))
    return ("number" if is_number(value) else "array", None)


def unflatten(form: Any, leaves: list[Any]) -> Any:
    """What has this form, of these arrays and numbers, which it takes away."""
    kind, parts = form
    if kind in ("array", "number"):
        return leaves.pop(0)
    if kind == "constant":
        return parts
    if kind == "dict":
        return {key: unflatten(part, leaves) for key, part in parts}
    items = [unflatten(part, leaves) for part in parts]
    if isinstance(kind, type):
        return kind(*items)
    return items if kind == "list" else tuple(items)


_MOST_TRACED: Final = 128  # forms of arguments that a function keeps


class Jitted:
    """A function of arrays that runs as one program; made by `jit`."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = run_options(**options)
        self._traced: dict[Any, tuple[Traced, Any, Course]] = {}

    def _trace(self, form: Any, leaves: list[Any]) -> tuple[Traced, Any, Course]:
        nodes = [node_of(leaf) for leaf in leaves]
        key = (form, *[node.type for node in nodes])
        if key in self._traced:
            self._traced[key] = self._traced.pop(key)  # the last one that was used
        else:
            if len(self._traced) == _MOST_TRACED:
                del self._traced[next(iter(self._traced))]
            arguments = [Node.argument(node.type) for node in nodes]
            course = Course()
            made_of = [
                course.argument(argument) if is_number(leaf) else Array(argument)
                for leaf, argument in zip(leaves, arguments)
            ]
            with within_transformation():
                results, result_form = self._results(form, made_of)
            made = [_identity(result)._node for result in results]
            self._traced[key] = Traced(made, arguments), result_form, course
        return self._traced[key]

    def _results(self, form: Any, leaves: list[Any]) -> tuple[list[Array], Any]:
        """What the function itself gives, and its form."""
        positional, named = unflatten(form, leaves)
        results: list[Any] = []
        result_form = flatten(self._function(*positional, **named), results)
        if not results:
            raise ValueError(f"{self._function} gives no array")
        return [Array(node_of(result)) for result in results], result_form

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        leaves: list[Any] = []
        form = flatten((arguments, named), leaves)
        if getattr(_transformation, "depth", 0) > 0:
            results, result_form = self._results(form, leaves)
            return unflatten(result_form, results)
        traced, result_form, course = self._trace(form, leaves)
        course.check([leaf for leaf in leaves if is_number(leaf)])
        nodes = [node_of(leaf) for leaf in leaves]
        if not all(node.is_leaf for node in nodes):
            compute_nodes(nodes, self._options)
        where = f"given by {self!r} in {line_of_user()}"
        return unflatten(result_form, [Array(node) for node in traced(nodes, self._options, where)])

    def __reduce__(self) -> str:
        return str(self._function.__qualname__)

    def __repr__(self) -> str:
        return f"einrel.jit({self._function!r})"

    def explain(self, *arguments: Any, **named: Any) -> str:
        """How it is computed for arguments like these, as text."""
        leaves: list[Any] = []
        form = flatten((arguments, named), leaves)
        return self._trace(form, leaves)[0].explain(ExplainOptions())


def _identity(array: Array) -> Array:
    """An array that a program can give, also where it is one of its inputs."""
    node = array._node
    return Array(apply(identity(node.type), node)) if node.is_leaf else array


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A function that is traced once for arguments of some types and shapes, and then runs as one program.

    Arguments and results are arrays, in nested lists, tuples and dicts if need be; strings, bools and None are part of
    the program. Options are those of `compute`. In a function that is traced or differentiated, it is a part of that.

    >>> import numpy as np
    >>> @jit
    ... def distance(x, y):
    ...     return ((x - y) ** 2).sum() ** 0.5
    >>> float(distance(np.zeros(2), np.array([3.0, 4.0])))
    5.0
    """
    if function is None:
        return functools.partial(jit, **options)
    return Jitted(function, options)
