"""Lines by which GitHub shows failures beside the code: workflow commands, one for each cause.

Source: GitHub Docs, "Workflow commands for GitHub Actions": `::error file=,line=,col=,title=::message`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tokitai_cli.cli.terminal.streams import emit
from tokitai_cli.cli.terminal.styled_blocks import Line
from tokitai_cli.core.model.batch_record import BatchIndex
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.wording import Placed, from_folder, placed, plural
from tokitai_cli.evidence.queries import FINE, decides

# GitHub shows so many errors of a step, and drops the others without a word.
_MOST = 10


class _Failed(msgspec.Struct, frozen=True):
    """A case that needs a look."""

    #: Path of its file from here.
    spec: str
    #: Variant and verdict.
    group: tuple[str, str]
    id: str
    reason: str


def annotate_batch(index: BatchIndex, environ: Mapping[str, str] | None = None) -> None:
    """Say on stdout what of a batch needs a look, where GitHub Actions reads it."""
    if _is_read(environ):
        paths = {one.name: one.path for one in index.specs}
        cases = (one.case for one in index.failures)
        failed = [
            _Failed(paths[one.spec], (one.variant, str(one.verdict)), one.id, one.reason)
            for one in cases
        ]
        _say([*(_line(*placed(fault)) for fault in index.faults), *_lines(failed)])


def annotate_run(evidence: Evidence, called: str, environ: Mapping[str, str] | None = None) -> None:
    """Say the same of a run of the spec that is `called` so."""
    if _is_read(environ):
        _say(
            _lines(
                _Failed(called, (one.variant, str(one.reads)), one.id, one.reason)
                for one in (*evidence.cases, *filter(decides, evidence.watched))
                if one.reads not in FINE
            )
        )


def _is_read(environ: Mapping[str, str] | None) -> bool:
    return (os.environ if environ is None else environ).get("GITHUB_ACTIONS") == "true"


def _say(lines: Iterable[str]) -> None:
    every = list(lines)
    more = len(every) - _MOST
    shown = every if more <= 0 else [*every[: _MOST - 1], f"::error::{more + 1} more causes"]
    emit(map(Line, shown), sys.stdout)


def _lines(cases: Iterable[_Failed]) -> Iterator[str]:
    """A line for each place and cause, with the number of its cases."""
    causes: dict[tuple[object, ...], list[_Failed]] = {}
    for one in cases:
        place, words = placed(from_folder(one.reason, one.spec))
        causes.setdefault((place or one.spec, *one.group, words if place else ""), []).append(one)
    for members in causes.values():
        first = members[0]
        place, words = placed(from_folder(first.reason, first.spec))
        others = len(members) - 1
        more = f" (and {plural(others, 'more case')})" if others else ""
        title = f"{first.group[1]}: {first.id}"
        yield _line(place or Placed(first.spec), f"{words}{more}", title)


def _line(place: Placed | None, words: str, title: str = "") -> str:
    told = {} if place is None else {"file": place.file, "line": place.line, "col": place.column}
    given = {**told, "title": title}
    named = ",".join(f"{key}={_property(str(value))}" for key, value in given.items() if value)
    return f"::error {named}::{_escaped(words)}" if named else f"::error::{_escaped(words)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
