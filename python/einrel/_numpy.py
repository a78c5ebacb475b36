"""NumPy's functions, called with our arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

import einrel as er

from ._array import Array

# NumPy's names for what is called otherwise in the array API.
_OTHER_NAMES: Final[dict[str, str]] = {
    "absolute": "abs",
    "power": "pow",
    "true_divide": "divide",
    "rint": "round",
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


def _named(name: str) -> Callable[..., Any]:
    function = getattr(er, _OTHER_NAMES.get(name, name), None)
    if function is None or not callable(function):
        raise NotImplementedError(f"numpy.{name} of an einrel.Array: give it numpy.asarray(x)")
    return function  # type: ignore[no-any-return]


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
    np.copyto(out, np.asarray(result))
    return out


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """ufunc(inputs), or its reduction."""
    given = _without_defaults(options)
    out = given.pop("out", (None,))[0]
    if method == "__call__":
        return _store(_named(ufunc.__name__)(*inputs, **given), out)
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
        given.setdefault("axis", 0)
        return _store(getattr(er, _REDUCTIONS[ufunc.__name__])(*inputs, **given), out)
    return NotImplemented


def call_function(function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """numpy.function(arguments)."""
    given = _without_defaults(options)
    name = function.__name__
    if name in ("einsum", "tensordot"):
        return _named(name)(*arguments, **given)
    out = given.pop("out", None)
    called = _named(name)
    first, *rest = arguments
    return _store(called(first, *rest, **given) if not rest else _with_axis(called, first, rest, given), out)


def _with_axis(called: Callable[..., Any], first: Any, rest: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """NumPy's second argument is often the axis, which is a keyword in the array API."""
    if called.__name__ in _AXIS_COMES_SECOND and not isinstance(rest[0], Array):
        return called(first, axis=rest[0], **given)
    return called(first, *rest, **given)


_AXIS_COMES_SECOND: Final = frozenset(
    {"sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "concat", "stack", "flip"}
    | {"expand_dims"}
)
