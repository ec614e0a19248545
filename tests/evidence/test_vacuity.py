"""Vacuity: a case whose checks could not have refuted a wrong output is inconclusive."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support import (
    Gemm,
    case_record,
    exact_expectation,
    judge_array,
    make_case,
    make_gemm,
    mutant_status,
    rounded,
    settled,
    with_verdict,
)
from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.evidence import CaseRecord
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.judged import ChangesRecord, MutantRecord
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import groups, mark_vacuous
from tokitai_cli.evidence.not_covered import not_covered
from tokitai_cli.judge import Judgement

Status = Literal["rejected", "accepted", "not-eligible", "not-applicable"]
FLAT = [Check(metric="abs", limit=1e-2)]
BOUND = [Check(metric="bound")]


def gemm_case(
    gemm: Gemm, profile: str = "normal", checks: list[Check] | None = None
) -> tuple[Case, Judgement]:
    case = make_case(checks or BOUND, shape=gemm.right.shape, profile=profile)
    return case, judge_array(case, gemm.expectation, gemm.right)


def softmax(rows: int, columns: int) -> NDArray[np.float64]:
    logits = np.random.default_rng(7).standard_normal((rows, columns)).astype(np.float16)
    exponentials = np.exp(logits.astype(np.float64))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


# --- whole cases


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("kernel", ["zeros", "right"])
def test_an_all_zeros_softmax_is_never_verified_case_1(dtype: str, kernel: str) -> None:
    reference = softmax(4, 16384)
    checks = [Check(metric="abs", limit=1e-2)]
    case = make_case(checks, shape=(4, 16384), dtype=dtype)
    got = reference if kernel == "right" else np.zeros_like(reference)
    judgement = judge_array(case, Expectation(reference), rounded(got, dtype))
    record = settled((case, judgement))[0]
    # Even the right kernel proves nothing under these checks.
    assert record.verdict is Verdict.INCONCLUSIVE
    assert "would also have passed a wrong output (zeros, " in record.reason
    assert record.stage is Stage.COMPARE


def test_a_relative_limit_refutes_the_all_zeros_softmax_case_1() -> None:
    reference = softmax(4, 16384)
    checks = [Check(metric="abs", limit=1e-2), Check(metric="rel", limit=1e-2)]
    case = make_case(checks, shape=(4, 16384))
    judgement = judge_array(case, Expectation(reference), np.zeros((4, 16384), np.float16))
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.outputs[0].checks[0].passed


def test_a_transposed_operand_case_6() -> None:
    ones = Gemm(np.ones((32, 32)), np.ones((32, 32)))
    # On ones the transposed product is the right one: alone, that profile proves nothing.
    record = settled(gemm_case(ones, "constant"))[0]
    assert record.verdict is Verdict.INCONCLUSIVE
    assert record.reason == (
        "y: no profile here distinguishes a wrong output from the reference (constant-mean, roll); "
        "if its correct values are all equal at such a shape, declare it with `constant: "
        "{value: ..., when: ...}`"
    )
    random = np.random.default_rng(2)
    a, b = (random.standard_normal((32, 32)).astype(np.float16).astype(float) for _ in range(2))
    case = make_case(BOUND, shape=(32, 32))
    judgement = judge_array(case, Gemm(a, b).expectation, Gemm(a, b.T).right)
    assert judgement.verdict is Verdict.REFUTED


def test_a_profile_that_was_refuted_is_named_and_excuses_nothing() -> None:
    ones, other = Gemm(np.ones((32, 32)), np.ones((32, 32))), make_gemm(32, 32, 32)
    case = make_case(BOUND, shape=(32, 32), profile="normal")
    wrong = case, judge_array(case, other.expectation, other.right + 1)
    record, refuted = settled(gemm_case(ones, "constant"), wrong)
    assert refuted.verdict is Verdict.REFUTED
    assert record.verdict is Verdict.INCONCLUSIVE
    assert record.reason.endswith("when: ...}`; not counted, since they did not pass: normal")


def test_another_profile_of_the_group_excuses_a_constant_one() -> None:
    ones = Gemm(np.ones((16, 24)), np.ones((24, 16)))
    constant, normal = gemm_case(ones, "constant"), gemm_case(make_gemm())
    records = settled(constant, normal)
    assert [record.verdict for record in records] == [Verdict.VERIFIED] * 2
    assert [record.reason for record in records] == ["", ""]


def test_flat_tolerances_on_a_tiny_output_are_inconclusive_with_the_reason() -> None:
    values = np.random.default_rng(1).uniform(1e-4, 1e-3, (16, 16))
    case = make_case(FLAT, shape=(16, 16))
    judgement = judge_array(case, exact_expectation(values), rounded(values))
    assert judgement.verdict is Verdict.VERIFIED
    record = settled((case, judgement))[0]
    assert record.verdict is Verdict.INCONCLUSIVE
    assert record.reason == (
        "y: the checks would also have passed a wrong output "
        "(zeros, constant-mean, roll, sign-flipped, ...), and no profile here rejects it"
    )


def test_the_same_limits_on_a_large_output_are_not_vacuous() -> None:
    values = np.random.default_rng(1).uniform(100, 1000, (16, 16))
    case = make_case([Check(metric="abs", limit=0.5)], shape=(16, 16))
    judgement = judge_array(case, exact_expectation(values), rounded(values))
    assert settled((case, judgement))[0].verdict is Verdict.VERIFIED


def test_a_bound_is_not_vacuous_on_a_random_product() -> None:
    assert settled(gemm_case(make_gemm()))[0].verdict is Verdict.VERIFIED


def test_an_expected_empty_case_has_nothing_to_be_vacuous() -> None:
    case = make_case(shape=(0, 4), expect_empty=True)
    judgement = judge_array(case, exact_expectation(np.zeros((0, 4))), np.zeros((0, 4), np.float16))
    assert settled((case, judgement))[0].verdict is Verdict.VERIFIED


# --- vacuous cases


@pytest.mark.parametrize("why", ["unknown", "zero"])
def test_a_case_that_tells_nothing_is_vacuous_beside_one_that_tells(why: str) -> None:
    gemm = make_gemm()
    telling = gemm_case(gemm)
    values = gemm.expectation.reference if why == "unknown" else np.zeros(gemm.right.shape)
    error = np.full(values.shape, np.inf if why == "unknown" else 0.0)
    case = make_case(BOUND, shape=values.shape, profile="other")
    judgement = judge_array(case, Expectation(values, error, terms=1), rounded(values))
    assert judgement.outputs[0].metrics is not None
    assert judgement.outputs[0].metrics.undecided_elements == (
        values.size if why == "unknown" else 0
    )
    told = settled(telling, (case, judgement))
    assert [one.reads for one in told] == [Verdict.VERIFIED, Verdict.VACUOUS]
    assert [one.verdict for one in told] == [Verdict.VERIFIED] * 2
    said = "0 of 256 elements are judged" if why == "unknown" else "except by NaN, infinity or one"
    assert said in told[1].reason
    assert mark_vacuous(told, groups(told)) == told
    # What it cannot tell is excused by the other; alone it is inconclusive.
    assert settled((case, judgement))[0].verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("dtype", "value"), [("uint32", 0), ("int8", 127), ("float32", -2.5)])
def test_a_declared_constant_can_be_told_from_another_one(dtype: str, value: float) -> None:
    values = np.full((2, 3), value, dtype=dtype if "int" in dtype else np.float64)
    right = values.astype(dtype)
    check = [Check(metric="exact")]
    plain = make_case(check, shape=(2, 3), dtype=dtype)
    silent = judge_array(plain, exact_expectation(values), right)
    assert settled((plain, silent))[0].verdict is Verdict.INCONCLUSIVE
    said = make_case(check, shape=(2, 3), dtype=dtype, constant=value)
    judgement = judge_array(said, exact_expectation(values), right)
    assert mutant_status(judgement)["other-constant"] == "rejected"
    assert settled((said, judgement))[0].verdict is Verdict.VERIFIED
    assert judge_array(said, exact_expectation(values), right - 1).verdict is Verdict.REFUTED


def test_a_reference_that_is_not_the_declared_constant_is_an_error() -> None:
    case = make_case(shape=(2, 2), constant=0)
    values = np.array([[0.0, 0.0], [0.0, 3.0]])
    with pytest.raises(OracleError, match=r"constant 0, but its reference at \[1, 1\] is 3"):
        judge_array(case, exact_expectation(values), rounded(values))


# --- dropped terms and flat limits


def sums(scale: float) -> tuple[Case, Judgement]:
    """Sums of 64 terms, whose last one an absolute limit of 0.5 sees where it is large."""
    values = np.arange(1.0, 9.0).reshape(2, 4) * 64 * scale
    dropped = {
        kind: lambda: values - scale for kind in ("last-term-dropped", "heaviest-term-dropped")
    }
    case = make_case([Check(metric="abs", limit=0.5)], shape=(2, 4), profile=f"times-{scale:g}")
    error = np.full(values.shape, 1e-6)
    judgement = judge_array(
        case, Expectation(values, error, terms=64, dropped=dropped), rounded(values)
    )
    return case, judgement


def test_a_dropped_term_counts_per_profile_where_the_checks_are_flat() -> None:
    large, small = settled(sums(1.0), sums(0.25))
    assert large.verdict is Verdict.VERIFIED
    assert small.verdict is Verdict.INCONCLUSIVE
    assert small.reason == (
        "y: on the profile times-0.25 flat limits alone would also have passed a wrong output "
        "(last-term-dropped, heaviest-term-dropped)"
    )
    # Another seed of the profile that rejects it excuses it.
    other = settled(sums(1.0), sums(1.0))
    assert [one.verdict for one in other] == [Verdict.VERIFIED] * 2


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([Check(metric="abs", limit=1e-3)], Verdict.INCONCLUSIVE),
        ([Check(metric="ulp", limit=5)], Verdict.INCONCLUSIVE),
        ([Check(metric="ulp", limit=4)], Verdict.VERIFIED),
        ([Check(metric="abs", limit=1e-3), Check(metric="exact")], Verdict.VERIFIED),
    ],
)
def test_an_oracle_that_knows_no_terms_needs_checks_that_are_not_flat(
    checks: list[Check], verdict: Verdict
) -> None:
    values = np.random.default_rng(3).standard_normal((4, 8))
    case = make_case(checks, shape=(4, 8))
    judgement = judge_array(case, Expectation(values, terms=None, own=True), rounded(values))
    flat = verdict is Verdict.INCONCLUSIVE
    assert mutant_status(judgement)["last-term-dropped"] == (
        "not-eligible" if flat else "not-known"
    )
    (record,) = settled((case, judgement))
    assert record.verdict is verdict
    if flat:
        assert "nothing shows that they would detect a dropped term" in record.reason
        known = Expectation(values, np.abs(values) * 2.0**-12, terms=None, own=True)
        told = judge_array(case, known, rounded(values))
        assert settled((case, told))[0].verdict is Verdict.VERIFIED


# --- groups by hand


def record_with(
    profile: str,
    verdict: Verdict = Verdict.VERIFIED,
    *,
    device: str = "cpu",
    shape: dict[str, int] | None = None,
    output: str = "y",
    **statuses: Status,
) -> CaseRecord:
    case = make_case(profile=profile)
    judgement = judge_array(case, exact_expectation(np.ones((4, 8))), rounded(np.ones((4, 8))))
    mutants = [
        MutantRecord(output=output, kind=kind, status=status, detail="")
        for kind, status in statuses.items()
    ]
    record = msgspec.structs.replace(
        case_record(case, judgement, device), mutants=mutants, shape=shape or {"n": 64}
    )
    return with_verdict(record, verdict)


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("rejected", "rejected", "rejected"),
        ("rejected", "accepted", "rejected"),
        ("accepted", "rejected", "rejected"),
        ("not-eligible", "rejected", "rejected"),
        ("accepted", "accepted", "accepted"),
        ("accepted", "not-eligible", "accepted"),
        ("not-eligible", "not-eligible", "never-eligible"),
        ("not-eligible", "not-applicable", "never-eligible"),
        ("not-applicable", "not-applicable", "not-applicable"),
    ],
)
def test_a_group_takes_the_best_of_its_verified_cases(
    first: Status, second: Status, status: str
) -> None:
    cases = [
        record_with("normal", zeros=first, shown_only="rejected"),
        record_with("constant", zeros=second, shown_only="rejected"),
    ]
    group, _ = groups(cases)
    assert group.status == status
    by_status = {
        wanted: [case.id for case, one in zip(cases, (first, second), strict=True) if one == wanted]
        for wanted in ("rejected", "accepted")
    }
    assert (group.rejected_by, group.accepted_by) == (by_status["rejected"], by_status["accepted"])
    vacuous = status in ("accepted", "never-eligible")
    verdict = Verdict.INCONCLUSIVE if vacuous else Verdict.VERIFIED
    assert [case.verdict for case in mark_vacuous(cases, [group])] == [verdict] * 2


@pytest.mark.parametrize("verdict", [Verdict.REFUTED, Verdict.CRASHED, Verdict.INCONCLUSIVE])
def test_a_case_that_is_not_verified_excuses_nothing_and_stays(verdict: Verdict) -> None:
    cases = [
        record_with("normal", verdict, zeros="rejected"),
        record_with("constant", zeros="accepted"),
    ]
    records = mark_vacuous(cases, groups(cases))
    assert records[0] == cases[0]
    assert records[1].verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "other",
    [{"device": "gfx"}, {"shape": {"n": 65}}, {"output": "z"}],
    ids=["device", "shape", "output"],
)
def test_groups_do_not_excuse_each_other(other: dict[str, str]) -> None:
    cases = [
        record_with("constant", zeros="accepted"),
        record_with("normal", zeros="rejected", **other),  # type: ignore[arg-type]
    ]
    made = groups(cases)
    assert [group.status for group in made] == ["accepted", "rejected"]
    assert [case.verdict for case in mark_vacuous(cases, made)] == [
        Verdict.INCONCLUSIVE,
        Verdict.VERIFIED,
    ]


def test_two_ops_with_variants_of_one_name_are_two_groups() -> None:
    one = record_with("normal", zeros="rejected")
    two = msgspec.structs.replace(record_with("normal", zeros="accepted"), op="another")
    made = groups([one, two])
    assert [(group.op, group.status) for group in made] == [
        ("op", "rejected"),
        ("another", "accepted"),
    ]
    assert [case.verdict for case in mark_vacuous([one, two], made)] == [
        Verdict.VERIFIED,
        Verdict.INCONCLUSIVE,
    ]


def test_accepted_kinds_are_told_before_those_that_could_not_be_told() -> None:
    case = record_with("normal", roll="not-eligible", zeros="accepted")
    (record,) = mark_vacuous([case], groups([case]))
    assert "would also have passed a wrong output (zeros)" in record.reason


# --- changes of a formula
LAST, HALF, TENTH = "the last term dropped", "kept in float16", "off by a tenth"


def with_changes(profile: str, tried: int = 2, **named: list[str]) -> CaseRecord:
    record = ChangesRecord(
        **{"output": "y", "tried": tried, "accepted": [], "undetected": [], **named}  # type: ignore[arg-type]
    )
    return msgspec.structs.replace(record_with(profile, zeros="rejected"), changes=[record])


@pytest.mark.parametrize(
    ("first", "second", "status", "of"),
    [
        # The second profile's values stay the same under the change: that tells nothing.
        (
            {"accepted": [LAST], "rejected": [TENTH]},
            {"tried": 1, "rejected": [TENTH]},
            "accepted",
            2,
        ),
        (
            {"undetected": [HALF], "rejected": [TENTH]},
            {"tried": 1, "rejected": [TENTH]},
            "undetected",
            2,
        ),
        ({"tried": 1, "accepted": [LAST]}, {"tried": 1, "rejected": [TENTH]}, "accepted", 2),
        ({"tried": 1, "rejected": [TENTH]}, {"tried": 1, "undetected": [HALF]}, "undetected", 2),
        ({"undetected": [LAST], "rejected": [TENTH]}, {"accepted": [LAST, HALF]}, "accepted", 3),
        # A rejection anywhere settles it, whatever the others say.
        ({"accepted": [LAST], "rejected": [TENTH]}, {"rejected": [LAST, TENTH]}, "", 2),
        # Older records name no rejected change: any that is not named counts as rejected.
        ({"accepted": [LAST]}, {}, "", 2),
        ({"accepted": [LAST]}, {"undetected": [LAST]}, "accepted", 2),
    ],
)
def test_a_change_is_left_where_no_profile_rejects_it(
    first: dict[str, list[str]], second: dict[str, list[str]], status: str, of: int
) -> None:
    cases = [with_changes("normal", **first), with_changes("ones", **second)]  # type: ignore[arg-type]
    made = groups(cases)
    left = [group for group in made if group.kind in (LAST, HALF, TENTH)]
    assert [group.status for group in left][:1] == [status] * bool(status)
    verdict = Verdict.INCONCLUSIVE if status == "accepted" else Verdict.VERIFIED
    assert [case.verdict for case in mark_vacuous(cases, made)] == [verdict] * 2
    said = [one.text for one in not_covered(cases) if "changes of the formula" in one.text]
    assert len(said) == bool(status)
    for text in said:
        assert f"would detect {len(left)} of {of} changes of the formula" in text


def test_no_cases_make_no_groups() -> None:
    assert groups([]) == []
    assert mark_vacuous([], []) == []
