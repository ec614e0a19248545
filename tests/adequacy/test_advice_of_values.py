"""Advice for conditions, constants near 0, ties of narrow outputs, and halves of 64-bit integers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tokitai_cli.adequacy import advice
from tokitai_cli.adequacy.advice.edit import Advice
from tokitai_cli.run.specs import load

SPEC = """\
schema: tokitai/spec/v1
op: guarded
title: Rows over their norm
params:
  rows: {default: 12}
  cols: {default: 40}
variants:
  main:
    source: kernel.hip
    inputs:
      x: {dtype: float32, shape: [rows, cols]}
    outputs:
      y: {dtype: DTYPE, shape: [rows, cols]}
    scalars:
      key: {dtype: uint64, value: 7}
      eps: {dtype: float32, value: 1e-15}
    launches:
      - {kernel: guarded, grid: ["ceil_div(rows, 32)"], block: [32], args: [x, y, key, eps, rows, cols]}
    oracle: {formula: "formula.py:guarded"}
    checks:
      - {metric: bound}
profiles:
  normal: {}
suites:
  quick:
    - {shape: {rows: 40, cols: 33}}
    - {shape: {rows: 3, cols: 64}}
"""
KERNEL = """\
#include <hip/hip_runtime.h>
__global__ void guarded(const float* x, TYPE* y, unsigned long long key, float eps, int rows,
                        int cols) {}
"""


def advised(folder: Path, body: str, dtype: str = "float32") -> list[Advice]:
    head = "import numpy as np\n\n\ndef guarded(params, inputs, scalars):\n    x = inputs['x']\n"
    text = f"{head}{body}\n"
    (folder / "formula.py").write_text(text, encoding="utf-8")
    kind = {"float32": "float", "float16": "__half"}[dtype]
    (folder / "kernel.hip").write_text(KERNEL.replace("TYPE", kind), encoding="utf-8")
    (folder / "spec.yaml").write_text(SPEC.replace("DTYPE", dtype), encoding="utf-8")
    return list(advice.advise(load(folder / "spec.yaml")))


def proposed(found: list[Advice]) -> set[str]:
    """Names of the profiles that are proposed."""
    edits = (edit for one in found for edit in one.edits)
    return {str(edit.path[1]) for edit in edits if edit.path[0] == "profiles"}


def test_a_condition_that_holds_nowhere_gets_a_profile_on_which_it_holds(tmp_path: Path) -> None:
    body = """\
    total = np.abs(x).sum(axis=-1, keepdims=True)
    return {"y": np.where(total == 0, 0.25, x / (total + (total == 0)))}"""
    found = advised(tmp_path, body)
    assert "zero-rows" in proposed(found)
    assert any("where: the second side alone" in one.text for one in found)


def test_both_sides_that_are_taken_need_no_advice(tmp_path: Path) -> None:
    found = advised(tmp_path, '    return {"y": np.where(x > 0, 2 * x, x)}')
    assert not any("side alone" in one.text for one in found)


@pytest.mark.parametrize("constant", ['scalars["eps"]', "1e-15"])
def test_what_keeps_a_root_from_0_gets_a_profile_beside_it(tmp_path: Path, constant: str) -> None:
    body = f"""\
    mean = (x * x).mean(axis=-1, keepdims=True)
    return {{"y": x / np.sqrt(mean + {constant})}}"""
    found = proposed(advised(tmp_path, body))
    assert any(one.startswith(("beside-", "near-")) for one in found), found


def test_narrow_outputs_get_ties_where_they_show(tmp_path: Path) -> None:
    found = advised(tmp_path, '    return {"y": x * 1}', "float16")
    assert "halfway" in proposed(found)
    assert any("no profile has rounding ties of y" in one.text for one in found)
    wide = advised(
        tmp_path, '    return {"y": np.exp(x).sum(axis=-1, keepdims=True) * x}', "float16"
    )
    assert "halfway" not in proposed(wide)
    assert "halfway" not in proposed(advised(tmp_path, '    return {"y": x * 1}'))


def test_halves_of_64_bit_integers_are_asked_for(tmp_path: Path) -> None:
    found = advised(tmp_path, '    return {"y": x * 1}')
    (one,) = [one for one in found if "key is below 2^32" in one.text]
    assert [edit.value for edit in one.edits][1] == "key_high * 2 ** 32 + 7"
    loaded = load(tmp_path / "spec.yaml")
    done, refused = advice.apply(loaded, [one])
    assert (done, refused) == (1, [])
    assert load(tmp_path / "spec.yaml").spec.suites["quick"][-1].shape == {"key_high": 5}


@pytest.mark.parametrize(
    ("body", "words", "profile"),
    [
        ("np.clip(x, -200, 20000)", "clip: no upper limit", "beyond-2"),
        ("np.where(x == 0, 0, 1 / np.where(x == 0, 1, x))", "the second side alone", "some-zeros"),
        ("np.rint(x * 4) * 0.25", "rint: halves rounded up", "negative"),
        (
            "np.abs(x) + np.log1p(np.exp(-2 * np.abs(x)))",
            "numbers where they overflow",
            "overflowing",
        ),
    ],
)
def test_a_branch_that_no_value_takes_gets_a_profile(
    tmp_path: Path, body: str, words: str, profile: str
) -> None:
    found = advised(tmp_path, f'    return {{"y": {body}}}')
    assert any(words in one.text for one in found)
    assert profile in proposed(found), found
