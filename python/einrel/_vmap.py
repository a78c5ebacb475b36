"""Functions of one sample as functions of many."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ._array import Array, node_of
from ._creation import zeros
from ._dtypes import BY_NAME
from ._formula import (
    Call,
    Definition,
    Einsum,
    Element,
    Formula,
    Label,
    Made,
    Meaning,
    Statement,
    Step,
    View,
    apply,
    cast,
    kept,
    label,
    needed,
    recorded,
)
from ._lines import made_with
from ._native import Node, Type, gradient_graph
from ._parts import Part, within_transformation
from ._reductions import sum as sum_
from ._shapes import broadcast_to, moveaxis
from ._transform import Apart, Slopes, slopes_of
from ._trees import Dict, check_unchanged, flatten, places, unflatten

_LETTERS: Final = string.ascii_letters


def _batched_formula(value: Formula, are_batched: Sequence[bool]) -> Formula:
    """The formula where label 0 is that of samples, which operands have as their first dimension."""

    def batched(step: Step, arguments: list[Formula]) -> Formula:
        match step:
            case Label(number):
                return label(number + 1)
            case Element(operand):
                return Formula.of(step, *[label(0)] * are_batched[operand], *arguments)
            case Call(function, labels):
                return Formula.of(Call(function, tuple(number + 1 for number in labels)), *arguments)
            case _:
                return Formula.of(step, *arguments)

    return value.folded(batched)


def _explicit(subscripts: str) -> tuple[list[str], str]:
    """Terms of operands, and of the result, which is said by NumPy's rule where it is left out."""
    operands, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = operands.split(",")
    if not arrow:
        letters = operands.replace(",", "").replace(".", "")
        result = "..." * ("..." in operands) + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    return terms, result


def _batched_einsum(einsum: Einsum, are_batched: Sequence[bool]) -> Einsum:
    terms, result = _explicit(einsum.subscripts)
    own = next((letter for letter in _LETTERS if letter not in einsum.subscripts), None)
    if own is None:
        raise NotImplementedError("einrel.vmap of an einsum that uses all letters: none is left for the samples")
    terms = [own * is_batched + term for term, is_batched in zip(terms, are_batched)]
    return Einsum(f"{','.join(terms)}->{own}{result}", einsum.join, einsum.reduce)


def _batched_meaning(meaning: Meaning, are_batched: Sequence[bool], count: int) -> Meaning:
    match meaning:
        case Statement(value, extents, rank):
            return Statement(_batched_formula(value, are_batched), (count, *extents), rank + 1)
        case View(to, from_, extents):
            further = [((0,), *[tuple(x + 1 for x in group) for group in groups]) for groups in (to, from_)]
            return View(further[0], further[1], (count, *extents))
        case Einsum():
            return _batched_einsum(meaning, are_batched)
        case _:
            raise NotImplementedError("einrel.vmap of a gradient by itself")


@kept
def _batched(definition: Definition, are_batched: tuple[bool, ...], count: int, *types: Type) -> Definition:
    """What computes it of each sample, of operands whose first dimension is that of samples."""
    return Definition(types, _batched_meaning(definition.meaning, are_batched, count))


@kept
def _sample_type(dtype: str, shape: tuple[int, ...]) -> Type:
    return Definition.statement([], cast(dtype, Formula(0)), shape, len(shape)).type


def spread(node: Node, count: int) -> Node:
    """The same for every sample."""
    many = broadcast_to(Array(node), (count, *node.type.shape))._node
    many.stand_for(node)
    return many


class _Samples:
    """Nodes of one sample, and what they are of all samples at once."""

    def __init__(self, made: Sequence[Made], images: dict[Node, Node], wanted: Sequence[Node], count: int) -> None:
        self._count = count
        self._made = needed(made, wanted)
        self._images = images
        self._own = self._that_need_their_own()

    def _that_need_their_own(self) -> set[Node]:
        """What a gradient of a sample is by has an element for each sample, also where all are the same."""
        own: set[Node] = set()
        while True:
            depending = set(self._images) | own
            further: set[Node] = set()
            for one in self._made:
                if not depending.isdisjoint(one.operands):
                    depending.update(one.results)
                if isinstance(one.by, Slopes) and one.operands[0] in depending:
                    further.update(one.operands[1:])
            if further <= own:
                return own
            own |= further

    def _check_paths(self) -> None:
        """Raises where a way from what a gradient is by to what it is of was made outside of the function."""
        inside = {node for one in self._made for node in one.results}
        by = [node for node in self._own if node not in inside]
        outside = {node for one in self._made for node in one.operands} - inside - set(self._images) - self._own
        for node in by:
            if outside and any(any(gradient_graph([one], [node])[2]) for one in outside):
                raise NotImplementedError(
                    f"einrel.vmap of a gradient by an array of shape {node.type.shape}, of which something was made "
                    "before, outside of the function: make it inside, or use er.grad of a function there"
                )

    def of(self, wanted: Sequence[Node]) -> list[Node]:
        """With samples as the first dimension, where they differ."""
        self._check_paths()
        for node in self._own:
            if node not in self._images and not any(node in one.results for one in self._made):
                self._images[node] = spread(node, self._count)
        for one in self._made:
            self._follow(one)
        return [self._images.get(node, node) for node in wanted]

    def _follow(self, made: Made) -> None:
        are_batched = [node in self._images for node in made.operands]
        if isinstance(made.by, Slopes) and not are_batched[0]:
            self._follow_slopes_of_one(made, are_batched[1:])
        elif any(are_batched):
            operands = [self._images.get(node, node) for node in made.operands]
            made.become(self._all_at_once(made.by, operands, are_batched), self._images)
        for node in made.results:
            if node in self._own and node not in self._images:
                (self._images[node],) = Apart()(spread(node, self._count))

    def _follow_slopes_of_one(self, made: Made, are_batched: list[bool]) -> None:
        """Of what is the same for all samples, and so does not depend on what differs."""
        for node, is_batched in zip(made.results, are_batched):
            if is_batched:
                self._images[node] = zeros((self._count, *node.type.shape), dtype=BY_NAME[node.type.dtype])._node

    def _all_at_once(self, by: Any, operands: list[Node], are_batched: list[bool]) -> list[Node]:
        if isinstance(by, Definition):
            types = [node.type for node in operands]
            return [apply(_batched(by, tuple(are_batched), self._count, *types), *operands)]
        if isinstance(by, Slopes):
            return slopes_of(sum_(Array(operands[0]))._node, operands[1:])
        if isinstance(by, Part):
            with made_with(by.results[0]):
                return by.of_samples(operands, are_batched, self._count)
        found: list[Node] = by(*operands)
        return found


def one_and_many(
    function: Callable[[list[Node]], list[Node]], samples: Sequence[Node], count: int
) -> list[tuple[Node, Node]]:
    """Each result of a function, of one sample, which is traced, and of all: the same where samples do not differ.

    Samples are the first dimension.
    """
    inside = [Node.argument(_sample_type(many.type.dtype, many.type.shape[1:])) for many in samples]
    made: list[Made] = []
    with within_transformation(may_have_parts=True):
        with recorded(made):
            results = function(inside)
        return list(zip(results, _Samples(made, dict(zip(inside, samples)), results, count).of(results)))


def _axes(form: Any, axes: Any, of: str) -> list[int | None]:
    """Of each leaf, which dimension is that of samples: one for all in a container, or a container of them."""
    kind, parts = form
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes) for _ in places(form)]
    inner = (
        [part for _, part in parts]
        if isinstance(kind, Dict)
        else [part for _, part in parts[1]]
        if kind == "object"
        else parts
    )
    if isinstance(kind, Dict) and isinstance(axes, dict) and set(axes) == {key for key, _ in parts}:
        given = [axes[key] for key, _ in parts]
    elif (
        not isinstance(kind, Dict)
        and kind not in ("object", "array", "number", "constant")
        and isinstance(axes, (list, tuple))
    ):
        given = list(axes)
    else:
        raise ValueError(f"{of}={axes!r}: an axis, None, or a container of them like the arguments or results")
    if len(given) != len(inner):
        raise ValueError(f"{of}={axes!r}: {len(given)} axes for {len(inner)} values")
    return [axis for part, own in zip(inner, given) for axis in _axes(part, own, of)]


def _samples_first(leaf: Any, axis: int, place: str) -> Node:
    """A leaf's array with its samples as the first dimension."""
    array = Array(node_of(leaf))
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(
            f"einrel.vmap over axis {axis} of argument {place}, of shape {array.shape}; in_axes says which"
        )
    return moveaxis(array, axis, 0)._node


def _count_of(samples: Sequence[Node | None], at: Sequence[str]) -> int:
    counts = {place: node.type.shape[0] for node, place in zip(samples, at) if node is not None}
    if not counts:
        raise ValueError("einrel.vmap needs an argument with a dimension of samples: in_axes is None for all")
    if len(set(counts.values())) != 1:
        told = ", ".join(f"{count} in argument {place}" for place, count in counts.items())
        raise ValueError(f"einrel.vmap over different numbers of samples: {told}")
    return next(iter(counts.values()))


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function of one sample as a function of many, whose results stand beside each other.

    `in_axes` says which dimension of each argument is that of the samples: one number for all, or a tuple with one for
    each; None is for arguments that all samples share. For a container it may be a container of axes. `out_axes` says
    where samples stand in results. Arguments by name have samples as their first dimension.

    >>> vmap(lambda x, y: (x * y).sum())(np.ones((3, 2)), np.arange(6.0).reshape(3, 2)).tolist()
    [1.0, 5.0, 9.0]
    >>> vmap(lambda x, y: x + y, in_axes=(0, None))(np.array([1.0, 2.0]), 10.0).tolist()
    [11.0, 12.0]

    Raises ValueError where numbers of samples differ.
    """
    if not callable(function):
        raise TypeError(f"a function of samples, not a {type(function).__name__}")

    @functools.wraps(function)
    def of_samples(*arguments: Any, **named: Any) -> Any:
        leaves: list[Any] = []
        form = flatten((arguments, named), leaves)
        of_places, of_named = form[1]
        axes = _axes(of_places, in_axes, "in_axes") + _axes(of_named, 0, "in_axes")
        at = [place[3:] for place in places(form)]  # after [0] of those by position, or [1] of those by name
        samples = [
            None if axis is None else _samples_first(leaf, axis, place) for leaf, axis, place in zip(leaves, axes, at)
        ]
        count = _count_of(samples, at)
        forms: list[Any] = []

        def of_one(nodes: list[Node]) -> list[Node]:
            rest = iter(nodes)
            inside = [leaf if many is None else Array(next(rest)) for leaf, many in zip(leaves, samples)]
            positional, by_name = unflatten(form, inside)
            results: list[Any] = []
            forms.append(flatten(function(*positional, **by_name), results))
            check_unchanged(function, (positional, by_name), form, inside)
            return [node_of(result) for result in results]

        both = one_and_many(of_one, [many for many in samples if many is not None], count)
        (result_form,) = forms
        to = _axes(result_form, out_axes, "out_axes")
        placed = [_placed(*results, axis, count) for results, axis in zip(both, to)]
        return unflatten(result_form, placed)

    return of_samples


def _placed(one: Node, many: Node, axis: int | None, count: int) -> Array:
    """A result with its samples in that dimension."""
    if axis is None:
        if many is not one:
            raise ValueError("out_axes=None for a result that differs from sample to sample")
        return Array(one)
    return moveaxis(Array(spread(one, count) if many is one else many), 0, axis)
