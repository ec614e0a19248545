"""Plain PTX in inline assembly on the cpu device: each instruction against Python's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.harness_client import Child, Launch, build, out, read
from tokitai_cli.build.ptx import first_instruction, translated
from tokitai_cli.build.scan import scan

M = 0xFFFFFFFF
W = (1 << 64) - 1


def s32(value: int) -> int:
    return (value & M) - (1 << 32) * (value >> 31 & 1)


def s64(value: int) -> int:
    return (value & W) - (1 << 64) * (value >> 63 & 1)


def lop3(a: int, b: int, c: int, table: int) -> int:
    rows = [(a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1 for i in range(32)]
    return sum((table >> row & 1) << i for i, row in enumerate(rows))


def prmt(a: int, b: int, selector: int) -> int:
    data = (a | b << 32).to_bytes(8, "little")
    picked = [selector >> 4 * i & 15 for i in range(4)]
    found = [data[p & 7] if p < 8 else 0xFF * (data[p & 7] >> 7) for p in picked]
    return int.from_bytes(bytes(found), "little")


def bfe(a: int, position: int, length: int, *, signed: bool) -> int:
    """A field, lowest bit first; what is behind the word's end is like its sign."""
    position, length = position & 255, length & 255
    held = f"{a:032b}"[::-1]
    field = held[position : position + length]
    sign = held[min(position + length - 1, 31)] if signed and length else "0"
    return int(field.ljust(32, sign)[::-1], 2)


def bfi(a: int, b: int, position: int, length: int) -> int:
    mask = ((1 << (length & 255)) - 1) << (position & 255) & M
    return b & ~mask | a << (position & 255) & mask


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


NARROW: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def number(kind: str, word: int) -> Any:
    """The number of 16 bits at a word's low end."""
    return np.array(word & 0xFFFF, np.uint16).view(NARROW[kind]).astype(np.float64)


def halves(kind: str, rule: Callable[[Any, Any], Any], a: int, b: int) -> int:
    """A function of both numbers of two words; -1 where one is not finite."""
    whole = 0
    for shift in (0, 16):
        x, y = number(kind, a >> shift), number(kind, b >> shift)
        got = rule(x, y) if np.isfinite(x) and np.isfinite(y) else np.nan
        if np.isnan(got):
            return -1
        whole |= int(np.array(got).astype(NARROW[kind]).view(np.uint16)) << shift
    return whole


# Of three words and their ends: the template, and what it gives.
WORDS: dict[str, Callable[[int, int, int], int]] = {
    "add.u32 %0, %1, %2;": lambda a, b, c: a + b,
    "sub.s32 %0, %1, %2;": lambda a, b, c: a - b,
    "mul.lo.u32 %0, %1, %2;": lambda a, b, c: a * b,
    "mul.hi.u32 %0, %1, %2;": lambda a, b, c: a * b >> 32,
    "mul.hi.s32 %0, %1, %2;": lambda a, b, c: s32(a) * s32(b) >> 32,
    "mad.lo.s32 %0, %1, %2, %3;": lambda a, b, c: a * b + c,
    "min.s32 %0, %1, %2;": lambda a, b, c: min(s32(a), s32(b)),
    "max.u32 %0, %1, %2;": lambda a, b, c: max(a, b),
    "and.b32 %0, %1, %2;": lambda a, b, c: a & b,
    "or.b32 %0, %1, %2;": lambda a, b, c: a | b,
    "xor.b32 %0, %1, %2;": lambda a, b, c: a ^ b,
    "not.b32 %0, %1;": lambda a, b, c: ~a,
    "shl.b32 %0, %1, %3;": lambda a, b, c: a << c if c < 32 else 0,
    "shr.u32 %0, %1, %3;": lambda a, b, c: a >> c if c < 32 else 0,
    "shr.s32 %0, %1, %3;": lambda a, b, c: s32(a) >> min(c, 32),
    "shf.l.wrap.b32 %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) << c % 32 >> 32,
    "shf.r.clamp.b32 %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "lop3.b32 %0, %1, %2, %3, 0xEA;": lambda a, b, c: a & b | c,
    "lop3.b32 %0, %1, %2, %3, 0x96;": lambda a, b, c: a ^ b ^ c,
    "lop3.b32 %0, %1, %2, %3, 0x1B;": lambda a, b, c: lop3(a, b, c, 0x1B),
    "prmt.b32 %0, %1, %2, 0x7531;": lambda a, b, c: prmt(a, b, 0x7531),
    "prmt.b32 %0, %1, %2, 0xF8C4;": lambda a, b, c: prmt(a, b, 0xF8C4),
    "prmt.b32 %0, %1, %2, %3;": prmt,
    "bfe.u32 %0, %1, %3, 7;": lambda a, b, c: bfe(a, c, 7, signed=False),
    "bfe.s32 %0, %1, %3, 7;": lambda a, b, c: bfe(a, c, 7, signed=True),
    "bfe.s32 %0, %1, 5, %3;": lambda a, b, c: bfe(a, 5, c, signed=True),
    "bfi.b32 %0, %1, %2, %3, 9;": lambda a, b, c: bfi(a, b, c, 9),
    "popc.b32 %0, %1;": lambda a, b, c: f"{a:b}".count("1"),
    "clz.b32 %0, %1;": lambda a, b, c: 32 - a.bit_length(),
    "brev.b32 %0, %1;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.u32 %0, %1, %2, p; }": lambda a, b, c: (
        a if s32(a) < s32(b) else b
    ),
    "{\\n\\t.reg .pred q;\\n\\t.reg .b32 t, u;\\n\\tsetp.hs.u32 q, %1, %2; // one\\n\\t"
    "mov.b32 t, 3;\\n\\t@!q add.u32 t, t, -5;\\n\\t"
    "mov.u32 u, %3;\\n\\txor.b32 %0, t, u;\\n\\t}": lambda a, b, c: (
        (3 if a >= b else -2) ^ c
    ),
    "mov.b32 %0, 0xFF;": lambda a, b, c: 255,
    "{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }": lambda a, b, c: a >> 16 | a << 16,
    "cvt.u32.u8 %0, %1;": lambda a, b, c: a & 255,
    "cvt.s32.s8 %0, %1;": lambda a, b, c: (a & 255) - 256 * (a >> 7 & 1),
    "cvt.sat.u8.s32 %0, %1;": lambda a, b, c: max(0, min(s32(a), 255)),
    "cvt.sat.s8.s32 %0, %1;": lambda a, b, c: max(-128, min(s32(a), 127)),
    "{ .reg .b32 t; or.b32 t, %2, 1; div.u32 %0, %1, t; }": lambda a, b, c: a // (b | 1),
    "{ .reg .b32 t; or.b32 t, %2, 1; rem.u32 %0, %1, t; }": lambda a, b, c: a % (b | 1),
    "{ .reg .b32 t; or.b32 t, %2, 1; div.s32 %0, %1, t; }": lambda a, b, c: towards_zero(
        s32(a), s32(b | 1)
    ),
    "{ .reg .b32 t; or.b32 t, %2, 1; rem.s32 %0, %1, t; }": lambda a, b, c: (
        s32(a) - s32(b | 1) * towards_zero(s32(a), s32(b | 1))
    ),
    "neg.s32 %0, %1;": lambda a, b, c: -a,
    "abs.s32 %0, %1;": lambda a, b, c: abs(s32(a)),
    "sub.f16x2 %0, %1, %2;": lambda a, b, c: halves("f16", lambda x, y: x - y, a, b),
    "add.rn.sat.f16x2 %0, %1, %2;": lambda a, b, c: halves(
        "f16", lambda x, y: min(max(x + y, 0), 1) + 0.0, a, b
    ),
    "mul.bf16x2 %0, %1, %2;": lambda a, b, c: halves("bf16", lambda x, y: x * y, a, b),
    "fma.rn.f16x2 %0, %1, %2, %1;": lambda a, b, c: halves("f16", lambda x, y: x * y + x, a, b),
    "fma.rn.relu.f16x2 %0, %1, %2, %1;": lambda a, b, c: halves(
        "f16", lambda x, y: max(x * y + x, 0.0), a, b
    ),
    "max.f16x2 %0, %1, %2;": lambda a, b, c: halves("f16", max, a, b),
    "neg.bf16x2 %0, %1;": lambda a, b, c: halves("bf16", lambda x, y: -x, a, b),
    "abs.f16x2 %0, %1;": lambda a, b, c: halves("f16", lambda x, y: abs(x), a, b),
    "{ .reg .f16 l, h, s; mov.b32 {l, h}, %1; mul.f16 s, l, h; mov.b32 %0, {s, h}; }": (
        lambda a, b, c: -1 if (one := halves("f16", lambda x, y: x * y, a, a >> 16)) < 0
        else one & 0xFFFF | a & ~0xFFFF
    ),
    "{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rni.sat.s8.f16 %0, l; }": lambda a, b, c: to_whole(
        number("f16", a), np.rint, -128, 127
    ),
    "{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rn.f16.s16 %0, l; }": lambda a, b, c: int(
        np.float16(np.uint16(a & 0xFFFF).view(np.int16)).view(np.uint16)
    ),
    "mov.u32 %0, %%laneid;": lambda a, b, c: -1,
}  # fmt: skip
LONG: dict[str, Callable[[int, int], int]] = {
    "add.s64 %0, %1, %2;": lambda a, b: a + b,
    "mul.lo.u64 %0, %1, %2;": lambda a, b: a * b,
    "mul.hi.u64 %0, %1, %2;": lambda a, b: a * b >> 64,
    "mul.hi.s64 %0, %1, %2;": lambda a, b: s64(a) * s64(b) >> 64,
    "{ .reg .b32 l, h; mov.b64 {l, h}, %1; mul.wide.u32 %0, l, h; }": lambda a, b: (
        (a & M) * (a >> 32)
    ),
    "{ .reg .b32 l, h; mov.b64 {l, h}, %1; mul.wide.s32 %0, l, h; }": lambda a, b: (
        s32(a) * s32(a >> 32)
    ),
    "{ .reg .b32 l, h; mov.b64 {l, h}, %1; cvt.s64.s32 %0, h; }": lambda a, b: s32(a >> 32),
    "{ .reg .b32 l, h; mov.b64 {l, h}, %1; mov.b64 %0, {h, l}; }": lambda a, b: a >> 32 | a << 32,
    "shr.s64 %0, %1, 63;": lambda a, b: s64(a) >> 63,
}
F = np.float32


def to_whole(value: Any, rounded: Any, least: int, most: int) -> int:
    if np.isnan(value):
        return 0
    return most if value >= most + 1 else least if value <= least - 1 else max(
        least, min(int(rounded(np.float64(value))), most)
    ) if np.isfinite(value) else 0  # fmt: skip


def bits(value: Any) -> int:
    return int(np.float32(value).view(np.uint32))


FLOATS: dict[str, Callable[[Any, Any], int]] = {
    "add.f32 %0, %1, %2;": lambda a, b: bits(a + b),
    "mul.rn.f32 %0, %1, %2;": lambda a, b: bits(a * b),
    "sub.sat.f32 %0, %1, %2;": lambda a, b: bits(min(a - b, F(1)) if a > b else F(0)),
    "add.ftz.f32 %0, %1, %2;": lambda a, b: bits(flush(flush(a) + flush(b))),
    "fma.rn.f32 %0, %1, %2, %1;": lambda a, b: bits(np.float64(a) * np.float64(b) + np.float64(a))
    if exactly(a, b) else -1,
    "neg.f32 %0, %1;": lambda a, b: bits(-a),
    "abs.f32 %0, %1;": lambda a, b: bits(abs(a)),
    "min.f32 %0, %1, %2;": lambda a, b: bits(np.fmin(a, b)) if a or b else -1,
    "max.f32 %0, %1, %2;": lambda a, b: bits(np.fmax(a, b)) if a or b else -1,
    "div.rn.f32 %0, %1, %2;": lambda a, b: bits(a / b),
    "sqrt.rn.f32 %0, %1;": lambda a, b: bits(np.sqrt(a)),
    "rcp.rn.f32 %0, %1;": lambda a, b: bits(F(1) / a),
    "cvt.rni.s32.f32 %0, %1;": lambda a, b: to_whole(a, np.rint, -(1 << 31), (1 << 31) - 1) & M,
    "cvt.rzi.u32.f32 %0, %1;": lambda a, b: to_whole(a, np.trunc, 0, M),
    "cvt.rmi.s32.f32 %0, %1;": lambda a, b: to_whole(a, np.floor, -(1 << 31), (1 << 31) - 1) & M,
    "cvt.rpi.s32.f32 %0, %1;": lambda a, b: to_whole(a, np.ceil, -(1 << 31), (1 << 31) - 1) & M,
    "{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h; }": lambda a, b: int(
        np.float16(a).view(np.uint16)
    ),
    "cvt.rna.tf32.f32 %0, %1;": lambda a, b: (bits(a) + 0x1000) & ~0x1FFF if np.isfinite(a) else -1,
    "cvt.rn.bf16x2.f32 %0, %1, %2;": lambda a, b: bf16(a) << 16 | bf16(b),
    "mov.b32 %0, 0f3F800000;": lambda a, b: 0x3F800000,
    "{ .reg .pred p; setp.gt.f32 p, %1, %2; selp.b32 %0, 1, 0, p; }": lambda a, b: int(a > b),
}  # fmt: skip


def flush(value: Any) -> Any:
    return np.copysign(F(0), value) if abs(value) < F(2.0**-126) else value


def exactly(a: Any, b: Any) -> bool:
    product = np.float64(a) * np.float64(b)
    return bool(np.isfinite(product) and product + np.float64(a) - product == np.float64(a))


def bf16(value: Any) -> int:
    return int(np.array(value).astype(ml_dtypes.bfloat16).view(np.uint16))


def source() -> str:
    words = "".join(
        f'  {{ unsigned r = 0; asm volatile("{text}" : "=r"(r) : "r"(a[i]), "r"(b[i]), "r"(c[i]));\n'
        f"    z[{at} * n + i] = r; }}\n"
        for at, text in enumerate(WORDS)
    )
    long = "".join(
        f'  {{ u64 r; asm("{text}" : "=l"(r) : "l"(a[i]), "l"(b[i])); z[{at} * n + i] = r; }}\n'
        for at, text in enumerate(LONG)
    )
    floats = "".join(
        f'  {{ unsigned r; asm("{{ .reg .b32 q; {text.replace("%0", "q")} mov.b32 %0, q; }}"'
        f' : "=r"(r) : "f"(a[i]), "f"(b[i])); z[{at} * n + i] = r; }}\n'
        for at, text in enumerate(FLOATS)
    )
    at = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;"
    return f"""#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
__global__ void words(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* z, int n) {{
  {at}
{words}}}
using u64 = unsigned long long;
__global__ void longs(const u64* a, const u64* b, u64* z, int n) {{
  {at}
{long}}}
__global__ void floats(const float* a, const float* b, unsigned* z, int n) {{
  {at}
{floats}}}
__global__ void memory(const float* x, float* y) {{
  __shared__ alignas(16) float s[8];
  const int i = threadIdx.x;
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {{%0, %1, %2, %3}}, [%4 + 16];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x));
  unsigned to;
  asm("{{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }}" : "=r"(to) : "l"(s));
  if (i == 0)
    asm volatile("st.shared.v2.f32 [%0 + 8], {{%1, %2}};"
                 :: "r"(to), "f"(v.x), "f"(v.y) : "memory");
  asm volatile("bar.sync 0;");
  float w;
  asm volatile("ld.shared.f32 %[w], [%[at]];" : [w] "=f"(w) : [at] "r"(to + 8 + 4 * unsigned(i)));
  asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(y + i), "f"(w + v.w));
}}
__global__ void shared_by_all(unsigned* y) {{
  const unsigned i = threadIdx.x;
  if (i < 4) y[i] = 0;
  __syncthreads();
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(y[4 + i]) : "l"(y), "r"(2u) : "memory");
  asm volatile("red.relaxed.gpu.global.max.u32 [%0 + 4], %1;" :: "l"(y), "r"(i) : "memory");
  asm volatile("{{ .reg .b32 t; atom.cas.b32 t, [%0 + 8], 0, %1; }}" :: "l"(y), "r"(i + 1) : "memory");
  asm volatile("red.global.or.b32 [%0 + 12], %1;" :: "l"(y), "r"(1u << i) : "memory");
  unsigned seen;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(y) : "memory");
  if (seen == 0) asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(y), "r"(7u) : "memory");
}}
""".replace("__shared__ alignas(16)", "alignas(16) __shared__")


SIGNATURES = {
    "words": [*["uint32*"] * 4, "int"],
    "longs": [*["uint64*"] * 3, "int"],
    "floats": ["float32*", "float32*", "uint32*", "int"],
    "memory": ["float32*", "float32*"],
    "shared_by_all": ["uint32*"],
}


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    text = source()
    plain = translated(text)
    assert "asm" not in plain
    assert plain.count("\n") == text.count("\n") + 1  # the #include in front
    path = Path(tmp_path_factory.mktemp("ptx")) / "ptx.hip"
    path.write_text(plain, "utf-8")
    program, done = build(path, SIGNATURES, (), ["-DTOKITAI_WARP_SIZE=32"])
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def run(child: Child, kernel: str, buffers: list[Any], *scalars: int, threads: int) -> Any:
    args = [*(("b", i) for i in range(len(buffers))), *scalars]
    call = Launch(list(SIGNATURES).index(kernel), (1,), (threads,), args, 0)
    answer = child.run(buffers, call, ((0xA5, 0), (0x5A, 1)))
    assert (answer.status, answer.message, answer.guards) == (0, "", [])
    (first,) = answer.results[0].values()
    return first


def compared(got: Any, table: dict[str, Any], mask: int, *given: Any) -> None:
    rows = got.reshape(len(table), -1).tolist()
    for row, (text, rule) in zip(rows, table.items(), strict=True):
        for at, values in enumerate(zip(*given, strict=True)):
            with np.errstate(all="ignore"):
                want = rule(*values)
            if text.endswith("%%laneid;"):
                want = at % 32
            if want != -1 or (table is WORDS and "f16" not in text):
                assert row[at] == want & mask, (text, values, hex(row[at]), hex(want & mask))


def test_instructions_of_words(child: Child) -> None:
    edges = [
        0,
        1,
        2,
        0x7F,
        0x80,
        0xFF,
        0x7FFFFFFF,
        0x80000000,
        0x80000001,
        0xFFFFFFFE,
        0xFFFFFFFF,
        0x89ABCDEF,
    ]
    shifts = [0, 1, 7, 25, 26, 31, 32, 33, 63, 255]
    draw = np.random.default_rng(5).integers(0, 1 << 32, (2, 400))
    a = [x for x in edges for _ in edges] + draw[0].tolist()
    b = [y for _ in edges for y in edges] + draw[1].tolist()
    c = [shifts[at % len(shifts)] for at in range(len(a))]
    n = len(a)
    given = [read(np.array(one, np.uint32)) for one in (a, b, c)]
    got = run(child, "words", [*given, out((len(WORDS), n), np.uint32)], n, threads=n)
    compared(got, WORDS, M, a, b, c)


def test_what_all_threads_change_at_once(child: Child) -> None:
    got = run(child, "shared_by_all", [out((36,), np.uint32)], threads=32).tolist()
    assert got[:2] == [64, 31]
    assert 1 <= got[2] <= 32
    assert got[3] == M
    assert sorted(got[4:]) == [*range(0, 64, 2)]


def test_instructions_of_long_words(child: Child) -> None:
    edges = [0, 1, M, 1 << 32, (1 << 63) - 1, 1 << 63, W, 0x0123456789ABCDEF, 0x80000000FFFFFFFF]
    a, b = [x for x in edges for _ in edges], [y for _ in edges for y in edges]
    given = [read(np.array(one, np.uint64)) for one in (a, b)]
    n = len(a)
    got = run(child, "longs", [*given, out((len(LONG), n), np.uint64)], n, threads=n)
    compared(got, LONG, W, a, b)


def test_instructions_of_floats(child: Child) -> None:
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        0.5,
        3e9,
        -3e9,
        4.5e9,
        1e-40,
        -1e-39,
        65504.0,
        1e38,
        np.inf,
        -np.inf,
    ]
    a = np.array([x for x in edges for _ in edges], np.float32)
    b = np.array([y for _ in edges for y in edges], np.float32)
    n = a.size
    got = run(child, "floats", [read(a), read(b), out((len(FLOATS), n), np.uint32)], n, threads=n)
    rows = got.reshape(len(FLOATS), n)
    for row, (text, rule) in zip(rows, FLOATS.items(), strict=True):
        for x, y, one in zip(a, b, row.tolist(), strict=True):
            with np.errstate(all="ignore"):
                want = rule(x, y)
            nan = np.isnan(np.uint32(max(want, 0)).view(np.float32))
            if want != -1 and not nan:
                assert one == want, (text, x, y, hex(one), hex(want))


def test_loads_stores_and_addresses(child: Child) -> None:
    x = np.arange(8, dtype=np.float32)
    got = run(child, "memory", [read(x), out(2, np.float32)], threads=2)
    assert got.tolist() == [4 + 7, 5 + 7]


UNKNOWN = [
    ('asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0}, {%1};" : "+r"(r) : "r"(x));',
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"),
    ('asm("mov.u32 %0, 1; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(a));',
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16"),
    ('asm("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" :: "l"(a), "r"(b));',
     "cp.async.bulk.global.shared::cta.bulk_group"),
    ('asm("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));', "add.cc.u32"),
    ('asm("cvt.s32.f32 %0, %1;" : "=r"(r) : "f"(a));', "cvt.s32.f32"),
    ('asm("add.u32 %0, %9, 1;" : "=r"(r));', "add.u32"),
    ('asm("ld.release.gpu.u32 %0, [%1];" : "=r"(r) : "l"(a));', "ld.release.gpu.u32"),
    ('asm("st.release.u32 [%0], %1;" :: "l"(a), "r"(r));', "st.release.u32"),
    ('asm("fence.proxy.async;");', "fence.proxy.async"),
    ('asm(TEXT : "=r"(r));', "asm"),
    ('asm("s_nop 0");', "s_nop"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name"), UNKNOWN)
def test_what_is_not_known_stays_and_is_named(text: str, name: str) -> None:
    assert translated(text) == text
    assert first_instruction(text).startswith(name)


def test_a_macro_goes_on_over_its_lines() -> None:
    text = '#define ADD(r, a)        \\\n  asm("add.u32 %0, %1, 1;"  \\\n : "=r"(r) : "r"(a))\nint b;\n'
    found = translated(text).splitlines()
    assert len(found) == len(text.splitlines()) + 1
    assert [line.endswith("\\") for line in found[1:]] == [True, True, False, False]


def test_what_is_refused_has_its_instruction_and_its_own_line() -> None:
    text = 'int a;\n#line 7\nint b;\nasm volatile(\n    "mma.sync.aligned.x {%0};"\n : "+r"(r));\n'
    (found,) = scan(text, "cpu")
    assert (found.line, found.name) == (8, "asm mma.sync.aligned.x")


def test_a_comment_or_literal_is_no_statement() -> None:
    text = '// asm("add.u32 %0, 1, 1;" : "=r"(r));\nconst char* t = "asm(1)";\nint wasm(int);\n'
    assert translated(text) == text
