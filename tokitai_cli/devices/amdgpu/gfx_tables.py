"""What a code object of ours tells of the spec's kernels: their symbols, and where each argument lies.

The unit of the kernels puts tables into it (kernels/harness/tokitai_tables_gfx.hpp).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from tokitai_cli.devices.amdgpu.binary.objects import CodeObject, Kernel

_ROW = struct.Struct("<4IqQ")


class Row(msgspec.Struct, frozen=True):
    """A word that a launch passes, in its parameter.

    Of a struct, whose fields follow it, size is 0 where the kernel takes it by value, and highest its
    bytes where the kernel takes it by a pointer.
    """

    kind: int
    parameter: int
    offset: int
    size: int
    #: Of an integer of its type.
    lowest: int
    highest: int


def kernels(code: CodeObject, count: int) -> Iterator[tuple[Kernel, list[Row]]]:
    """The kernels of the spec in its order, each with its words."""
    moved, found = dict(code.relocations), {one.address: one for one in code.kernels}
    for index in range(count):
        at, size = code.symbols[f"tokitai_kernel_{index}"]
        rows = [Row(*row) for row in _ROW.iter_unpack(code.read(at + 8, size - 8))]
        yield found[moved[at]], rows[:-1]


def symbols(code: CodeObject, count: int) -> Iterator[tuple[int, int]]:
    """Address and bytes of the variables that the spec fills, in its order."""
    moved = dict(code.relocations)
    for index in range(count):
        at, _ = code.symbols[f"tokitai_symbol_{index}"]
        yield moved[at], int.from_bytes(code.read(at + 8, 8), "little")
