"""Tensor accessors of PyTorch in drafts: an array each, and one size for all that one index counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

_INDEX = re.compile(r"\[([^\[\]]*)\]")


class Accessor(msgspec.Struct):
    """An accessor: how the kernel's text names it, its array, and its sizes from the outermost on."""

    place: str
    array: str
    sizes: list[str]

    @property
    def fields(self) -> dict[str, str | list[str]]:
        """Its fields in a spec; rows lie one behind the other."""
        strides = [" * ".join(self.sizes[at:]) for at in range(1, len(self.sizes))]
        return {"data_": self.array, "sizes_": self.sizes, "strides_": [*strides, "1"]}

    def flat(self, body: str) -> str:
        """`body` with its elements by one index: `x[n][c]` is `array[(n) * size + c]`."""
        return self._indexed.sub(self._element, body)

    def indices(self, body: str) -> Iterator[list[str]]:
        """Indices of each element that the text speaks of."""
        for match in self._indexed.finditer(body):
            yield [one.strip() for one in _INDEX.findall(match[1])]

    @property
    def _indexed(self) -> re.Pattern[str]:
        every = rf"(?:\s*\[[^\[\]]*\]){{{len(self.sizes)}}}"
        return re.compile(rf"(?<![\w.]){self.place}({every})")

    def _element(self, match: re.Match[str]) -> str:
        first, *others = _INDEX.findall(match[1])
        for size, index in zip(self.sizes[1:], others, strict=True):
            first = f"({first}) * {size} + {index}"
        return f"{self.array}[{first}]"


def same_sizes(accessors: Sequence[Accessor], body: str) -> dict[str, str]:
    """Sizes that are one, each with the first of them: the same name indexes both.

    One that numbers alone index is the number behind the largest.
    """
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    by_number: dict[str, set[int]] = {}
    for accessor in accessors:
        for indices in accessor.indices(body):
            for size, index in zip(accessor.sizes, indices, strict=True):
                by_number.setdefault(size, set()).add(int(index) if index.isdecimal() else -1)
                if re.fullmatch(r"[A-Za-z_]\w*", index):
                    other = first.setdefault(index, same.get(size, size))
                    if other != size:
                        same.setdefault(size, other)
    numbers = {size: max(found) + 1 for size, found in by_number.items() if min(found) >= 0}
    told = {size: str(number) for size, number in numbers.items()} | same
    return {size: _end(told, size) for size in told if _end(told, size) != size}


def _end(same: Mapping[str, str], size: str) -> str:
    """What a size is in the end, where others lead on; the first of a ring stays."""
    seen = [size]
    while (following := same.get(seen[-1])) is not None and following not in seen:
        seen.append(following)
    return min(seen[seen.index(following) :]) if following is not None else seen[-1]
