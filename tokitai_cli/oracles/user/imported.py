"""Files of a user's function: its own, and the modules beside it that it imports."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokitai_cli.core.errors import OracleError


def file_of(name: str, folder: Path) -> Path:
    """Path of the file in `file.py:function`, relative names starting from `folder`."""
    return folder / name.rpartition(":")[0]


def files_of(name: str, folder: Path) -> list[Path]:
    """Every file of a function, its own first; modules by the import statements that lead to them.

    A module beside the file counts by its name, wherever else Python might find one. Files that are no
    Python are not looked into.
    """
    first = file_of(name, folder)
    found = {first: None}
    todo = [first]
    while todo:
        for path in _beside(todo.pop(), first.parent):
            if path not in found:
                found[path] = None
                todo.append(path)
    return list(found)


def digest_of(paths: Iterable[Path]) -> str:
    """Sha256 in hex of the files' contents, in order. Raises OracleError where one cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise OracleError(f"cannot read the oracle {path.name}: {error.strerror}") from error
    return digest.hexdigest()


def _beside(file: Path, folder: Path) -> Iterator[Path]:
    import ast

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                place = folder.joinpath(*parts[:count])
                for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                    if path.is_file():
                        yield path
