"""NumPy's names beside those of the array API standard: calls that both packages have to understand alike.

A call is an expression of `xp`, NumPy or einrel, and of arrays that `arrays` makes.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

NDArray = np.ndarray[Any, Any]


def arrays() -> dict[str, NDArray]:
    """By the names that calls use: floats of several shapes, then integers, masks, positions and complex numbers."""
    rng = np.random.default_rng(5)
    return {
        "a": rng.standard_normal((3, 4)),
        "b": rng.standard_normal((4, 3)),
        "s": rng.standard_normal((3, 3)) + 3 * np.eye(3),
        "t": rng.standard_normal((2, 3, 4)),
        "v": rng.standard_normal(5),
        "w": rng.standard_normal(4),
        "p": rng.uniform(0.5, 2.0, 5),
        "u": rng.uniform(-0.9, 0.9, (2, 3)),
        "up": np.array([-1.0, 0.5, 2.0, 4.0]),
        "few": np.array([0.5, -1.5, 2.0], "f4"),
        "n": np.array([[7, -7, 3], [-3, 5, -5]]),
        "n32": np.array([7, -7, 3, -3], "i4"),
        "i": np.array([3, 0, 2, 2]),
        "m": np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]]),
        "gaps": np.array([[1.0, np.nan, 3.0], [np.nan, -2.0, 0.5]]),
        "ends": np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]),
        "z": np.array([1 + 2j, 3 - 1j, -2j]),
    }


# Calls that are smooth at these arrays, in all of them that are of floats: gradients are compared, too.
SMOOTH: Final = """
xp.compress([True, False, True], a, axis=0) * 2 ; xp.compress([0, 1, 1], v) * 2 ; xp.extract(m, a) * 2
xp.concatenate([a, a * a], 1) ; xp.concatenate((a, s), axis=1) ; xp.concatenate([a, a], None) ; xp.vstack([a, w])
xp.vstack([v, v * v]) ; xp.hstack([v, p]) ; xp.hstack([a, s]) ; xp.dstack([a, a * a]) ; xp.column_stack([v, p])
xp.column_stack([w, b]) ; xp.stack([a, a * a], 1) ; xp.append(v, p) ; xp.append(a, s, 1) ; xp.block([[a, s], [s, a]])
xp.block([v, p]) ; xp.split(t, 2, 2)[1] ; xp.split(v, [1, 3])[1] ; xp.array_split(v, 2)[0] ; xp.hsplit(a, 2)[1]
xp.vsplit(a, 3)[2] ; xp.dsplit(t, 2)[0] ; xp.pad(a, 1) ; xp.pad(a, ((1, 0), (0, 2)), mode="edge")
xp.pad(v, 2, "reflect") ; xp.pad(v, (1, 2), "symmetric") ; xp.pad(v, 3, "wrap")
xp.pad(a, ((0, 1), (2, 0)), constant_values=3) ; xp.pad(v, (1, 2), constant_values=(4, 5)) ; xp.delete(v, 1)
xp.delete(a, [0, 2], 1) ; xp.delete(v, slice(1, 3)) ; xp.delete(a, 5) ; xp.insert(v, 1, 7.0)
xp.insert(v, [1, 3], p[:2]) ; xp.insert(a, 1, w, axis=0) ; xp.insert(v, 2, p) ; xp.insert(a, -1, 2.0, 1)
xp.dot(a, b) ; xp.dot(v, p) ; xp.dot(a, w) ; xp.dot(t, b) ; xp.dot(3.0, a) ; xp.inner(a, a) ; xp.inner(t, w)
xp.vdot(a, b) ; xp.kron(a, s) ; xp.kron(v, a) ; xp.cross(s, s[::-1]) ; xp.cross(a[:, :3], s, axis=0) ; xp.outer(a, v)
xp.diag(v) ; xp.diag(v, 2) ; xp.diag(v, -1) ; xp.diag(a, 1) ; xp.diagflat(a, -1) ; xp.diagonal(t)
xp.diagonal(t, 1, 1, 2) ; xp.trace(t) ; xp.trace(s, 1) ; xp.trace(t, 0, 1, 2) ; xp.linalg.norm(a)
xp.linalg.norm(a, 1) ; xp.linalg.norm(a, axis=1) ; xp.linalg.norm(v, 3) ; xp.linalg.norm(t, axis=(0, 2))
xp.linalg.norm(s, "fro", keepdims=True) ; xp.linalg.norm(v, np.inf) ; xp.linalg.norm(t, np.inf, (0, 2), True)
xp.linalg.cond(s, 1) ; xp.linalg.cond(s, "fro") ; xp.linalg.multi_dot([w, b, a, b]) ; xp.linalg.matrix_power(s, 3)
xp.linalg.cross(s, s[::-1]) ; xp.swapaxes(t, 0, 2) * 2 ; xp.rollaxis(t, 2) * 2 ; xp.rollaxis(t, 0, 3) * 2
xp.ravel(a) * 2 ; xp.ravel(a, order="F") * 2 ; xp.reshape(a, (2, 6), order="F") * 2 ; xp.atleast_1d(v) * 2
xp.atleast_2d(v) * 2 ; xp.atleast_3d(a) * 2 ; xp.atleast_3d(v) * 2 ; xp.fliplr(a) * 2 ; xp.flipud(a) * 2
xp.rot90(a) * 2 ; xp.rot90(t, 3, (1, 2)) * 2 ; xp.rot90(a, 2) * 2 ; xp.flip(a, 1) * 2 ; xp.roll(a, 1, 0) * 2
xp.roll(a, (1, 2), (0, 1)) * 2 ; xp.tile(a, (2, 1)) * 2 ; xp.moveaxis(t, 0, 1) * 2 ; xp.repeat(a, 2, 0) * 2
xp.repeat(v, [1, 0, 2, 1, 1]) * 2 ; xp.squeeze(a[None], 0) * 2 ; xp.expand_dims(a, 1) * 2
xp.transpose(t, (1, 0, 2)) * 2 ; xp.permute_dims(t, (1, 0, 2)) * 2 ; xp.diff(v) ; xp.diff(a, 2) ; xp.diff(a, 1, 0)
xp.diff(a, axis=0, prepend=0) ; xp.diff(v, append=p) ; xp.ediff1d(a) ; xp.ediff1d(v, to_end=9.0, to_begin=[1.0, 2.0])
xp.take(a, i) ; xp.take(a, i, 1) ; xp.take(v, [7, -9], mode="wrap") ; xp.take(v, [7, -9], mode="clip")
xp.take_along_axis(a, xp.asarray([[1], [0], [3]]), 1) ; xp.tril(s, -1) ; xp.triu(a, 1) ; xp.triu(v) ; xp.sum(a, 0)
xp.sum(a, (0, 1)) ; xp.sum(a, 0, None, None, True) ; xp.sum(a, initial=2.0) ; xp.sum(a, where=m) ; xp.mean(a, 1)
xp.mean(a, where=m) ; xp.mean(a, 0, keepdims=True, where=m) ; xp.prod(a, 1, initial=2.0, where=m) ; xp.max(a, 1)
xp.amax(a, 0) ; xp.min(a, axis=1, initial=5.0) ; xp.amin(a) ; xp.max(a, 0, where=m, initial=-5.0) ; xp.std(a, ddof=1)
xp.std(a, 0, None, None, 1) ; xp.var(a, axis=0, ddof=1) ; xp.var(a, correction=1) ; xp.std(a, where=m)
xp.var(a, 1, mean=xp.mean(a, 1, keepdims=True)) ; xp.ptp(a, 1) ; xp.average(a) ; xp.average(a, 1, weights=p[:4])
xp.average(a, weights=a * a) ; xp.average(a, axis=0, weights=p[:3], returned=True)[1] ; xp.cov(a)
xp.cov(a, rowvar=False) ; xp.cov(v, p) ; xp.cov(v) ; xp.cov(a, ddof=0) ; xp.cov(a, bias=True) ; xp.corrcoef(a) * 0.5
xp.corrcoef(v, p)[0, 1] ; xp.cumsum(a) ; xp.cumsum(a, 0) ; xp.cumprod(a, axis=1) ; xp.cumprod(a)
xp.cumulative_sum(v, include_initial=True) ; xp.cumulative_prod(a, axis=0) ; xp.gradient(v) ; xp.gradient(a)[0]
xp.gradient(a, axis=1) ; xp.gradient(v, 2.0) ; xp.gradient(w, up) ; xp.gradient(v, edge_order=2)
xp.gradient(w, up, edge_order=2) ; xp.gradient(a, 2.0, 3.0)[1] ; xp.trapezoid(v) ; xp.trapezoid(a, dx=0.5, axis=0)
xp.trapezoid(w, up) ; xp.trapezoid(a, up) ; xp.convolve(v, w) ; xp.convolve(v, w, "same") ; xp.convolve(w, v, "valid")
xp.convolve(w, v, "same") ; xp.correlate(v, w) ; xp.correlate(v, w, "full") ; xp.correlate(w, v, "same")
xp.correlate(w, v, "full") ; xp.correlate(v, w, "same") ; xp.interp(u, up, w) ; xp.interp(u * 9, up, w, left=-3.0)
xp.interp(u * 9, up, w, right=8.0) ; xp.polyval(w, v) ; xp.arcsin(u) ; xp.arccos(u) ; xp.arctan(a * 3)
xp.arctan2(v, p) ; xp.arctan2(p, v) ; xp.arctan2(v, -p) ; xp.arcsinh(a) ; xp.arccosh(p + 1) ; xp.arctanh(u)
xp.asin(u) ; xp.acos(u) ; xp.atan(a) ; xp.atan2(v, w[:, None]) ; xp.exp2(a) ; xp.cbrt(a) ; xp.deg2rad(a)
xp.rad2deg(a) ; xp.degrees(a) ; xp.radians(a) ; xp.fabs(a) ; xp.sinc(a) ; xp.absolute(a) ; xp.logaddexp2(v, p)
xp.fmax(a, s[:, :1]) ; xp.fmin(a, 0.1) ; xp.fmod(a, 0.3) ; xp.fmod(p, -v) ; xp.mod(a, 0.3) ; xp.power(p, v)
xp.float_power(p, 3) ; xp.power(a, 2) ; xp.true_divide(a, 3) ; xp.divmod(a, 0.7)[1] ; xp.modf(a)[0] ; xp.reciprocal(a)
xp.ldexp(a, 3) ; xp.nan_to_num(a) ; xp.heaviside(a, 0.5) * a ; xp.fix(a) * a ; xp.rint(a) * a ; xp.clip(a, -0.5, 0.5)
xp.clip(a, a_min=0, a_max=1) ; xp.clip(a, None, 0.5) ; xp.select([m, ~m], [a, a * a]) ; xp.select([m[0]], [w], 3.0)
xp.piecewise(v, [p > 1, p < 0.7], [lambda x: x * x, 2.0, lambda x: -x]) ; xp.nansum(a, 0) ; xp.nanprod(a, 1)
xp.nanmean(a) ; xp.nanvar(a, 0, ddof=1) ; xp.nanstd(a) ; xp.nanmax(a, 0) ; xp.nanmin(a) ; xp.nancumsum(a, 1)
xp.nancumprod(a, 1) ; xp.array(a) * 2 ; xp.copy(a) * 2 ; xp.conjugate(a) * 2 ; xp.where(m, a, 0)
xp.geomspace(p[0], p[1], 4) ; xp.logspace(u[0, 0], u[0, 1], 3) ; xp.linspace(v[0], v[1], 5)
xp.linspace(w, 1.0, 3, axis=1) ; xp.full((2, 2), v[0]) * 2 ; xp.angle(v) * v ; xp.meshgrid(v, w)[0] * 2
xp.meshgrid(v, w, sparse=True)[1] * 2 ; a.dot(b) ; a.clip(0, 1) ; a.take(i) ; a.take(i, 1) ; a.repeat(2)
a.repeat(2, 1) ; a.ravel() * 2 ; a.flatten("F") * 2 ; t.swapaxes(0, 1) * 2 ; a[None].squeeze(0) * 2
t.transpose(2, 0, 1) * 2 ; t.transpose((2, 0, 1)) * 2 ; s.trace() ; t.trace(0, 1, 2) ; s.diagonal() * 2
s.diagonal(1) * 2 ; a.conj() * 2 ; a.conjugate() * 2 ; a.real * 2 ; a.cumsum() ; a.cumsum(0) ; a.cumprod(axis=1)
a.sum(0) ; a.sum(axis=1, keepdims=True) ; a.sum(where=m) ; a.mean(0) ; a.std(ddof=1) ; a.var(0, ddof=1) ; a.max(1)
a.min(axis=0) ; a.prod(1) ; a.reshape(4, 3) * 2 ; a.reshape((2, -1), order="F") * 2 ; a.copy() * 2
"""

# Calls of constants, integers, masks and special values, and of what has no slope.
OTHERS: Final = """
xp.zeros(3, "f4") ; xp.ones((2, 3), "f4", "F") ; xp.full((2,), 1, "i4", "C") ; xp.zeros_like(a, "f4", "C", True, (2,))
xp.zeros((2, 3), xp.float32) ; xp.ones(2, int) ; xp.ones((2, 2), "i4") ; xp.full((2,), 7) ; xp.full((2, 2), 3, "f4")
xp.empty((2, 3), "f4").shape ; xp.eye(3) ; xp.eye(2, 3, 1) ; xp.eye(3, dtype="i4") ; xp.identity(3)
xp.identity(2, "i4") ; xp.tri(3) ; xp.tri(2, 4, 1, "i4") ; xp.zeros_like(a) ; xp.zeros_like(a, "i4") ; xp.ones_like(n)
xp.full_like(a, 2) ; xp.full_like(a, 2, "i4") ; xp.zeros_like(a, shape=(2,)) ; xp.arange(5) ; xp.arange(1, 2, 0.1)
xp.arange(0, 4, 1, "f4") ; xp.arange(10, 0, -3) ; xp.linspace(0, 1) ; xp.linspace(0, 1, 5, False)
xp.linspace(0, 1, 5, retstep=True)[1] ; xp.linspace(0, 9, 4, dtype=int) ; xp.logspace(0, 2, 3)
xp.logspace(0, 3, 4, base=2) ; xp.geomspace(1, 8, 4) ; xp.geomspace(-8, -1, 4) ; xp.array([1, 2])
xp.array([[1.0, 2]], "f4") ; xp.array(3, ndmin=2) ; xp.array([1, 2], copy=False) if 0 else xp.array([1])
xp.asarray([1, 2.5], "f4") ; xp.indices((2, 3)) ; xp.indices((2, 3), sparse=True)[1]
xp.fromfunction(lambda i, j: i + j, (2, 2)) ; xp.fromfunction(lambda i: 2 * i, (3,), dtype=int)
xp.meshgrid(up, i, indexing="ij")[1] ; xp.diag(i) ; xp.diag(n, 1) ; xp.array([few, few]) ; xp.concatenate([n32, i])
xp.concatenate([a, a], dtype="f4") ; xp.concatenate([few, n32])
xp.concatenate([n, n], 1, dtype="f4", casting="unsafe") ; xp.stack([n32, i]) ; xp.stack([a, m], 2)
xp.hstack([n32, few]) ; xp.pad(n, 1) ; xp.pad(n, ((1, 2), (0, 1)), constant_values=((1, 2), (3, 4))) ; xp.pad(m, 1)
xp.pad(n32, (0, 2), "edge") ; xp.insert(n32, 1, 2.7) ; xp.insert(n32, [0, 0, 2], [9, 8, 7])
xp.insert(n, slice(0, 2), 5) ; xp.delete(n, [True, False, True], 1) ; xp.delete(n32, [-1, 0]) ; xp.append(n32, 0.5)
xp.append(i, n32) ; xp.repeat(n32, 2) ; xp.repeat(n, [2, 1], 0) ; xp.sum(n) ; xp.sum(n32, dtype=float)
xp.sum(a, 0, "f4") ; xp.sum(m) ; xp.sum(n, 1, initial=3) ; xp.mean(n) ; xp.mean(few) ; xp.mean(a, 0, "f4")
xp.mean(m, 0) ; xp.std(n) ; xp.std(few, ddof=1) ; xp.var(a, 0, "f4") ; xp.prod(n) ; xp.prod(n32, 0, "f4")
xp.max(n, 1) ; xp.max(n32, initial=100) ; xp.max(n32, initial=0.5) ; xp.min(few) ; xp.max(up[:0], initial=3.0)
xp.min(n, 0, None, True) ; xp.argmax(a, 1) ; xp.argmin(a, axis=0, keepdims=True) ; xp.any(m, 0) ; xp.any(a, where=m)
xp.all(m, 1, None, True) ; xp.all(m, where=m) ; xp.count_nonzero(m) ; xp.count_nonzero(m, 0)
xp.count_nonzero(n, axis=1, keepdims=True) ; xp.ptp(n) ; xp.ptp(n, 0, None, True) ; xp.average(n) ; xp.average(n, 0)
xp.average(few, weights=[1, 2, 3]) ; xp.cov(n) ; xp.corrcoef(n) ; xp.cov(few, few[::-1]) ; xp.nansum(gaps)
xp.nansum(gaps, 0) ; xp.nanprod(gaps, 1) ; xp.nanmean(gaps) ; xp.nanmean(gaps, 0, keepdims=True) ; xp.nanvar(gaps)
xp.nanstd(gaps, 1, ddof=1) ; xp.nanmax(gaps, 0) ; xp.nanmin(gaps) ; xp.nanargmax(gaps, 1) ; xp.nanargmin(gaps)
xp.nansum(n, 1) ; xp.nanmax(n) ; xp.nanmean(n) ; xp.nancumsum(gaps) ; xp.nancumprod(gaps, 1) ; xp.nancumsum(n, 0)
xp.nansum(gaps, where=gaps > 1) ; xp.cumsum(n) ; xp.cumsum(n32) ; xp.cumsum(m, 1) ; xp.cumsum(n, 0, "f4")
xp.cumprod(n, 1) ; xp.cumsum(few) ; xp.cumprod(few) ; xp.cumsum(gaps, 1) ; xp.cumprod(ends) ; xp.cumsum(ends[::-1])
xp.cumulative_sum(n, axis=1) ; xp.cumulative_prod(n32) ; xp.gradient(n32) ; xp.gradient(few) ; xp.trapezoid(n32)
xp.convolve(n32, i) ; xp.convolve(few, [1, 2]) ; xp.convolve(m[0], m[1]) ; xp.correlate(z, z[:2], "full")
xp.convolve(z, z) ; xp.interp(2.5, [1, 2, 3], [3, 2, 0]) ; xp.interp([0, 9], [1, 2], [3, 2], -1, 7)
xp.interp(ends, [0, 1], [2, 5]) ; xp.interp(ends, [1], [2]) ; xp.polyval([1, 0, 2], n) ; xp.polyval([1.5], n32)
xp.ediff1d(n32) ; xp.outer(n, n32) ; xp.dot(n, n.T) ; xp.dot(n32, i) ; xp.dot(3, n) ; xp.inner(n, n) ; xp.inner(2, n)
xp.vdot(z, z) ; xp.vdot(n, n) ; xp.kron(n32, n) ; xp.kron(z, n32) ; xp.cross(n, n[::-1])
xp.cross([1, 2, 3], [[4, 5, 6], [7, 8, 9]]) ; xp.trace(n) ; xp.trace(n, dtype="f4") ; xp.linalg.norm(n)
xp.linalg.norm(few) ; xp.linalg.norm(few, 0) ; xp.linalg.norm(z) ; xp.linalg.norm(a, -1) ; xp.linalg.norm(a, -np.inf)
xp.linalg.multi_dot([n, n.T]) ; xp.linalg.multi_dot([n32, i]) ; xp.linalg.outer(n32, i) ; xp.linalg.trace(t)
xp.linalg.diagonal(t) ; xp.arcsin(ends) ; xp.arccos(ends) ; xp.arctan(ends) ; xp.arctan2(ends, ends[:, None])
xp.arctan2(n, -3) ; xp.arctan(n) ; xp.arctan(few) ; xp.arcsin(few / 2) ; xp.arccos(few / 2)
xp.arctan2(few, few[::-1]) ; xp.exp2(n) ; xp.exp2(ends) ; xp.cbrt(ends) ; xp.cbrt(n) ; xp.deg2rad(n) ; xp.rad2deg(few)
xp.fabs(n) ; xp.fabs(ends) ; xp.sinc(n) ; xp.sinc(ends[:4]) ; xp.sinc(few) ; xp.absolute(n32) ; xp.absolute(z)
xp.fmax(ends, 0.5) ; xp.fmin(ends, ends[::-1]) ; xp.fmax(n, 2) ; xp.fmod(n, 3) ; xp.fmod(n, -3) ; xp.fmod(ends, 0.7)
xp.fmod(n32, n32[::-1]) ; xp.fmod(few, 1.5) ; xp.mod(n, 3) ; xp.mod(n32, -2) ; xp.divmod(n32, 3)[0]
xp.divmod(n32, -2)[1] ; divmod(n, 3)[1] ; divmod(7, n)[0] ; xp.modf(ends)[0] ; xp.modf(ends)[1] ; xp.modf(n)[0]
xp.float_power(n, 2) ; xp.float_power(few, 2) ; xp.power(n, 2) ; xp.ldexp(few, n32[:3]) ; xp.ldexp(1.0, n)
xp.ldexp(ends, 1) ; xp.logaddexp2(ends, 1.0) ; xp.heaviside(ends, 0.5) ; xp.heaviside(n, 1) ; xp.reciprocal(n)
xp.reciprocal(few) ; xp.rint(n) ; xp.rint(ends) ; xp.fix(ends) ; xp.fix(n) ; xp.round(n, 1) ; xp.round(a, 1)
xp.around(a, decimals=2) ; a.round(1) ; xp.round(ends, 2) ; xp.round(few * 1000, -2) ; xp.invert(n) ; xp.invert(m)
xp.left_shift(n, 2) ; xp.right_shift(n, 1) ; xp.right_shift(n32, [0, 1, 31, 40]) ; xp.left_shift(n32, [0, 1, 31, 40])
n << 1 ; n >> 1 ; xp.bitwise_left_shift(1, i) ; xp.bitwise_right_shift(-9, i) ; xp.right_shift(n, 63)
xp.isclose(a, a + 1e-9) ; xp.isclose(ends, ends) ; xp.isclose(ends, ends, equal_nan=True) ; xp.isclose(n, n + 1)
xp.isclose(1.0, few, atol=0.6) ; xp.allclose(a, a) ; xp.allclose(a, a + 1) ; xp.array_equal(a, a)
xp.array_equal(a, b) ; xp.array_equal(ends, ends) ; xp.array_equal(ends, ends, equal_nan=True)
xp.array_equiv(a, a[0]) ; xp.array_equiv(n, n) ; xp.array_equiv(a, v) ; xp.array_equiv(7, i) ; xp.isposinf(ends)
xp.isneginf(ends) ; xp.isreal(z) ; xp.iscomplex(z) ; xp.isreal(a) ; xp.isrealobj(a) ; xp.iscomplexobj(z)
xp.nan_to_num(ends) ; xp.nan_to_num(ends, nan=1, posinf=2, neginf=3) ; xp.nan_to_num(few) ; xp.nan_to_num(n)
xp.angle(z) ; xp.angle(z, True) ; xp.angle(few) ; xp.conjugate(z) ; xp.real(z) ; xp.imag(z) ; z.imag ; a.imag
xp.select([n > 3, n > 0], [n, -n], 9) ; xp.select([m], [a]) ; xp.piecewise(ends, [ends > 0], [1.0])
xp.piecewise(n, [n > 0, n < -4], [2.7, 3]) ; xp.clip(n, 0, 3) ; xp.clip(n, None, 2) ; xp.take(n, i)
xp.take(n32, n, mode="wrap") ; xp.take(n32, n, mode="clip") ; xp.shape(a) ; xp.ndim(a) ; xp.size(a) ; xp.size(a, 1)
xp.result_type("f4", "i4") ; xp.result_type(few, 2.0) ; xp.promote_types("f4", "i4") ; xp.can_cast("i4", "f8")
xp.can_cast("f8", "f4", "same_kind") ; xp.float64(3) ; xp.float32(3) ; xp.int64(3) ; xp.int32(2.7) ; xp.bool(True)
xp.complex128(1j) ; xp.float32([1, 2]) ; xp.float64() ; a.argmax() ; a.argmin(1)
n.ptp() if xp is not np else xp.ptp(n) ; n.clip(0, 3) ; n.cumsum() ; n.dot(n.T) ; n.flatten() ; m.any(0) ; m.all(1)
a.sum(dtype="f4") ; a.mean(dtype="f4") ; n.sum(0, None, None, True) ; a.item(3) ; a.itemsize ; a.nbytes ; n.tolist()
3 in n ; 4.5 in n ; np.nan in gaps ; round(a[0, 0], 2) ; round(few[1]) ; xp.tile(n, 2) ; xp.roll(n32, 2)
xp.rot90(n, -1) ; xp.atleast_2d(3) ; xp.atleast_3d(n)
"""

# What depends on elements that nobody knows while a function is traced, or is no array.
NOT_TRACED: Final = (
    "xp.insert(n, ",
    "xp.delete(n, ",
    "xp.extract(",
    "item(",
    "tolist(",
    " in ",
    "round(a[",
    "round(few[",
)


def calls(table: str) -> list[str]:
    """Each of them."""
    return [call.strip() for line in table.strip().splitlines() for call in line.split(" ; ")]


def _names(call: str) -> set[str]:
    return set(re.findall(r"\bxp\.((?:linalg\.)?\w+)", call))


# Names that the calls are of.
NAMES: Final = {name for call in calls(SMOOTH) + calls(OTHERS) for name in _names(call)}
