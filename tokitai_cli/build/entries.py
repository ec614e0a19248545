"""Entries of the build cache: found by first key and headers, checked before use, published whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from tokitai_cli.build.cache_store import Location
from tokitai_cli.build.inputs import Digests, Manifest
from tokitai_cli.core import process
from tokitai_cli.core.model.evidence import BuildRecord
from tokitai_cli.core.storage import data_sha256, encode, file_sha256, read_plain, write

ARTIFACT = "child"
HARNESS = "harness.cpp"
_RECORD = "record.json"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An artifact's record; `digest` covers all other fields."""

    key: str
    size: int
    record: BuildRecord
    digest: str = ""

    def sealed(self) -> Entry:
        """Copy with its digest."""
        return Entry(self.key, self.size, self.record, data_sha256([self.key, self.record]))


class DamagedError(Exception):
    """An entry that is not what was published."""


class Found(msgspec.Struct, frozen=True):
    """A good entry and the path of its executable."""

    entry: Entry
    path: Path


def find(store: Location, first_key: str, digests: Digests) -> tuple[Found | None, str]:
    """Good entry for `first_key`, if any, and a note where a damaged one was thrown away."""
    note = ""
    folder = store.part("manifests") / first_key
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        key = path.stem
        try:
            if not manifest(store, first_key, key).holds(digests):
                continue
            return read_entry(store, key), note
        except (OSError, msgspec.DecodeError, DamagedError) as error:
            note = f"a damaged entry of the build cache was discarded: {key[:12]} ({error})"
            with contextlib.suppress(OSError):
                path.unlink()
            throw_away(store, key)
    return None, note


def read_entry(store: Location, key: str) -> Found:
    """Read and check one entry; raises DamagedError, OSError or msgspec.DecodeError."""
    return _read(store.part("artifacts") / key, key)


def _read(folder: Path, key: str) -> Found:
    try:
        entry = msgspec.json.decode(read_plain(folder / _RECORD), type=Entry)
        path = folder / ARTIFACT
        if entry.key != key or entry != entry.sealed():
            raise DamagedError("its record was changed")
        if path.stat().st_size != entry.size:
            raise DamagedError("the executable has a different size")
        if file_sha256(path) != entry.record.artifact_sha256:
            raise DamagedError("the executable has a different digest")
        if not os.access(path, os.X_OK):
            raise DamagedError("the executable has no permission to run")
    except FileNotFoundError as error:
        raise DamagedError(f"{Path(error.filename).name} is missing") from error
    return Found(entry, path)


def publish(
    store: Location, built: Path, first_key: str, used: Manifest, record: BuildRecord
) -> Found:
    """Move the finished folder `built` into the cache by one rename.

    Where another process was faster, its entry is used if it is good. Raises OSError, and DamagedError
    where the cache is cleared meanwhile.
    """
    key = artifact_key(first_key, used)
    entry = Entry(key, (built / ARTIFACT).stat().st_size, record).sealed()
    (built / _RECORD).write_bytes(encode(entry))
    target = store.part("artifacts") / key
    try:
        built.rename(target)
    except OSError:
        try:
            read_entry(store, key)
        except (DamagedError, msgspec.DecodeError):
            throw_away(store, key)
            built.rename(target)
    folder = store.part("manifests") / first_key
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        write(folder / f"{key}.json", encode(used), durable=False)
    except FileNotFoundError as error:
        raise DamagedError("the cache was cleared") from error
    return read_entry(store, key)


def manifest(store: Location, first_key: str, key: str) -> Manifest:
    """What a published artifact was built from. Raises OSError or msgspec.DecodeError."""
    path = store.part("manifests") / first_key / f"{key}.json"
    return msgspec.json.decode(read_plain(path), type=Manifest)


def artifact_key(first_key: str, used: Manifest) -> str:
    """Key of an artifact: everything of the first key, and every header."""
    return data_sha256([first_key, used.headers, *filter(None, [used.made])])


def throw_away(store: Location, key: str) -> None:
    """Take a damaged entry out of the cache; it vanishes at once, its files a moment later.

    One that another process has put into its place since it was read goes back.
    """
    grave = process.make_temporary_folder(store.part("tmp"), prefix="gone-")
    target = store.part("artifacts") / key
    with contextlib.suppress(OSError):
        target.rename(grave / key)
        with contextlib.suppress(DamagedError, msgspec.DecodeError):
            _read(grave / key, key)
            (grave / key).rename(target)
    shutil.rmtree(grave, ignore_errors=True)
    process.remove_temporary_folder(grave)
