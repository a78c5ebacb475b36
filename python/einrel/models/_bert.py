"""Encoders of BERT's kind as a program in the language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ._checkpoint import Part
from ._config import Fields
from ._errors import ModelError, of_file


@dataclass(frozen=True)
class BertConfig:
    """An architecture of BERT's kind (Devlin et al., 2019): learnt positions, LayerNorm after each part, no mask.

    `positions` is how many tokens a text may have, `types` how many kinds of tokens there are, of which all are 0 here.
    `activation` is a function of the language. A sentence is the `pooling` of its tokens' vectors: their mean, their
    largest elements, or the first of them; of length 1 if it `is_normalised`.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    activation: str
    pooling: str
    is_normalised: bool

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ModelError(f"{self.heads} heads cannot share a width of {self.width} evenly")
        if self.layers > 1000:
            raise ModelError(f"{self.layers} layers are more than a program can have: 1000")


@of_file
def bert_of_json(path: str, entries: Mapping[str, Any], pooling: str, is_normalised: bool) -> BertConfig:
    """The architecture in Hugging Face's config.json."""
    fields = Fields(path, entries)
    fields.choice("model_type", ("bert",), "")
    fields.choice("position_embedding_type", ("absolute",), "absolute")
    return BertConfig(
        layers=fields.whole("num_hidden_layers"),
        width=fields.whole("hidden_size"),
        heads=fields.whole("num_attention_heads"),
        hidden=fields.whole("intermediate_size"),
        vocabulary=fields.whole("vocab_size"),
        positions=fields.whole("max_position_embeddings"),
        types=fields.whole("type_vocab_size", 2),
        epsilon=fields.number("layer_norm_eps", 1e-12),
        activation=fields.choice("hidden_act", ("gelu", "relu", "silu"), "gelu"),
        pooling=pooling,
        is_normalised=is_normalised,
    )


_POOLING_OF_GGUF: Final = {1: "mean", 2: "cls"}


@of_file
def bert_of_gguf(path: str, entries: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> BertConfig:
    """The architecture in the metadata of a GGUF file, which leaves some extents to its tensors: these `shapes`."""
    Fields(path, entries).choice("general.architecture", ("bert",), "")
    fields = Fields(path, entries, "bert.")

    def rows(part: Part) -> int:
        shape = shapes.get(part.gguf_name)
        if shape is None or len(shape) != 2:
            raise ModelError(f"{path}: there is no tensor '{part.gguf_name}' with two dimensions")
        return shape[0]

    kind = fields.get("pooling_type")
    pooling = _POOLING_OF_GGUF.get(kind) if isinstance(kind, int) else None
    if pooling is None:
        raise fields.fail(
            "pooling_type", f"is {fields.get('pooling_type')!r}; supported: 1 (mean), 2 (the first token)"
        )
    return BertConfig(
        layers=fields.whole("block_count"),
        width=fields.whole("embedding_length"),
        heads=fields.whole("attention.head_count"),
        hidden=fields.whole("feed_forward_length"),
        vocabulary=rows(_WORDS),
        positions=rows(_POSITIONS),
        types=rows(_TYPES),
        epsilon=fields.number("attention.layer_norm_epsilon"),
        activation="gelu",
        pooling=pooling,
        is_normalised=True,  # as llama.cpp does it, whatever the file says
    )


_WORDS: Final = Part("Words", "ve", "embeddings.word_embeddings.weight", "token_embd.weight")
_POSITIONS: Final = Part("Positions", "pe", "embeddings.position_embeddings.weight", "position_embd.weight")
_TYPES: Final = Part("Types", "ye", "embeddings.token_type_embeddings.weight", "token_types.weight")
_EMBEDDINGS: Final = (
    _WORDS,
    _POSITIONS,
    _TYPES,
    Part("G", "e", "embeddings.LayerNorm.weight", "token_embd_norm.weight"),
    Part("B", "e", "embeddings.LayerNorm.bias", "token_embd_norm.bias"),
)
# q are the columns of all heads, as many as e.
_LAYER_PARTS: Final = (
    Part("WQ", "qe", "attention.self.query.weight", "attn_q.weight"),
    Part("BQ", "q", "attention.self.query.bias", "attn_q.bias"),
    Part("WK", "qe", "attention.self.key.weight", "attn_k.weight"),
    Part("BK", "q", "attention.self.key.bias", "attn_k.bias"),
    Part("WV", "qe", "attention.self.value.weight", "attn_v.weight"),
    Part("BV", "q", "attention.self.value.bias", "attn_v.bias"),
    Part("WO", "eq", "attention.output.dense.weight", "attn_output.weight"),
    Part("BO", "e", "attention.output.dense.bias", "attn_output.bias"),
    Part("G1", "e", "attention.output.LayerNorm.weight", "attn_output_norm.weight"),
    Part("B1", "e", "attention.output.LayerNorm.bias", "attn_output_norm.bias"),
    Part("WUp", "me", "intermediate.dense.weight", "ffn_up.weight"),
    Part("BUp", "m", "intermediate.dense.bias", "ffn_up.bias"),
    Part("WDown", "em", "output.dense.weight", "ffn_down.weight"),
    Part("BDown", "e", "output.dense.bias", "ffn_down.bias"),
    Part("G2", "e", "output.LayerNorm.weight", "layer_output_norm.weight"),
    Part("B2", "e", "output.LayerNorm.bias", "layer_output_norm.bias"),
)


def parts(config: BertConfig) -> list[Part]:
    """All weights of an encoder."""
    layers = [
        part.of_layer(layer, f"encoder.layer.{layer - 1}", f"blk.{layer - 1}")
        for layer in range(1, config.layers + 1)
        for part in _LAYER_PARTS
    ]
    return [*_EMBEDDINGS, *layers]


def extents(config: BertConfig) -> dict[str, int]:
    """The extents of the labels of weights."""
    return {
        "v": config.vocabulary,
        "p": config.positions,
        "y": config.types,
        "e": config.width,
        "q": config.width,
        "m": config.hidden,
    }


_HEAD: Final = """\
# An encoder of BERT's kind: {layers} layers. Each of b texts of up to s tokens becomes a vector; Count[b] is how many
# tokens it has, and the others, at the end, are seen by none.
#   e  the width of the model; v the vocabulary; p positions; y kinds of tokens; m hidden units
#   h d  heads and their width; q the columns of all heads
dims b={batch} s={tokens}
dims e={e} h={h} d={d} q={q} m={m} v={v} p={p} y={y}
input Tokens[b,s] : i64, Count[b] : i64
input {inputs}
def normed[e](x, gain, bias) = layernorm[e](x, {epsilon}) * gain + bias
Place[s] = s
Word[b,s,e] = f32(Words[Tokens[b,s],e])
X_1[b,s,e] = normed[e](Word[b,s,e] + Positions[Place[s],e] + Types[0,e], G[e], B[e])
"""

_LAYER: Final = """
# layer @
input {inputs}
QFlat_@[b,s,q] = (sum[e] X_@[b,s,e] * WQ_@[q,e]) + BQ_@[q]
KFlat_@[b,s,q] = (sum[e] X_@[b,s,e] * WK_@[q,e]) + BK_@[q]
VFlat_@[b,s,q] = (sum[e] X_@[b,s,e] * WV_@[q,e]) + BV_@[q]
Q_@[b,s,h,d] = view QFlat_@[b,s,(h d)]
K_@[b,s,h,d] = view KFlat_@[b,s,(h d)]
V_@[b,s,h,d] = view VFlat_@[b,s,(h d)]
Scores_@[b,h,s,t] = sum[d] Q_@[b,s,h,d] * K_@[b,t,h,d]
P_@[b,h,s,t] = softmax[t](where(t < Count[b], Scores_@[b,h,s,t] * {scale}, -inf))
O_@[b,s,h,d] = sum[t] P_@[b,h,s,t] * V_@[b,t,h,d]
OFlat_@[b,s,(h d)] = view O_@[b,s,h,d]
Attention_@[b,s,e] = (sum[q] OFlat_@[b,s,q] * WO_@[e,q]) + BO_@[e]
Y_@[b,s,e] = normed[e](X_@[b,s,e] + Attention_@[b,s,e], G1_@[e], B1_@[e])
F_@[b,s,m] = {activation}((sum[e] Y_@[b,s,e] * WUp_@[m,e]) + BUp_@[m])
Down_@[b,s,e] = (sum[m] F_@[b,s,m] * WDown_@[e,m]) + BDown_@[e]
X_{next}[b,s,e] = normed[e](Y_@[b,s,e] + Down_@[b,s,e], G2_@[e], B2_@[e])
"""

_POOLING: Final = {
    "mean": "(sum[s] where(s < Count[b], X_{last}[b,s,e], 0)) / f32(Count[b])",
    "max": "max[s] where(s < Count[b], X_{last}[b,s,e], -inf)",
    "cls": "X_{last}[b,0,e]",
}
_NORMALISED: Final = "Pooled[b,e] / max(norm[e](Pooled[b,e]), 1e-12)"


def _inputs(some: list[Part], dtypes: Mapping[str, str]) -> str:
    return ", ".join(f"{part.input}[{','.join(part.labels)}] : {dtypes[part.input]}" for part in some)


def text(config: BertConfig, batch: int, tokens: int, dtypes: Mapping[str, str]) -> str:
    """The program for `batch` texts of up to `tokens` tokens; `dtypes` are those of weights by the names of inputs."""
    head = _HEAD.format(
        layers=config.layers,
        batch=batch,
        tokens=tokens,
        h=config.heads,
        d=config.width // config.heads,
        epsilon=repr(config.epsilon),
        inputs=_inputs(list(_EMBEDDINGS), dtypes),
        **extents(config),
    )
    layers = [
        _LAYER.format(
            inputs=_inputs([part.of_layer(layer, "", "") for part in _LAYER_PARTS], dtypes),
            scale=repr((config.width // config.heads) ** -0.5),
            activation=config.activation,
            next=layer + 1,
        ).replace("@", str(layer))
        for layer in range(1, config.layers + 1)
    ]
    pooled = _POOLING[config.pooling].format(last=config.layers + 1)
    result = _NORMALISED if config.is_normalised else "Pooled[b,e]"
    return f"{head}{''.join(layers)}\nPooled[b,e] = {pooled}\nSentence[b,e] = {result}\noutput Sentence\n"
