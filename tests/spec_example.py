"""The whole example of docs/spec.md as files, for tests that use or break it."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parent.parent / "docs" / "spec.md"
BLOCK = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_example(folder: Path, **replaced: str) -> Path:
    """Write the three files into `folder`; returns the spec's path.

    `replaced` gives other contents: spec, kernel or oracle.
    """
    files = dict(BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")))
    names = {"spec": "spec.yaml", "kernel": "vector_add.hip", "oracle": "oracle.py"}
    files |= {names[what]: text for what, text in replaced.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name in names.values():
        (folder / name).write_text(files[name], encoding="utf-8")
    return folder / "spec.yaml"


def example(name: str) -> str:
    """Text of one of the three files."""
    files: dict[str, str] = dict(BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")))
    return files[name]
