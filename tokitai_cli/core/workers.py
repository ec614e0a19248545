"""Parts of several computations by worker processes, which hold no lock of Python for each other.

`parallel` gives parts to threads: between two of numpy's operations each takes Python's lock, and on
many cores the threads mostly wait for it. Workers are forked once, and know all that this process knew
then: what they are told is which part it is, what they give back is small, and what is large lies in
memory that was shared before. Where they cannot be, threads do the same.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import select
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import parallel, peak_memory
from tokitai_cli.core.errors import NotRunError
from tokitai_cli.core.process import undisturbed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
# Parts that a worker has at hand, so that it never waits for the next one.
_AT_HAND = 2
# What a worker is asked besides parts: how much memory it holds.
_MEMORY = -1
_PROTOCOL = pickle.HIGHEST_PROTOCOL
# Between a worker's last word and its end.
_LAST_SECONDS = 0.05
# Files that may be open, where the system has no limit.
_MOST_FILES = 1 << 16


class Work(Generic[_Part, _Result]):
    """What workers do with a part."""

    def __init__(self, workers: Workers, number: int, call: Callable[[_Part], _Result]) -> None:
        self._workers, self._number, self._call = workers, number, call

    def in_order(self, parts: Iterable[_Part]) -> Iterator[_Result]:
        """What each part gives, in order, whatever the number of workers; see `parallel.in_order`."""
        if self._workers.forked:
            return self._workers.results(self._number, parts)
        return parallel.in_order(self._call, parts)

    def everywhere(self, what: _Part) -> None:
        """Let this process do it, and each worker before its next part."""
        self._call(what)
        self._workers.tell(self._number, what)


class _Worker:
    """A forked process, where it is heard, and the parts that it has at hand."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.connection = connection
        self.parts = deque[int]()
        self._pid = pid

    def send(self, number: int, what: Any, *, asked: bool) -> None:
        """Tell it what to do; raises NotRunError where it is gone, as `received` does."""
        try:
            self.connection.send_bytes(pickle.dumps((number, what, asked), _PROTOCOL))
        except OSError as error:
            raise self._gone() from error

    def received(self) -> bytes:
        """The next answer."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._gone() from error

    def end(self) -> int:
        """End it; the exit code, negative for a signal."""
        self.connection.close()
        if not self._pid:
            return 0
        pid, self._pid = self._pid, 0
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
            if not found:
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
        except ChildProcessError:  # somebody else has waited for it
            return 0
        return os.waitstatus_to_exitcode(status)

    def _gone(self) -> NotRunError:
        self.parts.clear()
        time.sleep(_LAST_SECONDS)  # it may be ending
        code = self.end()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return NotRunError(
            f"a worker process of the tool ended too early ({how})",
            hint="where memory is short, run with fewer --threads",
        )


class Workers:
    """Context manager: what it is told of before `start` is done by worker processes from then on."""

    def __init__(self) -> None:
        self._calls: list[Callable[[Any], Any]] = []
        self._workers: list[_Worker] = []
        self._begun = 0  # of the parts that are being asked for

    @property
    def forked(self) -> bool:
        """Whether there are worker processes."""
        return bool(self._workers)

    def work(self, call: Callable[[_Part], _Result]) -> Work[_Part, _Result]:
        """Have the workers know `call`. Parts and results are pickled, and small."""
        self._calls.append(call)
        return Work(self, len(self._calls) - 1, call)

    @staticmethod
    def floats(count: int) -> NDArray[np.float64]:
        """Memory for an array that all see; zeros, which take no room until they are touched."""
        return np.frombuffer(mmap.mmap(-1, max(count, 1) * 8), np.float64)[:count]

    def start(self) -> None:
        """Fork a worker for each thread that work may be spread over, where it is safe to fork."""
        count = parallel.threads()
        if count < 2 or self._workers or not _may_fork():
            return
        from multiprocessing.connection import Pipe  # a small run starts without it

        # What a handler raises while Python forks is printed and lost.
        with undisturbed():
            for _ in range(count):
                try:
                    mine, theirs = Pipe()
                except OSError:  # no more files: what workers there are
                    return
                try:
                    pid = _fork()
                except OSError:  # no more processes
                    mine.close()
                    theirs.close()
                    return
                if not pid:
                    _serve(theirs, self._calls)
                theirs.close()
                self._workers.append(_Worker(pid, mine))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End all workers; what they held counts to this process's memory."""
        try:
            if kind is None:
                self._count_memory()
        finally:
            for one in self._workers:
                one.end()
            self._workers, self._calls = [], []  # with what these hold

    def tell(self, number: int, what: Any) -> None:
        """Let each worker do it before its next part."""
        for one in self._workers:
            one.send(number, what, asked=False)

    def results(self, number: int, parts: Iterable[Any]) -> Iterator[Any]:
        """What the workers give for each part, in order; raises what they raise in its place."""
        waiting = iter(enumerate(parts))
        found: dict[int, bytes] = {}
        self._begun = due = 0
        more = True
        heard = select.poll()
        by_file = {one.connection.fileno(): one for one in self._workers}
        for file in by_file:
            heard.register(file, select.POLLIN)
        try:
            while True:
                more = more and self._give(number, waiting, due)
                if due in found:
                    yield _opened(found.pop(due))
                    due += 1
                elif any(one.parts for one in self._workers):
                    for file, _ in heard.poll():
                        one = by_file[file]
                        answer = one.received()
                        found[one.parts.popleft()] = answer
                else:
                    return
        finally:  # what was begun, and is not asked for
            for one in self._workers:
                while one.parts:
                    one.received()
                    one.parts.popleft()

    def _give(self, number: int, waiting: Iterator[tuple[int, Any]], due: int) -> bool:
        """Give each worker parts to have at hand, few beyond the one that is due.

        Whether there may be more.
        """
        ahead = 2 * _AT_HAND * len(self._workers)
        for filled in range(_AT_HAND):
            for one in self._workers:
                if len(one.parts) > filled:
                    continue
                if self._begun >= due + ahead:  # whose worker takes longer than the others
                    return True
                at, part = next(waiting, (-1, None))
                if at < 0:
                    return False
                one.send(number, part, asked=True)
                one.parts.append(at)
                self._begun = at + 1
        return True

    def _count_memory(self) -> None:
        for one in self._workers:
            one.send(_MEMORY, None, asked=True)
        if self._workers:
            peak_memory.count_beside(sum(_opened(one.received()) for one in self._workers))


def _may_fork() -> bool:
    """Whether no other thread may hold what a worker needs: daemons here only wait for children."""
    mine = threading.current_thread()
    others = [one for one in threading.enumerate() if one is not mine and not one.daemon]
    return mine is threading.main_thread() and not others


def _fork() -> int:
    with warnings.catch_warnings():  # of threads: numpy's BLAS ends its own before a fork
        warnings.simplefilter("ignore")
        return os.fork()


def _opened(answer: bytes) -> Any:
    raised, found = pickle.loads(answer)  # noqa: S301 - of a fork of this process
    if raised:
        raise found
    return found


def _serve(connection: Connection, calls: list[Callable[[Any], Any]]) -> NoReturn:
    """Be a worker: do what comes until the other end is closed."""
    try:
        # The terminal's, which the other end hears too.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        gc.freeze()
        _close_others(connection.fileno())
        with parallel.sharing(1):
            while True:
                number, what, asked = pickle.loads(connection.recv_bytes())  # noqa: S301
                raised, answer = _answer(calls, number, what)
                if asked or raised:
                    connection.send_bytes(answer)
    except BaseException:  # noqa: BLE001 - the other end is gone, or will see that this one is
        os._exit(1)


def _close_others(own: int) -> None:
    """Close files of this process but its own: who reads or writes them waits for their end."""
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, own)
    os.closerange(own + 1, most if most > 0 else _MOST_FILES)


def _answer(calls: list[Callable[[Any], Any]], number: int, what: Any) -> tuple[bool, bytes]:
    """Whether it raised, and this with what came of it, pickled."""
    try:
        found = peak_memory.share() if number == _MEMORY else calls[number](what)
        return False, pickle.dumps((False, found), _PROTOCOL)
    except BaseException as error:  # noqa: BLE001 - raised by who asked
        try:
            pickled = pickle.dumps((True, error), _PROTOCOL)
            pickle.loads(pickled)  # noqa: S301 - just made
        except Exception:  # noqa: BLE001 - of whatever class it is
            told = RuntimeError(f"{type(error).__name__}: {error}")
            pickled = pickle.dumps((True, told), _PROTOCOL)
        return True, pickled
