"""Right kernels that use the libraries' primitives have no finding in any check."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.runs import KERNELS
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize

KINDS = {
    "summed": ("float32", "float32", "[rows]", 'inputs["x"].sum(axis=1)', "bound"),
    "largest": ("float32", "float32", "[rows]", 'inputs["x"].max(axis=1)', "exact"),
    "scanned": ("int32", "int32", "[rows, n]", 'inputs["x"].cumsum(axis=1)', "exact"),
    "grouped": ("float32", "float32", "[rows]", 'inputs["x"].max(axis=1)', "exact"),
    "place": ("float32", "int32", "[rows]", 'inputs["x"].argmax(axis=1)', "exact"),
}
HEAD = """\
schema: tokitai/spec/v1
op: libraries
title: Primitives
params: {rows: {default: 3}, n: {default: 50}}
variants:"""
VARIANT = """
  {name}:
    source: right_libraries.hip
    inputs: {{x: {{dtype: {dtype}, shape: [rows, n]}}}}
    outputs: {{y: {{dtype: {written}, shape: {shape}}}}}
    launches: [{{kernel: {name}, grid: [rows], block: [64], args: [x, y, n]}}]
    oracle: {{formula: formula.py:{name}}}
    checks: [{{metric: {metric}}}]"""


def test_right_kernels_over_libraries_have_no_finding(tmp_path: Path) -> None:
    shutil.copy(KERNELS / "right_libraries.hip", tmp_path)
    spec, formulas = HEAD, ""
    for name, (dtype, written, shape, value, metric) in KINDS.items():
        spec += VARIANT.format(name=name, dtype=dtype, written=written, shape=shape, metric=metric)
        formulas += f"def {name}(params, inputs, scalars):\n    return {{'y': {value}}}\n\n\n"
    profiles = "\nprofiles: {normal: {draw: normal, inputs: {}}}\n"
    (tmp_path / "spec.yaml").write_text(spec + profiles, encoding="utf-8")
    (tmp_path / "formula.py").write_text(formulas, encoding="utf-8")
    options = run_options(
        str(tmp_path / "spec.yaml"), device="cpu", out=tmp_path / "out", verb="sanitize"
    )
    evidence = sanitize(options).evidence
    assert {case.variant for case in evidence.cases} == {*KINDS}
    for case in evidence.cases:
        assert case.findings == [], case.reason
        assert case.verdict is Verdict.VERIFIED, case.reason
