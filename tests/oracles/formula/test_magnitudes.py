"""Products of magnitudes in float32 are never less than proved, whatever the numbers and their sizes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.oracles.formula import bounds, track
from tokitai_cli.oracles.formula import magnitudes as module
from tokitai_cli.oracles.formula.magnitudes import MOST_TERMS, magnitudes
from tokitai_cli.oracles.formula.products import Around, product

Floats = NDArray[np.float64]


def exact(a: Floats, b: Floats) -> list[list[Fraction]]:
    """|a| |b| without an error."""
    rows, columns = ([[Fraction(abs(x)) for x in line] for line in part] for part in (a, b.T))
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in rows
    ]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape)


def halves(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Of all sizes of float16, subnormal ones and zeros among them."""
    bits = rng.integers(0, 1 << 16, shape).astype(np.uint16)
    found = bits.view(np.float16).astype(np.float64)
    return np.where(np.isfinite(found), found, 0.0)


def singles(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Of all sizes of float32: their products overflow, or come to nothing."""
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    found = bits.view(np.float32)
    wide = np.zeros(shape)
    wide[...] = np.where(np.isfinite(found), found, np.float32(0))
    return wide


def lines(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Rows and columns of very different sizes."""
    rows, columns = rng.integers(-140, 100, (shape[0], 1)), rng.integers(-9, 9, (1, shape[1]))
    found: Floats = np.ldexp(normal(rng, shape), rows + columns)
    return found.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("draw", [normal, halves, singles, lines])
@pytest.mark.parametrize("seed", range(6))
def test_float32_says_no_less_than_the_product(
    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, count, columns = (int(n) for n in rng.integers(1, 40, 3))
    a, b = draw(rng, (rows, count)), draw(rng, (columns, count)).T
    found = magnitudes(a, b)
    assert found is not None
    told, right = found.scaled(1.0, 0.0), exact(a, b)
    # Four roundings of float64, which whoever takes a share of it allows for.
    slack = 1 + Fraction(2) ** -50
    for i in range(rows):
        for j in range(columns):
            assert Fraction(told[i, j]) * slack >= right[i][j]
            least = (
                Fraction(2) ** -110 * Fraction(np.abs(a[i]).max()) * Fraction(np.abs(b[:, j]).max())
            )
            wide = right[i][j] * (1 + (count + 6) * Fraction(2) ** -22) + least
            assert Fraction(told[i, j]) <= wide + Fraction(2) ** -1000
    assert told.max() <= found.at_most() * (1 + 2.0**-50)


def test_a_sum_that_float32_rounds_down_at_each_addition_is_within_it() -> None:
    # 1 and then halves of its ulp, which are lost one by one where they are added in this order.
    count = 1 << 12
    a = np.full((3, count), 2.0**-25)
    a[:, 0] = 1.0
    found = magnitudes(a, np.ones((count, 2)))
    assert found is not None
    lowest = found._replace(size=np.full_like(found.size, np.float32(0.25)))
    right = 1.0 + (count - 1) * 2.0**-25
    assert float(lowest.scaled(1.0, 0.0).min()) >= right > 1.0


def test_what_float32_says_too_little_of_is_left_to_float64() -> None:
    few = np.ones((1, 1))
    assert magnitudes(np.full((1, 1), 2.0**600), few) is None
    assert magnitudes(np.ones((1, MOST_TERMS + 1)), np.ones((MOST_TERMS + 1, 1))) is None


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_do_not_change_it(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 1 << 6)
    monkeypatch.setattr(module, "_TOGETHER", 2)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 50, 300)), rng.standard_normal((2, 300, 40))
    with parallel.sharing(1):
        one = magnitudes(a, b)
        assert one is not None
        alone = one.scaled(3.0, 1.0)
    with parallel.sharing(threads):
        several = magnitudes(a, b)
        assert several is not None
        assert several.scaled(3.0, 1.0).tobytes() == alone.tobytes()


def test_ends_are_those_of_the_error_and_made_where_they_are_asked_for() -> None:
    rng = np.random.default_rng(6)
    a, b = (
        track(rng.standard_normal((4, 300)).astype(np.float32)),
        track(np.ones((300, 5), np.float32)),
    )
    found = product(a.parts, b.parts)
    assert isinstance(found, Around)
    whole = a @ b
    assert whole.late is not None
    told = bounds(whole)
    assert whole.late is None
    assert np.all(told.low <= found.v - found.error() * (1 - 2.0**-40))
    assert np.all(told.high >= found.v + found.error() * (1 - 2.0**-40))
    assert np.all(told.error >= found.error() * (1 - 2.0**-40))


def test_a_product_that_may_overflow_says_so() -> None:
    a = np.full((2, 300), 2.0**66, np.float32)
    b = np.full((300, 2), 2.0**58, np.float32)
    told = bounds(track(a) @ track(b))
    assert np.all(told.high == np.inf) or np.all(np.isinf(told.error_above))
    small = bounds(track(a) @ track(b * np.float32(2.0**-20)))
    assert np.all(np.isfinite(small.error))
