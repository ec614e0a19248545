"""A batch on the terminal: counts, rate and time left while it runs; then what came of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from tokitai_cli.cli.terminal.pace import clock_text
from tokitai_cli.cli.terminal.progress import LINE_SECONDS, Progress
from tokitai_cli.cli.terminal.run_summary import from_here, verdict_style
from tokitai_cli.cli.terminal.streams import emit, show, styled
from tokitai_cli.cli.terminal.styled_blocks import DOUBTFUL, FAINT, Block, Column, Line, Table
from tokitai_cli.core.model.batch_record import BatchIndex, BatchPlanned, BatchProgress, Failure
from tokitai_cli.core.model.events import Event
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import counts_text, from_folder, plural
from tokitai_cli.evidence.queries import FINE

MOST_FAILURES = 10
MOST_NOTES = 20


class BatchDisplay(Progress):
    """Progress of a batch: a line for each case that needs a look, and one that counts.

    On a terminal the counting line changes in place; elsewhere it comes every ten seconds.
    """

    _counted = 0.0

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        super().__init__(stream, quiet=quiet)
        self._missing: set[str] = set()

    def __call__(self, event: Event | BatchPlanned | BatchProgress) -> None:
        """Show one event."""
        if not self._silent:
            self._guarded(lambda: self._show(event))

    def _show(self, event: Event | BatchPlanned | BatchProgress) -> None:
        if isinstance(event, BatchPlanned):
            self._lasting(Line(_planned(event), FAINT))
            self._counted = time.monotonic()
        elif isinstance(event, BatchProgress):
            if event.verdict not in FINE and not self._told(event):
                reason = f": {event.reason}" if event.reason else ""
                text = f"{event.verdict}: {event.id}{reason}"
                self._lasting(Line(text, verdict_style(event.verdict)))
            self._count(event)
        else:
            super()._show(event)

    def _told(self, event: BatchProgress) -> bool:
        """Whether it only says once more that a device is not there."""
        if event.verdict is not Verdict.INADMISSIBLE:
            return False
        told = event.reason in self._missing
        self._missing.add(event.reason)
        return told

    def _lasting(self, line: Line) -> None:
        if self._live is not None:
            show(line, self._live.console)
        else:
            emit([line], self._stream)
            self._stream.flush()

    def _count(self, event: BatchProgress) -> None:
        line = Line(counted(event), FAINT)
        if self._live is not None:
            self._live.update(styled(line), refresh=True)
        elif event.position == event.total or time.monotonic() - self._counted >= LINE_SECONDS:
            self._counted = time.monotonic()
            self._lasting(line)


def _planned(event: BatchPlanned) -> str:
    workers = plural(event.workers, "worker") if event.workers else "workers not yet started"
    text = f"{plural(event.cases, 'case')} of {plural(event.specs, 'spec')}"
    text += f" on {', '.join(event.devices)}, {workers}"
    if event.left_out:
        text += f"; {event.left_out} combinations skipped"
    if event.candidates:
        text += f"; {event.candidates} on disk, run again only if outdated"
    return text


def counted(event: BatchProgress) -> str:
    """Text such as "[12/100] 8.1 a second, 0:11 left, 1 needs attention, 4 kept"."""
    parts = [f"[{event.position}/{event.total}] {event.rate:.1f} a second"]
    if event.position < event.total and event.remaining_seconds is not None:
        parts.append(f"{clock_text(event.remaining_seconds)} left")
    if event.failures:
        parts.append(
            f"{event.failures} need attention" if event.failures > 1 else "1 needs attention"
        )
    if event.kept:
        parts.append(f"{event.kept} kept")
    return ", ".join(parts)


def show_cases(ids: Iterable[str]) -> None:
    """Show the ids of cases, one a line."""
    emit((Line(one) for one in ids), sys.stdout)


def show_planned(skipped: Sequence[str], cases: int, left_out: int) -> None:
    """Say on stderr what a batch would run, and what it would pass over."""
    blocks = [Line(text, DOUBTFUL) for text in skipped]
    left = f", {left_out} combinations skipped" if left_out else ""
    emit([*blocks, Line(f"{plural(cases, 'case')}{left}")], sys.stderr)


def show_batch(index: BatchIndex, files: Sequence[Path], *, to_stderr: bool = False) -> None:
    """Show how a batch ended: failures, a row for each spec, counts of every verdict."""
    emit(batch_blocks(index, files), sys.stderr if to_stderr else sys.stdout)


def batch_blocks(index: BatchIndex, files: Sequence[Path]) -> list[Block]:
    """Blocks that tell how a batch ended."""
    blocks: list[Block] = []
    for fault in index.faults:
        blocks += [Line("a spec that cannot be used", verdict_style(Verdict.NOT_RUN))]
        blocks += [Line(fault, indent=2)]
    shown = _telling(index.failures)[:MOST_FAILURES]
    paths = {one.name: one.path for one in index.specs}
    for failure in shown:
        blocks += _failure(failure, paths[failure.case.spec])
    if len(index.failures) > len(shown):
        more = len(index.failures) - len(shown)
        blocks.append(Line(f"{more} more in the index", FAINT))
    columns = [Column("spec", wide=True), Column("verdict"), Column("cases", wide=True, spare=1)]
    columns += [Column("evidence", wide=True, spare=2)]
    rows = [
        [one.name, str(one.verdict), counts_text(one.counts) or "-", ", ".join(one.evidence[:2])]
        for one in index.specs
    ]
    if rows:
        blocks.append(Table(columns, rows, [verdict_style(one.verdict) for one in index.specs]))
    blocks += [Line(text, DOUBTFUL) for text in index.notes[:MOST_NOTES]]
    if index.not_started:
        text = (
            f"{index.not_started} of {index.total} cases were not run; --resume continues with them"
        )
        blocks.append(Line(text, DOUBTFUL))
    if index.kept:
        verb = "was" if index.kept == 1 else "were"
        text = f"{plural(index.kept, 'result')} of an earlier run {verb} still fresh"
        blocks.append(Line(text, FAINT))
    counts = counts_text(index.counts)
    headline = f"batch: {index.verdict}" + (f" ({counts})" if counts else "")
    blocks.append(Line(headline, verdict_style(index.verdict)))
    worst = next((one.case for one in index.failures if index.reason.startswith(one.case.id)), None)
    reason = index.reason if worst is None else from_folder(index.reason, paths[worst.spec])
    blocks.append(Line(reason, indent=2))
    blocks += [Line(str(path), label="index:", indent=2) for path in files]
    return blocks


def _telling(failures: Sequence[Failure]) -> list[Failure]:
    """Failures without those that only say once more that a device is not there."""
    found: dict[str, Failure] = {}
    for failure in failures:
        missing = failure.case.verdict is Verdict.INADMISSIBLE
        found.setdefault(failure.case.reason if missing else failure.case.id, failure)
    return list(found.values())


def _failure(failure: Failure, path: str) -> list[Block]:
    case = failure.case
    blocks: list[Block] = [Line(f"{case.verdict}: {case.id}", verdict_style(case.verdict))]
    rerun = from_here(case.rerun, path) if case.rerun else ""
    reason = from_folder(case.reason, path)
    blocks += [Line(reason, label=f"{case.stage}:", indent=2)] if reason else []
    blocks += [Line(rerun, label="run it again:", indent=2, verbatim=True)] if rerun else []
    log = from_folder(failure.log, path).splitlines()[-5:]
    blocks += [Line(text, FAINT, indent=4, verbatim=True) for text in log]
    return blocks
