"""Seeded faults are found while machine code runs, at their lines; right kernels have no finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.gfx.compilers import COMPILERS, toolchain
from tests.devices.sanitizers import specs
from tests.runs import run
from tokitai_cli import evidence as stage
from tokitai_cli.cli.app import run as command
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.verdict import Verdict

# Faults that show in machine code, of each kind.
SEEN = (
    *("missing_barrier", "reused_reduction", "overwritten_tile", "past_workspace", "past_by_one"),
    *("past_by_pages", "far_past", "in_front", "write_past", "past_shared", "past_dynamic"),
    *("unset_output", "unset_workspace"),
    *("blocks_race", "blocks_read_race", "ticket"),
)
# Its blocks store the same values, which warns.
SAME = "blocks_race"
OWN = Path(__file__).parent / "unset.hip"
# What is found in them refutes, but in this one, where one of two accesses is atomic.
MILD = "set_beside_adds"


def placed(case: CaseRecord) -> set[tuple[str, int]]:
    """Kind and line of each finding of the device in the source, a race of any values by that name."""
    return {
        ("race" if one.kind == "same-value-race" else one.kind, int(line))
        for one in case.findings
        if one.tool == "gfx device"
        for place in one.location.split(", ")
        for path, _, line in [place.rpartition(":")]
        if Path(path).name == "faults.hip"
    }


@pytest.mark.parametrize("compiler", COMPILERS)
def test_registers_that_nothing_has_written_and_shared_words_are_found(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain(compiler, monkeypatch)
    names = list(specs.kernels(OWN))
    evidence = run(specs.write_spec(tmp_path, names, OWN), tmp_path, device="gfx")
    told = {case.variant: case for case in evidence.cases}
    assert len(told) == 2 * len(names)
    for name in names:
        right, wrong = told[f"{name}-false"], told[f"{name}-true"]
        assert not right.findings, (name, right.findings)
        assert specs.marks(name, OWN) <= placed(wrong), (name, wrong.findings)
        assert (wrong.verdict is Verdict.REFUTED) == (name != MILD), (name, wrong.reason)


def test_seeded_faults_are_found_at_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain("clang", monkeypatch)
    spec = specs.write_spec(tmp_path, (*SEEN, "bins_read_early"))
    evidence = run(spec, tmp_path, device="gfx")
    told = {}
    for case in evidence.cases:
        name, _, wrong = case.variant.rpartition("-")
        told[name, wrong == "true"] = placed(case)
        if wrong == "false":
            assert not case.findings, (name, case.findings)
        elif name in SEEN and name != SAME:
            assert case.verdict is Verdict.REFUTED, (name, case.reason)
    missed = {name: told[name, True] for name in SEEN if not specs.marks(name) <= told[name, True]}
    assert not missed
    (mixed,) = [case for case in evidence.cases if case.variant == "bins_read_early-true"]
    races = [one for one in mixed.findings if one.kind == "mixed-race"]
    assert races, mixed.findings
    assert {one.severity for one in races} == {"warning"}


def test_findings_name_arrays_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain("clang", monkeypatch)
    spec = specs.write_spec(tmp_path, ("past_by_one", "overwritten_tile"))
    evidence = run(spec, tmp_path, device="gfx", variant=["past_by_one-true"])
    (one,) = evidence.cases[0].findings
    assert one.array == "x[64] of 64 elements"
    assert one.threads == "block (0,0,0), thread (63,0,0)"
    assert "global_load_b32" in one.message
    evidence = run(spec, tmp_path, device="gfx", variant=["overwritten_tile-true"])
    race = next(one for one in evidence.cases[0].findings if one.kind == "race")
    assert "ds_store_b32" in race.message
    assert "ds_load_b32" in race.message
    assert "wave" in race.threads


@pytest.mark.parametrize(
    ("device", "verb"), [("gfx", "verify"), ("gfx", "sanitize"), ("cpu", "sanitize")]
)
def test_what_is_left_out_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, verb: str
) -> None:
    toolchain("clang", monkeypatch)
    spec = specs.write_spec(tmp_path, ("past_by_one",))
    reads = "\n".join(f"    sum += seen[{at % 64}];" for at in range(100))
    (tmp_path / "faults.hip").write_text(f"""#include <hip/hip_runtime.h>
template <bool wrong>
__global__ void past_by_one(const float* x, float* y, float* ws, const int* k, int n) {{
  const volatile float* seen = ws;
  float sum = x[threadIdx.x];
  if (wrong) {{
{reads}
  }}
  y[threadIdx.x] = sum;
}}
""")
    words = [verb, str(spec), "--variant", "past_by_one-true", "--device", device]
    assert command([*words, "--out", str(tmp_path / "out"), "-q"]) == 1
    (path,) = (tmp_path / "out").glob("*.json")
    (case,) = stage.read(path).cases
    *told, last = [one for one in case.findings if one.tool != "AddressSanitizer"]
    assert (last.kind, last.severity) == ("left-out", "error")
    assert len({one.location for one in told}) == len(told) <= 64
    assert sum(one.count for one in case.findings) % 100 == 0


SAME_VALUE = """#include <hip/hip_runtime.h>
template <bool wrong>
__global__ void told_by_all(const float* x, float* y) {
  __shared__ float held;
  held = wrong ? x[threadIdx.x] : x[64];
  __syncthreads();
  y[threadIdx.x] = held + x[threadIdx.x];
  y[64] = wrong ? x[threadIdx.x] : x[64];
}
"""
SAME_SPEC = """
schema: tokitai/spec/v1
op: told-by-all
title: What all waves store
params: {n: {default: 65}}
variants:
  right:
    source: source.hip
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    launches: [{kernel: "told_by_all<false>", grid: [1], block: [64], args: [x, y]}]
    oracle: oracle.py:told
    checks: [{metric: exact}]
  wrong:
    source: source.hip
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    launches: [{kernel: "told_by_all<true>", grid: [1], block: [64], args: [x, y]}]
    oracle: oracle.py:told
    checks: [{metric: exact}]
profiles: {normal: {}}
"""
SAME_ORACLE = """
import numpy as np
def told(params, inputs, scalars):
    x = inputs["x"]
    y = np.append(x[:-1] + x[-1], x[-1])
    return {"y": {"reference": y.astype(np.float64), "error": 0 * y.astype(np.float64)}}
"""


def test_stores_of_one_value_by_several_waves_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In LDS and in global memory; of other values they refute."""
    toolchain("clang", monkeypatch)
    (tmp_path / "source.hip").write_text(SAME_VALUE)
    (tmp_path / "oracle.py").write_text(SAME_ORACLE)
    (tmp_path / "spec.yaml").write_text(SAME_SPEC)
    evidence = run(tmp_path / "spec.yaml", tmp_path, device="gfx")
    right, wrong = evidence.cases
    assert right.verdict is Verdict.VERIFIED, right.reason
    for case, kind, severity in (
        (right, "same-value-race", "warning"),
        (wrong, "race", "error"),
    ):
        races = [one for one in case.findings if one.kind == kind]
        assert {one.severity for one in races} == {severity}, case.findings
        assert {"ds_store" in one.message for one in races} == {True, False}
    assert all("of the same value" in one.message for one in right.findings)
    assert wrong.verdict is Verdict.REFUTED
    strict = run(tmp_path / "spec.yaml", tmp_path, device="gfx", variant=["right"], strict=True)
    assert strict.cases[0].verdict is Verdict.REFUTED
    assert "--strict" in strict.rerun
