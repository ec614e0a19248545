"""What a kernel's body asks of its launch and sizes: threads of a block, limits, whole parts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

from tokitai_cli.cpp.body.polynomial import Polynomial, Quotient
from tokitai_cli.cpp.body.symbolic_values import Access, Facts, Guard, Stepped
from tokitai_cli.cpp.coordinates import Axis, limits_of
from tokitai_cli.cpp.host.runtime import WARP
from tokitai_cli.cpp.shapes import layout_of

LANES = 32  # of a warp, where a number is needed
_THREADS, _FEWEST = 256, 4
_MOST_THREADS = 1024  # of a block


def block_of(facts: Facts) -> list[str]:
    """Extents of the block; empty where the body does not fix them."""
    found: list[str] = []
    values = [*dict.fromkeys(values_of(facts))]
    for axis in "xyz":
        threads = next(_threads(facts, values, axis), 0)
        if not threads:
            break
        found.append(str(threads))
    return found or _rows(facts) or [str(one) for one in facts.primitives[:1]]


def values_of(facts: Facts) -> Iterator[Polynomial]:
    """Numbers of a body: of indices, comparisons, loops and variables."""
    for one in (*facts.accesses, *facts.local_accesses):
        yield one.offset
        for guard in one.guards:
            yield from (guard.left, guard.right)
    for left, _, right in facts.compared:
        yield from (left, right)
    for loop in facts.loops:
        yield from (loop.start, loop.step)
    yield from facts.called


def _threads(facts: Facts, values: list[Polynomial], axis: str) -> Iterator[int]:
    """Threads along an axis, as they are sworn to, stepped by, or counted."""
    thread = f"threadIdx.{axis}"
    yield from _equal(facts.asserted, f"blockDim.{axis}")
    for loop in facts.loops:
        stepped = loop.start.terms.get((thread,)) == 1
        if (loop.step.number or 0) > 1 and (
            stepped or any(_beside(one, loop, thread) for one in values)
        ):
            yield loop.step.number or 0
    for value in values:
        count = _ratio(value, f"blockIdx.{axis}", thread)
        if 1 < count <= _MOST_THREADS:
            yield count
    ends = (last + 1 for last in _equal(facts.compared, thread))
    yield from (one for one in ends if one >= _FEWEST and one & (one - 1) == 0)
    for one in facts.local_accesses:
        extents = _extents(facts, one)
        rows = math.prod(extents[1:])
        if extents and one.kind == "write" and one.offset.terms == {(thread,): rows}:
            yield extents[0]


def _equal(guards: Iterable[Guard], name: str) -> Iterator[int]:
    """Numbers that a name is compared with."""
    for left, sign, right in guards:
        if sign == "==" and left.terms == {(name,): 1} and right.number:
            yield right.number


def _extents(facts: Facts, access: Access) -> list[int]:
    """Extents of a shared array; none of another one."""
    declared = facts.local.get(access.array)
    shared = declared is not None and declared.shared
    return [one.number or 0 for one in (declared.extents if declared and shared else None) or ()]


def _beside(value: Polynomial, loop: Stepped, thread: str) -> bool:
    """Whether a thread's place is added to what a loop steps by, with the same stride."""
    ((counter, *_),) = loop.counter.terms
    parts = value.linear(counter), value.linear(thread)
    return (
        parts[0] is not None
        and parts[1] is not None
        and bool(parts[0][0])
        and parts[0][0] == parts[1][0]
    )


def _ratio(value: Polynomial, outer: str, inner: str) -> int:
    """How many steps of one name a step of the other is in a value; 0 where it has not both."""
    parts, other = value.linear(outer), value.linear(inner)
    if parts is None or other is None or not other[0]:
        return 0
    ratio = parts[0].over(other[0])
    return (ratio.number or 0) if ratio is not None else 0


def _rows(facts: Facts) -> list[str]:
    """A block whose threads the body counts in rows: `threadIdx.y * warpSize + threadIdx.x`."""
    if "threadIdx.z" in facts.launch:  # layers of rows
        return []
    compared = (one for left, _, right in facts.compared for one in (left, right))
    for value in (*facts.called, *compared):
        rows, lanes = value.linear("threadIdx.y"), value.linear("threadIdx.x")
        if rows is None or lanes is None or lanes[0].number != 1 or not rows[0]:
            continue
        number = rows[0].number or 0
        wide = WARP if rows[0].terms == {("warpSize",): 1} else str(number) if number > 1 else ""
        if wide:
            return [wide, str(max(1, _THREADS // (number or LANES)))]
    return []


def strided(facts: Facts, sizes: Collection[str]) -> set[str]:
    """Sizes that threads step up to with barriers on the way, which all of a block are to reach."""
    counters = {one.counter for one in facts.loops if "threadIdx.x" in one.start.names()}
    guards = {guard for held in facts.barriers for guard in held}
    found = {_single(one.right) for one in guards if one.sign == "<" and one.left in counters}
    return found & {*sizes}


def limits(facts: Facts, sizes: Collection[str]) -> dict[str, int]:
    """Largest value of sizes, by the arrays of the kernel's own that they index."""
    found: dict[str, int] = {}
    for one in facts.local_accesses:
        axes = layout_of([one])
        for axis in axes if not isinstance(axes, str) else ():
            size = _single(axis.compared) if axis.compared is not None else ""
            count = _extent(facts, axis, one)
            if count and size in sizes and not _held(axis, one, count):
                found[size] = min(count, found.get(size, count))
    return found


def _extent(facts: Facts, axis: Axis, access: Access) -> int:
    """Elements along an axis of an array of the kernel's own; 0 for what threads share out."""
    declared = facts.local.get(access.array)
    extents = [one.number or 0 for one in (declared.extents if declared else None) or ()]
    shared_out = any("threadIdx" in name for name in axis.moving.names())
    steps = [math.prod(extents[at + 1 :]) for at in range(len(extents))]
    number = axis.stride.number
    return extents[steps.index(number)] if number in steps and not shared_out else 0


def _held(axis: Axis, access: Access, count: int) -> bool:
    """Whether a comparison with a number keeps the index within the array."""
    told = (one.below.number for one in limits_of(access.guards) if one.moving == axis.moving)
    return any(number is not None and number <= count for number in told)


def whole_parts(facts: Facts, sizes: Collection[str]) -> list[tuple[str, str]]:
    """Sizes that others, or numbers, divide without a remainder of its own; both sides."""
    values = [*dict.fromkeys(values_of(facts))]
    ends = {_single(one.right) for one in facts.compared if one.sign in {"<", "<="}}
    found: dict[tuple[str, str], None] = dict.fromkeys(_sworn(facts, sizes))
    for atom in {one for value in values for one in _quotients(value)}:
        many, number = _single(atom.dividend), atom.divisor.number
        few = str(number) if number is not None else _single(atom.divisor)
        rest = any(atom in value.atoms() and (many,) in value.terms for value in values)
        tail = number is not None and many in ends
        known = number is not None or few in sizes
        if many in sizes and known and few != many and not (rest or tail):
            found[many, few] = None
    return sorted(found)


def untailed_parts(facts: Facts, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Of `whole_parts` those that comparisons alone have: `i < n / 4` may leave a tail out."""
    pairs = [*pairs]
    atoms = {one for each in facts.accesses for one in _quotients(each.offset)}
    indexed = {(_single(one.dividend), str(one.divisor)) for one in atoms}
    sworn = {*_sworn(facts, [many for many, _ in pairs])}
    return {*pairs} - indexed - sworn


def _quotients(value: Polynomial) -> Iterator[Quotient]:
    """Quotients of a value, those within each other too."""
    for one in value.atoms():
        if isinstance(one, Quotient):
            yield from (one, *_quotients(one.dividend), *_quotients(one.divisor))


def _sworn(facts: Facts, sizes: Collection[str]) -> Iterator[tuple[str, str]]:
    """Sizes that are asserted to be multiples of numbers."""
    for left, sign, right in facts.asserted:
        for atom in left.atoms():
            size = _single(atom.dividend) if isinstance(atom, Quotient) else ""
            number = atom.divisor.number if isinstance(atom, Quotient) else None
            if sign == "==" and not right and number and size in sizes:
                yield size, str(number)


def subtracted(facts: Facts, size: str) -> set[str]:
    """Names whose products are taken from a size."""
    found = set()
    for value in values_of(facts):
        if value.terms.get((size,)) == 1:
            products = (key for key, count in value.terms.items() if count < 0 and len(key) > 1)
            found |= {str(one) for key in products for one in key}
    return found - {size}


def multiples(pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """What sizes are multiples of, of pairs of them and their divisors."""
    found: dict[str, int] = {}
    for size, divisor in pairs:
        if divisor.isdigit() and int(divisor) > 1:
            found[size] = math.lcm(int(divisor), found.get(size, 1))
    return found


def _single(value: Polynomial) -> str:
    """The name that a value is; empty where it is another one."""
    keys = [*value.terms]
    plain = len(keys) == 1 and len(keys[0]) == 1 and value.terms[keys[0]] == 1
    return str(keys[0][0]) if plain else ""
