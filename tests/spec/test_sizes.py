"""Sizes that a spec derives from its params and names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tests.support import changed_spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.specs import load
from tokitai_cli.spec.plan import Selection, plan

SPEC = """\
schema: tokitai/spec/v1
op: window-sum
title: Sums of windows
params:
  rows: {default: 5}
  width: {default: 40}
  taps: {default: 3}
  stride: {default: 2}
sizes:
  span: width - taps
  out_w: "span // stride + 1"
variants:
  main:
    source: kernel.hip
    requires: [span >= 0, "out_w <= 4096"]
    inputs:
      x: {dtype: float32, shape: [rows, width]}
    outputs:
      y: {dtype: float32, shape: [rows, out_w]}
    launches:
      - kernel: windows
        grid: ["ceil_div(rows * out_w, 32)"]
        block: [32]
        args: [x, y, rows, width, out_w, taps, stride]
    oracle: {formula: "formula.py:windows"}
    checks: [{metric: bound}]
profiles:
  normal: {}
suites:
  quick:
    - {shape: {width: 40}}
"""
KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void windows(const float* x, float* y, int rows, int width, int out, int taps, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out) return;
    float sum = 0;
    for (int t = 0; t < taps; t++) sum += x[(i / out) * width + (i % out) * stride + t];
    y[i] = sum;
}
"""
FORMULA = """\
import numpy as np


def windows(params, inputs, scalars):
    at = np.arange(params["out_w"])[:, None] * params["stride"] + np.arange(params["taps"])
    return {"y": inputs["x"][:, at].sum(axis=-1)}
"""


def write(folder: Path, text: str = SPEC) -> Path:
    return changed_spec(folder, text, {}, kernel=KERNEL, formula=FORMULA)


def test_shapes_grids_arguments_and_formulas_know_them(tmp_path: Path) -> None:
    evidence = run(write(tmp_path), tmp_path / "out", shapes={"width": [40, 301]})
    assert evidence.verdict is Verdict.VERIFIED
    assert [one.outputs[0].shape for one in evidence.cases] == [[5, 19], [5, 150]]
    assert list(evidence.cases[0].shape) == ["rows", "width", "taps", "stride"]


def test_requirements_leave_out_and_say_by_their_params(tmp_path: Path) -> None:
    loaded = load(write(tmp_path))
    found = plan(loaded, Selection(shapes={"width": (2, 3)}))
    assert [one.shape["width"] for one in found.cases] == [3]
    assert [one.requirement for one in found.left_out] == ["span >= 0"]
    assert found.cases[0].sizes["out_w"] == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  span: width - taps", "  rows: width", "`rows` is already the name of a param"),
        ("  span: width - taps", "  span: out_w", "unknown name `out_w`"),
        ("  span: width - taps", "  span: width > taps", "comparison where a number is expected"),
        ("  span: width - taps", "  warp_size: width", "a word of expressions"),
        ("      x: {", "      out_w: {", "already the name of a size"),
        ("  stride: {default: 2}", "  stride: {default: 0, min: 0}", "size `out_w`: division by"),
    ],
)
def test_faults_of_sizes_are_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        plan(load(write(tmp_path, SPEC.replace(old, new))), Selection())
