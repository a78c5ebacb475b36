"""NumPy's own tests of einsum, with ours in its place."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import pytest
from numpy._core.tests.test_einsum import *  # noqa: F403

import einrel as er

DIFFERENT: Final = {
    "test_einsum_views": "results own their memory: they are no views of operands",
    "test_output_order": "results are in row-major order",
    "test_subscript_range": "labels of the interleaved form are any numbers from 0 up, also above 51",
    "test_path_type_input_invalid": "paths are not looked at: the order of products is planned in any case",
    "test_einsum_0d_out": "the cast from float to int is checked for each `optimize`, as NumPy does for False",
}
numpys = np.einsum


def given_dtype(arguments: Any, dtype: Any = None, **options: Any) -> Any:
    """The type that NumPy's result has."""
    if dtype is not None:
        return dtype
    operands = arguments[1:] if isinstance(arguments[0], str) else arguments[: len(arguments) // 2 * 2 : 2]
    return np.result_type(*map(np.asarray, operands))


@functools.wraps(np.einsum)
def einsum(*arguments: Any, **options: Any) -> Any:
    """Ours. Small integers are widened on the way in, so that the caller has to narrow the result; what the language
    has no type for, objects and complex numbers for example, is left to NumPy."""
    try:
        result = er.einsum(*arguments, **options)
    except NotImplementedError:
        return numpys(*arguments, **options)
    return result if isinstance(result, np.ndarray) else np.asarray(result).astype(given_dtype(arguments, **options))


@pytest.fixture(autouse=True)
def our_einsum(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(np, "einsum", einsum)
    reason = DIFFERENT.get(request.node.originalname)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
