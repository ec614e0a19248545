"""Sizes of a draft that no argument of the kernel is, as comments, the launch and the text tell them."""

from __future__ import annotations

import re

import msgspec

from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.comments import known as known_words
from tokitai_cli.cpp.comments import shapes_in
from tokitai_cli.cpp.host.launch import name_in
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.launching import Launching
from tokitai_cli.drafts.leaves import free, last_word

_OF_HOST = 2  # variables of the host's own in an extent of its grid


def read_comments(known: Known) -> None:
    """Shapes as comments say them, and sizes that they, or indices that arrays hold, tell of."""
    layouts = known.layouts
    owns = {name: last_word(place) for name, place in known.leaves.places.items()}
    sizes = {owns[one.name]: one.name for one in known.sizes if one.name in owns}
    arrays = {name: owns[name] for name in layouts.arrays if name in owns}
    numbers = {name: known.number(name) for name in known.constants}
    for array, words in shapes_in(known.subject.source, known.kernel, arrays).items():
        told = known_words(words, sizes, numbers)
        found = layouts.shape(array)
        new = re.fullmatch(r"[A-Za-z]\w+|[A-Z]", words[0]) and all(told[1:]) and told[1:]
        if new and not told[0] and not layouts.outermost(array):
            told[0] = sizes[words[0]] = known.add_size(words[0])
        if len(found) == len(told):  # what the comment has no word for
            told = [one or two for one, two in zip(told, found, strict=True)]
        if all(told):
            layouts.said[array] = told
    made: dict[str, str] = {}
    for array, name in layouts.unsaid().items():
        made[name] = made.get(name) or known.add_size(name)
        layouts.name_rows({array: made[name]})


def add_rows(known: Known, launching: Launching) -> None:
    """A new size where blocks count what no argument of the kernel says: the host knows it."""
    grid = known.launch.grid if known.launch is not None else ()
    by_axis = dict(zip("xyz", grid, strict=False))
    unknown = [axis for axis, size in known.layouts.axes.items() if not size]
    if known.sizes and not known.origin.room:
        launch = known.layouts.facts.launch
        asked = [*unknown, *(axis for axis in by_axis if f"gridDim.{axis}" in launch)]
        named = {
            axis for axis in reversed(list(dict.fromkeys(asked))) if _name_counted(known, axis)
        }
        unknown = [axis for axis in unknown if axis not in named]
    if not unknown or not known.sizes:
        return
    if not known.origin.room:
        said = {axis: _in_grid(known, launching, by_axis.get(axis)) for axis in unknown}
        known.layouts.axes |= {
            axis: one for axis, one in said.items() if not re.search("//|div|min|max", one)
        }
        unknown = [axis for axis in unknown if not said[axis]]
    unsaid = [axis for axis in unknown if not _is_said(launching, by_axis.get(axis))]
    if not unsaid:
        return  # the host's own expressions say it
    told = by_axis.get(unsaid[0])
    taken = {one.name for one in known.parameters}
    name = next(one for one in ("rows", "blocks", "count") if one not in taken)
    if (word := name_in(told)).isidentifier() and free(word) not in taken:
        name = free(word)
    known.layouts.add_rows(known.add_size(name))


def _is_said(launching: Launching, extent: Polynomial | None) -> bool:
    return extent is not None and bool(launching.in_sizes(extent))


def _name_counted(known: Known, axis: str) -> bool:
    """Whether an extent of the grid is a number that the host has a name for: it becomes a size."""
    launch, at = known.launch, "xyz".index(axis)
    name = next(iter(launch.counted[at : at + 1]), "") if launch else ""
    if launch is None or not name:
        return False
    size = known.sizes_of_host[name] = known.add_size(name)
    known.host_values[size] = launch.grid[at].number or 0
    grid = (*launch.grid[:at], variable(name), *launch.grid[at + 1 :])
    known.launch = msgspec.structs.replace(launch, grid=grid)
    known.layouts.axes[axis] = size
    return True


def _in_grid(known: Known, launching: Launching, extent: Polynomial | None) -> str:
    """An extent of the host's grid, its own variables sizes of the spec; empty where it is none."""
    if extent is None or known.launch is None:
        return ""
    if told := launching.in_sizes(extent):
        return told
    handed = known.launch.handed
    in_block = {name for one in known.launch.block for name in one.names()}
    names = extent.names() - {*known.sizes_of_host} - in_block
    words = {one for one in names if one not in handed or not known.in_sizes(variable(one))}
    plain = all(one.isidentifier() for one in words)
    if not plain or not words or len(words) > _OF_HOST or words & handed:
        return ""
    known.sizes_of_host |= {one: known.add_size(one) for one in sorted(words, reverse=True)}
    return launching.in_sizes(extent)
