"""Parts of a function that are programs by themselves, as loops are: what they take and give, and their gradients."""

from __future__ import annotations

import contextlib
import html
import itertools
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from . import _native
from ._array import identity
from ._compute import array_options, explain_options, run_options
from ._dtypes import BY_NAME, is_floating
from ._errors import run_traced
from ._formula import Made, apply, needed, record, recorded, replayed
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
    variables = getattr(_state, "variables", ())
    _state.may_have_parts = may_have_parts and outer is not False
    if outer is None:
        _state.by_result = {}
    try:
        yield
    finally:
        _state.may_have_parts = outer
        _state.variables = variables
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


def differentiate_by(nodes: Iterable[Node]) -> None:
    """Gradients by these are asked for until the transformation ends."""
    _state.variables = (*getattr(_state, "variables", ()), *nodes)


def have_variables(nodes: Sequence[Node]) -> bool:
    """Whether one of them is made of what a gradient is asked for by, if need be through parts."""
    _, _, are_reached, left = _native.gradient_graph(nodes, getattr(_state, "variables", ()))
    return any(are_reached) or any(part.has_variables for part in in_order(node for node, _ in left))


def same(node: Node) -> Node:
    """Another node with the same elements."""
    return apply(identity(node.type), node)


class Body:
    """A function that was traced by itself: what it makes of arguments, and of arrays around it.

    Those are arguments, too, so that it is made of others as well.
    """

    def __init__(self, function: Callable[[], Sequence[Node]], arguments: Sequence[Node]) -> None:
        self.arguments = list(arguments)
        made: list[Made] = []
        with within_transformation(), recorded(made):
            results = list(function())
        made = needed(made, results)
        inside = {*arguments, *(node for one in made for node in one.results)}
        read = [*(node for one in made for node in one.operands), *results]
        self.outside = [node for node in dict.fromkeys(read) if node not in inside]
        self.around = [Node.argument_like(node) for node in self.outside]
        images = dict(zip([*arguments, *self.outside], [*arguments, *self.around]))
        self._made: list[Made] = []
        with within_transformation(), recorded(self._made):
            replayed(made, images)
            found = [images.get(node, node) for node in results]
            self.results = [same(node) if node.is_leaf else node for node in found]

    def of(self, arguments: Sequence[Node], around: Sequence[Node]) -> list[Node]:
        """The results of these."""
        images = dict(zip([*self.arguments, *self.around], [*arguments, *around]))
        replayed(self._made, images)
        return [images.get(node, node) for node in self.results]

    def depending(self, arguments: Sequence[bool], around: Sequence[bool]) -> list[bool]:
        """Which results are made of those of the arguments, and of what is around, that are marked."""
        marked = {node for node, is_one in zip([*self.arguments, *self.around], [*arguments, *around]) if is_one}
        for one in self._made:
            if not marked.isdisjoint(one.operands):
                marked.update(one.results)
        return [node in marked for node in self.results]


class Planned(Protocol):
    """What is planned as one program: a program in the language, or a graph."""

    def labels(self) -> list[str]:
        """What labels are called in its plans."""

    def explain(self, how: ExplainOptions, /) -> str:
        """How it is computed, as text."""

    def plan(self, how: ExplainOptions, /) -> str:
        """The plan as JSON."""

    def html(self, how: ExplainOptions, /) -> str:
        """The plan as a page for a browser."""


@dataclass(frozen=True)
class Graph:
    """A graph as one program, whose arrays are called as in the user's code, or by lines of it."""

    traced: Traced
    results: Sequence[Node]

    def labels(self) -> list[str]:
        """See `Planned`."""
        return self.traced.labels()

    def explain(self, how: ExplainOptions, /) -> str:
        """See `Planned`."""
        return _native.explain(self.results, how, with_lines(self.results))

    def plan(self, how: ExplainOptions, /) -> str:
        """See `Planned`."""
        return _native.plan(self.results, how, with_lines(self.results))

    def html(self, how: ExplainOptions, /) -> str:
        """See `Planned`."""
        return _native.html(self.results, how, with_lines(self.results))


class Part(ABC):
    """What gives arrays of others, its operands, as a program by itself.

    Where an operand waits for arguments of a traced function, so do the results; else these are computed at once.
    """

    def __init__(self, operands: Sequence[Node], title: str) -> None:
        self.operands = list(operands)
        self.results: list[Node] = []
        self.number = next(_numbers)
        self.title = title
        self.has_variables = have_variables(self.operands)

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
    def of_samples(self, operands: Sequence[Node], are_batched: Sequence[bool], count: int) -> list[Node]:
        """What it is of many samples, which are the first dimension of all results, and of marked operands."""

    @abstractmethod
    def __call__(self, *operands: Node) -> list[Node]:
        """The same of other operands."""

    def graph(self) -> list[Node] | None:
        """The results as a graph of the operands, where that is as good as a program by itself."""
        return None

    @abstractmethod
    def program(self) -> Planned:
        """What is computed each time."""

    @abstractmethod
    def inputs(self) -> dict[str, Node]:
        """The operands that each time reads from where they lie, by the names of the program's inputs."""

    @abstractmethod
    def times(self) -> int | None:
        """How often the program is computed; None, where elements say it."""

    def placed(self) -> list[Node]:
        """Its results, as a part of the function that is traced or differentiated."""
        are_awaited = are_traced(self.operands)
        self.add([Node.argument(type) for type in self.types()] if are_awaited else self.run(self.operands, {}))
        record(self, self.operands, self.results)
        return self.results

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


def _forgetting(node: Node) -> Node:
    """The node, which keeps nothing of what it was made of."""
    return Node.made_of(node, None, [], "")


def part_of(result: Node) -> Part | None:
    """What it is a result of."""
    found: Part | None = getattr(_state, "by_result", {}).get(result)
    return found


def in_order(results: Iterable[Node]) -> list[Part]:
    """The parts of which these are results, each after those that it is made of."""
    parts = {part.number: part for part in map(part_of, results) if part is not None}
    return [parts[number] for number in sorted(parts)]


def _needed(wanted: Sequence[Node]) -> list[Part]:
    """All parts that nodes are made of and that wait for arguments, each after those that it is made of."""
    needed: dict[int, Part] = {}
    waiting = list(wanted)
    while waiting:
        further = [
            part
            for part in in_order(_native.leaves(waiting))
            if part.number not in needed and are_traced(part.operands)
        ]
        needed.update({part.number: part for part in further})
        waiting = [node for part in further for node in part.operands]
    return [needed[number] for number in sorted(needed)]


_NO_OPTIONS: Final = run_options()


class Stages:
    """A function that was traced, as programs one after the other: its parts, and what is between them."""

    def __init__(self, wanted: Sequence[Node], arguments: Sequence[Node]) -> None:
        self._arguments = list(arguments)
        self.wanted = list(wanted)
        self.parts = self._by_themselves(_needed(wanted))
        self._between = [self._made_after(count) for count in range(len(self.parts) + 1)]
        self._given = [self._given_to(count) for count in range(len(self._between))]
        self._traced = [Traced(made, given) if made else None for made, given in zip(self._between, self._given)]
        self._read = [self._read_after(count) for count in range(len(self._between))]
        argument = {node: i for i, node in enumerate(self._arguments)}
        result = {node: i for i, node in enumerate(self._between[0])}
        if not self.parts:
            self._places = [argument[node] for node in self._given[0]], [result[node] for node in self.wanted]

    def _by_themselves(self, parts: Sequence[Part]) -> list[Part]:
        """Those that are no graphs; these are put in the place of their results."""
        images: dict[Node, Node] = {}

        def with_graphs(nodes: Sequence[Node]) -> list[Node]:
            return _native.substituted(nodes, list(images), list(images.values())) if images else list(nodes)

        left = []
        for part in parts:
            part.operands = with_graphs(part.operands)
            graph = part.graph()
            if graph is None:
                left.append(part)
            else:
                images.update(zip(part.results, graph))
        self.wanted = with_graphs(self.wanted)
        return left

    def _given_to(self, count: int) -> list[Node]:
        """What is known after so many parts, and the graph then is made of."""
        known = {*self._arguments, *(node for part in self.parts[:count] for node in part.results)}
        return [leaf for leaf in _native.leaves(self._between[count]) if leaf in known]

    def _made_after(self, count: int) -> list[Node]:
        """What is wanted of the graph, or by parts, that so many parts are needed for."""
        place = {node: i + 1 for i, part in enumerate(self.parts) for node in part.results}
        asked = dict.fromkeys([*(node for part in self.parts for node in part.operands), *self.wanted])
        return [
            node
            for node in asked
            if not node.is_leaf and max((place.get(leaf, 0) for leaf in _native.leaves([node])), default=0) == count
        ]

    def _read_after(self, count: int) -> set[Node]:
        """What is read by parts and graphs after so many."""
        of_parts = (node for part in self.parts[count:] for node in part.operands)
        return {*self.wanted, *of_parts, *(node for given in self._given[count + 1 :] for node in given)}

    def _programs(self) -> list[_Program]:
        """In the order in which they are computed."""
        programs = []
        for count, (made, traced) in enumerate(zip(self._between, self._traced)):
            if count > 0:
                part = self.parts[count - 1]
                programs.append(_Program(part, part.title, part.times(), part.program()))
            if traced is not None:
                title = f"after {self.parts[count - 1].title}" if count > 0 else f"before {self.parts[0].title}"
                programs.append(_Program(traced, title, 1, Graph(traced, made)))
        return programs

    @cached_property
    def _labels(self) -> dict[Traced | Part, list[str]]:
        return {one.key: one.planned.labels() for one in self._programs()}

    def _options_of(self, program: Traced | Part, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """A label of samples, and a planner that follows it, are for programs that have it. Raises where none has.

        Each program has its own plan.
        """
        if not self.parts:
            return options
        if options.get("plan") is not None:
            options = {**options, "plan": self._plans(options["plan"])[program]}
        batch = options.get("batch")
        if batch is None:
            return options
        known = {label for own in self._labels.values() for label in own}
        if batch not in known:
            raise _native.ProgramError(
                f"batch={batch!r}: none of the programs of the function has such a label; their labels are: "
                f"{', '.join(sorted(known))}"
            )
        own = ("batch", "planner", "planners") if batch not in self._labels[program] else ()
        return {name: value for name, value in options.items() if name not in own}

    def _placements(self, options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The option `placements` of each program: of its own inputs, by their names. Raises where none has one."""
        placements = options.get("placements")
        programs = self._programs()
        if not isinstance(placements, Mapping):  # left out, or said wrongly
            return [options] * len(programs)
        called = {node: node.name for node in self._arguments if node.name}
        inputs = [one.inputs(called) for one in programs]
        known = {name for pairs in inputs for name, _ in pairs}
        for name in placements:
            if name not in known:
                raise _native.ProgramError(
                    f"placements of {name!r}: none of the programs of the function has such an input; they have "
                    f"{', '.join(sorted(known))}; what goes on from step to step lies where a step leaves it"
                )
        return [
            {**options, "placements": {own: placements[name] for name, own in pairs if name in placements}}
            for pairs in inputs
        ]

    def check_plan(self, options: Mapping[str, Any]) -> None:
        """Raises ProgramError where the option `plan` does not have a plan for each of several programs."""
        if self.parts and options.get("plan") is not None:
            self._plans(options["plan"])

    def _plans(self, plan: str) -> dict[Traced | Part, str]:
        """Those of all programs, in what `plan` gave. Raises ProgramError where it is of another function."""
        keys = [one.key for one in self._programs()]
        try:
            plans = [json.dumps(one["plan"]) for one in json.loads(plan)["programs"]]
        except (KeyError, TypeError, ValueError):
            plans = []
        if len(plans) != len(keys):
            raise _native.ProgramError(
                f"plan= has {len(plans) or 'no'} plans of programs, but the function is {len(keys)} programs "
                f"({'; '.join(part.title for part in self.parts)}): its own `plan` gives one for each"
            )
        return dict(zip(keys, plans))

    def run(self, nodes: Sequence[Node], options: Mapping[str, Any], where: str) -> list[Node]:
        """The results of these arguments; options as of `compute`."""
        if not self.parts:
            return self._run_alone(nodes, options, where)
        found = dict(zip(self._arguments, nodes))
        whole = {node for node in self._between[0] if node in self.wanted}  # they know what they were made of
        for count, (made, traced, read) in enumerate(zip(self._between, self._traced, self._read)):
            if count > 0:
                part = self.parts[count - 1]
                own = self._options_of(part, options)
                found.update(zip(part.results, part.run([found.get(node, node) for node in part.operands], own)))
            if traced is not None:
                known = [found[node] for node in self._given[count]]
                own = self._options_of(traced, options)
                results = run_traced(traced, made, known, array_options(**own), where)
                found.update(
                    (node, result if node in whole else _forgetting(result)) for node, result in zip(made, results)
                )
            found = {node: value for node, value in found.items() if node in read}
        return [found[node] if node in whole else self.parts[-1].marked(found[node], nodes) for node in self.wanted]

    def _run_alone(self, nodes: Sequence[Node], options: Mapping[str, Any], where: str) -> list[Node]:
        """The same of the only program, in little time."""
        (traced,), (made,) = self._traced, self._between
        assert traced is not None
        given, wanted = self._places
        how = array_options(**options) if options else _NO_OPTIONS
        results = run_traced(traced, made, [nodes[place] for place in given], how, where)
        return [results[place] for place in wanted]

    def explain(self, options: Mapping[str, Any]) -> str:
        """How each program is computed, as text; options as of `Array.explain`."""
        if not self.parts:
            return self._whole().explain(explain_options(**options))
        return "\n".join(f"{one.heading}\n{one.planned.explain(how)}" for one, how in self._told(options))

    def plan(self, options: Mapping[str, Any]) -> str:
        """The plan as JSON, of several programs those of all: {"programs": [{"title", "times", "plan"}, ...]}."""
        if not self.parts:
            return self._whole().plan(explain_options(**options))
        programs = [
            {"title": one.title, "times": one.times, "plan": json.loads(one.planned.plan(how))}
            for one, how in self._told(options)
        ]
        return json.dumps({"programs": programs})

    def html(self, options: Mapping[str, Any]) -> str:
        """The plan as a page for a browser, of several programs with a frame for each."""
        if not self.parts:
            return self._whole().html(explain_options(**options))
        frames = [
            f'<h2>{html.escape(one.heading)}</h2>\n<iframe srcdoc="{html.escape(one.planned.html(how), quote=True)}" '
            'style="width: 100%; height: 90vh; border: 0"></iframe>'
            for one, how in self._told(options)
        ]
        return _PAGE.format(count=len(frames), frames="\n".join(frames))

    def _whole(self) -> Planned:
        """A function that is one program."""
        (traced,) = self._traced
        assert traced is not None  # it gives something
        return Graph(traced, self.wanted)

    def _told(self, options: Mapping[str, Any]) -> Iterator[tuple[_Program, ExplainOptions]]:
        """Each program, and how to explain it."""
        for one, own in zip(self._programs(), self._placements(options)):
            yield one, explain_options(**self._options_of(one.key, own))


@dataclass(frozen=True)
class _Program:
    """One of those that a function is."""

    key: Traced | Part
    title: str
    times: int | None  # that it is computed; None, where elements say it
    planned: Planned

    @property
    def heading(self) -> str:
        """The title, and how often it is computed."""
        if self.times is None:
            return f"{self.title}: each step, as many as its condition says"
        return self.title if self.times == 1 else f"{self.title}: each of {self.times} steps"

    def inputs(self, called: Mapping[Node, str]) -> list[tuple[str, str]]:
        """What its inputs are called, by the names of `called` or by those in the program, each with the latter."""
        operands = self.key.inputs() if isinstance(self.key, Part) else {}
        own = list(json.loads(self.planned.plan(explain_options()))["inputs"])
        said = [(called[operands[name]], name) for name in own if operands.get(name) in called]
        return [*said, *((name, name) for name in own if name not in called.values() or name not in operands)]


_PAGE: Final = """<!doctype html>
<meta charset="utf-8">
<title>{count} programs</title>
<style>body {{ font-family: sans-serif; margin: 1em }} h2 {{ font-size: 1em }}</style>
{frames}
"""
