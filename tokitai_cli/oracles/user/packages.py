"""Installed packages that a user's files import, and what these need: by version and digest."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokitai_cli.oracles.user.imported import files_of, imports_of

# The tool is in the evidence by its own record.
_OWN = {"tokitai_cli", "tokitai"}
_REQUIRED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTIONAL = re.compile(r"\bextra\s*==")


def packages_of(name: str, folder: Path) -> dict[str, str]:
    """`package NAME VERSION` -> sha256 of its list of files with their digests.

    Of each package that the files of the function `name` import by statement, and of all that those say
    that they need.
    """
    files = files_of(name, folder)
    folder = files[0].parent
    if not folder.is_dir():
        return {}
    asked = imports_of(files, folder)
    return dict(_known(tuple(one for one in asked if one not in sys.stdlib_module_names | _OWN)))


@functools.lru_cache(maxsize=64)
def _known(modules: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if not modules:
        return ()
    from importlib import metadata  # which brings the whole of `email`

    found: dict[str, str] = {}
    todo = [name for module in modules for name in _owners(module)]
    while todo:
        try:
            package = metadata.distribution(todo.pop())
        except (metadata.PackageNotFoundError, ValueError):
            continue
        name = package.name.lower().replace("_", "-")
        key = f"package {name} {package.version}"
        if name not in _OWN and key not in found:
            listed = package.read_text("RECORD") or package.read_text("METADATA") or ""
            found[key] = hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()
            todo += _needed(package.requires or [])
    return tuple(sorted(found.items()))


def _owners(module: str) -> Sequence[str]:
    """Names of the packages that install a module."""
    from importlib import metadata

    try:
        return [metadata.distribution(module).name]
    except (metadata.PackageNotFoundError, ValueError):
        return metadata.packages_distributions().get(module, [])


def _needed(requires: Sequence[str]) -> Iterator[str]:
    """Names of what is needed without any extra."""
    for one in requires:
        match = _REQUIRED.match(one)
        if match and not _OPTIONAL.search(one):
            yield match[0]
