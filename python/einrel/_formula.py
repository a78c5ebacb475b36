"""Definitions: what nodes compute, made once for operands of certain types and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from ._native import Definition, Formula, Node, Type

Function = TypeVar("Function", bound=Callable[..., object])


def kept(function: Function) -> Function:
    """A function that keeps what it made for its last thousands of arguments."""
    return lru_cache(maxsize=4096)(function)  # type: ignore[return-value]


label = Formula.label
element = Formula.element
cast = Formula.cast


def call(function: str, *arguments: Formula | float, over: Iterable[int] = ()) -> Formula:
    """A function of the language: `function[over](arguments)`."""
    return Formula.apply(function, list(arguments), list(over))


def where(condition: Formula, a: Formula | float, b: Formula | float) -> Formula:
    """a where the condition holds, else b."""
    return call("where", condition, a, b)


def broadcast_element(operand: int, shape: Sequence[int], result: Sequence[int]) -> Formula:
    """The element of an operand of this shape that stands beside the result's, by NumPy's rules."""
    missing = len(result) - len(shape)
    return element(
        operand,
        [
            Formula(0) if extent == 1 and result[missing + d] != 1 else label(missing + d)
            for d, extent in enumerate(shape)
        ],
    )


def permuted_view(type: Type, order: Sequence[int]) -> Definition:
    """The view whose dimension d is the operand's order[d]."""
    from_ = [[d] for d in range(len(type.shape))]
    return Definition.view(type, [[d] for d in order], from_, list(type.shape))


def apply(definition: Definition, *operands: Node) -> Node:
    """The node that computes it of these."""
    return Node.of(definition, operands)
