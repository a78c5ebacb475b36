"""Where arrays of JAX lie on devices already, as the placements that plans take (docs/export.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ._compute import by_name, placement_of
from ._native import ProgramError

Digits = tuple[tuple[str, int], ...]  # a dimension by its number, or copies, and how many sites

_MOST_AXES: Final = 6  # of a mesh, whose orders are searched for one that a plan can have


class Lying(NamedTuple):
    """Where arrays lie: on the devices that sites are, in their order; nowhere in particular without any."""

    devices: tuple[Any, ...]
    placements: tuple[tuple[str, Digits], ...]


def lying(arrays: Mapping[str, Any], sites: int | None) -> Lying:
    """Where those of the arrays lie that are on several devices, by the names that messages call them.

    Raises ProgramError for arrays that lie as no plan can say, or on other devices than each other, or than `sites`.
    """
    spread = {name: array for name, array in arrays.items() if _device_count(array) > 1}
    devices: tuple[Any, ...] = ()
    placements = []
    for name, array in spread.items():
        devices = devices or _in_order(array.sharding)
        if array.sharding.device_set != set(devices):
            raise ProgramError(
                f"{name} and {next(iter(spread))} lie on different devices, and one program is for all of them: put "
                "one of them elsewhere by jax.device_put"
            )
        if sites not in (None, len(devices)):
            raise ProgramError(
                f"{name} lies on {len(devices)} devices, and the plan is for sites={sites}: plan for as many, or give "
                "the array on one device"
            )
        digits = _digits(array, devices)
        if digits is None:
            raise ProgramError(f"{name} lies as no plan has it, {array.sharding}: {_fault(array, devices)}")
        placements.append((name, digits))
    return Lying(devices, tuple(placements))


def with_lying(options: Mapping[str, Any], lies: Lying) -> Mapping[str, Any]:
    """Options of a plan that takes arrays from where they lie.

    Raises ProgramError where the option `placements` says otherwise.
    """
    if not lies.placements:
        return options
    said = by_name("placements", options.get("placements"), "{'x': {0: 4}}", placement_of)
    for name, digits in lies.placements:
        if name in said and _joined(said[name]) != _joined(digits):
            raise ProgramError(
                f"placements[{name!r}] says {_shown(said[name])}, and the array lies on {len(lies.devices)} devices as "
                f"{_shown(digits)}: leave it out of placements, or put the array there by jax.device_put"
            )
    return {**options, "sites": len(lies.devices), "placements": {**said, **dict(lies.placements)}}


def _joined(digits: Iterable[tuple[str, int]]) -> Digits:
    """The same digits, those of 1 left out, and neighbours along one dimension as one."""
    joined: list[tuple[str, int]] = []
    for along, count in digits:
        if joined and joined[-1][0] == along:
            joined[-1] = along, joined[-1][1] * count
        elif count > 1:
            joined.append((along, count))
    return tuple(joined)


def _shown(digits: Iterable[tuple[str, int]]) -> str:
    """As a mapping of placements, or as pairs, where copies come twice."""
    parts = [f"{along if along.isdecimal() else repr(along)}: {count}" for along, count in digits]
    return "{" + ", ".join(parts) + "}"


def _device_count(array: Any) -> int:
    return len(array.sharding.device_set) if hasattr(array, "sharding") else 1


def _in_order(sharding: Any) -> tuple[Any, ...]:
    """The devices of a sharding, as its mesh numbers them if it has one."""
    if hasattr(sharding, "mesh"):
        return tuple(sharding.mesh.devices.flat)
    return tuple(sorted(sharding.device_set, key=lambda device: device.id))


def _prime_factors(number: int) -> list[int]:
    factors = []
    prime = 2
    while number > 1:
        while number % prime == 0:
            factors.append(prime)
            number //= prime
        prime += 1
    return factors


def _digits(array: Any, devices: Sequence[Any]) -> Digits | None:
    """The digits of a site's number, the highest first, that say which part of an array a device has; None for none."""
    of_device = array.sharding.devices_indices_map(array.shape)
    boxes = [
        tuple(part.indices(extent)[:2] for part, extent in zip(of_device[device], array.shape)) for device in devices
    ]
    digits: list[tuple[str, int]] = []
    stride = len(devices)
    for factor in _prime_factors(len(devices)):
        stride //= factor
        changed = [d for d in range(array.ndim) if boxes[stride][d] != boxes[0][d]]
        along = str(changed[0]) if changed else "copies"
        before = digits.pop()[1] if digits and digits[-1][0] == along else 1
        digits.append((along, before * factor))
    found = tuple(digits)
    return found if boxes == [_box(array.shape, found, site) for site in range(len(devices))] else None


def _box(shape: Sequence[int], digits: Digits, site: int) -> tuple[tuple[int, int], ...]:
    """What these digits say of one site: begin and end of each dimension."""
    box = [(0, extent) for extent in shape]
    for along, count in reversed(digits):
        site, part = divmod(site, count)
        if along != "copies":
            extent = shape[int(along)]
            box[int(along)] = extent * part // count, extent * (part + 1) // count
    return tuple(box)


def _fault(array: Any, devices: Sequence[Any]) -> str:
    """Why no plan has an array so, of which the sites are these devices, and what to do about it."""
    if tuple(devices) != _in_order(array.sharding):
        return (
            "its mesh has the devices in another order than those of the other arrays; put all on one mesh by "
            "jax.device_put"
        )
    if not hasattr(array.sharding, "mesh") or not hasattr(array.sharding, "spec"):
        return "its parts are no rows of a mesh of devices; put it on a mesh by jax.device_put"
    mesh = array.sharding.mesh
    return f"{_broken_rule(mesh, array.sharding.spec)}; {_remedy(array, mesh)}"


def _broken_rule(mesh: Any, spec: Sequence[Any]) -> str:
    """Which rule for dimensions and axes of a mesh is not kept."""
    sizes = {axis: size for axis, size in mesh.shape.items() if size > 1}
    order = list(sizes)
    for dimension, entry in enumerate(spec):
        taken = [axis for axis in (entry if isinstance(entry, tuple) else (entry,)) if axis in sizes]
        places = [order.index(axis) for axis in taken]
        if places != sorted(places):
            return f"its dimension {dimension} takes the axes {_listed(taken)} in another order than the mesh has them"
        if places and places != list(range(places[0], places[0] + len(places))):
            return f"its dimension {dimension} takes the axes {_listed(taken)}, which are no neighbours in the mesh"
    factors = _prime_factors(math.prod(sizes.values()))
    return (
        f"the mesh is {_product(sizes.values())}, and plans divide {mesh.size} devices by {_product(factors)} in this "
        "order, of which axes are neighbouring factors"
    )


def _remedy(array: Any, mesh: Any) -> str:
    """What to do: another order of the axes, if a plan can have one."""
    axes = range(len(mesh.axis_names))
    for order in itertools.permutations(axes) if len(axes) <= _MOST_AXES else ():
        if _digits(array, tuple(mesh.devices.transpose(order).flat)) is not None:
            names = [mesh.axis_names[axis] for axis in order]
            return (
                f"put it on the mesh jax.sharding.Mesh(mesh.devices.transpose{order}, {tuple(names)}) by "
                "jax.device_put, with the same PartitionSpec: each device keeps what it has"
            )
    return "put it elsewhere by jax.device_put"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _product(numbers: Iterable[int]) -> str:
    return " x ".join(map(str, numbers))
