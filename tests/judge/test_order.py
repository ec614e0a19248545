"""Outputs that are right up to an order, alone and in groups, and those with several right values."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs import run
from tests.support import changed_spec
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.order import FreeOrder, _matching
from tokitai_cli.run.specs import load

SPEC = """\
schema: tokitai/spec/v1
op: select
title: Elements above 0, in any order
params:
  n: {default: 300}
variants:
  main:
    source: kernel.hip
    inputs:
      x: {dtype: float32, shape: [n]}
    outputs:
      count: {dtype: int32, shape: [1]}
      values: {dtype: float32, shape: [n], order: any}
      at: {dtype: int32, shape: [n], order: {with: values}}
    workspaces:
      next: {dtype: int32, shape: [2], init: zero, scratch: counters}
    launches:
      - {kernel: KERNEL, grid: ["ceil_div(n, 64)"], block: [64], args: [x, count, values, at, next, n]}
      - {kernel: close, grid: [1], block: [64], args: [count, values, at, next, n]}
    oracle: oracle.py:select
    checks: [{metric: exact}]
    reduction: none
profiles:
  normal: {}
  ties: {draw: {kind: ties, value: 5}}
"""
ORACLE = """\
import numpy as np


def select(params, inputs, scalars):
    x = inputs["x"]
    at = np.flatnonzero(x > 0).astype(np.int32)
    values = np.zeros(x.size)
    places = np.full(x.size, -1, np.int32)
    values[: at.size], places[: at.size] = x[at], at
    kept = np.where(np.arange(x.size) < at.size, 0, -1).astype(np.int32)
    return {
        "count": np.array([at.size], np.int32),
        "values": {"reference": values, "error": np.zeros(x.size), "segments": kept},
        "at": {"reference": places, "segments": kept},
    }
"""
KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void right(const float* x, int* count, float* values, int* at, int* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) {
        int place = atomicAdd(next, 1);
        values[place] = x[i];
        at[place] = i;
    }
}
__global__ void apart(const float* x, int* count, float* values, int* at, int* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) {
        values[atomicAdd(next, 1)] = x[i];
        int place = atomicAdd(next + 1, 1);
        at[place == 3 ? 4 : place == 4 ? 3 : place] = i;
    }
}
__global__ void twice(const float* x, int* count, float* values, int* at, int* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) {
        int place = atomicAdd(next, 1), from = i;
        for (int j = i - 1; i >= 40 && i < 60 && j >= 0; --j) {
            if (x[j] > 0) {
                from = j;
                break;
            }
        }
        values[place] = x[from];
        at[place] = from;
    }
}
__global__ void close(int* count, float* values, int* at, const int* next, int n) {
    if (threadIdx.x == 0) count[0] = next[0];
    for (int i = next[0] + threadIdx.x; i < n; i += blockDim.x) {
        values[i] = 0;
        at[i] = -1;
    }
}
"""


def write(folder: Path, kernel: str = "right", **changes: str) -> Path:
    text = SPEC.replace("KERNEL", kernel)
    return changed_spec(folder, text, changes, kernel=KERNEL, oracle=ORACLE)


def statuses(evidence: Evidence, output: str) -> dict[str, str]:
    case = evidence.cases[0]
    return {one.kind: one.status for one in case.mutants if one.output == output}


def test_any_order_of_pairs_is_right_in_every_repetition(tmp_path: Path) -> None:
    evidence = run(write(tmp_path), tmp_path / "out")
    assert [one.reason for one in evidence.cases] == ["", ""]
    assert evidence.verdict is Verdict.VERIFIED
    values, at = (statuses(evidence, name) for name in ("values", "at"))
    assert values["one-twice"] == at["one-twice"] == "rejected"
    assert values["roll"] == "rejected"  # past what is kept
    assert at["ungrouped"] == "rejected"
    assert "ungrouped" not in values
    assert values["other-segment"] == "rejected"
    assert values["anchor"] == "rejected"


@pytest.mark.parametrize(("kernel", "output"), [("apart", "at"), ("twice", "values")])
def test_other_pairs_and_values_that_come_twice_are_refuted(
    tmp_path: Path, kernel: str, output: str
) -> None:
    evidence = run(write(tmp_path, kernel), tmp_path / "out", profile=["normal"])
    (case,) = evidence.cases
    assert case.verdict is Verdict.REFUTED
    failed = [one.name for one in case.outputs if not one.passed]
    assert output in failed
    if kernel == "apart":
        assert failed == ["at"]
        assert "in any order" in case.reason


def test_orders_differ_between_repetitions_and_that_is_said(tmp_path: Path) -> None:
    evidence = run(write(tmp_path), tmp_path / "out", profile=["normal"])
    repeats = evidence.cases[0].repeats
    assert repeats is not None
    if repeats.differing_outputs:
        assert repeats.bitwise_equal is False
    assert set(repeats.differing_outputs) <= {"values", "at"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("order: {with: values}", "order: {with: count}", "`count` has no free order"),
        ("order: {with: values}", "order: {with: sums}", "unknown output `sums`"),
        ("order: {with: values}", "order: {with: values, axis: 0}", "`with` defines"),
        ("order: any", "order: {axis: 1}", "axis 1 of values, which has 1 dimensions"),
        ("order: any", "order: {within: values}", "unknown output `values`"),
        ("x: {dtype: float32,", "x: {order: any, dtype: float32,", "only outputs and inout have"),
    ],
)  # fmt: skip
def test_faults_are_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(write(tmp_path, **{old: new}))


# ---------------------------------------------------------------- several right values

SIGNS = """\
schema: tokitai/spec/v1
op: root
title: A square root of either sign, and its offsets
params:
  n: {default: 200}
variants:
  main:
    source: kernel.hip
    inputs:
      x: {dtype: float32, shape: [n], draw: {kind: uniform, lo: 1, hi: 9}}
    outputs:
      y: {dtype: float32, shape: [n]}
    launches:
      - {kernel: KERNEL, grid: ["ceil_div(n, 64)"], block: [64], args: [x, y, n]}
    oracle: oracle.py:root
    checks: [{metric: bound}]
    reduction: none
profiles:
  normal: {}
"""
SIGNS_KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void either(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i % 3 == 1 ? -sqrtf(x[i]) : sqrtf(x[i]);
}
__global__ void neither(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i == 100 ? 0.0f : i % 3 == 1 ? -sqrtf(x[i]) : sqrtf(x[i]);
}
"""
SIGNS_ORACLE = """\
import numpy as np


def root(params, inputs, scalars):
    y = np.sqrt(inputs["x"].astype(np.float64))
    return {"y": {"reference": y, "error": 2.0**-22 * y, "allowed": -y[None]}}
"""


@pytest.mark.parametrize(
    ("kernel", "verdict"), [("either", Verdict.VERIFIED), ("neither", Verdict.REFUTED)]
)
def test_either_of_two_floats_is_right_and_what_lies_between_is_not(
    tmp_path: Path, kernel: str, verdict: Verdict
) -> None:
    (tmp_path / "spec.yaml").write_text(SIGNS.replace("KERNEL", kernel), encoding="utf-8")
    (tmp_path / "kernel.hip").write_text(SIGNS_KERNEL, encoding="utf-8")
    (tmp_path / "oracle.py").write_text(SIGNS_ORACLE, encoding="utf-8")
    evidence = run(tmp_path / "spec.yaml", tmp_path / "out")
    assert evidence.verdict is verdict
    if verdict is Verdict.VERIFIED:
        found = statuses(evidence, "y")
        assert found["between-choices"] == found["zeros"] == "rejected"
        assert found["sign-flipped"] == "not-applicable"
    else:
        assert "y[100]: got 0" in evidence.cases[0].reason


# ---------------------------------------------------------------- orders of arrays


def order(*references: Any, labels: Any = None, error: Any = None) -> FreeOrder:
    targets = []
    for number, values in enumerate(references):
        array = np.asarray(values)
        dtype = "float32" if array.dtype.kind == "f" else "int32"
        reference = array.reshape(-1).astype(np.float64 if dtype == "float32" else np.int32)
        given = None if error is None else np.asarray(error, np.float64)
        target = Target(
            name=f"y{number}", dtype=dtype, shape=array.shape, reference=reference,
            error=given if dtype == "float32" else None,
        )  # fmt: skip
        targets.append(target)
    units = len(references[0])
    return FreeOrder(tuple(targets), np.zeros(units, int) if labels is None else np.array(labels))


def test_elements_stay_in_their_segments() -> None:
    free = order(np.array([3, 1, 2, 7, 5]), labels=[0, 0, 0, 1, 1])
    assert free.arranged("y0", np.array([2, 3, 1, 5, 7], np.int32)).tolist() == [3, 1, 2, 7, 5]
    other = free.arranged("y0", np.array([2, 3, 5, 1, 7], np.int32))
    assert other.tolist() == [3, 5, 2, 7, 1]


def test_whole_slices_move() -> None:
    rows = np.array([[1, 9], [1, 2], [0, 5]])
    free = order(rows)
    assert free.arranged("y0", rows[[2, 0, 1]].reshape(-1).astype(np.int32)).tolist() == [
        1,
        9,
        1,
        2,
        0,
        5,
    ]


def test_zeros_of_both_signs_keep_theirs() -> None:
    free = order(np.array([0.0, -0.0, 1.0]), error=[0, 0, 0])
    found = free.arranged("y0", np.array([1, -0.0, 0.0], np.float32))
    assert np.signbit(found).tolist() == [False, True, False]


def test_near_values_are_paired_by_what_belongs_to_them() -> None:
    """By size 1.00001 would stand for 1, though its index is the other's."""
    values, at = np.array([1.0, 1.000001, 4.0]), np.array([10, 11, 12])
    free = order(values, at, error=[1e-4] * 3)
    got = {"y0": np.array([1.0001, 1.0, 4.0], np.float32), "y1": np.array([10, 11, 12], np.int32)}
    places = free.places(got)
    assert free.moved(got["y1"], places).tolist() == [10, 11, 12]


def test_nested_bounds_are_matched_though_sizes_say_otherwise() -> None:
    free = order(np.array([1.0, 1.1]), error=[0.5, 0.01])
    found = free.arranged("y0", np.array([1.105, 1.3], np.float32))
    assert found.tolist() == [np.float32(1.3), np.float32(1.105)]


@pytest.mark.parametrize("seed", range(20))
def test_matchings_are_the_largest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fits = rng.random((6, 6)) < 0.35
    found = _matching(fits.copy())
    assert sorted(found) == list(range(6))
    most = max(
        sum(fits[row, column] for column, row in enumerate(rows))
        for rows in itertools.permutations(range(6))
    )
    assert sum(fits[row, column] for column, row in enumerate(found)) == most
