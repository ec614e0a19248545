"""What scalar instructions of gfx11 give, in Python, written beside the table and not from it.

SCALAR: name -> (type of the destination, types of sources, function). A function takes Python integers
and, where it asks for them, `old` and `scc`; it returns the destination and, where it is set, scc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.devices.gfx.reference import REFERENCE

SCALAR: dict[str, tuple[str, str, Callable[..., Any]]] = {}
KEPT = None  # scc is not set


def signed(value: int, bits: int) -> int:
    """Two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits and value >> (bits - 1) else value


def ref(name: str, dst: str, src: str, function: Callable[..., Any]) -> None:
    """Put an entry in; a name is given once."""
    assert name not in SCALAR, name
    SCALAR[name] = (dst, src, function)


def told(function: Callable[..., int], bits: int) -> Callable[..., tuple[int, int]]:
    """scc says whether the result is not zero."""

    def made(*given: int) -> tuple[int, int]:
        value = function(*given) % 2**bits
        return value, int(value != 0)

    return made


def fits(value: int) -> bool:
    """Whether it is a signed number of 32 bits."""
    return -(2**31) <= value < 2**31


U2, I2 = "u32 u32", "i32 i32"
ref("s_add_u32", "u32", U2, lambda a, b: (a + b, (a + b) >> 32))
ref("s_sub_u32", "u32", U2, lambda a, b: (a - b, int(a < b)))
ref("s_addc_u32", "u32", U2, lambda a, b, scc: (a + b + scc, (a + b + scc) >> 32))
ref("s_subb_u32", "u32", U2, lambda a, b, scc: (a - b - scc, int(a - b - scc < 0)))
ref("s_add_i32", "i32", I2, lambda a, b: (a + b, int(not fits(a + b))))
ref("s_sub_i32", "i32", I2, lambda a, b: (a - b, int(not fits(a - b))))
ref("s_absdiff_i32", "u32", I2, told(lambda a, b: abs(a - b), 32))
for name, function in {
    "lshl": lambda a, b: a << b % 32,
    "lshr": lambda a, b: a >> b % 32,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "and_not1": lambda a, b: a & ~b,
    "or_not1": lambda a, b: a | ~b,
}.items():
    ref(f"s_{name}_b32", "u32", U2, told(function, 32))
    if name not in {"lshl", "lshr"}:
        ref(f"s_{name}_b64", "u64", "u64 u64", told(function, 64))
ref("s_lshl_b64", "u64", "u64 u32", told(lambda a, b: a << b % 64, 64))
ref("s_lshr_b64", "u64", "u64 u32", told(lambda a, b: a >> b % 64, 64))
ref("s_ashr_i32", "i32", "i32 u32", told(lambda a, b: a >> b % 32, 32))
ref("s_ashr_i64", "i64", "i64 u32", told(lambda a, b: a >> b % 64, 64))
for places in range(1, 5):
    ref(f"s_lshl{places}_add_u32", "u32", U2,
        lambda a, b, places=places: ((a << places) + b, int((a << places) + b >= 2**32)))  # fmt: skip
for kind in ("i32", "u32"):
    two = f"{kind} {kind}"
    ref(f"s_min_{kind}", kind, two, lambda a, b: (min(a, b), int(a < b)))
    ref(f"s_max_{kind}", kind, two, lambda a, b: (max(a, b), int(a > b)))


def field(a: int, b: int, bits: int) -> tuple[int, int]:
    """First bit and width of a field that b names."""
    return a >> b % bits, min(b >> 16 & 127, bits)


def extracted(a: int, b: int, bits: int) -> int:
    value, width = field(a, b, bits)
    return value & ((1 << width) - 1)


def extended(a: int, b: int, bits: int) -> int:
    value, width = field(a, b, bits)
    return signed(value, width)


for bits in (32, 64):
    ref(f"s_bfe_u{bits}", f"u{bits}", f"u{bits} u32",
        told(lambda a, b, bits=bits: extracted(a, b, bits), bits))  # fmt: skip
    ref(f"s_bfe_i{bits}", f"i{bits}", f"i{bits} u32",
        told(lambda a, b, bits=bits: extended(a, b, bits), bits))  # fmt: skip
    ref(f"s_bfm_b{bits}", f"u{bits}", U2,
        lambda a, b, bits=bits: ((2 ** (a % bits) - 1) << b % bits, KEPT))  # fmt: skip
    ref(
        f"s_cselect_b{bits}",
        f"u{bits}",
        f"u{bits} u{bits}",
        lambda a, b, scc: (a if scc else b, KEPT),
    )
    ref(f"s_mov_b{bits}", f"u{bits}", f"u{bits}", lambda a: (a, KEPT))
    ref(f"s_cmov_b{bits}", f"u{bits}", f"u{bits}", lambda a, old, scc: (a if scc else old, KEPT))
    ref(f"s_not_b{bits}", f"u{bits}", f"u{bits}", told(lambda a: ~a, bits))
    ref(f"s_brev_b{bits}", f"u{bits}", f"u{bits}",
        lambda a, bits=bits: (int(f"{a:0{bits}b}"[::-1], 2), KEPT))  # fmt: skip
    ref(f"s_ctz_i32_b{bits}", "u32", f"u{bits}", lambda a: ((a & -a).bit_length() - 1, KEPT))
    ref(f"s_clz_i32_u{bits}", "u32", f"u{bits}",
        lambda a, bits=bits: (bits - a.bit_length() if a else -1, KEPT))  # fmt: skip
    ref(f"s_bcnt1_i32_b{bits}", "u32", f"u{bits}", told(int.bit_count, 32))
    ref(f"s_bcnt0_i32_b{bits}", "u32", f"u{bits}",
        told(lambda a, bits=bits: bits - a.bit_count(), 32))  # fmt: skip
    ref(f"s_bitset0_b{bits}", f"u{bits}", "u32",
        lambda a, old, bits=bits: (old & ~(1 << a % bits), KEPT))  # fmt: skip
    ref(f"s_bitset1_b{bits}", f"u{bits}", "u32",
        lambda a, old, bits=bits: (old | 1 << a % bits, KEPT))  # fmt: skip
    ref(
        f"s_bitcmp0_b{bits}",
        "",
        f"u{bits} u32",
        lambda a, b, bits=bits: (0, 1 - (a >> b % bits & 1)),
    )
    ref(f"s_bitcmp1_b{bits}", "", f"u{bits} u32", lambda a, b, bits=bits: (0, a >> b % bits & 1))
ref("s_mul_i32", "u32", U2, lambda a, b: (a * b, KEPT))
ref("s_mul_hi_u32", "u32", U2, lambda a, b: (a * b >> 32, KEPT))
ref("s_mul_hi_i32", "u32", I2, lambda a, b: (a * b >> 32, KEPT))
for first, one in (("l", lambda a: a % 2**16), ("h", lambda a: a >> 16)):
    for second, other in (("l", lambda a: a % 2**16), ("h", lambda a: a >> 16)):
        ref(f"s_pack_{first}{second}_b32_b16", "u32", U2,
            lambda a, b, one=one, other=other: (one(a) | other(b) << 16, KEPT))  # fmt: skip
ref("s_movk_i32", "i32", "i16", lambda a: (a, KEPT))
ref("s_cmovk_i32", "i32", "i16", lambda a, old, scc: (a if scc else old, KEPT))
ref("s_addk_i32", "i32", "i16", lambda a, old: (old + a, int(not fits(old + a))))
ref("s_mulk_i32", "u32", "i16", lambda a, old: (old * a, KEPT))
for name, function in {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}.items():
    for kind in ("i32", "u32"):
        tell = lambda a, b, function=function: (0, int(function(a, b)))  # noqa: E731
        ref(f"s_cmp_{name}_{kind}", "", f"{kind} {kind}", tell)
        ref(f"s_cmpk_{name}_{kind}", "", f"{kind} {kind[0]}16", tell)
    if name in {"eq", "lg"}:
        ref(f"s_cmp_{name}_u64", "", "u64 u64", tell)
ref("s_wqm_b32", "u32", "u32",
    told(lambda a: sum(15 << at for at in range(0, 32, 4) if a >> at & 15), 32))  # fmt: skip
ref("s_cls_i32", "u32", "i32",
    lambda a: (-1 if a in (0, -1) else 32 - (a if a >= 0 else ~a).bit_length(), KEPT))  # fmt: skip
ref("s_sext_i32_i8", "i32", "u32", lambda a: (signed(a, 8), KEPT))
ref("s_sext_i32_i16", "i32", "u32", lambda a: (signed(a, 16), KEPT))
ref("s_abs_i32", "u32", "i32", told(abs, 32))


def of_a_lane(name: str) -> Callable[..., int]:
    """What the vector instruction of that name gives in one lane: bits of its sources to bits."""
    dst, src, function = REFERENCE[name]
    types = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}

    def made(*given: int) -> int:
        pairs = zip(given, src.split(), strict=True)
        lanes = [np.array([one % 2**32], np.uint32).view(types[kind]) for one, kind in pairs]
        (value,) = function(*lanes)
        if dst == "f32":
            return int(np.array([value], np.float32).view(np.uint32)[0])
        return int(value)

    return made


def as_in_a_lane(name: str) -> None:
    """A scalar instruction that does what the vector one of its name does in a lane."""
    dst, src, _ = REFERENCE[f"v_{name}"]
    of = of_a_lane(f"v_{name}")
    if dst == "mask":
        ref(f"s_{name}", "", src, lambda *given: (0, of(*given) & 1))
    else:
        ref(f"s_{name}", dst, src, lambda *given: (of(*given), KEPT))


for name in ["add", "sub", "mul", "min", "max", "trunc", "ceil", "floor", "rndne"]:
    as_in_a_lane(f"{name}_f32")
for name in ("f32_i32", "f32_u32", "i32_f32", "u32_f32"):
    as_in_a_lane(f"cvt_{name}")
for name in [
    "lt",
    "eq",
    "le",
    "gt",
    "ge",
    "lg",
    "o",
    "u",
    "nlt",
    "neq",
    "nle",
    "ngt",
    "nge",
    "nlg",
]:
    as_in_a_lane(f"cmp_{name}_f32")
FMA = of_a_lane("v_fma_f32")
ref("s_fmac_f32", "f32", "f32 f32", lambda a, b, old: (FMA(a, b, old), KEPT))
for name in ("fmaak", "fmamk"):
    ref(f"s_{name}_f32", "f32", "f32 f32 f32", lambda a, b, c: (FMA(a, b, c), KEPT))
