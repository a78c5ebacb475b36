"""The experiments: what is computed, at which sizes, in which ways, and beside whom.

Sizes are those of the papers, scaled down; `tiny` ones are for checks, element by element, and for the test.
"""
import math
import re
import sys
from dataclasses import dataclass, field
from typing import Callable

from measuring import ROOT
import strategies

sys.path.insert(0, str(ROOT / "examples"))
import llama_7b  # noqa: E402

LEVELS = ("tiny", "quick", "default", "full")
EXPERIMENTS = {
    "a": ("multiplication", "Matrix multiplication (TRA paper, section 6.1)"),
    "b": ("nearest", "Nearest neighbour in a Riemannian metric (TRA paper, section 6.2)"),
    "c": ("training", "One training step of a feed-forward network (TRA paper, section 6.3; EinDecomp, experiment 2)"),
    "d": ("chains", "Chains of matrices (EinDecomp, experiment 1)"),
    "e": ("llama", "First token of LLaMA-shaped models (EinDecomp, experiment 3)"),
    "f": ("networks", "Training steps of deep networks (SoyBean, section 6)"),
    "g": ("formats", "Formats of matrices in databases (thesis on formats of matrices, chapters 3 and 11)"),
}


@dataclass(frozen=True)
class Case:
    experiment: str
    name: str
    program: str  # its text
    dims: dict  # {level: {label: extent}}; not tiny where another case is of the same program
    formula: str  # of peers.py
    ways: dict  # {name: options for a planner, or what gives the cuts for a number of sites}
    dtype: str = "f4"
    peers: tuple = ()
    scalapack: str = ""  # the labels whose extents pdgemm takes
    largest: Callable = lambda _name, _shape: 1  # of the values of an input
    scalars: Callable = lambda _dims: {}
    on_four: dict = field(default_factory=dict)  # ways on four processes alone

    def options(self, dims):
        """For these extents, and what follows from them."""
        return [*(option for label, extent in dims.items() for option in ("--dim", f"{label}={extent}")),
                *(option for name, value in self.scalars(dims).items() for option in ("--scalar", f"{name}={value}"))]


def example(name, dtype="f32"):
    text = (ROOT / "examples" / f"{name}.ein").read_text(encoding="utf-8")
    return text if dtype == "f32" else re.sub(r"^(input .*)$", rf"\1 : {dtype}", text, flags=re.MULTILINE)


def planner(name, *options):
    return ("--planner", name, *options)


def at_levels(labels, *extents):
    """{level: extents of the labels}, one row of extents for each level."""
    return {level: dict(zip(labels.split(), row, strict=True)) for level, row in zip(LEVELS, extents, strict=True)}


def multiplications():
    program = "dims i=1 j=1 k=1\ninput A[i,j], B[j,k] : f64\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n"
    ways = {"BMM": strategies.broadcast, "CMM": strategies.cross, "RMM": strategies.replication}
    sizes = {
        "general": ((96, 96, 96), (1800, 1800, 1800), (3000, 3000, 3000), (4000, 4000, 4000)),
        "common large dimension": ((40, 640, 40), (500, 24000, 500), (750, 48000, 750), (1000, 64000, 1000)),
        "two large dimensions": ((160, 32, 160), (3500, 500, 3500), (6000, 750, 6000), (8000, 1000, 8000)),
    }
    for name, rows in sizes.items():
        yield Case("a", name, program, at_levels("i j k", *rows), "matmul", ways, "f8", ("numpy", "dask"), "ijk")


def nearest_neighbours():
    program = (ROOT / "bench/papers/nearest_riemannian.ein").read_text(encoding="utf-8")
    ways = {"Horizontal": strategies.horizontal, "Vertical": strategies.vertical}
    sizes = {
        "many points": ((320, 24), (20000, 500), (60000, 1000), (150000, 1000)),
        "many features": ((16, 240), (300, 4000), (600, 8000), (1000, 12000)),
    }
    for name, rows in sizes.items():
        dims = at_levels("n d e", *((points, features, features) for points, features in rows))
        yield Case("b", name, program, dims, "nearest", ways, "f4", ("numpy", "dask", "torch"))


def training_steps():
    ways = {"data parallel": planner("data", "--batch", "b"), "model parallel": strategies.model_parallel}
    sizes = {
        "Speech": ((40, 24, 64, 6), (500, 1600, 4000, 10), (1000, 1600, 10000, 10), (2000, 1600, 20000, 10)),
        "AmazonCat": ((16, 300, 24, 32), (100, 20000, 300, 500), (100, 60000, 500, 1500), (100, 120000, 700, 3000)),
    }

    def largest(name, shape):  # so that neither relu nor sigmoid ends where it is flat
        return shape[0] ** -0.5 if name.startswith("W") else 1
    for name, rows in sizes.items():
        yield Case("c", name, example("ffnn"), at_levels("b f h l", *rows), "training_step", ways, "f4", ("torch",), "",
                   largest)


def chains():
    ways = {"sqrt": planner("sqrt"), "data": planner("data"), "all-tile": planner("all-tile")}
    for name, scales in {"uniform": (60, 1350, 2400, 3600), "skewed": (80, 1800, 3200, 4800)}.items():
        def extents(s):
            return (s, s, s, s, s) if name == "uniform" else (s, s // 10, s, s // 10, 10 * s)
        yield Case("d", name, example(f"chain_{name}", "f64"), at_levels("i j k l m", *map(extents, scales)), "chain", ways,
                   "f8", ("numpy", "dask"), "ijklm")


def language_models():
    ways = {name: planner(name) for name in ("tensor", "sequence", "heads")}
    labels = "b s e h d c m v"
    tiny = (2, 8, 48, 4, 16, 8, 64, 40)
    sizes = {
        2: (tiny, (2, 128, 512, 4, 128, 64, 1376, 2000), (4, 256, 512, 4, 128, 64, 1376, 4000),
            (4, 512, 512, 4, 128, 64, 1376, 4000)),
        4: (tiny, (2, 128, 1024, 8, 128, 64, 2752, 2000), (4, 256, 1024, 8, 128, 64, 2752, 4000),
            (4, 512, 1024, 8, 128, 64, 2752, 4000)),
    }

    def largest(name, shape):  # so that what a weight makes is about as large as what it is applied to
        columns = shape[1] * shape[2] if name.startswith("WO_") else shape[-1]
        return columns ** -0.5 if name.startswith("W") else 1
    for layers, rows in sizes.items():
        yield Case("e", f"{layers} layers, {rows[-1][2]} wide", llama_7b.program(layers), at_levels(labels, *rows), "llama",
                   ways, "f4", (), "", largest, lambda dims: {"width": dims["d"]})


ALEXNET_WINDOWS = {"rgb": 3, "dy1": 11, "dx1": 11, "dy2": 5, "dx2": 5, "dy": 3, "dx": 3, "v": 3, "u": 3}
CLASSES = 3  # that samples have, of at least as many


def alexnet_dims(batch, side, filters, units, classes):
    """Images of so many pixels a side; so many filters of the first convolution, units of the first dense layers."""
    first = (side - 11) // 4 + 1
    second, third = (first - 3) // 2 + 1, ((first - 3) // 2 - 2) // 2 + 1
    sides = {"height": side, "y1": first, "q1": second, "y2": second, "q2": third, "y3": third, "y4": third, "y5": third,
             "q5": (third - 3) // 2 + 1}
    across = {label.replace("y", "x").replace("q", "p"): extent for label, extent in sides.items() if label != "height"}
    channels = {f"c{at}": filters * part for at, part in enumerate((3, 8, 12, 12, 8), 1)}
    return {"b": batch, "width": side, **sides, **across, **channels, "h6": units, "h7": units, "l": classes,
            **ALEXNET_WINDOWS}


def vgg16_dims(batch, side, filters, units, classes):
    dims = {"b": batch, "rgb": 3, "dy": 3, "dx": 3, "v": 2, "u": 2, "h6": units, "h7": units, "l": classes}
    for group, (layers, part) in enumerate(((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)), 1):
        dims |= {f"c{group}{at}": filters * part for at in range(1, layers + 1)}
        dims |= {f"y{group}": side, f"x{group}": side, f"q{group}": side // 2, f"p{group}": side // 2}
        side //= 2
    return dims


def dense_dims(batch, units):
    return {"b": batch, **{f"h{at}": units for at in range(5)}}


def convolution_dims(batch, side, filters):
    return {"b": batch, "y": side, "x": side, "dy": 3, "dx": 3, **{f"c{at}": filters for at in range(6)}}


def networks():
    ways = {name: planner(name) for name in ("data", "model", "kcut")}
    on_four = {"hybrid 2x2": planner("hybrid:2x2")}
    sizes = {
        "AlexNet": ("alexnet", alexnet_dims, (8, 67, 2, 12, 3), (16, 67, 8, 512, 125), (64, 67, 8, 1024, 250),
                    (64, 99, 12, 2048, 500)),
        "VGG-16": ("vgg16", vgg16_dims, (8, 32, 2, 12, 3), (8, 32, 8, 256, 125), (16, 32, 16, 512, 250),
                   (16, 64, 16, 1024, 500)),
        "four dense layers, small batch": ("dense_layers", dense_dims, (8, 24), (32, 512), (128, 2048), (256, 4096)),
        "four dense layers, large batch": ("dense_layers", dense_dims, None, (128, 512), (384, 1536), (768, 3072)),
        "five convolutions, small images": ("convolution_layers", convolution_dims, (8, 6, 12), (16, 6, 64),
                                            (32, 6, 256), (64, 6, 384)),
        "five convolutions, large images": ("convolution_layers", convolution_dims, None, (8, 24, 32), (16, 24, 64),
                                            (32, 24, 96)),
    }

    def largest(name, shape):  # so that what weights make is about as large as what they are applied to
        if name == "Y" and len(shape) == 1:
            return CLASSES
        if name.startswith("K"):
            return (6 / (shape[1] * shape[2] * shape[3])) ** 0.5
        return (6 / math.prod(shape[:-1])) ** 0.5 if name.startswith("W") else 1
    for name, (file, dims_of, *rows) in sizes.items():
        dims = {level: dims_of(*row) for level, row in zip(LEVELS, rows, strict=True) if row}
        yield Case("f", name, example(file), dims, file, ways, "f4", (), "", largest, on_four=on_four)


def all_cases():
    return [*multiplications(), *nearest_neighbours(), *training_steps(), *chains(), *language_models(), *networks()]
