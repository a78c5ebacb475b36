"""Functions that are computed again for their gradients, so that what they make on the way is not kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._array import Array, node_of
from ._compute import array_options
from ._errors import compute_nodes, run_traced
from ._lines import line_of_user
from ._names import with_lines
from ._native import Node, Traced, Type
from ._numbers import is_number
from ._parts import Body, Graph, Part, Planned, may_have_parts
from ._transform import apart, slopes_of, total_flow
from ._trees import flatten, unflatten
from ._vmap import one_and_many, spread


class _Block(Part):
    """A function as a program by itself, of its arguments and of arrays around it."""

    def __init__(self, body: Body, operands: Sequence[Node], title: str) -> None:
        super().__init__(operands, title)
        self._body = body
        self._is_differentiated = False
        self._traced: Traced | None = None

    def types(self) -> list[Type]:
        """See `Part`."""
        return [node.type for node in self._body.results]

    def run(self, operands: Sequence[Node], options: Mapping[str, Any]) -> list[Node]:
        """See `Part`."""
        compute_nodes([node for node in operands if not node.is_leaf], array_options(**options))
        return run_traced(self._program(), self._body.results, operands, array_options(**options), self.title)

    def _program(self) -> Traced:
        if self._traced is None:
            self._traced = Traced(self._body.results, [*self._body.arguments, *self._body.around])
        return self._traced

    def program(self) -> Planned:
        """See `Part`."""
        return Graph(self._program(), self._body.results)

    def inputs(self) -> dict[str, Node]:
        """See `Part`."""
        operands = dict(zip([*self._body.arguments, *self._body.around], self.operands))
        return {name: operands[node] for name, node in with_lines(self._body.results) if node in operands}

    def times(self) -> int | None:
        """See `Part`."""
        return 1

    def graph(self) -> list[Node] | None:
        """See `Part`: a function without a gradient is computed once, and goes with what is around it."""
        return None if self._is_differentiated else self._of(self.operands)

    def _of(self, operands: Sequence[Node]) -> list[Node]:
        count = len(self._body.arguments)
        return self._body.of(operands[:count], operands[count:])

    def slopes(self, flows: Sequence[Node | None], wanted: Sequence[bool]) -> list[Node | None]:
        """By the function that computes it again, and its gradient: another program by itself."""
        self._is_differentiated = True
        by = [j for j, is_wanted in enumerate(wanted) if is_wanted]
        given = [j for j, flow in enumerate(flows) if flow is not None]
        arguments = [*self.operands, *(flow for flow in flows if flow is not None)]
        own = [Node.argument_like(node) for node in arguments]

        def back() -> list[Node]:
            nodes = [apart(node) for node in own[: len(self.operands)]]
            results = self._of(nodes)
            total = total_flow(zip([results[j] for j in given], own[len(self.operands) :]))
            return slopes_of(total, [nodes[j] for j in by])

        found = dict(zip(by, _differentiated(Body(back, own), arguments, f"the gradient of {self.title}")))
        return [found.get(j) for j in range(len(self.operands))]

    def of_samples(self, operands: Sequence[Node], are_batched: Sequence[bool], count: int) -> list[Node]:
        """See `Part`."""
        own = [Node.argument_like(node) for node in operands]

        def of_one(ones: Sequence[Node]) -> list[Node]:
            rest = iter(ones)
            given = [next(rest) if is_batched else node for node, is_batched in zip(own, are_batched)]
            return self._of(given)

        def of_all() -> list[Node]:
            batched = [node for node, is_batched in zip(own, are_batched) if is_batched]
            return [spread(one, count) if many is one else many for one, many in one_and_many(of_one, batched, count)]

        body = Body(of_all, own)
        return _Block(body, [*operands, *body.outside], self.title).placed()

    def __call__(self, *operands: Node) -> list[Node]:
        """See `Part`."""
        return _Block(self._body, operands, self.title).placed()


def _differentiated(body: Body, arguments: Sequence[Node], title: str) -> list[Node]:
    block = _Block(body, [*arguments, *body.outside], title)
    block._is_differentiated = True
    return block.placed()


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which is computed a second time for its gradient, so that less memory is needed.

    In `er.jit` and `er.grad` only its arguments and results are kept until then. The function is traced there, also by
    `er.grad`: it sees no elements, and what it does besides is done once. It and its gradient are programs by
    themselves; without a gradient it is a part of what is around it, and so it is in steps of loops.

    >>> import numpy as np
    >>> import einrel as er
    >>> block = checkpoint(lambda x: er.tanh(er.exp(x) - 1))
    >>> er.grad(lambda x: er.sum(block(block(x))))(np.zeros(2)).tolist()
    [1.0, 1.0]
    """
    if not callable(function):
        raise TypeError(f"a function to compute again, not a {type(function).__name__}")

    @functools.wraps(function)
    def again(*arguments: Any, **named: Any) -> Any:
        if not may_have_parts():
            return function(*arguments, **named)
        leaves: list[Any] = []
        form = flatten((arguments, named), leaves)
        given = [node_of(leaf) for leaf in leaves if not is_number(leaf)]
        own = [Node.argument_like(node) for node in given]
        forms: list[Any] = []

        def made() -> list[Node]:
            rest = iter(own)
            positional, by_name = unflatten(form, [leaf if is_number(leaf) else Array(next(rest)) for leaf in leaves])
            results: list[Any] = []
            forms.append(flatten(function(*positional, **by_name), results))
            return [node_of(result) for result in results]

        body = Body(made, own)
        block = _Block(body, [*given, *body.outside], f"a function of einrel.checkpoint in {line_of_user()}")
        return unflatten(forms[0], [Array(node) for node in block.placed()])

    return again
