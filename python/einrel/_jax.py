"""Functions of arrays that JAX computes by einrel's plans (docs/export.md)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array
from ._compute import explain_options
from ._export import jax_source, to_jax
from ._jit import Jitted
from ._names import with_lines
from ._native import Node
from ._numbers import is_number
from ._parts import is_within_transformation
from ._program import Program
from ._shardings import Lying, lying, with_lying
from ._trees import leaf_of, unflatten


class JaxJitted:
    """A function of arrays that JAX computes by einrel's plan; made by `jit(backend="jax")`."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Any, static_argnames: Any, options: Mapping[str, Any]
    ) -> None:
        self._jitted: Final = Jitted(function, static_argnums, static_argnames, {})
        self._options: Final = dict(options)
        explain_options(**self._options)
        self._exported: Final[weakref.WeakKeyDictionary[Any, _Exported]] = weakref.WeakKeyDictionary()
        self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"{self._jitted!r} by JAX"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if is_within_transformation():
            return self._jitted(*arguments, **named)
        leaves: list[Any] = []
        call, exported = self._exported_of(arguments, named, leaves)
        return unflatten(call.form, exported.results(leaves))

    def _exported_of(self, arguments: tuple[Any, ...], named: Mapping[str, Any], leaves: list[Any]) -> Any:
        """The call as it was traced, and its program for JAX; appends the leaves of the arguments."""
        form = self._jitted._static.form(arguments, named, leaves, _leaf)
        numbers = [leaf for leaf in leaves if is_number(leaf)]
        call = self._jitted._trace(form, [leaf if is_number(leaf) else _alike(leaf) for leaf in leaves])
        call.course.check(numbers)
        if call.stages.parts:
            titles = "; ".join(part.title for part in call.stages.parts)
            raise _native.ProgramError(
                f"{self._jitted!r} is several programs, and a module for JAX is one: {titles}; leave out backend='jax'"
            )
        if call not in self._exported:
            self._exported[call] = _Exported(call.stages.wanted, call.arguments, self.__name__, self._options)
        return call, self._exported[call]

    def source(self, *arguments: Any, **named: Any) -> str:
        """The module that arguments like these are computed by, as text."""
        leaves: list[Any] = []
        _, exported = self._exported_of(arguments, named, leaves)
        return str(exported.source(leaves))


class _Exported:
    """What a function gave when it was traced, as a program that JAX computes.

    Its inputs are those arguments that results are made of, and the arrays from around it; numbers from there are in
    its text.
    """

    def __init__(
        self, wanted: Sequence[Node], arguments: Sequence[Node], name: str, options: Mapping[str, Any]
    ) -> None:
        self._options = options
        read = _native.leaves(wanted)
        outputs = {node: f"result{i}" for i, node in enumerate(dict.fromkeys(wanted))}
        held = [node for node in read if node not in arguments and node.type.shape]
        self._held = {f"held{i}": node for i, node in enumerate(held)}
        names = _names_of([node.name for node in arguments], {*outputs.values(), *self._held})
        self._results = [outputs[node] for node in wanted]
        self._inputs = {own: i for i, (own, node) in enumerate(zip(names, arguments)) if node in read}
        inputs = {own: arguments[i] for own, i in self._inputs.items()} | self._held
        named = [(own, node) for own, node in with_lines(wanted) if own not in inputs and own not in outputs.values()]
        text, _ = _native.program_text([(own, node) for node, own in outputs.items()], list(inputs.items()), named)
        self._program = Program(text, None, name)
        self._ready: dict[Lying, tuple[Any, Any, Any, Any]] = {}  # by where arguments lie

    def _lying(self, given: Mapping[str, Any]) -> Lying:
        return lying(given, self._options.get("sites"))

    def _given(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """The arguments that are read, by name."""
        return {name: leaves[i] for name, i in self._inputs.items()}

    def results(self, leaves: Sequence[Any]) -> list[Any]:
        """What JAX computes of the leaves of a call."""
        given = self._given(leaves)
        lies = self._lying(given)
        if lies not in self._ready:
            module = to_jax(self._program, **with_lying(self._options, lies))
            mesh = module.make_mesh(lies.devices or None)
            # Copies: on CPUs, JAX may share the memory of what it is given.
            copies = {name: np.array(Array(node)) for name, node in self._held.items() if name in module.INPUTS}
            self._ready[lies] = module, mesh, module.step(mesh), module.place(mesh, copies)
        module, mesh, step, held = self._ready[lies]
        read = {name: array for name, array in given.items() if name in module.INPUTS}
        results = step(module.place(mesh, read) | held)
        return [results[name] for name in self._results]

    def source(self, leaves: Sequence[Any]) -> str:
        """The module for the leaves of a call, as text."""
        return jax_source(self._program, **with_lying(self._options, self._lying(self._given(leaves))))


def _names_of(called: Sequence[str], taken: set[str]) -> list[str]:
    """Names in a program for what is called so, each once, and none that is taken."""
    names: list[str] = []
    for said in called:
        own = said or "x"
        name, count = own, 1
        while name in taken or name in names:
            count += 1
            name = f"{own}_{count}"
        names.append(name)
    return names


def _leaf(value: Any) -> Any:
    """An array of JAX as it is, which may lie on devices; else one of ours, or a number."""
    return value if hasattr(value, "sharding") else leaf_of(value)


def _alike(leaf: Any) -> Any:
    """An array of the same type and shape, without its elements."""
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape) if hasattr(leaf, "shape") else leaf
