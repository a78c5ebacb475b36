"""NumPy's functions, called with our arrays: ours of the same name where there is one, else NumPy's, of elements."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import einrel as er

from . import _cumulative
from ._array import Array, node_of
from ._dtypes import NAMES, is_floating
from ._elementwise import of_type
from ._functions import Unsupported
from ._leaving import left_graph
from ._missing import CHANGE_THE_FIRST
from ._native import Node, ProgramError

# NumPy's functions that give a bool of Python's, or an array that can be written to.
_DIFFERENT: Final = frozenset({"allclose", "array_equal", "array_equiv", "copy"})
# What a ufunc does along a dimension.
_REDUCTIONS: Final[dict[str, str]] = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
    "logaddexp": "logsumexp",
}
_RUNNING: Final[dict[str, Callable[..., Any]]] = {
    "add": _cumulative.cumsum,
    "multiply": _cumulative.cumprod,
    "maximum": _cumulative.cumulative_max,
    "minimum": _cumulative.cumulative_min,
}
# Options of NumPy's functions that change nothing where they have these values.
_DEFAULTS: Final[dict[str, Any]] = {"where": True, "out": None, "dtype": None, "order": "K", "subok": True}


def _named(name: str, module: str = "numpy") -> Callable[..., Any] | None:
    namespace: Any = {"numpy": er, "numpy.linalg": er.linalg}.get(module)
    if namespace is None or name in _DIFFERENT or name not in namespace.__all__:
        return None
    function = getattr(namespace, name)
    return function if callable(function) and not isinstance(function, Unsupported) else None


def _elements(value: Any) -> Any:
    """The same with NumPy's arrays in place of ours."""
    if isinstance(value, Array):
        return value._elements()
    if isinstance(value, (list, tuple)):
        return type(value)(_elements(item) for item in value)
    if isinstance(value, dict):
        return {key: _elements(item) for key, item in value.items()}
    return value


def _nodes_in(value: Any) -> list[Node]:
    """Those of our arrays."""
    if isinstance(value, Array):
        return [value._node]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [node for item in items for node in _nodes_in(item)]


def _as_ours(result: Any, nodes: list[Node], how: str, given: Sequence[Any]) -> Any:
    """Arrays of floating point that NumPy made as ours, which know that they came from there; but not those given."""
    if isinstance(result, (np.ndarray, np.floating)) and result.dtype in NAMES and is_floating(result.dtype):
        elements = left_graph(np.asarray(result), nodes, how)
        return result if any(result is one for one in given) else Array(node_of(elements))
    if isinstance(result, (list, tuple)):
        items = [_as_ours(item, nodes, how, given) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def _of_elements(name: str, function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What NumPy's function gives."""
    nodes = _nodes_in(arguments) + _nodes_in(options)
    result = function(*_elements(tuple(arguments)), **_elements(dict(options)))
    how = f"made by {name}"
    if name in _GIVE_NUMPYS:
        return left_graph(result, nodes, how)
    out = options.get("out")
    return _as_ours(result, nodes, how, out if isinstance(out, tuple) else (out,))


def _without_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in options.items()
        if value is not np._NoValue and not (name in _DEFAULTS and value is _DEFAULTS[name])
    }


def _store(result: Any, out: Any) -> Any:
    """Where a result is wanted in an array of NumPy's, it is computed."""
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        raise TypeError("an einrel.Array does not change: give an array of NumPy's as out")
    np.copyto(out, result._elements())
    return left_graph(out, [result._node], "written to an array of NumPy's")


def _refuse_to_change(name: str, first: Any) -> None:
    if isinstance(first, Array):
        raise TypeError(f"numpy.{name}: an einrel.Array does not change; make another one, as with einrel.where")


def _elementwise(called: Callable[..., Any], inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc's call: in the type `dtype`, and only where a mask holds, what was in `out` elsewhere."""
    dtype, where = options.pop("dtype", None), options.pop("where", True)
    casting, out = options.pop("casting", "same_kind"), options.pop("out", (None,))
    if dtype is not None:
        inputs = [of_type(dtype, casting, operand) for operand in inputs]
    result = called(*inputs, **options)
    if isinstance(result, tuple):
        return tuple(map(_store, result, out if len(out) == len(result) else [None] * len(result)))
    if dtype is not None and result.dtype != np.dtype(dtype):
        raise TypeError(f"{called} of type {dtype}")
    if where is not True:
        if out[0] is None:
            raise TypeError("what has no elements where a mask does not hold")
        result = er.where(where, result, out[0])
    return _store(result, out[0])


_REDUCE: Final = ("axis", "dtype", "out", "keepdims", "initial", "where")  # what a reduction of NumPy's takes, in order


def _reduced(called: Callable[..., Any], inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A ufunc's reduction, or its running one."""
    given = {"axis": 0, **_without_defaults({**dict(zip(_REDUCE, inputs[1:])), **options})}
    out = given.pop("out", (None,))
    return _store(called(inputs[0], **given), out[0] if isinstance(out, tuple) else out)


def _of_all_pairs(called: Callable[..., Any], inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    left, right = (Array(node_of(x)) for x in inputs)
    return _elementwise(called, [left.reshape(left.shape + (1,) * right.ndim), right], options)


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """ufunc(inputs), or its reduction."""
    name = ufunc.__name__
    if method == "at":
        _refuse_to_change(f"{name}.at", inputs[0])
    for out in options.get("out", ()):
        _refuse_to_change(name, out)
    called = _RUNNING.get(name) if method == "accumulate" else None
    if method in ("__call__", "outer", "reduce"):
        called = _named(_REDUCTIONS.get(name, "") if method == "reduce" else name)
    try:
        if called is not None and method in ("reduce", "accumulate"):
            return _reduced(called, inputs, options)
        if called is not None:
            call = _of_all_pairs if method == "outer" else _elementwise
            return call(called, inputs, _without_defaults(options))
    except (NotImplementedError, TypeError, ProgramError):  # of these types, or with these options: NumPy's may
        pass
    full_name = f"numpy.{name}" + (f".{method}" if method != "__call__" else "")
    return _of_elements(full_name, getattr(ufunc, method), inputs, options)


def call_function(function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """numpy.function(arguments)."""
    name = function.__name__
    if name in CHANGE_THE_FIRST and arguments:
        _refuse_to_change(name, arguments[0])
    called = _named(name, function.__module__)
    try:
        if called is not None:
            bound = inspect.signature(called).bind(*arguments, **_without_defaults(options))
    except TypeError:  # options that ours does not take
        called = None
    try:
        if called is not None:
            out = bound.arguments.pop("out", None)
            return _store(called(*bound.args, **bound.kwargs), out)
    except (NotImplementedError, ProgramError):  # of these types: NumPy's may
        pass
    return _of_elements(f"{function.__module__}.{name}", function, arguments, options)


_GIVE_NUMPYS: Final = frozenset({"numpy.copy"})  # who calls these wants to write to the result
