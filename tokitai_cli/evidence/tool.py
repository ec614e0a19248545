"""What ran: the tool, its commit, its libraries; and the clock as reports show it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tokitai_cli.core import resources
from tokitai_cli.core.errors import UsageError
from tokitai_cli.core.model.evidence import SourceRecord, ToolRecord
from tokitai_cli.core.version import __version__

# Files that a run depends on. Others, such as a user's own spec in the checkout, are evidence by
# their content and do not make the tool another one.
_SHIPPED = ("tokitai_cli", "kernels", "specs", "reports/templates")
_GIT_SECONDS = 5.0
_MOST_TEXT_BYTES = 1 << 20


def tool_record() -> ToolRecord:
    """Describe the tool on this machine."""
    return begin_tool_record()()


def begin_tool_record() -> Callable[[], ToolRecord]:
    """Ask git, where the tool runs from a checkout; what is returned waits for its answer."""
    commit = begin_commit(os.environ)

    def record() -> ToolRecord:
        import numpy as np  # not needed to read or render evidence

        system = os.uname()
        return ToolRecord(
            name="tokitai",
            version=__version__,
            commit=commit(),
            python=f"{sys.implementation.name} {sys.version.split()[0]}",
            numpy=np.__version__,
            platform=f"{system.sysname} {system.release} {system.machine}",
        )

    return record


def begin_commit(environ: Mapping[str, str]) -> Callable[[], str]:
    """Commit of the checkout that the tool runs from, as git is asked for it now.

    "-dirty" is appended where a shipped file differs from the commit or is not in it; "" outside a
    checkout; "unknown" where git cannot say. The answer is always git's own: reading .git/HEAD
    would be faster by some milliseconds, and could call a changed tool clean.
    """
    top = resources.checkout()
    if top is None:
        return str
    from tokitai_cli.core import process

    # Variables such as GIT_DIR would point git at another repository.
    kept = {key: value for key, value in environ.items() if not key.startswith("GIT_")}
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", "status"]
    command += ["--porcelain=v2", "--branch", "--untracked-files=normal", "--", *_SHIPPED]
    begun = process.begin(command, env={**kept, "LC_ALL": "C"}, cwd=top)

    def commit() -> str:
        done = begun(_GIT_SECONDS)
        ended = done.returncode == 0 and not done.timed_out
        return _read_status(done.stdout) if ended else "unknown"

    return commit


def _read_status(text: str) -> str:
    """Commit out of `git status --porcelain=v2 --branch` (git-status(1), Porcelain Format v2)."""
    name, dirty = "unknown", False
    for line in text.splitlines():
        if line.startswith("# branch.oid "):
            name = line.removeprefix("# branch.oid ")
        elif not line.startswith("#"):
            dirty = True
    if name in ("unknown", "(initial)"):
        return "unknown"
    return f"{name}-dirty" if dirty else name


def source_record(path: str, data: bytes) -> SourceRecord:
    """A file with its content, which is left out where it is no text or above 1 MiB."""
    is_kept = b"\0" not in data and len(data) <= _MOST_TEXT_BYTES
    text = data.decode("utf-8", "replace") if is_kept else None
    return SourceRecord(path=path, bytes=len(data), text=text)


def timestamp(environ: Mapping[str, str], now: float | None = None) -> str:
    """`now` (seconds since 1970, default the clock) as ISO 8601 in UTC, to the second.

    SOURCE_DATE_EPOCH takes its place where it is set (reproducible-builds.org/specs).
    Raises UsageError where that is no count of seconds.
    """
    epoch = environ.get("SOURCE_DATE_EPOCH", "")
    if epoch:
        if not (epoch.isascii() and epoch.isdigit() and int(epoch) < 253402300800):
            raise UsageError(
                f"SOURCE_DATE_EPOCH is {epoch!r}, not a count of seconds since 1970",
                hint="set it to an integer such as 1700000000, or unset it",
            )
        seconds = float(int(epoch))
    else:
        seconds = time.time() if now is None else now
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
