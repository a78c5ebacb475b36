"""Definitions: what nodes compute, made once for operands of certain types and kept."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

from . import _native
from ._errors import of_python
from ._lines import text_of_line
from ._native import Node, ProgramError, Type

Function = TypeVar("Function", bound=Callable[..., object])
Result = TypeVar("Result")


def kept(function: Function) -> Function:
    """A function that keeps what it made for its last thousands of arguments."""
    return lru_cache(maxsize=4096)(function)  # type: ignore[return-value]


class Formula:
    """The right side of a statement, whose operands and labels have numbers: a number, or a step of others.

    What it says is seen, so that other formulas can be made of it.
    """

    __slots__ = ("arguments", "step")

    def __init__(self, value: float) -> None:
        self.step: Step = Number(value)
        self.arguments: tuple[Formula, ...] = ()

    @staticmethod
    def of(step: Step, *arguments: Formula | float) -> Formula:
        """A step of these."""
        made = Formula(0)
        made.step = step
        made.arguments = tuple(one if isinstance(one, Formula) else Formula(one) for one in arguments)
        return made

    def folded(self, function: Callable[[Step, list[Result]], Result]) -> Result:
        """What a function makes of the last step, and of what it made of those before; without recursion."""
        known: dict[int, Result] = {}
        waiting = [self]
        while waiting:
            one = waiting[-1]
            missing = [argument for argument in one.arguments if id(argument) not in known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if id(one) not in known:
                known[id(one)] = function(one.step, [known[id(argument)] for argument in one.arguments])
        return known[id(self)]

    def __neg__(self) -> Formula:
        return call("negative", self)

    def __add__(self, other: Formula | float) -> Formula:
        return call("add", self, other)

    def __radd__(self, other: float) -> Formula:
        return call("add", other, self)

    def __sub__(self, other: Formula | float) -> Formula:
        return call("subtract", self, other)

    def __rsub__(self, other: float) -> Formula:
        return call("subtract", other, self)

    def __mul__(self, other: Formula | float) -> Formula:
        return call("multiply", self, other)

    def __rmul__(self, other: float) -> Formula:
        return call("multiply", other, self)

    def __truediv__(self, other: Formula | float) -> Formula:
        return call("divide", self, other)

    def __rtruediv__(self, other: float) -> Formula:
        return call("divide", other, self)

    def __pow__(self, other: Formula | float) -> Formula:
        return call("pow", self, other)

    def __rpow__(self, other: float) -> Formula:
        return call("pow", other, self)

    def __lt__(self, other: Formula | float) -> Formula:
        return call("less", self, other)

    def __le__(self, other: Formula | float) -> Formula:
        return call("less_equal", self, other)

    def __gt__(self, other: Formula | float) -> Formula:
        return call("greater", self, other)

    def __ge__(self, other: Formula | float) -> Formula:
        return call("greater_equal", self, other)

    def __eq__(self, other: Formula | float) -> Formula:  # type: ignore[override]
        return call("equal", self, other)

    def __ne__(self, other: Formula | float) -> Formula:  # type: ignore[override]
        return call("not_equal", self, other)

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Number:
    """A number, which takes the type of what it meets."""

    value: float


@dataclass(frozen=True)
class Label:
    """The value of a label; as an index of an element, the label itself."""

    label: int


@dataclass(frozen=True)
class Element:
    """One element of an operand; its arguments are the indices."""

    operand: int


@dataclass(frozen=True)
class Call:
    """A function of the language, or a reduction over labels."""

    function: str
    labels: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cast:
    """Another type."""

    dtype: str


Step = Number | Label | Element | Call | Cast


def _native_step(step: Step, arguments: list[_native.Formula]) -> _native.Formula:
    match step:
        case Number(value):
            return _native.Formula(value)
        case Label(number):
            return _native.Formula.label(number)
        case Element(operand):
            return _native.Formula.element(operand, arguments)
        case Call(function, labels):
            return _native.Formula.apply(function, arguments, labels)
        case Cast(dtype):
            return _native.Formula.cast(dtype, arguments[0])


def label(number: int) -> Formula:
    """The value of a label; as an index of an element, the label itself."""
    return Formula.of(Label(number))


def element(operand: int, indices: Sequence[Formula]) -> Formula:
    """One element of an operand, with one index per dimension."""
    return Formula.of(Element(operand), *indices)


def cast(dtype: str, value: Formula) -> Formula:
    """The value in another type."""
    return Formula.of(Cast(dtype), value)


def call(function: str, *arguments: Formula | float, over: Iterable[int] = ()) -> Formula:
    """A function of the language: `function[over](arguments)`."""
    return Formula.of(Call(function, tuple(over)), *arguments)


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


@dataclass(frozen=True)
class Statement:
    """Result[first labels] = value, reduced over the others: how many labels it has is its rank."""

    value: Formula
    extents: tuple[int, ...]  # of all labels
    rank: int


@dataclass(frozen=True)
class View:
    """The same elements under other dimensions, each of some labels."""

    to: tuple[tuple[int, ...], ...]
    from_: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]


@dataclass(frozen=True)
class Einsum:
    """NumPy's notation."""

    subscripts: str
    join: str | None
    reduce: str | None


@dataclass(frozen=True)
class Gradient:
    """How the first operand changes with each of the others: of these, the one that is meant."""

    which: int


Meaning = Statement | View | Einsum | Gradient


class Definition:
    """What a node computes of its operands: a statement of the language without names."""

    __slots__ = ("meaning", "native", "operands")

    def __init__(self, operands: Sequence[Type], meaning: Meaning) -> None:
        self.operands = tuple(operands)
        self.meaning = meaning
        try:
            self.native = _native_definition(list(operands), meaning)
        except ProgramError as error:
            raise of_python(error) from None

    @staticmethod
    def statement(operands: Sequence[Type], value: Formula, extents: Sequence[int], rank: int) -> Definition:
        """Result[first labels] = value."""
        if max(extents, default=0) >= 2**63:
            raise ValueError(f"a dimension of extent {max(extents)}: extents have 64 bits")
        return Definition(operands, Statement(value, tuple(extents), rank))

    @staticmethod
    def view(
        operand: Type, to: Sequence[Sequence[int]], from_: Sequence[Sequence[int]], extents: Sequence[int]
    ) -> Definition:
        """The operand's elements, whose dimensions are the labels `from_`, under those of `to`."""
        return Definition([operand], View(tuple(map(tuple, to)), tuple(map(tuple, from_)), tuple(extents)))

    @staticmethod
    def einsum(operands: Sequence[Type], subscripts: str, join: str | None, reduce: str | None) -> Definition:
        """What NumPy's notation says."""
        return Definition(operands, Einsum(subscripts, join, reduce))

    @staticmethod
    def gradient(operands: Sequence[Type], which: int) -> Definition:
        """How the first operand changes with one of the others."""
        return Definition(operands, Gradient(which))

    @property
    def type(self) -> Type:
        """Of the result."""
        return self.native.type


def _native_definition(operands: list[Type], meaning: Meaning) -> _native.Definition:
    match meaning:
        case Statement(value, extents, rank):
            return _native.Definition.statement(operands, value.folded(_native_step), extents, rank)
        case View(to, from_, extents):
            return _native.Definition.view(operands[0], to, from_, extents)
        case Einsum(subscripts, join, reduce):
            return _native.Definition.einsum(operands, subscripts, join, reduce)
        case Gradient(which):
            return _native.Definition.gradient(operands, which)


def permuted_view(type: Type, order: Sequence[int]) -> Definition:
    """The view whose dimension d is the operand's order[d]."""
    from_ = [[d] for d in range(len(type.shape))]
    return Definition.view(type, [[d] for d in order], from_, list(type.shape))


@dataclass(frozen=True)
class Made:
    """A node, or several, that a function which is recorded made of others."""

    by: Any  # a definition, or a function that makes the same of other nodes
    operands: tuple[Node, ...]
    results: tuple[Node, ...]

    def become(self, others: Sequence[Node], images: dict[Node, Node]) -> None:
        """Adds to the images what was made of other nodes, which was made where these were."""
        for result, other in zip(self.results, others):
            images[result] = other
            if other.origin is None:
                other.stand_for(result)


_records: Final = threading.local()


@contextlib.contextmanager
def recorded(nodes: list[Made] | None) -> Iterator[None]:
    """Meanwhile all nodes that are made are appended, also to the records around this one; with None, to none."""
    before: tuple[list[Made], ...] = getattr(_records, "lists", ())
    _records.lists = () if nodes is None else (*before, nodes)
    try:
        yield
    finally:
        _records.lists = before


def record(by: Any, operands: Sequence[Node], results: Sequence[Node]) -> None:
    """Nodes were made."""
    for made in getattr(_records, "lists", ()):
        made.append(Made(by, tuple(operands), tuple(results)))


def apply(definition: Definition, *operands: Node) -> Node:
    """The node that computes it of these."""
    node = Node.of(definition.native, operands)
    if getattr(_records, "lists", ()):  # seldom, and this is called for each operation
        record(definition, operands, (node,))
    return node


def made_at_once(leaf: Node, definition: Definition, operands: Sequence[Node], how: str) -> Node:
    """The leaf, whose elements are what the definition computes of these: gradients go through it."""
    if getattr(_records, "lists", ()):
        record(definition, operands, (leaf,))
    return Node.made_of(leaf, definition.native, operands, f"{how} in {text_of_line(leaf.line)}")


def needed(made: Sequence[Made], wanted: Iterable[Node]) -> list[Made]:
    """What of it the wanted nodes are made of, in the same order."""
    nodes = set(wanted)
    kept_ones = []
    for one in reversed(made):
        if not nodes.isdisjoint(one.results):
            nodes.update(one.operands)
            kept_ones.append(one)
    return kept_ones[::-1]


def replayed(made: Sequence[Made], images: dict[Node, Node]) -> None:
    """Makes the same of other nodes, which are added to the images."""
    for one in made:
        if not images.keys().isdisjoint(one.operands):
            operands = [images.get(node, node) for node in one.operands]
            is_definition = isinstance(one.by, Definition)
            one.become([apply(one.by, *operands)] if is_definition else one.by(*operands), images)
