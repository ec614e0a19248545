"""Words and exit codes: one table, which the docs show and the verb tells."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from tokitai_cli.cli.app import run
from tokitai_cli.core.model.evidence import GroupRecord
from tokitai_cli.core.model.expectation import ALWAYS_TRIED, SLICE_ZEROED
from tokitai_cli.core.model.judged import MutantRecord
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.spec import PropertyName
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.words import (
    CLAIMS,
    EXITS,
    FINDINGS,
    MEANINGS,
    OTHERS,
    PATTERNS,
    PROPERTIES,
    STRUCTURE,
    TRIED,
    WRONG_OUTPUTS,
    explained,
    index,
)
from tokitai_cli.judge.mutants.freedom import BETWEEN, ONE_TWICE, OTHER_SEGMENT, UNGROUPED
from tokitai_cli.judge.roundings import _WRONG
from tokitai_cli.judge.structure import _SENTENCES, NEVER_WRITTEN

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "verdicts.md"
INDEX = ROOT / "docs" / "words.md"
HEAD = """# Index of words

The words of reports and messages, as `tokitai explain WORD` prints them. The terms are in the
[glossary](glossary.md).

| word | kind | meaning |
|---|---|---|
"""


def test_the_page_has_the_table() -> None:
    rows = re.findall(r"^\| ([a-z-]+) \| (.*) \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(str(one), MEANINGS[one], str(one.exit_code)) for one in Verdict]


def test_the_index_has_all_words() -> None:
    rows = [
        f"| `{word}` | {kind} | {text.replace('|', chr(92) + '|')} |"
        for word, kind, text in index()
    ]
    page = HEAD + "\n".join(rows) + "\n"
    if os.environ.get("TOKITAI_UPDATE_GOLDEN"):
        INDEX.write_text(page, "utf-8")
    assert INDEX.read_text("utf-8") == page


def test_the_findings_of_the_harness_are_explained() -> None:
    called = r'(?:finding|undefined)\("([a-z-]+)"'
    texts = [path.read_text("utf-8") for path in (ROOT / "kernels" / "harness").glob("*.hpp")]
    kinds = {kind for text in texts for kind in re.findall(called, text)}
    assert len(kinds) > 15
    assert kinds <= FINDINGS.keys()


def test_the_claims_of_a_run_are_explained() -> None:
    text = (ROOT / "tokitai_cli" / "evidence" / "claims.py").read_text("utf-8")
    names = re.findall(r'(?:_gate\(|GateRecord\(\s*name=)\s*"([a-z-]+)"', text)
    assert set(names) == CLAIMS.keys()


def kinds_in(*files: str, pattern: str) -> set[str]:
    """Names that the judging code gives."""
    texts = [(ROOT / "tokitai_cli" / "judge" / name).read_text("utf-8") for name in files]
    return {kind for text in texts for kind in re.findall(pattern, text)}


def test_what_is_wrong_with_an_output_is_explained() -> None:
    formed = kinds_in("structure.py", pattern=r'_form\("([a-z-]+)"')
    assert formed | {NEVER_WRITTEN} | {*_SENTENCES} == STRUCTURE.keys()
    lines = {"rows", "columns"}
    assert kinds_in("pattern.py", pattern=r'kind="([a-z-]+)"') | lines == PATTERNS.keys()


def test_wrong_outputs_and_properties_are_explained() -> None:
    freedom = (ONE_TWICE, OTHER_SEGMENT, UNGROUPED, BETWEEN)
    masks = kinds_in("random_masks.py", pattern=r'"([a-z-]+)": \(')
    made = {*ALWAYS_TRIED, SLICE_ZEROED, "other-constant", *freedom, *masks, *_WRONG}
    assert len(masks) == 5
    assert made == WRONG_OUTPUTS.keys()
    assert set(get_args(PropertyName)) == PROPERTIES.keys()


def test_what_became_of_wrong_outputs_is_explained() -> None:
    states: set[str] = set()
    for record in (MutantRecord, GroupRecord):
        states |= set(get_args(get_type_hints(record)["status"]))
    assert states | {"never detectable"} == TRIED.keys()


WORDS = [
    *map(str, Verdict), *METRICS, *map(str, EXITS), *FINDINGS, *CLAIMS,
    *STRUCTURE, *PATTERNS, *WRONG_OUTPUTS, *PROPERTIES, *TRIED, *OTHERS,
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 0
    assert word in capsys.readouterr().out
    assert run(["explain", word, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]


def test_a_code_that_several_have_is_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row[0] for row in explained("1").rows] == ["refuted", "unexpected-pass", "1"]
    assert run(["explain", "refutd"]) == 2
    assert "did you mean refuted" in capsys.readouterr().err
