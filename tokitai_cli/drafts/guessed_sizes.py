"""Sizes of a draft whose values nothing confirms: no comparison of the kernel, nor the host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokitai_cli.core import expressions
from tokitai_cli.core.model.guesses import BESIDE_DEFAULT
from tokitai_cli.cpp.body.meanings import Dependencies
from tokitai_cli.cpp.open_axes import OpenAxis, open_axes
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.launching import Launching, product

_UNTAILED = "the kernel has no tail behind multiples of {}"
_UNREAD = "no loop, index or extent ends at it"


def guess_sizes(known: Known, launching: Launching) -> None:
    """Note why values of sizes are guesses; those that are confirmed are not among them.

    A size that an index is compared with may have any value, whether the comparison is right or wrong.
    Where threads of one block alone go along a row, the first guess is that many elements.
    """
    own = {one.name for one in known.parameters}
    found = {name: _UNTAILED.format(step) for name, step in known.supposed.items()}
    of_block: dict[str, int] = {}
    for array, axis in _open(known, launching):
        for name in sorted(_sizes_of(known, launching, array, axis) & own):
            line = axis.access.line
            found.setdefault(
                name, f"no comparison keeps the index of {array} in line {line} below it"
            )
            if axis.names == {name} and axis.threads and not axis.blocks:
                of_block.setdefault(name, product(launching.block.value))
    read = known.layouts.facts.words & own
    bounding = _bounding(known, launching)
    for one in known.sizes:
        if one.name in read - bounding:
            found.setdefault(one.name, _UNREAD)
    known.guessed = found
    if not known.origin.room:
        whose = {name: (n, "the host's") for name, n in known.at_host.items() if name in found}
        if not launching.block.why:
            whose = {name: (n, "as threads of a block") for name, n in of_block.items()} | whose
        for name, (value, who) in whose.items():
            known.host_values[name] = value
            known.guessed[name] = f"{BESIDE_DEFAULT} {value}, {who}: {found[name]}"


def _open(known: Known, launching: Launching) -> Iterator[tuple[str, OpenAxis]]:
    """Open axes of arrays, but for those along which the launch has as many blocks as it needs."""
    facts, sizes = known.layouts.facts, [one.name for one in known.sizes]
    names = {known.path(one): one for one in known.layouts.arrays if one in known.roles}
    mine = [one for one in facts.accesses if one.array in names]
    rounded = {axis for axis, one in zip("xyz", launching.grid.value, strict=False)
               if re.search("ceil_div|//", one)}  # fmt: skip
    for one in open_axes(facts, mine, sizes, launching.block.value):
        if one.names or not one.blocks or one.blocks & rounded:
            yield names[one.access.array], one


def _sizes_of(known: Known, launching: Launching, array: str, axis: OpenAxis) -> set[str]:
    """Sizes along an open axis: of its extent, else what its blocks count, else the array's."""
    sizes = {one.name for one in known.sizes}
    grid = dict(zip("xyz", launching.grid.value, strict=False))
    counted = (grid.get(one, "") for one in sorted(axis.blocks))
    names = set(axis.names) or {name for one in counted for name in _names(one)}
    if not names & sizes:
        names = {name for one in known.layouts.shape(array) for name in _names(one)}
    return names & sizes


def _bounding(known: Known, launching: Launching) -> set[str]:
    """Sizes that a comparison has, a stride, an extent of an array, or one of the launch."""
    facts = known.layouts.facts
    guards = [*facts.compared, *(one for each in facts.accesses for one in each.guards)]
    behind = Dependencies(facts)
    sides = {side for one in guards for side in (one.left, one.right)}
    found = {name for side in sides for name in (*side.names(), *behind.deep(side))}
    found |= {name for one in facts.accesses for name in one.offset.names()}
    texts = [*launching.grid.value, *launching.block.value]
    texts += [one for array in known.layouts.arrays for one in known.layouts.said.get(array, ())]
    return found | {name for one in texts for name in _names(one)}


def _names(text: str) -> set[str]:
    return {*expressions.names_in(text)} if text else set()
