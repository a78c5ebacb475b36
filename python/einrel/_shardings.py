"""Where arrays of JAX lie on devices already, as the placements that plans take (docs/export.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ._native import ProgramError

Digits = tuple[tuple[str, int], ...]  # a dimension by its number, or copies, and how many sites


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
            raise ProgramError(
                f"{name} lies as no plan has it, {array.sharding}: a dimension takes neighbouring axes of the mesh, in "
                "the order of the mesh, and even parts; put it elsewhere by jax.device_put"
            )
        placements.append((name, digits))
    return Lying(devices, tuple(placements))


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
