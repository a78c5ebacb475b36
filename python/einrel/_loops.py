"""Loops as parts of functions, of many samples, and their gradients."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import einrel as er

from . import _native
from ._array import Array, node_of
from ._compute import array_options
from ._creation import zeros
from ._dtypes import BY_NAME, is_floating
from ._errors import compute_nodes
from ._indexing import take
from ._joining import stack
from ._lines import line_of_user
from ._names import name_of_place, names_of_places, parameter
from ._native import Node, Type
from ._parts import Part, Planned, are_traced, is_within_transformation, may_have_parts, same
from ._shapes import moveaxis, reshape
from ._steps import Carried, LoopProgram, TracedStep, split, truth_of
from ._transform import apart, slopes_of, total_flow, zero_slope
from ._trees import flatten, places, unflatten
from ._vmap import one_and_many, spread

_MOST_UNROLLED: Final = 10_000  # steps that become parts of a graph
_MOST_KEPT_BYTES: Final = 2**26  # of what goes on, before it is known whether a gradient needs it
_NO_END: Final = 2**62  # steps
_NO_WHILE: Final = (
    "einrel.while_loop in {line}, in a step of another loop, or in a function of einrel.vjp that is not traced: "
    "elements say how many steps there are, and are not known yet; write, where `most` steps are enough:\n"
    "    einrel.fori_loop(0, most, lambda _, x: einrel.where(condition(x), body(x), x), value)\n"
    "with a `where` for each array, if the value is several"
)


class _Loop(Part):
    """Many steps: of what goes on, of xs, and of what is around it, it gives what goes on at last and what all gave.

    For gradients it also keeps what went on before each step; much of that only when it is asked for, by going through
    the steps once more.
    """

    def __init__(
        self,
        step: TracedStep,
        carried: Carried,
        xs: Sequence[Node],
        steps: int,
        *,
        title: str,
        around: Sequence[Node] | None = None,
        is_back: bool = False,
        goes_on: Array | None = None,
    ) -> None:
        begins = [] if goes_on is None else [goes_on._node]
        around = step.body.outside if around is None else around
        super().__init__([*carried.nodes, *xs, *around, *begins], title)
        self._step = step
        self._carried = carried
        self._xs = list(xs)
        self._steps = steps
        self._is_back = is_back
        self._programs: dict[bool, LoopProgram] = {}
        self._has_condition = goes_on is not None or bool(step.truth)
        history = steps * sum(Array(node).nbytes for node in carried.nodes)
        is_asked = self.has_variables and not self._has_condition and not are_traced(self.operands)
        self._keeps = is_asked and history <= _MOST_KEPT_BYTES
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
            own = {name: value for name, value in options.items() if name != "plan"}  # which is that of a step
            compute_nodes(nodes, array_options(**own))
            return nodes
        return self._program().run(self._steps, carried, xs, around, options)

    def program(self) -> Planned:
        """See `Part`: a step."""
        return self._program().told()

    def inputs(self) -> dict[str, Node]:
        """See `Part`: not what goes on, which lies where a step leaves it."""
        _, xs, around, _ = self._groups(self.operands)
        return self._program().told_inputs(xs, around)

    def times(self) -> int | None:
        """See `Part`."""
        return None if self._has_condition else self._steps

    def slopes(self, flows: Sequence[Node | None], wanted: Sequence[bool]) -> list[Node | None]:
        """A loop over the steps in the other order, each of which is computed once more for its own gradient."""
        if self._has_condition:
            raise _native.ProgramError(
                f"a gradient through what was computed by {self.title}: while_loop in a function that is traced does "
                "not know how many steps there are; use einrel.fori_loop or einrel.scan"
            )
        groups = self._groups(self.operands), self._groups(wanted)
        back = _Backward(self._step, *groups, flows, f"the gradient of {self.title}")
        return back.slopes(self._before_steps(), self._steps, self._is_back)

    def of_samples(self, operands: Sequence[Node], are_batched: Sequence[bool], count: int) -> list[Node]:
        """A loop over the same steps, each of all samples."""
        groups = self._groups(operands), self._groups(are_batched)
        return _LoopOfSamples(self._step, *groups, count, self.title).results(self._steps, self._is_back)

    def __call__(self, *operands: Node) -> list[Node]:
        """See `Part`."""
        carried, xs, around, begins = self._groups(operands)
        loop = _Loop(
            self._step,
            self._carried.beginning(carried),
            xs,
            self._steps,
            title=self.title,
            around=around,
            is_back=self._is_back,
            goes_on=Array(begins[0]) if begins else None,
        )
        return loop.placed()

    def _program(self) -> LoopProgram:
        if self._keeps not in self._programs:
            self._programs[self._keeps] = LoopProgram(self._step, self._keeps, self._is_back, self.title)
        return self._programs[self._keeps]

    def _groups(self, of_operands: Sequence[Any]) -> list[list[Any]]:
        """What belongs to operands: to those that go on, the xs, those around, and to whether it begins."""
        counts = [len(group) for group in (self._carried.nodes, self._xs, self._step.around)]
        return split(of_operands, counts)

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
        before = self.results[-len(self._carried.nodes) :]
        for node, own in zip(before, self._step.before):
            node.stand_for(own)
        return before


class _LoopOfSamples:
    """A loop of many samples as one loop: what differs from sample to sample has them as its first dimension.

    It goes on while the condition holds for one of them; the others keep what they have.
    """

    def __init__(
        self,
        step: TracedStep,
        operands: Sequence[Sequence[Node]],
        are_batched: Sequence[Sequence[bool]],
        count: int,
        title: str,
    ) -> None:
        self._body = step.body
        self._count = count
        self._title = title
        carried, xs, self._around, begins = operands
        on, self._by_x, self._by_around, by_begins = are_batched
        self._on, self._gives, self._selects = self._differing(step, on, any(by_begins))
        self._carried = [self._of_all(*it) for it in zip(carried, on, self._on)]
        self._begins = [self._of_all(node, any(by_begins), self._selects) for node in begins]
        self._xs = [moveaxis(Array(x), 0, 1)._node if differs else x for x, differs in zip(xs, self._by_x)]

    def _differing(self, step: TracedStep, on: Sequence[bool], selects: bool) -> tuple[list[bool], list[bool], bool]:
        """What goes on, gives and conditions that differ from sample to sample, in the end."""
        while True:
            found = self._body.depending([False, *on, *self._by_x], self._by_around)
            after, gives, truth = split(found, [len(step.after), len(step.gives)])
            selects = selects or any(truth)
            further = [selects or before or then for before, then in zip(on, after)]
            if further == list(on):
                return further, gives, selects
            on = further

    def _of_all(self, node: Node, is_of_all: bool, differs: bool = True) -> Node:
        return spread(node, self._count) if differs and not is_of_all else node

    def results(self, steps: int, is_back: bool) -> list[Node]:
        """Of all samples: what goes on at last, and what the steps gave."""
        value = [Array(node) for node in self._carried], [Array(node) for node in self._begins]
        carried = Carried(self._step, value)
        step = TracedStep(self._step, carried, self._xs, (lambda value: er.any(value[1][0])) if self._begins else None)
        goes_on = er.any(value[1][0]) if self._begins else None
        loop = _Loop(step, carried, self._xs, steps, title=self._title, is_back=is_back, goes_on=goes_on)
        (last, _), rows = loop.results_in_form()
        rows = [moveaxis(one, 1, 0) if differs else one for one, differs in zip(rows, self._gives)]
        return [self._of_all(one._node, differs) for one, differs in zip([*last, *rows], [*self._on, *self._gives])]

    def _step(self, value: Any, number: Array, x: Sequence[Array]) -> tuple[Any, Any]:
        before, holds = value
        given = [node_of(number), *(array._node for array in (*before, *x)), *self._around]
        differ = [False, *self._on, *self._by_x, *self._by_around]

        def of_one(ones: list[Node]) -> list[Node]:
            rest = iter(ones)
            nodes = [next(rest) if differs else node for node, differs in zip(given, differ)]
            count = len(nodes) - len(self._around)
            return self._body.of(nodes[:count], nodes[count:])

        both = one_and_many(of_one, [node for node, differs in zip(given, differ) if differs], self._count)
        differ = [*self._on, *self._gives, *(self._selects for _ in holds)]
        results = [
            Array(self._of_all(many, many is not one) if differs else one) for (one, many), differs in zip(both, differ)
        ]
        after, gives, truth = split(results, [len(self._on), len(self._gives)])
        if self._selects:
            after = [er.where(_beside(holds[0], new), new, old) for new, old in zip(after, before)]
            truth = [holds[0] & truth[0]]
        return (after, truth), gives


def _beside(truth: Array, other: Array) -> Array:
    """A truth value for each sample, in as many dimensions as what it decides about."""
    return reshape(truth, (*truth.shape, *[1] * (other.ndim - 1)))


class _Backward:
    """The gradient of a loop: what flows back through its steps, to those of its operands that are wanted."""

    def __init__(
        self,
        step: TracedStep,
        operands: Sequence[Sequence[Node]],
        wanted: Sequence[Sequence[bool]],
        flows: Sequence[Node | None],
        title: str,
    ) -> None:
        self._step = step
        self._title = title
        (carried, self._xs, self._around, _) = operands
        self._on = [j for j, node in enumerate(carried) if is_floating(BY_NAME[node.type.dtype])]
        self._by_x = [j for j, is_wanted in enumerate(wanted[1]) if is_wanted]
        self._by_around = [j for j, is_wanted in enumerate(wanted[2]) if is_wanted]
        count = len(carried)
        self._into = [flows[j] or zero_slope(carried[j]) for j in self._on]
        gives = [*step.gives, *step.kept]
        self._given = [j for j in range(len(gives)) if count + j < len(flows) and flows[count + j] is not None]
        self._into_given = [node for node in flows[count:] if node is not None]
        self._counts = [count, len(self._xs), len(self._around)]

    def slopes(self, before: Sequence[Node], steps: int, is_back: bool) -> list[Node | None]:
        """Of all operands of the loop, where `before` went on before its steps."""
        sums = [zero_slope(self._around[j]) for j in self._by_around]
        carried = Carried(self._back, ([Array(node) for node in self._into], [Array(node) for node in sums]))
        xs = [*before, *self._xs, *self._into_given]
        loop = _Loop(TracedStep(self._back, carried, xs), carried, xs, steps, title=self._title, is_back=not is_back)
        (on, around), by_x = loop.results_in_form()
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
        into, sums = value
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
        return (on, [one + next(slopes) for one in sums]), by_x


def _unrolled(name: str, steps: int) -> range:
    """The steps, of a loop whose steps become parts of a graph."""
    if steps > _MOST_UNROLLED:
        raise _native.ProgramError(
            f"einrel.{name} of {steps} steps in a step of another loop, or in a function of einrel.vjp that is not "
            f"traced: there each step becomes a part of the program, of which there are {_MOST_UNROLLED} at most"
        )
    return range(steps)


def _title() -> str:
    return f"a loop in {line_of_user()}"


def _is_unrolled() -> bool:
    return is_within_transformation() and not may_have_parts()


def _bound(name: str, bound: Any) -> int:
    if isinstance(bound, Array) and bound._node.is_traced:
        raise TypeError(
            f"einrel.fori_loop with {name}= an argument of a function that is traced, whose value is not known yet: "
            "er.jit(..., static_argnums=...) makes it part of the program; er.while_loop goes on while i < upper, of a "
            "value (i, ...) that counts; of the most steps er.where(i < upper, new, old) keeps the value"
        )
    return operator.index(bound)


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """What body(i, value) makes of a value, for i from `lower` up to `upper`: each step takes what the one before gave.

    The value is an array, or several in containers, which keep their types and shapes; numbers and bools are arrays,
    too. `lower` and `upper` are numbers that are known when the loop is traced. The body is traced once, and all
    steps run as one program with state, also in a function that is traced, differentiated or of `vmap`; the gradient is
    a loop over the steps in the other order. In a step of another loop each step becomes a part of that.

    Raises TypeError where a step gives another form, type or shape than it was given, and for bounds that are arguments
    of a function that is traced.

    >>> fori_loop(0, 10, lambda i, x: x + i, 0).tolist()
    45
    """
    first, last = _bound("lower", lower), _bound("upper", upper)
    steps = max(last - first, 0)
    carried = Carried(body, init, parameter(body, 1))
    if _is_unrolled():
        nodes = carried.nodes
        for i in _unrolled("fori_loop", steps):
            nodes = carried.of(body(first + i, carried.built(nodes)))
        return carried.built(nodes)
    if steps == 0:
        return carried.built(carried.nodes)
    step = TracedStep(lambda value, i, _: (body(i + first if first else i, value), None), carried, [])
    return _Loop(step, carried, [], steps, title=_title()).results_in_form()[0]


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """What body(value) makes of a value, again and again while condition(value) holds.

    As `fori_loop`. In a function that is differentiated, but not traced, steps are done one by one, and gradients go
    through them. In one that is traced nobody knows how many there are: there it has no gradient, and where steps would
    become parts of something else it is an error. The condition is one truth value; TypeError of another one, and where
    no array goes on.

    >>> while_loop(lambda x: x < 100, lambda x: x * 3, 1).tolist()
    243
    """
    carried = Carried(body, init, parameter(body, 0))
    if carried.is_empty:
        raise TypeError("einrel.while_loop of no array that goes on from step to step: its condition never changes")
    for steps in itertools.count():
        goes_on = truth_of(condition(carried.built(carried.nodes)))
        is_awaited = are_traced([goes_on._node, *carried.nodes])
        if is_awaited and not may_have_parts():
            raise _native.ProgramError(_NO_WHILE.format(line=line_of_user()))
        if is_awaited or not is_within_transformation():
            break
        if not bool(goes_on):
            return carried.built(carried.nodes)
        _unrolled("while_loop", steps + 1)
        carried.nodes = carried.of(body(carried.built(carried.nodes)))
    step = TracedStep(lambda value, *_: (body(value), None), carried, [], condition)
    return _Loop(step, carried, [], _NO_END, title=_title(), goes_on=goes_on).results_in_form()[0]


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
    `xs`. As for `fori_loop`, the value keeps its type and shape, or TypeError is raised; None for it goes on as it is.
    ValueError where `xs` and `length` do not say one number of steps.

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
    carried = Carried(function, init, parameter(function, 0))

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
    variable = parameter(function, 1)
    names = [name_of_place(variable, place) for place in places(form)] if variable else []
    step = TracedStep(lambda value, _, x: of(value, x), carried, xs, names_of_xs=names_of_places(names))
    return _Loop(step, carried, xs, steps, title=_title(), is_back=reverse).results_in_form()


def _of_no_steps(gives: Any) -> Any:
    """What no steps give, of what one would."""
    leaves: list[Any] = []
    form = flatten(gives, leaves, has_truths=True)
    arrays = [Array(node_of(leaf)) for leaf in leaves]
    return unflatten(form, [zeros((0, *array.shape), dtype=array.dtype) for array in arrays])


def _unrolled_scan(step: Callable[[Any, int], tuple[Any, Any]], carried: Carried, order: range) -> tuple[Any, Any]:
    nodes, rows, form = carried.nodes, [], None
    for i in order:
        after, gives = step(carried.built(nodes), i)
        nodes = carried.of(after)
        leaves: list[Any] = []
        form = flatten(gives, leaves, has_truths=True)
        rows.append([Array(node_of(leaf)) for leaf in leaves])
    columns = zip(*rows[:: order.step])
    return carried.built(nodes), unflatten(form, [stack(list(column)) for column in columns])
