"""Words and exit codes: one table, which the docs show and the verb tells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tokitai_cli.cli.app import run
from tokitai_cli.core.model.metrics import METRICS
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.words import EXITS, MEANINGS, explained

PAGE = Path(__file__).parents[2] / "docs" / "verdicts.md"


def test_the_page_has_the_table() -> None:
    rows = re.findall(r"^\| ([a-z-]+) \| (.*) \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(str(one), MEANINGS[one], str(one.exit_code)) for one in Verdict]


@pytest.mark.parametrize("word", [*map(str, Verdict), *METRICS, *map(str, EXITS)])
def test_every_word_is_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", word]) == 0
    assert word in capsys.readouterr().out
    assert run(["explain", word, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]


def test_a_code_that_several_have_is_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row[0] for row in explained("1").rows] == ["refuted", "unexpected-pass", "1"]
    assert run(["explain", "refutd"]) == 2
    assert "did you mean refuted?" in capsys.readouterr().err
