"""For programs that print what modules say of arrays and devices that they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def tell(call: Callable[[], Any]) -> None:
    """Prints the ValueError of a call."""
    try:
        call()
    except ValueError as error:
        print(error)
    else:
        print("nothing was refused")
