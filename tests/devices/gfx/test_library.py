"""Specs whose source is machine code that others built: gfx executes it, rocm loads it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import msgspec
import pytest
import zstandard

from tests.devices.gfx.test_wheel import library
from tests.devices.gpu.stand_in_device import StandIn
from tests.gfx_samples import bundle, code_object, compressed
from tests.runs import run, tokitai_here
from tokitai_cli import build, devices, spec
from tokitai_cli.core.errors import SpecError, UntranslatedError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices import registry
from tokitai_cli.devices.amdgpu.binary import bundles, objects, parameters
from tokitai_cli.spec import plan

EXAMPLE = Path(__file__).resolve().parents[3] / "docs/examples/machine_code"
SPEC = """\
schema: tokitai/spec/v1
op: scaled
title: Scaled and shifted by one
params: {n: {default: 128, multiple_of: 64}}
variants:
  main:
    source: scale.bin
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
WHOLE = "void scale<float>(float*, float const*, float, int)"


def forms() -> dict[str, bytes]:
    """The sample's kernels in each form of a file."""
    code = code_object()
    plain = bundle({"gfx1101": code})
    packed = zstandard.ZstdCompressor().compress(plain)
    return {
        "hsaco": code,
        "bundle": plain,
        "ccob2": compressed(plain, 2, packed),
        "ccob3": compressed(plain, 3, packed),
    }


def write(folder: Path, *changes: tuple[str, str], form: str = "bundle", shift: int = 1) -> Path:
    """A spec of the sample's kernel, which is beside it."""
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "scale.bin").write_bytes(forms()[form])
    (folder / "formula.py").write_text(FORMULA.replace("SHIFT", str(shift)))
    (folder / "spec.yaml").write_text(text)
    return folder / "spec.yaml"


@pytest.mark.parametrize(
    ("form", "kernel", "shift", "verdict"),
    [
        ("bundle", "scale<float>", 1, "verified"),
        ("bundle", "scale<float>", 2, "refuted"),
        ("hsaco", WHOLE, 1, "verified"),
        ("ccob2", "_Z5scaleIfEvPT_PKS0_S0_i", 1, "verified"),
        ("ccob3", "scale< float >", 1, "verified"),
    ],
)
def test_machine_code_is_a_source(
    form: str, kernel: str, shift: int, verdict: str, tmp_path: Path
) -> None:
    path = write(tmp_path, ("scale<float>", kernel), form=form, shift=shift)
    ran = tokitai_here("verify", path, "--device", "gfx", "--out", tmp_path / "out")
    assert ran.returncode == (verdict == "refuted"), ran.stdout + ran.stderr
    text = (tmp_path / "out/scaled.json").read_text()
    found = json.loads(text)
    assert found["cases"][0]["verdict"] == verdict
    (source,) = (one for one in found["sources"].values() if one["path"] == "scale.bin")
    assert source == {"path": "scale.bin", "bytes": len(forms()[form]), "text": None}
    assert "is machine code for amdgcn-amd-amdhsa--gfx1101 that was built elsewhere" in text
    (built,) = found["builds"].values()
    told = {one["name"]: one["value"] for one in built["code_object"]}
    assert told["scale<float>: shared bytes"] == "256"
    assert told["scale<float>: instructions"].partition(":")[0].isdigit()
    assert kernel in (tmp_path / "out/scaled.md").read_text()


ARGS = "[y, x, by, n]"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (
            "scale<float>",
            "scala",
            "11:25",
            "no kernel is called `scala` (did you mean scale<float>",
        ),
        (ARGS, "[y, x, by]", "args", "the spec passes 3 arguments, `scale<float>` has 4"),
        (ARGS, "[y, by, x, n]", "args[1]", "`by`, a float32; the parameter of `scale<float>`"),
        (ARGS, "[y, x, n, by]", "args[2]", "declare a scalar: {dtype: float32"),
        (
            "x: {dtype: float32",
            "x: {dtype: float16",
            "args[1]",
            "an array of float16; the parameter",
        ),
        (
            "    inputs",
            "    defines: {A: 1}\n    inputs",
            "main.defines",
            "is machine code, which has",
        ),
        (
            "inputs: {x:",
            "inout: {x:",
            "inout.x",
            "no kernel can write `x`: the parameter",
        ),
        ("scale.bin", "gone/scale.bin", "source", "no such file"),
    ],
)
def test_what_does_not_fit_is_an_error_of_the_spec(
    old: str, new: str, place: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path, (old, new))
    with pytest.raises(SpecError) as caught:
        spec.load(path)
    assert message in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.line
    assert place in str(caught.value.where)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_damaged_file_and_another_processor_are_told(tmp_path: Path) -> None:
    words = ("verify", write(tmp_path), "--device", "gfx", "--out", tmp_path / "out")
    ran = tokitai_here(*words, "--arch", "gfx1100")
    assert ran.returncode == 8
    assert "no code object for gfx1100" in ran.stdout + ran.stderr
    (tmp_path / "scale.bin").write_bytes(b"CCOB" + bytes(40))
    ran = tokitai_here(*words)
    assert ran.returncode == 2
    assert "a compressed bundle of version 0" in ran.stderr
    assert "spec.yaml:7" in ran.stderr


def test_a_file_that_changes_is_another_build(tmp_path: Path) -> None:
    words = ("verify", write(tmp_path), "--device", "gfx", "--out", tmp_path / "out")
    assert tokitai_here(*words).returncode == 0
    (first,) = json.loads((tmp_path / "out/scaled.json").read_text())["builds"]
    write(tmp_path, form="hsaco")
    assert tokitai_here(*words).returncode == 0
    (second,) = json.loads((tmp_path / "out/scaled.json").read_text())["builds"]
    assert first != second


@pytest.mark.parametrize(
    ("device", "told"),
    [("cpu", "which the cpu device cannot execute"), ("cuda", "neither a cubin nor PTX")],
)
def test_other_devices_refuse_it_in_words(device: str, told: str, tmp_path: Path) -> None:
    case = plan.plan(spec.load(write(tmp_path)), plan.Selection()).cases[0]
    request = build.harness_request(case)
    chosen = devices.get(device)
    if not chosen.probe(DeviceOptions()).buildable:
        pytest.skip(f"no compiler for {device}")
    with pytest.raises(UntranslatedError, match=told):
        build.build(request, chosen.recipe(DeviceOptions(), {}, ()))


def test_rocm_builds_a_program_that_loads_it(tmp_path: Path) -> None:
    if not devices.get("rocm").probe(DeviceOptions()).buildable:
        pytest.skip("no hipcc (Debian's package: hipcc)")
    ran = tokitai_here(
        *("verify", write(tmp_path), "--device", "rocm", "--arch", "gfx1101", "--build-only"),
        *("--out", tmp_path / "out"),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (built,) = json.loads((tmp_path / "out/scaled.json").read_text())["builds"].values()
    told = {one["name"]: one["value"] for one in built["code_object"]}
    assert told["machine code of the source"].endswith("gfx1101")
    assert told["scale<float>: wave size"] == "32"


@pytest.mark.parametrize(
    ("fault", "shift", "words"),
    [
        ("", 1, ""),
        ("", 2, "bound"),
        ("hipModuleLoadData:1:209", 1, "hipModuleLoadData: "),
        ("hipModuleGetFunction:1:98", 1, "hipModuleGetFunction: "),
        ("hipModuleLaunchKernel:1:719", 1, "hipModuleLaunchKernel: "),
    ],
)
def test_the_module_api_is_given_arguments_where_the_metadata_has_them(
    fault: str, shift: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"TOKITAI_STAND_IN_FAIL": fault} if fault else {}
    monkeypatch.setitem(registry._DEVICES, "rocm", StandIn(variables))
    evidence = run(write(tmp_path, shift=shift), tmp_path / "out", device="rocm", stand_in=True)
    (case,) = evidence.cases
    assert case.verdict is (
        Verdict.CRASHED if fault else Verdict.VERIFIED if shift == 1 else Verdict.REFUTED
    ), case.reason
    assert words in case.reason


def test_other_verbs_say_what_it_is(tmp_path: Path) -> None:
    path = write(tmp_path)
    for words, told in (
        (("mutate", path), "is machine code, which has no source text to change"),
        (("new", tmp_path / "scale.bin"), "is machine code: `tokitai isa` lists its kernels"),
        (("find", tmp_path / "scale.bin"), "is machine code: `tokitai isa` lists its kernels"),
        (("isa", path, "--kernel", "scale<float>"), "global_store_b32"),
        (("show", path), "source: scale.bin"),
    ):
        ran = tokitai_here(*words)
        assert told in ran.stdout + ran.stderr, words
    ran = tokitai_here("batch", path, "--device", "gfx", "--out", tmp_path / "batch")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    evidence = next((tmp_path / "batch").rglob("*scaled*.json"))
    ran = tokitai_here("unpack", evidence, tmp_path / "unpacked")
    assert "scale.bin (sha256 " in ran.stdout + ran.stderr
    assert "is not in the evidence" in ran.stdout + ran.stderr
    ran = tokitai_here("reproduce", evidence, path, "--out", tmp_path / "again")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 of 1 case gave the same result" in ran.stdout + ran.stderr


def test_types_that_a_symbol_does_not_tell_are_held_by_their_size() -> None:
    (kernel,) = (
        one for one in objects.read_code_object(code_object()).kernels if "scale" in one.name
    )
    told = parameters.parameters(msgspec.structs.replace(kernel, name="scale"))
    assert [one.kind for one in told] == ["unknown", "unknown", "scalar", "scalar"]
    assert set(told[2].dtypes) == {"float32", "int32", "uint32"}
    assert parameters.limits(told[3]) == (-(1 << 31), (1 << 32) - 1)
    wide = msgspec.structs.replace(kernel.metadata.args[2], size=12)
    odd = msgspec.structs.replace(kernel.metadata.args[0], value_kind="image")
    told_odd = msgspec.structs.replace(
        kernel.metadata, args=[odd, *kernel.metadata.args[1:2], wide]
    )
    changed = msgspec.structs.replace(kernel, name="scale", metadata=told_odd)
    assert [one.kind for one in parameters.parameters(changed)] == ["struct", "unknown", "struct"]


def test_a_file_may_lie_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packed_code").mkdir()
    (tmp_path / "packed_code/__init__.py").write_text("raise RuntimeError('imported')\n")
    path = write(tmp_path, ("scale.bin", "packed_code/scale.bin"))
    (tmp_path / "specs").mkdir()
    for name in ("spec.yaml", "formula.py"):
        shutil.move(tmp_path / name, tmp_path / "specs" / name)
    shutil.move(tmp_path / "scale.bin", tmp_path / "packed_code/scale.bin")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    loaded = spec.load(tmp_path / "specs" / path.name)
    case = plan.plan(loaded, plan.Selection()).cases[0]
    assert build.source_path(case) == (tmp_path / "packed_code/scale.bin").resolve()


@pytest.mark.parametrize(
    ("target", "arch", "serves"),
    [
        ("gfx90a", "gfx90a", True), ("gfx90a:xnack+", "gfx90a", True),
        ("gfx90a:xnack+", "gfx90a:xnack-", False), ("gfx90a", "gfx90a:xnack-", True),
        ("gfx90a:sramecc+:xnack-", "gfx90a:xnack-", True), ("gfx1100", "gfx1101", False),
    ],
)  # fmt: skip
def test_which_code_object_serves_a_processor(target: str, arch: str, serves: bool) -> None:
    assert bundles.Embedded(target, b"").serves(arch) is serves


@pytest.mark.slow
def test_kernels_of_the_wheel_are_verified_from_both_builds(tmp_path: Path) -> None:
    library("rocm64")
    code_object()
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    ran = tokitai_here("verify", folder / "bitsandbytes.yaml", "--device", "gfx", "--out", tmp_path)
    assert ran.returncode == 0, ran.stdout
    cases = json.loads((tmp_path / "bitsandbytes.json").read_text())["cases"]
    assert [case["verdict"] for case in cases] == ["verified"] * 14
