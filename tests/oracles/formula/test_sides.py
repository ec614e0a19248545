"""Limits on both sides: roundings go either way, tails are no ones, what is exact stays exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.oracles.formula.test_oracle import answered
from tests.support import errors_of
from tokitai_cli.oracles.formula import Precision, allowing, bounds, erf, known_input, track
from tokitai_cli.oracles.formula.bounds import Bounds, bracketed
from tokitai_cli.oracles.formula.known import NoRuleError
from tokitai_cli.oracles.formula.parts import Parts, rounded
from tokitai_cli.oracles.formula.precision import STEP, TOP, U
from tokitai_cli.oracles.formula.unary import exp as exp_rule
from tokitai_cli.oracles.formula.unary import tanh as tanh_rule

X = np.random.default_rng(3).standard_normal(4000).astype(np.float32)


def test_an_inexact_result_may_be_rounded_either_way() -> None:
    told = bounds(known_input(X) * known_input(X[::-1].copy()))
    inexact = told.error > 0
    for side in (told.error_below, told.error_above):
        assert (side[inexact] >= U * np.abs(told.reference[inexact])).all()
        assert (side <= 1.01 * U * np.abs(told.reference) + STEP).all()


def test_exact_results_have_no_error() -> None:
    whole = np.arange(-50, 50, dtype=np.float32)
    for exact in (known_input(whole) * 3, known_input(whole) + whole, known_input(whole) / 4):
        assert not bounds(exact).error.any()
        assert not bracketed(bounds(exact)).error.any()


@pytest.mark.parametrize("scale", [1.0, 2.0**-140, 2.0**-149, 2.0**127])
@pytest.mark.parametrize("size", [60, 70_000])
def test_both_floats_around_an_inexact_value_are_right(scale: float, size: int) -> None:
    values = np.random.default_rng(5).standard_normal(size) * scale
    values[:4] = np.nan, -np.inf, 0.0, -0.0
    inexact = np.arange(size) % 3 != 0
    error = np.where(inexact, np.abs(values) * 2.0**-60 + 2.0**-1000, 0.0)
    told = bracketed(Bounds(values, error, error, inexact, values, values, None))
    with np.errstate(all="ignore"):
        near = values.astype(np.float32)
        down = np.where(near < values, near, np.nextafter(near, np.float32(-np.inf)))
        up = np.where(near > values, near, np.nextafter(near, np.float32(np.inf)))
        some = inexact & np.isfinite(near) & (near != values)
        below, above = values - down, up - values
    assert some.sum() > size // 2
    np.testing.assert_array_equal(told.error_below, np.where(some, np.fmax(below, error), error))
    np.testing.assert_array_equal(told.error_above, np.where(some, np.fmax(above, error), error))


@pytest.mark.parametrize(
    ("low", "high", "down", "up"),
    [
        (1.0, 1.0, 1 - U, 1 + U),
        (-2.0, 1.0, -2 - 2 * U, 1 + U),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 0.0, 1 + U),
        (STEP, STEP, STEP / 2, 1.5 * STEP),
        (STEP / 4, STEP / 4, 0.0, 0.75 * STEP),
        (-STEP / 4, STEP / 4, -0.75 * STEP, 0.75 * STEP),
        (1.0, TOP, 1 - U, math.inf),
        (-TOP, -TOP / 2, -math.inf, -TOP / 2 * (1 - U)),
        (1.0, math.inf, 1 - U, math.inf),
        (math.inf, math.inf, math.inf, math.inf),
    ],
)
def test_ends_move_outward_by_one_rounding_and_keep_their_sign(
    low: float, high: float, down: float, up: float
) -> None:
    with np.errstate(all="ignore"):
        v = np.array([high])
        part = rounded(Parts(v, np.array([low]), np.array([high])))
    assert part.lo[0] == pytest.approx(down, rel=2**-40, abs=STEP * 2**-20)
    assert part.hi[0] == pytest.approx(up, rel=2**-40, abs=STEP * 2**-20)
    assert part.lo[0] <= down
    assert part.hi[0] >= up
    if low >= 0:
        assert part.lo[0] >= 0


def test_beside_an_exact_argument_a_function_has_its_error() -> None:
    near = track(np.array([0.0, 0.0, 1e-30], np.float32)) + np.array([0, 1, 1]) * track(1e-20)
    told = bounds(np.exp(near))
    assert (told.low[0], told.high[0]) == (1.0, 1.0)
    assert (told.low[1:] < 1 - 4 * U).all()
    about = Parts(np.zeros(1), np.zeros(1), np.full(1, 1e-30))
    part = exp_rule(about)
    assert part.lo[0] < 1 - 4 * U
    assert tanh_rule(about).lo[0] == 0.0


def test_an_end_beyond_float32_is_infinite_whatever_stands_beside_it() -> None:
    v = np.array([np.nan, 2 * TOP, -2 * TOP, 1.0])
    with np.errstate(all="ignore"):
        part = rounded(Parts(v, v.copy(), v.copy()))
    assert part.hi[1] == np.inf
    assert part.lo[2] == -np.inf
    assert np.isfinite(part.hi[3])


@pytest.mark.parametrize(("function", "least"), [(erf, 6.0), (np.tanh, 20.0)])
def test_one_less_a_saturated_function_is_not_exactly_zero(function: Any, least: float) -> None:
    for x in (least, 8.5, 30.0, 60.0):
        for sign in (1.0, -1.0):
            told = bounds(1 - sign * function(known_input(np.array([sign * x], np.float32))))
            exact = math.erfc(x) if function is erf else 2 / (math.exp(2 * min(x, 300)) + 1)
            assert told.low[0] <= 0 <= told.reference[0] <= exact or told.error[0] > 0
            assert told.low[0] <= exact <= told.high[0]


def test_both_floats_around_a_float32_result_pass_and_no_third() -> None:
    quotient = bounds(known_input(X) * np.float32(0.1))
    told = bracketed(quotient)
    near = told.reference.astype(np.float32)
    away = np.where(near < told.reference, np.inf, -np.inf).astype(np.float32)
    other = np.nextafter(near, away).astype(np.float64)
    inexact = near != told.reference
    assert inexact.any()
    for got in (near.astype(np.float64), np.where(inexact, other, near)):
        off = got - told.reference
        assert (off <= told.error_above).all()
        assert (-off <= told.error_below).all()
    third = np.nextafter(near, -away).astype(np.float64) - told.reference
    assert ((third > told.error_above) | (-third > told.error_below)).mean() > 0.9


def test_a_narrow_output_gets_no_ulp_beside_its_own_rounding() -> None:
    def scaled(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": inputs["x"] * 0.3}

    for dtype, most in (("float16", 1.01), ("bfloat16", 1.01), ("float32", 2.01)):
        parts = answered(scaled, {"y": dtype})["y"]
        below, above = errors_of(parts)
        assert (np.maximum(below, above) <= 2 * most * U * np.abs(parts.reference)).all()
        assert (np.minimum(below, above) <= 1.01 * 2 * U * np.abs(parts.reference)).all()


# --- means by updates


def updated(x: Any) -> Any:
    """Mean of each row, one number after the other."""
    mean = np.zeros(x.shape[:-1], np.float32)
    for i in range(x.shape[-1]):
        mean += (x[..., i].astype(np.float32) - mean) / np.float32(i + 1)
    return mean


def outside(got: Any, told: Any) -> Any:
    off = got.astype(np.float64) - told.reference
    return (off > told.error_above) | (-off > told.error_below)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("centre", [0.0, 3.0, 300.0])
def test_means_by_updates_need_the_claim_and_have_a_bound(dtype: str, centre: float) -> None:
    rng = np.random.default_rng(int(centre))
    x = (centre + rng.standard_normal((300, 65))).astype(dtype)
    with allowing(Precision(welford=True)):
        told = bounds(known_input(x).mean(axis=-1))
    assert not outside(updated(x), told).any()
    assert outside(updated(x[:, :-1]), told).mean() > 0.5
    if dtype == "float16":
        assert outside(updated(x), bounds(known_input(x).mean(axis=-1))).any()


def test_means_of_squares_by_updates_have_a_bound() -> None:
    x = np.random.default_rng(5).standard_normal((300, 65)).astype(np.float32)
    with allowing(Precision(welford=True)):
        told = bounds((known_input(x) ** 2).mean(axis=-1))
    assert not outside(updated(x * x), told).any()
    assert outside(updated(x[:, :-1] ** 2), told).mean() > 0.9


def test_a_formula_without_a_mean_has_no_bound_for_updates() -> None:
    def total(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": inputs["x"].sum(axis=-1)}

    with pytest.raises(NoRuleError, match="contains no mean or variance"):
        answered(total, {"y": "float32"}, precision=Precision(welford=True))


def test_a_python_number_keeps_both_sides() -> None:
    told = bounds(track(np.array([1.0], np.float32)) * 0.1)
    assert told.error_below[0] > 0
    assert told.error_above[0] > 0


def test_arrays_of_one_number_without_axes_round_as_others_do() -> None:
    for value in (3.0, 0.0, 2.0**127):
        single, several = (known_input(np.full(shape, value, np.float32)) for shape in ((), (2,)))
        operations: list[Any] = [np.sqrt, np.tanh, lambda x: 1 / (x + 7), lambda x: x * x / 3]
        for operation in operations:
            told, others = (
                bracketed(bounds(operation(single))),
                bracketed(bounds(operation(several))),
            )
            assert np.shape(told.reference) == ()
            assert told.error_below == others.error_below[0]
            assert told.error_above == others.error_above[0]
