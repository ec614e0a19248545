"""Specs whose kernels are machine code that others built, executed out of the file by the gfx device."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.gfx_samples import bundle, code_object
from tests.runs import tokitai
from tests.test_gfx_wheel import library

EXAMPLE = Path(__file__).resolve().parent.parent / "docs/examples/machine_code"
DECLARED = """\
#include <hip/hip_runtime.h>
TOKITAI_MACHINE_CODE("scale.bundle");
template <typename T> __global__ void scale(T* out, const T* in, T by, PARAMETER n) {}
"""
SPEC = """\
schema: tokitai/spec/v1
op: scaled
title: Scaled and shifted by one
params: {n: {default: 128, multiple_of: 64}}
variants:
  main:
    source: scale.hip
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    scalars: {by: {dtype: float32, value: 2.5}}
    launches: [{kernel: "scale<float>", grid: ["n // 64"], block: [64], args: [y, x, by, n]}]
    oracle: {formula: "formula.py:scaled"}
    checks: [{metric: bound}]
profiles: {normal: {draw: normal}}
"""
FORMULA = """\
def scaled(params, inputs, scalars):
    x = inputs["x"].reshape(-1, 2)[:, ::-1].reshape(-1)
    return {"y": x * scalars["by"] + SHIFT}
"""


def spec(folder: Path, parameter: str = "int", shift: int = 1) -> Path:
    """A spec of the sample's kernel, which is in a bundle beside it."""
    (folder / "scale.bundle").write_bytes(bundle({"gfx1101": code_object()}))
    (folder / "scale.hip").write_text(DECLARED.replace("PARAMETER", parameter))
    (folder / "formula.py").write_text(FORMULA.replace("SHIFT", str(shift)))
    (folder / "spec.yaml").write_text(SPEC)
    return folder / "spec.yaml"


@pytest.mark.parametrize(("shift", "code", "verdict"), [(1, 0, "verified"), (2, 1, "refuted")])
def test_machine_code_of_a_file_is_judged(
    shift: int, code: int, verdict: str, tmp_path: Path
) -> None:
    ran = tokitai(
        "verify", spec(tmp_path, shift=shift), "--device", "gfx", "--out", tmp_path / "out"
    )
    assert ran.returncode == code, ran.stderr
    text = (tmp_path / "out/scaled.json").read_text()
    assert json.loads(text)["cases"][0]["verdict"] == verdict
    assert "The kernels are machine code of scale.bundle (sha256 " in text


def test_another_file_is_another_build(tmp_path: Path) -> None:
    words = ("verify", spec(tmp_path), "--device", "gfx", "--out", tmp_path / "out")
    assert tokitai(*words).returncode == 0
    (tmp_path / "scale.bundle").write_bytes(b"nothing")
    ran = tokitai(*words)
    assert ran.returncode != 0
    assert "neither an ELF file nor an offload bundle" in ran.stdout + ran.stderr


def test_what_does_not_fit_is_said_and_nothing_is_claimed(tmp_path: Path) -> None:
    other = spec(tmp_path, parameter="long")
    ran = tokitai("verify", other, "--device", "gfx", "--out", tmp_path / "out")
    assert ran.returncode not in {0, 70}
    assert "has all of _Z5scaleIfEvPT_PKS0_S0_l" in ran.stdout + ran.stderr
    for arch, told in (("gfx1100", "no code object for gfx1100"),):
        ran = tokitai("verify", spec(tmp_path), "--device", "gfx", "--arch", arch)
        assert told in ran.stdout + ran.stderr
    ran = tokitai("verify", spec(tmp_path), "--device", "cpu", "--out", tmp_path / "out")
    assert ran.returncode not in {0, 70}
    assert "the kernels are machine code in a file" in ran.stdout + ran.stderr
    (tmp_path / "scale.bundle").unlink()
    ran = tokitai("verify", tmp_path / "spec.yaml", "--device", "gfx", "--out", tmp_path / "out")
    assert "the file of machine code does not exist: scale.bundle" in ran.stdout + ran.stderr


@pytest.mark.slow
def test_kernels_of_the_wheel_are_verified_from_both_builds(tmp_path: Path) -> None:
    library("rocm64")
    code_object()
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    ran = tokitai("verify", folder / "bitsandbytes.yaml", "--device", "gfx", "--out", tmp_path)
    assert ran.returncode == 0, ran.stdout
    cases = json.loads((tmp_path / "bitsandbytes.json").read_text())["cases"]
    assert [case["verdict"] for case in cases] == ["verified"] * 14


def test_isa_shows_the_machine_code_that_the_source_names(tmp_path: Path) -> None:
    shown = tokitai("isa", spec(tmp_path), "--kernel", "scale<float>")
    assert shown.returncode == 0, shown.stderr
    assert (
        "global_store_b32" in shown.stdout
    )  # the declaration itself has no instruction but the end
