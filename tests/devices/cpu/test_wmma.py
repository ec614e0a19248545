"""Matrices of a warp on the cpu device, nvcuda::wmma: every type, and kernels that misuse them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs import KERNELS, run
from tokitai_cli.core.model.verdict import Verdict

OWN = KERNELS / "own" / "wmma"


@pytest.mark.parametrize("watch", ["off", "full"])
def test_products_of_every_type_are_right(tmp_path: Path, watch: str) -> None:
    evidence = run(OWN / "spec.yaml", tmp_path, suite="quick", watch=watch)
    assert len(evidence.cases) == 14
    assert {case.verdict for case in evidence.cases} == {Verdict.VERIFIED}
    assert not any(case.findings for case in evidence.cases)


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        ("tile_a, 24", "tile_a, 25", Verdict.CRASHED, "no multiple of 16 bytes"),
        ("  wmma::fill_fragment(sum, 0.0f);", "  if (threadIdx.x) return;", Verdict.CRASHED,
         "not every lane of a warp"),
        ("wmma::mem_col_major", "wmma::mem_row_major", Verdict.REFUTED, "c["),
        ("  wmma::store_matrix_sync(out, sum, 16, wmma::mem_col_major);\n  __syncwarp();",
         "  wmma::store_matrix_sync(out, sum, 16, wmma::mem_col_major);", Verdict.REFUTED, "c: NaN"),
    ],
)  # fmt: skip
def test_kernels_that_misuse_matrices(
    tmp_path: Path, old: str, new: str, verdict: Verdict, words: str
) -> None:
    for name in ("spec.yaml", "oracle.py"):
        shutil.copy(OWN / name, tmp_path)
    text = (OWN / "wmma.cu").read_text()
    assert old in text
    (tmp_path / "wmma.cu").write_text(text.replace(old, new))
    (case,) = run(tmp_path / "spec.yaml", tmp_path, variant=["shared"], watch="full").cases
    assert case.verdict is verdict
    assert words in case.reason


def test_other_shapes_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("spec.yaml", "oracle.py"):
        shutil.copy(OWN / name, tmp_path)
    text = (
        (OWN / "wmma.cu").read_text().replace("<half, float, 16, 16, 16", "<half, float, 16, 16, 8")
    )
    (tmp_path / "wmma.cu").write_text(text)
    (case,) = run(tmp_path / "spec.yaml", tmp_path, variant=["halves"]).cases
    assert case.verdict is Verdict.BUILD_FAILED
    assert "nvcuda::wmma has no fragments of this shape and type" in case.reason
