"""What a code object of ours tells of the spec's kernels: their symbols, and where each argument lies.

The unit of the kernels puts tables into it (kernels/harness/tokitai_tables_gfx.hpp).
"""

from __future__ import annotations

import struct

import msgspec

from tokitai_cli.gfx.code import elf

_ROW = struct.Struct("<4IqQ")
_PLACE = struct.Struct("<QQ")


class Word(msgspec.Struct, frozen=True):
    """A word that a launch passes: where it lies in which parameter, and what an integer must be within."""

    kind: int
    parameter: int
    offset: int
    size: int
    lowest: int
    highest: int


class KernelTable(msgspec.Struct, frozen=True):
    """A kernel of the spec: its linker name in the code object, and its words in order."""

    symbol: str
    words: tuple[Word, ...]


class SymbolPlace(msgspec.Struct, frozen=True):
    """A variable that the spec fills: address in the code object, and bytes."""

    address: int
    size: int


def read(code: bytes, kernels: int, symbols: int) -> tuple[list[KernelTable], list[SymbolPlace]]:
    """Tables of the numbered kernels and symbols; raises CodeError where one is missing."""
    with elf.opened(code) as file:
        listed = list(file.get_section_by_name(".dynsym").iter_symbols())
        named = {one.name: one.entry for one in listed}
        moved = {
            relocation["r_offset"]: relocation["r_addend"]
            + listed[relocation["r_info_sym"]].entry["st_value"]  # of number 0 it is 0
            for section in file.iter_sections()
            if section["sh_type"] == "SHT_RELA"
            for relocation in section.iter_relocations()
        }
        segments = [
            (one["p_vaddr"], one.data())
            for one in file.iter_segments()
            if one["p_type"] == "PT_LOAD"
        ]
    functions = {
        entry["st_value"]: name
        for name, entry in named.items()
        if entry["st_info"]["type"] == "STT_FUNC"
    }

    def held(name: str) -> tuple[int, bytes]:
        entry = named.get(name)
        if entry is None:
            raise elf.CodeError(f"the code object has no table {name}")
        at, size = entry["st_value"], entry["st_size"]
        start, data = next(one for one in segments if one[0] <= at < one[0] + len(one[1]))
        return at, data[at - start : at - start + size]

    tables = []
    for index in range(kernels):
        at, data = held(f"tokitai_kernel_{index}")
        rows = [Word(*row) for row in _ROW.iter_unpack(data[8:])][:-1]
        tables.append(KernelTable(functions[moved[at]], tuple(rows)))
    places = []
    for index in range(symbols):
        at, data = held(f"tokitai_symbol_{index}")
        places.append(SymbolPlace(moved[at], _PLACE.unpack(data)[1]))
    return tables, places
