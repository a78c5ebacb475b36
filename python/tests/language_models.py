"""Small language models made of random numbers, in files of each format, and what NumPy computes of them.

The evaluation is written from the papers (RMSNorm, RoFormer, GQA, SwiGLU), text by text, without a cache.
"""

from __future__ import annotations

import json

import numpy as np

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 50,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}


def head_width(config):
    return config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])


def random_weights(config, rng):
    """Weights under Hugging Face's names, of f32."""
    e, m, v = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    q, k = (config[n] * head_width(config) for n in ("num_attention_heads", "num_key_value_heads"))
    shapes = {"model.embed_tokens.weight": (v, e), "model.norm.weight": (e,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (v, e)
    layer = {
        "input_layernorm.weight": (e,),
        "self_attn.q_proj.weight": (q, e),
        "self_attn.k_proj.weight": (k, e),
        "self_attn.v_proj.weight": (k, e),
        "self_attn.o_proj.weight": (e, q),
        "post_attention_layernorm.weight": (e,),
        "mlp.gate_proj.weight": (m, e),
        "mlp.up_proj.weight": (m, e),
        "mlp.down_proj.weight": (e, m),
    }
    if config["model_type"] == "qwen2" or config.get("attention_bias"):
        layer |= {f"self_attn.{n}_proj.bias": (width,) for n, width in (("q", q), ("k", k), ("v", k))}
    if config.get("attention_bias"):
        layer["self_attn.o_proj.bias"] = (e,)
    if config.get("mlp_bias"):
        layer |= {"mlp.gate_proj.bias": (m,), "mlp.up_proj.bias": (m,), "mlp.down_proj.bias": (e,)}
    if config["model_type"] == "qwen3":
        layer |= {f"self_attn.{n}_norm.weight": (head_width(config),) for n in "qk"}
    for number in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{number}.{name}": shape for name, shape in layer.items()}
    return {
        name: (rng.standard_normal(shape) * (3 / shape[-1]) ** 0.5 + ("norm" in name)).astype("f")
        for name, shape in shapes.items()
    }


def rms_norm(x, gain, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gain


def turned(x, frequencies, scale):
    """Rotary embedding of x[position, head, column]: column c turns with column c + d/2."""
    half = x.shape[-1] // 2
    angle = np.arange(len(x))[:, None, None] * frequencies
    first, second = x[..., :half], x[..., half:]
    cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def frequencies_of(config):
    d = head_width(config)
    frequencies = config["rope_theta"] ** (-np.arange(0, d, 2) / d)
    scaling = config.get("rope_scaling")
    if scaling is None:
        return frequencies
    if scaling["rope_type"] == "linear":
        return frequencies / scaling["factor"]
    if scaling["rope_type"] == "yarn":
        # Of the context, pairs between those of 32 turns and 1 turn change from one frequency to the other; Hugging
        # Face takes whole numbers of pairs for both ends.
        turns = np.array([scaling.get("beta_fast", 32), scaling.get("beta_slow", 1)])
        context = scaling["original_max_position_embeddings"]
        ends = d / 2 * np.log(context / (2 * np.pi * turns)) / np.log(config["rope_theta"])
        ramp = np.interp(np.arange(d // 2), [max(np.floor(ends[0]), 0), min(np.ceil(ends[1]), d - 1)], [0, 1])
        return frequencies * (1 - ramp) + frequencies / scaling["factor"] * ramp
    # LLaMA 3.1, as in Meta's own code.
    result = []
    for frequency in frequencies:
        wave = 2 * np.pi / frequency
        old = scaling["original_max_position_embeddings"]
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        if wave < old / high:
            result.append(frequency)
        elif wave > old / low:
            result.append(frequency / scaling["factor"])
        else:
            smooth = (old / wave - low) / (high - low)
            result.append((1 - smooth) * frequency / scaling["factor"] + smooth * frequency)
    return np.array(result)


def scale_of_turns(config):
    """What YaRN multiplies queries and keys by, so that scores have the same entropy in longer texts."""
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") != "yarn":
        return 1.0
    return scaling.get("attention_factor", 1 + np.log(scaling["factor"]) / 10)


def logits(config, weights, tokens):
    """What follows the last of the tokens, in f64."""
    w = {name: weight.astype("d") for name, weight in weights.items()}
    d, groups = head_width(config), config["num_attention_heads"] // config["num_key_value_heads"]
    x = w["model.embed_tokens.weight"][tokens]
    positions = np.arange(len(tokens))
    seen = positions[None] <= positions[:, None]
    if config["model_type"] == "mistral" and config.get("sliding_window"):
        seen &= positions[None] > positions[:, None] - config["sliding_window"]
    for number in range(config["num_hidden_layers"]):
        name = f"model.layers.{number}."

        def linear(y, of, name=name):
            return y @ w[f"{name}{of}.weight"].T + w.get(f"{name}{of}.bias", 0)

        y = rms_norm(x, w[name + "input_layernorm.weight"], config["rms_norm_eps"])
        q, k, v = (linear(y, f"self_attn.{n}_proj").reshape(len(tokens), -1, d) for n in "qkv")
        if config["model_type"] == "qwen3":
            q, k = (
                rms_norm(z, w[f"{name}self_attn.{n}_norm.weight"], config["rms_norm_eps"])
                for z, n in ((q, "q"), (k, "k"))
            )
        q, k = (turned(z, frequencies_of(config), scale_of_turns(config)) for z in (q, k))
        heads = []
        for head in range(config["num_attention_heads"]):
            scores = q[:, head] @ k[:, head // groups].T / np.sqrt(d)
            scores = np.where(seen, scores, -np.inf)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(shares / shares.sum(-1, keepdims=True) @ v[:, head // groups])
        x = x + linear(np.concatenate(heads, -1), "self_attn.o_proj")
        y = rms_norm(x, w[name + "post_attention_layernorm.weight"], config["rms_norm_eps"])
        gate = linear(y, "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, "mlp.up_proj"), "mlp.down_proj")
    x = rms_norm(x[-1], w["model.norm.weight"], config["rms_norm_eps"])
    return w["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"] @ x


def greedy(config, weights, tokens, count):
    """The logits and the most likely token, `count` times."""
    tokens, all_logits = list(tokens), []
    for _ in range(count):
        all_logits.append(logits(config, weights, tokens))
        tokens.append(int(all_logits[-1].argmax()))
    return np.array(all_logits), tokens[-count:]


def write_folder(folder, config, weights, shards=1):
    """As Hugging Face keeps it, by the package safetensors; the values as they are in the files."""
    from safetensors.numpy import save_file

    (folder / "config.json").write_text(json.dumps(config))
    names = sorted(weights)
    if shards == 1:
        save_file(weights, folder / "model.safetensors")
        return
    places = {name: f"model-{at % shards + 1:05}-of-{shards:05}.safetensors" for at, name in enumerate(names)}
    for file in set(places.values()):
        save_file({name: weights[name] for name in names if places[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    *path, last = name.split(".")
    if path[:2] == ["model", "layers"]:
        return f"blk.{path[2]}.{GGUF_NAMES['.'.join(path[3:])]}.{last}"
    return f"{GGUF_NAMES['.'.join(path)]}.{last}"


def neighbours(weight, heads):
    """LLaMA's queries and keys in GGUF: the two halves of each head interleaved, as llama.cpp's converter does it."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def in_gguf(config, weights):
    """The weights under GGUF's names, and in its order of rows."""
    result = {}
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, weight in weights.items():
        turned_heads = heads.get(name.split(".")[-2]) if config["model_type"] == "llama" else None
        result[gguf_name(name)] = weight if turned_heads is None else neighbours(weight, turned_heads)
    return result


def write_gguf(file, config, tensors, more=lambda writer: None):
    """By the package gguf: `tensors` by name, each an array and None, or blocks as bytes and their type."""
    import gguf

    kind = config["model_type"]
    writer = gguf.GGUFWriter(file, kind)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    more(writer)
    for name, (data, blocks) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=blocks)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def dequantised(blocks, kind):
    """The elements of blocks, by the formats' description (ggml's block_q8_0, block_q4_0 and so on), block by block."""
    rows = []
    for row in blocks.reshape(-1, blocks.shape[-1]):
        rows.append(np.concatenate([BLOCKS[kind][1](block) for block in row.reshape(-1, BLOCKS[kind][0])]))
    return np.array(rows, "f").reshape(*blocks.shape[:-1], -1)


def half(data):
    return data.copy().view("<f2").astype("f")


def q8_0(block):
    return half(block[:2]) * block[2:].view("i1").astype("f")


def nibbles(data):
    """The lower halves of bytes, then the upper ones."""
    return np.concatenate([data & 15, data >> 4]).astype("f")


def q4_0(block):
    return half(block[:2]) * (nibbles(block[2:]) - 8)


def q4_1(block):
    return half(block[:2]) * nibbles(block[4:]) + half(block[2:4])


def q4_k(block):
    """Eight groups of 32, of which each has a scale and a least value of 6 bits."""
    d, least, s, quants = half(block[:2]), half(block[2:4]), block[4:16].astype(int), block[16:]
    result = []
    for group in range(8):
        if group < 4:
            scale, low = s[group] & 63, s[group + 4] & 63
        else:
            scale = (s[group + 4] & 15) | (s[group - 4] >> 6 << 4)
            low = (s[group + 4] >> 4) | (s[group] >> 6 << 4)
        part = quants[group // 2 * 32 :][:32]
        result.append(d * scale * ((part >> 4) if group % 2 else (part & 15)).astype("f") - least * low)
    return np.concatenate(result)


def q6_k(block):
    """Sixteen groups of 16, of 6 bits each: four of them in ql, two in qh."""
    low, high, scales, d = block[:128], block[128:192], block[192:208].view("i1"), half(block[208:])
    result = np.empty(256, "f")
    for at in range(256):
        part, place = divmod(at, 128)
        quarter, column = divmod(place, 32)
        four = low[part * 64 + column + 32 * (quarter % 2)]
        four = four & 15 if quarter < 2 else four >> 4
        two = high[part * 32 + column] >> (2 * quarter) & 3
        result[at] = d[0] * scales[at // 16] * (int(four | two << 4) - 32)
    return result


# Bytes of a block, and its elements; then how many there are, and where its scales of f16 stand.
BLOCKS = {
    "Q8_0": (34, q8_0, 32, (0,)),
    "Q4_0": (18, q4_0, 32, (0,)),
    "Q4_1": (20, q4_1, 32, (0, 2)),
    "Q4_K": (144, q4_k, 256, (0, 2)),
    "Q6_K": (210, q6_k, 256, (208,)),
}


def random_blocks(kind, shape, rng):
    """Blocks of random bits, whose scales make elements of about the size of weights."""
    size, _, count, scales = BLOCKS[kind]
    blocks = rng.integers(0, 256, (*shape[:-1], shape[-1] // count, size), "u1")
    size_of_quants = {"Q8_0": 128, "Q4_0": 8, "Q4_1": 15, "Q4_K": 15 * 63, "Q6_K": 32 * 128}[kind]
    for at in scales:
        scale = rng.uniform(0.5, 1, (*blocks.shape[:-1], 1)) * 3 * (shape[-1] ** -0.5) / size_of_quants
        if kind == "Q4_1" and at == 2:
            scale *= -size_of_quants / 2  # the least value
        blocks[..., at : at + 2] = scale.astype("<f2").view("u1")
    return blocks.reshape(*shape[:-1], -1)
