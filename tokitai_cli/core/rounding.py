"""Rounding float64 to float16 and bfloat16 by adding, at one speed whatever the values.

numpy's conversion to float16 branches on each value: where some results are subnormal it takes 26 ns
an element. Adding 1.5 2^52 ulp to a number, and taking it away again, rounds it to a multiple of the
ulp, to nearest even, as the sum has no digits below (D. E. Knuth, The Art of Computer Programming,
vol. 2, 4.2.2; J.-M. Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., ch. 4).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel
from tokitai_cli.core.dtypes import FORMATS, numpy_dtype

# Elements at a time: a few float64 temporaries of 256 KiB stay in the second-level cache.
_BLOCK = 1 << 15
# Elements that a thread takes at once.
_PART = 1 << 19
# Subnormal results that are so rare cost numpy's conversion less than it saves on the others.
_RARE = 64
# Fewer values are converted by numpy.
_FEW = 512
_EXPONENT = np.int64(0x7FF << 52)


class _Packing(msgspec.Struct, frozen=True):
    """How a number of a format lies in a float32: times `scale`, and without its last `drop` bits."""

    scale: float
    drop: int


# The bits of a float16 are those of the float32 2^-112 times as large, since the exponents of both
# formats begin at 0; those of a bfloat16 are the first half of a float32.
PACKED = {"float16": _Packing(2.0**-112, 13), "bfloat16": _Packing(1.0, 16)}


def is_packed(values: NDArray[Any], name: str) -> bool:
    """Whether `rounded_by_adding` is for them."""
    return name in PACKED and values.size >= _FEW and values.dtype == np.float64


def rounded_by_adding(values: NDArray[np.float64], name: str) -> NDArray[Any]:
    """`values` rounded once to the dtype `name` of `PACKED`; NaN keeps what numpy keeps of it."""
    flat = np.ascontiguousarray(values).reshape(-1)
    packed = np.empty(flat.shape, np.uint16)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            at = slice(start, start + _BLOCK)
            packed[at] = _packed(flat[at], name)
    return packed.view(numpy_dtype(name)).reshape(values.shape)


def widened(values: NDArray[Any]) -> NDArray[np.float64]:
    """Values of a float format as float64, which holds them; a NaN stays one, whatever its bits.

    numpy's conversion of float16 branches on each value too.
    """
    if values.dtype.name not in PACKED or values.size < _FEW or not values.flags.c_contiguous:
        return values.astype(np.float64)
    wide = np.empty(values.shape)
    flat, into = values.reshape(-1), wide.reshape(-1)

    def widen(start: int) -> None:
        for first in range(start, min(start + _PART, flat.size), _BLOCK):
            at = slice(first, min(first + _BLOCK, start + _PART))
            into[at] = _widened(flat[at])

    if flat.size <= _PART:  # most are: what threads need is longer than this
        widen(0)
        return wide
    for _ in parallel.in_order(widen, range(0, flat.size, _PART)):
        pass
    return wide


def _widened(values: NDArray[Any]) -> NDArray[Any]:
    """The same of a block, in a dtype that holds it."""
    packing = PACKED[values.dtype.name]
    bits = values.view(np.uint16).astype(np.uint32)
    if packing.drop == 16:
        bits <<= np.uint32(16)
        return bits.view(np.float32)
    sign = bits & np.uint32(0x8000)
    bits ^= sign
    if int(bits.max()) >= 0x7C00:  # an infinity or NaN among them
        return values.astype(np.float64)
    bits <<= np.uint32(packing.drop)
    single = bits.view(np.float32)
    single *= np.float32(1 / packing.scale)
    sign <<= np.uint32(16)
    bits |= sign
    return single


def _packed(values: NDArray[np.float64], name: str) -> NDArray[np.uint16]:
    form, packing = FORMATS[name], PACKED[name]
    if name == "float16":
        small = np.count_nonzero(np.abs(values) < form.smallest_normal)
        if small * _RARE <= values.size:  # numpy is slow on these alone
            return _by_numpy(values, name).view(np.uint16)
    top = 2.0 ** (form.max_exponent + 1)  # what rounds to it overflows
    near = np.clip(values, -top, top)
    # The power of two at or below each number, for an ulp; that of the least normal number below it.
    size = (near.view(np.int64) & _EXPONENT).view(np.float64)
    np.maximum(size, form.smallest_normal, out=size)
    size *= 1.5 * 2.0 ** (53 - form.precision)
    near += size
    near -= size
    np.copysign(near, values, out=near)
    single = near.astype(np.float32)
    if packing.scale != 1.0:
        single *= np.float32(packing.scale)
    bits = single.view(np.uint32)
    packed = (bits >> np.uint32(packing.drop)).astype(np.uint16)
    if packing.drop != 16:
        packed &= np.uint16(0x7FFF)
        packed |= (bits >> np.uint32(16)).astype(np.uint16) & np.uint16(0x8000)
    special = ~np.isfinite(values)
    if special.any():
        packed[special] = _by_numpy(values[special], name).view(np.uint16)
    return packed


def _by_numpy(values: NDArray[np.float64], name: str) -> NDArray[Any]:
    if name == "float16":
        return values.astype(np.float16)
    return float32_to_odd(values).astype(numpy_dtype(name))


def float32_to_odd(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round to odd to float32, after which one more rounding is as good as a single one.

    ml_dtypes goes from float64 to its types by way of float32 and would round twice. Rounding to
    odd keeps the information on which side of a tie the value lay: S. Boldo, G. Melquiond,
    "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
    IEEE Trans. Comput. 57(4), 2008.
    """
    nearest = values.astype(np.float32)
    bits = np.atleast_1d(nearest).view(np.uint32)
    wide = np.atleast_1d(nearest).astype(np.float64)
    inexact = np.isfinite(values) & (wide != values)
    outward = np.abs(wide) > np.abs(values)
    bits = np.where(inexact, (bits - (inexact & outward)) | np.uint32(1), bits)
    return bits.astype(np.uint32).view(np.float32).reshape(nearest.shape)
