"""Textures of a spec: faults of them, and the devices that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import KERNELS
from tokitai_cli import spec as spec_stage
from tokitai_cli.build.scan import refuse_textures
from tokitai_cli.core.errors import BuildError, SpecError
from tokitai_cli.core.model.harness import HarnessRequest, kernel_entry
from tokitai_cli.core.model.textures import references

OWN = KERNELS / "own" / "textures" / "spec.yaml"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("image: {array: texels}", "image: {array: out}", "array: unknown input or in-out `out`"),
        ("image: {array: texels}", "at: {array: texels}", "`at` is already the name of one of inputs"),
        ("float32, shape: [h, w]", "float64, shape: [2, 2, h, w]", "has 4 extents beside the channels"),
        ("float32, shape: [h, w]", "float16, shape: [h, w]", "a texture of float16"),
        ("channels: 4", "channels: 2", "the last extent of `texels` is 4"),
        ("{array: texels}", "{array: texels, address: wrap}", "that are not normalized are clamped"),
        ("{array: texels}", "{array: texels, read: normalized-float}", "cannot be read as a normalized"),
        ("line: {array: texels}", "line: {array: texels, filter: linear}", "cannot be interpolated"),
    ],
)  # fmt: skip
def test_faults_of_textures_are_located(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = OWN.read_text().replace("source: ", f"source: {OWN.parent}/")
    text = text.replace("oracle: ", f"oracle: {OWN.parent}/")
    assert old in text
    (tmp_path / "spec.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError, match=words):
        spec_stage.load(tmp_path / "spec.yaml")


def test_textures_that_no_launch_passes_are_the_sources_own() -> None:
    variants = spec_stage.load(OWN).spec.variants
    assert references(variants["tinted"]) == {"tint": "tint::colours"}
    assert references(variants["border"]) == {}


@pytest.mark.parametrize("variant", ["tinted", "border"])
def test_devices_without_textures_name_the_kernel(variant: str) -> None:
    one = spec_stage.load(OWN).spec.variants[variant]
    request = HarnessRequest(OWN, (kernel_entry(one, one.launches[0], 32),))
    refuse_textures(request, "cpu")
    with pytest.raises(
        BuildError, match=f"cuda device cannot run {one.launches[0].kernel}: it fetches"
    ):
        refuse_textures(request, "cuda")
