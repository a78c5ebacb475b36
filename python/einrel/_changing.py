"""Numbers that change from call to call: operands of one program, instead of parts of a program each."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

_FEW: Final = 8  # numbers of a form that are parts of their programs, which are faster
_MOST_FORMS: Final = 1024
_seen: Final[dict[Hashable, set[Hashable]]] = {}  # the numbers of the last forms


def changes(form: Hashable, numbers: Hashable) -> bool:
    """Whether something of this form came with many other numbers before, and not with these."""
    known = _seen.pop(form, set())
    _seen[form] = known
    if len(_seen) > _MOST_FORMS:
        _seen.pop(next(iter(_seen)), None)
    if numbers not in known and len(known) == _FEW:
        return True
    known.add(numbers)
    return False
