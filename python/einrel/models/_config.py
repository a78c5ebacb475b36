"""What a model's files say of its architecture."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ._errors import ModelError, of_file

_MOST: Final = 2**31 - 1  # no extent of a model is larger
_LARGEST: Final = sys.float_info.max


class Fields:
    """The entries of a configuration, read with their types; errors say the file and the entry."""

    def __init__(self, path: str, entries: Mapping[str, Any], prefix: str = "") -> None:
        self._path, self._entries, self._prefix = path, entries, prefix

    def get(self, name: str) -> Any:
        """An entry, None where there is none."""
        return self._entries.get(self._prefix + name)

    def fail(self, name: str, problem: str) -> ModelError:
        """What is wrong with an entry."""
        return ModelError(f"{self._path}: {self._prefix}{name} {problem}")

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number of 1 or more."""
        value = default if self.get(name) is None else self.get(name)
        if value is None:
            raise self.fail(name, "is missing")
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise self.fail(name, f"is {value!r}: it has to be a whole number of 1 or more")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A number above 0."""
        value = default if self.get(name) is None else self.get(name)
        if value is None:
            raise self.fail(name, "is missing")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _LARGEST:
            raise self.fail(name, f"is {value!r}: it has to be a number above 0, of 64 bits")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or false, which it is where there is no entry."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fail(name, f"is {value!r}: it has to be true or false")
        return bool(value)

    def window(self, name: str) -> int | None:
        """How many tokens a token sees; 0 and no entry mean all before it."""
        return None if self.get(name) in (None, 0) else self.whole(name)

    def only(self, names: tuple[str, ...], value: float) -> None:
        """An error where one of these entries has another value than this, with which nothing changes."""
        for name in names:
            if not math.isclose(self.number(name, value), value, rel_tol=1e-6):
                raise self.fail(name, f"is {self.get(name)!r}, which is not supported; supported: {value!r}")

    def choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        """One of some words."""
        value = default if self.get(name) is None else self.get(name)
        if value not in known:
            raise self.fail(name, f"is {value!r}, which is not supported; supported: {', '.join(known)}")
        return str(value)


@dataclass(frozen=True)
class LlamaConfig:
    """An architecture of LLaMA's kind: RMSNorm, rotary embeddings, grouped-query attention, SwiGLU.

    `width` is the length of a token's vector; `heads` read `kv_heads` keys and values of length `head_width` each;
    `hidden` is the width of SwiGLU. `rope_factors` divide the frequencies of the rotary embedding, one for each of the
    head_width / 2 pairs of columns, and `rope_scale` multiplies what it turns; the pairs are neighbours if
    `has_neighbours_as_pairs`, else they lie head_width / 2 apart. A token sees as many tokens as `window` says, itself
    included; all before it, where that is None. `optional` names the biases and norms that each layer has (inputs of
    `_llama.PARTS`).
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    hidden: int
    vocabulary: int
    epsilon: float
    rope_base: float
    rope_factors: tuple[float, ...] | None
    rope_scale: float
    has_neighbours_as_pairs: bool
    window: int | None
    is_tied: bool
    longest: int | None
    optional: frozenset[str]

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ModelError(f"{self.heads} heads cannot share {self.kv_heads} heads of keys and values evenly")
        if self.head_width % 2:
            raise ModelError(f"a rotary embedding turns pairs of columns, but a head has {self.head_width}")
        if self.layers > 1000:
            raise ModelError(f"{self.layers} layers are more than a program can have: 1000")


_HUGGING_FACE: Final = ("llama", "mistral", "qwen2", "qwen3")
_GGUF: Final = ("llama", "qwen2", "qwen3")
# What all models of a kind have besides LLaMA's weights.
_OF_KIND: Final = {"qwen2": frozenset({"BQ", "BK", "BV"}), "qwen3": frozenset({"GQ", "GK"})}
_ATTENTION_BIASES: Final = frozenset({"BQ", "BK", "BV", "BO"})
_MLP_BIASES: Final = frozenset({"BGate", "BUp", "BDown"})


@of_file
def llama_of_json(path: str, entries: Mapping[str, Any]) -> LlamaConfig:
    """The architecture in Hugging Face's config.json."""
    fields = Fields(path, entries)
    kind = fields.choice("model_type", _HUGGING_FACE, "")
    fields.choice("hidden_act", ("silu",), "silu")
    heads, width = fields.whole("num_attention_heads"), fields.whole("hidden_size")
    # Defaults are those of Hugging Face's classes, where these do not change what was meant.
    head_width = fields.whole("head_dim", None if kind == "qwen3" else max(width // heads, 1))
    rope = entries.get("rope_parameters") or entries.get("rope_scaling") or {}
    if not isinstance(rope, Mapping):
        raise fields.fail("rope_scaling", f"is {rope!r}: it has to be an object")
    base = Fields(path, {**entries, **rope}).number("rope_theta", 10000.0)
    if Fields(path, {**entries, **rope}).number("partial_rotary_factor", 1.0) != 1.0:
        raise fields.fail("partial_rotary_factor", "is not 1: a part of a head is turned, which is not supported")
    fields.only(("embedding_multiplier", "residual_multiplier", "logits_scaling", "logit_scale"), 1.0)
    fields.only(("attention_multiplier",), head_width**-0.5)
    if fields.flag("use_sliding_window"):
        raise fields.fail("use_sliding_window", "is true, where only some layers have a window: it is not supported")
    longest = _optional(fields, "max_position_embeddings")
    factors, scale = _rope_factors(Fields(path, rope), base, head_width, longest)
    return LlamaConfig(
        layers=fields.whole("num_hidden_layers"),
        width=width,
        heads=heads,
        kv_heads=fields.whole("num_key_value_heads", heads if kind == "llama" else None),
        head_width=head_width,
        hidden=fields.whole("intermediate_size"),
        vocabulary=fields.whole("vocab_size"),
        epsilon=fields.number("rms_norm_eps", 1e-6),
        rope_base=base,
        rope_factors=factors,
        rope_scale=scale,
        has_neighbours_as_pairs=False,
        window=fields.window("sliding_window") if kind == "mistral" else None,
        is_tied=fields.flag("tie_word_embeddings"),
        longest=_stretched(Fields(path, rope), longest),
        optional=_OF_KIND.get(kind, frozenset())
        | (_ATTENTION_BIASES if fields.flag("attention_bias") else frozenset())
        | (_MLP_BIASES if fields.flag("mlp_bias") else frozenset()),
    )


def _optional(fields: Fields, name: str) -> int | None:
    return None if fields.get(name) is None else fields.whole(name)


def _kind_of(rope: Fields) -> Any:
    return rope.get("rope_type") or rope.get("type") or "default"


def _stretched(rope: Fields, longest: int | None) -> int | None:
    """Positions that a model has: with YaRN `factor` times those that it was trained on, where these are more."""
    if _kind_of(rope) != "yarn":
        return longest
    trained = rope.whole("original_max_position_embeddings", longest)
    return max(longest or 1, int(min(rope.number("factor") * trained, _MOST)))


def _rope_factors(
    rope: Fields, base: float, head_width: int, longest: int | None
) -> tuple[tuple[float, ...] | None, float]:
    """What divides the frequencies, and what their cosines and sines are scaled by: as Hugging Face computes them.

    For "linear", "llama3" (LLaMA 3.1) and "yarn" (Peng et al., YaRN, 2023, sections 3.2 and 3.4).
    """
    kind = _kind_of(rope)
    if kind != "yarn":
        rope.only(("attention_factor",), 1.0)
    if kind == "default":
        rope.only(("factor",), 1.0)
        return None, 1.0
    if kind == "linear":
        return (rope.number("factor"),) * (head_width // 2), 1.0
    if kind not in ("llama3", "yarn"):
        raise rope.fail("rope_type", f"is {kind!r}, which is not supported; supported: default, linear, llama3, yarn")
    factor, scale = rope.number("factor"), 1.0
    if kind == "llama3":
        shares = _llama3_shares(rope, base, head_width)
    else:
        shares = _yarn_shares(rope, base, head_width, longest)
        scale = rope.number("attention_factor", 0.1 * math.log(max(factor, 1.0)) + 1)
    return tuple(1 / ((1 - share) / factor + share) for share in shares), scale


def _llama3_shares(rope: Fields, base: float, head_width: int) -> list[float]:
    """How much of its frequency each pair keeps."""
    low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
    trained = rope.whole("original_max_position_embeddings")
    if low >= high:
        raise rope.fail("low_freq_factor", f"is {low}, which is not below high_freq_factor, {high}")
    turns = [  # of each pair, over what it was trained on
        trained * math.pow(base, -2 * pair / head_width) / (2 * math.pi) for pair in range(head_width // 2)
    ]
    return [min(max((count - low) / (high - low), 0.0), 1.0) for count in turns]


def _yarn_shares(rope: Fields, base: float, head_width: int, longest: int | None) -> list[float]:
    """The same, falling from the pair that turns beta_fast times to the one that turns beta_slow times."""
    fast, slow = rope.number("beta_fast", 32.0), rope.number("beta_slow", 1.0)
    trained = rope.whole("original_max_position_embeddings", longest)
    for name in ("mscale", "mscale_all_dim", "truncate"):
        if rope.get(name) not in (None, True):
            raise rope.fail(name, f"is {rope.get(name)!r}, which is not supported")
    if slow >= fast:
        raise rope.fail("beta_slow", f"is {slow}, which is not below beta_fast, {fast}")
    if base <= 1:
        raise rope.fail("rope_theta", f"is {base}: yarn needs more than 1")

    def pair(turns: float) -> float:
        return head_width * math.log(trained / (2 * math.pi * turns)) / (2 * math.log(base))

    first, last = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), head_width - 1)
    if last < first:
        raise rope.fail("original_max_position_embeddings", f"is {trained}: no pair turns beta_slow times")
    return [1 - min(max((at - first) / max(last - first, 0.001), 0.0), 1.0) for at in range(head_width // 2)]


@of_file
def llama_of_gguf(
    path: str, entries: Mapping[str, Any], vocabulary: int, is_tied: bool, found: frozenset[str]
) -> LlamaConfig:
    """The architecture in the metadata of a GGUF file, which leaves some to its tensors.

    These are the `vocabulary`, whether the embedding is the output, too, and the optional weights `found` in the first
    layer. Factors of frequencies may also be a tensor there: `with_factors` adds them.
    """
    kind = Fields(path, entries).choice("general.architecture", _GGUF, "")
    fields = Fields(path, entries, f"{kind}.")
    if fields.get("expert_count"):
        raise fields.fail("expert_count", f"is {fields.get('expert_count')}: mixtures of experts are not supported")
    heads, width = fields.whole("attention.head_count"), fields.whole("embedding_length")
    head_width = fields.whole("attention.key_length", max(width // heads, 1))
    if fields.whole("attention.value_length", head_width) != head_width:
        raise fields.fail("attention.value_length", "differs from that of keys, which is not supported")
    if fields.whole("rope.dimension_count", head_width) != head_width:
        raise fields.fail(
            "rope.dimension_count", f"is not {head_width}: a part of a head is turned, which is not supported"
        )
    scaling = fields.choice("rope.scaling.type", ("none", "linear"), "linear")  # where there is none, as in llama.cpp
    factor = fields.number("rope.scaling.factor", 1.0) if scaling == "linear" else 1.0
    fields.only(("rope.scale_linear", "rope.scaling.attn_factor"), 1.0)
    fields.only(("embedding_scale", "residual_scale", "logit_scale"), 1.0)
    fields.only(("attention.scale",), head_width**-0.5)
    longest, window = _optional(fields, "context_length"), fields.window("attention.sliding_window")
    if kind != "llama" and window is not None and (longest is None or window < longest):
        raise fields.fail(
            "attention.sliding_window", f"is {window}: of {kind} only some layers have one, which is not supported"
        )
    return LlamaConfig(
        layers=fields.whole("block_count"),
        width=width,
        heads=heads,
        kv_heads=fields.whole("attention.head_count_kv", heads),
        head_width=head_width,
        hidden=fields.whole("feed_forward_length"),
        vocabulary=vocabulary,
        epsilon=fields.number("attention.layer_norm_rms_epsilon"),
        rope_base=fields.number("rope.freq_base", 10000.0),
        rope_factors=(factor,) * (head_width // 2) if factor != 1.0 else None,
        rope_scale=1.0,
        has_neighbours_as_pairs=kind == "llama",
        window=window,
        is_tied=is_tied,
        longest=longest,
        optional=_OF_KIND.get(kind, frozenset()) | found,
    )


def with_factors(config: LlamaConfig, factors: Sequence[float], where: str) -> LlamaConfig:
    """The same with factors of a tensor, which divide the frequencies besides those of the metadata."""
    if not all(0 < factor <= _LARGEST for factor in factors):
        raise ModelError(f"{where} has elements that are no numbers above 0")
    own = config.rope_factors or (1.0,) * len(factors)
    return replace(config, rope_factors=tuple(one * other for one, other in zip(own, factors)))
