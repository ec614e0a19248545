"""The C++ unit of a code object's kernels: translations, arguments, and the memory beside the code."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tokitai_cli.core.errors import NotRunError
from tokitai_cli.devices.amdgpu.isa.instruction import Instruction
from tokitai_cli.devices.amdgpu.translate.memory_access import word_shift
from tokitai_cli.devices.amdgpu.translate.mode import USUAL, Mode
from tokitai_cli.devices.amdgpu.translate.operands import RefusedError
from tokitai_cli.devices.amdgpu.translate.translation import Body, translate

# Hidden arguments, by LLVM's name of their kind; others are not known and refused.
HIDDEN = {
    "hidden_block_count_x": "block_count_x",
    "hidden_block_count_y": "block_count_y",
    "hidden_block_count_z": "block_count_z",
    "hidden_group_size_x": "group_size_x",
    "hidden_group_size_y": "group_size_y",
    "hidden_group_size_z": "group_size_z",
    "hidden_remainder_x": "remainder",
    "hidden_remainder_y": "remainder",
    "hidden_remainder_z": "remainder",
    "hidden_grid_dims": "grid_dims",
    "hidden_dynamic_lds_size": "dynamic_lds_size",
    "hidden_private_base": "private_base",
    "hidden_shared_base": "shared_base",
    # A kernel that takes one of these and uses it reads from nowhere, which is found.
    **dict.fromkeys(
        (
            *("hidden_global_offset_x", "hidden_global_offset_y", "hidden_global_offset_z"),
            *("hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_multigrid_sync_arg"),
            *("hidden_heap_v1", "hidden_default_queue", "hidden_completion_action"),
            *("hidden_queue_ptr", "hidden_none"),
        ),
        "zero",
    ),
}


class Word(msgspec.Struct, frozen=True):
    """A word of a run request, and where it stands in the kernel's arguments."""

    #: Buffer, scalar, integer or structure, whose fields follow.
    kind: str
    #: As refusals name it.
    place: str
    #: In bytes, of the whole argument segment.
    offset: int
    size: int
    #: Of an integer.
    lowest: int = -(1 << 63)
    highest: int = (1 << 64) - 1
    #: Of a struct that a pointer leads to.
    bytes: int = 0
    #: Whether it stands in that, and its offset counts from there.
    inside: bool = False


class Registers(msgspec.Struct, frozen=True):
    """Scalar registers that are set before a kernel begins: the first of each, -1 for none; their end.

    follow: whether the numbers of the block in x, y, z stand behind them, then how many waves it has,
    and where the wave's scratch begins.
    """

    scratch: int
    dispatch: int
    arguments: int
    scratch_size: int
    end: int
    follow: tuple[bool, ...]


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel of a code object as the unit needs it."""

    name: str
    #: Address of its code.
    entry: int
    #: What is reached, with functions, in order.
    instructions: Sequence[Instruction]
    #: Its own address and those of functions.
    entries: frozenset[int]
    words: tuple[Word, ...]
    #: (kind, offset, size) of arguments that the runtime gives.
    hidden: tuple[tuple[str, int, int], ...]
    registers: Registers
    #: As its descriptor says.
    vector_registers: int
    accumulation_registers: int
    lds: int
    scratch: int
    argument_bytes: int
    #: That a block may have, 0 for no bound.
    most_threads: int = 0
    #: The float mode that it begins in.
    mode: Mode = USUAL


class Memory(msgspec.Struct, frozen=True):
    """Segments beside the code, (address, bytes, data, writable), and relocations (address, addend)."""

    segments: tuple[tuple[int, int, bytes, bool], ...] = ()
    relocations: tuple[tuple[int, int], ...] = ()


def unit(
    kernels: Sequence[Code],
    memory: Memory,
    symbols: Sequence[tuple[str, int, int]],
    place: Callable[[Instruction], tuple[str, str, int]],
) -> str:
    """Text of the unit. symbols: (name, address, bytes). place: text, file and line of an instruction.

    Raises NotRunError for what `Lacks` (gfx/lacks.py) would name.
    """
    operations: dict[str, str] = {}
    parts: list[str] = []
    for index, kernel in enumerate(kernels):
        body = _body(kernel, index)
        operations.update(body.operations)
        by_address = {one.address: one for one in kernel.instructions}
        told = ((at, *place(by_address[at])) for at in sorted(set(body.places)))
        parts += [body.text, _tables(kernel, index, told, word_shift(kernel.instructions))]
    names = "".join(sorted(operations.values()))
    entries = [(one.name, one.words, one.most_threads) for one in kernels]
    return (
        '// Generated: the kernels of a code object.\n#include "gfx/run/program.hpp"\n'
        f"namespace tokitai::gfx {{\n{names}\n{_image(memory)}}}\n"
        "namespace {\nusing namespace tokitai;\nusing namespace tokitai::gfx;\n"
        f"{''.join(parts)}}}\n{program(entries, symbols)}"
    )


def _body(kernel: Code, index: int) -> Body:
    try:
        return translate(kernel.instructions, str(index), kernel.entries, kernel.mode)
    except RefusedError as error:
        raise NotRunError(f"kernel {kernel.name} cannot be translated: {error}") from None


def _tables(
    kernel: Code, index: int, places: Iterable[tuple[int, str, str, int]], shift: int
) -> str:
    registers = kernel.registers
    slots = [
        f"{{Source::word, {at}, {word.offset}, {word.size}}}"
        for at, word in enumerate(kernel.words)
        if word.size and not word.inside
    ]
    slots += [
        f"{{Source::{HIDDEN[kind]}, 0, {offset}, {size}}}" for kind, offset, size in kernel.hidden
    ]
    told = [
        f"{{{at:#x}, {quoted(text)}, {quoted(file)}, {line}}}" for at, text, file, line in places
    ]
    follow = ", ".join(str(flag).lower() for flag in registers.follow)
    return (
        f"constexpr Slot slots_{index}[] = {{{', '.join([*slots, '{}'])}}};\n"
        f"constexpr Place places_{index}[] = {{{', '.join([*told, '{}'])}}};\n"
        f"{parameters(index, kernel.words)}"
        f"constexpr DeviceKernel kernel_{index} = {{run_{index}, step_{index}, steps_{index}, "
        f"{kernel.entry:#x}, "
        f"{kernel.vector_registers}, {kernel.accumulation_registers}, "
        f"{kernel.lds}, {kernel.scratch}, {kernel.argument_bytes}, "
        f"{registers.scratch}, {registers.dispatch}, {registers.arguments}, "
        f"{registers.scratch_size}, {registers.end}, {follow}, slots_{index}, {len(slots)}, "
        f"places_{index}, {len(told)}, {shift}}};\n"
    )


def parameters(index: int, words: Sequence[Word]) -> str:
    """The table of what launches of a kernel are held against."""
    rows = [
        f"{{Argument::{word.kind}, {quoted(word.place)}, {_signed(word.lowest)}, {word.highest:#x}ull, "
        f"{word.bytes}, {_made(words[at + 1 :]) if word.bytes else '0, nullptr'}}}"
        for at, word in enumerate(words)
    ]
    return f"constexpr Parameter parameters_{index}[] = {{{', '.join([*rows, '{}'])}}};\n"


def _made(words: Sequence[Word]) -> str:
    """How many fields a struct has whose fields come next, and how it is made of their words."""
    fields = list(itertools.takewhile(lambda word: word.inside, words))
    copies = "".join(
        f"__builtin_memcpy(to + {one.offset}, words + {at}, {one.size});"
        for at, one in enumerate(fields)
    )
    return f"{len(fields)}, [](unsigned char* to, const tokitai::Word* words) {{{copies}}}"


def _signed(value: int) -> str:
    return f"-{-value - 1}ll - 1" if value < 0 else f"{value}ll"


def quoted(text: str) -> str:
    """A C++ string literal."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in plain) + '"'


def _image(memory: Memory) -> str:
    lines = []
    rows = []
    for index, (address, size, data, writable) in enumerate(memory.segments):
        values = ",".join(map(str, data)) or "0"
        lines.append(f"static const u8 data_{index}[] = {{{values}}};")
        flag = str(writable).lower()
        rows.append(f"{{{address:#x}, {size}, data_{index}, {len(data)}, {flag}}}")
    end = max((address + size for address, size, _, _ in memory.segments), default=0)
    moved = [f"{{{address:#x}, {addend:#x}}}" for address, addend in memory.relocations]
    lines.append(f"static const Segment segments[] = {{{', '.join([*rows, '{}'])}}};")
    lines.append(f"static const Relocation relocations[] = {{{', '.join([*moved, '{}'])}}};")
    lines.append(
        f"const ImageData image_data = {{{end}, segments, {len(rows)}, relocations, {len(moved)}}};"
    )
    return "\n".join(lines) + "\n"


def program(
    kernels: Sequence[tuple[str, Sequence[Word], int]], symbols: Sequence[tuple[str, int, int]]
) -> str:
    """What the server finds the kernels by. kernels: name, words, most threads of a block."""
    entries = [
        f"{{{quoted(name)}, {len(words)}, parameters_{index}, {threads}, &kernel_{index}}}"
        for index, (name, words, threads) in enumerate(kernels)
    ]
    held = [
        f"{{{quoted(name)}, {size}, reinterpret_cast<const void*>({address:#x}ul)}}"
        for name, address, size in symbols
    ]
    return (
        "const tokitai::Program& tokitai_program() {\n"
        f"  static const KernelEntry kernels[] = {{{', '.join([*entries, '{}'])}}};\n"
        f"  static const SymbolEntry symbols[] = {{{', '.join([*held, '{}'])}}};\n"
        f"  static const Program program = {{kernels, {len(entries)}, symbols, {len(held)}}};\n"
        "  return program;\n}\n"
    )
