"""Language models: from files to tokens."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._array import Array, asarray
from .._native import RunReport, State
from .._program import Program
from .._ranks import ranks
from . import _llama
from ._checkpoint import Checkpoint, Weight
from ._config import LlamaConfig, llama_of_gguf, llama_of_json
from ._errors import ModelError
from ._gguf import open_gguf
from ._llama import EMBEDDING, FACTORS, OUTPUT, PARTS, Form
from ._safetensors import open_folder, read_json
from ._tokenizer import Tokenizer, tokenizer_of_folder, tokenizer_of_gguf


@dataclass(frozen=True)
class Step:
    """One more token of each text: None of one that has ended; the logits that it was chosen by; what that took."""

    tokens: list[int | None]
    logits: Array
    report: RunReport


class LanguageModel:
    """A language model, made by `load`: a program in the language, and weights that lie in files."""

    def __init__(
        self, config: LlamaConfig, weights: Mapping[str, Weight], make_tokenizer: Callable[[], Tokenizer]
    ) -> None:
        self.config = config
        self._weights = weights
        self._make_tokenizer = make_tokenizer
        self._kept: dict[str, Array] = {}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Text to tokens and back; needs the package tokenizers."""
        return self._make_tokenizer()

    def program(self, *, batch: int, tokens: int, capacity: int, is_sampled: bool = False) -> Program:
        """The program for `batch` texts of up to `capacity` tokens, of which a step computes `tokens`.

        It takes `inputs` and, beside them, Tokens[b,s] and Count[b].
        """
        dtypes = {name: weight.dtype for name, weight in self._weights.items()}
        text = program_text(self.config, dtypes, Form(batch, tokens, capacity, is_sampled))
        return Program(text, None, "<language model>")

    def inputs(self, *, keep: bool = False) -> dict[str, Array]:
        """The weights by the names of the program's inputs, which read the files part by part.

        With `keep` those that are made from blocks of few bits are made once, and stay in memory as f32, unless they
        would take more than half of the machine's.
        """
        factors = self.config.rope_factors
        own = {} if factors is None else {FACTORS.input: asarray(np.array(factors))}
        if not keep or not self._has_room():
            return own | {name: weight.lazy() for name, weight in self._weights.items()}
        for name, weight in self._weights.items():
            if name not in self._kept:
                self._kept[name] = weight.kept()
        return own | self._kept

    def _has_room(self) -> bool:
        made = sum(4 * math.prod(weight.shape) for weight in self._weights.values() if not weight.is_stored)
        return made <= physical_memory() // 2

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        tokens: int = 64,
        temperature: float = 0.0,
        seed: int = 1,
        stops: frozenset[int] = frozenset(),
        options: Mapping[str, Any] | None = None,
    ) -> Iterator[Step]:
        """Goes on with texts of tokens, at most `tokens` more of each, until all have come to one of `stops`.

        The most likely token follows at `temperature` 0; above, one that is drawn from the softmax of the logits over
        the temperature, the same for the same `seed`, on any number of sites. `options` are those of `compute`. Weights
        stay in memory from step to step where they have room, unless the option memory is given, or several processes
        compute.
        """
        if tokens < 1 or temperature < 0:
            raise ValueError(f"tokens={tokens}, temperature={temperature}: give 1 or more, and 0 or more")
        given = [self._checked(prompt) for prompt in prompts]
        if not given:
            raise ValueError("no prompts: give one or more")
        longest = max(map(len, given))
        capacity = longest + tokens - 1  # nothing comes after the last one
        if self.config.longest is not None and capacity > self.config.longest:
            raise ModelError(
                f"a prompt of {longest} tokens and {tokens} more need {capacity} positions; the model has "
                f"{self.config.longest}"
            )
        return self._generate(given, capacity, tokens, temperature, seed, stops, dict(options or {}))

    def _checked(self, prompt: Sequence[int]) -> list[int]:
        for token in prompt:
            if not 0 <= token < self.config.vocabulary:
                raise ValueError(
                    f"a prompt has the token {token}; the model has tokens up to {self.config.vocabulary - 1}"
                )
        if not len(prompt):
            raise ValueError("a prompt without tokens: give one or more")
        return [int(token) for token in prompt]

    def _generate(
        self,
        prompts: list[list[int]],
        capacity: int,
        tokens: int,
        temperature: float,
        seed: int,
        stops: frozenset[int],
        options: dict[str, Any],
    ) -> Iterator[Step]:
        batch, longest = len(prompts), max(map(len, prompts))
        is_sampled = temperature > 0
        scalars = {"temperature": float(temperature), "seed": float(seed)} if is_sampled else {}
        weights = self.inputs(keep=options.get("memory") is None and ranks() == 1)
        added = np.array([prompt + [0] * (longest - len(prompt)) for prompt in prompts])
        count = np.array([len(prompt) for prompt in prompts])
        program = self.program(batch=batch, tokens=longest, capacity=capacity, is_sampled=is_sampled)
        state: State | None = None
        is_open = np.ones(batch, bool)
        for number in range(tokens):
            if number == 1:
                program = self.program(batch=batch, tokens=1, capacity=capacity, is_sampled=is_sampled)
            result = program.run(
                {**weights, "Tokens": added, "Count": count}, scalars=scalars, steps=1, state=state, options=options
            )
            following, state = np.asarray(result["Next"]), result.state
            chosen = [int(token) if going else None for token, going in zip(following, is_open)]
            yield Step(chosen, result["Logits"], result.report)
            is_open &= ~np.isin(following, list(stops))
            if not is_open.any():
                return
            added, count = following[:, None], np.ones(batch, int)


def physical_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def program_text(config: LlamaConfig, dtypes: Mapping[str, str], form: Form) -> str:
    """The program of a model, whose weights have these types by the names of inputs."""
    own = {} if config.rope_factors is None else {FACTORS.input: "f64"}
    return _llama.text(config, form, {**own, **dtypes})


def load(path: str | PathLike[str]) -> LanguageModel:
    """The language model in a folder as Hugging Face keeps it (config.json, .safetensors), or in a GGUF file.

    Architectures: LLaMA, Mistral, Qwen2, Qwen3, and others that say they are one of these. Weights: f32, f16, bf16; in
    GGUF also Q8_0, Q4_0, Q4_1, Q4_K and Q6_K. Files are mapped, and all of them are checked before this returns. Raises
    ModelError for what is damaged, missing or not supported, with the name of the tensor or entry.
    """
    where = Path(path)
    if where.is_dir():
        return _of_folder(where)
    if not where.is_file():
        raise ModelError(f"{where}: there is no such file or folder")
    return _of_gguf(where)


def program(
    path: str | PathLike[str],
    *,
    batch: int = 1,
    tokens: int = 1,
    capacity: int = 4096,
    dtype: str = "bf16",
) -> Program:
    """The program of a model of which only config.json is there: to plan it for a machine, without its weights.

    It computes `tokens` more of each of `batch` texts of up to `capacity` tokens, with weights of `dtype`.
    """
    where = Path(path)
    file = where / "config.json" if where.is_dir() else where
    config = llama_of_json(str(file), read_json(file))
    dtypes = {part.input: dtype for part in _llama.parts(config)}
    return Program(program_text(config, dtypes, Form(batch, tokens, capacity)), None, str(file))


def _weights(config: LlamaConfig, checkpoint: Checkpoint, ignored: set[str]) -> dict[str, Weight]:
    factors = [FACTORS] if checkpoint.has(FACTORS) else []
    return checkpoint.take([*_llama.parts(config), *factors], _llama.extents(config), ignored)


def _of_folder(folder: Path) -> LanguageModel:
    checkpoint = open_folder(folder)
    config = llama_of_json(str(folder / "config.json"), checkpoint.metadata)
    # Frequencies of the rotary embedding, which the program computes; the output of a model that has none of its own.
    ignored = {name for name in checkpoint.weights if name.endswith("rotary_emb.inv_freq")}
    ignored |= {OUTPUT.name} if config.is_tied else set()
    weights = _weights(config, checkpoint, ignored)
    return LanguageModel(config, weights, lambda: tokenizer_of_folder(folder, checkpoint.metadata))


def _of_gguf(path: Path) -> LanguageModel:
    checkpoint = open_gguf(path)
    embedding = checkpoint.weights.get(EMBEDDING.gguf_name)
    if embedding is None or len(embedding.shape) != 2:
        raise ModelError(f"{path}: there is no tensor '{EMBEDDING.gguf_name}' with two dimensions")
    optional = [part for part in PARTS if part.is_optional]
    found = frozenset(part.input for part in optional if checkpoint.has(part.of_layer(1, "model.layers.0", "blk.0")))
    is_tied = not checkpoint.has(OUTPUT)
    config = llama_of_gguf(str(path), checkpoint.metadata, embedding.shape[0], is_tied, found)
    weights = _weights(config, checkpoint, set())
    return LanguageModel(config, weights, lambda: tokenizer_of_gguf(str(path), checkpoint.metadata))
