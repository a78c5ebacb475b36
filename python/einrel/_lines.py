"""Where in the user's code something happens."""

from __future__ import annotations

import os
import sys
from types import FrameType

import numpy as np

_NOT_THE_USERS = tuple(os.path.dirname(file) + os.sep for file in (__file__, np.__file__))


def line_of_user() -> str:
    """The line of Python that called us, perhaps through NumPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}" if frame else "an unknown line"


def line_of_computing() -> str:
    """The same, of what is computed there: said of it when nothing else is known any more."""
    return f"computed in {line_of_user()}, from arrays that are gone by now"
