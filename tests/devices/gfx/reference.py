"""What instructions of gfx11 give, in Python and numpy, written beside the table and not from it.

REFERENCE: name -> (types of destinations, types of sources, function of numpy arrays over lanes).
`old`, scc and EXEC come as keywords where a function asks for them. A function of several destinations
returns a tuple. Python's integers are used where numpy's would wrap.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Function = Callable[..., Any]
REFERENCE: dict[str, tuple[str, str, Function]] = {}
# Bits of the mantissa, least and greatest exponent of normal numbers.
FORMATS = {"f16": (10, -14, 15), "f32": (23, -126, 127), "f64": (52, -1022, 1023)}
FLOATS: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
np.seterr(all="ignore")


def ref(name: str, dst: str, src: str, function: Function) -> None:
    """Put an entry in; a name is given once."""
    assert name not in REFERENCE, name
    REFERENCE[name] = (dst, src, function)


def typed_items(given: dict[str, Function]) -> list[tuple[str, Function]]:
    """Names and functions, as such."""
    return list(given.items())


def onto(function: Function) -> Function:
    """A function of three sources for an instruction of two, whose destination is the third."""

    def made(a: Any, b: Any, old: Any) -> Any:
        return function(a, b, old)

    return made


def lanewise(function: Function) -> Function:
    """A function of Python's numbers, for arrays."""

    def over(*arrays: Any, **keywords: Any) -> Any:
        made = [
            function(*(each.item() for each in row), **keywords)
            for row in zip(*arrays, strict=True)
        ]
        return (
            [np.array(part, object) for part in zip(*made, strict=False)]
            if isinstance(made[0], tuple)
            else made
        )

    return over


def rounded(value: Fraction, kind: str) -> float:
    """The nearest number of a format, ties to even."""
    mantissa, lowest, highest = FORMATS[kind]
    if value == 0:
        return 0.0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    while Fraction(2) ** exponent > abs(value):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    quantum = Fraction(2) ** (max(exponent, lowest) - mantissa)
    whole = round(value / quantum) * quantum
    if abs(whole) >= Fraction(2) ** (highest + 1):
        return math.inf if value > 0 else -math.inf
    return float(whole)


def exact_fma(kind: str) -> Function:
    """a * b + c, rounded once."""

    def one(a: float, b: float, c: float) -> float:
        if math.isfinite(a) and math.isfinite(b) and math.isinf(c):
            return c  # the product is finite, whatever its rounding
        if not all(map(math.isfinite, (a, b, c))):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact == 0:  # its sign is that of the sum of zeros, plus for what cancels
            product = math.copysign(1, a) * math.copysign(1, b)
            if (a == 0 or b == 0) and c == 0 and product < 0 and math.copysign(1, c) < 0:
                return -0.0
            return 0.0
        made = rounded(exact, kind)
        return made if made or exact > 0 else -0.0

    return lanewise(one)


def cast(kind: str, value: Any) -> Any:
    """Python numbers in a float format."""
    return np.array(value, np.float64).astype(FLOATS[kind])


def signalling(a: Any) -> Any:
    """Which are NaN without the highest bit of the mantissa."""
    mantissa, _, _ = FORMATS[f"f{8 * a.dtype.itemsize}"]
    return np.isnan(a) & (a.view(f"u{a.dtype.itemsize}") >> (mantissa - 1) & 1 == 0)


def minimum(a: Any, b: Any) -> Any:
    """minNum with -0 below 0; of a signalling NaN, a quiet one."""
    first = (a < b) | ((a == b) & np.signbit(a)) | np.isnan(b)
    made = np.where(np.isnan(a), b, np.where(first, a, b))
    return np.where(signalling(a) | signalling(b), a.dtype.type(np.nan), made)


def maximum(a: Any, b: Any) -> Any:
    """maxNum with 0 above -0; of a signalling NaN, a quiet one."""
    first = (a > b) | ((a == b) & np.signbit(b)) | np.isnan(b)
    made = np.where(np.isnan(a), b, np.where(first, a, b))
    return np.where(signalling(a) | signalling(b), a.dtype.type(np.nan), made)


def median(a: Any, b: Any, c: Any) -> Any:
    """The middle one; with a NaN, the least of the others."""
    stacked = np.stack([a, b, c])
    # -0 goes below 0 by a key of its sign.
    order = np.lexsort((~np.signbit(stacked), stacked), axis=0)
    middle = np.take_along_axis(stacked, order, 0)[1]
    any_nan = np.isnan(stacked).any(0)
    return np.where(any_nan, minimum(minimum(a, b), c), middle)


def saturating(kind: str) -> Function:
    """Truncation to an integer; beyond, the nearest; of NaN, 0."""
    info: Any = np.iinfo(np.dtype({"i": "int", "u": "uint"}[kind[0]] + kind[1:]))

    def one(a: float) -> int:
        if math.isnan(a):
            return 0
        return (
            int(max(min(a, float(info.max)), float(info.min)))
            if math.isinf(a)
            else max(min(math.trunc(a), int(info.max)), int(info.min))
        )

    return lanewise(one)


def limited(value: int, low: int, high: int) -> int:
    """The value, or the bound that it passes."""
    return max(low, min(high, value))


def signed(value: int, bits: int) -> int:
    """Two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def f16_bits(value: int) -> float:
    """The float16 of these bits."""
    return float(np.array(value & 0xFFFF, np.uint16).view(np.float16))


# --- floats: the same in each format

for kind in ("f16", "f32", "f64"):
    two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
    ref(f"v_add_{kind}", kind, two, operator.add)
    ref(f"v_mul_{kind}", kind, two, operator.mul)
    ref(f"v_min_{kind}", kind, two, minimum)
    ref(f"v_max_{kind}", kind, two, maximum)
    ref(f"v_fma_{kind}", kind, three, exact_fma(kind))
    ref(f"v_trunc_{kind}", kind, kind, np.trunc)
    ref(f"v_ceil_{kind}", kind, kind, np.ceil)
    ref(f"v_floor_{kind}", kind, kind, np.floor)
    ref(f"v_rndne_{kind}", kind, kind, np.rint)

    def fract(a: Any, kind: str = kind) -> Any:
        below = np.nextafter(FLOATS[kind](1), FLOATS[kind](0))
        return np.where(np.isinf(a), np.nan, np.minimum(a - np.floor(a), below))

    ref(f"v_fract_{kind}", kind, kind, fract)
    ref(f"v_frexp_mant_{kind}", kind, kind, lambda a: np.frexp(a)[0])
    exponent = "i16" if kind == "f16" else "i32"

    def exponent_of(a: Any) -> Any:
        return np.where(np.isfinite(a), np.frexp(a)[1], 0)

    ref(f"v_frexp_exp_{exponent}_{kind}", exponent, kind, exponent_of)

    def scaled(a: float, b: int, kind: str = kind) -> float:
        if not math.isfinite(a) or a == 0:
            return a
        made = rounded(Fraction(a) * Fraction(2) ** limited(b, -2200, 2200), kind)
        return made if made or a > 0 else -0.0

    ref(f"v_ldexp_{kind}", kind, f"{kind} {'i16' if kind == 'f16' else 'i32'}", lanewise(scaled))
for kind in ("f16", "f32"):
    two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
    ref(f"v_sub_{kind}", kind, two, operator.sub)
    ref(f"v_subrev_{kind}", kind, two, lambda a, b: b - a)
    fma = exact_fma(kind)
    ref(f"v_fmac_{kind}", kind, two, onto(fma))
    ref(f"v_fmamk_{kind}", kind, three, fma)
    ref(f"v_fmaak_{kind}", kind, three, fma)
    ref(f"v_min3_{kind}", kind, three, lambda a, b, c: minimum(minimum(a, b), c))
    ref(f"v_max3_{kind}", kind, three, lambda a, b, c: maximum(maximum(a, b), c))
    ref(f"v_med3_{kind}", kind, three, median)
    ref(f"v_minmax_{kind}", kind, three, lambda a, b, c: maximum(minimum(a, b), c))
    ref(f"v_maxmin_{kind}", kind, three, lambda a, b, c: minimum(maximum(a, b), c))
    wide = np.float64 if kind == "f32" else np.float32
    make = FLOATS[kind]
    for name, function in typed_items(
        {
            "exp": np.exp2,
            "log": np.log2,
            "rcp": np.reciprocal,
            "sqrt": np.sqrt,
            "rsq": lambda a: 1 / np.sqrt(a),
            "sin": lambda a: np.sin(2 * np.pi * (a - np.floor(a))),
            "cos": lambda a: np.cos(2 * np.pi * (a - np.floor(a))),
        }
    ):

        def near(a: Any, function: Function = function, make: Any = make) -> Any:
            return function(a.astype(np.float64)).astype(make)

        ref(f"v_{name}_{kind}", kind, kind, near)
for name, function in typed_items(
    {"rcp": np.reciprocal, "sqrt": np.sqrt, "rsq": lambda a: 1 / np.sqrt(a)}
):
    ref(f"v_{name}_f64", "f64", "f64", function)
ref("v_rcp_iflag_f32", "f32", "f32", lambda a: (1 / a.astype(np.float64)).astype(np.float32))
for name, _zero in (("mul", 0.0), ("fma", None), ("fmac", None)):

    def dx9(a: Any, b: Any, c: Any = None, old: Any = None, name: str = name) -> Any:
        none = (a == 0) | (b == 0)
        if name == "mul":
            return np.where(none, np.float32(0), a * b)
        third = c if name == "fma" else old
        return np.where(none, third, cast("f32", exact_fma("f32")(a, b, third)))

    three = "f32 f32 f32" if name == "fma" else "f32 f32"
    if name == "fmac":
        ref("v_fmac_dx9_zero_f32", "f32", three, lambda a, b, old, dx9=dx9: dx9(a, b, None, old))
    else:
        ref(f"v_{name}_dx9_zero_f32", "f32", three, dx9)

# --- conversions

for kind, source in (("f32", "i32"), ("f32", "u32"), ("f64", "i32"), ("f64", "u32")):
    ref(f"v_cvt_{kind}_{source}", kind, source, lambda a: a)
for kind in ("u16", "i16"):
    ref(f"v_cvt_f16_{kind}", "f16", kind, lambda a: a.astype(np.float64).astype(np.float16))
    ref(f"v_cvt_{kind}_f16", kind, "f16", saturating(kind))
for kind in ("i32", "u32"):
    ref(f"v_cvt_{kind}_f32", kind, "f32", saturating(kind))
    ref(f"v_cvt_{kind}_f64", kind, "f64", saturating(kind))
ref(
    "v_cvt_nearest_i32_f32",
    "i32",
    "f32",
    lambda a: saturating("i32")(np.floor(a + np.float32(0.5))),
)
ref("v_cvt_floor_i32_f32", "i32", "f32", lambda a: saturating("i32")(np.floor(a)))
for kind, source in (("f16", "f32"), ("f32", "f16"), ("f64", "f32"), ("f32", "f64")):
    ref(f"v_cvt_{kind}_{source}", kind, source, lambda a, kind=kind: a.astype(FLOATS[kind]))
for byte in range(4):
    ref(f"v_cvt_f32_ubyte{byte}", "f32", "u32", lambda a, byte=byte: a >> (8 * byte) & 255)
ref("v_cvt_off_f32_i4", "f32", "u32", lanewise(lambda a: signed(a, 4) / 16))
ref("v_cvt_i32_i16", "i32", "i16", lambda a: a)
ref("v_cvt_u32_u16", "u32", "u16", lambda a: a)


def towards_zero(value: float) -> int:
    """Bits of the float16 next to zero."""
    near = np.float16(value)
    if math.isnan(value):
        return 0x7E00
    if math.isfinite(value) and abs(float(near)) > abs(value):
        near = np.nextafter(near, np.float16(0))
    if near == 0:
        near = np.float16(math.copysign(0, value))
    return int(near.view(np.uint16))


ref("v_cvt_pk_rtz_f16_f32", "pair_f16", "f32 f32",
    lanewise(lambda a, b: towards_zero(a) | towards_zero(b) << 16))  # fmt: skip


def to_i16(value: int) -> int:
    """Bits of the signed number of 16 bits that is nearest."""
    return limited(value, -32768, 32767) & 0xFFFF


ref("v_cvt_pk_i16_i32", "u32", "i32 i32", lanewise(lambda a, b: to_i16(a) | to_i16(b) << 16))
ref("v_cvt_pk_u16_u32", "u32", "u32 u32",
    lanewise(lambda a, b: min(a, 65535) | min(b, 65535) << 16))  # fmt: skip


def pair_of(kind: str) -> Function:
    convert = saturating(kind)

    def made(a: Any, b: Any) -> Any:
        return [
            (low & 0xFFFF) | (high & 0xFFFF) << 16
            for low, high in zip(convert(a), convert(b), strict=True)
        ]

    return made


ref("v_cvt_pk_i16_f32", "u32", "f32 f32", pair_of("i16"))
ref("v_cvt_pk_u16_f32", "u32", "f32 f32", pair_of("u16"))


def into_byte(a: float, b: int, c: int) -> int:
    whole = 0 if math.isnan(a) else 255 if a == math.inf else 0 if a == -math.inf else round(a)
    shift = 8 * (b & 3)
    return (c & ~(255 << shift)) | limited(whole, 0, 255) << shift


ref("v_cvt_pk_u8_f32", "u32", "f32 u32 u32", lanewise(into_byte))


def byte_of(word: int) -> int:
    """A signed number of 16 bits, as near as a byte comes."""
    return limited(signed(word, 16), 0, 255)


ref("v_sat_pk_u8_i16", "u16", "u32",
    lanewise(lambda a: byte_of(a) | byte_of(a >> 16) << 8))  # fmt: skip
ref("v_pack_b32_f16", "u32", "b16 b16", lanewise(lambda a, b: a | b << 16))

# --- integers; results are taken modulo their width

SIGNED, U = "i32 i32", "u32 u32"
for name, function in typed_items(
    {
        "v_add_nc_u32": lambda a, b: a + b,
        "v_sub_nc_u32": lambda a, b: a - b,
        "v_subrev_nc_u32": lambda a, b: b - a,
        "v_min_u32": min,
        "v_max_u32": max,
        "v_lshlrev_b32": lambda a, b: b << (a & 31),
        "v_lshrrev_b32": lambda a, b: b >> (a & 31),
        "v_and_b32": lambda a, b: a & b,
        "v_or_b32": lambda a, b: a | b,
        "v_xor_b32": lambda a, b: a ^ b,
        "v_xnor_b32": lambda a, b: ~(a ^ b),
        "v_mul_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24),
        "v_mul_hi_i32_i24": lambda a, b: signed(a, 24) * signed(b, 24) >> 32,
        "v_mul_u32_u24": lambda a, b: (a % 2**24) * (b % 2**24),
        "v_mul_hi_u32_u24": lambda a, b: (a % 2**24) * (b % 2**24) >> 32,
        "v_mul_lo_u32": lambda a, b: a * b,
        "v_mul_hi_u32": lambda a, b: a * b >> 32,
        "v_add_nc_i32": lambda a, b: a + b,
        "v_sub_nc_i32": lambda a, b: a - b,
        "v_bfm_b32": lambda a, b: (2 ** (a % 32) - 1) << b % 32,
        "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
        "v_mbcnt_hi_u32_b32": lambda a, b: b,
        "v_add_nc_u32_clamp": lambda a, b: min(a + b, 2**32 - 1),
        "v_sub_nc_u32_clamp": lambda a, b: max(a - b, 0),
        "v_subrev_nc_u32_clamp": lambda a, b: max(b - a, 0),
    }
):
    ref(name, "u32", U, lanewise(function))
for name, function in typed_items(
    {
        "v_min_i32": min,
        "v_max_i32": max,
        "v_mul_hi_i32": lambda a, b: a * b >> 32,
        "v_add_nc_i32_clamp": lambda a, b: limited(a + b, -(2**31), 2**31 - 1),
        "v_sub_nc_i32_clamp": lambda a, b: limited(a - b, -(2**31), 2**31 - 1),
    }
):
    ref(name, "i32", SIGNED, lanewise(function))
ref("v_ashrrev_i32", "i32", "u32 i32", lanewise(lambda a, b: b >> (a & 31)))
ref("v_mbcnt_lo_u32_b32", "u32", U,
    lambda a, b: [(x.item() & ((1 << l) - 1)).bit_count() + y.item() for l, (x, y) in enumerate(zip(a, b, strict=True))])  # fmt: skip  # noqa: E501, E741
for name, function in typed_items(
    {
        "v_mov_b32": lambda a: a,
        "v_not_b32": lambda a: ~a,
        "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
        "v_clz_i32_u32": lambda a: 32 - a.bit_length() if a else -1,
        "v_ctz_i32_b32": lambda a: (a & -a).bit_length() - 1,
        "v_cls_i32": lambda a: (
            -1 if a in (0, 2**32 - 1) else 32 - (a ^ -(a >> 31)).__and__(2**32 - 1).bit_length()
        ),
    }
):
    ref(name, "u32", "i32" if name == "v_cls_i32" else "u32", lanewise(function))
REFERENCE["v_cls_i32"] = (
    "u32",
    "i32",
    lanewise(lambda a: -1 if a in (0, -1) else 32 - (a if a >= 0 else ~a).bit_length()),
)
for name, function in typed_items(
    {
        "v_bfe_u32": lambda a, b, c: a >> b % 32 & (2 ** (c % 32) - 1),
        "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
        "v_alignbit_b32": lambda a, b, c: (a * 2**32 + b) >> c % 32,
        "v_alignbyte_b32": lambda a, b, c: (a * 2**32 + b) >> 8 * (c % 4),
        "v_min3_u32": min,
        "v_max3_u32": max,
        "v_med3_u32": lambda *all_: sorted(all_)[1],
        "v_minmax_u32": lambda a, b, c: max(min(a, b), c),
        "v_maxmin_u32": lambda a, b, c: min(max(a, b), c),
        "v_sad_u32": lambda a, b, c: abs(a - b) + c,
        "v_sad_u8": lambda a, b, c: (
            c
            + sum(
                abs(x - y) for x, y in zip(a.to_bytes(4, "big"), b.to_bytes(4, "big"), strict=True)
            )
        ),
        "v_mad_i32_i24": lambda a, b, c: signed(a, 24) * signed(b, 24) + c,
        "v_mad_u32_u24": lambda a, b, c: (a % 2**24) * (b % 2**24) + c,
        "v_add3_u32": lambda a, b, c: a + b + c,
        "v_lshl_or_b32": lambda a, b, c: a << b % 32 | c,
        "v_and_or_b32": lambda a, b, c: a & b | c,
        "v_or3_b32": lambda a, b, c: a | b | c,
        "v_xor3_b32": lambda a, b, c: a ^ b ^ c,
        "v_xad_u32": lambda a, b, c: (a ^ b) + c,
        "v_lshl_add_u32": lambda a, b, c: (a << b % 32) + c,
        "v_add_lshl_u32": lambda a, b, c: (a + b) << c % 32,
    }
):
    ref(name, "u32", "u32 u32 u32", lanewise(function))
for kind in ("i32", "i16", "u16"):
    three = f"{kind} {kind} {kind}"
    if kind != "u32":
        ref(f"v_min3_{kind}", kind, three, lanewise(min))
        ref(f"v_max3_{kind}", kind, three, lanewise(max))
        ref(f"v_med3_{kind}", kind, three, lanewise(lambda *all_: sorted(all_)[1]))
ref("v_minmax_i32", "i32", "i32 i32 i32", lanewise(lambda a, b, c: max(min(a, b), c)))
ref("v_maxmin_i32", "i32", "i32 i32 i32", lanewise(lambda a, b, c: min(max(a, b), c)))
ref("v_bfe_i32", "i32", "i32 u32 u32",
    lanewise(lambda a, b, c: signed(a >> b % 32, c % 32) if c % 32 else 0))  # fmt: skip


def picked_bytes(a: int, b: int, c: int) -> int:
    held = b.to_bytes(4, "little") + a.to_bytes(4, "little")
    words = [held[2 * at + 1] >> 7 for at in range(4)]
    made = []
    for pick in c.to_bytes(4, "little"):
        if pick < 8:
            made.append(held[pick])
        elif pick < 12:
            made.append(255 * words[pick - 8])
        else:
            made.append(0 if pick == 12 else 255)
    return int.from_bytes(bytes(made), "little")


ref("v_perm_b32", "u32", "u32 u32 u32", lanewise(picked_bytes))
ref("v_mad_u32_u16", "u32", "u16 u16 u32", lanewise(lambda a, b, c: a * b + c))
ref("v_mad_i32_i16", "i32", "i16 i16 u32", lanewise(lambda a, b, c: a * b + c))
ref("v_mad_u64_u32", "u64 mask", "u32 u32 u64",
    lanewise(lambda a, b, c: (a * b + c, (a * b + c) >> 64)))  # fmt: skip
ref("v_mad_i64_i32", "u64 mask", "i32 i32 u64",
    lanewise(lambda a, b, c: (a * b + c, a * b + signed(c, 64) < 0)))  # fmt: skip
for kind in ("u16", "i16"):
    two = f"{kind} {kind}"
    span = (0, 65535) if kind == "u16" else (-32768, 32767)
    ref(f"v_add_nc_{kind}", kind, two, lanewise(lambda a, b: a + b))
    ref(f"v_sub_nc_{kind}", kind, two, lanewise(lambda a, b: a - b))
    ref(f"v_add_nc_{kind}_clamp", kind, two, lanewise(lambda a, b, s=span: limited(a + b, *s)))
    ref(f"v_sub_nc_{kind}_clamp", kind, two, lanewise(lambda a, b, s=span: limited(a - b, *s)))
    ref(f"v_min_{kind}", kind, two, lanewise(min))
    ref(f"v_max_{kind}", kind, two, lanewise(max))
    ref(f"v_mad_{kind}", kind, f"{two} {kind}", lanewise(lambda a, b, c: a * b + c))
for name, function in typed_items(
    {
        "v_mul_lo_u16": lambda a, b: a * b,
        "v_lshlrev_b16": lambda a, b: b << a % 16,
        "v_lshrrev_b16": lambda a, b: b >> a % 16,
        "v_and_b16": lambda a, b: a & b,
        "v_or_b16": lambda a, b: a | b,
        "v_xor_b16": lambda a, b: a ^ b,
    }
):
    ref(name, "u16", "u16 u16", lanewise(function))
ref("v_ashrrev_i16", "i16", "u16 i16", lanewise(lambda a, b: b >> a % 16))
ref("v_mov_b16", "u16", "u16", lambda a: a)
ref("v_not_b16", "u16", "u16", lanewise(lambda a: ~a))
ref("v_lshlrev_b64", "u64", "u32 u64", lanewise(lambda a, b: b << a % 64))
ref("v_lshrrev_b64", "u64", "u32 u64", lanewise(lambda a, b: b >> a % 64))
ref("v_ashrrev_i64", "i64", "u32 i64", lanewise(lambda a, b: b >> a % 64))
# With masks: carries, choices.
ref("v_cndmask_b32", "u32", "u32 u32 mask", lambda a, b, c: np.where(c, b, a))
ref("v_cndmask_b16", "u16", "u16 u16 mask", lambda a, b, c: np.where(c, b, a))
ref("v_add_co_u32", "u32 mask", U, lanewise(lambda a, b: (a + b, (a + b) >> 32)))
ref("v_sub_co_u32", "u32 mask", U, lanewise(lambda a, b: (a - b, a < b)))
ref("v_subrev_co_u32", "u32 mask", U, lanewise(lambda a, b: (b - a, b < a)))
ref("v_add_co_ci_u32", "u32 mask", f"{U} mask",
    lanewise(lambda a, b, c: (a + b + c, (a + b + c) >> 32)))  # fmt: skip
ref("v_sub_co_ci_u32", "u32 mask", f"{U} mask",
    lanewise(lambda a, b, c: (a - b - c, a - b - c < 0)))  # fmt: skip
ref("v_subrev_co_ci_u32", "u32 mask", f"{U} mask",
    lanewise(lambda a, b, c: (b - a - c, b - a - c < 0)))  # fmt: skip

# --- packed, mixed, dot products

for name, function in typed_items(
    {
        "add_f16": operator.add,
        "mul_f16": operator.mul,
        "min_f16": minimum,
        "max_f16": maximum,
    }
):
    ref(f"v_pk_{name}", "pk_f16", "pk_f16 pk_f16", function)
ref("v_pk_fma_f16", "pk_f16", "pk_f16 pk_f16 pk_f16", exact_fma("f16"))
ref("v_pk_fmac_f16", "pk_f16", "pk_f16 pk_f16", onto(exact_fma("f16")))
for kind in ("u16", "i16"):
    two = f"pk_{kind} pk_{kind}"
    span = (0, 65535) if kind == "u16" else (-32768, 32767)
    for name, sources, function in (
        ("add", two, lambda a, b: a + b),
        ("sub", two, lambda a, b: a - b),
        ("mad", f"{two} pk_{kind}", lambda a, b, c: a * b + c),
    ):
        clamped = lanewise(lambda *given, f=function, s=span: limited(f(*given), *s))
        ref(f"v_pk_{name}_{kind}_clamp", f"pk_{kind}", sources, clamped)
    ref(f"v_pk_add_{kind}", f"pk_{kind}", two, lanewise(lambda a, b: a + b))
    ref(f"v_pk_sub_{kind}", f"pk_{kind}", two, lanewise(lambda a, b: a - b))
    ref(f"v_pk_min_{kind}", f"pk_{kind}", two, lanewise(min))
    ref(f"v_pk_max_{kind}", f"pk_{kind}", two, lanewise(max))
    ref(f"v_pk_mad_{kind}", f"pk_{kind}", f"{two} pk_{kind}", lanewise(lambda a, b, c: a * b + c))
ref("v_pk_mul_lo_u16", "pk_u16", "pk_u16 pk_u16", lanewise(lambda a, b: a * b))
ref("v_pk_lshlrev_b16", "pk_u16", "pk_u16 pk_u16", lanewise(lambda a, b: b << a % 16))
ref("v_pk_lshrrev_b16", "pk_u16", "pk_u16 pk_u16", lanewise(lambda a, b: b >> a % 16))
ref("v_pk_ashrrev_i16", "pk_i16", "pk_u16 pk_i16", lanewise(lambda a, b: b >> a % 16))
MIX = "mix mix mix"
ref("v_fma_mix_f32", "f32", MIX, exact_fma("f32"))
ref("v_fma_mixlo_f16", "f16", MIX, lambda *all_: cast("f32", exact_fma("f32")(*all_)).astype("e"))
ref(
    "v_fma_mixhi_f16", "f16_hi", MIX, lambda *all_: cast("f32", exact_fma("f32")(*all_)).astype("e")
)


def dot2(convert: Callable[[int], float], order: str) -> Function:
    """Two products and what they are added to, in this order; each sum is rounded."""

    def made(a: Any, b: Any, c: Any) -> Any:
        with np.errstate(all="ignore"):
            low, high = (
                np.multiply(
                    *(
                        np.array([convert(int(word) >> shift & 0xFFFF) for word in one], np.float32)
                        for one in (a, b)
                    )
                )
                for shift in (0, 16)
            )
            return (low + high) + c if order == "products first" else (c + low) + high

    return made


def dot_integers(width: int, signs: str, lowest: int | None, highest: int) -> Function:
    """Products of the parts of both, of which those of an operand are signed or not, and the third."""

    def parts(word: int, sign: str) -> list[int]:
        fields = [word >> at & (1 << width) - 1 for at in range(0, 32, width)]
        return [signed(one, width) if sign == "s" else one for one in fields]

    def made(a: int, b: int, c: int) -> int:
        total = c + sum(map(operator.mul, parts(a, signs[0]), parts(b, signs[1])))
        return total if lowest is None else limited(total, lowest, highest)

    return lanewise(made)


# The test's instructions have the first operand signed and the second not.
for width, name in ((8, "dot4"), (4, "dot8")):
    for end, lows in (("", None), ("_clamp", 0)):
        types = "iu8 iu8 i32", "u32 u32 u32"
        low = None if lows is None else -(2**31)
        ref(
            f"v_{name}_i32_iu{width}{end}",
            "i32",
            types[0],
            dot_integers(width, "su", low, 2**31 - 1),
        )
        ref(
            f"v_{name}_u32_u{width}{end}",
            "u32",
            types[1],
            dot_integers(width, "uu", lows, 2**32 - 1),
        )


def bf16_bits(value: int) -> float:
    """The bfloat16 of these bits."""
    return float(np.array(value << 16, np.uint32).view(np.float32))


ref("v_dot2_f32_f16", "f32", "pair_f16 pair_f16 f32", dot2(f16_bits, "products first"))
ref("v_dot2_f32_bf16", "f32", "pair_bf16 pair_bf16 f32", dot2(bf16_bits, "products first"))
ref("v_dot2acc_f32_f16", "f32", "pair_f16 pair_f16", onto(dot2(f16_bits, "")))

# --- compares

COMPARES = {
    "lt": operator.lt,
    "eq": operator.eq,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def add_compare(name: str, kind: str, function: Function) -> None:
    for prefix, dst in (("v_cmp", "mask"), ("v_cmpx", "exec")):
        ref(f"{prefix}_{name}_{kind}", dst, f"{kind} {kind}", function)


for kind in ("i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"):
    for name, function in COMPARES.items():
        add_compare(name, kind, function)
        if kind[0] == "f":
            negated = "neq" if name == "eq" else f"n{name}"
            add_compare(negated, kind, lambda a, b, function=function: ~function(a, b))
    if kind not in ("i16", "u16"):
        add_compare("f", kind, lambda a, b: np.zeros(a.shape, bool))
        add_compare("t", kind, lambda a, b: np.ones(a.shape, bool))
    if kind[0] != "f":
        add_compare("ne", kind, operator.ne)
        continue
    add_compare("lg", kind, lambda a, b: (a < b) | (a > b))
    add_compare("nlg", kind, lambda a, b: ~((a < b) | (a > b)))
    add_compare("o", kind, lambda a, b: ~(np.isnan(a) | np.isnan(b)))
    add_compare("u", kind, lambda a, b: np.isnan(a) | np.isnan(b))

    def classes(a: Any, b: Any, kind: str = kind) -> Any:
        mantissa, lowest, _ = FORMATS[kind]
        quiet = a.view(f"u{a.dtype.itemsize}") >> (mantissa - 1) & 1 == 1
        tiny = (np.abs(a) < 2.0**lowest) & (a != 0)
        minus = np.signbit(a)
        size = np.where(np.isinf(a), 3, np.where(tiny, 1, np.where(a == 0, 0, 2)))
        bit = np.where(np.isnan(a), np.where(quiet, 1, 0), np.where(minus, 5 - size, 6 + size))
        return b.astype(np.uint64) >> bit.astype(np.uint64) & 1 == 1

    for prefix, dst in (("v_cmp", "mask"), ("v_cmpx", "exec")):
        ref(f"{prefix}_class_{kind}", dst, f"{kind} u32", classes)
