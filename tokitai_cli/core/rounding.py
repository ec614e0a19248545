"""Rounding float64 to float16 and bfloat16 by adding, and back, at one speed whatever the values.

numpy's conversion to float16 branches on each value: where some results are subnormal it takes 26 ns
an element. Adding 1.5 2^52 ulp to a number, and taking it away again, rounds it to a multiple of the
ulp, to nearest even, as the sum has no digits below (D. E. Knuth, The Art of Computer Programming,
vol. 2, 4.2.2; J.-M. Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., ch. 4). Where this
process has the compiled loops, they do the same.
"""

from __future__ import annotations

import ctypes
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native, parallel
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


# The compiled rounding's numbers of them.
_KINDS = {"float16": 0, "bfloat16": 1}


def is_packed(values: NDArray[Any], name: str) -> bool:
    """Whether `rounded_by_adding` is for them."""
    return name in PACKED and values.size >= _FEW and values.dtype == np.float64


def rounded_by_adding(values: NDArray[np.float64], name: str) -> NDArray[Any]:
    """`values` rounded once to the dtype `name` of `PACKED`; NaN keeps what numpy keeps of it."""
    flat = np.ascontiguousarray(values).reshape(-1)
    packed = np.empty(flat.shape, np.uint16)

    def pack(start: int) -> None:
        with np.errstate(all="ignore"):
            for first in range(start, min(start + _PART, flat.size), _BLOCK):
                at = slice(first, min(first + _BLOCK, start + _PART))
                _pack(flat[at], name, packed[at])

    if flat.size <= _PART:
        pack(0)
    else:
        for _ in parallel.in_order(pack, range(0, flat.size, _PART)):
            pass
    return packed.view(numpy_dtype(name)).reshape(values.shape)


def widened(values: NDArray[Any]) -> NDArray[np.float64]:
    """Values of a float format as float64, which holds them; a NaN stays one, whatever its bits.

    numpy's conversion of float16 branches on each value too.
    """
    if values.dtype.name not in PACKED or values.size < _FEW or not values.flags.c_contiguous:
        return values.astype(np.float64)
    wide = np.empty(values.shape)
    flat, into = values.reshape(-1), wide.reshape(-1)

    library = native.library() if native.is_plain(values) else None

    def widen(start: int) -> None:
        if library is not None:
            some = slice(start, start + _PART)
            _widen_natively(library, flat[some], into[some])
            return
        for first in range(start, min(start + _PART, flat.size), _BLOCK):
            at = slice(first, min(first + _BLOCK, start + _PART))
            into[at] = _widened(flat[at])

    if flat.size <= _PART:  # most are: what threads need is longer than this
        widen(0)
        return wide
    for _ in parallel.in_order(widen, range(0, flat.size, _PART)):
        pass
    return wide


def _widen_natively(
    library: native.Library, values: NDArray[Any], into: NDArray[np.float64]
) -> None:
    library.functions.tokitai_widen(
        _KINDS[values.dtype.name],
        ctypes.c_void_p(native.address(values)),
        ctypes.c_int64(values.size),
        ctypes.c_void_p(native.address(into)),
    )


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


def _pack(values: NDArray[np.float64], name: str, into: NDArray[np.uint16]) -> None:
    """Put the bits of a block's rounded values there; compiled, or by numpy."""
    library = native.library()
    if library is None or not native.is_plain(values):
        into[...] = _packed(values, name)
        return
    unknown = library.functions.tokitai_round(
        _KINDS[name],
        ctypes.c_void_p(native.address(values)),
        ctypes.c_int64(values.size),
        ctypes.c_void_p(native.address(into)),
    )
    if unknown:
        special = np.isnan(values)
        into[special] = _by_numpy(values[special], name).view(np.uint16)


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


def check_native(library: native.Library) -> None:
    """Raise MismatchError where the compiled loops give another bit than numpy's code."""
    for name in PACKED:
        every = np.tile(np.arange(1 << 16, dtype=np.uint16), 2)[:-7].view(numpy_dtype(name))
        with native.by(None), np.errstate(all="ignore"):
            wide = widened(every)
        with native.by(library):
            compiled = widened(every)
        same = wide.view(np.uint64) == compiled.view(np.uint64)
        if not (same | (np.isnan(wide) & np.isnan(compiled))).all():
            raise native.MismatchError(f"the compiled {name} as float64 is not numpy's")
        with np.errstate(all="ignore"):
            values = _telling(name)
        with native.by(None):
            want = rounded_by_adding(values, name)
        with native.by(library):
            got = rounded_by_adding(values, name)
        if not np.array_equal(got.view(np.uint16), want.view(np.uint16)):
            raise native.MismatchError(f"the compiled rounding to {name} is not numpy's")


def _telling(name: str) -> NDArray[np.float64]:
    """Each number of the format, what is half way between two and beside that, and any bits."""
    every = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(name)).astype(np.float64)
    numbers = np.unique(every[np.isfinite(every)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    beside = [np.nextafter(ties, end) for end in (np.inf, -np.inf)]
    rng = np.random.default_rng(28)
    bits = rng.integers(0, 2**64, 1 << 16, np.uint64).view(np.float64)
    top = 2.0 ** (FORMATS[name].max_exponent + 1)
    ends = top * np.array([1.0, 1 - 2.0**-12, 1 - 2.0**-9, 1 - 2.0**-53, 2.0, 1e9])
    values = np.concatenate([every, ties, *beside, bits, ends, -ends, [5e-324, -0.0]])
    return np.asarray(rng.permutation(values))
