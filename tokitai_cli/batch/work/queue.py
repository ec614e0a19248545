"""Tasks that wait for a worker: longest first, and a worker stays with the kernels that it has."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import msgspec

from tokitai_cli.core.model.batch_record import Task
from tokitai_cli.core.model.device import TRAITS

# Digests of records that a task names as known; a cluster may have many devices.
_MOST_KNOWN = 64

ArtifactKey = tuple[str, str, str]


class Waiting(msgspec.Struct, frozen=True, order=True):
    """A task in the queue, ordered so that the longest comes first.

    It is kept in MessagePack, as it travels: there may be very many.
    """

    minus_weight: float
    number: int
    packed: bytes


class TaskQueue:
    """Tasks in lots of one device, spec and variant, each longest first.

    Changing the lot costs a worker a new child, so it takes the next of its own lot as long as there
    is one, and else of the lot with the most work left.
    """

    def __init__(self, tasks: Iterable[tuple[Task, float]]) -> None:
        self._lots: dict[ArtifactKey, list[Waiting]] = {}
        self._weights: dict[ArtifactKey, float] = {}
        self._known: dict[tuple[str, str], dict[str, None]] = {}
        self._weight_of: dict[int, float] = {}
        self._size = 0
        for task, weight in tasks:
            self._weight_of[task.number] = weight
            self.put(task)

    def __len__(self) -> int:
        return self._size

    def put(self, task: Task) -> None:
        """Put a task back whose worker was lost, or that has to run again."""
        weight = self._weight_of[task.number]
        lot, packed = lot_of(task), msgspec.msgpack.encode(task)
        heapq.heappush(self._lots.setdefault(lot, []), Waiting(-weight, task.number, packed))
        self._weights[lot] = self._weights.get(lot, 0.0) + weight
        self._size += 1

    def take(self, near: ArtifactKey | None = None, *, gpu: bool = True) -> Task | None:
        """Next task, of the lot `near` if it has one. Without `gpu` only one that needs none."""
        lot = near if near in self._lots and (gpu or not TRAITS[near[0]].exclusive) else None
        if lot is None:
            lots = [lot for lot in self._lots if gpu or not TRAITS[lot[0]].exclusive]
            if not lots:
                return None
            lot = max(lots, key=self._weights.__getitem__)
        waiting = heapq.heappop(self._lots[lot])
        self._weights[lot] += waiting.minus_weight
        self._size -= 1
        if not self._lots[lot]:
            del self._lots[lot], self._weights[lot]
        task = msgspec.msgpack.decode(waiting.packed, type=Task)
        known = self._known.get((task.spec, task.device), {})
        return msgspec.structs.replace(task, known=tuple(known))

    def learned(self, task: Task, digests: Iterable[str]) -> None:
        """Records that came with a reply need not come with the next ones of that spec and device."""
        known = self._known.setdefault((task.spec, task.device), {})
        for digest in digests:
            if len(known) < _MOST_KNOWN:
                known[digest] = None

    def clear(self) -> None:
        """Drop everything that waits."""
        self._lots.clear()
        self._weights.clear()
        self._size = 0


def lot_of(task: Task) -> ArtifactKey:
    """What tasks share that a child can serve one after the other."""
    return task.device, task.spec, task.variant
