"""What a compiled kernel needs of a GPU: registers, shared memory, stack, spills."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tokitai_cli.model.device import WRITABLE, Fact

_PTXAS = "ptxas -v"
_METADATA = "AMDGPU metadata of the code object"
_COMPILING = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_GLOBAL = re.compile(r"(\d+) bytes gmem")

# Of the clang offload bundler: a file of bundled code objects, and its compressed form.
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_METHOD_ZLIB = 0
_ELF = b"\x7fELF"
_SHT_SYMTAB, _SHT_NOTE, _SHT_DYNSYM = 2, 7, 11
_STT_OBJECT = 1
_WRITE, _THREAD_LOCAL = 0x1, 0x400
_FOREIGN = re.compile(
    r".*tokitai_|.*7tokitai|_ZG|_ZN?K?St|_ZTI|_ZTS|_ZTV|DW\.ref\.|__|\.L|\.hip|llvm\."
)
_NT_AMDGPU_METADATA = 32
# Key of the metadata -> name of the fact (LLVM, User Guide for AMDGPU Backend, code object metadata).
_KEYS = {
    ".vgpr_count": "vector registers",
    ".agpr_count": "accumulation registers",
    ".sgpr_count": "scalar registers",
    ".group_segment_fixed_size": "shared bytes",
    ".private_segment_fixed_size": "scratch bytes per thread",
    ".vgpr_spill_count": "spilled vector registers",
    ".sgpr_spill_count": "spilled scalar registers",
    ".wavefront_size": "wave size",
}


def plain_name(mangled: str) -> str:
    """Name of a function in the global namespace from its linker name; another one stays as it is.

    Itanium C++ ABI 5.1: _Z, the length of the name, the name.
    """
    match = re.match(r"_Z(\d+)", mangled)
    if match is None:
        return mangled
    end = match.end() + int(match[1])
    return mangled[match.end() : end] if mangled[end : end + 1] != "I" else mangled


def variables_fact(code: bytes, source: str) -> tuple[Fact, ...]:
    """Fact that names the variables of a code object that kernels can write, if there are any."""
    try:
        names = sorted(set(_writable(code)))
    except (struct.error, IndexError):
        return ()
    return (Fact(WRITABLE, ", ".join(names), source),) if names else ()


def _writable(code: bytes) -> Iterator[str]:
    """Names of objects in sections that are written at run time (ELF-64, little-endian).

    Left out is what the harness, the compiler and the C++ library put beside the source's own.
    """
    (table,) = struct.unpack_from("<Q", code, 40)
    _, count, names = struct.unpack_from("<3H", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * at) for at in range(count)]
    kinds = {section[1] for section in sections}
    wanted = _SHT_SYMTAB if _SHT_SYMTAB in kinds else _SHT_DYNSYM
    for section in sections:
        if section[1] != wanted:
            continue
        texts = sections[section[6]][4]
        for symbol in struct.iter_unpack("<IBBHQQ", code[section[4] :][: section[5]]):
            name, info, _, place, _, size = symbol
            if info & 15 != _STT_OBJECT or not size or place >= count:
                continue
            flags = sections[place][2]
            text = _text(code, texts + name)
            lies_in = _text(code, sections[names][4] + sections[place][0])
            is_written = flags & _WRITE and not flags & _THREAD_LOCAL
            if is_written and not lies_in.startswith(".data.rel.ro") and not _FOREIGN.match(text):
                yield variable_name(text)


def variable_name(mangled: str) -> str:
    """Name of a variable without its namespaces and function (Itanium C++ ABI 5.1)."""
    if not mangled.startswith("_Z"):
        return mangled
    # A name is its length and its letters; behind the last one stand an E or a discriminator.
    for whole in (mangled, mangled.removesuffix("E"), re.sub(r"_\d+$", "", mangled)):
        for match in re.finditer(r"[1-9]\d*", whole):
            if match.end() + int(match[0]) == len(whole):
                return whole[match.end() :]
    return mangled


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(0, at)].decode("utf-8", "replace")


def ptxas_facts(log: str) -> tuple[Fact, ...]:
    """Facts of each kernel out of what `ptxas -v` prints while it compiles."""
    facts: list[Fact] = []
    kernel = ""
    if lasting := sum(map(int, _GLOBAL.findall(log))):
        facts.append(Fact(WRITABLE, f"{lasting} bytes", _PTXAS))
    for line in log.splitlines():
        if match := _COMPILING.search(line):
            kernel = plain_name(match[1])
            facts.append(Fact(f"{kernel}: machine code for", match[2], _PTXAS))
        elif kernel and (match := _PROPERTIES.search(line)):
            names = ("stack bytes per thread", "spill stores in bytes", "spill loads in bytes")
            facts += [
                Fact(f"{kernel}: {name}", value, _PTXAS)
                for name, value in zip(names, match.groups(), strict=True)
            ]
        elif kernel and (match := _USED.search(line)):
            shared = _SHARED.search(match[2])
            facts.append(Fact(f"{kernel}: registers", match[1], _PTXAS))
            facts.append(Fact(f"{kernel}: shared bytes", shared[1] if shared else "0", _PTXAS))
            kernel = ""
    return tuple(facts)


def amdgpu_facts(artifact: Path) -> tuple[Fact, ...]:
    """Facts of each kernel in the code objects that hipcc put into an executable."""
    data = artifact.read_bytes()
    facts: list[Fact] = []
    for target, code in _code_objects(data):
        facts += kernel_facts(code, target)
    if not facts:
        return (Fact("code object", "not read: no bundle of a known form", "the executable"),)
    return tuple(facts)


def kernel_facts(code: bytes, target: str = "") -> tuple[Fact, ...]:
    """Facts of each kernel of a code object, and of the variables that they can write."""
    told = metadata(code)
    if not told:
        return ()
    facts = [Fact("code object for", str(told.get("amdhsa.target", target)), _METADATA)]
    facts += variables_fact(code, "symbols of the code object")
    for kernel in told.get("amdhsa.kernels", ()):
        name = plain_name(str(kernel.get(".name", "")))
        facts += [
            Fact(f"{name}: {words}", str(kernel[key]), _METADATA)
            for key, words in _KEYS.items()
            if key in kernel
        ]
    return tuple(facts)


def _code_objects(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Target and bytes of each device code object of every bundle in an executable."""
    at = data.find(_BUNDLE)
    if at < 0:
        data = _inflated(data)
        at = data.find(_BUNDLE)
    while at >= 0:
        # Header: count of entries; each has offset, size, length of its name, and the name.
        (count,) = struct.unpack_from("<Q", data, at + len(_BUNDLE))
        position = at + len(_BUNDLE) + 8
        for _ in range(count):
            if position + 24 > len(data):
                break
            offset, size, length = struct.unpack_from("<3Q", data, position)
            name = data[position + 24 : position + 24 + length].decode("ascii", "replace")
            position += 24 + length
            code = data[at + offset : at + offset + size]
            if code.startswith(_ELF) and "amdgcn" in name:
                yield name, code
        at = data.find(_BUNDLE, at + 1)


def _inflated(data: bytes) -> bytes:
    """Bundle that was stored compressed by zlib, or nothing; other methods are not read."""
    at = data.find(_COMPRESSED)
    while at >= 0:
        version, method = struct.unpack_from("<2H", data, at + 4)
        # The header grew with its version: a total size, then 64-bit sizes.
        header = {1: 20, 2: 24, 3: 32}.get(version)
        if header is not None and method == _METHOD_ZLIB:
            try:
                return zlib.decompressobj().decompress(data[at + header :])
            except zlib.error:
                return b""
        at = data.find(_COMPRESSED, at + 1)
    return b""


def metadata(code: bytes) -> dict[str, Any]:
    """Metadata note of a code object: MessagePack in a section of notes (ELF-64, little-endian)."""
    try:
        (table,) = struct.unpack_from("<Q", code, 40)
        size, count = struct.unpack_from("<2H", code, 58)
        for index in range(count):
            kind, offset, length = struct.unpack_from("<4xI16xQQ", code, table + index * size)
            if kind == _SHT_NOTE and (found := _note(code[offset : offset + length])):
                return found
    except (struct.error, msgspec.DecodeError):
        return {}
    return {}


def _note(section: bytes) -> dict[str, Any]:
    at = 0
    while at + 12 <= len(section):
        name_size, size, kind = struct.unpack_from("<3I", section, at)
        start = at + 12 + -(-name_size // 4) * 4
        if kind == _NT_AMDGPU_METADATA:
            found = msgspec.msgpack.decode(section[start : start + size])
            return found if isinstance(found, dict) else {}
        at = start + -(-size // 4) * 4
    return {}
