"""One operation on several threads, and sums by index by rows: the same bits as in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula import parts, scattered
from tokitai_cli.oracles.formula.bounds import bounds, largest_error
from tokitai_cli.oracles.formula.parts import Parts, exactly
from tokitai_cli.oracles.formula.scattered import Scattered
from tokitai_cli.oracles.formula.tracked import Tracked
from tokitai_cli.oracles.variants.answer import evaluated
from tokitai_cli.oracles.variants.request import FormulaCall, request_of


def correlated(params: Any, inputs: Any, scalars: Any) -> Mapping[str, Any]:
    """Operations of all kinds, and sums over both axes."""
    x = inputs["x"]
    weights = np.exp(x - x.max(axis=0, keepdims=True)) * 0.1
    scaled = np.where(x > 0, weights / weights.sum(axis=0, keepdims=True), np.sqrt(np.abs(x)))
    return {"y": scaled - scaled.sum(axis=1, keepdims=True)}


@pytest.mark.parametrize("special", [False, True])
def test_any_number_of_threads_gives_the_same_bits(
    special: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SHARED", 1 << 10)
    monkeypatch.setattr(parts, "_TOGETHER", 2)
    monkeypatch.setattr(parts, "BLOCK", 1 << 8)
    x = np.random.default_rng(1).standard_normal((300, 70)).astype(np.float16)
    x[:40] = np.float16(0.5)  # blocks without error before such with
    if special:
        x[60:290:50, 3], x[77, 5] = np.nan, np.inf
    call = FormulaCall(correlated, {}, {"x": x}, {})
    request = request_of({"outputs": {"y": "float16"}, "precision": {}, "probable": True}, __file__)
    found = []
    for threads in (1, 2, 5):
        with parallel.sharing(threads):
            answer = evaluated(call, request)["y"]
            found.append({str(part): array.tobytes() for part, array in answer.given()})
    assert found[0] == found[1] == found[2]


def _terms(kind: str, shape: tuple[int, ...]) -> Parts:
    rng = np.random.default_rng(2)
    values = rng.standard_normal(shape).astype(np.float32).astype(np.float64)
    if kind == "infinite":
        values[3, 0, 0], values[5, 1, 1] = np.inf, np.nan
        return exactly(values, np.isnan(values) * np.uint8(2))
    error = np.abs(values) * 2.0**-20
    return Parts(values, values - error, values + error) if kind == "interval" else exactly(values)


@pytest.mark.parametrize("kind", ["point", "interval", "infinite"])
@pytest.mark.parametrize("start", ["zero", "some"])
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_by_index_are_the_same_by_rows(
    kind: str, start: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scattered, "BLOCK", 64)
    monkeypatch.setattr(parts, "SHARED", 1)
    index = np.random.default_rng(3).integers(-30, 30, 90)
    before = np.zeros((30, 4, 5))
    if start == "some":
        before[::3, 1] = 1.5
    acc, terms = exactly(before), _terms(kind, (90, 4, 5))
    with np.errstate(all="ignore"):
        monkeypatch.setattr(scattered, "_WORTH", 1 << 30)
        monkeypatch.setattr(scattered, "_LEAST_ROUND", 1 << 30)
        want = scattered.added_at(acc, index, terms)
        monkeypatch.setattr(scattered, "_WORTH", 1)
        monkeypatch.setattr(scattered, "_LEAST_ROUND", 1)  # as one round what numpy adds one by one
        with parallel.sharing(threads):
            late = scattered.added_at(acc, index, terms)
            assert isinstance(want, Parts)
            assert isinstance(late, Scattered)
            got, sides = late.parts(), bounds(Tracked(late), ends=False)
            largest = largest_error(Tracked(late))
    right = bounds(Tracked(want), ends=False)
    for field in ("reference", "error_below", "error_above", "may_be_nan"):
        np.testing.assert_array_equal(getattr(sides, field), getattr(right, field))
    assert (sides.error_below is sides.error_above) == (right.error_below is right.error_above)
    np.testing.assert_array_equal(largest, right.error)
    np.testing.assert_array_equal(late.v, want.v)
    for one, other in zip(got, want, strict=True):
        assert (None if one is None else one.tobytes()) == (
            None if other is None else other.tobytes()
        )
    assert got.point == want.point
