"""What is wrong with a model's files, and packages of others that reading them needs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any


class ModelError(ValueError):
    """A model's files are damaged, do not fit together, or are of a kind that is not supported."""


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
