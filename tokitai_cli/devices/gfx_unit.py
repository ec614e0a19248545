"""The C++ unit of a code object's kernels: what the spec passes, beside their translated machine code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokitai_cli.devices import code_object, gfx_tables
from tokitai_cli.errors import NotRunError, UntranslatedError
from tokitai_cli.gfx.code import decode, elf, text
from tokitai_cli.gfx.code.instruction import Instruction
from tokitai_cli.gfx.run.unit import Code, Memory, Registers, Word, unit
from tokitai_cli.model.device import Fact
from tokitai_cli.model.harness import HarnessRequest, KernelArg
from tokitai_cli.storage import sha256

# Of tokitai_passed (kernels/harness/tokitai_kernel.hpp), in its order.
_PASSED = ("buffer", "buffer", "scalar", "integer")


def translate(code_path: Path, unit_path: Path, request: HarnessRequest, arch: str) -> tuple[Fact, ...]:
    """Write the unit of the kernels of `request`; facts of the code object.

    Raises UntranslatedError, which names what cannot be executed.
    """
    data = code_path.read_bytes()
    tables, places = gfx_tables.read(data, len(request.kernels), len(request.symbols))
    image = _Image(data)
    kernels = [
        image.kernel(table, entry.args, arch)
        for table, entry in zip(tables, request.kernels, strict=True)
    ]
    symbols = [
        (name, place.address, place.size)
        for (name, _), place in zip(request.symbols, places, strict=True)
    ]
    try:
        made = unit(kernels, image.memory(), symbols, image.place)
    except NotRunError as error:
        raise UntranslatedError(str(error)) from None
    unit_path.write_text(made, encoding="utf-8")
    return (Fact("code object sha256", sha256(data), code_path.name),)


class _Image:
    """A code object in memory, as its segments are loaded."""

    def __init__(self, data: bytes) -> None:
        self.metadata = code_object._metadata(data)
        with elf.opened(data) as file:
            self.symbols = {
                one.name: (one.entry["st_value"], one.entry["st_size"])
                for one in file.get_section_by_name(".dynsym").iter_symbols()
            }
            self.segments = [
                (one["p_vaddr"], one["p_memsz"], one.data(), one["p_flags"])
                for one in file.iter_segments()
                if one["p_type"] == "PT_LOAD"
            ]
            listed = list(file.get_section_by_name(".dynsym").iter_symbols())
            self.relocations = [
                (one["r_offset"], one["r_addend"] + listed[one["r_info_sym"]].entry["st_value"])
                for section in file.iter_sections()
                if section["sh_type"] == "SHT_RELA"
                for one in section.iter_relocations()
            ]

    def read(self, address: int, size: int) -> bytes:
        start, _, data, _ = next(
            one for one in self.segments if one[0] <= address < one[0] + one[1]
        )
        return data[address - start : address - start + size].ljust(size, b"\0")

    def memory(self) -> Memory:
        return Memory(
            tuple(
                (start, size, data, bool(flags & 2))
                for start, size, data, flags in self.segments
                if not flags & 1
            ),
            tuple(self.relocations),
        )

    def place(self, instruction: Instruction) -> tuple[str, str, int]:
        return text.text(instruction), "", 0

    def kernel(
        self, table: gfx_tables.KernelTable, args: tuple[KernelArg, ...], arch: str
    ) -> Code:
        at, _ = self.symbols[f"{table.symbol}.kd"]
        descriptor = self.read(at, 64)
        lds, scratch, argument_bytes, _, entry = struct.unpack_from("<IIIIq", descriptor)
        rsrc1, rsrc2 = struct.unpack_from("<II", descriptor, 48)
        (properties,) = struct.unpack_from("<H", descriptor, 56)
        told = next(one for one in self.metadata["amdhsa.kernels"] if one[".name"] == table.symbol)
        address, size = self.symbols[table.symbol]
        return Code(
            name=code_object.plain_name(table.symbol),
            entry=at + entry,
            instructions=list(decode.decode(self.read(address, size), address, arch)),
            words=tuple(_words(table, args, told[".args"])),
            hidden=tuple(
                (one[".value_kind"], one[".offset"], one[".size"])
                for one in told[".args"]
                if one[".value_kind"].startswith("hidden_")
            ),
            registers=_registers(properties, rsrc2),
            vector_registers=((rsrc1 & 63) + 1) * 8,
            lds=lds,
            scratch=scratch,
            argument_bytes=argument_bytes,
            float_mode=rsrc1 >> 12 & 255,
        )


def _registers(properties: int, rsrc2: int) -> Registers:
    at, places = 0, []
    for bit, size in enumerate((4, 2, 2, 2, 2, 2, 1)):
        places.append(at if properties >> bit & 1 else -1)
        at += size if properties >> bit & 1 else 0
    return Registers(
        dispatch=places[1],
        arguments=places[3],
        scratch_size=places[6],
        end=rsrc2 >> 1 & 31,
        block=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
    )


def _words(
    table: gfx_tables.KernelTable, args: tuple[KernelArg, ...], told: list[dict[str, Any]]
) -> Iterator[Word]:
    places = [
        f"{number}{at}"
        for number, arg in enumerate(args)
        for at, _ in (arg.fields if arg.kind == "struct" else (("", arg),))
    ]
    for word, place in zip(table.words, places, strict=True):
        yield Word(
            kind=_PASSED[word.kind],
            place=place,
            offset=told[word.parameter][".offset"] + word.offset,
            size=word.size,
            lowest=word.lowest,
            highest=word.highest,
        )
