"""Room around the shared arrays of an object file, so that what leaves an array shows.

On the cpu device an array of shared memory is thread-local storage without initial values. With
-fdata-sections each lies in a section of its own that has a size and no content, so that room in
front of it and behind it is a matter of numbers. They are changed in the file's own tables (ELF-64,
System V ABI chapter 4), all rows at once: pyelftools makes an object of each, and writes none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import elf
from tokitai_cli.core.errors import BuildError, CodeError
from tokitai_cli.core.model.device import SharedGuards

_SECTION = np.dtype(
    [(name, "<u4") for name in ("name", "type")]
    + [(name, "<u8") for name in ("flags", "address", "offset", "size")]
    + [(name, "<u4") for name in ("link", "info")]
    + [(name, "<u8") for name in ("align", "entry")]
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2")]
    + [(name, "<u8") for name in ("value", "size")]
)
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_THREAD_LOCAL = 0x400
_TYPE_SECTION, _TYPE_TLS = 3, 6
_UNIT = 16  # bytes, in which guards are counted


def guard_shared_arrays(path: Path, guards: SharedGuards) -> None:
    """Give every thread-local array of an object file its guards, in place.

    The size of an array's symbol says so to the harness, which finds the symbol in its own
    executable: bytes of the array in the low 32 bits, then units of 16 bytes before it and
    behind it, in 16 bits each. Raises BuildError where arrays share a section.
    """
    data = np.fromfile(path, np.uint8)
    try:
        with elf.opened(data.tobytes()) as file:
            start, count = file["e_shoff"], file.num_sections()
            wide = (file.elfclass, file.little_endian) == (64, True)
    except CodeError as error:
        raise BuildError(f"the compiler made no object file: {error}") from error
    if not wide:
        raise BuildError("the compiler made no object file for a 64-bit little-endian processor")
    sections = _table(data, start, count * _SECTION.itemsize, _SECTION)
    thread_local = (sections["flags"] & _THREAD_LOCAL) != 0
    guarded = thread_local & (sections["type"] == _NOBITS) & (sections["size"] != 0)
    if not guarded.any():
        return
    front = np.where(guarded, np.maximum(sections["align"], guards.front), 0)
    back = np.where(guarded, np.uint64(guards.back), 0)
    back[np.flatnonzero(guarded)[-1]] = guards.last
    sections["size"] += front + back
    (table,) = sections[sections["type"] == _SYMTAB]
    symbols = _table(data, int(table["offset"]), int(table["size"]), _SYMBOL)
    # Numbers above the sections' stand for absolute and common symbols.
    places = np.where(symbols["section"] < count, symbols["section"], 0)
    kinds = symbols["info"] & 15
    arrays = guarded[places] & (kinds == _TYPE_TLS)
    if symbols["value"][arrays].any():
        raise BuildError(
            "shared arrays are in one section and cannot be guarded separately",
            hint="remove section attributes, and flags such as -fno-data-sections or -flto",
        )
    symbols["value"][arrays] = front[places[arrays]]
    sizes = front[places] // _UNIT << 32 | back[places] // _UNIT << 48
    symbols["size"] += np.where(arrays & (symbols["size"] != 0), sizes, 0)
    # What is told relative to a section, such as debug information, moves with its array.
    moved = np.where(kinds == _TYPE_SECTION, front[places], 0).astype(np.int64)
    for section in sections[sections["type"] == _RELA]:
        rows = _table(data, int(section["offset"]), int(section["size"]), _RELOCATION)
        rows["addend"] += moved[rows["symbol"]]
    data.tofile(path)


def _table(data: NDArray[np.uint8], offset: int, nbytes: int, dtype: np.dtype[Any]) -> Any:
    return data[offset : offset + nbytes].view(dtype)
