"""Steps of loops: traced once, and as programs with state."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array, node_of
from ._compute import array_options
from ._creation import zeros
from ._dtypes import BY_NAME
from ._errors import compute_nodes, run_steps
from ._functions import astype
from ._indexing import take
from ._names import all_names, name_of_place, names_of_places
from ._native import Node, State, gradient_graph
from ._numbers import Course, is_number
from ._parts import Body, same, within_transformation
from ._trees import flatten, places, unflatten

_KEPT_BYTES: Final = 2**16  # of what steps give that a run keeps: each step writes all of it
_LONGEST_BLOCK: Final = 256  # steps of such a run
_COLLECTED: Final = (("z", "empty"), ("Y", "all"))  # what begins for what all steps give, and that

# Of what goes on, the number of the step and its xs: what goes on, and what the step gives.
Step = Callable[[Any, Any, Any], tuple[Any, Any]]


@lru_cache(maxsize=128)
def _program(text: str) -> _native.Program:
    return _native.Program(text, {}, "<expressions>")  # nobody wrote it: plans and errors say no lines of it


def _named(letter: str, nodes: Sequence[Node]) -> dict[str, Node]:
    return {f"{letter}{j}": node for j, node in enumerate(nodes)}


class Carried:
    """What goes on from step to step: its form, and arrays of the type that each keeps."""

    def __init__(self, function: Callable[..., Any], value: Any, variable: str = "") -> None:
        self._function = function
        leaves: list[Any] = []
        self._form = flatten(value, leaves, has_truths=True)
        self._places = list(places(self._form))
        self._variable = variable
        self.is_empty = not self._places
        self.nodes = [node_of(leaf) for leaf in leaves] or [_nothing()]

    def names(self) -> list[str]:
        """What the function calls its arrays; nothing, where that is not known."""
        said = [name_of_place(self._variable, place) for place in self._places] if self._variable else []
        return names_of_places(said) or [""] * len(self.nodes)

    def beginning(self, nodes: Sequence[Node]) -> Carried:
        """The same, of these arrays at first."""
        other = copy.copy(self)
        other.nodes = list(nodes)
        return other

    def built(self, nodes: Sequence[Node]) -> Any:
        """It, of these arrays."""
        return unflatten(self._form, [Array(node) for node in nodes])

    def of(self, value: Any) -> list[Node]:
        """The arrays of what a step gave. Raises where they are others than those that it was given."""
        leaves: list[Any] = []
        found = list(places(flatten(value, leaves, has_truths=True)))
        if found != self._places:
            is_attribute = any("." in place for place in set(found).symmetric_difference(self._places))
            raise TypeError(
                f"{self._function} gave arrays at {found}, but was given them at {self._places}: what goes on from "
                "step to step keeps its form"
                + ("; whole numbers and bools in attributes are no arrays: give einrel.asarray(...)" * is_attribute)
            )
        return [self._one(*it) for it in zip(leaves, self.nodes, found)] or [_nothing()]

    def _one(self, leaf: Any, before: Node, place: str) -> Node:
        dtype, shape = BY_NAME[before.type.dtype], before.type.shape
        array = astype(leaf, dtype, copy=False) if is_number(leaf) else Array(node_of(leaf))
        if (array.dtype, array.shape) != (dtype, shape):
            raise TypeError(
                f"{self._function} gave {array.dtype} of shape {array.shape} in place of {dtype} of shape {shape}"
                f"{place and ' at ' + place}: what goes on from step to step keeps its type and shape"
            )
        return array._node


def _nothing() -> Node:
    """What goes on where nothing does: a program with state has one."""
    return zeros((), dtype=np.int64)._node


def truth_of(value: Any) -> Array:
    array = Array(node_of(value))
    if array.shape != ():
        raise TypeError(f"a condition of shape {array.shape}: it is one truth value")
    return array != 0


class TracedStep:
    """A step that was traced: what it makes of its number, of what goes on, of its own x, and of arrays around it."""

    def __init__(
        self,
        step: Step,
        carried: Carried,
        xs: Sequence[Node],
        condition: Callable[[Any], Any] | None = None,
        names_of_xs: Sequence[str] | None = None,
    ) -> None:
        self.course = Course()
        self.number = Node.argument(node_of(np.int64(0)).type, "step_number")
        self.before = [Node.argument_like(node) for node in carried.nodes]
        for node, name in zip(self.before, carried.names()):
            node.name = name
        self.rows = [Node.argument_like(node) for node in xs]
        with within_transformation():
            x = [take(Array(row), Array(self.number), axis=0)._node for row in self.rows]
            self.kept = [same(node) for node in self.before]
        for node, name in zip(x, names_of_xs or ()):
            node.name = name
        groups: list[Any] = []

        def made() -> list[Node]:
            own = carried.built(self.before), self.course.argument(self.number), [Array(node) for node in x]
            goes_on, gives = step(*own)
            after = carried.of(goes_on)
            leaves: list[Any] = []
            self.form = flatten(gives, leaves, has_truths=True)
            truth = [] if condition is None else [truth_of(condition(carried.built(after)))._node]
            groups.extend([len(after), len(leaves)])
            return [same(node) for node in [*after, *map(node_of, leaves), *truth]]

        self.body = Body(made, [self.number, *self.before, *x])
        self.around = self.body.around
        self.after, self.gives, self.truth = split(self.body.results, groups)

    def of(
        self, number: Node, before: Sequence[Node], x: Sequence[Node], around: Sequence[Node]
    ) -> tuple[list[Node], list[Node]]:
        """What goes on after a step of these, and what it gives."""
        after, gives, _ = split(self.body.of([number, *before, *x], around), [len(self.after), len(self.gives)])
        return after, gives


def split(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """As many as counted, one group after the other, and the rest."""
    rest = iter(values)
    return [*(list(islice(rest, count)) for count in counts), list(rest)]


class LoopProgram:
    """A step as a program with state: c0, c1, ... go on, n0, n1, ... after them, x0, x1, ... have an x for each step.

    k0, k1, ... are from around the loop, y0, y1, ... what a step gives, go0 whether there is another one.
    """

    def __init__(self, step: TracedStep, keeps: bool, is_back: bool, title: str) -> None:
        self._step = step
        self._is_back = is_back
        self._title = title
        self._gives = [*step.gives, *(step.kept if keeps else [])]
        self._results = _named("n", step.after) | _named("y", self._gives) | _named("go", step.truth)
        given = _named("k", step.around) | _named("x", step.rows) | _named("c", step.before) | {"i": step.number}
        self._inputs = _reached(self._results, given)
        self._block = min(max(_KEPT_BYTES // max(sum(map(_bytes_in, self._gives)), 1), 1), _LONGEST_BLOCK)
        self._text, names = self._written({}, [])
        self._nodes = dict(names) | _named("c", step.before) | _named("b", step.before) | _named("Y", self._gives)

    def _written(
        self, called: Mapping[str, str], inside: Sequence[tuple[str, Node]]
    ) -> tuple[str, list[tuple[str, Node]]]:
        """The program in the language, where names are other ones, and so are those of what is inside."""

        def own(name: str) -> str:
            return called.get(name, name)

        results = [(own(name), node) for name, node in self._results.items()]
        inputs = [(own(name), node) for name, node in self._inputs.items()]
        text, names = _native.program_text(results, inputs, inside)
        text = _with_state(text, self._step.before, self._is_back, own)
        text += f"until {own('go0')}[] == 0\n" if self._step.truth else ""
        return text + "".join(_collecting(j, node, self._block, own) for j, node in enumerate(self._gives)), names

    @cached_property
    def _called(self) -> tuple[dict[str, str], list[tuple[str, Node]]]:
        """What the user calls arrays of a step, by their names in the program, and those that have none there."""
        inside = [node for _, node in _native.names_in_program(list(self._results.values()))]
        names = all_names([*self._inputs.values(), *self._step.before, *inside])
        called = {name: names.of[node] for name, node in (self._inputs | _named("c", self._step.before)).items()}
        count = len(self._step.gives)
        called |= {f"n{j}": names.free(f"new_{called[f'c{j}']}") for j in range(len(self._step.before))}
        called |= {f"b{j}": names.free(f"first_{called[f'c{j}']}") for j in range(len(self._step.before))}
        for j in range(len(self._gives)):
            called[f"y{j}"] = names.free("result" if j < count else f"old_{called[f'c{j - count}']}")
            called |= {f"{letter}{j}": names.free(f"{word}_{called[f'y{j}']}") for letter, word in _COLLECTED}
        called |= {name: names.free(name) for name in ("first_step", "goes_on")}
        return called | {"i0": called["first_step"], "go0": called["goes_on"]}, [
            (name, node) for node, name in names.of.items()
        ]

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
        fixed = self.fixed(xs, around)
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

    def fixed(self, xs: Sequence[Node], around: Sequence[Node]) -> dict[str, Node]:
        """The inputs that are the same in all steps."""
        return {name: node for name, node in (_named("k", around) | _named("x", xs)).items() if name in self._inputs}

    def told(self) -> _native.Program:
        """The program, of which each step is a run, with the user's names."""
        return _program(self._written(*self._called)[0])

    def told_inputs(self, xs: Sequence[Node], around: Sequence[Node]) -> dict[str, Node]:
        """What `fixed` gives, by the user's names."""
        called, _ = self._called
        return {called[name]: node for name, node in self.fixed(xs, around).items()}

    def _run_block(
        self, first: int, steps: int, nodes: Sequence[Node], fixed: dict[str, Node], options: Mapping[str, Any]
    ) -> tuple[dict[str, Node], State]:
        inputs = _named("b", nodes) | fixed
        if "i" in self._inputs:
            inputs["i0"] = node_of(np.int64(first))
        for j, node in enumerate(self._gives):
            inputs[f"z{j}"] = zeros((self._block, *node.type.shape), dtype=BY_NAME[node.type.dtype])._node
        compute_nodes([node for node in inputs.values() if not node.is_leaf])
        return run_steps(_program(self._text), inputs, array_options(steps=steps, **options), self._title, self._nodes)


def _reached(results: dict[str, Node], nodes: dict[str, Node]) -> dict[str, Node]:
    """Those of which results are made."""
    reached = gradient_graph(list(results.values()), list(nodes.values()))[2]
    return {name: node for (name, node), is_reached in zip(nodes.items(), reached) if is_reached}


def _bytes_in(node: Node) -> int:
    return Array(node).nbytes


def _collecting(j: int, node: Node, count: int, own: Callable[[str], str]) -> str:
    """Statements that keep what steps give, each at its place among so many."""
    shape = node.type.shape
    labels = [f"y{j}_{d}" for d in range(len(shape))]
    extents = " ".join(f"{name}={extent}" for name, extent in zip([f"t{j}_", *labels], [count, *shape]))
    one, all_ = f"[{','.join(labels)}]", f"[{','.join([f't{j}_', *labels])}]"
    y, z, all_y = own(f"y{j}"), own(f"z{j}"), own(f"Y{j}")
    return (
        f"dims {extents}\ninput {z}{all_} : {node.type.dtype}\nstate {all_y}{all_} = {z}{all_}\n"
        f"next {all_y}{all_} = where(t{j}_ == iteration, {y}{one}, {all_y}{all_})\n"
    )


def _with_state(text: str, carried: Sequence[Node], is_back: bool, own: Callable[[str], str]) -> str:
    """The program of a step as one with state, which begins with the inputs b0, b1, ... and counts from i0."""
    extents: list[str] = []
    for j, node in enumerate(carried):
        labels = [f"d{j}_{d}" for d in range(len(node.type.shape))]
        extents += [f"{name}={extent}" for name, extent in zip(labels, node.type.shape)]
        at = f"[{','.join(labels)}]"
        c, b, n = own(f"c{j}"), own(f"b{j}"), own(f"n{j}")
        state = f"input {b}{at} : {node.type.dtype}\nstate {c}{at} = {b}{at}"
        text, count = re.subn(rf"^input {c}\[.*$", state, text, flags=re.MULTILINE)
        text += ("" if count else state + "\n") + f"next {c}{at} = {n}{at}\n"
    i, i0, sign = own("i"), own("i0"), "-" if is_back else "+"
    begun = f"input {i0}[] : i64\n{i}[] = {i0}[] {sign} iteration"
    text = re.sub(rf"^input {i}\[\].*$", begun, text, flags=re.MULTILINE)
    dims = f"dims {' '.join(extents)}\n" if extents else ""
    return dims + text
