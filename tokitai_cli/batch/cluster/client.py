"""The connection to a scheduler: what workers there are, tasks out, answers in.

Everything that can hang does so in a thread or on the event loop of Dask's client, never in the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import operator
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dask
import msgspec
from distributed import Client, Future
from distributed.client import FutureCancelledError

from tokitai_cli.batch.cluster import dask_worker
from tokitai_cli.batch.cluster.placement import Offer, needs, offers
from tokitai_cli.core.errors import ExecutorError
from tokitai_cli.core.model.wording import error_line
from tokitai_cli.core.version import __version__

CONNECT_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_SILENT_SECONDS = 60.0
_END_SECONDS = 5.0


class Answer(msgspec.Struct, frozen=True):
    """What became of what was sent: `data` of its replies, or in `fault` why there are none."""

    key: str
    data: bytes = b""
    fault: str = ""
    #: The worker could not even load the task, since its tool is another one or is missing.
    alien: bool = False


# Ends a wait for answers, since there is something else to see.
_WAKE = Answer("")


class Sent(msgspec.Struct, frozen=True):
    """Tasks on their way to one worker as bytes, with the digest of their archive."""

    key: str
    archive: str
    data: bytes
    device: str
    address: str


class SchedulerClient:
    """A client of a scheduler, for workers that have the tool with the digest `tool`.

    offers: workers that do. rejected: why others do not, by address. lost: why the scheduler is gone,
    empty while it is there. Raises ExecutorError where no scheduler answers.
    """

    def __init__(
        self, target: Any, security: Any, setup: bytes, setup_digest: str, tool: str
    ) -> None:
        self.offers: dict[str, Offer] = {}
        self.rejected: dict[str, str] = {}
        self.lost = ""
        self._tool = tool
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._futures: dict[str, Future[bytes]] = {}
        self._archives: dict[str, Future[bytes]] = {}
        self._setup_digest = setup_digest
        self._client = _connect(target, security)
        self._setup = self._submit("tokitai-setup-" + setup_digest, setup)
        self._watching = self._start(self._watch())

    def send(self, tasks: Sequence[Sent], archives: Mapping[str, bytes]) -> None:
        """Hand tasks to the workers that they name; `archives` are those that may be needed."""
        groups: dict[tuple[str, str], list[Sent]] = {}
        for task in tasks:
            groups.setdefault((task.archive, task.device), []).append(task)
        for (digest, device), group in groups.items():
            if digest not in self._archives:
                key = "tokitai-archive-" + digest
                self._archives[digest] = self._submit(key, archives[digest])
            place = {task.key: [task.address] for task in group}
            annotate: Any = dask.annotate  # type: ignore[attr-defined]
            # One message for all of them, with a look-up of the worker that each is for; the scheduler
            # can unpickle it without having the tool.
            with annotate(workers=functools.partial(operator.getitem, place)):
                futures = self._client.map(
                    dask_worker.run_tasks,
                    [task.data for task in group],
                    key=[task.key for task in group],
                    setup=self._setup,
                    archive=self._archives[digest],
                    resources=needs(device),
                    pure=False,
                )
            for task, future in zip(group, futures, strict=True):
                self._futures[task.key] = future
                self._start(self._follow(task.key, future))

    def take_back(self, keys: Sequence[str]) -> None:
        """Forget tasks; an answer that comes to them all the same is dropped."""
        futures = [future for key in keys if (future := self._futures.pop(key, None)) is not None]
        if futures and not self.lost:
            self._start(self._cancel(futures))

    def answers(self, timeout: float) -> list[Answer]:
        """Wait for answers for at most `timeout` seconds; each comes once."""
        found: list[Answer] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._answers.get(timeout=timeout))
            while True:
                found.append(self._answers.get_nowait())
        return [answer for answer in found if self._futures.pop(answer.key, None) is not None]

    def close(self) -> None:
        """Cancel what still runs and end the connection, within seconds."""
        self._watching.cancel()
        if not self.lost:
            pending = list(self._futures.values())
            with contextlib.suppress(Exception):
                self._start(self._leave(pending)).result(_END_SECONDS)
        self._futures.clear()
        self._archives.clear()
        within(_END_SECONDS, lambda: self._client.close(timeout=_END_SECONDS))

    def _submit(self, key: str, data: bytes) -> Future[bytes]:
        """A task that is the data itself: it is made anew where the worker that has it is lost.

        Any worker may do it, also one without the tool.
        """
        made: Future[bytes] = self._client.submit(bytes, data, key=key, pure=False)
        return made

    def _start(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)

    def _lose(self, why: str) -> None:
        self.lost = self.lost or why
        self._answers.put(_WAKE)

    async def _follow(self, key: str, future: Future[bytes]) -> None:
        try:
            answer = Answer(key, data=await future)
        except (asyncio.CancelledError, FutureCancelledError):
            if key in self._futures:
                self._lose("the connection to the scheduler was lost")
            return
        except Exception as error:  # noqa: BLE001 - whatever a worker raised
            answer = Answer(key, fault=error_line(error), alien=_cannot_load(error))
        self._answers.put(answer)

    async def _watch(self) -> None:
        """Keep `offers` up to date, and see when the scheduler is gone."""
        heard = time.monotonic()
        examining: asyncio.Future[None] | None = None
        while not self.lost:
            try:
                there = await asyncio.wait_for(self._client.scheduler.ncores(), _SILENT_SECONDS)
                heard = time.monotonic()
                self._forget_gone(set(there))
                new = there.keys() - self.offers.keys() - self.rejected.keys()
                if new and (examining is None or examining.done()):
                    examining = asyncio.ensure_future(self._examine(sorted(new)))
            except (OSError, TimeoutError) as error:
                if time.monotonic() - heard > _SILENT_SECONDS:
                    self._lose(f"the scheduler does not answer: {error_line(error)}")
            if self._client.status != "running":
                self._lose("the connection to the scheduler was lost")
            await asyncio.sleep(_LOOK_SECONDS)

    def _forget_gone(self, there: set[str]) -> None:
        if not self.offers.keys() <= there:
            self.offers = {key: one for key, one in self.offers.items() if key in there}
            self._answers.put(_WAKE)
        self.rejected = {key: why for key, why in self.rejected.items() if key in there}

    async def _examine(self, new: list[str]) -> None:
        """Ask workers what they are before they get a task: one that cannot load it would die of it.

        Those that do not answer are asked again at the next look.
        """
        try:
            known = (await self._client.scheduler.identity())["workers"]
            asked = self._client.run(dask_worker.describe, workers=new, on_error="return")
            told = await asyncio.wait_for(asked, _SILENT_SECONDS)
        except (OSError, TimeoutError):
            return
        found = {key: told[key] for key in new if key in told and key in known}
        faults = {
            key: self._unfit(one) for key, one in found.items() if not isinstance(one, OSError)
        }
        self.rejected |= {key: fault for key, fault in faults.items() if fault}
        fit = offers({key: known[key] for key, fault in faults.items() if not fault})
        self.offers = {**self.offers, **fit}
        self._answers.put(_WAKE)

    def _unfit(self, told: Any) -> str:
        """Why a worker that answered `told` cannot take part, or empty."""
        if isinstance(told, BaseException):
            return f"it cannot load tokitai {__version__}: {error_line(told)}"
        host, version, tool = told
        if tool == self._tool:
            return ""
        return (
            f"on {host} is tokitai {version} ({tool[:12]}), not {__version__} ({self._tool[:12]})"
        )

    async def _cancel(self, futures: list[Future[bytes]]) -> None:
        with contextlib.suppress(OSError):
            await self._client.cancel(futures, force=True, asynchronous=True)

    async def _leave(self, pending: list[Future[bytes]]) -> None:
        await self._cancel(pending)
        await self._client.run(dask_worker.forget, self._setup_digest, on_error="ignore")


def within(seconds: float, work: Callable[[], object]) -> None:
    """Do the work, but wait no longer than that for its end; what it raises is dropped."""

    def quietly() -> None:
        with contextlib.suppress(Exception):
            work()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(seconds)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask's own log from the terminal: what a user has to know is told by us."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio", "tornado", *names)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _connect(target: Any, security: Any) -> Any:
    # Dask's own types leave much out; what comes back is bytes, and is checked when it is decoded.
    client: Any = Client
    try:
        return client(
            target,
            security=security,
            timeout=CONNECT_SECONDS,
            set_as_default=False,
            name="tokitai",
        )
    except (OSError, TimeoutError) as error:
        raise ExecutorError(
            f"no Dask scheduler answers at {target}: {error_line(error)}",
            hint="start one with `dask scheduler`, or check address, firewall and TLS files",
        ) from error


def _cannot_load(error: BaseException) -> bool:
    """Whether scheduler or worker could not unpickle a task: its tool is another one, or missing."""
    return isinstance(error, ImportError) or "deserialization" in str(error)
