"""The dword behind an instruction that selects lanes (DPP) or parts of registers (SDWA)."""

from __future__ import annotations

from typing import Any

import msgspec

SDWA, DPP8, DPP8_FI, DPP16 = 249, 233, 234, 250
_NO_PART, _NO_REST = 7, 3  # of a register; of what becomes of its other parts
#: Numbers of the first source that tell it.
KINDS = {"gfx11": (DPP8, DPP8_FI, DPP16), "gfx9": (SDWA, DPP16)}


class Selection(msgspec.Struct, frozen=True):
    """What that dword says. neg, abs: bit i is source i."""

    #: The number of the first source's register, of which vector registers start at 256.
    first: int
    modifiers: dict[str, Any]
    neg: int = 0
    abs: int = 0
    #: Of SDWA: whether the second source is a scalar, and the scalar destination of a compare (None
    #: for vcc).
    second_is_scalar: bool = False
    compared: int | None = None
    #: Whether it says what no manual gives a meaning.
    reserved: bool = False


def selection(kind: int, word: int, *, compares: bool) -> Selection:
    """The dword of a kind. compares: whether the instruction writes a mask (VOPC)."""
    if kind == SDWA:
        return _sdwa(word, compares)
    if kind == DPP16:
        return _dpp(word)
    put: dict[str, Any] = {"dpp8": tuple(word >> 8 + 3 * lane & 7 for lane in range(8))}
    return Selection(256 + (word & 0xFF), put | ({"fi": True} if kind == DPP8_FI else {}))


def _dpp(word: int) -> Selection:
    put: dict[str, Any] = {
        "dpp_ctrl": word >> 8 & 0x1FF, "bank_mask": word >> 24 & 15, "row_mask": word >> 28
    }  # fmt: skip
    for flag, shift in (("fi", 18), ("bound_ctrl", 19)):
        if word >> shift & 1:
            put[flag] = True
    neg = (word >> 20 & 1) | (word >> 22 & 1) << 1
    absolute = (word >> 21 & 1) | (word >> 23 & 1) << 1
    return Selection(256 + (word & 0xFF), put, neg, absolute)


def _sdwa(word: int, compares: bool) -> Selection:
    """CDNA2 ISA, 13.3.8 and 13.3.9."""
    put: dict[str, Any] = {"src0_sel": word >> 16 & 7, "src1_sel": word >> 24 & 7}
    if not compares:
        put |= {"dst_sel": word >> 8 & 7, "dst_unused": word >> 11 & 3}
        put |= {"omod": word >> 14 & 3} if word >> 14 & 3 else {}
        put |= {"clamp": True} if word >> 13 & 1 else {}
    sext = (word >> 19 & 1) | (word >> 27 & 1) << 1
    put |= {"sext": sext} if sext else {}
    neg = (word >> 20 & 1) | (word >> 28 & 1) << 1
    absolute = (word >> 21 & 1) | (word >> 29 & 1) << 1
    first = (word & 0xFF) + (0 if word >> 23 & 1 else 256)
    compared = word >> 8 & 0x7F if compares and word >> 15 & 1 else None
    parts = [put[name] for name in ("src0_sel", "src1_sel", "dst_sel") if name in put]
    reserved = _NO_PART in parts or put.get("dst_unused") == _NO_REST
    return Selection(first, put, neg, absolute, bool(word >> 31), compared, reserved)
