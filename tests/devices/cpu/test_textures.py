"""Fetches from textures on the cpu device: by object and by name, with every way of sampling."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs import KERNELS, run
from tokitai_cli.core.model.verdict import Verdict

OWN = KERNELS / "own" / "textures"


@pytest.mark.parametrize("watch", ["off", "full"])
def test_textures_are_sampled_as_the_guide_says(tmp_path: Path, watch: str) -> None:
    evidence = run(OWN / "spec.yaml", tmp_path, suite="quick", watch=watch)
    assert len(evidence.cases) == 14
    assert {case.verdict for case in evidence.cases} == {Verdict.VERIFIED}


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        ("tex2D(image,", "tex2D<int>((cudaTextureObject_t) image.object,", Verdict.CRASHED,
         "other elements than those"),
        ("tex2D(image, at[i].x, at[i].y)", "tex2D<float2>((cudaTextureObject_t) image.object, 1, 1).x",
         Verdict.CRASHED, "another number of channels"),
        ("tex2D(image, at[i].x, at[i].y)", "tex1D(image, at[i].x)", Verdict.CRASHED,
         "another number of coordinates"),
        ("tex2D(image, at[i].x, at[i].y)", "tex1Dfetch(image, i)", Verdict.CRASHED,
         "another number of coordinates"),
        ("tex2D(image,", "tex2D<float>((cudaTextureObject_t) nullptr,", Verdict.CRASHED,
         "does not bind"),
        ("tex2D(image,", "tex2Dgather<float>((cudaTextureObject_t) image.object,", Verdict.CRASHED,
         "has no tex2Dgather"),
        ("at[i].x, at[i].y);\n}", "at[i].x + 1, at[i].y);\n}", Verdict.REFUTED, "out["),
    ],
)  # fmt: skip
def test_fetches_that_are_wrong(
    tmp_path: Path, old: str, new: str, verdict: Verdict, words: str
) -> None:
    for name in ("spec.yaml", "oracle.py"):
        shutil.copy(OWN / name, tmp_path)
    text = (OWN / "textures.cu").read_text()
    assert old in text
    (tmp_path / "textures.cu").write_text(text.replace(old, new, 1))
    (case,) = run(tmp_path / "spec.yaml", tmp_path, variant=["point"]).cases
    assert case.verdict is verdict
    assert words in case.reason


def test_a_reference_that_the_source_lacks_is_named_by_its_key(tmp_path: Path) -> None:
    for name in ("textures.cu", "oracle.py"):
        shutil.copy(OWN / name, tmp_path)
    text = (OWN / "spec.yaml").read_text()
    assert "tint::colours" in text
    (tmp_path / "spec.yaml").write_text(text.replace("tint::colours", "tint::colour"))
    (case,) = run(tmp_path / "spec.yaml", tmp_path, variant=["tinted"], watch="off").cases
    assert case.verdict is Verdict.BUILD_FAILED
    assert "variants.tinted.textures.tint.colour" in case.reason
