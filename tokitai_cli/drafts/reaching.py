"""How far a draft's indices go, at given sizes and in a given launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.arithmetic import constant
from tokitai_cli.cpp.body.meanings import Dependencies, names_of
from tokitai_cli.cpp.host.runtime import WARP
from tokitai_cli.cpp.index_bounds import IndexBounds, launched
from tokitai_cli.cpp.intervals import UNKNOWN, Interval, Number, hull, point
from tokitai_cli.cpp.launch_facts import LANES
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.drafts.array_draws import draw_of
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.likely_values import value_of
from tokitai_cli.drafts.model import Flow

AFFORDED = 12 << 20  # elements of all arrays in a first run
STRUCT_BYTES = 64  # of a struct where nothing says it


class Reach:
    """Elements that a kernel reaches of a draft's arrays, at certain sizes in a certain launch."""

    def __init__(self, bounds: IndexBounds, paths: Mapping[str, str]) -> None:
        self.bounds, self._paths = bounds, paths

    def elements(self, array: str) -> int | None:
        """Elements of an array by its name in the spec; None where an index has no bound."""
        path, opened, row = self._paths.get(array, array).removesuffix("]").partition("[")
        return self.bounds.elements(path, int(row) if opened else None)


class Reaching:
    """Elements that a kernel reaches of its arrays."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._bounds: dict[tuple[object, object], IndexBounds] = {}

    def at(self, sizes: Mapping[str, int], block: Sequence[str], grid: Sequence[str]) -> Reach:
        """At those sizes in that launch."""
        known, paths = self._known, self._known.leaves.paths
        values = dict(self._constants) | {WARP: point(LANES), "warpSize": point(LANES)}
        passed = {name: count(told, sizes) for name, told in known.passed.items()}
        for name, value in {**passed, **sizes}.items():
            values[self._name(name)] = point(value)
        values |= self._numbers
        for one in known.leaves.accessors:
            extents = [count(size, sizes) for size in one.sizes]
            path = paths.get(one.array, one.array)
            for axis, extent in enumerate(extents):
                values[f"{path}.size({axis})"] = point(extent)
                values[f"{path}.stride({axis})"] = point(math.prod(extents[axis + 1 :]))
        values |= launched("thread", [count(one, sizes) for one in block])
        values |= launched("block", [count(one, sizes) for one in grid])
        facts, drawn = known.subject.reading.facts, self._values(sizes)
        key = frozenset(values.items()), frozenset(drawn.items())
        if key not in self._bounds:
            self._bounds[key] = IndexBounds(facts, values, drawn, self._dependencies)
        return Reach(self._bounds[key], paths)

    @functools.cached_property
    def _dependencies(self) -> Dependencies:
        return Dependencies(self._known.subject.reading.facts)

    def unbounded(self, reach: Reach) -> bool:
        """Whether nothing bounds an index of some array, so that few threads are to reach little."""
        return any(reach.elements(name) is None for name in self._known.layouts.arrays)

    def needed(self, reach: Reach) -> int:
        """Elements of all arrays, those that nothing bounds left out."""
        arrays = self._known.layouts.arrays
        return sum((reach.elements(name) or 0) * self.weight(name) for name in arrays)

    def weight(self, array: str) -> int:
        """What an element of an array counts as: lanes of a vector, bytes of a struct."""
        default = STRUCT_BYTES if self.structs(array) else 1
        return self._known.leaves.inner.get(array, default)

    def structs(self, array: str) -> bool:
        """Whether its elements are structs."""
        return any(one.name == array and one.kind == "structs" for one in self._known.parameters)

    @functools.cached_property
    def _constants(self) -> Mapping[str, Interval]:
        """Numbers that names of the body stand for."""
        told = self._known.constants
        names = names_of(self._known.subject.reading.facts) & told.keys()
        found = {name: constant(told[name], told) for name in names}
        return {name: point(value) for name, value in found.items() if value is not None}

    @functools.cached_property
    def _numbers(self) -> Mapping[str, Interval]:
        """What arguments by value are, and may be in a suite."""
        known, found = self._known, dict[str, Interval]()
        for one in known.numbers:
            value = value_of(known, one).value
            if isinstance(value, int | float):
                number = int(value) if one.integer else value
                tested = [point(int(each)) for each in known.tested.get(one.name, ())]
                found[self._name(one.name)] = hull([point(number), *tested])
        return found

    def _name(self, number: str) -> str:
        """How a walk calls a number of the spec; a field behind a pointer is one of its first struct."""
        path = self._known.leaves.paths.get(number, number)
        front, dot, rest = path.partition(".")
        return f"{front}[0].{rest}" if dot and front in self._known.leaves.pointees else path

    def _values(self, sizes: Mapping[str, int]) -> Mapping[str, Interval]:
        """What values of arrays may be, by what these are drawn from."""
        found: dict[str, list[Interval]] = {}
        for one, draw in self._draws:
            path = self._known.leaves.paths.get(one.name, one.name).partition("[")[0]
            found.setdefault(path, []).append(_drawn(draw, sizes))
            if one.kind == "structs" and draw.get("value"):  # bytes of 255 are -1, too
                found[path].append(point(-1))
        return {path: hull(parts) for path, parts in found.items()}

    @functools.cached_property
    def _draws(self) -> Sequence[tuple[Parameter, Flow]]:
        read = (one for one in self._known.read if self._known.roles[one.name] != "symbols")
        return [(one, draw) for one in read if (draw := draw_of(self._known, one))]


def _drawn(draw: Flow, sizes: Mapping[str, int]) -> Interval:
    """Values that a draw gives, as far as it says them."""
    if parts := draw.get("parts"):
        return hull([_drawn(part["draw"], sizes) for part in parts])
    ends = [_value(draw.get(key), sizes) for key in ("lo", "hi", "value", "below", "end")]
    low, high, value, below, end = ends
    if value is not None:
        return point(value)
    if low is not None and high is not None:
        return Interval(low, high)
    most = below - 1 if below is not None else end
    return Interval(0, max(0, most)) if most is not None else UNKNOWN


def _value(told: Flow, sizes: Mapping[str, int]) -> Number | None:
    """A number of a draw, at those sizes."""
    if told is None or isinstance(told, int | float):
        return told
    try:
        return expressions.evaluate_exactly(str(told), {WARP: LANES, **sizes})
    except SpecError:
        return None


def count(extent: str, sizes: Mapping[str, int]) -> int:
    """An extent at those sizes; 0 where it has none there."""
    try:
        return max(0, expressions.evaluate(extent, {WARP: LANES, **sizes}))
    except SpecError:
        return 0
