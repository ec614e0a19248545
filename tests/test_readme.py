"""Console blocks of the README are what the tool prints: `$ command`, then its standard output."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.runs import tokitai

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"```console\n\$ (tokitai [^\n]*)\n(.*?)```", re.DOTALL)
UPDATE = bool(os.environ.get("TOKITAI_UPDATE_GOLDEN"))


def commands() -> list[str]:
    return [command for command, _ in BLOCK.findall(README.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("command", commands())
def test_readme_shows_what_the_tool_prints(command: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    done = tokitai(*shlex.split(command)[1:], cwd=tmp_path)
    text = README.read_text(encoding="utf-8")
    shown = dict(BLOCK.findall(text))[command]
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    if UPDATE:
        block = f"$ {command}\n"
        README.write_text(text.replace(f"{block}{shown}```", f"{block}{printed}```"), "utf-8")
    else:
        assert shown == printed, done.stderr


def test_readme_shows_a_refuted_kernel_and_the_help() -> None:
    assert any("verify docs/examples" in command for command in commands())
    assert any(command.endswith("--help") for command in commands())
