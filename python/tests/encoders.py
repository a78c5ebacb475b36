"""Small encoders of BERT's kind made of random numbers, and what NumPy computes of them, text by text."""

from __future__ import annotations

import math

import numpy as np

CONFIG = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 40,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
EMBEDDINGS = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}


def random_weights(config, rng):
    """Weights under Hugging Face's names, of f32."""
    e, m = config["hidden_size"], config["intermediate_size"]
    rows = dict(zip(EMBEDDINGS, (config["vocab_size"], config["max_position_embeddings"], config["type_vocab_size"])))
    shapes = {f"{name}.weight": (count, e) for name, count in rows.items()}
    norms = ["embeddings.LayerNorm"]
    for number in range(config["num_hidden_layers"]):
        for name in LAYER:
            full = f"encoder.layer.{number}.{name}"
            if name.endswith("LayerNorm"):
                norms.append(full)
                continue
            shape = {"intermediate.dense": (m, e), "output.dense": (e, m)}.get(name, (e, e))
            shapes |= {f"{full}.weight": shape, f"{full}.bias": shape[:1]}
    shapes |= {f"{norm}.{kind}": (e,) for norm in norms for kind in ("weight", "bias")}
    return {
        name: (rng.standard_normal(shape) * (3 / shape[-1]) ** 0.5 + ("Norm.weight" in name)).astype("f")
        for name, shape in shapes.items()
    }


def gguf_name(name):
    *path, last = name.split(".")
    if path[:2] == ["encoder", "layer"]:
        return f"blk.{path[2]}.{LAYER['.'.join(path[3:])]}.{last}"
    return f"{EMBEDDINGS['.'.join(path)]}.{last}"


ACTIVATIONS = {
    "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def sentence(config, weights, tokens, pooling="mean", is_normalised=False):
    """The vector of a text, in f64."""
    w = {name: weight.astype("d") for name, weight in weights.items()}
    heads = config["num_attention_heads"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x + w["embeddings.position_embeddings.weight"][: len(tokens)], "embeddings.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}."
        q, k, v = (linear(x, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
        results = []
        for one, other, value in zip(*(np.split(part, heads, -1) for part in (q, k, v))):
            shares = np.exp(one @ other.T / math.sqrt(one.shape[-1]))
            results.append(shares / shares.sum(-1, keepdims=True) @ value)
        y = linear(np.concatenate(results, -1), name + "attention.output.dense")
        x = norm(x + y, name + "attention.output.LayerNorm")
        y = ACTIVATIONS[config["hidden_act"]](linear(x, name + "intermediate.dense"))
        x = norm(x + linear(y, name + "output.dense"), name + "output.LayerNorm")
    result = {"mean": x.mean(0), "max": x.max(0), "cls": x[0]}[pooling]
    return result / np.linalg.norm(result) if is_normalised else result
