"""What the documents of this folder say about themselves in comments (README.md), for tests in Python."""

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Of bf16, NumPy has no numbers: here they are f32.
TYPES = {"f64": np.float64, "f32": np.float32, "bf16": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "bool": np.bool_}
EPSILONS = {"f64": 2.0**-52, "f32": 2.0**-23, "bf16": 2.0**-7, "f16": 2.0**-10}
PARTS = {"c64": "f32", "c128": "f64"}  # complex numbers have two of them, along a last label "parts"
WORDS = ("in", "expect")  # what may go on over further lines


@dataclass
class Input:
    labels: list
    dtype: str
    is_complex: bool = False


@dataclass
class Document:
    """A program with what it is run with and what must come out of it."""

    path: Path
    text: str
    directives: list  # (word, rest)

    @property
    def name(self):
        return self.path.stem

    def rests(self, word):
        return [rest for each, rest in self.directives if each == word]

    @property
    def is_refused(self):
        return bool(self.rests("error"))

    @property
    def failure(self):
        """What is said when the data stop the run."""
        return self.rests("fails")

    @property
    def has_state(self):
        return re.search(r"^\s*state \w+\[", self.text, re.M) is not None

    def assignments(self, word):
        return dict(re.findall(r"([^\s=]+)\s*=\s*([^\s=]+)", " ".join(self.rests(word))))

    def literals(self, word):
        """By tensor: the numbers, nested, and the tolerance if there is one."""
        found = {}
        for rest in self.rests(word):
            if parts := re.fullmatch(r"(\S+?)\s*=\s*([^~]+?)\s*(?:~\s*(\S+))?", rest):
                numbers = json.loads(re.sub("(-?)inf", r"\1Infinity", parts[2]))
                found[parts[1]] = numbers, float(parts[3]) if parts[3] else None
        return found

    def tolerances(self):
        """Of tensors that are compared with another one."""
        found = {}
        for rest in self.rests("same"):
            tensors, _, tolerance = rest.partition("~")
            found |= {tensor: float(tolerance) if tolerance else None for tensor in tensors.split()}
        return found

    def inputs(self):
        """Name, labels and type, as they are declared. One type holds for all the names before it that have none yet."""
        found = {}
        code = re.sub(r",\s*\n", ", ", re.sub("#.*", "", self.text))
        for declared in re.findall(r"^\s*input (.+)$", code, re.M):
            dtype = "f32"
            for name, labels, own in reversed(re.findall(r"(\w+)\[([^\]]*)\](?:\s*:\s*(\w+))?", declared)):
                dtype = own or dtype
                is_complex = dtype in PARTS
                found[name] = Input(re.findall(r"\w+", labels) + ["parts"] * is_complex, PARTS.get(dtype, dtype), is_complex)
        return found

    def dims(self):
        """Extents that have to be given: those that it says, and those that only its data have."""
        found = {label: int(extent) for label, extent in self.assignments("dim").items()}
        inputs = self.inputs()
        for name, (numbers, _) in self.literals("in").items():
            found |= dict(zip(inputs[name].labels, np.shape(numbers)))
        return {label: extent for label, extent in found.items() if label != "parts"}

    def arrays(self):
        """The inputs: what it says, or small multiples of 1/8, and small whole numbers."""
        declared = {label: int(extent) for line in re.findall(r"^\s*dims (.+(?:,[^\n]*\n.*)*)$", self.text, re.M)
                    for label, extent in re.findall(r"(\w+)=(\d+)", line)}
        extents, literals, found = declared | self.dims() | {"parts": 2}, self.literals("in"), {}
        for name, info in self.inputs().items():
            if name in literals:
                found[name] = np.array(literals[name][0], TYPES[info.dtype])
                continue
            chance = np.random.default_rng([int(self.rests("random")[0]), zlib.crc32(name.encode())])
            numbers = chance.integers(-8, 9, [extents[label] for label in info.labels])
            found[name] = (numbers > 0 if info.dtype == "bool" else numbers / 8 if info.dtype in EPSILONS else numbers).astype(TYPES[info.dtype])
        return found


def read(path):
    directives = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip().startswith("#!"):
            continue
        content = line.strip()[2:].strip()
        if directives and directives[-1][0] in WORDS and directives[-1][1].count("[") > directives[-1][1].count("]"):
            directives[-1] = directives[-1][0], directives[-1][1] + content
        else:
            word, _, rest = content.partition(" ")
            directives.append((word, rest.strip()))
    return Document(path, path.read_text(encoding="utf-8"), directives)


def stateless():
    """All that compute something in one step, also where their data stop the run."""
    documents = [read(path) for path in sorted(Path(__file__).parent.glob("*.ein"))]
    return [document for document in documents if not document.is_refused and not document.has_state]


def difference(tensor, dtype, rows, wanted, tolerance=None):
    """How a table (rows of keys and a value) differs from a tensor of that type by more than rounding; "" where it does not.

    The tolerance is for numbers up to 1, and relative to larger ones.
    """
    tolerance = tolerance or (2 if dtype in ("bf16", "f16") else 32) * EPSILONS.get(dtype, 0)
    wanted = np.asarray(wanted)
    found = {tuple(key): value for *key, value in rows}
    if len(found) != len(rows) or set(found) != set(np.ndindex(wanted.shape)):
        return f"{tensor}: {len(rows)} rows, not one for each of the elements of {wanted.shape}"
    for key in np.ndindex(wanted.shape):
        value, right = found[key], wanted[key].item()
        if dtype not in EPSILONS:
            if value != right or isinstance(value, float):
                return f"{tensor}: element {key} is {value!r}, not {right!r}"
            continue
        value = np.nan if value is None else float(value)
        is_same = value == right or (np.isnan(value) and np.isnan(right)) or abs(value - right) <= tolerance * max(1, abs(right))
        if not is_same:
            return f"{tensor}: element {key} is {value!r}, not {right!r}"
    return ""
