"""What vector instructions of gfx9 do: as those of gfx11 that CALLED names, or by an evaluation here."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.devices.gfx.reference import (
    REFERENCE,
    Function,
    dot_integers,
    exact_fma,
    lanewise,
    limited,
    onto,
)
from tokitai_cli.devices.amdgpu.isa.opcode_table import rows

# By the descriptions of both manuals.
CALLED = {
    **{f"v_{name}_u32": f"v_{name}_nc_u32" for name in ("add", "sub", "subrev")},
    **{f"v_{name}": f"v_{name[:4]}nc_{name[4:]}" for name in ("add_u16", "sub_u16", "add_i16")},
    **{f"v_{name}": f"v_{name[:4]}nc_{name[4:]}" for name in ("sub_i16", "add_i32", "sub_i32")},
    "v_addc_co_u32": "v_add_co_ci_u32",
    "v_subb_co_u32": "v_sub_co_ci_u32",
    "v_subbrev_co_u32": "v_subrev_co_ci_u32",
    "v_cvt_rpi_i32_f32": "v_cvt_nearest_i32_f32",
    "v_cvt_flr_i32_f32": "v_cvt_floor_i32_f32",
    "v_cvt_pkrtz_f16_f32": "v_cvt_pk_rtz_f16_f32",
    "v_ffbh_u32": "v_clz_i32_u32",
    "v_ffbl_b32": "v_ctz_i32_b32",
    "v_ffbh_i32": "v_cls_i32",
    "v_mul_legacy_f32": "v_mul_dx9_zero_f32",
    **{f"v_mad_legacy_{kind}": f"v_mad_{kind}" for kind in ("u16", "i16")},
    "v_fma_legacy_f16": "v_fma_f16",
    "v_dot2c_f32_f16": "v_dot2acc_f32_f16",
    **{
        f"v_{one}_tru_f{bits}": f"v_{one}_t_f{bits}"
        for one in ("cmp", "cmpx")
        for bits in (16, 32, 64)
    },
}


def _above(a: Any, b: Any) -> Any:
    """Bits of the upper word of a mask of 64 that are below the lane."""
    below = [(1 << max(lane - 32, 0)) - 1 for lane in range(64)]
    words = zip(a, b, below, strict=True)
    return [(x.item() & mask).bit_count() + y.item() for x, y, mask in words]


def _mad(a: Any, b: Any, c: Any) -> Any:
    """Two roundings; a denormal is a zero of its sign."""

    def usual(values: Any) -> Any:
        return np.where(np.abs(values) < np.finfo(np.float32).tiny, values * 0, values)

    return usual(usual(usual(a) * usual(b)) + usual(c))


_FMA = exact_fma("f32")
#: Those that gfx11 does not have: types of destinations and sources, a function of arrays over lanes.
OLDER: dict[str, tuple[str, str, Function]] = {
    "v_subrev_u16": ("u16", "u16 u16", lanewise(lambda a, b: b - a)),
    "v_fmac_f64": ("f64", "f64 f64", onto(exact_fma("f64"))),
    "v_mad_f32": ("f32", "f32 f32 f32", _mad),
    "v_mac_f32": ("f32", "f32 f32", onto(_mad)),
    "v_madmk_f32": ("f32", "f32 f32 f32", _mad),
    "v_madak_f32": ("f32", "f32 f32 f32", _mad),
    "v_mov_b64": ("u64", "u64", lambda a: a),
    "v_lshl_add_u64": ("u64", "u64 u32 u64", lanewise(lambda a, b, c: (a << b % 8) + c)),
    "v_pk_add_f32": ("pk_f32", "pk_f32 pk_f32", lambda a, b: a + b),
    "v_pk_mul_f32": ("pk_f32", "pk_f32 pk_f32", lambda a, b: a * b),
    "v_pk_fma_f32": ("pk_f32", "pk_f32 pk_f32 pk_f32", _FMA),
    "v_dot4_i32_i8": ("u32", "u32 u32 i32", dot_integers(8, "ss", None, 0)),
    "v_dot8_i32_i4": ("u32", "u32 u32 i32", dot_integers(4, "ss", None, 0)),
    "v_dot4c_i32_i8": ("u32", "u32 u32", onto(dot_integers(8, "ss", None, 0))),
    "v_dot8c_i32_i4": ("u32", "u32 u32", onto(dot_integers(4, "ss", None, 0))),
}


def _float8(name: str, made: type) -> dict[str, tuple[str, str, Function]]:
    """Conversions of one of the formats of ml_dtypes."""

    def of(word: int, at: int) -> np.float32:
        return np.float32(np.array(word >> 8 * at & 255, np.uint8).view(made))

    def both(word: int) -> int:
        low, high = (int(of(word, at).view(np.uint32)) for at in (0, 1))
        return low | high << 32

    def packed(a: Any, b: Any) -> list[int]:
        parts = [each.astype(made).view(np.uint8) for each in (a, b)]
        if made is ml_dtypes.float8_e5m2:  # of its NaN the one with all bits of the mantissa
            parts = [np.where(part & 0x7F > 0x7C, part | 3, part) for part in parts]
        low, high = parts
        return [int(x) | int(y) << 8 for x, y in zip(low, high, strict=True)]

    return {
        f"v_cvt_f32_{name}": ("f32", "u32", lambda a: np.array([of(int(one), 0) for one in a])),
        f"v_cvt_pk_f32_{name}": ("u64", "u32", lanewise(both)),
        f"v_cvt_pk_{name}_f32": ("u16", "f32 f32", packed),
    }


OLDER |= _float8("fp8", ml_dtypes.float8_e4m3fnuz) | _float8("bf8", ml_dtypes.float8_e5m2fnuz)


def _greatest(a: Any, b: Any) -> Any:
    """IEEE 754-2019: a NaN is the result, and 0 is greater than -0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def _least(a: Any, b: Any) -> Any:
    return -_greatest(-a, -b)


def _bitop(table: int) -> Function:
    """Bits by a table of their eight cases."""

    def one(a: int, b: int, c: int) -> int:
        cases = ((a >> at & 1) << 2 | (b >> at & 1) << 1 | (c >> at & 1) for at in range(32))
        return sum((table >> case & 1) << at for at, case in enumerate(cases))

    return lanewise(one)


def _shifted(low: int, high: int) -> Function:
    def one(a: int, b: int, c: int) -> int:
        first, second = (limited(x >> c % 32, low, high) & 255 for x in (a, b))
        return first | second << 8

    return lanewise(one)


def _to_pair(made: type) -> Function:
    def pair(a: Any, b: Any) -> list[int]:
        low, high = (each.astype(made).view(np.uint16) for each in (a, b))
        return [int(x) | int(y) << 16 for x, y in zip(low, high, strict=True)]

    return pair


#: The table of bits that the tests' v_bitop3 have.
BITOP = 0x6B
#: Those that gfx950 alone has, by the names of the entries.
NEWER: dict[str, tuple[str, str, Function]] = {
    "v_cvt_f32_bf16": ("f32", "u16", lambda a: (a.astype(np.uint32) << 16).view(np.float32)),
    "v_cvt_pk_f16_f32": ("pair_f16", "f32 f32", _to_pair(np.float16)),
    "v_cvt_pk_bf16_f32": ("pair_bf16", "f32 f32", _to_pair(ml_dtypes.bfloat16)),
    "v_bitop3_b32": ("u32", "u32 u32 u32", _bitop(BITOP)),
    "v_bitop3_b16": ("u16", "u16 u16 u16", _bitop(BITOP)),
    "v_minimum3_f32": ("f32", "f32 f32 f32", lambda a, b, c: _least(_least(a, b), c)),
    "v_maximum3_f32": ("f32", "f32 f32 f32", lambda a, b, c: _greatest(_greatest(a, b), c)),
    "v_pk_minimum3_f16": ("pk_f16", "pk_f16 pk_f16 pk_f16", lambda a, b, c: _least(_least(a, b), c)),
    "v_pk_maximum3_f16": (
        "pk_f16", "pk_f16 pk_f16 pk_f16", lambda a, b, c: _greatest(_greatest(a, b), c)
    ),
    "v_ashr_pk_i8_i32": ("u16", "i32 i32 u32", _shifted(-128, 127)),
    "v_ashr_pk_u8_i32": ("u16", "i32 i32 u32", _shifted(0, 255)),
    "v_prng_b32": ("u32", "u32", lanewise(lambda a: a * 2 ^ (197 if a >> 31 else 0))),
}  # fmt: skip


def _from_float8(name: str, made: type) -> dict[str, tuple[str, str, Function]]:
    """Conversions of two bytes, with a scale of 1."""

    def both(kind: type) -> Function:
        bits = np.dtype(kind).itemsize * 8

        def of(a: Any) -> list[int]:
            parts = [(a >> at).astype(np.uint8).view(made).astype(kind) for at in (0, 8)]
            words = [each.view(f"u{bits // 8}") for each in parts]
            return [int(x) | int(y) << bits for x, y in zip(*words, strict=True)]

        return of

    return {
        f"v_cvt_scalef32_pk_f32_{name}": ("u64", "u16", both(np.float32)),
        f"v_cvt_scalef32_pk_f16_{name}": ("pair_f16", "u16", both(np.float16)),
        f"v_cvt_scalef32_pk_bf16_{name}": ("pair_bf16", "u16", both(ml_dtypes.bfloat16)),
    }


for _name, _made in (("fp8", ml_dtypes.float8_e4m3fn), ("bf8", ml_dtypes.float8_e5m2)):
    NEWER |= {f"{key}_ocp": row for key, row in _float8(_name, _made).items()}
    NEWER |= _from_float8(_name, _made)
    NEWER[f"v_cvt_scalef32_pk_{_name}_f32"] = NEWER[f"v_cvt_pk_{_name}_f32_ocp"]  # a scale of 1
#: Tested by itself.
PICKING = "v_pk_mov_b32"
# LLVM, GCNSubtarget::zeroesHigh16BitsOfDest, and those whose op_sel picks a half of the destination.
KEEPS_UPPER = {
    *("v_fma_f16", "v_mad_u16", "v_mad_i16", "v_add_i16", "v_sub_i16"),
    *(f"v_cvt_{scaled}pk_{kind}_f32" for scaled in ("", "scalef32_") for kind in ("fp8", "bf8")),
    *("v_bitop3_b16", "v_ashr_pk_i8_i32", "v_ashr_pk_u8_i32"),
    *("v_fma_mixlo_f16", "v_fma_mixhi_f16"),
    *(f"v_{name}3_{kind}" for name in ("min", "max", "med") for kind in ("f16", "u16", "i16")),
}


def _both(function: Function) -> Function:
    """Of a comparison that writes a mask and EXEC."""

    def made(*arrays: Any) -> Any:
        mask = function(*arrays)
        return mask, mask

    return made


def _of(name: str) -> tuple[str, str, Function] | None:
    if name == "v_mbcnt_hi_u32_b32":
        return "u32", "u32 u32", _above
    known = OLDER.get(name) or REFERENCE.get(CALLED.get(name, name))
    if known is not None and name.startswith("v_cmpx"):
        return "mask exec", known[1], _both(known[2])
    return known


NAMES = sorted(
    {row.name for encoding in ("VOP3", "VOP3P") for row in rows("gfx942")[encoding].values()}
)
#: By the names of gfx9.
GFX9 = {name: found for name in NAMES if (found := _of(name)) is not None}
#: By the names of gfx950, what it alone has.
GFX950 = {name.removesuffix("_ocp"): found for name, found in NEWER.items()}
