"""ELF files of every kind, read with pyelftools; what is damaged is a CodeError."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tokitai_cli.core.errors import CodeError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

# Processors (e_machine).
AMDGPU, CUDA = 224, 190
_WRITE, _THREAD_LOCAL = 0x1, 0x400
_SYMTAB, _DYNSYM, _OBJECT, _RESERVED = 2, 11, 1, 0xFF00
# Tables of a file of 64 bits (ELF-64 Object File Format 1.5, Section Header and Symbol Table Entry).
_SECTION = [
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"),
    ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8"),
]  # fmt: skip
_SYMBOL = [
    ("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
    ("size", "<u8"),
]  # fmt: skip
_FOREIGN = re.compile(
    r".*tokitai_|.*7tokitai|_ZG|_ZN?K?St|_ZTI|_ZTS|_ZTV|DW\.ref\.|__|\.L|\.hip|llvm\."
)


def machine(data: bytes) -> int:
    """The number of an ELF file's processor; -1 where it is none of 64 bits, little-endian."""
    whole = len(data) >= 64 and data[4:6] == b"\x02\x01"
    return int.from_bytes(data[18:20], "little") if whole else -1


@contextlib.contextmanager
def opened(data: bytes) -> Iterator[ELFFile]:
    """The file as pyelftools reads it; whatever that trips over is a CodeError."""
    from elftools.elf.elffile import ELFFile

    try:
        yield ELFFile(io.BytesIO(data))
    except (CodeError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - it trips over a stranger's bytes in many ways
        told = str(error) or "nothing more is known"
        raise CodeError(f"a damaged ELF file ({type(error).__name__}: {told})") from None


def writable(data: bytes) -> Iterator[str]:
    """Names of the objects of an ELF file that lie in sections that are written at run time.

    Left out is what the harness, the compiler and the C++ library put beside the source's own, and
    what a thread has of its own. The tables are read whole: an object of a large source has a section
    for each function, and tens of thousands of symbols.
    """
    import numpy as np

    of_section, of_symbol = np.dtype(_SECTION), np.dtype(_SYMBOL)
    with opened(data) as file:
        sections = np.frombuffer(data, of_section, file.num_sections(), file["e_shoff"])
        names = _texts(data, sections[file.get_shstrndx()])
        tables = [one for kind in (_SYMTAB, _DYNSYM) for one in sections if one["type"] == kind]
        if not tables:
            return
        count = int(tables[0]["size"]) // of_symbol.itemsize
        symbols = np.frombuffer(data, of_symbol, count, int(tables[0]["offset"]))
        texts = _texts(data, sections[tables[0]["link"]])
        places = symbols["section"]
        objects = (symbols["info"] & 0xF == _OBJECT) & (symbols["size"] > 0) & (places < _RESERVED)
        for symbol in symbols[objects]:
            section = sections[symbol["section"]]
            flags, name = int(section["flags"]), texts(symbol["name"])
            is_written = flags & _WRITE and not flags & _THREAD_LOCAL
            if (
                is_written
                and not names(section["name"]).startswith(".data.rel.ro")
                and not _FOREIGN.match(name)
            ):
                yield variable_name(name)


def _texts(data: bytes, section: Any) -> Callable[[int], str]:
    """Texts of a section by their offsets in it."""
    begin, end = int(section["offset"]), int(section["offset"] + section["size"])

    def text(offset: int) -> str:
        stop = data.index(b"\0", begin + int(offset), end)
        return data[begin + int(offset) : stop].decode("utf-8", "replace")

    return text


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


def sections(data: bytes, name: str) -> list[bytes]:
    """The contents of the sections of that name."""
    with opened(data) as file:
        return [held(file, one) for one in file.iter_sections() if one.name == name]


def held(file: ELFFile, section: Any) -> bytes:
    """What a section holds; pyelftools reads as much as the section claims."""
    if section["sh_type"] == "SHT_NOBITS":
        return b""
    if section["sh_offset"] + section["sh_size"] > file.stream_len:
        raise CodeError(f"a damaged ELF file: section {section.name!r} ends behind it")
    data: bytes = section.data()
    return data
