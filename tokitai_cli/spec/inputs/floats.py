"""Kinds of draws for floating-point arrays.

A kind fills an array in two steps. `fill` turns one raw word into one number, element by element, so
that an array is drawn in chunks. `finish` then rearranges what depends on the position along the
axis that the op reduces over. Both are functions of the request and its bits alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FloatFormat
from tokitai_cli.core.numerics import round_to
from tokitai_cli.spec.inputs import row_draws
from tokitai_cli.spec.inputs.draw_request import ArrayRequest
from tokitai_cli.spec.inputs.transforms import (
    Floats,
    Raw,
    below,
    centred,
    exp2,
    normal,
    signs,
    uniform,
)

# Above these lengths exact-int has only +-1 and exact-int-ramp only 1 in float16, so that |sum| stays
# below the 2048 that it counts to, with a margin of five standard deviations; the square of what a
# format counts to decides in others, and sum |a b| below 2^24 in any.
_TWOS_UP_TO = 8192 / 2048**2
_RAMP_TWOS_UP_TO = 80_000 / 2048**2
_MOST_TWOS = 1 << 21
_SLAB = 1 << 15
# Second halves of cancelling pairs differ from the first by this much relative to them.
_PAIR_SPREAD = 2.0**-6


class FloatKind(msgspec.Struct, frozen=True):
    """How a kind of draws.KINDS fills an array of floats."""

    fill: Callable[[ArrayRequest, Raw], Floats]
    finish: Callable[[ArrayRequest, NDArray[Any]], None] | None = None
    #: Refuses settings that cannot be.
    check: Callable[[ArrayRequest], None] | None = None


def _fill_normal(request: ArrayRequest, raw: Raw) -> Floats:
    return request.setting("value") + normal(raw) * request.setting("scale")


def _fill_noise(request: ArrayRequest, raw: Raw) -> Floats:
    """Draw N(0, scale^2), for kinds whose `value` is something else than the mean."""
    return np.asarray(normal(raw) * request.setting("scale"))


def _fill_uniform(request: ArrayRequest, raw: Raw) -> Floats:
    return uniform(raw, request.setting("lo"), request.setting("hi"))


def _fill_log_uniform(request: ArrayRequest, raw: Raw) -> Floats:
    magnitude = exp2(uniform(raw, request.setting("lo"), request.setting("hi")))
    sign = request.draw.sign or "random"
    if sign == "random":
        return magnitude * signs(raw)
    return magnitude if sign == "positive" else -magnitude


def _fill_constant(request: ArrayRequest, raw: Raw) -> Floats:
    return np.full(raw.shape, request.setting("value"))


def _fill_exact_int(request: ArrayRequest, raw: Raw) -> Floats:
    twos = _has_twos(request, _TWOS_UP_TO)
    return _magnitudes(raw, twos) * signs(raw) * request.setting("scale")


def _fill_ramp(request: ArrayRequest, raw: Raw) -> Floats:
    return _magnitudes(raw, _has_twos(request, _RAMP_TWOS_UP_TO)) * request.setting("scale")


def _has_twos(request: ArrayRequest, share: float) -> bool:
    return request.terms <= min(share * request.coarsest.countable**2, _MOST_TWOS)


def _magnitudes(raw: Raw, twos: bool) -> Floats:
    """1 or 2 from bit 1, or 1 everywhere."""
    if not twos:
        return np.ones(raw.shape)
    return 1.0 + ((raw >> np.uint64(1)) & np.uint64(1)).astype(np.float64)


def _finish_ramp(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Turn the second half along the reduction negative, in one of the factors only."""
    if request.carrier and request.axis is not None:
        line = np.moveaxis(array, request.axis, 0)
        second = line[(line.shape[0] + 1) // 2 :]
        np.negative(second, out=second)


def _finish_cancelling(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Let the second half along the reduction undo the first, up to a relative 2^-6.

    Term t + n - n // 2 is the negative of term t: the carrier is negated and slightly changed, the
    other factors are repeated. Partial sums grow to sqrt(n / 2), the result does not.
    """
    if request.axis is None:
        return
    line = np.moveaxis(array, request.axis, 0)
    half = line.shape[0] // 2
    first, second = line[:half], line[line.shape[0] - half :]
    if not request.carrier:
        second[...] = first
        return
    source = request.source("pairs")
    rows = max(1, _SLAB // max(1, math.prod(line.shape[1:])))
    for start in range(0, half, rows):
        block = first[start : start + rows].astype(np.float64)
        change = 1.0 + _PAIR_SPREAD * normal(source.random_raw(block.size)).reshape(block.shape)
        second[start : start + rows] = round_to(-block * change, request.plan.dtype)


def _fill_large(request: ArrayRequest, raw: Raw) -> Floats:
    form = request.overflowing
    if request.axis is None:
        return exp2(uniform(raw, form.max_exponent - 3.0, form.max_exponent + 0.5)) * signs(raw)
    # Sums of products of these have a standard deviation of half an ulp of the largest number.
    noise = math.ldexp(1.0, form.max_exponent - form.precision)
    spread = (noise / math.sqrt(request.terms)) ** (1.0 / max(1, request.factors))
    return np.asarray(normal(raw) * spread)


def _finish_large(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Put results around the overflow threshold T, 65520 for float16: the first term of a product,
    or the first two of a plain sum.

    Half of the lines along the reduction get exactly the factor of T, the others up to an
    eighth more or less, and every eighth one is negative. The noise of the other terms is quieter
    by 2^0, 2^-4, 2^-8 or 2^-12 on each line of the carrier. So some results must overflow, some
    must not, and some lie so close that either is right.
    """
    if request.axis is None:
        return
    line = np.moveaxis(array, request.axis, 0)
    if request.factors >= 2:
        precision = min(form.precision for form in request.formats)
        first, other = threshold_product(request.overflowing, precision)
        anchors = [first if request.carrier else other] if line.shape[0] else []
    else:
        anchors = list(_threshold_sum(request.overflowing)[: line.shape[0]])
    count = math.prod(line.shape[1:])
    raw = request.source("anchors").random_raw(count)
    factor = np.where(raw & np.uint64(1), 1.0, 1.0 + centred(raw) / 4.0)
    factor[(raw >> np.uint64(1)) % np.uint64(8) == 0] *= -1.0
    if request.carrier:
        quieter = exp2(-4.0 * ((raw >> np.uint64(4)) & np.uint64(3)).astype(np.float64))
        line *= quieter.reshape(line.shape[1:]).astype(array.dtype)
    largest = request.form.largest
    for position, anchor in enumerate(anchors):
        block = np.clip(anchor * factor, -largest, largest).reshape(line.shape[1:])
        line[position] = round_to(block, request.plan.dtype)


@functools.cache
def threshold_product(form: FloatFormat, precision: int) -> tuple[float, float]:
    """Two numbers of `precision` bits and about one size whose product is the overflow threshold.

    252 and 260 for float16. Where its odd part has no such factors, the next larger one's that has.
    """
    odd, exponent = form.tie
    while True:
        for small in range(math.isqrt(odd), 0, -1):
            if odd % small == 0 and odd // small < 1 << precision:
                size = (math.log2(odd) + exponent) / 2
                shift = round(size - math.log2(small))
                large = math.ldexp(odd // small, exponent - shift)
                return math.ldexp(small, shift), large
        odd += 1


def _threshold_sum(form: FloatFormat) -> tuple[float, float]:
    """Two numbers of the format whose sum is its overflow threshold: 32752 and 32768 for float16."""
    odd, exponent = form.tie
    power = math.ldexp(1.0, form.max_exponent)
    return math.ldexp(odd - (1 << form.precision), exponent), power


def _fill_subnormal(request: ArrayRequest, raw: Raw) -> Floats:
    """Subnormals in the carrier; ordinary numbers, one in eight a subnormal, in other factors.

    The ordinary ones are scaled by 1 / sqrt(terms), so that sums of products are subnormal too.
    """
    form = request.form
    steps = 1 << (form.precision - 1)
    counts = np.rint(centred(raw) * (2 * (steps - 1))).astype(np.float64)
    tiny = counts * form.smallest
    if request.carrier or request.axis is None:
        return tiny
    ordinary = centred(raw) * (2.0 / math.sqrt(max(1, request.terms)))
    return np.where((raw >> np.uint64(2)) & np.uint64(7), ordinary, tiny)


def _fill_special(request: ArrayRequest, raw: Raw) -> Floats:
    """Draw normal numbers with one element in 32 a -0.0 and one in 32 a +0.0."""
    values = _fill_noise(request, raw)
    low = raw & np.uint64(31)
    values[low == 0] = -0.0
    values[low == 1] = 0.0
    return values


def _finish_special(request: ArrayRequest, array: NDArray[Any]) -> None:
    """Place NaN, inf and -inf at a few positions: 1, 2 and 2, more in arrays above 2^16 elements.

    Few, so that in a product whole lines stay finite. An array with less than 16 elements, or less
    than 4 lines along the reduction, gets one infinity, as a NaN would leave nothing else.
    """
    if array.size == 0:
        return
    extent = 1 if request.axis is None else array.shape[request.axis]
    times = 1 + min(7, array.size >> 16)
    values = [math.nan] * times + [math.inf, -math.inf] * (2 * times)
    if array.size < 16 or array.size // extent < 4:
        values = [math.inf]
    raw = request.source("special").random_raw(len(values))
    array.reshape(-1)[below(raw, array.size)] = np.array(values)


def _check_range(request: ArrayRequest) -> None:
    lo, hi = request.setting("lo"), request.setting("hi")
    if request.draw.kind == "log-uniform" and (lo <= -1000.0 or hi >= 1000.0):
        raise request.refuse("log-uniform takes exponents of two between -1000 and 1000")
    if not (math.isfinite(lo) and math.isfinite(hi) and lo <= hi):
        raise request.refuse(
            f"lo = {lo:g} and hi = {hi:g} are not a range", "give lo <= hi, both finite"
        )
    for bound in (lo, hi):
        _check_holds(request, 2.0**bound if request.draw.kind == "log-uniform" else bound)


def _check_powers(request: ArrayRequest) -> None:
    lo, hi = request.setting("lo"), request.setting("hi")
    if not (math.isfinite(lo) and math.isfinite(hi) and lo <= hi and lo % 1 == hi % 1 == 0):
        raise request.refuse(f"lo = {lo:g} and hi = {hi:g} are not a range of integer exponents")
    if lo < -1000.0 or hi > 1000.0:
        raise request.refuse("power-of-two takes exponents between -1000 and 1000")
    _check_holds(request, 2.0**hi)


def _check_halfway(request: ArrayRequest) -> None:
    bits = request.setting("value")
    if bits % 1 or not 2 <= bits < request.form.precision:
        most = request.form.precision - 1
        raise request.refuse(
            f"halfway takes the bits of a format narrower than {request.plan.dtype}: 2 to {most}",
            "write 11 for float16, 8 for bfloat16",
        )


def _check_value(request: ArrayRequest) -> None:
    _check_holds(request, request.setting("value"))


def _check_holds(request: ArrayRequest, value: float) -> None:
    rounded = float(round_to(np.array([value]), request.plan.dtype).astype(np.float64)[0])
    if math.isfinite(value) and not math.isfinite(rounded):
        raise request.refuse(f"{value:g} overflows {request.plan.dtype}", "write .inf for infinity")


FLOAT_KINDS: dict[str, FloatKind] = {
    "normal": FloatKind(_fill_normal),
    "uniform": FloatKind(_fill_uniform, check=_check_range),
    "log-uniform": FloatKind(_fill_log_uniform, check=_check_range),
    "constant": FloatKind(_fill_constant, check=_check_value),
    "exact-int": FloatKind(_fill_exact_int),
    "exact-int-ramp": FloatKind(_fill_ramp, _finish_ramp),
    "cancelling": FloatKind(_fill_noise, _finish_cancelling),
    "large": FloatKind(_fill_large, _finish_large),
    "subnormal": FloatKind(_fill_subnormal),
    "special": FloatKind(_fill_special, _finish_special),
    "constant-rows": FloatKind(_fill_normal, row_draws.finish_constant_rows),
    "one-large": FloatKind(_fill_noise, row_draws.finish_one_large, check=_check_value),
    "masked": FloatKind(_fill_noise, row_draws.finish_masked),
    "all-masked": FloatKind(_fill_noise, row_draws.finish_all_masked),
    "plus-inf": FloatKind(_fill_noise, row_draws.every_other(math.inf)),
    "nan-rows": FloatKind(_fill_noise, row_draws.every_other(math.nan)),
    "placed": FloatKind(_fill_noise, row_draws.finish_placed, check=_check_value),
    "sorted": FloatKind(_fill_uniform, row_draws.finish_sorted, check=_check_range),
    "falling": FloatKind(_fill_uniform, row_draws.finish_falling, check=_check_range),
    "ties": FloatKind(_fill_noise, row_draws.finish_ties),
    "sorted-ties": FloatKind(_fill_noise, row_draws.finish_sorted_ties),
    "zero-rows": FloatKind(_fill_noise, row_draws.finish_zero_rows),
    "softmax": FloatKind(_fill_noise, row_draws.finish_softmax),
    "power-of-two": FloatKind(row_draws.fill_power_of_two, check=_check_powers),
    "halfway": FloatKind(row_draws.fill_halfway, check=_check_halfway),
}
