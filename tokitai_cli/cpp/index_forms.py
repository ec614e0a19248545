"""Indices and comparisons in the forms in which shapes are read from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient, constant, variable
from tokitai_cli.cpp.body.symbolic_values import Access, Choice, Facts, Guard
from tokitai_cli.cpp.coordinates import Axis, Limit, is_moving, limits_of

_OTHERWISE = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "!=": "<"}
_EITHER = 2  # ways of an index


def every_limit(facts: Facts) -> Iterator[Limit]:
    """What comparisons say where they hold, and of sizes what they say where they do not."""
    yield from limits_of(guard for one in facts.accesses for guard in one.guards)
    for left, sign, right in facts.compared:
        both = [Guard(left, sign, right), Guard(left, _OTHERWISE.get(sign, sign), right)]
        yield from (one for one in limits_of(both) if one.below.number is None)


def spelled_out(accesses: Sequence[Access], facts: Facts, sizes: Sequence[str]) -> list[Access]:
    """Accesses with starts and steps in place of counters that begin at a row of the block's own."""
    values = {}
    accesses = [way for one in accesses for way in _ways(one, facts)]
    for loop in facts.loops:
        (counter,) = loop.counter.terms
        rows = any(
            {*key} & {*sizes} and any("blockIdx" in str(one) for one in key)
            for key in loop.start.terms
        )
        if rows and len(counter) == 1:
            passes = Polynomial({(f"pass of {counter[0]}",): 1})
            values[str(counter[0])] = loop.start + loop.step * passes
    if not values:
        return accesses
    return [one._replace(offset=one.offset.with_values(values)) for one in accesses]


def _ways(access: Access, facts: Facts) -> Iterator[Access]:
    """An access whose index is one of two, as both."""
    for atom in access.offset.atoms():
        told = facts.meanings.get(str(atom))
        if isinstance(told, Choice) and len(told.ways) == _EITHER:
            for value, guards in told.ways:
                offset = access.offset.with_values({str(atom): value})
                yield access._replace(offset=offset, guards=(*access.guards, *guards))
            return
    yield access


def whole_groups(extent: Polynomial) -> Polynomial:
    """`k` for `n / (n / k)`."""
    outer = next(iter(extent.atoms()), "")
    inner = next(iter(outer.divisor.atoms()), "") if isinstance(outer, Quotient) else ""
    if isinstance(outer, Quotient) and isinstance(inner, Quotient):
        whole = extent == Polynomial({(outer,): 1}) and outer.divisor == Polynomial({(inner,): 1})
        return inner.divisor if whole and inner.dividend == outer.dividend else extent
    return extent


def goes_by_ones(index: Polynomial) -> Iterator[bool]:
    """Of each name that moves in an index, whether the index moves as far."""
    for key, count in index.terms.items():
        if any(map(is_moving, key)):
            yield len(key) == 1 and count == 1


def row_of_block(axis: Axis, every: Collection[Polynomial]) -> tuple[Polynomial, int] | None:
    """The number of blocks, and how many elements each goes over; None where none has a row.

    every: what moves in the indices of all arrays; a block has a row where its place alone does.
    """
    for name in axis.extent.names() if axis.extent is not None else ():
        block, blocks = name.replace("gridDim", "blockIdx"), variable(name)
        length = axis.moving.terms.get((block,), 0)
        whole = axis.extent == blocks * constant(length)
        if length > 1 and block != name and whole and variable(block) in every:
            return blocks, length
    return None
