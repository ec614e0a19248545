from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import support
from tokitai_cli.core import resources
from tokitai_cli.core.dtypes import DTYPES, FORMATS, DType, DTypeName, FloatFormat, numpy_dtype
from tokitai_cli.core.model.expectation import Expectation
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.numerics import (
    MAY_BE_ANYTHING,
    MAY_BE_EITHER,
    MAY_BE_NAN,
    MUST_BE_FINITE,
    MUST_BE_INFINITE,
    MUST_BE_NAN,
    bit_source,
    least_error,
    overflow_class,
    round_to,
    rounded_bound,
    same_bytes,
    spacing,
)
from tokitai_cli.core.rounding import PACKED, float32_to_odd, rounded_by_adding, widened
from tokitai_cli.spec.plan.scalar_bytes import pack

HALF = FORMATS["float16"]


def rounded_fraction(value: Fraction, precision: int, min_exponent: int) -> Fraction:
    """Round to nearest even by exact arithmetic, without an upper limit."""
    if value == 0:
        return value
    exponent = min_exponent
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - precision + 1)
    return round(value / unit) * unit


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@settings(deadline=None)
@given(st.floats(min_value=-60000.0, max_value=60000.0))
def test_round_to_rounds_once_to_nearest_even(name: str, value: float) -> None:
    form = FORMATS[name]
    got = Fraction(float(round_to(np.array([value]), name)[0]))
    assert got == rounded_fraction(Fraction(value), form.precision, form.min_exponent)


def test_bfloat16_is_not_rounded_twice() -> None:
    # Just below the tie between 1 + 2^-7 and 1 + 2^-6; float32 in between would make it the tie.
    value = np.array([1.0 + 3 * 2.0**-8 - 2.0**-40, 3.5e38, -np.inf, np.nan, -0.0])
    got = round_to(value, "bfloat16").astype(np.float64)
    assert got[0] == 1.0 + 2.0**-7
    assert got[1] == np.inf
    assert got[2] == -np.inf
    assert np.isnan(got[3])
    assert got[4] == 0.0
    assert np.signbit(got[4])


@pytest.mark.parametrize("name", sorted(PACKED))
def test_rounding_by_adding_gives_the_bits_of_numpys_own_conversion(name: str) -> None:
    dtype = numpy_dtype(name)
    with np.errstate(all="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64)
        numbers = np.unique(every[np.isfinite(every)])
        ties = (numbers[1:] + numbers[:-1]) / 2
        ends = np.array([65519.99, 65520.0, 2.0**128 - 2.0**119, 2.0**128, 1e308, 5e-324, -0.0])
        drawn = np.random.default_rng(0).integers(0, 2**64, 1 << 17, np.uint64).view(np.float64)
        values = np.concatenate(
            [
                every,
                ties,
                np.nextafter(ties, np.inf),
                np.nextafter(ties, -np.inf),
                ends,
                -ends,
                drawn,
            ]
        )
        single = values.astype(np.float16) if name == "float16" else float32_to_odd(values)
        want = single.astype(dtype)
    got = rounded_by_adding(values, name)
    assert np.array_equal(got.view(np.uint16), want.view(np.uint16))
    # Numbers too small for a normal one in every block, which numpy's conversion is not for.
    mixed = np.random.default_rng(1).permutation(values.size)
    got_mixed = rounded_by_adding(values[mixed], name)
    assert np.array_equal(got_mixed.view(np.uint16), want[mixed].view(np.uint16))
    assert np.array_equal(
        round_to(values[: 1 << 16].reshape(256, 256).T, name),
        got[: 1 << 16].reshape(256, 256).T,
        equal_nan=True,
    )


@pytest.mark.parametrize("name", [*sorted(PACKED), "float32", "float8_e5m2"])
def test_widening_keeps_every_number(name: str) -> None:
    dtype = numpy_dtype(name)
    raw = np.arange(1 << 16, dtype=np.uint16)
    every = raw.view(dtype) if dtype.itemsize == 2 else raw.astype(np.uint8).view(dtype)
    every = np.arange(4096, dtype=np.float32) if name == "float32" else every
    with np.errstate(all="ignore"):
        want = every.astype(np.float64)
        finite = every[np.isfinite(want)]
        for values in (every, finite, finite[::-1], finite[:3]):
            got, plain = widened(values), values.astype(np.float64)
            assert np.array_equal(got, plain, equal_nan=True)
            assert np.array_equal(np.signbit(got), np.signbit(plain))


@pytest.mark.parametrize(
    ("name", "threshold"),
    [("float16", 65520.0), ("bfloat16", 3.3961775292304601e38), ("float32", 3.4028235677973366e38)],
)
def test_overflow_is_the_least_magnitude_that_rounds_to_infinity(
    name: str, threshold: float
) -> None:
    below = np.nextafter(FORMATS[name].overflow, 0.0)
    assert FORMATS[name].overflow == threshold
    assert np.isinf(round_to(np.array([threshold]), name).astype(np.float64)).all()
    assert np.isfinite(round_to(np.array([below]), name).astype(np.float64)).all()


E4M3 = FloatFormat("float8_e4m3fn", 4, -6, 8, unused=1, overflows="nan")


@pytest.mark.parametrize(
    ("form", "largest"),
    [(E4M3, 448.0), (FloatFormat("float8_e5m2", 3, -14, 15), 57344.0),
     (FloatFormat("float8_e4m3fnuz", 4, -7, 7, overflows="nan"), 240.0)],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_formats_of_a_byte(
    form: FloatFormat, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DTYPES, form.name, DType(1, "float", form, extension=True))
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(form.name)).astype(np.float64)
    numbers = np.unique(every[np.isfinite(every)])
    assert (form.largest, form.smallest) == (largest, numbers[numbers > 0][0])
    assert form.largest == numbers.max()
    assert form.countable == 2.0**form.precision
    ends = np.array([np.nextafter(form.overflow, 0.0), form.overflow])
    last, beyond = round_to(ends, form.name).astype(np.float64)
    assert last == largest
    assert np.isinf(beyond) if form.overflows == "infinity" else np.isnan(beyond)
    for number in numbers:
        packed = np.frombuffer(pack(float(number), form.name)[0], numpy_dtype(form.name))
        assert packed.astype(np.float64) == number


def test_overflow_class_of_formats_without_infinity() -> None:
    reference = np.array([1.0, 464.0, 464.0, 470.0, -500.0, np.inf, np.nan, 3.0])
    error = np.array([0.1, 0.0, 1.0, 7.0, 1.0, 0.0, 0.0, np.inf])
    as_nan = [MUST_BE_FINITE, MUST_BE_FINITE, MAY_BE_NAN, MAY_BE_NAN, MUST_BE_NAN, MUST_BE_NAN,
              MUST_BE_NAN, MAY_BE_ANYTHING]  # fmt: skip
    assert overflow_class(reference, error, E4M3).tolist() == as_nan
    stops = msgspec.structs.replace(E4M3, overflows="largest")
    codes = [MUST_BE_FINITE] * 6 + [MUST_BE_NAN, MAY_BE_ANYTHING]
    assert overflow_class(reference, error, stops).tolist() == codes


@pytest.mark.parametrize(
    ("overflows", "got", "verdict"),
    [
        ("nan", [1.0, np.nan, np.nan, 448.0], Verdict.VERIFIED),
        ("nan", [1.0, np.nan, 448.0, np.nan], Verdict.VERIFIED),
        ("nan", [1.0, 448.0, 448.0, 448.0], Verdict.REFUTED),
        ("nan", [np.nan, np.nan, 448.0, 448.0], Verdict.REFUTED),
        ("largest", [1.0, 448.0, 448.0, 448.0], Verdict.VERIFIED),
        ("largest", [1.0, np.nan, 448.0, 448.0], Verdict.REFUTED),
        ("largest", [1.0, 416.0, 448.0, 448.0], Verdict.REFUTED),
    ],
)
def test_formats_without_infinity_are_judged(
    overflows: Literal["nan", "largest"],
    got: list[float],
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = msgspec.structs.replace(E4M3, overflows=overflows)
    monkeypatch.setitem(DTYPES, form.name, DType(1, "float", form, extension=True))
    monkeypatch.setitem(FORMATS, form.name, form)
    reference = np.array([1.0, 500.0, 464.0, 465.0])
    expectation = Expectation(reference, error=np.array([0.0, 1.0, 1.0, 2.0]))
    case = support.make_case(dtype=form.name, shape=(4,))
    values = np.array(got).astype(numpy_dtype(form.name))
    judged = support.judge_array(case, expectation, values)
    assert (judged.verdict is Verdict.REFUTED) == (verdict is Verdict.REFUTED), judged.reason


def test_every_list_of_dtypes_is_the_tables() -> None:
    assert get_args(DTypeName) == tuple(DTYPES)
    header = resources.kernels_dir() / "harness" / "tokitai_arguments.hpp"
    text = header.read_text(encoding="utf-8").partition("enum class DType {")[2].partition("}")[0]
    harness = [name.strip().replace("boolean", "bool") for name in text.split(",") if name.strip()]
    # The harness moves the four 8-bit floats as one.
    assert sorted(harness) == sorted({name.partition("_")[0] for name in DTYPES})
    for name, dtype in DTYPES.items():
        assert numpy_dtype(name).itemsize == dtype.nbytes
        assert numpy_dtype(name).name == name


@pytest.mark.parametrize(
    ("reference", "error", "code"),
    [
        (1.0, 0.1, MUST_BE_FINITE),
        (65504.0 + 16 - 2.0**-24, 0.0, MUST_BE_FINITE),
        (65504.0 + 16 - 2.0**-24, 2.0**-25, MUST_BE_FINITE),
        (65504.0 + 16 - 2.0**-24, 2.0**-24, MAY_BE_EITHER),
        (-(65504.0 + 16 - 2.0**-24), 2.0**-20, MAY_BE_EITHER),
        (65520.0, 0.0, MUST_BE_INFINITE),
        (65520.0, 2.0**-24, MAY_BE_EITHER),
        (-70000.0, 1.0, MUST_BE_INFINITE),
        (np.inf, 0.0, MUST_BE_INFINITE),
        (-np.inf, np.nan, MUST_BE_INFINITE),
        (np.nan, 0.0, MUST_BE_NAN),
        (3.0, np.inf, MAY_BE_ANYTHING),
        (3.0, np.nan, MAY_BE_EITHER),
    ],
)
def test_overflow_class(reference: float, error: float, code: int) -> None:
    assert overflow_class(np.array([reference]), np.array([error]), HALF).tolist() == [code]


def test_overflow_class_without_a_bound_keeps_sixteen_ulp_apart() -> None:
    reference = np.array([60000.0, 65519.0, 65520.0 + 16 * 32, 65520.0 + 16 * 64])
    codes = [MUST_BE_FINITE, MAY_BE_EITHER, MAY_BE_EITHER, MUST_BE_INFINITE]
    assert overflow_class(reference, None, HALF).tolist() == codes


@pytest.mark.parametrize(
    ("error", "reference", "bound"),
    [
        (0.5, 100.0, 0.5 + 100.5 * 2.0**-11),
        (1e-9, 0.0, 1e-9 + 2.0**-25),
        (0.0, 2047.0, 0.0),
        (0.0, 2047.25, 0.25),
        (0.0, 2.0**-24 * 1.25, 2.0**-26),
    ],
)
def test_rounded_bound(error: float, reference: float, bound: float) -> None:
    got = rounded_bound(np.array([error]), np.array([reference]), HALF)
    assert got[0] == pytest.approx(bound, rel=1e-12)


def test_a_negative_zero_is_no_error_and_no_negative_bound() -> None:
    for form in FORMATS.values():
        bound = rounded_bound(np.array([-0.0]), np.array([-2.0]), form)
        assert bound[0] == 0.0
        assert not np.signbit(bound[0])


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_the_least_error_is_the_least_that_reaches(name: str, flush: bool) -> None:
    """F of it is the distance, and F of less is not; 0 where the last rounding explains the distance."""
    rng = np.random.default_rng(3)
    form = FORMATS[name]
    reference = rng.standard_normal(4000) * 2.0 ** rng.integers(-40, 12, 4000)
    distance = np.abs(reference) * 2.0 ** rng.uniform(-14, 2, 4000)
    least = least_error(distance, reference, form, flush_to_zero=flush)

    def bound(error: Any) -> Any:
        return rounded_bound(error, reference, form, flush_to_zero=flush)

    more = least > 0
    assert more.any()
    assert (bound(least * (1 + 1e-9))[more] >= distance[more] * (1 - 1e-12)).all()
    assert (bound(least * (1 - 1e-6))[more] < distance[more]).all()
    assert (bound(np.full(4000, 1e-300))[~more] >= distance[~more]).all()


def test_rounded_bound_of_the_accumulators_own_format_and_with_flushing() -> None:
    one, tiny = np.array([1.0]), np.array([2.0**-15])
    assert rounded_bound(one, one, FORMATS["float32"])[0] == 1.0
    assert rounded_bound(0 * tiny, tiny, HALF, flush_to_zero=True)[0] == 2.0**-14
    assert rounded_bound(0 * one, one, HALF, flush_to_zero=True)[0] == 0.0


def test_exact_error_refuses_the_neighbour_of_a_power_of_two() -> None:
    # The neighbour below 2048 lies within u |r| = 1, yet no exact sum rounds to it.
    bound = rounded_bound(np.array([0.0]), np.array([2048.0]), HALF)
    assert abs(2047.0 - 2048.0) > bound[0]


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=16))
def test_spacing_is_the_distance_to_the_next_number_away_from_zero(value: float) -> None:
    size = np.float16(abs(value))
    if size < np.finfo(np.float16).max:
        expected = float(np.nextafter(size, np.float16(np.inf))) - float(size)
        assert spacing(np.array([value]), HALF)[0] == expected


def philox_block(key: int, counter: int) -> list[int]:
    """Philox4x64-10 as published: Salmon et al. 2011, table of multipliers and Weyl constants."""
    mask = 2**64 - 1
    words = [counter, 0, 0, 0]
    low, high = key & mask, key >> 64
    for _ in range(10):
        first, second = words[0] * 0xD2E7470EE14C6C93, words[2] * 0xCA5A826395121157
        words = [
            (second >> 64) ^ words[1] ^ low,
            second & mask,
            (first >> 64) ^ words[3] ^ high,
            first & mask,
        ]
        low, high = (low + 0x9E3779B97F4A7C15) & mask, (high + 0xBB67AE8584CAA73B) & mask
    return words


def test_bit_source_is_philox_keyed_by_the_digest_of_its_parts() -> None:
    digest = hashlib.sha256(b"0\0gemm-bw\0grad-a\0").digest()
    key = int.from_bytes(digest[:16], "little")
    got = [int(word) for word in bit_source(0, "gemm-bw", "grad-a").random_raw(8)]
    assert got == philox_block(key, 1) + philox_block(key, 2)


def test_bit_source_keeps_the_parts_of_its_key_apart() -> None:
    assert bit_source("ab", "c").random_raw() != bit_source("a", "bc").random_raw()


def test_equal_bytes_are_told_from_equal_numbers() -> None:
    values = np.array([[1.0, np.nan], [0.0, 2.0]], np.float16)
    other = values.copy()
    assert same_bytes(values, other)
    assert same_bytes(values.T, other.T)
    assert not same_bytes(values, other.T)
    other[1, 0] = -0.0
    assert not same_bytes(values, other)
    assert not same_bytes(values, values[:1])
    assert same_bytes(values[:0], other[:0])
