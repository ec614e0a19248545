"""Kernels of a source that is machine code itself: found by name, their arguments by the metadata."""

from __future__ import annotations

from collections.abc import Iterator

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.errors import CodeError, Location, UntranslatedError
from tokitai_cli.core.model.device import MACHINE_CODE, Fact
from tokitai_cli.core.model.harness import HarnessRequest, KernelEntry
from tokitai_cli.devices.amdgpu.binary import bundles
from tokitai_cli.devices.amdgpu.binary.objects import CodeObject, Kernel, kernel_of
from tokitai_cli.devices.amdgpu.binary.parameters import limits, parameters, passed_arguments
from tokitai_cli.devices.amdgpu.translate.unit import Word

KernelWords = list[tuple[Kernel, tuple[Word, ...]]]


def requested_kernels(request: HarnessRequest, arch: str) -> tuple[CodeObject, KernelWords]:
    """The code object of the source that has all kernels of `request`, each with its words.

    Raises UntranslatedError where there is none, or the arguments are others for this processor.
    """
    try:
        objects = bundles.read(request.source, arch)
        pairs = [kernel_of(objects, one.expr) for one in request.kernels]
    except CodeError as error:
        raise UntranslatedError(error.message, where=error.where, hint=error.hint) from None
    code = pairs[0][0] if pairs else objects[0]
    if any(other is not code for other, _ in pairs):
        raise UntranslatedError("the kernels are not all in one code object of the source")
    return code, [
        (kernel, tuple(_words(kernel, entry, place)))
        for (_, kernel), entry, place in zip(pairs, request.kernels, request.places, strict=True)
    ]


def fact(code: CodeObject) -> Fact:
    """That the machine code was built elsewhere, and what for."""
    return Fact(MACHINE_CODE, code.target or code.arch, "the source")


def _words(kernel: Kernel, entry: KernelEntry, place: str) -> Iterator[Word]:
    given, known = passed_arguments(kernel), parameters(kernel)
    if len(given) != len(entry.args):
        raise UntranslatedError(
            f"{kernel.title} takes {len(given)} arguments on this processor, not {len(entry.args)}",
            where=Location(key=place),
        )
    for index, (arg, at, parameter) in enumerate(zip(entry.args, given, known, strict=True)):
        is_pointer = at.value_kind == "global_buffer"
        size = DTYPES[arg.dtype].nbytes if arg.kind == "scalar" else at.size
        fits = (
            arg.kind == "zero" or is_pointer == (arg.kind in {"buffer", "list"})
        ) and size == at.size
        if not fits or parameter.kind == "struct":
            raise UntranslatedError(
                f"{kernel.title} takes {parameter.text} of {at.size} bytes on this processor, and the "
                f"spec passes a {arg.kind}",
                where=Location(key=f"{place}.args[{index}]"),
            )
        kind = "integer" if arg.kind == "zero" else "buffer" if is_pointer else arg.kind
        yield Word(kind, str(index), at.offset, at.size, *limits(parameter))
