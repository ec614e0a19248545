"""Console blocks of README and docs/cli are what the tool prints: `$ command`, then its stdout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.runs import tokitai
from tokitai_cli import spec
from tokitai_cli.core.model.options import WATCH_VARIABLE
from tokitai_cli.core.model.spec import Check

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
OVERVIEW = ROOT / "docs" / "cli.md"
HELP = [OVERVIEW, *sorted((ROOT / "docs" / "cli").glob("*.md"))]
OPS = ROOT / "docs" / "ops.md"
BLOCK = re.compile(r"```console\n\$ (tokitai [^\n]*)\n(.*?)```", re.DOTALL)
UPDATE = bool(os.environ.get("TOKITAI_UPDATE_GOLDEN"))


def commands(page: Path) -> list[str]:
    return [command for command, _ in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, command) for page in (README, *HELP) for command in commands(page)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_pages_show_what_the_tool_prints(page: Path, command: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    done = tokitai(*shlex.split(command)[1:], cwd=tmp_path, env={WATCH_VARIABLE: "auto"})
    text = page.read_text(encoding="utf-8")
    shown = dict(BLOCK.findall(text))[command]
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    if UPDATE:
        block = f"$ {command}\n"
        page.write_text(text.replace(f"{block}{shown}```", f"{block}{printed}```"), "utf-8")
    else:
        assert shown == printed, done.stderr


MATRIX = re.compile(
    r"(<!-- support matrix: [^\n]*-->\n).*?(<!-- end of the support matrix -->)", re.DOTALL
)


def shown_check(check: Check) -> str:
    if check.metric in ("exact", "bound", "bound-chained", "bound-prob"):
        limit = ""
    else:
        limit = f" {check.limit:g}"
    against = " against the replay" if check.against == "replay" else ""
    output = f" of {check.output}" if check.output else ""
    return f"{check.metric}{limit}{output}{against}"


def support_matrix() -> str:
    """A row for each variant of each shipped spec."""
    lines = ["| op and variant | lowering id | checks; properties |", "|---|---|---|"]
    for _, path in spec.builtin():
        one = spec.load(path).spec
        for name, variant in one.variants.items():
            judged = [", ".join(map(shown_check, variant.checks))]
            judged += filter(None, [", ".join(asked.name for asked in variant.properties)])
            lowering = f"`{variant.lowering}`" if variant.lowering else ""
            lines.append(f"| {one.op} {name} | {lowering} | {'; '.join(judged)} |")
    return "".join(f"{line}\n" for line in lines)


def test_support_matrix_is_what_the_specs_say() -> None:
    text = OPS.read_text(encoding="utf-8")
    wanted = MATRIX.sub(lambda match: f"{match[1]}\n{support_matrix()}\n{match[2]}", text)
    if UPDATE:
        OPS.write_text(wanted, "utf-8")
    assert text.count("<!-- support matrix") == 1
    assert OPS.read_text(encoding="utf-8") == wanted
    for lowering in ("hip.softmax.grad.fp16_f32", "hip.layernorm.fp16_f32.bwd"):
        assert f"| `{lowering}` |" in wanted


def test_pages_stay_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
    for page in (ROOT / "docs").rglob("*.md"):
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 250, page


def test_the_pages_show_a_refuted_kernel_and_the_help_of_every_verb() -> None:
    assert any("verify docs/examples" in command for command in commands(README))
    text = OVERVIEW.read_text(encoding="utf-8")
    verbs = re.findall(r"^  (\w+) {2,}", text.partition("Start:")[2].partition("```")[0], re.M)
    assert len(verbs) > 8
    shown = [command.split()[1] for page in HELP for command in commands(page)]
    assert sorted(shown) == sorted(["--help", *verbs])


def test_each_verb_has_a_short_help_and_an_example() -> None:
    overview, *verbs = [
        block for page in HELP for block in BLOCK.findall(page.read_text(encoding="utf-8"))
    ]
    assert "..." not in overview[1].partition("Start:")[2]
    for line in re.findall(r"^  \w+ {2,}(.*)", overview[1].partition("Start:")[2], re.M):
        assert len(line) <= 55, line
    for command, text in verbs:
        verb = command.split()[1]
        assert re.search(rf"^  Example: .*tokitai {verb}\b", text, re.M), command


LINK = re.compile(r"\]\(([^)#:]+)\)")
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "reports").glob("*/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_pages_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in LINK.findall(text):
        assert (page.parent / link).exists(), link
    for name in re.findall(r"\b(?:docs|reports/generated)/[\w/-]+\.md\b", text):
        assert (ROOT / name).exists(), name
