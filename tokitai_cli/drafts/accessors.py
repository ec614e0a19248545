"""Tensor accessors of PyTorch in drafts: an array each, and one size for all that one index counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tokitai_cli.cpp.body.polynomial import Polynomial, constant
from tokitai_cli.cpp.body.symbolic_values import Access

_VIEWED = ".packed_accessor"  # what the host says of a tensor to get one


class Accessor(msgspec.Struct):
    """An accessor: its struct, how the body names it, its array, and its sizes from the outermost on."""

    struct: str
    path: str
    array: str
    sizes: list[str]

    @property
    def fields(self) -> dict[str, str | list[str]]:
        """Its fields in a spec; rows lie one behind the other."""
        inner = (self.sizes[at:] for at in range(1, len(self.sizes) + 1))
        strides = [" * ".join(one for one in sizes if one != "1") or "1" for sizes in inner]
        return {"data_": self.array, "sizes_": self.sizes, "strides_": strides}

    def words(self, handed: str) -> dict[str, str]:
        """Its sizes by what the host calls those of the tensor that it hands over."""
        tensor, is_view, _ = handed.partition(_VIEWED)
        count = len(self.sizes) if is_view else 0
        at = ((axis, size) for axis, size in enumerate(self.sizes[:count]))
        return {f"{tensor}.size({n})": size for axis, size in at for n in (axis, axis - count)}

    def indices(self, access: Access) -> list[Polynomial]:
        """Indices of an access, the outermost first; none of one to another array."""
        left, found = access.offset, list[Polynomial]()
        if access.array != self.path:
            return []
        for axis in range(len(self.sizes) - 1):
            parts = left.linear(f"{self.path}.stride({axis})")
            if parts is None:
                return []
            found.append(parts[0])
            left = parts[1]
        return [*found, left]


def same_sizes(accessors: Sequence[Accessor], accesses: Sequence[Access]) -> dict[str, str]:
    """Sizes that are one, each with the first of them: one index, or one bound of indices, is for both.

    One that numbers alone index, or what stays below a number, is the number behind the largest.
    """
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    by_number: dict[str, set[int]] = {}
    for one, access in itertools.product(accessors, accesses):
        for size, index in zip(one.sizes, one.indices(access), strict=False):
            bounds = [*_bounds(index, access)]
            numbers = [n - 1 for bound in bounds if (n := bound.number) is not None]
            known = index.number if index.number is not None else min(numbers, default=-1)
            by_number.setdefault(size, set()).add(known)
            for key in (index, *bounds) if known < 0 else ():
                other = first.setdefault(str(key), same.get(size, size))
                if other != size:
                    same.setdefault(size, other)
    told = {size: max(found) + 1 for size, found in by_number.items() if min(found) >= 0}
    every = {size: str(number) for size, number in told.items()} | same
    return {size: _end(every, size) for size in every if _end(every, size) != size}


def _bounds(index: Polynomial, access: Access) -> Iterator[Polynomial]:
    """What an index stays below."""
    for guard in access.guards:
        if guard.left == index and guard.sign in {"<", "<="}:
            yield guard.right + constant(guard.sign == "<=")


def _end(same: Mapping[str, str], size: str) -> str:
    """What a size is in the end, where others lead on; the first of a ring stays."""
    seen = [size]
    while (following := same.get(seen[-1])) is not None and following not in seen:
        seen.append(following)
    return min(seen[seen.index(following) :]) if following is not None else seen[-1]
