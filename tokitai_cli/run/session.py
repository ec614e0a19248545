"""Runs cases of any specs: for `verify` and `sanitize`, for the workers of a batch, and for pytest."""

from __future__ import annotations

from typing import Self

from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import Device, Probe
from tokitai_cli.core.model.events import Listener, silent
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.run import child
from tokitai_cli.run.case_outcome import CaseOutcome
from tokitai_cli.run.case_run import RunContext, run_case
from tokitai_cli.run.device_session import Built, DeviceSession
from tokitai_cli.run.prepare import Preparation


class Session:
    """Context manager over devices, each with its artifacts and one child at a time.

    All cases run with the same settings. Use it from one thread. `end_timeout` is how long, in seconds,
    a child may take to end by itself.
    """

    def __init__(
        self,
        settings: Settings,
        listener: Listener = silent,
        *,
        end_timeout: float = child.END_SECONDS,
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._end_timeout = end_timeout
        self._devices: dict[str, DeviceSession] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def builds(self) -> list[Built]:
        """What cases were served by, or could not be built for them, so far."""
        return [built for device in self._devices.values() for built in device.builds]

    def device(self, device: Device, probe: Probe | None = None) -> DeviceSession:
        """The device in this session, probed where nobody has done so yet."""
        if device.name not in self._devices:
            found = device.probe(self._settings) if probe is None else probe
            self._devices[device.name] = DeviceSession(
                device, found, self._settings, self._listener, end_timeout=self._end_timeout
            )
        return self._devices[device.name]

    def run(
        self,
        subject: RunContext,
        case: Case,
        device: DeviceSession,
        prepared: Preparation | None = None,
    ) -> CaseOutcome:
        """Verdict of the case on the device; `prepared` where it met another one before."""
        prepared = prepared or Preparation(case, self._settings, later=not subject.all_arrays)
        return run_case(subject, case, device, prepared)

    def close(self) -> None:
        """End the children."""
        for device in self._devices.values():
            device.replace()
