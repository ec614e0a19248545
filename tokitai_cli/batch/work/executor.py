"""What runs tasks: workers on this machine, or on others."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from tokitai_cli.batch.work.queue import TaskQueue
from tokitai_cli.core.model.batch_record import Reply


class Executor(Protocol):
    """A context manager over workers. Used from one thread."""

    @property
    def workers(self) -> int:
        """Workers that there are, for the user to see; 0 where none has come up yet."""

    @property
    def running(self) -> int:
        """Tasks that were handed out and are not answered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still runs, at once."""

    def feed(self, queue: TaskQueue) -> None:
        """Take tasks for workers that are free, and a few ahead so that none waits for the next."""

    def collect(self, timeout: float) -> list[Reply]:
        """Replies that came, after at most `timeout` seconds; none is returned twice.

        A task whose worker was lost runs again on another one, and is answered by `serve.lost` after
        the last attempt. Raises ExecutorError where no worker can run anything.
        """
