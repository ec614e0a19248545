"""Building one of the tool's own shared libraries, or finding it in the cache, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.build.cache_store import Location, location
from tokitai_cli.build.compiler import COMPILE_SECONDS, command_of, compile_in
from tokitai_cli.build.identity import identify
from tokitai_cli.core import process
from tokitai_cli.core.errors import BuildError
from tokitai_cli.core.model.device import Recipe
from tokitai_cli.core.storage import data_sha256, encode, file_sha256, read_plain

_LIBRARY, _RECORD = "library.so", "record.json"


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was published: the digest of the library's file."""

    sha256: str


class SharedLibrary(msgspec.Struct, frozen=True):
    """A library's file and its sha256; whether it was there already."""

    path: Path
    sha256: str
    cached: bool


def shared_library(
    recipe: Recipe,
    source: Path,
    depends: Sequence[Path],
    check: Callable[[Path, str], None],
) -> SharedLibrary:
    """Build `source`, or take it from the cache where it, `depends` and the compiler are the same.

    check: is called once with what was built, and its digest; what it raises keeps the library out of
    the cache. Raises BuildError where it cannot be built.
    """
    try:
        place = location()
        key = _key(recipe, [source, *depends])
        known = _found(place, key)
        return known if known is not None else _built(place, key, recipe, source, check)
    except OSError as error:
        raise BuildError(f"the build cache cannot be used: {error}") from error


def _key(recipe: Recipe, files: Sequence[Path]) -> str:
    return data_sha256(
        {
            "command": recipe.command,
            "compiler": identify(recipe),
            "features": recipe.resolved_features,
            "files": [file_sha256(path) for path in files],
        }
    )


def _found(place: Location, key: str) -> SharedLibrary | None:
    """A good entry; one that is damaged counts as none, and is built over."""
    folder = place.part("libraries") / key
    try:
        entry = msgspec.json.decode(read_plain(folder / _RECORD), type=_Entry)
        if file_sha256(folder / _LIBRARY) != entry.sha256:
            return None
    except (OSError, msgspec.DecodeError):
        return None
    return SharedLibrary(folder / _LIBRARY, entry.sha256, cached=True)


def _built(
    place: Location, key: str, recipe: Recipe, source: Path, check: Callable[[Path, str], None]
) -> SharedLibrary:
    folder = process.make_temporary_folder(place.part("tmp"), prefix="build-")
    try:
        command = command_of(recipe.command, {"source": str(source), "output": _LIBRARY})
        log = place.part("logs") / f"{key}.log"
        done = compile_in(folder, recipe, command, log, COMPILE_SECONDS)
        if done.returncode != 0 or not (folder / _LIBRARY).is_file():
            text = (done.stderr or done.stdout).strip().splitlines()
            said = text[0] if text else process.signal_name(done.returncode)
            raise BuildError(f"{source.name} cannot be built: {said}", log_path=log)
        sha256 = file_sha256(folder / _LIBRARY)
        check(folder / _LIBRARY, sha256)
        (folder / _RECORD).write_bytes(encode(_Entry(sha256)))
        target = place.part("libraries") / key
        if target.exists():  # damaged: what is loaded from it stays readable
            target.rename(process.make_temporary_folder(place.part("tmp"), prefix="gone-") / key)
        try:
            folder.rename(target)
        except OSError:  # another process was faster
            if (known := _found(place, key)) is not None:
                return known
            raise
        return SharedLibrary(target / _LIBRARY, sha256, cached=False)
    finally:
        process.remove_temporary_folder(folder)
