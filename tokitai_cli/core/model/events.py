"""Progress events: what a run tells while it works. Consumers must not affect the run."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from tokitai_cli.core.model.evidence import CaseRecord


class RunPlanned(msgspec.Struct, frozen=True):
    """The options were resolved: what will run where."""

    cases: int
    devices: tuple[str, ...]
    left_out: int


class AllPlanned(msgspec.Struct, frozen=True):
    """Several runs were planned, one after the other: the cases of all of them."""

    cases: int
    runs: int


class BuildStarted(msgspec.Struct, frozen=True):
    """A compiler starts; `notice` says what to expect where it takes long."""

    device: str
    source: str
    notice: str


class BuildRunning(msgspec.Struct, frozen=True):
    """A compiler is still at work after `seconds`; comes about once a second."""

    device: str
    source: str
    seconds: float


class BuildFinished(msgspec.Struct, frozen=True):
    """An artifact is ready. `note` tells of a damaged cache entry that was rebuilt."""

    device: str
    source: str
    cached: bool
    seconds: float
    note: str


class CaseStarted(msgspec.Struct, frozen=True):
    """A case begins; `position` counts from 1."""

    case_id: str
    device: str
    position: int
    total: int


class CaseFinished(msgspec.Struct, frozen=True):
    """A case has its verdict."""

    record: CaseRecord
    position: int
    total: int


class Note(msgspec.Struct, frozen=True):
    """Something a user should know that is no verdict."""

    text: str


Event = (
    RunPlanned | AllPlanned | BuildStarted | BuildRunning | BuildFinished | CaseStarted | CaseFinished
    | Note
)  # fmt: skip
Listener = Callable[[Event], None]


def one_at_a_time(listener: Listener) -> Listener:
    """The listener for several threads."""
    lock = threading.Lock()

    def told(event: Event) -> None:
        with lock:
            listener(event)

    return told


def silent(event: Event) -> None:
    """A listener that tells nobody."""
