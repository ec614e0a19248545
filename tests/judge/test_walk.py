"""The walk over chunks: the same record whatever the number of threads."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support import judge_array, make_case
from tokitai_cli.core import parallel, workers
from tokitai_cli.core.model.expectation import Expectation, Replay
from tokitai_cli.core.model.spec import Check
from tokitai_cli.core.numerics import round_to
from tokitai_cli.judge import element_walk

SHAPE = (61, 4099)  # eight chunks, none of which ends where a row does
CHECKS = (
    Check(metric="bound"),
    Check(metric="abs", limit=0.01),
    Check(metric="ulp", limit=8),
    Check(metric="bias", limit=0.4),
    Check(metric="exact", against="replay"),
)


def drawn(kind: str) -> tuple[Expectation, NDArray[Any], NDArray[Any]]:
    """An expectation and two repetitions: right ones, wrong in many places, with NaN and infinities."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal(SHAPE) * 2.0 ** rng.integers(-18, 4, SHAPE)
    error = np.abs(values) * 1e-4
    noise = error * rng.uniform(-1, 1, SHAPE)
    first = round_to(values + noise, "float16")
    second = first.copy()
    if kind == "wrong":
        first.reshape(-1)[rng.integers(0, first.size, 500)] *= np.float16(1.25)
        second.reshape(-1)[-1] += np.float16(1)
    if kind == "special":
        values.reshape(-1)[::9973] = 1e9
        first.reshape(-1)[5::20011] = np.nan
        first.reshape(-1)[7::30011] = np.inf
    return Expectation(reference=values, error=error), first, second


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("kind", ["right", "wrong", "special"])
def test_evidence_is_the_same_whatever_the_number_of_threads(
    kind: str, forked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(element_walk, "_LARGE", 1)
    monkeypatch.setattr(workers, "_may_fork", lambda: forked)
    expectation, first, second = drawn(kind)
    case = make_case(CHECKS, shape=SHAPE)
    replay = Replay(round_to(expectation.reference, "float16"))
    found = []
    for threads in (1, 2, 3, 16):
        with parallel.sharing(threads):
            judged = judge_array(case, expectation, first, second, replay=replay)
            found.append(msgspec.json.encode(judged))
    assert found == found[:1] * 4
    assert len(judged.failures) > 2 if kind != "right" else judged.outputs[0].checks[0].passed
