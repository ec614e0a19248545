"""What shapes of a kernel's arrays say of sizes, and of the values in arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tokitai_cli.cpp.body.polynomial import Atom, Polynomial, Quotient
from tokitai_cli.cpp.body.symbolic_values import Evolving
from tokitai_cli.cpp.layouts import Layouts


def values_below(layouts: Layouts, array: str) -> str:
    """What the array's values index, as an extent; empty where the body does not say."""
    small = {large: small for small, large in within(layouts)}
    for other, axes in layouts.layouts.items():
        shape = layouts.shape(other)
        for at, axis in enumerate(axes):
            if any(_held(layouts, one) == array and n == 1 for one, n in _plain_terms(axis.moving)):
                outer = shape[0] if shape and at == 0 else ""
                extent = outer or (
                    layouts.words.word(axis.extent) if axis.extent is not None else ""
                )
                if extent and not any(mark in extent for mark in "/%"):
                    return small.get(extent, extent)
    for one in layouts.facts.local_accesses:
        declared = layouts.facts.local.get(one.array)
        extents = [each.number or 0 for each in (declared.extents if declared else None) or ()]
        if (
            len(extents) == 1
            and extents[0]
            and any(layouts.loaded(atom) == array for atom in one.offset.atoms())
        ):
            return str(math.prod(extents))
    return ""


def _held(layouts: Layouts, atom: Atom) -> str:
    """Array that a value is read from, or that a variable of a loop is at first; else empty."""
    told = layouts.facts.meanings.get(str(atom))
    if not isinstance(told, Evolving) or len(told.start.terms) != 1:
        return layouts.loaded(atom)
    return "".join(layouts.loaded(one) for one, count in _plain_terms(told.start) if count == 1)


def _plain_terms(moving: Polynomial) -> Iterator[tuple[Atom, int]]:
    return ((key[0], count) for key, count in moving.terms.items() if len(key) == 1)


def within(layouts: Layouts) -> list[tuple[str, str]]:
    """Sizes that others, the strides of rows that they go over, are at least: vocab, stride."""
    every = [pair for array in layouts.arrays for pair in _rows_within(layouts, array)]
    return list(dict.fromkeys(every))


def padded(layouts: Layouts, array: str) -> tuple[int, str]:
    """The axis along which an array is longer than what is reached, and up to where; else empty."""
    shape = layouts.shape(array)
    for small, large in _rows_within(layouts, array):
        if shape.count(large) == 1:
            return shape.index(large), small
    return 0, ""


def _rows_within(layouts: Layouts, array: str) -> Iterator[tuple[str, str]]:
    for axis in layouts.layouts[array][1:]:
        large = layouts.words.word(axis.extent) if axis.extent is not None else ""
        said = [one[0] for one in layouts.compared(axis.moving) if len(one) == 1]
        said += [layouts.words.word(axis.compared)] if axis.compared is not None else []
        plain = {one for one in said if one in layouts.sizes}
        if large in layouts.sizes and plain and large not in plain:
            yield from ((small, large) for small in sorted(plain))


def spans(layouts: Layouts) -> list[tuple[str, str]]:
    """Totals of offsets, and what one piece of them is at most: pages of a row, times their size."""
    found: dict[tuple[str, str], None] = {}
    total = layouts.segments()
    for axes in layouts.layouts.values() if total else ():
        for axis in axes[1:]:
            (atom,) = axis.moving.atoms() if len(axis.moving.terms) == 1 else (None,)
            page = layouts.words.word(atom.divisor) if isinstance(atom, Quotient) else ""
            extent = layouts.words.word(axis.extent) if axis.extent is not None else ""
            if isinstance(atom, Quotient) and page and extent and _is_cut(layouts, atom.dividend):
                found[total[0], f"{extent} * {page}"] = None
    return list(found)


def _is_cut(layouts: Layouts, steps: Polynomial) -> bool:
    """Whether steps go up to what lies between two offsets."""
    guards = (one for one in layouts.facts.compared if steps.atoms() & one.left.atoms())
    ends = (atom for one in guards for atom in (*one.left.atoms(), *one.right.atoms()))
    return any(layouts.loaded(one) in layouts.offsets for one in ends)
