"""Loops: a step that is traced once, and runs many times as a program with state."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array, identity, node_of
from ._creation import zeros
from ._dtypes import BY_NAME, is_floating
from ._errors import compute_nodes, run_program
from ._formula import Made, apply, recorded
from ._functions import astype
from ._indexing import take
from ._jit import is_within_transformation, within_transformation
from ._joining import stack
from ._lines import line_of_user
from ._native import Node, RunOptions, State, gradient_graph
from ._numbers import Course, is_number
from ._trees import flatten, places, unflatten

_MOST_UNROLLED: Final = 10_000  # steps that become parts of a graph
_NO_END: Final = 2**62  # steps
_KEPT_BYTES: Final = 2**16  # of what steps give that a run keeps: each step writes all of it
_LONGEST_BLOCK: Final = 256  # steps of such a run

Step = Callable[[Any, Any], tuple[Any, Any]]  # of what goes on and the number of the step: what goes on, what it gives


@lru_cache(maxsize=128)
def _program(text: str) -> _native.Program:
    return _native.Program(text, {}, "<loop>")


def _named(letter: str, nodes: Sequence[Node]) -> dict[str, Node]:
    return {f"{letter}{j}": node for j, node in enumerate(nodes)}


class _Carried:
    """What goes on from step to step: its form, and arrays of the type that each keeps."""

    def __init__(self, function: Callable[..., Any], value: Any) -> None:
        self._function = function
        leaves: list[Any] = []
        self._form = flatten(value, leaves)
        self._places = list(places(self._form))
        self.nodes = [node_of(leaf) for leaf in leaves]
        if not self.nodes:
            raise TypeError("a loop that carries no array from step to step")

    def built(self, nodes: Sequence[Node]) -> Any:
        """It, of these arrays."""
        return unflatten(self._form, [Array(node) for node in nodes])

    def of(self, value: Any) -> list[Node]:
        """The arrays of what a step gave. Raises where they are others than those that it was given."""
        leaves: list[Any] = []
        found = list(places(flatten(value, leaves)))
        if found != self._places:
            raise TypeError(
                f"{self._function} gave arrays at {found}, but was given them at {self._places}: what goes on from "
                "step to step keeps its form"
            )
        return [self._one(*it) for it in zip(leaves, self.nodes, found)]

    def _one(self, leaf: Any, before: Node, place: str) -> Node:
        dtype, shape = BY_NAME[before.type.dtype], before.type.shape
        array = astype(leaf, dtype, copy=False) if is_number(leaf) else Array(node_of(leaf))
        if (array.dtype, array.shape) != (dtype, shape):
            raise TypeError(
                f"{self._function} gave {array.dtype} of shape {array.shape} in place of {dtype} of shape {shape}"
                f"{place and ' at ' + place}: what goes on from step to step keeps its type and shape"
            )
        return array._node


def _truth(value: Any) -> Array:
    array = Array(node_of(value))
    if array.shape != ():
        raise TypeError(f"a condition of shape {array.shape}: it is one truth value")
    return array != 0


class _Loop:
    """A step as a program with state: c0, c1, ... go on, n0, n1, ... after them, k0, k1, ... are from outside."""

    def __init__(self, step: Step, carried: _Carried, condition: Callable[[Any], Any] | None, is_back: bool) -> None:
        self._carried = carried
        self._is_back = is_back
        self._course = Course()
        number = Node.argument(node_of(np.int64(0)).type)
        before = [Node.argument(node.type) for node in carried.nodes]
        made: list[Made] = []
        with within_transformation(), recorded(made):
            goes_on, gives = step(carried.built(before), self._course.argument(number))
            after = carried.of(goes_on)
            leaves: list[Any] = []
            self._form = flatten(gives, leaves)
            given = [node_of(leaf) for leaf in leaves]
            truth = [] if condition is None else [_truth(condition(carried.built(after)))._node]
            results = _named("n", after) | _named("y", given) | _named("go", truth)
            results = {name: apply(identity(node.type), node) for name, node in results.items()}
        self._given = given
        around = _outside(made, [number, *before])
        compute_nodes([node for node in around if not node.is_leaf])
        self._outside = _reached(results, _named("k", around))
        self._has_number = bool(_reached(results, {"i": number}))
        inputs = self._outside | _reached(results, _named("c", before) | {"i": number})
        text = _native.program_text(results, inputs)
        text = _with_state(text, carried.nodes, is_back) + ("until go0[] == 0\n" if truth else "")
        self._block = min(max(_KEPT_BYTES // max(sum(map(_bytes_in, given)), 1), 1), _LONGEST_BLOCK)
        self._text = text + "".join(_collecting(j, node, self._block) for j, node in enumerate(given))

    def run(self, first: int, steps: int) -> tuple[Any, Any]:
        """What goes on after so many steps, the first of which has that number, and what all gave, side by side.

        Fewer steps are done where the condition does not hold.
        """
        nodes = self._carried.nodes
        columns: list[list[Any]] = [[] for _ in self._given]
        block = self._block if columns else steps
        for done in range(0, steps, block):
            count = min(block, steps - done)
            outputs, after = self._run_block(first - done if self._is_back else first + done, count, nodes)
            nodes = [outputs[name] for name in _named("n", nodes)]
            for j, column in enumerate(columns):
                column.append(np.asarray(Array(after.tensors[f"Y{j}"]))[:count])
        together = [np.concatenate(column)[:: -1 if self._is_back else 1] for column in columns]
        gave = unflatten(self._form, [Array(self._left(node_of(column))) for column in together])
        return self._carried.built([self._left(node) for node in nodes]), gave

    def _run_block(self, first: int, steps: int, nodes: Sequence[Node]) -> tuple[dict[str, Node], State]:
        inputs = _named("b", nodes) | self._outside
        if self._has_number:
            inputs["i0"] = node_of(np.int64(first))
        for j, node in enumerate(self._given):
            inputs[f"z{j}"] = zeros((self._block, *node.type.shape), dtype=BY_NAME[node.type.dtype])._node
        compute_nodes([node for node in inputs.values() if not node.is_leaf])
        return run_program(_program(self._text), inputs, RunOptions(steps=steps))

    def check(self, *numbers: int) -> None:
        """Raises what Python would of the numbers of steps."""
        for number in numbers:
            self._course.check([number])

    def _left(self, node: Node) -> Node:
        """The same elements, which know that no gradient goes through them."""
        if not is_floating(BY_NAME[node.type.dtype]):
            return node
        made_of = [*self._carried.nodes, *self._outside.values()]
        return Node.made_of(node, None, made_of, f"computed by a loop in {line_of_user()}")


def _outside(made: Sequence[Made], own: Sequence[Node]) -> list[Node]:
    """What a step takes from around it."""
    inside = {*own, *(node for one in made for node in one.results)}
    return list(dict.fromkeys(node for one in made for node in one.operands if node not in inside))


def _reached(results: dict[str, Node], nodes: dict[str, Node]) -> dict[str, Node]:
    """Those of which results are made."""
    reached = gradient_graph(list(results.values()), list(nodes.values()))[2]
    return {name: node for (name, node), is_reached in zip(nodes.items(), reached) if is_reached}


def _bytes_in(node: Node) -> int:
    return Array(node).nbytes


def _collecting(j: int, node: Node, count: int) -> str:
    """Statements that keep what steps give, each at its place among so many."""
    shape = node.type.shape
    labels = [f"y{j}_{d}" for d in range(len(shape))]
    extents = " ".join(f"{name}={extent}" for name, extent in zip([f"t{j}_", *labels], [count, *shape]))
    own, all_ = f"[{','.join(labels)}]", f"[{','.join([f't{j}_', *labels])}]"
    return (
        f"dims {extents}\ninput z{j}{all_} : {node.type.dtype}\nstate Y{j}{all_} = z{j}{all_}\n"
        f"next Y{j}{all_} = where(t{j}_ == iteration, y{j}{own}, Y{j}{all_})\n"
    )


def _with_state(text: str, carried: Sequence[Node], is_back: bool) -> str:
    """The program of a step as one with state, which begins with the inputs b0, b1, ... and counts from i0."""
    extents: list[str] = []
    for j, node in enumerate(carried):
        labels = [f"d{j}_{d}" for d in range(len(node.type.shape))]
        extents += [f"{name}={extent}" for name, extent in zip(labels, node.type.shape)]
        own = f"[{','.join(labels)}]"
        state = f"input b{j}{own} : {node.type.dtype}\nstate c{j}{own} = b{j}{own}"
        text, count = re.subn(rf"^input c{j}\[.*$", state, text, flags=re.MULTILINE)
        text += ("" if count else state + "\n") + f"next c{j}{own} = n{j}{own}\n"
    sign = "-" if is_back else "+"
    text = re.sub(r"^input i\[\].*$", f"input i0[] : i64\ni[] = i0[] {sign} iteration", text, flags=re.MULTILINE)
    dims = f"dims {' '.join(extents)}\n" if extents else ""
    return dims + text


def _check_unrolled(name: str, steps: int) -> None:
    if steps > _MOST_UNROLLED:
        raise _native.ProgramError(
            f"einrel.{name} of {steps} steps in a function that is traced or differentiated: each step becomes a part "
            f"of the program, of which there are {_MOST_UNROLLED} at most; outside of such a function all "
            "steps are one program"
        )


def _are_traced(nodes: Sequence[Node]) -> bool:
    return any(node.is_traced for node in nodes)


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """What body(i, value) makes of a value, for i from `lower` up to `upper`: each step takes what the one before gave.

    The value is an array, or several in containers, which keep their types and shapes. The body is traced once, and all
    steps run as one program with state. In a function that is traced or differentiated each step becomes a part of
    that.

    >>> fori_loop(0, 10, lambda i, x: x + i, 0).tolist()
    45
    """
    first, steps = operator.index(lower), max(operator.index(upper) - operator.index(lower), 0)
    carried = _Carried(body, init)
    if is_within_transformation():
        _check_unrolled("fori_loop", steps)
        nodes = carried.nodes
        for i in range(first, first + steps):
            nodes = carried.of(body(i, carried.built(nodes)))
        return carried.built(nodes)
    if steps == 0:
        return carried.built(carried.nodes)
    compute_nodes([node for node in carried.nodes if not node.is_leaf])
    loop = _Loop(lambda value, i: (body(i, value), None), carried, None, False)
    loop.check(first, first + steps - 1)
    return loop.run(first, steps)[0]


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """What body(value) makes of a value, again and again while condition(value) holds.

    As `fori_loop`; but in a function that is traced nobody knows how many steps there are, so that there it is an
    error.

    >>> while_loop(lambda x: x < 100, lambda x: x * 3, 1).tolist()
    243
    """
    carried = _Carried(body, init)
    nodes = carried.nodes
    if is_within_transformation():
        steps = 0
        while True:
            goes_on = _truth(condition(carried.built(nodes)))
            if _are_traced([goes_on._node]):
                raise _native.ProgramError(
                    "einrel.while_loop in a function that is traced: elements say how many steps there are, and are "
                    "not known yet; call it outside, where it is a program by itself, or use einrel.fori_loop and "
                    "einrel.where"
                )
            if not bool(goes_on):
                return carried.built(nodes)
            steps += 1
            _check_unrolled("while_loop", steps)
            nodes = carried.of(body(carried.built(nodes)))
    compute_nodes([node for node in nodes if not node.is_leaf])
    if not bool(_truth(condition(carried.built(nodes)))):
        return carried.built(nodes)
    loop = _Loop(lambda value, _: (body(value), None), carried, condition, False)
    return loop.run(0, _NO_END)[0]


def scan(
    function: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """What goes on after all steps, and what each step gives: function(value, x) gives both, of each x of `xs`.

    `xs` are arrays whose first dimension is that of the steps, perhaps in containers; without them `length` says how
    many steps there are. With `reverse` the last x comes first. What steps give stands side by side, in the order of
    `xs`. As for `fori_loop`, the value keeps its type and shape.

    >>> total, sums = scan(lambda total, x: (total + x, total + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> total.tolist(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    leaves: list[Any] = []
    form = flatten(xs, leaves)
    arrays = [Array(node_of(leaf)) for leaf in leaves]
    counts = {array.shape[0] if array.shape else None for array in arrays} | (
        {int(length)} if length is not None else set()
    )
    if len(counts) != 1 or None in counts:
        raise ValueError(
            f"einrel.scan over {sorted(map(str, counts)) or 'nothing'} steps: the first dimensions of xs say one number"
        )
    (steps,) = counts
    assert steps is not None
    carried = _Carried(function, init)

    def of(value: Any, x: list[Array]) -> tuple[Any, Any]:
        both = function(value, unflatten(form, x))
        if not isinstance(both, tuple) or len(both) != 2:
            kind = type(both).__name__
            raise TypeError(f"{function} gave a {kind}: a step of einrel.scan gives what goes on, and a result")
        return both

    def step(value: Any, i: Any) -> tuple[Any, Any]:
        return of(value, [take(array, i, axis=0) for array in arrays])

    order = range(steps)[::-1] if reverse else range(steps)
    if steps == 0:
        value = carried.built(carried.nodes)
        return value, _of_no_steps(of(value, [zeros(x.shape[1:], dtype=x.dtype) for x in arrays])[1])
    if is_within_transformation():
        return _unrolled_scan(step, carried, order)
    compute_nodes([node for node in carried.nodes if not node.is_leaf])
    loop = _Loop(step, carried, None, reverse)
    loop.check(order[0], order[-1])
    return loop.run(order[0], steps)


def _of_no_steps(gives: Any) -> Any:
    """What no steps give, of what one would."""
    leaves: list[Any] = []
    form = flatten(gives, leaves)
    arrays = [Array(node_of(leaf)) for leaf in leaves]
    return unflatten(form, [zeros((0, *array.shape), dtype=array.dtype) for array in arrays])


def _unrolled_scan(step: Step, carried: _Carried, order: range) -> tuple[Any, Any]:
    _check_unrolled("scan", len(order))
    nodes, rows, form = carried.nodes, [], None
    for i in order:
        after, gives = step(carried.built(nodes), i)
        nodes = carried.of(after)
        leaves: list[Any] = []
        form = flatten(gives, leaves)
        rows.append([Array(node_of(leaf)) for leaf in leaves])
    columns = zip(*rows[:: order.step])
    return carried.built(nodes), unflatten(form, [stack(list(column)) for column in columns])
