"""Number formats, vectors, directed rounding and builtins of the cpu device's headers, by value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.cpu.harness_client import Buffer, Child, Launch, build, out, read

SOURCE = Path(__file__).parent / "numbers.hip"
SIGNATURES: dict[str, list[str]] = {
    "own_functions": ["float32*", "float64*"],
    "vector_functions": ["float32*"],
    "half_pairs": ["float16*"] * 4 + ["int"],
    "bfloat16_pairs": ["bfloat16*"] * 4 + ["int"],
    "pair_moves": ["float32*", "float32*", "uint16*"],
    "decode_fp8": ["float32*", "float16*"],
    "encode_fp8": ["float16*", "uint8*", "int"],
    "fp8_from_floats": ["float32*", "uint8*", "int"],
    "complex_functions": ["float32*"] * 3,
    "constants": ["float64*"],
    "directed": ["float32*"] * 3 + ["float64*", "int"],
    "directed_integers": ["int64*", "float32*", "float64*", "int"],
    "special": ["float64*", "float64*", "float32*", "int"],
    "builtins": ["int32*", "int32*", "int"],
    "ordered_atomics": ["int32*", "float32*"],
}
FORMATS = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2fnuz,
)
LARGEST = (448.0, 57344.0, 240.0, 57344.0)


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    kernels = {**SIGNATURES, "pair_moves": ["float32*", "float32*", "bfloat16*"]}
    program, done = build(SOURCE, kernels, (), ["-DTOKITAI_WARP_SIZE=32"])
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def run(
    child: Child,
    kernel: str,
    buffers: list[Buffer],
    *scalars: int,
    threads: int = 1,
    blocks: int = 1,
) -> list[NDArray[Any]]:
    """Results of the buffers that a kernel writes, the same in every order of threads."""
    args = [*(("b", i) for i in range(len(buffers))), *scalars]
    call = Launch(list(SIGNATURES).index(kernel), (blocks,), (threads,), args, 64 * threads)
    answer = child.run(buffers, call, ((0xA5, 0), (0x5A, 1)))
    assert (answer.status, answer.message, answer.guards) == (0, "", [])
    first, second = answer.results
    for index, array in first.items():
        assert array.tobytes() == second[index].tobytes()
    return list(first.values())


def test_a_source_s_own_functions_are_taken(child: Child) -> None:
    got, cell = run(child, "own_functions", [out(13, np.float32), out(1, np.float64)])
    assert got.tolist() == [1, 2, 7, 4, 105, 2, 4, 1005, 8, 12, 2, 1.5, 3]
    assert cell.tolist() == [7]


def test_vectors(child: Child) -> None:
    (got,) = run(child, "vector_functions", [out(19, np.float32)])
    expected = [-3.5, -9.5, -18.5, 0, 2, 3, 4, 13, 5, 5, 9, 5, 6, 7, 8, 4, 0.25, 7, 101]
    assert got.tolist() == expected


def _drawn(dtype: Any, n: int, seed: int) -> NDArray[Any]:
    """Finite and other values of all sizes."""
    draw = np.random.default_rng(seed)
    values = draw.normal(size=n) * 2.0 ** draw.integers(-8, 9, n)
    values[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    if seed % 2:
        values[8:16] = _drawn(dtype, n, seed - 1)[8:16].astype(np.float64)
    return values.astype(dtype)


@pytest.mark.parametrize(
    ("kernel", "dtype"), [("half_pairs", np.float16), ("bfloat16_pairs", ml_dtypes.bfloat16)]
)
def test_sixteen_bits_round_once(child: Child, kernel: str, dtype: Any) -> None:
    n = 512
    a, b, c = (_drawn(dtype, n, seed) for seed in (2, 3, 5))
    x, y, z = (one.astype(np.float64) for one in (a, b, c))
    with np.errstate(all="ignore"):
        nan = np.isnan(x) | np.isnan(y)
        values = [
            x + y, x - y, x * y, x / y, x * y + z, -x, np.abs(x), np.fmax(x, y), np.fmin(x, y),
            np.ceil(x), np.floor(x), np.trunc(x), np.rint(x), np.sqrt(x), 1 / x, np.exp(x),
            np.log2(x), np.cos(x),
        ]  # fmt: skip
        told = [x == y, (x != y) | nan, x < y, (x <= y) | nan, x > y, (x >= y) | nan]
        # The pairs are (y, x) and (x, y): both components hold where this and the mirrored one do.
        mirrored = [y == x, (y != x) | nan, y < x, (y <= x) | nan, y > x, (y >= x) | nan]
        rows = [value.astype(dtype) for value in values for _ in (0, 1)]
        for one, other in zip(told, mirrored, strict=True):
            rows += [row.astype(dtype) for row in (one, one, one & other, one)]
        rows += [row.astype(dtype) for row in (np.isnan(x), np.isnan(x), np.isinf(x), np.isnan(x))]
    (got,) = run(
        child, kernel, [read(a), read(b), read(c), out((len(rows), n), dtype)], n,
        threads=64, blocks=n // 64,
    )  # fmt: skip
    for index, (row, expected) in enumerate(zip(got, rows, strict=True)):
        close = 30 <= index < 36  # expf and its like, before the last rounding
        step = np.abs(expected.astype(np.float64)) * (2.0**-10 if dtype == np.float16 else 2.0**-7)
        same = (row == expected) | (np.isnan(row) & np.isnan(expected))
        with np.errstate(invalid="ignore"):
            near = np.abs(row.astype(np.float64) - expected.astype(np.float64)) <= step
        assert np.all(same | (near & close)), index


def test_moves_of_pairs(child: Child) -> None:
    given = np.array([1.5, -2.0, 1.00075], np.float32)
    sums = Buffer("output", np.empty(2, ml_dtypes.bfloat16), zero=True)
    got, total = run(child, "pair_moves", [read(given), out(9, np.float32), sums])
    down, up = np.float16(1.0), np.nextafter(np.float16(1), np.float16(2))
    assert got.tolist() == [-2.0, 1.5, -2.0, 0x7F80, 3.0, down, up, down, 11.0]
    assert total.astype(np.float64).tolist() == [3.0, -4.0]


def test_every_code_of_eight_bits(child: Child) -> None:
    got, halves = run(
        child, "decode_fp8", [out((4, 256), np.float32), out((4, 256), np.float16)], threads=256
    )
    for dtype, row, half in zip(FORMATS, got, halves, strict=True):
        expected = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
        assert np.array_equal(row, expected, equal_nan=True)
        assert np.array_equal(np.signbit(row), np.signbit(expected))
        assert np.array_equal(half, expected.astype(np.float16), equal_nan=True)


def _encoded(values: NDArray[Any], dtype: Any, *, saturate: bool) -> NDArray[np.uint8]:
    """Codes as HIP has them: what is not a finite number is never saturated."""
    with np.errstate(all="ignore"):
        codes = values.astype(dtype)
        back = codes.astype(np.float64)
        if saturate:
            over = np.isfinite(values) & ~np.isfinite(back)
            most = LARGEST[FORMATS.index(dtype)]
            codes[over] = np.where(np.signbit(values[over]), -most, most).astype(dtype)
    return codes.view(np.uint8)


def test_every_float16_to_eight_bits(child: Child) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    (got,) = run(
        child,
        "encode_fp8",
        [read(halves), out((8, 65536), np.uint8)],
        65536,
        threads=256,
        blocks=256,
    )
    for row in range(8):
        expected = _encoded(halves, FORMATS[row % 4], saturate=row >= 4)
        nan = np.isnan(halves)
        assert np.array_equal(got[row][~nan], expected[~nan]), row
        assert np.all(np.isnan(got[row][nan].view(FORMATS[row % 4]).astype(np.float32)))


def test_floats_to_eight_bits(child: Child) -> None:
    draw = np.random.default_rng(1)
    given = (draw.normal(size=1024) * 2.0 ** draw.integers(-12, 20, 1024)).astype(np.float32)
    (got,) = run(
        child,
        "fp8_from_floats",
        [read(given), out((4, 1024), np.uint8)],
        1024,
        threads=256,
        blocks=4,
    )
    for row, index in enumerate((0, 3, 2)):
        assert np.array_equal(got[row], _encoded(given, FORMATS[index], saturate=True)), row
    first = _encoded(given, FORMATS[0], saturate=True).view(FORMATS[0]).astype(np.float32)
    assert np.array_equal(got[3], np.trunc(first).astype(np.int32).astype(np.uint8) ^ 0xC0)


def test_complex_numbers_and_constants(child: Child) -> None:
    a, b = np.array([3, 4], np.float32), np.array([1, -2], np.float32)
    (got,) = run(child, "complex_functions", [read(a), read(b), out((8, 2), np.float32)])
    p, q = complex(3, 4), complex(1, -2)
    expected = [p + q, p - q, p * q, p / q, p.conjugate(), p * q + p, complex(5, 5), p * (2 + 1j)]
    assert np.allclose(got[:, 0] + 1j * got[:, 1], expected, rtol=1e-6)
    (got,) = run(child, "constants", [out(9, np.float64)])
    single = np.float32
    assert got.tolist() == [
        single(math.pi), math.pi, 1.2246467991473532e-16, single(math.log(2)), math.log2(math.e),
        math.inf, math.sqrt(0.5), 1.0983196502167651e-17, np.finfo(single).max,
    ]  # fmt: skip


def _towards(exact: Fraction, direction: str, dtype: Any) -> Any:
    """The number next to `exact` in a direction, from a nearest one."""
    number = dtype(float(exact)) if dtype is np.float64 else np.float32(float(exact))
    if direction == "rz":
        direction = "rd" if exact > 0 else "ru"
    infinity = dtype(math.inf if direction == "ru" else -math.inf)

    def beyond(value: Any) -> bool:
        return (
            Fraction(float(value)) < exact if direction == "ru" else Fraction(float(value)) > exact
        )

    while beyond(number):
        number = np.nextafter(number, infinity)
    before = np.nextafter(number, -infinity)
    while not beyond(before):
        number, before = before, np.nextafter(before, -infinity)
    return number


def test_arithmetic_with_a_direction(child: Child) -> None:
    draw = np.random.default_rng(7)
    n = 256
    a = (draw.normal(size=n) * 2.0 ** draw.integers(-9, 9, n)).astype(np.float32)
    b = (draw.normal(size=n) * 2.0 ** draw.integers(-9, 9, n)).astype(np.float32)
    a[:3], b[:3] = [1, 3, -7], [2, 3, 0.5]
    got, wide = run(
        child, "directed",
        [read(a), read(b), out((14, n), np.float32), out((2, n), np.float64)], n, threads=n,
    )  # fmt: skip
    for i in range(n):
        x, y = Fraction(float(a[i])), Fraction(float(b[i]))
        exact = [x + y, x * y, x / y]
        expected = [_towards(e, d, np.float32) for e in exact for d in ("rd", "ru", "rz")]
        assert got[:9, i].tolist() == expected
        assert [*map(float, got[12:14, i])] == [
            _towards(x * y, d, np.float32) for d in ("rd", "ru")
        ]
        low, high, zero = (Fraction(float(value)) for value in got[9:12, i])
        assert low**2 <= abs(x) <= high**2
        assert zero == low
        assert high in (low, Fraction(float(np.nextafter(got[9, i], np.float32(np.inf)))))
        assert wide[0, i] == _towards(x + Fraction(1e-30), "rd", np.float64)
        assert wide[1, i] == _towards(x / y, "ru", np.float64)


def test_integers_with_a_direction(child: Child) -> None:
    given = np.array([0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**63 - 1, -(2**63), 2**53 + 1, 2**40 - 1])
    n = len(given)
    got, wide = run(
        child, "directed_integers",
        [read(given), out((5, n), np.float32), out((2, n), np.float64)], n, threads=n,
    )  # fmt: skip
    for i, value in enumerate(int(one) for one in given):
        int32, uint32 = (value + 2**31) % 2**32 - 2**31, value % 2**32
        rows = [(value, "rd"), (value, "ru"), (value, "rz"), (int32, "rd"), (uint32, "ru")]
        assert got[:, i].tolist() == [_towards(Fraction(v), d, np.float32) for v, d in rows]
        assert wide[0, i] == _towards(Fraction(value), "rd", np.float64)
        assert wide[1, i] == _towards(Fraction(value % 2**64), "ru", np.float64)


def test_special_functions(child: Child) -> None:
    x = np.array([-0.999, -0.7, -0.5, -1e-9, 0.0, 0.1, 0.499, 0.6, 0.95, 1 - 1e-12])
    n = len(x)
    got, singles = run(
        child, "special", [read(x), out((8, n), np.float64), out((6, n), np.float32)], n, threads=n
    )
    assert np.allclose([math.erf(y) for y in got[0]], x, rtol=1e-13, atol=1e-14)
    assert np.allclose(got[0], got[1], rtol=1e-12)
    assert np.allclose(got[2][:-1], math.sqrt(2) * got[0][:-1], rtol=1e-11, atol=1e-15)
    assert np.allclose([math.erfc(y) for y in got[3]], 1e-200, rtol=1e-11, atol=0)
    assert np.allclose(got[4], np.i0(9 * x), rtol=1e-12)
    step = 1e-4  # the derivative of I0 is I1
    assert np.allclose(got[5], (np.i0(9 * x + step) - np.i0(9 * x - step)) / (2 * step), rtol=1e-6)
    assert np.allclose(got[6], np.linalg.norm(x), rtol=1e-15)
    assert np.allclose(got[7], 1 / np.sqrt(x**2 + 14), rtol=1e-15)
    single = x.astype(np.float32)
    inside = np.abs(single) < 1
    assert np.allclose([math.erf(y) for y in singles[0][inside]], single[inside], rtol=1e-6)
    assert np.allclose(singles[1], [math.exp(y * y) * math.erfc(y) for y in map(float, single)])
    assert singles[2].tolist() == [np.float32(2.5 ** (i - 3)) for i in range(n)]
    assert np.allclose(singles[3], 1 / np.sqrt(x**2 + 13))
    assert singles[4].tolist() == [(i - 4) // 2 + 1000 * -((4 - i) // 2) for i in range(n)]
    assert singles[5].all()


def _dot(x: int, y: int, a_signed: bool, b_signed: bool) -> int:
    def parts(word: int, signed: bool) -> list[int]:
        return [int(v) for v in np.array([word], np.uint32).view(np.int8 if signed else np.uint8)]

    return sum(p * q for p, q in zip(parts(x, a_signed), parts(y, b_signed), strict=True))


def test_builtins(child: Child) -> None:
    n = 64
    given = np.random.default_rng(3).integers(1, 2**31, n).astype(np.int32)
    given[:4] = [1, 2, 3, 4]
    lane, rest = np.arange(n) % 32, 0x01FF02FE
    base = np.arange(n) - lane
    row, place = np.arange(n) // 16 * 16, np.arange(n) % 16
    words = [int(v) & 0xFFFFFFFF for v in given]
    mirrored = given[row + 15 - place]
    dots = [
        [_dot(w, rest, *signs) + 10 for w in words]
        for signs in ((True, True), (False, False), (True, False))
    ]
    five = [w >> 4 & 31 for w in words]
    expected = [
        given // 2,
        given[base],
        given[base + 5],
        given[np.arange(n) ^ 1],
        given[np.arange(n) ^ 1],
        np.where(place > 0, given[np.maximum(np.arange(n) - 1, 0)], -1),
        given[np.arange(n) // 4 * 4 + 3 - np.arange(n) % 4],
        np.where(place // 4 % 2 == 0, mirrored, -1),
        100 + lane,
        *dots,
        [2**31 - 1] * n,
        [0x00FF << 16 | (w >> 24 & 0xFF) << 8 | 0x88 for w in words],
        [v - 32 if v & 16 else v for v in five],
        five,
        [(w << 32 | 0x12345678) >> 12 for w in words],
        [_dot(w, w, True, True) + 1 for w in words],
        [int(1000 * sorted((float(np.float32(v)), 2.0, 5.5))[1]) for v in given],
    ]
    (got,) = run(child, "builtins", [read(given), out((len(expected), n), np.int32)], n, threads=n)
    for index, (have, want) in enumerate(zip(got, expected, strict=True)):
        assert [int(v) & 0xFFFFFFFF for v in have] == [int(v) & 0xFFFFFFFF for v in want], index


def test_ordered_atomics(child: Child) -> None:
    cells = Buffer("output", np.empty(6, np.int32), zero=True)
    total = Buffer("output", np.empty(1, np.float32), zero=True)
    got, got_sum = run(child, "ordered_atomics", [cells, total], threads=64, blocks=4)
    assert got.tolist() == [512, 255, -255, 255, 9, 768]
    assert got_sum.tolist() == [128]
