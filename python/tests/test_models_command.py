"""Text to tokens, and the command that lets a language model write."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from language_models import CONFIG, greedy, in_gguf, random_weights, write_folder, write_gguf
from on_ranks import run_on

import einrel as er
from einrel import models
from einrel.models._command import main
from einrel.models._tokenizer import Tokenizer, tokenizer_of_gguf

WORDS = [f"w{number}" for number in range(48)]
TEMPLATE = (
    "{% for message in messages %}\n{{ message['role'] }} {{ message['content'] }} {% endfor %}\n"
    "{% if add_generation_prompt %}w7{% endif %}"
)


def word_tokenizer():
    """A word is a token; the last two begin and end texts."""
    import tokenizers

    numbers = {word: number for number, word in enumerate([*WORDS, "user", "</s>"])}
    own = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="w0"))
    own.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    own.add_special_tokens(["</s>"])
    return own


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with a tokenizer, and its weights."""
    path = tmp_path_factory.mktemp("model")
    weights = random_weights(CONFIG, np.random.default_rng(1))
    write_folder(path, CONFIG, weights)
    word_tokenizer().save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": {"content": "</s>"}, "bos_token": None, "chat_template": TEMPLATE})
    )
    return path, weights


def text_of(tokens):
    return " ".join([*WORDS, "user", "</s>"][token] for token in tokens)


PROMPT = [3, 17, 42]


def wanted(weights, prompt, count):
    """The greedy tokens up to one that ends: 2, as config.json says, or </s>."""
    tokens = greedy(CONFIG, weights, prompt, count)[1]
    end = next((at for at, token in enumerate(tokens) if token in (2, 49)), count)
    return tokens[: end + 1], tokens[:end]


def test_the_command_goes_on_with_a_text(folder, capsys):
    path, weights = folder
    assert main(["lm", str(path), "--prompt", text_of(PROMPT), "--tokens", "9"]) == 0
    assert capsys.readouterr().out == text_of(wanted(weights, PROMPT, 9)[1]) + "\n"


@pytest.mark.parametrize("sites", [2, 4])
def test_json(folder, sites, capsys):
    path, weights = folder
    options = ["--tokens", "9", "--json", "--sites", str(sites), "--planner", "tensor"]
    assert main(["lm", str(path), "--prompt", text_of(PROMPT), *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    tokens, said = wanted(weights, PROMPT, 9)
    assert (facts["prompt"], facts["tokens"], facts["text"]) == (PROMPT, tokens, text_of(said))
    assert (facts["is_ended"], facts["sites"], facts["planner"]) == (len(said) < 9, sites, "tensor")
    assert len(facts["seconds"]) == len(facts["bytes_moved"]) == len(tokens) and min(facts["bytes_moved"]) > 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks(folder, ranks, capsys):
    """The same tokens, bytes as in one process of as many sites and as predicted, and one of the ranks prints.

    The second token brings the weights to where the plan has them. No other step moves them, nor does the prompt.
    """
    path, weights = folder
    options = ["--tokens", "4", "--planner", "tensor", "--json"]
    done = run_on(ranks, "-m", "einrel", "lm", str(path), "--prompt", text_of(PROMPT), *options)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["tokens"], facts["sites"]) == (wanted(weights, PROMPT, 4)[0], ranks)
    steps = models.load(path).generate([PROMPT], tokens=4, options={"sites": ranks, "planner": "tensor"})
    assert facts["bytes_moved"] == [step.report.bytes_moved for step in steps][: len(facts["tokens"])]
    assert all(4 * moved < facts["bytes_moved"][1] for moved in facts["bytes_moved"][2:])
    assert facts["bytes_moved"][0] <= len(PROMPT) * facts["bytes_moved"][2]
    assert main(["lm", str(path), "--prompt", text_of(PROMPT), *options, "--sites", str(ranks), "--explain"]) == 0
    plans = json.loads(capsys.readouterr().out)
    prompt, token = (plans[name]["plans"][0]["cost"] for name in ("prompt", "token"))
    later = [token["each_step"]["bytes"]] * (len(facts["tokens"]) - 2)
    assert facts["bytes_moved"] == [prompt["bytes"], token["bytes"], *later]


def test_what_is_drawn_depends_on_the_seed_alone(folder, capsys):
    path, _ = folder

    def drawn(seed, *more):
        options = ["--prompt", "w5 w6", "--tokens", "8", "--temperature", "3", "--seed", str(seed), "--json", *more]
        assert main(["lm", str(path), *options]) == 0
        return json.loads(capsys.readouterr().out)["tokens"]

    assert drawn(1) == drawn(1, "--sites", "2") == drawn(1, "--threads", "1")
    assert len({tuple(drawn(seed)) for seed in range(4)}) > 1


def test_chat_templates(folder, capsys):
    path, weights = folder
    question = [48, *PROMPT, 7]  # as the template puts it
    assert models.load(path).tokenizer.chat(text_of(PROMPT)) == question
    assert main(["lm", str(path), "--chat", "--prompt", text_of(PROMPT), "--tokens", "5"]) == 0
    assert capsys.readouterr().out == text_of(wanted(weights, question, 5)[1]) + "\n"


def test_plans_and_the_program(folder, tmp_path, capsys):
    path, _ = folder
    file = tmp_path / "model.ein"
    options = ["--tokens", "9", "--sites", "4", "--machine", "h100-server", "--explain"]
    assert main(["lm", str(path), "--prompt", text_of(PROMPT), *options, "--program", str(file)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("the prompt, 3 tokens\n") and "\neach token after it\n" in said
    assert said.count("for 4 sites on machine h100-server") == 2
    program = er.load_program(file)
    assert {info.name: info.extents for info in program.inputs}["Tokens"] == [1, 3]
    assert main(["lm", str(path), "--prompt", text_of(PROMPT), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["token"]["sites"] == 4


def test_as_a_process(folder):
    path, weights = folder
    command = [sys.executable, "-m", "einrel", "lm", str(path), "--tokens", "3", "--prompt"]
    done = subprocess.run([*command, text_of(PROMPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, text_of(wanted(weights, PROMPT, 3)[1]) + "\n"), done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tokens", "0"], "error: --tokens 0: give 1 or more"),
        (["--tokens", "100"], "100 more need 100 positions; the model has 64"),
        (["--temperature", "-1"], "temperature=-1.0"),
        (["--planner", "no", "--sites", "2"], "there is no planner 'no'"),
        (["--memory", "2 apples"], "memory='2 apples' is no size"),
        (["--threads", "-5"], "threads=-5"),
        (["--temperature", "nan"], "temperature=nan"),
        (["--seed", str(2**53)], "below 2**53"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--explain"]])
def test_what_is_wrong_with_options(folder, options, message, more, capsys):
    path, _ = folder
    assert main(["lm", str(path), "--prompt", "w1", *options, *more]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "a prompt without tokens: give one or more"),
        ("\udcff", "'\\udcff' is not valid Unicode"),  # a byte that no text has, as Python reads arguments
        (
            " ".join(["w1"] * 65),
            "a prompt of 65 tokens and 1 more need 65 positions; the model has 64: give a prompt of",
        ),
    ],
)
def test_what_is_wrong_with_prompts(folder, prompt, message, capsys):
    assert main(["lm", str(folder[0]), "--prompt", prompt, "--tokens", "1"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--tokens", "x"], ["--token", "3"], ["--seed"]])
def test_options_that_there_are_not(folder, options, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["lm", str(folder[0]), "--prompt", "w1", *options])
    assert ended.value.code == 1
    assert "\nerror: " in capsys.readouterr().err


def test_what_is_missing(folder, tmp_path, capsys):
    _, weights = folder
    assert main(["lm", str(tmp_path / "no"), "--prompt", "w1"]) == 1
    assert "no such file or folder" in capsys.readouterr().err
    write_folder(tmp_path, CONFIG, weights)
    assert main(["lm", str(tmp_path), "--prompt", "w1"]) == 1
    assert "there is no tokenizer.json" in capsys.readouterr().err
    (tmp_path / "tokenizer.json").write_text("{}")
    assert main(["lm", str(tmp_path), "--prompt", "w1"]) == 1
    assert "tokenizer.json" in capsys.readouterr().err
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert main(["lm", str(tmp_path), "--prompt", "w1", "--chat"]) == 1
    assert "no chat template" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no system') }}", "refuses the prompt: no system"),
        ("{% for %}", "does not work"),
        ("{{ messages + 1 }}", "does not work: can only concatenate"),
        ("{{ 1 / 0 }}", "does not work: division by zero"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "does not work: maximum recursion depth"),
    ],
)
def test_chat_templates_that_fail(folder, tmp_path, template, message):
    _, weights = folder
    write_folder(tmp_path, CONFIG, weights)
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(models.ModelError, match=message):
        models.load(tmp_path).tokenizer.chat("w1")


def test_what_chat_templates_are_given(folder, tmp_path):
    """As Hugging Face's: names that may be None, a loop that ends early, the day, and of several the default one."""
    _, weights = folder
    template = (
        "{% if tools is none and documents is none %}w1 {% endif %}"
        "{% for number in range(9) %}{% if number == 2 %}{% break %}{% endif %}w2 {% endfor %}"
        "{{ 'w3' if strftime_now('%Y') | int > 2000 }}"
    )
    write_folder(tmp_path, CONFIG, weights)
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    several = [{"name": "tool_use", "template": "w9"}, {"name": "default", "template": template}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
    assert models.load(tmp_path).tokenizer.chat("w5") == [1, 2, 2, 3]


def bytes_as_characters():
    """GPT-2's characters for bytes: those that print stand for themselves, the others follow from 256 on."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    return {byte: chr(byte) for byte in printed} | {byte: chr(256 + at) for at, byte in enumerate(others)}


def merged(pieces_of_word, best):
    """BPE: of all neighbours the best pair is joined, until there is none."""
    word = list(pieces_of_word)
    while True:
        ranked = [(best(left, right), at) for at, (left, right) in enumerate(itertools.pairwise(word))]
        ranked = [(value, at) for value, at in ranked if value is not None]
        if not ranked:
            return word
        at = min(ranked)[1]
        word[at : at + 2] = [word[at] + word[at + 1]]


BYTE_MERGES = [
    ("h", "e"),
    ("l", "l"),
    ("he", "ll"),
    ("hell", "o"),
    ("Ġ", "w"),
    ("o", "r"),
    ("Ġw", "or"),
    ("1", "2"),
    ("Ã", "¤"),
]
PRE_TOKENS = {
    "default": ["hello", " world", " 123", " ä", "!"],
    "gpt-2": ["hello", " world", " 123", " ä", "!"],
    "smollm": ["hello", " world", " ", "1", "2", "3", " ä", "!"],
    "llama-bpe": ["hello", " world", " ", "123", " ä", "!"],
    "qwen2": ["hello", " world", " ", "1", "2", "3", " ä", "!"],
}


@pytest.mark.parametrize("pre", PRE_TOKENS)
def test_byte_level_tokens(pre):
    names = bytes_as_characters()
    tokens = [*names.values(), *("".join(merge) for merge in BYTE_MERGES), "Ġworld", "<|end|>", "<tool>"]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in BYTE_MERGES],
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 2) + [3, 4],
        "tokenizer.ggml.eos_token_id": len(tokens) - 2,
        "tokenizer.ggml.bos_token_id": len(tokens) - 2,
    }
    own = tokenizer_of_gguf("m.gguf", metadata)
    start = [len(tokens) - 2] if pre == "llama-bpe" else []  # which LLaMA 3 has unless a file says otherwise
    ranks = {merge: at for at, merge in enumerate(BYTE_MERGES)}

    def pieces_of(pre, word):
        whole = "".join(word)
        return [whole] if pre == "llama-bpe" and whole in tokens else merged(word, lambda *pair: ranks.get(pair))

    wanted = [
        tokens.index(piece)
        for word in PRE_TOKENS[pre]
        for piece in pieces_of(pre, [names[byte] for byte in word.encode()])
    ]
    text = "".join(PRE_TOKENS[pre])
    assert own.encode(text) == start + wanted
    assert own.encode(text + "<|end|>") == [*start, *wanted, len(tokens) - 2]
    assert own.decode([*wanted, len(tokens) - 2, len(tokens) - 1]) == text + "<tool>"
    assert own.stops == {len(tokens) - 2}


def test_sentence_piece_tokens(rng):
    words = ["▁", *"abcde", "ab", "bc", "abc", "▁a", "▁ab", "de", "▁de", "cde"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    scores = [0.0] * 259 + rng.permutation(len(words)).tolist()
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * len(words)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    own = tokenizer_of_gguf("m.gguf", metadata)
    numbers = {token: at for at, token in enumerate(tokens)}

    def best(left, right):
        return -scores[numbers[left + right]] if left + right in numbers else None

    for text in ("abc de", "a bcde  ab", "abä", "deabc"):
        wanted = [1]
        for piece in merged("▁" + text.replace(" ", "▁"), best):
            wanted += [numbers[piece]] if piece in numbers else [3 + byte for byte in piece.encode()]
        assert own.encode(text) == wanted
        assert own.decode(wanted) == text
    assert own.stops == {2}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "the file has no tokens"),
        ({"tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.model": "rwkv"}, "model is 'rwkv'"),
        ({"tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "x"}, "pre is 'x'"),
        (
            {"tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": ["a b"]},
            "the tokenizer in the file is damaged: .*`b` out of vocabulary",
        ),
        ({"tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.model": "llama"}, "1 tokens have 0 scores"),
        ({"tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.model": ["gpt2"]}, "model is .'gpt2'., which is not"),
        ({"tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": ["x"]}, "pre is"),
    ],
)
def test_tokens_that_are_not_supported(metadata, message):
    with pytest.raises(models.ModelError, match=message):
        tokenizer_of_gguf("m.gguf", metadata)


def test_the_command_of_a_gguf(tmp_path, capsys):
    """The tokens of a text, of the file itself; and characters of several tokens come as a whole."""
    names = bytes_as_characters()
    tokens = [*names.values(), "Ã©", "<|end|>"]
    config = CONFIG | {"vocab_size": len(tokens)}
    weights = random_weights(config, np.random.default_rng(2))

    def vocabulary(writer):
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(tokens)
        writer.add_token_types([1] * 257 + [3])
        writer.add_token_merges(["Ã ©"])
        writer.add_eos_token_id(257)
        writer.add_chat_template("{{ messages[0]['content'] }}?")

    write_gguf(tmp_path / "m.gguf", config, {n: (w, None) for n, w in in_gguf(config, weights).items()}, vocabulary)
    text = "h\u00e9"
    places = {name: at for at, name in enumerate(tokens)}
    for prompt, options in ((text, []), (text + "?", ["--chat"])):
        numbers = [places[piece] for piece in ("h", "Ã©", *prompt[2:])]
        wanted = greedy(config, weights, numbers, 6)[1]
        assert main(["lm", str(tmp_path / "m.gguf"), "--prompt", text, "--tokens", "6", "--json", *options]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["prompt"] == numbers
        assert facts["tokens"] == wanted[: len(facts["tokens"])]


class Spelled:
    """A tokenizer of the package whose tokens are bytes; it counts those that it makes text of."""

    def __init__(self):
        self.decoded = 0

    def decode(self, tokens, skip_special_tokens):
        self.decoded += len(tokens)
        return bytes(token for token in tokens if token != 1).decode(errors="replace")


def test_characters_come_as_a_whole():
    own = Tokenizer(Spelled(), [], frozenset({0}), {})
    assert list(own.pieces([*"aä€b".encode(), 0, 5])) == ["a", "ä", "€", "b"]
    assert list(own.pieces("aä".encode()[:2])) == ["a", "\N{REPLACEMENT CHARACTER}"]


def test_pieces_take_time_in_proportion():
    spelled = Spelled()
    assert "".join(Tokenizer(spelled, [], frozenset(), {}).pieces(b"abc" * 1000)) == "abc" * 1000
    assert spelled.decoded < 4 * 3000


def test_pieces_have_the_spaces_of_the_whole():
    """Where words begin with a space, and the first of a text loses it; also behind a token that is no text."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a", "b", "▁b"]
    own = tokenizer_of_gguf(
        "m.gguf",
        {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.scores": [0.0] * len(tokens),
            "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, 1, 1, 1, 1, 1],
            "tokenizer.ggml.bos_token_id": 1,
        },
    )
    said = [tokens.index(token) for token in ("▁a", "b", "▁b", "<s>", "▁a", "<0xC3>", "<0xA4>", "▁b")]
    assert list(own.pieces(said)) == ["a", "b", " b", " a", "ä", " b"]
    assert "".join(own.pieces(said)) == own.decode(said)


def test_writing_gives_the_text(folder):
    path, weights = folder
    model = models.load(path)
    for prompt in (PROMPT, text_of(PROMPT)):
        assert "".join(model.write(prompt, tokens=9)) == text_of(wanted(weights, PROMPT, 9)[1])
    with pytest.raises(ValueError, match="tokens=0"):
        model.write(PROMPT, tokens=0)
    assert model.tokenizer.decode([3, None, 4, None]) == "w3 w4"


def test_a_program_goes_into_a_folder_that_exists(folder, tmp_path, capsys):
    assert main(["lm", str(folder[0]), "--prompt", "w1", "--program", str(tmp_path / "nothing" / "P.ein")]) == 1
    assert f"nothing/P.ein: the folder '{tmp_path / 'nothing'}' does not exist" in capsys.readouterr().err


def test_a_prompt_that_is_no_unicode_is_said_to_be_it(folder, capsys):
    assert main(["lm", str(folder[0]), "--prompt", "w1 \udcff"]) == 1
    assert "error: --prompt: 'w1 \\udcff' is not valid Unicode" in capsys.readouterr().err


@pytest.mark.parametrize("ends", ["x", [1, "x"], 1.5, -1, True])
def test_what_ends_an_answer_is_a_token(folder, tmp_path, ends):
    for name in ("tokenizer.json", "config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder[0] / name).read_bytes())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    with pytest.raises(models.ModelError, match=r"generation_config.json: eos_token_id is .* a token's number"):
        _ = models.load(tmp_path).tokenizer


@pytest.mark.parametrize("tokens", [[-1], [1.5], ["w1"]])
def test_texts_are_of_tokens(folder, tokens):
    with pytest.raises(TypeError, match="give whole numbers of 0 or more"):
        models.load(folder[0]).tokenizer.decode(tokens)
