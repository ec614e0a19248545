"""Elements whose class alone is checked: a case of few others proves nothing of the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles.formula.test_oracle import SUMS, spec_in
from tests.runs import run
from tests.support import errors_of, exact_expectation, judge_array, make_case, rounded, settled
from tokitai_cli.adequacy import advice
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.evidence.not_covered import not_covered
from tokitai_cli.oracles.formula import Precision
from tokitai_cli.oracles.output_parts import ArrayParts
from tokitai_cli.oracles.variants.answer import answer
from tokitai_cli.oracles.variants.request import FormulaCall, Request
from tokitai_cli.spec import load

RAMP = np.arange(1.0, 33.0).reshape(4, 8)


def with_lost(count: int, value: float = np.nan) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """A reference of which the first `count` elements are no numbers, and the right output."""
    reference = RAMP.copy()
    reference.reshape(-1)[:count] = value
    return reference, rounded(reference)


def case_of(count: int, profile: str, value: float = np.nan, **fields: Any) -> Any:
    reference, got = with_lost(count, value)
    case = make_case(shape=(4, 8), profile=profile)
    return case, judge_array(case, exact_expectation(reference, **fields), got)


@pytest.mark.parametrize(
    ("lost", "value", "unjudged"),
    [
        (0, np.nan, 0),
        (16, np.nan, 16),
        (17, np.nan, 17),
        (20, 7e4, 20),  # overflows float16
        (20, -np.inf, 0),  # one value, and no other is right
        (32, np.inf, 32),  # no number at all
    ],
)
def test_elements_that_are_no_numbers_count_as_not_judged(
    lost: int, value: float, unjudged: int
) -> None:
    _, judgement = case_of(lost, "normal", value)
    assert judgement.verdict is Verdict.VERIFIED
    assert judgement.outputs[0].unjudged == unjudged


@pytest.mark.parametrize("field", ["may_be_nan", "unbounded"])
def test_elements_whose_value_is_open_count_as_not_judged(field: str) -> None:
    mask = np.zeros((4, 8), bool)
    mask[1:] = True
    marked: dict[str, Any] = {field: mask}
    _, judgement = case_of(0, "normal", **marked)
    assert judgement.outputs[0].unjudged == 24


def test_few_judged_elements_prove_nothing_and_a_case_that_judges_bears_them() -> None:
    few, many = case_of(17, "uniform"), case_of(2, "normal")
    (alone,) = settled(few)
    assert alone.verdict is Verdict.INCONCLUSIVE
    assert "y: 15 of 32 elements are judged" in alone.reason
    beside, judging = settled(few, many)
    assert (beside.verdict, beside.vacuous) == (Verdict.VERIFIED, True)
    assert "15 of 32" in beside.reason
    assert (judging.verdict, judging.vacuous) == (Verdict.VERIFIED, False)
    texts = [one.text for one in not_covered([beside, judging])]
    assert any(
        "less than half of the elements is judged in 1 case" in text and "15 of 32" in text
        for text in texts
    )


def test_half_of_the_elements_is_enough() -> None:
    (record,) = settled(case_of(16, "normal"))
    assert (record.verdict, record.vacuous) == (Verdict.VERIFIED, False)


def test_a_case_of_another_shape_judges_for_none() -> None:
    case, judgement = case_of(0, "normal")
    other = msgspec.structs.replace(case, shape={"n": 65})
    few, _ = settled(case_of(17, "uniform"), (other, judgement))
    assert few.verdict is Verdict.INCONCLUSIVE


# --- what a formula says


def normalised(params: Any, inputs: Any, scalars: Any) -> Any:
    x = inputs["x"]
    return {"y": x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)}


def parts_of(x: NDArray[Any]) -> ArrayParts:
    asked = FormulaCall(normalised, {}, {"x": x}, {})
    wanted = Request({"y": "float32"}, precision=Precision(), file=__file__)
    return answer(asked, wanted)["y"]


def test_what_an_overflow_on_the_way_leaves_is_no_bound() -> None:
    x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    assert parts_of(x).unbounded is None
    x[2:] *= np.float32(1e25)
    unbounded = parts_of(x).unbounded
    assert unbounded is not None
    assert unbounded[2:].all()
    assert not unbounded[:2].any()


def judged(x: NDArray[Any], got: NDArray[Any]) -> tuple[Case, Any]:
    parts = parts_of(x)
    below, above = errors_of(parts)
    want = Expectation(
        parts.reference,
        np.maximum(below, above),
        error_below=below,
        error_above=above,
        unbounded=parts.unbounded,
    )
    case = make_case(shape=x.shape, dtype="float32")
    return case, judge_array(case, want, got)


def test_zeros_for_rows_whose_squares_overflow_are_no_agreement() -> None:
    x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    x *= np.float32(1e25)
    case, judgement = judged(x, np.zeros_like(x))
    assert judgement.verdict is Verdict.VERIFIED
    (record,) = settled((case, judgement))
    assert record.verdict is Verdict.INCONCLUSIVE
    assert "0 of 240 elements are judged" in record.reason
    wrong = np.full_like(x, 1e3)
    assert judged(x, wrong)[1].verdict is Verdict.REFUTED


OVERFLOWING = """
import numpy as np
def sums(params, inputs, scalars):
    return {"y": np.exp(9 + np.abs(inputs["x"]).mean(axis=-1))}
"""


def test_no_profile_is_proposed_that_overflows_the_output(tmp_path: Path) -> None:
    path = spec_in(tmp_path, "[{metric: bound}]")
    (tmp_path / "formula.py").write_text(OVERFLOWING)
    (tmp_path / "sums.hip").write_text(SUMS.replace("float* y", "_Float16* y"))
    path.write_text(path.read_text().replace("y: {dtype: float32", "y: {dtype: float16"))
    said = [one.text for one in advice.advise(load(path))]
    assert not any("on large the checks reject" in text for text in said), said


def test_a_run_of_few_judged_elements_claims_no_agreement(tmp_path: Path) -> None:
    path = spec_in(tmp_path, "[{metric: bound}]")
    text = path.read_text().replace(
        "normal: {draw: normal}", "normal: {draw: {kind: normal, scale: 3e38}}"
    )
    path.write_text(text)
    evidence = run(path, tmp_path)
    verdicts = {case.variant: case.verdict for case in evidence.cases}
    assert verdicts["right"] is Verdict.INCONCLUSIVE
    (claim,) = [one for one in evidence.claims if one.name == "numerical-agreement"]
    assert not claim.supported
