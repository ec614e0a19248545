"""One child process in a session of its own, watched by the supervisor."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tokitai_cli.core.errors import SCARCE, NotRunError, lack_of
from tokitai_cli.core.process.captured import Capture, Captured
from tokitai_cli.core.process.supervisor import kill_group, supervisor

_READ_BYTES = 1 << 16
_DRAIN_BYTES = 64 << 20
_LIVE: dict[int, Child] = {}
# Between looks at a child where the kernel has no process descriptors (Linux before 5.3).
_LOOK_SECONDS = 0.02
# A process in a call of a driver that nothing interrupts outlives SIGKILL; so long it is waited for.
_KILL_SECONDS = 10.0


class Child:
    """A process with pipes of its own for output, killed with its whole group.

    stdout and stderr are drained while `wait_readable` or `wait` runs. With `merge` both go to
    `output`, else stderr goes to `errors`. `stdin` bytes are fed while waiting. One thread may wait
    for the end while another one kills: either of them reaps.

    Raises OSError where the program cannot be started, and NotRunError where none can.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        stdin: bytes | None = None,
        merge: bool = True,
        max_output: int = 1 << 20,
    ) -> None:
        self.argv = tuple(argv)
        self.output = Capture(max_output)
        self.errors = self.output if merge else Capture(max_output)
        self._feed = memoryview(stdin or b"")
        try:
            self._process = _start(argv, env, cwd, pass_fds, stdin is not None, merge)
        except OSError as error:
            if error.errno in SCARCE:
                raise NotRunError(f"no process can be started: {lack_of(error)}") from error
            raise
        self.pid = self._process.pid
        self.left_running = False
        self._one_at_a_time = threading.RLock()
        _LIVE[self.pid] = self
        self._streams: dict[int, Callable[[], None]] = {}
        self._exit_fd = _process_descriptor(self.pid)
        self._open_streams()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None until `wait` or `kill` saw the end."""
        return self._process.returncode

    def captured(self) -> Captured:
        """Return what the child printed so far on the merged output (else on stdout)."""
        return self.output.result()

    def wait_readable(self, descriptor: int, timeout: float) -> str:
        """Wait until `descriptor` has data or closed, draining output.

        Returns "ready", "exited" (the child ended and the descriptor has nothing) or "timeout".
        """
        deadline = time.monotonic() + timeout
        while True:
            ready = self._step(deadline, descriptor)
            if descriptor in ready:
                return "ready"
            if self._exit_fd in ready or (self._exit_fd < 0 and self._has_exited()):
                ready = self._step(time.monotonic(), descriptor)
                return "ready" if descriptor in ready else "exited"
            if time.monotonic() >= deadline:
                return "timeout"

    def wait(self, timeout: float) -> bool:
        """Wait for the end, draining output; then end what is left of the group.

        Returns False where the child still runs after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not self._has_exited():
            if time.monotonic() >= deadline:
                return False
            self._step(deadline, None)
        self._reap()
        return True

    def kill(self) -> None:
        """End the whole process group now and reap the child.

        Bounded: a child that the operating system cannot end is left, and `left_running` says so.
        """
        if self._process.returncode is not None:
            return
        kill_group(self.pid)
        deadline = time.monotonic() + _KILL_SECONDS
        while not self._has_exited():
            if time.monotonic() >= deadline:
                self._leave()
                return
            self._step(min(deadline, time.monotonic() + _LOOK_SECONDS), None)
        self._reap()

    def drain(self) -> None:
        """Read the output that is there now, without waiting for more.

        Bounded: a process that left the group may go on writing for ever.
        """
        stop = self.output.total_bytes + self.errors.total_bytes + _DRAIN_BYTES
        while self._step(time.monotonic(), None) & self._streams.keys():
            if self.output.total_bytes + self.errors.total_bytes > stop:
                break

    def _open_streams(self) -> None:
        for pipe, capture in (
            (self._process.stdout, self.output),
            (self._process.stderr, self.errors),
        ):
            if pipe is not None:
                self._streams[pipe.fileno()] = _reader(pipe.fileno(), capture, self._streams)
        stdin = self._process.stdin
        if stdin is not None:
            os.set_blocking(stdin.fileno(), False)
            self._streams[stdin.fileno()] = self._write_stdin

    def _step(self, deadline: float, descriptor: int | None) -> set[int]:
        """One poll until `deadline`; serves the streams and returns the descriptors that are ready."""
        with self._one_at_a_time:
            return self._polled(deadline, descriptor)

    def _polled(self, deadline: float, descriptor: int | None) -> set[int]:
        poll = select.poll()
        for number in self._streams:
            writes = self._process.stdin is not None and number == self._process.stdin.fileno()
            poll.register(number, select.POLLOUT if writes else select.POLLIN)
        for watched in (descriptor, self._exit_fd):
            if watched is not None and watched >= 0:
                poll.register(watched, select.POLLIN)
        seconds = max(0.0, deadline - time.monotonic())
        if self._exit_fd < 0:
            seconds = min(seconds, _LOOK_SECONDS)
        ready = {number for number, _ in poll.poll(min(seconds, 3600.0) * 1000.0)}
        for number in ready & self._streams.keys():
            self._streams[number]()
        return ready

    def _write_stdin(self) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        try:
            if self._feed:
                self._feed = self._feed[os.write(pipe.fileno(), self._feed[:_READ_BYTES]) :]
            done = not self._feed
        except BlockingIOError:
            return
        except BrokenPipeError:
            done = True
        if done:
            self._streams.pop(pipe.fileno(), None)
            pipe.close()
            self._process.stdin = None

    def _has_exited(self) -> bool:
        """Whether the child ended; it stays unreaped, so that its group number is not reused."""
        with self._one_at_a_time:
            if self._process.returncode is not None:
                return True
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, flags) is not None

    def _reap(self) -> None:
        with self._one_at_a_time:
            if self._process.returncode is None:
                self._end_group()

    def _end_group(self) -> None:
        # Wait for the end without reaping, then end the rest of the group, then reap: killing by
        # number is safe only while the number is still taken.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        kill_group(self.pid)
        self.drain()
        self._process.wait()
        self._close()
        supervisor.remove_group(self.pid)

    def _leave(self) -> None:
        """Give the child up. Its group stays registered, and is killed once more when the tool ends."""
        self.left_running = True
        self._process.returncode = -signal.SIGKILL
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._streams.clear()
        if self._exit_fd >= 0:
            os.close(self._exit_fd)
            self._exit_fd = -1
        _LIVE.pop(self.pid, None)


def end_all() -> None:
    """End every child that is still alive."""
    for child in list(_LIVE.values()):
        child.kill()


def signal_name(returncode: int) -> str:
    """How a child ended, in words: "SIGSEGV (segmentation fault)" or "exit code 3"."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        number = signal.Signals(-returncode)
    except ValueError:
        return f"signal {-returncode}"
    return f"{number.name} ({(signal.strsignal(number) or '').lower()})"


def _start(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None,
    pass_fds: Sequence[int],
    feeds: bool,
    merge: bool,
) -> subprocess.Popen[bytes]:
    name, token = supervisor.mark()
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE if feeds else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge else subprocess.PIPE,
        bufsize=0,
        env={**env, name: token},
        cwd=cwd,
        pass_fds=tuple(pass_fds),
        start_new_session=True,
    )
    supervisor.add_group(process.pid)
    return process


def _reader(
    descriptor: int, capture: Capture, streams: dict[int, Callable[[], None]]
) -> Callable[[], None]:
    def read() -> None:
        data = os.read(descriptor, _READ_BYTES)
        if data:
            capture.add(data)
        else:
            streams.pop(descriptor, None)

    return read


def _process_descriptor(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
