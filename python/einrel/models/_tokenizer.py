"""Text to tokens and back, by the package tokenizers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from .._compute import text_of
from ._errors import ModelError, needed
from ._safetensors import read_json

# How GGUF's kinds of BPE cut a text into words before they are cut into tokens: tokenizer.ggml.pre.
_CONTRACTIONS: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST: Final = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3: Final = rf"{_CONTRACTIONS}\p{{N}}{{1,3}}{_REST}"
_WORDS: Final = {
    "llama-bpe": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama3": _LLAMA3,
    "qwen2": rf"{_CONTRACTIONS}\p{{N}}{_REST}",
}
_CONTROL, _USER_DEFINED = 3, 4  # tokenizer.ggml.token_type


class Tokenizer:
    """Tokens of a text; made by a model's files.

    `stops` are the tokens that end an answer.
    """

    def __init__(self, own: Any, start: list[int], stops: frozenset[int], chat: Mapping[str, Any]) -> None:
        self._own, self._start, self.stops, self._chat = own, start, stops, chat

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, with the one that begins texts if the model has that."""
        return self._start + list(self._own.encode(text_of("text", text)).ids)

    def decode(self, tokens: Iterable[int | None]) -> str:
        """The text of tokens, without those that are no text, and None, which texts have after their end."""
        given = [token for token in tokens if token is not None]
        if any(not isinstance(token, int | np.integer) or token < 0 for token in given):
            raise TypeError(f"tokens={given!r}: give whole numbers of 0 or more, and None after a text's end")
        return str(self._own.decode(given, skip_special_tokens=True))

    def pieces(self, tokens: Iterable[int]) -> Iterator[str]:
        """The text of tokens as they come, in whole characters, up to one that ends an answer.

        What a token says depends on those before it, such as whether a space comes first: each is decoded behind the
        tokens of the piece before.
        """
        before: list[int] = []
        added: list[int] = []
        for token in itertools.takewhile(lambda token: token not in self.stops, tokens):
            added.append(token)
            piece = self._after(before, added)
            if piece and not piece.endswith("\N{REPLACEMENT CHARACTER}"):  # a character begins, of several tokens
                yield piece
                before, added = added, []
        if added:
            yield self._after(before, added)

    def _after(self, before: list[int], added: list[int]) -> str:
        return self.decode(before + added)[len(self.decode(before)) :]

    def chat(self, message: str) -> list[int]:
        """The tokens of a question, as the model's chat template puts it."""
        text_of("message", message)
        template = _default_template(self._chat.get("chat_template"))
        sandbox = needed("jinja2.sandbox", "a chat template")
        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )

        def refuse(reason: str) -> None:
            raise ModelError(f"the model's chat template refuses the prompt: {reason}")

        # What Hugging Face's templates are given.
        environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        names = {name: self._chat.get(name) or "" for name in ("bos_token", "eos_token")}
        try:
            text = environment.from_string(template).render(
                messages=[{"role": "user", "content": message}],
                tools=None,
                documents=None,
                add_generation_prompt=True,
                **names,
            )
        except ModelError:
            raise
        except Exception as error:  # a template is a program, which may fail in any way
            raise ModelError(f"the model's chat template does not work: {error or type(error).__name__}") from None
        return list(self._own.encode(text, add_special_tokens=False).ids)


def _default_template(given: Any) -> str:
    """A chat template; of a list of them, which have names, the one that is called default."""
    if isinstance(given, list):
        named = [entry for entry in given if isinstance(entry, Mapping) and entry.get("name") == "default"]
        given = named[0].get("template") if named else None
    if not isinstance(given, str):
        raise ModelError("the model has no chat template; give the prompt as it is")
    return given


def tokenizer_of_folder(folder: Path, config: Mapping[str, Any], longest: int | None = None) -> Tokenizer:
    """The tokenizer of a folder as Hugging Face keeps it: tokenizer.json and what stands beside it.

    Texts are cut to `longest` tokens, with those that begin and end them, where it is given.
    """
    file = folder / "tokenizer.json"
    tokenizers = needed("tokenizers", f"{folder}: text")
    if not file.exists():
        raise ModelError(f"{folder}: there is no tokenizer.json, which texts need; Python takes tokens, too")
    try:
        own = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises Exception itself
        raise ModelError(f"{file}: {error}") from None
    own.no_padding()
    own.no_truncation()
    if longest is not None:
        try:
            own.enable_truncation(longest)
        except Exception as error:  # the package raises Exception itself
            raise ModelError(f"{file}: texts of {longest} tokens: {error}") from None
    beside = [folder / name for name in ("tokenizer_config.json", "generation_config.json")]
    names, generation = ({} if not path.exists() else read_json(path) for path in beside)
    template = folder / "chat_template.jinja"
    texts = {name: _text_of_token(names.get(name)) for name in ("bos_token", "eos_token")}
    chat = {"chat_template": names.get("chat_template"), **texts}
    if template.exists():
        chat["chat_template"] = template.read_text("utf-8")
    ends = [_ends(path, entries) for path, entries in ((beside[1], generation), (folder / "config.json", config))]
    stops = set(next(filter(None, ends), []))
    last = own.token_to_id(texts["eos_token"]) if texts["eos_token"] else None
    return Tokenizer(own, [], frozenset(stops | ({last} if last is not None else set())), chat)


def _ends(file: Path, entries: Mapping[str, Any]) -> list[int]:
    """The tokens that end an answer by a file's eos_token_id, none where it has no such entry."""
    given = entries.get("eos_token_id")
    ends = given if isinstance(given, list) else [] if given is None else [given]
    if any(isinstance(end, bool) or not isinstance(end, int) or end < 0 for end in ends):
        raise ModelError(f"{file}: eos_token_id is {given!r}: it has to be a token's number, or a list of them")
    return ends


def _text_of_token(token: Any) -> str | None:
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else None


def tokenizer_of_gguf(path: str, metadata: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that a GGUF file describes: byte-level BPE (gpt2), SentencePiece's (llama), WordPiece (bert)."""
    tokenizers = needed("tokenizers", f"{path}: text")
    entries = {name.removeprefix("tokenizer.ggml."): value for name, value in metadata.items()}
    tokens, kind = entries.get("tokens"), entries.get("model")
    if not isinstance(tokens, list):
        raise ModelError(f"{path}: the file has no tokens (tokenizer.ggml.tokens)")
    if not isinstance(kind, str) or kind not in _MAKERS:
        makers = ", ".join(_MAKERS)
        raise ModelError(f"{path}: tokenizer.ggml.model is {kind!r}, which is not supported; supported: {makers}")
    if not isinstance(entries.get("pre", ""), str):
        raise ModelError(f"{path}: tokenizer.ggml.pre is {entries['pre']!r}: it has to be a word")
    try:
        own = _MAKERS[kind](tokenizers, path, entries, tokens)
        types = list(zip(tokens, entries.get("token_type") or []))
        own.add_special_tokens([token for token, number in types if number == _CONTROL])
        own.add_tokens([token for token, number in types if number == _USER_DEFINED])
    except ModelError:
        raise
    except Exception as error:  # the package raises Exception itself
        raise ModelError(f"{path}: the tokenizer in the file is damaged: {error}") from None

    def known(name: str) -> int | None:
        value = entries.get(name)
        return value if isinstance(value, int) and 0 <= value < len(tokens) else None

    first = known("bos_token_id")
    stops = frozenset(stop for name in ("eos_token_id", "eot_token_id") if (stop := known(name)) is not None)
    starts_by_default = kind == "llama" or _WORDS.get(entries.get("pre", "")) == _LLAMA3  # as in llama.cpp
    # WordPiece has its first token of the post-processor.
    has_start = kind != "bert" and entries.get("add_bos_token", starts_by_default) and first is not None
    last = known("eos_token_id")
    chat = {
        "chat_template": metadata.get("tokenizer.chat_template"),
        "bos_token": tokens[first] if first is not None else None,
        "eos_token": tokens[last] if last is not None else None,
    }
    return Tokenizer(own, [first] if has_start and first is not None else [], stops, chat)


def _byte_level(tokenizers: Any, path: str, entries: Mapping[str, Any], tokens: list[str]) -> Any:
    merges = [tuple(merge.split(" ")) for merge in entries.get("merges") or []]
    kind = entries.get("pre", "default")
    numbers = {token: at for at, token in enumerate(tokens)}
    # LLaMA 3 takes a word that is a token as a whole, whatever pairs would make of it.
    model = tokenizers.models.BPE(numbers, merges, ignore_merges=_WORDS.get(kind) == _LLAMA3)
    own = tokenizers.Tokenizer(model)
    cut = tokenizers.pre_tokenizers
    if kind in _WORDS:
        words = cut.Split(tokenizers.Regex(_WORDS[kind]), "isolated")
        steps = [words, cut.ByteLevel(add_prefix_space=False, use_regex=False)]
    elif kind == "smollm":
        steps = [cut.Digits(individual_digits=True), cut.ByteLevel(add_prefix_space=False)]
    elif kind in ("default", "gpt-2"):
        steps = [cut.ByteLevel(add_prefix_space=False)]
    else:
        known = ", ".join(("default", "gpt-2", "smollm", *_WORDS))
        raise ModelError(f"{path}: tokenizer.ggml.pre is {kind!r}, which is not supported; supported: {known}")
    own.pre_tokenizer = cut.Sequence(steps)
    own.decoder = tokenizers.decoders.ByteLevel()
    return own


def _sentence_piece(tokenizers: Any, path: str, entries: Mapping[str, Any], tokens: list[str]) -> Any:
    """SentencePiece's BPE: of all pairs that make a token, the one of the highest score is joined first."""
    numbers = {token: at for at, token in enumerate(tokens)}
    scores = entries.get("scores") or []
    if len(scores) != len(tokens):
        raise ModelError(f"{path}: {len(tokens)} tokens have {len(scores)} scores (tokenizer.ggml.scores)")
    pairs = sorted(
        (-scores[at], at, token[:cut], token[cut:])
        for token, at in numbers.items()
        for cut in range(1, len(token))
        if token[:cut] in numbers and token[cut:] in numbers
    )
    merges = [(left, right) for _, _, left, right in pairs]
    unknown = entries.get("unknown_token_id", 0)
    model = tokenizers.models.BPE(numbers, merges, unk_token=tokens[unknown], fuse_unk=True, byte_fallback=True)
    own = tokenizers.Tokenizer(model)
    has_space = entries.get("add_space_prefix", True)
    normal, back = tokenizers.normalizers, tokenizers.decoders
    own.normalizer = normal.Sequence([*([normal.Prepend("▁")] if has_space else []), normal.Replace(" ", "▁")])
    parts = [back.Replace("▁", " "), back.ByteFallback(), back.Fuse()]
    own.decoder = back.Sequence([*parts, *([back.Strip(" ", 1, 0)] if has_space else [])])
    return own


def _word_piece(tokenizers: Any, path: str, entries: Mapping[str, Any], tokens: list[str]) -> Any:
    """BERT's: in GGUF words begin with a bar, in tokenizers what goes on with a word begins with ##."""

    def name(token: str) -> str:
        if token.startswith("▁"):
            return token[1:]
        return token if token.startswith("[") and token.endswith("]") else f"##{token}"

    def special(*kinds: str) -> tuple[str, int]:
        at = next(entries[f"{kind}_token_id"] for kind in kinds if f"{kind}_token_id" in entries)
        return name(tokens[at]), at

    first, last = special("cls", "bos"), special("seperator", "eos")
    numbers = {name(token): at for at, token in enumerate(tokens)}
    own = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token=special("unknown")[0]))
    own.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    own.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    own.post_processor = tokenizers.processors.BertProcessing(last, first)
    own.decoder = tokenizers.decoders.WordPiece()
    return own


_MAKERS: Final = {"gpt2": _byte_level, "llama": _sentence_piece, "bert": _word_piece}
