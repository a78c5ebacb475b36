"""Plans as programs for JAX and PyTorch (docs/export.md)."""

from __future__ import annotations

import types
from typing import Any

from . import _native
from ._compute import explain_options
from ._program import Program


def jax_source(program: Program, **options: Any) -> str:
    """The plan of a program as a module of Python for JAX, as text; options of `explain`.

    >>> from einrel import program
    >>> source = jax_source(program("input A[i]\\nZ[i] = A[i] + 1", dims={"i": 4}), sites=2)
    >>> "lax" in source
    True
    """
    return _native_program(program).jax(explain_options(**options))


def torch_source(program: Program, **options: Any) -> str:
    """The same for PyTorch: what each process computes, one of each device.

    >>> from einrel import program
    >>> source = torch_source(program("input A[i]\\nZ[i] = A[i] + 1", dims={"i": 4}), sites=2)
    >>> "torch.distributed" in source
    True
    """
    return _native_program(program).torch(explain_options(**options))


def to_jax(program: Program, **options: Any) -> types.ModuleType:
    """The module of `jax_source`, imported already: `step(make_mesh())` is the function of all devices.

    Its INPUTS, STATES and OUTPUTS say by name the shape, the type and the PartitionSpec. `sites` says for how many
    devices it is.
    """
    return _module(jax_source(program, **options))


def to_torch(program: Program, **options: Any) -> types.ModuleType:
    """The module of `torch_source`, imported already: `step(make_mesh())` is the function of this process's device.

    Its INPUTS, STATES and OUTPUTS say by name the shape, the type and, for each dimension, the axes of the mesh that
    cut it. `sites` says for how many devices, and so for how many processes, it is.
    """
    return _module(torch_source(program, **options))


def _native_program(program: Program) -> _native.Program:
    if not isinstance(program, Program):
        raise TypeError(f"the plan of a program, not of {type(program).__name__}: program_of makes one of arrays")
    return program._native


def _module(source: str) -> types.ModuleType:
    module = types.ModuleType("einrel_exported", "A program that einrel has planned.")
    exec(compile(source, "<exported by einrel>", "exec"), module.__dict__)
    return module
