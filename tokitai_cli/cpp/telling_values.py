"""Values at which a kernel shows faults that others hide, by what its body computes of floats."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tokitai_cli.cpp.body.symbolic_values import Line
from tokitai_cli.cpp.float_arithmetic import EPSILON, Computed, Numerics
from tokitai_cli.cpp.value_constraints import Values


class Telling(NamedTuple):
    """A profile whose values tell, what the kernel does that asks for it, and in which line."""

    profile: str
    does: str
    #: Those that are to hold such values.
    arrays: frozenset[str]
    at: Line | None


def telling_values(
    numerics: Numerics,
    values: Values,
    floats: Collection[str],
    written: Sequence[str],
    numbers: Collection[str],
) -> Iterator[Telling]:
    """Profiles on which a kernel of this kind shows what others hide.

    floats: arrays that it reads. written: dtypes of those that it writes. numbers: names of arguments by
    value.
    """

    def told(profile: str, does: str, places: Sequence[Computed]) -> Iterator[Telling]:
        if places:
            arrays = frozenset[str]().union(*map(numerics.arrays, places)) & {*floats}
            yield Telling(profile, does, arrays, places[0].at)

    summed = numerics.summed_exponentials
    if numerics.exponentials and (summed or numerics.maxima):
        does = "sums exponentials, which overflow unless the maximum is subtracted"
        yield from told("large", does, [*summed, *numerics.exponentials])
    elif "float16" not in written:
        does = "uses exponentials, which become very large or zero at large values"
        yield from told("steep", does, numerics.open_exponentials)
    does = "computes a variance, which cancels if the mean is far from 0"
    yield from told("offset", does, numerics.variances)
    does = "divides by a computed value, which may be 0"
    yield from told("zero-rows", does, numerics.divisions_by_own)
    yield from _zero_divisors(values, floats)
    does = "takes a maximum of values, which may all be negative"
    yield from told("negative", does, numerics.loaded_maxima)
    small = numerics.small_addends
    if small or any(map(EPSILON.search, numbers)):
        does = "adds a small constant in a root or divisor, which matters for small values"
        at = small[0].at if small else None
        yield Telling("tiny", does, frozenset(floats), at)
    if any("int" in one for one in written):
        does = "returns the position of one of several values, which may be equal"
        yield from told("ties", does, numerics.places_found)


def _zero_divisors(values: Values, floats: Collection[str]) -> Iterator[Telling]:
    """Arrays of floats that the kernel divides by, and in which it tells 0 from other numbers."""
    found = [one for one in floats if values.divides(one) and values.tests_zero(one)]
    branches = (one for array in found for one in values.branches(array))
    at = next((one.at for one in branches if values.number(one.operand) == 0), None)
    if found:
        does = "tests whether what it divides by is 0"
        yield Telling("some-zeros", does, frozenset(found), at)
