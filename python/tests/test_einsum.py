"""What einsum has besides NumPy's notation, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einrel as er


def test_join_and_reduce(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    expected = ((x[:, None] - y[None]) ** 2).max(-1)
    np.testing.assert_allclose(np.asarray(er.einsum("ik,jk->ij", x, y, join="sq(x-y)", reduce="max")), expected)
    many = er.einsum("i,i,i,i->", x[:, 0], x[:, 1], x[:, 2], x[:, 0], join="x1 + x2 * x3 - x4", reduce="min")
    np.testing.assert_allclose(float(many), (x[:, 1] * x[:, 2]).min())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_einsum_of_two_operands(data: st.DataObject) -> None:
    extents = dict(zip("ijkl", data.draw(st.lists(st.integers(1, 4), min_size=4, max_size=4))))
    left, right = (data.draw(st.lists(st.sampled_from("ijkl"), max_size=3)) for _ in range(2))
    output = data.draw(st.permutations(sorted(set(left + right))))
    output = output[: data.draw(st.integers(0, len(output)))]
    x, y = (np.arange(np.prod([extents[i] for i in term]), dtype="f8").reshape([extents[i] for i in term]) + 1
            for term in (left, right))  # fmt: skip
    subscripts = f"{''.join(left)},{''.join(right)}->{''.join(output)}"
    np.testing.assert_allclose(np.asarray(er.einsum(subscripts, x, y)), np.einsum(subscripts, x, y))


def test_errors_point_into_the_call() -> None:
    with pytest.raises(er.ProgramError, match="label 'j' has extent 3 before, but 4 in operand 2") as error:
        er.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 2)))
    assert "^" in str(error.value)
    assert isinstance(error.value, ValueError)
    with pytest.raises(er.ProgramError, match="unknown reduction 'mxa'"):
        er.einsum("ij->i", np.ones((2, 3)), reduce="mxa")
    with pytest.raises(er.ProgramError, match="unknown name 'w'"):
        er.einsum("ij->i", np.ones((2, 3)), join="w")


def test_out_and_casting() -> None:
    x = np.arange(6).reshape(2, 3)
    out = np.zeros(2)
    assert er.einsum("ij->i", x, out=out) is out
    np.testing.assert_array_equal(out, x.sum(1))
    with pytest.raises(TypeError, match="under the rule 'safe'"):
        er.einsum("ij->i", x.astype("f8"), out=np.zeros(2, "i4"))
    with pytest.raises(ValueError, match="order 'W'"):
        er.einsum("ij->i", x, order="W")


def test_operands_are_converted_to_their_common_type_first() -> None:
    whole, ones = np.array([100000, 200000], "i4"), np.ones(2)
    for operands in (
        (whole, whole, ones),
        (ones, whole, whole),
        (np.array([300.0] * 2, "f2"),) * 2 + (np.ones(2, "f4"),),
    ):
        ours, numpys = er.einsum("i,i,i->", *operands), np.einsum("i,i,i->", *operands)
        assert (ours.dtype, float(ours)) == (numpys.dtype, float(numpys))
        assert float(er.einsum("i,i,i->", *operands, join="x * y * z")) == float(numpys)
    matrices = np.full((2, 3), 100000, "i4"), np.full((3, 2), 100000, "i4"), np.ones((2, 2))
    np.testing.assert_array_equal(er.einsum("ij,jk,kl->il", *matrices), np.einsum("ij,jk,kl->il", *matrices))


def test_labels_of_any_number_and_letters_of_any_alphabet(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    np.testing.assert_allclose(er.einsum(a, [52, 900], b, [900, 60], [52, 60]), a @ b)
    np.testing.assert_allclose(er.einsum(a, [70, 10**9], b, [10**9, 60]), (a @ b).T)  # in the order of numbers
    np.testing.assert_allclose(er.einsum(a, [..., 99], b, [99, 98], [..., 98]), a @ b)
    np.testing.assert_allclose(er.einsum("\u03b1\u03b2,\u03b2\u03b3->\u03b1\u03b3", a, b), a @ b)
    np.testing.assert_allclose(er.einsum("z\u03b2,\u03b2a", a, b), (a @ b).T)
    for labels in ([-1, 0], [0, -2]):
        with pytest.raises(ValueError, match="from 0 up"):
            er.einsum(a, labels)
    with pytest.raises(ValueError, match="53 labels: it has 52 at most"):
        er.einsum(*[part for i in range(53) for part in (np.ones(2), [100 + i])], [])
