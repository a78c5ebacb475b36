"""Functions that are traced: what their arguments may be, and what belongs to the program."""

from __future__ import annotations

import array
import collections
import dataclasses
import enum
import json
from typing import Any

import numpy as np
import pytest

import einrel as er

W = np.array([[0.5, -1.0], [2.0, 0.25], [1.0, 1.5]])
X = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]])


def counted(function: Any) -> tuple[Any, list[int]]:
    """The same function, and a list that grows where it is traced."""
    calls: list[int] = []

    def called(*arguments: Any, **named: Any) -> Any:
        calls.append(len(calls))
        return function(*arguments, **named)

    return called, calls


class Model:
    def __init__(self) -> None:
        self.w = er.asarray(W)
        self.scale = 2.0
        self.heads = 2

    @er.jit
    def __call__(self, x: Any) -> Any:
        return er.reshape(x @ self.w, (self.heads, -1)) * self.scale

    @er.jit(static_argnums=2)
    def head(self, x: Any, count: int, *, sign: float = 1.0) -> Any:
        return (x @ self.w)[:count] * sign

    @er.jit
    def forgets(self, x: Any) -> Any:
        self.w = self.w + 1
        return x @ self.w


def test_a_method_reads_its_object_as_it_is() -> None:
    model = Model()
    np.testing.assert_allclose(model(X), X @ W * 2)
    model.w = model.w + 1  # type: ignore[assignment]
    model.scale = 3.0
    np.testing.assert_allclose(model(X), X @ (W + 1) * 3)
    model.heads = 1
    assert model(X).shape == (1, 4)
    np.testing.assert_allclose(model.head(X, 1, sign=-1.0), -(X @ (W + 1))[:1])
    assert "self_w" in model.head.explain(X, 1)


class Scaled:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any, count: int) -> Any:
        return (x @ self.w)[:count]

    @classmethod
    def doubled(cls, x: Any) -> Any:
        return x * 2


def test_a_method_that_is_traced_later_reads_its_object_as_it_is() -> None:
    model = Scaled(W)
    for traced in (er.jit(model, static_argnums=1), er.jit(model.__call__, static_argnums=-1)):
        for k in (1, 2):
            model.w = W * k
            np.testing.assert_allclose(traced(X, 1), (X @ W * k)[:1])
    assert er.jit(Scaled.doubled)(X).shape == X.shape
    assert er.jit(er.tanh)(X).shape == X.shape


class Counting:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x


def test_a_method_that_changes_its_object_is_refused() -> None:
    with pytest.raises(TypeError, match="sets attributes of an object"):
        er.jit(Counting())(X)
    with pytest.raises(TypeError, match=r"forgets.* sets attributes of an object"):
        Model().forgets(X)


def test_a_change_of_an_object_is_not_lost_unseen() -> None:
    def sets(models: Any) -> Any:
        models[0].w = models[0].w * 2
        return er.sum(models[0].w)

    calls = [er.jit(sets), er.grad(sets), er.jacobian(sets), lambda models: er.vjp(sets, models), er.vmap(sets)]
    for call in calls:
        with pytest.raises(TypeError, match="sets attributes of an object"):
            call([Scaled(W)])


def test_an_object_is_its_own_attributes_not_itself() -> None:
    function, calls = counted(lambda model, x: x @ model.w)
    traced = er.jit(function)
    for k in range(3):
        model = Model()
        model.w = er.asarray(W * k)
        np.testing.assert_allclose(traced(model, X), X @ W * k)
    assert len(calls) == 1


class Slotted:
    __slots__ = ("name", "w")

    def __init__(self, w: Any) -> None:
        self.w = w


def test_attributes_in_slots_are_arguments() -> None:
    function, calls = counted(lambda model, x: x @ model.w)
    traced = er.jit(function)
    for k in range(3):
        np.testing.assert_allclose(traced(Slotted(W * k), X), X @ W * k)
    assert len(calls) == 1
    slope = er.grad(lambda model: er.sum(X @ model.w))(Slotted(W))
    assert isinstance(slope, Slotted) and not hasattr(slope, "name")


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    activation: Any = er.tanh
    width: int = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any


Pair = collections.namedtuple("Pair", "first second")


def test_arguments_and_results_in_containers() -> None:
    def swap(layers: Any) -> Any:
        layer = layers["all"][0]
        out = layer.activation(layers["x"] @ layer.w + layer.b)
        return Pair(Point(out, layer.width), [{"layers": layers["all"]}, "name", None])

    given = {"all": [Layer(W, 0.5)], "x": X}
    plain, traced = swap(given), er.jit(swap)(given)
    assert isinstance(traced, Pair) and isinstance(traced.first, Point)
    np.testing.assert_allclose(traced.first.x, np.tanh(X @ W + 0.5))
    assert traced.first.y == 2 and traced.second[1:] == ["name", None]
    layer = traced.second[0]["layers"][0]
    assert isinstance(layer, Layer) and layer.activation is er.tanh
    np.testing.assert_allclose(layer.w, plain.second[0]["layers"][0].w)


def test_gradients_by_objects_have_their_form() -> None:
    def loss(layer: Layer) -> er.Array:
        return er.sum(layer.activation(X @ layer.w + layer.b))

    slopes = er.grad(loss)(Layer(W, np.zeros(2)))
    assert isinstance(slopes, Layer) and slopes.activation is er.tanh and slopes.width == 2
    np.testing.assert_allclose(slopes.b, (1 - np.tanh(X @ W) ** 2).sum(0))
    jitted = er.jit(er.grad(loss))(Layer(W, np.zeros(2)))
    np.testing.assert_allclose(jitted.w, slopes.w)


class Mode(enum.Enum):
    SUM = 1
    MEAN = 2


@pytest.mark.parametrize(
    "constants",
    [(Mode.SUM, Mode.MEAN), (er.sum, er.mean), (np.bool_(True), np.bool_(False)), ("a", "b"), (np.float32, np.float64)],
)
def test_what_has_a_hash_and_no_elements_is_part_of_the_program(constants: tuple[Any, Any]) -> None:
    function, calls = counted(lambda x, which: x + 1 if which is constants[0] else x - 1)
    traced = er.jit(function)
    for _ in range(2):
        assert traced(np.ones(2), constants[0]).tolist() == [2.0, 2.0]
        assert traced(np.ones(2), constants[1]).tolist() == [0.0, 0.0]
    assert len(calls) == 2


def test_whatever_gives_elements_is_an_argument() -> None:
    function, calls = counted(lambda x: x * 2)
    traced = er.jit(function)
    for elements in ([1.0, 2.0], [3.0, 4.0]):
        for given in (array.array("d", elements), memoryview(np.array(elements)), np.array(elements)):
            assert traced(given).tolist() == [2 * x for x in elements]
    assert len(calls) == 1


def test_static_arguments_by_position_and_by_name() -> None:
    traced = er.jit(lambda x, n, shape=(2,): er.reshape(x[:n], shape), static_argnums=(1,), static_argnames="shape")
    x = np.arange(6.0)
    assert traced(x, 2).tolist() == [0.0, 1.0]
    assert traced(x, n=4, shape=(2, 2)).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert traced(x, 4, (4,)).tolist() == [0.0, 1.0, 2.0, 3.0]
    by_name = er.jit(lambda x, n: x[:n], static_argnames=["n"])
    assert by_name(x, 1).tolist() == [0.0] and by_name(x, n=2).tolist() == [0.0, 1.0]
    assert er.jit(lambda x, n: x[:n], static_argnums=-1)(x, 3).tolist() == [0.0, 1.0, 2.0]
    assert er.grad(lambda x: er.sum(by_name(x, 2) ** 2))(x).tolist() == [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]


def test_a_static_number_is_of_its_type() -> None:
    traced = er.jit(lambda x, n: x * n, static_argnums=1)
    x = np.arange(3)
    assert [traced(x, n).dtype for n in (1, 1.0, True)] == [np.int64, np.float64, np.int64]


def test_what_cannot_be_an_argument_says_so() -> None:
    x = np.arange(6.0)
    with pytest.raises(TypeError, match=r"static_argnums=\.\.\."):
        er.jit(lambda x, n: x[:n])(x, 2)
    with pytest.raises(TypeError, match="no hash"):
        er.jit(lambda x, n: x, static_argnums=1)(x, [1])
    with pytest.raises(ValueError, match="no such argument"):
        er.jit(lambda x, n: x, static_argnames="m")
    with pytest.raises(TypeError, match="no hash"):
        er.jit(lambda x, n: x)(x, {1, 2})
    node = Model()
    node.w = node  # type: ignore[assignment]
    with pytest.raises(TypeError, match="holds itself"):
        er.jit(lambda model: model.scale)(node)
    with pytest.raises(TypeError, match="a function to trace"):
        er.jit(x)


def test_plans_of_a_traced_function() -> None:
    def layer(x: Any, w: Any) -> Any:
        return er.tanh(x @ w)

    traced = er.jit(layer)
    assert "for 4 sites" in traced.explain(X, W, sites=4)
    plan = traced.plan(X, W, sites=2)
    assert json.loads(plan)["sites"] == 2
    np.testing.assert_allclose(er.jit(layer, plan=plan)(X, W), np.tanh(X @ W))
    assert traced.html(X, W, sites=2).startswith("<!doctype html>")
    with pytest.raises(TypeError, match="unexpected keyword argument 'site'"):
        traced.explain(X, W, site=2)
    assert "most x 48 B, sites 8 B" in er.jit(lambda x, sites: x * sites).explain(X, sites=2.0)


NUMBERS = [True, 2, -3, 0.5, 1j, 2.5 - 1j]


@pytest.mark.parametrize("dtype", ["?", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_beside_an_array_is_what_it_is_without_tracing(number: Any, dtype: str) -> None:
    x = np.array([1, 2], dtype)
    for function in (lambda x, c: x * c, lambda x, c: c + x, lambda x, c: er.divide(x, c), lambda x, c: x == c):
        expected = np.asarray(function(er.asarray(x), number))
        np.testing.assert_array_equal(er.jit(function)(x, number), expected, strict=True)


@pytest.mark.parametrize("other", NUMBERS)
@pytest.mark.parametrize("number", NUMBERS[1:])
def test_numbers_of_a_traced_function_are_pythons(number: Any, other: Any) -> None:
    for function in (lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a / b, lambda a, b: a == b):
        np.testing.assert_allclose(er.jit(function)(number, other), function(number, other), rtol=1e-14)
    np.testing.assert_allclose(er.jit(lambda a: a**2)(number), number**2, rtol=1e-14)


def test_functions_of_c_are_functions() -> None:
    np.testing.assert_allclose(er.jit(np.sin)(X), np.sin(X))
    assert er.jit(np.add)(X, X).tolist() == (X + X).tolist()
    np.testing.assert_allclose(er.jit(lambda f, x: f(x))(np.exp, X), np.exp(X))


class Parameters(dict[str, Any]):
    @property
    def w(self) -> Any:
        return self["w"]


@pytest.mark.parametrize(
    "tree",
    [
        collections.OrderedDict(w=W, b=2.0),
        collections.defaultdict(list, w=W),
        Parameters(w=W),
        {"w": W, "more": collections.OrderedDict(z=1.0, a=X)},
    ],
)
def test_dicts_of_every_kind_stay_what_they_are(tree: Any) -> None:
    seen: list[Any] = []
    given = er.jit(lambda tree: (seen.append(tree), tree)[1])(tree)
    slopes = er.grad(lambda tree: er.sum(tree["w"] ** 2))(tree)
    for found in (*seen, given, slopes):
        assert type(found) is type(tree) and list(found) == list(tree)
        if isinstance(tree, collections.defaultdict):
            assert found.default_factory is list
        if isinstance(tree, Parameters):
            assert found.w.shape == W.shape
    assert slopes["w"].tolist() == (2 * W).tolist()
    if "more" in tree:
        assert type(given["more"]) is collections.OrderedDict and list(given["more"]) == ["z", "a"]
    assert type(er.vmap(lambda tree: {"s": tree["w"]}, in_axes=({**dict.fromkeys(tree), "w": 0},))(tree)) is dict


def test_what_holds_itself_says_so() -> None:
    items: list[Any] = [1.0]
    items.append(items)
    named: dict[str, Any] = {}
    named["own"] = (named,)
    for value in (items, named):
        with pytest.raises(TypeError, match="that holds itself has no form"):
            er.jit(lambda x: er.zeros(()))(value)
    again = [X]
    assert er.jit(lambda x: x[0][0] + x[1][0])([again, again]).tolist() == (2 * X).tolist()


@pytest.mark.parametrize(
    "function",
    [lambda n: er.zeros(n), lambda n: er.ones((2, n)), lambda n: er.arange(6)[:n], lambda n: er.zeros(n + 1)],
)
def test_a_shape_of_an_unknown_number_says_what_to_do(function: Any) -> None:
    for number in (2, np.array(2)):
        with pytest.raises((TypeError, er.ProgramError), match="static_argnums|from outside the function"):
            er.jit(function)(number)
    with pytest.raises(TypeError, match="static_argnums"):
        er.jit(function)(2)
