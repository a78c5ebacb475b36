"""Gradients: of arrays, and of functions."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

import einrel as er

from . import _native
from ._array import Array, asarray, identity, node_of
from ._creation import zeros
from ._dtypes import BY_NAME, is_complex, is_floating
from ._formula import Definition, apply, kept, record, recorded
from ._lines import made_with
from ._native import Node, Type, check, gradient_graph
from ._numbers import Course, TracedNumber, is_number
from ._parts import differentiate_by, in_order, part_of, within_transformation
from ._reductions import sum as sum_
from ._trees import check_unchanged, flatten, leaf_of, unflatten


@kept
def _gradient(which: int, *types: Type) -> Definition:
    return Definition.gradient(list(types), which)


def _slopes_in(of: Node, by: Sequence[Node]) -> list[Node]:
    """Gradients of a graph that shows how `of` depends on each of `by`. Raises where one is 0 everywhere."""
    types = [node.type for node in (of, *by)]
    slopes = [apply(_gradient(which, *types), of, *by) for which in range(len(by))]
    check(slopes)
    return slopes


def _flows(of: Node, by: Node) -> bool:
    if not is_floating(BY_NAME[by.type.dtype]):
        return False
    try:
        _slopes_in(of, [by])
    except _native.NoGradient:
        return False
    return True


class Slopes:
    """Gradients of the first node by all others, as a function of them."""

    def __init__(self, may_be_zero: bool) -> None:
        self.may_be_zero = may_be_zero

    def __call__(self, of: Node, *by: Node) -> list[Node]:
        with recorded(None):  # of what it makes on the way, nothing else is made
            found = _found_slopes(of, by, self.may_be_zero)
        record(self, (of, *by), found)
        return found


class Apart:
    """The same elements, for which no other array is taken."""

    def __call__(self, node: Node) -> list[Node]:
        apart = Node.apart(node, identity(node.type).native)
        record(self, (node,), (apart,))
        return [apart]


def apart(node: Node) -> Node:
    """The same elements, for which no other array is taken."""
    return Apart()(node)[0]


def slopes_of(of: Node, by: Sequence[Node], *, may_be_zero: bool = True) -> list[Node]:
    """How `of` changes with each of these, which are different."""
    return Slopes(may_be_zero)(of, *by)


def _found_slopes(of: Node, by: Sequence[Node], may_be_zero: bool) -> list[Node]:
    (copy,), copies, are_reached, left = gradient_graph([of], by)
    if in_order(node for node, _ in left):
        found = _slopes_through_parts(of, by, [node for node, _ in left])
    elif may_be_zero:
        found = _slopes_in_graph(of, by)
    else:
        _check_known(copy, left)
        if not all(are_reached):
            raise _no_slope(by[are_reached.index(False)])
        return _slopes_in(copy, copies)
    if not may_be_zero and None in found:
        raise _no_slope(by[found.index(None)])
    return [slope or zero_slope(node) for slope, node in zip(found, by)]


def _no_slope(by: Node) -> _native.ProgramError:
    return _native.ProgramError(
        f"the gradient is 0 everywhere: what it is of does not depend on the array of shape {by.type.shape} that it is "
        "by, which may be a copy, or made later"
    )


def _check_known(of: Node, left: Sequence[tuple[Node, str]]) -> None:
    """Raises where a way to `of` begins at what was made outside of the graph."""
    for node, where in left:
        if part_of(node) is None and (node is of or _flows(of, node)):
            remedy = (
                "er.grad of a function keeps it" if where.startswith("computed") else "use functions of einrel there"
            )
            raise _native.ProgramError(
                f"a gradient through what was {where}: how it follows from the array that the gradient is by is not "
                f"known; {remedy}, or, where a constant is meant, er.stop_gradient(...)"
            )


def _slopes_in_graph(of: Node, by: Sequence[Node]) -> list[Node | None]:
    """How `of` changes with each of these by what is seen in the graph; None where it does not."""
    (copy,), copies, are_reached, left = gradient_graph([of], by)
    _check_known(copy, left)
    used = [i for i, is_reached in enumerate(are_reached) if is_reached]
    try:
        found = _slopes_in(copy, [copies[i] for i in used]) if used else []
    except _native.NoGradient:  # of some it is 0 everywhere, as through integers
        used = [i for i in used if _flows(copy, copies[i])]
        found = _slopes_in(copy, [copies[i] for i in used]) if used else []
    slopes = dict(zip(used, found))
    return [slopes.get(i) for i in range(len(by))]


def _slopes_through_parts(of: Node, by: Sequence[Node], left: Sequence[Node]) -> list[Node | None]:
    """The same through parts that are programs by themselves, the last one first."""
    parts = in_order(left)
    flows: dict[Node, Node] = {}

    def slopes_before(of: Node, count: int) -> dict[Node, Node]:
        """By what it is made of, and by results of so many parts."""
        results = [node for part in parts[:count] for node in part.results if is_floating(BY_NAME[node.type.dtype])]
        to = list(dict.fromkeys([*by, *results]))
        return {node: slope for node, slope in zip(to, _slopes_in_graph(of, to)) if slope is not None}

    def add(slopes: Mapping[Node, Node]) -> None:
        for node, slope in slopes.items():
            flows[node] = (Array(flows[node]) + Array(slope))._node if node in flows else slope
            flows[node].be_gradient_by(node)

    add(slopes_before(of, len(parts)))
    for count, part in reversed(list(enumerate(parts))):
        into = [flows.get(node) for node in part.results]
        if not any(into):
            continue
        on_way = [j for j, node in enumerate(part.operands) if _depends(node, [*by, *left])]
        arguments = [Node.argument(part.operands[j].type) for j in on_way]
        ways = zip([part.operands[j] for j in on_way], arguments)
        found = slopes_before(total_flow(ways), count) if on_way else {}
        used = set(_native.leaves(list(found.values())))
        wanted = {j: argument for j, argument in zip(on_way, arguments) if argument in used}
        if wanted:
            with made_with(part.results[0]):
                slopes = part.slopes(into, [j in wanted for j in range(len(part.operands))])
                values = [slopes[j] or zero_slope(part.operands[j]) for j in wanted]
            for j, value in zip(wanted, values):
                value.be_gradient_by(part.operands[j])
            add(dict(zip(found, _native.substituted(list(found.values()), list(wanted.values()), values))))
    return [flows.get(node) for node in by]


def _depends(node: Node, by: Sequence[Node]) -> bool:
    return is_floating(BY_NAME[node.type.dtype]) and any(gradient_graph([node], by)[2])


def total_flow(results: Iterable[tuple[Node, Node]]) -> Node:
    """A number whose gradient by something is what flows to it, of what flows back into each result."""
    parts = [
        sum_(
            er.real(Array(node) * er.conj(Array(flow))) if is_complex(Array(node).dtype) else Array(node) * Array(flow)
        )
        for node, flow in results
    ]
    return functools.reduce(operator.add, parts)._node


def zero_slope(by: Node) -> Node:
    """How what is not made of a node changes with it: 0 in its shape and type."""
    slope = zeros(by.type.shape, dtype=BY_NAME[by.type.dtype])._node
    slope.be_gradient_by(by)
    return slope


@overload
def grad(of: Array, wrt: Array) -> Array: ...
@overload
def grad(of: Array, wrt: Sequence[Array]) -> list[Array]: ...
@overload
def grad(
    of: Callable[..., Any], wrt: int | Sequence[int] = 0, has_aux: bool = False, *, argnums: int | Sequence[int] = 0
) -> Callable[..., Any]: ...
def grad(of: Any, wrt: Any = 0, has_aux: bool = False, *, argnums: Any = None) -> Any:
    """The gradient of a function, as another function; or of a number by arrays that it was made of.

    `grad(f)` gives, of the same arguments as f, how the number f(...) changes with each element of the first one, or of
    those at the positions `argnums`. Arguments may be lists, tuples and dicts of arrays; the gradient has their form.
    With `has_aux`, f gives a number and something else, and its gradient is given with that.

    >>> import numpy as np
    >>> grad(lambda w: (w * w).sum())(np.array([1.0, 2.0])).tolist()
    [2.0, 4.0]

    `grad(of, wrt)` is how the array `of`, of shape (), changes with each element of the array `wrt`, or of several.

    >>> w = Array(node_of(np.array([1.0, 2.0])))
    >>> grad((w * w).sum(), w).tolist()
    [2.0, 4.0]

    Raises ProgramError, with the line of Python, where the way between them leaves the graph: through a function of
    NumPy's that einrel lacks, elements that NumPy was given, or what was computed from arrays that are gone.
    """
    if not isinstance(of, Array) and callable(of):
        transformed = value_and_grad(of, wrt if argnums is None else argnums, has_aux)

        @functools.wraps(of)
        def gradient(*arguments: Any, **named: Any) -> Any:
            value, slopes = transformed(*arguments, **named)
            return (slopes, value[1]) if has_aux else slopes

        return gradient
    if isinstance(wrt, Array):
        return grad(of, [wrt])[0]
    if not isinstance(of, Array) or not isinstance(wrt, (list, tuple)):
        given = f"{type(of).__name__} by {type(wrt).__name__}"
        raise TypeError(f"a gradient of {given}: give a function, or an einrel.Array and one or several by which it is")
    for array in wrt:
        if not isinstance(array, Array):
            raise TypeError(f"a gradient of an einrel.Array by others, not by {type(array).__name__}")
    once = list(dict.fromkeys(array._node for array in wrt))
    slopes = dict(zip(once, slopes_of(of._node, once, may_be_zero=False))) if once else {}
    return [Array(slopes[array._node]) for array in wrt]


@contextlib.contextmanager
def differentiating(*, may_have_parts: bool = False) -> Iterator[None]:
    """Meanwhile whatever is computed keeps how it was made."""
    _native.keep_histories(True)
    try:
        with within_transformation(may_have_parts=may_have_parts):
            yield
    finally:
        _native.keep_histories(False)


def _number_of(function: Callable[..., Any], value: Any) -> Array:
    """What a function gave that is differentiated, if it has a gradient."""
    if not isinstance(value, Array):
        raise TypeError(
            f"a gradient of {function}, which gave a {type(value).__name__}: that does not know what it was made of; "
            "return an einrel.Array"
        )
    if value.shape != () or not is_floating(value.dtype):
        raise TypeError(
            f"a gradient of {function}, which gave shape {value.shape} and type {value.dtype}: return one number of "
            "floating point, such as a sum"
        )
    return value


def argument_of(function: Callable[..., Any], given: Any) -> Array:
    """An argument by which a function is differentiated: the same elements, but no other array is taken for it."""
    node = node_of(given)
    dtype = BY_NAME[node.type.dtype]
    if not is_floating(dtype):
        raise TypeError(f"a gradient of {function} by an argument of type {dtype}: give floating point")
    (apart,) = Apart()(node)
    if isinstance(given, TracedNumber):
        return given.course.made(apart, operator.pos, given)
    return Course().argument(apart) if is_number(given) else Array(apart)


def own_of(value: Any) -> Any:
    """A leaf, but a copy of NumPy's arrays: results that are not computed yet do not see what is written there."""
    return asarray(asarray(value), copy=True) if isinstance(value, np.ndarray) else leaf_of(value)


def chosen(argnums: int | Sequence[int], count: int) -> list[int]:
    """The positions of arguments that are differentiated by."""
    positions = [argnums] if isinstance(argnums, (int, np.integer)) else list(argnums)
    if any(not -count <= position < count for position in positions):
        raise TypeError(f"a gradient by arguments {argnums} of {count} that were given by position")
    return [int(position) % count for position in positions]


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the function's value, and its gradient as `grad(function)` gives it.

    With `has_aux` the value is a pair: the number, and what else the function gave.

    >>> import numpy as np
    >>> value, slope = value_and_grad(lambda w, x: ((w * x) ** 2).sum())(np.ones(2), np.array([1.0, 3.0]))
    >>> float(value), slope.tolist()
    (10.0, [2.0, 18.0])
    """
    if not callable(function):
        raise TypeError(f"a gradient of a function, not of a {type(function).__name__}")

    @functools.wraps(function)
    def value_and_slopes(*arguments: Any, **named: Any) -> Any:
        given = list(arguments)
        positions = chosen(argnums, len(given))
        forms: list[Any] = []
        apart: list[Array] = []
        with differentiating(may_have_parts=True):
            for position in positions:
                leaves: list[Any] = []
                form = flatten(arguments[position], leaves, own_of)
                traced = [argument_of(function, leaf) for leaf in leaves]
                forms.append((form, len(traced)))
                apart += traced
                differentiate_by(array._node for array in traced)
                given[position] = unflatten(form, list(traced))
            result = function(*given, **named)
            first = 0
            for position, (form, count) in zip(positions, forms):
                check_unchanged(function, given[position], form, apart[first : first + count])
                first += count
            value = _number_of(function, result[0] if has_aux else result)
            slopes = [Array(node) for node in slopes_of(value._node, [x._node for x in apart])]
        parts = []
        for form, count in forms:
            parts.append(unflatten(form, slopes[:count]))
            del slopes[:count]
        by_all = parts[0] if isinstance(argnums, (int, np.integer)) else tuple(parts)
        return ((Array(value._node), result[1]) if has_aux else Array(value._node)), by_all

    return value_and_slopes
