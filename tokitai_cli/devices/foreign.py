"""Kernels of a source that is machine code itself: found by name, their arguments by the metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from tokitai_cli.core.dtypes import DTYPES
from tokitai_cli.core.errors import CodeError, Location, UntranslatedError
from tokitai_cli.core.model.device import MACHINE_CODE, Fact
from tokitai_cli.core.model.harness import HarnessRequest, KernelEntry
from tokitai_cli.devices import cubins
from tokitai_cli.devices.amdgpu.binary import bundles
from tokitai_cli.devices.amdgpu.binary.objects import CodeObject, Compiled, Kernel, kernel_of
from tokitai_cli.devices.amdgpu.binary.parameters import limits, parameters, passed_arguments
from tokitai_cli.devices.amdgpu.translate.unit import Word

_ADDRESS = 8  # bytes of it
_C = TypeVar("_C")
_K = TypeVar("_K", bound=Compiled)
#: Kernels, each behind the code object that it is in.
Held = Sequence[tuple[_C, _K]]
KernelWords = Sequence[tuple[_K, tuple[Word, ...]]]


def kernels_in(path: Path) -> Held[CodeObject | cubins.CudaModule, Compiled]:
    """The kernels of a file of machine code, of whatever GPU. Raises CodeError."""
    return of_cuda(path) if cubins.is_cuda_file(path) else of_amd(path)


def of_amd(path: Path, arch: str = "") -> Held[CodeObject, Kernel]:
    """The kernels of a file for an AMD processor, as `bundles.read` takes it. Raises CodeError."""
    return [(code, one) for code in bundles.read(path, arch) for one in code.kernels]


def of_cuda(path: Path, arch: str = "") -> Held[cubins.CudaModule, cubins.CudaKernel]:
    """The kernels of a cubin or of PTX that run on `arch`, where that is named. Raises CodeError."""
    module = cubins.read(path)
    if arch and not module.serves(arch):
        raise CodeError(
            f"machine code for {module.target} does not run on {arch}", where=Location(path)
        )
    return [(module, one) for one in module.kernels]


def requested_kernels(
    request: HarnessRequest, read: Callable[[], Held[_C, _K]]
) -> tuple[_C, KernelWords[_K]]:
    """The code object of the source that has all kernels of `request`, each with its words.

    read: gives the kernels of the source. Raises UntranslatedError where there is none, or the
    arguments are others for this processor.
    """
    try:
        held = read()
        pairs = [kernel_of(held, one.expr) for one in request.kernels]
    except CodeError as error:
        raise UntranslatedError(error.message, where=error.where, hint=error.hint) from None
    if not held:
        raise UntranslatedError("the source has no kernel", where=Location(request.source))
    code = (pairs or held)[0][0]
    if any(other is not code for other, _ in pairs):
        raise UntranslatedError("the kernels are not all in one code object of the source")
    return code, [
        (kernel, tuple(_words(kernel, entry, place)))
        for (_, kernel), entry, place in zip(pairs, request.kernels, request.places, strict=True)
    ]


def fact(target: str) -> Fact:
    """That the machine code was built elsewhere, and what for."""
    return Fact(MACHINE_CODE, target, "the source")


def _words(kernel: Compiled, entry: KernelEntry, place: str) -> Iterator[Word]:
    given, known = passed_arguments(kernel), parameters(kernel)
    if len(given) != len(entry.args):
        raise UntranslatedError(
            f"{kernel.title} takes {len(given)} arguments on this processor, not {len(entry.args)}",
            where=Location(key=place),
        )
    for index, (arg, at, parameter) in enumerate(zip(entry.args, given, known, strict=True)):
        passes_pointer = arg.kind in {"buffer", "list"}
        is_pointer = passes_pointer if not at.value_kind else at.value_kind == "global_buffer"
        size = DTYPES[arg.dtype].nbytes if arg.kind == "scalar" else at.size
        fits = (arg.kind == "zero" or is_pointer == passes_pointer) and size == at.size
        fits = fits and not (is_pointer and at.size != _ADDRESS)
        if not fits or parameter.kind == "struct":
            raise UntranslatedError(
                f"{kernel.title} takes {parameter.text} of {at.size} bytes on this processor, and the "
                f"spec passes a {arg.kind}",
                where=Location(key=f"{place}.args[{index}]"),
            )
        kind = "integer" if arg.kind == "zero" else "buffer" if is_pointer else arg.kind
        yield Word(kind, str(index), at.offset, at.size, *limits(parameter))
