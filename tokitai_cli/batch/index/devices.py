"""Devices of a batch: as each host found them, and joined to one record a name and architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tokitai_cli.batch.store import Store
from tokitai_cli.core.model.evidence import DeviceRecord, FactRecord

# Values that a joined fact or text names; a cluster may have hundreds.
MOST_VALUES = 8


class DevicePlace(msgspec.Struct, frozen=True):
    """What cases of one device name must share to stand in one evidence file."""

    name: str
    arch: str
    available: bool

    @property
    def label(self) -> str:
        """Name of the place beside others of the same device name."""
        return self.arch or "unknown-arch" if self.available else "unavailable"


class DeviceBook:
    """Device records of a batch, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, DeviceRecord] = {}

    def record(self, digest: str) -> DeviceRecord:
        """Record with that digest. Raises StorageError where it is missing or damaged."""
        if digest not in self._records:
            self._records[digest] = self._store.device(digest)
        return self._records[digest]

    def place(self, digest: str) -> DevicePlace:
        """Where cases with that device record stand."""
        record = self.record(digest)
        return DevicePlace(record.name, record.arch, record.available)

    def joined(self, digests: Iterable[str]) -> dict[DevicePlace, DeviceRecord]:
        """One record for each place among `digests`, in the order of first appearance."""
        grouped: dict[DevicePlace, dict[str, DeviceRecord]] = {}
        for digest in digests:
            grouped.setdefault(self.place(digest), {})[digest] = self.record(digest)
        return {place: joined(list(records.values())) for place, records in grouped.items()}


def joined(records: Sequence[DeviceRecord]) -> DeviceRecord:
    """One record for several of one name, architecture and availability.

    What is equal stands once. A fact that differs names how many values it has and the first of
    them; one that only some hosts have stands as they have it.
    """
    first = records[0]
    if len(records) == 1:
        return first
    values: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for fact in record.facts:
            values.setdefault((fact.name, fact.source), {})[fact.value] = None
    return msgspec.structs.replace(
        first,
        facts=[
            FactRecord(name=name, value=_told(list(found)), source=source)
            for (name, source), found in values.items()
        ],
        missing=_told(list(dict.fromkeys(record.missing for record in records))),
        hint=_told(list(dict.fromkeys(record.hint for record in records))),
        non_claims=list(dict.fromkeys(text for one in records for text in one.non_claims)),
    )


def _told(values: Sequence[str]) -> str:
    if len(values) == 1:
        return values[0]
    shown = ", ".join(values[:MOST_VALUES])
    return f"{len(values)} values: {shown}" + (", ..." if len(values) > MOST_VALUES else "")
