"""Users' own specs and oracles, from spec to verdict: what may be verified, and what may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.row_cases import arrays_of, row_case
from tests.runs import KERNELS, run
from tests.support import make_result
from tokitai_cli import judge
from tokitai_cli.core.model.case import Role
from tokitai_cli.core.model.evidence import CaseRecord, Evidence
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import round_to
from tokitai_cli.evidence.not_covered import _widest
from tokitai_cli.oracles import references

SPECS = KERNELS / "own"
VERIFIED, REFUTED, INCONCLUSIVE = Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE
VACUOUS = Verdict.VACUOUS


def ran(name: str, out: Path, **options: Any) -> Any:
    return run(SPECS / name / "spec.yaml", out, **options)


def statuses(case: CaseRecord) -> dict[str, str]:
    return {one.kind: one.status for one in case.mutants if not one.shown_only}


def test_a_ticket_that_is_handed_back_can_be_verified(tmp_path: Path) -> None:
    evidence = ran("ticket", tmp_path)
    assert {case.variant: case.verdict for case in evidence.cases} == {
        "wrong-inout": REFUTED,
        "right-inout": VERIFIED,
    }


def test_a_scan_of_one_element_and_one_of_zeros(tmp_path: Path) -> None:
    right = ran("scan", tmp_path, variant=["right"], shapes={"n": [1, 257]})
    assert [(case.shape["n"], case.profile, case.reads) for case in right.cases] == [
        (1, "uniform", VERIFIED),
        (1, "zeros", VERIFIED),
        (257, "uniform", VERIFIED),
        (257, "zeros", VACUOUS),
    ]
    assert right.verdict is VERIFIED
    assert right.counts == {"verified": 3, "vacuous": 1}
    assert right.reason.endswith("passed in 3 of 4 cases; 1 proves nothing (vacuous)")
    assert next(gate for gate in right.claims if gate.name == "numerical-agreement").supported
    # Where nothing tells more, a wrong kernel is not verified.
    wrong = ran("scan", tmp_path, variant=["wrong"], profile=["zeros"], shapes={"n": [257]})
    assert (wrong.verdict, wrong.counts) == (INCONCLUSIVE, {"inconclusive": 1})


def test_segments_between_offsets_with_labels_that_do_not_count(tmp_path: Path) -> None:
    evidence = ran("segments", tmp_path, suite="quick", profile=["ragged", "own"])
    refuted = {case.variant for case in evidence.cases if case.verdict is REFUTED}
    assert refuted == {"ends-wrong", "ignored-wrong", "eps-wrong"}
    right = [case for case in evidence.cases if case.variant == "right"]
    assert [case.verdict for case in right] == [VERIFIED] * 4
    assert [source.path for source in evidence.sources.values()] == [
        "segments.hip", "formula.py", "draws.py",
    ]  # fmt: skip
    assert any(one.text.startswith("Draw draws.py:runs has") for one in evidence.statements)


def test_the_largest_of_a_row_and_segments_in_an_order_of_the_kernels(tmp_path: Path) -> None:
    evidence = ran("free-order", tmp_path, suite="quick", watch="off")
    refuted = {case.variant for case in evidence.cases if case.verdict is REFUTED}
    assert refuted == {
        *(
            f"largest-{name}"
            for name in ("twice", "places-swapped", "one-too-small", "last-of-ties")
        ),
        *("segments-across", "segments-twice"),
    }
    others = {case.verdict for case in evidence.cases if case.variant not in refuted}
    assert others == {VERIFIED}


def argument_verdicts(evidence: Evidence) -> dict[Verdict, set[str]]:
    """Names of the variants by verdict."""
    found: dict[Verdict, set[str]] = {}
    for case in evidence.cases:
        found.setdefault(case.verdict, set()).add(case.variant)
    return found


def test_structs_functors_lists_of_arrays_and_steps_of_the_host(tmp_path: Path) -> None:
    evidence = ran("arguments", tmp_path, suite="quick")
    assert argument_verdicts(evidence) == {
        VERIFIED: {
            *("struct", "functors", "list", "batch", "sort", "spread"),
            *("pointed", "several", "overload", "overload-fit", "default"),
        },
        REFUTED: {
            *(
                f"{name}-wrong"
                for name in (
                    "struct",
                    "functors",
                    "list",
                    "batch",
                    "pointed",
                    "several",
                    "sort",
                    "spread",
                    "overload",
                    "default",
                )
            ),
            *("list-written", "pointed-written", "pointed-written-behind"),
        },
    }
    cases = {case.variant: case for case in evidence.cases}
    assert cases["struct"].launches[0].args == [
        "config={.n=100, .alpha=0.5, .strides.step[0]=1, .strides.step[1]=0, .strides.beta=0.25, "
        ".x=x, .limits[0].lo=0, .limits[0].hi=100, .limits[1].lo=2, .limits[1].hi=100}",
        "v={.x=1, .y=2, .z=100, .w=0}",
        "y",
    ]
    assert len(cases["sort"].launches) == 36
    assert [one.args[2] for one in cases["spread"].launches[:3]] == [
        "weight=0.5", "half=0.5", "weight=0.3333333432674408",
    ]  # fmt: skip
    assert "xs[2]" in cases["list-written"].reason
    assert cases["pointed"].launches[2].args == [
        "x",
        "groups={.count=100, .step=1, .scales.factors=factors, .scales.bias=0.5, "
        ".sums[0]=sums, .sums[1]=last}",
    ]
    written = cases["pointed-written"].findings[0]
    assert (written.kind, written.location) == ("input-changed", "groups.scales.bias")
    behind = cases["pointed-written-behind"].findings[0]
    assert (behind.kind, behind.location) == ("out-of-bounds-write", "groups")
    assert "byte 44 of the struct or beside it changed" in behind.message
    (tmp_path / "long").mkdir()
    long = ran("arguments", tmp_path / "long", variant=["spread"], shapes={"steps": [100]})
    assert [one.left_out for one in long.cases[0].launches] == [*[0] * 31, 136, *[0] * 32]


def test_flat_limits_need_a_dropped_term_that_they_reject(tmp_path: Path) -> None:
    evidence = ran("product", tmp_path, variant=["flat", "wrong", "declared", "bound"])
    found = {case.variant: case for case in evidence.cases}
    assert {name: case.verdict for name, case in found.items()} == {
        "flat": INCONCLUSIVE,
        "wrong": INCONCLUSIVE,
        "declared": VERIFIED,
        "bound": REFUTED,
    }
    status = {name: statuses(case) for name, case in found.items()}
    assert status["flat"]["last-term-dropped"] == status["wrong"]["last-term-dropped"] == "accepted"
    assert status["wrong"]["halved"] == "rejected"
    assert status["declared"]["last-term-dropped"] == "not-applicable"
    assert any("the spec states" in one.text for one in evidence.non_claims)
    text = (tmp_path / "product.md").read_text("utf-8")
    assert "slice 63 of grad\\_c along axis 1 zeroed" in text


def test_a_relative_limit_sees_a_dropped_term_of_a_short_sum_only(tmp_path: Path) -> None:
    short, long = (
        ran("product", tmp_path, variant=["relative"], shapes={"n": [n]}).cases[0] for n in (4, 64)
    )
    assert (short.verdict, statuses(short)["last-term-dropped"]) == (REFUTED, "rejected")
    assert (long.verdict, statuses(long)["last-term-dropped"]) == (INCONCLUSIVE, "accepted")


def test_a_larger_profile_does_not_excuse_a_flat_limit_on_another(tmp_path: Path) -> None:
    profiles = ["large", "small"]
    evidence = ran("sums", tmp_path, variant=["main"], profile=profiles, shapes={"cols": [40, 1]})
    large, small, one_term, _ = evidence.cases
    assert [one.verdict for one in (large, small)] == [VERIFIED, INCONCLUSIVE]
    assert "on the profile small flat limits alone" in small.reason
    assert statuses(one_term)["last-term-dropped"] == "rejected"


def not_covered(evidence: Evidence) -> list[str]:
    return [one.text for one in evidence.non_claims if one.source == "checks"]


def test_a_bound_of_the_users_own_is_told_in_size(tmp_path: Path) -> None:
    evidence = ran("loose-bound", tmp_path)
    assert evidence.verdict is VERIFIED  # though a kernel drops the last column
    (text,) = not_covered(evidence)
    assert text.startswith("rmsnorm fwd, output y: reference and bound are stated by the oracle")
    bound = evidence.cases[0].outputs[0].own_bound
    assert bound is not None
    assert (bound.relative_median, bound.relative_largest) == pytest.approx(
        (0.024, 0.024), rel=0.02
    )
    assert 3 < float(bound.ulp_median) < float(bound.ulp_largest) < 7
    first = (tmp_path / "rmsnorm.md").read_text("utf-8").partition("\n## ")[0]
    assert "at most 0.024 of the value" in first
    # No value is a normal number: nothing is relative to it.
    none = msgspec.structs.replace(bound, relative_median=0.0, relative_largest=0.0)
    case = evidence.cases[0]
    output = msgspec.structs.replace(case.outputs[0], own_bound=none)
    (words,) = _widest([(case, output)], "the bound", own=True)
    assert " ulp (median " in words
    assert "of the value" not in words


def test_slices_that_could_be_zero_unnoticed_are_told(tmp_path: Path) -> None:
    evidence = ran("sums", tmp_path, variant=["wide"], profile=["spread"], shapes={"cols": [400]})
    bound, slices = not_covered(evidence)
    assert "at most 0.006 of the value" in bound
    assert slices == (
        "sums wide, output y: the checks accept 2 outputs of inputs with a slice zeroed, such as last "
        "slice 399 of x along axis 1 zeroed; 8 of 8 elements change "
        "(sums/wide/rows=8,cols=400/spread/0)"
    )


def test_what_nothing_judges_is_told_in_numbers(tmp_path: Path) -> None:
    evidence = ran("unwritten", tmp_path)
    found = {case.variant: case for case in evidence.cases}
    assert {name: case.verdict for name, case in found.items()} == {
        "few": INCONCLUSIVE,
        "most": VERIFIED,
        "workspace": VERIFIED,
        "limit": VERIFIED,
        "larger": INCONCLUSIVE,
        "scratch": VERIFIED,
    }
    assert found["larger"].reason.startswith(
        "less than half of what the kernel may write is judged: 1001 elements of w beside 1000 of "
        "outputs"
    )
    said = [one.text for one in evidence.non_claims if one.source == "variant scratch"]
    assert said == ["workspace w, a copy of x: not judged"]
    assert found["few"].reason == (
        "y: 968 of 1000 elements stayed unwritten, as the oracle permits: less than half of "
        "the output was judged"
    )
    texts = not_covered(evidence)
    for text in (
        "unwritten most, output y: 100 elements stayed unwritten, as the oracle permits, in 1 of 1 "
        "case, at most 100 of 1000 in one",
        "unwritten workspace, workspace w: not judged; at most 1000 elements beside 1000 of "
        "outputs",
        "unwritten limit, output y: errors of up to 15 times the bound pass (bound)",
    ):
        assert text in texts, texts


def test_an_output_that_is_passed_as_a_workspace_leaves_the_case_open() -> None:
    case = row_case("layernorm", "fwd", "normal", rows=2, cols=8)
    arrays = arrays_of(case)
    expectations, replays = references.expect(case, arrays), references.replay(case, arrays)
    buffers = tuple(
        msgspec.structs.replace(one, role=Role.WORKSPACE) if one.name == "y" else one
        for one in case.buffers
    )
    case = msgspec.structs.replace(case, buffers=buffers)
    right = {name: round_to(expectations[name].reference, "float32") for name in ("mean", "rstd")}
    judgement = judge.judge(case, expectations, replays, make_result(right))
    assert judgement.verdict is INCONCLUSIVE
    assert judgement.reason == (
        "y is passed as a workspace, although the oracle returns it: it is not judged"
    )
