"""Parameters of a kernel of a code object: their types by its symbol, their sizes by its metadata."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.cpp.source.signatures import Parameter, parameter_of
from tokitai_cli.devices.amdgpu.binary.objects import Argument, Compiled

_ADDRESS = 8  # bytes of it
_UNKNOWN = Parameter("", "", "unknown", (), 0, False, "")


def passed_arguments(kernel: Compiled) -> tuple[Argument, ...]:
    """The arguments that a caller passes, in their order."""
    return tuple(one for one in kernel.args if not one.hidden)


def parameters(kernel: Compiled) -> tuple[Parameter, ...]:
    """The parameters of a kernel; those of a symbol that tells no types have what the sizes allow.

    A struct is whatever a spec cannot pass to machine code.
    """
    given = passed_arguments(kernel)
    told = kernel.types if len(kernel.types) == len(given) else [""] * len(given)
    return tuple(_parameter(one, text) for one, text in zip(given, told, strict=True))


def _parameter(given: Argument, text: str) -> Parameter:
    told = parameter_of(text) if text else _UNKNOWN
    told = msgspec.structs.replace(told, name=given.name)
    if given.value_kind == "global_buffer":
        is_told = told.pointers > 0
        return told if is_told else msgspec.structs.replace(told, type="void", pointers=1)
    if not given.value_kind and given.size == _ADDRESS and not told.type:
        return msgspec.structs.replace(told, type=f"{_ADDRESS} bytes")  # an address or a number
    if not given.value_kind and told.pointers:
        return told
    fits = [name for name in told.dtypes or DTYPES if DTYPES[name].nbytes == given.size]
    if told.kind in {"scalar", "unknown"} and fits and given.value_kind in {"by_value", ""}:
        shown = told.type or f"{given.size} bytes by value"
        return Parameter(given.name, shown, "scalar", tuple(fits), 0, False, "")
    return Parameter(
        given.name, told.type or f"{given.size} bytes by value", "struct", (), 0, False, ""
    )


def limits(parameter: Parameter) -> tuple[int, int]:
    """The least and the largest integer that a parameter by value may be."""
    widths = [
        (name.startswith("int"), 1 if name == "bool" else 8 * DTYPES[name].nbytes)
        for name in parameter.dtypes
        if "int" in name or name == "bool"
    ]
    if parameter.kind == "unknown":  # as many bits as an address has
        return -(1 << 63), (1 << 64) - 1
    least = min((-(1 << bits - 1) for signed, bits in widths if signed), default=0)
    return least, max(((1 << bits - signed) - 1 for signed, bits in widths), default=0)
