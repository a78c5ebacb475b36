"""Language models from their files, as programs in the language (docs/models.md).

`load` opens a model: a folder as Hugging Face keeps it, or a GGUF file. Its computation is one program, whose text can
be printed, planned for any machine, and run; weights stay in their files until they are computed with.
"""

from ._config import LlamaConfig
from ._errors import ModelError
from ._language_model import LanguageModel, Step, load, program

__all__ = ["LanguageModel", "LlamaConfig", "ModelError", "Step", "load", "program"]
