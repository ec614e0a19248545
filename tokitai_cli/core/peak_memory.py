"""How much memory this process held at most."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_resident() -> int:
    """Bytes of the largest resident set so far, pages of files that children share included.

    0 where it is not known. Children are not counted, nor what the process was before it began to
    run this program, which getrusage(2) counts too.
    """
    try:
        lines = _STATUS.read_text("utf-8").splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) << 10 if found else 0
