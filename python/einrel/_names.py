"""What arrays are called in the user's code, for what is said of them."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import types
import weakref
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array, node_of
from ._lines import frames_of_user
from ._native import Node, ProgramError

Place = tuple[int, tuple[int, ...], str]  # address, shape and type of elements

_MOST_PARTS: Final = 200  # of a container
_NO_OBJECTS: Final = (type, types.ModuleType, types.FunctionType, types.MethodType, Array, np.ndarray)


_named: Final[weakref.WeakValueDictionary[tuple[int, str], Array]] = weakref.WeakValueDictionary()
_state: Final = threading.local()


@contextlib.contextmanager
def holding_named() -> Iterator[list[Array]]:
    """The arrays that are given names meanwhile, which a function that is traced holds for what is said of it."""
    outer = getattr(_state, "held", None)
    _state.held = []
    try:
        yield _state.held
    finally:
        _state.held = outer


@lru_cache(maxsize=1024)
def is_name(name: str) -> bool:
    """Whether an array can have it in the language: letters of ASCII, digits and _, and no word of the language."""
    try:
        if name.isidentifier() and name.isascii():
            _native.Program(f"input {name}[i_] : f64\n{name}_[i_] = {name}[i_]\n", {"i_": 1}, "<name>")
            return True
    except ProgramError:
        pass
    return False


def named(x: Any, name: str) -> Array:
    """The array x under a name of its own, by which explanations, plans, pages and errors call it.

    It goes before the name of a variable. It holds as long as somebody has the array that this gives; a function of
    `jit` has those that it makes. Steps of loops and gradients are of copies, which do not have it. Of several arrays
    of one name in a program, the second is called name_2. Elements stay the same. Raises ProgramError where `name` is
    no name in the language, TypeError where it is no text.

    >>> x, w = np.ones((2, 3)), np.ones((3, 4))
    >>> layer = jit(lambda x, w: softmax(named(x @ w, "scores"), axis=-1))
    >>> "scores[" in layer.explain(x, w)
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"einrel.named(..., {name!r}): a name is a text")
    if not is_name(name):
        raise ProgramError(
            f"einrel.named(..., {name!r}): a name has letters of ASCII, digits and _, and is no word of the language"
        )
    array = Array(node_of(x))
    _named[id(array), name] = array
    held = getattr(_state, "held", None)
    if held is not None:
        held.append(array)
    return array


def _given_names(nodes: Sequence[Node]) -> list[tuple[str, Node]]:
    """The names that `named` gave what nodes are made of, each once."""
    given = {array._node: name for (_, name), array in list(_named.items())}
    names: dict[str, Node] = {}
    for _, node in _native.names_in_program(nodes) if given else ():
        if node in given:
            own = name = given[node]
            count = 1
            while name in names:
                count += 1
                name = f"{own}_{count}"
            names[name] = node
    return list(names.items())


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
    """What the user's code calls arrays that these are made of.

    What `named` gave comes first, then the variables of the function that is running, then those around it.
    """
    leaves = {_place(np.asarray(leaf.elements)): leaf for leaf in _native.leaves(nodes) if leaf.is_in_memory}
    names = _given_names(nodes)
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


def _without_words(names: Sequence[tuple[str, Node]], inside: Container[Node]) -> Iterator[tuple[str, Node]]:
    """The names of nodes inside; of a word of the language `mean_1`. Others of which it has none are left out."""
    taken = {name for name, _ in names}
    for name, node in names:
        own = name
        if node in inside and not is_name(name):
            own = next(own for count in itertools.count(1) if (own := f"{name}_{count}") not in taken)
            if not is_name(own):
                continue
            taken.add(own)
        yield own, node


def with_lines(nodes: Sequence[Node], names: Sequence[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """What `named` gave, these names, and others for all that nodes are made of and has none: by lines that made it."""
    inside = dict.fromkeys(node for _, node in _native.names_in_program(nodes))
    names = [*_given_names(nodes), *_without_words(names, inside)]
    known = {node for _, node in names}
    taken = {name for name, _ in names}
    counts: dict[str, int] = {}  # of names that a line has so far
    further: list[tuple[str, Node]] = []
    for node in inside:
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
