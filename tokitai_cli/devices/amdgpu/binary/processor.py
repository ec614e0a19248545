"""Which processor a code object is for."""

from __future__ import annotations

import struct

from tokitai_cli.core import elf

# The low byte of e_flags. https://llvm.org/docs/AMDGPUUsage.html#elf-code-object
MACHINES = {
    0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150",
    0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x54: "gfx11-generic",
    0x3F: "gfx90a", 0x40: "gfx940", 0x4B: "gfx941", 0x4C: "gfx942", 0x4F: "gfx950",
    0x48: "gfx1200", 0x4E: "gfx1201", 0x59: "gfx12-generic", 0x49: "gfx1250",
}  # fmt: skip


def is_code_object(data: bytes) -> bool:
    """Whether an ELF file is one for AMD's processors."""
    return elf.machine(data) == elf.AMDGPU


def target_of(data: bytes) -> str:
    """The processor of a code object, "machine 0x.." where it is not known here."""
    (flags,) = struct.unpack_from("<I", data, 48)
    return MACHINES.get(flags & 0xFF, f"machine {flags & 0xFF:#04x}")
