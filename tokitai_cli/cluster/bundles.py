"""Tasks that travel together: short cases in bundles, since a message costs more than they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tokitai_cli.batch.queue import Lot, TaskQueue, lot_of
from tokitai_cli.model.batch import Reply, Task

# Seconds that a bundle should take, at least and for each thread: scheduler and client need some
# milliseconds for one (docs/cluster.md), so that this many a second are within their reach. What is lost
# with a worker, or still awaited when the batch is to stop, are one or two bundles a thread.
_SECONDS = 0.25
_SECONDS_A_THREAD = 0.01
_MOST = 32
# Bundles that each thread should still get, so that all threads end at about the same time.
_ROUNDS = 4


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
        self._paces: dict[Lot, float] = {}
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

    def _size(self, lot: Lot, waiting: int, threads: int) -> int:
        pace = self._paces.get(lot)
        if pace is None:
            return 1
        fair = waiting // (_ROUNDS * max(1, threads))
        seconds = max(_SECONDS, _SECONDS_A_THREAD * threads)
        return max(1, min(_MOST, int(seconds / max(pace, seconds / _MOST)), fair))
