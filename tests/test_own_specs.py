"""Users' own specs and oracles, from spec to verdict: what may be verified, and what may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.runs import KERNELS, run
from tokitai_cli.model.evidence import CaseRecord
from tokitai_cli.model.verdict import Verdict

SPECS = KERNELS / "own"
VERIFIED, REFUTED, INCONCLUSIVE = Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE
VACUOUS = Verdict.VACUOUS


def ran(name: str, out: Path, **options: Any) -> Any:
    return run(SPECS / name / "spec.yaml", out, **options)


def statuses(case: CaseRecord) -> dict[str, str]:
    return {one.kind: one.status for one in case.mutants if not one.told}


def test_a_ticket_that_is_handed_back_can_be_verified(tmp_path: Path) -> None:
    evidence = ran("ticket", tmp_path)
    assert {case.variant: case.verdict for case in evidence.cases} == {
        "wrong-inout": REFUTED,
        "right-inout": VERIFIED,
    }


def test_a_scan_of_one_element_and_one_of_zeros(tmp_path: Path) -> None:
    right = ran("scan", tmp_path, variant=["right"], shapes={"n": [1, 257]})
    assert [(case.shape["n"], case.profile, case.verdict) for case in right.cases] == [
        (1, "uniform", VERIFIED),
        (1, "zeros", VERIFIED),
        (257, "uniform", VERIFIED),
        (257, "zeros", VACUOUS),
    ]
    assert right.verdict is VERIFIED
    assert right.counts == {"verified": 3, "vacuous": 1}
    assert right.reason.endswith("passed in 3 of 4 cases; 1 prove nothing (vacuous)")
    assert next(gate for gate in right.claims if gate.name == "numerical-agreement").opened
    # Where nothing tells more, a wrong kernel is not verified.
    wrong = ran("scan", tmp_path, variant=["wrong"], profile=["zeros"], shapes={"n": [257]})
    assert (wrong.verdict, wrong.counts) == (INCONCLUSIVE, {"inconclusive": 1})


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
    assert any("spec's own word" in one.text for one in evidence.non_claims)
    text = (tmp_path / "product.md").read_text("utf-8")
    assert "slice 63 of grad\\_c along axis 1 zeroed" in text


def test_a_relative_limit_sees_a_dropped_term_of_a_short_sum_only(tmp_path: Path) -> None:
    short, long = (
        ran("product", tmp_path, variant=["relative"], shapes={"n": [n]}).cases[0] for n in (4, 64)
    )
    assert (short.verdict, statuses(short)["last-term-dropped"]) == (REFUTED, "rejected")
    assert (long.verdict, statuses(long)["last-term-dropped"]) == (INCONCLUSIVE, "accepted")
