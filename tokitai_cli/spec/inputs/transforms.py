"""From raw bits to numbers, with IEEE 754 operations only.

numpy's own streams of normal numbers may change between versions, and the logarithm of one C
library differs from another's in the last bits. Everything here is made of + - * / sqrt, frexp,
ldexp and bit operations on float64, each of which IEEE 754-2019 (section 5.4) defines to the last
bit, and numpy evaluates one ufunc at a time, so that no compiler can fuse a product into a sum. Equal
bits therefore give equal numbers on every platform and with every numpy. Where this process has the
compiled loops, words and normal numbers come of them, which hold no lock of Python's.
"""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native

Floats = NDArray[np.float64]
Raw = NDArray[np.uint64]

_LN2 = 0.693147180559945309417232121458
_SQRT_HALF = 0.707106781186547524400844362105
# Coefficients, highest power first, of M. J. Wichura, "Algorithm AS 241: The percentage points of
# the normal distribution", Applied Statistics 37(3), 1988, routine PPND16 (relative error 1e-16).
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
_CENTRE_HALF_WIDTH = 0.425
_CENTRE_SHIFT = 0.180625
_TAIL_SHIFT = 1.6
# AS 241 has a third branch for probabilities below exp(-25). One draw in 3.6e10 would take it;
# here those are drawn at its edge, 6.66 standard deviations.
_TAIL_END = 5.0


# Fewer are made as fast by numpy.
_LEAST = 1 << 12


def words(source: np.random.Philox, count: int) -> Raw:
    """The next `count` words of the stream."""
    library = native.library() if count >= _LEAST else None
    if library is None:
        return np.asarray(source.random_raw(count), np.uint64)
    raw, own = np.empty(count, np.uint64), source.ctypes
    library.functions.tokitai_words(
        own.next_uint64, own.state, ctypes.c_int64(count), ctypes.c_void_p(native.address(raw))
    )
    return raw


def centred(raw: Raw) -> Floats:
    """Uniform numbers in (-1/2, 1/2) from the upper 52 bits, symmetric, never 0: (k + 1/2) 2^-52 - 1/2.

    The bits become the significand of a number in [1, 2); the lower 12 stay free for other uses.
    """
    one_to_two = ((raw >> np.uint64(12)) | np.uint64(0x3FF0000000000000)).view(np.float64)
    return (one_to_two - 1.5) + 2.0**-53


def uniform(raw: Raw, lo: float, hi: float) -> Floats:
    """Uniform numbers in [lo, hi]."""
    return lo + (hi - lo) * (centred(raw) + 0.5)


def below(raw: Raw, count: int) -> NDArray[np.int64]:
    """Uniform integers in [0, count), count <= 2^52: floor(u count), biased by at most 2^-52 count."""
    drawn = ((raw >> np.uint64(12)).astype(np.float64) * 2.0**-52) * float(count)
    return np.minimum(drawn.astype(np.int64), count - 1)


def signs(raw: Raw) -> Floats:
    """-1 or 1 from bit 0."""
    return 1.0 - 2.0 * (raw & np.uint64(1)).astype(np.float64)


def normal(raw: Raw) -> Floats:
    """Turn bits into normal numbers, mean 0 and variance 1: the quantile of `centred`(raw) by AS 241."""
    library = native.library() if raw.size >= _LEAST and native.is_plain(raw) else None
    if library is None:
        return _normal_by_numpy(raw)
    result = np.empty(raw.shape)
    library.functions.tokitai_normals(
        ctypes.c_void_p(native.address(raw)),
        ctypes.c_int64(raw.size),
        ctypes.c_void_p(native.address(result)),
    )
    return result


def _normal_by_numpy(raw: Raw) -> Floats:
    q = centred(raw)
    result = _rational(_CENTRE, _CENTRE_SHIFT - q * q)
    result *= q
    tail = np.flatnonzero(np.abs(q) > _CENTRE_HALF_WIDTH)
    side = q[tail]
    radius = np.sqrt(-logarithm(0.5 - np.abs(side)))
    np.minimum(radius, _TAIL_END, out=radius)
    radius -= _TAIL_SHIFT
    result[tail] = np.copysign(_rational(_TAIL, radius), side)
    return result


def logarithm(x: Floats) -> Floats:
    """Natural logarithm of positive normal numbers, within a few units of 2^-53.

    x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s) with s = (m - 1) / (m + 1), whose
    series is cut after s^21: |s| <= 0.172, so that what is left out is below 2^-56 log m.
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = _polynomial([1.0 / odd for odd in range(21, 0, -2)], square)
    return (exponent - small).astype(np.float64) * _LN2 + 2.0 * (s * series)


def exp2(x: Floats) -> Floats:
    """2^x within a few units of 2^-53, for |x| < 1000.

    x = k + f with |f| <= 1/2; 2^f = exp(f ln 2) by its Taylor series to the 14th power, whose
    remainder is below 0.35^15 / 15!, less than 2^-60.
    """
    whole = np.rint(x)
    terms = [1.0]
    for power in range(1, 15):
        terms.append(terms[-1] / power)
    return np.ldexp(_polynomial(terms[::-1], (x - whole) * _LN2), whole.astype(np.int32))


def _polynomial(coefficients: tuple[float, ...] | list[float], x: Floats) -> Floats:
    """Horner's scheme in place, highest power first."""
    result = x * coefficients[0]
    result += coefficients[1]
    for coefficient in coefficients[2:]:
        result *= x
        result += coefficient
    return result


def _rational(pair: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    result = _polynomial(pair[0], x)
    result /= _polynomial(pair[1], x)
    return result
