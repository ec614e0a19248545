"""What a kernel does wrong beside wrong numbers is refuted, and said: what, where, how many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.runs import KERNELS, evidence_in, run
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict

N = 1536
TYPES = {"float16": "__half", "bfloat16": "__hip_bfloat16", "float64": "double",
         "int8": "int8_t", "uint64": "uint64_t", "bool": "bool"}  # fmt: skip


def variant(
    kernel: str,
    args: Sequence[str | int],
    *,
    oracle: str = "copy",
    profile: str = "normal",
    dtypes: tuple[str, str] = ("float32", "float32"),
    output: tuple[str, str | int] = ("y", "n"),
    grid: list[str | int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    name, shape = output
    exact = dtypes[1] in ("bool", "int8", "int32", "uint64")
    return {
        "source": str(KERNELS / "wrongs.hip"),
        "oracle": f"wrongs.py:{oracle}",
        "profiles": [profile],
        "inputs": {"x": {"dtype": dtypes[0], "shape": ["n"]}},
        "outputs": {name: {"dtype": dtypes[1], "shape": [shape]}},
        "checks": [{"metric": "exact" if exact else "bound"}],
        "launches": [
            {"kernel": kernel, "grid": grid or ["n // 64"], "block": [64], "args": list(args)}
        ],
        **more,
    }  # fmt: skip


def variants() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for dtype, name in TYPES.items():
        kernel, two = f"copy<{name}>", (dtype, dtype)
        # Right, then short by one block, in the same child and on the same buffers.
        found[f"whole-{dtype}"] = variant(kernel, ["x", "y", "n"], dtypes=two)
        found[f"tail-{dtype}"] = variant(kernel, ["x", "y", "n"], dtypes=two, grid=["n // 64 - 1"])
    for name, at in {"before": "0 - 1", "behind": "n", "page-end": "n + 1023"}.items():
        found[f"output-{name}"] = variant("pokes_output", ["x", "y", "n", at])
    for name, at in {"inside": "n - 1", "before": "0 - 2", "behind": "n"}.items():
        found[f"input-{name}"] = variant("pokes_input", ["x", "y", "n", at])
    work = {"work": {"dtype": "float32", "shape": ["n"]}}
    for name, at in {"before": "0 - 1", "behind": "n"}.items():
        args = ["x", "y", "work", "n", at]
        found[f"workspace-{name}"] = variant("pokes_workspace", args, workspaces=work)
    for memory in ("static", "dynamic"):
        for name, clears in {"cleared": 1, "uncleared": 0}.items():
            bins = variant(
                f"{memory}_bins",
                ["x", "counts", "n", clears],
                oracle="bins",
                profile="indices",
                dtypes=("int32", "int32"),
                output=("counts", 16),
                grid=[1],
            )
            bins["launches"][0]["shared"] = 64 if memory == "dynamic" else 0
            found[f"{memory}-{name}"] = bins
    for name, said in {"stable": True, "unstable": False}.items():
        sums = variant("any_order", ["x", "total", "n"], oracle="total", profile="uniform",
                       output=("total", 1), deterministic=said)  # fmt: skip
        sums["outputs"]["total"]["init"] = "zero"
        found[name] = sums
    found["one-nan"] = variant("one_nan", ["x", "y", "n"])
    found["drops-nan"] = variant("drops_nan", ["x", "y", "n"], profile="special")
    for kernel in ("rounds", "saturates", "overflows_early", "loses_sign"):
        found[kernel.replace("_", "-")] = variant(
            kernel, ["x", "y", "n"], profile="large", dtypes=("float32", "float16")
        )
    return found


def spec_in(folder: Path) -> Path:
    """The spec of all of it, with the oracles' file beside it."""
    document = {
        "schema": "tokitai/spec/v1",
        "op": "wrongs",
        "title": "Faults",
        "params": {"n": {"default": N}},
        "variants": variants(),
        "profiles": {
            "normal": {},
            "uniform": {},
            "special": {},
            "indices": {"draw": {"kind": "index-uniform", "below": 16}},
            "large": {"draw": {"kind": "log-uniform", "lo": 10, "hi": 20, "sign": "random"}},
        },
    }
    (folder / "wrongs.py").write_bytes((KERNELS / "wrongs.py").read_bytes())
    path = folder / "spec.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")  # JSON is YAML
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wrongs")


@pytest.fixture(scope="module")
def evidence(folder: Path) -> Evidence:
    return run(spec_in(folder), folder, repeat=4)


def case_of(evidence: Evidence, name: str) -> CaseRecord:
    (case,) = (case for case in evidence.cases if case.variant == name)
    return case


RIGHT = [f"whole-{dtype}" for dtype in TYPES]
RIGHT += ["static-cleared", "dynamic-cleared", "unstable", "rounds"]


def test_the_right_twins_are_verified_and_all_others_refuted(evidence: Evidence) -> None:
    found = {case.variant: str(case.verdict) for case in evidence.cases}
    want = {name: "verified" if name in RIGHT else "refuted" for name in variants()}
    assert found == want, [case.reason for case in evidence.cases]
    assert evidence.verdict is Verdict.REFUTED
    again = {case.variant: case.reproduced for case in evidence.cases if case.variant not in RIGHT}
    assert set(again.values()) == {True}, again


@pytest.mark.parametrize("dtype", TYPES)
def test_a_tail_that_held_right_values_before_is_never_written_case_2(
    dtype: str, evidence: Evidence
) -> None:
    case = case_of(evidence, f"tail-{dtype}")
    assert case.reason == (
        "y: 64 elements never written, first index [1472]: "
        "the last 64 of 1536 elements, from flat index 1472"
    )
    (structure,) = case.outputs[0].structure
    assert (structure.kind, structure.count, structure.first) == ("never-written", 64, [1472])


@pytest.mark.parametrize(
    ("name", "location", "words"),
    [
        ("output-before", "y[-1]", "before y, which has 1536 elements: at least 1 element"),
        ("output-behind", "y[1536]", "past the end of y, which has 1536 elements: at least 1"),
        ("output-page-end", "y[2559]", "y[2559]: out-of-bounds write past the end of y"),
        ("workspace-before", "work[-1]", "work[-1]: out-of-bounds write before work"),
        ("workspace-behind", "work[1536]", "work[1536]: out-of-bounds write past the end of work"),
        ("input-before", "x[-2]", "x[-2]: out-of-bounds write before the input, which has"),
        (
            "input-behind",
            "x[1536]",
            "x[1536]: out-of-bounds write past the end of the input, which has",
        ),
        ("input-inside", "x[1535]", "input changed while the kernel ran: at least 1 element"),
    ],
)
def test_a_write_where_none_may_be(
    name: str, location: str, words: str, evidence: Evidence
) -> None:
    case = case_of(evidence, name)
    assert words in case.reason
    finding = case.findings[0]
    assert finding.location == location
    assert finding.kernel == case.launches[0].kernel
    if not name.startswith("input"):
        writer = f"kernel {finding.kernel}, block (1,0,0), thread (13,0,0)"
        assert finding.threads == writer
        assert case.reason.endswith(f", by {writer}")


@pytest.mark.parametrize("memory", ["static", "dynamic"])
def test_shared_memory_used_uninitialised_case_19(memory: str, evidence: Evidence) -> None:
    case = case_of(evidence, f"{memory}-uncleared")
    # A counter whose fill is drawn as zero is right by chance in one repetition, its complement is not.
    exact = case.outputs[0].checks[0]
    assert exact.metric == "exact"
    assert exact.exceeding is not None
    assert 8 <= exact.exceeding <= 16
    assert f"(exact); {exact.exceeding} of 16 elements" in case.reason


def test_bits_that_differ_refute_what_is_declared_deterministic(
    evidence: Evidence, folder: Path
) -> None:
    case = case_of(evidence, "stable")
    assert "total has different bits in repetition" in case.reason
    assert "1 of 1 element, first [0]: 0x" in case.reason
    assert case.reason.endswith("the spec says deterministic")
    assert [finding.kind for finding in case.findings] == ["nondeterministic"]
    assert case.repeats is not None
    assert case.repeats.differing_outputs == ["total"]
    assert len(set(case.repeats.schedules)) == 4
    allowed = evidence.volatile.measured[case_of(evidence, "unstable").key]
    assert allowed.repeats is not None
    assert allowed.repeats.bitwise_equal is False


def test_bits_that_differ_close_the_gate_where_they_are_allowed(tmp_path: Path) -> None:
    found = run(spec_in(tmp_path), tmp_path, repeat=4, variant=["unstable", "rounds"])
    assert found.verdict is Verdict.VERIFIED
    gates = {gate.name: gate for gate in found.claims}
    assert not gates["bitwise-reproducible"].supported
    assert gates["numerical-agreement"].supported
    assert evidence_in(tmp_path, "wrongs")["verdict"] == "verified"


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("one-nan", "nan-unexpected", "NaN where the reference is a number: got nan, want "),
        ("drops-nan", "nan-missing", "a number where the reference is NaN: got -inf, want nan"),
        ("saturates", "inf-missing", "a number where the reference is infinite or overflows: got "),
        ("overflows-early", "inf-unexpected", "infinity where the reference is a number: got "),
        ("loses-sign", "inf-sign", "infinity of the wrong sign: got inf, want "),
    ],
)
def test_nan_and_infinity_in_the_wrong_place(
    name: str, kind: str, words: str, evidence: Evidence
) -> None:
    case = case_of(evidence, name)
    (structure,) = case.outputs[0].structure
    assert structure.kind == kind
    assert f"y: {words}" in case.reason
    (first,) = structure.first
    assert f"at [{first}]; " in case.reason
    assert f"; {structure.count} of {N} elements" in case.reason
    if name == "one-nan":
        assert (first, structure.count) == (37, 1)
