"""Language models from files of each format, compared with an evaluation in NumPy."""

from __future__ import annotations

import itertools
import json
import struct
import tracemalloc
from functools import partial

import language_models
import ml_dtypes
import numpy as np
import pytest
from language_models import (
    BLOCKS,
    CONFIG,
    dequantised,
    greedy,
    in_gguf,
    neighbours,
    random_blocks,
    random_weights,
    write_folder,
    write_gguf,
)

from einrel import models
from einrel.models import _language_model

PROMPT = [3, 17, 42, 5, 8, 23]
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 8.0}
KINDS = {
    "llama": {},
    "tied": {"tie_word_embeddings": True},
    "one_head_of_keys": {"num_key_value_heads": 1, "head_dim": 8},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "linear": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "llama3": {"rope_scaling": LLAMA3, "rope_theta": 500.0},
    "yarn": {"rope_scaling": YARN, "rope_theta": 50.0},
    "yarn_with_a_factor": {"rope_scaling": YARN | {"attention_factor": 1.25, "beta_fast": 4.0}, "rope_theta": 50.0},
    "mistral": {"model_type": "mistral", "sliding_window": 3},
    "mistral_without_window": {"model_type": "mistral", "sliding_window": 0},
    "scales_of_one": {"logits_scaling": 1.0, "residual_multiplier": 1, "attention_multiplier": 0.25},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 20},
}


def generated(model, prompts, count, **more):
    """The logits [step, text, token] and the tokens of each text."""
    steps = list(model.generate(prompts, tokens=count, **more))
    assert len(steps) == count
    tokens = np.array([step.tokens for step in steps]).T.tolist()
    return np.array([np.asarray(step.logits) for step in steps]), tokens


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind, tmp_path, rng):
    config = CONFIG | KINDS[kind]
    weights = random_weights(config, rng)
    write_folder(tmp_path, config, weights, shards=3)
    wanted, tokens = greedy(config, weights, PROMPT, 4)
    found, found_tokens = generated(models.load(tmp_path), [PROMPT], 4)
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
    assert found_tokens == [tokens]


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
def test_types_in_safetensors(dtype, tmp_path, rng):
    weights = {name: weight.astype(dtype) for name, weight in random_weights(CONFIG, rng).items()}
    write_folder(tmp_path, CONFIG, weights)
    wanted, tokens = greedy(CONFIG, weights, PROMPT, 4)
    found, found_tokens = generated(models.load(tmp_path), [PROMPT], 4)
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
    assert found_tokens == [tokens]


@pytest.mark.parametrize("kind", ["llama", "tied", "biases", "qwen2", "qwen3"])
def test_kinds_in_gguf(kind, tmp_path, rng):
    config = CONFIG | KINDS[kind]
    weights = random_weights(config, rng)

    def key_length(writer):
        if "head_dim" in config:
            writer.add_key_length(config["head_dim"])

    write_gguf(tmp_path / "m.gguf", config, {n: (w, None) for n, w in in_gguf(config, weights).items()}, key_length)
    wanted, tokens = greedy(config, weights, PROMPT, 4)
    found, found_tokens = generated(models.load(tmp_path / "m.gguf"), [PROMPT], 4)
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
    assert found_tokens == [tokens]


def written_gguf(path, config, weights, entries, more):
    """A GGUF file with these entries of metadata as floats or whole numbers, and these tensors besides the weights."""

    def add(writer):
        for name, value in entries.items():
            kind = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
            kind(f"{config['model_type']}.{name}", value)

    tensors = {name: (weight, None) for name, weight in in_gguf(config, weights).items()}
    write_gguf(path, config, tensors | {name: (data, None) for name, data in more.items()}, add)
    return path


LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}


@pytest.mark.parametrize("entries", [{}, LINEAR, {"rope.scaling.factor": 4.0}, {"rope.scaling.type": "none"}])
@pytest.mark.parametrize("factors", [None, [1.0, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 8.0]])
def test_factors_of_frequencies_in_gguf(entries, factors, tmp_path, rng, monkeypatch):
    """A file may have one for all, some as a tensor, or both, which are multiplied."""
    weights = random_weights(CONFIG, rng)
    more = {} if factors is None else {"rope_freqs.weight": np.array(factors, "f")}
    model = models.load(written_gguf(tmp_path / "m.gguf", CONFIG, weights, entries, more))
    all_factors = np.array(factors or 1.0) * entries.get("rope.scaling.factor", 1.0)
    frequencies = language_models.frequencies_of(CONFIG) / all_factors
    monkeypatch.setattr(language_models, "frequencies_of", lambda config: frequencies)
    wanted, tokens = greedy(CONFIG, weights, PROMPT, 4)
    found, found_tokens = generated(model, [PROMPT], 4)
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
    assert found_tokens == [tokens]


@pytest.mark.parametrize(
    "entries",
    [{"attention.sliding_window": 0}, {"attention.scale": 0.25, "logit_scale": 1.0, "rope.scaling.attn_factor": 1.0}],
)
def test_metadata_that_change_nothing(entries, tmp_path, rng):
    weights = random_weights(CONFIG, rng)
    model = models.load(written_gguf(tmp_path / "m.gguf", CONFIG, weights, entries, {}))
    np.testing.assert_allclose(generated(model, [PROMPT], 4)[0][:, 0], greedy(CONFIG, weights, PROMPT, 4)[0], atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("llama", {"attention.scale": 1.0}),
        ("llama", {"rope.scaling.attn_factor": 1.5}),
        ("llama", {"logit_scale": 0.1}),
        ("llama", {"residual_scale": 0.2}),
        ("llama", {"embedding_scale": 12.0}),
        ("qwen2", {"attention.sliding_window": 3}),
    ],
)
def test_metadata_that_are_not_supported(kind, entries, tmp_path, rng):
    config = CONFIG | {"model_type": kind}
    path = written_gguf(tmp_path / "m.gguf", config, random_weights(config, rng), entries, {})
    with pytest.raises(models.ModelError, match=rf"{kind}.{next(iter(entries))} is .*not supported"):
        models.load(path)


def test_factors_that_are_none(tmp_path, rng):
    weights, more = random_weights(CONFIG, rng), {"rope_freqs.weight": np.zeros(8, "f")}
    with pytest.raises(models.ModelError, match="tensor 'rope_freqs.weight' has elements that are no numbers above 0"):
        models.load(written_gguf(tmp_path / "m.gguf", CONFIG, weights, {}, more))


def half_types_in_gguf(config, weights, kind):
    """Matrices as 16 bits, as converters do it: tensors for the writer, and what they hold."""
    import gguf

    dtype = {"F16": np.dtype("f2"), "BF16": np.dtype(ml_dtypes.bfloat16)}[kind]
    halves = {name: w.astype(dtype).astype("f") if w.ndim == 2 else w for name, w in weights.items()}
    tensors = {}
    for name, weight in in_gguf(config, halves).items():
        if weight.ndim == 1:
            tensors[name] = (weight, None)
        elif kind == "F16":
            tensors[name] = (weight.astype("f2"), None)
        else:
            tensors[name] = (weight.astype(dtype).view("u1"), gguf.GGMLQuantizationType.BF16)
    return tensors, halves


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_halves_in_gguf(kind, tmp_path, rng):
    tensors, weights = half_types_in_gguf(CONFIG, random_weights(CONFIG, rng), kind)
    write_gguf(tmp_path / "m.gguf", CONFIG, tensors)
    wanted, tokens = greedy(CONFIG, weights, PROMPT, 4)
    found, found_tokens = generated(models.load(tmp_path / "m.gguf"), [PROMPT], 4)
    np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
    assert found_tokens == [tokens]


def quantised_in_gguf(config, kind, rng):
    """A model whose matrices are blocks: tensors for the writer, and what they hold, by Hugging Face's names."""
    import gguf

    weights, tensors = random_weights(config, rng), {}
    for name, weight in weights.items():
        own = next(iter(in_gguf(config, {name: weight})))
        if weight.ndim == 1:
            tensors[own] = (weight, None)
            continue
        blocks = random_blocks(kind, weight.shape, rng)
        tensors[own] = (blocks, gguf.GGMLQuantizationType[kind])
        elements = dequantised(blocks, kind)
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
        # Rows of queries and keys lie interleaved in the file: back to halves, for which `neighbours` is done again.
        if heads is not None:
            width = len(elements) // config[heads]
            order = neighbours(np.arange(len(elements)), config[heads])
            assert sorted(order) == list(range(width * config[heads]))
            halves = np.empty_like(elements)
            halves[order] = elements
            elements = halves
        weights[name] = elements
    return tensors, weights


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_in_gguf(kind, tmp_path, rng):
    width = 256 if "K" in kind else 64
    config = CONFIG | {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 1}
    tensors, weights = quantised_in_gguf(config, kind, rng)
    write_gguf(tmp_path / "m.gguf", config, tensors)
    model = models.load(tmp_path / "m.gguf")
    wanted, tokens = greedy(config, weights, PROMPT, 4)
    for options in ({}, {"memory": "64MiB"}, {"sites": 2}):
        found, found_tokens = generated(model, [PROMPT], 4, options=options)
        np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
        assert found_tokens == [tokens]


def test_blocks_are_kept_where_they_have_room(tmp_path, rng, monkeypatch):
    """Else they are made for each token anew: so many elements are asked for."""
    import gguf

    tensors, weights = quantised_in_gguf(CONFIG, "Q8_0", rng)
    write_gguf(tmp_path / "m.gguf", CONFIG, tensors)
    blocks = sum(weight.size for weight in weights.values() if weight.ndim == 2)
    made, dequantise = [], gguf.dequantize
    monkeypatch.setattr(gguf, "dequantize", lambda *of: made.append(dequantise(*of).size) or dequantise(*of))
    for memory, times in ((8 * blocks, 1), (8 * blocks - 2, 4)):
        monkeypatch.setattr(_language_model, "physical_memory", lambda memory=memory: memory)
        made.clear()
        tokens = generated(models.load(tmp_path / "m.gguf"), [PROMPT], 4)[1]
        assert sum(made) == times * blocks
        assert tokens == [greedy(CONFIG, weights, PROMPT, 4)[1]]


def test_parts_of_blocks(tmp_path, rng):
    """Any region is the same as in the whole, also one that begins and ends within blocks."""
    tensors, weights = quantised_in_gguf(CONFIG, "Q4_1", rng)
    write_gguf(tmp_path / "m.gguf", CONFIG, tensors)
    lazy = models.load(tmp_path / "m.gguf").inputs()["WDown_1"]
    whole = weights["model.layers.0.mlp.down_proj.weight"]
    np.testing.assert_array_equal(np.asarray(lazy), whole)
    np.testing.assert_array_equal(np.asarray(lazy[5:9, 31:70]), whole[5:9, 31:70])
    np.testing.assert_array_equal(np.asarray(lazy[3, 40:41]), whole[3, 40:41])


@pytest.fixture
def folder(tmp_path, rng):
    """A model in a folder, and its weights."""
    weights = random_weights(CONFIG, rng)
    write_folder(tmp_path, CONFIG, weights)
    return tmp_path, weights


def test_texts_of_different_lengths_do_not_see_each_other(folder):
    path, weights = folder
    prompts = [PROMPT, [7], PROMPT[:3]]
    found, tokens = generated(models.load(path), prompts, 5)
    for text, prompt in enumerate(prompts):
        wanted, wanted_tokens = greedy(CONFIG, weights, prompt, 5)
        np.testing.assert_allclose(found[:, text], wanted, atol=1e-3)
        assert tokens[text] == wanted_tokens


@pytest.mark.parametrize("sites", [2, 4])
def test_sites_give_the_same_tokens(folder, sites):
    path, weights = folder
    model = models.load(path)
    wanted, tokens = greedy(CONFIG, weights, PROMPT, 5)
    for planner in ("eindecomp", "tensor"):
        found, found_tokens = generated(model, [PROMPT], 5, options={"sites": sites, "planner": planner})
        np.testing.assert_allclose(found[:, 0], wanted, atol=1e-3)
        assert found_tokens == [tokens]
    drawn = generated(model, [PROMPT], 8, temperature=1.0, seed=5)[1]
    assert generated(model, [PROMPT], 8, temperature=1.0, seed=5, options={"sites": sites})[1] == drawn


@pytest.mark.parametrize("planner", ["tensor", "data", "sequence", "heads", "eindecomp-paper", "data:2 x tensor:2"])
def test_bytes_are_those_that_were_predicted(folder, planner):
    """Of a batch of prompts, and of each token after them, by any planner's plan; the tokens stay the same.

    The first of these brings the weights, and the prompt finds them there; all others move what they compute.
    """
    path, weights = folder
    model = models.load(path)
    prompts = [PROMPT, [7], PROMPT[:3], [9, 9]]
    steps = list(model.generate(prompts, tokens=4, options={"sites": 4, "planner": planner}))
    assert list(zip(*(step.tokens for step in steps))) == [tuple(greedy(CONFIG, weights, p, 4)[1]) for p in prompts]
    moved = [step.report.bytes_moved for step in steps]
    capacity = len(PROMPT) + 3
    token = model.program(batch=4, tokens=1, capacity=capacity)
    lie = token.placements(sites=4, planners=[planner], steps=3, fed=model.fed())
    of_prompt = model.program(batch=4, tokens=len(PROMPT), capacity=capacity)
    prompt = json.loads(of_prompt.plan(sites=4, planners=[planner], placements=lie))
    assert moved[0] == sum(prompt["plans"][0]["received"])
    cost = json.loads(token.plan(sites=4, planners=[planner], steps=3, fed=["Tokens"]))["plans"][0]["cost"]
    assert moved[1] > 0 and moved[1:] == [cost["bytes"], cost["each_step"]["bytes"], cost["each_step"]["bytes"]]
    assert moved[3] < sum(weight.size for weight in weights.values())  # a fourth of their bytes


def test_a_plan_that_is_given_is_that_of_prompt_and_tokens(folder):
    path, weights = folder
    model = models.load(path)
    plan = model.program(batch=1, tokens=1, capacity=len(PROMPT) + 3).plan(sites=2, planners="tensor")
    steps = list(model.generate([PROMPT], tokens=4, options={"plan": plan}))
    assert [step.tokens[0] for step in steps] == greedy(CONFIG, weights, PROMPT, 4)[1]
    assert {step.report.sites for step in steps} == {2}


def test_drawn_tokens_follow_the_softmax(folder):
    """Over many seeds each token comes as often as its share says: within five deviations."""
    path, weights = folder
    model = models.load(path)
    temperature, draws = 2.0, 400
    logits = greedy(CONFIG, weights, PROMPT, 1)[0][0] / temperature
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    counts = np.zeros(len(shares))
    for seed in range(draws // 8):
        for token in next(iter(model.generate([PROMPT] * 8, tokens=1, temperature=temperature, seed=seed))).tokens:
            counts[token] += 1
    assert np.all(np.abs(counts - draws * shares) <= 5 * np.sqrt(draws * shares * (1 - shares)) + 1)
    again = [generated(model, [PROMPT], 6, temperature=2.0, seed=seed)[1] for seed in (3, 3, 4)]
    assert again[0] == again[1] != again[2]


def test_noise_differs_from_step_to_step_and_text_to_text(folder):
    """Of logits that are always the same, over many steps each token comes as often as its share says."""
    path, _ = folder
    config = CONFIG | {"max_position_embeddings": 512, "vocab_size": 3}
    weights = random_weights(config, np.random.default_rng(0))
    weights["lm_head.weight"][:] = 0
    write_folder(path, config, weights)
    tokens = generated(models.load(path), [[1], [1]], 150, temperature=1.0, seed=4)[1]
    assert tokens[0] != tokens[1]
    pairs = np.zeros((3, 3))
    for text in tokens:
        for pair in itertools.pairwise(text):
            pairs[pair] += 1
    count = pairs.sum()
    assert np.all(np.abs(pairs - count / 9) <= 4 * np.sqrt(count / 9 * 8 / 9))


def test_programs_are_made_once(folder):
    model = models.load(folder[0])
    program = model.program(batch=1, tokens=3, capacity=8)
    assert model.program(batch=1, tokens=3, capacity=8) is program
    assert model.program(batch=1, tokens=3, capacity=9) is not program


def test_stops_end_texts(folder):
    path, weights = folder
    texts = [greedy(CONFIG, weights, prompt, 6)[1] for prompt in (PROMPT, PROMPT[:2])]
    stops = frozenset({texts[0][2]})
    steps = [step.tokens for step in models.load(path).generate([PROMPT, PROMPT[:2]], tokens=6, stops=stops)]
    for text, tokens in enumerate(zip(*steps)):
        end = next((at for at, token in enumerate(texts[text]) if token in stops), 5) + 1
        assert list(tokens) == (texts[text][:end] + [None] * 6)[: len(tokens)]


def test_the_program_of_a_configuration_alone(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    program = models.program(tmp_path, batch=2, tokens=8, capacity=32)
    assert {info.name: info.dtype for info in program.inputs}["WQ_1"] == "bf16"
    assert "h100-server" in program.explain(sites=4, machine="h100-server")


def test_capacities(tmp_path, folder):
    """Those that a step or the model cannot have are errors; without one it is at least the step's tokens."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"max_position_embeddings": 9000}))
    for tokens, capacity in ((8192, 8192), (1, 4096)):
        assert f" t={capacity}\n" in models.program(tmp_path, tokens=tokens).text
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert " t=64\n" in models.program(tmp_path).text
    for make in (partial(models.program, tmp_path), models.load(folder[0]).program):
        with pytest.raises(ValueError, match="tokens=8, capacity=4: a step cannot have more tokens"):
            make(batch=1, tokens=8, capacity=4)
        with pytest.raises(ValueError, match="batch=0: give 1 or more"):
            make(batch=0, tokens=1, capacity=4)
        with pytest.raises(ValueError, match="tokens=0: give 1 or more"):
            make(batch=1, tokens=0, capacity=4)
        with pytest.raises(models.ModelError, match="texts of 65 tokens: the model has 64 positions"):
            make(batch=1, tokens=1, capacity=65)


def cut(file, keep):
    data = file.read_bytes()
    file.write_bytes(data[: len(data) - keep if keep < 0 else keep])


def test_a_safetensors_that_was_cut_off(folder):
    path, _ = folder
    file = path / "model.safetensors"
    size, header = file.stat().st_size, struct.unpack("<Q", file.read_bytes()[:8])[0]
    last = max(
        (
            (e["data_offsets"][1], n)
            for n, e in json.loads(file.read_bytes()[8 : 8 + header]).items()
            if n != "__metadata__"
        )
    )[1]
    cut(file, size - 1)
    with pytest.raises(models.ModelError, match=f"tensor '{last}' ends at byte"):
        models.load(path)
    for keep in (0, 7, 8, 100):
        cut(file, keep)
        with pytest.raises(models.ModelError, match="cut off in its header"):
            models.load(path)


def changed(change):
    """What becomes of a folder whose weights are changed before they are written."""

    def make(path, rng):
        weights, config = random_weights(CONFIG, rng), dict(CONFIG)
        change(weights, config)
        write_folder(path, config, weights)

    return make


NORM = "model.layers.1.input_layernorm.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w, c: w.pop(NORM), f"tensor '{NORM}' is missing"),
        (lambda w, c: w.update({NORM: np.ones(63, "f")}), rf"tensor '{NORM}' has shape \[63\].* it is \[64\]"),
        (lambda w, c: w.update({NORM: np.ones(64, "i4")}), f"tensor '{NORM}' is of I32"),
        (lambda w, c: w.update({"model.layers.1.extra": np.ones(2, "f")}), "tensor 'model.layers.1.extra' is no part"),
        (lambda w, c: c.update(model_type="mamba"), "model_type is 'mamba', which is not supported"),
        (lambda w, c: c.pop("hidden_size"), "hidden_size is missing"),
        (lambda w, c: c.update(hidden_size=-5), "hidden_size is -5"),
        (lambda w, c: c.update(hidden_size=2**70), "hidden_size is 11"),
        (lambda w, c: c.update(num_key_value_heads=3), "4 heads cannot share 3"),
        (lambda w, c: c.update(num_hidden_layers=10**6), "1000000 layers"),
        (lambda w, c: c.update(head_dim=7), "pairs of columns"),
        (lambda w, c: c.update(hidden_act="gelu"), "hidden_act is 'gelu'"),
        (lambda w, c: c.update(rope_scaling={"rope_type": "longrope"}), "rope_type is 'longrope'"),
        (lambda w, c: c.update(rope_scaling=YARN | {"beta_slow": 9.0}), "beta_slow is 9.0.* beta_fast, 8.0"),
        (lambda w, c: c.update(rope_scaling=YARN | {"mscale": 0.7}), "mscale is 0.7, which is not supported"),
        (lambda w, c: c.update(rope_scaling=YARN, rope_theta=1.0), "rope_theta is 1.0: yarn needs more than 1"),
        (
            lambda w, c: c.update(rope_scaling=YARN | {"original_max_position_embeddings": 5}, rope_theta=2.0),
            "no pair turns beta_slow",
        ),
        (lambda w, c: c.update(rms_norm_eps="1"), "rms_norm_eps is '1'"),
        (lambda w, c: c.update(partial_rotary_factor=0.5), "partial_rotary_factor is not 1"),
        (lambda w, c: c.update(rms_norm_eps=10**400), "rms_norm_eps is 1000"),
        (lambda w, c: c.update(tie_word_embeddings="false"), "tie_word_embeddings is 'false': it has to be true or"),
        (lambda w, c: c.update(rope_scaling={"factor": 4.0}), "factor is 4.0, which is not supported"),
        (lambda w, c: c.update(rope_scaling=LLAMA3 | {"attention_factor": 1.5}), "attention_factor is 1.5"),
        (lambda w, c: c.update(attention_multiplier=1.0), "attention_multiplier is 1.0.* supported: 0.25"),
        (lambda w, c: c.update(logits_scaling=8.0), "logits_scaling is 8.0"),
        (lambda w, c: c.update(residual_multiplier=0.2), "residual_multiplier is 0.2"),
        (lambda w, c: c.update(embedding_multiplier=12), "embedding_multiplier is 12"),
    ],
)
def test_what_is_wrong_with_a_folder(change, message, tmp_path, rng):
    changed(change)(tmp_path, rng)
    with pytest.raises(models.ModelError, match=message):
        models.load(tmp_path)


def test_what_is_wrong_with_an_index(tmp_path, rng):
    write_folder(tmp_path, CONFIG, random_weights(CONFIG, rng), shards=2)
    index = tmp_path / "model.safetensors.index.json"
    whole = json.loads(index.read_text())
    for place, message in (("../other.safetensors", "no such file here"), (3, "no such file here")):
        index.write_text(json.dumps({"weight_map": whole["weight_map"] | {NORM: place}}))
        with pytest.raises(models.ModelError, match=f"tensor '{NORM}' is in .*{message}"):
            models.load(tmp_path)
    other = next(file for file in whole["weight_map"].values() if file != whole["weight_map"][NORM])
    index.write_text(json.dumps({"weight_map": whole["weight_map"] | {NORM: other}}))
    with pytest.raises(models.ModelError, match=f"tensor '{NORM}' is missing"):
        models.load(tmp_path)


@pytest.fixture
def gguf_file(tmp_path, rng):
    """A model in a GGUF file whose last tensor is a matrix of blocks."""
    tensors, _ = quantised_in_gguf(CONFIG, "Q8_0", rng)
    write_gguf(tmp_path / "m.gguf", CONFIG, tensors)
    return tmp_path / "m.gguf", list(tensors)[-1]


def test_a_gguf_that_was_cut_off_anywhere(gguf_file):
    """Whatever is left of it, it is an error of ours; and where a tensor is cut, with its name."""
    path, last = gguf_file
    whole = path.read_bytes()
    cut(path, len(whole) - 40)
    with pytest.raises(models.ModelError, match=f"the tensor '{last}' lies at bytes .* was cut off"):
        models.load(path)
    for keep in (0, 3, 8, 20, 24, 30, 100, 300, 500, 1000, len(whole) // 2):
        path.write_bytes(whole[:keep])
        with pytest.raises(models.ModelError, match="m.gguf"):
            models.load(path)


def test_a_gguf_with_any_byte_of_its_header_changed(gguf_file, rng):
    """It may still be a model; else it is an error of ours, and says the file."""
    path, _ = gguf_file
    whole = path.read_bytes()
    for at in rng.integers(0, 2500, 150):
        data = bytearray(whole)
        data[at] = int(rng.integers(0, 256))
        path.write_bytes(data)
        try:
            models.load(path)
        except models.ModelError as error:
            assert "m.gguf" in str(error) or "heads" in str(error) or "layers" in str(error) or "pairs" in str(error)


@pytest.mark.parametrize("kind", ["i4", "text"])
def test_a_gguf_whose_array_has_another_length(kind, tmp_path, rng):
    """It takes no time and memory of that length: the rest of the file says how long an array may be."""
    weights = random_weights(CONFIG, rng)

    def add(writer):
        writer.add_array("general.marked", [7] * 11 if kind == "i4" else ["seven"] * 11)

    path = tmp_path / "m.gguf"
    tensors = {name: (weight, None) for name, weight in in_gguf(CONFIG, weights).items()}
    write_gguf(path, CONFIG, tensors, add)
    whole = path.read_bytes()
    at = whole.index(b"general.marked") + len(b"general.marked") + 8
    assert whole[at : at + 8] == struct.pack("<Q", 11)
    path.write_bytes(whole[:at] + struct.pack("<Q", 2**40) + whole[at + 8 :] + bytes(2**20))
    tracemalloc.start()
    try:
        with pytest.raises(models.ModelError, match="damaged GGUF file"):
            models.load(path)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("hook", ["_get", "_get_field_parts", "_build_tensors"])
def test_a_reader_that_does_not_call_what_checks_is_refused(hook, gguf_file, monkeypatch):
    """As another version of the package may be."""
    import gguf

    class Other(gguf.GGUFReader):
        def __init__(self, path):
            own = getattr(gguf.GGUFReader, hook)
            setattr(self, hook, own.__get__(self))
            super().__init__(path)

    monkeypatch.setattr(gguf, "GGUFReader", Other)
    with pytest.raises(models.ModelError, match="this version of the package gguf reads files unchecked"):
        models.load(gguf_file[0])


def test_a_safetensors_with_any_byte_of_its_header_changed(folder, rng):
    """It may still be a model; else it is an error of ours, and says the file."""
    path, _ = folder
    file = path / "model.safetensors"
    whole = file.read_bytes()
    for at in rng.integers(0, 8 + struct.unpack("<Q", whole[:8])[0], 150):
        data = bytearray(whole)
        data[at] = int(rng.integers(0, 256))
        file.write_bytes(data)
        try:
            models.load(path)
        except models.ModelError as error:
            assert str(path) in str(error)


def test_types_that_are_not_supported(tmp_path, rng):
    import gguf

    tensors, _ = quantised_in_gguf(CONFIG, "Q8_0", rng)
    blocks = np.zeros((64, 64 // 32 * 22), "u1")
    write_gguf(tmp_path / "m.gguf", CONFIG, tensors | {"blk.1.attn_q.weight": (blocks, gguf.GGMLQuantizationType.Q5_0)})
    with pytest.raises(models.ModelError, match=r"tensor 'blk.1.attn_q.weight' is of type Q5_0; supported are F32"):
        models.load(tmp_path / "m.gguf")


def test_packages_that_are_missing_are_named(gguf_file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(models.ModelError, match="needs the package gguf: pip install gguf"):
        models.load(gguf_file[0])
