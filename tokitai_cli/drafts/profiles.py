"""Profiles of a draft: values at which kernels of its kind often fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from tokitai_cli.core.model.draws import CANDIDATES
from tokitai_cli.cpp.float_arithmetic import EPSILON
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.array_draws import draw_of
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import Flow, Guess, ProfileDraft

_SMALL = {"kind": "uniform", "lo": 0, "hi": 1e-12}  # of what is not below 0, beside small values


def profiles_of(known: Known) -> dict[str, ProfileDraft]:
    """All profiles of a draft; for a trial, the first alone."""
    drawn = {one.name: told for one in known.read if (told := draw_of(known, one))}
    found = {"normal": ProfileDraft("normal", "N(0,1)", inputs=Guess(drawn, "ranges"))}
    for name, why in () if known.origin.room else telling(known):
        draw, words = CANDIDATES[name]
        told = msgspec.to_builtins(draw)
        inputs: Mapping[str, Flow] = drawn
        if name == "tiny":
            inputs = {key: _SMALL if one == {"kind": "uniform"} else one
                      for key, one in drawn.items()}  # fmt: skip
        found[name] = ProfileDraft(told, words, why, Guess(inputs, "ranges"))
    return found


def telling(known: Known) -> Iterator[tuple[str, str]]:
    """Profiles on which a kernel of this kind shows what others hide, and why."""
    numerics = known.numerics
    if numerics.uses_exponentials and (numerics.takes_maximum or numerics.sums_exponentials):
        yield "large", "that it sums exponentials, which overflow unless the maximum is subtracted"
    elif numerics.leaves_exponents_open and not any(
        one.dtypes[:1] == ("float16",) for one in known.written
    ):
        yield "steep", "that it uses exponentials, which become very large or zero at large values"
    if numerics.takes_variance:
        yield "offset", "that it computes a variance, which cancels if the mean is far from 0"
    if numerics.divides_by_own:
        yield "zero-rows", "that it divides by a computed value, which may be 0"
    if any(_tests_divisor(known, one) for one in known.read):
        yield "some-zeros", "that it tests whether what it divides by is 0"
    if numerics.takes_loaded_maximum:
        yield "negative", "that it takes a maximum of values, which may all be negative"
    if numerics.adds_small or any(EPSILON.search(one.name) for one in known.numbers):
        yield "tiny", "that a constant added in a root or divisor matters for small values"
    if finds_places(known):
        yield "ties", "that it returns the position of one of several equal values"


def _tests_divisor(known: Known, one: Parameter) -> bool:
    """Whether the kernel divides by an array of floats, and tells 0 in it from other numbers."""
    array, floats = known.path(one.name), "float" in "".join(one.dtypes)
    return floats and known.values.divides(array) and known.values.tests_zero(array)


def finds_places(known: Known) -> bool:
    """Whether it compares elements and writes whole numbers: the places of some of them."""
    written = any(one.dtypes and "int" in one.dtypes[0] for one in known.written)
    return written and known.numerics.finds_places
