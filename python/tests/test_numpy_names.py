"""NumPy's names and positions beside the standard's: values, types and shapes as NumPy's, in traced functions, too."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pytest
from numpy_names import NOT_TRACED, OTHERS, SMOOTH, arrays, calls
from test_derivatives import check_derivatives

import einrel as er

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")

NDArray = np.ndarray[Any, Any]
ARRAYS: Final = arrays()


def result(call: str, xp: Any, given: dict[str, Any]) -> Any:
    return eval(call, {"xp": xp, "np": np, **given})


def used(call: str) -> list[str]:
    return [name for name in ARRAYS if re.search(rf"(?<![\w.\"]){name}\b(?!=)", call)]


def check_same(ours: Any, numpys: Any, call: str) -> None:
    if isinstance(numpys, (tuple, list)):
        assert len(ours) == len(numpys), call
        for one, other in zip(ours, numpys):
            check_same(one, other, call)
        return
    if isinstance(numpys, np.dtype):
        assert ours == numpys, call
        return
    expected, found = np.asarray(numpys), np.asarray(ours)
    assert found.shape == expected.shape, call
    if isinstance(numpys, (np.ndarray, np.generic)):
        assert found.dtype == expected.dtype, f"{call}: {found.dtype}, but NumPy {expected.dtype}"
    tolerance = {4: 1e-5, 8: 2e-5 if expected.dtype.kind == "c" else 1e-12}.get(expected.dtype.itemsize, 1e-12)
    np.testing.assert_allclose(found, expected, tolerance, 1e-14, err_msg=call)
    if expected.dtype.kind == "f":
        zeros = (found == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]), err_msg=call)


@pytest.mark.parametrize("call", [*calls(SMOOTH), *calls(OTHERS)])
def test_a_call_is_numpys(call: str) -> None:
    check_same(result(call, er, {name: er.asarray(x) for name, x in ARRAYS.items()}), result(call, np, ARRAYS), call)


@pytest.mark.parametrize("call", [call for call in calls(SMOOTH) + calls(OTHERS) if used(call)])
def test_a_traced_call_is_numpys(call: str) -> None:
    expected = result(call, np, ARRAYS)
    if not isinstance(expected, (np.ndarray, np.floating)) or any(part in call for part in NOT_TRACED):
        return
    names = used(call)
    traced = er.jit(lambda *given: result(call, er, dict(zip(names, given))))
    check_same(traced(*[ARRAYS[name] for name in names]), expected, call)


@pytest.mark.parametrize("call", calls(SMOOTH))
def test_a_smooth_call_has_gradients(call: str, rng: np.random.Generator) -> None:
    floats = [name for name in used(call) if ARRAYS[name].dtype == np.float64]
    others = {name: er.asarray(x) for name, x in ARRAYS.items() if name not in floats}

    def function(*given: er.Array) -> Any:
        return result(call, er, {**others, **dict(zip(floats, given))})

    for jitted in (False, True):
        check_derivatives(function, [ARRAYS[name] for name in floats], np.dtype("f8"), rng, jitted)


@pytest.mark.parametrize("call", calls(SMOOTH))
def test_a_call_of_samples_is_that_of_each(call: str) -> None:
    floats = [name for name in used(call) if ARRAYS[name].dtype == np.float64]
    others = {name: er.asarray(x) for name, x in ARRAYS.items() if name not in floats}
    samples = [np.stack([ARRAYS[name] * scale for scale in (1.0, 1.01)]) for name in floats]

    def function(*given: er.Array) -> Any:
        return result(call, er, {**others, **dict(zip(floats, given))})

    each = [function(*[er.asarray(sample[i]) for sample in samples]) for i in range(2)]
    np.testing.assert_allclose(np.asarray(er.vmap(function)(*samples)), np.stack(each), 1e-10, 1e-12)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_integers_are_divided_as_numpys(dtype: str, rng: np.random.Generator) -> None:
    last = np.iinfo(dtype)
    near = [0, 1, -1, 2, -3, 7, last.max, last.min, last.max - 1, last.min + 1, 2**31 - 1, -(2**31), 2**53 % last.max]
    drawn = rng.integers(last.min, last.max, 60, dtype)
    x = np.concatenate([np.array(near, dtype), drawn, (drawn % 199 - 99).astype(dtype)])
    for name in ("floor_divide", "remainder", "mod", "fmod", "divmod"):
        check_same(getattr(er, name)(x[:, None], x), getattr(np, name)(x[:, None], x), name)
