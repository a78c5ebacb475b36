"""The lazy array."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import einrel as er

from . import _native
from ._dtypes import BY_NAME, NAMES, DType, bfloat16, computed_as, dtype_of
from ._errors import compute_nodes
from ._formula import Definition, apply, kept, made_at_once, permuted_view
from ._leaving import exported, left_graph, note_of, noted
from ._missing import method_message
from ._native import Node, Type

NDArray = npt.NDArray[Any]

_BITS = np.dtype(np.uint16)  # as which elements of bfloat16 cross the border


def _is_operand(value: Any) -> bool:
    """Whether an operator takes it; if not, Python asks the other side."""
    plain = (Array, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
    return isinstance(value, plain) or hasattr(value, "__dlpack__")


def _operator(name: str) -> Callable[[Array, Any], Array]:
    def method(self: Array, other: Any) -> Any:
        return getattr(er, name)(self, other) if _is_operand(other) else NotImplemented

    return method


def _reflected(name: str) -> Callable[[Array, Any], Array]:
    def method(self: Array, other: Any) -> Any:
        return getattr(er, name)(other, self) if _is_operand(other) else NotImplemented

    return method


def _method(name: str) -> Callable[..., Array]:
    """The function of that name as a method."""

    def method(self: Array, /, *arguments: Any, **options: Any) -> Any:
        return getattr(er, name)(self, *arguments, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See `einrel.{name}`."
    return method


class Array:
    """An array that is computed when its elements are asked for; it does not change.

    `numpy.asarray(x)`, `float(x)`, `x.tolist()` and `einrel.compute` compute; all else makes new arrays. Arrays that
    NumPy made are read where they are: what is written there before an array is computed is seen by it.

    >>> import numpy as np
    >>> x = er.asarray(np.arange(6.0).reshape(2, 3))
    >>> (x * 2 + 1).shape
    (2, 3)
    >>> np.asarray((x @ x.T)[0])
    array([ 5., 14.])
    """

    __slots__ = ("__weakref__", "_node")
    __array_priority__ = 1000

    def __init__(self, node: Node) -> None:
        if not isinstance(node, Node):
            raise TypeError("einrel.asarray makes an array of elements")
        self._node = node

    # What is known before it is computed

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of every dimension."""
        return self._node.type.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements, a NumPy dtype."""
        return BY_NAME[self._node.type.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        """Where elements lie."""
        return "cpu"

    @property
    def T(self) -> Array:
        """The transpose: dimensions the other way round."""
        return er.permute_dims(self, tuple(range(self.ndim))[::-1])

    @property
    def mT(self) -> Array:
        """The last two dimensions swapped."""
        return er.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """The real part; of real numbers they themselves."""
        return er.real(self)

    @property
    def imag(self) -> Array:
        """The imaginary part; of real numbers 0."""
        return er.imag(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    # What computes

    def compute(self, **options: Any) -> Array:
        """Computes the elements, which stay; options as for `einrel.compute`."""
        er.compute(self, **options)
        return self

    def explain(self, **options: Any) -> str:
        """What will be computed and how, as text; with sites, planners, cost, machine, batch or memory the plan."""
        return er.explain(self, **options)

    def plan(self, **options: Any) -> str:
        """The plan as JSON, which `compute(plan=...)` takes for an array that is made alike; options of `explain`."""
        return er.plan(self, **options)

    def html(self, **options: Any) -> str:
        """The plan as a page for a browser, which needs no other file; options of `explain`."""
        return er.html(self, **options)

    def _repr_html_(self) -> str:
        """In a notebook: the elements; where there are none yet, what it is, and on demand the plan to compute them."""
        said = f"<pre>{html.escape(repr(self))}</pre>"
        if self._node.is_computed:
            return said
        page = html.escape(self.html(), quote=True)
        frame = f'<iframe srcdoc="{page}" loading="lazy" style="width: 100%; height: 40em; border: 0"></iframe>'
        return f"{said}<details><summary>how it will be computed</summary>{frame}</details>"

    def _elements(self) -> NDArray:
        """The elements, where they are."""
        node = self._node
        if not node.is_computed:
            compute_nodes([node])
        elements = np.asarray(node.elements)
        return elements.view(bfloat16) if elements.dtype == _BITS else elements

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        elements = self._elements()
        if dtype is not None and elements.dtype != dtype:
            if copy is False:
                raise ValueError(f"elements of type {self.dtype} as {dtype} without a copy")
            elements = elements.astype(dtype)
        elif copy:
            elements = elements.copy()
        return left_graph(elements, [self._node], "given to NumPy")

    def __bool__(self) -> bool:
        return bool(self._elements())

    def __int__(self) -> int:
        return int(self._elements())

    def __float__(self) -> float:
        return float(self._elements())

    def __complex__(self) -> complex:
        return complex(self._elements())

    def __index__(self) -> int:
        return self._elements().__index__()

    def item(self, *at: int) -> Any:
        """The one element, or that one, as a Python number."""
        return self._elements().item(*at)

    def tolist(self) -> Any:
        """The elements as Python numbers in nested lists."""
        return self._elements().tolist()

    def __contains__(self, element: Any) -> bool:
        return bool(er.any(er.equal(self, element)))

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("iteration over an array without dimensions")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        if not self._node.is_computed:
            return f"einrel.Array(shape={self.shape}, dtype={self.dtype}, not computed)"
        return repr(self._elements()).replace("array(", "einrel.Array(", 1)

    def __str__(self) -> str:
        return repr(self) if self._node.is_traced else str(self._elements())

    def __format__(self, format_spec: str) -> str:
        return format(self._elements()[()] if self.ndim == 0 and format_spec else str(self), format_spec)

    # Protocols

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version is not None and api_version > "2025.12":
            raise ValueError(f"version {api_version} of the array API: this is 2025.12")
        return er

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return er._numpy.call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return er._numpy.call_function(function, arguments, options)

    def __dlpack__(self, **options: Any) -> Any:
        elements = exported(self._elements(), self._node)
        if elements.dtype != bfloat16:
            return elements.__dlpack__(**options)
        capsule = elements.view(_BITS).__dlpack__(**options)  # which keeps that array, too
        _native.exchange_bf16(capsule, False)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return (asarray, (self._elements(),))

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return asarray(self, copy=True)

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """Itself: elements lie in the memory of this process."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"there is no device {device!r}: the only one is 'cpu', without streams")
        return self

    # Methods that libraries written for NumPy call

    def astype(
        self, dtype: npt.DTypeLike, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Array:
        """The elements as another type; see `einrel.astype`."""
        return er.astype(self, dtype, casting=casting, copy=copy)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
        """The same elements under another shape: `x.reshape(2, -1)`; see `einrel.reshape`."""
        extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return er.reshape(self, extents, order=order, copy=copy)

    def transpose(self, *axes: Any) -> Array:
        """The dimensions in another order; see `einrel.permute_dims`."""
        return er.transpose(self, (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes) or None)

    sum = _method("sum")
    prod = _method("prod")
    max = _method("max")
    min = _method("min")
    mean = _method("mean")
    var = _method("var")
    std = _method("std")
    any = _method("any")
    all = _method("all")
    argmax = _method("argmax")
    argmin = _method("argmin")
    ptp = _method("ptp")
    cumsum = _method("cumsum")
    cumprod = _method("cumprod")
    squeeze = _method("squeeze")
    swapaxes = _method("swapaxes")
    take = _method("take")
    repeat = _method("repeat")
    clip = _method("clip")
    round = _method("round")
    trace = _method("trace")
    diagonal = _method("diagonal")
    dot = _method("dot")
    conj = _method("conj")
    conjugate = conj

    def ravel(self, order: str = "C") -> Array:
        """All elements in one dimension; see `einrel.ravel`."""
        return er.ravel(self, order)

    flatten = ravel

    def copy(self) -> Array:
        """The elements as they are now, in memory of their own: who writes to the other's does not change them.

        In a function that is traced, where nobody writes, they are as they will be.
        """
        return er.astype(self, self.dtype) if self._node.is_traced else asarray(self, copy=True)

    # Operators

    def __getitem__(self, key: Any) -> Array:
        return er._indexing.get(self, key)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(method_message(name), name=name, obj=self)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("an einrel.Array does not change: make another one, as with einrel.where")

    def __pos__(self) -> Array:
        return er.positive(self)

    def __neg__(self) -> Array:
        return er.negative(self)

    def __abs__(self) -> Array:
        return er.abs(self)

    def __round__(self, digits: int | None = None) -> Array:
        return er.round(self, digits or 0)

    def __invert__(self) -> Array:
        return er.bitwise_invert(self)

    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("subtract")
    __rsub__ = _reflected("subtract")
    __mul__ = _operator("multiply")
    __rmul__ = _reflected("multiply")
    __truediv__ = _operator("divide")
    __rtruediv__ = _reflected("divide")
    __floordiv__ = _operator("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __mod__ = _operator("remainder")
    __rmod__ = _reflected("remainder")
    __divmod__ = _operator("divmod")
    __rdivmod__ = _reflected("divmod")
    __pow__ = _operator("pow")
    __rpow__ = _reflected("pow")
    __matmul__ = _operator("matmul")
    __rmatmul__ = _reflected("matmul")
    __and__ = _operator("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _operator("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __lshift__ = _operator("bitwise_left_shift")
    __rlshift__ = _reflected("bitwise_left_shift")
    __rshift__ = _operator("bitwise_right_shift")
    __rrshift__ = _reflected("bitwise_right_shift")
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    __eq__ = _operator("equal")  # type: ignore[assignment]
    __ne__ = _operator("not_equal")  # type: ignore[assignment]

    __hash__ = None  # type: ignore[assignment]


Number = bool | int | float
Operand = Array | NDArray | Number


@kept
def _permutation(type: Type, order: tuple[int, ...]) -> Definition:
    return permuted_view(type, order)


def identity(type: Type) -> Definition:
    """What computes the same elements."""
    return _permutation(type, tuple(range(len(type.shape))))


def _leaf(elements: NDArray) -> Node:
    """A node that reads an array where it is if it can, else a copy."""
    if elements.dtype == bfloat16:
        bits = np.ascontiguousarray(elements).reshape(elements.shape).view(_BITS)
        return noted(elements, Node.leaf(bits, True))
    order = tuple(sorted(range(elements.ndim), key=lambda d: -elements.strides[d]))
    rows = elements.transpose(order)
    if elements.dtype not in NAMES or not rows.flags.c_contiguous or not elements.flags.aligned:
        return noted(elements, Node.leaf(np.require(elements, computed_as(elements.dtype), ["C", "A"])))
    leaf = noted(elements, Node.leaf(rows))
    back = tuple(order.index(d) for d in range(elements.ndim))
    return apply(_permutation(leaf.type, back), leaf)


class _Bits:
    """What gives its elements by DLPack: those of bfloat16 as integers of as many bits, since NumPy has no other."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.are_bf16 = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._source.__dlpack__(**options)
        self.are_bf16 = _native.exchange_bf16(capsule, True)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._source.__dlpack_device__()
        return device


def from_dlpack(source: Any, **options: Any) -> NDArray:
    """What `numpy.from_dlpack` gives, of bfloat16 as well."""
    bits = _Bits(source)
    elements: NDArray = np.from_dlpack(bits, **options)
    return elements.view(bfloat16) if bits.are_bf16 else elements


def _refuse_mask(value: Any) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("an array with a mask: give x.filled(...), or the mask beside the elements")


def node_of(value: Any) -> Node:
    """The node of an array: of ours, NumPy's, whatever gives its elements by DLPack, or a number."""
    if isinstance(value, Array):
        return value._node
    _refuse_mask(value)
    if isinstance(value, np.ndarray):
        try:
            return noted(value, Node.leaf(value))
        except (BufferError, ValueError):
            return _leaf(value)
    if isinstance(value, (list, tuple)) and _holds_arrays(value):
        return stacked(value)._node
    if not isinstance(value, np.generic) and hasattr(value, "__dlpack__"):
        return node_of(_elements_of_another(value))
    return node_of(np.asarray(value))


def computed_node_of(value: Any) -> Node:
    """The same, with its elements; also of a node, as a state has them."""
    node = value if isinstance(value, Node) else node_of(value)
    if not node.is_leaf:
        compute_nodes([node])
    return node


def _holds_arrays(items: Any) -> bool:
    return any(isinstance(x, Array) or (isinstance(x, (list, tuple)) and _holds_arrays(x)) for x in items)


def stacked(items: Sequence[Any]) -> Array:
    """A list of arrays and lists of them as one array."""
    return er.stack([Array(node_of(item)) for item in items])


def computed(value: Any) -> Node:
    """The same, with its elements."""
    node = node_of(value)
    if not node.is_computed:
        Array(node).compute()
    return node


def _elements_of_another(value: Any) -> NDArray:
    """The elements of another library's array: by DLPack, or, where that lacks the type, as NumPy's array."""
    try:
        return from_dlpack(value)
    except (BufferError, RuntimeError):
        return np.asarray(value)


def asarray(
    value: Any,
    /,
    dtype: npt.DTypeLike | None = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Array:
    """An array of these elements, which are not copied where their type and order allow it.

    Elements lie in row-major order, whatever `order` asks for.

    >>> asarray([[1, 2], [3, 4]]).dtype
    dtype('int64')
    """
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}: the only one is 'cpu'")
    if not isinstance(value, Array):
        _refuse_mask(value)
        if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
            value = _elements_of_another(value)
        if isinstance(value, np.ndarray) and note_of(value) is not None:
            return asarray(Array(node_of(value)), dtype=dtype, copy=copy)
        wanted = None if dtype is None else computed_as(dtype_of(dtype))
        if isinstance(value, (list, tuple)) and _holds_arrays(value):
            return asarray(stacked(value), dtype=dtype, copy=copy)
        plain = np.array(value, dtype=wanted) if copy else np.asarray(value, dtype=wanted)
        if copy is False and isinstance(value, (list, tuple, int, float)):
            raise ValueError("elements that are no array's yet have to be copied")
        return Array(node_of(plain))
    if copy:
        own = node_of(value._elements().copy())
        value = Array(made_at_once(own, identity(own.type), [value._node], "copied"))
    return value if dtype is None else er.astype(value, dtype, copy=False)
