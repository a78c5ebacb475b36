"""Errors of runs as those that NumPy raises: kinds that its users catch, and words of Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

import einrel as er

from . import _native
from ._native import Node, Program, ProgramError, RunError, RunOptions, State, Traced


class SingularMatrix(ProgramError, np.linalg.LinAlgError):
    """A matrix that has no inverse."""


class PositionOutside(RunError, IndexError):
    """A position outside of the dimension that it indexes."""


for _error in (SingularMatrix, PositionOutside):
    _error.__module__ = "einrel"

_SINGULAR = re.compile(
    r"the matrix(?: at (?P<at>.*?))? in (?P<part>a chunk of )?\S+ is singular: (?P<rest>.*)", re.DOTALL
)
_OUTSIDE = re.compile(
    r"\S+?(?P<at>\[[-0-9, ]*\]) is (?P<position>-?[0-9]+), but indexes a dimension of \S+ of extent (?P<extent>[0-9]+):"
)


_OF_A_STATEMENT = re.compile(r"error: (?P<what>.*?)\n +--> <expressions>:.*?(?:\n +help: (?P<instead>.*))?", re.DOTALL)


def of_python(error: ProgramError) -> ProgramError:
    """The error without the statement in the language, which a user of arrays did not write."""
    said = _OF_A_STATEMENT.fullmatch(str(error))
    if said is None:
        return error
    instead = (said["instead"] or "").replace("Z[i]", "z")
    return type(error)(said["what"] + (f"; {instead}" if instead else ""))


def _as_numpys(error: ProgramError | RunError) -> Exception:
    """The error that says the same to a user of NumPy, without names of tensors, which nobody gave."""
    text = str(error)
    if type(error) is ProgramError and (singular := _SINGULAR.fullmatch(text)):
        indices = re.findall(r"=([0-9]+)", singular["at"] or "")
        one = f"the matrix at [{', '.join(indices)}]" if indices else "the matrix"
        if singular["part"] and indices:  # of a part, whose place is not told
            one = "one of the matrices"
        return SingularMatrix(f"{one} is singular: {singular['rest']}")
    if type(error) is RunError and (outside := _OUTSIDE.match(text)):
        at, position, extent = outside["at"], int(outside["position"]), int(outside["extent"])
        position -= extent if position < 0 else 0  # as it was before it was counted from the end
        where = "a position" if at == "[]" else f"the position at {at}"
        return PositionOutside(
            f"{where} is {position}, in a dimension of extent {extent}: positions are from {-extent} up to {extent - 1}"
        )
    return error


_SAID_NAME = re.compile(
    r"(\binput )?('?)(?<![/.])\b((?:(?:grad|next|initial)_)*)([a-zA-Z]+[0-9]+)((?:_[a-z0-9]+)*)\b\2"
)


def _of_users(error: ProgramError | RunError, nodes: Sequence[Node]) -> Exception:
    """The error with names of the user's variables in place of those of our program, or shapes and lines."""
    if _SAID_NAME.search(str(error)) is None:
        return _as_numpys(error)
    return _called(error, dict(_native.names_in_program(nodes)), er._names.names_around(nodes))


def _called(
    error: ProgramError | RunError, in_program: Mapping[str, Node], variables: Sequence[tuple[str, Node]]
) -> Exception:
    """The error of a program that calls nodes so, with what variables are called in place of that."""
    names = er._names.known_names(in_program.values(), variables)
    said: list[Node] = []

    def called(match: re.Match[str]) -> str:
        as_input, quote, gradients, own, part = match.groups()
        node = in_program.get(own)
        if node is None:
            return match[0]
        said.append(node)
        quote = "'" if as_input else quote
        name = f"{quote}{names[node]}{quote}" if node in names else _array_made_in(node)
        return "the gradient by " * gradients.count("grad_") + "what goes into " * bool(part) + name

    text = _SAID_NAME.sub(called, str(error)).replace(",;", ";")
    numpys = _as_numpys(error)
    if not isinstance(numpys, (SingularMatrix, PositionOutside)):
        return type(error)(text)
    where = next((f"{file}, line {number}" for file, number in filter(None, (node.line for node in said))), None)
    how = "it was made" if isinstance(numpys, SingularMatrix) else "taken"
    return numpys if where is None else type(numpys)(f"{numpys}; {how} in {where}")


def _array_made_in(node: Node) -> str:
    made = "" if node.line is None else f", made in {node.line[0]}, line {node.line[1]},"
    return f"an array of shape {node.type.shape}{made}"


def compute_nodes(nodes: Sequence[Node], options: RunOptions | None = None) -> None:
    """Computes nodes, as `_native.compute` does."""
    try:
        if options is None:
            _native.compute(nodes)
        else:
            _native.compute(nodes, options)
    except (ProgramError, RunError) as error:
        raise _of_users(error, nodes) from None


def run_traced(
    traced: Traced, made: Sequence[Node], nodes: Sequence[Node], options: RunOptions, where: str
) -> list[Node]:
    """What a traced function, which made these results, gives of nodes."""
    try:
        return list(traced(nodes, options, where))
    except (ProgramError, RunError) as error:
        raise _of_users(error, made) from None


def run_steps(
    program: Program, inputs: Mapping[str, Node], options: RunOptions, title: str, in_program: Mapping[str, Node]
) -> tuple[dict[str, Node], State]:
    """What steps of a program of ours, which calls nodes so, give of inputs, and its state after that.

    Errors say the title.
    """
    try:
        outputs, _, after = program.run(inputs, options)
    except (ProgramError, RunError) as error:
        numpys = _called(error, in_program, [])
        raise type(numpys)(f"{numpys}; in {title}") from None
    return outputs, after
