"""Lines by which GitHub shows failures beside the code: workflow commands, one for each cause.

Source: GitHub Docs, "Workflow commands for GitHub Actions": `::error file=,line=,col=,title=::message`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from tokitai_cli.cli.terminal.streams import emit
from tokitai_cli.cli.terminal.styled_blocks import Line
from tokitai_cli.core.model.batch_record import BatchIndex
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.wording import plural
from tokitai_cli.report import causes
from tokitai_cli.report.causes import Cause

# GitHub shows so many errors of a step, and drops the others without a word.
_MOST = 10


def annotate_batch(index: BatchIndex, environ: Mapping[str, str] | None = None) -> None:
    """Say on stdout what of a batch needs a look, where GitHub Actions reads it."""
    if _is_read(environ):
        _say(causes.of_batch(index))


def annotate_run(evidence: Evidence, called: str, environ: Mapping[str, str] | None = None) -> None:
    """Say the same of a run of the spec that is `called` so."""
    if _is_read(environ):
        _say(causes.of_run(evidence, called))


def _is_read(environ: Mapping[str, str] | None) -> bool:
    return (os.environ if environ is None else environ).get("GITHUB_ACTIONS") == "true"


def _say(found: Sequence[Cause]) -> None:
    more = len(found) - _MOST
    shown = [_line(one) for one in (found if more <= 0 else found[: _MOST - 1])]
    if more > 0:
        shown.append(f"::error::{more + 1} more causes")
    emit(map(Line, shown), sys.stdout)


def _line(cause: Cause) -> str:
    place, others = cause.place, cause.count - 1
    told = {} if place is None else {"file": place.file, "line": place.line, "col": place.column}
    title = f"{cause.verdict}: {cause.case}" if cause.case else ""
    given = {**told, "title": title}
    named = ",".join(f"{key}={_property(str(value))}" for key, value in given.items() if value)
    more = f" (and {plural(others, 'more case')})" if others else ""
    words = _escaped(f"{cause.words}{more}")
    return f"::error {named}::{words}" if named else f"::error::{words}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
