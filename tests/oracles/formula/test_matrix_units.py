"""Sums as matrix units make them: terms cut at the largest of a block, and the sum cut."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from tests.oracles.formula.test_precisions import inside
from tokitai_cli.oracles.formula import allowing, bounds, known_input
from tokitai_cli.oracles.formula.precision import Precision, in_blocks

np: Any = numpy
BITS = 24


def cut(values: Any, exponent: Any) -> Any:
    """Towards zero, to multiples of 2^(exponent - 23)."""
    return np.ldexp(np.trunc(np.ldexp(values, BITS - 1 - exponent)), exponent - BITS + 1)


def in_unit(a: Any, b: Any, block: int) -> Any:
    """Rows of a times columns of b, block by block; products are exact."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for start in range(0, a.shape[1], block):
        part = slice(start, start + block)
        terms = np.concatenate([a[:, part, None] * b[None, part], total[:, None]], axis=1)
        exponent = np.frexp(np.abs(terms).max(axis=1))[1] - 1
        total = cut(terms, exponent[:, None]).sum(axis=1)
        total = cut(total, np.frexp(total)[1] - 1)
    return total


def halves(rng: Any, *shape: int, one_sign: bool) -> Any:
    values = rng.standard_normal(shape)
    values = np.abs(values) * np.exp2(rng.integers(-6, 7, shape)) if one_sign else values
    return values.astype(np.float16)


@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize("terms", [1, 5, 33, 1000])
@pytest.mark.parametrize("one_sign", [True, False])
def test_what_units_give_is_within_the_bound(block: int, terms: int, one_sign: bool) -> None:
    rng = np.random.default_rng([block, terms, one_sign])
    a, b = (halves(rng, *shape, one_sign=one_sign) for shape in ((40, terms), (terms, 30)))
    got = in_unit(a.astype(np.float64), b.astype(np.float64), block)
    with allowing(Precision(accumulate="float32-in-blocks")):
        told = bounds(known_input(a) @ known_input(b))
    assert inside(got, told).all()
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (told.error <= 1.01 * in_blocks(terms) * 2.0**-23 * sizes + 1e-300).all()


def test_what_units_give_may_be_beyond_what_rounding_loses() -> None:
    """Cut towards zero, block after block, of terms that are small beside the sum of before."""
    a = np.concatenate([[1.0], np.full(64, 2.0**-14 * 1.75)])[None].astype(np.float16)
    b = np.concatenate([[1.0], np.full(64, 2.0**-10 * 1.9990234375)])[:, None].astype(np.float16)
    got = in_unit(a.astype(np.float64), b.astype(np.float64), 16)
    single, unit = bounds(known_input(a) @ known_input(b)), None
    with allowing(Precision(accumulate="float32-in-blocks")):
        unit = bounds(known_input(a) @ known_input(b))
    assert inside(got, unit).all()
    assert (unit.error > 2 * single.error).all()


def test_a_cut_of_more_bits_is_refuted() -> None:
    """As the 13 bits that products of 8-bit floats have on Hopper."""
    rng = np.random.default_rng(1)
    a, b = (halves(rng, *shape, one_sign=True) for shape in ((40, 64), (64, 30)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    with allowing(Precision(accumulate="float32-in-blocks")):
        told = bounds(known_input(a) @ known_input(b))
    got = np.ldexp(np.trunc(np.ldexp(exact, 13 - np.frexp(exact)[1])), np.frexp(exact)[1] - 13)
    assert not inside(got, told).all()
