"""The C++ unit of a source that is machine code: its code object, for the module API of HIP."""

from __future__ import annotations

from tokitai_cli.core.model.device import Fact
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.devices.amdgpu import foreign
from tokitai_cli.devices.amdgpu.inspection import evidence
from tokitai_cli.devices.amdgpu.translate.unit import Word, parameters, program, quoted

_LINE = 64  # bytes of the code object on a line


def of_machine_code(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    """The unit, and facts of the code object. Raises UntranslatedError."""
    code, found = foreign.requested_kernels(request, arch)
    lines = (code.data[at : at + _LINE] for at in range(0, len(code.data), _LINE))
    image = "\n".join('"' + "".join(f"\\{byte:03o}" for byte in line) + '"' for line in lines)
    tables = [_tables(index, kernel.name, words) for index, (kernel, words) in enumerate(found)]
    entries = [
        (kernel.title, words, kernel.metadata.max_flat_workgroup_size) for kernel, words in found
    ]
    return (
        "// Generated: a code object that others built.\n#define TOKITAI_KERNEL_UNIT 1\n"
        '#include "tokitai_arguments.hpp"\n'
        '#include "tokitai_starter_module.hpp"\nnamespace {\nusing namespace tokitai;\n'
        f"alignas(4096) constexpr char image[] =\n{image};\n{''.join(tables)}}}\n"
        f"{program(entries, ())}"
    ), (foreign.fact(code), *evidence(code, (kernel for kernel, _ in found)))


def _tables(index: int, symbol: str, words: tuple[Word, ...]) -> str:
    slots = "".join(f"{{{word.offset}, {word.size}}}, " for word in words)
    end = max((word.offset + word.size for word in words), default=0)
    return (
        f"constexpr Slot slots_{index}[] = {{{slots}{{}}}};\n{parameters(index, words)}"
        f"constexpr ModuleKernel module_{index} = "
        f"{{{quoted(symbol)}, slots_{index}, {len(words)}, {end}}};\n"
        f"constexpr const DeviceKernel& kernel_{index} = ModuleStarter<image, module_{index}>::kernel;\n"
    )
