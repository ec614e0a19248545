"""Functions that no program defines: what they do with the arrays that are handed to them."""

from __future__ import annotations

from tree_sitter import Node

from tokitai_cli.cpp.body.operators import combined
from tokitai_cli.cpp.body.polynomial import Polynomial, constant, quotient
from tokitai_cli.cpp.body.symbolic_values import (
    Applied,
    Condition,
    Record,
    Returned,
    Value,
    lanes,
)
from tokitai_cli.cpp.body.textures import fetched
from tokitai_cli.cpp.body.walk import Walk
from tokitai_cli.cpp.body.warp_matrices import tile_moved
from tokitai_cli.cpp.elements import is_vector
from tokitai_cli.cpp.structs import size_of

_READS = frozenset(
    [
        "__ldg",
        "__ldcs",
        "__ldca",
        "__ldcg",
        "__ldcv",
        "__ldlu",
        "__builtin_nontemporal_load",
        "__hip_atomic_load",
    ]
)
_WRITES = frozenset(["__stcs", "__stcg", "__stwb", "__stwt", "__hip_atomic_store"])
_COPIES = frozenset(["memcpy", "__builtin_memcpy", "__pipeline_memcpy_async", "memmove"])
_SWAPS = frozenset({"swap"})
_GENERATORS = ("curand", "hiprand", "rocrand", "skipahead")  # each changes a state
# Functions of C and C++ that take numbers by value, single precision's `f` and long's `l` left out.
_BY_VALUE = frozenset(
    """
    abs fabs sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh atan2 sinpi cospi pow fmod remainder fma fdim fmin fmax min max
    floor ceil round rint nearbyint trunc lround lrint llround llrint erf erfc erfinv erfcinv erfcx
    lgamma tgamma j0 j1 jn y0 y1 yn hypot rhypot norm3d normcdf normcdfinv copysign nextafter ldexp
    scalbn ilogb logb isnan isinf isfinite signbit clamp assert printf umin umax llmin llmax ullmin
    ullmax llabs labs saturate popcount clz ffs mul24 mulhi forward move as_const
    """.split()  # noqa: SIM905 - as a list it is three pages
)
_FORWARDS = frozenset({"forward", "move", "as_const"})
_QUOTIENTS = frozenset(
    """fdividef __fdividef __fdiv_rn __fdiv_rz __ddiv_rn __hdiv h2div fmod fmodf remainder
    remainderf""".split()  # noqa: SIM905 - as a list it is a page
)
_RECIPROCALS = frozenset({"__frcp_rn", "__drcp_rn", "hrcp", "h2rcp", "rcbrt", "rcbrtf"})


def by_value(name: str) -> bool:
    """Whether a function takes its arguments by value, so that an element that it gets is only read."""
    last = name.rpartition("::")[2]
    if (last.startswith("__") and last not in _COPIES) or last.startswith("make_"):
        return True
    return bool({last, last[:-1]} & _BY_VALUE)


def known_call(walk: Walk, name: str, given: list[Node], node: Node) -> Returned | None:
    """What a function of the language or its libraries gives; None for one that is not known."""
    last = name.rpartition("::")[2]
    if last.startswith("tex") and (texel := fetched(walk, last, given, node)) is not None:
        return texel
    if (tile := tile_moved(walk, last, given, node)) is not None:
        return tile
    if is_vector(last.removeprefix("make_")) or last == "dim3":
        values = [walk.evaluate(one) for one in given]
        rest = [constant(1)] * (3 - len(values)) if last == "dim3" else []
        return Returned(Record("", last.removeprefix("make_"), lanes([*values, *rest])))
    if last.startswith(("atomic", "__hip_atomic")) or last in _READS | _WRITES:
        return Returned(_element(walk, last, given, node))
    if last in _COPIES and len(given) > 1:
        size = walk.number(walk.evaluate(given[2])) if len(given) > 2 else None
        for one, kind in zip(given, ("write", "read"), strict=False):
            _copy(walk, one, kind, node, size)
        return Returned(walk.fresh(last))
    if last in _SWAPS and len(given) == 2:
        return Returned(_swap(walk, given, node))
    if last.startswith(_GENERATORS):
        return Returned(_drawn(walk, last, given, node))
    return _by_value(walk, name, last, given) if by_value(name) else None


def _by_value(walk: Walk, name: str, last: str, given: list[Node]) -> Returned:
    """A function of numbers; a pointer that it is given goes where the walk does not follow."""
    values = [walk.evaluate(one) for one in given]
    if last in _FORWARDS and len(values) == 1:
        return Returned(values[0], walk.place(given[0]))
    if last in {"__mul24", "__umul24"} and len(values) == 2:
        return Returned(combined(walk, "*", *values))
    for value in values:
        walk.escape(value, f"is handed to {name}")
    _note_call(walk, last, values)
    if last in {"min", "max"} and len(values) == 2:
        pair = tuple(sorted(map(walk.number, values), key=str))
        numbers = [one.number for one in pair if one.number is not None]
        if len(numbers) == 2:
            return Returned(constant(min(numbers) if last == "min" else max(numbers)))
        told = ", ".join(map(str, pair))
        return Returned(walk.named(f"{last}({told})", last, Applied(last, pair)))
    return Returned(result_of(walk, name, values))


def _note_call(walk: Walk, last: str, values: list[Value]) -> None:
    """Note functions that stand for operators, and what is sworn to."""
    if last == "assert" and values and isinstance(values[0], Condition):
        walk.note_guards(values[0].holds, "assert")
        walk.facts.asserted += values[0].holds
    elif last.startswith("__syncthreads"):
        note_barrier(walk)
    elif last in _QUOTIENTS and len(values) > 1:
        walk.note("/", values[0], values[1])
    elif last in _RECIPROCALS and values:
        walk.note("/", constant(1), values[0])


def note_barrier(walk: Walk) -> None:
    """Note what holds where the threads of a block wait for each other."""
    if not walk.dry:
        walk.facts.barriers.append(tuple(walk.guards))


def result_of(walk: Walk, name: str, values: list[Value]) -> Value:
    """A call's result by its text, a fresh one where that says nothing."""
    numbers = tuple(map(walk.number, values))
    shown = ", ".join(map(str, numbers))
    told = Applied(name.rpartition("::")[2], numbers)
    return walk.fresh(name, told) if "#" in shown else walk.named(f"{name}({shown})", name, told)


def _copy(walk: Walk, given: Node, kind: str, node: Node, size: Polynomial | None) -> None:
    """What a copy of so many bytes does behind a pointer."""
    pointer = walk.moved(walk.evaluate(given), constant(0))
    if pointer is None:
        return
    bytes_ = size_of(walk.program, walk.facts.type_of(pointer.array)) if pointer.unit else 0
    width = round(bytes_ * pointer.unit) if bytes_ and pointer.unit else 0
    units = quotient(size + constant(width - 1), constant(width)) if size and width else None
    walk.touch(pointer, kind, node, units=units)


def _element(walk: Walk, name: str, given: list[Node], node: Node) -> Value:
    """Atomics, and loads and stores by cache."""
    values = [walk.evaluate(one) for one in given[1:]]
    for one in values:
        walk.escape(one, f"is handed to {name}")
    loads = name in _READS or "load" in name.lower()
    stores = name in _WRITES or "store" in name.lower()
    kind = "read" if loads else "write" if stores else "update"
    pointer = walk.moved(walk.evaluate(given[0]), constant(0)) if given else None
    if pointer is None:
        return walk.fresh("?")
    if kind == "update":
        walk.facts.atomics.add(pointer.array)
    held = walk.element(pointer)
    new = _put(walk, name, held, values) if values and not loads else None
    return walk.touch(pointer, kind, node, new)


def _put(walk: Walk, name: str, held: Value, values: list[Value]) -> Value:
    """What an element holds behind an atomic or a store."""
    kind = name.lower().removeprefix("__hip_").removeprefix("atomic")
    if "cas" in kind and len(values) > 1:
        walk.note("swap", walk.number(held), values[0])
        return values[1]
    if "add" in kind:
        return combined(walk, "+", held, values[0])
    if "max" in kind or "min" in kind:
        return result_of(walk, "max" if "max" in kind else "min", [held, values[0]])
    return values[0]


def _drawn(walk: Walk, name: str, given: list[Node], node: Node) -> Value:
    """A number of a random generator, or its first state: the state is what is handed over last."""
    values = [walk.evaluate(one) for one in given]
    for one in values[:-1]:
        walk.escape(one, f"is handed to {name}")
    state = walk.moved(values[-1], constant(0)) if values else None
    if state is not None:
        walk.touch(state, "update", node)
    return walk.fresh(name)


def _swap(walk: Walk, given: list[Node], node: Node) -> Value:
    places = [walk.place(one) for one in given]
    values = [None if one is None else walk.load(one, node) for one in places]
    for place, value in zip(places, reversed(values), strict=True):
        walk.save(place, value, "write", node)
    return None
