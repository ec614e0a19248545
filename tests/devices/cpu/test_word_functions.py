"""CUDA's functions of words, halves and whole numbers on the cpu device, against Python's integers."""

from __future__ import annotations

import bisect
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.cpu.harness_client import Child, Launch, build, out, read

Words = list[int]


def parts(word: int, bits: int, *, signed: bool) -> Words:
    """The parts of a word, the lowest first."""
    found = [word >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
    return [one - (1 << bits) * (signed and one >> (bits - 1)) for one in found]


def joined(values: Words, bits: int) -> int:
    return sum((one & (1 << bits) - 1) << bits * at for at, one in enumerate(values))


def clamped(value: int, bits: int, *, signed: bool) -> int:
    least = -(1 << (bits - 1)) if signed else 0
    return max(least, min(value, least + (1 << bits) - 1))


def half_away(total: int) -> int:
    """Half of a sum, rounded away from zero."""
    return (abs(total) + 1) // 2 * (1 if total >= 0 else -1)


COMPARED = {"eq": operator.eq, "ne": operator.ne, "ge": operator.ge, "gt": operator.gt,
            "le": operator.le, "lt": operator.lt}  # fmt: skip
# By the name behind `__v` and in front of the count: whether parts are signed, and what comes of two.
OF_PARTS: dict[str, tuple[bool, Callable[[int, int, int], int]]] = {
    "abs": (True, lambda a, b, n: abs(a)),
    "absss": (True, lambda a, b, n: clamped(abs(a), n, signed=True)),
    "neg": (True, lambda a, b, n: -a),
    "negss": (True, lambda a, b, n: clamped(-a, n, signed=True)),
    "add": (False, lambda a, b, n: a + b),
    "addss": (True, lambda a, b, n: clamped(a + b, n, signed=True)),
    "addus": (False, lambda a, b, n: clamped(a + b, n, signed=False)),
    "sub": (False, lambda a, b, n: a - b),
    "subss": (True, lambda a, b, n: clamped(a - b, n, signed=True)),
    "subus": (False, lambda a, b, n: clamped(a - b, n, signed=False)),
    "absdiffs": (True, lambda a, b, n: abs(a - b)),
    "absdiffu": (False, lambda a, b, n: abs(a - b)),
    "avgs": (True, lambda a, b, n: half_away(a + b)),
    "avgu": (False, lambda a, b, n: (a + b + 1) // 2),
    "haddu": (False, lambda a, b, n: (a + b) // 2),
    "maxs": (True, lambda a, b, n: max(a, b)),
    "maxu": (False, lambda a, b, n: max(a, b)),
    "mins": (True, lambda a, b, n: min(a, b)),
    "minu": (False, lambda a, b, n: min(a, b)),
}


def compared(test: Callable[[int, int], bool], yes: int, a: int, b: int, bits: int) -> int:
    return yes if test(a, b) else 0


for word, compare in COMPARED.items():
    for sign in ("",) if word in {"eq", "ne"} else ("s", "u"):
        OF_PARTS[f"cmp{word}{sign}"] = (sign == "s", functools.partial(compared, compare, -1))
        OF_PARTS[f"set{word}{sign}"] = (sign == "s", functools.partial(compared, compare, 1))
ONE = {"abs", "absss", "neg", "negss"}
BITS = {2: 16, 4: 8}


def told(name: str, count: int) -> Callable[[int, int], int]:
    signed, rule = OF_PARTS[name]
    bits = BITS[count]

    def function(x: int, y: int) -> int:
        pairs = zip(parts(x, bits, signed=signed), parts(y, bits, signed=signed), strict=True)
        return joined([rule(a, b, bits) for a, b in pairs], bits)

    return function


def sad(bits: int, *, signed: bool) -> Callable[[int, int], int]:
    def function(x: int, y: int) -> int:
        pairs = zip(parts(x, bits, signed=signed), parts(y, bits, signed=signed), strict=True)
        return sum(abs(a - b) for a, b in pairs)

    return function


def dot2(shift: int, *, signed: bool) -> Callable[[int, int], int]:
    def function(x: int, y: int) -> int:
        halves, bytes_ = parts(x, 16, signed=signed), parts(y >> shift, 8, signed=signed)
        return halves[0] * bytes_[0] + halves[1] * bytes_[1] + 7

    return function


def funnel(shift: int, *, left: bool) -> Callable[[int, int], int]:
    if left:
        return lambda x, y: (y << 32 | x) << shift >> 32
    return lambda x, y: (y << 32 | x) >> shift


FUNNELS: dict[str, Callable[[int], int]] = {
    "l": lambda by: by % 32,
    "r": lambda by: by % 32,
    "lc": lambda by: min(by, 32),
    "rc": lambda by: min(by, 32),
}


FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    **{
        f"__v{name}{count}(x{'' if name in ONE else ', y'})": told(name, count)
        for name, count in itertools.product(OF_PARTS, BITS)
    },
    **{
        f"__vsad{sign}{count}(x, y)": sad(bits, signed=sign == "s")
        for (count, bits), sign in itertools.product(BITS.items(), "su")
    },
    **{
        f"__funnelshift_{name}(x, y, {by}u)": funnel(rule(by), left=name[0] == "l")
        for by in (0, 1, 7, 31, 32, 33, 63, 64, 0xFFFFFFFF)
        for name, rule in FUNNELS.items()
    },
    "unsigned(__dp2a_lo(int(x), int(y), 7))": dot2(0, signed=True),
    "unsigned(__dp2a_hi(int(x), int(y), 7))": dot2(16, signed=True),
    "__dp2a_lo(x, y, 7u)": dot2(0, signed=False),
    "__dp2a_hi(x, y, 7u)": dot2(16, signed=False),
    "unsigned(__dp4a(tokitai::reinterpret<char4>(x), tokitai::reinterpret<char4>(y), 7))": (
        lambda x, y: 7
        + sum(map(operator.mul, parts(x, 8, signed=True), parts(y, 8, signed=True)))
    ),
}  # fmt: skip


def operands() -> tuple[Words, Words]:
    """Words whose bytes, and whose halves, are all pairs of edges; and others."""
    x: Words = []
    y: Words = []
    for bits, edges in (
        (8, [0, 1, 2, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]),
        (16, [0, 1, 0xFF, 0x100, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF]),
    ):
        pairs = list(itertools.product(edges, edges))
        step = 32 // bits
        pairs += pairs[: -len(pairs) % step]
        for at in range(0, len(pairs), step):
            x.append(joined([a for a, _ in pairs[at : at + step]], bits))
            y.append(joined([b for _, b in pairs[at : at + step]], bits))
    draw = np.random.default_rng(1).integers(0, 1 << 32, (2, 200)).tolist()
    return x + draw[0], y + draw[1]


WHOLE = {"int": (32, True), "uint": (32, False), "short": (16, True), "ushort": (16, False),
         "ll": (64, True), "ull": (64, False)}  # fmt: skip
C = {"int": "int", "uint": "unsigned", "short": "short", "ushort": "unsigned short",
     "ll": "long long", "ull": "unsigned long long"}  # fmt: skip
FORMATS = {"half": ("__half", np.float16), "bfloat16": ("__hip_bfloat16", ml_dtypes.bfloat16)}
DIRECTIONS = ("rn", "rz", "ru", "rd")
REDUCTIONS: dict[str, tuple[str, Callable[[NDArray[Any]], Any]]] = {
    "add": ("int", lambda v: int(v.sum()) & 0xFFFFFFFF),
    "min": ("int", lambda v: int(v.min()) & 0xFFFFFFFF),
    "max": ("int", lambda v: int(v.max()) & 0xFFFFFFFF),
    "umin": ("unsigned", lambda v: int(v.astype(np.uint32).min())),
    "umax": ("unsigned", lambda v: int(v.astype(np.uint32).max())),
    "and": ("unsigned", lambda v: int(np.bitwise_and.reduce(v.astype(np.uint32)))),
    "or": ("unsigned", lambda v: int(np.bitwise_or.reduce(v.astype(np.uint32)))),
    "xor": ("unsigned", lambda v: int(np.bitwise_xor.reduce(v.astype(np.uint32)))),
}


def source() -> str:
    rows = "".join(f"  z[{at} * n + i] = {text};\n" for at, text in enumerate(FUNCTIONS))
    to, of = [], []
    for at, (name, way) in enumerate(itertools.product(WHOLE, DIRECTIONS)):
        for short, (kind, _) in FORMATS.items():
            to.append(
                f"  {short}s[{at} * n + i] = __{name}2{short}_{way}(({C[name]})v[i]).tokitai_bits();\n"
            )
            f = f"{kind}::tokitai_with_bits(bits)"
            of.append(
                f"  {short}s[{at} * n + i] = (long long)__{short}2{name}_{way}({f});\n".replace(
                    "__bfloat162", "__bfloat162"
                )
            )
    reduced = "".join(
        f"  z[{at} * 32 + i] = __reduce_{name.removeprefix('u')}_sync(m, ({kind})v[i]);\n"
        for at, (name, (kind, _)) in enumerate(REDUCTIONS.items())
    )
    return f"""#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
__global__ void words(const unsigned* a, const unsigned* b, unsigned* z, int n) {{
  AT;
  const unsigned x = a[i], y = b[i];
{rows}}}
__global__ void to_floats(const long long* v, unsigned short* halfs, unsigned short* bfloat16s, int n) {{
  AT;
{"".join(to)}}}
__global__ void of_floats(const unsigned short* v, long long* halfs, long long* bfloat16s, int n) {{
  AT;
  const unsigned bits = v[i];
{"".join(of)}}}
__global__ void reduced(const int* v, unsigned* z) {{
  const int i = threadIdx.x;
  const unsigned m = i % 3 ? 0xb6db6db6u : 0x49249249u;
{reduced}}}
__global__ void spaces(const float* x, float* y) {{
  __shared__ float s[4];
  const int i = threadIdx.x;
  s[i] = x[i];
  const unsigned at = (unsigned)__cvta_generic_to_shared(s);
  __syncthreads();
  const float* back = (const float*)__cvta_shared_to_generic(at + 4u * unsigned(3 - i));
  y[i] = *back + (__isShared(back) ? 0 : 1000) + (__isShared(x) ? 1000 : 0);
  y[i] += *(const float*)__cvta_global_to_generic(__cvta_generic_to_global(x + i));
}}
"""


SIGNATURES: dict[str, list[str]] = {
    "words": ["uint32*", "uint32*", "uint32*", "int"],
    "to_floats": ["int64*", "uint16*", "uint16*", "int"],
    "of_floats": ["uint16*", "int64*", "int64*", "int"],
    "reduced": ["int32*", "uint32*"],
    "spaces": ["float32*", "float32*"],
}


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    path = Path(tmp_path_factory.mktemp("words")) / "words.hip"
    path.write_text(source(), "utf-8")
    program, done = build(path, SIGNATURES, (), ["-DTOKITAI_WARP_SIZE=32"])
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def run(child: Child, kernel: str, buffers: list[Any], *scalars: int, threads: int) -> list[Any]:
    args = [*(("b", i) for i in range(len(buffers))), *scalars]
    call = Launch(list(SIGNATURES).index(kernel), (1,), (threads,), args, 0)
    answer = child.run(buffers, call, ((0xA5, 0), (0x5A, 1)))
    assert (answer.status, answer.message, answer.guards) == (0, "", [])
    first, second = answer.results
    assert all(array.tobytes() == second[index].tobytes() for index, array in first.items())
    return list(first.values())


def test_functions_of_words_and_of_their_parts(child: Child) -> None:
    x, y = operands()
    n = len(x)
    data = [np.array(one, np.uint32) for one in (x, y)]
    shape = (len(FUNCTIONS), n)
    (got,) = run(child, "words", [*map(read, data), out(shape, np.uint32)], n, threads=n)
    for row, (text, function) in zip(got.reshape(shape).tolist(), FUNCTIONS.items(), strict=True):
        wanted = [function(a, b) & 0xFFFFFFFF for a, b in zip(x, y, strict=True)]
        wrong = [at for at in range(n) if row[at] != wanted[at]]
        assert not wrong, (text, hex(x[wrong[0]]), hex(y[wrong[0]]), hex(row[wrong[0]]))


@functools.cache
def finite(dtype: Any) -> list[float]:
    """All finite numbers of a 16-bit format, in order."""
    with np.errstate(invalid="ignore"):  # of NaN
        every = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64)
    return np.unique(every[np.isfinite(every)]).tolist()  # type: ignore[no-any-return]


def rounded(value: int, dtype: Any, way: str) -> float:
    """A whole number in a 16-bit format, by its neighbours there."""
    known = finite(dtype)
    at = bisect.bisect_left(known, value)  # Python compares ints and floats exactly
    above = known[at] if at < len(known) else np.inf
    below = above if above == value else known[at - 1] if at else -np.inf
    if way == "rz":
        return below if value >= 0 else above
    if way != "rn":
        return above if way == "ru" else below
    largest, step = known[-1], known[-1] - known[-2]
    if abs(value) > largest:
        over = Fraction(largest) + Fraction(step) / 2
        return float(np.copysign(largest if abs(value) < over else np.inf, value))
    down, up = Fraction(value) - Fraction(below), Fraction(above) - Fraction(value)
    even = below if int(np.array(below, dtype).view(np.uint16)) % 2 == 0 else above
    return below if down < up else above if up < down else even


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_to_sixteen_bits_round_once(child: Child, name: str) -> None:
    bits, signed = WHOLE[name]
    # Ties, what is a little beside them, the largest halves and the ends of the types.
    edges = [0, 1, 2049, 2050, 2051, 4098, 65503, 65504, 65519, 65520, 65521, 257, 258, 259, 385]
    edges += [(1 << 62) + (1 << 54) + d for d in (-1, 0, 1)] + [(1 << 31) - 1, (1 << 63) - 1]
    edges += [(129 << 24) + (1 << 23) * k + d for k in (0, 1) for d in (-1, 0, 1)]
    values = [v for e in edges for v in (e, -e)] + [-(1 << 31), -(1 << 63), -(1 << 15)]
    mask = (1 << bits) - 1
    data = np.array([v & (1 << 64) - 1 for v in values], np.uint64).view(np.int64)
    meant = [(v & mask) - (1 << bits) * (signed and v >> (bits - 1) & 1) for v in values]
    n, rows = len(values), len(WHOLE) * len(DIRECTIONS)
    shape = (rows, n)
    got = run(
        child, "to_floats", [read(data), out(shape, np.uint16), out(shape, np.uint16)], n, threads=n
    )
    for array, (_, dtype) in zip(got, FORMATS.values(), strict=True):
        for at, way in enumerate(DIRECTIONS):
            row = array.reshape(shape)[list(WHOLE).index(name) * len(DIRECTIONS) + at].view(dtype)
            for value, one in zip(meant, row.tolist(), strict=True):
                assert float(one) == rounded(value, dtype, way), (name, way, value)


def test_sixteen_bits_to_whole_numbers_end_at_the_type_s_ends(child: Child) -> None:
    bits = np.array(
        [0, 0x8000, 1, 0x3800, 0x3C00, 0x3E00, 0x4100, 0x4700, 0x47FF, 0x7BFF, 0x7C00, 0x7E00, 0xB800,
         0xBE00, 0xC100, 0xF800, 0xFBFF, 0xFC00, 0x3F00, 0x3F40, 0x3FC0, 0x4020, 0x4EFF, 0x4F00, 0x5F00,
         0xBFC0, 0xC020, 0xCF00, 0xDF00, 0x7F80, 0xFF80, 0x7FC0], np.uint16)  # fmt: skip
    n = bits.size
    shape = (len(WHOLE) * len(DIRECTIONS), n)
    given = [read(bits), out(shape, np.int64), out(shape, np.int64)]
    got = run(child, "of_floats", given, n, threads=n)
    rounding = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
    for array, (_, dtype) in zip(got, FORMATS.values(), strict=True):
        values = bits.view(dtype).astype(np.float64)
        rows = iter(array.reshape(shape))
        for name, (width, signed) in WHOLE.items():
            for way in DIRECTIONS:
                for value, one in zip(values.tolist(), next(rows).tolist(), strict=True):
                    least = -(1 << (width - 1)) if signed else 0
                    most = least + (1 << width) - 1
                    want = 0
                    if value == value:
                        whole = value if np.isinf(value) else float(rounding[way](value))
                        want = most if whole >= most else least if whole <= least else int(whole)
                    assert one % (1 << 64) == want % (1 << 64), (dtype, name, way, value)


def test_reductions_of_a_warp_are_over_their_masks(child: Child) -> None:
    v = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, 32).astype(np.int32)
    given = [read(v), out((len(REDUCTIONS), 32), np.uint32)]
    (got,) = run(child, "reduced", given, threads=32)
    thirds = np.arange(32) % 3 == 0
    for row, (name, (_, rule)) in zip(got.reshape(-1, 32), REDUCTIONS.items(), strict=True):
        for members in (thirds, ~thirds):
            assert {int(one) for one in row[members]} == {rule(v[members])}, name


def test_addresses_in_shared_memory_fit_a_word(child: Child) -> None:
    x = np.array([1, 2, 3, 4], np.float32)
    (got,) = run(child, "spaces", [read(x), out(4, np.float32)], threads=4)
    assert got.tolist() == [5, 5, 5, 5]
