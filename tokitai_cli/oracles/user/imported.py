"""Files of a user's function: its own, modules beside it that it imports, and data that these name."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tokitai_cli.core.errors import OracleError

if TYPE_CHECKING:
    import ast

# Bytes of a file that is read as Python, and letters of a text that may name a file.
_MOST_PYTHON, _MOST_NAME = 4 << 20, 200


def file_of(name: str, folder: Path) -> Path:
    """Path of the file in `file.py:function`, relative names starting from `folder`."""
    return folder / name.rpartition(":")[0]


def files_of(name: str, folder: Path) -> list[Path]:
    """Every file of a function, its own first; modules by the import statements that lead to them, and
    data by the texts in quotes that name a file, from the folder of the function's file.

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


def digest_of(paths: Iterable[Path], more: bytes = b"") -> str:
    """Sha256 in hex of the files' contents, in order, and of `more` digests of files.

    Raises OracleError where one cannot be read.
    """
    return hashlib.sha256(digests_of(paths) + more).hexdigest()


def digests_of(paths: Iterable[Path]) -> bytes:
    """Sha256 of each file's contents, one after the other. Raises OracleError as `digest_of`."""
    found = []
    for path in paths:
        try:
            found.append(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise OracleError(f"cannot read the oracle {path.name}: {error.strerror}") from error
    return b"".join(found)


def imports_of(paths: Iterable[Path], folder: Path) -> list[str]:
    """First parts of what Python files import and what is not in `folder`, in alphabetical order."""
    found = {
        name.partition(".")[0]
        for path in paths
        for node in _nodes(path)
        for name in _imported(node)
    }
    here = {path.stem if path.suffix == ".py" else path.name for path in folder.iterdir()}
    return sorted(found - here)


def _nodes(file: Path) -> Iterator[ast.AST]:
    """All of a file's syntax tree; nothing of a file that is no Python."""
    import ast

    try:
        if file.suffix != ".py" or file.stat().st_size > _MOST_PYTHON:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from ast.walk(tree)


def _imported(node: ast.AST) -> list[str]:
    import ast

    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _data(node: ast.AST, folder: Path) -> Iterator[Path]:
    """The file that a text in quotes names, from `folder`; none that is above it."""
    import ast

    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return
    name = node.value
    if not name or len(name) > _MOST_NAME or not name.isprintable() or name.startswith("/"):
        return
    try:
        path = folder / name
        if path.is_file() and ".." not in path.parts:
            yield path
    except (OSError, ValueError):
        return


def _beside(file: Path, folder: Path) -> Iterator[Path]:
    for node in _nodes(file):
        yield from _data(node, folder)
        for name in _imported(node):
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                place = folder.joinpath(*parts[:count])
                for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                    if path.is_file():
                        yield path
