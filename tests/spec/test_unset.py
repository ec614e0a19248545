"""Arrays in which nothing need be where a comparison holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runs import run
from tests.support import changed_spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.specs import load
from tokitai_cli.spec.inputs import draw
from tokitai_cli.spec.plan import Selection, plan

SPEC = """\
schema: tokitai/spec/v1
op: axpby
title: y = alpha x + beta y
params:
  n: {default: 100}
  beta_parts: {default: 5, min: 0}
variants:
  right: &main
    source: kernel.hip
    inputs:
      x: {dtype: float32, shape: [n]}
      at: {dtype: int32, shape: [n], draw: {kind: index-uniform, below: n}}
    inout:
      y: {dtype: float32, shape: [n]}
    scalars:
      alpha: {dtype: float32, value: 0.5}
      beta: {dtype: float32, value: "beta_parts / 10"}
    launches:
      - {kernel: right, grid: ["ceil_div(n, 32)"], block: [32], args: [x, y, at, alpha, beta, n]}
    unset: {y: "beta == 0", at: "beta < 1 / 4"}
    oracle: {formula: "formula.py:axpby"}
    checks: [{metric: bound}]
profiles:
  normal: {}
"""
KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void right(const float* x, float* y, const int* at, float alpha, float beta, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = beta == 0 ? alpha * x[i] : alpha * x[i] + beta * y[i];
}
__global__ void reads(const float* x, float* y, const int* at, float alpha, float beta, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + beta * y[i];
}
"""
FORMULA = """\
def axpby(params, inputs, scalars):
    return {"y": scalars["alpha"] * inputs["x"] + scalars["beta"] * inputs["y"]}
"""


def write(folder: Path, kernel: str = "right", **changes: str) -> Path:
    text = SPEC.replace(" &main", "").replace("kernel: right", f"kernel: {kernel}")
    return changed_spec(folder, text, changes, kernel=KERNEL, formula=FORMULA)


@pytest.mark.parametrize(
    ("kernel", "parts", "verdict"),
    [
        ("right", 5, Verdict.VERIFIED),
        ("right", 0, Verdict.VERIFIED),
        ("reads", 5, Verdict.VERIFIED),
        ("reads", 0, Verdict.REFUTED),
    ],
)
def test_a_kernel_that_reads_what_is_not_set_is_refuted(
    tmp_path: Path, kernel: str, parts: int, verdict: Verdict
) -> None:
    path = write(tmp_path, kernel)
    evidence = run(path, tmp_path / "out", shapes={"beta_parts": [parts]})
    assert evidence.verdict is verdict
    told = {one.name: one.generator for one in evidence.cases[0].inputs}
    assert (told["y"] == "not set (NaN)") == (parts == 0)
    assert (told["at"] == "not set (2147483647)") == (parts == 0)


def test_comparisons_are_of_scalars_that_params_decide(tmp_path: Path) -> None:
    cases = plan(load(write(tmp_path)), Selection(shapes={"beta_parts": (2, 3)})).cases
    unset = [[one.name for one in case.buffers if one.unset] for case in cases]
    assert unset == [["at"], []]
    drawn = draw(cases[0])
    assert (drawn["at"].array == 2**31 - 1).all()
    assert np.isfinite(drawn["y"].array).all()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('y: "beta == 0"', 'z: "beta == 0"', "unknown input or in-out `z`"),
        ('y: "beta == 0"', 'y: "gamma == 0"', "unknown name `gamma`"),
        ('y: "beta == 0"', "y: beta", "`beta` is not a comparison"),
    ],
)
def test_faults_are_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(write(tmp_path, **{old: new}))
