"""What is there on this machine: for `tokitai doctor` and `tokitai cache`."""

from __future__ import annotations

import dataclasses

from tokitai_cli.model.device import Fact, Probe


@dataclasses.dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing, and how to get it."""

    name: str
    mend: str


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnosis:
    """Devices as probed; facts such as compilers, CPU features and the cache; what is missing."""

    devices: tuple[Probe, ...]
    facts: tuple[Fact, ...] = ()
    lacks: tuple[Lack, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class CacheRow:
    """An artifact in the build cache. `built` in seconds since 1970, `damage` empty for a good one."""

    key: str
    device: str
    source: str
    nbytes: int
    built: float
    damage: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CacheListing:
    """The build cache: its folder, the bytes of all its files, its artifacts."""

    folder: str
    nbytes: int
    entries: tuple[CacheRow, ...] = ()
