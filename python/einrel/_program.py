"""Programs in the language."""

from __future__ import annotations

import contextlib
import copyreg
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import fsdecode
from pathlib import Path
from typing import Any, Final

from . import _native
from ._array import Array, computed, node_of
from ._compute import by_name, explain_options, optional, run_options, scalars_of, text_of, whole_of
from ._native import Node, ProgramError, RunReport, State, Stepper, TensorInfo
from ._native import Program as NativeProgram


class Outputs(dict[str, Array]):
    """Outputs by name, also as attributes."""

    def __getattr__(self, name: str) -> Array:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no output {name!r}; the outputs are: {', '.join(self)}")


class StepResults(Outputs):
    """The outputs of a step; `report` is what it took."""

    def __init__(self, outputs: Mapping[str, Array], report: RunReport) -> None:
        super().__init__(outputs)
        self.report = report


class Results(StepResults):
    """The outputs of a run; `report` is what it took, `state` what goes on from it."""

    def __init__(self, outputs: Mapping[str, Array], report: RunReport, state: State) -> None:
        super().__init__(outputs, report)
        self.state = state


class DatabaseResults(Outputs):
    """The outputs of a run in a database that became no tables; `steps` is how many were done.

    With `analyze=True`, `analysis` is what was predicted beside what the database took, as text, and `analysis_json`
    the same as JSON (docs/sql.md).
    """

    def __init__(self, outputs: Mapping[str, Array], steps: int, analysis: tuple[str, str] | None) -> None:
        super().__init__(outputs)
        self.steps = steps
        self.analysis = analysis[0] if analysis else None
        self.analysis_json = analysis[1] if analysis else None


class Program:
    """A program in the language of docs/language.md, checked; made by `program`."""

    def __init__(self, text: str, dims: Mapping[str, int] | None, name: str) -> None:
        extents = by_name("dims", dims, "{'b': 100}", partial(whole_of, least=0))
        self._given = (text_of("text", text), extents, text_of("name", name))
        self._native = NativeProgram(*self._given)

    @property
    def text(self) -> str:
        """The program itself."""
        return self._native.text

    @property
    def inputs(self) -> list[TensorInfo]:
        """Name, dtype, labels and extents of the inputs, in order."""
        return self._native.inputs

    @property
    def outputs(self) -> list[TensorInfo]:
        """The same of the outputs; an error while an extent is open."""
        return self._native.outputs

    def __repr__(self) -> str:
        return f"einrel.program({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Program, self._given)

    def explain(self, **options: Any) -> str:
        """What is computed and how, as text; with sites, planners, cost, machine, batch or memory the plan."""
        return self._native.explain(explain_options(**options))

    def plan(self, **options: Any) -> str:
        """The plan as JSON, which `run(..., options={"plan": ...})` takes; options of `explain`."""
        return self._native.plan(explain_options(**options))

    def html(self, **options: Any) -> str:
        """The plan as a page for a browser, which needs no other file; options of `explain`."""
        return self._native.html(explain_options(**options))

    def placements(self, **options: Any) -> dict[str, list[tuple[str, int]]]:
        """Where the plan has inputs once they are brought, but for those of `fed`; options of `explain`.

        The option `placements` of another program that reads the same inputs takes it.

        >>> p = program("dims i=1000 j=1000\\ninput A[i,j], x[j]\\ny[i] = sum[j] A[i,j] * x[j]")
        >>> p.placements(sites=2, cost="bytes", steps=100, fed="A")
        {'x': [('copies', 2)]}
        """
        return self._native.placements(explain_options(**options))

    def placements_of_steps(
        self,
        inputs: Mapping[str, Any],
        /,
        *,
        fed: str | Sequence[str] = (),
        scalars: Mapping[str, float] | None = None,
        at_most: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, list[tuple[str, int]]]:
        """The same of the plan by which `steps` does steps that begin with such inputs, of which `fed` are new in each.

        Nothing where no plan is followed, or with the option memory. Where `mpirun` started several processes, each has
        to ask for it.
        """
        given = {name: _leaf(name, value) for name, value in inputs.items()}
        plain = _plain(options, scalars="scalars", steps="at_most")
        how = run_options(scalars=scalars, steps=at_most, **plain)
        return Stepper(self._native, given, [fed] if isinstance(fed, str) else list(fed), how).placements()

    def _inputs(self, inputs: Any, named: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the mapping and those by name. Of an input that is called as an option is, it is the mapping's."""
        given = by_name("inputs", inputs, "{'X': array}", lambda _, value: value)
        for name in given.keys() & named.keys():
            raise ProgramError(f"the input {name!r} is given twice: in the mapping and by name")
        for name, value in options.items():
            is_given = value is not None and value is not False
            if is_given and name not in given and any(name == info.name for info in self.inputs):
                raise ProgramError(
                    f"{name}= is an option, so the input of that name goes into a mapping, before what has a name: "
                    f"{{{name!r}: ...}}"
                )
        return {**given, **named}

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        scalars: Mapping[str, float] | None = None,
        steps: int | None = None,
        state: State | None = None,
        options: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> Results:
        """Computes the outputs from inputs by name; `options` are those of `compute`.

        Of a program with state `steps` steps are done, beginning from `state`: that of an earlier run's results.

        >>> p = program("input A[i]\\nZ[i] = A[i] + 1")
        >>> p.run(A=np.ones(2, "f")).Z.tolist()
        [2.0, 2.0]
        """
        own = dict(scalars=scalars, steps=steps, state=state, options=options)
        nodes = {name: _node(node_of, name, value) for name, value in self._inputs(inputs, named, own).items()}
        plain = _plain(options, scalars="scalars", steps="steps", state="state")
        how = run_options(scalars=scalars, steps=steps, state=state, **plain)
        for node in nodes.values():
            if not node.is_leaf:
                Array(node).compute()
        outputs, report, after = self._native.run(nodes, how)
        return Results({name: Array(node) for name, node in outputs.items()}, report, after)

    def sql(
        self,
        dialect: str = "sqlite",
        *,
        schema: str | None = None,
        formats: str | None = None,
        scalars: Mapping[str, float] | None = None,
    ) -> str:
        """The program as a script of SQL for "sqlite", "postgres" or "duckdb" (docs/sql.md).

        In PostgreSQL the tables that it reads and makes are in `schema`, else in `public`.

        >>> p = program("dims i=2\\ninput A[i] : f64\\nZ[i] = A[i] + 1")
        >>> print(p.sql("duckdb", formats="element").splitlines()[2])
        -- Z[i] = A[i] + 1; element
        """
        own = None if schema is None else text_of("schema", schema)
        return self._native.sql(text_of("dialect", dialect), own, _formats(formats), scalars_of(scalars))

    def explain_sql(self, dialect: str = "sqlite", *, formats: str | None = None, json: bool = False) -> str:
        """The formats in which a database computes the program, and what they are predicted to cost (docs/sql.md).

        >>> p = program("dims i=2\\ninput A[i] : f64\\nZ[i] = A[i] + 1")
        >>> print(p.explain_sql().splitlines()[0])
        <string>: formats of least cost
        """
        return self._native.explain_sql(text_of("dialect", dialect), _formats(formats), bool(json))

    def run_in_database(
        self,
        database: str,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        tables: Mapping[str, str] | None = None,
        chunks: Mapping[str, str] | None = None,
        scalars: Mapping[str, float] | None = None,
        formats: str | None = None,
        steps: int | None = None,
        analyze: bool = False,
        **named: Any,
    ) -> DatabaseResults:
        """Computes where the data are, in one transaction: when it fails, the database is as before (docs/sql.md).

        `database` is "sqlite:FILE" or "postgresql://HOST/DATABASE". An input is "table:NAME", "query:SELECT ...", or an
        array that is brought; "sparse:table:NAME" has rows for the elements that are not zero. A state begins with
        what is given for it. `tables` names the new tables that outputs
        become, `chunks` those that keep them in chunks; the others come back.

        >>> p = program("input A[i] : f64\\nZ[i] = A[i] + 1")
        >>> p.run_in_database("sqlite::memory:", A=np.ones(2)).Z.tolist()
        [2.0, 2.0]
        """
        own = dict(tables=tables, chunks=chunks, scalars=scalars, formats=formats, steps=steps, analyze=analyze)
        given = {
            name: text_of(name, value) if isinstance(value, str) else _node(computed, name, value)
            for name, value in self._inputs(inputs, named, own).items()
        }
        outputs, done, analysis = self._native.run_in_database(
            text_of("database", database, "sqlite:FILE"),
            given,
            by_name("tables", tables, "{'Z': 'scores'}", text_of),
            by_name("chunks", chunks, "{'Z': 'scores'}", text_of),
            scalars_of(scalars),
            _formats(formats),
            optional(whole_of, "steps", steps),
            bool(analyze),
        )
        return DatabaseResults({name: Array(node) for name, node in outputs.items()}, done, analysis)

    def steps(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        scalars: Mapping[str, float] | None = None,
        at_most: int | None = None,
        state: State | None = None,
        options: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> Steps:
        """The results of step after step of a program with state, each computed when it is asked for.

        An input that is an iterator, as a generator is, gives another value for each step, and ends the steps where it
        ends. All other inputs stay as they are, and are brought to where a plan uses them by the first step: nobody may
        change them meanwhile. The state stays where each step leaves it; the property `state` copies it. The steps end
        after `at_most`, for which plans are made (without it for a thousand), or where the program's `until` holds.

        >>> p = program("state x[] = 1.0\\nnext x[] = 2 * x[]\\ny[] = x[] + 0\\noutput y")
        >>> [float(step.y) for step, _ in zip(p.steps(), range(3))]
        [1.0, 2.0, 4.0]
        """
        given = self._inputs(inputs, named, dict(scalars=scalars, at_most=at_most, state=state, options=options))
        return Steps(self._native, given, scalars, optional(whole_of, "at_most", at_most), state, options)


class Steps(Iterator[StepResults]):
    """Steps of a program with state, each done when it is asked for; made by `Program.steps`."""

    def __init__(
        self,
        program: NativeProgram,
        given: Mapping[str, Any],
        scalars: Mapping[str, float] | None,
        at_most: int | None,
        state: State | None,
        options: Mapping[str, Any] | None,
    ) -> None:
        self._program = program
        self._fed = {name: value for name, value in given.items() if isinstance(value, Iterator)}
        self._stay = {name: _leaf(name, value) for name, value in given.items() if name not in self._fed}
        self._at_most = at_most
        self._left = itertools.repeat(None) if at_most is None else itertools.repeat(None, at_most)
        self._first = state
        plain = _plain(options, scalars="scalars", steps="at_most", state="state")
        self._options = partial(run_options, scalars=scalars, steps=at_most, **plain)
        self._options(state=state)  # said wrongly, they are an error here
        self._lock = threading.RLock()  # inputs that are fed may ask for the state
        self._stepper: Stepper | None = None
        self._types: list[tuple[str, tuple[int, ...]]] = []

    @property
    def state(self) -> State:
        """What goes on from the last step: a copy. Where `mpirun` started several processes, each has to ask for it."""
        with self._alone():
            if self._stepper is not None:
                return self._stepper.state()
            if self._first is None:
                raise ProgramError("there is no state before the first step")
            return self._first

    def __next__(self) -> StepResults:
        with self._alone():
            return self._next()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Meanwhile no other thread does a step, takes what is fed, or copies the state."""
        if not self._lock.acquire(blocking=False):
            raise ProgramError(
                "another thread is doing a step, or copies the state: wait until that has ended, or give each thread "
                "steps of its own"
            )
        try:
            yield
        finally:
            self._lock.release()

    def _next(self) -> StepResults:
        next(self._left)
        fed = {name: _leaf(name, next(values)) for name, values in self._fed.items()}
        types = [(node.type.dtype, node.type.shape) for node in fed.values()]
        if self._stepper is None or types != self._types:
            how = self._options(state=self._first if self._stepper is None else self._stepper.state())
            self._stepper = Stepper(self._program, {**self._stay, **fed}, list(fed), how)
            self._types = types
        outputs, report = self._stepper.step(fed)
        if report.is_last:
            self._left = itertools.repeat(None, 0)
        return StepResults({name: Array(node) for name, node in outputs.items()}, report)


def program(text: str, *, dims: Mapping[str, int] | None = None, name: str = "<string>") -> Program:
    """A program in the language of docs/language.md; `dims` override and complete the extents that it says.

    >>> program("input A[i]\\nZ[] = sum[i] A[i]", dims={"i": 3}).outputs[0].dtype
    'f32'
    """
    return Program(text, dims, name)


def program_of(outputs: Mapping[str, Array], inputs: Mapping[str, Array]) -> Program:
    """The program that makes lazy arrays of others, for other elements: to keep as text, as SQL, for a database.

    Both are given by name. Numbers that the outputs are made of stay part of the program, and so do extents:
    `program(p.text, dims={"i_12": 6})` is the same for another one.

    >>> x = Array(node_of(np.ones(3)))
    >>> p = program_of({"y": x * 2 + 1}, {"x": x})
    >>> p.run(x=np.arange(3.0)).y.tolist()
    [1.0, 3.0, 5.0]
    """
    named = [
        {key: _lazy(array)._node for key, array in by_name(name, given, "{'x': array}", lambda _, array: array).items()}
        for name, given in (("outputs", outputs), ("inputs", inputs))
    ]
    if not named[0]:
        raise ProgramError("a program without outputs computes nothing; name one: {'y': array}")
    text, _ = _native.program_text(*(sorted(given.items()) for given in named))
    return Program(text, None, "<arrays>")


def _lazy(array: Any) -> Array:
    if not isinstance(array, Array):
        raise TypeError(f"the program of an einrel.Array, not of {type(array).__name__}: einrel.asarray makes one")
    return array


_LONGEST: Final = 4 * 2**20  # characters of a text that is read


def load_program(file: str | Path, *, dims: Mapping[str, int] | None = None) -> Program:
    """The program in a file, of 4 MiB at most."""
    file = fsdecode(file)
    with open(file, encoding="utf-8") as opened:
        text = opened.read(_LONGEST + 1)
    if len(text) > _LONGEST:
        raise ProgramError(f"'{file}' is longer than 4 MiB: it is no program")
    return Program(text, dims, file)


def _node(convert: Callable[[Any], Node], name: str, value: Any) -> Node:
    """The elements of an input, by whose name it is said what is wrong with them."""
    try:
        return convert(value)
    except (TypeError, NotImplementedError) as error:
        kind = TypeError if isinstance(error, TypeError) else NotImplementedError
        raise kind(f"the input {name!r}: {error}") from None


def _leaf(name: str, value: Any) -> Node:
    """The elements of an input that a run reads: computed, or made part by part when it does."""
    node = _node(node_of, name, value)
    if not node.is_leaf:
        Array(node).compute()
    return node


def _plain(options: Any, **own: str) -> dict[str, Any]:
    """The options of a run, without those that are arguments of their own, which are called so."""
    plain = by_name("options", options, "{'sites': 2}", lambda _, value: value)
    for name, argument in own.items():
        if name in plain:
            raise TypeError(f"options has {name!r}, which is an argument of its own: give {argument}={plain[name]!r}")
    return plain


def _formats(formats: Any) -> str | None:
    return None if formats is None else text_of("formats", formats, "X=row,tile-500")


copyreg.pickle(
    State,
    lambda state: (State, ({name: Array(node) for name, node in state.tensors.items()}, state.steps_done)),
)
