"""NumPy's functions and protocols, with our arrays; other libraries are in test_ecosystem."""

from __future__ import annotations

import copy
import pickle

import jax
import ml_dtypes
import numpy as np
import pytest
import torch

import einrel as er

# Debian's torch was built for an older NumPy; DLPack needs none.
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")

X = np.arange(24.0).reshape(2, 3, 4)


def test_numpy_functions_make_lazy_arrays() -> None:
    x = er.asarray(X)
    for ours, numpys in [
        (np.exp(x), np.exp(X)),
        (np.add(x, 1), X + 1),
        (np.sum(x, axis=0), X.sum(0)),
        (np.sum(x, 1), X.sum(1)),
        (np.add.reduce(x), X.sum(0)),
        (np.concatenate([x, X]), np.concatenate([X, X])),
        (np.transpose(x), X.T),
        (np.einsum("ijk->k", x), np.einsum("ijk->k", X)),
        (np.where(x > 3, x, 0), np.where(X > 3, X, 0)),
        (X + x, X + X),
        (np.float64(2) * x, 2 * X),
    ]:
        assert isinstance(ours, er.Array)
        np.testing.assert_allclose(np.asarray(ours), numpys)


def test_numpy_functions_that_we_have_not_take_elements() -> None:
    x = er.asarray(X)
    assert np.median(x) == np.median(X)
    np.testing.assert_array_equal(np.spacing(x), np.spacing(X))
    assert np.allclose(x, X)
    out = np.zeros_like(X)
    assert np.add(x, 1, out=out) is out
    np.testing.assert_array_equal(out, X + 1)


def test_asarray_of_an_array() -> None:
    x = er.asarray(X) + 0
    assert np.asarray(x) is not np.array(x)
    assert np.asarray(x, dtype="f4").dtype == np.float32
    assert np.array(x, copy=True).flags.writeable
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, dtype="f4", copy=False)


def test_dlpack_both_ways() -> None:
    ours = er.asarray(X) * 1
    back = np.from_dlpack(ours)
    np.testing.assert_array_equal(back, X)
    assert np.shares_memory(back, np.asarray(ours))
    assert np.shares_memory(np.asarray(er.from_dlpack(X)), X)
    assert not np.shares_memory(np.asarray(er.from_dlpack(X, copy=True)), X)


def test_dlpack_of_bf16_both_ways() -> None:
    x = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    ours = er.asarray(x) * 2
    tensor = torch.from_dlpack(ours)
    assert tensor.dtype == torch.bfloat16
    assert tensor.tolist() == (2 * np.arange(12).reshape(3, 4)).tolist()
    tensor[0, 0] = 5  # the same memory
    assert float(ours[0, 0]) == 5
    back = er.from_dlpack(torch.arange(6).reshape(2, 3).to(torch.bfloat16).T)
    assert back.dtype == er.bfloat16
    assert (er.asarray(back) + 1).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert er.exp(tensor[:0]).shape == (0, 4)


def test_dlpack_capsules() -> None:
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    for ours, elements in [(er.asarray(x), x), (er.asarray(X), X)]:
        assert '"dltensor"' in repr(ours.__dlpack__())
        assert '"dltensor_versioned"' in repr(ours.__dlpack__(max_version=(1, 0)))
        assert ours.__dlpack_device__() == (1, 0)
        again = er.from_dlpack(er.from_dlpack(ours))
        np.testing.assert_array_equal(np.asarray(again), elements)
        copied = np.asarray(er.from_dlpack(_Wrapped(ours), copy=True))
        assert not np.shares_memory(copied, elements)
        assert np.shares_memory(np.asarray(er.from_dlpack(_Wrapped(ours))), elements)
    fixed = x.copy()
    fixed.flags.writeable = False
    read_only = er.asarray(fixed)
    with pytest.raises(BufferError, match="readonly"):
        read_only.__dlpack__()
    assert not np.asarray(er.from_dlpack(_Wrapped(read_only))).flags.writeable
    assert jax.dlpack.from_dlpack(er.asarray(x)).dtype == jax.numpy.bfloat16
    np.testing.assert_array_equal(np.asarray(er.from_dlpack(jax.numpy.arange(4, dtype="bfloat16"))), x)


class _Wrapped:
    """An array of another library."""

    def __init__(self, array: er.Array) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_operators_ask_the_other_side() -> None:
    class Other:
        def __radd__(self, other: object) -> str:
            return "asked"

    assert er.asarray(X) + Other() == "asked"
    assert (er.asarray(X) == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        er.asarray(X) + "text"


def test_what_numpy_would_change_is_refused() -> None:
    x = er.asarray(X) + 0
    with pytest.raises(TypeError, match="does not change"):
        np.add.at(x, [0], 1)
    with pytest.raises(TypeError, match="does not change"):
        np.copyto(x, X)
    with pytest.raises(TypeError, match="mask"):
        er.asarray(np.ma.masked_array([1.0, 2.0], [True, False])) + 1


def test_options_that_only_numpy_has() -> None:
    x = er.asarray(X)
    np.testing.assert_allclose(np.std(x, ddof=1), np.std(X, ddof=1))
    np.testing.assert_allclose(np.sum(x, where=X > 3), np.sum(X, where=X > 3))
    np.testing.assert_allclose(np.max(x, initial=50.0), 50)


@er.jit
def doubled(x):
    return 2 * x


def test_pickle_and_copy() -> None:
    for x in (X, np.arange(3).astype(ml_dtypes.bfloat16)):
        ours = er.asarray(x)
        for again in (pickle.loads(pickle.dumps(ours + 0)), copy.copy(ours), copy.deepcopy(ours)):
            assert isinstance(again, er.Array)
            np.testing.assert_array_equal(np.asarray(again), x)
    for function in (er.exp, doubled):
        for again in (pickle.loads(pickle.dumps(function)), copy.copy(function), copy.deepcopy(function)):
            assert again is function
    counting = er.program("state x[] = 1.0\nnext x[] = 2 * x[]\noutput next_x")
    state = pickle.loads(pickle.dumps(counting.run(steps=3).state))
    assert counting.run(state=state).next_x.item() == 16
    program = pickle.loads(pickle.dumps(er.program("input A[i]\nZ[i] = A[i] + 1")))
    assert program.run(A=np.ones(2, "f4")).Z.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("function", [np.diagonal, np.trace, lambda x: np.outer(x, x), lambda x: np.take(x, [1, 3])])
def test_numpys_functions_mean_what_they_mean_there(function):
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(np.asarray(function(er.asarray(x))), function(x))


@pytest.mark.parametrize("function", [np.floor_divide, np.remainder, np.bitwise_and, np.power])
def test_numpys_functions_compute_what_the_language_cannot_say(function):
    x, y = np.array([7, -7, 9]), np.array([2, 2, 4])
    np.testing.assert_array_equal(np.asarray(function(er.asarray(x), er.asarray(y))), function(x, y))
    z = np.array([True, False])
    np.testing.assert_array_equal(np.asarray(np.square(er.asarray(z))), np.square(z))


def test_scalars_of_numpy_have_their_type_and_numbers_of_python_none():
    x = er.ones(2, dtype=er.float32)
    assert (x * np.float64(2)).dtype == np.float64
    assert (x * 2.0).dtype == np.float32
    assert er.arange(np.int64(5)).dtype == np.int64
    assert er.arange(0.5, 5.5, 0.5, dtype=int).tolist() == np.arange(0.5, 5.5, 0.5, dtype=int).tolist()
    with pytest.raises(ValueError, match="negative exponent"):
        er.asarray([2, 3]) ** np.int64(-1)


@pytest.mark.parametrize("axes", [([5], [0]), 3, -1, ([0, 0], [0, 1])])
def test_tensordot_refuses_dimensions_that_are_not_there(axes):
    with pytest.raises((ValueError, IndexError)):
        er.tensordot(np.ones((3, 3)), np.ones((3, 3)), axes=axes)


def test_copies_stay_as_they_were() -> None:
    def copies(x):
        return [x.copy(), copy.copy(x), copy.deepcopy(x), x.astype(x.dtype), er.astype(x, x.dtype, copy=True)]

    elements = np.ones(2)
    of_numpys = copies(er.asarray(elements))
    x = er.asarray(elements)
    lazy = x * 1
    of_lazy = [lazy.copy(), copy.copy(lazy)]
    elements[0] = 5
    assert [y.tolist() for y in [*of_numpys, *of_lazy]] == [[1.0, 1.0]] * 7
    for computed in (lazy.compute(), (x + 0).compute()):
        before = computed.tolist()
        for y in copies(computed):
            np.asarray(y)[0] = 9
        np.asarray(computed)[1] = 7
        assert computed.tolist() == [before[0], 7.0]
    lazy = x * 1
    other = lazy.astype(np.float64)
    for first, second in ((lazy, other), (other, lazy), er.compute(x + 1, (x + 1).astype(np.float64))):
        assert not np.shares_memory(np.asarray(first), np.asarray(second))
    first, second = er.jit(lambda x: (y := x * 2, y.copy()))(x)
    assert not np.shares_memory(np.asarray(first), np.asarray(second))
    assert x.astype(np.float64, copy=False)._node is x._node


def test_gradients_go_through_copies() -> None:
    x = er.asarray(np.array([1.0, 2.0]))
    for way in (lambda x: x.copy(), copy.copy, lambda x: x.astype(np.float64), lambda x: (x * 1).copy()):
        assert er.grad(er.sum(way(x) ** 2 * x), x).tolist() == [3.0, 12.0]
        assert er.grad(er.sum(er.jit(way)(x) ** 2 * x), x).tolist() == [3.0, 12.0]
