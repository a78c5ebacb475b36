"""Encoders from files, compared with an evaluation in NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from encoders import CONFIG, gguf_name, random_weights, sentence
from language_models import dequantised, random_blocks, write_folder

from einrel import models

TEXTS = [[1, 7, 3, 22, 2], [1, 2], [1, *range(10, 24), 2]]
KIND = "sentence_transformers.models."


def compared(encoder, config, weights, **how):
    """The vectors of all texts at once, and of each alone, are NumPy's; also on sites and in little memory."""
    wanted = np.array([sentence(config, weights, text, **how) for text in TEXTS])
    np.testing.assert_allclose(np.asarray(encoder.encode_tokens(TEXTS)), wanted, atol=1e-4)
    np.testing.assert_allclose(np.asarray(encoder.encode_tokens(TEXTS[:1]))[0], wanted[0], atol=1e-4)
    for options in ({"sites": 2}, {"sites": 4, "planner": "tensor"}, {"memory": "32MiB"}):
        np.testing.assert_allclose(np.asarray(encoder.encode_tokens(TEXTS, options=options)), wanted, atol=1e-4)


@pytest.mark.parametrize("activation", ["gelu", "relu", "silu"])
def test_activations(activation, tmp_path, rng):
    config = CONFIG | {"hidden_act": activation}
    weights = random_weights(config, rng)
    write_folder(tmp_path, config, weights)
    compared(models.encoder(tmp_path), config, weights)


def add_modules(folder, pooling, *kinds):
    (folder / "modules.json").write_text(
        json.dumps([{"type": KIND + kind, "path": "" if kind == "Transformer" else f"1_{kind}"} for kind in kinds])
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))


MODES = {"mean": "mean_tokens", "max": "max_tokens", "cls": "cls_token"}


@pytest.mark.parametrize("pooling", MODES)
def test_pooling_of_sentence_transformers(pooling, tmp_path, rng):
    """And weights under a prefix, beside those of a task on top."""
    weights = random_weights(CONFIG, rng)
    beside = {"bert.pooler.dense.weight": np.ones((32, 32), "f"), "cls.predictions.bias": np.ones(40, "f")}
    write_folder(tmp_path, CONFIG, {f"bert.{name}": weight for name, weight in weights.items()} | beside)
    modes = {f"pooling_mode_{name}": name == MODES[pooling] for name in MODES.values()}
    add_modules(tmp_path, {"word_embedding_dimension": 32, **modes}, "Transformer", "Pooling", "Normalize")
    compared(models.encoder(tmp_path), CONFIG, weights, pooling=pooling, is_normalised=True)


def test_pooling_by_its_name(tmp_path, rng):
    weights = random_weights(CONFIG, rng)
    write_folder(tmp_path, CONFIG, weights)
    add_modules(tmp_path, {"pooling_mode": "max"}, "Transformer", "Pooling")
    compared(models.encoder(tmp_path), CONFIG, weights, pooling="max")


def write_gguf(file, tensors, pooling, more=lambda writer: None):
    import gguf

    kinds = {"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS}

    writer = gguf.GGUFWriter(file, "bert")
    writer.add_block_count(CONFIG["num_hidden_layers"])
    writer.add_embedding_length(CONFIG["hidden_size"])
    writer.add_feed_forward_length(CONFIG["intermediate_size"])
    writer.add_head_count(CONFIG["num_attention_heads"])
    writer.add_layer_norm_eps(CONFIG["layer_norm_eps"])
    writer.add_pooling_type(kinds[pooling])
    more(writer)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_gguf(pooling, tmp_path, rng):
    """With matrices of blocks where their rows are whole ones, as converters make it."""
    import gguf

    weights, tensors = random_weights(CONFIG, rng), {}
    for name, weight in weights.items():
        tensors[gguf_name(name)] = (weight, None)
        if name.endswith("query.weight") or name.endswith("word_embeddings.weight"):
            blocks = random_blocks("Q8_0", weight.shape, rng)
            weights[name], tensors[gguf_name(name)] = (
                dequantised(blocks, "Q8_0"),
                (blocks, gguf.GGMLQuantizationType.Q8_0),
            )
    write_gguf(tmp_path / "m.gguf", tensors, pooling)
    compared(models.encoder(tmp_path / "m.gguf"), CONFIG, weights, pooling=pooling, is_normalised=True)


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat", "!", "un", "##sat"]
TEXT = {"The cats sat!": [2, 4, 5, 6, 7, 8, 3], "unsat dog": [2, 9, 10, 1, 3], "": [2, 3]}


def test_texts_of_a_folder(tmp_path, rng):
    """Padding and truncation that tokenizer.json asks for are Einrel's own affair."""
    import tokenizers

    own = tokenizers.Tokenizer(tokenizers.models.WordPiece({p: n for n, p in enumerate(PIECES)}, unk_token="[UNK]"))
    own.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    own.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    own.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    own.enable_padding(length=12)
    own.enable_truncation(4)
    weights = random_weights(CONFIG, rng)
    write_folder(tmp_path, CONFIG, weights)
    own.save(str(tmp_path / "tokenizer.json"))
    wanted = [sentence(CONFIG, weights, tokens) for tokens in TEXT.values()]
    np.testing.assert_allclose(np.asarray(models.encoder(tmp_path).encode(list(TEXT))), wanted, atol=1e-4)
    # Where Sentence Transformers cuts, the last token still ends the text.
    for longest, count in ((4, 4), (None, 16), (512, 16)):
        (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
        encoder = models.encoder(tmp_path)
        assert encoder.tokenizer.encode("the cats " * 20) == [*([2] + [4, 5, 6] * 20)[: count - 1], 3]
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": "no"}))
    with pytest.raises(models.ModelError, match="sentence_bert_config.json: max_seq_length is 'no'"):
        models.encoder(tmp_path)


def test_programs_are_made_once(folder):
    encoder = models.encoder(folder)
    assert encoder.program(batch=2, tokens=3) is encoder.program(batch=2, tokens=3)
    assert encoder.program(batch=2, tokens=3) is not encoder.program(batch=2, tokens=4)
    texts = np.array(TEXTS[:1] * 2)
    np.testing.assert_array_equal(
        np.asarray(encoder.encode_tokens(texts)), np.asarray(encoder.encode_tokens(texts.tolist()))
    )


@pytest.mark.parametrize("says_start", [False, True])
def test_texts_of_a_gguf(says_start, tmp_path, rng):
    """Texts begin with one [CLS], whether or not the file says so, as newer ones do."""
    weights = random_weights(CONFIG, rng)
    in_file = [
        piece if piece.startswith("[") else piece[2:] if piece.startswith("##") else f"▁{piece}"
        for piece in [*PIECES, *(f"x{number}" for number in range(29))]
    ]

    def vocabulary(writer):
        writer.add_tokenizer_model("bert")
        writer.add_token_list(in_file)
        writer.add_unk_token_id(1)
        writer.add_bos_token_id(2)
        writer.add_sep_token_id(3)
        if says_start:
            writer.add_add_bos_token(True)
            writer.add_add_eos_token(True)

    tensors = {gguf_name(name): (weight, None) for name, weight in weights.items()}
    write_gguf(tmp_path / "m.gguf", tensors, "mean", vocabulary)
    encoder = models.encoder(tmp_path / "m.gguf")
    assert [encoder.tokenizer.encode(text) for text in TEXT] == list(TEXT.values())
    wanted = [sentence(CONFIG, weights, tokens, is_normalised=True) for tokens in TEXT.values()]
    np.testing.assert_allclose(np.asarray(encoder.encode(list(TEXT))), wanted, atol=1e-4)


@pytest.fixture
def folder(tmp_path, rng):
    write_folder(tmp_path, CONFIG, random_weights(CONFIG, rng))
    return tmp_path


def test_it_is_one_program(folder):
    program = models.encoder(folder).program(batch=8, tokens=16)
    assert [info.name for info in program.outputs] == ["Sentence"]
    assert "machine h100-server" in program.explain(sites=4, machine="h100-server")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "no texts"),
        ([[]], "a text without tokens"),
        ([[1] * 17], "of 17 tokens: the model takes 1 to 16"),
        ([[40]], "tokens up to 39"),
        ([[1.9, 2.9]], "a text has 1.9, which is no token"),
        ([1, 2], "a text is 1: give a list of tokens"),
        ("ab", "texts='ab': give a list of lists of tokens"),
        (None, "texts=None: give a list of lists of tokens"),
    ],
)
def test_what_is_wrong_with_texts(folder, texts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        models.encoder(folder).encode_tokens(texts)


def test_what_is_wrong_with_modules(folder):
    add_modules(folder, {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "Transformer", "Pooling")
    with pytest.raises(models.ModelError, match="pooling by pooling_mode_mean_tokens, pooling_mode_cls_token is not"):
        models.encoder(folder)
    (folder / "1_Pooling/config.json").unlink()
    with pytest.raises(models.ModelError, match="1_Pooling/config.json: there is no such file"):
        models.encoder(folder)
    (folder / "modules.json").write_text(json.dumps([{"type": KIND + "Dense"}]))
    with pytest.raises(models.ModelError, match="module 'Dense' is not supported"):
        models.encoder(folder)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'"),
        ({"hidden_act": "gelu_new"}, "hidden_act is 'gelu_new'"),
        ({"num_attention_heads": 5}, "5 heads cannot share"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"intermediate_size": 47}, "tensor 'encoder.layer.0.intermediate.dense.weight' has shape"),
    ],
)
def test_what_is_wrong_with_a_configuration(folder, entries, message):
    (folder / "config.json").write_text(json.dumps(CONFIG | entries))
    with pytest.raises(models.ModelError, match=message):
        models.encoder(folder)
