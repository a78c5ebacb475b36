"""Encoders: from texts to vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._array import Array
from .._compute import whole_of
from .._program import Program
from . import _bert
from ._bert import BertConfig, bert_of_gguf, bert_of_json
from ._checkpoint import MOST_PROGRAMS, Checkpoint, Weight
from ._config import Fields
from ._errors import ModelError, missing
from ._gguf import open_gguf
from ._safetensors import open_folder, read_json, read_list
from ._tokenizer import Tokenizer, tokenizer_of_folder, tokenizer_of_gguf
from ._tokens import tokens_of


class Encoder:
    """An encoder, made by `encoder`: a program in the language, and weights that lie in files."""

    def __init__(
        self, config: BertConfig, weights: Mapping[str, Weight], make_tokenizer: Callable[[], Tokenizer]
    ) -> None:
        self.config = config
        self._weights = weights
        self._make_tokenizer = make_tokenizer
        self._programs = lru_cache(MOST_PROGRAMS)(self._made_program)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Text to tokens; needs the package tokenizers."""
        return self._make_tokenizer()

    def program(self, *, batch: int, tokens: int) -> Program:
        """The program for `batch` texts of up to `tokens` tokens: to explain, to plan, to run with `inputs`.

        It is the same one each time, so that it is planned once.
        """
        return self._programs(whole_of("batch", batch), whole_of("tokens", tokens))

    def _made_program(self, batch: int, tokens: int) -> Program:
        dtypes = {name: weight.dtype for name, weight in self._weights.items()}
        return Program(_bert.text(self.config, batch, tokens, dtypes), None, "<encoder>")

    def inputs(self) -> dict[str, Array]:
        """The weights by the names of the program's inputs, which read the files part by part."""
        return {name: weight.lazy() for name, weight in self._weights.items()}

    def encode(self, texts: Sequence[str], *, options: Mapping[str, Any] | None = None) -> Array:
        """The vectors of texts, [text, element] of f32; `options` are those of `compute`.

        Where Sentence Transformers' file beside a model says how many tokens a text may have, longer ones are cut.
        """
        return self.encode_tokens([self.tokenizer.encode(text) for text in _list_of(texts, "texts")], options=options)

    def encode_tokens(self, texts: Sequence[Sequence[int]], *, options: Mapping[str, Any] | None = None) -> Array:
        """The same of texts as tokens, with those that begin and end a text."""
        given = [tokens_of("a text", text, self.config.vocabulary) for text in _list_of(texts, "lists of tokens")]
        if not given:
            raise ValueError("no texts: give one or more")
        count = np.array([len(text) for text in given])
        if count.max() > self.config.positions:
            raise ValueError(f"a text of {count.max()} tokens: the model takes 1 to {self.config.positions}")
        tokens = np.zeros((len(given), count.max()), np.int64)
        for row, text in zip(tokens, given):
            row[: len(text)] = text
        program = self.program(batch=len(given), tokens=tokens.shape[1])
        return program.run({**self.inputs(), "Tokens": tokens, "Count": count}, options=options)["Sentence"]


def _list_of(texts: Any, what: str) -> Sequence[Any] | np.ndarray:
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence | np.ndarray):
        raise TypeError(f"texts={texts!r}: give a list of {what}")
    return texts


def encoder(path: str | PathLike[str]) -> Encoder:
    """The encoder in the folder `path` as Hugging Face and Sentence Transformers keep it, or in a GGUF file.

    BERT's architecture, of types as `load` takes them. Pooling is what modules.json and the folder of pooling say, else
    the mean. Raises ModelError for what is damaged, missing or not supported, with the name of the tensor or entry.
    """
    where = Path(path)
    if where.is_dir():
        return _of_folder(where)
    if not where.is_file():
        raise missing(where)
    return _of_gguf(where)


def _of_folder(folder: Path) -> Encoder:
    found = open_folder(folder)
    # Models with a task on top keep the encoder under this name.
    weights = {name.removeprefix("bert."): weight for name, weight in found.weights.items()}
    checkpoint = Checkpoint(found.path, found.metadata, weights, found.is_gguf)
    pooling, is_normalised = _pooling(folder)
    config = bert_of_json(str(folder / "config.json"), found.metadata, pooling, is_normalised)
    # What comes after the tokens' vectors, which no sentence is made of.
    ignored = {name for name in weights if name.startswith(("pooler.", "cls."))} | {"embeddings.position_ids"}
    taken = checkpoint.take(_bert.parts(config), _bert.extents(config), ignored)
    longest = _longest(folder, config.positions)
    return Encoder(config, taken, lambda: tokenizer_of_folder(folder, found.metadata, longest))


def _longest(folder: Path, positions: int) -> int | None:
    """Tokens that Sentence Transformers takes of a text, with those that begin and end it; None without its file."""
    file = folder / "sentence_bert_config.json"
    return (
        min(Fields(str(file), read_json(file)).whole("max_seq_length", positions), positions) if file.exists() else None
    )


def _pooling(folder: Path) -> tuple[str, bool]:
    """How Sentence Transformers makes a sentence of tokens, and whether it is normalised."""
    modules = folder / "modules.json"
    if not modules.exists():
        return "mean", False
    pooling, is_normalised = "mean", False
    for module in read_list(modules):
        kind = str(module.get("type")).rpartition(".")[2] if isinstance(module, Mapping) else "?"
        if kind == "Pooling":
            pooling = _mode(folder / str(module.get("path")) / "config.json")
        elif kind == "Normalize":
            is_normalised = True
        elif kind != "Transformer":
            raise ModelError(
                f"{modules}: the module {kind!r} is not supported; supported: Transformer, Pooling, Normalize"
            )
    return pooling, is_normalised


_MODES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max", "pooling_mode_cls_token": "cls"}


def _mode(file: Path) -> str:
    entries = read_json(file)
    if "pooling_mode" in entries:
        return Fields(str(file), entries).choice("pooling_mode", tuple(_MODES.values()), "mean")
    chosen = [name for name, value in entries.items() if name.startswith("pooling_mode_") and value]
    if len(chosen) != 1 or chosen[0] not in _MODES:
        raise ModelError(
            f"{file}: pooling by {', '.join(chosen) or 'nothing'} is not supported; by one of {', '.join(_MODES)}"
        )
    return _MODES[chosen[0]]


def _of_gguf(path: Path) -> Encoder:
    checkpoint = open_gguf(path)
    shapes = {name: weight.shape for name, weight in checkpoint.weights.items()}
    config = bert_of_gguf(str(path), checkpoint.metadata, shapes)
    taken = checkpoint.take(_bert.parts(config), _bert.extents(config), ())
    return Encoder(config, taken, lambda: tokenizer_of_gguf(str(path), checkpoint.metadata))
