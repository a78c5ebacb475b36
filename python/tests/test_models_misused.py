"""What is said to who gives a language model something else than it takes."""

from __future__ import annotations

import json

import pytest
from language_models import CONFIG, random_weights, write_folder

from einrel import models


@pytest.fixture
def folder(tmp_path, rng):
    """A model's folder."""
    write_folder(tmp_path, CONFIG, random_weights(CONFIG, rng))
    return tmp_path


@pytest.mark.parametrize(
    ("prompts", "more", "message"),
    [
        ([], {}, "no prompts"),
        ([[]], {}, "without tokens"),
        ([[50]], {}, "the token 50; the model has tokens up to 49"),
        ([[1] * 40], {"tokens": 30}, "30 more need 69 positions; the model has 64: give tokens=25 or less"),
        ([[1] * 64], {"tokens": 2}, "2 more need 65 positions; the model has 64: give tokens=1 or less"),
        ([[1] * 65], {"tokens": 1}, "1 more need 65 positions; the model has 64: give a prompt of 64 or less"),
        ([[1.5]], {}, "has 1.5, which is no token"),
        ([["hello"]], {}, "has 'hello', which is no token: tokenizer.encode"),
        (["hello"], {}, "a prompt is 'hello': give a list of tokens; tokenizer.encode"),
        ([True], {}, "a prompt is True"),
        ([[True]], {}, "has True, which is no token"),
        (None, {}, "prompts=None: give prompts as lists of tokens"),
        ("hello", {}, "prompts='hello': give prompts as lists of tokens"),
        ([1, 2], {}, "a prompt is 1: give a list of tokens"),
        ([[1]], {"tokens": 0}, "tokens=0"),
        ([[1]], {"tokens": 10**30}, "tokens=1000"),
        ([[1]], {"temperature": float("nan")}, "temperature=nan"),
        ([[1]], {"temperature": float("inf")}, "temperature=inf"),
        ([[1]], {"temperature": 1e-320}, "temperature=1e-320: give 0, or a number from 1e-06 on"),
        ([[1]], {"seed": 2**53}, "below 2\\*\\*53"),
        ([[1]], {"options": {"threads": 0}}, "threads=0"),
        ([[1]], {"stops": ["w1"]}, "stops has 'w1', which is no token"),
        ([[1]], {"stops": [99]}, "stops has the token 99; the model has tokens up to 49"),
        ([[1]], {"stops": 5}, "stops=5: give tokens that end a text"),
        ([[1]], {"stops": None}, "stops=None: give tokens that end a text"),
    ],
)
def test_what_is_wrong_with_a_prompt(folder, prompts, more, message):
    with pytest.raises((TypeError, ValueError), match=message):
        models.load(folder).generate(prompts, **more)


@pytest.mark.parametrize("prompt", [5, None, b"w1"])
def test_what_is_wrong_with_a_text(folder, prompt):
    with pytest.raises(TypeError, match=r"prompt=.*: give a text, or a list of its tokens"):
        models.load(folder).write(prompt)


def test_errors_of_a_configuration_say_the_file(folder):
    (folder / "config.json").write_text(json.dumps(CONFIG | {"num_key_value_heads": 3}))
    with pytest.raises(models.ModelError, match=r"config.json: 4 heads cannot share 3"):
        models.load(folder)


def test_yarn_stretches_what_a_model_was_trained_on(tmp_path):
    yarn = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 50}
    for more, longest in (({"rope_scaling": yarn}, 100), ({}, 64)):
        (tmp_path / "config.json").write_text(json.dumps(CONFIG | more))
        models.program(tmp_path, tokens=longest)
        with pytest.raises(
            models.ModelError, match=f"texts of {longest + 1} tokens: the model has {longest} positions"
        ):
            models.program(tmp_path, tokens=longest + 1)


def test_errors_say_the_file_that_is_not_there(tmp_path):
    with pytest.raises(models.ModelError, match=r"no such file or folder here, and nothing is downloaded"):
        models.load(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(models.ModelError, match="neither model.safetensors nor model.safetensors.index.json$"):
        models.load(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(
        models.ModelError, match="pytorch_model.bin is of PyTorch, which is not read: save the model as"
    ):
        models.load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_of_a_folder_is_no_model(name, folder):
    with pytest.raises(models.ModelError, match=f"{name}: no GGUF file; of a model in .safetensors give the folder"):
        models.load(folder / name)


def test_types_of_weights_have_the_names_of_the_language(folder):
    with pytest.raises(ValueError, match="dtype='bfloat16': weights are of f32, f16, bf16"):
        models.program(folder, dtype="bfloat16")
