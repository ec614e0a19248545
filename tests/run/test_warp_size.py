"""`warp_size` in a spec: lanes of a warp of the device that a case runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import run
from tokitai_cli import spec as spec_stage
from tokitai_cli.core.errors import SpecError
from tokitai_cli.core.model.device import DeviceOptions, warp_size_of
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.spec import plan

KERNEL = """#include <hip/hip_runtime.h>
template <int Lanes>
__global__ void warps(int* y, int lanes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool alike = Lanes == warpSize && LANES == 2 * warpSize && lanes == warpSize + 1;
    if (i < n) y[i] = alike && blockDim.x == 2 * warpSize ? i : -1;
}
"""
SPEC = """schema: tokitai/spec/v1
op: warps
title: Warps
params: {n: {default: 300}}
variants:
  main:
    source: warps.hip
    defines: {LANES: 2 * warp_size}
    outputs: {y: {dtype: int32, shape: [n]}}
    launches:
      - kernel: warps<warp_size>
        grid: ["ceil_div(n, 2 * warp_size)"]
        block: [2 * warp_size]
        args: [y, warp_size + 1, n]
    oracle: oracle.py:counted
    checks: [{metric: exact}]
profiles: {any: {draw: normal}}
"""
ORACLE = """import numpy as np

def counted(params, inputs, scalars):
    return {"y": np.arange(params["n"])}
"""


def written(folder: Path, spec: str = SPEC) -> Path:
    for name, text in (("warps.hip", KERNEL), ("oracle.py", ORACLE), ("spec.yaml", spec)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "spec.yaml"


@pytest.mark.parametrize("lanes", [32, 64])
def test_expressions_macros_and_template_arguments_know_it(tmp_path: Path, lanes: int) -> None:
    (case,) = run(written(tmp_path), tmp_path / "out", warp_size=lanes).cases
    assert case.verdict is Verdict.VERIFIED, case.reason
    (launch,) = case.launches
    assert (launch.kernel, launch.block) == (f"warps<{lanes}>", [2 * lanes, 1, 1])


def test_shapes_are_the_same_on_every_device(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="unknown name `warp_size`"):
        spec_stage.load(written(tmp_path, SPEC.replace("shape: [n]", "shape: [warp_size]")))


def test_a_case_is_planned_anew_for_other_warps(tmp_path: Path) -> None:
    (case,) = plan.plan(spec_stage.load(written(tmp_path)), plan.Selection()).cases
    wide = plan.at_warp_size(case, 64)
    assert (case.launches[0].grid[0], wide.launches[0].grid[0]) == (5, 3)
    assert wide.id == case.id
    assert plan.at_warp_size(wide, 64) is wide


@pytest.mark.parametrize(
    ("device", "arch", "option", "lanes"),
    [
        ("cpu", "x86_64", 0, 32),
        ("cpu", "x86_64", 64, 64),
        ("cuda", "sm_90", 0, 32),
        ("rocm", "gfx90a:xnack-", 0, 64),
        ("rocm", "gfx1101", 0, 32),
    ],
)
def test_warps_of_devices(device: str, arch: str, option: int, lanes: int) -> None:
    assert warp_size_of(device, arch, DeviceOptions(warp_size=option)) == lanes
