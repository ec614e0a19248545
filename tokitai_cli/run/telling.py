"""Which cases are watched beside a run: the smallest that show what a watch is for."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.draws import draws_are_random
from tokitai_cli.spec import plan


def telling_cases(selected: Sequence[Case]) -> list[Case]:
    """Of each variant among `selected`, the smallest case with several blocks and a tail, or two.

    They are looked for among the shapes of the selected cases, of all suites and of the defaults, on
    random inputs where a profile draws such: equal values of others prove nothing.
    """
    return [one for mine in _by_variant(selected).values() for one in _smallest(_candidates(mine))]


def _candidates(selected: Sequence[Case]) -> list[Case]:
    """Cases of one variant to choose from."""
    first = selected[0]
    profiles = _random(first)
    found = [one for one in selected if one.profile in profiles] or [*selected]
    for suite in (*first.loaded.spec.suites, None):
        asked = plan.Selection(
            variants=(first.variant_name,), profiles=profiles, seeds=(first.seed,), suite=suite
        )
        with contextlib.suppress(TokitaiError):  # it takes none of these shapes
            found += plan.plan(first.loaded, asked).cases
    return [one for one in found if one.launches and _elements(one)]


def _random(case: Case) -> tuple[str, ...]:
    """The first profile of the case's variant that draws random numbers, else that of the case."""
    spec, variant = case.loaded.spec, case.variant
    names = variant.profiles or spec.profiles
    found = (name for name in names if draws_are_random(spec, variant, name))
    return (next(found, case.profile),)


def _by_variant(cases: Sequence[Case]) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for one in cases:
        found.setdefault(one.variant_name, []).append(one)
    return found


def _smallest(cases: Sequence[Case]) -> list[Case]:
    """The smallest of those that tell most, and of each thing that it does not tell the smallest."""
    if not cases:
        return []
    best = min(cases, key=lambda one: (-len(_tells(one)), _size(one)))
    found = {best.id: best}
    for what in ("blocks", "tail"):
        others = [one for one in cases if what in _tells(one)]
        if what not in _tells(best) and others:
            other = min(others, key=_size)
            found[other.id] = other
    return list(found.values())


def _tells(case: Case) -> set[str]:
    """Several blocks, a tail, one behind a whole block, and no size of 1, whose loops go round once."""
    extents = {extent for one in case.launches for extent in one.block if extent > 1}
    tails = [(value, one) for value in case.shape.values() for one in extents if value % one]
    told = {
        "blocks": any(math.prod(one.grid) > 1 for one in case.launches),
        "tail": bool(tails),
        "behind": any(value > extent for value, extent in tails),
        "loops": all(value > 1 for value in case.shape.values()),
    }
    return {name for name, true in told.items() if true}


def _size(case: Case) -> int:
    threads = sum(math.prod(one.grid) * math.prod(one.block) for one in case.launches)
    return threads + _elements(case)


def _elements(case: Case) -> int:
    return sum(one.elements for one in case.buffers)
