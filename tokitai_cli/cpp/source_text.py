"""Files of C++ source text.

Files are read within limits: a source may name a pipe, a device or a file of any size, and headers
may include each other in a circle by many spellings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tokitai_cli.core import storage
from tokitai_cli.cpp.lexing import quoted_names

MAX_BYTES = 16 << 20  # of one file
MAX_FILES = 4096
_MOST_UNITS = 200  # of a folder
# Of files that may hold kernels; the first two are compiled by themselves.
_UNITS = (".cu", ".hip", ".cpp", ".cc", ".cxx")
SUFFIXES = (*_UNITS, ".cuh", ".hpp", ".h", ".inl", ".hxx", ".hh", ".inc")


def units_in(folder: Path) -> list[Path]:
    """Sources that a compiler is given, of those that lie in a folder; of a very large one the first."""
    try:
        found = sorted(one for one in folder.iterdir() if one.suffix in _UNITS)
    except OSError:
        return []
    return found[:_MOST_UNITS]


def read(path: str | Path) -> bytes | None:
    """Bytes of a regular file of at most `MAX_BYTES`; None for anything else."""
    try:
        return storage.read_plain(path, MAX_BYTES)
    except OSError:
        return None


def text_of(path: str | Path) -> str | None:
    """Text of such a file; bytes that are no UTF-8 are replaced."""
    data = read(path)
    return None if data is None else data.decode("utf-8", "replace")


def own_texts(source: Path, folders: Sequence[Path] = ()) -> Iterator[str]:
    """Text of `source`, and of the files that it includes in quotes from the including file's folder.

    Those of the include `folders` too. Each file once, by whatever names it goes; what is no readable
    file is left out.
    """
    waiting = [source]
    seen: set[tuple[int, int]] = set()
    while waiting and len(seen) < MAX_FILES:
        path = waiting.pop()
        try:
            status = path.stat()
        except (OSError, ValueError):
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        data = read(path)
        if data is not None:
            yield data.decode("utf-8", "replace")
            near = [path.parent, *folders]
            waiting += [folder / name for name in quoted_names(data) for folder in near]
