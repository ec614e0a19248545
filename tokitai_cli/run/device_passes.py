"""Passes of a run over its cases: each on a device, plainly or under a tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from tokitai_cli.core.model.batch_record import BuildInfo
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import Device, Probe
from tokitai_cli.core.model.evidence import DeviceRecord
from tokitai_cli.run.case_outcome import CaseOutcome
from tokitai_cli.run.case_run import RunContext
from tokitai_cli.run.device_session import Built
from tokitai_cli.run.prepare import Preparation
from tokitai_cli.run.session import Session

# Cases that run together, each prepared once for all devices and passes that it meets.
CaseGroup = Sequence[Preparation]


class DevicePass(Protocol):
    """One way in which cases meet a device: as they are, or under a tool."""

    name: str

    def outcomes(self, lot: CaseGroup) -> list[CaseOutcome]:
        """Outcome of each case."""

    @property
    def builds(self) -> Iterable[BuildInfo]:
        """Everything that was built so far."""

    @property
    def record(self) -> DeviceRecord:
        """The device, as far as it is known by now."""


class DevicePasses(msgspec.Struct, frozen=True):
    """A device, and the passes over each case on it; their outcomes are one in the evidence."""

    device: str
    passes: tuple[DevicePass, ...]


class PlainPass:
    """Cases one after the other, in one child where they share an artifact."""

    def __init__(self, session: Session, subject: RunContext, device: Device, probe: Probe) -> None:
        self.name = device.name
        self._session = session
        self._subject = subject
        self._device = session.device(device, probe)

    def outcomes(self, lot: CaseGroup) -> list[CaseOutcome]:
        """Outcome of each case."""
        run = self._session.run
        return [run(self._subject, one.case, self._device, one) for one in lot]

    def only_build(self, cases: Iterable[Case]) -> Iterable[Built]:
        """Build for the cases, which are not run."""
        return map(self._device.built, cases)

    @property
    def builds(self) -> Iterable[BuildInfo]:
        """Everything that was built so far."""
        return [built.info for built in self._device.builds]

    @property
    def record(self) -> DeviceRecord:
        """The device, with what its runtime told."""
        return self._device.record
