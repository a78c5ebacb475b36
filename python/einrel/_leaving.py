"""Arrays of NumPy's that were made of ours: known again where they come back, since no gradient goes through them."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._dtypes import is_floating
from ._lines import line_of_user
from ._native import Node

NDArray = npt.NDArray[Any]

Note = tuple["weakref.ref[NDArray]", Node, str]  # of which array, what it was made of, and where

_notes: Final[dict[int, Note]] = {}  # by the identity of an array
_exported: Final[dict[int, tuple[int, int]]] = {}  # addresses of those that other libraries may hold
_NOTHING: Final = np.zeros(())


def _forget(notes: dict[int, Note], exported: dict[int, tuple[int, int]], key: int, gone: weakref.ref[NDArray]) -> None:
    """Given both dicts: at the end of Python, names of modules are gone before the last arrays."""
    notes.pop(key, None)
    exported.pop(key, None)


def left_graph(elements: NDArray, made_of: list[Node], how: str) -> NDArray:
    """Notes of an array of NumPy's what it was made of: a gradient through it would be wrong, if one came back."""
    if is_floating(elements.dtype):
        key, where = id(elements), f"{how} in {line_of_user()}"
        made = Node.made_of(Node.leaf(_NOTHING), None, made_of, where)  # keeps these as long as histories are kept
        _notes[key] = (weakref.ref(elements, functools.partial(_forget, _notes, _exported, key)), made, where)
    return elements


def exported(elements: NDArray, node: Node) -> NDArray:
    """The same of elements that another library is given, which keeps this array of NumPy's alive with them."""
    left_graph(elements, [node], "given to another library")
    if id(elements) in _notes:
        start = elements.__array_interface__["data"][0]
        _exported[id(elements)] = (start, start + elements.nbytes)
    return elements


def _by_address(address: int) -> Note | None:
    for key, (start, end) in list(_exported.items()):  # arrays may go meanwhile
        if start <= address < end:
            return _notes[key]
    return None


def note_of(elements: Any) -> Note | None:
    """What is noted of an array, or of the one that it is a part of."""
    part: Any = elements if _notes else None
    while part is not None:
        note = _notes.get(id(part))
        if note is not None and note[0]() is part:
            return note
        if isinstance(part, memoryview):
            part = part.obj
        elif isinstance(part, np.ndarray):
            if _exported and part.base is not None and not isinstance(part.base, (np.ndarray, memoryview)):
                return _by_address(part.__array_interface__["data"][0])
            part = part.base
        else:
            part = None
    return None


def noted(elements: NDArray, leaf: Node) -> Node:
    """A leaf of these elements, which knows what is noted of them."""
    note = note_of(elements)
    return leaf if note is None else Node.made_of(leaf, None, [note[1]], note[2])
