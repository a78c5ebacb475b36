#include "export/torch_texts.h"

namespace einrel {

const char* const torch_imports = R"py(import os
import time

import numpy as np
import torch
import torch.distributed as dist
)py";

const char* const torch_mesh = R"py(

class Line:
    """The devices that differ along some axes of the mesh, in order of their coordinates, the major axis first."""

    def __init__(self, ranks, here, group):
        self.ranks = ranks
        self.place = ranks.index(here)
        self.group = group  # in which torch numbers processes by their ranks
        self.order = [sorted(ranks).index(rank) for rank in ranks]
        self.by_rank = [ranks.index(rank) for rank in sorted(ranks)]


class Mesh:
    """The devices that the plan is for, one of each process, in a grid with the axes of MESH."""

    def __init__(self, device):
        self.device = device
        self.size = int(np.prod(list(MESH.values())))
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self._lines = {axes: self._line(axes) for axes in LINES}

    def _line(self, axes):
        grid = np.arange(self.size).reshape(tuple(MESH.values()))
        names = list(MESH)
        to = [names.index(axis) for axis in (*(name for name in names if name not in axes), *axes)]
        length = int(np.prod([MESH[axis] for axis in axes]))
        lines = grid.transpose(to).reshape(-1, length).tolist()
        groups = [dist.new_group(line) for line in lines]  # every process makes all of them
        return next(Line(line, self.rank, group) for line, group in zip(lines, groups) if self.rank in line)

    def line(self, *axes):
        """The devices along these axes that this one is among."""
        return self._lines[axes]

    def place(self, *axes):
        """This device's coordinate on these axes, the major first."""
        at = dict(zip(MESH, np.unravel_index(self.rank, tuple(MESH.values()))))
        place = 0
        for axis in axes:
            place = place * MESH[axis] + int(at[axis])
        return place

    def positions(self, count, *axes):
        """The positions, in the whole tensor, of this device's part of a label."""
        return self.place(*axes) * count + torch.arange(count, device=self.device)
)py";

// As bytes, since gloo knows no bf16.
const char* const torch_collectives = R"py(

def _bytes(array):
    """The memory of a contiguous array, as what every backend can send."""
    return array.as_strided((array.numel(),), (1,)).view(torch.uint8)


def _exchange(parts, line):
    """Each part goes to the device at its place on the line; what comes, in the order of places."""
    sent = torch.stack([parts[place] for place in line.by_rank])
    found = torch.empty_like(sent)
    dist.all_to_all_single(_bytes(found), _bytes(sent), group=line.group)
    return [found[rank] for rank in line.order]


def _all_to_all(array, line, split, joined):
    """What is cut along one dimension is cut along another."""
    return torch.cat(_exchange(array.chunk(len(line.ranks), split), line), joined)


def _all_gather(array, line, dimension):
    """The parts of all devices, one after the other."""
    found = array.new_empty((len(line.ranks), *array.shape))
    dist.all_gather([_bytes(part) for part in found], _bytes(array.contiguous()), group=line.group)
    return torch.cat([found[rank] for rank in line.order], dimension)


def _permute(array, line, pairs):
    """Arrays go from the first to the second place of each pair."""
    array = array.contiguous()
    found = torch.empty_like(array, memory_format=torch.contiguous_format)
    moves = []
    for source, target in pairs:
        if source == target == line.place:
            found = array
        elif source == line.place:
            moves.append(dist.P2POp(dist.isend, _bytes(array), line.ranks[target]))
        elif target == line.place:
            moves.append(dist.P2POp(dist.irecv, _bytes(found), line.ranks[source]))
    for move in dist.batch_isend_irecv(moves) if moves else ():
        move.wait()
    return found


def _reduce_scatter(array, line, dimension):
    """This device's part of the sum, added up in the order of places: the same bits wherever it runs."""
    return torch.stack(_exchange(array.chunk(len(line.ranks), dimension), line)).sum(0, dtype=array.dtype)


def _all_reduce(array, line, how):
    """The sum, the largest or the least of all devices, on each."""
    array = array.contiguous()
    ways = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
    dist.all_reduce(array, ways[how], group=line.group)
    return array
)py";

const char* const torch_extreme = R"py(

def _extreme(array, line, how):
    """The largest or the least of all devices, NaN where one is: compared as integers, which collectives keep as they are."""
    integer = torch.int32 if array.dtype == torch.float32 else torch.int64
    limit, sign_bit = torch.iinfo(integer).max, torch.iinfo(integer).bits - 1
    array = torch.where(torch.isnan(array), torch.full_like(array, torch.nan), array if how == "max" else -array)
    bits = array.contiguous().view(integer)
    bits = _all_reduce(bits ^ ((bits >> sign_bit) & limit), line, "max")
    found = (bits ^ ((bits >> sign_bit) & limit)).view(array.dtype)
    return found if how == "max" else -found
)py";

const char* const torch_read = R"py(

def _read(array, indices, pad=None):
    """The elements at these positions; outside of the array `pad`, or what is nearest."""
    inside, nearest = True, []
    for index, extent in zip(indices, array.shape):
        index = torch.as_tensor(index, device=array.device)
        inside = inside & (index >= 0) & (index < extent)
        nearest.append(index.clamp(0, extent - 1))
    found = array[tuple(nearest)]
    return found if pad is None else torch.where(inside, found, torch.as_tensor(pad, dtype=array.dtype, device=array.device))
)py";

const char* const torch_rounding = R"py(

def _rounded(values, dtype):
    """Rounded to what bf16 or f16 can hold, once: a cast of float64 rounds to float32 first."""
    limits, digits = torch.finfo(dtype), {torch.bfloat16: 8, torch.float16: 11}[dtype]
    values = values.to(torch.float64)
    exponent = torch.frexp(values)[1].clamp(min=int(np.log2(limits.tiny)) + 1)
    unit = 2.0 ** (exponent - digits).to(torch.float64)
    rounded = torch.round(values / unit) * unit
    return torch.where(rounded.abs() > limits.max, torch.sign(rounded) * torch.inf, rounded)
)py";

const char* const torch_to_integer = R"py(

def _to_integer(values, dtype):
    """Without the fraction; numbers that are too large become the largest, NaN becomes 0."""
    limits = torch.iinfo(dtype)
    values = torch.trunc(values.masked_fill(torch.isnan(values), 0))
    above, below = values >= -float(limits.min), values <= limits.min
    whole = values.masked_fill(above | below, 0).to(dtype)
    return whole.masked_fill(above, limits.max).masked_fill(below, limits.min)
)py";

const char* const torch_whole_power = R"py(

def _whole_power(base, exponent):
    """Powers of integers: below 0, what is whole of them."""
    below = torch.where(base == -1, 1 - 2 * (exponent & 1), (base == 1).to(exponent.dtype)).to(base.dtype)
    return torch.where(exponent < 0, below, torch.pow(base, exponent.clamp(min=0)))
)py";

const char* const torch_philox = R"py(

def _words(seed, position, iteration, stream):
    """Four random words of 32 bits: Philox 4x32-10 (Salmon et al. 2011) of where they stand."""
    mask = 0xFFFFFFFF
    seed, position, iteration = (each.to(torch.int64) for each in (seed, position, iteration))
    a, b, c, d = position & mask, position >> 32 & mask, iteration & mask, stream
    low, high = seed & mask, seed >> 32 & mask
    for _ in range(10):  # products modulo 2**64, whose signs say nothing
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32 & mask) ^ b ^ low, second & mask, (first >> 32 & mask) ^ d ^ high, first & mask
        low, high = low + 0x9E3779B9 & mask, high + 0xBB67AE85 & mask
    return a, b, c, d


def _bits(high, low):
    """53 bits of two words."""
    return (high << 32 | low) >> 11 & 2**53 - 1
)py";

const char* const torch_uniform = R"py(

def _uniform(seed, position, iteration, stream, dtype):
    """From 0 up to, but not including, 1."""
    bits = _bits(*_words(seed, position, iteration, stream)[:2])
    if dtype == torch.float32:
        return ((bits >> 29).to(torch.float64) * 2.0**-24).to(dtype)
    return bits.to(torch.float64) * 2.0**-53
)py";

const char* const torch_normal = R"py(

def _normal(seed, position, iteration, stream, dtype):
    """Mean 0, deviation 1, by Box and Muller's transform."""
    a, b, c, d = _words(seed, position, iteration, stream)
    radius = torch.sqrt(-2 * torch.log((_bits(a, b).to(torch.float64) + 0.5) * 2.0**-53))
    return (radius * torch.cos(2 * np.pi * _bits(c, d).to(torch.float64) * 2.0**-53)).to(dtype)
)py";

const char* const torch_frame = R"py(

def make_mesh(device=None):
    """The mesh that the plan is for, of the processes that torchrun has started, each with this device."""
    if device is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else "cpu"
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized() and "RANK" in os.environ:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    count = int(np.prod(list(MESH.values())))
    here = dist.get_world_size() if dist.is_initialized() else 1
    if here != count:
        raise ValueError(
            f"the plan is for {count} devices, and here are {here}: plan with --sites {here}, or start as many processes "
            f"as it is for, as torchrun --nproc_per_node {count} does"
        )
    return Mesh(device)


def _part(mesh, whole, cut):
    """This device's part of a whole tensor."""
    for dimension, axes in enumerate(cut):
        extent = whole.shape[dimension] // int(np.prod([MESH[axis] for axis in axes]))
        whole = whole.narrow(dimension, mesh.place(*axes) * extent, extent)
    return whole


def _placed(mesh, name, array, cut):
    """This device's part of an array, with the type of INPUTS or STATES."""
    shape, dtype, _ = (INPUTS if name in INPUTS else STATES)[name]
    if not isinstance(array, torch.Tensor):
        array = np.asarray(array)
        is_bf16 = array.dtype.kind == "V" and array.dtype.itemsize == 2  # of NumPy, which has no such numbers, by their bits
        array = torch.as_tensor(array.view(np.int16)).view(torch.bfloat16) if is_bf16 else torch.as_tensor(array)
    if tuple(array.shape) != shape:
        raise ValueError(f"{name} has the shape {shape} in this program, and here it has {tuple(array.shape)}")
    part = _part(mesh, array, cut)
    cast = part.to(dtype)
    if (part.is_complex() or not dtype.is_floating_point) and not torch.equal(cast.to(part.dtype), part):
        raise ValueError(f"{name} is of {dtype} in this program, which cannot hold all elements of this {part.dtype}")
    return cast.to(mesh.device).clone(memory_format=torch.contiguous_format)


def place(mesh, arrays):
    """Whole arrays by name, the same in every process, as the parts that INPUTS and STATES say; without those of UNREAD."""
    arrays = {name: array for name, array in arrays.items() if name not in UNREAD}
    for name in arrays:
        if name not in INPUTS and name not in STATES:
            raise ValueError(f"{name} is no tensor of this program; it has {', '.join([*INPUTS, *STATES])}")
    cuts = {name: cut for name, (_, _, cut) in {**INPUTS, **STATES}.items()}
    return {name: _placed(mesh, name, array, cuts[name]) for name, array in arrays.items()}


def whole(mesh, arrays):
    """What `place` and `step` give, by name, put together from all devices; every process has to call it."""
    found = {}
    for name, array in arrays.items():
        _, _, cut = {**INPUTS, **STATES, **OUTPUTS}[name]
        for dimension, axes in enumerate(cut):
            array = _all_gather(array, mesh.line(*axes), dimension) if axes else array
        found[name] = array
    return found


def _named(arrays, names):
    """Those of the arrays by name."""
    if missing := [name for name in names if name not in arrays]:
        raise ValueError(f"there is no array for {', '.join(missing)}")
    return {name: arrays[name] for name in names}


def step(mesh):
    """A function from INPUTS and STATES by name to OUTPUTS and the next STATES; of each, this device's part."""

    @torch.no_grad()
    def run(arrays):
        return _program(_named(arrays, INPUTS), _named(arrays, STATES), mesh)

    return run


@torch.no_grad()
def initial_states(mesh, inputs=None):
    """This device's parts of the states before the first step; of whole `inputs` where the program computes them so."""
    read = {name: _placed(mesh, name, array, ()) for name, array in _named(inputs or {}, READ_BY_INITIAL).items()}
    found = _initial(read, mesh)
    return {name: _part(mesh, found[name], cut).contiguous() for name, (_, _, cut) in STATES.items()}
)py";

const char* const torch_main = R"py(

def main():
    random = np.random.default_rng(0)
    mesh = make_mesh()
    inputs = {name: torch.as_tensor(random.normal(size=shape)).to(dtype) for name, (shape, dtype, _) in INPUTS.items()}
    arrays = place(mesh, inputs)
    arrays.update(initial_states(mesh, inputs))
    one = step(mesh)
    steps = 10
    for count in (1, steps):  # the first makes connections
        start = time.perf_counter()
        for _ in range(count):
            arrays.update(one(arrays))
        if mesh.device.type == "cuda":
            torch.cuda.synchronize()
    if mesh.rank == 0:
        print(f"{(time.perf_counter() - start) / steps:.3g} seconds a step on {mesh.size} of {mesh.device.type}")


if __name__ == "__main__":
    main()
)py";

}  // namespace einrel
