"""What evidence says of the whole run, against its own command line, cases and spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tokitai_cli import evidence
from tokitai_cli.audit.planned import words_of
from tokitai_cli.core.model.audit_answer import Remark
from tokitai_cli.core.model.evidence import Evidence
from tokitai_cli.core.model.options import Kind, Option, options_of
from tokitai_cli.core.model.verdict import Stage, Verdict
from tokitai_cli.evidence import queries


def remarks(run: Evidence, *, same: bool) -> Iterator[Remark]:
    """Settings, stage, reason and comparisons of devices that the rest does not bear out."""
    for text in _settings(run):
        yield Remark(text, fault=True)
    if run.verdict is Verdict.VERIFIED and run.stage is not Stage.COMPARE:
        yield Remark(f"it says verified at the stage {run.stage}", fault=True)
    if run.reason not in _reasons(run):
        yield Remark(f"its cases do not give its reason: {run.reason}", fault=same)
    used = {case.device for case in run.cases}
    for one in (*run.agreement, *run.volatile.agreement):
        if not used.issuperset(one.devices):
            text = f"it compares {' and '.join(one.devices)}, on which not all of its cases ran"
            yield Remark(text, fault=True)


def _settings(run: Evidence) -> Iterator[str]:
    """Settings that are others than the command that repeats the run has."""
    words = words_of(run.rerun)
    if run.settings is None or len(words) < 2:
        return
    given = _given(words, options_of(words[1]).values())
    for name in ("repeat", "warmup", "sanitize", "strict"):
        if name not in options_of(words[1]):
            continue
        default = options_of(words[1])[name].default_of(words[1])
        told, asked = getattr(run.settings, name), given.get(name, default)
        if told != asked and not (name == "sanitize" and words[1] == "sanitize"):
            yield f"its settings have {name} {told}, and the command to repeat it has {asked}"


def _given(words: Sequence[str], options: Iterable[Option]) -> dict[str, object]:
    """Numbers and flags of a command line, by the names of their options."""
    given: dict[str, object] = {}
    for option in options:
        for at, word in enumerate(words):
            if word != option.flag:
                continue
            if option.kind is Kind.FLAG:
                given[option.name] = True
            elif option.kind is Kind.NUMBER and at + 1 < len(words) and words[at + 1].isdigit():
                given[option.name] = int(words[at + 1])
    return given


def _reasons(run: Evidence) -> set[str]:
    """What the reason may be: of the cases that have the run's verdict, or its own where it ended."""
    if run.verdict is Verdict.VERIFIED:
        return {evidence.verified_reason(run.cases)}
    told = {queries.headline(case) for case in run.cases if case.reads is run.verdict}
    told |= {queries.watch_headline(case) for case in run.watched if case.verdict is run.verdict}
    return told if told else {run.reason}
