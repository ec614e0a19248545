"""What the workers of a cluster offer, and which tasks travel to them together.

Short cases go in bundles, since a message costs more than they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tokitai_cli.batch.work.queue import ArtifactKey, TaskQueue, lot_of
from tokitai_cli.core.model.batch_record import Reply, Task
from tokitai_cli.core.model.device import TRAITS

# A worker has the next bundle at hand while it answers one.
AHEAD = 2
# Seconds that a bundle should take, at least and for each thread: scheduler and client need some
# milliseconds for one (docs/cluster.md), so that this many a second are within their reach. What is lost
# with a worker, or still awaited when the batch is to stop, are one or two bundles a thread.
_SECONDS = 0.25
_SECONDS_A_THREAD = 0.01
_MOST = 32
# Bundles that each thread should still get, so that all threads end at about the same time.
_ROUNDS = 4


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


class Bundle(msgspec.Struct, frozen=True):
    """Tasks of one lot that a worker was given, by the key of Dask's own task."""

    key: str
    address: str
    tasks: tuple[Task, ...]


class Bundles:
    """Makes bundles of what waits, by how long cases of the same lot took.

    A task whose worker was lost goes by itself from then on, and is counted: of several in a bundle
    none could be told to be the cause.
    """

    def __init__(self) -> None:
        self._paces: dict[ArtifactKey, float] = {}
        self._losses: dict[int, int] = {}

    def take(self, queue: TaskQueue, first: Task, threads: int, *, gpu: bool) -> tuple[Task, ...]:
        """`first`, and what may go with it; `threads` workers share the queue."""
        lot = lot_of(first)
        tasks = [first]
        size = self._size(lot, len(queue), threads)
        while len(tasks) < size and first.number not in self._losses:
            task = queue.take(lot, gpu=gpu)
            if task is None:
                break
            if lot_of(task) != lot or task.number in self._losses:
                queue.put(task)
                break
            tasks.append(task)
        return tuple(tasks)

    def answered(self, bundle: Bundle, replies: Sequence[Reply]) -> None:
        """Learn from the replies to a bundle."""
        lot = lot_of(bundle.tasks[0])
        mean = sum(reply.seconds for reply in replies) / len(replies)
        # The first one of a lot may have waited for a compiler: later ones count as much as all before.
        self._paces[lot] = (self._paces.get(lot, mean) + mean) / 2
        for reply in replies:
            self._losses.pop(reply.number, None)

    def failed(
        self, bundle: Bundle, queue: TaskQueue, most: int, lost: Callable[[Task, int], Reply]
    ) -> list[Reply]:
        """The bundle was begun and gives no replies: its tasks wait again, each for itself.

        One that was by itself more than `most` times is answered by `lost`, which is told how often.
        """
        replies: list[Reply] = []
        for task in bundle.tasks:
            losses = self._losses.get(task.number, 0) + (len(bundle.tasks) == 1)
            self._losses[task.number] = losses
            if losses > most:
                replies.append(lost(task, losses))
            else:
                queue.put(task)
        return replies

    def _size(self, lot: ArtifactKey, waiting: int, threads: int) -> int:
        pace = self._paces.get(lot)
        if pace is None:
            return 1
        fair = waiting // (_ROUNDS * max(1, threads))
        seconds = max(_SECONDS, _SECONDS_A_THREAD * threads)
        return max(1, min(_MOST, int(seconds / max(pace, seconds / _MOST)), fair))
