"""Which compiler it is: path, version text and digest, of the driver and of what it calls."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tokitai_cli.build import cache_store
from tokitai_cli.core import process
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.model.evidence import CompilerRecord
from tokitai_cli.core.storage import data_sha256, encode, file_sha256, write

_ASK_SECONDS = 60.0


class _Stamp(msgspec.Struct, frozen=True):
    """State of a program's file when its identity was taken."""

    path: str
    size: int
    mtime_ns: int


class _Known(msgspec.Struct, frozen=True):
    """A remembered identity, good as long as every stamp holds."""

    stamps: list[_Stamp]
    record: CompilerRecord


def identify(recipe: Recipe) -> CompilerRecord:
    """Identity of the recipe's compiler; remembered by path, size and mtime of every program.

    Raises BuildError where the compiler does not run.
    """
    environment = {name: recipe.environment[name] for name in sorted(recipe.environment)}
    key = data_sha256(
        {
            "path": str(recipe.compiler),
            "version": recipe.version_command,
            "wraps": [str(path) for path in recipe.wraps],
            "ask": recipe.wrap_commands,
            "environment": environment,
        }
    )
    memory = cache_store.location().part("compilers") / f"{key}.json"
    known = _recall(memory)
    if known is not None:
        return known
    record, stamps = _ask(recipe)
    write(memory, encode(_Known(stamps, record)), durable=False)
    return record


def _recall(memory: Path) -> CompilerRecord | None:
    try:
        known = msgspec.json.decode(memory.read_bytes(), type=_Known)
        if all(_stamp(Path(stamp.path)) == stamp for stamp in known.stamps):
            return known.record
    except (OSError, msgspec.DecodeError):
        return None
    return None


def _ask(recipe: Recipe) -> tuple[CompilerRecord, list[_Stamp]]:
    version = process.run(recipe.version_command, env=recipe.environment, timeout=_ASK_SECONDS)
    if version.returncode != 0:
        reason = (version.stderr or version.stdout).strip().splitlines()
        raise BuildError(
            f"the compiler does not run: {recipe.compiler}"
            + (f": {reason[0]}" if reason else f" ({process.signal_name(version.returncode)})"),
            hint="`tokitai doctor` shows the compilers that were found",
            log=version.stdout + version.stderr,
            command=recipe.version_command,
        )
    programs = [path for path in (*recipe.wraps, *_wrapped(recipe)) if path.is_file()]
    try:
        stamps = [_stamp(path) for path in (recipe.compiler, *programs)]
        record = CompilerRecord(
            path=str(recipe.compiler),
            version=(version.stdout or version.stderr).strip(),
            sha256=file_sha256(recipe.compiler),
            wraps={str(path): file_sha256(path) for path in programs},
        )
    except OSError as error:
        raise BuildError(f"the compiler cannot be read: {error}") from error
    return record, stamps


def _wrapped(recipe: Recipe) -> list[Path]:
    found: dict[Path, None] = {}
    for command in recipe.wrap_commands:
        answer = process.run(command, env=recipe.environment, timeout=_ASK_SECONDS)
        text = answer.stdout.strip()
        # A driver that does not know the program prints the bare name.
        if answer.returncode == 0 and text.startswith("/") and "\n" not in text:
            found[Path(text).resolve()] = None
    return list(found)


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return _Stamp(str(path), status.st_size, status.st_mtime_ns)
