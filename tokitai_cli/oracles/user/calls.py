"""Calls of users' Python, each in a fork of a process with numpy loaded.

A function may crash, hang, or change what it finds; none of it reaches the tool or another call. The
process that forks is started by the first call, lives as long as the tool, and is started anew when it
dies. Arrays travel as .npy files without pickling.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import storage
from tokitai_cli.core.errors import NotRunError
from tokitai_cli.core.model.wording import shortened
from tokitai_cli.core.process import Child, kill_group, signal_name
from tokitai_cli.oracles.output_parts import OutputParts
from tokitai_cli.oracles.user import fork_server
from tokitai_cli.oracles.user.imported import file_of, files_of, imports_of
from tokitai_cli.oracles.user.loading import ANSWER

START_SECONDS = 60.0
# Pipes are closed a little before a process is gone.
_END_SECONDS = 10.0
_MOST_PRINTED = 1 << 20
_MOST_ANSWER = 64 << 20
_MOST_TOLD = 400
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
# Where numpy and the tool lie, which `python -I` may not know.
_PLACES = (Path(np.__file__).resolve().parents[1], Path(fork_server.__file__).resolve().parents[3])


class Function(msgspec.Struct, frozen=True):
    """`name` of `file`, and every file beside it that belongs to it, its own first."""

    file: Path
    name: str
    modules: Sequence[Path]


def function_of(name: str, folder: Path) -> Function:
    """The function that `file.py:function` of a spec in `folder` names."""
    return Function(file_of(name, folder), name.rpartition(":")[2], files_of(name, folder))


class Called(msgspec.Struct, frozen=True):
    """What came of a call: its answer (None without one), what it printed, and else how it ended."""

    answer: dict[str, Any] | None
    printed: str
    ended: str = ""


def call(
    asks: str,
    function: Function,
    arrays: Mapping[str, NDArray[Any]],
    more: Mapping[str, Any],
    *,
    folder: Path,
    timeout: float,
) -> Called:
    """Let `asks` ("oracle", "draw") be done with the function and copies of `arrays`, in `timeout` s.

    `folder` is a temporary one, for this call alone; arrays of the answer stay there. `more` is what
    else the request says. Raises NotRunError where no process can be had.
    """
    request = {
        "asks": asks,
        "file": str(function.file.resolve()),
        "function": function.name,
        "modules": [str(path.resolve()) for path in function.modules],
        "imports": imports_of(function.modules, function.file.parent),
        "inputs": _write(arrays, folder),
        "seconds": timeout,
        **more,
    }
    (folder / fork_server.REQUEST).write_text(json.dumps(request), encoding="utf-8")
    ended, printed = _forked(folder, timeout)
    answer = read_answer(folder / ANSWER, dict)
    if answer is not None and not _is_formed(answer, asks):
        answer, ended = None, f"left an {ANSWER} of its own; it must return its answer"
    return Called(answer, printed.strip(), ended)


def _is_formed(answer: Mapping[str, Any], asks: str) -> bool:
    """Whether an answer has the form of the tool's own, and names files of its folder alone."""
    if isinstance(answer.get("failure"), str):
        return True
    try:
        if asks == "draw":
            files = [msgspec.convert(answer.get("array"), str)]
        else:
            outputs = output_files(answer)
            files = [file for parts in outputs.values() for _, file in parts.given()]
    except msgspec.ValidationError:
        return False
    return all(file == Path(file).name and file.endswith(".npy") for file in files)


def output_files(answer: Mapping[str, Any]) -> dict[str, OutputParts[str]]:
    """Files of each output in an oracle's answer. Raises msgspec.ValidationError."""
    return msgspec.convert(answer.get("outputs"), dict[str, OutputParts[str]])


def read_answer(path: Path, kind: type) -> Any:
    """Content of a file of a call's; None where it is not there, or no `kind`."""
    try:
        content = json.loads(storage.read_plain(path, _MOST_ANSWER))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, kind) else None


def _write(arrays: Mapping[str, NDArray[Any]], folder: Path) -> list[dict[str, str]]:
    entries = []
    for number, (name, array) in enumerate(arrays.items()):
        # .npy names no dtype of ml_dtypes: the child gets the bits.
        known = array.dtype.isbuiltin == 1
        stored = array if known else array.view(f"u{array.dtype.itemsize}")
        np.save(folder / f"input-{number}.npy", stored, allow_pickle=False)
        entries.append({"name": name, "dtype": array.dtype.name, "file": f"input-{number}.npy"})
    return entries


class _GoneError(Exception):
    """The forking process is gone before it forked; says how."""


class _Forker:
    """The process that forks; it serves one call at a time. `alive`: it can take another one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.owner = os.getpid()
        self.alive = True
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        script = str(Path(fork_server.__file__).resolve())
        # Isolated from the environment, except for its word on writing bytecode.
        flags = ("-I", "-B") if sys.dont_write_bytecode else ("-I",)
        try:
            self._child = Child(
                (sys.executable, *flags, script, str(requests), str(answers), *map(str, _PLACES)),
                env=environment,
                cwd=Path("/"),
                pass_fds=(requests, answers),
                merge=False,
                max_output=_MOST_PRINTED,
            )
        except BaseException:
            self.forget()
            raise
        finally:
            os.close(requests)
            os.close(answers)

    def call(self, folder: Path, timeout: float) -> str:
        """Words for the end of a call that gave no answer. Raises _GoneError where it never began."""
        for stream in (self._child.output, self._child.errors):
            stream.clear()
        self._ask(os.fsencode(folder))
        pid = self._number(START_SECONDS)
        while pid == 0:  # it has only now started
            pid = self._number(START_SECONDS)
        if pid is None:
            raise _GoneError(self._fate() or f"no answer in {START_SECONDS:g} s")
        if pid < 0:
            lack = os.strerror(-pid)
            raise NotRunError(f"no process can be started: {lack}")
        code = None
        try:
            code = self._number(timeout)
        finally:
            if code is None:  # unreaped as long as it is not asked to be
                kill_group(pid)
                self.alive = False
            else:
                self._ask(b"")
        how = f"signal {-(code or 0)}" if (code or 0) < 0 else f"exit {code}"
        if code is None:
            how = self._fate()
        if not how:
            hint = "increase --timeout, or use a shape with a shorter axis"
            return f"gave no answer in {timeout:g} s and was stopped; {hint}"
        return f"its process ended without an answer ({how})"

    def _ask(self, request: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._requests, request + fork_server.END)

    def printed(self) -> str:
        """What came on stdout and stderr since the last call began."""
        self._child.drain()
        return self._child.output.result().text + self._child.errors.result().text

    def has_ended(self) -> bool:
        """Whether it was ended, by this tool or from outside."""
        return self._child.wait(0.0)

    def end(self) -> None:
        """End it."""
        self.alive = False
        self._child.kill()
        self.forget()

    def forget(self) -> None:
        """Close the pipes; it then ends by itself."""
        os.close(self._requests)
        os.close(self._answers)

    def _number(self, seconds: float) -> int | None:
        """The next number that it tells; None where none comes in time, or it is gone."""
        state = self._child.wait_readable(self._answers, seconds)
        data = os.read(self._answers, fork_server.NUMBER.size) if state == "ready" else b""
        if len(data) == fork_server.NUMBER.size:
            return int(fork_server.NUMBER.unpack(data)[0])
        if state != "timeout":
            self._child.wait(_END_SECONDS)
        return None

    def _fate(self) -> str:
        """How it ended; empty where it runs."""
        return signal_name(self._child.returncode or 0) if self.has_ended() else ""


_IDLE: list[_Forker] = []


def _forked(folder: Path, timeout: float) -> tuple[str, str]:
    """How a call in `folder` ended, and what it printed; one that never began is tried once more."""
    for last in (False, True):
        forker = _take()
        try:
            ended = forker.call(folder, timeout)
            return ended, forker.printed()
        except _GoneError as error:
            forker.alive = False
            if last:
                told = shortened(" ".join(forker.printed().split()), _MOST_TOLD)
                raise NotRunError(f"Python cannot be started: {error}; {told}") from error
        except BaseException:
            forker.alive = False
            raise
        finally:
            if forker.alive:
                _IDLE.append(forker)
            else:
                forker.end()
    raise AssertionError


def _take() -> _Forker:
    """One that no other thread uses, in today's environment; a new one where there is none.

    What a run leaves behind that is cut short, in this process, are as many that have been ended as
    threads had called.
    """
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    while _IDLE:
        forker = _IDLE.pop()
        if forker.owner != os.getpid():
            forker.forget()
        elif forker.environment != environment or forker.has_ended():
            forker.end()
        else:
            return forker
    return _Forker(environment)
