"""Prints llama_7b.ein: the layer of llama_layer.ein as often as the model has layers, and what comes after them.

Usage: python3 examples/llama_7b.py --layers 32 > examples/llama_7b.ein
"""

import argparse
import os
import re

HEAD = """\
# Computes the language model LLaMA-7B over a whole prompt, from the embedded tokens X to the logits of what follows each
# token; those of the last one give the first token of the answer (prefill). Printed by llama_7b.py from llama_layer.ein,
# where the labels are explained. Everything of layer 7 ends in _7, and X_7 is what enters it.
#   einrel run examples/llama_7b.ein --random 1 --dim b=1 --dim s=16 --dim e=128 --dim h=1 --dim m=344 --dim v=500
"""
TAIL = """
# the logits
input G[e], WOut[v,e]
N[b,s,e] = rmsnorm[e](X_LAST[b,s,e], 1e-6) * G[e]
Logits[b,s,v] = sum[e] N[b,s,e] * WOut[v,e]
output Logits
"""


def statements(text):
    return "\n".join(line for line in text.splitlines() if not line.startswith(("#", "output")))


def numbered(layer, number):
    """The layer with its number behind the name of every tensor but the tables that all layers share."""
    text = re.sub(r"\b(?!Cos|Sin)([A-Z]\w*)\[", rf"\1_{number}[", layer)
    return text.replace(f"Z_{number}[", f"X_{number + 1}[")


def program(layers):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_layer.ein"), encoding="utf-8") as file:
        shared, layer = map(statements, file.read().split("\n\n"))
    parts = [HEAD + "dims v=32000  # the vocabulary\n" + shared.replace("input X[", "input X_1[")]
    parts += [f"# layer {number}\n" + numbered(layer, number) for number in range(1, layers + 1)]
    return "\n\n".join(parts) + "\n" + TAIL.replace("X_LAST", f"X_{layers + 1}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    print(program(parser.parse_args().layers), end="")
