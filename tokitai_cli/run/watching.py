"""Cases in the watched build of the cpu device, beside a run on any device."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Self

import msgspec

from tokitai_cli import devices
from tokitai_cli.core.errors import TokitaiError
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.device import (
    SANITIZED,
    WARP_SIZES,
    Device,
    Probe,
    Sanitizer,
    warp_size_of,
)
from tokitai_cli.core.model.events import silent
from tokitai_cli.core.model.settings import Settings
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.core.model.wording import error_line
from tokitai_cli.run.case_record import ended, new_record
from tokitai_cli.run.case_run import RunContext
from tokitai_cli.run.device_session import device_record
from tokitai_cli.run.evidence_builder import Watched
from tokitai_cli.run.prepare import Preparation
from tokitai_cli.run.run_options import RunOptions
from tokitai_cli.run.sanitizing import LoggedPass, with_tools
from tokitai_cli.run.telling import telling_cases

_DEVICE = SANITIZED[0]
# Of a case, where nobody asked for the watch: what takes longer is left to `sanitize`.
_SECONDS = 10.0
# Between looks at whether a thread has ended, so that an interrupt is heard.
_WAIT_SECONDS = 0.1


class WatchBeside:
    """Context manager: watches cases on a thread of its own, while others are judged."""

    def __init__(
        self, options: RunOptions, cases: Sequence[Case], chosen: Sequence[tuple[Device, Probe]]
    ) -> None:
        """options: of the run. cases: what it selects. chosen: where it runs."""
        full = options.watch == "full"
        self._cases = list(cases) if full else telling_cases(cases)
        settings = _settings(options.settings, *chosen[0])
        # Each record says how `sanitize` shows its finding again.
        self._options = msgspec.structs.replace(
            options, settings=settings, device=_DEVICE, verb="sanitize", watch="off"
        )
        timeout = settings.timeout if full else min(options.settings.timeout, _SECONDS)
        self._settings = msgspec.structs.replace(settings, timeout=timeout)
        self._found: Watched | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves a thread that nobody has waited for; its children end with the tool."""

    def result(self) -> Watched:
        """What it came to, at its end; raises what kept it from a beginning."""
        while self._thread.is_alive():
            self._thread.join(_WAIT_SECONDS)
        if self._error is not None:
            raise self._error
        assert self._found is not None
        return self._found

    def _work(self) -> None:
        try:
            device, tool = devices.watch_beside()
            probe = device.probe(self._settings)
        except Exception as error:  # noqa: BLE001 - told by who asks for the result
            self._error = error
            return
        why = probe.missing
        try:
            if probe.available:
                self._found = self._watched(device, probe, tool)
        except TokitaiError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run itself stands
            why = f"a fault of tokitai, {error_line(error)}"
        if self._found is None:
            records = [new_record(case, _DEVICE, self._options) for case in self._cases]
            records = [ended(one, Verdict.NOT_RUN, Stage.RUN, why) for one in records]
            self._found = Watched(records, device=device_record(device, probe))

    def _watched(self, device: Device, probe: Probe, tool: Sanitizer) -> Watched:
        subject = RunContext(self._options, sources={}, oracles={})
        found = with_tools(probe, (tool,))
        watch = LoggedPass(subject, device, found, tool, self._settings, silent)
        lot = [Preparation(case, self._settings) for case in self._cases]
        records = [one.record for one in watch.outcomes(lot)]
        return Watched(records, list(watch.builds), watch.record)


def _settings(settings: Settings, device: Device, probe: Probe) -> Settings:
    """Those of the watch: a watched kernel takes ten to a hundred times longer.

    device: where the run itself is, whose lanes the watch has too.
    """
    lanes = warp_size_of(device.name, probe.arch, settings)
    there = device.name != _DEVICE
    arch = settings.arch or (probe.arch if there else "")  # rules of AMD's GPUs are their own
    return msgspec.structs.replace(
        settings,
        arch=arch if not there or arch.startswith("gfx") else "",
        warp_size=(0 if lanes == WARP_SIZES[0] else lanes) if there else settings.warp_size,
        timeout=10 * settings.timeout,
    )
