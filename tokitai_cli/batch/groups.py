"""Which cases stand in which evidence file: whole groups, specs and architectures apart.

A group is what is judged for vacuity together: spec, variant, shape, device and its architecture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tokitai_cli.batch.summary_devices import DeviceBook, Place
from tokitai_cli.errors import StorageError
from tokitai_cli.model.batch import Done, SpecEntry

# A file of so many cases is still opened by editors, and is all that a summary holds at a time.
MOST_CASES = 250

Group = tuple[str, str, Place]


class Part(msgspec.Struct, frozen=True):
    """Cases of one evidence file, by number.

    label: architecture where the spec's cases on one device have several, else empty. index counts
    the `of` parts of one spec and label from 1.
    """

    entry: SpecEntry
    label: str
    index: int
    of: int
    dones: tuple[Done, ...]

    @property
    def suffix(self) -> str:
        """What the file's name has beside the spec's."""
        label = f".{self.label}" if self.label else ""
        return label + (f".part-{self.index}" if self.of > 1 else "")


def parts(specs: Sequence[SpecEntry], dones: Iterable[Done], book: DeviceBook) -> list[Part]:
    """Parts of all specs, in the order of the specs; a spec without a finished case has none.

    Raises StorageError for a case of no spec here, and where a device's record cannot be read.
    """
    lots: dict[str, list[Done]] = {entry.name: [] for entry in specs}
    find = _Finder(specs)
    for done in sorted(dones, key=lambda one: one.number):
        lots[find(done).name].append(done)
    return [part for entry in specs for part in _parts_of(entry, lots[entry.name], book)]


class _Finder:
    """Finds the spec of a case: specs of one digest in several folders differ by the name."""

    def __init__(self, specs: Sequence[SpecEntry]) -> None:
        self._specs: dict[str, list[SpecEntry]] = {}
        for entry in specs:
            self._specs.setdefault(entry.digest, []).append(entry)

    def __call__(self, done: Done) -> SpecEntry:
        mine = [
            entry
            for entry in self._specs.get(done.spec, ())
            if done.id.startswith(f"{entry.name}/")
        ]
        if not mine:
            raise StorageError(
                f"the journal has the case {done.id}, and no spec that it is of",
                mend="run the batch again without --resume",
            )
        return max(mine, key=lambda entry: len(entry.name))


def group_of(entry: SpecEntry, done: Done, book: DeviceBook) -> Group:
    """Group of a case, as its id and the record of its device tell."""
    variant, _, rest = done.id.removeprefix(f"{entry.name}/").partition("/")
    return variant, rest.partition("/")[0], book.place(done.device)


def _parts_of(entry: SpecEntry, dones: Sequence[Done], book: DeviceBook) -> list[Part]:
    groups: dict[Group, list[Done]] = {}
    places: dict[str, set[Place]] = {}
    for done in dones:
        group = group_of(entry, done, book)
        groups.setdefault(group, []).append(done)
        places.setdefault(group[2].name, set()).add(group[2])
    lots: dict[str, list[list[Done]]] = {}
    for (_variant, _shape, place), members in groups.items():
        label = place.label if len(places[place.name]) > 1 else ""
        lots.setdefault(label, []).append(members)
    return [part for label, lot in lots.items() for part in _cut(entry, label, lot)]


def _cut(entry: SpecEntry, label: str, lot: Sequence[Sequence[Done]]) -> list[Part]:
    """Whole groups, so many that a part has at most MOST_CASES; a larger group is one by itself."""
    cut: list[list[Done]] = [[]]
    for members in lot:
        if cut[-1] and len(cut[-1]) + len(members) > MOST_CASES:
            cut.append([])
        cut[-1] += members
    return [
        Part(entry, label, at, len(cut), tuple(sorted(dones, key=lambda one: one.number)))
        for at, dones in enumerate(cut, start=1)
    ]
