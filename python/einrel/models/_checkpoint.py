"""The weights of a model, which stay in its files until something computes with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from .._array import Array
from ._errors import ModelError

MOST_PROGRAMS: Final = 16  # of other numbers of texts or tokens, that a model keeps with their plans


@dataclass(frozen=True)
class Weight:
    """A tensor of a checkpoint: its file, its type in the language, and its shape.

    `lazy` makes an array that reads the file part by part, each time that a part is computed with. `kept` makes one
    that holds its elements, which is the same where `is_stored`: they lie in the file as they are computed with.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    lazy: Callable[[], Array]
    kept: Callable[[], Array]
    is_stored: bool


@dataclass(frozen=True)
class Part:
    """A weight that a program takes: the name of its input, its labels, and its names in both kinds of files."""

    input: str
    labels: str
    name: str
    gguf_name: str
    is_optional: bool = False

    def of_layer(self, layer: int, name: str, gguf_name: str) -> Part:
        """The part of one layer, of which files call all parts by these names, a dot, and the part's own."""
        return replace(
            self, input=f"{self.input}_{layer}", name=f"{name}.{self.name}", gguf_name=f"{gguf_name}.{self.gguf_name}"
        )


@dataclass(frozen=True)
class Checkpoint:
    """The files of a model: `metadata` as they have it, and the weights by the names that they have there."""

    path: str
    metadata: Mapping[str, Any]
    weights: Mapping[str, Weight]
    is_gguf: bool

    def name_of(self, part: Part) -> str:
        """What a part is called here."""
        return part.gguf_name if self.is_gguf else part.name

    def has(self, part: Part) -> bool:
        """Whether there is such a weight."""
        return self.name_of(part) in self.weights

    def take(self, parts: Iterable[Part], extents: Mapping[str, int], ignored: Collection[str]) -> dict[str, Weight]:
        """The weights of these parts by the names of inputs; they have the shapes that the extents of labels say.

        Others are an error, but for those of the names `ignored`: with them it is another model.
        """
        weights, others = {}, {name for name in self.weights if name not in ignored}
        for part in parts:
            weights[part.input] = self._weight(self.name_of(part), tuple(extents[label] for label in part.labels))
            others.discard(self.name_of(part))
        if others:
            more = f", nor are {len(others) - 1} others" if len(others) > 1 else ""
            raise ModelError(
                f"{self.weights[min(others)].file}: the tensor '{min(others)}' is no part of a model of this "
                f"architecture{more}"
            )
        return weights

    def _weight(self, name: str, shape: tuple[int, ...]) -> Weight:
        found = self.weights.get(name)
        if found is None:
            raise ModelError(f"{self.path}: the tensor '{name}' is missing")
        if found.shape != shape:
            raise ModelError(
                f"{found.file}: the tensor '{name}' has shape {list(found.shape)}, but by the model's configuration it "
                f"is {list(shape)}"
            )
        if found.dtype not in ("f32", "f16", "bf16"):
            raise ModelError(f"{found.file}: the tensor '{name}' is of {found.dtype}; weights are f32, f16 or bf16")
        return found
