"""Sums of other dtypes, intermediates in float64, places, whole numbers, what a formula may not ask."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from tests.oracles.formula.test_oracle import answered
from tests.support import errors_of
from tokitai_cli.oracles.formula import NoRuleError, allowing, bounds, known_input, loosen, stored
from tokitai_cli.oracles.formula.precision import Precision, U

# Of tracked arrays numpy's stubs know nothing.
np: Any = numpy
RNG = np.random.default_rng(4)
X = RNG.standard_normal((50, 65)).astype(np.float32)


def inside(got: Any, told: Any) -> Any:
    off = np.asarray(got, np.float64) - told.reference
    return (off <= told.error_above) & (-off <= told.error_below)


def in_half(x: Any) -> Any:
    total = np.zeros(x.shape[:-1], np.float16)
    for i in range(x.shape[-1]):
        total = (total + x[..., i]).astype(np.float16)
    return total


# --- sums


def test_a_sum_keeps_its_partial_sums_in_the_dtype_that_it_is_given() -> None:
    x = known_input(X)
    single, half = bounds(x.sum(axis=-1)), bounds(x.sum(axis=-1, dtype=np.float16))
    wide = bounds(stored(x.sum(axis=-1, dtype=np.float64)))
    assert inside(in_half(X), half).all()
    assert not inside(in_half(X), single).all()
    exact = X.astype(np.float64).sum(axis=-1).astype(np.float32)
    assert inside(exact, wide).all()
    assert not inside(np.cumsum(X, axis=-1, dtype=np.float32)[:, -1], wide).all()
    assert (wide.error <= 1.01 * U * np.abs(wide.reference) + 1e-12).all()


def test_only_that_sum_is_kept_so() -> None:
    x = known_input(X)
    both = bounds(x.sum(axis=-1, dtype=np.float16) * 0 + x.sum(axis=-1))
    assert (both.error < 1e-3).all()


def test_a_sum_in_what_is_no_float_is_refused_by_name() -> None:
    with pytest.raises(NoRuleError, match="a sum in int32"):
        known_input(X).sum(axis=-1, dtype=np.int32)


@pytest.mark.parametrize("function", ["sum", "mean"])
def test_a_numpy_function_takes_the_dtype_too(function: str) -> None:
    x = known_input(X)
    called = getattr(np, function)(x, axis=-1, dtype=np.float16)
    method = getattr(x, function)(axis=-1, dtype=np.float16)
    assert (bounds(called).error == bounds(method).error).all()
    assert (bounds(called).error > bounds(getattr(x, function)(axis=-1)).error).all()


# --- float64 on the way


def rms(params: Any, inputs: Any, scalars: Any) -> Any:
    x = inputs["x"] * 1e25
    wide = stored(x, "float64")
    scale = 1 / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + 1e-5)
    return {"y": x * stored(scale)}


def test_squares_in_float64_do_not_overflow() -> None:
    parts = answered(rms, {"y": "float32"})["y"]
    assert parts.unbounded is None
    x = np.random.default_rng(0).standard_normal((64, 200)).astype(np.float32) * np.float32(1e25)
    wide = x.astype(np.float64)
    scale = (1 / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + 1e-5)).astype(np.float32)
    off = (x * scale).astype(np.float64) - parts.reference
    below, above = errors_of(parts)
    assert ((off <= above) & (-off <= below)).all()
    assert (np.abs(parts.reference) > np.maximum(above, below)).all()


def test_what_comes_of_float64_is_float64_until_it_is_rounded() -> None:
    x = known_input(X)
    wide = np.exp(stored(x, "float64") * 0.25).reshape(-1)[::2]
    assert wide.double
    assert not wide.astype(np.float32).double
    assert not (x * 2).double
    assert (bounds(wide).error < 1e-14).all()
    told = bounds(wide.astype(np.float32))
    assert (told.error <= 1.01 * U * told.reference).all()
    assert inside(
        np.exp(X.reshape(-1)[::2].astype(np.float64) * 0.25).astype(np.float32), told
    ).all()
    assert (told.error_below >= 0.99 * U * told.reference).all()


def test_an_output_of_float64_work_is_rounded_once() -> None:
    def formula(params: Any, inputs: Any, scalars: Any) -> Any:
        return {"y": stored(inputs["x"], "float64") * 0.1 + 1}

    parts = answered(formula, {"y": "float32"})["y"]
    error, _ = errors_of(parts)
    assert (error <= 2 * U * np.abs(parts.reference)).all()
    assert (error > 0).any()


def test_a_cast_to_float64_has_no_known_effect() -> None:
    with pytest.raises(NoRuleError, match=r"stored\(x, \"float64\"\)"):
        known_input(X).astype(np.float64)
    with pytest.raises(NoRuleError, match="astype"):
        known_input(X).astype(np.complex64)
    narrow = known_input(X).astype(np.float16)
    assert bounds(narrow).error.max() > 2**-13


def test_an_array_of_float32_takes_float64_in_rounded() -> None:
    x = known_input(X)
    held = np.zeros_like(x)
    held[...] = stored(x, "float64") * 0.1
    told = bounds(held)
    assert not held.double
    assert (told.error_below >= 0.99 * U * np.abs(told.reference)).all()


# --- loosen


def test_roundings_of_terms_count_against_their_magnitudes() -> None:
    values = np.array([[1.0, -1.0, 1e-3]], np.float32)
    total = known_input(values).sum(axis=-1)
    assert bounds(loosen(total, 1)).error[0] >= bounds(total).error[0] + 2 * U
    product = known_input(values) @ known_input(np.ones((3, 1), np.float32))
    assert bounds(loosen(product, 1)).error[0, 0] >= bounds(product).error[0, 0] + 2 * U


# --- places and whole numbers


def test_elements_at_the_places_of_the_largest() -> None:
    x = known_input(X)
    best = np.argmax(x, axis=1)
    taken = np.take_along_axis(x, best[:, None], axis=1)[:, 0]
    assert (bounds(taken).reference == X.max(axis=1)).all()
    assert not bounds(taken).error.any()


def test_an_open_place_leaves_all_that_it_may_be() -> None:
    x = np.array([[1.0, 2.0, 2.0 + 2**-22, 0.0]], np.float32)
    scores = known_input(x) * 0.1 + 0.2
    places = np.argmax(scores, axis=1)[:, None]
    taken = bounds(
        np.take_along_axis(known_input(np.array([[5.0, 6.0, 7.0, 8.0]], np.float32)), places, 1)
    )
    assert taken.low[0, 0] == 6.0
    assert taken.high[0, 0] == 7.0


def test_places_in_rising_order_are_those_of_numbers_without_error() -> None:
    x = known_input(np.array([[2.0, 1.0, 2.0, 0.5]], np.float32))
    assert np.argsort(-x, axis=1).tolist() == [[0, 2, 1, 3]]
    assert (2 * x).argsort().tolist() == [[3, 1, 0, 2]]
    with pytest.raises(NoRuleError, match="argsort of numbers that rounding may change"):
        np.argsort(x * np.float32(0.3) + 0.1)


def test_integer_division_is_exact_and_of_whole_numbers() -> None:
    whole = known_input(np.array([7.0, -7.0, 8.0], np.float32))
    assert (bounds(whole // 3).reference == [2, -3, 2]).all()
    assert (bounds(whole % 3).reference == [1, 2, 2]).all()
    assert not bounds(whole % 3).error.any()
    with pytest.raises(NoRuleError, match="for integers only"):
        _ = whole // 2.5
    with pytest.raises(NoRuleError, match="for integers only"):
        _ = (whole * 0.1) % 2
    with pytest.raises(NoRuleError, match="by 0"):
        _ = whole % 0


# --- a formula that no longer fits


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda p, i, s: p["rows"], r"params\['rows'\] is not in the spec: it has n"),
        (lambda p, i, s: i["X"], r"inputs\['X'\] is not in the spec"),
        (lambda p, i, s: s["epsilon"], r"scalars\['epsilon'\] is not in the spec"),
        (lambda p, i, s: s["ep"], r"did you mean eps\?"),
    ],
)
def test_what_a_spec_lacks_is_an_error_of_the_formula(read: Any, said: str) -> None:
    def formula(params: Any, inputs: Any, scalars: Any) -> Any:
        read(params, inputs, scalars)
        return {"y": inputs["x"]}

    with pytest.raises(NoRuleError, match=said):
        answered(formula, {"y": "float32"})


def test_one_precision_is_left_again() -> None:
    with allowing(Precision()):
        wide = stored(known_input(X), "float64").sum(axis=-1)
        assert wide.double
        assert not (known_input(X) + 1).double
