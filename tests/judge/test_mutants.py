"""Mutants: what each one is, whether it can be told, and which checks reject it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support import (
    as_dtype,
    exact_expectation,
    judge_array,
    make_case,
    make_gemm,
    mutant_status,
    rounded,
)
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.model.case import BufferPlan, Role
from tokitai_cli.core.model.expectation import ALWAYS_TRIED, Expectation, Replay
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.numerics import round_to, rounded_bound, spacing
from tokitai_cli.judge.checks import target as target_module
from tokitai_cli.judge.checks.output_checks import ResolvedCheck
from tokitai_cli.judge.checks.reference_tally import Summary, part_of_summary
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.expected import reference_target
from tokitai_cli.judge.mutants import values as mutants_module
from tokitai_cli.judge.mutants.trial import Trials
from tokitai_cli.judge.mutants.values import Mutant, mutants_of, rolled

KINDS = ALWAYS_TRIED
BOUND = Check(metric="bound")
NAN, INF = float("nan"), float("inf")


def target_of(expectation: Expectation, dtype: str = "float16") -> Target:
    shape = np.asarray(expectation.reference).shape
    buffer = BufferPlan("y", Role.OUTPUT, dtype, shape)
    return reference_target(buffer, expectation, flush_to_zero=False)


def mutants_by_kind(
    expectation: Expectation, dtype: str = "float16", metric: str = "bound"
) -> dict[str, Mutant]:
    target, summary = target_of(expectation, dtype), Summary()
    for chunk in target.chunks():
        summary.add(part_of_summary(chunk, None))
    check = ResolvedCheck(metric, "reference", 1.0, judges=True, note="")
    return {made.kind: made for made in mutants_of(target, summary, expectation, [check])}


def status_of(values: NDArray[np.float64]) -> dict[str, str]:
    """Judge the right output of an exact reference under the bound."""
    case = make_case(shape=values.shape)
    return mutant_status(judge_array(case, exact_expectation(values), rounded(values)))


def whole(mutant: Mutant, size: int) -> NDArray[Any]:
    assert mutant.values is not None
    return mutant.values(slice(0, size))


# --- what each mutant is


def test_all_kinds_are_rejected_by_the_bound_on_a_random_product() -> None:
    gemm = make_gemm()
    judgement = judge_array(make_case(shape=(16, 16)), gemm.expectation, gemm.right)
    assert mutant_status(judgement) == dict.fromkeys(KINDS, "rejected")
    details = {mutant.kind: mutant.detail for mutant in judgement.mutants}
    assert details["zeros"].endswith("rejected by bound against the reference")
    assert details["all-nan"].endswith("rejected by non-finite structure: nan-unexpected")
    assert details["all-inf"].endswith("rejected by non-finite structure: inf-unexpected")


def test_values_of_each_mutant() -> None:
    gemm = make_gemm()
    expectation, flat = gemm.expectation, gemm.expectation.reference.reshape(-1)
    made = mutants_by_kind(expectation)
    assert tuple(made) == KINDS
    np.testing.assert_array_equal(whole(made["zeros"], 256), np.zeros(256))
    np.testing.assert_allclose(whole(made["constant-mean"], 256), flat.mean(), rtol=1e-12)
    np.testing.assert_array_equal(whole(made["sign-flipped"], 256), -flat)
    np.testing.assert_array_equal(
        whole(made["last-term-dropped"], 256).reshape(16, 16),
        expectation.dropped["last-term-dropped"](),
    )
    np.testing.assert_array_equal(
        whole(made["heaviest-term-dropped"], 256).reshape(16, 16),
        expectation.dropped["heaviest-term-dropped"](),
    )
    assert np.isnan(whole(made["all-nan"], 256)).all()
    assert np.isposinf(whole(made["all-inf"], 256)).all()
    one = whole(made["one-nan"], 256)
    assert np.isnan(one).sum() == 1
    np.testing.assert_array_equal(one[~np.isnan(one)], flat[~np.isnan(one)])


def test_the_anchor_moves_the_element_with_the_smallest_bound_by_sixteen() -> None:
    expectation = make_gemm().expectation
    assert expectation.error is not None
    form = FORMATS["float16"]
    bound = rounded_bound(expectation.error, expectation.reference, form).reshape(-1)
    place = int(bound.argmin())
    flat = expectation.reference.reshape(-1)
    moved = whole(mutants_by_kind(expectation)["anchor"], 256)
    changed = np.flatnonzero(moved != flat)
    assert changed.tolist() == [place]
    want = round_to(flat, "float16").astype(float)
    ulp = float(spacing(want[place : place + 1], form)[0])
    assert abs(moved[place] - flat[place]) == pytest.approx(16 * max(bound[place], ulp))


def test_the_anchor_of_flat_checks_moves_by_a_hundredth_of_the_rms_at_least() -> None:
    expectation = exact_expectation(np.linspace(100, 200, 64))
    rms = np.sqrt(np.square(expectation.reference).mean())
    for metric, shift in (("abs", rms / 100), ("bound", 16 * 2.0**-4), ("exact", 16 * 2.0**-4)):
        moved = whole(mutants_by_kind(expectation, metric=metric)["anchor"], 64)
        assert np.abs(moved - expectation.reference).max() == pytest.approx(shift)


def test_the_anchor_does_not_overflow() -> None:
    expectation = exact_expectation([65504.0, 65504.0])
    moved = whole(mutants_by_kind(expectation)["anchor"], 2)
    assert moved[0] == 65504.0 - 16 * 32


def test_the_anchor_skips_what_must_not_be_finite() -> None:
    expectation = exact_expectation([NAN, INF, 70000.0, 5.0])
    moved = whole(mutants_by_kind(expectation)["anchor"], 4)
    assert moved[3] != 5.0
    assert np.isnan(moved[0])


@pytest.mark.parametrize("shape", [(12,), (5, 7), (3, 4, 5), (2, 1, 6)])
def test_rolls_equal_numpys(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=float).reshape(shape)
    target = target_of(exact_expectation(values))
    random = np.random.default_rng(0)
    for axis, extent in enumerate(shape):
        for shift in {1, extent // 2, extent - 1}:
            moved = np.roll(values, shift, axis).reshape(-1)
            roll = rolled(target, axis, shift)
            np.testing.assert_array_equal(roll(slice(0, values.size)), moved)
            np.testing.assert_array_equal(roll(slice(3, 9)), moved[3:9])
            places = random.integers(0, values.size, 6)
            np.testing.assert_array_equal(roll(places), moved[places])


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        # Equal rows: only a move along the rows' elements changes anything.
        (np.tile(np.arange(8.0), (6, 1)), "axis 1"),
        (np.tile(np.arange(6.0)[:, None], (1, 8)), "axis 0"),
        # Period two along axis 1: moving by half (4) changes nothing, moving by 1 all.
        (np.tile(np.array([1.0, 2.0]), (6, 4)), "by 1 along axis 1"),
        # Two halves: moving by half changes all.
        (np.repeat([1.0, 2.0], 4), "by 4 along axis 0"),
    ],
)
def test_the_roll_that_changes_most_is_taken(values: NDArray[np.float64], detail: str) -> None:
    assert detail in mutants_by_kind(exact_expectation(values))["roll"].detail


def test_a_roll_that_changes_only_what_the_sample_misses_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Equal rows: no move along axis 0 changes anything, and the two sampled columns change under
    # no move at all.
    monkeypatch.setattr(mutants_module, "_SAMPLE", 2)
    values = np.zeros((8, 8))
    values[:, 6] = 50.0
    assert "along axis 1" in mutants_by_kind(exact_expectation(values))["roll"].detail


# --- what can be told, and what has no meaning


@pytest.mark.parametrize(
    ("shape", "kinds"), [((1, 1), ("constant-mean", "roll")), ((), ("constant-mean", "roll"))]
)
def test_one_element_has_no_roll_and_no_mean(
    shape: tuple[int, ...], kinds: tuple[str, ...]
) -> None:
    values = np.full(shape, 3.0)
    status = mutant_status(
        judge_array(make_case(shape=shape), exact_expectation(values), rounded(values))
    )
    assert {kind for kind, one in status.items() if one == "not-applicable"} == {
        *kinds,
        "last-term-dropped",
        "heaviest-term-dropped",
    }
    assert status["zeros"] == status["anchor"] == "rejected"


def test_one_row_still_rolls_along_the_other_axis() -> None:
    values = np.arange(8.0)[None, :]
    made = mutants_by_kind(exact_expectation(values))
    assert "along axis 1" in made["roll"].detail


@pytest.mark.parametrize(
    ("terms", "dropped", "status"),
    [
        (0, False, "not-applicable"),
        (1, True, "not-applicable"),
        (5, False, "not-applicable"),
        (5, True, "rejected"),
    ],
)
def test_dropped_terms_need_a_reduction_of_several(terms: int, dropped: bool, status: str) -> None:
    values = np.arange(1.0, 9.0)
    given_drops = {"last-term-dropped": lambda: values - 1} if dropped else {}
    expectation = exact_expectation(values, terms=terms, dropped=given_drops)
    judged = mutant_status(judge_array(make_case(shape=(8,)), expectation, rounded(values)))
    assert judged["last-term-dropped"] == status
    assert judged["heaviest-term-dropped"] == "not-applicable"


def test_an_oracles_own_mutants_are_tried_as_well() -> None:
    values = np.arange(1.0, 9.0)
    expectation = exact_expectation(values, dropped={"bias-forgotten": lambda: values + 3})
    judged = mutant_status(judge_array(make_case(shape=(8,)), expectation, rounded(values)))
    assert judged["bias-forgotten"] == "rejected"


def test_nothing_is_computed_that_is_not_judged() -> None:
    calls: list[int] = []

    def compute() -> NDArray[np.float64]:
        calls.append(1)
        return np.zeros(8)

    expectation = exact_expectation(
        np.arange(1.0, 9.0), terms=1, dropped={"last-term-dropped": compute}
    )
    judge_array(make_case(shape=(8,)), expectation, rounded(np.arange(1.0, 9.0)))
    assert calls == []
    judge_array(
        make_case(shape=(8,)),
        msgspec.structs.replace(expectation, terms=3),
        rounded(np.arange(1.0, 9.0)),
    )
    assert calls == [1]


def test_a_dropped_reference_of_another_shape_is_an_oracle_error() -> None:
    expectation = exact_expectation(
        np.arange(8.0), terms=3, dropped={"last-term-dropped": lambda: np.zeros((2, 4))}
    )
    with pytest.raises(OracleError, match="last-term-dropped reference of y"):
        judge_array(make_case(shape=(8,)), expectation, rounded(np.arange(8.0)))


def test_a_constant_reference_hides_the_mean_and_the_roll_case_6() -> None:
    values = np.full((8, 8), 128.0)
    status = mutant_status(
        judge_array(make_case(shape=(8, 8)), exact_expectation(values), rounded(values))
    )
    assert status["constant-mean"] == status["roll"] == "not-eligible"
    assert status["zeros"] == status["sign-flipped"] == status["anchor"] == "rejected"


def test_a_zero_reference_hides_zeros_and_sign() -> None:
    values = np.zeros((4, 4))
    status = mutant_status(
        judge_array(make_case(shape=(4, 4)), exact_expectation(values), rounded(values))
    )
    for kind in ("zeros", "constant-mean", "roll", "sign-flipped"):
        assert status[kind] == "not-eligible", kind
    assert status["anchor"] == status["one-nan"] == "rejected"


@pytest.mark.parametrize("metric", ["bound", "exact"])
def test_minus_zero_is_no_difference_beyond_doubt(metric: Any) -> None:
    # Bitwise mode rejects -0.0 here, but that the sign is wrong cannot be told from a zero.
    values = np.zeros((4, 4))
    case = make_case([Check(metric=metric)], shape=(4, 4))
    status = mutant_status(judge_array(case, exact_expectation(values), rounded(values)))
    assert status["sign-flipped"] == "not-eligible"


def test_a_reference_without_numbers() -> None:
    case, values = make_case(shape=(2, 2)), np.full((2, 2), NAN)
    status = mutant_status(judge_array(case, exact_expectation(values), rounded(values)))
    for kind in ("all-nan", "one-nan", "anchor", "constant-mean", "roll", "sign-flipped"):
        assert status[kind] == "not-eligible", kind
    assert status["zeros"] == status["all-inf"] == "rejected"
    infinite = np.full((2, 2), INF)
    status = mutant_status(judge_array(case, exact_expectation(infinite), rounded(infinite)))
    assert status["all-inf"] == "not-eligible"
    assert status["all-nan"] == status["sign-flipped"] == "rejected"


def test_a_mutant_within_four_bounds_cannot_be_told() -> None:
    # zeros are off by 1 everywhere: 4 E decides, whatever the limits of the spec.
    values = np.ones((4, 4))
    for error, status in ((0.24, "rejected"), (0.26, "not-eligible")):
        expectation = Expectation(values, np.full((4, 4), error))
        judged = judge_array(make_case(shape=(4, 4)), expectation, rounded(values))
        assert mutant_status(judged)["zeros"] == status


@pytest.mark.parametrize(
    ("metrics", "ulps", "status"),
    [
        (["bound"], 4, "not-eligible"),
        (["bound"], 5, "rejected"),
        (["bound", "exact"], 1, "rejected"),
    ],
)
def test_an_exact_reference_is_told_beyond_four_ulp_and_by_an_exact_check_at_once(
    metrics: list[Any], ulps: int, status: str
) -> None:
    values = np.ones((4, 4))
    expectation = exact_expectation(values, dropped={"near": lambda: values + ulps * 2.0**-10})
    case = make_case([Check(metric=metric) for metric in metrics], shape=(4, 4))
    assert mutant_status(judge_array(case, expectation, rounded(values)))["near"] == status


def test_a_wrong_output_of_the_oracle_hides_none_of_the_tools() -> None:
    values = np.ones((4, 4))
    expectation = exact_expectation(values, dropped={"anchor": lambda: values + 1})
    with pytest.raises(
        OracleError, match="'anchor' of y has a name that the tool uses for its own"
    ):
        judge_array(make_case(shape=(4, 4)), expectation, rounded(values))


def test_without_a_bound_sixteen_ulp_stand_for_it() -> None:
    values = np.ones((4, 4))
    flat = [Check(metric="abs", limit=2.0)]
    near = Expectation(values, dropped={"near": lambda: values + 63 * 2.0**-10})
    far = Expectation(values, dropped={"far": lambda: values + 65 * 2.0**-10})
    case = make_case(flat, shape=(4, 4))
    assert mutant_status(judge_array(case, near, rounded(values)))["near"] == "not-eligible"
    assert mutant_status(judge_array(case, far, rounded(values)))["far"] == "accepted"


# --- integers and bools


def test_integers_have_no_nan_and_any_rejected_difference_counts() -> None:
    values = as_dtype([0, 1, 2, 3], "int32")
    case = make_case([Check(metric="exact")], shape=(4,), dtype="int32")
    status = mutant_status(judge_array(case, exact_expectation(values), values))
    for kind in ("all-nan", "one-nan", "all-inf"):
        assert status[kind] == "not-applicable"
    for kind in ("zeros", "constant-mean", "roll", "sign-flipped", "anchor"):
        assert status[kind] == "rejected", kind


@pytest.mark.parametrize(
    ("dtype", "status"), [("uint8", "not-applicable"), ("int8", "rejected"), ("bool", "rejected")]
)
def test_the_sign_of_integers(dtype: str, status: str) -> None:
    values = as_dtype([1, 0, 1, 1], dtype)
    case = make_case([Check(metric="exact")], shape=(4,), dtype=dtype)
    judged = mutant_status(judge_array(case, exact_expectation(values), values))
    assert judged["sign-flipped"] == status


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_the_integer_anchor_stays_in_range(dtype: str) -> None:
    top = int(np.iinfo(dtype).max)
    moved = whole(mutants_by_kind(exact_expectation(as_dtype([top], dtype)), dtype)["anchor"], 1)
    assert int(moved[0]) == top - 16


def test_a_loose_limit_on_integers_accepts_what_it_cannot_see() -> None:
    values = as_dtype([10, 20, 30, 40], "int32")
    case = make_case([Check(metric="abs", limit=1000)], shape=(4,), dtype="int32")
    status = mutant_status(judge_array(case, exact_expectation(values), values))
    assert status["zeros"] == status["roll"] == status["anchor"] == "accepted"


# --- which checks reject


@pytest.mark.parametrize(
    ("check", "accepted"),
    [
        (Check(metric="bound"), set()),
        (Check(metric="rel", limit=1e-2), set()),
        (Check(metric="ulp", limit=2), set()),
        (Check(metric="exact"), set()),
        (
            Check(metric="abs", limit=1e3),
            {
                "zeros",
                "constant-mean",
                "roll",
                "last-term-dropped",
                "heaviest-term-dropped",
                "sign-flipped",
                "anchor",
            },
        ),
        # A mean hides one wrong element among many and a change that cancels out.
        (Check(metric="bias", limit=1e6), set(KINDS) - {"all-nan", "one-nan", "all-inf"}),
        # Not a check of this profile.
        (
            Check(metric="abs", limit=0.0, profiles=["special"]),
            set(KINDS) - {"all-nan", "one-nan", "all-inf"},
        ),
    ],
)
def test_what_each_check_lets_through(check: Check, accepted: set[str]) -> None:
    gemm = make_gemm()
    case = make_case([check], shape=(16, 16))
    # Mutants depend on the reference alone, so the rounded reference serves as the output.
    right = rounded(gemm.expectation.reference)
    status = mutant_status(judge_array(case, gemm.expectation, right))
    assert {kind for kind, one in status.items() if one == "accepted"} == accepted
    assert {kind for kind, one in status.items() if one == "rejected"} == set(KINDS) - accepted


def test_a_check_that_only_reports_rejects_nothing() -> None:
    gemm = make_gemm()
    checks = [Check(metric="bound-prob"), Check(metric="abs", limit=1e9)]
    for profile, status in (("normal", "rejected"), ("constant", "accepted")):
        case = make_case(checks, shape=(16, 16), profile=profile)
        judged = mutant_status(judge_array(case, gemm.expectation, gemm.right))
        assert judged["zeros"] == status


def test_the_replay_rejects_only_what_its_rows_can_see() -> None:
    gemm = make_gemm()
    right = gemm.right
    case = make_case([Check(metric="exact", against="replay")], shape=(16, 16))
    all_rows = mutant_status(judge_array(case, gemm.expectation, right, replay=Replay(right)))
    assert set(all_rows.values()) == {"rejected"}
    anchor = mutants_by_kind(gemm.expectation)["anchor"]
    assert anchor.only is not None
    other = np.array([(anchor.only // 16 + 1) % 16])
    one_row = mutant_status(
        judge_array(case, gemm.expectation, right, replay=Replay(right[other], other))
    )
    assert one_row["anchor"] == "accepted"
    assert one_row["zeros"] == one_row["sign-flipped"] == "rejected"


def test_a_difference_within_doubt_is_not_what_a_replay_rejects() -> None:
    # Off by one ulp in the row that is replayed, which may be rounding; off by much in another.
    values = np.linspace(1, 2, 32, endpoint=False).reshape(4, 8)
    wrong = values + 2.0**-10
    wrong[0, 0] += 1
    expectation = Expectation(values, np.full((4, 8), 2.0**-9), dropped={"near": lambda: wrong})
    right, rows = rounded(values), np.array([2])
    case = make_case([Check(metric="exact", against="replay")], shape=(4, 8))
    judgement = judge_array(case, expectation, right, replay=Replay(right[rows], rows))
    assert mutant_status(judgement)["near"] == "accepted"


def test_only_what_a_mutant_changes_counts_against_the_replay() -> None:
    # Reference and replay are 1 apart at the second element, within its bound. The mutant changes
    # the first one by less than the limit, so the check would let it through.
    values = np.array([1.0, 100.0])
    expectation = Expectation(
        values, np.array([0.0, 2.0]), dropped={"near": lambda: values + np.array([0.25, 0.0])}
    )
    right = rounded([1.0, 101.0])
    case = make_case([Check(metric="abs", limit=0.5, against="replay")], shape=(2,))
    judgement = judge_array(case, expectation, right, replay=Replay(right))
    assert mutant_status(judgement)["near"] == "accepted"
    assert mutant_status(judgement)["zeros"] == "rejected"


@pytest.mark.parametrize(("limit", "status"), [(10.0, "accepted"), (0.5, "rejected")])
@pytest.mark.parametrize("against", ["reference", "replay"])
def test_a_mean_error_is_that_of_the_whole_output(against: Any, limit: float, status: str) -> None:
    # One element of 256 is off by 512 ulp: 2 ulp in the mean.
    values = np.ones(256)
    wrong = values.copy()
    wrong[200] = 1.5
    expectation = exact_expectation(values, dropped={"near": lambda: wrong})
    right = rounded(values)
    case = make_case([Check(metric="bias", limit=limit, against=against)], shape=(256,))
    judgement = judge_array(case, expectation, right, replay=Replay(right))
    assert mutant_status(judgement)["near"] == status


def test_the_rounding_of_the_reference_is_not_what_a_replay_rejects() -> None:
    # Reference and replay differ by one rounding everywhere; the mutant in the row that was not
    # replayed is not rejected for that.
    values = np.linspace(1, 2, 32).reshape(4, 8) + 2.0**-12
    replayed = rounded(values)
    replayed.view(np.uint16)[...] += 1
    expectation = Expectation(values, np.full((4, 8), 2.0**-9))
    expectation.error[0, 0] = 2.0**-10  # type: ignore[index]
    case = make_case([Check(metric="exact", against="replay")], shape=(4, 8))
    rows = np.array([2])
    status = mutant_status(
        judge_array(case, expectation, replayed, replay=Replay(replayed[rows], rows))
    )
    assert status["anchor"] == "accepted"
    assert status["zeros"] == "rejected"


@pytest.mark.parametrize("row", [0, 1])
def test_elements_that_may_stay_unwritten_reject_nothing(row: int) -> None:
    values, mask = np.zeros((4, 4)), np.zeros((4, 4), dtype=bool)
    values[row], mask[row] = 5.0, True
    free = exact_expectation(values, may_be_unwritten=mask)
    status = mutant_status(judge_array(make_case(shape=(4, 4)), free, rounded(values)))
    assert status["zeros"] == "not-eligible"
    assert status["anchor"] == "rejected"


# --- chunks


@pytest.mark.parametrize("chunk", [5, 64, 1 << 15])
def test_the_status_does_not_depend_on_the_chunks(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemm = make_gemm()
    checks = [Check(metric="abs", limit=4.0), Check(metric="bias", limit=100.0)]
    case = make_case(checks, shape=(16, 16))
    want = judge_array(case, gemm.expectation, gemm.right).mutants
    monkeypatch.setattr(target_module, "CHUNK", chunk)
    monkeypatch.setattr("tokitai_cli.judge.mutants.trial.FIRST_CHUNK", 3)
    assert judge_array(case, gemm.expectation, gemm.right).mutants == want


def test_a_rejected_mutant_is_not_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokitai_cli.judge.mutants.trial.FIRST_CHUNK", 8)
    seen: list[Any] = []
    values = np.arange(1.0, 257.0)

    class Watched(np.ndarray[Any, Any]):
        def __getitem__(self, index: Any) -> Any:
            seen.append(index)
            return super().__getitem__(index)

    expectation = exact_expectation(values, terms=9)
    wrong = (values + 100).view(Watched)
    expectation = msgspec.structs.replace(expectation, dropped={"last-term-dropped": lambda: wrong})
    monkeypatch.setattr("tokitai_cli.judge.mutants.values.np.asarray", lambda value, **_: value)
    judged = judge_array(make_case(shape=(256,)), expectation, rounded(values))
    assert mutant_status(judged)["last-term-dropped"] == "rejected"
    assert seen == [slice(0, 8)]


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    loose=st.floats(1e-4, 1e2),
)
@hypothesis_settings(max_examples=25, deadline=None)
def test_a_mutant_is_accepted_exactly_where_the_judgement_would_verify_it(
    seed: int, rows: int, columns: int, loose: float
) -> None:
    gemm = make_gemm(rows, 5, columns, seed=seed)
    shape = (rows, columns)
    case = make_case([Check(metric="abs", limit=loose)], shape=shape)
    judged = judge_array(case, gemm.expectation, gemm.right)
    made = mutants_by_kind(gemm.expectation, metric="abs")
    for mutant in judged.mutants:
        if mutant.shown_only or mutant.status not in ("accepted", "rejected"):
            continue
        output = rounded(whole(made[mutant.kind], rows * columns).reshape(shape))
        verdict = judge_array(case, gemm.expectation, output).verdict.value
        assert verdict == ("verified" if mutant.status == "accepted" else "refuted"), mutant


def test_a_chunk_in_which_no_mutant_is_wrong_is_not_read() -> None:
    class Unread(Chunk):
        @property
        def reference(self) -> NDArray[Any]:
            raise AssertionError("a large reference would be computed again")

    target = target_of(Expectation(reference=np.ones((4, 8)), error=np.zeros((4, 8))))
    rows = np.array([1])
    mutant = Mutant("one", "one", lambda index: np.zeros(0), rows=rows, width=8)
    trials = Trials([mutant], target, [], (None, None))
    assert trials.reference_chunk(Unread(target, slice(16, 32))) is None
    with pytest.raises(AssertionError, match="computed again"):
        trials.reference_chunk(Unread(target, slice(0, 16)))


@pytest.mark.parametrize("off", [0.0, 1.0])
def test_for_a_verdict_alone_nothing_wrong_is_tried(off: float) -> None:
    values = np.arange(1.0, 17.0).reshape(4, 4)
    expectation = exact_expectation(values, changes={"one less": values - 1})
    case, got = make_case(shape=(4, 4)), rounded(values + off)
    full = judge_array(case, expectation, got)
    brief = judge_array(case, msgspec.structs.replace(expectation, for_verdict=True), got)
    assert (full.mutants != [], full.changes != []) == (True, True)
    assert (brief.mutants, brief.changes) == ([], [])
    assert brief.verdict is full.verdict
    assert [one.text for one in brief.failures] == [one.text for one in full.failures]
