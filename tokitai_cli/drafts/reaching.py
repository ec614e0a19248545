"""How far a draft's indices go, at given sizes and in a given launch."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.indices.blocks import LANES, WARP
from tokitai_cli.cpp.indices.kernel_text import flat
from tokitai_cli.cpp.indices.reach import Reach, places
from tokitai_cli.drafts.array_draws import draw_of
from tokitai_cli.drafts.known_facts import Known
from tokitai_cli.drafts.model import Flow

AFFORDED = 12 << 20  # elements of all arrays in a first run
STRUCT_BYTES = 64  # of a struct where nothing says it
_SHARED = re.compile(r"__shared__\s+[\w:<>]+\s+(\w+)\s*((?:\[[^\[\]]+\]\s*)+)")


class Reaching:
    """Elements that a kernel reaches of its arrays."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def at(
        self, sizes: Mapping[str, int], block: Sequence[str], grid: Sequence[str], body: str = ""
    ) -> Reach:
        """At those sizes in that launch; body: in place of the kernel's."""
        known = self._known
        values = {**sizes, **{one.name: 1 for one in known.numbers if one.integer}}
        values |= places("thread", [count(one, sizes) for one in block])
        values |= places("block", [count(one, sizes) for one in grid])
        drawn = {name: count(end, sizes) - less for name, (end, less) in self._drawn.items()}
        return Reach(body or known.text.body, values, known.text.constants, drawn)

    def unbounded(self, reach: Reach) -> bool:
        """Whether nothing bounds an index of some array, so that few threads are to reach little."""
        return any(reach.elements(name) is None for name in self._known.text.arrays)

    def needed(self, reach: Reach) -> int:
        """Elements of all arrays, those that nothing bounds left out."""
        arrays = self._known.text.arrays
        return sum((reach.elements(name) or 0) * self.weight(name) for name in arrays)

    def weight(self, array: str) -> int:
        """What an element of an array counts as: lanes of a vector, bytes of a struct."""
        default = STRUCT_BYTES if self.structs(array) else 1
        return self._known.leaves.inner.get(array, default)

    def structs(self, array: str) -> bool:
        """Whether its elements are structs."""
        return any(one.name == array and one.kind == "structs" for one in self._known.parameters)

    @functools.cached_property
    def fixed_shared(self) -> tuple[list[tuple[str, str]], str]:
        """Shared arrays of fixed extents with their elements; the text without, one index for each."""
        body = self._known.text.body
        found = _SHARED.findall(body)
        told = [
            (name, re.sub(r"\]\s*\[", ") * (", f"({one.strip()[1:-1]})")) for name, one in found
        ]
        inner = ", ".join(
            re.sub(r"\[[^\[\]]+\]", "[]", f"{name}{one}", count=1) for name, one in found
        )
        return told, flat(_SHARED.sub("", body), f"({inner})")

    @functools.cached_property
    def _drawn(self) -> dict[str, tuple[str, bool]]:
        """The end of what arrays that are read are drawn up to, and whether they stay below it."""
        found: dict[str, tuple[str, bool]] = {}
        for one in self._known.read:
            if self._known.roles[one.name] != "symbols" and (draw := draw_of(self._known, one)):
                end = _end_of(draw)
                found |= {one.name: end} if end else {}
        return found


def _end_of(draw: Flow) -> tuple[str, bool] | None:
    """The largest value that a draw gives, as far as it says one, and whether values stay below it."""
    every = [_end_of(part["draw"]) for part in draw.get("parts", ())]
    told = [
        (str(draw[key]), key == "below") for key in ("below", "end", "hi", "value") if key in draw
    ]
    found = [one for one in (*every, *told) if one is not None]
    return max(found, key=lambda one: one[1], default=None)


def count(extent: str, sizes: Mapping[str, int]) -> int:
    """An extent at those sizes; 0 where it has none there."""
    try:
        return max(0, expressions.evaluate(extent, {WARP: LANES, **sizes}))
    except SpecError:
        return 0
