"""Language models and encoders from their files, as programs in the language (docs/models.md).

`load` opens a model: a folder as Hugging Face keeps it, or a GGUF file. Its computation is one program, whose text can
be printed, planned for any machine, and run; weights stay in their files until they are computed with. `encoder` opens
one that makes vectors of texts.
"""

from ._bert import BertConfig
from ._config import LlamaConfig
from ._encoder import Encoder, encoder
from ._errors import ModelError
from ._language_model import LanguageModel, Step, load, program

__all__ = [
    "BertConfig",
    "Encoder",
    "LanguageModel",
    "LlamaConfig",
    "ModelError",
    "Step",
    "encoder",
    "load",
    "program",
]
