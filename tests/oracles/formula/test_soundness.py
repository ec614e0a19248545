"""No permitted float32 evaluation of a formula leaves its bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles.formula.careless import Careless
from tests.oracles.formula.formulas import COLUMNS, FORMULAS, ROWS, Formula, kinds, random_tree
from tokitai_cli.oracles.formula import Bounds, bounds, known_input

OVERFLOW = (2.0 - 2.0**-24) * 2.0**127


def beyond(got: NDArray[np.float64], told: Bounds) -> NDArray[np.bool_]:
    """Which values the bounds refuse."""
    with np.errstate(all="ignore"):
        off = got - told.reference
        fine = (off <= told.error_above) & (-off <= told.error_below)
        fine |= np.isnan(told.reference) & np.isnan(got)
        fine |= np.isinf(told.reference) & (got == told.reference)
        fine |= np.isnan(got) & told.may_be_nan
        fine |= np.isinf(told.error) & np.isfinite(told.reference)
        fine |= np.isinf(got) & (np.where(got > 0, told.high, -told.low) >= OVERFLOW)
    return ~fine


def refused(
    formula: Formula, x: NDArray[Any], w: NDArray[Any], rng: np.random.Generator, times: int
) -> str:
    """The first value of a permitted evaluation that the bounds refuse, in words, or nothing."""
    told = bounds(formula(known_input(x), known_input(w)))
    for _ in range(times):
        with np.errstate(all="ignore"):
            got = formula(Careless(x, rng), Careless(w, rng)).values
        got = np.where(
            np.abs(got) >= OVERFLOW, np.copysign(np.inf, got), got
        )  # as an output holds it
        wrong = beyond(got, told)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            interval = f"[{told.low[at]!r}, {told.high[at]!r}]"
            return f"{at}: {got[at]!r}, not in {interval}, reference {told.reference[at]!r}"
    return ""


@pytest.mark.parametrize("name", FORMULAS)
def test_permitted_results_are_within_the_bounds(name: str) -> None:
    rng = np.random.default_rng(len(name))
    w = rng.standard_normal(COLUMNS).astype(np.float32)
    for kind, x in kinds(rng).items():
        assert not (said := refused(FORMULAS[name], x, w, rng, times=3)), f"{kind}: {said}"


def test_a_largest_of_nan_for_sure_and_of_nan_perhaps_is_the_other_number() -> None:
    def formula(x: Any, w: Any) -> Any:
        return np.maximum(np.log(x), np.maximum(x, w)).mean(axis=-1, keepdims=True)

    for seed in range(20):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
        assert not (said := refused(formula, kinds(rng)["special"], w, rng, times=3)), said


def _random_trees(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    inputs = list(kinds(rng).items())
    for number in range(count):
        tree = random_tree(rng, int(rng.integers(1, 5)))
        kind, x = inputs[number % len(inputs)]
        said = refused(tree.formula, x, w, rng, times=2)
        assert not said, f"{tree.text} on {kind}: {said}"


def test_random_expressions_are_within_the_bounds() -> None:
    _random_trees(seed=1, count=600)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_thousands_of_random_expressions_are_within_the_bounds(seed: int) -> None:
    _random_trees(seed, count=2000)
