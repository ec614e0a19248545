"""Console blocks of the README are what the tool prints: `$ command`, then its standard output."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.runs import tokitai
from tokitai_cli import spec
from tokitai_cli.model.spec import Check

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


MATRIX = re.compile(
    r"(<!-- support matrix: [^\n]*-->\n).*?(<!-- end of the support matrix -->)", re.DOTALL
)
DEVICE = re.compile(r"^\| (\w+) \| [^|]* \| runs[^|[]*(\[\^\w+\])? \|", re.MULTILINE)


def shown_check(check: Check) -> str:
    if check.metric in ("exact", "bound", "bound-chained", "bound-prob"):
        limit = ""
    else:
        limit = f" {check.limit:g}"
    against = " against the replay" if check.against == "replay" else ""
    output = f" of {check.output}" if check.output else ""
    return f"{check.metric}{limit}{output}{against}"


def support_matrix() -> str:
    """A row for each variant of each shipped spec; devices are those that the README says run."""
    text = README.read_text(encoding="utf-8")
    devices = ", ".join(f"{name}{note}" for name, note in DEVICE.findall(text))
    lines = [
        "| op | variant | lowering id | profiles | checks | properties | devices |",
        "|---|---|---|---|---|---|---|",
    ]
    for _, path in spec.builtin():
        one = spec.load(path).spec
        for name, variant in one.variants.items():
            cells = [
                one.op,
                name,
                f"`{variant.lowering}`",
                ", ".join(variant.profiles or one.profiles),
                ", ".join(map(shown_check, variant.checks)),
                ", ".join(asked.name for asked in variant.properties) or "-",
                devices,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)


def test_support_matrix_is_what_the_specs_say() -> None:
    text = README.read_text(encoding="utf-8")
    wanted = MATRIX.sub(lambda match: f"{match[1]}\n{support_matrix()}\n{match[2]}", text)
    if UPDATE:
        README.write_text(wanted, "utf-8")
    assert text.count("<!-- support matrix") == 1
    assert README.read_text(encoding="utf-8") == wanted
    assert len(DEVICE.findall(text)) >= 1
    for lowering in ("hip.softmax.grad.fp16_f32", "hip.layernorm.fp16_f32.bwd"):
        assert f"| `{lowering}` |" in wanted


def test_readme_shows_a_refuted_kernel_and_the_help() -> None:
    assert any("verify docs/examples" in command for command in commands())
    assert any(command.endswith("--help") for command in commands())
