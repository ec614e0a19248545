"""`verify --all`: one evidence file for each op, an index, and the exit code of the worst."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.oracles.test_properties import written
from tests.runs import evidence_in, shipped_tree, tokitai, tokitai_here
from tokitai_cli import spec
from tokitai_cli.audit.checking import check
from tokitai_cli.batch.all_ops import verify_all
from tokitai_cli.cli.app import run as run_command
from tokitai_cli.core import resources
from tokitai_cli.core.model.events import CaseStarted, Event

OPS = [name for name, _ in spec.builtin()]


def shortened(folder: Path) -> Path:
    """The shipped tree, with the two smallest cases of each quick suite; returns its specs."""
    root = resources.specs_dir().parent
    for name in ("kernels", "formulas", "specs"):
        shutil.copytree(root / name, folder / name)
    for op in OPS:
        tree = shipped_tree(op)
        quick = sorted(tree["suites"]["quick"], key=lambda one: math.prod(one["shape"].values()))
        tree["suites"]["quick"] = quick[:2]
        (folder / "specs" / f"{op}.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    return folder / "specs"


def test_all_runs_every_op_and_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shortened(tmp_path / "shipped")
    monkeypatch.setattr(resources, "specs_dir", lambda: folder)
    words = ("verify", "--all", "--device", "cpu", "--profile", "normal", "--out", tmp_path)
    done = tokitai_here(*words)
    assert done.returncode == 6, done.stderr  # one profile alone cannot tell every wrong output
    lines = done.stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("op  "))
    rows = [line.split() for line in lines[start + 1 : -1]]
    assert [row[0] for row in rows] == OPS
    for op, row in zip(OPS, rows, strict=True):
        found = evidence_in(tmp_path, op)
        assert row[1] == found["verdict"]
        assert str(tmp_path / f"{op}.json") in row
        assert (tmp_path / f"{op}.md").is_file()
        sizes = {json.dumps(case["shape"], sort_keys=True) for case in found["cases"]}
        assert len(sizes) > 1  # those of the suite
        assert "--suite quick" in found["rerun"]
    assert lines[-1] == f"all: inconclusive ({len(OPS)} ops)"


@pytest.mark.slow
def test_every_quick_suite_is_verified(tmp_path: Path) -> None:
    done = tokitai("verify", "--all", "--device", "cpu", "--out", tmp_path, timeout=400)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == f"all: verified ({len(OPS)} ops)"
    assert len(done.stdout.splitlines()) == len(OPS) + 2
    for op in OPS:
        told = check(str(tmp_path / f"{op}.json"))
        assert told.fine, told


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
def test_every_full_suite_is_verified(op: str, tmp_path: Path) -> None:
    done = tokitai(
        "verify", op, "--suite", "full", "--device", "cpu", "--out", tmp_path, timeout=600
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def two_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two built-in ops, the first of which is wrong."""
    folder = tmp_path / "specs"
    folder.mkdir()
    for op, fault in (("first", "zeros"), ("second", "none")):
        path = written(folder, fault, properties=[], profiles=["normal", "one-large"])
        document: Any = yaml.safe_load(path.read_text("utf-8"))
        document["op"] = op
        document["suites"] = {"quick": [{"shape": {"rows": 5, "cols": 7}, "why": "small"}]}
        (folder / f"{op}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        path.unlink()
    monkeypatch.setattr(resources, "specs_dir", lambda: folder)
    return tmp_path


def test_the_worst_op_decides_and_the_others_still_run(
    two_ops: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command(["verify", "--all", "--device", "cpu", "--out", str(two_ops), "-q"])
    text = capsys.readouterr().out
    assert code == 1
    assert "refuted: first/fwd/cols=7,rows=5/" in text
    assert "second: " not in text  # an op that is fine is a row only
    assert text.splitlines()[-3].split()[:2] == ["first", "refuted"]
    assert text.splitlines()[-2].split()[:2] == ["second", "verified"]
    assert text.splitlines()[-1] == "all: refuted (2 ops)"
    assert evidence_in(two_ops, "second")["verdict"] == "verified"


def test_cases_beside_each_other_give_the_evidence_of_a_run_alone(
    two_ops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evidence(cores: set[int], name: str) -> tuple[dict[str, Any], list[str]]:
        monkeypatch.setattr("os.sched_getaffinity", lambda pid: cores)
        words = ["verify", "--all", "--device", "cpu", "--out", str(two_ops / name), "-q"]
        assert run_command(words) == 1
        found = evidence_in(two_ops / name, "second")
        return found, found["volatile"]["notes"]

    (alone, silence), (shared, told) = evidence({0}, "alone"), evidence({0, 1, 2}, "shared")
    assert alone["cases"] == shared["cases"]
    assert alone["groups"] == shared["groups"]
    assert alone["builds"] == shared["builds"]
    assert not silence
    assert any(text.startswith("up to 3 cases ran at a time") for text in told)


def test_an_interrupt_ends_all_and_keeps_what_is_done(
    two_ops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listener(event: Event) -> None:
        if isinstance(event, CaseStarted) and event.position == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    (only,) = verify_all(listener, device="cpu", out=two_ops)
    assert isinstance(only.ended_by, KeyboardInterrupt)
    done, cut_short = evidence_in(two_ops, "first")["cases"]
    assert done["verdict"] != "interrupted"
    assert cut_short["verdict"] == "interrupted"
    assert not (two_ops / "second.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["softmax", "--all"], "--all means every built-in op; give no OP"),
        (["--all", "--name", "x"], "--name is for one op, not for --all"),
        (["--all", "--json"], "--json is for one op, not for --all"),
        (["--all", "--profile", "hot"], "--profile hot: unknown profile"),
        (["--all", "--suite", "quik"], "quik"),
        (["--device", "cpu"], "missing argument 'OP'"),
    ],
)
def test_what_does_not_go_with_all(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command(["verify", *words, "--out", str(tmp_path)])
    assert code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
