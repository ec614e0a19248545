"""What the build cache holds, for `tokitai cache`."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from tokitai_cli.build.cache_store import Location, location
from tokitai_cli.build.entries import DamagedError, read_entry
from tokitai_cli.core.model.diagnosis import CacheRow

__all__ = ["CacheRow", "Location", "clear", "entries", "location", "size"]


def entries() -> list[CacheRow]:
    """Every artifact in the cache, checked, newest first. `built` is a POSIX time in seconds."""
    store = location()
    found: list[CacheRow] = []
    for folder in store.part("artifacts").iterdir():
        device, source, damage = "", "", ""
        try:
            record = read_entry(store, folder.name).entry.record
            device, source = record.device, record.source
        except (OSError, msgspec.DecodeError, DamagedError) as error:
            damage = str(error)
        with contextlib.suppress(OSError):  # another process may clear the cache meanwhile
            built = folder.stat().st_mtime
            found.append(CacheRow(folder.name, device, source, _bytes(folder), built, damage))
    return sorted(found, key=lambda entry: -entry.built)


def size() -> int:
    """Bytes of all files in the cache."""
    return _bytes(location().folder)


def clear() -> int:
    """Remove everything that the cache holds, and nothing else; returns the bytes freed."""
    store = location()
    before = _bytes(store.folder)
    for folder in list(store.folder.iterdir()):
        for path in list(folder.iterdir()) if folder.is_dir() else [folder]:
            if folder.name == "tmp" and _in_use(path):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return before - _bytes(store.folder)


def _in_use(folder: Path) -> bool:
    """Whether a build folder (PREFIX-PID-RANDOM) belongs to a process that is alive."""
    words = folder.name.split("-")
    if len(words) != 3 or not words[1].isdigit():
        return False
    try:
        os.kill(int(words[1]), 0)
    except OSError:
        return False
    return True


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink():
                total += path.stat().st_size
    return total
