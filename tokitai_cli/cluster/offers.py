"""What the workers of a cluster offer, and what each of them has to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tokitai_cli.model.device import TRAITS

# A worker has the next bundle at hand while it answers one.
AHEAD = 2


class Offer(msgspec.Struct, frozen=True):
    """One worker: its threads, and how many cases of a device at once by its Dask resources."""

    threads: int
    resources: dict[str, float]

    def slots(self, device: str) -> int:
        """Cases of the device that the worker takes at a time."""
        if TRAITS[device].anywhere:
            return self.threads
        return min(self.threads, int(self.resources.get(device, 0)))


def offers(workers: Mapping[str, Mapping[str, Any]]) -> dict[str, Offer]:
    """By address, of what a scheduler tells of its workers."""
    return {
        address: Offer(int(known.get("nthreads", 1)), dict(known.get("resources") or {}))
        for address, known in workers.items()
    }


def needs(device: str) -> dict[str, float] | None:
    """Dask resources of a task on the device."""
    return None if TRAITS[device].anywhere else {device: 1}


class Loads:
    """Devices of the bundles that each worker was given and has not answered, oldest first."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, str]] = {}

    def add(self, address: str, key: str, device: str) -> None:
        """The worker was given a bundle of tasks."""
        self._given.setdefault(address, {})[key] = device

    def remove(self, address: str, key: str) -> None:
        """The bundle is answered, or was taken away."""
        own = self._given.get(address, {})
        own.pop(key, None)
        if not own:
            self._given.pop(address, None)

    def room(self, address: str, offer: Offer, depth: int) -> bool:
        """Whether the worker has less than `depth` bundles a thread."""
        return len(self._given.get(address, ())) < depth * offer.threads

    def fits(self, address: str, offer: Offer, device: str, depth: int) -> bool:
        """Whether the worker has room for a task on the device."""
        given = self._given.get(address, {}).values()
        same = sum(one == device for one in given)
        return len(given) < depth * offer.threads and same < depth * offer.slots(device)

    def left_by(self, there: Iterable[str]) -> dict[str, list[str]]:
        """Keys of the bundles of workers that are not among those that are there, oldest first."""
        gone = self._given.keys() - set(there)
        return {address: list(self._given[address]) for address in gone}
