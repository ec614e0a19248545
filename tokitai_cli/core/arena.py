"""Memory of arrays that are freed stays with the process, for the next ones."""

from __future__ import annotations

import ctypes
import functools
import sys

# Parameters of mallopt(3), and what they are set to: arrays below this size come from the heap, of
# which there is one for all threads, and so much of it may lie idle at its end before it goes back.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE, _IDLE = 32 << 20, 1 << 30
_state = {"own": False}


def allow() -> None:
    """Let `keep` change this process: it is the tool's own. Others keep their allocator as it is."""
    _state["own"] = True


def keep() -> None:
    """In a process of the tool's own, with glibc: keep what is freed from here on.

    By itself glibc gives arrays from 128 KiB on back to the system at once, and every page of the next
    one is a fault: for temporaries of a chunk these take longer than the arithmetic.
    """
    if _state["own"]:
        _keep()


@functools.cache
def _keep() -> None:
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _IDLE)
        mallopt(_ARENA_MAX, 1)
