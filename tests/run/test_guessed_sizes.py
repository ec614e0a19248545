"""A failure at sizes that are a guess refutes where it is there at round ones as well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.runs import run
from tokitai_cli import judge, spec
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.spec.plan import Selection, at_round_sizes, plan

# What a kernel makes of n, by number: all are right, or wrong, at some values alone.
TAKES = ("any", "tiles", "none", "one-row", "a-crash", "its-tail", "whole-tiles")
KERNEL = """
#include <hip/hip_runtime.h>
__global__ void copies(const float* x, float* y, int n, int m, int takes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * m) return;
  float v = x[i];
  if (takes == 1 && n % 32) v = 0;
  if (takes == 2) v *= 2;
  if (takes == 3 && n != 96) v = 0;
  if (takes == 4 && n % 32) v = x[i + (1 << 28)];
  if (takes == 5 && i == n * m - 1) v = 0;
  if (takes == 6 && i >= n / 32 * 32 * m) return;
  y[i] = v;
}
"""
SPEC = """schema: tokitai/spec/v1
op: sizes
title: copies
params:
  n: {default: 40}  N
  m: {default: 3}
variants:
  main:
    source: k.hip
    inputs:
      x: {dtype: float32, shape: [n, m]}
    outputs:
      y: {dtype: float32, shape: [n, m]}  Y
    launches:
      - kernel: copies
        grid: ["ceil_div(n * m, 64)"]
        block: [64]
        args: [x, y, n, m, TAKES]
    oracle: {formula: "formula.py:copy"}
    checks:
      - {metric: exact}
profiles:
  normal: {draw: normal}
suites:  SUITES
  quick:
    - {shape: {n: 40}, why: a tail}
    - {shape: {n: 96}, why: whole tiles}
"""
FORMULA = 'def copy(params, inputs, scalars):\n    return {"y": inputs["x"]}\n'


def written(folder: Path, takes: str, marks: Mapping[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "k.hip").write_text(KERNEL, "utf-8")
    (folder / "formula.py").write_text(FORMULA, "utf-8")
    text = SPEC.replace("TAKES", str(TAKES.index(takes)))
    for place in ("N", "Y", "SUITES"):
        mark = f"  # guess: {marks[place]}" if place in marks else ""
        text = text.replace(f"  {place}\n", f"{mark}\n")
    path = folder / "spec.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[CaseRecord]]:
    folder = tmp_path_factory.mktemp("sizes")
    return {
        takes: run(written(folder / takes, takes, {"N": "no comparison"}), folder / "out").cases
        for takes in TAKES
    }


@pytest.mark.parametrize(
    ("takes", "verdict"),
    [
        ("any", "verified"),
        ("tiles", "inconclusive"),
        ("none", "refuted"),  # at round values too
        ("one-row", "inconclusive"),  # at one that the spec has
        ("a-crash", "inconclusive"),
        ("its-tail", "refuted"),
        ("whole-tiles", "inconclusive"),
    ],
)
def test_what_fails_at_guessed_sizes_alone_is_inconclusive(
    cases: Mapping[str, list[CaseRecord]], takes: str, verdict: str
) -> None:
    (case,) = cases[takes]
    assert case.verdict == verdict, case.reason
    if verdict == "inconclusive":
        assert case.reason.startswith(
            "the size n = 40 in spec.yaml:5 is a guess (no comparison); it does not fail at n="
        )
        assert "if the kernel takes any n, remove the mark" in case.reason
        assert [one.place for one in case.guesses] == ["spec.yaml:5"]
    else:
        assert not case.guesses
        assert "guess" not in case.reason


CONFIRMED = [
    ({}, {"n": (40,)}, "refuted"),  # nobody marked it
    ({"SUITES": "its sizes"}, {"n": (40,)}, "inconclusive"),  # as the suite has it
    ({"SUITES": "its sizes"}, {"n": (50,)}, "refuted"),  # the user's own
    ({"N": "no comparison"}, {"n": (50,)}, "inconclusive"),
    ({"N": "values other than 40, the host's: no comparison"}, {"n": (40,)}, "refuted"),
    ({"N": "values other than 40, the host's: no comparison"}, {"n": (50,)}, "inconclusive"),
]


@pytest.mark.parametrize(("marks", "shape", "verdict"), CONFIRMED)
def test_sizes_that_no_mark_is_for_are_confirmed(
    tmp_path: Path, marks: Mapping[str, str], shape: Mapping[str, tuple[int, ...]], verdict: str
) -> None:
    path = written(tmp_path, "tiles", marks)
    (case,) = run(path, tmp_path / "out", shapes=shape).cases
    assert case.verdict == verdict, case.reason


def test_a_size_is_named_before_the_shape_that_it_explains(tmp_path: Path) -> None:
    path = written(tmp_path, "whole-tiles", {"N": "no comparison", "Y": "its shape"})
    (case,) = run(path, tmp_path / "out").cases
    assert case.verdict == "inconclusive"
    assert case.reason.startswith("the size n = 40 in spec.yaml:5 is a guess"), case.reason
    assert "the shape of y in spec.yaml:13 is a guess: y: 24 elements never written" in case.reason


def test_round_sizes_keep_what_a_spec_says_of_them(tmp_path: Path) -> None:
    path = written(tmp_path, "any", {})
    text = path.read_text("utf-8")
    path.write_text(text.replace("n: {default: 40}", "n: {default: 40, max: 200}"), "utf-8")
    (case,) = plan(spec.load(path), Selection()).cases
    shapes = [dict(one.shape) for one in at_round_sizes(case, ["n"])]
    assert [one["n"] for one in shapes] == [128, 64, 32, 16, 96]
    assert {one["m"] for one in shapes} == {3}
    assert judge.guessed_sizes(case) == []
