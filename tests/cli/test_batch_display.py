"""A batch on the terminal: what is told once, what each line says."""

from __future__ import annotations

import io

import pytest

from tokitai_cli.cli.terminal.batch_display import BatchDisplay, counted
from tokitai_cli.cli.terminal.pace import clock_text
from tokitai_cli.core.model.batch_record import BatchPlanned, BatchProgress
from tokitai_cli.core.model.verdict import Verdict
from tokitai_cli.core.model.wording import counts_text

PLANNED = BatchPlanned(cases=4, specs=1, devices=("cpu",), left_out=2, candidates=1, workers=2)


def progress(
    position: int,
    verdict: Verdict = Verdict.VERIFIED,
    *,
    reason: str = "",
    left: float | None = 11.4,
) -> BatchProgress:
    return BatchProgress(
        id=f"op/v/m={position}/normal/0@cpu",
        verdict=verdict,
        reason=reason,
        position=position,
        total=4,
        failures=int(verdict is Verdict.REFUTED),
        kept=1,
        rate=8.06,
        remaining_seconds=left,
    )


def shown(*events: BatchPlanned | BatchProgress) -> list[str]:
    stream = io.StringIO()
    with BatchDisplay(stream) as display:
        for event in events:
            display(event)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (11.4, "0:11"), (75, "1:15"), (3600, "1:00:00")]
)
def test_seconds_as_a_clock(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


def test_the_counting_line_has_count_rate_time_left_and_failures() -> None:
    assert counted(progress(2)) == "[2/4] 8.1 a second, 0:11 left, 1 kept"
    assert counted(progress(4)) == "[4/4] 8.1 a second, 1 kept"
    assert counted(progress(1, Verdict.REFUTED, left=None)) == (
        "[1/4] 8.1 a second, 1 needs attention, 1 kept"
    )


def test_off_a_terminal_failures_have_lines_and_the_rest_is_counted() -> None:
    lines = shown(
        PLANNED,
        progress(1),
        progress(2, Verdict.REFUTED, reason="c[0]: got 1"),
        progress(3),
        progress(4),
    )
    assert lines == [
        "4 cases of 1 spec on cpu, 2 workers; 2 combinations skipped; "
        "1 on disk, run again only if outdated",
        "refuted: op/v/m=2/normal/0@cpu: c[0]: got 1",
        "[4/4] 8.1 a second, 1 kept",
    ]


def test_a_device_that_is_not_there_is_told_once() -> None:
    events = (progress(n, Verdict.INADMISSIBLE, reason="no GPU") for n in (1, 2, 3))
    assert shown(PLANNED, *events)[1:] == ["inadmissible: op/v/m=1/normal/0@cpu: no GPU"]


def test_counts_come_worst_first() -> None:
    assert counts_text({"verified": 3, "refuted": 1, "crashed": 2}) == (
        "1 refuted, 2 crashed, 3 verified"
    )
