"""A CUDA program's kernels, which know no header of HIP, are judged on the cpu device as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.runs import KERNELS, run
from tokitai_cli.model.verdict import Verdict

SPEC = """
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
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "formula.py").write_text(FORMULA, encoding="utf-8")
    evidence = run(tmp_path / "spec.yaml", tmp_path / "out")
    found = {case.variant: case.verdict for case in evidence.cases}
    wanted = dict.fromkeys(("sums", "largest", "rounded", "drawn"), Verdict.VERIFIED)
    assert found == wanted, [case.reason for case in evidence.cases]
