"""Progress events: what the pipeline tells while it works. Consumers must not affect the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tokitai_cli.model.evidence import CaseRecord


@dataclasses.dataclass(frozen=True, slots=True)
class RunPlanned:
    """The options were resolved: what will run where."""

    cases: int
    devices: tuple[str, ...]
    left_out: int


@dataclasses.dataclass(frozen=True, slots=True)
class BuildStarted:
    """A compiler starts; `notice` says what to expect where it takes long."""

    device: str
    source: str
    notice: str


@dataclasses.dataclass(frozen=True, slots=True)
class BuildFinished:
    """An artifact is ready. `note` tells of a damaged cache entry that was rebuilt."""

    device: str
    source: str
    cached: bool
    seconds: float
    note: str


@dataclasses.dataclass(frozen=True, slots=True)
class CaseStarted:
    """A case begins; `position` counts from 1."""

    case_id: str
    device: str
    position: int
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class CaseFinished:
    """A case has its verdict."""

    record: CaseRecord
    position: int
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """Something a user should know that is no verdict."""

    text: str


Event = RunPlanned | BuildStarted | BuildFinished | CaseStarted | CaseFinished | Note
Listener = Callable[[Event], None]
