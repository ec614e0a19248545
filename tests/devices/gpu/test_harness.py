"""The harness's GPU side, run against a runtime that is stood in for: copies, guards, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands import test_user_kernels as users
from tests.commands import test_wrong_kernels as wrongs
from tests.commands.test_own_specs import argument_verdicts
from tests.devices.gpu import faults
from tests.devices.gpu.stand_in_device import StandIn
from tests.run.test_state import spec_in
from tests.runs import KERNELS, run, verdicts
from tests.support import slow
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.devices import registry

# Shared memory that nobody cleared and the order of additions are the device's: these go either way.
UNTOLD = {"static-uncleared", "dynamic-uncleared", "stable"}


@pytest.fixture
def on_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that runs a spec on the stand-in, whose runtime does what the variables say."""

    def verify(
        spec: str | Path, variables: dict[str, str] | None = None, **options: Any
    ) -> Evidence:
        given = {f"TOKITAI_STAND_IN_{name}": value for name, value in (variables or {}).items()}
        monkeypatch.setitem(registry._DEVICES, "rocm", StandIn(given))
        return run(spec, tmp_path / "out", stand_in=True, device="rocm", **options)

    return verify


def test_structs_lists_and_steps_through_device_copies(on_stand_in: Any) -> None:
    told = argument_verdicts(
        on_stand_in(KERNELS / "own" / "arguments" / "spec.yaml", suite="quick")
    )
    assert set(told) == {Verdict.VERIFIED, Verdict.REFUTED}
    assert all("-w" in name for name in told[Verdict.REFUTED])
    assert all("-w" not in name for name in told[Verdict.VERIFIED])


def test_variables_of_the_source_through_device_copies(on_stand_in: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"variant": ["kept", "looked-up"], "shapes": {"n": 192}}
    path = users.write_spec(tmp_path)
    evidence = on_stand_in(path, profile=["normal"], **asked)
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    failing = on_stand_in(path, {"FAIL": "hipMemcpyFromSymbol:1:1"}, profile=["normal"], **asked)
    told = {case.variant: case.reason for case in failing.cases}
    assert "hipMemcpyFromSymbol" in told["kept"]


SMALL: dict[str, Any] = {
    "variant": ["grad-a"],
    "profile": ["normal"],
    "shapes": {"m": 16, "n": 24, "k": 32},
}


@pytest.mark.parametrize(
    ("op", "asked"),
    [
        ("gemm-bw", {"shapes": {"m": 16, "n": 32, "k": 48}}),
        *(slow(op, {"suite": "quick"}) for op in ("gemm-bw", "embedding", "softmax", "layernorm")),
    ],
)
def test_shipped_ops_are_verified_through_device_copies(
    on_stand_in: Any, op: str, asked: dict[str, Any]
) -> None:
    evidence = on_stand_in(op, **asked)
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    facts = {fact.name: (fact.value, fact.source) for fact in evidence.devices["rocm"].facts}
    assert facts["gpu-arch"] == ("gfx1101:xnack-", "hipGetDeviceProperties")
    assert facts["built-for"] == ("gfx1101", "compiled in")
    assert facts["runtime-version"] == ("50221153", "hipRuntimeGetVersion")
    assert facts["warp-size"][0] == "32"


def test_state_starts_fresh_for_a_case_and_lives_through_its_repetitions(
    on_stand_in: Any, tmp_path: Path
) -> None:
    evidence = on_stand_in(spec_in(tmp_path))
    found = {case.variant: str(case.verdict) for case in evidence.cases}
    wrong = {"replays": "refuted", "zero-once": "refuted", "cached": "refuted"}
    assert found == {name: wrong.get(name, "verified") for name in found}


def test_warm_ups_and_repetitions_start_afresh(on_stand_in: Any) -> None:
    # In-out rows that the kernel skips keep what was drawn: each repetition must restore them.
    evidence = on_stand_in(
        "embedding", variant=["fwd"], profile=["out-of-range"], repeat=3, warmup=2
    )
    assert evidence.verdict is Verdict.VERIFIED, evidence.reason
    assert evidence.cases[0].repeats is not None
    assert evidence.cases[0].repeats.repetitions == 3
    assert all(len(times) == 3 for times in evidence.volatile.case_times_ns.values())


@pytest.mark.parametrize(
    ("fault", "verdict", "words"),
    [
        ("hipMemcpy:1:700", Verdict.CRASHED, "hipMemcpy: hipErrorIllegalAddress"),
        ("hipMemset:1:700", Verdict.CRASHED, "hipMemset: hipErrorIllegalAddress"),
        ("hipDeviceSynchronize:1:999", Verdict.CRASHED, "hipDeviceSynchronize: hipErrorUnknown"),
        ("hipEventRecord:1:999", Verdict.CRASHED, "hipEventRecord: hipErrorUnknown"),
        (
            "hipEventSynchronize:1:700",
            Verdict.CRASHED,
            "hipEventSynchronize: hipErrorIllegalAddress (words of the runtime) after launching "
            "gemm_bw_grad_a_fp16_f32_kernel",
        ),
        ("hipEventElapsedTime:1:999", Verdict.CRASHED, "hipEventElapsedTime: hipErrorUnknown"),
        ("launch:1:9", Verdict.CRASHED, "launch: hipErrorInvalidConfiguration"),
        ("hipEventSynchronize:2:214", Verdict.CRASHED, "the device was lost: hipEventSynchronize"),
        ("hipMalloc:2:2", Verdict.NOT_RUN, "hipMalloc: hipErrorOutOfMemory"),
        ("hipGetDeviceProperties:1:100", Verdict.INADMISSIBLE, "hipGetDeviceProperties"),
        ("hipEventCreate:1:100", Verdict.INADMISSIBLE, "hipEventCreate: hipErrorNoDevice"),
    ],
)
def test_a_call_that_fails_is_named(
    on_stand_in: Any, fault: str, verdict: Verdict, words: str
) -> None:
    evidence = on_stand_in("gemm-bw", {"FAIL": fault}, **SMALL)
    assert verdicts(evidence) == [verdict]
    assert words in evidence.cases[0].reason


def test_memory_that_is_not_there_is_told_with_the_size_needed(on_stand_in: Any) -> None:
    evidence = on_stand_in("gemm-bw", {"MEMORY": "30000"}, **SMALL)
    assert verdicts(evidence) == [Verdict.NOT_RUN]
    reason = evidence.cases[0].reason
    # Two inputs and one output of 768, 1536 and 1024 bytes, each padded to a page between two pages.
    assert f"the case needs {3 * 3 * 4096} bytes on the GPU, of its 30000 bytes" in reason


@pytest.mark.parametrize(
    ("arch", "runs"),
    [("gfx1101", True), ("gfx1101:sramecc+:xnack-", True), ("gfx90a", False), ("gfx110", False)],
)
def test_what_it_was_built_for_must_be_there(on_stand_in: Any, arch: str, runs: bool) -> None:
    evidence = on_stand_in("gemm-bw", {"ARCH": arch}, **SMALL)
    assert verdicts(evidence) == [Verdict.VERIFIED if runs else Verdict.CRASHED]
    if not runs:
        assert f"built for gfx1101 and the GPU is {arch}" in evidence.cases[0].reason
        assert f"--arch {arch}" in evidence.cases[0].reason


def test_no_gpu_and_the_wrong_index_are_inadmissible(on_stand_in: Any) -> None:
    none = on_stand_in("gemm-bw", {"GPUS": "0"}, **SMALL)
    assert verdicts(none) == [Verdict.INADMISSIBLE]
    assert "hipGetDeviceCount: hipErrorNoDevice" in none.cases[0].reason
    other = on_stand_in("gemm-bw", gpu=2, **SMALL)
    assert verdicts(other) == [Verdict.INADMISSIBLE]
    assert "hipSetDevice: hipErrorInvalidDevice" in other.cases[0].reason
    assert "the runtime shows 1 GPUs, and GPU 2 was asked for" in other.cases[0].reason


def test_a_write_in_front_of_an_input_is_seen(on_stand_in: Any) -> None:
    evidence = on_stand_in("gemm-bw", {"STRAY": "1"}, **SMALL)
    assert verdicts(evidence) == [Verdict.REFUTED]
    assert "grad_c" in evidence.cases[0].reason


@pytest.mark.slow
def test_wrong_kernels_are_judged_as_on_the_cpu(on_stand_in: Any, tmp_path: Path) -> None:
    # Shared memory that nobody cleared cannot be told: a GPU leaves in it what it likes.
    chosen = [name for name in wrongs.variants() if name not in UNTOLD]
    evidence = on_stand_in(wrongs.spec_in(tmp_path), variant=chosen, repeat=4)
    found = {case.variant: str(case.verdict) for case in evidence.cases}
    want = {name: "verified" if name in wrongs.RIGHT else "refuted" for name in chosen}
    assert found == want, [case.reason for case in evidence.cases]


def test_a_launch_that_the_device_does_not_allow(on_stand_in: Any, tmp_path: Path) -> None:
    names = ["block-of-2048", "shared-of-1-gib", "right"]
    evidence = on_stand_in(faults.write_spec(tmp_path), variant=names)
    found = {case.variant: case for case in evidence.cases}
    wide, shared, right = (found[name] for name in names)
    assert [wide.verdict, shared.verdict, right.verdict] == ["crashed", "crashed", "verified"]
    assert (
        "launch: hipErrorInvalidConfiguration (words of the runtime) of kernel copy" in wide.reason
    )
    assert "block (2048,1,1)" in wide.reason
    assert "the GPU allows 1024 threads and by default 65536 bytes a block" in wide.reason
    assert f"{1 << 30} bytes of dynamic shared memory" in shared.reason
