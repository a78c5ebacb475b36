"""Parts of a function that are programs by themselves, as loops are: what they take and give, and their gradients."""

from __future__ import annotations

import contextlib
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from . import _native
from ._compute import run_options
from ._dtypes import BY_NAME, is_floating
from ._errors import run_traced
from ._lines import line_of_user
from ._names import with_lines
from ._native import ExplainOptions, Node, Traced, Type

_state: Final = threading.local()
_numbers: Final = itertools.count()


@contextlib.contextmanager
def within_transformation(*, may_have_parts: bool = False) -> Iterator[None]:
    """Meanwhile jitted functions are parts of the function that is traced or differentiated.

    All that is made is one graph, unless it and all around it may have parts that are programs by themselves.
    """
    outer = getattr(_state, "may_have_parts", None)
    _state.may_have_parts = may_have_parts and outer is not False
    if outer is None:
        _state.by_result = {}
    try:
        yield
    finally:
        _state.may_have_parts = outer
        if outer is None:
            _state.by_result = {}


def is_within_transformation() -> bool:
    """Whether a function is being traced or differentiated."""
    return getattr(_state, "may_have_parts", None) is not None


def may_have_parts() -> bool:
    """Whether what is traced or differentiated may have parts that are programs by themselves."""
    return bool(getattr(_state, "may_have_parts", None))


def are_traced(nodes: Iterable[Node]) -> bool:
    """Whether one of them waits for arguments of a function that is traced."""
    return any(node.is_traced for node in nodes)


class Part(ABC):
    """What gives arrays of others, its operands, as a program by itself.

    Where an operand waits for arguments of a traced function, so do the results; else these are computed at once.
    """

    def __init__(self, operands: Sequence[Node], kind: str) -> None:
        self.operands = list(operands)
        self.results: list[Node] = []
        self.number = next(_numbers)
        self.title = f"{kind} in {line_of_user()}"

    @abstractmethod
    def types(self) -> list[Type]:
        """Of the results."""

    @abstractmethod
    def run(self, operands: Sequence[Node], options: Mapping[str, Any]) -> list[Node]:
        """The results of these operands, which wait for nothing; options as of `compute`."""

    @abstractmethod
    def slopes(self, flows: Sequence[Node | None], wanted: Sequence[bool]) -> list[Node | None]:
        """What flows back to operands that are wanted, of what flows back to results; None is for nothing."""

    @abstractmethod
    def explain(self, how: ExplainOptions) -> str:
        """How it is computed, as text."""

    def placed(self) -> list[Node]:
        """Its results, as a part of the function that is traced or differentiated."""
        are_awaited = are_traced(self.operands)
        return self.add([Node.argument(type) for type in self.types()] if are_awaited else self.run(self.operands, {}))

    def add(self, further: Sequence[Node]) -> list[Node]:
        """Further results."""
        self.results += [self.marked(node, self.operands) for node in further]
        if is_within_transformation():
            _state.by_result.update({node: self for node in self.results})
        return self.results

    def marked(self, node: Node, operands: Sequence[Node]) -> Node:
        """The node, which knows that it was made of these by what is no graph."""
        if not is_floating(BY_NAME[node.type.dtype]):
            return node
        return Node.made_of(node, None, operands, f"computed by {self.title}")


def part_of(result: Node) -> Part | None:
    """What it is a result of."""
    found: Part | None = getattr(_state, "by_result", {}).get(result)
    return found


def in_order(results: Iterable[Node]) -> list[Part]:
    """The parts of which these are results, each after those that it is made of."""
    parts = {part.number: part for part in map(part_of, results) if part is not None}
    return [parts[number] for number in sorted(parts)]


def _needed(wanted: Sequence[Node]) -> list[Part]:
    """All parts that nodes are made of, each after those that it is made of."""
    needed: dict[int, Part] = {}
    waiting = list(wanted)
    while waiting:
        further = [part for part in in_order(_native.leaves(waiting)) if part.number not in needed]
        needed.update({part.number: part for part in further})
        waiting = [node for part in further for node in part.operands]
    return [needed[number] for number in sorted(needed)]


class Stages:
    """A function that was traced, as programs one after the other: its parts, and what is between them."""

    def __init__(self, wanted: Sequence[Node], arguments: Sequence[Node]) -> None:
        self._wanted = list(wanted)
        self._arguments = list(arguments)
        self.parts = _needed(wanted)
        self._between = [self._made_after(count) for count in range(len(self.parts) + 1)]
        self._traced = [
            Traced(nodes, self._known_after(count)) if nodes else None for count, nodes in enumerate(self._between)
        ]

    def _known_after(self, count: int) -> list[Node]:
        return [*self._arguments, *(node for part in self.parts[:count] for node in part.results)]

    def _made_after(self, count: int) -> list[Node]:
        """What is wanted of the graph, or by parts, that so many parts are needed for."""
        place = {node: i + 1 for i, part in enumerate(self.parts) for node in part.results}
        asked = dict.fromkeys([*(node for part in self.parts for node in part.operands), *self._wanted])
        return [
            node
            for node in asked
            if not node.is_leaf and max((place.get(leaf, 0) for leaf in _native.leaves([node])), default=0) == count
        ]

    def run(self, nodes: Sequence[Node], options: Mapping[str, Any], where: str) -> list[Node]:
        """The results of these arguments; options as of `compute`."""
        found = dict(zip(self._arguments, nodes))
        for count, (made, traced) in enumerate(zip(self._between, self._traced)):
            if count > 0:
                part = self.parts[count - 1]
                operands = [found.get(node, node) for node in part.operands]
                given = [part.marked(node, operands) for node in part.run(operands, options)]
                found.update(zip(part.results, given))
            if traced is not None:
                known = [found[node] for node in self._known_after(count)]
                found.update(zip(made, run_traced(traced, made, known, run_options(**options), where)))
        return [found.get(node, node) for node in self._wanted]

    def explain(self, how: ExplainOptions, names: Sequence[tuple[str, Node]]) -> str:
        """How each program is computed, as text."""
        told = []
        for count, made in enumerate(self._between):
            if count > 0:
                part = self.parts[count - 1]
                told.append(f"{part.title}\n{part.explain(how)}")
            if made:
                told.append(_native.explain(made, how, with_lines(made, names)))
        return "\n".join(told)
