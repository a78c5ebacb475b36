"""Tokens as callers give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def tokens_of(what: str, given: Any, vocabulary: int) -> list[int]:
    """Tokens below `vocabulary`, checked; `what` they are of, such as "a prompt".

    Raises TypeError for what is no list of whole numbers, ValueError for none, and for one that the model has not.
    """
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not is_list and not (isinstance(given, np.ndarray) and given.ndim == 1):
        raise TypeError(f"{what} is {given!r}: give a list of tokens; tokenizer.encode makes them of a text")
    for token in given:
        if isinstance(token, bool) or not isinstance(token, int | np.integer):
            raise TypeError(f"{what} has {token!r}, which is no token: tokenizer.encode makes tokens of a text")
        if not 0 <= token < vocabulary:
            raise ValueError(f"{what} has the token {token}; the model has tokens up to {vocabulary - 1}")
    if not len(given):
        raise ValueError(f"{what} without tokens: give one or more")
    return [int(token) for token in given]
