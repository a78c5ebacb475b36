"""Loops: a step that is traced once, and runs many times as a program with state."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array, node_of
from ._compute import run_options
from ._creation import zeros
from ._dtypes import BY_NAME, is_floating
from ._errors import compute_nodes, run_steps
from ._functions import astype
from ._indexing import take
from ._joining import stack
from ._native import ExplainOptions, Node, State, Type, gradient_graph
from ._numbers import Course, is_number
from ._parts import (
    Body,
    Part,
    are_traced,
    is_within_transformation,
    may_have_parts,
    same,
    within_transformation,
)
from ._transform import apart, slopes_of, total_flow, zeros_like
from ._trees import flatten, places, unflatten

_MOST_UNROLLED: Final = 10_000  # steps that become parts of a graph
_NO_END: Final = 2**62  # steps
_KEPT_BYTES: Final = 2**16  # of what steps give that a run keeps: each step writes all of it
_LONGEST_BLOCK: Final = 256  # steps of such a run

# Of what goes on, the number of the step and its xs: what goes on, and what the step gives.
Step = Callable[[Any, Any, Any], tuple[Any, Any]]


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


class _Step:
    """A step that was traced: what it makes of its number, of what goes on, of its own x, and of arrays around it."""

    def __init__(
        self, step: Step, carried: _Carried, xs: Sequence[Node], condition: Callable[[Any], Any] | None = None
    ) -> None:
        self.course = Course()
        self.number = Node.argument(node_of(np.int64(0)).type)
        self.before = [Node.argument(node.type) for node in carried.nodes]
        self.rows = [Node.argument(node.type) for node in xs]
        with within_transformation():
            x = [take(Array(row), Array(self.number), axis=0)._node for row in self.rows]
            self.kept = [same(node) for node in self.before]
        groups: list[Any] = []

        def made() -> list[Node]:
            own = carried.built(self.before), self.course.argument(self.number), [Array(node) for node in x]
            goes_on, gives = step(*own)
            after = carried.of(goes_on)
            leaves: list[Any] = []
            self.form = flatten(gives, leaves)
            truth = [] if condition is None else [_truth(condition(carried.built(after)))._node]
            groups.extend([len(after), len(leaves)])
            return [same(node) for node in [*after, *map(node_of, leaves), *truth]]

        self._body = Body(made, [self.number, *self.before, *x])
        self.outside, self.around = self._body.outside, self._body.around
        self.after, self.gives, self.truth = _split(self._body.results, groups)

    def of(
        self, number: Node, before: Sequence[Node], x: Sequence[Node], around: Sequence[Node]
    ) -> tuple[list[Node], list[Node]]:
        """What goes on after a step of these, and what it gives."""
        after, gives, _ = _split(self._body.of([number, *before, *x], around), [len(self.after), len(self.gives)])
        return after, gives


def _split(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """As many as counted, one group after the other, and the rest."""
    rest = iter(values)
    return [*(list(islice(rest, count)) for count in counts), list(rest)]


class _LoopProgram:
    """A step as a program with state: c0, c1, ... go on, n0, n1, ... after them, x0, x1, ... have an x for each step.

    k0, k1, ... are from around the loop, y0, y1, ... what a step gives, go0 whether there is another one.
    """

    def __init__(self, step: _Step, keeps: bool, is_back: bool, title: str) -> None:
        self._is_back = is_back
        self._title = title
        self._gives = [*step.gives, *(step.kept if keeps else [])]
        results = _named("n", step.after) | _named("y", self._gives) | _named("go", step.truth)
        inputs = _reached(
            results,
            _named("k", step.around) | _named("x", step.rows) | _named("c", step.before) | {"i": step.number},
        )
        self._inputs = inputs.keys()
        text = _with_state(_native.program_text(results, inputs), step.before, is_back)
        text += "until go0[] == 0\n" if step.truth else ""
        self._block = min(max(_KEPT_BYTES // max(sum(map(_bytes_in, self._gives)), 1), 1), _LONGEST_BLOCK)
        self.text = text + "".join(_collecting(j, node, self._block) for j, node in enumerate(self._gives))

    def run(
        self,
        steps: int,
        nodes: Sequence[Node],
        xs: Sequence[Node],
        around: Sequence[Node],
        options: Mapping[str, Any],
    ) -> list[Node]:
        """What goes on after so many steps, and what all gave, side by side.

        Fewer steps are done where the condition does not hold.
        """
        fixed = {name: node for name, node in (_named("k", around) | _named("x", xs)).items() if name in self._inputs}
        columns = [np.empty((steps, *node.type.shape), BY_NAME[node.type.dtype]) for node in self._gives]
        block = self._block if columns else steps
        for done in range(0, steps, block):
            count = min(block, steps - done)
            first = steps - 1 - done if self._is_back else done
            outputs, after = self._run_block(first, count, nodes, fixed, options)
            nodes = [outputs[name] for name in _named("n", nodes)]
            for j, column in enumerate(columns):
                rows = np.asarray(Array(after.tensors[f"Y{j}"]))[:count]
                if self._is_back:
                    column[first - count + 1 : first + 1] = rows[::-1]
                else:
                    column[first : first + count] = rows
        return [*nodes, *map(node_of, columns)]

    def _run_block(
        self, first: int, steps: int, nodes: Sequence[Node], fixed: dict[str, Node], options: Mapping[str, Any]
    ) -> tuple[dict[str, Node], State]:
        inputs = _named("b", nodes) | fixed
        if "i" in self._inputs:
            inputs["i0"] = node_of(np.int64(first))
        for j, node in enumerate(self._gives):
            inputs[f"z{j}"] = zeros((self._block, *node.type.shape), dtype=BY_NAME[node.type.dtype])._node
        compute_nodes([node for node in inputs.values() if not node.is_leaf])
        return run_steps(_program(self.text), inputs, run_options(steps=steps, **options), self._title)


class _Loop(Part):
    """Many steps: of what goes on, of xs, and of what is around it, it gives what goes on at last and what all gave.

    For gradients it also keeps what went on before each step.
    """

    def __init__(
        self,
        step: _Step,
        carried: _Carried,
        xs: Sequence[Node],
        steps: int,
        *,
        is_back: bool = False,
        goes_on: Array | None = None,
    ) -> None:
        begins = [] if goes_on is None else [goes_on._node]
        super().__init__([*carried.nodes, *xs, *step.outside, *begins], "a loop")
        self._step = step
        self._carried = carried
        self._xs = list(xs)
        self._steps = steps
        self._is_back = is_back
        self._programs: dict[bool, _LoopProgram] = {}
        self._has_condition = goes_on is not None or bool(step.truth)
        self._keeps = self.has_variables and not self._has_condition and not are_traced(self.operands)
        step.course.check([0])
        step.course.check([steps - 1])

    def results_in_form(self) -> tuple[Any, Any]:
        """Its results, as the function gave them: what goes on at last, and what all steps gave."""
        results = [Array(node) for node in self.placed()]
        count = len(self._carried.nodes)
        gave = unflatten(self._step.form, results[count : count + len(self._step.gives)])
        return self._carried.built([array._node for array in results[:count]]), gave

    def types(self) -> list[Type]:
        """Of what goes on, and of what all steps give."""
        kept = self._step.kept if self._keeps else []
        return [*(node.type for node in self._carried.nodes), *map(self._column, [*self._step.gives, *kept])]

    def _column(self, node: Node) -> Type:
        return zeros((self._steps, *node.type.shape), dtype=BY_NAME[node.type.dtype])._node.type

    def run(self, operands: Sequence[Node], options: Mapping[str, Any]) -> list[Node]:
        """See `Part`."""
        compute_nodes([node for node in operands if not node.is_leaf])
        carried, xs, around, begins = self._groups(operands)
        if not all(bool(Array(node)) for node in begins):
            nodes = [same(node) for node in carried]
            compute_nodes(nodes, run_options(**options))
            return nodes
        return self._program().run(self._steps, carried, xs, around, options)

    def explain(self, how: ExplainOptions) -> str:
        """See `Part`."""
        return _program(self._program().text).explain(how)

    def slopes(self, flows: Sequence[Node | None], wanted: Sequence[bool]) -> list[Node | None]:
        """A loop over the steps in the other order, each of which is computed once more for its own gradient."""
        if self._has_condition:
            raise _native.ProgramError(
                f"a gradient through what was computed by {self.title}: while_loop in a function that is traced does "
                "not know how many steps there are; use einrel.fori_loop or einrel.scan"
            )
        return _Backward(self._step, self._groups(self.operands), self._groups(wanted), flows).slopes(
            self._before_steps(), self._steps, self._is_back
        )

    def _program(self) -> _LoopProgram:
        if self._keeps not in self._programs:
            self._programs[self._keeps] = _LoopProgram(self._step, self._keeps, self._is_back, self.title)
        return self._programs[self._keeps]

    def _groups(self, of_operands: Sequence[Any]) -> list[list[Any]]:
        """What belongs to operands: to those that go on, the xs, those around, and to whether it begins."""
        counts = [len(group) for group in (self._carried.nodes, self._xs, self._step.outside)]
        return _split(of_operands, counts)

    def _before_steps(self) -> list[Node]:
        """What went on before each step."""
        if not self._keeps:
            self._keeps = True
            known = len(self.results)
            self.add(
                [Node.argument(type) for type in self.types()[known:]]
                if are_traced(self.operands)
                else self.run(self.operands, {})[known:]
            )
        return self.results[-len(self._carried.nodes) :]


class _Backward:
    """The gradient of a loop: what flows back through its steps, to those of its operands that are wanted."""

    def __init__(
        self,
        step: _Step,
        operands: Sequence[Sequence[Node]],
        wanted: Sequence[Sequence[bool]],
        flows: Sequence[Node | None],
    ) -> None:
        self._step = step
        (carried, self._xs, self._around, _) = operands
        self._on = [j for j, node in enumerate(carried) if is_floating(BY_NAME[node.type.dtype])]
        self._by_x = [j for j, is_wanted in enumerate(wanted[1]) if is_wanted]
        self._by_around = [j for j, is_wanted in enumerate(wanted[2]) if is_wanted]
        count = len(carried)
        self._into = [flows[j] or zeros_like(carried[j]) for j in self._on]
        gives = [*step.gives, *step.kept]
        self._given = [j for j in range(len(gives)) if count + j < len(flows) and flows[count + j] is not None]
        self._into_given = [node for node in flows[count:] if node is not None]
        self._counts = [count, len(self._xs), len(self._around)]

    def slopes(self, before: Sequence[Node], steps: int, is_back: bool) -> list[Node | None]:
        """Of all operands of the loop, where `before` went on before its steps."""
        sums = [zeros_like(self._around[j]) for j in self._by_around]
        rest = [] if self._into or sums else [0.0]  # a loop carries something
        carried = _Carried(self._back, ([Array(node) for node in self._into], [Array(node) for node in sums], rest))
        xs = [*before, *self._xs, *self._into_given]
        loop = _Loop(_Step(self._back, carried, xs), carried, xs, steps, is_back=not is_back)
        (on, around, _), by_x = loop.results_in_form()
        into_carried, into_x, into_around = ([None] * count for count in self._counts)
        for which, nodes, found in (
            (self._on, into_carried, on),
            (self._by_x, into_x, by_x),
            (self._by_around, into_around, around),
        ):
            for place, slope in zip(which, found):
                nodes[place] = slope._node
        return [*into_carried, *into_x, *into_around]

    def _back(self, value: Any, number: Array, rows: Sequence[Array]) -> tuple[Any, Any]:
        """One step back."""
        step = self._step
        into, sums, rest = value
        nodes = [apart(row._node) for row in rows]
        before, x = nodes[: self._counts[0]], nodes[self._counts[0] : sum(self._counts[:2])]
        into_given = [Array(node) for node in nodes[sum(self._counts[:2]) :]]
        around = [apart(node) if j in self._by_around else node for j, node in enumerate(self._around)]
        after, gives = step.of(node_of(number), before, x, around)
        gives += before
        results = [*(after[j] for j in self._on), *(gives[j] for j in self._given)]
        by = [*(before[j] for j in self._on), *(x[j] for j in self._by_x), *(around[j] for j in self._by_around)]
        total = total_flow(zip(results, [*(flow._node for flow in into), *(flow._node for flow in into_given)]))
        slopes = iter([Array(node) for node in slopes_of(total, by)])
        on = [next(slopes) for _ in self._on]
        by_x = [next(slopes) for _ in self._by_x]
        return (on, [one + next(slopes) for one in sums], rest), by_x


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


def _unrolled(name: str, steps: int) -> range:
    """The steps, of a loop whose steps become parts of a graph."""
    if steps > _MOST_UNROLLED:
        raise _native.ProgramError(
            f"einrel.{name} of {steps} steps in a step of another loop, or in a function of einrel.vmap or einrel.vjp: "
            f"there each step becomes a part of the program, of which there are {_MOST_UNROLLED} at most"
        )
    return range(steps)


def _is_unrolled() -> bool:
    return is_within_transformation() and not may_have_parts()


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """What body(i, value) makes of a value, for i from `lower` up to `upper`: each step takes what the one before gave.

    The value is an array, or several in containers, which keep their types and shapes. The body is traced once, and all
    steps run as one program with state, also in a function that is traced or differentiated; the gradient is a loop
    over the steps in the other order. In a step of another loop, and in functions of `vmap`, `jvp`, `vjp` and
    `jacobian`, each step becomes a part of that.

    >>> fori_loop(0, 10, lambda i, x: x + i, 0).tolist()
    45
    """
    first, steps = operator.index(lower), max(operator.index(upper) - operator.index(lower), 0)
    carried = _Carried(body, init)
    if _is_unrolled():
        nodes = carried.nodes
        for i in _unrolled("fori_loop", steps):
            nodes = carried.of(body(first + i, carried.built(nodes)))
        return carried.built(nodes)
    if steps == 0:
        return carried.built(carried.nodes)
    step = _Step(lambda value, i, _: (body(i + first if first else i, value), None), carried, [])
    return _Loop(step, carried, [], steps).results_in_form()[0]


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """What body(value) makes of a value, again and again while condition(value) holds.

    As `fori_loop`. In a function that is differentiated, but not traced, steps are done one by one, and gradients go
    through them. In one that is traced nobody knows how many there are: there it has no gradient, and where steps would
    become parts of something else it is an error.

    >>> while_loop(lambda x: x < 100, lambda x: x * 3, 1).tolist()
    243
    """
    carried = _Carried(body, init)
    for steps in itertools.count():
        goes_on = _truth(condition(carried.built(carried.nodes)))
        is_awaited = are_traced([goes_on._node, *carried.nodes])
        if is_awaited and not may_have_parts():
            raise _native.ProgramError(
                "einrel.while_loop in a step of another loop, or in a function of einrel.vmap or einrel.vjp: elements "
                "say how many steps there are, and are not known yet; use einrel.fori_loop and einrel.where"
            )
        if is_awaited or not is_within_transformation():
            break
        if not bool(goes_on):
            return carried.built(carried.nodes)
        _unrolled("while_loop", steps + 1)
        carried.nodes = carried.of(body(carried.built(carried.nodes)))
    step = _Step(lambda value, *_: (body(value), None), carried, [], condition)
    return _Loop(step, carried, [], _NO_END, goes_on=goes_on).results_in_form()[0]


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

    if steps == 0:
        value = carried.built(carried.nodes)
        return value, _of_no_steps(of(value, [zeros(x.shape[1:], dtype=x.dtype) for x in arrays])[1])
    if _is_unrolled():
        order = _unrolled("scan", steps)[:: -1 if reverse else 1]
        return _unrolled_scan(lambda value, i: of(value, [take(x, i, axis=0) for x in arrays]), carried, order)
    xs = [array._node for array in arrays]
    step = _Step(lambda value, _, x: of(value, x), carried, xs)
    return _Loop(step, carried, xs, steps, is_back=reverse).results_in_form()


def _of_no_steps(gives: Any) -> Any:
    """What no steps give, of what one would."""
    leaves: list[Any] = []
    form = flatten(gives, leaves)
    arrays = [Array(node_of(leaf)) for leaf in leaves]
    return unflatten(form, [zeros((0, *array.shape), dtype=array.dtype) for array in arrays])


def _unrolled_scan(step: Callable[[Any, int], tuple[Any, Any]], carried: _Carried, order: range) -> tuple[Any, Any]:
    nodes, rows, form = carried.nodes, [], None
    for i in order:
        after, gives = step(carried.built(nodes), i)
        nodes = carried.of(after)
        leaves: list[Any] = []
        form = flatten(gives, leaves)
        rows.append([Array(node_of(leaf)) for leaf in leaves])
    columns = zip(*rows[:: order.step])
    return carried.built(nodes), unflatten(form, [stack(list(column)) for column in columns])
