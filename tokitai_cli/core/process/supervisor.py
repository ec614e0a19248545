"""The supervisor: a small `sh` that outlives the tool just long enough to clean up after it.

It reads entries from a pipe that only the tool holds. When the pipe closes, in whatever way the tool
died, it kills every process group that is still registered, then whatever still carries this tool's
mark in its environment (a child that was started but not yet registered, or that left its group),
and removes the registered temporary folders.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import signal
import subprocess
import threading
from pathlib import Path

MARK = "TOKITAI_SUPERVISED"

# POSIX sh. The argument is the mark: told by the pipe it would be empty where the tool dies first, and
# an empty mark is found in every process there is. What is registered are the positional parameters
# ("g" + process group, "d" + folder). A child that left its group is found by its mark. The second sweep
# catches one that was between fork and exec during the first, and one within exec, whose environment
# is empty for a moment: after an orderly end, too.
_SCRIPT = r"""
trap '' HUP INT TERM QUIT PIPE
mark=${1:?}
shift
while IFS= read -r line; do
  case $line in
    +*) set -- "$@" "${line#+}" ;;
    -*) left=$#
        while [ "$left" -gt 0 ]; do
          [ "$1" = "${line#-}" ] || set -- "$@" "$1"
          shift
          left=$((left - 1))
        done ;;
  esac
done
sweep() {
  for entry; do
    case $entry in g*) kill -KILL "-${entry#g}" ;; esac
  done
  for found in $(grep -ls "$mark" /proc/[0-9]*/environ); do
    found=${found#/proc/}
    kill -KILL "${found%/environ}"
  done
  for entry; do
    case $entry in d/*) rm -rf -- "${entry#d}" ;; esac
  done
}
sweep "$@"
sleep 0.2
sweep "$@"
"""


class Supervisor:
    """Handle of the supervising `sh`; started by the first registration, one per process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._token = ""
        self._entries: set[str] = set()

    def mark(self) -> tuple[str, str]:
        """Environment variable that a child carries so that the supervisor knows it as ours."""
        with self._lock:
            self._start()
            return MARK, self._token

    def add_group(self, group: int) -> None:
        """Register a process group."""
        self._add(f"g{group}")

    def remove_group(self, group: int) -> None:
        """Forget a group whose processes are gone."""
        self._remove(f"g{group}")

    def add_folder(self, folder: Path) -> None:
        """Register a folder to be removed. It need not exist yet."""
        text = str(folder)
        if not folder.is_absolute() or "\n" in text or len(folder.parts) < 3:
            raise ValueError(f"not a folder that may be removed: {text!r}")
        self._add(f"d{text}")

    def remove_folder(self, folder: Path) -> None:
        """Forget a folder that is gone or is to stay."""
        self._remove(f"d{folder}")

    def folders(self) -> list[Path]:
        """Folders that are registered now."""
        with self._lock:
            return [Path(entry[1:]) for entry in self._entries if entry.startswith("d")]

    def stop(self) -> None:
        """Let the supervisor end; it cleans up what is left. The tool's end does not wait for it."""
        with self._lock:
            process, self._process = self._process, None
            if process is None or self._owner != os.getpid():
                return
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            # It goes on by itself for some milliseconds; Popen must not warn about that.
            process.returncode = 0

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner == os.getpid():
            return self._process
        if self._owner != os.getpid():  # a fork of the tool has children of its own
            self._owner = os.getpid()
            self._token = secrets.token_hex(16)
            self._entries.clear()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "tokitai-supervisor", f"{MARK}={self._token}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            cwd="/",
            start_new_session=True,
        )
        # One write, so that a new supervisor knows everything that an old one knew.
        _write(self._process, "".join(f"+{entry}\n" for entry in sorted(self._entries)))
        return self._process

    def _add(self, entry: str) -> None:
        with self._lock:
            process = self._start()
            self._entries.add(entry)
            self._tell(process, f"+{entry}\n")

    def _remove(self, entry: str) -> None:
        with self._lock:
            if entry in self._entries and self._process is not None:
                self._entries.discard(entry)
                self._tell(self._process, f"-{entry}\n")

    def _tell(self, process: subprocess.Popen[bytes], lines: str) -> None:
        try:
            _write(process, lines)
        except BrokenPipeError:
            # Somebody killed the supervisor: the next one is told all entries when it starts.
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
            self._process = None
            self._start()


def _write(process: subprocess.Popen[bytes], lines: str) -> None:
    if process.stdin is not None:
        data = memoryview(os.fsencode(lines))
        while data:
            data = data[os.write(process.stdin.fileno(), data) :]


supervisor = Supervisor()


def kill_group(group: int) -> None:
    """Send SIGKILL to every process of the group; a group that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


atexit.register(supervisor.stop)
