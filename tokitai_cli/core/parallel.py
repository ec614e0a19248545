"""Arithmetic on the parts of one thing by several threads; results come back in the order of the parts.

It keeps to this process's share of the cores, runs in the caller's context, and holds few parts at a
time; `side_by_side` is for jobs that wait for children.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tokitai_cli.core import arena

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
# Parts that are begun before the first one's result is taken, for each thread: they lie in memory.
_AHEAD = 2
# What this process may use, 0 for all cores that it runs on.
_SHARE: contextvars.ContextVar[int] = contextvars.ContextVar("threads", default=0)


def threads() -> int:
    """Threads that work may be spread over."""
    return _SHARE.get() or len(os.sched_getaffinity(0))


@contextlib.contextmanager
def sharing(count: int) -> Iterator[None]:
    """Spread what is inside over so many threads; 0 for all cores."""
    token = _SHARE.set(count)
    try:
        yield
    finally:
        _SHARE.reset(token)


def in_order(work: Callable[[_Part], _Result], parts: Iterable[_Part]) -> Iterator[_Result]:
    """What `work` returns for each part, in order, whatever the number of threads.

    Each part is worked on in the context of the caller (permissions of formulas, numpy's errstate).
    What `work` raises is raised where its result would come; parts behind it are not begun.
    """
    arena.keep()
    count = threads()
    waiting = iter(parts)
    first = list(itertools.islice(waiting, 2))
    if count == 1 or len(first) < 2:
        yield from map(work, first)
        yield from map(work, waiting)
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # a small run starts without it

    begun: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(count) as pool:

        def begin(part: _Part) -> None:
            begun.append(pool.submit(contextvars.copy_context().run, work, part))

        for part in first:
            begin(part)
        try:
            for part in waiting:
                begin(part)
                if len(begun) >= _AHEAD * count:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for one in begun:
                one.cancel()
