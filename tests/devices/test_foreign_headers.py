"""Kernels of CUDA programs and PyTorch extensions, without a header of HIP, are judged as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs import KERNELS, run, tokitai
from tokitai_cli import devices
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.verdict import Verdict

CUDA = """
schema: tokitai/spec/v1
op: cuda-names
title: Kernels under CUDA's names
params: {n: {default: 96}}
variants:
  sums:
    source: cuda_names.cu
    inputs:
      x: {dtype: float32, shape: [n]}
      b: {dtype: bfloat16, shape: [n]}
      h: {dtype: float16, shape: [n]}
      f: {dtype: float8_e4m3fn, shape: [n]}
    outputs: {y: {dtype: float32, shape: [n]}}
    launches: [{kernel: sums, grid: ["ceil_div(n, 64)"], block: [64], args: [x, b, h, f, y, n]}]
    oracle: {formula: formula.py:sums}
    checks: [{metric: bound}]
  largest:
    source: cuda_names.cu
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float32, shape: [n]}}
    launches: [{kernel: largest, grid: ["ceil_div(n, 64)"], block: [64], args: [x, y, n]}]
    oracle: {formula: formula.py:largest}
    checks: [{metric: exact}]
  rounded:
    source: cuda_names.cu
    inputs: {x: {dtype: float32, shape: [n]}}
    outputs: {y: {dtype: float8_e4m3fn, shape: [n]}}
    launches: [{kernel: rounded, grid: ["ceil_div(n, 64)"], block: [64], args: [x, y, n]}]
    oracle: {formula: formula.py:rounded}
    checks: [{metric: bound}]
  drawn:
    source: cuda_names.cu
    outputs: {y: {dtype: float32, shape: [n], constant: {value: 1}}}
    scalars: {seed: {dtype: uint64, value: 7}}
    launches: [{kernel: drawn, grid: ["ceil_div(n, 64)"], block: [64], args: [y, n, seed]}]
    oracle: {formula: formula.py:drawn}
    checks: [{metric: exact}]
profiles: {normal: {draw: normal}}
"""
FORMULA = """
import numpy as np


def sums(params, inputs, scalars):
    return {"y": inputs["x"] + inputs["b"] + inputs["h"] + inputs["f"]}


def largest(params, inputs, scalars):
    return {"y": np.repeat(2 * inputs["x"].reshape(-1, 32).max(axis=1), 32)}


def rounded(params, inputs, scalars):
    return {"y": inputs["x"]}


def drawn(params, inputs, scalars):
    return {"y": np.ones(params["n"])}
"""


def test_kernels_under_cudas_names_are_verified(tmp_path: Path) -> None:
    shutil.copy(KERNELS / "cuda_names.cu", tmp_path)
    (tmp_path / "spec.yaml").write_text(CUDA, encoding="utf-8")
    (tmp_path / "formula.py").write_text(FORMULA, encoding="utf-8")
    evidence = run(tmp_path / "spec.yaml", tmp_path / "out")
    found = {case.variant: case.verdict for case in evidence.cases}
    wanted = dict.fromkeys(("sums", "largest", "rounded", "drawn"), Verdict.VERIFIED)
    assert found == wanted, [case.reason for case in evidence.cases]


TORCH = """
schema: tokitai/spec/v1
op: torch-names
title: Kernels of a PyTorch extension
params: {rows: {default: 5}, cols: {default: 70}}
variants:
  scaled:
    source: torch_names.cu
    inputs: {x: {dtype: DTYPE, shape: [rows, cols]}}
    outputs: {y: {dtype: DTYPE, shape: [rows, cols]}}
    launches: [{kernel: "scaled<TYPE>", grid: [2], block: [64], args: [x, y, "rows * cols"]}]
    oracle: {formula: formula.py:scaled}
    checks: [{metric: bound}]
  largest:
    source: torch_names.cu
    inputs: {x: {dtype: DTYPE, shape: [rows, cols]}}
    outputs: {y: {dtype: DTYPE, shape: [rows]}}
    launches: [{kernel: "largest<TYPE>", grid: [rows], block: [32], args: [x, y, cols]}]
    oracle: {formula: formula.py:largest}
    checks: [{metric: exact}]
  mixed:
    source: torch_names.cu
    inputs: {x: {dtype: DTYPE, shape: [rows, cols]}}
    outputs: {y: {dtype: float32, shape: [rows, cols]}}
    launches: [{kernel: "mixed<TYPE>", grid: [2], block: [64], args: [x, y, "rows * cols"]}]
    oracle: "formula.py:mixed"
    checks: [{metric: ulp, limit: 1}]
profiles: {normal: {draw: normal}}
"""
TORCH_FORMULA = """
import ml_dtypes
import numpy as np


def scaled(params, inputs, scalars):
    return {"y": np.sqrt(inputs["x"] * inputs["x"]) * 0.5}


def largest(params, inputs, scalars):
    return {"y": inputs["x"].max(axis=1)}


def mixed(params, inputs, scalars):
    x = inputs["x"]
    one = (x * x).astype(x.dtype) + np.ones((), x.dtype)
    return {"y": np.where(one > x, one.astype(np.float32) * np.float32(0.5), 0).astype(np.float64)}
"""


@pytest.mark.parametrize("device", ["cpu", "gfx"])
@pytest.mark.parametrize(
    ("dtype", "name"),
    [("float32", "float"), ("float16", "at::Half"), ("bfloat16", "c10::BFloat16")],
)
def test_kernels_of_a_pytorch_extension_are_verified(
    dtype: str, name: str, device: str, tmp_path: Path
) -> None:
    if not devices.get(device).probe(DeviceOptions()).available:
        pytest.skip(f"no compiler for {device}")
    shutil.copy(KERNELS / "torch_names.cu", tmp_path)
    spec = TORCH.replace("DTYPE", dtype).replace("TYPE", name)
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    (tmp_path / "formula.py").write_text(TORCH_FORMULA, encoding="utf-8")
    names = ["scaled", "largest"]
    names += ["mixed"] if device == "cpu" else []  # AMD's compiler may fuse it
    evidence = run(tmp_path / "spec.yaml", tmp_path / "out", device=device, variant=names)
    found = {case.variant: case.verdict for case in evidence.cases}
    wanted = dict.fromkeys(names, Verdict.VERIFIED)
    assert found == wanted, [case.reason for case in evidence.cases]


def test_views_of_tensors_are_drafted_and_verified(tmp_path: Path) -> None:
    shutil.copy(KERNELS / "torch_accessors.cu", tmp_path)
    done = tokitai("new", tmp_path / "torch_accessors.cu", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    spec = tmp_path / "spec.yaml"
    text = spec.read_text("utf-8")
    for line in (
        "parts_data: {dtype: float32, shape: [parts_0, 3, parts_2]}",
        "weight_data: {dtype: float32, shape: [parts_2]}",
        "out_data: {dtype: float32, shape: [parts_0, parts_2]}",
        'sizes_: [parts_0, 3, parts_2], strides_: ["3 * parts_2", parts_2, 1]}',
    ):
        assert line in text
    formula = tmp_path / "formula.py"
    drafted = formula.read_text("utf-8").partition("    # fill in:")[0]
    wanted = '{"out_data": parts_data[:, 0] * weight_data - parts_data[:, 2]}'
    formula.write_text(f"{drafted}    return {wanted}\n", "utf-8")
    evidence = run(spec, tmp_path / "out", suite="quick")
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
