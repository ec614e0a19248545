"""The C++ unit of a code object's kernels: what the spec passes, and translated machine code."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tokitai_cli.core.errors import NotRunError, UntranslatedError
from tokitai_cli.core.model.device import Fact
from tokitai_cli.core.model.harness import HarnessRequest, KernelArg
from tokitai_cli.devices import foreign
from tokitai_cli.devices.amdgpu import gfx_tables
from tokitai_cli.devices.amdgpu.binary.objects import (
    EXECUTABLE,
    CodeObject,
    Kernel,
    lines,
    read_code_object,
)
from tokitai_cli.devices.amdgpu.inspection import evidence
from tokitai_cli.devices.amdgpu.isa import assembly_text, opcode_table, reach
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.lacks import Lacks
from tokitai_cli.devices.amdgpu.translate.mode import Mode
from tokitai_cli.devices.amdgpu.translate.unit import Code, Memory, Registers, Word, unit

# Of tokitai_passed (kernels/harness/tokitai_kernel.hpp), in its order, and of a struct: a zero is an
# integer, or no address for a pointer.
_PASSED = ("buffer", "buffer", "scalar", "integer", "integer", "structure")
_WRITABLE = 2
MOST_REGISTERS = 256  # of vectors, without those that accumulate
_HINT = "docs/gfx.md lists what is executed"
_FUNCTIONS = Fact(
    "device functions",
    "of tokitai, with the errors that docs/gfx.md states",
    "headers of the build",
)


def translate(code_path: Path, unit_path: Path, request: HarnessRequest) -> tuple[Fact, ...]:
    """Write the unit of the kernels of `request`; facts of the code object.

    Raises UntranslatedError, which names what cannot be executed.
    """
    code = read_code_object(code_path.read_bytes())
    found = [
        (kernel, tuple(_words(kernel, rows, entry.args)))
        for (kernel, rows), entry in zip(
            gfx_tables.kernels(code, len(request.kernels)), request.kernels, strict=True
        )
    ]
    places = gfx_tables.symbols(code, len(request.symbols))
    symbols = [(name, *place) for (name, _), place in zip(request.symbols, places, strict=True)]
    made, told = _unit(code, found, symbols)
    unit_path.write_text(made, encoding="utf-8")
    return (_FUNCTIONS, *told)


def of_machine_code(request: HarnessRequest, arch: str) -> tuple[str, tuple[Fact, ...]]:
    """The unit of a source that is machine code itself, and facts. Raises UntranslatedError."""
    code, found = foreign.requested_kernels(request, partial(foreign.of_amd, request.source, arch))
    text, told = _unit(code, found, ())
    return text, (foreign.fact(code.target or code.arch), *told)


def _unit(
    code: CodeObject,
    found: Sequence[tuple[Kernel, tuple[Word, ...]]],
    symbols: Sequence[tuple[str, int, int]],
) -> tuple[str, tuple[Fact, ...]]:
    looked = Lacks(code)
    for kernel, _ in found:
        if what := looked.of(kernel):
            raise UntranslatedError(
                f"kernel {kernel.title} needs something that is not modelled: {', '.join(what)}",
                hint=_HINT,
            )
    kernels = [_code(looked.code, code.arch, kernel, words) for kernel, words in found]
    memory = Memory(
        tuple(
            (one.address, one.size, one.data, bool(one.flags & _WRITABLE))
            for one in code.segments
            if not one.flags & EXECUTABLE
        ),
        code.relocations,
    )
    try:
        made = unit(kernels, memory, symbols, _places(code))
    except NotRunError as error:
        raise UntranslatedError(str(error), hint=_HINT) from None
    return made, tuple(evidence(code, (kernel for kernel, _ in found)))


def _code(code: reach.Code, arch: str, kernel: Kernel, words: tuple[Word, ...]) -> Code:
    descriptor, told = kernel.descriptor, kernel.metadata
    registers = ((descriptor.rsrc1 & 63) + 1) * 8
    # Of one file, in which accumulation registers begin at a place of their own.
    accumulation = 0
    if opcode_table.family(arch).vectors > MOST_REGISTERS:
        accumulation = max(0, registers - 4 * ((descriptor.rsrc3 & 63) + 1))
    return Code(
        name=kernel.title,
        entry=kernel.address,
        instructions=code.reached(kernel.address),
        entries=frozenset(entry for entry, _ in code.functions(kernel.address)),
        words=words,
        hidden=tuple((one.value_kind, one.offset, one.size) for one in kernel.args if one.hidden),
        registers=_registers(descriptor.properties, descriptor.rsrc2),
        vector_registers=registers - accumulation,
        accumulation_registers=accumulation,
        lds=descriptor.lds,
        scratch=descriptor.scratch,
        # Compilers load whole groups of four dwords, of which one at least is an argument's.
        argument_bytes=descriptor.kernarg + 12,
        most_threads=told.max_flat_workgroup_size,
        mode=Mode.of(descriptor.mode()),
    )


def _registers(properties: int, rsrc2: int) -> Registers:
    """Scalar registers that are set at the start (LLVM, AMDGPU, initial kernel execution state)."""
    at, places = 0, []
    for bit, size in enumerate((4, 2, 2, 2, 2, 2, 1)):
        there = bool(properties >> bit & 1)
        places.append(at if there else -1)
        at += size if there else 0
    return Registers(
        scratch=places[0],
        dispatch=places[1],
        arguments=places[3],
        scratch_size=places[6],
        end=rsrc2 >> 1 & 31,
        follow=(
            *(bool(rsrc2 >> bit & 1) for bit in (7, 8, 9, 10)),
            places[0] >= 0 and bool(rsrc2 & 1),
        ),
    )


def _words(
    kernel: Kernel, rows: Iterable[gfx_tables.Row], args: tuple[KernelArg, ...]
) -> Iterator[Word]:
    places = [
        f"{number}{at}"
        for number, arg in enumerate(args)
        for at, _ in (("", arg),) * (arg.kind != "struct" or bool(arg.fields)) + arg.fields
    ]
    held: dict[int, int] = {}  # bytes of a struct behind a pointer, by its parameter
    for row, place in zip(rows, places, strict=True):
        kind, begin = _PASSED[row.kind], kernel.args[row.parameter].offset
        if kind == "structure":
            held[row.parameter] = row.highest
            yield Word(kind, place, begin, row.size, 0, 0, row.highest)
            continue
        inside = bool(held.get(row.parameter))
        offset = row.offset + (0 if inside else begin)
        yield Word(kind, place, offset, row.size, row.lowest, row.highest, inside=inside)


def _places(code: CodeObject) -> Callable[[Instruction], tuple[str, str, int]]:
    """What findings say of an instruction: its text, and the source's file and line."""
    known = lines(code.data)
    starts = sorted(known)

    def place(instruction: Instruction) -> tuple[str, str, int]:
        at = bisect.bisect_right(starts, instruction.address) - 1
        file, line = known[starts[at]] if at >= 0 else ("", 0)
        return assembly_text.text(instruction), file if line else "", line

    return place
