"""Progress of a run on stderr: one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from tokitai_cli.cli.terminal.pace import Pace
from tokitai_cli.cli.terminal.run_summary import verdict_style
from tokitai_cli.cli.terminal.streams import emit, is_terminal, show, styled, terminal
from tokitai_cli.cli.terminal.styled_blocks import DOUBTFUL, FAINT, Line
from tokitai_cli.core.model.events import (
    AllPlanned,
    BuildFinished,
    BuildRunning,
    BuildStarted,
    CaseFinished,
    CaseStarted,
    Event,
    Note,
    RunPlanned,
)
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import plural
from tokitai_cli.evidence.queries import FINE

if TYPE_CHECKING:
    from rich.live import Live


# Between lines that tell of a compiler at work where no line can change in place.
_BUILD_LINE_SECONDS = 15
# Runs of so many cases say at most a line in so many seconds where no line can change in place.
MANY_CASES = 20
LINE_SECONDS = 10.0


class Progress:
    """A listener of events, and a context manager that leaves the terminal as it was.

    It never raises: a closed or full stderr must not change a verdict. Nothing is drawn by a
    thread, since that would disturb the timing of kernels on the same cores.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        many: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`many`: several runs of few cases each are one of many. `clock`: seconds."""
        self._stream = sys.stderr if stream is None else stream
        self._silent = quiet
        self._live: Live | None = None
        self._build_lines = 0
        self._long_build = False
        self._many = many
        self._clock = clock
        self._line_at: float | None = None
        self._pace = Pace(clock)
        self._failing = 0
        self._noted: set[str] = set()

    def __enter__(self) -> Self:
        if not self._silent and is_terminal(self._stream):
            from rich.live import Live

            self._live = Live(
                console=terminal(self._stream),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._guarded(self._live.start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._guarded(self._live.stop)
            self._live = None

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if not self._silent:
            self._guarded(lambda: self._show(event))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (OSError, ValueError):  # stderr is gone; the run is not
            self._silent = True

    def _show(self, event: Event) -> None:
        self._pace.add(event)
        if isinstance(event, CaseFinished) and event.record.verdict is Verdict.INADMISSIBLE:
            return  # the same for all cases of a device: the summary tells it once
        if isinstance(event, BuildStarted):
            self._build_lines = 0
            self._long_build = bool(event.notice)
        many = self._is_of_many(event)
        # Where each case has a line of its own, its end is in sight.
        left = self._pace.remaining() if many or self._live is not None else ""
        text, lasting, style = _words(event, left)
        if self._live is None and many:
            self._few(event, Line(text, style))
        elif self._live is None:
            if isinstance(event, BuildRunning):
                due = int(event.seconds // _BUILD_LINE_SECONDS)
                if due == self._build_lines:
                    return
                self._build_lines = due
            if not isinstance(event, CaseStarted):
                emit([Line(text, style)], self._stream)
                self._stream.flush()
        elif lasting:
            show(Line(text, style), self._live.console)
        else:
            self._live.update(styled(Line(text, style)), refresh=True)

    def _is_of_many(self, event: Event) -> bool:
        """Whether the run is one of many cases; of a build that takes minutes all is said in any run."""
        if isinstance(event, RunPlanned):
            self._many = self._many or event.cases >= MANY_CASES
        building = isinstance(event, (BuildStarted, BuildRunning, BuildFinished))
        return self._many and not (building and self._long_build)

    def _few(self, event: Event, line: Line) -> None:
        """Say a line of a run of many cases: each note once, and of all else one line in a while."""
        if isinstance(event, CaseFinished):
            self._failing += event.record.verdict not in FINE
            failing = f", {self._failing} not passed so far" if self._failing else ""
            line = Line(f"{line.text}{failing}", line.style)
        if isinstance(event, Note):
            due = event.text not in self._noted
            self._noted.add(event.text)
        else:
            now = self._clock()
            due = self._line_at is None or now - self._line_at >= LINE_SECONDS
            self._line_at = now if due else self._line_at
        if due:
            emit([line], self._stream)
            self._stream.flush()


def _words(event: Event, left: str) -> tuple[str, bool, str]:
    """Text of an event, whether it stays on the screen, and its style. left: time, as text or empty."""
    match event:
        case RunPlanned():
            left = f", {event.left_out} left out" if event.left_out else ""
            devices = ", ".join(event.devices) or "no device: nothing can run"
            return f"{plural(event.cases, 'case')} on {devices}{left}", True, FAINT
        case AllPlanned():
            return f"{plural(event.cases, 'case')} of {plural(event.runs, 'op')}", True, FAINT
        case BuildStarted():
            notice = f" ({event.notice})" if event.notice else ""
            return f"building {event.source} for {event.device}{notice}", bool(event.notice), FAINT
        case BuildRunning():
            return (
                f"building {event.source} for {event.device}: {event.seconds:.0f} s",
                False,
                FAINT,
            )
        case BuildFinished():
            how = "from the cache" if event.cached else f"built in {event.seconds:.1f} s"
            note = f"; {event.note}" if event.note else ""
            lasting = bool(event.note) or not event.cached
            return f"{event.source} for {event.device}: {how}{note}", lasting, FAINT
        case CaseStarted():
            place = f"[{event.position}/{event.total}{left}]"
            return f"{place} {event.case_id} on {event.device}", False, FAINT
        case CaseFinished():
            record = event.record
            # Whether its checks tell enough is known when the cases of its group are through.
            word = "passed" if record.verdict is Verdict.VERIFIED else record.verdict
            lasting = record.verdict not in FINE
            place = f"{event.position}/{event.total}{'' if lasting else left}"
            text = f"[{place}] {word}: {record.id}"
            return f"{text} on {record.device}", lasting, verdict_style(record.verdict)
        case Note():
            return event.text, True, DOUBTFUL
