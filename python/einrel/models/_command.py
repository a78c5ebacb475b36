"""The command `python -m einrel lm`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from .._compute import text_of
from .._native import RunError
from .._ranks import rank
from ._language_model import LanguageModel, Request, Step, load
from ._tokenizer import Tokenizer


class _Parser(argparse.ArgumentParser):
    """One whose exit code for what is wrong with options is that of `einrel`."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.format_usage()}error: {message}\n")


_EXPLAIN_OPTIONS: Final = ("sites", "cost", "machine", "memory")
_RUN_OPTIONS: Final = ("threads", "planner", "spill", *_EXPLAIN_OPTIONS)


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="python -m einrel", allow_abbrev=False)
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "lm", allow_abbrev=False, help="a language model goes on with a text"
    )
    command.add_argument("model", metavar="MODEL", help="a folder with config.json and .safetensors, or a GGUF file")
    command.add_argument("--prompt", required=True, metavar="TEXT", help="the text to go on with")
    command.add_argument("--chat", action="store_true", help="the prompt is a question: use the model's chat template")
    command.add_argument("--tokens", type=int, default=64, metavar="N", help="at most so many tokens more (64)")
    command.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0: the most likely token (0)")
    command.add_argument("--seed", type=int, default=1, metavar="S", help="of the tokens that are drawn (1)")
    command.add_argument("--explain", action="store_true", help="print the plans of prompt and token, compute nothing")
    command.add_argument("--json", action="store_true", help="print one JSON object at the end")
    command.add_argument("--program", metavar="P.ein", help="write the program into this file")
    command.add_argument("--threads", type=int, metavar="N", help="cores that compute")
    command.add_argument("--sites", type=int, metavar="N", help="follow a plan for so many sites")
    command.add_argument("--planner", metavar="NAME", help="the planner that makes it")
    command.add_argument("--cost", metavar="bound|floats|bytes|seconds", help="what the plan makes least")
    command.add_argument("--machine", metavar="NAME|FILE.json", help="the machine that it is made for")
    command.add_argument("--memory", metavar="SIZE", help="bytes that the computation may take, such as 2GiB")
    command.add_argument("--spill", metavar="FOLDER", help="where chunks go that have no room")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Runs the command; gives the exit code, which is that of `einrel run`."""
    given = _arguments(arguments)
    try:
        _run(given)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        text = str(error)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace) -> None:
    if given.tokens < 1:
        raise ValueError(f"--tokens {given.tokens}: give 1 or more")
    text_of("--prompt", given.prompt)
    if given.program is not None and not (folder := Path(given.program).parent).is_dir():
        raise ValueError(f"--program {given.program}: the folder '{folder}' does not exist")
    model = load(given.model)
    tokenizer = model.tokenizer
    prompt = tokenizer.chat(given.prompt) if given.chat else tokenizer.encode(given.prompt)
    how: dict[str, Any] = {name: getattr(given, name) for name in ("tokens", "temperature", "seed")}
    how["options"] = {name: value for name in _RUN_OPTIONS if (value := getattr(given, name)) is not None}
    asked = model.request([prompt], **how)
    if given.program is not None and rank() == 0:
        Path(given.program).write_text(model.program_of(asked.form(len(prompt))).text, "utf-8")
    if given.explain:
        _explain(model, given, asked)
    elif given.json:
        steps = list(model.generate([prompt], stops=tokenizer.stops, **how))
        _print(json.dumps(_facts(steps, tokenizer, prompt)))
    else:
        for piece in model.write(prompt, **how):
            _print(piece, end="")
        _print("")


def _print(text: str, end: str = "\n") -> None:
    if rank() == 0:
        print(text, end=end, flush=True)


def _explain(model: LanguageModel, given: argparse.Namespace, asked: Request) -> None:
    options: dict[str, Any] = {name: value for name in _EXPLAIN_OPTIONS if (value := getattr(given, name)) is not None}
    if given.planner is not None:
        options["planners"] = [given.planner]
    prompt, token = (model.program_of(asked.form(tokens)) for tokens in (asked.longest, 1))
    later = {**options, "steps": max(asked.tokens - 1, 1), "fed": model.fed()}
    if asked.tokens > 1:
        options["placements"] = token.placements(**later)
    if given.json:
        plans = {"prompt": prompt.plan(**options), "token": token.plan(**later)}
        _print(json.dumps({name: json.loads(plan) for name, plan in plans.items()}))
        return
    _print(f"the prompt, {asked.longest} tokens\n{prompt.explain(**options)}")
    _print(f"each token after it\n{token.explain(**later)}")


def _facts(steps: list[Step], tokenizer: Tokenizer, prompt: Sequence[int]) -> dict[str, Any]:
    tokens = [step.tokens[0] for step in steps]
    is_ended = tokens[-1] in tokenizer.stops
    said = [token for token in tokens[: len(tokens) - is_ended] if token is not None]
    last = steps[-1].report
    return {
        "prompt": list(prompt),
        "tokens": tokens,
        "text": tokenizer.decode(said),
        "is_ended": is_ended,
        "sites": last.sites,
        "planner": last.planner,
        "seconds": [step.report.seconds for step in steps],
        "bytes_moved": [step.report.bytes_moved for step in steps],
    }
