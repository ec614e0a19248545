"""Whether a file carries machine code, by its first bytes alone: asked of every source of a spec."""

from __future__ import annotations

from pathlib import Path

from tokitai_cli.core.storage import open_plain

# The processor where none is named.
USUAL = "gfx1101"
ELF, PLAIN, PACKED = b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"


def is_machine_code(path: Path) -> bool:
    """Whether a file may carry code objects."""
    try:
        with open_plain(path) as file:
            return file.read(32).startswith((ELF, PLAIN, PACKED))
    except OSError:
        return False
