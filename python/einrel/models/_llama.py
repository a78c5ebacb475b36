"""Models of LLaMA's kind as a program in the language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .._compute import whole_of
from ._checkpoint import Part
from ._config import LlamaConfig
from ._errors import ModelError

# q and k are the columns of all heads, those of queries and those of keys and values.
PARTS: Final = (
    Part("G1", "e", "input_layernorm.weight", "attn_norm.weight"),
    Part("WQ", "qe", "self_attn.q_proj.weight", "attn_q.weight"),
    Part("WK", "ke", "self_attn.k_proj.weight", "attn_k.weight"),
    Part("WV", "ke", "self_attn.v_proj.weight", "attn_v.weight"),
    Part("WO", "eq", "self_attn.o_proj.weight", "attn_output.weight"),
    Part("G2", "e", "post_attention_layernorm.weight", "ffn_norm.weight"),
    Part("WGate", "me", "mlp.gate_proj.weight", "ffn_gate.weight"),
    Part("WUp", "me", "mlp.up_proj.weight", "ffn_up.weight"),
    Part("WDown", "em", "mlp.down_proj.weight", "ffn_down.weight"),
    Part("BQ", "q", "self_attn.q_proj.bias", "attn_q.bias", True),
    Part("BK", "k", "self_attn.k_proj.bias", "attn_k.bias", True),
    Part("BV", "k", "self_attn.v_proj.bias", "attn_v.bias", True),
    Part("BO", "e", "self_attn.o_proj.bias", "attn_output.bias", True),
    Part("GQ", "d", "self_attn.q_norm.weight", "attn_q_norm.weight", True),
    Part("GK", "d", "self_attn.k_norm.weight", "attn_k_norm.weight", True),
    Part("BGate", "m", "mlp.gate_proj.bias", "ffn_gate.bias", True),
    Part("BUp", "m", "mlp.up_proj.bias", "ffn_up.bias", True),
    Part("BDown", "e", "mlp.down_proj.bias", "ffn_down.bias", True),
)
# Those of the whole model.
EMBEDDING: Final = Part("Embedding", "ve", "model.embed_tokens.weight", "token_embd.weight")
NORM: Final = Part("G", "e", "model.norm.weight", "output_norm.weight")
OUTPUT: Final = Part("WOut", "ve", "lm_head.weight", "output.weight")
FACTORS: Final = Part("RopeFactor", "c", "rope_freqs.weight", "rope_freqs.weight")


def parts(config: LlamaConfig) -> list[Part]:
    """All weights of a model."""
    layers = [
        part.of_layer(layer, f"model.layers.{layer - 1}", f"blk.{layer - 1}")
        for layer in range(1, config.layers + 1)
        for part in PARTS
        if not part.is_optional or part.input in config.optional
    ]
    return [EMBEDDING, *layers, NORM, *([] if config.is_tied else [OUTPUT])]


def extents(config: LlamaConfig) -> dict[str, int]:
    """The extents of the labels of weights."""
    return {
        "e": config.width,
        "q": config.heads * config.head_width,
        "k": config.kv_heads * config.head_width,
        "d": config.head_width,
        "c": config.head_width // 2,
        "m": config.hidden,
        "v": config.vocabulary,
    }


_HEAD: Final = """\
# A language model of LLaMA's kind: {layers} layers. One step takes s more tokens of each of b texts: a whole prompt,
# or the token that was added last. The states keep the keys and values of up to t tokens; position[b] is how many are
# there. Count[b] is how many of the s tokens count, where texts of a batch differ in length: the others stand at the
# end, are seen by none, and are overwritten by the next step.
#   e  the width of the model; v the vocabulary; m hidden units
#   g  heads of keys and values; r heads of queries for each of them; d their width
#   j c  a head as two halves, or as pairs of neighbours, for the rotary embedding
#   q k  the columns of all heads, those of queries, and those of keys and values
dims b={batch} s={tokens} t={capacity}
dims e={e} g={g} r={r} d={d} j=2 c={c} q={q} k={k} m={m} v={v}
input Tokens[b,s] : i64, Count[b] : i64{factors}
state position[b] = i64(0)
def turned[j](x, other, cosine, sine) = x * cosine + (2 * j - 1) * other * sine
Angle[b,s,c] = f64(position[b] + s) / {frequencies}
Cos[b,s,c] = f32({rope_scale}cos(Angle[b,s,c]))
Sin[b,s,c] = f32({rope_scale}sin(Angle[b,s,c]))
Seen[b,s,t] = {seen}
input Embedding[v,e] : {embedding}
X_1[b,s,e] = f32(Embedding[Tokens[b,s],e])
"""

_TAIL: Final = """
# what follows the last token of each text
input G[e] : {norm}{input}
Last[b,e] = X_{last}[b,Count[b]-1,e]
N[b,e] = rmsnorm[e](Last[b,e], {epsilon}) * G[e]
Logits[b,v] = sum[e] N[b,e] * {output}[v,e]
{next}
next position[b] = position[b] + Count[b]
output Next, Logits
"""

_GREEDY: Final = "Next[b] = argmax[v] Logits[b,v]"
# The largest of sums with Gumbel noise is a sample of the softmax (Maddison et al., A* Sampling, 2014).
_SAMPLED: Final = """\
scalar temperature = 1
scalar seed = 1
Uniform[b,v] = uniform(seed)
Next[b] = argmax[v] (Logits[b,v] / temperature - log(-log(Uniform[b,v])))"""


@dataclass(frozen=True)
class Form:
    """How a model is computed: for how many texts, how many tokens of each at a time, and of how many in all."""

    batch: int
    tokens: int
    capacity: int
    is_sampled: bool = False

    def __post_init__(self) -> None:
        for name in ("batch", "tokens", "capacity"):
            whole_of(name, getattr(self, name))
        if self.tokens > self.capacity:
            raise ValueError(
                f"tokens={self.tokens}, capacity={self.capacity}: a step cannot have more tokens than a text"
            )


# Of layer @. What stands in braces depends on the model.
_LAYER: Final = """
# layer @
input {inputs}
state Keys_@[b,t,g,j,c] = f32(0)
state Values_@[b,t,g,d] = f32(0)
N1_@[b,s,e] = rmsnorm[e](X_@[b,s,e], {epsilon}) * G1_@[e]
QFlat_@[b,s,q] = (sum[e] N1_@[b,s,e] * WQ_@[q,e]){BQ}
KFlat_@[b,s,k] = (sum[e] N1_@[b,s,e] * WK_@[k,e]){BK}
VFlat_@[b,s,k] = (sum[e] N1_@[b,s,e] * WV_@[k,e]){BV}
{Q}
{K}
V_@[b,s,g,d] = view VFlat_@[b,s,(g d)]
QTurned_@[b,s,g,r,j,c] = turned[j](Q_@[b,s,g,r,j,c], Q_@[b,s,g,r,1-j,c], Cos[b,s,c], Sin[b,s,c])
KTurned_@[b,s,g,j,c] = turned[j](K_@[b,s,g,j,c], K_@[b,s,g,1-j,c], Cos[b,s,c], Sin[b,s,c])
next Keys_@[b,t,g,j,c] = where(t < position[b], Keys_@[b,t,g,j,c], pad(KTurned_@[b,t-position[b],g,j,c], 0))
next Values_@[b,t,g,d] = where(t < position[b], Values_@[b,t,g,d], pad(V_@[b,t-position[b],g,d], 0))
Scores_@[b,g,r,s,t] = sum[j,c] QTurned_@[b,s,g,r,j,c] * next_Keys_@[b,t,g,j,c]
P_@[b,g,r,s,t] = softmax[t](where(Seen[b,s,t], Scores_@[b,g,r,s,t] * {scale}, -inf))
O_@[b,s,g,r,d] = sum[t] P_@[b,g,r,s,t] * next_Values_@[b,t,g,d]
OFlat_@[b,s,(g r d)] = view O_@[b,s,g,r,d]
Y_@[b,s,e] = X_@[b,s,e] + (sum[q] OFlat_@[b,s,q] * WO_@[e,q]){BO}
N2_@[b,s,e] = rmsnorm[e](Y_@[b,s,e], {epsilon}) * G2_@[e]
Gate_@[b,s,m] = (sum[e] N2_@[b,s,e] * WGate_@[m,e]){BGate}
Up_@[b,s,m] = (sum[e] N2_@[b,s,e] * WUp_@[m,e]){BUp}
F_@[b,s,m] = silu(Gate_@[b,s,m]) * Up_@[b,s,m]
X_{next}[b,s,e] = Y_@[b,s,e] + (sum[m] F_@[b,s,m] * WDown_@[e,m]){BDown}
"""
# Heads out of all columns; where each head is normalised (Qwen3), before it is turned.
_HEADS: Final = "{name}_@[b,s,{to},j,c] = view {name}Flat_@[b,s,({groups} {pair})]"
_NORMALISED_HEADS: Final = """\
{name}All_@[b,s,{to},j,c] = view {name}Flat_@[b,s,({groups} {pair})]
{gain}Pairs_@[j,c] = view {gain}_@[({pair})]
{name}_@[b,s,{to},j,c] = rmsnorm[j,c]({name}All_@[b,s,{to},j,c], {epsilon}) * {gain}Pairs_@[j,c]"""


def _layer(config: LlamaConfig, layer: int, dtypes: Mapping[str, str]) -> str:
    """The statements of a layer; of the weights that are optional it takes those that have a type."""
    there = [part for part in PARTS if f"{part.input}_{layer}" in dtypes]
    epsilon, pair = repr(config.epsilon), "c j" if config.has_neighbours_as_pairs else "j c"

    def heads(name: str, to: str, gain: str) -> str:
        form = _NORMALISED_HEADS if any(part.input == gain for part in there) else _HEADS
        return form.format(name=name, to=to, groups=to.replace(",", " "), pair=pair, gain=gain, epsilon=epsilon)

    biases = {part.input: f" + {part.input}_@[{part.labels}]" if part in there else "" for part in PARTS}
    return _LAYER.format(
        **{part.input: biases[part.input] for part in PARTS},
        inputs=", ".join(f"{p.input}_@[{','.join(p.labels)}] : {dtypes[f'{p.input}_{layer}']}" for p in there),
        epsilon=epsilon,
        Q=heads("Q", "g,r", "GQ"),
        K=heads("K", "g", "GK"),
        scale=repr(config.head_width**-0.5),
        next=layer + 1,
    ).replace("@", str(layer))


def text(config: LlamaConfig, form: Form, dtypes: Mapping[str, str]) -> str:
    """The program; `dtypes` are those of its weights by the names of inputs, optional ones where they are there."""
    if config.longest is not None and form.capacity > config.longest:
        raise ModelError(f"texts of {form.capacity} tokens: the model has {config.longest} positions")
    frequencies = f"{config.rope_base!r} ** (f64(c) / {config.head_width // 2})"
    seen = "t <= position[b] + s"
    if config.window is not None:
        seen = f"where({seen}, position[b] + s - t < {config.window}, t < 0)"
    has_factors, is_tied = config.rope_factors is not None, OUTPUT.input not in dtypes
    head = _HEAD.format(
        layers=config.layers,
        batch=form.batch,
        tokens=form.tokens,
        capacity=form.capacity,
        g=config.kv_heads,
        r=config.heads // config.kv_heads,
        factors="\ninput RopeFactor[c] : f64" if has_factors else "",
        frequencies=f"({frequencies} * RopeFactor[c])" if has_factors else f"{frequencies}",
        rope_scale="" if config.rope_scale == 1.0 else f"{config.rope_scale!r} * ",
        seen=seen,
        embedding=dtypes[EMBEDDING.input],
        **extents(config),
    )
    tail = _TAIL.format(
        norm=dtypes[NORM.input],
        last=config.layers + 1,
        epsilon=repr(config.epsilon),
        input="" if is_tied else f"\ninput WOut[v,e] : {dtypes[OUTPUT.input]}",
        output=EMBEDDING.input if is_tied else OUTPUT.input,
        next=_SAMPLED if form.is_sampled else _GREEDY,
    )
    return head + "".join(_layer(config, layer, dtypes) for layer in range(1, config.layers + 1)) + tail
