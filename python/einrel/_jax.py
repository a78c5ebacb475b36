"""Functions of arrays that JAX computes by einrel's plans (docs/export.md)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from . import _native
from ._array import Array
from ._compute import explain_options
from ._export import jax_source, to_jax
from ._jit import Jitted
from ._native import Node
from ._numbers import is_number
from ._parts import is_within_transformation
from ._program import Program
from ._shardings import Lying, lying
from ._trees import leaf_of, unflatten


class JaxJitted:
    """A function of arrays that JAX computes by einrel's plan; made by `jit(backend="jax")`."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Any, static_argnames: Any, options: Mapping[str, Any]
    ) -> None:
        self._jitted: Final = Jitted(function, static_argnums, static_argnames, {})
        self._options: Final = dict(options)
        explain_options(**self._options)
        self._compiled: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()
        self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"{self._jitted!r} by JAX"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if is_within_transformation():
            return self._jitted(*arguments, **named)
        leaves: list[Any] = []
        call = self._call(arguments, named, leaves)
        lies = self._lying(call, leaves)
        known = self._compiled.setdefault(call, {})
        if lies not in known:
            module = to_jax(self._program(call), **self._options_for(lies))
            mesh = module.make_mesh(lies.devices or None)
            held = {name: np.asarray(Array(node)) for name, node in _held(call).items()}
            known[lies] = module, mesh, module.step(mesh), held
        module, mesh, step, held = known[lies]
        given = {f"x{i}": leaf for i, leaf in enumerate(leaves)} | held
        results = step(module.place(mesh, {name: given[name] for name in module.INPUTS}))
        return unflatten(call.form, [results[f"result{i}"] for i in range(len(call.stages.wanted))])

    def _call(self, arguments: tuple[Any, ...], named: Mapping[str, Any], leaves: list[Any]) -> Any:
        """The call as it was traced; appends the leaves of the arguments."""
        form = self._jitted._static.form(arguments, named, leaves, _leaf)
        numbers = [leaf for leaf in leaves if is_number(leaf)]
        call = self._jitted._trace(form, [leaf if is_number(leaf) else _alike(leaf) for leaf in leaves])
        call.course.check(numbers)
        if call.stages.parts:
            titles = "; ".join(part.title for part in call.stages.parts)
            raise _native.ProgramError(
                f"{self._jitted!r} is several programs, and a module for JAX is one: {titles}; leave out backend='jax'"
            )
        return call

    def _program(self, call: Any) -> Program:
        outputs = {f"result{i}": node for i, node in enumerate(call.stages.wanted)}
        inputs = {f"x{i}": node for i, node in enumerate(call.arguments)} | _held(call)
        return Program(_native.program_text(outputs, inputs), None, self.__name__)

    def _lying(self, call: Any, leaves: list[Any]) -> Lying:
        """Where those lie that results are computed of."""
        read = set(_native.leaves(call.stages.wanted))
        named = zip(call.arguments, leaves)
        return lying(
            {f"x{i}": leaf for i, (node, leaf) in enumerate(named) if node in read}, self._options.get("sites")
        )

    def _options_for(self, lies: Lying) -> dict[str, Any]:
        """Those of the plan, which takes arrays on several devices from where they lie."""
        if not lies.placements:
            return self._options
        return {**self._options, "sites": len(lies.devices), "placements": dict(lies.placements)}

    def source(self, *arguments: Any, **named: Any) -> str:
        """The module that arguments like these are computed by, as text."""
        leaves: list[Any] = []
        call = self._call(arguments, named, leaves)
        return jax_source(self._program(call), **self._options_for(self._lying(call, leaves)))


def _held(call: Any) -> dict[str, Node]:
    """The arrays that a traced function took from around it, by the names of their inputs; numbers are in its text."""
    nodes = _native.leaves(call.stages.wanted)
    return {f"held{i}": node for i, node in enumerate(nodes) if node not in call.arguments and node.type.shape}


def _leaf(value: Any) -> Any:
    """An array of JAX as it is, which may lie on devices; else one of ours, or a number."""
    return value if hasattr(value, "sharding") else leaf_of(value)


def _alike(leaf: Any) -> Any:
    """An array of the same type and shape, without its elements."""
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape) if hasattr(leaf, "shape") else leaf
