"""Where the files that ship with tokitai lie: in the wheel's `_data`, or at a checkout's top level."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_DATA = _PACKAGE / "_data"
_ROOT = _DATA if _DATA.is_dir() else _PACKAGE.parent


def specs_dir() -> Path:
    """Folder of the built-in spec files."""
    return _ROOT / "specs"


def formulas_dir() -> Path:
    """Folder of the built-in ops' formulas, `op.function` being `function` of the file `op`."""
    return _ROOT / "formulas"


def kernels_dir() -> Path:
    """Folder of the shipped kernels, host headers (`host/`) and the harness (`harness/`)."""
    return _ROOT / "kernels"


def templates_dir() -> Path:
    """Folder of the report templates."""
    return _ROOT / "reports" / "templates"


def is_file(path: Path) -> bool:
    """Whether a file is there; False for a path that no system takes, where `Path.is_file` may raise."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Whether a folder is there; as `is_file`."""
    return os.path.isdir(path)  # noqa: PTH112


def file_of(folder: Path, name: str) -> Path:
    """The file that a spec in `folder` names: beside it, else PACKAGE/FILE of an installed package.

    A package is not imported. The path beside the spec where there is neither.
    """
    beside = folder / name
    package, _, rest = name.partition("/")
    if not rest or not package.isidentifier() or is_file(beside) or is_folder(beside):
        return beside
    import importlib.util

    found = importlib.util.find_spec(package)
    places = [Path(one) / rest for one in (found and found.submodule_search_locations) or ()]
    return next((one for one in places if is_file(one)), beside)


def checkout() -> Path | None:
    """Top level of the git checkout that the tool runs from, or None for an installed wheel."""
    return _ROOT if (_ROOT / ".git").exists() else None
