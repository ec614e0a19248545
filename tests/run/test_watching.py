"""What runs in the watched build beside the numbers of `verify`."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runs import run
from tokitai_cli import UsageError, devices
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence import queries
from tokitai_cli.run import watching
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.specs import load_op
from tokitai_cli.run.telling import telling_cases
from tokitai_cli.spec import plan

# The number is right whatever lies behind x: the last thread reads it, and uses it nowhere.
PAST_THE_END = """__global__ void shift(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float next = x[i + 1]; y[i] = i + 1 < n ? next : 0.f; }
}
"""
WITHIN = PAST_THE_END.replace("x[i + 1]", "i + 1 < n ? x[i + 1] : 0.f")
FORMULA = """import numpy as np


def shifted(params, inputs, scalars):
    return {"y": np.concatenate([inputs["x"][1:], np.zeros(1)])}
"""
SPEC = """schema: tokitai/spec/v1
op: shift
title: each element's next one
params:
  n: {default: 64}
variants:
  main:
    source: kernel.cu
    inputs:
      x: {dtype: float32, shape: [n]}
    outputs:
      y: {dtype: float32, shape: [n]}
    launches:
      - {kernel: shift, grid: ["ceil_div(n, 32)"], block: [32], args: [x, y, n]}
    oracle: {formula: formula.py:shifted}
    checks: [{metric: bound}]
profiles:
  zeros: {draw: {kind: constant, value: 0}}
  normal: {draw: normal}
suites:
  tails:
    - {shape: {n: 20}, why: one block}
    - {shape: {n: 70}, why: a tail behind two blocks}
    - {shape: {n: 700}, why: larger}
"""


def watched_run(folder: Path, kernel: str, **options: Any) -> Evidence:
    (folder / "kernel.cu").write_text(kernel)
    (folder / "formula.py").write_text(FORMULA)
    (folder / "spec.yaml").write_text(SPEC)
    options = {"watch": "auto", "profile": "normal"} | options
    return run(folder / "spec.yaml", folder / "out", **options)


def test_what_the_numbers_do_not_show_refutes_the_run(tmp_path: Path) -> None:
    found = watched_run(tmp_path, PAST_THE_END, format="md,sarif,junit")
    assert [case.verdict for case in found.cases] == [Verdict.VERIFIED]
    (watched,) = found.watched
    assert (watched.shape, watched.profile, watched.device) == ({"n": 70}, "normal", "cpu")
    (finding,) = watched.findings
    assert (finding.kind, finding.location) == ("out-of-bounds", "kernel.cu:3")
    assert finding.array == "x[70] of 70 elements"
    assert found.verdict is Verdict.REFUTED
    assert found.reason.startswith(f"{watched.id}, watched on cpu: ")
    assert "numerical-agreement" not in [one.name for one in found.claims if one.supported]
    report = (tmp_path / "out" / "shift.md").read_text()
    assert "| watched | 1 of 1 variant, in 1 case on cpu" in report
    assert "Found by the memory and race check" in report
    sarif = json.loads((tmp_path / "out" / "shift.sarif").read_text())
    (told,) = sarif["runs"][0]["results"]
    assert told["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


def test_a_right_kernel_is_verified_and_the_report_says_what_was_watched(tmp_path: Path) -> None:
    found = watched_run(tmp_path, WITHIN)
    assert found.verdict is Verdict.VERIFIED
    assert queries.watch_words(found).startswith("1 of 1 variant, in 1 case on cpu")
    assert queries.watch_words(found).endswith("no finding")
    texts = [one.text for one in found.non_claims]
    assert any(
        "races not tested in the runs whose outputs were compared; the watch" in one
        for one in texts
    )
    opened = {one.name for one in found.claims if one.supported}
    assert "numerical-agreement" in opened
    assert not opened & {"memory-safe", "race-free-in-tested-schedules"}


def test_full_watches_what_is_selected_and_off_nothing(tmp_path: Path) -> None:
    found = watched_run(tmp_path, WITHIN, watch="full", suite="tails")
    assert [one.id for one in found.watched] == [one.id for one in found.cases]
    assert "--watch full" in found.rerun
    assert watched_run(tmp_path, WITHIN, watch="off").watched == []


def test_what_cannot_be_watched_is_a_non_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, tool = devices.watch_beside()
    probe = device.probe(run_options("softmax").settings)
    lacking = msgspec.structs.replace(probe, available=False, missing="no C++ compiler")
    monkeypatch.setattr(type(device), "probe", lambda *_: lacking)
    monkeypatch.setattr(devices, "watch_beside", lambda: (device, tool))
    options = run_options("softmax", shapes={"rows": 2}, variant="fwd", profile="normal")
    cases = plan.plan(options.loaded, options.selection).cases
    beside = watching.WatchBeside(options, cases, [(device, probe)])
    with beside:
        records = beside.result().records
    assert [(one.verdict, one.reason) for one in records] == [(Verdict.NOT_RUN, "no C++ compiler")]
    assert all(map(queries.unwatched, records))


def test_a_watch_that_has_no_beginning_ends_as_what_kept_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_files() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    options = run_options("softmax", shapes={"rows": 2}, variant="fwd", profile="normal")
    cases = plan.plan(options.loaded, options.selection).cases
    device, _ = devices.watch_beside()
    probe = device.probe(options.settings)
    monkeypatch.setattr(devices, "watch_beside", no_files)
    with (
        watching.WatchBeside(options, cases, [(device, probe)]) as beside,
        pytest.raises(OSError, match="Too many open files"),
    ):
        beside.result()


def test_a_kernel_that_the_watched_build_refuses_is_a_non_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = f"#ifdef __SANITIZE_THREAD__\n#error not here\n#endif\n{WITHIN}"
    monkeypatch.setenv("CXX", "g++")
    found = watched_run(tmp_path, kernel)
    assert found.verdict is Verdict.VERIFIED
    (said,) = (one.text for one in found.non_claims if one.source == "watch")
    assert said.startswith("shift main: not checked on cpu: ")
    assert "not here" in said


def test_the_smallest_shapes_that_tell_are_watched() -> None:
    loaded = load_op("gemm-bw")
    selected = plan.plan(loaded, plan.Selection(shapes={"m": (64,)})).cases
    chosen = telling_cases(selected)
    assert [one.variant_name for one in chosen] == list(loaded.spec.variants)
    assert {one.profile for one in chosen} == {"normal"}
    assert all(max(one.launches[0].grid) > 1 for one in chosen)
    assert all(any(value % 16 for value in one.shape.values()) for one in chosen)
    assert all(min(one.shape.values()) > 1 for one in chosen)


def test_the_environment_says_what_is_watched_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKITAI_WATCH", "full")
    assert run_options("softmax").watch == "full"
    assert run_options("softmax", watch="off").watch == "off"
    assert run_options("softmax", verb="sanitize").watch == "off"
    monkeypatch.delenv("TOKITAI_WATCH")
    assert run_options("softmax").watch == "auto"
    monkeypatch.setenv("TOKITAI_WATCH", "sometimes")
    with pytest.raises(UsageError, match="TOKITAI_WATCH=sometimes: not auto or full or off"):
        run_options("softmax")
