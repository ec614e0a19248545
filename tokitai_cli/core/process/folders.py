"""Temporary folders that vanish with the tool, however it dies."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tokitai_cli.core.errors import StorageError
from tokitai_cli.core.process.child import end_all
from tokitai_cli.core.process.supervisor import supervisor

# The supervisor removes folders by name, a line each, and none so near to the root of the file system.
_LEAST_PARTS = 2


def temporary_base() -> Path:
    """The folder for temporary files of the system, or of TMPDIR.

    Raises StorageError where there is none in which temporary folders can be made.
    """
    try:
        return removable(Path(tempfile.gettempdir()))
    except OSError as error:
        told = f"no folder for temporary files: {error.strerror or error}"
        raise StorageError(told, hint="set TMPDIR to a writable folder") from error


def removable(parent: Path) -> Path:
    """The real path of a folder in which temporary folders can be made. Raises OSError for another."""
    base = Path(os.path.realpath(parent))
    if "\n" in str(base) or len(base.parts) < _LEAST_PARTS:
        raise OSError(errno.EINVAL, f"temporary folders are not made in {str(base)!r}")
    return base


def make_temporary_folder(parent: Path | None = None, prefix: str = "tokitai-") -> Path:
    """Make a folder, mode 0700, that is removed when the tool ends in any way.

    Raises OSError where the folder cannot be made, and StorageError where none can be anywhere.
    """
    base = temporary_base() if parent is None else removable(parent)
    folder = base / f"{prefix}{os.getpid()}-{secrets.token_hex(6)}"
    # Registered first: a tool that is killed between the two lines leaves nothing behind.
    supervisor.add_folder(folder)
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        supervisor.remove_folder(folder)
        raise
    return folder


def remove_temporary_folder(folder: Path) -> None:
    """Remove a folder of `make_temporary_folder`; one that was renamed away is only forgotten."""
    shutil.rmtree(folder, ignore_errors=True)
    supervisor.remove_folder(folder)


@contextlib.contextmanager
def temporary_folder(parent: Path | None = None, prefix: str = "tokitai-") -> Iterator[Path]:
    """`make_temporary_folder` for the length of a `with` block."""
    folder = make_temporary_folder(parent, prefix)
    try:
        yield folder
    finally:
        remove_temporary_folder(folder)


def terminate_all() -> None:
    """End every child with its group and remove every temporary folder. For handlers of signals."""
    end_all()
    for folder in supervisor.folders():
        remove_temporary_folder(folder)


# Runs before the supervisor's own exit handler, which was registered earlier.
atexit.register(terminate_all)
