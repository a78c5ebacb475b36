"""What arrays are called in the user's code, for what is said of them."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import threading
import types
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
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
    `jit` has those that it makes, also in steps of loops, in gradients and of many samples. Of several arrays of one
    name in a program, the second is called name_2. Elements stay the same. Raises ProgramError where `name` is no name
    in the language, TypeError where it is no text.

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
    """What variables call arrays that these are made of: of the function that is running, then of those around it."""
    leaves = {_place(np.asarray(leaf.elements)): leaf for leaf in _native.leaves(nodes) if leaf.is_in_memory}
    names = []
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


def _beside(name: str, others: Container[str], first: int = 1) -> str:
    """`mean_1`, or with another number, as none of the others is."""
    return next(own for count in itertools.count(first) if (own := f"{name}_{count}") not in others)


class Names:
    """Names for nodes, each another one."""

    def __init__(self, inside: Iterable[Node], variables: Sequence[tuple[str, Node]]) -> None:
        self.of: dict[Node, str] = {}
        self._inside = dict.fromkeys(inside)
        self._counts: dict[str, int] = {}  # of nodes that have a name, with a number after it but for the first
        self._own = {array._node: name for (_, name), array in list(_named.items())}
        self._variables: dict[Node, str] = {}
        for node in self._inside:
            if name := self._own.get(node) or node.name:
                self._give(node, name)
        said = {name for name, _ in variables}
        for name, node in variables:
            self._give_variable(node, name, said)

    def free(self, name: str) -> str:
        """A name that nothing has, which is gone with that: this one, or with a number after it."""
        own = name
        while own in self._counts:
            self._counts[name] += 1
            own = f"{name}_{self._counts[name]}"
        self._counts[own] = 1
        return own

    def _give(self, node: Node, name: str) -> None:
        self.of[node] = self.free(name)

    def _give_variable(self, node: Node, name: str, said: Container[str]) -> None:
        """Of a word of the language it is `mean_1`. Others that the language has no room for are none."""
        if node in self._variables or node in self.of:
            return
        name = name if is_name(name) else _beside(name, said)
        if name in self._counts or not is_name(name):
            return
        if node not in self._inside:
            self._variables[node] = name
        else:
            self._give(node, name)

    def give_followed(self) -> None:
        """To those that go by a node with a name: `grad_w` to a gradient by w."""
        for node in self._inside:
            if node not in self.of and node.origin is not None:
                origin, times = node.origin
                if name := self.of.get(origin) or self._own.get(origin) or origin.name or self._variables.get(origin):
                    self._give(node, "grad_" * times + name)

    def give_lines(self) -> None:
        """To those that have none so far, of the lines that made them, or what they go by."""
        for node in self._inside:
            origin, times = node.origin or (node, 0)
            line = origin.line or node.line
            if node not in self.of and line is not None:
                self._give(node, "grad_" * times + self.of.get(origin, _name_of_line(*line)))


def known_names(inside: Iterable[Node], variables: Sequence[tuple[str, Node]]) -> dict[Node, str]:
    """What nodes are called: by `named`, as arguments, by these variables, or by what they go by."""
    names = Names(inside, variables)
    names.give_followed()
    return names.of


def all_names(inside: Iterable[Node], variables: Sequence[tuple[str, Node]] = ()) -> Names:
    """The same, and of those without a name by the lines that made them."""
    names = Names(inside, variables)
    names.give_followed()
    names.give_lines()
    return names


def with_lines(nodes: Sequence[Node], variables: Sequence[tuple[str, Node]] = ()) -> list[tuple[str, Node]]:
    """Names of all that nodes are made of."""
    names = all_names((node for _, node in _native.names_in_program(nodes)), variables)
    return [(name, node) for node, name in names.of.items()]


def names_of(nodes: Sequence[Node]) -> list[tuple[str, Node]]:
    """What arrays are called that these are made of: as the user's code calls them, or by lines of it."""
    return with_lines(nodes, names_around(nodes))


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Those of a function; none of one in C that does not say them."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def parameter(function: Callable[..., Any], position: int) -> str:
    """What a function calls what it is given there; "" where it does not say that."""
    known = parameters(function)
    is_one = position < len(known) and known[position].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    return known[position].name if is_one else ""


def name_of_place(variable: str, place: str) -> str:
    """`params_layers_0`, of the place "['layers'][0]" in params."""
    return re.sub(r"\W+", "_", variable + place).strip("_")


def names_of_places(said: Sequence[str]) -> list[str]:
    """These, each once, and of words of the language with a number: `mean_1`. "" is for what cannot be a name."""
    taken = set(said)
    names: list[str] = []
    for name in said:
        own = name
        if not is_name(name) or name in names:
            own = _beside(name, taken, 1 if name not in names else 2)
            taken.add(own)
        names.append(own if is_name(own) else "")
    return names
