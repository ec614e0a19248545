"""Where the files that ship with tokitai lie: in the wheel's `_data`, or at a checkout's top level."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
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


def checkout() -> Path | None:
    """Top level of the git checkout that the tool runs from, or None for an installed wheel."""
    return _ROOT if (_ROOT / ".git").exists() else None
