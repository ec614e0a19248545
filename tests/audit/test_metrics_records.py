"""What `check` says of metrics, worst elements, failures and builds that do not fit together."""

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

ROOT = Path(__file__).parents[2]
Tree = dict[str, Any]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of a kernel with wrong numbers."""
    folder = tmp_path_factory.mktemp("numbers")
    spec = ROOT / "docs/examples/dropped_term/spec.yaml"
    assert run(["verify", str(spec), "--device", "cpu", "--out", str(folder), "-q"]) == 1
    return folder / "dropped-term.json"


@pytest.fixture(scope="module")
def unwritten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of a kernel that leaves its last element as it was."""
    folder = tmp_path_factory.mktemp("unwritten")
    spec = write_example(folder)
    source = folder / "vector_add.hip"
    text = source.read_text("utf-8")
    assert "i < n" in text
    source.write_text(text.replace("i < n", "i + 1 < n"), "utf-8")
    words = ["--n", "1,200", "--device", "cpu"]
    assert run(["verify", str(spec), *words, "--out", str(folder / "out"), "-q"]) == 1
    (path,) = (folder / "out").glob("*.json")
    return path


def faults(path: Path, change: Callable[[Tree], None], tmp_path: Path) -> str:
    tree = json.loads(path.read_text("utf-8"))
    change(tree)
    tree["digest"] = tree_digest(tree)
    made = tmp_path / path.name
    made.write_text(json.dumps(tree), "utf-8")
    found = consistency.remarks(evidence.read(made), same=True)
    return "; ".join(one.text for one in found if one.fault)


def _output(tree: Tree) -> Tree:
    found: Tree = tree["cases"][0]["outputs"][0]
    return found


def _metrics(tree: Tree) -> Tree:
    found: Tree = _output(tree)["metrics"]
    return found


def _check(tree: Tree) -> Tree:
    found: Tree = _output(tree)["checks"][0]
    return found


def _build(tree: Tree) -> Tree:
    found: Tree = next(iter(tree["builds"].values()))
    return found


def _arch(tree: Tree) -> None:
    for one in (*tree["builds"].values(), tree["devices"]["cpu"]):
        one["arch"] = "gfx942"


def _one_more(tree: Tree) -> None:
    """In the least bin, so that the number beyond the limit stays what it was."""
    histogram = _metrics(tree)["bound_histogram"]
    histogram[min(histogram, key=float)] += _output(tree)["elements"]


NUMBERS: dict[str, tuple[Callable[[Tree], None], str]] = {
    "arch": (_arch, "has the architecture 'gfx942'"),
    "arch-of-build": (
        lambda tree: _build(tree).update(arch="arm64"),
        "is for 'arm64', and the device is",
    ),
    "command": (lambda tree: _build(tree).update(command=[]), "succeeded, and has no command"),
    "headers": (lambda tree: _build(tree).update(headers={}), "succeeded, and has no header"),
    "harness": (
        lambda tree: _build(tree).update(harness_sha256=""),
        "succeeded, and has no harness",
    ),
    "bound-histogram": (_one_more, "are in the histogram of bound"),
    "ulp-histogram": (
        lambda tree: _check(tree).update(elements=_check(tree)["elements"] - 1),
        "are in the histogram of ulp",
    ),
    "max-abs": (lambda tree: _metrics(tree).update(max_abs=1e-9), "max_abs is 1e-09, and one of"),
    "max-rel": (lambda tree: _metrics(tree).update(max_rel=1e-9), "max_rel is 1e-09, and one of"),
    "allowance": (lambda tree: _metrics(tree).update(allowance=0.5), "it needs 0.5 of its"),
    "allowance-below-0": (lambda tree: _metrics(tree).update(allowance=-1.0), "it needs -1 of its"),
    "order": (
        lambda tree: _check(tree)["worst"].append(_check(tree)["worst"].pop(1)),
        "not in the order of their error over the limit",
    ),
    "limit-of-element": (
        lambda tree: _check(tree)["worst"][-1].update(limit=1e6),
        "and others of its worst elements do",
    ),
    "reason": (lambda tree: tree["cases"][0].update(reason=""), "and gives no reason"),
    "no-repetitions": (
        lambda tree: tree["cases"][0]["repeats"].update(repetitions=0),
        "it has results of 0 repetitions",
    ),
    "no-schedules": (
        lambda tree: tree["cases"][0]["repeats"].update(schedules=[]),
        "its repetitions ran in no schedule",
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_change_of_numbers_is_told(numbers: Path, tmp_path: Path, name: str) -> None:
    change, words = NUMBERS[name]
    assert words in faults(numbers, change, tmp_path)


def _failure(tree: Tree) -> Tree:
    found: Tree = _output(tree)["structure"][0]
    return found


FAILURES: dict[str, tuple[Callable[[Tree], None], str]] = {
    "kind": (lambda tree: _failure(tree).update(kind="moved"), "no failure of the kind 'moved'"),
    "count": (lambda tree: _failure(tree).update(count=9999), "9999 elements fail before any"),
    "count-of-none": (lambda tree: _failure(tree).update(count=0), "a failure of 0 to 0 elements"),
    "first": (lambda tree: _failure(tree).update(first=[9999]), "there is no element [9999] in it"),
    "first-of-more-axes": (
        lambda tree: _failure(tree).update(first=[0, 0]),
        "there is no element [0, 0] in it",
    ),
    "twice": (
        lambda tree: _output(tree)["structure"].append(_failure(tree)),
        "one kind of failure occurs twice",
    ),
    "max-abs-of-all": (
        lambda tree: _metrics(tree).update(max_abs=1.0),
        "max_abs is 1, and the largest of all elements with an error has",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_change_of_failures_is_told(unwritten: Path, tmp_path: Path, name: str) -> None:
    change, words = FAILURES[name]
    assert words in faults(unwritten, change, tmp_path)


def test_both_fit_as_they_were_written(numbers: Path, unwritten: Path, tmp_path: Path) -> None:
    for path in (numbers, unwritten):
        assert faults(path, lambda tree: None, tmp_path) == ""
