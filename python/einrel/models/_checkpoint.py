"""The weights of a model, which stay in its files until something computes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._array import Array
from ._errors import ModelError


@dataclass(frozen=True)
class Weight:
    """A tensor of a checkpoint: what it is called in its file, its type in the language, and its shape.

    `lazy` makes an array that reads the file part by part, each time that a part is computed with. `kept` makes one
    that holds its elements where reading them takes work, and is the same where they lie in the file as they are.
    """

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]
    lazy: Callable[[], Array]
    kept: Callable[[], Array]


@dataclass(frozen=True)
class Checkpoint:
    """The files of a model: `metadata` as they have it, and the weights by Hugging Face's names."""

    path: str
    metadata: Mapping[str, Any]
    weights: Mapping[str, Weight]

    def weight(self, name: str, shape: tuple[int, ...]) -> Weight:
        """The weight of that name, which must have this shape."""
        found = self.weights.get(name)
        if found is None:
            raise ModelError(f"{self.path}: the tensor '{name}' is missing")
        if found.shape != shape:
            raise ModelError(
                f"{found.file}: the tensor '{found.name}' has shape {list(found.shape)}, "
                f"but by the model's configuration it is {list(shape)}"
            )
        if found.dtype not in ("f32", "f16", "bf16"):
            raise ModelError(
                f"{found.file}: the tensor '{found.name}' is of {found.dtype}; weights are f32, f16 or bf16"
            )
        return found

    def refuse_others(self, used: set[str]) -> None:
        """An error where there are weights that no part of the model takes: with them it is another model."""
        others = [weight for name, weight in self.weights.items() if name not in used]
        if others:
            more = f", nor are {len(others) - 1} others" if len(others) > 1 else ""
            raise ModelError(
                f"{others[0].file}: the tensor '{others[0].name}' is no part of a model of this architecture{more}"
            )
