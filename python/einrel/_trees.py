"""Arrays in containers: the form of these, and what has it of other arrays."""

from __future__ import annotations

import array
import collections
import dataclasses
import enum
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ._array import Array, node_of
from ._numbers import is_number, is_whole

_TRUTHS: Final = (bool, np.bool_)
_CONSTANTS: Final = (str, bytes, *_TRUTHS, type(None), type, enum.Enum, np.dtype, types.ModuleType)
_OF_PYTHON: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE, of the types that a class statement makes

_ARRAYS: Final = (Array, np.ndarray)  # of which nearly all leaves are
_ARRAY: Final = ("array", None)


def leaf_of(value: Any) -> Any:
    """An array of ours, or a number of Python's."""
    return value if type(value) not in _ARRAYS and is_number(value) else Array(node_of(value))


_GIVE_ELEMENTS: Final = ("__array__", "__array_interface__", "__dlpack__")


def _has_elements(value: Any) -> bool:
    is_known = isinstance(value, (Array, np.ndarray, np.generic, memoryview, array.array)) or is_number(value)
    return is_known or any(hasattr(value, name) for name in _GIVE_ELEMENTS)


def _is_constant(value: Any) -> bool:
    """Whether it is a part of a program that is traced, not one of its arguments."""
    if isinstance(value, _CONSTANTS) or (callable(value) and not has_attributes(value)):
        return True
    return isinstance(value, int) and not is_whole(value)


def _slots(kind: type) -> list[str]:
    """Attributes that objects have besides those in their dict."""
    slots = [getattr(one, "__slots__", ()) for one in kind.__mro__]
    names = [name for own in slots for name in ((own,) if isinstance(own, str) else own)]
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def has_attributes(value: Any) -> bool:
    """Whether it is an object of a class of the user's, which is what its attributes are."""
    kind = type(value)
    is_plain = getattr(kind, "__new__", None) is object.__new__ and (hasattr(value, "__dict__") or bool(_slots(kind)))
    is_users = bool(kind.__flags__ & _OF_PYTHON) and kind.__module__.partition(".")[0] not in ("builtins", "einrel")
    return dataclasses.is_dataclass(value) or (is_plain and is_users)


def _attributes(value: Any) -> dict[str, Any]:
    in_slots = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
    return in_slots | getattr(value, "__dict__", {})


def constant(value: Any) -> Any:
    """The form of a value that is part of a program. Throws TypeError where it has no hash."""
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"a {type(value).__name__} as a part of a program that is traced: it has no hash, by which the program "
            "would be found again; give arrays, numbers, and containers of them, or what does not change"
        ) from None
    return ("constant", (type(value), value))


class Dict(NamedTuple):  # which has a hash soon
    """The kind of a dict, or of what is derived from it; `default_factory` is that of a defaultdict."""

    kind: type[dict[Any, Any]] = dict
    default_factory: Any = None

    def built(self, items: dict[Any, Any]) -> dict[Any, Any]:
        """One of this kind with these items."""
        if self.kind is dict:
            return items
        made = self.kind.__new__(self.kind)
        if isinstance(made, collections.defaultdict):
            made.default_factory = self.default_factory
        self.kind.update(made, items)
        return made


_PLAIN_DICT: Final = Dict()


class _Flattening:
    """A walk through containers."""

    def __init__(self, leaf: Callable[[Any], Any], has_truths: bool) -> None:
        self.leaves: list[Any] = []
        self._leaf = leaf
        self._has_truths = has_truths
        self._within: set[int] = set()

    def form(self, value: Any, is_attribute: bool = False) -> Any:
        """The form of a value, whose leaves are appended."""
        if type(value) in _ARRAYS:
            self.leaves.append(self._leaf(value))
            return _ARRAY
        if is_attribute and isinstance(value, int) and not isinstance(value, bool):
            return constant(value)
        if isinstance(value, (dict, list, tuple)):
            return self._of_items(value, is_attribute)
        is_leaf = self._has_truths and not is_attribute and isinstance(value, _TRUTHS)
        if not is_leaf and _is_constant(value):
            return constant(value)
        if is_leaf or _has_elements(value):
            self.leaves.append(self._leaf(value))
            return ("number", None) if is_number(value) else _ARRAY
        return self._of_attributes(value) if has_attributes(value) else constant(value)

    def _enter(self, value: Any) -> int:
        """What has parts, which is an error where it is one of its own."""
        key = id(value)
        if key in self._within:
            raise TypeError(f"a {type(value).__name__} that holds itself has no form: give its arrays")
        self._within.add(key)
        return key

    def _of_items(self, value: Any, is_attribute: bool) -> Any:
        key = self._enter(value)
        if isinstance(value, dict):
            factory = value.default_factory if isinstance(value, collections.defaultdict) else None
            kind: Any = _PLAIN_DICT if type(value) is dict else Dict(type(value), factory)
            parts = tuple([(name, self.form(item, is_attribute)) for name, item in value.items()])
        else:
            kind = type(value) if hasattr(value, "_fields") else "list" if isinstance(value, list) else "tuple"
            parts = tuple([self.form(item, is_attribute) for item in value])
        self._within.discard(key)
        return (kind, parts)

    def _of_attributes(self, value: Any) -> Any:
        key = self._enter(value)
        parts = tuple((name, self.form(part, True)) for name, part in _attributes(value).items())
        self._within.discard(key)
        return ("object", (type(value), parts))


def flatten(value: Any, leaves: list[Any], leaf: Callable[[Any], Any] = leaf_of, *, has_truths: bool = False) -> Any:
    """The form of nested lists, tuples, dicts and objects; their arrays and numbers are appended to `leaves`.

    Objects are those of dataclasses and other classes of Python's: what their attributes are. Whole numbers among these
    are part of the form, as strings, None and whatever has a hash and no elements; so are bools, which with
    `has_truths` are leaves outside of attributes.
    """
    walk = _Flattening(leaf, has_truths)
    form = walk.form(value)
    leaves += walk.leaves
    return form


def unflatten(form: Any, leaves: Sequence[Any]) -> Any:
    """What has this form, of these arrays and numbers."""
    return _built(form, iter(leaves))


def _built(form: Any, leaves: Iterator[Any]) -> Any:
    kind, parts = form
    if kind in ("array", "number"):
        return next(leaves)
    if kind == "constant":
        return parts[1]
    if isinstance(kind, Dict):
        return kind.built({key: _built(part, leaves) for key, part in parts})
    if kind == "object":
        made = object.__new__(parts[0])
        for name, part in parts[1]:
            object.__setattr__(made, name, _built(part, leaves))
        return made
    items = [_built(part, leaves) for part in parts]
    if isinstance(kind, type):
        return kind(*items)
    return items if kind == "list" else tuple(items)


def places(form: Any, before: str = "") -> Iterator[str]:
    """Where the leaves of a form stand, as Python would write it after a name: "['layers'][0].bias"."""
    kind, parts = form
    if kind in ("array", "number"):
        yield before
    elif isinstance(kind, Dict):
        for key, part in parts:
            yield from places(part, f"{before}[{key!r}]")
    elif kind == "object":
        for name, part in parts[1]:
            yield from places(part, f"{before}.{name}")
    elif kind != "constant":
        names = getattr(kind, "_fields", None)
        for i, part in enumerate(parts):
            yield from places(part, f"{before}.{names[i]}" if names else f"{before}[{i}]")


def _has_objects(form: Any) -> bool:
    kind, parts = form
    if kind in ("array", "number", "constant"):
        return False
    return kind == "object" or any(_has_objects(part[1] if isinstance(kind, Dict) else part) for part in parts)


def check_unchanged(function: Any, value: Any, form: Any, leaves: Sequence[Any]) -> None:
    """Raises where a function has set attributes of objects in what was built for it, which are copies."""
    if not _has_objects(form):
        return
    after: list[Any] = []
    is_same = flatten(value, after, lambda leaf: leaf) == form
    if not is_same or any(leaf is not before for leaf, before in zip(after, leaves)):
        raise TypeError(
            f"{function} sets attributes of an object among its arguments, which is a copy of the caller's: give what "
            "is new as a result, and set it outside"
        )


def mapped(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The tree with what a function makes of each leaf, and of the leaves at its place in the others.

    Raises ValueError where another one has leaves elsewhere.
    """
    leaves: list[Any] = []
    form = flatten(tree, leaves)
    own = list(places(form))
    columns = [leaves]
    for other in others:
        found: list[Any] = []
        by_place = dict(zip(list(places(flatten(other, found))), found))
        for place in dict.fromkeys([*own, *by_place]):
            if place not in by_place or place not in own:
                raise ValueError(f"two trees of different forms: only one of them has an array at {place or 'the top'}")
        columns.append([by_place[place] for place in own])
    return unflatten(form, [function(*row) for row in zip(*columns)])
