"""Machine code of NVIDIA GPUs in files, cubins and PTX: kernels and their parameters.

Formats: sections `.nv.info.NAME` of a cubin as `cuobjdump -elf` of CUDA 13.0 tells them;
PTX ISA 9.0, 5.1.6 (state space .param) and 11.1 (.version, .target).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.core import elf
from tokitai_cli.core.errors import CodeError, Location
from tokitai_cli.core.file_kind import ELF, HEAD, is_ptx
from tokitai_cli.core.storage import open_plain, read_plain
from tokitai_cli.devices.amdgpu.binary.objects import Argument, Compiled

_NEWER_ABI = 8
_MOST = 1 << 28  # bytes of a file
# Attributes of .nv.info: forms whose value is in the entry itself, and one whose value follows.
_INLINE, _FOLLOWS = (1, 2, 3), 4
_INFO, _REGISTERS = ".nv.info", 0x2F
_MOST_THREADS, _REQUIRED_THREADS, _PARAMETER = 0x05, 0x10, 0x17
# The bank of a kernel's parameters, which a function that kernels call has not.
_CONSTANTS = ".nv.constant0"
_ARCH = re.compile(rb"-arch[ =](sm_\d+[af]?)\b")
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[af]?)", re.M)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+(?:\s*,\s*\d+)*)")
_DECLARED = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.([a-z]\d+)(\s+\.ptr)?(?:\s+\.(?!align)\w+)*"
    r"(?:\s+\.align\s+\d+)?\s+[\w$]+(?:\[(\d+)\])?"
)
_NAME = re.compile(r"sm_(\d+)(\d)([af]?)")


class CudaKernel(Compiled, frozen=True):
    """A kernel. Offsets of `args` count from the first; no cubin tells which of them are addresses."""

    args: tuple[Argument, ...]
    #: Threads that a block of it may have, 0 for no bound.
    most_threads: int = 0
    #: A thread's; None in PTX, which leaves them to the driver.
    registers: int | None = None


class CudaModule(msgspec.Struct, frozen=True):
    """A cubin, or a text of PTX, as the driver loads it."""

    #: The architecture that it was compiled for, as "sm_90a".
    arch: str
    kernels: tuple[CudaKernel, ...]
    data: bytes
    #: Whether the driver compiles it for the GPU that is there.
    portable: bool

    @property
    def target(self) -> str:
        """What it was compiled for, in words."""
        return f"{self.arch} (PTX)" if self.portable else self.arch

    def serves(self, arch: str) -> bool:
        """Whether it runs on a GPU (CUDA C++ Programming Guide, 3.1.2 to 3.1.4)."""
        ours, theirs = _NAME.fullmatch(self.arch), _NAME.fullmatch(arch)
        if ours is None or theirs is None:
            return False
        major, minor, only = int(ours[1]), int(ours[2]), ours[3]
        same = major == int(theirs[1])
        if only == "a":
            return same and minor == int(theirs[2])
        newer = (major, minor) <= (int(theirs[1]), int(theirs[2]))
        return newer and (same or (self.portable and not only))


def is_cuda(data: bytes) -> bool:
    """Whether a file is a cubin or PTX, by its first bytes."""
    return is_ptx(data) or (data.startswith(ELF) and elf.machine(data) == elf.CUDA)


def is_cuda_file(path: Path) -> bool:
    """Whether a file is a cubin or PTX."""
    try:
        with open_plain(path) as file:
            return is_cuda(file.read(HEAD))
    except OSError:
        return False


def read(path: Path) -> CudaModule:
    """The module in a file. Raises CodeError for what is none, or damaged."""
    try:
        data = read_plain(path, _MOST)
        if not is_cuda(data):
            hint = "--device gfx or rocm runs code objects of AMD"
            raise CodeError("neither a cubin nor PTX, which the cuda device runs", hint=hint)
        return _of_text(data) if is_ptx(data) else _of_cubin(data)
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise CodeError(message, where=Location(path)) from None
    except CodeError as error:
        raise CodeError(error.message, where=Location(path), hint=error.hint) from None


def _of_cubin(data: bytes) -> CudaModule:
    with elf.opened(data) as file:
        sections: dict[str, Any] = {one.name: one for one in file.iter_sections()}
        flags, newer = file["e_flags"], file["e_ident"]["EI_ABIVERSION"] >= _NEWER_ABI
        told = {
            name.removeprefix(_INFO): list(_attributes(elf.held(file, section)))
            for name, section in sections.items()
            if name.startswith(_INFO)
        }
        table: Any = file.get_section_by_name(".symtab")
        names = [one.name for one in table.iter_symbols()] if table is not None else []
        registers = {
            names[at]: count
            for attribute, value in told.pop("", [])
            if attribute == _REGISTERS and len(value) == 8
            for at, count in [struct.unpack("<II", value)]
            if at < len(names)
        }
        kernels = [
            _kernel(name[1:], some, registers.get(name[1:]))
            for name, some in sorted(told.items())
            if f"{_CONSTANTS}{name}" in sections
        ]
        note = sections.get(".note.nv.tkinfo")
        said = _ARCH.search(elf.held(file, note)) if note is not None else None
    arch = said[1].decode() if said else f"sm_{flags >> (8 if newer else 0) & 0xFF}"
    return CudaModule(arch, tuple(kernels), data, portable=False)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of each attribute."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form not in (*_INLINE, _FOLLOWS):
            raise CodeError(f"a damaged cubin: an attribute of form {form}")
        length = size if form == _FOLLOWS else 0
        yield attribute, data[at : at + length] if length else data[at - 2 : at]
        at += length


def _kernel(symbol: str, told: list[tuple[int, bytes]], registers: int | None) -> CudaKernel:
    rows = []
    most = 0
    for attribute, value in told:
        if attribute == _PARAMETER and len(value) == 12:
            _, ordinal, offset, packed = struct.unpack("<IHHI", value)
            rows.append((ordinal, Argument(offset, packed >> 18, "")))
        elif attribute in (_MOST_THREADS, _REQUIRED_THREADS) and len(value) == 12:
            most = prod(struct.unpack("<III", value))
    args = tuple(one for _, one in sorted(rows, key=lambda row: row[0]))
    return CudaKernel(symbol, args, most, registers)


def _of_text(data: bytes) -> CudaModule:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", data.decode("utf-8", "replace"), flags=re.S)
    target = _TARGET.search(text)
    if target is None:
        raise CodeError("PTX without .target sm_NN")
    kernels = []
    for name, declared, directives in _ENTRY.findall(text):
        limit = _THREADS.search(directives)
        most = prod(map(int, limit[1].split(","))) if limit else 0
        kernels.append(CudaKernel(name, tuple(_parameters(name, declared)), most))
    return CudaModule(target[1], tuple(kernels), data + b"\0", portable=True)


def _parameters(name: str, declared: str) -> Iterator[Argument]:
    """Parameters one behind another, each at a multiple of its alignment."""
    at = 0
    for one in filter(None, map(str.strip, declared.split(","))):
        match = _DECLARED.fullmatch(one)
        if match is None:
            raise CodeError(f"PTX: the parameter `{one}` of {name} is not understood")
        alignment, kind, pointer, count = match.groups()
        width = int(kind[1:]) // 8
        size, align = width * int(count or 1), int(alignment or width)
        at = -(-at // align) * align
        yield Argument(at, size, "global_buffer" if pointer else "")
        at += size
