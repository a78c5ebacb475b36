"""Where in the user's code something happens."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import FrameType
from typing import Any, Final

from . import _native
from ._native import Node

_OURS: Final = os.path.dirname(__file__) + os.sep
# Libraries that take our arrays for the user, by the folders that they are installed in.
_OTHERS: Final = tuple(f"-packages{os.sep}{name}{os.sep}" for name in ("numpy", "torch", "jax"))


@lru_cache(maxsize=4096)
def is_of_user(file: str) -> bool:
    """Whether it is the user's code, not ours, nor a library's that takes our arrays for the user."""
    return not file.startswith(_OURS) and not any(folder in file for folder in _OTHERS)


def _frame_of_user() -> FrameType | None:
    """That of the code that called us, perhaps through another library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_of_user(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def line_of_user() -> str:
    """The line of Python that called us."""
    frame = _frame_of_user()
    return text_of_line(None if frame is None else (frame.f_code.co_filename, frame.f_lineno))


def text_of_line(line: tuple[str, int] | None) -> str:
    """A line as it is told."""
    return "an unknown line" if line is None else f"{line[0]}, line {line[1]}"


@contextlib.contextmanager
def made_with(node: Node) -> Iterator[None]:
    """What is made meanwhile belongs to the line that made this node."""
    _native.push_line_of(node)
    try:
        yield
    finally:
        _native.pop_line()


def frames_of_user() -> Iterator[Mapping[str, Any]]:
    """The variables of the code that called us, and of what called that, as far as it is the user's."""
    frame = _frame_of_user()
    first = frame
    while frame is not None:
        yield frame.f_locals
        frame = frame.f_back
    if first is not None and first.f_locals is not first.f_globals:
        yield first.f_globals


def line_of_computing() -> str:
    """The same, of what is computed there: said of it when nothing else is known any more."""
    return f"computed in {line_of_user()}, from arrays that are gone by now"
