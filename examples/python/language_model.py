# %% [markdown]
# # A language model: its plan for eight GPUs, and one that writes here
# A model of LLaMA's kind is one program in the language. Its configuration is enough to plan it for a machine that you
# do not have; to run it takes its weights, too.

# %%
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import einrel as er

# %% [markdown]
# ## The plan of LLaMA 3 with 8 billion parameters
# This is its config.json. A prompt of 2048 tokens is computed at once, the tokens after it one by one, in the same
# program with another extent. A machine is one of `einrel list machines`, or a file.

# %%
LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_position_embeddings": 8192,
}
folder = Path(tempfile.mkdtemp())
(folder / "config.json").write_text(json.dumps(LLAMA_8B))
for tokens in (2048, 1):
    program = er.models.program(folder, tokens=tokens, capacity=4096)
    plan = program.explain(sites=8, machine="h100-server")
    print(f"{tokens} tokens at a time", *plan.splitlines()[4:10], sep="\n")

# %% [markdown]
# ## A model that writes
# `python examples/python/language_model.py MODEL` takes a folder with config.json and .safetensors, or a GGUF file.
# Without one we make a small model of random numbers, whose tokens mean nothing.


# %%
def write_random_model(folder: Path) -> None:
    """A folder as Hugging Face keeps it: a configuration, and a .safetensors, which is JSON and then the elements."""
    own = {**LLAMA_8B, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 100}
    own |= {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(own))
    shapes = {"model.embed_tokens.weight": [100, 64], "model.norm.weight": [64]}
    for layer in range(2):
        name = f"model.layers.{layer}"
        shapes |= {f"{name}.{norm}_layernorm.weight": [64] for norm in ("input", "post_attention")}
        shapes |= {f"{name}.self_attn.{part}_proj.weight": [64, 64] for part in "qo"}
        shapes |= {f"{name}.self_attn.{part}_proj.weight": [32, 64] for part in "kv"}
        shapes |= {f"{name}.mlp.{part}_proj.weight": [128, 64] for part in ("gate", "up")}
        shapes |= {f"{name}.mlp.down_proj.weight": [64, 128]}
    rng, header, data = np.random.default_rng(1), {}, b""
    for name, shape in shapes.items():
        elements = rng.standard_normal(shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(elements)]}
        data += elements
    start = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(start).to_bytes(8, "little") + start + data)


is_given = len(sys.argv) > 1 and Path(sys.argv[1]).exists()
if not is_given:
    write_random_model(folder)
model = er.models.load(sys.argv[1] if is_given else folder)
prompt = model.tokenizer.encode("The capital of France is") if is_given else [3, 1, 4, 1, 5]
written = [step.tokens[0] for step in model.generate([prompt], tokens=12)]
print(model.tokenizer.decode(written) if is_given else written)

# %% [markdown]
# ## The same on four sites
# Each tensor is cut as a plan says, here in one process. The tokens stay the same; `step.report` says what moved.

# %%
steps = list(model.generate([prompt], tokens=12, options={"sites": 4, "planner": "tensor"}))
print([step.tokens[0] for step in steps] == written, [step.report.bytes_moved for step in steps][:3])
