"""Language models: from files to tokens."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from .._array import Array, asarray
from .._compute import number_of, run_options, whole_of
from .._native import RunReport
from .._program import Program, StepResults
from .._ranks import ranks
from . import _llama
from ._checkpoint import MOST_PROGRAMS, Weight
from ._config import LlamaConfig, llama_of_gguf, llama_of_json, with_factors
from ._errors import ModelError, missing
from ._gguf import open_gguf
from ._llama import EMBEDDING, FACTORS, OUTPUT, PARTS, Form
from ._safetensors import open_folder, read_json
from ._tokenizer import Tokenizer, tokenizer_of_folder, tokenizer_of_gguf
from ._tokens import tokens_of

_CAPACITY: Final = 4096  # tokens of a text in plans, where nobody says another number
_DTYPES: Final = ("f32", "f16", "bf16")  # of weights in files
_SEEDS: Final = 2**53  # a scalar of f64 has all whole numbers below
_LEAST_TEMPERATURE: Final = 1e-6  # logits over less may be infinite in f32


@dataclass(frozen=True)
class Request:
    """What `generate` is asked for, checked: `prompts` of tokens, and `tokens` more of each."""

    prompts: list[list[int]]
    tokens: int
    temperature: float
    seed: int
    stops: frozenset[int]
    options: dict[str, Any]

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt."""
        return max(map(len, self.prompts))

    def form(self, tokens: int) -> Form:
        """Of a step with so many tokens of each text."""
        capacity = self.longest + self.tokens - 1  # nothing comes after the last one
        return Form(len(self.prompts), tokens, capacity, self.temperature > 0)


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
        self._programs = lru_cache(MOST_PROGRAMS)(self._made_program)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Text to tokens and back; needs the package tokenizers."""
        return self._make_tokenizer()

    def program(self, *, batch: int, tokens: int, capacity: int, is_sampled: bool = False) -> Program:
        """The program for `batch` texts of up to `capacity` tokens, of which a step computes `tokens`.

        It takes `inputs` and, beside them, Tokens[b,s] and Count[b]. A step with position[b] + Count[b] above the
        capacity leaves out what has no room, and its results mean nothing: whoever runs steps counts them, as
        `generate` does. Raises ValueError for more `tokens` than `capacity`, ModelError for more than the model has.
        """
        return self.program_of(Form(batch, tokens, capacity, is_sampled))

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

    def fed(self) -> list[str]:
        """Inputs that are new for each token: beside Tokens weights that would have no room if they stayed."""
        made = [name for name, weight in self._weights.items() if not weight.is_stored]
        return ["Tokens", *([] if self._has_room() else made)]

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
        stops: Iterable[int] = frozenset(),
        options: Mapping[str, Any] | None = None,
    ) -> Iterator[Step]:
        """Goes on with texts of tokens, at most `tokens` more of each, until all have come to one of `stops`.

        The most likely token follows at `temperature` 0; above, one that is drawn from the softmax of the logits over
        the temperature, the same for the same `seed`, on any number of sites. `options` are those of `compute`. Weights
        and what is known of earlier tokens stay where they are computed with from token to token; weights that are made
        from blocks of few bits where they have room, and none with the option memory.
        """
        return self._generate(
            self.request(prompts, tokens=tokens, temperature=temperature, seed=seed, stops=stops, options=options)
        )

    def write(
        self,
        prompt: str | Sequence[int],
        *,
        tokens: int = 64,
        temperature: float = 0.0,
        seed: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> Iterator[str]:
        """Goes on with one text, or with its tokens: what `generate` adds, as text that comes piece by piece.

        It ends with a token of `tokenizer.stops`, which is no part of it.
        """
        if not isinstance(prompt, str | Sequence | np.ndarray) or isinstance(prompt, bytes):
            raise TypeError(f"prompt={prompt!r}: give a text, or a list of its tokens")
        given = self.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        stops = self.tokenizer.stops
        asked = self.request([given], tokens=tokens, temperature=temperature, seed=seed, stops=stops, options=options)
        added = (step.tokens[0] for step in self._generate(asked))
        return self.tokenizer.pieces(token for token in added if token is not None)

    def request(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        tokens: int,
        temperature: float = 0.0,
        seed: int = 1,
        stops: Iterable[int] = frozenset(),
        options: Mapping[str, Any] | None = None,
    ) -> Request:
        """What `generate` is given, checked before anything is computed or planned."""
        heat = number_of("temperature", temperature)
        if not (heat == 0 or _LEAST_TEMPERATURE <= heat < math.inf):
            raise ValueError(f"temperature={temperature}: give 0, or a number from {_LEAST_TEMPERATURE} on")
        if whole_of("seed", seed, 0) >= _SEEDS:
            raise ValueError(f"seed={seed}: give a number below 2**53")
        run_options(**(options or {}))
        if isinstance(prompts, str | bytes) or not isinstance(prompts, Sequence | np.ndarray):
            raise TypeError(f"prompts={prompts!r}: give prompts as lists of tokens, such as [[1, 2, 3]]")
        given = [tokens_of("a prompt", prompt, self.config.vocabulary) for prompt in prompts]
        if not given:
            raise ValueError("no prompts: give one or more")
        asked = Request(given, whole_of("tokens", tokens), heat, int(seed), self._stops(stops), dict(options or {}))
        needed = asked.form(1).capacity
        if self.config.longest is not None and needed > self.config.longest:
            most = self.config.longest - asked.longest + 1
            remedy = f"give tokens={most} or less" if most > 0 else f"give a prompt of {self.config.longest} or less"
            raise ModelError(
                f"a prompt of {asked.longest} tokens and {tokens} more need {needed} positions; the model has "
                f"{self.config.longest}: {remedy}"
            )
        return asked

    def _stops(self, given: Iterable[int]) -> frozenset[int]:
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise TypeError(f"stops={given!r}: give tokens that end a text, such as [2]")
        found = list(given)
        return frozenset(tokens_of("stops", found, self.config.vocabulary) if found else [])

    def program_of(self, form: Form) -> Program:
        """The program of this form, the same one each time, so that it is planned once."""
        return self._programs(form)

    def _made_program(self, form: Form) -> Program:
        dtypes = {name: weight.dtype for name, weight in self._weights.items()}
        return Program(_llama.text(self.config, form, dtypes), None, "<language model>")

    def _generate(self, asked: Request) -> Iterator[Step]:
        is_open = np.ones(len(asked.prompts), bool)
        for result in self._results(asked):
            following = np.asarray(result["Next"])
            chosen = [int(token) if going else None for token, going in zip(following, is_open)]
            yield Step(chosen, result["Logits"], result.report)
            is_open &= ~np.isin(following, list(asked.stops))
            if not is_open.any():
                return

    def _results(self, asked: Request) -> Iterator[StepResults]:
        """Of the prompts, and of each token after them."""
        batch, longest = len(asked.prompts), asked.longest
        how: dict[str, Any] = {"options": asked.options}
        if asked.temperature > 0:
            how["scalars"] = {"temperature": asked.temperature, "seed": float(asked.seed)}
        inputs: dict[str, Any] = dict(self.inputs(keep=asked.options.get("memory") is None and ranks() == 1))
        prompts = np.array([prompt + [0] * (longest - len(prompt)) for prompt in asked.prompts])
        count = np.array([len(prompt) for prompt in asked.prompts])
        of_token, at_most, ones = self.program_of(asked.form(1)), asked.tokens - 1, np.ones(batch, int)
        before = dict(how)
        if at_most and asked.options.get("plan") is None:  # weights lie for the prompt where each token has them
            like = {**inputs, "Tokens": ones[:, None], "Count": ones}
            lie = of_token.placements_of_steps(like, fed=self.fed(), at_most=at_most, **how)
            before["options"] = {**asked.options, "placements": {**lie, **(asked.options.get("placements") or {})}}
        of_prompt = self.program_of(asked.form(longest))
        first = of_prompt.run({**inputs, "Tokens": prompts, "Count": count}, steps=1, **before)
        yield first
        if not at_most:
            return
        following = [first["Next"]]
        fed = {name: itertools.repeat(inputs[name]) for name in self.fed() if name in inputs}
        inputs |= {**fed, "Tokens": (np.asarray(following.pop())[:, None] for _ in itertools.count()), "Count": ones}
        steps = of_token.steps(inputs, at_most=at_most, state=first.state, **how)
        for result in steps:
            following.append(result["Next"])
            yield result


def physical_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def load(path: str | PathLike[str]) -> LanguageModel:
    """The language model in the folder `path` as Hugging Face keeps it (config.json, .safetensors), or in a GGUF file.

    Architectures: LLaMA, Mistral, Qwen2, Qwen3, and others that say they are one of these. Weights: f32, f16, bf16; in
    GGUF also Q8_0, Q4_0, Q4_1, Q4_K and Q6_K. Files are mapped, and all of them are checked before this returns. Raises
    ModelError for what is damaged, missing or not supported, with the name of the tensor or entry.
    """
    where = Path(path)
    if where.is_dir():
        return _of_folder(where)
    if not where.is_file():
        raise missing(where)
    return _of_gguf(where)


def program(
    path: str | PathLike[str],
    *,
    batch: int = 1,
    tokens: int = 1,
    capacity: int | None = None,
    dtype: str = "bf16",
) -> Program:
    """The program of a model of which only config.json is there, at `path`: to plan it for a machine without weights.

    It computes `tokens` more of each of `batch` texts of up to `capacity` tokens, with weights of `dtype`; the capacity
    is 4096 tokens unless given, or less where the model has less, and `tokens` at least. Raises ModelError for an
    architecture that is not supported, ValueError for a `dtype` that files of weights do not have.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype={dtype!r}: weights are of {', '.join(_DTYPES)}")
    where = Path(path)
    file = where / "config.json" if where.is_dir() else where
    config = llama_of_json(str(file), read_json(file))
    dtypes = {part.input: dtype for part in _llama.parts(config)}
    if capacity is None:
        capacity = max(whole_of("tokens", tokens), min(_CAPACITY, config.longest or _CAPACITY))
    return Program(_llama.text(config, Form(batch, tokens, capacity), dtypes), None, str(file))


def _of_folder(folder: Path) -> LanguageModel:
    checkpoint = open_folder(folder)
    config = llama_of_json(str(folder / "config.json"), checkpoint.metadata)
    # Frequencies of the rotary embedding, which the program computes; the output of a model that has none of its own.
    ignored = {name for name in checkpoint.weights if name.endswith("rotary_emb.inv_freq")}
    ignored |= {OUTPUT.name} if config.is_tied else set()
    weights = checkpoint.take(_llama.parts(config), _llama.extents(config), ignored)
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
    factors = [FACTORS] if checkpoint.has(FACTORS) else []
    weights = checkpoint.take([*_llama.parts(config), *factors], _llama.extents(config), ())
    for part in factors:
        elements = np.asarray(weights.pop(part.input).kept()).astype("d").tolist()
        config = with_factors(config, elements, f"{path}: the tensor '{part.gguf_name}'")
    return LanguageModel(config, weights, lambda: tokenizer_of_gguf(str(path), checkpoint.metadata))
