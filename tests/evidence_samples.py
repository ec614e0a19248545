"""Small evidence of every verdict, as the stages would record it. Numbers are made up but fit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from tokitai_cli.core.model.contract import ContractRecord, KernelRecord, LimitRecord, ReasonRecord
from tokitai_cli.core.model.evidence import (
    ArrayRecord,
    BuildRecord,
    CaseRecord,
    CompilerRecord,
    DeviceRecord,
    Evidence,
    FactRecord,
    InputRecord,
    LaunchRecord,
    LeftOutRecord,
    NonClaimRecord,
    SourceRecord,
    ToolRecord,
    VolatileRecord,
)
from tokitai_cli.core.model.judged import (
    CheckRecord,
    ElementRecord,
    ExaminationRecord,
    FindingRecord,
    MetricsRecord,
    MutantRecord,
    OutputRecord,
    PatternRecord,
    PropertyRecord,
    RepeatRecord,
    StructureRecord,
)
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import Outcome, Parts, assemble, groups, mark_vacuous

SPEC_TEXT = 'schema: tokitai/spec/v1\nop: gemm-bw\ntitle: "Backward of a product"\n'
SPEC = hashlib.sha256(SPEC_TEXT.encode()).hexdigest()
SOURCE_TEXT = "__global__ void grad_a(const __half* grad_c) {}\n"
SOURCE = hashlib.sha256(SOURCE_TEXT.encode()).hexdigest()
BUILD = "b" * 64
INPUT = InputRecord(
    name="grad_c",
    dtype="float16",
    shape=[64, 64],
    sha256="1" * 64,
    smallest=-4.125,
    largest=3.84375,
    nonfinite=0,
    generator="normal",
)
LAUNCH = LaunchRecord(
    kernel="gemm_bw_grad_a_fp16_f32_kernel",
    grid=[4, 4, 1],
    block=[16, 16, 1],
    shared_bytes=0,
    args=["grad_c", "b", "grad_a", "64", "64", "64"],
)
WORST = ElementRecord(
    index=[3, 17],
    got=-0.0002439022064208984,
    want=2.515625000123,
    error=2.515868902329,
    limit=0.00122849,
    got_bits="8bfe",
    want_hex="0x1.4200000042000p+1",
)
METRICS = MetricsRecord(
    max_abs=0.0019531,
    max_rel=0.00048,
    max_ulp=0.5000001,
    over_bound=0.4981,
    over_bound_probable=0.9,
    bias_ulp=0.0012,
    bias_outward_ulp=-0.0003,
    exact_elements=3,
    ulp_histogram={"0": 3, "1": 4093},
    worst_row=17,
)


def check(**changes: Any) -> CheckRecord:
    fields: dict[str, Any] = {
        "metric": "bound",
        "against": "reference",
        "limit": 1.0,
        "value": 0.4981,
        "passed": True,
        "judges": True,
        "elements": 4096,
        "exceeding": 0,
        "fraction": 0.0,
        "worst": [],
        "note": "",
    }
    return CheckRecord(**(fields | changes))


def saved_array() -> ArrayRecord:
    return ArrayRecord(
        name="got_grad_a_0",
        dtype="float16",
        shape=[64, 64],
        sha256="c" * 64,
        file="reports/arrays/got_grad_a_0.npy",
    )


def output(**changes: Any) -> OutputRecord:
    fields: dict[str, Any] = {
        "name": "grad_a",
        "dtype": "float16",
        "shape": [64, 64],
        "elements": 4096,
        "passed": True,
        "structure": [],
        "checks": [check(), check(metric="exact", against="replay", limit=0.0, value=0.0)],
        "metrics": METRICS,
        "pattern": None,
        "sha256": ["d" * 64, "d" * 64],
    }
    return OutputRecord(**(fields | changes))


def case(profile: str = "normal", **changes: Any) -> CaseRecord:
    variant = changes.get("variant", "grad-a")
    shape = changes.get("shape", {"m": 64, "n": 64, "k": 64})
    sizes = ",".join(f"{name}={value}" for name, value in shape.items())
    options = " ".join(f"--{name} {value}" for name, value in shape.items())
    rerun = f"tokitai verify gemm-bw --variant {variant} --profile {profile} {options} --seed 0"
    fields: dict[str, Any] = {
        "id": f"gemm-bw/{variant}/{sizes}/{profile}/0",
        "op": "gemm-bw",
        "variant": variant,
        "shape": shape,
        "profile": profile,
        "seed": 0,
        "device": "cpu",
        "spec": SPEC,
        "build": BUILD,
        "verdict": Verdict.VERIFIED,
        "stage": Stage.COMPARE,
        "reason": "every check passed",
        "inputs": [INPUT],
        "launches": [LAUNCH],
        "outputs": [output()],
        "properties": [
            PropertyRecord(
                name="sum",
                output="grad_a",
                value=0.0125,
                limit=0.75,
                passed=True,
                detail="|sum got - sum ref| <= sum E",
            )
        ],
        "mutants": [
            MutantRecord(output="grad_a", kind="zeros", status="rejected", detail="bound at 0, 0"),
            MutantRecord(output="grad_a", kind="roll", status="rejected", detail="bound at 0, 1"),
        ],
        "repeats": RepeatRecord(
            repetitions=2,
            sentinels=["0xa5", "0x5a"],
            schedules=["natural", "seed 1"],
            differing_outputs=[],
            bitwise_equal=True,
        ),
        "findings": [],
        "replay_fraction": 1.0,
        "known_bug": "",
        "rerun": rerun,
        "debug": "",
        "saved_arrays": [],
        "examined": [
            ExaminationRecord(
                kind="guards", tool="harness", scope="4 KiB before and after each buffer"
            ),
            ExaminationRecord(kind="inputs", tool="harness", scope="all inputs after the run"),
        ],
    }
    return CaseRecord(**(fields | changes))


def not_judged(verdict: Verdict, stage: Stage, reason: str, **changes: Any) -> CaseRecord:
    fields: dict[str, Any] = {
        "verdict": verdict,
        "stage": stage,
        "reason": reason,
        "outputs": [],
        "properties": [],
        "mutants": [],
        "repeats": None,
        "replay_fraction": None,
        "examined": [],
    }
    return case(**(fields | changes))


def refuted(**changes: Any) -> CaseRecord:
    failed = check(value=2047.93, passed=False, exceeding=4090, fraction=4090 / 4096, worst=[WORST])
    pattern = PatternRecord(kind="every-element", detail="4090 of 4096 elements, no row spared")
    fields: dict[str, Any] = {
        "verdict": Verdict.REFUTED,
        "reason": "bound of grad_a: 4090 of 4096 elements exceed the limit",
        "outputs": [
            output(
                passed=False,
                checks=[
                    failed,
                    check(metric="bound-prob", value="inf", passed=False, judges=False),
                ],
                metrics=msgspec.structs.replace(METRICS, max_ulp="inf", over_bound=2047.93),
                pattern=pattern,
            )
        ],
        "debug": "gdb --args ./artifact --request-fd=3",
        "saved_arrays": [saved_array()],
        "reproduced": True,
    }
    return case(**(fields | changes))


def device(**changes: Any) -> DeviceRecord:
    fields: dict[str, Any] = {
        "name": "cpu",
        "device_class": "host-simt",
        "available": True,
        "arch": "x86-64",
        "facts": [
            FactRecord(name="warp-size", value="32", source="child's hello"),
            FactRecord(name="model", value="Some CPU @ 2.0 GHz", source="/proc/cpuinfo"),
        ],
        "missing": "",
        "hint": "",
        "non_claims": ["not GPU evidence", "host compiler's code, not the GPU's"],
    }
    return DeviceRecord(**(fields | changes))


def build(**changes: Any) -> BuildRecord:
    fields: dict[str, Any] = {
        "device": "cpu",
        "arch": "x86-64",
        "source": "gemm_bw.hip",
        "source_sha256": SOURCE,
        "harness_sha256": "c" * 64,
        "headers": {"hip_runtime.h": "d" * 64},
        "command": ["g++", "-O2", "-std=c++17", "-o", "{output}", "{source}"],
        "compiler": CompilerRecord(
            path="/usr/bin/g++",
            version="g++ (Debian 12.2.0) 12.2.0\nCopyright",
            sha256="e" * 64,
            wraps={},
        ),
        "defines": {"TILE": "16"},
        "artifact_sha256": "f" * 64,
        "code_object": [],
        "notes": [],
        "failed": [],
    }
    return BuildRecord(**(fields | changes))


def contract(text: str = "") -> ContractRecord:
    """What the spec says; `text` in place of each of its words."""
    limits = [
        LimitRecord(
            name=text or name,
            output="",
            against=against,
            limit=limit,
            tolerances=text,
            profiles=[],
            why=text or why,
        )
        for name, against, limit, why in (
            ("bound", "reference", 1.0, "worst case over every rounding of the sum"),
            ("exact", "replay", 0.0, "the order of the sum is defined"),
        )
    ]
    kernel = KernelRecord(
        title=text or "Gradient of A",
        formula=text or "grad_A[m,k] = sum over n of grad_C[m,n] * B[k,n]",
        source=text or "gemm_bw.hip",
        source_sha256=SOURCE,
        lowering=text or "hip.gemm_bw.grad_a",
        backend=text,
        kernels=[text or LAUNCH.kernel],
        oracle=text or "gemm",
        limits=limits,
    )
    reasons = [ReasonRecord(subject=text or "m=64,n=64,k=64", why=text or "four tiles each way")]
    return ContractRecord(
        op="gemm-bw",
        title=text or "Backward of a product",
        summary=text or "Each output element is one float32 accumulator.",
        path=text or "gemm-bw.yaml",
        variants={"grad-a": kernel},
        shapes=reasons,
        profiles=reasons,
    )


def volatile(**changes: Any) -> VolatileRecord:
    fields: dict[str, Any] = {
        "started": "2023-11-14T22:13:20Z",
        "finished": "2023-11-14T22:13:21Z",
        "seconds": 1.25,
        "case_times_ns": {},
        "stage_seconds": {},
        "build_seconds": {BUILD: 0.75},
        "build_cached": {BUILD: False},
        "build_logs": {},
        "kernel_logs": {},
        "environment": {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "2"},
        "notes": [],
    }
    return VolatileRecord(**(fields | changes))


def parts(cases: Sequence[CaseRecord], **changes: Any) -> Parts:
    fields: dict[str, Any] = {
        "name": "gemm-bw",
        "rerun": "tokitai verify gemm-bw --m 64 --n 64 --k 64 --seed 0 --device cpu",
        "tool": ToolRecord(
            name="tokitai",
            version="0.1.0",
            commit="0123456789abcdef0123456789abcdef01234567",
            python="cpython 3.11.2",
            numpy="2.0.0",
            platform="Linux 6.1.0 x86_64",
        ),
        "settings": Settings(),
        "contract": contract(),
        "volatile": volatile(
            case_times_ns={one.key: [152000, 149500] for one in cases if one.outputs}
        ),
        "cases": cases,
        "specs": {SPEC: SourceRecord(path="gemm-bw.yaml", bytes=len(SPEC_TEXT), text=SPEC_TEXT)},
        "sources": {
            SOURCE: SourceRecord(path="gemm_bw.hip", bytes=len(SOURCE_TEXT), text=SOURCE_TEXT)
        },
        "oracles": {"gemm": "a" * 64},
        "builds": {BUILD: build()},
        "devices": {"cpu": device()},
        "groups": groups(cases),
        "non_claims": [
            NonClaimRecord(text="not a speed measurement", source="spec"),
            NonClaimRecord(text="not GPU evidence", source="variant grad-a"),
        ],
    }
    return Parts(**(fields | changes))


def not_deterministic(value: float, **changes: Any) -> CaseRecord:
    """A verified case with atomics: `value` is what this run happened to measure."""
    fields: dict[str, Any] = {
        "deterministic": False,
        "outputs": [
            output(
                checks=[check(value=value)],
                metrics=msgspec.structs.replace(METRICS, over_bound=value),
            )
        ],
        "repeats": RepeatRecord(
            repetitions=2,
            sentinels=["0xa5", "0x5a"],
            schedules=["natural", "seed 1"],
            differing_outputs=["grad_a"] if value > 0.5 else [],
            bitwise_equal=value <= 0.5,
        ),
    }
    return case(**(fields | changes))


def _refuted_run() -> Parts:
    never_written = StructureRecord(
        kind="never-written",
        count=64,
        first=[1472],
        got="nan",
        want="a written element",
        message="64 elements were never written, first index 1472",
    )
    tail = refuted(
        profile="exact-int",
        reason="64 elements of grad_a were never written",
        outputs=[
            output(
                passed=False,
                structure=[never_written],
                checks=[],
                metrics=None,
                pattern=PatternRecord(kind="tail", detail="elements 1472 to 1535"),
            )
        ],
        findings=[
            FindingRecord(
                tool="harness",
                kind="guard-damage",
                message="2 bytes after grad_a changed",
                kernel=LAUNCH.kernel,
                location="byte 8192",
                threads="",
            )
        ],
        reproduced=False,
    )
    cases = [case(), refuted(profile="uniform"), tail]
    logs = {tail.key: '{"status":"pass"}\nno line break at the end'}
    left = LeftOutRecord(
        variant="grad-b", shape={"m": 1, "n": 20, "k": 16}, requirement="n % 16 == 0"
    )
    return parts(cases, volatile=volatile(kernel_logs=logs), left_out=[left])


def _build_failed() -> Parts:
    reason = "g++ failed: gemm_bw.hip:3:5: error: 'x' was not declared in this scope"
    failed = build(artifact_sha256="", failed=["gemm_bw.hip:3:5: error: 'x' was not declared"])
    return parts(
        [not_judged(Verdict.BUILD_FAILED, Stage.BUILD, reason, launches=[], inputs=[])],
        builds={BUILD: failed},
        volatile=volatile(build_logs={BUILD: "gemm_bw.hip:3:5: error\n```\n2 errors"}),
    )


def _inadmissible() -> Parts:
    rocm = device(
        name="rocm",
        device_class="amd-gpu",
        available=False,
        arch="",
        facts=[FactRecord(name="hipcc", value="not found", source="PATH")],
        missing="no AMD GPU: /dev/kfd is not there",
        hint="run on a machine with one, or with --device cpu",
        non_claims=[],
    )
    one = not_judged(
        Verdict.INADMISSIBLE,
        Stage.PROBE,
        "no AMD GPU: /dev/kfd is not there",
        device="rocm",
        build="",
        inputs=[],
        launches=[],
    )
    return parts([one], builds={}, devices={"rocm": rocm})


def _inconclusive() -> Parts:
    constant = case(
        profile="constant",
        mutants=[MutantRecord(output="grad_a", kind="roll", status="accepted", detail="constant")],
    )
    made = groups([constant])
    return parts(mark_vacuous([constant], made), groups=made)


def runs() -> dict[Verdict, Parts]:
    """Parts of one run per verdict."""
    known = "grad-a drops a term on this device (issue 12)"
    rank = Verdict.CRASHED, Stage.RUN
    return {
        Verdict.VERIFIED: parts([case(), case("uniform"), not_deterministic(0.6, profile="large")]),
        Verdict.REFUTED: _refuted_run(),
        Verdict.UNEXPECTED_PASS: parts(
            [case(verdict=Verdict.UNEXPECTED_PASS, reason="a known bug passed", known_bug=known)]
        ),
        Verdict.EXPECTED_FAILURE: parts(
            [refuted(verdict=Verdict.EXPECTED_FAILURE, known_bug=known), case("uniform")]
        ),
        Verdict.CRASHED: parts([case(), not_judged(*rank, "killed by SIGSEGV", profile="large")]),
        Verdict.TIMED_OUT: parts(
            [not_judged(Verdict.TIMED_OUT, Stage.RUN, "outlived 60 s and was ended")]
        ),
        Verdict.INTERRUPTED: parts(
            [case()], outcome=Outcome(Verdict.INTERRUPTED, Stage.RUN, "SIGINT after 1 of 3 cases")
        ),
        Verdict.BUILD_FAILED: _build_failed(),
        Verdict.INCONCLUSIVE: _inconclusive(),
        Verdict.INADMISSIBLE: _inadmissible(),
        Verdict.NOT_RUN: parts(
            [not_judged(Verdict.NOT_RUN, Stage.PLAN, "needs 64 GiB, this machine has 8 GiB")]
        ),
        Verdict.INTERNAL_ERROR: parts([case(outputs=[], mutants=[])]),
        Verdict.VACUOUS: parts(
            [case(vacuous=True, reason="no wrong output differs from the correct one")]
        ),
        Verdict.BUILT: parts(
            [], outcome=Outcome(Verdict.BUILT, Stage.BUILD, "1 artifact is ready")
        ),
    }


def sample(verdict: Verdict) -> Evidence:
    """Evidence of a run that ended in `verdict`."""
    return assemble(runs()[verdict])
