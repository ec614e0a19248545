"""Errors that lean one way, and wrong outputs that are rounded otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support import case_record, judge_array, make_case, settled
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.spec import Buffer
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import round_to
from tokitai_cli.evidence.not_covered import not_covered
from tokitai_cli.judge import Judgement
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.roundings import half_up, truncated

VALUES = np.random.default_rng(2).standard_normal((40, 64))
NARROW = [name for name, form in FORMATS.items() if form.precision < 24]


def chunk_of(dtype: str, values: NDArray[np.float64]) -> Chunk:
    target = Target(name="y", dtype=dtype, shape=values.shape, reference=values.reshape(-1))
    return Chunk(target, slice(0, values.size))


@pytest.mark.parametrize("dtype", NARROW)
def test_truncation_is_the_nearest_number_that_is_not_larger(dtype: str) -> None:
    values = np.concatenate([VALUES.reshape(-1), -VALUES.reshape(-1), [0.0, 1.0, -1.5, 2.0**-30]])
    cut = truncated(chunk_of(dtype, values))
    assert (np.abs(cut) <= np.abs(values)).all()
    assert (round_to(cut, dtype).astype(np.float64) == cut).all()
    nearest = round_to(values, dtype).astype(np.float64)
    inner = np.abs(nearest) <= np.abs(values)
    assert (cut == nearest)[inner].all()
    outer = ~inner
    assert (np.abs(cut) < np.abs(nearest))[outer].all()


@pytest.mark.parametrize(
    ("value", "up"), [(2049.0, 2050.0), (2051.0, 2052.0), (-2049.0, -2050.0), (2050.0, 2050.0),
                      (2049.5, 2050.0), (2048.5, 2048.0), (0.1, float(np.float16(0.1)))],
)  # fmt: skip
def test_halves_go_away_from_zero(value: float, up: float) -> None:
    values = np.array([value])
    assert half_up(chunk_of("float16", values))[0] == up


def judged(got: NDArray[Any], dtype: Any = "float16", rounding: Any = "", **more: Any) -> Judgement:
    """The judgement before a bound that is an ulp in front of the last rounding."""
    case = make_case(shape=got.shape, dtype=dtype, **more)
    buffer = Buffer(dtype=dtype, shape=list(got.shape), rounding=rounding)
    case.variant.outputs["y"] = buffer
    error = 2 * FORMATS[dtype].unit_roundoff * np.abs(VALUES[: got.shape[0]])
    return judge_array(case, Expectation(VALUES[: got.shape[0]], error), got)


def cut(dtype: str, rows: int = 40) -> NDArray[Any]:
    values = VALUES[:rows].reshape(-1)
    return round_to(truncated(chunk_of(dtype, values)), dtype).reshape(rows, -1)


def down(dtype: str) -> NDArray[Any]:
    nearest = round_to(VALUES, dtype)
    above = nearest.astype(np.float64) > VALUES
    lower = np.nextafter(nearest, np.array(-np.inf, nearest.dtype))
    return np.where(above, lower, nearest).astype(nearest.dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_truncation_passes_the_bound_and_is_named(dtype: str) -> None:
    judgement = judged(cut(dtype), dtype)
    assert judgement.verdict is Verdict.VERIFIED
    (output,) = judgement.outputs
    assert output.lean is not None
    assert output.lean.towards == "towards zero"
    assert output.lean.mean == pytest.approx(0.5, abs=0.05)
    record = case_record(make_case(shape=VALUES.shape, dtype=dtype), judgement)
    texts = [one.text for one in not_covered([record])]
    assert any("errors lean towards zero by 0." in text for text in texts)


def test_rounding_down_leans_downwards() -> None:
    (output,) = judged(down("float16")).outputs
    assert output.lean is not None
    assert output.lean.towards == "downwards"


def test_rounding_to_nearest_leans_nowhere() -> None:
    assert judged(round_to(VALUES, "float16")).outputs[0].lean is None


@pytest.mark.parametrize(
    ("rounding", "verdict"), [("", Verdict.VERIFIED), ("nearest-even", Verdict.REFUTED)]
)
def test_truncation_is_refuted_where_the_spec_says_how_to_round(
    rounding: str, verdict: Verdict
) -> None:
    judgement = judged(cut("float16"), rounding=rounding)
    assert judgement.verdict is verdict
    if rounding:
        assert "lean towards zero" in judgement.reason
        assert not judgement.outputs[0].passed
    assert judged(round_to(VALUES, "float16"), rounding=rounding).verdict is Verdict.VERIFIED


def test_few_references_and_inputs_that_are_not_random_say_nothing() -> None:
    assert judged(cut("float16", 12)).outputs[0].lean is None
    assert judged(cut("float16"), profile="constant").outputs[0].lean is None
    single = judged(VALUES.astype(np.float32), "float32")
    assert single.outputs[0].lean is None


def roundings(judgement: Judgement) -> dict[str, str]:
    return {one.kind: one.status for one in judgement.mutants if one.shown_only}


def test_other_roundings_are_among_the_wrong_outputs() -> None:
    right = round_to(VALUES, "float16")
    assert roundings(judged(right)) == {
        "truncated": "accepted", "half-up": "not-eligible", "two-ulp": "rejected",
    }  # fmt: skip
    assert roundings(judged(right, rounding="nearest-even"))["truncated"] == "rejected"
    single = roundings(judged(VALUES.astype(np.float32), "float32"))
    assert single == {"two-ulp": "rejected"}


def test_a_narrow_bound_rejects_them() -> None:
    right = round_to(VALUES, "float16")
    error = 2.0**-24 * np.abs(VALUES)
    case = make_case(shape=VALUES.shape)
    found = roundings(judge_array(case, Expectation(VALUES, error), right))
    assert found == {"truncated": "rejected", "half-up": "not-eligible", "two-ulp": "rejected"}
    case = make_case(shape=VALUES.shape, dtype="float32")
    judgement = judge_array(case, Expectation(VALUES, error), VALUES.astype(np.float32))
    assert roundings(judgement) == {"two-ulp": "rejected"}


def test_halves_are_told_where_the_reference_has_them() -> None:
    values = 2049.0 + 2 * np.arange(64.0).reshape(4, 16)
    case = make_case(shape=values.shape)
    want = Expectation(values, np.zeros(values.shape))
    judgement = judge_array(case, want, round_to(values, "float16"))
    assert roundings(judgement)["half-up"] == "rejected"
    up = round_to(half_up(chunk_of("float16", values)), "float16")
    assert judge_array(case, want, up.reshape(values.shape)).verdict is Verdict.REFUTED


def test_no_verdict_hangs_on_them() -> None:
    (record,) = settled((make_case(shape=VALUES.shape), judged(round_to(VALUES, "float16"))))
    assert record.verdict is Verdict.VERIFIED


def test_a_spec_says_it_of_narrow_floats_alone(tmp_path: Path) -> None:
    from tests.oracles.formula.test_oracle import spec_in
    from tokitai_cli.core.errors import SpecError
    from tokitai_cli.spec import load

    path = spec_in(tmp_path, "[{metric: bound}]")
    text = path.read_text()
    path.write_text(
        text.replace("y: {dtype: float32,", "y: {dtype: float32, rounding: nearest-even,")
    )
    with pytest.raises(SpecError, match="narrower than float32 have `rounding`"):
        load(path)
