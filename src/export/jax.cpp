#include "export/jax.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "export/device_module.h"

namespace einrel {
namespace {

constexpr const char* jax_imports = R"py(import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_enable_x64", True)
)py";

constexpr const char* jax_positions = R"py(

def _positions(extent, axes=()):
    """The positions, in the whole tensor, of this device's part of a label."""
    return (lax.axis_index(axes) * extent if axes else 0) + jnp.arange(extent)
)py";

constexpr const char* jax_read = R"py(

def _read(array, indices, pad=None):
    """The elements at these positions; outside of the array, `pad`."""
    if pad is None:
        return array[indices]
    inside = True
    for index, extent in zip(indices, array.shape):
        inside &= (jnp.asarray(index) >= 0) & (jnp.asarray(index) < extent)
    return jnp.where(inside, array.at[indices].get(mode="clip"), jnp.asarray(pad, array.dtype))
)py";

constexpr const char* jax_half = R"py(

def _half(values):
    """Rounded to what f16 can hold; XLA's reduce_precision makes its subnormal numbers 0."""
    subnormal = jnp.round(values * 2.0**24) * 2.0**-24
    return jnp.where(jnp.abs(values) < 2.0**-14, subnormal, lax.reduce_precision(values, 5, 10))
)py";

constexpr const char* jax_integer = R"py(

def _to_integer(values, dtype):
    """Without the fraction; numbers that are too large become the largest, NaN becomes 0."""
    limits = jnp.iinfo(dtype)
    values = jnp.trunc(jnp.where(jnp.isnan(values), 0, values))
    whole = jnp.where(values >= -float(limits.min), 0, jnp.where(values <= limits.min, 0, values)).astype(dtype)
    return jnp.where(values >= -float(limits.min), limits.max, jnp.where(values <= limits.min, limits.min, whole))
)py";

constexpr const char* jax_whole_power = R"py(

def _whole_power(base, exponent):
    """Powers of integers: below 0, what is whole of them."""
    base, exponent = jnp.asarray(base), jnp.asarray(exponent)
    below = jnp.where(base == 1, 1, jnp.where(base == -1, 1 - 2 * (exponent & 1), 0)).astype(base.dtype)
    return jnp.where(exponent < 0, below, jnp.power(base, jnp.maximum(exponent, 0)))
)py";

constexpr const char* jax_philox = R"py(

def _words(seed, position, iteration, stream):
    """Four random words of 32 bits: Philox 4x32-10 (Salmon et al. 2011) of where they stand."""
    mask = np.uint64(0xFFFFFFFF)
    seed, position, iteration = (jnp.asarray(each, jnp.int64).astype(jnp.uint64) for each in (seed, position, iteration))
    shift = np.uint64(32)
    a, b, c, d = position & mask, position >> shift, iteration & mask, jnp.uint64(stream)
    low, high = seed & mask, seed >> shift
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (second >> shift) ^ b ^ low, second & mask, (first >> shift) ^ d ^ high, first & mask
        low, high = (low + np.uint64(0x9E3779B9)) & mask, (high + np.uint64(0xBB67AE85)) & mask
    return a, b, c, d


def _bits(high, low):
    """53 bits of two words."""
    return (high << np.uint64(32) | low) >> np.uint64(11)
)py";

constexpr const char* jax_uniform = R"py(

def _uniform(seed, position, iteration, stream, dtype):
    """From 0 up to, but not including, 1."""
    bits = _bits(*_words(seed, position, iteration, stream)[:2])
    if dtype == jnp.float32:
        return ((bits >> np.uint64(29)).astype(jnp.float64) * 2.0**-24).astype(dtype)
    return bits.astype(jnp.float64) * 2.0**-53
)py";

constexpr const char* jax_normal = R"py(

def _normal(seed, position, iteration, stream, dtype):
    """Mean 0, deviation 1, by Box and Muller's transform."""
    a, b, c, d = _words(seed, position, iteration, stream)
    radius = jnp.sqrt(-2 * jnp.log((_bits(a, b).astype(jnp.float64) + 0.5) * 2.0**-53))
    return (radius * jnp.cos(2 * np.pi * _bits(c, d).astype(jnp.float64) * 2.0**-53)).astype(dtype)
)py";

constexpr const char* jax_frame = R"py(

def make_mesh(devices=None):
    """The mesh that the plan is for, of these devices, or the first that there are."""
    count = int(np.prod(list(MESH.values())))
    devices = np.asarray(jax.devices()[:count] if devices is None else devices)
    if devices.size != count:
        raise ValueError(
            f"the plan is for {count} devices, and here are {devices.size}: plan with --sites {devices.size}, or on CPUs "
            f"set XLA_FLAGS=--xla_force_host_platform_device_count={count} before Python starts"
        )
    return Mesh(devices.reshape(tuple(MESH.values())), tuple(MESH))


def _checked(name, array):
    """The array with the type of INPUTS or STATES; on the host, unless it was on devices."""
    if name not in INPUTS and name not in STATES:
        raise ValueError(f"{name} is no tensor of this program; it has {', '.join([*INPUTS, *STATES])}")
    shape, dtype, _ = (INPUTS if name in INPUTS else STATES)[name]
    array = array if isinstance(array, jax.Array) else np.asarray(array)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {shape} in this program, and here it has {array.shape}")
    cast = array.astype(dtype)
    may_lose = jnp.issubdtype(array.dtype, jnp.complexfloating) or not jnp.issubdtype(dtype, jnp.floating)
    if array.dtype != cast.dtype and may_lose and not np.array_equal(cast, array):
        raise ValueError(f"{name} is of {cast.dtype} in this program, which cannot hold all elements of this {array.dtype}")
    return cast


def place(mesh, arrays):
    """Arrays by name, each where INPUTS or STATES says; those of UNREAD are left out."""
    specs = {name: spec for name, (_, _, spec) in {**INPUTS, **STATES}.items()}
    checked = {name: _checked(name, array) for name, array in arrays.items() if name not in UNREAD}
    return {name: jax.device_put(array, NamedSharding(mesh, specs[name])) for name, array in checked.items()}


def _named(arrays, names):
    """Those of the arrays by name."""
    if missing := [name for name in names if name not in arrays]:
        raise ValueError(f"there is no array for {', '.join(missing)}")
    return {name: arrays[name] for name in names}


def step(mesh):
    """A function from INPUTS and STATES by name to OUTPUTS and the next STATES; it takes the memory of the states."""

    def specs(tensors):
        return {name: spec for name, (_, _, spec) in tensors.items()}

    program = jax.shard_map(
        _program,
        mesh=mesh,
        in_specs=(specs(INPUTS), specs(STATES)),
        out_specs={**specs(OUTPUTS), **specs(STATES)},
        check_vma=False,
    )
    jitted = jax.jit(program, donate_argnums=1)

    def run(arrays):
        return jitted(_named(arrays, INPUTS), _named(arrays, STATES))

    run.lower = lambda arrays: jitted.lower(_named(arrays, INPUTS), _named(arrays, STATES))
    return run


def initial_states(mesh, inputs=None):
    """The states before the first step, where the plan keeps them; of `inputs` where the program computes them so."""
    shardings = {name: NamedSharding(mesh, spec) for name, (_, _, spec) in STATES.items()}
    checked = {name: _checked(name, array) for name, array in _named(inputs or {}, READ_BY_INITIAL).items()}
    return jax.jit(_initial, out_shardings=shardings)(checked)
)py";

constexpr const char* jax_main = R"py(

def main():
    random = np.random.default_rng(0)
    mesh = make_mesh()
    inputs = {name: np.asarray(random.normal(size=shape)).astype(dtype) for name, (shape, dtype, _) in INPUTS.items()}
    arrays = place(mesh, inputs)
    arrays.update(initial_states(mesh, arrays))
    one = step(mesh)
    steps = 10
    for count in (1, steps):  # the first compiles
        start = time.perf_counter()
        for _ in range(count):
            arrays.update(jax.block_until_ready(one(arrays)))
    print(f"{(time.perf_counter() - start) / steps:.3g} seconds a step on {mesh.size} of {jax.devices()[0].platform}")


if __name__ == "__main__":
    main()
)py";

const char* const jax_extreme = R"py(

def _extreme(array, axes, how):
    """The largest or the least of all devices, NaN where one is: compared as integers, which collectives keep as they are."""
    integer = jnp.int32 if array.dtype == jnp.float32 else jnp.int64
    limit, sign_bit = jnp.iinfo(integer).max, jnp.iinfo(integer).bits - 1
    array = jnp.where(jnp.isnan(array), jnp.nan, array if how == "max" else -array)
    bits = lax.bitcast_convert_type(array, integer)
    bits = lax.pmax(bits ^ ((bits >> sign_bit) & limit), axes)
    found = lax.bitcast_convert_type(bits ^ ((bits >> sign_bit) & limit), array.dtype)
    return found if how == "max" else -found
)py";

std::string jax_helpers(const ModuleNeeds& needs) {
  std::string text;
  if (needs.positions) text += jax_positions;
  if (needs.read) text += jax_read;
  if (needs.rounding) text += jax_half;
  if (needs.to_integer) text += jax_integer;
  if (needs.extremes) text += jax_extreme;
  if (needs.whole_power) text += jax_whole_power;
  if (needs.uniform || needs.normal) text += jax_philox;
  if (needs.uniform) text += jax_uniform;
  if (needs.normal) text += jax_normal;
  return text;
}

std::string_view jax_unary(UnaryFunction function) {
  switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, slope, sql, jax, torch) \
  case UnaryFunction::id: {                                                           \
    return jax;                                                                       \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a function outside its enumeration");
}

std::string_view jax_reducer(Reducer reducer) {
  switch (reducer) {
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, each, fold, continues, slope, sql, jax, \
                       ...)                                                                                           \
  case Reducer::id: {                                                                                                 \
    return jax;                                                                                                       \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a reduction outside its enumeration");
}

/// XLA may leave out a cast there and back.
std::string jax_rounded(const PythonText& x, DType, DType to, ModuleNeeds& needs) {
  if (to == DType::bf16) return fmt::format("lax.reduce_precision({}, 8, 7)", x.text);
  needs.rounding = true;
  return fmt::format("_half({})", x.text);
}

/// P("m0", None, ("m1", "m2"))
std::string partition_spec(const Sharding& sharding) {
  std::vector<std::string> entries;
  for (const std::vector<std::size_t>& axes : sharding) entries.push_back(axes.empty() ? "None" : axes_tuple(axes));
  while (!entries.empty() && entries.back() == "None") entries.pop_back();
  return fmt::format("P({})", fmt::join(entries, ", "));
}

std::string jax_constants(const ModuleNeeds& needs) {
  return needs.precision ? "PRECISION = lax.Precision.HIGHEST\n" : "";
}

ArrayLibrary jax_library() {
  return {
      .name = "JAX",
      .module = "jnp",
      .boolean = "bool_",
      .power = "power",
      .axis = "axis",
      .takes_numbers = true,
      .einsum_widens = true,
      .casts_round = false,
      .keeps_named = false,
      .number = "jnp.asarray({x}, {type})",
      .cast = "{x}.astype({type})",
      .transpose = "{x}.transpose{order}",
      .arange = "jnp.arange({count})",
      .positions = "_positions({count}{and_axes})",
      .einsum = "jnp.einsum(\"{subscripts}\", {arrays}, precision=PRECISION{and_type})",
      .convolution =
          "lax.conv_general_dilated({x}, {filter}, {strides}, {pairs}, rhs_dilation={dilation}, "
          "precision=PRECISION)",
      // Compilers for CPUs widen bf16 before they send it, and send twice as much.
      .to_bits = "lax.bitcast_convert_type({}, jnp.uint16)",
      .from_bits = "lax.bitcast_convert_type({}, jnp.bfloat16)",
      .take_part = "lax.dynamic_slice_in_dim({x}, lax.axis_index({axes}) * {extent}, {extent}, axis={dimension})",
      .all_to_all = "lax.all_to_all({x}, {axes}, split_axis={split}, concat_axis={joined}, tiled=True)",
      .permute = "lax.ppermute({x}, {axes}, [{pairs}])",
      .all_gather = "lax.all_gather({x}, {axes}, axis={dimension}, tiled=True)",
      .reduce_scatter = "lax.psum_scatter({x}, {axes}, scatter_dimension={dimension}, tiled=True)",
      .all_reduce = "lax.p{how}({x}, {axes})",
      .all_extreme = "_extreme({x}, {axes}, \"{how}\")",
      .decorator = "@jax.jit",  // traced once
      .parameters = "",
      .imports = jax_imports,
      .names = {"jax",   "jnp",      "lax",         "np",           "P",        "inputs",    "states",     "time",
                "MESH",  "INPUTS",   "STATES",      "OUTPUTS",      "SCALARS",  "PRECISION", "_positions", "_read",
                "_half", "_extreme", "_to_integer", "_whole_power", "_uniform", "_normal"},
      .unary = jax_unary,
      .reducer = jax_reducer,
      .rounded = jax_rounded,
      .cut = partition_spec,
      .constants = jax_constants,
      .helpers = jax_helpers,
      .frame = jax_frame,
      .main = jax_main,
  };
}

}  // namespace

std::string jax_source(const Compiled& compiled, const PlanReport& report) {
  return module_source(compiled, report, jax_library());
}

}  // namespace einrel
