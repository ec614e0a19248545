"""Two kernels on the same inputs: errors, bits, times, rates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tokitai_cli.audit.checking import check
from tokitai_cli.audit.side_by_side import compare_files, interval
from tokitai_cli.cli.app import run
from tokitai_cli.core.errors import UsageError

KERNEL = """
#include <hip/hip_runtime.h>
__global__ void plain(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] * 3.0f;
}
__global__ void twice(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + a[i] + a[i];
}
"""
ORACLE = """
import numpy as np
def triple(params, inputs, scalars):
    want = 3.0 * inputs["a"].astype(np.float64)
    return {"c": {"reference": want, "error": 2.0**-22 * np.abs(want)}}
"""
VARIANT = """
  %s:
    source: k.hip
    inputs: {a: {dtype: float32, shape: [n]}}
    outputs: {c: {dtype: float32, shape: [n]}}
    launches: [{kernel: %s, grid: ["ceil_div(n, 64)"], block: [64], args: [a, c, n]}]
    oracle: oracle.py:triple
    reduction: none
    work: {bytes: 8 * n, flops: %s}
    checks: [{metric: bound}]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    head = "schema: tokitai/spec/v1\nop: triple\ntitle: t\nparams: {n: {default: 1000}}\nvariants:"
    body = VARIANT % ("one", "plain", "n") + VARIANT % ("other", "twice", "2 * n")
    path = tmp_path / "spec.yaml"
    path.write_text(f"{head}{body}profiles: {{normal: {{}}, uniform: {{}}}}\n", "utf-8")
    (tmp_path / "k.hip").write_text(KERNEL, "utf-8")
    (tmp_path / "oracle.py").write_text(ORACLE, "utf-8")
    return path


def test_two_variants_run_on_the_same_inputs(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--variant",
        "one",
        "--variant",
        "other",
        "--out",
        str(tmp_path),
        "--device",
        "cpu",
        "-q",
    ]
    assert run(["compare", str(spec), *words]) == 0
    told = capsys.readouterr().out
    assert "2 pairs of cases compared" in told
    assert "other inputs" not in told
    assert "30 repetitions timed, 3 warm-ups before them" in told
    assert "say nothing of a GPU" in told
    assert "GFLOP/s" in told
    path = tmp_path / "triple-compare.json"
    tree = json.loads(path.read_text("utf-8"))
    assert [case["variant"] for case in tree["cases"]] == ["one", "other"] * 2
    first, second = (case["inputs"][0]["sha256"] for case in tree["cases"][:2])
    assert first == second
    assert all(len(times) == 30 for times in tree["volatile"]["case_times_ns"].values())
    assert check(str(path)).fine
    assert run(["reproduce", str(path), str(spec), "--out", str(tmp_path / "o"), "-q"]) == 0
    assert "compare" in tree["rerun"]
    assert "--device cpu" in tree["rerun"]
    answer = compare_files(str(path), str(path))
    assert answer.fine
    (errors, times, rates) = answer.grids
    assert len(errors.rows) == len(times.rows) == 4
    assert {row[7] for row in errors.rows} == {"equal"}
    assert {row[5] for row in times.rows} == {"1"}
    assert len(rates.rows) == 8


def test_what_cannot_be_compared_is_said(spec: Path, tmp_path: Path) -> None:
    base = ["compare", str(spec), "--out", str(tmp_path), "--device", "cpu", "-q"]
    assert run(base) == 2
    assert run([*base, "--variant", "one"]) == 2
    assert run([*base, "--variant", "one", "--variant", "third"]) == 2
    for name, profile in (("a", "normal"), ("b", "uniform")):
        words = ["--profile", profile, "--name", name, "--out", str(tmp_path), "--device", "cpu"]
        assert run(["verify", str(spec), *words, "-q"]) == 0
    with pytest.raises(UsageError, match="in common"):
        compare_files(str(tmp_path / "a.json"), str(tmp_path / "b.json"))


def test_the_interval_is_that_of_the_medians() -> None:
    draw = np.random.default_rng(3)
    slow, fast = 200 + draw.normal(size=400), 100 + draw.normal(size=400)
    low, high = map(float, interval(slow, fast).split(" to "))
    assert low < np.median(slow) / np.median(fast) < high
    assert high - low < 0.01
    assert interval(slow, fast) == interval(slow, fast)
    assert interval(slow[:4], fast) == "-"
