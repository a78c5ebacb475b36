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
    return type(error)(said["what"] + (f"; {said['instead']}" if said["instead"] else ""))


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


_NAME_IN_PROGRAM = re.compile(r"'([tx][0-9]+)'")


def _with_names(error: ProgramError | RunError, nodes: Sequence[Node]) -> ProgramError | RunError:
    """The error with the names of the user's variables, or shapes, in place of those that our program has."""
    text = str(error)
    if _NAME_IN_PROGRAM.search(text) is None:
        return error
    in_program = dict(_native.names_in_program(nodes))
    variables = {node: name for name, node in reversed(er._names.names_around(nodes))}

    def called(match: re.Match[str]) -> str:
        node = in_program.get(match[1])
        if node is None:
            return match[0]
        return f"'{variables[node]}'" if node in variables else f"an array of shape {node.type.shape}"

    return type(error)(_NAME_IN_PROGRAM.sub(called, text))


def compute_nodes(nodes: Sequence[Node], options: RunOptions | None = None) -> None:
    """Computes nodes, as `_native.compute` does."""
    try:
        if options is None:
            _native.compute(nodes)
        else:
            _native.compute(nodes, options)
    except (ProgramError, RunError) as error:
        raise _as_numpys(_with_names(error, nodes)) from None


def run_traced(traced: Traced, nodes: Sequence[Node], options: RunOptions, where: str) -> list[Node]:
    """What a traced function gives of these nodes."""
    try:
        return list(traced(nodes, options, where))
    except (ProgramError, RunError) as error:
        raise _as_numpys(error) from None


def run_program(program: Program, inputs: Mapping[str, Node], options: RunOptions) -> tuple[dict[str, Node], State]:
    """What a program of ours gives of these nodes, and its state after that."""
    try:
        outputs, _, after = program.run(inputs, options)
    except (ProgramError, RunError) as error:
        raise _as_numpys(error) from None
    return outputs, after
