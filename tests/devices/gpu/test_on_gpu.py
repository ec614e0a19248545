"""What only a GPU can show: shipped kernels verified on it, wrong ones refuted, faults survived.

The tables of verdicts are those of the cpu device, but for what a GPU does in its own way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import test_gemm_end_to_end as products
from tests.commands import test_user_kernels as users
from tests.commands import test_wrong_kernels as wrongs
from tests.devices.gpu import faults
from tests.runs import KERNELS, derived_spec, run
from tokitai_cli import devices
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.device import DeviceOptions
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.run.run_options import run_options
from tokitai_cli.run.sanitizing import sanitize

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu() -> str:
    """Name of the first GPU device that is there."""
    for name in ("rocm", "cuda"):
        if devices.get(name).probe(DeviceOptions()).available:
            return name
    pytest.skip("no GPU: " + devices.get("cuda").probe(DeviceOptions()).missing)


# A GPU leaves in shared memory what it likes, and adds in what order it likes: these may go either way.
UNTOLD = {"static-uncleared", "dynamic-uncleared", "stable"}


def found_in(evidence: Evidence) -> dict[str, str]:
    return {case.variant: str(case.verdict) for case in evidence.cases}


@pytest.mark.parametrize("op", ["gemm-bw", "embedding", "softmax", "layernorm"])
def test_every_shipped_variant_is_verified(gpu: str, op: str, tmp_path: Path) -> None:
    evidence = run(op, tmp_path, device=gpu, suite="quick")
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    names = {fact.name for fact in evidence.devices[gpu].facts}
    assert {"gpu-name", "gpu-arch", "built-for", "runtime-version", "warp-size"} <= names
    (build,) = evidence.builds.values()
    assert any("registers" in fact.name for fact in build.code_object)


def test_kernels_that_do_wrong_beside_wrong_numbers(gpu: str, tmp_path: Path) -> None:
    evidence = run(wrongs.spec_in(tmp_path), tmp_path, device=gpu, repeat=4)
    found = found_in(evidence)
    want = {name: "verified" if name in wrongs.RIGHT else "refuted" for name in wrongs.variants()}
    for name in UNTOLD:
        assert found.pop(name) in ("refuted", "verified", "inconclusive")
        want.pop(name)
    assert found == want, [case.reason for case in evidence.cases]


def test_user_kernels_are_judged_as_on_the_cpu(gpu: str, tmp_path: Path) -> None:
    spec = users.write_spec(tmp_path)
    found, want = (
        found_in(run(spec, tmp_path / name, device=name, shapes={"n": 192}, profile=["normal"]))
        for name in (gpu, "cpu")
    )
    assert found == want
    assert "verified" in want.values()


def test_wrong_products_are_refuted_by_bounds_alone(gpu: str, tmp_path: Path) -> None:
    right = ("plain", "tiled")
    spec = derived_spec(
        tmp_path,
        "gemm-bw",
        "grad-a",
        (*products.WRONG, *right),
        source=products.FAULTS,
        replay=False,
    )
    evidence = run(spec, tmp_path, device=gpu, shapes={"m": 32, "n": 96, "k": 48})
    found: dict[str, set[str]] = {}
    for case in evidence.cases:
        found.setdefault(case.variant, set()).add(str(case.verdict))
    for name in products.WRONG:
        assert "refuted" in found[name.replace("_", "-")], name
    for name in right:
        assert found[name] == {"verified"}, name


def test_faults_end_as_their_verdicts_and_the_next_case_runs(gpu: str, tmp_path: Path) -> None:
    spec = faults.write_spec(tmp_path)
    names = ["block-of-2048", "shared-of-1-gib", "writes-nowhere", "right"]
    evidence = run(spec, tmp_path, device=gpu, variant=names)
    found = {case.variant: case for case in evidence.cases}
    assert found_in(evidence) == {
        "block-of-2048": "crashed",
        "shared-of-1-gib": "crashed",
        "writes-nowhere": "crashed",
        "right": "verified",
    }, [case.reason for case in evidence.cases]
    assert "block (2048,1,1)" in found["block-of-2048"].reason
    assert f"{1 << 30} bytes of dynamic shared memory" in found["shared-of-1-gib"].reason
    if gpu == "cuda":
        assert "cudaErrorIllegalAddress" in found["writes-nowhere"].reason
        assert "after launching writes_nowhere" in found["writes-nowhere"].reason


def test_an_endless_kernel_is_ended(gpu: str, tmp_path: Path) -> None:
    spec = faults.write_spec(tmp_path)
    evidence = run(spec, tmp_path, device=gpu, variant=["waits", "right"], timeout=5)
    assert found_in(evidence) == {"waits": "timed-out", "right": "verified"}


def test_more_memory_than_the_gpu_has_is_not_run(gpu: str, tmp_path: Path) -> None:
    spec = faults.write_spec(tmp_path)
    # 2^38 floats are a tebibyte: more than a GPU has, and more than most hosts.
    evidence = run(spec, tmp_path, device=gpu, variant=["right"], shapes={"n": 1 << 38})
    assert found_in(evidence) == {"right": "not-run"}
    assert "needs" in evidence.cases[0].reason


def test_a_gpu_that_is_not_there(gpu: str, tmp_path: Path) -> None:
    evidence = run("gemm-bw", tmp_path, device=gpu, gpu=99, shapes={"m": 16, "n": 16, "k": 16})
    assert evidence.verdict is Verdict.INADMISSIBLE
    assert "no GPU 99" in evidence.reason


def test_the_wrong_architecture_is_named(gpu: str, tmp_path: Path) -> None:
    # Code for another generation, which no GPU of today runs beside its own.
    arch = {"cuda": "sm_75", "rocm": "gfx900"}[gpu]
    evidence = run("gemm-bw", tmp_path, device=gpu, arch=arch, shapes={"m": 16, "n": 16, "k": 16})
    assert set(found_in(evidence).values()) <= {"crashed", "build-failed"}
    if evidence.verdict is Verdict.CRASHED:
        assert f"built for {arch} and the GPU is " in evidence.reason
        assert "--arch " in evidence.reason


@pytest.fixture(scope="module")
def watched(gpu: str, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """The faults that a sanitizer finds, and the right twins, under every tool."""
    try:
        if not devices.get(gpu).sanitizers():
            pytest.skip(f"{gpu} has no sanitizer")
    except TokitaiError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("watched")
    names = ["right", "sums", "reads-past", "racy-sums", "reads-unwritten"]
    options = run_options(
        str(faults.write_spec(folder)), device=gpu, variant=names, out=folder, verb="sanitize",
        timeout=300,
    )  # fmt: skip
    return sanitize(options).evidence


@pytest.mark.parametrize(
    ("name", "tool", "kind", "kernel", "line"),
    [
        ("reads-past", "memcheck", "invalid-read", "reads_past", "const float other ="),
        ("racy-sums", "racecheck", "race", "float block_sum", "const float total = shared[0]"),
        ("reads-unwritten", "initcheck", "uninitialised-read", "reads_unwritten", "y[i] = work[i]"),
    ],
)
def test_the_sanitizer_finds_each_fault(
    watched: Evidence, name: str, tool: str, kind: str, kernel: str, line: str
) -> None:
    (case,) = (case for case in watched.cases if case.variant == name)
    assert case.verdict is Verdict.REFUTED, case.reason
    found = [one for one in case.findings if one.tool == f"compute-sanitizer {tool}"]
    assert kind in {one.kind for one in found}, case.findings
    first = next(one for one in found if one.kind == kind)
    assert first.kernel.startswith(kernel)
    source = (KERNELS / "gpu_faults.hip").read_text().splitlines()
    number = next(at for at, text in enumerate(source, start=1) if line in text)
    assert f"gpu_faults.hip:{number}" in first.location


@pytest.mark.parametrize("name", ["right", "sums"])
def test_the_sanitizer_finds_nothing_in_the_right_twins(watched: Evidence, name: str) -> None:
    (case,) = (case for case in watched.cases if case.variant == name)
    assert case.verdict is Verdict.VERIFIED, case.reason
    assert not case.findings
    looked = {look.tool for look in case.examined if look.tool.startswith("compute-sanitizer")}
    assert looked == {
        f"compute-sanitizer {tool}" for tool in ("memcheck", "racecheck", "initcheck", "synccheck")
    }
