"""Sums as matrix units make them, architecture by architecture, within the bound of each."""

from __future__ import annotations

from typing import Any, get_args

import numpy
import pytest

from tests.oracles.formula.test_precisions import inside
from tokitai_cli.core.matrix_units import SUMS, sums_named
from tokitai_cli.core.model.spec import MatrixArchitecture, MatrixUnit
from tokitai_cli.oracles.formula import allowing, bounds, known_input
from tokitai_cli.oracles.formula.precision import Precision, accumulator

np: Any = numpy


def kept(values: Any, exponent: Any, bits: int, how: Any) -> Any:
    """Multiples of 2^(exponent - bits)."""
    return np.ldexp(how(np.ldexp(values, bits - exponent)), exponent - bits)


def exponent_of(values: Any) -> Any:
    return np.frexp(values)[1] - 1


def nvidia(a: Any, b: Any, block: int, fraction: int, result: int = 23) -> Any:
    """Products of a block and what there is so far, cut at the largest exponent; a sum that is cut."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for start in range(0, a.shape[1], block):
        left, right = a[:, start : start + block, None], b[None, start : start + block]
        # A product's exponent is the sum of its factors': its significand may be 2 and more.
        exponents = exponent_of(left) + exponent_of(right)
        exponents = np.concatenate([exponents, exponent_of(total)[:, None]], axis=1)
        terms = np.concatenate([left * right, total[:, None]], axis=1)
        exponents = np.where(terms == 0, -126, exponents)
        top = exponents.max(axis=1)[:, None]
        total = kept(terms, top, fraction, np.trunc).sum(axis=1)
        total = kept(total, exponent_of(total), result, np.trunc)
    return total


def cdna3(a: Any, b: Any, block: int) -> Any:
    """Products cut at their largest; their sum and what there was rounded down, then to nearest."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for start in range(0, a.shape[1], block):
        left, right = a[:, start : start + block, None], b[None, start : start + block]
        exponents = np.where(left * right == 0, -126, exponent_of(left) + exponent_of(right))
        top = exponents.max(axis=1)
        part = kept(left * right, top[:, None], 24, np.trunc).sum(axis=1)
        top = np.maximum(top, np.where(total == 0, -126, exponent_of(total)))
        part = kept(part, top, 31, np.floor) + kept(total, top, 24, np.floor)
        total = part.astype(np.float32).astype(np.float64)
    return total


def in_pairs(a: Any, b: Any, block: int) -> Any:
    """As CDNA1 and CDNA2: pairs of products, then what there is so far, all rounded to nearest."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], block):
        terms = (a[:, start : start + block, None] * b[None, start : start + block]).astype("f4")
        while terms.shape[1] > 1:
            odd = terms[:, terms.shape[1] // 2 * 2 :]
            pairs = terms[:, : terms.shape[1] // 2 * 2]
            terms = np.concatenate([pairs[:, ::2] + pairs[:, 1::2], odd], axis=1)
        total = total + terms[:, 0]
    return total.astype(np.float64)


# Sums of 16-bit floats by what each architecture's instructions do, of as few products as they have.
UNITS: dict[str, Any] = {
    "volta": lambda a, b: nvidia(a, b, 4, 23),
    "turing": lambda a, b: nvidia(a, b, 8, 24),
    "ampere": lambda a, b: nvidia(a, b, 4, 24),
    "ada": lambda a, b: nvidia(a, b, 8, 24),
    "hopper": lambda a, b: nvidia(a, b, 8, 25),
    "blackwell": lambda a, b: nvidia(a, b, 16, 25),
    "cdna1": lambda a, b: in_pairs(a, b, 4),
    "cdna2": lambda a, b: in_pairs(a, b, 2),
    "cdna3": lambda a, b: cdna3(a, b, 8),
    "ada-8-bit": lambda a, b: nvidia(a, b, 16, 13, 13),
    "hopper-8-bit": lambda a, b: nvidia(a, b, 32, 13, 13),
}


def drawn(terms: int, kind: str) -> Any:
    """Two matrices of float16."""
    rng = np.random.default_rng([terms, len(kind)])
    for shape in ((40, terms), (terms, 30)):
        values = rng.standard_normal(shape)
        if kind == "one sign":
            values = np.abs(values) * np.exp2(rng.integers(-6, 7, shape))
        if kind == "one after all":
            values = np.full(shape, 2.0**-12 * (1.75 if shape[0] == 40 else 1.9990234375))
            values[(slice(None), 0) if shape[0] == 40 else 0] = 1.0
        yield values.astype(np.float16)


@pytest.mark.parametrize("terms", [1, 5, 33, 1000])
@pytest.mark.parametrize("kind", ["normal", "one sign", "one after all"])
@pytest.mark.parametrize("name", UNITS)
def test_what_units_give_is_within_their_bound(name: str, terms: int, kind: str) -> None:
    a, b = drawn(terms, kind)
    got = UNITS[name](a.astype(np.float64), b.astype(np.float64))
    widest = "unit-8-bit" if name.endswith("8-bit") else "unit"
    for allowed in (name, widest):
        with allowing(Precision(accumulate=f"float32-{allowed}")):
            told = bounds(known_input(a) @ known_input(b))
        assert inside(got, told).all()
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    lost = SUMS[widest].lost(terms)
    assert (told.error <= 1.01 * lost / (1 - lost) * sizes + 1e-300).all()


def test_each_is_refuted_by_the_bound_of_one_that_keeps_more() -> None:
    """Or the names of architectures would say nothing."""
    for name, finer in (("volta", "hopper"), ("hopper-8-bit", "hopper")):
        a, b = drawn(1000, "one after all")
        with allowing(Precision(accumulate=f"float32-{finer}")):
            told = bounds(known_input(a) @ known_input(b))
        got = UNITS[name](a.astype(np.float64), b.astype(np.float64))
        assert not inside(got, told).all(), name


def test_sums_of_eight_bits_are_exact_in_fewer() -> None:
    assert accumulator("float32-hopper").countable == 2.0**24
    assert accumulator("float32-hopper-8-bit").countable == 2.0**14


def test_an_architecture_is_never_wider_than_any() -> None:
    for architecture in get_args(MatrixArchitecture):
        unit = MatrixUnit(unit="mfma", architecture=architecture)
        for eight_bits in (False, True):
            own = SUMS[sums_named(unit, eight_bits=eight_bits)]
            any_unit = SUMS[sums_named(MatrixUnit(unit="mfma"), eight_bits=eight_bits)]
            assert all(own.lost(terms) <= any_unit.lost(terms) for terms in (1, 3, 4, 17, 4096))
