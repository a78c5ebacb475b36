"""Processes that mpirun started together."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from . import _native


def rank() -> int:
    """The number of this process among those that mpirun started with it, from 0.

    >>> rank()
    0
    """
    return _native.rank()


def ranks() -> int:
    """How many processes mpirun started together: each runs the same script, and every computation is one on all.

    >>> ranks()
    1
    """
    return _native.ranks()


def end_together() -> None:
    """From now on an error that ends this process ends all: the others would wait for it."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if rank() > 0:
            time.sleep(1)  # where all fail alike, the first one says so for all
        before(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        _native.end_ranks(1)

    sys.excepthook = hook
