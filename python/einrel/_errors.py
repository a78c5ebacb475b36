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


_SAID_NAME = re.compile(r"(?:'|\binput )([tx][0-9]+)((?:_[a-z0-9]+)*)(?:'|\b)")
_NAME = re.compile(r"\b[tx][0-9]+(?=_|\b)")


def _of_users(error: ProgramError | RunError, nodes: Sequence[Node]) -> Exception:
    """The error with names of the user's variables in place of those of our program, or shapes and lines."""
    text = str(error)
    if _NAME.search(text) is None:
        return _as_numpys(error)
    in_program = dict(_native.names_in_program(nodes))
    variables = {node: name for name, node in reversed(er._names.names_around(nodes))}

    def called(match: re.Match[str]) -> str:
        node = in_program.get(match[1])
        if node is None:
            return match[0]
        name = f"'{variables[node]}'" if node in variables else f"an array of shape {node.type.shape}{_made_in(node)}"
        return f"what goes into {name}" if match[2] else name

    numpys = _as_numpys(type(error)(_SAID_NAME.sub(called, text).replace(",;", ";")))
    if not isinstance(numpys, (SingularMatrix, PositionOutside)):
        return numpys
    lines = [in_program[name].line for name in _NAME.findall(text) if name in in_program]
    where = next((f"{file}, line {number}" for file, number in filter(None, lines)), None)
    how = "it was made" if isinstance(numpys, SingularMatrix) else "taken"
    return numpys if where is None else type(numpys)(f"{numpys}; {how} in {where}")


def _made_in(node: Node) -> str:
    return "" if node.line is None else f", made in {node.line[0]}, line {node.line[1]},"


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


_NAME_IN_STEP = re.compile(r"'[a-z]+[0-9]+[_a-z0-9]*'")


def run_steps(
    program: Program, inputs: Mapping[str, Node], options: RunOptions, title: str
) -> tuple[dict[str, Node], State]:
    """What steps of a program of ours give of these nodes, and its state after that. Errors say the title."""
    try:
        outputs, _, after = program.run(inputs, options)
    except (ProgramError, RunError) as error:
        numpys = _as_numpys(type(error)(_NAME_IN_STEP.sub("an array of a step", str(error))))
        raise type(numpys)(f"{numpys}; in {title}") from None
    return outputs, after
