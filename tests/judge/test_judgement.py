"""The comparison: structure, numbers, metrics, patterns, repetitions and verdicts of one case."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

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
    make_result,
    mutant_status,
    rounded,
)
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.errors import OracleError
from tokitai_cli.core.fills import held
from tokitai_cli.core.model.case import GuardDamage, InputDamage, Role
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.numerics import (
    integer_distance,
    ratio,
    round_to,
    rounded_bound,
    spacing,
    ulp_at,
)
from tokitai_cli.judge import judge
from tokitai_cli.judge.checks import target as target_module
from tokitai_cli.judge.checks.heat import HeatTally
from tokitai_cli.judge.checks.output_checks import WORST_ELEMENTS
from tokitai_cli.judge.checks.target import Target
from tokitai_cli.judge.pattern import pattern_of

F16 = FORMATS["float16"]
BOUND = Check(metric="bound")
EXACT = Check(metric="exact")


def ramp(*shape: int) -> NDArray[np.float64]:
    """Values that differ from element to element and are exact in float16."""
    return (np.arange(math.prod(shape), dtype=np.float64) - 3).reshape(shape)


# --- values


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_ulp_equals_the_spacing_of_the_format(name: str) -> None:
    form = FORMATS[name]
    values = np.concatenate(
        [
            np.array([0.0, -0.0, 1.0, -1.5, 65504.0, 2.0**-14, 2.0**-24, 1e-30, 5e-324, 3e38]),
            2.0 ** np.arange(-160.0, 128.0),
            -np.nextafter(2.0 ** np.arange(-30.0, 16.0), 0),
            np.array([np.nan, np.inf, -np.inf]),
        ]
    )
    np.testing.assert_array_equal(ulp_at(values, form), spacing(values, form))


@pytest.mark.parametrize(
    ("dtype", "got", "want", "distance"),
    [
        ("int8", -128, 127, 255.0),
        ("uint8", 0, 255, 255.0),
        ("int32", -(2**31), 2**31 - 1, 2.0**32 - 1),
        ("int64", 2**62, 2**62 + 1, 1.0),
        ("int64", -(2**63), 2**63 - 1, 2.0**64),
        ("uint64", 0, 2**53 + 1, 2.0**53 + 2),
        ("uint64", 2**64 - 1, 0, 2.0**64),
        ("int64", 5, 5, 0.0),
    ],
)
def test_integer_distance_is_exact_and_rounds_up(
    dtype: str, got: int, want: int, distance: float
) -> None:
    left, right = as_dtype([got], dtype), as_dtype([want], dtype)
    assert integer_distance(left, right)[0] == distance
    assert integer_distance(right, left)[0] == distance


def test_ratio_of_nothing_is_zero_and_of_the_unknown_infinite() -> None:
    error = np.array([0.0, 1.0, 0.0, 1.0, 3.0])
    unit = np.array([0.0, 0.0, np.nan, np.nan, 2.0])
    np.testing.assert_array_equal(ratio(error, unit), [0.0, np.inf, 0.0, np.inf, 1.5])


# --- dtype, shape, elements


def test_a_right_output_is_verified() -> None:
    judgement = judge_array(make_case(), exact_expectation(ramp(4, 8)), rounded(ramp(4, 8)))
    assert (judgement.verdict, judgement.reason, judgement.stage) == (
        Verdict.VERIFIED,
        "",
        Stage.COMPARE,
    )
    assert judgement.outputs[0].passed
    assert judgement.repeats.bitwise_equal
    assert judgement.repeats.sentinels == ["drawn words", "their complement"]


def test_the_share_of_the_allowance_leaves_the_last_rounding_out() -> None:
    """A right result needs none of it; one that is off by half of the error needs half of it."""
    reference = 1 + ramp(4, 8) / 64
    expectation = Expectation(reference=reference, error=np.full((4, 8), 0.25))
    for off, least, most in ((0.0, 0.0, 0.0), (0.125, 0.48, 0.52), (0.5, 1.9, 2.1)):
        judgement = judge_array(make_case(), expectation, rounded(reference + off))
        metrics = judgement.outputs[0].metrics
        assert metrics is not None
        assert metrics.allowance is not None
        assert least <= float(metrics.allowance) <= most


@pytest.mark.parametrize(
    ("got", "kind"),
    [
        (np.zeros((4, 8), np.float32), "dtype"),
        (np.zeros((4, 1), np.float16), "shape"),
        (np.zeros((32,), np.float16), "shape"),
        (np.zeros((1, 4, 8), np.float16), "shape"),
    ],
)
def test_dtype_and_shape_must_be_equal_without_broadcasting(got: NDArray[Any], kind: str) -> None:
    judgement = judge_array(make_case(), exact_expectation(np.zeros((4, 8))), got)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.outputs[0].structure[0].kind == kind
    assert kind in judgement.reason


def test_an_output_that_is_not_given_back_is_refuted() -> None:
    result = make_result({"other": np.zeros((4, 8), np.float16)})
    judgement = judge(make_case(), {"y": exact_expectation(ramp(4, 8))}, {}, result)
    assert judgement.verdict is Verdict.REFUTED
    assert "y in repetition 0 was not returned" in judgement.reason


@pytest.mark.parametrize(
    ("expected", "verdict"), [(False, Verdict.INCONCLUSIVE), (True, Verdict.VERIFIED)]
)
def test_zero_elements_pass_only_where_that_is_expected(expected: bool, verdict: Verdict) -> None:
    case = make_case(shape=(0, 8), expect_empty=expected)
    judgement = judge_array(case, exact_expectation(np.zeros((0, 8))), np.zeros((0, 8), np.float16))
    assert judgement.verdict is verdict
    assert judgement.outputs[0].passed is expected
    assert ("no elements" in judgement.reason) is not expected


def test_an_expected_emptiness_that_is_not_there_is_no_pass() -> None:
    case = make_case(expect_empty=True)
    judgement = judge_array(case, exact_expectation(ramp(4, 8)), rounded(ramp(4, 8)))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "empty output was expected" in judgement.reason


def test_an_output_without_a_reference_is_inconclusive() -> None:
    judgement = judge(make_case(), {}, {}, make_result(rounded(ramp(4, 8))))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "no reference of y" in judgement.reason


def test_one_element() -> None:
    case = make_case(shape=(1, 1))
    assert (
        judge_array(case, exact_expectation([[2.0]]), rounded([[2.0]])).verdict is Verdict.VERIFIED
    )
    assert (
        judge_array(case, exact_expectation([[2.0]]), rounded([[2.5]])).verdict is Verdict.REFUTED
    )


def test_a_scalar_output() -> None:
    case = make_case(shape=())
    assert judge_array(case, exact_expectation(2.0), rounded(2.0)).verdict is Verdict.VERIFIED
    judgement = judge_array(case, exact_expectation(2.0), rounded(4.0))
    assert judgement.reason.startswith("y[]: got 4, want 2, error 2 exceeds the bound 0 (bound)")


@pytest.mark.parametrize(
    "expectation",
    [
        Expectation(reference=np.zeros((8, 4))),
        Expectation(reference=np.zeros((4, 8)), error=np.full((4, 8), -1.0)),
    ],
    ids=["shape", "negative error"],
)
def test_an_oracle_that_does_not_fit_is_an_oracle_error(expectation: Expectation) -> None:
    with pytest.raises(OracleError, match="y"):
        judge_array(make_case(), expectation, np.zeros((4, 8), np.float16))


def test_a_replay_that_does_not_fit_is_an_oracle_error() -> None:
    replay = Replay(np.zeros((2, 8), np.float32), np.array([0, 1]))
    expectation = exact_expectation(np.zeros((4, 8)))
    with pytest.raises(OracleError, match="replay of y is float32"):
        judge_array(make_case(), expectation, np.zeros((4, 8), np.float16), replay=replay)


# --- never-written elements


def filled(values: NDArray[Any], fill: int, where: Any) -> NDArray[Any]:
    """`values` of output `y` with what was there before where the kernel did not write."""
    bits = values.copy().view(f"u{values.itemsize}")
    bits[where] = held("y", fill, 0, values.nbytes).view(bits.dtype).reshape(bits.shape)[where]
    return bits.view(values.dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_case_2_elements_never_written_are_told(dtype: str) -> None:
    right = round_to(np.linspace(0.5, 1.5, 1536), dtype)
    values = right.astype(np.float64)
    tail = slice(1472, None)
    judgement = judge_array(
        make_case(shape=(1536,), dtype=dtype),
        exact_expectation(values),
        filled(right, 0, tail),
        filled(right, 1, tail),
    )
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.reason == (
        "y: 64 elements never written, first index [1472]: "
        "the last 64 of 1536 elements, from flat index 1472"
    )
    assert judgement.outputs[0].structure[0].count == 64
    assert judgement.outputs[0].pattern is not None
    assert judgement.outputs[0].pattern.kind == "tail"
    # What was written is judged all the same, and was right.
    assert judgement.outputs[0].checks[0].exceeding == 0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "bool"])
def test_integers_never_written_are_told_though_any_value_is_valid(dtype: str) -> None:
    right = as_dtype([0, 1] * 8, dtype)
    judgement = judge_array(
        make_case(shape=(16,), dtype=dtype),
        exact_expectation(right),
        filled(right, 0, -1),
        filled(right, 1, -1),
    )
    assert judgement.reason == (
        "y: 1 element never written, first index [15]: the last of 16 elements"
    )


def test_a_right_value_that_equals_one_fill_is_no_fault() -> None:
    right = held("y", 0, 0, 16).view(np.int16)
    judgement = judge_array(make_case(shape=(8,), dtype="int16"), exact_expectation(right), right)
    assert judgement.verdict is Verdict.VERIFIED


@pytest.mark.parametrize("number", [0, 1])
def test_a_value_that_equals_one_fill_is_no_fault_where_bits_differ(number: int) -> None:
    values = held("y", number, 0, 64).view(np.float16).astype(np.float64)
    values[~np.isfinite(values)] = 1.0
    repetitions = [rounded(values), rounded(values)]
    written = int(np.argmax(values == 1.0))
    repetitions[1 - number][written] += 2.0**-10
    judgement = judge_array(
        make_case(shape=(32,), deterministic=False),
        Expectation(values, np.where(values == 1.0, 0.1, 0.0)),
        *repetitions,
    )
    assert judgement.verdict is Verdict.VERIFIED, judgement.reason


@pytest.mark.parametrize("settings", [{"init": "zero"}, {"role": Role.INOUT}])
def test_only_sentinel_outputs_are_searched_for_fills(settings: dict[str, Any]) -> None:
    right = rounded([[1.0, 2.0]])
    judgement = judge_array(
        make_case(shape=(1, 2), deterministic=False, **settings),
        exact_expectation([[1.0, 2.0]]),
        filled(right, 0, (0, 0)),
        filled(right, 1, (0, 0)),
    )
    assert judgement.reason.startswith("y[0, 0]: got ")


def test_elements_that_the_oracle_lets_be_are_excused() -> None:
    values = ramp(4, 8)
    right, rows = rounded(values), np.zeros((4, 8), dtype=bool)
    rows[2] = True
    expectation = exact_expectation(values, may_be_unwritten=rows)
    unwritten = (filled(right, 0, 2), filled(right, 1, 2))
    assert judge_array(make_case(), expectation, *unwritten).verdict is Verdict.VERIFIED
    # Written all the same, it must be right.
    wrong = right.copy()
    wrong[2, 3] = 99
    assert judge_array(make_case(), expectation, wrong).verdict is Verdict.REFUTED
    # A neighbour is not excused.
    more = (filled(right, 0, (slice(2, 4))), filled(right, 1, slice(2, 4)))
    judgement = judge_array(make_case(), expectation, *more)
    assert judgement.reason == (
        "y: 8 elements never written, first index [3, 0]: "
        "the last 8 of 32 elements, from flat index 24 (row 3, column 0)"
    )


def test_an_inout_that_stays_is_compared_with_the_reference() -> None:
    values = ramp(4, 8)
    mask = np.ones((4, 8), dtype=bool)
    case = make_case(role=Role.INOUT)
    expectation = exact_expectation(values, may_be_unwritten=mask)
    assert judge_array(case, expectation, rounded(values)).verdict is Verdict.VERIFIED
    assert judge_array(case, expectation, rounded(values + 1)).verdict is Verdict.REFUTED


def test_a_zeroed_output_says_that_it_cannot_tell() -> None:
    case = make_case(init="zero")
    judgement = judge_array(case, exact_expectation(ramp(4, 8)), rounded(ramp(4, 8)))
    assert "starts as zero" in judgement.outputs[0].checks[0].note


def test_one_fill_alone_says_that_it_cannot_tell() -> None:
    right = rounded(ramp(4, 8))
    judgement = judge_array(make_case(), exact_expectation(ramp(4, 8)), right, right, fills=(0, 0))
    assert "complementary" in judgement.outputs[0].checks[0].note


# --- guards and inputs


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            GuardDamage("y", 0, 64, 2, "after"),
            (
                "y[32]: out-of-bounds write past the end of y, which has 32 elements: at "
                "least 1 element changed",
            ),
        ),
        (
            GuardDamage("y", 1, -2, 2, "before"),
            ("y[-1]: out-of-bounds write before y, which has 32 elements", "repetition 1"),
        ),
        (
            GuardDamage("x", 0, 256, 1, "after"),
            (
                "x[64]: out-of-bounds write past the end of x, which has 64 elements: at "
                "least 1 element",
            ),
        ),
    ],
)
def test_damaged_guards_refute(damage: GuardDamage, words: tuple[str, ...]) -> None:
    values = ramp(4, 8)
    judgement = judge_array(
        make_case(), exact_expectation(values), rounded(values), guards=(damage,)
    )
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.findings[0].kind == "out-of-bounds-write"
    assert judgement.findings[0].kernel == "op_kernel"
    assert all(word in judgement.reason for word in words), judgement.reason
    assert judgement.outputs[0].passed


def test_each_side_of_a_guard_is_found_once() -> None:
    guards = tuple(GuardDamage("y", repetition, 64, 2, "after") for repetition in range(3))
    values = ramp(4, 8)
    judgement = judge_array(make_case(), exact_expectation(values), rounded(values), guards=guards)
    assert len(judgement.findings) == 1


def test_a_changed_input_refutes() -> None:
    values = ramp(4, 8)
    judgement = judge_array(
        make_case(),
        exact_expectation(values),
        rounded(values),
        inputs_changed=(InputDamage("x", 24, 8),),
    )
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.findings[0].kind == "input-changed"
    assert (
        judgement.reason
        == "x[1, 2]: input changed while the kernel ran: at least 2 elements changed"
    )


# --- non-finite structure

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("want", "error", "got", "kind"),
    [
        (1.0, 0.0, NAN, "nan-unexpected"),
        (INF, 0.0, NAN, "nan-unexpected"),
        (70000.0, 1.0, NAN, "nan-unexpected"),
        (65519.0, 10.0, NAN, "nan-unexpected"),
        (NAN, 0.0, 1.0, "nan-missing"),
        (NAN, 0.0, INF, "nan-missing"),
        (3.0, 0.0, INF, "inf-unexpected"),
        (65504.0, 15.9, INF, "inf-unexpected"),
        (65535.0, 10.0, 65504.0, "inf-missing"),
        (-INF, 0.0, -65504.0, "inf-missing"),
        (INF, 0.0, -INF, "inf-sign"),
        (-70000.0, 1.0, INF, "inf-sign"),
        (65519.0, 10.0, -INF, "inf-sign"),
    ],
)
def test_non_finite_structure_refutes(want: float, error: float, got: float, kind: str) -> None:
    values = ramp(4, 8)
    values[1, 2] = want
    errors = np.zeros((4, 8))
    errors[1, 2] = error
    wrong = rounded(values)
    wrong[1, 2] = got
    judgement = judge_array(make_case(), Expectation(values, errors), wrong)
    assert judgement.verdict is Verdict.REFUTED
    assert [one.kind for one in judgement.outputs[0].structure] == [kind]
    assert "[1, 2]" in judgement.reason
    assert judgement.outputs[0].structure[0].first == [1, 2]


@pytest.mark.parametrize(
    ("want", "error", "got"),
    [
        (NAN, 0.0, NAN),
        (INF, 0.0, INF),
        (-70000.0, 10.0, -INF),
        (65519.0, 10.0, INF),
        (65519.0, 10.0, 65504.0),
        # The largest sum that must not overflow (65504 + 16 - 2^-24).
        (65520.0 - 2.0**-24, 0.0, 65504.0),
        (65520.0, 0.0, INF),
        # With an error beyond the threshold the sign is open as well.
        (10.0, 1e5, -INF),
        # An infinite error: the oracle knows nothing.
        (10.0, INF, NAN),
    ],
)
def test_what_a_right_kernel_may_give_passes(want: float, error: float, got: float) -> None:
    values = ramp(4, 8)
    values[1, 2] = want
    errors = np.zeros((4, 8))
    errors[1, 2] = error
    right = rounded(values)
    right[1, 2] = got
    judgement = judge_array(make_case(), Expectation(values, errors), right)
    assert judgement.verdict is Verdict.VERIFIED, judgement.reason


def test_infinity_where_either_may_be_still_needs_its_numbers() -> None:
    values, errors = ramp(4, 8), np.zeros((4, 8))
    values[0, 0], errors[0, 0] = 65519.0, 10.0
    wrong = rounded(values)
    wrong[0, 0] = 60000.0
    judgement = judge_array(make_case(), Expectation(values, errors), wrong)
    assert judgement.reason.startswith("y[0, 0]: got 60000, want 65519, error 5.52e+03 exceeds")


def test_an_element_that_the_oracle_knows_nothing_of_passes_exact_mode() -> None:
    case = make_case([EXACT], shape=(2,))
    expectation = Expectation(np.array([1.0, 2.0]), np.array([INF, 0.0]))
    assert judge_array(case, expectation, rounded([7, 2])).verdict is Verdict.VERIFIED
    assert judge_array(case, expectation, rounded([7, 3])).verdict is Verdict.REFUTED


@pytest.mark.parametrize(("got", "ulps"), [(65504.0, 26 / 32), (65440.0, 90 / 32)])
def test_a_number_where_infinity_was_due_as_well_has_its_distance_in_ulp(
    got: float, ulps: float
) -> None:
    case = make_case([Check(metric="ulp", limit=1)], shape=(1,))
    expectation = Expectation(np.array([65530.0]), np.array([20.0]))
    record = judge_array(case, expectation, rounded([got])).outputs[0].checks[0]
    assert (record.value, record.passed) == (ulps, ulps <= 1)


def test_nan_that_a_maximum_drops_is_refuted_case_10() -> None:
    expectation = exact_expectation([[1.0, 3.0], [NAN, 2.0]])
    judgement = judge_array(make_case(shape=(2, 2)), expectation, rounded([[1, 3], [3, 2]]))
    assert judgement.reason == (
        "y: a number where the reference is NaN: got 3, want nan at [1, 0]; 1 of 4 elements"
    )


@pytest.mark.parametrize("payload", [0x7E00, 0xFE00, 0x7C01, 0x7FFF])
def test_nan_is_compared_by_class_in_every_mode(payload: int) -> None:
    expectation = exact_expectation([[1.0, NAN]])
    got = rounded([[1.0, 0.0]])
    got.view(np.uint16)[0, 1] = payload
    case = make_case([EXACT, BOUND, Check(metric="exact", against="replay")], shape=(1, 2))
    replay = Replay(rounded([[1.0, NAN]]))
    other = rounded([[1.0, NAN]])
    judgement = judge_array(case, expectation, got, other, replay=replay)
    assert judgement.verdict is Verdict.VERIFIED, judgement.reason
    assert judgement.repeats.bitwise_equal


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("float16", 0x7C01),
        ("bfloat16", 0x7F81),
        ("float32", 0x7F800001),
        ("float64", 0x7FF << 52 | 1),
    ],
)
def test_a_signalling_nan_is_a_nan_without_a_warning(dtype: str, bits: int) -> None:
    got = round_to(np.ones(2), dtype)
    got.view(np.dtype(f"u{got.itemsize}"))[1] = bits
    for want in (NAN, 1.0):
        case = make_case([BOUND, EXACT], shape=(2,), dtype=dtype)
        verdict = judge_array(case, exact_expectation([1.0, want]), got).verdict
        assert verdict is (Verdict.VERIFIED if np.isnan(want) else Verdict.REFUTED)


# --- numbers


@pytest.mark.parametrize(
    ("metric", "limit", "passes"),
    [
        ("abs", 0.5, True),
        ("abs", 0.499, False),
        ("rel", 0.125, True),
        ("rel", 0.1249, False),
        ("ulp", 128.0, True),
        ("ulp", 127.0, False),
        ("bound", 0.5 / 0.75, True),
        ("bound", 0.66, False),
        ("exact", 1.0, False),
        ("bias", 4.0, True),
        ("bias", 3.9, False),
    ],
)
def test_each_metric_passes_up_to_its_limit(metric: Any, limit: float, passes: bool) -> None:
    # One of 32 elements is off by 0.5 at 4, where a float16 ulp is 2^-8: 128 ulp. E = e + u (4 + e).
    values = np.ones((4, 8))
    values[2, 1] = 4.0
    errors = np.zeros((4, 8))
    errors[2, 1] = (0.75 - 4 * 2.0**-11) / (1 + 2.0**-11)
    wrong = rounded(values)
    wrong[2, 1] = 4.5
    case = make_case([Check(metric=metric, limit=limit)])
    judgement = judge_array(case, Expectation(values, errors), wrong)
    record = judgement.outputs[0].checks[0]
    assert record.passed is passes
    assert judgement.verdict is (Verdict.VERIFIED if passes else Verdict.REFUTED)
    assert record.elements == 32
    if metric != "bias":
        assert record.exceeding == (0 if passes else 1)
        assert record.worst[0].index == [2, 1]
        assert (record.worst[0].got, record.worst[0].want) == (4.5, 4.0)
        assert record.worst[0].error == 0.5
        assert record.worst[0].got_bits == "0x4480"
        assert record.worst[0].want_hex == (4.0).hex()
    if not passes and metric != "bias":
        assert judgement.reason.startswith("y[2, 1]: got 4.5, want 4, ")
        assert judgement.reason.endswith(f"({metric}); 1 of 32 elements")


def test_the_limit_of_an_element_is_absolute() -> None:
    values = np.full((1, 4), 8.0)
    wrong = rounded([[8, 8, 9, 8]])
    limits = {"abs": 0.25, "rel": 0.25 * 8, "ulp": 0.25 * 2.0**-7}
    for metric, limit in limits.items():
        case = make_case([Check(metric=metric, limit=0.25)], shape=(1, 4))  # type: ignore[arg-type]
        judgement = judge_array(case, exact_expectation(values), wrong)
        assert judgement.outputs[0].checks[0].worst[0].limit == limit


def test_zero_over_zero_passes_and_anything_over_zero_does_not() -> None:
    values = np.zeros((2, 2))
    case = make_case([Check(metric="rel", limit=1e-3)], shape=(2, 2))
    assert judge_array(case, exact_expectation(values), rounded(values)).verdict is Verdict.VERIFIED
    wrong = rounded(values)
    wrong[0, 0] = 2.0**-24
    judgement = judge_array(case, exact_expectation(values), wrong)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.outputs[0].checks[0].value == "inf"


def test_an_absolute_and_a_relative_tolerance_together() -> None:
    values = np.array([[0.0, 1.0, -100.0]])
    case = make_case([Check(metric="allclose", abs=0.01, rel=0.1)], shape=(1, 3), dtype="float32")
    within, beyond = (
        rounded([[0.009, 1.109, -90.0]], "float32"),
        rounded([[0, 1, -89.9]], "float32"),
    )
    assert judge_array(case, exact_expectation(values), within).verdict is Verdict.VERIFIED
    judgement = judge_array(case, exact_expectation(values), beyond)
    assert judgement.reason == (
        "y[0, 2]: got -89.9000015, want -100, error 10.1 exceeds the limit 10 (allclose); "
        "1 of 3 elements: the last of 3 elements"
    )
    (check,) = judgement.outputs[0].checks
    assert (check.limit, check.note) == (1.0, "abs 0.01, rel 0.1")
    loose = make_case([Check(metric="allclose", abs=60.0, rel=0.5)], shape=(1, 3), dtype="float32")
    zeros = judge_array(loose, exact_expectation(values), rounded(values, "float32"))
    assert "the limit 120 alone would pass an output of zeros" in zeros.outputs[0].checks[0].note


def test_elements_that_may_be_nan_are_numbers_within_the_bound_or_nan() -> None:
    values, mask = np.array([[1.0, 2.0, 3.0]]), np.array([[True, False, False]])
    free = exact_expectation(values, may_be_nan=mask)
    metrics: tuple[Any, ...] = ("bound", "exact")
    for metric in metrics:
        case = make_case([Check(metric=metric)], shape=(1, 3))
        for got, verdict in (
            ([1, 2, 3], Verdict.VERIFIED),
            ([NAN, 2, 3], Verdict.VERIFIED),
            ([1, NAN, 3], Verdict.REFUTED),
            ([1.5, 2, 3], Verdict.REFUTED),
            ([INF, 2, 3], Verdict.REFUTED),
        ):
            assert judge_array(case, free, rounded([got])).verdict is verdict, (metric, got)
        assert mutant_status(judge_array(case, free, rounded(values)))["one-nan"] == "rejected"


def test_integers_may_have_several_right_values_or_a_tolerance() -> None:
    values = np.array([[3, 7, 9]], dtype=np.int32)
    ties = np.array([[[4, 7, 9]], [[3, 7, 1]]], dtype=np.int32)
    exact, near = (
        make_case([Check(metric="exact")], shape=(1, 3), dtype="int32"),
        make_case([Check(metric="bound")], shape=(1, 3), dtype="int32"),
    )
    chosen = exact_expectation(values, allowed=ties)
    within = exact_expectation(values, error=np.array([[1.0, 0.0, 2.0]]))
    flat = make_case([Check(metric="abs", limit=1)], shape=(1, 3), dtype="int32")
    for case, expectation, got, verdict in (
        (exact, chosen, [4, 7, 1], Verdict.VERIFIED),
        (exact, chosen, [4, 7, 4], Verdict.REFUTED),
        (near, chosen, [3, 7, 1], Verdict.VERIFIED),
        (near, within, [2, 7, 11], Verdict.VERIFIED),
        (near, within, [2, 6, 11], Verdict.REFUTED),
        (flat, exact_expectation(values), [4, 6, 9], Verdict.VERIFIED),
        (flat, exact_expectation(values), [5, 6, 9], Verdict.REFUTED),
    ):
        judgement = judge_array(case, expectation, as_dtype(got, "int32").reshape(1, 3))
        assert judgement.verdict is verdict, got


def test_the_reason_of_a_bound() -> None:
    values = ramp(64, 64) % 7
    values[3, 7] = 2.25
    wrong = rounded(values)
    wrong[3, 7] = 1.5
    errors = np.zeros((64, 64))
    errors[3, 7] = 0.0001
    judgement = judge_array(make_case(shape=(64, 64)), Expectation(values, errors), wrong)
    assert judgement.reason == (
        "y[3, 7]: got 1.5, want 2.25, error 0.75 exceeds the bound 0.0012 (bound); "
        "1 of 4096 elements"
    )


@pytest.mark.parametrize(("dtype", "step"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_where_e_is_zero_a_tie_goes_to_the_even_neighbour(dtype: str, step: float) -> None:
    values = np.array([[1 + step / 2, -1 - 3 * step / 2, 1 + step, 4.0]])
    case = make_case([Check(metric="bound", limit=15.0)], shape=(1, 4), dtype=dtype)
    right, away = rounded(values, dtype), rounded([[1 + step, -1 - 2 * step, 1 + step, 4.0]], dtype)
    assert judge_array(case, exact_expectation(values), right).verdict is Verdict.VERIFIED
    judgement = judge_array(case, exact_expectation(values), away)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.reason == (
        f"y[0, 0]: got {1 + step:.9g}, want 1, error {step:.3g} exceeds the bound 0 (bound); "
        "1 of 4 elements"
    )
    # With the least error in front of the rounding, either neighbour is right.
    open_tie = Expectation(values, np.full((1, 4), 2.0**-60))
    assert judge_array(case, open_tie, away).verdict is Verdict.VERIFIED


def test_a_tie_is_open_where_results_may_be_flushed_or_err_to_that_side() -> None:
    values = np.array([[1 + 2.0**-11, 2.0**-24 * 1.5]])
    case = make_case(shape=(1, 2), flush_to_zero=True)
    flushed = rounded([[1.0, 0.0]])
    assert judge_array(case, exact_expectation(values), flushed).verdict is Verdict.VERIFIED
    above, below = np.array([[2.0**-60, 0.0]]), np.zeros((1, 2))
    for error_below, error_above, verdict in (
        (below, above, Verdict.VERIFIED),
        (above, below, Verdict.REFUTED),
    ):
        sided = Expectation(values, above, error_below=error_below, error_above=error_above)
        assert judge_array(case, sided, rounded([[1 + 2.0**-10, 0.0]])).verdict is verdict


def test_worst_elements_are_the_largest_in_order_and_at_most_eight() -> None:
    values = np.ones((8, 8))
    wrong = values.copy()
    wrong.reshape(-1)[:20] += np.arange(20) / 4
    wrong[7, 0] = wrong[7, 1] = 6.0
    case = make_case([Check(metric="abs", limit=0.1)], shape=(8, 8))
    record = judge_array(case, exact_expectation(values), rounded(wrong)).outputs[0].checks[0]
    assert len(record.worst) == WORST_ELEMENTS
    assert [element.index for element in record.worst[:3]] == [[7, 0], [7, 1], [2, 3]]
    errors = [element.error for element in record.worst]
    assert errors == sorted(errors, reverse=True)
    assert record.exceeding == 21


def test_of_equal_errors_the_first_elements_are_shown() -> None:
    case = make_case([Check(metric="abs", limit=0.1)], shape=(8, 8))
    judgement = judge_array(case, exact_expectation(np.ones((8, 8))), rounded(np.zeros((8, 8))))
    indices = [element.index for element in judgement.outputs[0].checks[0].worst]
    assert indices == [[0, column] for column in range(8)]


def test_exact_mode_tells_the_zeros_apart_and_the_others_do_not_case_10() -> None:
    values = np.array([[0.0, 1.0, -0.0]])
    got = rounded([[-0.0, 1.0, 0.0]])
    metrics = ["bound", "abs", "rel", "ulp"]
    case = make_case([Check(metric=metric, limit=1.0) for metric in metrics], shape=(1, 3))  # type: ignore[arg-type]
    assert judge_array(case, exact_expectation(values), got).verdict is Verdict.VERIFIED
    judgement = judge_array(make_case([EXACT], shape=(1, 3)), exact_expectation(values), got)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.reason == (
        "y[0, 0]: got 0, want 0, bits 0x8000 are not those of the reference (exact); "
        "2 of 3 elements: all zeros"
    )
    record = judgement.outputs[0].checks[0]
    assert (record.value, record.limit, record.exceeding) == (2.0, 0.0, 2)
    assert "-0.0 and +0.0 differ" in record.note


def test_exact_compares_with_the_rounded_reference_whatever_its_limit() -> None:
    values = np.array([[1.0 + 2.0**-13, 0.1]])
    case = make_case([Check(metric="exact", limit=100.0)], shape=(1, 2))
    assert judge_array(case, exact_expectation(values), rounded(values)).verdict is Verdict.VERIFIED
    wrong = rounded(values)
    wrong.view(np.uint16)[0, 1] += 1
    assert judge_array(case, exact_expectation(values), wrong).verdict is Verdict.REFUTED


@pytest.mark.parametrize("at", [0.125, 2048.0])
def test_one_ulp_under_a_finer_limit_is_warned_about_case_14(at: float) -> None:
    values = np.full((2, 2), at)
    got = rounded(values)
    got.view(np.uint16)[0, 0] += 1
    ulp = float(spacing(np.array(at), F16))
    expectation = exact_expectation(values)
    by_ulp = make_case([Check(metric="ulp", limit=1)], shape=(2, 2))
    assert judge_array(by_ulp, expectation, got).verdict is Verdict.VERIFIED
    for check in (
        Check(metric="abs", limit=0.8 * ulp),
        Check(metric="rel", limit=0.8 * ulp / at),
    ):
        record = (
            judge_array(make_case([check], shape=(2, 2)), expectation, got).outputs[0].checks[0]
        )
        assert not record.passed
        assert "finer than one float16 ulp" in record.note
    for check in (Check(metric="abs", limit=ulp), Check(metric="rel", limit=ulp / at)):
        record = (
            judge_array(make_case([check], shape=(2, 2)), expectation, got).outputs[0].checks[0]
        )
        assert record.passed
        assert record.note == ""


def test_contraction_passes_under_a_bound_that_knows_it_case_15() -> None:
    a, c = 1 + 2.0**-12, -(1 + 2.0**-11)
    fused, unfused = np.full(4, a * a + c), np.zeros(4)
    error = np.full(4, 2 * 2.0**-24 * (a * a + abs(c)))
    for values in (fused, unfused):
        case = make_case([BOUND], shape=(4,), dtype="float32")
        got = values.astype(np.float32)
        assert judge_array(case, Expectation(fused, error), got).verdict is Verdict.VERIFIED
    case = make_case([EXACT], shape=(4,), dtype="float32")
    assert judge_array(case, Expectation(fused, error), unfused.astype(np.float32)).verdict is (
        Verdict.REFUTED
    )


def test_rows_that_are_wrong_are_never_hidden_case_13() -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal((64, 64))
    wrong = rounded(values)
    rows = [3, 5, 17, 18, 19, 20, 40, 50, 61]
    wrong[rows] = 0
    judgement = judge_array(make_case(shape=(64, 64)), exact_expectation(values), wrong)
    assert judgement.verdict is Verdict.REFUTED
    output = judgement.outputs[0]
    assert output.pattern is not None
    assert output.pattern.kind == "rows"
    assert output.pattern.detail == "whole rows 3, 5, 17 to 20, 40, 50, 61 (9 of 64)"
    assert output.metrics is not None
    assert output.metrics.worst_row in rows
    assert output.checks[0].exceeding == 9 * 64
    assert "rows 3, 5" in judgement.reason


def test_a_sum_that_overflows_and_its_mean_case_16() -> None:
    case = make_case([BOUND, EXACT], shape=(3,))
    expectation = exact_expectation([3000.0, 70000.0, 1.0])
    assert judge_array(case, expectation, rounded([3000, INF, 1])).verdict is Verdict.VERIFIED
    judgement = judge_array(case, expectation, rounded([2048, INF, 1]))
    assert judgement.reason.startswith("y[0]: got 2048, want 3000, error 952 exceeds the bound 0")


def test_bfloat16_is_judged_without_a_promotion_error() -> None:
    values = np.linspace(-3, 3, 32).reshape(4, 8)
    case = make_case([BOUND, EXACT, Check(metric="ulp", limit=1)], dtype="bfloat16")
    right = round_to(values, "bfloat16")
    assert judge_array(case, exact_expectation(values), right).verdict is Verdict.VERIFIED
    wrong = right.copy()
    wrong.view(np.uint16)[1, 1] += 2
    judgement = judge_array(case, exact_expectation(values), wrong)
    assert judgement.outputs[0].checks[2].value == 2.0


# --- checks: which hold, which judge


@pytest.mark.parametrize(
    ("profile", "judges"),
    [
        ("normal", True),
        ("uniform", True),
        ("cancelling", True),
        ("constant", False),
        ("biased", False),
        ("special", False),
    ],
)
def test_the_probabilistic_bound_refutes_on_random_profiles_only(
    profile: str, judges: bool
) -> None:
    values = np.linspace(1, 2, 32).reshape(4, 8)
    errors = np.full((4, 8), 0.1)
    expectation = Expectation(values, errors, error_probable=0.25 * errors)
    got = rounded(values + 0.05)
    case = make_case([BOUND, Check(metric="bound-prob")], profile=profile)
    judgement = judge_array(case, expectation, got)
    bound, probable = judgement.outputs[0].checks
    assert bound.passed
    assert (probable.judges, probable.passed) == (judges, False)
    assert judgement.verdict is (Verdict.REFUTED if judges else Verdict.VERIFIED)
    assert (f"the profile {profile} is not random" in probable.note) is not judges


def test_a_check_holds_for_its_output_and_profiles_only() -> None:
    outputs = {"y": ("float16", (4,)), "z": ("float16", (4,))}
    checks = [
        BOUND,
        Check(metric="ulp", limit=1, output="z"),
        Check(metric="abs", limit=1e-3, profiles=["special"]),
    ]
    values = exact_expectation([1.0, 2.0, 3.0, 5.0])
    got = rounded([1, 2, 3, 5])
    case = make_case(checks, outputs=outputs)
    judgement = judge(case, {"y": values, "z": values}, {}, make_result({"y": got, "z": got}))
    assert [[check.metric for check in output.checks] for output in judgement.outputs] == [
        ["bound"],
        ["bound", "ulp"],
    ]
    wrong = make_result({"y": got, "z": rounded([1, 2, 3, 6])})
    judgement = judge(case, {"y": values, "z": values}, {}, wrong)
    assert judgement.reason.startswith("z[3]")
    assert [output.passed for output in judgement.outputs] == [True, False]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (Check(metric="abs", limit=1, profiles=["special"]), "no check judges it"),
        (Check(metric="exact", against="replay"), "no replay of this output"),
        (BOUND, "the oracle gives no bound"),
        (Check(metric="bound-prob"), "no check judges it"),
    ],
)
def test_what_cannot_be_judged_is_inconclusive_and_never_verified(check: Check, words: str) -> None:
    values = ramp(4, 8)
    judgement = judge_array(make_case([check]), Expectation(values), rounded(values))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert words in judgement.reason
    assert not any(record.judges for record in judgement.outputs[0].checks)


# --- replay


def test_a_sampled_replay_judges_its_rows_and_says_how_many() -> None:
    gemm = make_gemm()
    # Wide enough that one float16 ulp is within the bound, and only the replay can see it.
    expectation = msgspec.structs.replace(gemm.expectation, error=np.full((16, 16), 0.1))
    right, rows = gemm.right, np.array([1, 4, 9])
    case = make_case([BOUND, Check(metric="exact", against="replay")], shape=right.shape)
    replay = Replay(right[rows], rows)
    judgement = judge_array(case, expectation, right, replay=replay)
    assert judgement.verdict is Verdict.VERIFIED
    assert judgement.replay_fraction == 3 / 16
    assert judgement.outputs[0].checks[1].elements == 3 * 16
    assert "3 of 16 rows replayed" in judgement.outputs[0].checks[1].note

    wrong = right.copy()
    wrong.view(np.uint16)[9, 5] ^= 1
    judgement = judge_array(case, expectation, wrong, replay=replay)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.reason.startswith("y[9, 5]: got ")
    assert "(exact against the replay); 1 of 48 elements" in judgement.reason

    outside = right.copy()
    outside.view(np.uint16)[8, 5] ^= 1
    assert judge_array(case, expectation, outside, replay=replay).verdict is Verdict.VERIFIED


@pytest.mark.parametrize(("got", "want"), [(NAN, 1.0), (INF, 1.0), (1.0, INF), (INF, -INF)])
def test_a_class_that_the_replay_lacks_is_beyond_every_limit(got: float, want: float) -> None:
    # The oracle knows nothing of this element, the replay does.
    errors = np.array([INF, 0.0])
    case = make_case([Check(metric="ulp", limit=1e30, against="replay")], shape=(2,))
    replay = Replay(rounded([want, 2.0]))
    judgement = judge_array(
        case, Expectation(np.array([1.0, 2.0]), errors), rounded([got, 2.0]), replay=replay
    )
    assert judgement.verdict is Verdict.REFUTED
    assert "(ulp against the replay)" in judgement.reason


def test_a_whole_replay_covers_all() -> None:
    gemm = make_gemm()
    case = make_case([BOUND], shape=gemm.right.shape)
    replay = Replay(gemm.right)
    assert judge_array(case, gemm.expectation, gemm.right, replay=replay).replay_fraction == 1.0
    assert judge_array(case, gemm.expectation, gemm.right).replay_fraction is None


# --- integers and bools


@pytest.mark.parametrize("metric", ["bound", "exact", "abs", "ulp"])
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int64", [2**62, -(2**63), 2**63 - 1, 5]),
        ("uint64", [2**64 - 1, 2**53 + 1, 0, 7]),
        ("int8", [-128, 127, 0, 1]),
        ("bool", [True, False, True, True]),
    ],
)
def test_integers_are_exact(dtype: str, values: list[int], metric: Any) -> None:
    right = as_dtype(values, dtype)
    case = make_case([Check(metric=metric, limit=0.0)], shape=(4,), dtype=dtype)
    assert judge_array(case, exact_expectation(right), right).verdict is Verdict.VERIFIED
    wrong = right.copy()
    wrong.view(np.uint8)[0] ^= 1
    judgement = judge_array(case, exact_expectation(right), wrong)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.outputs[0].checks[0].exceeding == 1
    assert judgement.outputs[0].checks[0].worst[0].error == 1.0


def test_an_integer_is_within_an_absolute_limit_exactly() -> None:
    right = as_dtype([2**62, 0, 3], "int64")
    case = make_case([Check(metric="abs", limit=1)], shape=(3,), dtype="int64")
    assert judge_array(case, exact_expectation(right), right + 1).verdict is Verdict.VERIFIED
    assert judge_array(case, exact_expectation(right), right + 2).verdict is Verdict.REFUTED


def test_a_byte_that_is_no_bool_is_refuted() -> None:
    got = as_dtype([True, False], "bool")
    got.view(np.uint8)[0] = 2
    case = make_case([EXACT], shape=(2,), dtype="bool")
    assert judge_array(case, exact_expectation(np.array([True, False])), got).verdict is (
        Verdict.REFUTED
    )


def test_a_float_reference_of_an_integer_output_must_be_integral() -> None:
    case = make_case([EXACT], shape=(2,), dtype="int32")
    got = as_dtype([1, 2], "int32")
    whole = Expectation(np.array([1.0, 2.0]))
    assert judge_array(case, whole, got).verdict is Verdict.VERIFIED
    for bad in ([1.5, 2.0], [NAN, 2.0], [1e20, 2.0]):
        with pytest.raises(OracleError, match="does not fit int32"):
            judge_array(case, Expectation(np.array(bad)), got)


# --- metrics against naive formulas


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("chunk", [7, 64, 1 << 15])
def test_metrics_equal_the_naive_ones(
    dtype: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_module, "CHUNK", chunk)
    monkeypatch.setattr(target_module.Target.chunks, "__defaults__", (chunk,))
    random = np.random.default_rng(3)
    form = FORMATS[dtype]
    values = random.standard_normal((9, 11)) * 2.0 ** random.integers(-20, 8, (9, 11))
    values[4, 4] = 0.0
    errors = np.abs(values) * 2.0**-9 + 2.0**-20
    noise = random.standard_normal((9, 11)) * errors * random.integers(0, 2, (9, 11))
    got_native = round_to(values + noise, dtype)
    case = make_case([BOUND], shape=(9, 11), dtype=dtype)
    expectation = Expectation(values, errors, error_probable=0.5 * errors)
    judged = judge_array(case, expectation, got_native).outputs[0].metrics
    assert judged is not None

    got, want = got_native.astype(np.float64), round_to(values, dtype).astype(np.float64)
    error, ulp = np.abs(got - values), spacing(want, form)
    ulps = np.abs(got - want) / ulp
    bound = rounded_bound(errors, values, form)
    with np.errstate(all="ignore"):
        relative = np.where(error == 0, 0.0, error / np.abs(values))
    assert judged.max_abs == error.max()
    assert judged.max_rel == ("inf" if np.isinf(relative.max()) else relative.max())
    assert judged.max_ulp == ulps.max()
    assert judged.over_bound == (error / bound).max()
    assert judged.over_bound_probable == (error / rounded_bound(0.5 * errors, values, form)).max()
    assert judged.bias_ulp == pytest.approx(((got - values) / ulp).mean())
    assert judged.bias_outward_ulp == pytest.approx(((got - values) * np.sign(want) / ulp).mean())
    assert judged.exact_elements == (got == want).sum()
    assert judged.worst_row == int((error / bound).sum(axis=1).argmax())
    histogram = {"0": int((ulps == 0).sum())}
    end, below = 1.0, 0.0
    while below < ulps.max():
        count = int(((ulps > below) & (ulps <= end)).sum())
        if count:
            histogram[format(end, ".17g")] = count
        below, end = end, 2 * end
    assert judged.ulp_histogram == histogram
    over = error / bound
    counts = [(float(end), count) for end, count in judged.bound_histogram.items()]
    assert counts == [
        (end, int(((over > (end / 2 if end > 2.0**-20 else 0)) & (over <= end)).sum()))
        for end, _ in counts
    ]
    assert sum(count for _, count in counts) == (over > 0).sum()


@pytest.mark.parametrize("shape", [(1,), (40,), (3, 1), (5, 7), (17, 33), (2, 9, 20), (64, 16)])
@pytest.mark.parametrize("step", [1, 5, 64, 5000])
def test_the_heat_map_is_the_largest_of_each_cell(shape: tuple[int, ...], step: int) -> None:
    """Whatever the chunks are; cells are as even as the extents allow."""
    rows, columns = math.prod(shape[:-1]), shape[-1]
    exponents = np.random.default_rng(1).integers(-15, 16, rows * columns).tolist()
    values = np.array([2.0**one if one > -14 else 0.0 for one in exponents])
    tally = HeatTally(cast("Target", SimpleNamespace(shape=shape)))
    for start in range(0, values.size, step):
        tally.add(tally.measured(start, values[start : start + step]))
    found = tally.record("ulp")
    if not values.any():
        assert found is None
        return
    assert found is not None
    height, width = min(rows, 16), min(columns, 16)
    want = [["."] * width for _ in range(height)]
    for at, one in enumerate(values):
        down, across = at // columns * height // rows, at % columns * width // columns
        letter = "." if one == 0 else chr(ord("m") + min(max(int(math.log2(one)), -12), 13))
        want[down][across] = max(want[down][across], letter)
    assert found.levels == ["".join(row) for row in want]


def test_truncation_shows_in_the_outward_bias_alone() -> None:
    random = np.random.default_rng(5)
    values = random.uniform(1, 2, 4000) * np.where(np.arange(4000) % 2, 1, -1)
    truncated = np.trunc(values * 1024) / 1024
    case = make_case([Check(metric="bias", limit=0.1)], shape=(4000,))
    judgement = judge_array(case, exact_expectation(values), rounded(truncated))
    metrics = judgement.outputs[0].metrics
    assert metrics is not None
    assert abs(float(metrics.bias_ulp)) < 0.05
    assert float(metrics.bias_outward_ulp) == pytest.approx(-0.5, abs=0.05)
    assert judgement.outputs[0].checks[0].value == abs(float(metrics.bias_outward_ulp))
    assert "ulp towards zero exceeds the limit 0.1 (bias)" in judgement.reason


def test_elements_without_numbers_do_not_enter_the_metrics() -> None:
    expectation = exact_expectation([1.0, NAN, INF, 70000.0])
    metrics = (
        judge_array(make_case(shape=(4,)), expectation, rounded([1.5, NAN, INF, INF]))
        .outputs[0]
        .metrics
    )
    assert metrics is not None
    assert (metrics.max_abs, metrics.max_ulp, metrics.exact_elements) == (0.5, 512.0, 0)
    assert metrics.bias_ulp == 512.0


# --- patterns


def failing(shape: tuple[int, ...], *where: Any) -> NDArray[np.bool_]:
    mask = np.zeros(shape, dtype=bool)
    for place in where:
        mask[place] = True
    return mask


@pytest.mark.parametrize(
    ("mask", "kind", "words"),
    [
        (failing((8, 8), ...), "every-element", "all 64"),
        (failing((1536,), slice(1472, None)), "tail", "the last 64 of 1536 elements"),
        (failing((8, 8), slice(6, None)), "tail", "(row 6, column 0)"),
        (failing((8, 8), 2), "rows", "whole row 2 (1 of 8)"),
        (failing((40, 24), [3, 4, 5, 30]), "rows", "whole rows 3 to 5, 30 (4 of 40)"),
        (failing((24, 40), (slice(None), [3, 30])), "columns", "whole columns 3, 30 (2 of 40)"),
        (
            failing((12, 80), (slice(None), slice(64, None))),
            "tile-edges",
            "tile 64: the partial last tile of columns (80 = 1 x 64 + 16)",
        ),
        (
            failing((12, 64), (slice(None), slice(15, None, 16))),
            "tile-edges",
            "tile 16: the last of each tile's columns, every 16th column from column 15",
        ),
        (
            failing((64, 12), slice(0, None, 32)),
            "tile-edges",
            "tile 32: the first of each tile's rows",
        ),
        (failing((8, 8), (0, 1), (5, 6)), "scattered", "2 of 64 elements, in 2 of 8 rows"),
        (failing((4, 4, 8), (1, 2)), "rows", "whole row 6 (1 of 16)"),
        (failing((16,), 3, 9), "scattered", "2 of 16"),
        (
            failing((40, 24), (slice(3, 20, 5), slice(6, None))),
            "rows",
            "rows 3, 8, 13, 18, every 5th row from row 3 (4 of 40)",
        ),
        (
            failing((64,), slice(1, None, 2)),
            "strided",
            "every 2nd element from element 1 (32 of 64 elements)",
        ),
    ],
)
def test_patterns(mask: NDArray[np.bool_], kind: str, words: str) -> None:
    pattern = pattern_of(mask.reshape(-1), mask.shape)
    assert pattern is not None
    assert pattern.kind == kind
    assert words in pattern.detail


@pytest.mark.parametrize(
    ("got", "values"),
    [(0.0, "all zeros"), (-0.0, "all zeros"), (math.nan, "all NaN"), (2.5, "all 2.5"), (None, "")],
)
def test_a_pattern_says_what_all_failing_elements_hold(got: float | None, values: str) -> None:
    mask = failing((8, 8), 2)
    array = np.where(mask, np.arange(64).reshape(8, 8) if got is None else got, 7.0)
    pattern = pattern_of(mask.reshape(-1), mask.shape, array.astype(np.float16).reshape(-1))
    assert pattern is not None
    assert pattern.values == values


def test_no_failure_has_no_pattern() -> None:
    assert pattern_of(failing((4, 4)).reshape(-1), (4, 4)) is None


# --- repetitions


def test_different_bits_refute_a_deterministic_variant_only() -> None:
    values, errors = ramp(4, 8), np.full((4, 8), 0.1)
    one, two = rounded(values), rounded(values)
    two.view(np.uint16)[1, 3] += 1
    judgement = judge_array(make_case(), Expectation(values, errors), one, two)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.reason == (
        "y has different bits in repetition 1 than in repetition 0: 1 of 32 elements, first [1, 3]: "
        "0x4800 and 0x4801; the repetitions started with different memory contents: the "
        "result depends on what was there before, or on an order that the device chose; the "
        "spec says deterministic"
    )
    assert judgement.findings[0].kind == "nondeterministic"
    orders = ("natural", "reversed")
    judgement = judge_array(make_case(), Expectation(values, errors), one, two, schedules=orders)
    assert "depends on what was in memory before, or on the order (a race, or atomics)" in (
        judgement.reason
    )
    same = judge_array(
        make_case(), Expectation(values, errors), one, two, schedules=orders, fills=(0, 0)
    )
    assert (
        "in different orders of blocks and threads, and the result depends on the order: a race, or"
        in (same.reason)
    )
    assert "memory" not in same.reason
    judgement = judge_array(make_case(deterministic=False), Expectation(values, errors), one, two)
    assert judgement.verdict is Verdict.VERIFIED
    assert judgement.repeats.differing_outputs == ["y"]
    assert not judgement.repeats.bitwise_equal


def test_zeros_of_both_signs_are_different_bits() -> None:
    values = exact_expectation(np.zeros((4, 8)))
    judgement = judge_array(
        make_case(), values, rounded(np.zeros((4, 8))), rounded(-np.zeros((4, 8)))
    )
    assert judgement.repeats.differing_outputs == ["y"]


def test_every_repetition_is_judged_on_its_own() -> None:
    values = ramp(4, 8)
    right, wrong = rounded(values), rounded(values)
    wrong[3, 7] = 77
    case = make_case(deterministic=False)
    judgement = judge_array(case, exact_expectation(values), right, right, wrong)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.reason.startswith("y[3, 7]: got 77, want 28")
    assert judgement.reason.endswith(", in repetition 2")
    assert judgement.outputs[0].checks[0].note == "repetition 2"
    assert judgement.repeats.repetitions == 3


@pytest.mark.parametrize(("top", "finite"), [(1.0, 32), (1e30, 1)])
def test_elements_whose_right_value_is_finite_are_counted(top: float, finite: int) -> None:
    values = ramp(4, 8) * top
    with np.errstate(over="ignore"):
        got = round_to(values, "float16")
    judgement = judge_array(make_case(), exact_expectation(values), got, got)
    assert judgement.outputs[0].finite == finite


def test_schedules_are_recorded() -> None:
    values = ramp(4, 8)
    same, other = rounded(values), rounded(values)
    other[0, 1] = 9
    names = ("natural", "reverse", "seed 7")
    judgement = judge_array(
        make_case(), exact_expectation(values), same, same, other, schedules=names
    )
    assert judgement.repeats.schedules == list(names)
    assert judgement.repeats.differing_schedules == ["natural", "seed 7"]
    judgement = judge_array(make_case(), exact_expectation(values), same, same, schedules=names[:2])
    assert judgement.repeats.differing_schedules == []
    judgement = judge_array(make_case(), exact_expectation(values), same, other)
    assert judgement.repeats.differing_schedules == []


def test_the_first_step_that_fails_gives_the_reason() -> None:
    values = ramp(1, 8)
    values[0, 0] = 9.0
    wrong = rounded(values)
    wrong[0, 0], wrong[0, 1] = NAN, 55
    guards = (GuardDamage("y", 0, 16, 2, "after"),)
    case, expectation = make_case(shape=(1, 8)), exact_expectation(values)
    one, two = filled(wrong, 0, (0, 7)), filled(wrong, 1, (0, 7))
    reasons = [
        judge_array(case, expectation, one, two, guards=guards).reason,
        judge_array(case, expectation, wrong, guards=guards).reason,
        judge_array(case, expectation, wrong).reason,
    ]
    assert "never written" in reasons[0]
    assert "out-of-bounds write past the end of y" in reasons[1]
    assert "NaN where the reference is a number" in reasons[2]


# --- properties of the comparison


@given(
    seed=st.integers(0, 2**32 - 1),
    place=st.integers(0, 255),
    beyond=st.floats(1.01, 1e3),
    upwards=st.booleans(),
)
@hypothesis_settings(max_examples=60, deadline=None)
def test_any_element_displaced_beyond_its_bound_refutes(
    seed: int, place: int, beyond: float, upwards: bool
) -> None:
    gemm = make_gemm(seed=seed)
    expectation = gemm.expectation
    assert expectation.error is not None
    case = make_case(shape=(16, 16))
    right = gemm.right
    assert judge_array(case, expectation, right).verdict is Verdict.VERIFIED
    want = float(expectation.reference.reshape(-1)[place])
    bound = float(rounded_bound(expectation.error, expectation.reference, F16).reshape(-1)[place])
    ulp = float(spacing(np.array(want), F16))
    wrong = right.copy()
    shift = beyond * bound + ulp  # one ulp more, for the rounding of the displaced value itself
    wrong.reshape(-1)[place] = want + shift if upwards else want - shift
    judgement = judge_array(case, expectation, wrong)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.outputs[0].checks[0].exceeding == 1
    assert judgement.outputs[0].checks[0].worst[0].index == [place // 16, place % 16]


@given(
    bits=st.lists(st.integers(0, 0xFFFF), min_size=12, max_size=12),
    flip=st.integers(1, 0xFFFF),
    place=st.integers(0, 11),
)
@hypothesis_settings(max_examples=100, deadline=None)
def test_exact_mode_is_bitwise_with_nan_by_class(bits: list[int], flip: int, place: int) -> None:
    want = np.array(bits, dtype=np.uint16).view(np.float16)
    got = want.copy()
    got.view(np.uint16)[place] ^= flip
    case = make_case([EXACT], shape=(12,))
    with np.errstate(invalid="ignore"):
        expectation = exact_expectation(want.astype(np.float64))
    same = bool(np.isnan(want[place]) and np.isnan(got[place]))
    assert judge_array(case, expectation, want).verdict is Verdict.VERIFIED
    judgement = judge_array(case, expectation, got)
    assert judgement.verdict is (Verdict.VERIFIED if same else Verdict.REFUTED)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2))
@hypothesis_settings(max_examples=100, deadline=None)
def test_integer_distance_equals_pythons(pair: list[int]) -> None:
    left, right = as_dtype(pair[:1], "int64"), as_dtype(pair[1:], "int64")
    distance, exact = int(integer_distance(left, right)[0]), abs(pair[0] - pair[1])
    assert exact <= distance <= exact + max(1, exact >> 52)


def test_an_error_of_minus_zero_refutes_what_zero_refutes() -> None:
    reference = np.array([-1.0, 2.0, -3.0, 4.0] * 8).reshape(4, 8)
    expectation = Expectation(reference=reference, error=0 * reference)
    case = make_case([Check(metric="bound")], dtype="float32")
    assert (
        judge_array(case, expectation, np.abs(reference).astype(np.float32)).verdict
        is Verdict.REFUTED
    )
