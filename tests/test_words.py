"""Sentences that users see use the field's terms: no word of the list below, in any of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tokitai_cli"
TEMPLATES = ROOT / "reports" / "templates"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

# A word that is out, and what to write.
OUT = {
    r"told|tells?": "say, report, detect, distinguish",
    r"mend(?:s|ed|ing)?": "fix, hint",
    r"left open|leaves? open": "not covered, not supported",
    r"can(?:not)? be bound": "a spec can be written",
    r"asked for|asks for": "requested, needs",
    r"\d by itself|cores? by itself": "default",
    r"nothing has set": "uninitialised",
    r"stands? (?:in|on|there|behind|beside)": "is",
    r"lies? (?:in|beside|behind)": "is",
    r"is no (?:array|folder|file|integer|number|name|spec|key|flag|JSON|list|multiple)\b": "is not",
    r"whole numbers?": "integer",
    r"would (?:notice|see)": "would detect",
    r"takes? away|taken away": "remove",
    r"looked at": "checked",
    r"goes? on": "continue",
    r"comes? to (?:its|an|their) ends?": "end, finish",
    r"in front of": "before",
}
PATTERN = re.compile(rf"\b(?:{'|'.join(OUT)})\b")


def docstrings(tree: ast.Module) -> set[ast.Constant]:
    """Docstrings, which developers read; those of verbs are help, and tested as pages."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(first.value)
    return found


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of everything in a file that users may read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        # Names of keys and options are not words.
        plain = (re.sub("`[^`]*`", "", line) for line in text.split("\n"))
        yield from enumerate(plain, 1)
        return
    tree = ast.parse(text)
    skipped = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


def found(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r} in {text[:90]!r}"
        for line, text in sentences(path)
        for match in PATTERN.finditer(text)
    ]


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_pages_use_the_fields_terms(path: Path) -> None:
    assert not found(path)


def test_messages_and_reports_use_the_fields_terms() -> None:
    files = [*sorted(TOOL.rglob("*.py")), *sorted(TEMPLATES.glob("*.j2"))]
    assert len(files) > 400
    assert not [one for file in files for one in found(file)]


def test_a_word_that_is_out_is_found(tmp_path: Path) -> None:
    file = ROOT / "tests" / "test_words.py"
    assert PATTERN.search("a race is told before reads")
    assert not PATTERN.search("a race is reported before reads; stored bytes")
    assert found(file)
