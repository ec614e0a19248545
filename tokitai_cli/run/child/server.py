"""One child that serves cases, and everything that it may do wrong."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import msgspec
from numpy.typing import NDArray

from tokitai_cli.core.errors import (
    ChildCrashedError,
    ChildTimeoutError,
    InadmissibleError,
    NotRunError,
)
from tokitai_cli.core.fills import fills_of
from tokitai_cli.core.linked_folders import NO_LINKS, LinkedFolders
from tokitai_cli.core.model.case import Case, RunResult
from tokitai_cli.core.model.device import TRAITS
from tokitai_cli.core.model.harness import HarnessRequest
from tokitai_cli.core.process import Captured, Child, signal_name
from tokitai_cli.run.child import damage, frames, overrun, reported
from tokitai_cli.run.child.frames import Answer, GarbageError, Hello
from tokitai_cli.run.child.memory_file import Memory, size_text
from tokitai_cli.run.child.memory_layout import Layout, lay_out

START_SECONDS = 30.0
LOG_BYTES = 64 << 10
# A child that has its request pipe closed ends by itself; this long it is waited for.
END_SECONDS = 0.5
_CHUNK = 1 << 16
_KILLED = "from outside: by a person, or by the operating system when memory runs out"
_TAIL_LINES = 3
# Exit code of the system's loader, which ran nothing of the child.
_NOT_LOADED = 127


class Server:
    """Context manager around the child that serves `harness`; links: of its folder.

    After any error the child is ended; `alive` is then False and a new Server is needed.
    Raises NotRunError where it cannot be started, ChildCrashedError or ChildTimeoutError where it does
    not come up, and InadmissibleError where it says that its device is not there; without `wait` only
    the first use of `hello` or `run` does, so that a device can come up while other work is done.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        harness: HarnessRequest,
        *,
        links: LinkedFolders = NO_LINKS,
        start_timeout: float = START_SECONDS,
        end_timeout: float = END_SECONDS,
        wait: bool = True,
    ) -> None:
        self._harness = harness
        self._links = links
        self._hello: Hello | None = None
        self._start_timeout = start_timeout
        self._end_timeout = end_timeout
        self._number = 0
        self._memory = Memory()
        request_read, self._request = os.pipe()
        self._response, response_write = os.pipe()
        passed = (request_read, response_write, self._memory.descriptor)
        names = ("request", "response", "memory")
        options = [f"--{name}-fd={fd}" for name, fd in zip(names, passed, strict=True)]
        try:
            self._child = Child(
                [*command, *options], env=environment, pass_fds=passed, max_output=LOG_BYTES
            )
        except OSError as error:
            self._close_descriptors()
            reason = error.strerror or str(error)
            raise NotRunError(f"the child cannot be started: {reason}") from error
        finally:
            os.close(request_read)
            os.close(response_write)
        os.set_blocking(self._request, False)
        if wait:
            _ = self.hello

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _schedules(self) -> bool:
        """Whether the orders that were asked for are obeyed: a GPU chooses its own."""
        traits = TRAITS.get(self.hello.device)
        return traits is not None and traits.schedules

    @property
    def hello(self) -> Hello:
        """What the child says of itself; waits for it where it has not come yet."""
        if self._hello is None:
            try:
                self._hello = self._greet(self._start_timeout)
            except BaseException:
                self.close()
                raise
        return self._hello

    @property
    def alive(self) -> bool:
        """Whether the child can take another case."""
        return self._child.returncode is None

    @property
    def log(self) -> Captured:
        """What the child printed since the last case began."""
        printed = self._child.captured()
        return msgspec.structs.replace(printed, text=self._links.text(printed.text))

    def close(self) -> None:
        """End the child: it is asked by the end of its requests, then killed. Views stay valid."""
        self._close_request()
        self._child.wait(self._end_timeout)
        self._child.kill()
        self._close_descriptors()

    def forget(self) -> None:
        """Give back the memory of the last case, whose outputs are zero then."""
        self._memory.forget()

    def run(  # noqa: PLR0913 - each of them is one of the request
        self,
        case: Case,
        arrays: Mapping[str, NDArray[Any]],
        *,
        repetitions: int = 2,
        warmups: int = 0,
        timeout: float = 60.0,
        seed: int = 0,
        kept: Mapping[str, NDArray[Any]] | None = None,
        approximation: int = 0,
        among_zeros: Collection[str] = (),
        one_fill: bool = False,
    ) -> RunResult:
        """Run the case's launch sequence `repetitions` times on `arrays` (inputs, in-outs, symbols).

        `timeout` is in seconds, for all of it; `seed` chooses the schedules; `kept` is what workspaces
        hold that are zeroed once and were before; `among_zeros` names arrays with zeros around them, in
        place of what shows; `one_fill`: all repetitions begin with the same. The outputs of the
        result are views that the next call overwrites.

        Raises ChildCrashedError, ChildTimeoutError, and NotRunError where the memory is not there.
        """
        layout = lay_out(case, repetitions, kept or ())
        self._memory.reserve(layout.nbytes, case.id)
        fills = (0,) * repetitions if one_fill else fills_of(repetitions)
        self._memory.write(layout, arrays, fills, among_zeros)
        self._memory.keep(layout, kept or {})
        seeds = frames.schedule_seeds(repetitions, seed)
        self._number += 1
        payload = frames.run_request(
            case,
            self._harness,
            layout,
            number=self._number,
            warmups=warmups,
            seeds=seeds,
            approximation=approximation,
        )
        _ = self.hello
        self._child.drain()
        self._child.output.clear()
        answer = self._exchange(payload, case, layout, repetitions, timeout)
        self._child.drain()
        return self._result(layout, answer, fills, seeds)

    def _result(
        self, layout: Layout, answer: Answer, fills: tuple[int, ...], seeds: Sequence[int]
    ) -> RunResult:
        """What a run left in the memory, and what the child told of it. One fill a repetition."""
        log, guards = self.log, self._memory.guard_damage(layout, len(fills))
        return RunResult(
            outputs=self._memory.outputs(layout, len(fills)),
            fills=fills,
            times_ns=answer.times_ns,
            guards=damage.with_writer(guards, answer, layout),
            findings=reported.records(
                answer.findings, layout.buffers, f"{self.hello.device} device"
            ),
            inputs_changed=damage.inputs_changed(layout, answer),
            log=log.text,
            log_bytes=log.total_bytes,
            schedules=frames.schedule_names(seeds) if self._schedules else (),
            kept=self._memory.kept(layout),
        )

    def _greet(self, timeout: float) -> Hello:
        try:
            payload = self._receive(time.monotonic() + timeout, timeout, "start")
            hello = frames.read_hello(payload)
        except GarbageError as error:
            self._crash(f"the child broke the protocol: {error}")
        if hello.status != "ok":
            raise InadmissibleError(hello.message or f"the child's device is {hello.status}")
        return hello

    def _exchange(
        self, payload: bytes, case: Case, layout: Layout, repetitions: int, timeout: float
    ) -> Answer:
        """Send one request and take its answer; the child is ended unless all went well."""
        deadline = time.monotonic() + timeout
        try:
            self._send(payload, deadline)
            answer = frames.read_answer(
                self._receive(deadline, timeout, "run"),
                number=self._number,
                repetitions=repetitions,
                buffers=len(layout.buffers),
            )
            answer = frames.with_folders(answer, self._links)
            if answer.status != frames.STATUS_OK:
                self._refuse(answer, case, layout)
        except GarbageError as error:
            self._crash(f"the child broke the protocol: {error}")
        except BaseException:
            self._child.kill()
            raise
        return answer

    def _send(self, payload: bytes, deadline: float) -> None:
        left = memoryview(frames.LENGTH.pack(len(payload)) + payload)
        while left:
            try:
                left = left[os.write(self._request, left) :]
            except BlockingIOError:
                # The child reads slowly: see to its output meanwhile.
                if self._child.wait_readable(self._response, 0.01) == "exited":
                    return
                if time.monotonic() >= deadline:
                    return
            except BrokenPipeError:
                return

    def _receive(self, deadline: float, timeout: float, doing: str) -> bytes:
        """Return the payload of the next frame; raises for every way in which none comes."""
        head = self._read(frames.LENGTH.size, deadline, timeout, doing)
        (length,) = frames.LENGTH.unpack(head)
        if length > frames.MAX_FRAME:
            raise GarbageError(f"it announces a frame of {length} bytes")
        return self._read(length, deadline, timeout, doing)

    def _read(self, count: int, deadline: float, timeout: float, doing: str) -> bytes:
        data = bytearray()
        while len(data) < count:
            state = self._child.wait_readable(self._response, deadline - time.monotonic())
            if state == "timeout":
                self._child.kill()
                raise ChildTimeoutError(
                    f"the child did not {doing} within {timeout:g} s and {self._fate()}"
                    + self._log_tail(),
                    hint="increase --timeout if the kernel is only slow",
                )
            part = (
                b""
                if state == "exited"
                else os.read(self._response, min(count - len(data), _CHUNK))
            )
            if not part:
                self._crash(
                    "", f" in the middle of a frame ({len(data)} of {count} bytes)" if data else ""
                )
            data += part
        return bytes(data)

    def _refuse(self, answer: Answer, case: Case, layout: Layout) -> NoReturn:
        """Raise the error for an answer that is no result."""
        self._child.kill()
        message = answer.message or f"status {answer.status}"
        if answer.status == frames.STATUS_ARGUMENT:
            raise NotRunError(f"{case.id}: an argument does not fit the kernel: {message}")
        if answer.status == frames.STATUS_UNMODELLED:
            raise NotRunError(
                f"{case.id} needs something that is not modelled: {message}",
                hint="docs/gfx.md lists what is executed",
            )
        if answer.status == frames.STATUS_MEMORY:
            raise NotRunError(
                f"{case.id} needs {size_text(layout.nbytes)} of memory: {message}",
                hint="choose a smaller shape or fewer repetitions",
            )
        what = {
            frames.STATUS_LOST: "the device was lost",
            frames.STATUS_BARRIER: "the kernel cannot continue",
            frames.STATUS_FAULT: "the kernel crashed",
        }.get(answer.status, "the runtime reports an error")
        message = overrun.named(message, [one.plan.name for one in layout.buffers])
        array, past = overrun.past_end(message)
        raise ChildCrashedError(f"{what}: {message}{self._log_tail()}", array=array, past=past)

    def _crash(self, message: str, detail: str = "") -> NoReturn:
        """Raise ChildCrashedError; without a `message`, it is how the child ended."""
        ended = not message and self._child.wait(self._end_timeout)
        self._child.kill()
        code = self._child.returncode
        if ended and code is not None:
            how = (
                f"was ended by {signal_name(code)}"
                if code < 0
                else f"ended with {signal_name(code)}"
            )
            message = f"the child {how}{detail or ' without an answer'}"
        elif not message:
            message = f"the child closed its pipe{detail}"
        if self._hello is None and code == _NOT_LOADED:
            raise NotRunError(f"{message} and could not be loaded{self._log_tail()}") from None
        hint = _KILLED if ended and code == -signal.SIGKILL else ""
        raise ChildCrashedError(message + self._log_tail(), hint=hint) from None

    def _fate(self) -> str:
        """What became of a child that was killed."""
        if not self._child.left_running:
            return "was ended"
        return f"cannot be ended: process {self._child.pid} is left to the operating system"

    def _log_tail(self) -> str:
        lines = [line.strip() for line in self.log.text.splitlines() if line.strip()]
        return f"; it printed: {' / '.join(lines[-_TAIL_LINES:])[-400:]}" if lines else ""

    def _close_request(self) -> None:
        if self._request >= 0:
            with contextlib.suppress(OSError):
                os.close(self._request)
            self._request = -1

    def _close_descriptors(self) -> None:
        self._close_request()
        if self._response >= 0:
            os.close(self._response)
            self._response = -1
        self._memory.close()
