"""Small kernels by kind of fault, under the watch of accesses alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilers import CLANG, has_sanitizers
from tests.devices.sanitizers import suite
from tokitai_cli.devices.sanitizers import cpu_watch
from tokitai_cli.evidence.not_covered import not_covered
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize, without_oracle
from tokitai_cli.run.specs import load_op
from tokitai_cli.spec import plan

DOCS = Path(__file__).parents[3] / "docs" / "sanitize.md"
COMPILERS = (
    pytest.param("g++", marks=pytest.mark.skipif(not has_sanitizers("g++"), reason="no g++")),
    pytest.param(
        CLANG,
        id="clang",
        marks=[pytest.mark.slow, pytest.mark.skipif(not CLANG, reason="no clang++")],
    ),
)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("file", suite.KINDS)
def test_faults_are_found_and_right_kernels_have_none(
    file: str, compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_watch, "sanitizers", suite.accesses_alone)
    monkeypatch.setenv("CXX", compiler)
    spec = suite.write_spec(tmp_path, file)
    options = run_options(str(spec), device="cpu", out=tmp_path / "out", verb="sanitize")
    told = suite.tally(file, sanitize(options).evidence.cases)
    assert told.words == []
    assert told.wrong == told.right == told.lines == len(suite.kernels(file))
    assert suite._row(suite.KINDS[file], told) in DOCS.read_text(encoding="utf-8")


def test_the_suite_has_faults_of_every_kind() -> None:
    every = [one for file in suite.KINDS for one in suite.kernels(file)]
    assert 2 * len(every) >= 120
    assert all(one.marks for one in every)
    assert {kind for one in every for kind, _ in one.marks} >= {
        *("scoped-race", "race", "mixed-race", "same-value-race", "missing-acquire"),
        *("deadlock", "barrier", "mask", "inactive-lane", "uninitialised-read"),
    }


@pytest.mark.parametrize(
    ("strict", "verdict", "severity"),
    [(False, "verified", "warning"), (True, "refuted", "error")],
)
def test_equal_values_refute_where_a_run_is_strict(
    strict: bool, verdict: str, severity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_watch, "sanitizers", suite.accesses_alone)
    loaded = load_op(str(suite.write_spec(tmp_path, "blocks")))
    options = run_options(loaded, variant="same_value-wrong", strict=strict, verb="sanitize")
    (record,) = without_oracle(options, plan.plan(loaded, options.selection).cases)
    assert [(one.kind, one.severity) for one in record.findings] == [("same-value-race", severity)]
    assert record.verdict == verdict
    assert ("--strict" in record.rerun) == strict


@pytest.mark.parametrize(("arch", "verdict"), [(None, "verified"), ("gfx1101", "refuted")])
def test_masks_that_amd_refuses_refute_for_its_gpus(
    arch: str | None, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_watch, "sanitizers", suite.accesses_alone)
    spec = suite.write_spec(tmp_path, "unseen")
    loaded = load_op(str(spec))
    options = run_options(loaded, variant="half_a_warp_shuffles-wrong", arch=arch, verb="sanitize")
    (record,) = without_oracle(options, plan.plan(loaded, options.selection).cases)
    assert [one.kind for one in record.findings] == ["amd-mask"]
    assert record.verdict == verdict
    told = [
        one.text for one in not_covered([record]) if "amd-mask in 1 case: warning: " in one.text
    ]
    assert bool(told) == (arch is None)
