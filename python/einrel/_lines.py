"""Where in the user's code something happens."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Final

_OURS: Final = os.path.dirname(__file__) + os.sep
# Libraries that take our arrays for the user, by the folders that they are installed in.
_OTHERS: Final = tuple(f"-packages{os.sep}{name}{os.sep}" for name in ("numpy", "torch", "jax"))


def line_of_user() -> str:
    """The line of Python that called us, perhaps through another library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS) and not any(folder in file for folder in _OTHERS):
            return f"{file}, line {frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


def line_of_computing() -> str:
    """The same, of what is computed there: said of it when nothing else is known any more."""
    return f"computed in {line_of_user()}, from arrays that are gone by now"
