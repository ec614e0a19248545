"""float64 outputs: a reference beyond float64, and an error that no permitted result leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tokitai_cli.oracles.formula.double import double
from tokitai_cli.oracles.formula.known import NoRuleError


def exact(value: Any) -> Fraction:
    return Fraction(float(value.pair.high)) + Fraction(float(value.pair.low))


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
def test_operations_are_good_to_a_hundred_bits(operation: str) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 50)) * 2.0 ** rng.integers(-30, 30, (2, 50))
    got = getattr(np, operation)(double(a), double(b))
    of: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
    }
    for i in range(a.size):
        want = of[operation](Fraction(float(a[i])), Fraction(float(b[i])))
        assert abs(exact(got[i]) - want) <= abs(want) * Fraction(1, 2**98)
        assert (
            abs(Fraction(float(getattr(np, operation)(a[i], b[i]))) - exact(got[i])) <= got.off[i]
        )


def test_a_root_is_good_to_a_hundred_bits() -> None:
    x = np.random.default_rng(2).uniform(0.1, 1e6, 50)
    got = np.sqrt(double(x))
    for i in range(x.size):
        assert abs(exact(got[i]) ** 2 - Fraction(float(x[i]))) <= Fraction(float(x[i])) * Fraction(
            1, 2**97
        )


def test_sums_in_any_order_stay_within_the_error() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(300) * 2.0 ** rng.integers(-20, 20, 300)
    got = double(x).sum()
    want = sum(Fraction(float(value)) for value in x)
    assert abs(exact(got) - want) <= Fraction(1, 2**80)
    for _ in range(50):
        total = 0.0
        for value in rng.permutation(x):
            total += float(value)
        assert abs(Fraction(total) - exact(got)) <= Fraction(float(got.off))


def test_products_of_matrices_stay_within_the_error() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((4, 30)), rng.standard_normal((30, 5))
    got = double(a) @ double(b)
    for i, j in itertools.product(range(4), range(5)):
        want = sum(
            Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j], strict=True)
        )
        assert abs(exact(got[i, j]) - want) <= Fraction(1, 2**90)
        assert abs(Fraction(float((a @ b)[i, j])) - exact(got[i, j])) <= Fraction(
            float(got.off[i, j])
        )


def test_a_function_without_a_rule_is_named() -> None:
    with pytest.raises(NoRuleError, match="exp has no rule for float64 outputs"):
        np.exp(double([1.0]))
