"""Functions that are traced, and then run as one program."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ._array import Array, identity, node_of
from ._compute import array_options, run_options
from ._errors import compute_nodes
from ._formula import apply
from ._lines import line_of_user
from ._names import holding_named, name_of_place, names_of_places, parameters
from ._native import Node
from ._numbers import Course, is_number
from ._parts import Stages, is_within_transformation, part_of, within_transformation
from ._trees import Dict, check_unchanged, constant, flatten, has_attributes, leaf_of, places, unflatten


class _Static:
    """Which arguments are part of the program: by position and by name, each of which says the other, too."""

    def __init__(self, function: Callable[..., Any], positions: Any, names: Any) -> None:
        by_place = [positions] if isinstance(positions, (int, np.integer)) else list(positions or ())
        by_name = [names] if isinstance(names, str) else list(names or ())
        given = [p for p in parameters(function) if p.kind is not p.KEYWORD_ONLY]
        plain = [p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
        known = {p.name for p in parameters(function)}
        for name in by_name:
            if known and name not in known and not any(p.kind is p.VAR_KEYWORD for p in parameters(function)):
                raise ValueError(f"static_argnames={name!r}: {function} has no such argument")
        places = [place + len(given) if place < 0 else int(place) for place in by_place]
        self._names = set(by_name) | {given[i].name for i in places if i < len(given) and given[i].name in plain}
        self._places = set(places) | {i for i, one in enumerate(given) if one.name in by_name}

    def form(
        self,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        leaves: list[Any],
        leaf: Callable[[Any], Any] = leaf_of,
    ) -> Any:
        """The form of a call, whose leaves are appended."""
        if not self._places and not self._names:
            return flatten((arguments, dict(named)), leaves, leaf)
        parts = tuple(constant(x) if i in self._places else flatten(x, leaves, leaf) for i, x in enumerate(arguments))
        by_name = tuple(
            (name, constant(x) if name in self._names else flatten(x, leaves, leaf)) for name, x in named.items()
        )
        return ("tuple", (("tuple", parts), (Dict(), by_name)))


_MOST_TRACED: Final = 128  # forms of arguments that a function keeps


class _Call:
    """What a function gave when it was traced."""

    def __init__(
        self, made: list[Node], arguments: list[Node], form: Any, course: Course, named: Sequence[Array]
    ) -> None:
        self.stages = Stages(made, arguments)
        self.arguments = arguments
        self.form = form
        self.course = course
        self.named = named  # which have their names as long as they are held


class Jitted:
    """A function of arrays that runs as one program; made by `jit`."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Any, static_argnames: Any, options: Mapping[str, Any]
    ) -> None:
        if not callable(function):
            raise TypeError(f"a function to trace, not a {type(function).__name__}")
        functools.update_wrapper(self, function)
        self._function = function
        self._options = dict(options)
        run_options(**options)  # which says what is wrong with them
        self._static = _Static(function, static_argnums, static_argnames)
        self._traced: dict[Any, _Call] = {}

    def _trace(self, form: Any, leaves: list[Any]) -> _Call:
        nodes = [node_of(leaf) for leaf in leaves]
        key = (form, *[node.type for node in nodes])
        if key in self._traced:
            self._traced[key] = self._traced.pop(key)  # the last one that was used
        else:
            if len(self._traced) == _MOST_TRACED:
                del self._traced[next(iter(self._traced))]
            arguments = [Node.argument(node.type, name) for node, name in zip(nodes, self._called(form))]
            course = Course()
            made_of = [
                course.argument(argument) if is_number(leaf) else Array(argument)
                for leaf, argument in zip(leaves, arguments)
            ]
            with within_transformation(may_have_parts=True), holding_named() as named:
                results, result_form = self._results(form, made_of)
                made = [_identity(result)._node for result in results]
                call = _Call(made, arguments, result_form, course, named)
            call.stages.check_plan(self._options)
            self._traced[key] = call
        return self._traced[key]

    def _results(self, form: Any, leaves: list[Any]) -> tuple[list[Array], Any]:
        """What the function itself gives, and its form."""
        positional, named = unflatten(form, leaves)
        results: list[Any] = []
        result_form = flatten(self._function(*positional, **named), results)
        if not results:
            raise ValueError(f"{self._function} gives no array")
        rest = iter(leaves)
        of_places, of_named = form[1]
        parts = [*zip(positional, of_places[1]), *zip(named.values(), (part for _, part in of_named[1]))]
        for value, part in parts:
            check_unchanged(self._function, value, part, [next(rest) for _ in places(part)])
        return [Array(node_of(result)) for result in results], result_form

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        leaves: list[Any] = []
        form = self._static.form(arguments, named, leaves)
        if is_within_transformation():
            results, result_form = self._results(form, leaves)
            return unflatten(result_form, results)
        call = self._trace(form, leaves)
        call.course.check([leaf for leaf in leaves if is_number(leaf)])
        nodes = [node_of(leaf) for leaf in leaves]
        if not all(node.is_leaf for node in nodes):
            compute_nodes(nodes, array_options(**self._options))
        where = f"given by {self!r} in {line_of_user()}"
        return unflatten(call.form, [Array(node) for node in call.stages.run(nodes, self._options, where)])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _Method(self, instance)

    def __reduce__(self) -> str:
        return str(self._function.__qualname__)

    def __repr__(self) -> str:
        return f"einrel.jit({self._function!r})"

    def _made(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Stages, dict[str, Any]]:
        """What it gave of arguments like these, and the options among them."""
        taken = {parameter.name for parameter in parameters(self._function)}
        options = {name: value for name, value in named.items() if name in _EXPLAIN_OPTIONS and name not in taken}
        leaves: list[Any] = []
        own = {name: value for name, value in named.items() if name not in options}
        form = self._static.form(arguments, own, leaves)
        return self._trace(form, leaves).stages, options

    def _called(self, form: Any) -> list[str]:
        """What the leaves of a call are called, by the function's parameters: `params_w1`, and `max_1` for a word."""
        of_places, of_named = form[1]
        by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
        plain = [one.name for one in parameters(self._function) if one.kind not in by_name]
        variables = [*plain, *[plain[-1] if plain else "x"] * len(of_places[1])]
        called = [*zip(variables, of_places[1]), *of_named[1]]
        return names_of_places([name_of_place(name, place) for name, part in called for place in places(part)])

    def explain(self, *arguments: Any, **named: Any) -> str:
        """How it is computed for arguments like these, as text; options as of `Array.explain`."""
        stages, options = self._made(arguments, named)
        return stages.explain(options)

    def plan(self, *arguments: Any, **named: Any) -> str:
        """The plan for arguments like these as JSON, which `jit(plan=...)` takes; options as of `Array.plan`.

        A function with loops is several programs: "programs" has a title, how often it is computed (`times`, null
        where a condition says it) and the plan of each.
        """
        stages, options = self._made(arguments, named)
        return stages.plan(options)

    def html(self, *arguments: Any, **named: Any) -> str:
        """The plan as a page for a browser; options as of `Array.html`. Of several programs it shows each."""
        stages, options = self._made(arguments, named)
        return stages.html(options)


_EXPLAIN_OPTIONS: Final = ("sites", "planners", "cost", "machine", "memory", "batch", "spmd", "placements")


class _Method:
    """A jitted method of an object, whose attributes are arguments."""

    def __init__(self, jitted: Jitted, instance: Any) -> None:
        self.__wrapped__ = jitted
        self.__self__ = instance
        self.__name__ = jitted.__name__  # type: ignore[attr-defined]
        self.__doc__ = jitted.__doc__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__wrapped__(self.__self__, *arguments, **named)

    def explain(self, *arguments: Any, **named: Any) -> str:
        """See `Jitted.explain`."""
        return self.__wrapped__.explain(self.__self__, *arguments, **named)

    def plan(self, *arguments: Any, **named: Any) -> str:
        """See `Jitted.plan`."""
        return self.__wrapped__.plan(self.__self__, *arguments, **named)

    def html(self, *arguments: Any, **named: Any) -> str:
        """See `Jitted.html`."""
        return self.__wrapped__.html(self.__self__, *arguments, **named)


def _identity(array: Array) -> Array:
    """An array that a program can give, also where it is one of its inputs."""
    node = array._node
    is_given = node.is_leaf and not (node.is_traced and part_of(node) is not None)
    return Array(apply(identity(node.type), node)) if is_given else array


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    backend: str = "einrel",
    **options: Any,
) -> Any:
    """A function that is traced once for arguments of some types and shapes, and then runs as one program.

    Arguments and results are arrays and numbers, in nested lists, tuples, dicts and objects if need be; of a method,
    and of an object that is called, the attributes of the object are arguments. Strings, bools, None and whatever else
    has a hash and no elements are part of the program, and so is an argument that `static_argnums` or `static_argnames`
    name: for another one of these it is traced again. Other options are those of `compute`. In a function that is
    traced or differentiated, it is a part of that.

    With `backend="jax"`, JAX computes it on as many devices as `sites` says, by einrel's plan; arguments and results
    are jax.Array, and options those of `explain` (docs/export.md).

    >>> import numpy as np
    >>> @jit
    ... def distance(x, y):
    ...     return ((x - y) ** 2).sum() ** 0.5
    >>> float(distance(np.zeros(2), np.array([3.0, 4.0])))
    5.0
    """
    if function is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, backend=backend, **options
        )
    if backend == "jax":
        from ._jax import JaxJitted

        return JaxJitted(function, static_argnums, static_argnames, options)
    if backend != "einrel":
        raise ValueError(f"backend={backend!r}: functions are computed by einrel or jax")
    of_object = _method_of(function)
    if of_object is None:
        return Jitted(function, static_argnums, static_argnames, options)
    method, instance = of_object
    if static_argnums is not None:
        places = [static_argnums] if isinstance(static_argnums, (int, np.integer)) else static_argnums
        static_argnums = [place + 1 if place >= 0 else place for place in places]  # the object comes first
    return _Method(Jitted(method, static_argnums, static_argnames, options), instance)


def _method_of(function: Callable[..., Any]) -> tuple[Callable[..., Any], Any] | None:
    """A function of an object, and the object, of whose attributes results are made."""
    if isinstance(function, types.MethodType) and callable(function.__func__):
        return function.__func__, function.__self__
    return (type(function).__call__, function) if has_attributes(function) else None
