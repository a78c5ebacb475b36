"""What arrays are called in the user's code, for what is said of them."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array
from ._lines import frames_of_user
from ._native import Node

Place = tuple[int, tuple[int, ...], str]  # address, shape and type of elements

_MOST_PARTS: Final = 200  # of a container
_NO_OBJECTS: Final = (type, types.ModuleType, types.FunctionType, types.MethodType, Array, np.ndarray)


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """What is in a container or an object, and how it is called there."""
    kind = type(value)  # what others make of `items` or `__class__` is not run for a name
    if kind is dict:
        return list(value.items()) if len(value) <= _MOST_PARTS else ()
    if kind in (list, tuple):
        return enumerate(value) if len(value) <= _MOST_PARTS else ()
    if issubclass(kind, _NO_OBJECTS):
        return ()
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return ()
    return list(own.items())[:_MOST_PARTS] if type(own) is dict else ()


def named_values(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of variables, and of what lies in them: `w`, `params_w1`."""
    for name, value in list(variables.items()):
        if name.startswith("_"):
            continue
        yield name, value
        for key, part in _parts(value):
            own = f"{name}_{key}"
            if own.isidentifier():
                yield own, part


def _place(elements: np.ndarray[Any, Any]) -> Place:
    return elements.__array_interface__["data"][0], elements.shape, elements.dtype.str


def names_around(nodes: Sequence[Node]) -> list[tuple[str, Node]]:
    """What the user's code calls arrays that these are made of, the function that is running before those around it."""
    leaves = {_place(np.asarray(leaf.elements)): leaf for leaf in _native.leaves(nodes) if leaf.is_in_memory}
    names: list[tuple[str, Node]] = []
    for variables in frames_of_user():
        for name, value in named_values(variables):
            if isinstance(value, Array):
                names.append((name, value._node))
            elif isinstance(value, np.ndarray) and _place(value) in leaves:
                names.append((name, leaves[_place(value)]))
    return names


def _name_of_line(file: str, line: int) -> str:
    stem = re.sub(r"\W+", "_", Path(file).stem) if file.endswith(".py") and "ipykernel" not in file else "line"
    return f"{'file_' * (not stem[:1].isalpha())}{stem}_{line}"


def with_lines(nodes: Sequence[Node], names: Sequence[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """The names, and others for all that nodes are made of and has none: by the lines that made it."""
    known = {node for _, node in names}
    taken = {name for name, _ in names}
    counts: dict[str, int] = {}  # of names that a line has so far
    further: list[tuple[str, Node]] = []
    for _, node in _native.names_in_program(nodes):
        if node in known or node.line is None:
            continue
        own = _name_of_line(*node.line)
        name = own
        while name in taken:
            counts[own] = counts.get(own, 1) + 1
            name = f"{own}_{counts[own]}"
        taken.add(name)
        further.append((name, node))
    return [*names, *further]


def names_of(nodes: Sequence[Node]) -> list[tuple[str, Node]]:
    """What arrays are called that these are made of: as the user's code calls them, or by lines of it."""
    return with_lines(nodes, names_around(nodes))


def name_of_place(variable: str, place: str) -> str:
    """`params_layers_0`, of the place "['layers'][0]" in params."""
    return re.sub(r"\W+", "_", variable + place).strip("_")
