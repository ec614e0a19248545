"""Whether a file carries machine code, by its first bytes alone: asked of every source of a spec."""

from __future__ import annotations

import re
from pathlib import Path

from tokitai_cli.core.storage import open_plain

# The processor where none is named.
USUAL = "gfx1101"
ELF, PLAIN, PACKED = b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
# How a text of PTX begins, behind comments (PTX ISA 9.0, 11.1).
_PTX = re.compile(rb"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\.version\s+\d+\.\d+\s")
HEAD = 4096  # bytes that tell


def is_machine_code(path: Path) -> bool:
    """Whether a file may carry code objects of AMD or cubins, or is PTX."""
    try:
        with open_plain(path) as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return head.startswith((ELF, PLAIN, PACKED)) or is_ptx(head)


def is_ptx(data: bytes) -> bool:
    """Whether a text is PTX."""
    return _PTX.match(data[:HEAD]) is not None
