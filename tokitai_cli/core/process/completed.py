"""Running a program to its end: compilers, probes and oracles."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.core.process.child import Child

_CANNOT_START = 127
_TICK_SECONDS = 1.0


class Completed(msgspec.Struct, frozen=True):
    """A program that ended."""

    #: Exit code, negative for a signal, 127 where the program could not be started (then `stderr`
    #: says why). `timed_out`: it outlived its limit and was killed with its group.
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    truncated: bool
    timed_out: bool = False


def run(  # noqa: PLR0913 - one keyword for each thing that a caller may want of a program
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float,
    stdin: bytes | None = None,
    max_output: int = 8 << 20,
    pass_fds: Sequence[int] = (),
    waiting: Callable[[float], None] | None = None,
) -> Completed:
    """Run `argv` in a process group of its own; all of the group is gone when this returns.

    `env` is the whole environment. `timeout` is in seconds. Of each of stdout and stderr the first
    and last `max_output` / 2 bytes are kept. `waiting` is told the seconds so far about once a second.
    Never raises for a program that fails.
    """
    begun = begin(argv, env=env, cwd=cwd, stdin=stdin, max_output=max_output, pass_fds=pass_fds)
    return begun(timeout, waiting)


def begin(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes | None = None,
    max_output: int = 8 << 20,
    pass_fds: Sequence[int] = (),
) -> Callable[..., Completed]:
    """Start what `run` runs; what is returned waits for its end, at most `timeout` seconds from then."""
    start = time.monotonic()
    try:
        child = Child(
            argv,
            env=env,
            cwd=cwd,
            stdin=stdin,
            merge=False,
            max_output=max_output,
            pass_fds=pass_fds,
        )
    except OSError as error:
        reason = f"cannot start {argv[0]}: {error.strerror or error}"
        failed = Completed(_CANNOT_START, "", reason, time.monotonic() - start, truncated=False)
        return lambda timeout, waiting=None: failed

    def end(timeout: float, waiting: Callable[[float], None] | None = None) -> Completed:
        with child:
            timed_out = not _wait(child, timeout, waiting)
        output, errors = child.output.result(), child.errors.result()
        returncode = child.returncode
        return Completed(
            _CANNOT_START if returncode is None else returncode,
            output.text,
            errors.text,
            time.monotonic() - start,
            output.truncated or errors.truncated,
            timed_out,
        )

    return end


def _wait(child: Child, timeout: float, waiting: Callable[[float], None] | None) -> bool:
    """Whether the child ended within `timeout` seconds."""
    if waiting is None:
        return child.wait(timeout)
    start = time.monotonic()
    while not child.wait(min(_TICK_SECONDS, start + timeout - time.monotonic())):
        spent = time.monotonic() - start
        if spent >= timeout:
            return False
        waiting(spent)
    return True
