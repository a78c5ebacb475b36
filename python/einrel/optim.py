"""Optimisers of the language's `minimize`, as functions: of gradients and a state they make updates and the next state.

>>> import numpy as np, einrel as er
>>> optimiser = er.optim.sgd(0.1)
>>> w = np.array([1.0, 2.0])
>>> state = optimiser.init(w)
>>> updates, state = optimiser.update(er.grad(lambda w: (w * w).sum())(w), state, w)
>>> er.optim.apply_updates(w, updates).tolist()
[0.8, 1.6]

Parameters are arrays in containers, as for `grad`. Formulas and defaults are those of PyTorch. A rate is a number, an
array, or a function of how many steps were done before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._array import Array, node_of
from ._creation import zeros_like
from ._dtypes import HALVES, DType, float32, float64, is_complex, is_floating
from ._elementwise import UNARY
from ._functions import astype, pow
from ._trees import mapped

__all__ = ["Optimiser", "adam", "adamw", "apply_updates", "momentum", "nesterov", "sgd"]

Rate = Any  # a number, an array, or a function of the steps that were done
Parts = dict[str, Array]


class State(NamedTuple):
    """How many steps were done, and the moments of each parameter by name."""

    done: Array
    moments: dict[str, Any]


class Optimiser(NamedTuple):
    """`init(parameters)` is the state before the first step; `update(gradients, state, parameters)` gives what is to be
    added to the parameters, and the next state."""

    init: Callable[[Any], State]
    update: Callable[..., tuple[Any, State]]


class _Numbers:
    """The numbers of a step."""

    def __init__(self, eta: Rate, done: Array) -> None:
        self._done = done
        self.eta = Array(node_of(eta(done) if callable(eta) else eta))

    def corrected(self, b1: float, b2: float) -> tuple[Array, Array]:
        """The length of a step, eta / (1 - b1^t), and what makes up for a mean of squares that began at 0."""
        steps = astype(self._done + 1, float64)
        return self.eta / (1 - pow(float(b1), steps)), UNARY["rsqrt"](1 - pow(float(b2), steps))


def _computed_in(dtype: DType) -> DType:
    return float32 if dtype in HALVES else dtype


Rule = Callable[[_Numbers, Array, Parts, Any], tuple[Array, Parts]]


def _optimiser(eta: Rate, names: tuple[str, ...], rule: Rule, *, needs_parameters: bool = False) -> Optimiser:
    """One whose rule makes, of a gradient, moments and a parameter, the update and the next moments."""

    def init(parameters: Any) -> State:
        return State(Array(node_of(np.int64(0))), {name: mapped(_nothing, parameters) for name in names})

    def update(gradients: Any, state: State, parameters: Any = None) -> tuple[Any, State]:
        if parameters is None and needs_parameters:
            raise TypeError("this optimiser needs the parameters: update(gradients, state, parameters)")
        numbers = _Numbers(eta, state.done)

        def step(gradient: Any, *others: Any) -> list[Array]:
            own = Array(node_of(gradient))
            wide = _computed_in(own.dtype)
            moments = {name: astype(other, wide, copy=False) for name, other in zip(names, others)}
            parameter = astype(others[-1], wide, copy=False) if needs_parameters else None
            change, after = rule(numbers, astype(own, wide, copy=False), moments, parameter)
            return [astype(part, own.dtype, copy=False) for part in (change, *(after[name] for name in names))]

        trees = [state.moments[name] for name in names] + ([parameters] if needs_parameters else [])
        made: list[list[Array]] = []
        mapped(lambda *parts: made.append(step(*parts)), gradients, *trees)
        columns = [iter(column) for column in zip(*made)]
        change, *after = (mapped(lambda _, column=column: next(column), gradients) for column in columns)
        return change, State(state.done + 1, dict(zip(names, after)))

    return Optimiser(init, update)


def _nothing(parameter: Any) -> Array:
    array = Array(node_of(parameter))
    if not is_floating(array.dtype) or is_complex(array.dtype):
        raise TypeError(f"a parameter of type {array.dtype}: give floating point")
    return zeros_like(array)


def _as(number: Any, like: Array) -> Array:
    """A number in the type of an array, in which the two are computed together."""
    return astype(Array(node_of(number)), like.dtype, copy=False)


def sgd(eta: Rate) -> Optimiser:
    """W - eta G."""
    return _optimiser(eta, (), lambda numbers, gradient, moments, _: (-(_as(numbers.eta, gradient) * gradient), {}))


def momentum(eta: Rate, mu: float = 0.9) -> Optimiser:
    """W - eta V', with V' = mu V + G."""

    def rule(numbers: _Numbers, gradient: Array, moments: Parts, _: Any) -> tuple[Array, Parts]:
        velocity = moments["velocity"] * mu + gradient
        return -(_as(numbers.eta, gradient) * velocity), {"velocity": velocity}

    return _optimiser(eta, ("velocity",), rule)


def nesterov(eta: Rate, mu: float = 0.9) -> Optimiser:
    """W - eta (G + mu V'), with V' = mu V + G."""

    def rule(numbers: _Numbers, gradient: Array, moments: Parts, _: Any) -> tuple[Array, Parts]:
        velocity = moments["velocity"] * mu + gradient
        return -(_as(numbers.eta, gradient) * (gradient + velocity * mu)), {"velocity": velocity}

    return _optimiser(eta, ("velocity",), rule)


def _adam_step(
    numbers: _Numbers, gradient: Array, moments: Parts, b1: float, b2: float, eps: float
) -> tuple[Array, Parts]:
    rate, scale = (_as(number, gradient) for number in numbers.corrected(b1, b2))
    mean = moments["mean"] * b1 + gradient * (1 - b1)
    square = moments["square"] * b2 + gradient * gradient * (1 - b2)
    return -(rate * mean / (UNARY["sqrt"](square) * scale + eps)), {"mean": mean, "square": square}


def adam(eta: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimiser:
    """W - eta M'/(1 - b1^t) / (sqrt(S'/(1 - b2^t)) + eps), with M' = b1 M + (1 - b1) G, S' = b2 S + (1 - b2) G^2."""

    def rule(numbers: _Numbers, gradient: Array, moments: Parts, _: Any) -> tuple[Array, Parts]:
        return _adam_step(numbers, gradient, moments, b1, b2, eps)

    return _optimiser(eta, ("mean", "square"), rule)


def adamw(eta: Rate, decay: float = 0.01, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimiser:
    """The same as `adam`, with its b1, b2 and eps, of (1 - eta decay) W."""

    def rule(numbers: _Numbers, gradient: Array, moments: Parts, parameter: Any) -> tuple[Array, Parts]:
        change, after = _adam_step(numbers, gradient, moments, b1, b2, eps)
        return change - _as(numbers.eta * decay, gradient) * parameter, after

    return _optimiser(eta, ("mean", "square"), rule, needs_parameters=True)


def apply_updates(parameters: Any, updates: Any) -> Any:
    """The parameters after a step: those before and the updates added up, in the parameters' types.

    >>> apply_updates({"w": np.ones(2)}, {"w": -np.ones(2)})["w"].tolist()
    [0.0, 0.0]
    """
    return mapped(
        lambda parameter, update: Array(node_of(parameter)) + _as(update, Array(node_of(parameter))),
        parameters,
        updates,
    )
