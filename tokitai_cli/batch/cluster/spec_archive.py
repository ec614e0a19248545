"""A spec with everything that it is made of, as bytes that are equal for equal content.

The worker unpacks it where its digest says, so that machines alike have it under the same path: the
path of a source is part of the key of its build.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from pathlib import Path, PurePosixPath

import msgspec

from tokitai_cli.core import process
from tokitai_cli.core.errors import Location, SpecError, StorageError, UsageError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.cpp import lexing
from tokitai_cli.oracles import references

# Dask warns of graphs from 10 MB on, and every worker holds what it was sent.
MAX_BYTES = 8 << 20
_ATTEMPTS = 3


class SpecArchive(msgspec.Struct, frozen=True):
    """Files by relative path, with / between folders."""

    #: Path of the spec file.
    spec: str
    files: dict[str, bytes]
    #: Symbolic links that lead from a path to one of `files`.
    links: dict[str, str]


class Packed(msgspec.Struct, frozen=True):
    """An archive as it travels."""

    #: Sha256 of `data` in hex; `spec` as in SpecArchive.
    digest: str
    data: bytes
    spec: str


def pack(loaded: LoadedSpec) -> Packed:
    """Pack the spec, the sources of all of its variants with what they include, and users' oracles.

    Included are files in quotes that are found from the including file's own folder. A source that is
    not there, or in an installed package, is left out: the worker says so. Raises UsageError for what
    cannot travel, and SpecError where the spec was changed since it was loaded.
    """
    collector = _Collector(loaded)
    data = _read(loaded.path)
    if hashlib.sha256(data).hexdigest() != loaded.digest:
        raise SpecError(
            "the spec was changed since it was read",
            where=Location(loaded.path),
            hint="start again",
        )
    spec = collector.folder / loaded.path.name
    collector.files[spec] = data
    for name, variant in loaded.spec.variants.items():
        collector.source(name, variant.source)
        for file in references.own_files(loaded.spec, variant, loaded.folder):
            collector.oracle(name, file)
    return collector.packed(spec)


class _Collector:
    """Files by the absolute path that they are found under once folders are resolved."""

    def __init__(self, loaded: LoadedSpec) -> None:
        self._loaded = loaded
        self.folder = Path(os.path.realpath(loaded.folder))
        self.files: dict[Path, bytes] = {}
        self._links: dict[Path, Path] = {}
        self._bytes = 0

    def source(self, variant: str, name: str) -> None:
        """Add a source under its real path, as the compiler gets it, and what it includes."""
        plain = self._plain(f"variants.{variant}.source", name)
        real = Path(os.path.realpath(plain))
        if not real.is_file():
            return
        if plain != real:
            self._links[plain] = real
        self._add(real, quoted=not is_machine_code(real))

    def oracle(self, variant: str, name: str) -> None:
        """Add a file of a user's oracle."""
        plain = self._plain(f"variants.{variant}.oracle", name)
        if plain.is_file():
            self._add(plain, quoted=False)

    def packed(self, spec: Path) -> Packed:
        """Everything relative to the folder that all of it lies in."""
        for link in self._links:
            self.files.pop(link, None)
        root = os.path.commonpath([path.parent for path in (*self.files, *self._links)])
        names = {path: path.relative_to(root).as_posix() for path in (*self.files, *self._links)}
        try:
            archive = SpecArchive(
                spec=names[spec],
                files={names[path]: self.files[path] for path in sorted(self.files)},
                links={names[path]: names[self._links[path]] for path in sorted(self._links)},
            )
            data = msgspec.msgpack.encode(archive)
        except UnicodeEncodeError:
            raise self._fault("", "a path of its files is not UTF-8 text", "rename it") from None
        return Packed(hashlib.sha256(data).hexdigest(), data, archive.spec)

    def _add(self, path: Path, *, quoted: bool) -> None:
        if path in self.files:
            return
        data = self.files[path] = _read(path)
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            raise self._fault(
                "",
                f"its sources exceed the {MAX_BYTES >> 20} MiB that are sent to workers",
                "install large headers on the workers, and include them with -I",
            )
        if not quoted:
            return
        for name in lexing.quoted_names(data):
            # Found by the name that it is included by; a link among its folders is followed.
            named = path.parent / name
            found = Path(os.path.normpath(named))
            same = os.path.realpath(found) == os.path.realpath(named)
            if found.is_file() and same and not name.startswith("/"):
                self._add(found, quoted=True)

    def _plain(self, key: str, name: str) -> Path:
        """Path of a file that the spec names, without `.` and `..`."""
        if Path(name).is_absolute():
            raise self._fault(
                key,
                f"{name} is an absolute path: each worker would use a different file",
                "name it by its path from the spec",
            )
        lexical = self.folder / name
        plain = Path(os.path.normpath(lexical))
        if os.path.realpath(plain) != os.path.realpath(lexical):
            raise self._fault(
                key,
                f"{name} goes through a symbolic link and back by `..`",
                "name the file by its direct path",
            )
        return plain

    def _fault(self, key: str, message: str, hint: str) -> UsageError:
        return UsageError(message, where=Location(self._loaded.path, key=key), hint=hint)


def folder() -> Path:
    """Folder that this user's archives are unpacked in, on this machine.

    Made where it is not there. Raises StorageError where it is not this user's alone.
    """
    base = Path(os.path.realpath(tempfile.gettempdir())) / f"tokitai-specs-{os.getuid()}"
    try:
        with contextlib.suppress(FileExistsError):
            base.mkdir(mode=0o700)
        status = base.lstat()
    except OSError as error:
        raise _unusable(base, error) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StorageError(
            f"{base} is not a folder that belongs only to this user",
            hint="remove it, or set TMPDIR to another folder for the workers",
        )
    return base


def unpack(data: bytes) -> Path:
    """Folder that holds exactly what the archive does, below `folder()` and named by its digest.

    What exists already is compared byte by byte, and made anew where it differs. Raises StorageError
    where it cannot be written, and for an archive that names anything outside of itself.
    """
    base = folder()
    target = base / hashlib.sha256(data).hexdigest()
    archive = msgspec.msgpack.decode(data, type=SpecArchive)
    _check_names(archive)
    try:
        if _holds(target, archive) or _publish(base, target, archive):
            return target
    except OSError as error:
        raise _unusable(base, error) from error
    raise StorageError(f"{target} does not contain what was written into it")


def _publish(base: Path, target: Path, archive: SpecArchive) -> bool:
    """Write the archive beside `target` and rename it; several processes may do so at once."""
    fresh = process.make_temporary_folder(base, prefix="new-")
    try:
        _write(fresh, archive)
        for _ in range(_ATTEMPTS):
            try:
                fresh.rename(target)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise
            if _holds(target, archive):
                return True
            _move_aside(target)
        return False
    finally:
        process.remove_temporary_folder(fresh)


def stamps(target: Path) -> tuple[tuple[str, int, int, int], ...]:
    """What changes when a file of an unpacked archive does: paths, inodes, sizes, times."""
    found = [(path, path.lstat()) for path in sorted(target.rglob("*"))]
    return tuple((str(path), one.st_ino, one.st_size, one.st_mtime_ns) for path, one in found)


def _check_names(archive: SpecArchive) -> None:
    """Raise StorageError for paths that lead out of the archive, or through a link of it."""
    names = {*archive.files, *archive.links}
    for name in (*names, *archive.links.values(), archive.spec):
        parts = name.split("/")
        if not name or "\0" in name or any(part in {"", ".", ".."} for part in parts):
            raise StorageError(f"an archive names a path outside of itself: {name!r}")
        above = {str(one) for one in PurePosixPath(name).parents}
        if above & names:
            raise StorageError(f"an archive has a file where {name!r} needs a folder")
    if not {*archive.links.values(), archive.spec} <= archive.files.keys():
        raise StorageError("an archive lacks a file that it names")
    if archive.files.keys() & archive.links.keys():
        raise StorageError("an archive names a path twice")


def _holds(target: Path, archive: SpecArchive) -> bool:
    """Whether the folder holds the files and links of the archive and nothing else."""
    try:
        there = {
            path.relative_to(target).as_posix()
            for path in target.rglob("*")
            if path.is_symlink() or not path.is_dir()
        }
        return (
            not target.is_symlink()
            and there == {*archive.files, *archive.links}
            and all(_is(target / name, data) for name, data in archive.files.items())
            and all(
                (target / name).readlink() == Path(_target(name, to))
                for name, to in archive.links.items()
            )
        )
    except OSError:
        return False


def _is(path: Path, data: bytes) -> bool:
    return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data


def _write(fresh: Path, archive: SpecArchive) -> None:
    for name, data in archive.files.items():
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).write_bytes(data)
    for name, to in archive.links.items():
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).symlink_to(_target(name, to))


def _target(name: str, to: str) -> str:
    return os.path.relpath(to, PurePosixPath(name).parent)


def _move_aside(target: Path) -> None:
    """Remove what lies at `target`, by a rename first, so that nobody sees half of it."""
    old = target.with_name(f"old-{secrets.token_hex(6)}")
    try:
        target.rename(old)
    except FileNotFoundError:
        return
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _unusable(base: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{base} cannot be used: {error.strerror or error}",
        hint="set TMPDIR to a folder with enough space for the workers",
    )
