"""What is wrong with a model's files, and packages of others that reading them needs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

Asked = ParamSpec("Asked")
Made = TypeVar("Made")


class ModelError(ValueError):
    """A model's files are damaged, do not fit together, or are of a kind that is not supported."""


def of_file(make: Callable[Concatenate[str, Asked], Made]) -> Callable[Concatenate[str, Asked], Made]:
    """Errors of what is made from the file at the first argument begin with that."""

    @functools.wraps(make)
    def made(path: str, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Made:
        try:
            return make(path, *args, **kwargs)
        except ModelError as error:
            if str(error).startswith(path):
                raise
            raise ModelError(f"{path}: {error}") from None

    return made


def missing(where: Path) -> ModelError:
    """There is nothing at a path: it may be a name in the Hub, which nothing is fetched from."""
    return ModelError(
        f"{where}: there is no such file or folder here, and nothing is downloaded; give a folder with config.json and "
        ".safetensors, or a GGUF file"
    )


def needed(package: str, purpose: str) -> Any:
    """A package that is only needed for some models, or an error that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ModelError(f"{purpose} needs the package {name}: pip install {name}") from None
