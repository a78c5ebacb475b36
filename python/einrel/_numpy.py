"""NumPy's functions, called with our arrays: ours of the same name where there is one, else NumPy's, of elements."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import einrel as er

from ._array import Array, node_of
from ._dtypes import NAMES, is_floating
from ._functions import Unsupported
from ._leaving import left_graph
from ._native import Node

# NumPy's names for what is called otherwise in the array API.
_OTHER_NAMES: Final[dict[str, str]] = {
    "absolute": "abs",
    "power": "pow",
    "true_divide": "divide",
    "around": "round",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "concatenate": "concat",
    "amax": "max",
    "amin": "min",
    "cumsum": "cumulative_sum",
    "cumprod": "cumulative_prod",
}
# NumPy's functions that do something else than ours of that name.
_DIFFERENT: Final = frozenset({"diagonal", "trace", "outer", "take", "reciprocal", "rint"})
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
# Options of NumPy's functions that change nothing where they have these values.
_DEFAULTS: Final[dict[str, Any]] = {"where": True, "out": None, "dtype": None, "initial": np._NoValue, "order": "K"}


def _named(name: str) -> Callable[..., Any] | None:
    if name in _DIFFERENT:
        return None
    function = getattr(er, _OTHER_NAMES.get(name, name), None)
    return None if function is None or isinstance(function, Unsupported) else function


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


def _takes(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*arguments, **options)
    except TypeError:
        return False
    return True


def _refuse_to_change(name: str, first: Any) -> None:
    if isinstance(first, Array):
        raise TypeError(f"numpy.{name}: an einrel.Array does not change; make another one, as with einrel.where")


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """ufunc(inputs), or its reduction."""
    if method == "at":
        _refuse_to_change(f"{ufunc.__name__}.at", inputs[0])
    full_name = f"numpy.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
    given = _without_defaults(options)
    out = given.pop("out", (None,))[0]
    called = _named(ufunc.__name__) if method == "__call__" else None
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
        called = _named(_REDUCTIONS[ufunc.__name__])
        given.setdefault("axis", 0)
    if called is None or not _takes(called, inputs, given):
        return _of_elements(full_name, getattr(ufunc, method), inputs, options)
    try:
        result = called(*inputs, **given)
    except (NotImplementedError, TypeError):  # of these types: NumPy's may
        return _of_elements(full_name, getattr(ufunc, method), inputs, options)
    return _store(result, out)


def call_function(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """numpy.function(arguments)."""
    name = function.__name__
    if name in _OF_SHAPES and _takes(_OF_SHAPES[name], arguments, options):
        return _OF_SHAPES[name](*arguments, **options)
    if name in _CHANGE_THE_FIRST and arguments:
        _refuse_to_change(name, arguments[0])
    called = _named(name)
    given = _without_defaults(options)
    out = given.pop("out", None)
    ours = tuple(arguments)
    if len(arguments) == 2 and name in _AXIS_COMES_SECOND:  # it is a keyword in the array API
        given["axis"] = arguments[1]
        ours = ours[:1]
    if called is None or not _takes(called, ours, given):
        return _of_elements(f"{function.__module__}.{name}", function, arguments, options)
    try:
        result = called(*ours, **given)
    except NotImplementedError:  # of these types: NumPy's may
        return _of_elements(f"{function.__module__}.{name}", function, arguments, options)
    return _store(result, out)


# What needs no elements.
_OF_SHAPES: Final[dict[str, Callable[..., Any]]] = {
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a: a.size,
}
_GIVE_NUMPYS: Final = frozenset({"numpy.copy"})  # who calls these wants to write to the result
_CHANGE_THE_FIRST: Final = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"})
_AXIS_COMES_SECOND: Final = frozenset(
    {"sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "concat", "stack", "flip"}
    | {"expand_dims"}
)
