"""Devices put side by side: `--device all` and the table of how far their outputs lie apart."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.batch.test_run import Scripted
from tests.commands import test_wrong_kernels as wrongs
from tests.devices.gpu.stand_in_device import StandIn
from tests.runs import run
from tokitai_cli import batch, report
from tokitai_cli.batch.work.serve import CaseServer
from tokitai_cli.core.model.batch_record import Reply, Task
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices import registry
from tokitai_cli.devices.amdgpu import gfx_compiler
from tokitai_cli.evidence import read
from tokitai_cli.run.agreement import apart

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is here the cpu device alone runs, beside the stand-in."""
    monkeypatch.setenv(gfx_compiler.CHOSEN, "/nowhere/clang")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("left", "right", "differing", "largest"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0),
        ([0.0, 1.0], [-0.0, 1.0], 1, 0),
        ([NAN, 1.0], [NAN, 1.0], 0, 0),
        ([NAN, 1.0], [1.0, 1.0], 1, INF),
        ([INF, 1.0], [INF, -INF], 1, None),
    ],
)
def test_distance_of_floats(
    dtype: Any, left: list[float], right: list[float], differing: int, largest: float | None
) -> None:
    found = apart(np.array(left, dtype), np.array(right, dtype))
    assert (found.elements, found.differing) == (2, differing)
    if largest is not None:
        assert found.largest == largest
    else:
        assert found.largest > 0


def test_distance_counts_representable_values() -> None:
    one = np.float16(1.0)
    two_up = np.nextafter(np.nextafter(one, np.float16(2)), np.float16(2))
    assert apart(np.array([one]), np.array([two_up])).largest == 2
    # From the smallest subnormal below zero to the one above lie -0 or +0: two steps.
    least = np.float32(1e-45)
    assert apart(np.array([-least]), np.array([least])).largest == 2
    # The largest float and infinity are neighbours.
    top = np.array([np.finfo(np.float64).max])
    assert apart(top, np.array([np.inf])).largest == 1


@pytest.mark.parametrize(
    ("dtype", "left", "right", "largest"),
    [("int8", -128, 127, 255), ("uint64", 0, 2**64 - 1, 2.0**64), ("bool", False, True, 1)],
)
def test_distance_of_integers(dtype: str, left: int, right: int, largest: float) -> None:
    found = apart(np.array([left, 3], dtype), np.array([right, 3], dtype))
    assert (found.differing, found.largest) == (1, largest)


def test_all_devices_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._DEVICES, "rocm", StandIn())
    chosen = ["whole-float16", "rounds", "unstable", "tail-float16"]
    evidence = run(
        wrongs.spec_in(tmp_path), tmp_path, device="all", variant=chosen, repeat=2, stand_in=True
    )
    ran = {case.device for case in evidence.cases}
    assert {"rocm", "cpu"} <= ran
    assert set(evidence.devices) == {"rocm", "cuda", "gfx", "cpu"}
    found = {record.variant: record for record in evidence.agreement}
    whole = found["whole-float16"]
    assert set(whole.devices) == {"rocm", "cpu"}
    assert (whole.cases, whole.equal_cases, whole.differing, whole.where) == (1, 1, 0, "")
    assert whole.elements == wrongs.N
    assert found["tail-float16"].equal_cases == 1  # both leave the same sentinels
    # What may differ from run to run stands apart, so that the digest does not depend on it.
    assert "unstable" not in found
    assert [record.variant for record in evidence.volatile.agreement] == ["unstable"]
    again = read(tmp_path / "wrongs.json")
    assert again.agreement == evidence.agreement
    text = report.render(again, "md").decode()
    assert "## Agreement between devices" in text
    assert "| `whole-float16` | `y` | `rocm, cpu` | 1 | 1 | 1536 | none |" in text


def test_a_batch_ends_with_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a worker of the GPU alone, as where others run the cpu device."""
    monkeypatch.setitem(registry._DEVICES, "rocm", StandIn())
    spec = wrongs.spec_in(tmp_path)
    chosen = ["whole-float16", "rounds", "unstable", "tail-float16"]
    alone = run(spec, tmp_path, device="all", variant=chosen, repeat=2, stand_in=True)
    out = tmp_path / "out"
    options = batch.batch_options([str(spec)], device="all", variant=chosen, out=str(out))
    collected = batch.collect(options)
    with CaseServer(collected.setup) as gpu, CaseServer(collected.setup) as cpu:

        def serve(task: Task) -> Reply:
            return (gpu if task.device == "rocm" else cpu).serve(task)

        outcome = batch.run(
            options, collected, lambda event: None, executor=lambda: Scripted(serve)
        )
    (name,) = (name for name in outcome.index.specs[0].evidence if name.endswith(".json"))
    evidence = read(out / name)
    assert evidence.agreement == alone.agreement
    unstable = [record.variant for record in evidence.volatile.agreement]
    assert unstable == ["unstable"]
    assert outcome.index.agreement == [*evidence.agreement, *evidence.volatile.agreement]
    text = (out / "index.md").read_text(encoding="utf-8")
    assert "| `wrongs/whole-float16` | `y` | `rocm, cpu` | 1 | 1 | 1536 | none |" in text


def test_one_device_has_no_such_table(tmp_path: Path) -> None:
    evidence = run("gemm-bw", tmp_path, shapes={"m": 16, "n": 16, "k": 16}, variant=["grad-a"])
    assert evidence.verdict is Verdict.VERIFIED
    assert not evidence.agreement
    assert "Agreement between devices" not in report.render(evidence, "md").decode()


def test_devices_that_differ_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build with another rounding: contraction that only one of the two compilers does."""

    class Contracting(StandIn):
        def recipe(self, options: Any, defines: Any, flags: Any) -> Any:
            return super().recipe(options, {**defines, "STEP": "1"}, flags)

    monkeypatch.setitem(registry._DEVICES, "rocm", Contracting())
    (tmp_path / "steps.hip").write_text(
        "#include <hip/hip_runtime.h>\n#ifndef STEP\n#define STEP 0\n#endif\n"
        "__global__ void steps(const float* x, float* y, int n) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) y[i] = __uint_as_float(__float_as_uint(x[i]) + (i == 7 ? 3 * STEP : 0));\n}\n"
    )
    (tmp_path / "copy.py").write_text(
        "def copy(params, inputs, scalars):\n    return {'y': inputs['x'].astype('float64')}\n"
    )
    (tmp_path / "steps.yaml").write_text(
        "schema: tokitai/spec/v1\nop: steps\ntitle: Steps\nparams: {n: {default: 64}}\nvariants:\n"
        "  only:\n    source: steps.hip\n    oracle: 'copy.py:copy'\n"
        "    inputs: {x: {dtype: float32, shape: [n]}}\n    outputs: {y: {dtype: float32, shape: [n]}}\n"
        "    checks: [{metric: ulp, limit: 4}]\n"
        "    launches: [{kernel: steps, grid: ['ceil_div(n, 64)'], block: [64], args: [x, y, n]}]\n"
        "profiles: {normal: {}}\n"
    )
    evidence = run(tmp_path / "steps.yaml", tmp_path, device="all", stand_in=True)
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    (record,) = evidence.agreement
    assert (record.equal_cases, record.differing, record.largest) == (0, 1, 3.0)
    assert record.where == evidence.cases[0].id
    assert record.unit == "ulp"
