"""Arithmetic of floating-point formats: rounding, spacing, overflow, the bound of a last rounding.

Ground floor for inputs, oracles and the comparison. Formulas: Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., ch. 2.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import DTYPES, FloatFormat, numpy_dtype
from tokitai_cli.core.rounding import float32_to_odd, is_packed, rounded_by_adding, widened


def round_to(values: NDArray[np.float64], name: str) -> NDArray[Any]:
    """`values` rounded once, to nearest even, to the dtype `name`; overflow as its format has it."""
    known = DTYPES[name]
    if known.form is not None:
        values = clamped(values, known.form)
    if is_packed(values, name):
        return rounded_by_adding(values, name)
    with np.errstate(all="ignore"):
        if known.extension:
            return float32_to_odd(np.asarray(values, dtype=np.float64)).astype(numpy_dtype(name))
        return np.asarray(values).astype(numpy_dtype(name))


def clamped(values: NDArray[np.float64], form: FloatFormat) -> NDArray[np.float64]:
    """`values` as far as a format that stops at its largest number goes; else as they are."""
    if form.overflows != "largest":
        return values
    return np.clip(values, -form.largest, form.largest)


def spacing(values: NDArray[np.float64], form: FloatFormat) -> NDArray[np.float64]:
    """One ulp of `form` at each value: 2^(max(floor(log2|x|), min_exponent) - precision + 1).

    Zero and subnormals have the spacing of the subnormals; NaN and infinities get NaN.
    """
    with np.errstate(all="ignore"):
        magnitude = np.abs(np.asarray(values, dtype=np.float64))
        exponent = np.frexp(magnitude)[1] - 1
        exponent = np.where(magnitude == 0, form.min_exponent, exponent)
        exponent = np.maximum(exponent, form.min_exponent)
        ulp = np.ldexp(1.0, exponent - form.precision + 1)
        return np.where(np.isfinite(magnitude), ulp, np.nan)


def rounded_bound(
    error: NDArray[np.float64],
    reference: NDArray[np.float64],
    form: FloatFormat,
    *,
    accumulator: str = "float32",
    flush_to_zero: bool = False,
) -> NDArray[np.float64]:
    """F(e, r) = e + max(u (|r| + e), H): an error `e` in front of one rounding to `form`.

    For an output in the accumulator's own format there is no further rounding and F = e. With
    `flush_to_zero`, H is the smallest normal number. Where e = 0 the value in front of the last
    rounding is the reference itself, so F is the distance from the reference to its own rounding
    (zero where `form` holds it). Element-wise, float64.
    """
    # -0.0 is no error too, and must not give a quotient the wrong sign.
    error = np.abs(np.asarray(error, dtype=np.float64))
    if form.name == accumulator:
        return error
    half = form.smallest_normal if flush_to_zero else form.half_smallest
    with np.errstate(all="ignore"):
        rounding = form.unit_roundoff * (np.abs(reference) + error)
        bound = np.asarray(error + np.maximum(rounding, half), dtype=np.float64)
        exact = error == 0
        if flush_to_zero:
            exact &= np.abs(reference) >= form.smallest_normal
        if exact.any():
            own = widened(round_to(reference, form.name))
            np.copyto(bound, np.abs(own - reference), where=exact)
    return bound


def least_error(
    distance: NDArray[np.float64],
    reference: NDArray[np.float64],
    form: FloatFormat,
    *,
    accumulator: str = "float32",
    flush_to_zero: bool = False,
) -> NDArray[np.float64]:
    """The smallest e >= 0 with `distance` <= F(e, r) = e + max(u (|r| + e), H), as in `rounded_bound`.

    0 where one rounding to `form` explains the distance. Element-wise, float64.
    """
    distance = np.asarray(distance, dtype=np.float64)
    if form.name == accumulator:
        return distance.copy()
    half = form.smallest_normal if flush_to_zero else form.half_smallest
    unit = form.unit_roundoff
    with np.errstate(all="ignore"):
        by_unit = (distance - unit * np.abs(reference)) / (1 + unit)
        return np.asarray(np.fmax(np.fmin(by_unit, distance - half), 0.0))


# Codes of `overflow_class`.
MUST_BE_FINITE, MUST_BE_INFINITE, MAY_BE_EITHER, MUST_BE_NAN, MAY_BE_ANYTHING, MAY_BE_NAN = range(6)

# What a result beyond the largest number must be, and one that may lie on either side.
_BEYOND = {
    "infinity": (MUST_BE_INFINITE, MAY_BE_EITHER),
    "nan": (MUST_BE_NAN, MAY_BE_NAN),
    "largest": (MUST_BE_FINITE, MUST_BE_FINITE),
}

# Error in ulp that is assumed around a reference whose oracle gives no bound.
UNBOUNDED_ULPS = 16.0


def overflow_class(
    reference: NDArray[np.float64], error: NDArray[np.float64] | None, form: FloatFormat
) -> NDArray[np.uint8]:
    """Classify each element by what kind of number a correct kernel gives there, as a code.

    With lo = |reference| - error, hi = |reference| + error and T = `form.overflow`, the least
    magnitude that rounds to infinity (IEEE 754-2019, 7.4):

    - 0 MUST_BE_FINITE: hi < T. The value must be finite, and within F(error, reference).
    - 1 MUST_BE_INFINITE: lo >= T, or the reference is infinite. The value must be infinity with
      the reference's sign.
    - 2 MAY_BE_EITHER: anything between. Infinity with the reference's sign, or a finite value
      within F(error, reference). (With an error beyond T the sign is open as well: |reference|
      < error - T.)
    - 3 MUST_BE_NAN: the reference is NaN.
    - 4 MAY_BE_ANYTHING: the error is infinite; the oracle knows nothing here (the kernel's own
      accumulator may overflow), and no value is wrong, NaN included.
    - 5 MAY_BE_NAN: as 2, in a format whose overflow is NaN, where 1 is MUST_BE_NAN as well.

    A format that stops at its largest number has no 1, 2 and 5: the value must be finite, and is
    judged against the `clamped` reference.

    `error` None (no bound known) stands for 16 ulp of `form`. `reference` and `error` have the
    same shape, which is that of the result.
    """
    reference = np.asarray(reference, dtype=np.float64)
    margin = UNBOUNDED_ULPS * spacing(reference, form) if error is None else error
    beyond, undecided = _BEYOND[form.overflows]
    with np.errstate(all="ignore"):
        magnitude = np.abs(reference)
        classes = np.full(reference.shape, undecided, dtype=np.uint8)
        classes[magnitude + margin < form.overflow] = MUST_BE_FINITE
        classes[magnitude - margin >= form.overflow] = beyond
    classes[np.isposinf(margin)] = MAY_BE_ANYTHING
    classes[np.isinf(reference)] = beyond
    classes[np.isnan(reference)] = MUST_BE_NAN
    return classes


def array_sha256(array: NDArray[Any]) -> str:
    """sha256 in hex of the array's bytes in C order, little-endian."""
    flat = np.ascontiguousarray(array)
    if flat.dtype.byteorder == ">" or (flat.dtype.byteorder == "=" and not np.little_endian):
        flat = flat.byteswap()
    return hashlib.sha256(flat.reshape(-1).view(np.uint8).data).hexdigest()


def bit_source(*key: object) -> np.random.Philox:
    """Philox4x64-10 keyed by `key`: use its `random_raw` only, a stream that numpy never changes.

    The 128-bit key is the head of the sha256 of the parts' text, each ended by a zero byte, so that
    every array has a stream of its own. Philox: J. Salmon et al., "Parallel random numbers: as easy
    as 1, 2, 3", SC11.
    """
    text = b"".join(str(part).encode() + b"\0" for part in key)
    digest = hashlib.sha256(text).digest()
    return np.random.Philox(key=int.from_bytes(digest[:16], "little"))


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_F64_FRACTION_BITS = 52
_F64_EXPONENT_MASK = 0x7FF
_F64_EXPONENT_BIAS = 1023


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the elements' bytes as unsigned integers of the same width; a view if it can be."""
    return np.ascontiguousarray(array).view(_UNSIGNED[array.dtype.itemsize])


@functools.cache
def _memcmp() -> Callable[..., int]:
    found: Callable[..., int] = ctypes.CDLL(None).memcmp
    return found


def same_bytes(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether the elements of both have equal bytes; nothing as large as they is made for it."""
    if left.nbytes != right.nbytes:
        return False
    one, other = np.ascontiguousarray(left), np.ascontiguousarray(right)
    places = (ctypes.c_void_p(array.ctypes.data) for array in (one, other))
    return _memcmp()(*places, ctypes.c_size_t(left.nbytes)) == 0


def digests(arrays: Sequence[NDArray[Any]]) -> list[str]:
    """sha256 of each array's bytes; equal arrays, which repetitions should be, are read once."""
    found: list[str] = []
    for array in arrays:
        found.append(found[0] if found and same_bytes(array, arrays[0]) else array_sha256(array))
    return found


def ulp_at(values: NDArray[np.float64], form: FloatFormat) -> NDArray[np.float64]:
    """`spacing` for flat arrays, from the exponent field of the float64 itself.

    Equal to it for every format whose least spacing is a normal float64; an order of magnitude
    faster than frexp and ldexp. Non-finite values get NaN.
    """
    if form.min_exponent - form.precision + 1 <= -_F64_EXPONENT_BIAS:
        return spacing(values, form)
    exponent = np.ascontiguousarray(values).view(np.int64) >> _F64_FRACTION_BITS
    exponent &= _F64_EXPONENT_MASK
    special = exponent == _F64_EXPONENT_MASK
    np.maximum(exponent, form.min_exponent + _F64_EXPONENT_BIAS, out=exponent)
    exponent -= form.precision - 1
    exponent <<= _F64_FRACTION_BITS
    ulp = exponent.view(np.float64)
    if special.any():
        ulp[special] = np.nan
    return ulp


def integer_distance(got: NDArray[Any], want: NDArray[Any]) -> NDArray[np.float64]:
    """|got - want| of integers of one dtype, exact up to 2^53 and rounded up beyond.

    Subtraction modulo 2^64 in the order larger - smaller cannot overflow, and a distance that is
    rounded up exceeds a float64 limit exactly where the true one does.
    """
    wide = np.int64 if got.dtype.kind == "i" else np.uint64
    larger: NDArray[Any] = np.maximum(got, want).astype(wide)
    smaller = np.minimum(got, want).astype(larger.dtype)
    exact = larger.view(np.uint64) - smaller.view(np.uint64)
    rounded: NDArray[np.float64] = exact.astype(np.float64)
    if got.dtype.itemsize == 8:
        beyond = exact > np.uint64(2**53)
        with np.errstate(all="ignore"):
            below = beyond & (rounded < 2.0**64) & (rounded.astype(np.uint64) < exact)
        rounded[below] = np.nextafter(rounded[below], np.inf)
    return rounded


def ratio(error: NDArray[np.float64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """error / unit, where 0/0 is 0 and an error over an unknown (NaN) unit is infinite."""
    with np.errstate(all="ignore"):
        quotient = np.asarray(error / unit)
    unknown = np.isnan(quotient)
    if unknown.any():
        quotient[unknown] = np.where(error[unknown] == 0, 0.0, np.inf)
    return quotient
