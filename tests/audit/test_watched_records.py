"""What `check` says of cases that were watched beside the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spec_example import write_example
from tokitai_cli import evidence
from tokitai_cli.audit import consistency
from tokitai_cli.cli.app import run
from tokitai_cli.evidence.encoding import tree_digest

Tree = dict[str, Any]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of a verified kernel that was watched at a shape of its own."""
    folder = tmp_path_factory.mktemp("watched")
    spec = write_example(folder)
    words = ["--device", "cpu", "--watch", "auto", "--out", str(folder), "-q"]
    assert run(["verify", str(spec), *words]) == 0
    (path,) = folder.glob("*.json")
    assert json.loads(path.read_text())["watched"]
    return path


def faults(path: Path) -> str:
    found = consistency.remarks(evidence.read(path), same=True)
    return "; ".join(one.text for one in found if one.fault)


def test_it_fits_as_it_was_written(watched: Path) -> None:
    assert faults(watched) == ""


CHANGES: dict[str, tuple[Callable[[Tree], None], str]] = {
    "watched-grid": (
        lambda tree: tree["watched"][0]["launches"][0].update(grid=[999, 1, 1]),
        "watched: its launches are different from those of the spec",
    ),
    "watched-launches": (
        lambda tree: tree["watched"][0].update(launches=[], verdict="verified", findings=[]),
        "watched: its launches are different from those of the spec",
    ),
    "watched-shape": (
        lambda tree: tree["watched"][0].update(variant="none-such"),
        "watched: the spec has no such case",
    ),
    "watched-results": (
        lambda tree: tree["watched"][0].update(outputs=tree["cases"][0]["outputs"]),
        "the outputs of a watched case are not compared",
    ),
    "watched-repetitions": (
        lambda tree: tree["watched"][0]["repeats"].update(repetitions=0, schedules=[]),
        "watched: it has results of 0 repetitions",
    ),
    "watched-schedules": (
        lambda tree: tree["watched"][0]["repeats"].update(schedules=[]),
        "watched: its repetitions ran in no schedule",
    ),
    "watched-not-run": (
        lambda tree: tree["watched"][0].update(repeats=None),
        "watched: it says that nothing refutes it, and no repetition of it ran",
    ),
    "watched-vacuous": (
        lambda tree: tree["watched"][0].update(vacuous=True),
        "watched: it says vacuous",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_watched_case_is_told(watched: Path, tmp_path: Path, name: str) -> None:
    change, words = CHANGES[name]
    tree = json.loads(watched.read_text("utf-8"))
    change(tree)
    tree["digest"] = tree_digest(tree)
    made = tmp_path / watched.name
    made.write_text(json.dumps(tree), "utf-8")
    assert words in faults(made)
