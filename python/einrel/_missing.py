"""What is said of names that are not there: what has that name in NumPy, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

import numpy as np

# What is here under another name.
_HERE: Final[dict[str, str]] = {
    "asanyarray": "asarray",
    "ascontiguousarray": "asarray",
    "broadcast": "broadcast_arrays or einrel.broadcast_shapes",
    "c_": "column_stack",
    "einsum_path": "einsum(...).explain()",
    "float128": "float64",
    "load": "from_file",
    "matvec": "matmul",
    "mgrid": "indices or einrel.meshgrid",
    "ndarray": "Array",
    "nditer": "vmap or operations on whole arrays",
    "ogrid": "indices or einrel.meshgrid",
    "r_": "concatenate",
    "vecmat": "matmul",
    "vectorize": "where and operations on whole arrays",
}


# NumPy's functions that nobody expects to be a part of a graph.
_BESIDES: Final = frozenset(
    {"array2string", "array_repr", "array_str", "isscalar", "iterable", "save", "savetxt", "savez"}
)
# NumPy's functions that change their first argument.
CHANGE_THE_FIRST: Final = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"})


def _own_name(namespace: str) -> str:
    return namespace.replace("einrel", "numpy", 1)


def _in_numpy(namespace: str, name: str) -> Any:
    module: Any = np
    for part in namespace.split(".")[1:]:
        module = getattr(module, part, None)
    return getattr(module, name, None) if not name.startswith("_") else None


def _said_of(theirs: Any, name: str, full_name: str) -> str:
    """What is said of a name that NumPy has."""
    if isinstance(theirs, ModuleType):
        return f"; functions of {full_name} take our arrays"
    if isinstance(theirs, type) and issubclass(theirs, np.generic):
        return ": Einrel computes with float16 to float64, int32, int64, bool, bfloat16 and complex numbers"
    if name in CHANGE_THE_FIRST:
        return ", since arrays do not change; einrel.where makes another one"
    if not callable(theirs):
        return f"; there is {full_name}"
    if name in _BESIDES:
        return f"; {full_name} takes our arrays"
    return f": the language cannot say it; {full_name} takes our arrays and computes it"


def message_of(namespace: str, name: str, names: Iterable[str]) -> str:
    """What is said where a namespace lacks a name."""
    lacks = f"module {namespace!r} has no attribute {name!r}"
    if name in _HERE and namespace == "einrel":
        return f"{lacks}; see einrel.{_HERE[name]}"
    theirs = _in_numpy(namespace, name)
    if theirs is not None:
        return lacks + _said_of(theirs, name, f"{_own_name(namespace)}.{name}")
    close = difflib.get_close_matches(name, list(names), 1)
    return f"{lacks}; did you mean {namespace}.{close[0]}?" if close else lacks


# What changes an array in place, and what gives a changed one instead.
_CHANGING: Final[dict[str, str]] = {
    "fill": "einrel.full_like(x, ...)",
    "itemset": "einrel.where",
    "partition": "numpy.partition(x, ...)",
    "put": "einrel.where",
    "resize": "x.reshape(...)",
    "setfield": "einrel.where",
    "setflags": "numpy.asarray(x)",
    "sort": "numpy.sort(x)",
}


def method_message(name: str) -> str:
    """What is said where an array lacks an attribute."""
    lacks = f"'einrel.Array' object has no attribute {name!r}"
    if name.startswith("_") or not hasattr(np.ndarray, name):
        return lacks
    if name in _CHANGING:
        return f"{lacks}, since arrays do not change; {_CHANGING[name]} makes another one"
    if hasattr(np, name):
        return f"{lacks}: the language cannot say it; numpy.{name}(x, ...) computes it"
    return f"{lacks}; numpy.asarray(x).{name} is that of the elements, which it computes"
