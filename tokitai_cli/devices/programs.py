"""Looking for programs and asking them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokitai_cli.core import process
from tokitai_cli.devices.environment import compiler_environment

PROBE_SECONDS = 20.0


def first_program(candidates: Iterable[tuple[str, str]]) -> tuple[Path, str] | None:
    """Return the first of (program, how it was named) that is there, with its absolute path.

    A program without a slash is looked for in PATH.
    """
    for name, source in candidates:
        found = shutil.which(name) if name else None
        if found:
            return Path(os.path.abspath(found)), source  # noqa: PTH100 - links stay as they are
    return None


def pip_zig() -> Path | None:
    """The program of pip's ziglang, None where it is not installed."""
    found = importlib.util.find_spec("ziglang")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        program = Path(folder) / "zig"
        if program.is_file():
            return program
    return None


def answer(argv: Sequence[str]) -> str:
    """Return what a program prints, or an empty text where it fails or is not there."""
    done = process.run(argv, env=compiler_environment(), timeout=PROBE_SECONDS)
    return done.stdout.strip() if done.returncode == 0 else ""


def read_text(path: str, limit: int = 1 << 16) -> str:
    """First `limit` bytes of a file as text, or an empty text."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
