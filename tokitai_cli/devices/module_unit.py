"""The C++ unit of a source that is machine code: its bytes, for the module API of HIP or CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tokitai_cli.core.model.device import Fact
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.devices import cubins, foreign
from tokitai_cli.devices.amdgpu.binary.objects import Compiled
from tokitai_cli.devices.amdgpu.inspection import evidence
from tokitai_cli.devices.amdgpu.translate.unit import Word, parameters, program, quoted

_LINE = 64  # bytes of the code object on a line


def of_amd(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    """The unit of a code object, and facts of it. Raises UntranslatedError."""
    code, found = foreign.requested_kernels(request, partial(foreign.of_amd, request.source, arch))
    told = foreign.fact(code.target or code.arch)
    return _unit(code.data, found), (told, *evidence(code, (kernel for kernel, _ in found)))


def of_cuda(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    """The unit of a cubin or of PTX, and facts of it. Raises UntranslatedError."""
    read = partial(foreign.of_cuda, request.source, arch)
    module, found = foreign.requested_kernels(request, read)
    facts = (fact for kernel, _ in found for fact in _facts(kernel))
    return _unit(module.data, found), (foreign.fact(module.target), *facts)


def _facts(kernel: cubins.CudaKernel) -> Iterator[Fact]:
    """What a cubin tells of a kernel, in the words that ptxas has for it."""
    if kernel.registers is not None:
        yield Fact(f"{kernel.title}: registers", str(kernel.registers), "the cubin")


def _unit(data: bytes, found: foreign.KernelWords[Compiled]) -> str:
    lines = (data[at : at + _LINE] for at in range(0, len(data), _LINE))
    image = "\n".join('"' + "".join(f"\\{byte:03o}" for byte in line) + '"' for line in lines)
    tables = [_tables(index, kernel.name, words) for index, (kernel, words) in enumerate(found)]
    entries = [(kernel.title, words, kernel.most_threads) for kernel, words in found]
    return (
        "// Generated: a code object that others built.\n#define TOKITAI_KERNEL_UNIT 1\n"
        '#include "tokitai_arguments.hpp"\n'
        '#include "tokitai_starter_module.hpp"\nnamespace {\nusing namespace tokitai;\n'
        f"alignas(4096) constexpr char image[] =\n{image};\n{''.join(tables)}}}\n"
        f"{program(entries, ())}"
    )


def _tables(index: int, symbol: str, words: tuple[Word, ...]) -> str:
    slots = "".join(f"{{{word.offset}, {word.size}}}, " for word in words)
    end = max((word.offset + word.size for word in words), default=0)
    return (
        f"constexpr Slot slots_{index}[] = {{{slots}{{}}}};\n{parameters(index, words)}"
        f"constexpr ModuleKernel module_{index} = "
        f"{{{quoted(symbol)}, slots_{index}, {len(words)}, {end}}};\n"
        f"constexpr const DeviceKernel& kernel_{index} = ModuleStarter<image, module_{index}>::kernel;\n"
    )
