"""Masks that kernels draw by chance: share, distances, what follows from them, and seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runs import run
from tests.support import changed_spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge.random_masks import mask_fault, mask_record
from tokitai_cli.run.specs import load
from tokitai_cli.spec.plan import Selection, plan

SPEC = """\
schema: tokitai/spec/v1
op: dropout
title: Elements left out by chance
params:
  rows: {default: 60}
  cols: {default: 100}
  kept_parts: {default: 8, max: 10}
variants:
  main:
    source: kernel.hip
    inputs:
      x: {dtype: float32, shape: [rows, cols]}
    outputs:
      y: {dtype: float32, shape: [rows, cols]}
      keep: {dtype: uint8, shape: [rows, cols]}
    scalars:
      p: {dtype: float32, value: "kept_parts / 10"}
      key: {dtype: uint32, value: 7}
    launches:
      - {kernel: KERNEL, grid: ["ceil_div(rows * cols, 64)"], block: [64], args: [x, y, keep, p, key, cols, rows * cols]}
    random: {mask: keep, p: p, seed: key}
    oracle: {formula: "formula.py:dropout"}
    checks:
      - {metric: bound, output: y}
      - {metric: exact, output: keep}
profiles:
  normal: {}
"""  # noqa: E501
FORMULA = """\
import numpy as np


def dropout(params, inputs, scalars):
    keep = inputs["keep"]
    return {"y": np.where(keep == 1, inputs["x"] / scalars["p"], 0), "keep": keep}
"""
KERNEL = """\
#include <hip/hip_runtime.h>
__device__ unsigned mixed(unsigned h) {
    h ^= h >> 16; h *= 0x7feb352dU; h ^= h >> 15; h *= 0x846ca68bU; h ^= h >> 16;
    return h;
}
__device__ bool kept(unsigned i, unsigned key, float p) {
    return mixed(mixed(i + 1) ^ (key * 0x9e3779b9U)) * (1.0f / 4294967296.0f) < p;
}
#define DROP(NAME, KEPT, VALUE, MASK)                                                    \\
    __global__ void NAME(const float* x, float* y, unsigned char* keep, float p,         \\
                         unsigned key, int cols, int n) {                                \\
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                   \\
        if (i >= n) return;                                                              \\
        bool k = KEPT;                                                                   \\
        y[i] = VALUE;                                                                    \\
        keep[i] = MASK;                                                                  \\
    }
DROP(right, kept(i, key, p), k ? x[i] / p : 0.0f, k)
DROP(unscaled, kept(i, key, p), k ? x[i] : 0.0f, k)
DROP(share, kept(i, key, 1 - p), k ? x[i] / p : 0.0f, k)
DROP(inverted, kept(i, key, p), k ? x[i] / p : 0.0f, !k)
DROP(lanes, kept(i % 64, key, p), k ? x[i] / p : 0.0f, k)
DROP(rows, kept(i % cols, key, p), k ? x[i] / p : 0.0f, k)
DROP(unseeded, kept(i, 1, p), k ? x[i] / p : 0.0f, k)
DROP(shifted, kept(i, key, p), kept(i ^ 1, key, p) ? x[i] / p : 0.0f, k)
DROP(bits, kept(i, key, p), k ? x[i] / p : 0.0f, k ? 255 : 0)
"""


def write(folder: Path, kernel: str = "right", **changes: str) -> Path:
    text = SPEC.replace("KERNEL", kernel)
    return changed_spec(folder, text, changes, kernel=KERNEL, formula=FORMULA)


def test_a_mask_by_chance_is_right_whatever_it_is(tmp_path: Path) -> None:
    evidence = run(write(tmp_path), tmp_path / "out", shapes={"kept_parts": [8, 5]})
    assert [one.reason for one in evidence.cases] == ["", ""]
    assert evidence.verdict is Verdict.VERIFIED
    for case in evidence.cases:
        keep = next(one for one in case.outputs if one.name == "keep")
        assert keep.mask is not None
        assert keep.mask.significance == 1e-9
        told = {one.kind: one.status for one in case.mutants if one.output == "keep"}
        assert set(told) == {"all-kept", "none-kept", "other-share", "periodic", "rows-alike"}
        assert set(told.values()) == {"rejected"}
        assert [one.name for one in case.properties] == ["other-seed"]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("unscaled", "y["),
        ("share", "elements are kept, and p is 0.8"),
        ("inverted", "y["),
        ("lanes", "elements 64 apart are correlated"),
        ("rows", "elements 100 apart are correlated"),
        ("unseeded", "keep: the mask is the same with another seed"),
        ("shifted", "y["),
        ("bits", "keep["),
    ],
)
def test_what_is_no_mask_or_does_not_follow_from_it_is_refuted(
    tmp_path: Path, kernel: str, said: str
) -> None:
    (case,) = run(write(tmp_path, kernel), tmp_path / "out").cases
    assert case.verdict is Verdict.REFUTED
    told = [case.reason, *(one.detail for one in case.properties)]
    assert any(said in text for text in told), told
    assert case.reproduced


def test_a_mask_of_few_elements_is_not_refuted(tmp_path: Path) -> None:
    evidence = run(write(tmp_path), tmp_path / "out", shapes={"rows": [1], "cols": [3]})
    (case,) = evidence.cases
    assert case.verdict is not Verdict.REFUTED
    told = {one.kind: one.status for one in case.mutants if one.output == "keep"}
    assert told["periodic"] == "not-applicable"


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("size", [1, 2, 17, 300, 5000, 100_000])
def test_masks_by_chance_pass(p: float, size: int) -> None:
    rng = np.random.default_rng([int(100 * p), size])
    for _ in range(5):
        assert mask_fault(mask_record(rng.random(size) < p, p)) == ""


@pytest.mark.parametrize("period", [2, 32, 100, 1024])
def test_periods_are_told(period: int) -> None:
    mask = np.resize(np.random.default_rng(3).random(period) < 0.5, 10_000)
    mask[:period] |= ~mask[:period].any()
    fault = mask_fault(mask_record(mask, float(np.clip(mask.mean(), 0.3, 0.7))))
    assert "apart are correlated" in fault or "elements are kept" in fault


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("mask: keep", "mask: kept", "unknown output `kept`"),
        ("mask: keep", "mask: y", "`y` is not a mask"),
        ("p: p,", "p: 1.5,", "p is 1.5"),
        ("p: p,", "p: q,", "unknown name `q`"),
        ("seed: key", "seed: p", "`p` is not an integer"),
    ],
)
def test_faults_are_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(write(tmp_path, **{old: new}))


def test_a_probability_that_a_shape_makes_1_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="p is 1, for"):
        plan(load(write(tmp_path)), Selection(shapes={"kept_parts": (10,)}))
