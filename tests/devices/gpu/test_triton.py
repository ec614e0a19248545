"""Kernels that Triton compiles for NVIDIA GPUs, run by the driver where a GPU is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.triton_cases import AMD_ALONE, CASES, WRONG, matrices, product, verified
from tokitai_cli import devices
from tokitai_cli.core.errors import CodeError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.verdict import Verdict

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def arch() -> str:
    """The GPU's."""
    probe = devices.get("cuda").probe(DeviceOptions())
    if not probe.available:
        pytest.skip(f"no NVIDIA GPU: {probe.missing}")
    return probe.arch


def product_of_tf32(params, inputs, scalars):  # type: ignore[no-untyped-def]
    a, b = (loosen(inputs[name], 2**14) for name in "ab")  # type: ignore[name-defined]  # noqa: F821
    return {"c": a @ b}


# A program of it takes more shared memory than a launch gets unasked, 48 KiB.
LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "product in tiles of 96 KiB": (
        "matmul",
        matrices(
            "fp16",
            "fp16",
            (128, 128, 64),
            sizes={"m": 144, "n": 272, "k": 320},
            divisible=["n", "k"],
            num_warps=8,
            compile_options={"num_stages": 3},
        ),
    ),
}


@pytest.mark.gpu
@pytest.mark.parametrize("case", sorted({*CASES, *LARGE} - AMD_ALONE))
def test_kernels_are_verified(case: str, arch: str, tmp_path: Path) -> None:
    name, said = (CASES | LARGE)[case]
    evidence = verified(name, said | {"arch": arch}, tmp_path)
    assert evidence.verdict is Verdict.VERIFIED, [one.reason for one in evidence.cases]
    assert {one.device for one in evidence.cases} == {"cuda"}


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted({*WRONG} - AMD_ALONE))
def test_faults_are_refuted(name: str, arch: str, tmp_path: Path) -> None:
    evidence = verified(name, WRONG[name] | {"arch": arch}, tmp_path)
    assert evidence.verdict is Verdict.REFUTED, [one.reason for one in evidence.cases]


@pytest.mark.gpu
def test_a_product_in_tf32(arch: str, tmp_path: Path) -> None:
    """Triton's default for float32: refuted where the formula promises float32's digits."""
    said = matrices("fp32", "fp32", (32, 32, 32)) | {"arch": arch}
    found = {
        kept: verified("matmul", said | {"formula": formula}, tmp_path / kept).verdict
        for kept, formula in {"float32": product, "tf32": product_of_tf32}.items()
    }
    assert found == {"float32": Verdict.REFUTED, "tf32": Verdict.VERIFIED}


def test_descriptors_and_scratch_are_written_into_the_spec(tmp_path: Path) -> None:
    """What is loaded and stored through a descriptor, and 256 bytes of scratch for each program."""
    name, said = CASES["descriptors"]
    verified(name, said | {"arch": "sm_90"}, tmp_path)
    text = (tmp_path / "spec.yaml").read_text()
    assert "    inputs:\n      x:" in text
    assert "    outputs:\n      y:" in text
    assert 'shape: ["256 * (ceil_div(rows, 32)) * (ceil_div(columns, 64))"]' in text


def test_clusters_of_blocks_are_refused(tmp_path: Path) -> None:
    name, said = CASES["add"]
    more = {"arch": "sm_90", "compile_options": {"num_ctas": 2}}
    with pytest.raises(CodeError, match="needs clusters of 2 blocks"):
        verified(name, said | more, tmp_path)
