"""The bytes that a program compiled by XLA moves, as its text (HLO) says."""

from __future__ import annotations

import math
import re

SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "f32": 4} | dict.fromkeys(("s64", "u64", "f64"), 8)
COLLECTIVE = re.compile(
    r"= (?P<type>\(?[^=]*?\)?) (?P<op>all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(-start)?\("
    r"(?P<rest>.*)"
)


def _bytes_of(types: str) -> int:
    shapes = re.findall(r"(\w+)\[([\d,]*)\]", types)
    return sum(SIZES[kind] * math.prod(int(extent) for extent in shape.split(",") if extent) for kind, shape in shapes)


def _group(rest: str, devices: int) -> int:
    """How many devices a collective is among."""
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]", rest):
        return int(found[1])
    if found := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
        return len(found[1].split(","))
    return devices


def collective_bytes(hlo: str, devices: int) -> int:
    """Bytes that all devices receive from others in a compiled program, each collective as a ring moves it."""
    total = 0.0
    for line in hlo.splitlines():
        found = COLLECTIVE.search(re.sub(r"/\*.*?\*/", "", line))  # of long tuples, XLA writes the index of every fifth
        if not found:
            continue
        size = _bytes_of(found["type"])
        if found["op"] == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{(.*?\})\}", found["rest"])
            assert pairs, line
            total += size * sum(source != target for source, target in re.findall(r"\{(\d+),(\d+)\}", pairs[1]))
            continue
        group = _group(found["rest"], devices)
        others = group - 1
        times = {"all-gather": others / group, "all-to-all": others / group, "all-reduce": 2 * others / group}
        total += devices * size * times.get(found["op"], others)
    return round(total)
