"""New arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike, fsdecode
from typing import Any

import numpy as np
import numpy.typing as npt

import einrel as er

from ._array import Array, Operand, asarray, node_of
from ._array import from_dlpack as elements_by_dlpack
from ._dtypes import NAMES, DType, computed_as, dtype_of, float64, int64, is_floating
from ._formula import Definition, Formula, apply, cast, element, kept, label, where
from ._native import Node, Type
from ._numbers import constant, whole
from ._shapes import Shape, broadcast_to, moveaxis, reshape, shape_of

# The types that arrays get where none is given, as in NumPy.
DEFAULT_REAL = float64
DEFAULT_INTEGER = int64


def _dtype(dtype: npt.DTypeLike | None, default: DType) -> DType:
    return default if dtype is None else computed_as(dtype_of(dtype))


def _on_cpu(device: str | None) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}: the only one is 'cpu'")


def full(
    shape: Shape,
    fill_value: Operand,
    dtype: npt.DTypeLike | None = None,
    order: str = "C",
    *,
    device: str | None = None,
) -> Array:
    """The same number everywhere. Elements lie in row-major order, whatever `order` asks for, here and below.

    >>> full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    _on_cpu(device)
    value = fill_value if isinstance(fill_value, Array) else np.asarray(fill_value)
    return broadcast_to(asarray(value, dtype=_dtype(dtype, value.dtype)), shape_of(shape))


def zeros(shape: Shape, dtype: npt.DTypeLike | None = None, order: str = "C", *, device: str | None = None) -> Array:
    """0 everywhere; f64 unless `dtype` says otherwise.

    >>> zeros(2).tolist()
    [0.0, 0.0]
    """
    return full(shape, 0, dtype=_dtype(dtype, DEFAULT_REAL), device=device)


def ones(shape: Shape, dtype: npt.DTypeLike | None = None, order: str = "C", *, device: str | None = None) -> Array:
    """1 everywhere; f64 unless `dtype` says otherwise.

    >>> ones(2).tolist()
    [1.0, 1.0]
    """
    return full(shape, 1, dtype=_dtype(dtype, DEFAULT_REAL), device=device)


def empty(shape: Shape, dtype: npt.DTypeLike | None = None, order: str = "C", *, device: str | None = None) -> Array:
    """As `zeros`: an array that does not change needs elements.

    >>> empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


def full_like(
    x: Operand,
    /,
    fill_value: Operand,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: str | None = None,
) -> Array:
    """The same number everywhere, in the shape and the type of x.

    >>> full_like([1.0, 2.0], 7).tolist()
    [7.0, 7.0]
    """
    like = Array(node_of(x))
    return full(like.shape if shape is None else shape, fill_value, dtype=_dtype(dtype, like.dtype), device=device)


def zeros_like(
    x: Operand,
    /,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: str | None = None,
) -> Array:
    """0 everywhere, in the shape and the type of x.

    >>> zeros_like([1, 2]).tolist()
    [0, 0]
    """
    return full_like(x, 0, dtype=dtype, shape=shape, device=device)


def ones_like(
    x: Operand,
    /,
    dtype: npt.DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: Shape | None = None,
    *,
    device: str | None = None,
) -> Array:
    """1 everywhere, in the shape and the type of x.

    >>> ones_like([1.0, 2.0]).tolist()
    [1.0, 1.0]
    """
    return full_like(x, 1, dtype=dtype, shape=shape, device=device)


empty_like = zeros_like


@kept
def _progression(start: float, step: float, count: int, dtype: str) -> Definition:
    position = label(0) if isinstance(start, int) and isinstance(step, int) else cast("f64", label(0))
    value = Formula(start) + Formula(step) * position
    return Definition.statement([], cast(dtype, value), [count], 1)


def arange(
    start: int | float,
    /,
    stop: int | float | None = None,
    step: int | float = 1,
    dtype: npt.DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Array:
    """start, start + step, ..., up to but not including stop; arange(stop) begins at 0.

    >>> arange(2, 8, 3).tolist()
    [2, 5]
    """
    _on_cpu(device)
    start, step = constant("start" if stop is not None else "stop", start), constant("step", step)
    start, stop = (0, start) if stop is None else (start, constant("stop", stop))
    if step == 0:
        raise ValueError("a step of 0 leads nowhere")
    count = max(math.ceil((stop - start) / step), 0)
    is_whole = all(isinstance(number, (int, np.integer)) for number in (start, stop, step))
    wanted = _dtype(dtype, DEFAULT_INTEGER if is_whole else DEFAULT_REAL)
    if not is_floating(wanted):  # NumPy's rule: the first two decide
        start, step = int(start), int(start + step) - int(start)
    return Array(apply(_progression(start, step, count, NAMES[wanted])))


@kept
def _spaced(start: float, stop: float, count: int, parts: int, dtype: str) -> Definition:
    position = cast("f64", label(0))
    value = Formula(start) + position * ((stop - start) / max(parts, 1))
    value = where(label(0) == parts, Formula(stop), value) if parts else value
    return Definition.statement([], cast(dtype, value), [count], 1)


def linspace(
    start: Operand,
    stop: Operand,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """`num` numbers at equal distances from start to stop, which is the last one if `endpoint`.

    Of arrays, those of each element stand along the new dimension `axis`. With `retstep` a pair: the distance as well.

    >>> linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    _on_cpu(device)
    num = whole("num", num)
    if num < 0:
        raise ValueError(f"num={num}: numbers are none or more")
    parts = num - 1 if endpoint else num
    if all(isinstance(bound, (int, float, np.number)) for bound in (start, stop)):
        low, high = float(start), float(stop)
        spaced = Array(apply(_spaced(low, high, num, parts, NAMES[_dtype(dtype, DEFAULT_REAL)])))
        return (spaced, (high - low) / parts if parts else math.nan) if retstep else spaced
    first, last = (Array(node_of(bound)) for bound in (start, stop))
    common = er.result_type(first, last)
    share = linspace(0.0, 1.0, num, endpoint).reshape((num,) + (1,) * len(np.broadcast_shapes(first.shape, last.shape)))
    between = first * (1 - share) + last * share
    wanted = _dtype(dtype, common if is_floating(common) else DEFAULT_REAL)
    spaced = moveaxis(er.astype(between, wanted, copy=False), 0, axis)
    return (spaced, (last - first) / parts) if retstep else spaced


def logspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """The powers of `base` by what `linspace` gives.

    >>> logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    powers = er.pow(base, linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else er.astype(powers, dtype, copy=False)


def geomspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers of equal ratios from start to stop, which is the last one if `endpoint`.

    >>> geomspace(1, 8, 4).round(6).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    first, last = (Array(node_of(bound)) for bound in (start, stop))
    if not first._node.is_traced and er.any(first == 0):
        raise ValueError("a geometric progression does not begin at 0")
    ratios = er.pow(last / first, linspace(0.0, 1.0, num, endpoint).reshape((num,) + (1,) * first.ndim))
    powers = moveaxis(first * ratios, 0, axis)
    return powers if dtype is None else er.astype(powers, dtype, copy=False)


@kept
def _diagonal_ones(rows: int, columns: int, k: int, dtype: str) -> Definition:
    return Definition.statement([], cast(dtype, label(0) + k == label(1)), [rows, columns], 2)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: npt.DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Array:
    """1 on diagonal k, 0 elsewhere.

    >>> eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _on_cpu(device)
    rows, columns = (shape_of(n)[0] for n in (n_rows, n_rows if n_cols is None else n_cols))
    return Array(apply(_diagonal_ones(rows, columns, whole("k", k), NAMES[_dtype(dtype, DEFAULT_REAL)])))


@kept
def _triangle(is_upper: bool, k: int, type: Type) -> Definition:
    rank = len(type.shape)
    distance = label(rank - 1) - label(rank - 2)
    is_inside = distance >= k if is_upper else distance <= k
    own = element(0, [label(d) for d in range(rank)])
    zero = cast(type.dtype, Formula(0))
    return Definition.statement([type], where(is_inside, own, zero), list(type.shape), rank)


def _matrices(name: str, x: Operand) -> Node:
    """The node of x; a vector stands in each row, as in NumPy."""
    node = node_of(x)
    if not node.type.shape:
        raise ValueError(f"{name} of an array without dimensions")
    return broadcast_to(Array(node), node.type.shape * 2)._node if len(node.type.shape) == 1 else node


def tril(x: Operand, /, k: int = 0) -> Array:
    """x up to diagonal k of its last two dimensions, 0 above.

    >>> tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """
    node = _matrices("tril", x)
    return Array(apply(_triangle(False, whole("k", k), node.type), node))


def triu(x: Operand, /, k: int = 0) -> Array:
    """x from diagonal k of its last two dimensions on, 0 below.

    >>> triu([[1, 2], [3, 4]]).tolist()
    [[1, 2], [0, 4]]
    """
    node = _matrices("triu", x)
    return Array(apply(_triangle(True, whole("k", k), node.type), node))


def identity(n: int, dtype: npt.DTypeLike | None = None) -> Array:
    """The square matrix with 1 on its diagonal and 0 elsewhere.

    >>> identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return eye(n, dtype=dtype)


def tri(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: npt.DTypeLike | None = None) -> Array:
    """1 up to diagonal k, 0 above.

    >>> tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return tril(ones((n_rows, n_rows if n_cols is None else n_cols), dtype), k)


def meshgrid(*arrays: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Array, ...]:
    """The coordinates of a grid; with "xy" the first two dimensions are swapped. With `sparse` only along its edges.

    >>> [x.tolist() for x in meshgrid([1, 2], [3, 4], indexing="ij")]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    own = [Array(node_of(array)) for array in arrays]
    order = list(range(len(own)))
    if indexing == "xy" and len(own) > 1:
        order[:2] = [1, 0]
    shape = tuple(own[i].size for i in order)
    edges = [reshape(x, [x.size if order[d] == i else 1 for d in range(len(own))]) for i, x in enumerate(own)]
    return tuple(edges if sparse else (broadcast_to(edge, shape) for edge in edges))


def indices(dimensions: Sequence[int], dtype: npt.DTypeLike = int, sparse: bool = False) -> Any:
    """The positions in a grid: for each dimension an array; stacked, or with `sparse` a tuple of edges.

    >>> indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    grid = meshgrid(*[arange(extent, dtype=dtype) for extent in dimensions], indexing="ij", sparse=sparse)
    return grid if sparse else er.stack(grid)


def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: npt.DTypeLike = float, **options: Any
) -> Any:
    """function(*indices(shape)): what it makes of all positions at once.

    >>> fromfunction(lambda i, j: i + j, (2, 2), dtype=int).tolist()
    [[0, 1], [1, 2]]
    """
    return function(*indices(shape, dtype), **options)


def from_file(path: str | PathLike[str], name: str | None = None) -> Array:
    """The array in a file: .npy, .npz, .safetensors, .idx or .idx.gz; `name` is that of an array among several.

    The file is mapped, not read, where its elements lie in row-major order: each process touches only what it needs, so
    the file may be larger than memory. It must not change while the array lives: if it becomes shorter, what reads it
    raises RunError.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, weights=np.ones((2, 3)))
    ...     from_file(file.name, "weights").sum().item()
    6.0
    """
    file = fsdecode(path)
    return Array(Node.from_file(file if name is None else f"{file}:{name}"))


def from_function(
    shape: Shape, function: Callable[[tuple[slice, ...]], npt.ArrayLike], *, dtype: npt.DTypeLike | None = None
) -> Array:
    """An array that nobody holds as a whole: `function(region)` gives the elements of a region, a tuple of slices.

    A run by a plan asks for each part where and when it needs it, on the process that does, from any thread, perhaps
    more than once; other runs ask once, for what they read. f64 unless `dtype` says otherwise. What the function raises
    ends the run, and is raised where that was asked for. It must not compute by a plan itself.

    >>> grid = np.arange(6.0).reshape(2, 3)
    >>> from_function((2, 3), lambda region: grid[region]).sum().item()
    15.0
    """
    extents = tuple(shape_of(shape))
    wanted = _dtype(dtype, DEFAULT_REAL)

    def fill(begin: tuple[int, ...], count: tuple[int, ...], memory: memoryview) -> None:
        region = tuple(slice(first, first + n) for first, n in zip(begin, count))
        part = np.asarray(function(region))
        if part.shape != count:
            raise ValueError(f"the function gave {part.shape} for the region {region}, whose shape is {count}")
        np.copyto(np.ndarray(count, wanted, buffer=memory), part, casting="same_kind")

    return Array(Node.made(NAMES[wanted], extents, fill))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array over the elements of another library's, without a copy unless one is asked for.

    >>> from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if isinstance(x, Array):
        return asarray(x, copy=copy)
    return Array(node_of(elements_by_dlpack(x, device=device, copy=copy)))
