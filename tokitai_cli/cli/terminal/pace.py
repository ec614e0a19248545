"""How long what is left may take, at the pace of the cases that ended."""

from __future__ import annotations

from collections.abc import Callable

from tokitai_cli.core.model.events import AllPlanned, CaseFinished, CaseStarted, Event, RunPlanned


class Pace:
    """Counts the cases of one run, or of several that were planned together. `clock`: seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._all = False
        self._planned = 0
        self._done = 0
        self._begun: float | None = None

    def add(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, AllPlanned):
            self._all, self._planned = True, event.cases
        elif isinstance(event, RunPlanned) and not self._all:
            self._planned = event.cases * max(len(event.devices), 1)
        elif isinstance(event, CaseStarted) and self._begun is None:
            self._begun = self._clock()
        elif isinstance(event, CaseFinished):
            self._done += 1

    def remaining(self) -> str:
        """Text such as ", 0:11 left"; empty before a case ended, and where none is left."""
        if self._begun is None or not 0 < self._done < self._planned:
            return ""
        spent = self._clock() - self._begun
        return f", {clock_text(spent / self._done * (self._planned - self._done))} left"


def clock_text(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
