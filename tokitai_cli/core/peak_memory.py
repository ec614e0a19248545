"""How much memory this process held at most, its worker processes (`core.workers`) included."""

from __future__ import annotations

from pathlib import Path

_STATUS, _SHARES = Path("/proc/self/status"), Path("/proc/self/smaps_rollup")
# Of memory: what is of no file.
_KINDS = ("Anon", "Shmem")
# Bytes that this process and its workers held at most until workers ended last.
_state = {"with workers": 0}


def peak_resident() -> int:
    """Bytes of the largest resident set so far, pages of files that children share included.

    0 where it is not known. Other children than workers are not counted, nor what the process was
    before it began to run this program, which getrusage(2) counts too.
    """
    return max(_told(_STATUS, "VmHWM"), _state["with workers"])


def share() -> int:
    """Bytes of no file that this process holds now: of what others hold too its share."""
    known = _told(_SHARES, *(f"Pss_{kind}" for kind in _KINDS))
    return known or _own()


def count_beside(held: int) -> None:
    """Workers, which are all there yet, hold so much by their shares.

    What they hold they keep, so that it is added to this process's largest set.
    """
    found = _told(_STATUS, "VmHWM") + held + share() - _own()
    _state["with workers"] = max(_state["with workers"], found)


def _own() -> int:
    return _told(_STATUS, *(f"Rss{kind}" for kind in _KINDS))


def _told(file: Path, *names: str) -> int:
    """What the system says there in kB, as bytes, all names together."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError:
        return 0
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    return sum(int(told[name].split()[0]) << 10 for name in names if name in told)
