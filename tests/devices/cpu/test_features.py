"""What the cpu device gives a kernel: every feature by a small kernel with exact expected values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.cpu.harness_client import Answer, Buffer, Child, Launch, build, out, read

SOURCE = Path(__file__).parent / "features.hip"
SIGNATURES: dict[str, list[str]] = {
    "coordinates": ["int32*"],
    "coordinates_after_barrier": ["int32*"],
    "reverse_static": ["int32*", "int32*", "int"],
    "reverse_dynamic": ["float32*", "float32*", "int"],
    "uninitialised<float>": ["float32*"],
    "uninitialised<unsigned short>": ["uint16*"],
    "dynamic_overrun": ["int32*"],
    "barrier_votes": ["int32*", "int32*"],
    "early_exit": ["int32*", "int"],
    "many_barriers": ["int32*", "int"],
    "registers_survive": ["float64*", "float64*"],
    "warp_facts": ["int32*"],
    "shuffles<int>": ["int32*", "int32*", "int"],
    "shuffles<double>": ["float64*", "float64*", "int"],
    "shuffles<__half>": ["float16*", "float16*", "int"],
    "votes": ["int32*", "uint64*"],
    "active_lanes": ["uint64*"],
    "partial_masks": ["int32*", "int32*"],
    "shuffle_from_outside": ["uint32*"],
    "integer_atomics<int>": ["int32*", "int32*"],
    "integer_atomics<unsigned>": ["uint32*", "uint32*"],
    "integer_atomics<unsigned long long>": ["uint64*", "uint64*"],
    "float_atomics<float>": ["float32*"],
    "float_atomics<double>": ["float64*"],
    "narrow_atomics": ["uint16*", "float16*", "float16*", "uint32*"],
    "half_functions": ["float16*"] * 4 + ["int"],
    "half_conversions": ["float32*", "float16*", "float32*", "int"],
    "double_to_half": ["float64*", "float16*", "int"],
    "bfloat16_functions": ["bfloat16*"] * 3 + ["float32*", "bfloat16*", "int"],
    "functions": ["float32*", "float32*", "int"],
    "bit_functions": ["uint32*", "int32*", "int"],
    "saturating_conversions": ["float32*", "int32*", "uint32*"],
    "symbols": ["float32*"],
    "scaling::scale<float, 4>": ["float32*", "float32*", "float32", "int"],
    "vectors": ["float32*", "float32*", "int", "int", "int"],
    "punned_loads": ["float16*", "float16*"],
    "prints": ["int32*"],
    "order_of_blocks": ["int32*", "int32*"],
    "order_of_warps": ["int32*"],
    "racy_sums": ["float32*", "float32*"],
}
SYMBOLS = [("table", "float32"), ("offset_of_device", "int32")]
VARIANTS = {
    "warp32": ["-DTOKITAI_WARP_SIZE=32"],
    "warp64": ["-DTOKITAI_WARP_SIZE=64"],
    "ucontext-softwarehalf": ["-DTOKITAI_UCONTEXT", "-DTOKITAI_SOFTWARE_HALF"],
}
REVERSE = 2**64 - 1
SEEDS = [(0xA5, 0), (0x5A, 1), (0xA5, 2), (0x5A, 3)]


@pytest.fixture(scope="module", params=list(VARIANTS))
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    program, done = build(SOURCE, SIGNATURES, SYMBOLS, VARIANTS[request.param])
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def warp_size(child: Child) -> int:
    return int(child.hello["warp_size"])


def launch(
    child: Child,
    kernel: str,
    buffers: list[Buffer],
    *scalars: Any,
    grid: tuple[int, ...] = (1,),
    block: tuple[int, ...] = (1,),
    shared: int = 0,
    schedule: list[tuple[int, int]] = SEEDS,
) -> Answer:
    args = [("b", i) for i in range(len(buffers))] + list(scalars)
    return child.run(
        buffers, Launch(list(SIGNATURES).index(kernel), grid, block, args, shared), schedule
    )


def results(answer: Answer, index: int) -> NDArray[Any]:
    """The buffer, after a check that nothing else was touched and all repetitions agree in bits."""
    assert (answer.status, answer.message) == (0, "")
    assert answer.guards == []
    assert all(changed == (0, 0) for changed in answer.inputs_changed)
    first = answer.results[0][index]
    for other in answer.results[1:]:
        assert other[index].tobytes() == first.tobytes()
    return first


def grid_of(extent: tuple[int, ...]) -> NDArray[np.int32]:
    """Coordinates (x, y, z) of each element, x fastest."""
    x, y, z = (*extent, 1, 1)[:3]
    cells = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    return np.array(cells, np.int32)


@pytest.mark.parametrize("kernel", ["coordinates", "coordinates_after_barrier"])
@pytest.mark.parametrize(
    ("grid", "block"),
    [((5,), (1,)), ((2, 3), (7, 2)), ((2, 1, 3), (3, 4, 5)), ((1,), (32, 32)), ((3,), (1, 1, 65))],
)
def test_grids_and_blocks_have_three_dimensions(
    child: Child, kernel: str, grid: tuple[int, ...], block: tuple[int, ...]
) -> None:
    blocks, threads = math.prod(grid), math.prod(block)
    answer = launch(child, kernel, [out((blocks, threads, 8), np.int32)], grid=grid, block=block)
    got = results(answer, 0)
    gx, gy, gz = (*grid, 1, 1)[:3]
    bx, by, bz = (*block, 1, 1)[:3]
    assert np.array_equal(got[:, 0, :3], grid_of(grid))
    assert np.array_equal(got[0, :, 3:6], grid_of(block))
    assert np.all(got[:, :, 3:6] == got[0, :, 3:6])
    assert np.all(got[:, :, 6] == gx * 100 + gy * 10 + gz)
    assert np.all(got[:, :, 7] == bx * 100 + by * 10 + bz)


@pytest.mark.parametrize("n", [1, 31, 64, 257, 1024])
def test_static_shared_memory_and_barrier(child: Child, n: int) -> None:
    data = np.arange(4 * n, dtype=np.int32).reshape(4, n)
    answer = launch(
        child, "reverse_static", [read(data), out((4, n), np.int32)], n, grid=(4,), block=(n,)
    )
    assert np.array_equal(results(answer, 1), data[:, ::-1])


def test_dynamic_shared_memory(child: Child) -> None:
    data = np.arange(300, dtype=np.float32)
    answer = launch(
        child, "reverse_dynamic", [read(data), out(300, np.float32)], 300, block=(300,), shared=1200
    )
    assert np.array_equal(results(answer, 1), data[::-1])


@pytest.mark.parametrize(
    ("kernel", "dtype"), [("uninitialised<float>", "f4"), ("uninitialised<unsigned short>", "u2")]
)
def test_shared_memory_holds_the_fill_byte_before_each_block(
    child: Child, kernel: str, dtype: str
) -> None:
    width = np.dtype(dtype).itemsize
    answer = launch(
        child, kernel, [out((40, 16), dtype)], grid=(40,), block=(8,), shared=8 * width,
        schedule=[(0xA5, 0), (0x5A, 1)],
    )  # fmt: skip
    assert answer.status == 0
    assert answer.results[0][0].tobytes() == b"\xa5" * (40 * 16 * width)
    assert answer.results[1][0].tobytes() == b"\x5a" * (40 * 16 * width)


def test_a_write_past_dynamic_shared_memory_is_told(child: Child) -> None:
    buffers = [out(16, np.int32)]
    assert launch(child, "dynamic_overrun", buffers, block=(16,), shared=64).status == 0
    answer = launch(child, "dynamic_overrun", buffers, block=(16,), shared=60)
    assert answer.status == 1
    assert "write 0 bytes past the end of dynamic shared memory" in answer.message
    assert "asks for 60 bytes" in answer.message


def test_votes_of_a_block(child: Child) -> None:
    data = np.array([0, 3, 7, 1, 2, 9, 4] * 20, np.int32)
    answer = launch(child, "barrier_votes", [read(data), out((140, 5), np.int32)], block=(140,))
    got = results(answer, 1)
    assert np.array_equal(got, np.tile([4 * 20, 1, 1, 0, 0], (140, 1)))


def test_threads_that_returned_do_not_count_at_a_barrier(child: Child) -> None:
    answer = launch(child, "early_exit", [out(100, np.int32)], 100, block=(256,))
    assert np.array_equal(results(answer, 0), np.arange(100)[::-1])


def test_many_barriers(child: Child) -> None:
    answer = launch(child, "many_barriers", [out(1024, np.int32)], 50, block=(1024,))
    assert np.array_equal(results(answer, 0), (np.arange(1024) + 50) % 1024 + 50)


def test_registers_survive_a_switch(child: Child) -> None:
    data = np.random.default_rng(3).standard_normal(77)
    want = np.zeros(77)
    for factor in (1, 2, 3, 5, 7, 11, 13, 17):
        want = want + data * factor
    want = want + np.arange(77) * (3 + 5 + 7 + 11 + 13 + 17)
    answer = launch(child, "registers_survive", [read(data), out(77, np.float64)], block=(77,))
    assert np.array_equal(results(answer, 1), want)


def test_warp_facts(child: Child) -> None:
    size = warp_size(child)
    answer = launch(child, "warp_facts", [out((20 * 8, 2), np.int32)], block=(20, 8))
    got = results(answer, 0)
    assert np.all(got[:, 0] == size)
    assert np.array_equal(got[:, 1], np.arange(160) % size)


def segment_sources(n: int, width: int, kind: str, step: int) -> NDArray[np.int64]:
    """Lane that each lane of n threads reads from."""
    lane = np.arange(n)
    first, inner = lane // width * width, lane % width
    if kind == "at":
        return first + step % width
    source = {"up": inner - step, "down": inner + step, "xor": inner ^ step}[kind]
    return np.where((source >= 0) & (source < width), first + source, lane)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [("shuffles<int>", "i4"), ("shuffles<double>", "f8"), ("shuffles<__half>", "f2")],
)
def test_shuffles(child: Child, kernel: str, dtype: str) -> None:
    n, size = 192, warp_size(child)
    data = np.arange(n).astype(dtype)
    answer = launch(child, kernel, [read(data), out((8, n), dtype)], n, block=(n,))
    steps = [("at", 5), ("up", 3), ("down", 3), ("xor", 6)]
    steps_of_8 = [("at", 1), ("up", 2), ("down", 2), ("xor", 9)]
    want = [data[segment_sources(n, size, *step)] for step in steps]
    want += [data[segment_sources(n, 8, *step)] for step in steps_of_8]
    # HIP only refuses a source above the segment for xor: below, lanes 8.. read lanes of the
    # segment in front of theirs.
    lane = np.arange(n)
    want[7] = data[np.where((lane ^ 9) > (lane | 7), lane, lane ^ 9)]
    assert np.array_equal(results(answer, 1), np.array(want))


def test_votes_of_a_warp(child: Child) -> None:
    n, size = 192, warp_size(child)
    data = np.random.default_rng(4).integers(0, 4, n).astype(np.int32)
    answer = launch(child, "votes", [read(data), out((n, 8), np.uint64)], block=(n,))
    got = results(answer, 1)
    full = 2**size - 1
    for thread in range(n):
        warp = [int(v) for v in data[thread // size * size :][:size]]
        mine = int(data[thread])
        want = [
            sum((v & 1) << i for i, v in enumerate(warp)),
            int(3 in warp),
            1,
            sum((v >> 1 & 1) << i for i, v in enumerate(warp)),
            0,
            int(all(v & 1 for v in warp)),
            sum((v == mine) << i for i, v in enumerate(warp)),
            full,
        ]
        assert [int(v) for v in got[thread]] == want


def test_active_lanes_follow_branches_and_loops(child: Child) -> None:
    size = warp_size(child)
    answer = launch(child, "active_lanes", [out((size, 4), np.uint64)], block=(size,))
    got = results(answer, 0)
    lanes = range(size)
    fourth = sum(1 << i for i in lanes if i % 4 == 0)
    full = 2**size - 1
    for lane in lanes:
        rounds = lane % 3
        still = sum(1 << i for i in lanes if i % 3 >= rounds)
        side = fourth if lane % 4 == 0 else full - fourth
        assert [int(v) for v in got[lane]] == [side, full, still, full]


def test_partial_masks(child: Child) -> None:
    size = warp_size(child)
    data = np.random.default_rng(5).integers(0, 1000, 2 * size).astype(np.int32)
    answer = launch(
        child, "partial_masks", [read(data), out(2 * size, np.int32)], block=(2 * size,)
    )
    halves = data.reshape(2, 2, size // 2)
    want = np.repeat(np.stack([halves[:, 0].sum(1), halves[:, 1].max(1)], 1), size // 2, 1)
    assert np.array_equal(results(answer, 1), want.ravel())


def test_a_lane_that_takes_no_part_gives_the_fill_byte(child: Child) -> None:
    answer = launch(
        child, "shuffle_from_outside", [out(4, np.uint32)], block=(32,),
        schedule=[(0xA5, 0), (0x5A, 0)],
    )  # fmt: skip
    assert answer.results[0][0].tolist() == [7, 7, 0xA5A5A5A5, 0xA5A5A5A5]
    assert answer.results[1][0].tolist() == [7, 7, 0x5A5A5A5A, 0x5A5A5A5A]


@pytest.mark.parametrize(
    ("kind", "dtype"), [("int", "i4"), ("unsigned", "u4"), ("unsigned long long", "u8")]
)
def test_integer_atomics(child: Child, kind: str, dtype: str) -> None:
    n = 1024
    start = np.array([5, 3000, 5000, 0, 0, 0xFFFF, 0, 0, 10], dtype)
    cells = Buffer("inout", start)
    answer = launch(
        child, f"integer_atomics<{kind}>", [cells, out(n, dtype)], grid=(8,), block=(128,)
    )
    assert answer.status == 0
    for repetition in answer.results:
        want = [5 + n, 3000 - n, 0, n - 1, 0xFFFF, 0, 0, 77, 10 + 2 * n]
        assert repetition[0].tolist() == want
        assert sorted(repetition[1].tolist()) == list(range(5, 5 + n))


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("double", "f8")])
def test_float_atomics(child: Child, kind: str, dtype: str) -> None:
    cells = Buffer("inout", np.array([1, 0, 9, -9, 0], dtype))
    answer = launch(child, f"float_atomics<{kind}>", [cells], grid=(4,), block=(100,))
    assert results(answer, 0).tolist() == [401, 200, -399, 399, 3]


def test_narrow_atomics(child: Child) -> None:
    buffers = [
        Buffer("inout", np.array([7, 100, 200, 300], np.uint16)),
        Buffer("inout", np.array([1, 2, 3], np.float16)),
        Buffer("inout", np.array([1, 2, 5, 5], np.float16)),
        Buffer("inout", np.array([0, 0], np.uint32)),
    ]
    answer = launch(child, "narrow_atomics", buffers, grid=(5,), block=(50,))
    assert results(answer, 0).tolist() == [257, 100, 200, 300]
    assert results(answer, 1).tolist() == [1, 252, 3]
    assert results(answer, 2).tolist() == [251, 502, 5, 5]
    assert results(answer, 3).tolist() == [0, 0]


def halves_of_every_kind(count: int, seed: int) -> NDArray[np.float16]:
    bits = np.random.default_rng(seed).integers(0, 2**16, count).astype(np.uint16)
    return bits.view(np.float16)


def same(got: NDArray[Any], want: NDArray[Any]) -> bool:
    """Equal in bits, or both NaN."""
    integer = f"u{got.itemsize}"
    nan = np.isnan(want.astype(np.float64))
    both = np.isnan(got.astype(np.float64)) == nan
    return bool(np.all(both & (nan | (got.view(integer) == want.view(integer)))))


def fused(a: Any, b: Any, c: Any, dtype: Any) -> NDArray[Any]:
    """a * b + c rounded once, by exact rationals where the sum is finite."""
    from fractions import Fraction

    values = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        if not all(map(math.isfinite, (x, y, z))):
            values.append(np.array(x * y + z).astype(dtype))
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        near = np.array(float(exact)).astype(dtype)
        around = [near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))]
        finite = [v for v in around if np.isfinite(v)]
        if not np.isfinite(near) or exact == 0:
            values.append(near if exact else np.array(x * y + z).astype(dtype))
            continue
        distance = [abs(Fraction(float(v)) - exact) for v in finite]
        least = min(distance)
        best = [v for v, d in zip(finite, distance, strict=True) if d == least]
        even = [v for v in best if v.view("u2") % 2 == 0]
        values.append((even or best)[0])
    return np.array(values, dtype)


def test_half_arithmetic_rounds_once(child: Child) -> None:
    n = 3000
    a, b, c = (halves_of_every_kind(n, seed) for seed in (1, 2, 3))
    # Products that a first rounding to 24 digits would turn to the wrong side of a tie.
    a[:3], b[:3], c[:3] = [1 + 2**-10] * 3, [1 + 2**-10, 1, 3], [2.0**-14, -(2.0**-24), 2.0**-24]
    c[3:400] = np.linspace(-4, 4, 397)
    answer = launch(
        child, "half_functions", [read(a), read(b), read(c), out((12, n), np.float16)], n,
        grid=(-(-n // 256),), block=(256,),
    )  # fmt: skip
    got = results(answer, 3)
    with np.errstate(all="ignore"):
        want = {
            0: a + b, 1: a - b, 2: a * b, 3: a / b, 4: fused(a, b, c, np.float16),
            5: np.sqrt(np.abs(a)), 6: -a, 7: np.fmax(a, b),
            8: fused(a, c, np.ones_like(a), np.float16), 9: fused(b, c, np.ones_like(b), np.float16),
            10: (a < b).astype(np.float16), 11: np.exp(c.astype(np.float64)).astype(np.float16),
        }  # fmt: skip
    zeros = (a == 0) & (b == 0)  # of which fmax may give either sign
    for row, values in want.items():
        ignored = zeros if row == 7 else np.zeros(n, bool)
        assert same(got[row][~ignored], values[~ignored]), row


def test_half_conversions(child: Child) -> None:
    bits = np.random.default_rng(6).integers(0, 2**32, 20000, np.uint32)
    data = bits.view(np.float32).copy()
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = every[np.isfinite(every)]
    near = [np.nextafter(finite, np.float32(s) * np.inf, dtype=np.float32) for s in (-1, 1)]
    ties = (finite[:-1] + finite[1:]) / 2
    edge = np.array([65504, 65519.996, 65520, 65536, -65520, 2**-25, 2**-25 * 1.0001, np.nan], "f4")
    data = np.concatenate([data, every, *near, ties, edge]).astype(np.float32)
    n = len(data)
    answer = launch(
        child, "half_conversions", [read(data), out(n, np.float16), out(n, np.float32)], n,
        grid=(-(-n // 256),), block=(256,),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        want = data.astype(np.float16)
        assert same(results(answer, 1), want)
        assert same(results(answer, 2), want.astype(np.float32))


def test_double_to_half_rounds_once(child: Child) -> None:
    generator = np.random.default_rng(7)
    base = np.concatenate(
        [np.ldexp(1 + generator.integers(0, 2048, 500) / 2048.0, e) for e in range(-26, 17)]
    )
    data = np.concatenate(
        [base, base * (1 + 2.0**-40), base * (1 - 2.0**-40), [np.nan, np.inf, -0.0]]
    )
    n = len(data)
    answer = launch(
        child,
        "double_to_half",
        [read(data), out(n, np.float16)],
        n,
        grid=(-(-n // 256),),
        block=(256,),
    )
    with np.errstate(all="ignore"):
        assert same(results(answer, 1), data.astype(np.float16))


def test_bfloat16(child: Child) -> None:
    generator = np.random.default_rng(8)
    n = 2000
    a, b = (generator.standard_normal(n).astype(ml_dtypes.bfloat16) for _ in range(2))
    data = generator.integers(0, 2**32, n, np.uint32).view(np.float32)
    buffers = [read(a), read(b), out((4, n), a.dtype), read(data), out(n, a.dtype)]
    answer = launch(child, "bfloat16_functions", buffers, n, grid=(-(-n // 256),), block=(256,))
    got = results(answer, 2)
    x, y = a.astype(np.float64), b.astype(np.float64)
    # Sums and products of two bfloat16 values are exact in float64; the fused one is nearly so.
    want = [v.astype(np.float32).astype(a.dtype) for v in (x + y, x * y)]
    want.append((x * y + x).astype(np.float32).astype(a.dtype))
    want.append((a.astype(np.float32) + np.float32(1)).astype(a.dtype))
    for row in range(4):
        assert np.array_equal(got[row].view(np.uint16), want[row].view(np.uint16)), row
    with np.errstate(all="ignore"):
        assert same(results(answer, 4), data.astype(a.dtype))


def test_mathematical_functions(child: Child) -> None:
    data = np.array([0.25, 0.5, 1, 1.5, 2, 2.75, 3, 7.125], np.float32)
    n = len(data)
    answer = launch(child, "functions", [read(data), out((16, n), np.float32)], n, block=(n,))
    got = results(answer, 1)
    x = data.astype(np.float64)
    want = [
        np.exp(x), np.exp(x), 1 / np.sqrt(x), np.tanh(x), [math.erf(v) for v in x], x * x - 1,
        x / 3, 1 / x, x * x + 1, np.sin(np.pi * x), np.cos(np.pi * x), np.log(x),
        np.clip(x, 1, 2), 10**x, x**1.5, np.sqrt(x) + x,
    ]  # fmt: skip
    for row, values in enumerate(want):
        rounded = np.asarray(values).astype(np.float32)
        assert np.all(np.abs(got[row] - rounded) <= np.spacing(np.abs(rounded)) + 1e-12), row


def test_bit_functions(child: Child) -> None:
    data = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x00F0F00F, 0x12345678], np.uint32)
    n = len(data)
    answer = launch(child, "bit_functions", [read(data), out((10, n), np.int32)], n, block=(n,))
    got = results(answer, 1).view(np.uint32)
    for column, x in enumerate(int(v) for v in data):
        bytes_of = [*x.to_bytes(4, "little"), 0x77, 0x66, 0x55, 0x44]
        want = [
            x.bit_count(), 2 * x.bit_count(), 32 - x.bit_length(), (x & -x).bit_length(),
            int(f"{x:032b}"[::-1], 2), 64 - (x << 32 | x).bit_length(), x * x >> 32,
            int.from_bytes(bytes([bytes_of[0], bytes_of[4], bytes_of[1], bytes_of[5]]), "little"),
            (0xFF << 32 | x) >> 24 & 0xFFFFFFFF, x,
        ]  # fmt: skip
        assert [int(v) for v in got[:, column]] == want


def test_float_to_integer_saturates(child: Child) -> None:
    data = np.array([2.5, -2.5, 3e9, -3e9, 5e9, np.nan, -0.5, 0.99], np.float32)
    answer = launch(
        child,
        "saturating_conversions",
        [read(data), out(8, np.int32), out(8, np.uint32)],
        block=(8,),
    )
    top = 2**31 - 1
    assert results(answer, 1).tolist() == [2, -2, top, -top - 1, top, 0, 0, 1]
    assert results(answer, 2).tolist() == [2, 0, 3_000_000_000, 0, 2**32 - 1, 0, 0, 0]


def test_symbols_are_copied_before_each_repetition(child: Child) -> None:
    table = Buffer("symbol", np.array([1, 2, 3, 4], np.float32))
    offset = Buffer("symbol", np.array([100], np.int32))
    kernel = Launch(list(SIGNATURES).index("symbols"), (1,), (4,), [("b", 0)])
    answer = child.run([out(4, np.float32), table, offset], kernel)
    assert results(answer, 0).tolist() == [101, 102, 103, 104]
    short = Buffer("symbol", np.array([1, 2, 3], np.float32))
    refused = child.run([out(4, np.float32), short, offset], kernel)
    assert refused.status == 2
    assert "symbol table has 16 bytes in the kernel source, the spec gives 12" in refused.message


def test_template_instantiation_in_a_namespace(child: Child) -> None:
    data = np.arange(1000, dtype=np.float32)
    answer = launch(
        child, "scaling::scale<float, 4>", [read(data), out(1000, np.float32)], np.float32(1.5), 1000,
        grid=(4,), block=(64,),
    )  # fmt: skip
    assert np.array_equal(results(answer, 1), data * np.float32(1.5))


def test_vector_types_and_narrow_integer_arguments(child: Child) -> None:
    data = np.arange(40, dtype=np.float32).reshape(10, 4)
    answer = launch(
        child, "vectors", [read(data), out((10, 4), np.float32)], 200, 1, 10, block=(16,)
    )
    want = -(data * 2 + np.array([1, 2, 3, 204], np.float32))
    assert np.array_equal(results(answer, 1), want)


@pytest.mark.parametrize(
    ("scalars", "words"),
    [
        ((256, 1, 10), ["argument 2", "256", "0 to 255"]),
        ((-1, 1, 10), ["argument 2", "-1", "0 to 255"]),
        ((1, 2, 10), ["argument 3", "2", "0 to 1"]),
        ((1, 1, -32769), ["argument 4", "-32769", "-32768 to 32767"]),
        ((1, 1, 2**40), ["argument 4", str(2**40), "-32768 to 32767"]),
    ],
)
def test_an_integer_that_does_not_fit_is_refused(
    child: Child, scalars: tuple[int, ...], words: list[str]
) -> None:
    data = np.zeros((10, 4), np.float32)
    answer = launch(child, "vectors", [read(data), out((10, 4), np.float32)], *scalars, block=(16,))
    assert answer.status == 2
    assert all(word in answer.message for word in [*words, "kernel vectors"])


def test_loads_through_a_pointer_of_another_type(child: Child) -> None:
    data = np.arange(64, dtype=np.float16)
    answer = launch(child, "punned_loads", [read(data), out(64, np.float16)], block=(8,))
    assert np.array_equal(results(answer, 1), data.reshape(8, 8)[:, ::-1].ravel())


def test_what_a_kernel_prints_reaches_the_log(child: Child) -> None:
    answer = launch(child, "prints", [out(6, np.int32)], grid=(2,), block=(3,), schedule=[(1, 0)])
    assert results(answer, 0).tolist() == [1] * 6
    lines = child.logged().splitlines()
    assert sorted(lines[-6:]) == [f"thread {t} of block {b}" for t in range(3) for b in range(2)]


def test_seeded_schedules_vary_the_order_of_blocks(child: Child) -> None:
    schedule = [(1, 0), *((1, seed) for seed in range(1, 6)), (1, REVERSE)]
    buffers = [out(64, np.int32), Buffer("inout", np.zeros(1, np.int32))]
    answer = launch(child, "order_of_blocks", buffers, grid=(64,), block=(32,), schedule=schedule)
    orders = [repetition[0] for repetition in answer.results]
    assert all(sorted(order.tolist()) == list(range(64)) for order in orders)
    assert np.array_equal(orders[0], np.arange(64))
    assert np.array_equal(orders[-1], np.arange(64)[::-1])
    assert all(np.abs(order - np.arange(64)).max() > 16 for order in orders[1:6])


@pytest.mark.parametrize("seed", [0, REVERSE])
def test_neighbours_of_a_large_grid_keep_their_order(child: Child, seed: int) -> None:
    """Two OS threads take blocks in turn, four at a time or more."""
    buffers = [out(1024, np.int32), Buffer("inout", np.zeros(1, np.int32))]
    answer = launch(
        child, "order_of_blocks", buffers, grid=(1024,), block=(32,), schedule=[(1, seed)]
    )
    order = answer.results[0][0][:: -1 if seed else 1]
    assert np.count_nonzero(np.diff(order) > 0) >= 3 / 4 * 1024 - 1


def test_seeded_schedules_vary_the_order_of_warps_and_keep_warps_together(child: Child) -> None:
    size, warps = warp_size(child), 512 // warp_size(child)
    schedule = [(1, 0), *((1, seed) for seed in range(1, 9)), (1, 3), (1, REVERSE)]
    answer = launch(child, "order_of_warps", [out(512, np.int32)], block=(512,), schedule=schedule)
    orders = [repetition[0] for repetition in answer.results]
    assert np.array_equal(orders[0], np.arange(512))
    assert np.array_equal(orders[3], orders[9])  # the same seed
    assert np.array_equal(orders[10], np.arange(512)[::-1])
    assert len({order.tobytes() for order in orders[1:9]}) == 8
    directions = set()
    for order in orders:
        lanes = order.reshape(warps, size)
        steps = set(np.diff(lanes, axis=1).ravel().tolist())
        assert steps in ({1}, {-1})
        directions |= steps
    assert directions == {1, -1}


def test_schedules_show_a_race(child: Child) -> None:
    data = np.ones(256, np.float32)
    schedule = [(1, seed) for seed in range(20)]
    answer = launch(
        child, "racy_sums", [read(data), out((256, 2), np.float32)], block=(256,), schedule=schedule
    )
    wrong = [bool(np.any(repetition[1] != [256, 512])) for repetition in answer.results]
    assert sum(wrong) >= 18
