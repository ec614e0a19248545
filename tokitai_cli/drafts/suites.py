"""Suites of a draft: shapes that tell faults apart, and fit what the kernel asks of its sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.cpp.layout_relations import spans, within
from tokitai_cli.drafts.array_draws import draw_of
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.launching import Launching
from tokitai_cli.drafts.model import SuiteShape
from tokitai_cli.drafts.profiles import telling
from tokitai_cli.drafts.reaching import count
from tokitai_cli.drafts.sizing import Sizing

# Shapes of suites, from the last size to the first: one, a tail, a multiple of blocks, a large one.
# No shape but the first has two equal sizes.
_EXTENTS = (
    *((1, 257, 512, 1031), (1, 5, 3, 67), (1, 7, 2, 13), (1, 2, 5, 3), (1, 3, 4, 2), (1, 4, 6, 5)),
    *((1, 6, 7, 4), (1, 8, 9, 7), (1, 9, 8, 6)),
)
_WHY = ("the smallest sizes", "a tail", "multiples of the block", "large sizes")
# Sizes that are few, which the smallest extents are for.
_FEW = re.compile(
    r"(?:^|_)(?:b|bs|bsz|batch\w*|nh|nkv|n?_?(?:kv_?)?heads?(?:_\w+)?|groups?|experts?|layers?|seqs|k[hw]|ksize|kernel_?\w*|taps)$",
    re.I,
)
_PADDED, _TAPS = re.compile(r"pad|dilat", re.I), re.compile(r"(?:^|_)(?:r|s|f[hw]?)$", re.I)
_STEPS = (1, 37, 64, 67)  # of a recurrence
_PADS = (0, 7, 8, 5)  # of what a row lies behind the one before, beside its own length


def requirements(known: Known) -> list[str]:
    """Comparisons that a shape must meet."""
    told = [f"{small} <= {large}" for small, large in within(known.layouts)]
    told += [f"{total} <= {most}" for total, most in spans(known.layouts)]
    return told + [f"{many} % {few} == 0" for many, few in known.divisors]


def quick(known: Known, launching: Launching, sizing: Sizing) -> Iterator[SuiteShape]:
    """Shapes of the suite quick."""
    if whole := launching.whole:
        yield from (SuiteShape({"elements": whole * at}, why) for at, why in enumerate(_WHY, 1))
        return
    goals = [one for one in _goals(known, launching) if len(one[0]) <= expressions.MAX_LENGTH]
    own = [one.name for one in known.sizes]
    rows = {large: small for small, large in within(known.layouts) if small in own}
    names = _ordered(known, launching, {*own} - rows.keys()) or ["elements"]
    steps, two = _steps(known), _at_least_two(known)
    for index, why in enumerate(_WHY):
        told = _shape(names, index)
        shows = [why]
        if index == 0 and two:
            told |= dict.fromkeys(two, 2)
            shows = [f"{why}, 2 for {' and '.join(two)}: at 1 all results may be equal"]
        told |= {name: min(told[name], _STEPS[index]) for name in steps}
        told = sizing.held({name: known.fitting(name, n) for name, n in told.items()})
        told = sizing.unequal(told) if index else told
        for large, small in rows.items():
            told[large] = known.fitting(large, told.get(small, 1) + _PADS[index])
        told = sizing.fitted(told)
        told = sizing.of_several_blocks(told) if index == len(_WHY) - 1 else told
        for goal, so in goals if index == len(_WHY) - 1 else ():
            before, told = told, sizing.meeting(goal, told)
            shows += [so] * (before != told and so not in shows)
        yield SuiteShape({name: told[name] for name in own or names}, ", ".join(shows))


def guessed(known: Known, sizing: Sizing, shapes: Sequence[SuiteShape]) -> Iterator[SuiteShape]:
    """The defaults where host or block say them, and a tail where multiples are a guess."""
    if known.guessed.keys() & known.host_values.keys():
        yield SuiteShape(sizing.values, "sizes of the host or of a block")
    if known.supposed and len(shapes) > 1:
        most = {name: known.limits.get(name, n + 1) for name, n in shapes[1].sizes.items()}
        more = {name: min(n + 1, most[name]) for name, n in shapes[1].sizes.items()
                if name in known.supposed}  # fmt: skip
        shows = "a tail, which nothing in the kernel is for"
        yield SuiteShape({**shapes[1].sizes, **more}, shows)


def tested(known: Known, shapes: Sequence[SuiteShape]) -> Iterator[SuiteShape]:
    """The shape with a tail again, for each number at each value that the kernel compares it with."""
    for one in known.numbers:
        for value in known.tested.get(one.name, ()):
            varied = known.varied(one)
            sizes = {**shapes[1].sizes, varied.size: varied.at(value)}
            yield SuiteShape(sizes, f"{one.name} is {value:g}, which the kernel tests")


def _shape(names: Sequence[str], index: int) -> dict[str, int]:
    """Sizes of the shape of that place, told apart where there are more than the table has."""
    columns = [one[index] for one in _EXTENTS]
    columns += [index and 10 + at for at in range(len(names) - len(columns))]
    return dict(zip(names, columns[: len(names)][::-1], strict=True))


def _goals(known: Known, launching: Launching) -> Iterator[tuple[str, str]]:
    """Comparisons that a large shape is to meet where it can, and what it shows then."""
    for extent in launching.grid.value:
        for one, cap in expressions.caps_of(extent):
            yield f"{one} > {cap}", "more than the grid's cap"
    for tiles in launching.tiles:
        yield tiles.several, "three passes and a tail"


def _ordered(known: Known, launching: Launching, names: Collection[str]) -> list[str]:
    """Sizes, those that are few in front, and those that the kernel tiles at the end."""
    padded = any(_PADDED.search(one.name) for one in known.parameters)
    tiled = {one for tiles in launching.tiles for one in expressions.names_in(tiles.size)}
    for extent in launching.grid.value:
        tiled |= {*expressions.names_in(extent)} if re.search("ceil_div|//", extent) else set()
    places = [one.name for one in known.sizes]

    def place(name: str) -> tuple[bool, bool, int]:
        few = _FEW.search(name) or (padded and _TAPS.search(name))
        return not few, name in tiled, places.index(name)

    return sorted(names, key=place)


def _steps(known: Known) -> list[str]:
    """Sizes that a loop goes over with a state that each step changes, as an oracle has to, too."""
    written = [name for name, role in known.roles.items() if role != "inputs"]
    found = known.subject.reading.recurrences(_names(known), written)
    return [one.name for one in known.sizes if one.name in found]


def _names(known: Known) -> dict[str, str]:
    return {one.name: one.name for one in known.sizes}


def _at_least_two(known: Known) -> list[str]:
    """Sizes at which 1 makes outputs constant, or a divisor 0: classes of a loss, columns of a mean."""
    kinds = {one.profile for one in telling(known)}
    names = [one.name for one in known.sizes]
    draws = [draw_of(known, one) for one in known.read]
    draws += [part["draw"] for one in draws for part in one.get("parts", ())]
    found = {str(one.get("below")) for one in draws}  # all 0 at 1
    if kinds & {"large", "ties"} or known.numerics.normalises:
        looped = known.subject.reading.looped(_names(known))
        found |= looped if looped & {*names} else {*names}
    if _spreads(known):
        found = {*names}
    ones = dict.fromkeys(names, 1)
    for divisor in known.subject.reading.divisors(_names(known)):  # `count - 1`
        found |= {*expressions.names_in(divisor)[-1:]} if count(divisor, ones) == 0 else set()
    return [one for one in names if one in found]


def _spreads(known: Known) -> bool:
    """Whether outputs have several elements where each input has one."""
    ones, layouts = {one.name: 1 for one in known.sizes}, known.layouts
    shapes = {one: layouts.shape(one) for one in layouts.arrays}
    counts = {one: math.prod(count(n, ones) for n in shape) for one, shape in shapes.items()}
    written = [counts.get(one.name, 0) for one in known.written]
    read = [counts.get(one.name, 2) for one in known.read]
    return bool(read and written) and max(written) > 1 >= max(read)
