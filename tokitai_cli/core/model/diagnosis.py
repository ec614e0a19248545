"""What is there on this machine: for `tokitai doctor` and `tokitai cache`."""

from __future__ import annotations

import msgspec

from tokitai_cli.core.model.device import Fact, Probe


class Lack(msgspec.Struct, frozen=True):
    """Something that is missing, and how to get it."""

    name: str
    hint: str


class Diagnosis(msgspec.Struct, frozen=True):
    """Devices as probed; facts such as compilers, CPU features and the cache; what is missing."""

    devices: tuple[Probe, ...]
    facts: tuple[Fact, ...] = ()
    lacks: tuple[Lack, ...] = ()


class CacheRow(msgspec.Struct, frozen=True):
    """An artifact in the build cache. `built` in seconds since 1970, `damage` empty for a good one."""

    key: str
    device: str
    source: str
    nbytes: int
    built: float
    damage: str = ""


class CacheListing(msgspec.Struct, frozen=True):
    """The build cache: its folder, the bytes of all its files, its artifacts."""

    folder: str
    nbytes: int
    entries: tuple[CacheRow, ...] = ()
