"""Derivatives of functions of arrays: products with the Jacobian from both sides, and the whole of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._array import Array, node_of
from ._creation import eye, ones, zeros
from ._dtypes import is_complex, is_floating
from ._formula import Made, recorded, replayed
from ._native import gradient_graph
from ._parts import are_traced, differentiate_by, is_within_transformation
from ._reductions import sum as sum_
from ._shapes import moveaxis, reshape
from ._transform import Apart, argument_of, chosen, differentiating, own_of, slopes_of
from ._trees import check_unchanged, flatten, places, unflatten
from ._vmap import vmap


class _Traced:
    """A function's results, and the arrays that it was given for them."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any], has_aux: bool) -> None:
        given: list[Any] = []
        self.function = function
        self.form = flatten(tuple(arguments), given, own_of)
        self.arguments = [argument_of(function, leaf) for leaf in given]
        self.like = [leaf if isinstance(leaf, Array) else Array(node_of(leaf)) for leaf in given]
        differentiate_by(array._node for array in self.arguments)
        self._made: list[Made] = []
        with recorded(self._made):
            built = unflatten(self.form, self.arguments)
            result = function(*built)
            check_unchanged(function, built, self.form, self.arguments)
        self.aux = result[1] if has_aux else None
        self.results: list[Any] = []
        self.result_form = flatten(result[0] if has_aux else result, self.results)
        self.results = [self._differentiable(leaf) for leaf in self.results]
        if not self.results:
            raise TypeError(f"a derivative of {function}, which gives no array")

    def _differentiable(self, leaf: Any) -> Array:
        array = Array(node_of(leaf))
        if not is_floating(array.dtype):
            raise TypeError(
                f"a derivative of {self.function}, which gives type {array.dtype}: give floating point, and what is "
                "not differentiated beside it, with has_aux=True"
            )
        return array

    def pulled(self, cotangents: Sequence[Array], anew: bool = False) -> list[Array]:
        """The sum over results of cotangent times derivative, by each argument.

        With `anew` of results that are made once more: those of a function of samples are made inside of it.
        """
        by = [one._node for one in self.arguments]
        results = [one._node for one in self.results]
        if anew or any(any(gradient_graph([flow._node], by)[2]) for flow in cotangents):  # as of the value itself
            fresh = [Apart()(one._node)[0] for one in self.like]
            images = dict(zip(by, fresh))
            replayed(self._made, images)
            by, results = fresh, [images.get(node, node) for node in results]
        parts = [sum_(Array(result) * flow) for result, flow in zip(results, cotangents)]
        total = functools.reduce(lambda a, b: a + b, parts)
        return [Array(node) for node in slopes_of(total._node, by)]

    def pushed(self, tangents: Sequence[Array]) -> list[Array]:
        """The derivative along the tangents, of each result: what is pulled is linear in what flows back."""
        flows = [argument_of(self.function, zeros(one.shape, dtype=one.dtype)) for one in self.results]
        parts = [sum_(slope * tangent) for slope, tangent in zip(self.pulled(flows), tangents)]
        total = functools.reduce(lambda a, b: a + b, parts)
        return [Array(node) for node in slopes_of(total._node, [flow._node for flow in flows])]


def _matched(name: str, given: Any, form: Any, like: Sequence[Array]) -> list[Array]:
    """Leaves of a tree that stands beside another one, each of the shape of the array there."""
    leaves: list[Any] = []
    own = list(places(flatten(given, leaves)))
    wanted = list(places(form))
    if own != wanted:
        raise ValueError(f"the {name} have another form: arrays at {own}, where they belong to arrays at {wanted}")
    arrays = [Array(node_of(leaf)) for leaf in leaves]
    for array, other, place in zip(arrays, like, wanted):
        if array.shape != other.shape:
            raise ValueError(f"the {name}{place} have shape {array.shape}, but belong to shape {other.shape}")
        if is_complex(array.dtype) or is_complex(other.dtype):
            raise NotImplementedError(f"{name} of complex numbers")
    return [array.astype(other.dtype, copy=False) for array, other in zip(arrays, like)]


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The function's value, and how it changes along a direction: the Jacobian times the tangents.

    `primals` are the arguments, `tangents` the direction: of the same form and shapes. With `has_aux` the function
    gives a pair, of which the second part comes as a third result. It is computed by two gradients.

    >>> value, change = jvp(lambda x, y: x * y, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 0.5))
    >>> value.tolist(), change.tolist()
    ([3.0, 6.0], [3.5, 1.0])
    """
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise TypeError("primals and tangents are tuples, with one part for each argument of the function")
    with differentiating(may_have_parts=True):
        traced = _Traced(function, primals, has_aux)
        directions = _matched("tangents", tuple(tangents), traced.form, traced.like)
        changes = traced.pushed(directions)
    value, change = (unflatten(traced.result_form, leaves) for leaves in (traced.results, changes))
    return (value, change, traced.aux) if has_aux else (value, change)


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The function's value, and a function that takes what flows back into the value to what flows to the arguments.

    What flows back has the form and shapes of the value; a tuple comes, with one part for each argument: the product
    with the transposed Jacobian. With `has_aux` the function gives a pair, of which the second part comes as a third
    result.

    >>> value, pull = vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> [flow.tolist() for flow in pull(np.array([1.0, 10.0]))]
    [[3.0, 30.0], 21.0]
    """
    with differentiating(may_have_parts=is_within_transformation()):  # what flows back comes after it, else
        traced = _Traced(function, primals, has_aux)

    def pull(cotangents: Any) -> Any:
        flows = _matched("cotangents", cotangents, traced.result_form, traced.results)
        return unflatten(traced.form, traced.pulled(flows, anew=are_traced(flow._node for flow in flows)))

    value = unflatten(traced.result_form, traced.results)
    return (value, pull, traced.aux) if has_aux else (value, pull)


def _size(arrays: Sequence[Array]) -> int:
    return sum(array.size for array in arrays)


def _rows(traced_at: Callable[[], _Traced], which: int) -> list[Array]:
    """The Jacobian of a result by all arguments, a row for each of its elements."""
    like = traced_at().results[which]

    def row(flow: Array) -> list[Array]:
        traced = traced_at()
        nothing = [zeros(one.shape, dtype=one.dtype) for one in traced.results]
        return traced.pulled([*nothing[:which], flow, *nothing[which + 1 :]])

    found: list[Array] = vmap(row)(reshape(eye(like.size, dtype=like.dtype), (like.size, *like.shape)))
    return [reshape(rows, (*like.shape, *rows.shape[1:])) for rows in found]


def _columns(traced_at: Callable[[], _Traced], which: int) -> list[Array]:
    """The Jacobian of all results by an argument, a column for each of its elements."""
    like = traced_at().like[which]

    def column(tangent: Array) -> list[Array]:
        traced = traced_at()
        nothing = [zeros(one.shape, dtype=one.dtype) for one in traced.like]
        return traced.pushed([*nothing[:which], tangent, *nothing[which + 1 :]])

    found: list[Array] = vmap(column)(reshape(eye(like.size, dtype=like.dtype), (like.size, *like.shape)))
    placed = [moveaxis(columns, 0, -1) for columns in found]
    return [reshape(one, (*one.shape[:-1], *like.shape)) for one in placed]


def jacobian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """How each element that a function gives changes with each element of an argument.

    The result has the shape of the value followed by that of the argument; for containers it has the form of the
    value, with the form of the argument in place of each array. It is computed row by row, or column by column where
    there are fewer of these, all at once as by `vmap`. With `has_aux` the function gives a pair, and so does its
    Jacobian: the derivatives of the first part, and the second part as it is.

    Raises TypeError where an argument or a result is not of floating point, NotImplementedError of complex numbers.

    >>> jacobian(lambda x: x * x[0])(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [2.0, 1.0]]
    """
    if not callable(function):
        raise TypeError(f"a Jacobian of a function, not of a {type(function).__name__}")

    @functools.wraps(function)
    def jacobian_of(*arguments: Any, **named: Any) -> Any:
        positions = chosen(argnums, len(arguments))

        def of_chosen(*given: Any) -> Any:
            own = list(arguments)
            for position, one in zip(positions, given):
                own[position] = one
            return function(*own, **named)

        def traced_at() -> _Traced:
            return _Traced(of_chosen, [arguments[position] for position in positions], has_aux)

        with differentiating(may_have_parts=True):
            traced = traced_at()
            if any(is_complex(one.dtype) for one in (*traced.results, *traced.like)):
                raise NotImplementedError("a Jacobian of complex numbers")
            if [one.shape for one in traced.results] == [()]:
                by_result = [traced.pulled([ones((), dtype=traced.results[0].dtype)])]
            elif _size(traced.results) <= _size(traced.like):
                by_result = [_rows(traced_at, which) for which in range(len(traced.results))]
            else:
                by_argument = [_columns(traced_at, which) for which in range(len(traced.like))]
                by_result = [list(of_one) for of_one in zip(*by_argument)]
        parts = [unflatten(traced.form, of_one) for of_one in by_result]
        is_one = isinstance(argnums, (int, np.integer))
        slopes = unflatten(traced.result_form, [part[0] if is_one else part for part in parts])
        return (slopes, traced.aux) if has_aux else slopes

    return jacobian_of


def hessian(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The second derivatives of a function: the Jacobian of its Jacobian, which of one number is its gradient.

    The result has the shape of the value, followed by that of the argument twice; see `jacobian`, also for has_aux.

    >>> hessian(lambda x: x[0] * x[0] * x[1])(np.array([3.0, 2.0])).tolist()
    [[4.0, 6.0], [6.0, 0.0]]
    """
    return jacobian(jacobian(function, argnums, has_aux), argnums, has_aux)
