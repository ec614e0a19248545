"""Workers on this machine: processes that each answer one task at a time."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Self

import msgspec

from tokitai_cli.batch.work.queue import ArtifactKey, TaskQueue, lot_of
from tokitai_cli.batch.work.serve import lost
from tokitai_cli.core import process
from tokitai_cli.core.errors import ExecutorError
from tokitai_cli.core.model.batch_record import Reply, Setup, Task

# A worker has so much work at hand, beside the task that it answers; at least one task, and not so many
# that others wait for them.
_AHEAD_SECONDS = 0.2
_MOST_AHEAD = 16
# Replies are collected for so long while every worker has work: what comes together is kept together,
# which spares the disk and the cores.
_GATHER_SECONDS = 0.05
_ATTEMPTS = 3
# Workers that end one after the other without an answer: something is wrong with all of them.
_MOST_BARREN = 5
_LAST_LINES = 5
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

# -P: the working folder may hold another version of the tool.
_PROGRAM = (sys.executable, "-P", "-m", f"{__package__}.worker")


class _Worker:
    """One process with the socket to it and the tasks that it has not answered, oldest first."""

    def __init__(self, setup: Setup, gpu: int | None) -> None:
        ours, theirs = socket.socketpair()
        threads = str(setup.settings.threads or 1)
        with theirs:
            self.child = process.Child(
                (*_PROGRAM, str(theirs.fileno()), str(gpu or 0)),
                env={
                    **os.environ,
                    **dict.fromkeys(_THREADS, threads),
                    "PYTHONPATH": _import_path(),
                },
                pass_fds=(theirs.fileno(),),
            )
        self.connection: Connection[bytes, bytes] = Connection(ours.detach())
        self.gpu = gpu
        self.lot: ArtifactKey | None = None
        self.tasks: deque[Task] = deque()
        self.pace: float | None = None
        self.connection.send_bytes(msgspec.msgpack.encode(setup))

    def send(self, task: Task) -> None:
        """Hand the task out; one that cannot be sent is still the worker's until it is seen to end."""
        self.tasks.append(task)
        self.lot = lot_of(task)
        with contextlib.suppress(OSError):
            self.connection.send_bytes(msgspec.msgpack.encode(task))

    @property
    def ahead(self) -> int:
        """How many tasks it may have at hand, by what its last ones took."""
        if self.pace is None:
            return 2
        return max(2, min(_MOST_AHEAD, int(_AHEAD_SECONDS / max(self.pace, 1e-3))))

    def answered(self, seconds: float) -> None:
        """The oldest task is answered, and took so long."""
        self.tasks.popleft()
        self.pace = seconds if self.pace is None else (self.pace + seconds) / 2

    def close(self) -> None:
        """End the process, and with it the kernels that it runs."""
        self.connection.close()
        self.child.kill()

    def end(self) -> str:
        """How the process ended, in words, with the last of what it printed."""
        self.connection.close()
        self.child.wait(1.0)
        self.child.kill()
        how = process.signal_name(self.child.returncode or 0)
        said = self.child.captured().text.strip().splitlines()[-_LAST_LINES:]
        return f"{how}: {'; '.join(said)}" if said else how


def _import_path() -> str:
    """PYTHONPATH by which a worker imports this very package, and what else the user's has."""
    own = str(Path(process.__path__[0]).resolve().parent.parent)
    return os.pathsep.join(filter(None, (own, os.environ.get("PYTHONPATH", ""))))


class LocalExecutor:
    """Executor over `workers` processes; the first `gpu_children` a GPU of them use its children.

    With only tasks for GPUs no more processes are started than can have one.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        workers: int,
        gpus: Sequence[int] = (0,),
        gpu_children: int = 1,
    ) -> None:
        self._setup = setup
        self._slots = [*gpus] * gpu_children
        self._count = workers
        self._workers: list[_Worker] = []
        self._attempts: dict[int, int] = {}
        self._barren = 0
        self._queue: TaskQueue | None = None
        self._decoder = msgspec.msgpack.Decoder(Reply)

    @property
    def workers(self) -> int:
        """Processes that are started as there are tasks for them."""
        return self._count

    @property
    def running(self) -> int:
        """Tasks that were handed out and are not answered."""
        return sum(len(worker.tasks) for worker in self._workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()
        self._workers.clear()

    def feed(self, queue: TaskQueue) -> None:
        """Give each worker what it has room for, and start workers while tasks wait."""
        self._queue = queue
        for worker in self._workers:
            if not worker.tasks:
                self._give(worker, queue)
        while len(self._workers) < self._count and self._start_for(queue):
            pass
        for worker in self._workers:
            # Near the end a task that waits behind another may be what keeps a free worker idle.
            while len(worker.tasks) < min(worker.ahead, 1 + len(queue) // self._count):
                if not self._give(worker, queue):
                    break

    def collect(self, timeout: float) -> list[Reply]:
        """Replies that came, after at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        replies: list[Reply] = []
        while self._workers:
            left = max(0.0, deadline - time.monotonic())
            by_connection = {worker.connection: worker for worker in self._workers}
            ready = wait(list(by_connection), left)
            for connection in ready:
                came = self._received(by_connection[connection])  # type: ignore[index]
                if came and not replies:
                    deadline = min(deadline, time.monotonic() + _GATHER_SECONDS)
                replies += came
            if not ready or (replies and not all(worker.tasks for worker in self._workers)):
                break
        for worker in self._workers:
            worker.child.drain()
        return replies

    def _give(self, worker: _Worker, queue: TaskQueue) -> bool:
        task = queue.take(worker.lot, gpu=worker.gpu is not None)
        if task is None:
            return False
        worker.send(task)
        return True

    def _start_for(self, queue: TaskQueue) -> bool:
        """Start one more worker, where there is a task for it."""
        taken = [worker.gpu for worker in self._workers]
        free = list(self._slots)
        for gpu in taken:
            if gpu in free:
                free.remove(gpu)
        gpu = free[0] if free else None
        task = queue.take(gpu=gpu is not None)
        if task is None:
            return False
        try:
            worker = _Worker(self._setup, gpu)
        except OSError as error:
            queue.put(task)
            if self._workers:
                self._count = len(self._workers)
                return False
            raise ExecutorError(
                f"no worker can be started: {error.strerror or error}",
                hint="end other programs, or use fewer workers with -j",
            ) from error
        self._workers.append(worker)
        worker.send(task)
        return True

    def _received(self, worker: _Worker) -> list[Reply]:
        try:
            reply = self._decoder.decode(worker.connection.recv_bytes())
        except (EOFError, OSError):
            return self._ended(worker)
        self._barren = 0
        worker.answered(reply.seconds)
        return [reply]

    def _ended(self, worker: _Worker) -> list[Reply]:
        """A worker is gone: what it had not begun waits again, what it was at is tried again."""
        self._workers.remove(worker)
        how = worker.end()
        self._barren += 1
        if self._barren >= _MOST_BARREN:
            raise ExecutorError(
                f"{self._barren} workers ended one after another, the last with {how}",
                hint="`tokitai verify` of one of the cases shows more; --resume continues",
            )
        assert self._queue is not None
        replies = []
        for position, task in enumerate(worker.tasks):
            if position == 0:
                self._attempts[task.number] = self._attempts.get(task.number, 0) + 1
                if self._attempts[task.number] >= _ATTEMPTS:
                    reason = f"the worker ended each of {_ATTEMPTS} times, at last with {how}"
                    replies.append(lost(task, self._setup, reason))
                    continue
            self._queue.put(task)
        return replies
