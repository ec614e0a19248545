"""The build cache on disk.

    FOLDER/artifacts/KEY/      child, harness source, record.json; published by one rename
    FOLDER/manifests/KEY1/KEY  headers (path -> sha256) that the artifact KEY was built from
    FOLDER/libraries/KEY/      a shared library of the tool's own, and its digest
    FOLDER/compilers/          identities by path, size and mtime
    FOLDER/logs/               what compilers printed
    FOLDER/tmp/                builds under way

No file is ever locked or changed in place: a process that is killed can leave nothing but a folder
under tmp/, and the supervisor removes that.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import msgspec

from tokitai_cli.core import process

FORMAT = "builds-v3"
PARTS = ("artifacts", "manifests", "libraries", "compilers", "logs", "tmp")


class Location(msgspec.Struct, frozen=True):
    """Where builds are kept. `note` says why, where that is a private temporary folder."""

    folder: Path
    note: str = ""

    def part(self, name: str) -> Path:
        """One of the folders of the cache."""
        return self.folder / name


_opened: dict[str, Location] = {}


def location() -> Location:
    """Find the cache's folder, made and checked: TOKITAI_CACHE, else the user's cache folder.

    Where that cannot be written, or belongs to somebody else, it is a private temporary folder that
    is removed when the tool ends.
    """
    base = _base()
    known = _opened.get(str(base))
    if known is not None and known.folder.is_dir():
        return known
    try:
        found = Location(_prepare(process.removable(base)))
    except OSError as error:
        reason = error.strerror or str(error)
        folder = process.make_temporary_folder(prefix="tokitai-builds-")
        for part in PARTS:
            (folder / part).mkdir(mode=0o700)
        found = Location(
            folder,
            f"the build cache {base} cannot be used ({reason}); "
            "this run builds into a temporary folder (set TOKITAI_CACHE to a folder of your own)",
        )
    _opened[str(base)] = found
    return found


def _base() -> Path:
    chosen = os.environ.get("TOKITAI_CACHE", "")
    if chosen:
        return Path(os.path.abspath(chosen))  # noqa: PTH100 - the folder may not exist yet
    import platformdirs

    return Path(platformdirs.user_cache_dir("tokitai", appauthor=False))


def _prepare(base: Path) -> Path:
    """Make and check the cache's own folder in `base`; raises OSError where it cannot serve."""
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_owner(base, {os.geteuid(), 0})
    folder = base / FORMAT
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _check_owner(folder, {os.geteuid()})
    if stat.S_IMODE(folder.lstat().st_mode) & 0o077:
        folder.chmod(0o700)
    for part in PARTS:
        (folder / part).mkdir(mode=0o700, exist_ok=True)
    if not os.access(folder / "tmp", os.W_OK | os.X_OK):
        raise OSError(0, "not writable")
    return folder


def _check_owner(folder: Path, owners: set[int]) -> None:
    status = folder.lstat() if folder.name == FORMAT else folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(0, f"{folder} is not a folder")
    if status.st_uid not in owners:
        raise OSError(0, f"{folder} belongs to user {status.st_uid}")
