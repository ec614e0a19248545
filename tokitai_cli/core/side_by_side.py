"""Jobs that wait for children, on threads beside each other.

`parallel` is for the rest: its pool is joined at the end, which takes as long as its parts take. A child
may take its whole timeout, which no interrupt should wait for, so the threads here are left behind.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def all_of(jobs: Sequence[Callable[[], T]], workers: int) -> list[T]:
    """What each job returns, in their order; up to `workers` of them run at a time.

    Raises what the first of them raises. The threads end with the process, so that an interrupt of the
    caller does not wait for them.
    """
    if workers < 2 or len(jobs) < 2:
        return [job() for job in jobs]
    waiting: queue.SimpleQueue[tuple[int, Callable[[], T]]] = queue.SimpleQueue()
    for one in enumerate(jobs):
        waiting.put(one)
    done: queue.SimpleQueue[tuple[int, T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                at, job = waiting.get_nowait()
                try:
                    done.put((at, job(), None))
                except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                    done.put((at, None, error))

    for _ in range(min(workers, len(jobs))):
        threading.Thread(target=work, daemon=True).start()
    found: dict[int, T] = {}
    for _ in jobs:
        at, result, error = done.get()
        if error is not None:
            raise error
        found[at] = result  # type: ignore[assignment]
    return [found[at] for at in range(len(jobs))]
