"""Kernels that Triton compiles, verified from Python without a GPU; faults in them are found."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.runs import run
from tests.triton_cases import (
    CASES,
    COMPILED,
    WRONG,
    Formula,
    pointwise,
    saturated,
    softmaxed,
    verified,
)
from tokitai_cli.cli.app import run as command
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices.amdgpu import gfx_compiler

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


FAST = {"add", "product of bfloat16"}
# Those with instructions that gfx950 alone has.
NEWER = ("attention", "cast from float8", "product of bfloat16", "product of integers", "sort")


@pytest.fixture
def compiler() -> None:
    if gfx_compiler.toolchain() is None:
        pytest.skip(gfx_compiler.missing("")[0])


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "case", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
@pytest.mark.parametrize("arch", ["gfx1101", "gfx942"])
def test_kernels_are_verified(case: str, arch: str, tmp_path: Path) -> None:
    name, said = CASES[case]
    evidence = verified(name, {**said, "arch": arch}, tmp_path)
    assert evidence.verdict is Verdict.VERIFIED, [one.reason for one in evidence.cases]


@pytest.mark.usefixtures("compiler")
@pytest.mark.slow
@pytest.mark.parametrize("case", NEWER)
def test_kernels_for_gfx950_are_verified(case: str, tmp_path: Path) -> None:
    name, said = CASES[case]
    evidence = verified(name, {**said, "arch": "gfx950"}, tmp_path)
    assert evidence.verdict is Verdict.VERIFIED, [one.reason for one in evidence.cases]


def clipped(params, inputs, scalars):  # type: ignore[no-untyped-def]
    return {"y": np.clip(inputs["x"], -448, 448)}  # the greatest float8_e4m3fn


@pytest.mark.usefixtures("compiler")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "verdict"), [(clipped, Verdict.VERIFIED), (saturated, Verdict.REFUTED)]
)
def test_casts_for_gfx950_saturate_as_ocps_float8(
    formula: Formula, verdict: Verdict, tmp_path: Path
) -> None:
    said = pointwise(
        {"x": "*fp32", "y": "*fp8e4nv"},
        formula,
        metric="exact",
        draws={"x": {"kind": "uniform", "lo": -600, "hi": 600}},
    )
    evidence = verified("cast", {**said, "arch": "gfx950"}, tmp_path)
    assert evidence.verdict is verdict, [one.reason for one in evidence.cases]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("arch", ["gfx1101", "gfx942"])
@pytest.mark.parametrize(
    "name",
    [name if "add" in name else pytest.param(name, marks=pytest.mark.slow) for name in WRONG],
)
def test_faults_are_refuted(name: str, arch: str, tmp_path: Path) -> None:
    evidence = verified(name, {**WRONG[name], "arch": arch}, tmp_path)
    assert evidence.verdict is Verdict.REFUTED, [one.reason for one in evidence.cases]
    found = {one.kind for case in evidence.cases for one in case.findings}
    assert ("out-of-bounds" in found) == (name == "add_past")


def drafted(source: Path, folder: Path) -> str:
    """The spec that `new` writes."""
    assert command(["new", str(source), "--out", str(folder)]) == 0
    return (folder / "spec.yaml").read_text()


@pytest.mark.usefixtures("compiler")
def test_a_folder_of_tritons_cache_becomes_a_spec(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, dtypes, what is read and written, threads, shared memory and scratch are Triton's."""
    text = drafted(COMPILED / "softmax", tmp_path / "new")
    assert "next: tokitai verify" in capsys.readouterr().out
    for line in (
        "summary: softmax, compiled by Triton 3.9.0 for gfx1101.",
        '  columns: {default: 1024, help: "columns"}  # guess: its value',
        "      x: {dtype: float32, shape: [columns]}  # guess: its shape",
        '      scratch1: {dtype: uint8, shape: [1], scratch: "Triton\'s own"}',
        "        grid: [1]  # fill in: programs of the launch",
        "        block: [128]",
        "        args: [x, y, columns, scratch0, scratch1]",
    ):
        assert line in text.splitlines(), text
    assert text.index("inputs:") < text.index("      x:") < text.index("outputs:")
    filled = text.replace("grid: [1]  # fill in", "grid: [5]  #").replace(
        "[columns]", "[5, columns]"
    )
    (tmp_path / "new" / "spec.yaml").write_text(filled)
    formula = inspect.getsource(softmaxed).replace("softmaxed", "formula")
    (tmp_path / "new" / "formula.py").write_text(f"import numpy as np\n{formula}")
    (case,) = run(tmp_path / "new" / "spec.yaml", tmp_path, device="gfx").cases
    assert case.verdict is Verdict.VERIFIED, case.reason


def test_machine_code_alone_becomes_a_spec_of_guesses(tmp_path: Path) -> None:
    shutil.copy(COMPILED / "add" / "add.hsaco", tmp_path / "add.hsaco")
    text = drafted(tmp_path / "add.hsaco", tmp_path)
    assert (
        "      arg0: {dtype: float32, shape: [arg3]}  # guess: its shape, its dtype, whether"
        in text
    )
    assert "    outputs:\n      arg5:" in text
    assert "summary: add, machine code for gfx1101." in text
    assert "        block: [128]  # guess: threads of a block" in text
    assert "        shared: 0  # guess: bytes that the launch adds" in text


def test_what_is_no_kernel_of_triton_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("add", "softmax"):
        shutil.copy(COMPILED / name / f"{name}.hsaco", tmp_path / f"{name}.hsaco")
    assert command(["new", str(tmp_path), "--out", str(tmp_path / "new")]) == 2
    assert "has add.hsaco, softmax.hsaco" in capsys.readouterr().err
    (tmp_path / "add.json").write_text("{")
    assert command(["new", str(tmp_path / "add.hsaco"), "--out", str(tmp_path / "new")]) != 0
    assert "no metadata of Triton's" in capsys.readouterr().err


def test_a_formula_without_a_text_is_told(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    said = CASES["add"][1] | {"formula": lambda params, inputs, scalars: {}}
    with pytest.raises(UsageError, match="no source text"):
        verified("add", said, tmp_path)
