"""Suites of a draft: shapes that tell faults apart, and fit what the kernel asks of its sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokitai_cli.cpp.indices.kernel_text import statement_end
from tokitai_cli.drafts.known import Known
from tokitai_cli.drafts.launching import Launching
from tokitai_cli.drafts.model import SuiteShape
from tokitai_cli.drafts.profiles import telling
from tokitai_cli.drafts.sizing import Sizing

# Shapes of suites, from the last size to the first: one, a tail, a multiple of blocks, a large one.
# No shape but the first has two equal sizes.
_EXTENTS = ((1, 257, 512, 1031), (1, 5, 3, 67), (1, 7, 2, 13), (1, 2, 5, 3), (1, 3, 4, 2))
_WHY = ("one of each", "a tail", "a multiple of blocks", "a large one")
# Sizes that are few, which the smallest extents are for.
_FEW = re.compile(
    r"(?:^|_)(?:b|bs|bsz|batch\w*|nh|nkv|n?_?(?:kv_?)?heads?(?:_\w+)?|groups?|experts?|layers?|seqs|k[hw]|ksize|kernel_?\w*|taps)$",
    re.I,
)
_PADDED, _TAPS = re.compile(r"pad|dilat", re.I), re.compile(r"(?:^|_)(?:r|s|f[hw]?)$", re.I)
_CENTRED = re.compile(r"\b(?:mean|mu|avg|average)\b|/\s*sum\b", re.I)
_STEPS = (1, 37, 64, 67)  # of a recurrence
# A value that is made of itself by a factor, or within a function, and how it is indexed.
_CARRIED = re.compile(r"\b(\w+(\[\w+\])?)\s*=(?!=)[^;]*[*(]\s*\1\s*[-+*;,)]")
_PADS = (0, 7, 8, 5)  # of what a row lies behind the one before, beside its own length


def requirements(known: Known) -> list[str]:
    """Comparisons that a shape must meet."""
    told = [f"{small} <= {large}" for small, large in known.text.within()]
    told += [f"{total} <= {most}" for total, most in known.text.spans()]
    return told + [f"{many} % {few} == 0" for many, few in known.text.divided()]


def quick(known: Known, launching: Launching, sizing: Sizing) -> Iterator[SuiteShape]:
    """Shapes of the suite quick."""
    if whole := launching.whole:
        yield from (SuiteShape({"elements": whole * at}, why) for at, why in enumerate(_WHY, 1))
        return
    own = [one.name for one in known.sizes]
    rows = {large: small for small, large in known.text.within() if small in own}
    names = sorted({*own} - rows.keys(), key=lambda one: _order(known, one)) or ["elements"]
    more = _EXTENTS + _EXTENTS[-1:] * len(names)
    steps, two = _steps(known), _at_least_two(known)
    for index, why in enumerate(_WHY):
        told = dict(zip(names, (one[index] for one in more[: len(names)][::-1]), strict=True))
        shows = why
        if index == 0 and two:
            told |= dict.fromkeys(two, 2)
            shows = f"one of each, 2 of {' and '.join(two)}, whose answers may all be one at 1"
        told |= {name: min(told[name], _STEPS[index]) for name in steps}
        told = sizing.held({name: known.fitting(name, n) for name, n in told.items()})
        for large, small in rows.items():
            told[large] = known.fitting(large, told.get(small, 1) + _PADS[index])
        told = sizing.fitted(told)
        told = sizing.of_several_blocks(told) if index == len(_WHY) - 1 else told
        yield SuiteShape({name: told[name] for name in own or names}, shows)


def _order(known: Known, name: str) -> tuple[bool, int]:
    """Place among the sizes, those that are few in front."""
    padded = any(_PADDED.search(one.name) for one in known.parameters)
    few = _FEW.search(name) or (padded and _TAPS.search(name))
    return not few, [one.name for one in known.sizes].index(name)


def _steps(known: Known) -> list[str]:
    """Sizes that a loop goes over with a state that each step changes, as an oracle has to, too."""
    found, body = [], known.text.body
    for loop in re.finditer(r"\bfor\s*\([^;]*;\s*([\w.]+)\s*<\s*(\w+)\s*;", body):
        size = next((one.name for one in known.sizes if one.name == loop[2]), "")
        inside = body[loop.start() : statement_end(body, loop.start())]
        begun = inside.partition(";")[0]
        carried = [
            one
            for one in _CARRIED.findall(inside)
            if not re.search(rf"Idx|\b{loop[1]}\b", f"{one[1]} {begun.partition('=')[2]}")
        ]
        written = any(
            re.search(rf"\b{name}\s*\[[^\]]*\b{loop[1]}\b[^\]]*\]\s*=(?!=)", inside)
            for name, role in known.roles.items() if role != "inputs"
        )  # fmt: skip
        found += [size] if size and carried and written else []
    return found


def _at_least_two(known: Known) -> list[str]:
    """Sizes at which 1 would make an output constant: classes of a loss, columns of a mean."""
    kinds = {name for name, _ in telling(known)}
    if not kinds & {"large", "ties"} and not _CENTRED.search(known.text.body):
        return []
    looped = re.findall(r"\bfor\s*\([^;]*;\s*[\w.]+\s*<\s*(\w+)\s*;", known.text.body)
    return [one.name for one in known.sizes if one.name in looped]
